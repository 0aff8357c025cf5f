//! Takes a program apart at tables.

use super::live::{Live, after_term, live_in, reads, told};
use millrace_pipeline::*;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Most applications of tables that are in software.
const MAX_SITES: usize = 1024;

/// A program in parts.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The storage of all parts, and the bodies of the sites.
    pub(super) wide: Arc<Program>,
    /// What is before the traffic manager, and after it.
    pub(super) stages: [StageParts; 2],
    /// The slots that say where a part ended, and where it goes on.
    pub(super) ended_at: SlotId,
    pub(super) goes_on_at: SlotId,
    pub(super) sites: Vec<Site>,
    pub(super) in_software: BTreeSet<TableId>,
    /// Frames may be under way concurrently: none sees what another one changes.
    pub(super) is_free: bool,
}

/// The parts of a stage, each a program whose only stage it is.
#[derive(Clone, Debug)]
pub(super) struct StageParts {
    /// Up to the body that is cut; of a stage that is not, all of it.
    pub(super) before: Option<Arc<Program>>,
    /// The body that is cut.
    pub(super) middle: Option<Arc<Program>>,
    pub(super) after: Option<Arc<Program>>,
    /// What is live at its start and at its end.
    pub(super) start: Live,
    pub(super) end: Live,
}

/// An application of a table that is in software.
#[derive(Clone, Debug)]
pub(super) struct Site {
    /// 0: ingress, 1: egress.
    pub(super) stage: usize,
    /// Applies the table, and says whether its action returned or exited.
    pub(super) body: BodyId,
    /// What is live before it, and after it.
    pub(super) asked: Live,
    pub(super) answered: Live,
}

/// Why a program cannot be taken apart so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoSplit {
    /// There is no table of that name.
    NoTable(String),
    /// What it is, and why not.
    Refused(String),
}

impl fmt::Display for NoSplit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoSplit::NoTable(name) => write!(f, "the program has no table `{}`", name.escape_debug()),
            NoSplit::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for NoSplit {}

impl Cut {
    /// A verified program with these tables in software, by name or the end of one.
    ///
    /// # Errors
    /// A table is not there, or the program cannot be taken apart.
    pub fn new(program: &Program, names: &[String]) -> Result<Cut, NoSplit> {
        let tables: BTreeSet<TableId> =
            names.iter().map(|name| table_of(program, name)).collect::<Result<_, _>>()?;
        refuse(program, &tables)?;
        let bodies =
            [cut_body(program, &program.ingress, &tables)?, cut_body(program, &program.egress, &tables)?];
        let mut wide = program.clone();
        for body in bodies.iter().flatten() {
            // Their values outlive a part of the body.
            for local in program.bodies[*body].locals(program) {
                wide.slots[local].home = Home::Metadata;
            }
        }
        let mut number = |name: &str| {
            let ty = Type::Bits(16);
            wide.slots.push(Slot { name: name.to_owned(), ty, home: Home::Metadata })
        };
        let (ended_at, goes_on_at) = (number("node.ended_at"), number("node.goes_on_at"));
        wide.reset_at_egress.clear();
        let base = wide.clone();
        let mut cut = Making { wide, base, ended_at, goes_on_at, sites: Vec::new() };
        let stages = [cut.stage(0, bodies[0], &tables)?, cut.stage(1, bodies[1], &tables)?];
        let wide = Arc::new(cut.wide);
        verified(&wide)?;
        let is_free = !wide.bodies.values().any(has_order);
        Ok(Cut { wide, stages, ended_at, goes_on_at, sites: cut.sites, in_software: tables, is_free })
    }

    /// The names of the tables that are in software.
    pub fn software(&self) -> impl Iterator<Item = &str> {
        self.in_software.iter().map(|table| self.wide.tables[*table].name.as_str())
    }

    /// How many bits travel with a frame to a table in software, and back, at most; without its headers' validity.
    pub fn live_bits(&self) -> (u32, u32) {
        let bits = |live: &Live| {
            let width = |slot: &SlotId| match self.wide.slots[*slot].ty {
                Type::Bool => 1,
                Type::Bits(width) | Type::Varbit(width) => width,
            };
            live.iter().map(width).sum()
        };
        let most = |of: &dyn Fn(&Site) -> u32| self.sites.iter().map(of).max().unwrap_or(0);
        (most(&|site| bits(&site.asked)), most(&|site| bits(&site.answered)))
    }
}

fn table_of(program: &Program, name: &str) -> Result<TableId, NoSplit> {
    let is_end =
        |full: &str| full.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let mut found = program.tables.iter().filter(|(_, table)| is_end(&table.name));
    match (found.next(), found.next()) {
        (Some((table, _)), None) => Ok(table),
        (Some(_), Some(_)) => {
            Err(NoSplit::Refused(format!("several tables have names that end with `{name}`")))
        }
        (None, _) => Err(NoSplit::NoTable(name.to_owned())),
    }
}

/// The one body of a stage that applies one of the tables.
fn cut_body(
    program: &Program,
    bodies: &[BodyId],
    tables: &BTreeSet<TableId>,
) -> Result<Option<BodyId>, NoSplit> {
    let applies = |body: &&BodyId| {
        let blocks = program.bodies[**body].blocks.values();
        blocks
            .into_iter()
            .any(|block| matches!(&block.term, Terminator::Apply { table, .. } if tables.contains(table)))
    };
    let mut found = bodies.iter().filter(applies);
    match (found.next(), found.next()) {
        (first, None) => Ok(first.copied()),
        (_, Some(_)) => Err(NoSplit::Refused("tables in software are in two controls of one stage".into())),
    }
}

/// What cannot be taken apart.
fn refuse(program: &Program, tables: &BTreeSet<TableId>) -> Result<(), NoSplit> {
    let no = |why: &str| Err(NoSplit::Refused(why.to_owned()));
    if tables.is_empty() {
        return Ok(());
    }
    if program.deparse_at_ingress {
        return no(
            "of an architecture whose ingress ends with a deparser tables cannot be in software (PSA, PNA)",
        );
    }
    if program.on_reject == OnReject::PassOn {
        return no("of an architecture whose parser skips the program tables cannot be in software (ubpf)");
    }
    let (mut software, mut hardware) = (BTreeSet::new(), BTreeSet::new());
    let of_software: BTreeSet<BodyId> = actions_of(program, tables.iter().copied());
    let others = program.tables.keys().filter(|table| !tables.contains(table));
    let mut of_hardware = actions_of(program, others);
    of_hardware.extend(program.ingress.iter().chain(&program.egress));
    of_software.iter().for_each(|body| objects(&program.bodies[*body], &mut software));
    of_hardware.iter().for_each(|body| objects(&program.bodies[*body], &mut hardware));
    if let Some(object) = software.intersection(&hardware).next() {
        let name = object.name(program);
        return Err(NoSplit::Refused(format!(
            "{name} is used by tables in software and by hardware: an object lives on one side"
        )));
    }
    // Which entry a table hit last is not known in another part.
    for (body, of) in &program.bodies {
        for inst in of.blocks.values().flat_map(|block| &block.insts) {
            let table = match inst {
                Inst::CountDirect(table) | Inst::MeterDirect { table, .. } => *table,
                Inst::Digest { .. } | Inst::Log { .. } if of_hardware.contains(&body) => {
                    return no(
                        "the part in hardware sends messages or log lines, which the host link does not bring back",
                    );
                }
                _ => continue,
            };
            if !actions_of(program, [table].into_iter()).contains(&body) {
                let name = &program.tables[table].name;
                return Err(NoSplit::Refused(format!(
                    "the entry that {name} hit is used outside of its actions"
                )));
            }
        }
    }
    Ok(())
}

fn actions_of(program: &Program, tables: impl Iterator<Item = TableId>) -> BTreeSet<BodyId> {
    let called = tables.flat_map(|table| program.tables[table].actions.iter().map(|action| action.action));
    called.map(|action| program.actions[action].body).collect()
}

/// An object whose value frames see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Object {
    Meter(MeterId),
    Register(RegisterId),
}

impl Object {
    fn name(self, program: &Program) -> String {
        match self {
            Object::Meter(id) => format!("the meter {}", program.meters[id].name),
            Object::Register(id) => format!("the register {}", program.registers[id].name),
        }
    }
}

fn objects(body: &Body, all: &mut BTreeSet<Object>) {
    for inst in body.blocks.values().flat_map(|block| &block.insts) {
        all.extend(match inst {
            Inst::Meter { meter, .. } => Some(Object::Meter(*meter)),
            Inst::RegisterRead { register, .. } | Inst::RegisterWrite { register, .. } => {
                Some(Object::Register(*register))
            }
            _ => None,
        });
    }
}

/// Whether the order of frames shows in what a body does.
fn has_order(body: &Body) -> bool {
    let mut insts = body.blocks.values().flat_map(|block| &block.insts);
    insts.any(|inst| {
        matches!(
            inst,
            Inst::Meter { .. }
                | Inst::MeterDirect { .. }
                | Inst::RegisterRead { .. }
                | Inst::RegisterWrite { .. }
                | Inst::Random { .. }
                | Inst::Digest { .. }
                | Inst::Log { .. }
                | Inst::Call { .. }
        )
    })
}

/// What is made so far.
struct Making {
    wide: Program,
    /// The program with the storage of all parts, and no bodies of sites.
    base: Program,
    ended_at: SlotId,
    goes_on_at: SlotId,
    sites: Vec<Site>,
}

impl Making {
    fn stage(
        &mut self,
        stage: usize,
        cut: Option<BodyId>,
        tables: &BTreeSet<TableId>,
    ) -> Result<StageParts, NoSplit> {
        let base = self.base.clone();
        let bodies = if stage == 0 { &base.ingress } else { &base.egress };
        let at = cut.and_then(|cut| bodies.iter().position(|body| *body == cut)).unwrap_or(bodies.len());
        let (before, rest) = bodies.split_at(at);
        let after = rest.get(1..).unwrap_or_default();
        let mut end = told(&base);
        end.extend(reads(&base, &base.egress));
        let mut start = end.clone();
        start.extend(reads(&base, bodies));
        let middle = match cut {
            None => None,
            Some(cut) => {
                let mut live_after = end.clone();
                live_after.extend(reads(&base, after));
                let body = self.cut(stage, &base.bodies[cut], &live_after, tables)?;
                let mut program = base.clone();
                program.bodies[cut] = body;
                Some(part(program, &[], &[cut])?)
            }
        };
        self.travels(&mut start);
        self.travels(&mut end);
        let of = |bodies: &[BodyId]| match (bodies, stage) {
            ([], _) => Ok(None),
            (bodies, 0) if bodies == before => part(base.clone(), bodies, &[]).map(Some),
            (bodies, _) => part(base.clone(), &[], bodies).map(Some),
        };
        Ok(StageParts { before: of(before)?, middle, after: of(after)?, start, end })
    }

    /// The body with an end before each table, and an entry that goes on after it.
    fn cut(
        &mut self,
        stage: usize,
        body: &Body,
        end: &Live,
        tables: &BTreeSet<TableId>,
    ) -> Result<Body, NoSplit> {
        let live = live_in(&self.base, body, end);
        let mut cut = body.clone();
        let number = |number: usize| Bits::new(16, number as u128);
        let mut cases = Vec::new();
        for (id, block) in &body.blocks {
            let Terminator::Apply { table, hit, action, next, exit } = block.term else { continue };
            if !tables.contains(&table) {
                continue;
            }
            if self.sites.len() >= MAX_SITES {
                return Err(NoSplit::Refused(format!(
                    "tables in software are applied more than {MAX_SITES} times (MAX_SITES)"
                )));
            }
            let site = self.sites.len();
            let mut asked = after_term(&self.base, &block.term, &live, end);
            let mut answered = live[&next].clone();
            answered.extend(&live[&exit]);
            self.travels(&mut asked);
            self.travels(&mut answered);
            let ends = Inst::Assign { dst: self.ended_at, value: Expr::Const(number(site + 1)) };
            cut.blocks[id].term = Terminator::Goto(cut.blocks.push(Block {
                state: None,
                line: None,
                insts: vec![ends],
                term: Terminator::End,
            }));
            for (way, target) in [(1, next), (2, exit)] {
                cases.push(Case { matchers: vec![Matcher::Value(number(2 * site + way))], target });
            }
            let body = self.site_body((table, hit, action), site);
            self.sites.push(Site { stage, body, asked, answered });
        }
        let keys = vec![Expr::Read(self.goes_on_at)];
        let none = Inst::Assign { dst: self.ended_at, value: Expr::Const(number(0)) };
        let entry = Terminator::Select { keys, cases, default: cut.entry };
        cut.entry = cut.blocks.push(Block { state: None, line: None, insts: vec![none], term: entry });
        Ok(cut)
    }

    /// Applies a table; says where the program goes on.
    fn site_body(
        &mut self,
        (table, hit, action): (TableId, Option<SlotId>, Option<SlotId>),
        site: usize,
    ) -> BodyId {
        let mut blocks = entity::PrimaryMap::new();
        let (entry, next, exit) = (BlockId::from_u32(0), BlockId::from_u32(1), BlockId::from_u32(2));
        let apply = Terminator::Apply { table, hit, action, next, exit };
        blocks.push(Block { state: None, line: None, insts: Vec::new(), term: apply });
        for way in [1, 2] {
            let value = Expr::Const(Bits::new(16, (2 * site + way) as u128));
            let says = Inst::Assign { dst: self.goes_on_at, value };
            blocks.push(Block { state: None, line: None, insts: vec![says], term: Terminator::End });
        }
        let name = format!("node.site{site}");
        self.wide.bodies.push(Body { name, kind: BodyKind::Control, blocks, entry })
    }

    /// Locals of other bodies start at 0 there.
    fn travels(&self, live: &mut Live) {
        live.retain(|slot| self.base.slots[*slot].home != Home::Local);
    }
}

/// A program of one stage. In egress all metadata may hold anything, which a body of ingress says that sets it.
fn part(mut program: Program, ingress: &[BodyId], egress: &[BodyId]) -> Result<Arc<Program>, NoSplit> {
    program.ingress = ingress.to_vec();
    program.egress = egress.to_vec();
    if ingress.is_empty() {
        let kept = program.slots.iter().filter(|(_, slot)| slot.home == Home::Metadata);
        let insts = kept.map(|(slot, _)| Inst::Assign { dst: slot, value: Expr::Read(slot) }).collect();
        let mut blocks = entity::PrimaryMap::new();
        let entry = blocks.push(Block { state: None, line: None, insts, term: Terminator::End });
        let name = "node.any".to_owned();
        program.ingress = vec![program.bodies.push(Body { name, kind: BodyKind::Control, blocks, entry })];
    }
    let program = Arc::new(program);
    verified(&program)?;
    Ok(program)
}

fn verified(program: &Program) -> Result<(), NoSplit> {
    verify(program).map_err(|errors| {
        let first = errors.first().map_or(String::new(), ToString::to_string);
        NoSplit::Refused(format!("a part of the program breaks rules of the IR (a bug): {first}"))
    })
}
