//! Where things stand in the source: what traces show, and the places of a program that ask for packets to be dropped.
//!
//! An architecture says which slots decide about that and with which values ([`Asks`]). Wherever the program writes one of
//! them so that it may ask for a drop, the number of the place goes to the slot of [`Intrinsic::DropSite`]: a constant,
//! written where a packet is dropped and nowhere else unless the value shows only when the packet comes.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use millrace_pipeline::{
    BodyKind, DataItem, DropSite, Expr, Home, Inst, Intrinsic, PAYLOAD, Program, SlotId, SourceKind,
    SourceLine, limits,
};
use millrace_syntax::{SourceMap, Span, builtin_includes};

use crate::code::Code;
use crate::context::Lowering;
use crate::storage::{LValue, Storage};
use crate::value::Value;

/// Which values of a slot ask for a drop.
#[derive(Clone, Debug)]
pub(crate) enum Asks {
    /// This one.
    With(u128),
    /// All but these.
    Without(Vec<u128>),
}

impl Asks {
    /// Whether a value may ask for a drop.
    fn may(&self, value: &Expr) -> bool {
        let known = match value {
            Expr::Bool(value) => Some(u128::from(*value)),
            Expr::Const(bits) => Some(u128::from(bits.to_u64_saturating())),
            _ => None,
        };
        match (self, known) {
            (_, None) => true,
            (Asks::With(one), Some(value)) => *one == value,
            (Asks::Without(others), Some(value)) => !others.contains(&value),
        }
    }
}

/// The places found so far.
pub(crate) struct Sites<'a> {
    /// Without sources no place is told.
    sources: Option<&'a SourceMap>,
    list: Vec<DropSite>,
    /// Their numbers, by the place and the body that it is in.
    numbers: HashMap<(DropSite, String), u16>,
    /// The body that each belongs to.
    bodies: Vec<String>,
    watched: Vec<(SlotId, Asks)>,
    lines: Vec<SourceLine>,
    /// The uses among them.
    uses: HashSet<String>,
    /// Which bodies read a slot of metadata, and where they do so first.
    reads: HashMap<SlotId, Vec<(String, Span)>>,
    /// Whether packets carry the state of the parser that they are in.
    watches_states: bool,
}

impl<'a> Sites<'a> {
    /// None found yet.
    pub(crate) fn new(sources: Option<&'a SourceMap>) -> Sites<'a> {
        Sites {
            sources,
            // Number 0: nothing asked for it.
            list: vec![DropSite::default()],
            numbers: HashMap::new(),
            bodies: vec![String::new()],
            watched: Vec::new(),
            lines: Vec::new(),
            uses: HashSet::new(),
            reads: HashMap::new(),
            watches_states: false,
        }
    }

    /// From now on what is written to the slot may ask for a drop.
    pub(crate) fn watch(&mut self, slot: Option<SlotId>, asks: Asks) {
        self.watched.extend(slot.filter(|_| self.sources.is_some()).map(|slot| (slot, asks)));
    }

    /// Whether a value written to the slot may ask for a drop.
    fn may_ask(&self, slot: SlotId, value: &Expr) -> bool {
        self.watched.iter().any(|(watched, asks)| *watched == slot && asks.may(value))
    }

    /// Packets are dropped that nothing asked to be dropped: `block`, which is declared there, did not send them.
    pub(crate) fn by_default(&mut self, span: Span, block: &str, request: &str) {
        let (file, line) = self.place(span);
        let (block, request) = (block.to_owned(), request.to_owned());
        self.list[0] = DropSite { file, line, block, request, ..DropSite::default() };
    }

    /// Something of the program stands there in the source.
    pub(crate) fn stands(&mut self, kind: SourceKind, name: &str, span: Span) {
        if span.start < span.end && self.lines.len() < limits::MAX_SOURCE_LINES {
            let (file, line) = self.place(span);
            if line > 0 {
                self.lines.push(SourceLine { kind, name: name.to_owned(), file, line });
            }
        }
    }

    /// A body makes use of something there.
    fn uses(&mut self, body: &str, thing: &str, span: Span) {
        let name = format!("{body} {thing}");
        if self.sources.is_some() && !self.uses.contains(&name) {
            self.stands(SourceKind::Use, &name, span);
            self.uses.insert(name);
        }
    }

    /// A body reads a slot of metadata there.
    fn reads(&mut self, body: &str, slot: SlotId, span: Span) {
        let bodies = self.reads.entry(slot).or_default();
        if bodies.last().is_none_or(|(last, _)| last != body) {
            bodies.push((body.to_owned(), span));
        }
    }

    /// A slot is filled with what the switch tells by another one: whoever reads the first makes use of the second.
    pub(crate) fn is_filled(&mut self, (field, name): (SlotId, &str), told: &[&str]) {
        for (body, span) in self.reads.remove(&field).unwrap_or_default() {
            for slot in told {
                self.uses(&body, &format!("{slot} {name}"), span);
            }
        }
    }

    /// The file that a span is in.
    pub(crate) fn file(&self, span: Span) -> String {
        self.place(span).0
    }

    /// The line of a span, if it is in that file.
    fn line_in(&self, file: &str, span: Span) -> Option<u32> {
        let (of, line) = self.place(span);
        (line > 0 && of == file && span.start < span.end).then_some(line)
    }

    /// The number of a place; the last number stands for all that are too many.
    fn number(&mut self, site: DropSite, body: &str) -> u16 {
        let site = (site, body.to_owned());
        if let Some(number) = self.numbers.get(&site) {
            return *number;
        }
        let number = self.list.len().min(limits::MAX_DROP_SITES - 1);
        if number == self.list.len() {
            let last = number == limits::MAX_DROP_SITES - 1;
            let rest = DropSite { request: "one of many more places".into(), ..DropSite::default() };
            self.list.push(if last { rest } else { site.0.clone() });
            self.bodies.push(if last { String::new() } else { body.to_owned() });
        }
        let number = u16::try_from(number).unwrap_or(0);
        self.numbers.insert(site, number);
        number
    }

    /// File and line of a span.
    fn place(&self, span: Span) -> (String, u32) {
        let Some(sources) = self.sources.filter(|sources| sources.file(span.file).is_some()) else {
            return (String::new(), 0);
        };
        let location = sources.presumed_location(span);
        let name = location.file.rsplit(['/', '\\']).next().unwrap_or_default();
        (name.to_owned(), location.line)
    }

    /// Whether a span is in a file that comes with an architecture, and not in the user's program.
    pub(crate) fn is_library(&self, span: Span) -> bool {
        let file = self.sources.and_then(|sources| sources.file(span.file));
        file.is_some_and(|file| {
            let name = file.name.rsplit(['/', '\\']).next().unwrap_or_default();
            builtin_includes().any(|include| include.rsplit('/').next() == Some(name))
        })
    }

    /// Gives the places to the program, with the tables that run them.
    pub(crate) fn finish(mut self, program: &mut Program) {
        program.source_lines = std::mem::take(&mut self.lines);
        if self.list.len() == 1 && !self.list[0].is_known() {
            return;
        }
        let mut tables: HashMap<&str, Vec<&str>> = HashMap::new();
        for table in program.tables.values() {
            for listed in &table.actions {
                let body = &program.bodies[program.actions[listed.action].body].name;
                tables.entry(body).or_default().push(&table.name);
            }
        }
        for (site, body) in self.list.iter_mut().zip(&self.bodies) {
            let run = tables.get(body.as_str()).into_iter().flatten();
            site.tables = run.map(|table| (*table).to_owned()).collect();
            site.tables.dedup();
        }
        program.drop_sites = self.list;
    }
}

impl<'a> Code<'_, 'a> {
    /// Notes that the program asks for a drop here, when the value written to that slot may do that.
    pub(crate) fn note_write(&mut self, slot: SlotId, value: &Expr) {
        if self.cx.sites.may_ask(slot, value) {
            let name = self.cx.ir.program().slots[slot].name.clone();
            self.note_drop(&name);
        }
    }

    /// Notes that the program asks for a drop here.
    pub(crate) fn note_drop(&mut self, request: &str) {
        if self.cx.sites.sources.is_none() {
            return;
        }
        let (span, call, block, called) = self.users_place();
        let request = called.unwrap_or_else(|| request.to_owned());
        let called_at = call.map_or(0, |call| self.cx.sites.place(call).1);
        self.tell_site(span, called_at, block, request);
    }

    /// What comes next is of the statement at hand, or of the call that it belongs to where that is in another file than the body.
    pub(crate) fn stand(&mut self) {
        let mut span = self.span;
        let mut line = None;
        for frame in self.frames.iter().rev() {
            line = self.cx.sites.line_in(&self.file, span);
            if line.is_some() {
                break;
            }
            span = frame.call;
        }
        self.body.stands_at(line);
    }

    /// Notes which objects an instruction makes use of, and whether it hashes the payload.
    pub(crate) fn note_use(&mut self, inst: &Inst) {
        if self.cx.sites.sources.is_none() {
            return;
        }
        let program = self.cx.ir.program();
        let things: Vec<String> = match inst {
            Inst::RegisterRead { register, .. } | Inst::RegisterWrite { register, .. } => {
                vec![program.registers[*register].name.clone()]
            }
            Inst::Meter { meter, .. } => vec![program.meters[*meter].name.clone()],
            Inst::Count { counter, .. } => vec![program.counters[*counter].name.clone()],
            Inst::Digest { digest, .. } => vec![program.digests[*digest].name.clone()],
            Inst::Hash { own, data, .. } => {
                let own = own.map(|own| program.hashes[own].name.clone());
                let payload = data.contains(&DataItem::Payload).then(|| PAYLOAD.to_owned());
                own.into_iter().chain(payload).collect()
            }
            _ => Vec::new(),
        };
        for thing in things {
            let (span, ..) = self.users_place();
            self.cx.sites.uses(&self.name, &thing, span);
        }
    }

    /// Notes that a value is read there.
    pub(crate) fn note_read(&mut self, value: &Value, span: Span) {
        if let Value::Scalar(Expr::Read(slot)) = value
            && self.cx.sites.sources.is_some()
            && self.cx.ir.program().slots[*slot].home == Home::Metadata
        {
            self.cx.sites.reads(&self.name, *slot, span);
        }
    }

    /// Notes the place of a parser state.
    pub(crate) fn note_line_of_state(&mut self, state: &str) {
        let name = format!("{}.{state}", self.body_name());
        self.cx.sites.stands(SourceKind::State, &name, self.span);
    }

    /// Notes that what fails in this state drops the packet, or with none that the parser is done.
    pub(crate) fn note_state(&mut self, state: Option<&str>) {
        if !self.cx.sites.watches_states || self.body.kind() != BodyKind::Parser {
            return;
        }
        match state {
            Some(state) => {
                let block = format!("{}.{state}", self.body_name());
                self.tell_site(self.span, 0, block, "reject".to_owned());
            }
            None => self.carry_site(0),
        }
    }

    fn tell_site(&mut self, span: Span, called_at: u32, block: String, request: String) {
        let (file, line) = self.cx.sites.place(span);
        let site = match span.start < span.end {
            true => DropSite { file, line, block, request, called_at, tables: Vec::new() },
            // Nothing of the source: what the translation of P4_14 adds.
            false => DropSite { block, request: "no egress port was set".into(), ..DropSite::default() },
        };
        let body = self.body_name().to_owned();
        let number = self.cx.sites.number(site, &body);
        self.carry_site(number);
    }

    fn carry_site(&mut self, number: u16) {
        let slot = self.cx.ir.intrinsic(Intrinsic::DropSite);
        self.push(Inst::Assign { dst: slot, value: Expr::bits(16, u128::from(number)) });
    }

    /// A parameter that is copied from and to a place asks for a drop as the place does.
    pub(crate) fn watch_copy(&mut self, of: &LValue, copy: &Storage) {
        let LValue::Storage(of) = of else { return };
        if self.cx.sites.watched.is_empty() {
            return;
        }
        let (mut from, mut to) = (Vec::new(), Vec::new());
        of.for_each_slot(&mut |slot| from.push(slot));
        copy.for_each_slot(&mut |slot| to.push(slot));
        for (from, to) in from.into_iter().zip(to) {
            let asks =
                self.cx.sites.watched.iter().find(|(slot, _)| *slot == from).map(|(_, asks)| asks.clone());
            if let Some(asks) = asks.filter(|_| self.cx.sites.watched.iter().all(|(slot, _)| *slot != to)) {
                self.cx.sites.watched.push((to, asks));
            }
        }
    }
}

impl Lowering<'_> {
    /// What a parser rejects is dropped: packets carry the state that they are in.
    pub(crate) fn watch_states(&mut self) {
        self.sites.watches_states = self.sites.sources.is_some();
    }
}
