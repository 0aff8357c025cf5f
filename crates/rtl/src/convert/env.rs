//! The value of everything at one point of a path.

use super::{Converter, Paths, Step};
use crate::graph::{Cases, Graph, Wire};
use crate::limits::MAX_CASES;
use crate::refusal::Construct;
use crate::stage::LookupAnswer;
use millrace_pipeline::entity::SecondaryMap;
use millrace_pipeline::*;
use std::sync::Arc;

/// Values, by the number of a cell ([`Cells`]).
#[derive(Clone)]
pub(super) struct Env {
    pub(super) cells: Vec<Wire>,
    /// The cursor of the parser, in bits.
    pub(super) cursor: Place,
    /// The bits that the deparser has emitted so far.
    pub(super) emitted: Place,
    /// What of the program the path was in last.
    pub(super) body: Option<BodyId>,
}

/// A number of bits that decides where something is.
#[derive(Clone)]
pub(super) struct Place {
    /// The number: 32 bits.
    pub(super) wire: Wire,
    /// The numbers that it may be, of which exactly one has a condition that holds; none: it came from outside, or there are many.
    pub(super) cases: Option<Arc<Cases>>,
    /// It may be so many numbers that what follows cannot be placed.
    pub(super) many: bool,
}

impl Place {
    /// 0, or what came from outside.
    pub(super) fn start(outside: Option<Wire>, graph: &mut Graph) -> Place {
        match outside {
            Some(wire) => Place { wire, cases: None, many: false },
            None => {
                let (wire, always) = (graph.number(32, 0), graph.bool(true));
                Place { wire, cases: Some(Arc::new(Cases::from([(0, always)]))), many: false }
            }
        }
    }

    pub(super) fn of(cases: Cases, graph: &mut Graph) -> Step<Place> {
        if cases.len() > MAX_CASES {
            return Err(Construct::Places);
        }
        let mut cases = cases;
        if cases.len() == 1 {
            let always = graph.bool(true);
            cases.values_mut().for_each(|when| *when = always);
        }
        Ok(Place { wire: graph.of_cases(32, &cases), cases: Some(Arc::new(cases)), many: false })
    }

    /// One of too many.
    pub(super) fn many(wire: Wire) -> Place {
        Place { wire, cases: None, many: true }
    }
}

/// Where the cell of each thing is.
pub(super) struct Cells {
    slots: SecondaryMap<SlotId, u32>,
    valid: u32,
    tables: u32,
    /// The bits of the action data of each table.
    data: Vec<u32>,
    rest: u32,
}

/// Of a table's latest application: hit, action, entry, data.
const OF_TABLE: u32 = 4;

impl Cells {
    pub(super) fn of(program: &Program) -> Cells {
        let mut slots = SecondaryMap::new();
        let mut next = 0;
        for (id, slot) in &program.slots {
            slots[id] = next;
            next += if matches!(slot.ty, Type::Varbit(_)) { 2 } else { 1 };
        }
        let valid = next;
        let tables = valid + program.headers.len() as u32;
        let data = program.tables.values().map(|table| data_width(program, table)).collect();
        Cells { slots, valid, tables, data, rest: tables + program.tables.len() as u32 * OF_TABLE }
    }

    pub(super) fn len(&self) -> usize {
        self.rest as usize + 9
    }

    /// The value of a slot; of a varbit the bits, and in the next cell the length.
    pub(super) fn slot(&self, slot: SlotId) -> usize {
        self.slots[slot] as usize
    }

    pub(super) fn valid(&self, header: HeaderId) -> usize {
        (self.valid + header.as_u32()) as usize
    }

    pub(super) fn hit(&self, table: TableId) -> usize {
        (self.tables + table.as_u32() * OF_TABLE) as usize
    }

    pub(super) fn action(&self, table: TableId) -> usize {
        self.hit(table) + 1
    }

    pub(super) fn entry(&self, table: TableId) -> usize {
        self.hit(table) + 2
    }

    pub(super) fn data(&self, table: TableId) -> usize {
        self.hit(table) + 3
    }

    /// The bits of the action data of a table, at least 1.
    pub(super) fn data_width(&self, table: TableId) -> u32 {
        self.data[table.as_u32() as usize].max(1)
    }

    /// Whether the last lookup hit.
    pub(super) fn last_hit(&self) -> usize {
        self.rest as usize
    }

    /// The number that goes with a verdict.
    pub(super) fn out(&self) -> usize {
        self.rest as usize + 1
    }

    /// Where the program asked for a drop.
    pub(super) fn site(&self) -> usize {
        self.rest as usize + 2
    }

    /// Bits of valid headers after the parser.
    pub(super) fn parsed(&self) -> usize {
        self.rest as usize + 3
    }

    /// The length of the packet in bytes.
    pub(super) fn length(&self) -> usize {
        self.rest as usize + 4
    }

    /// Whether the packet was put together.
    pub(super) fn deparsed(&self) -> usize {
        self.rest as usize + 5
    }

    /// What was emitted: while a deparser runs, and of the packet that it made.
    pub(super) fn packet(&self) -> usize {
        self.rest as usize + 6
    }

    pub(super) fn packet_bits(&self) -> usize {
        self.rest as usize + 7
    }

    /// Where in the old packet the payload starts.
    pub(super) fn payload(&self) -> usize {
        self.rest as usize + 8
    }

    /// What is said of the packet that a deparser made.
    fn of_packet(&self) -> [usize; 3] {
        [self.packet(), self.packet_bits(), self.payload()]
    }

    /// The cells of no slot and no header that are not 1 bit, with their width.
    pub(super) fn others(&self) -> Vec<(usize, u32)> {
        let mut all = vec![
            (self.out(), 32),
            (self.site(), 16),
            (self.parsed(), 32),
            (self.length(), 32),
            (self.packet(), 8),
            (self.packet_bits(), 32),
            (self.payload(), 32),
        ];
        for table in 0..self.data.len() as u32 {
            let table = TableId::from_u32(table);
            all.push((self.action(table), 16));
            all.push((self.entry(table), 32));
            all.push((self.data(table), self.data_width(table)));
        }
        all
    }
}

/// The bits of the action data of a table: those of the action that has most.
fn data_width(program: &Program, table: &Table) -> u32 {
    let of = |listed: &TableAction| -> u32 {
        let params = &program.actions[listed.action].params;
        params.iter().map(|param| slot_width(program.slots[*param].ty)).fold(0, u32::saturating_add)
    };
    table.actions.iter().map(of).max().unwrap_or(0)
}

/// The bits of an answer of a table.
pub(crate) fn answer_width(program: &Program, table: TableId) -> u32 {
    LookupAnswer::DATA + data_width(program, &program.tables[table]).max(1)
}

/// The bits of a slot; of a varbit the most.
pub(super) fn slot_width(ty: Type) -> u32 {
    match ty {
        Type::Bool => 1,
        Type::Bits(width) | Type::Varbit(width) => width,
    }
}

impl Converter<'_> {
    /// The condition and the values where paths meet. The choices between values are of the body that all paths come from, and of the one
    /// that they lead to if they come from several.
    pub(super) fn meet(&mut self, mut paths: Paths, to: Option<BodyId>) -> Step<(Wire, Env)> {
        let Some((cond, mut env)) = paths.pop() else {
            return Err(Construct::Operation("a path from nowhere"));
        };
        if paths.is_empty() {
            return Ok((cond, env));
        }
        let come_from_one = paths.iter().all(|(_, other)| other.body == env.body);
        self.graph.set_body(if come_from_one { env.body } else { to });
        let (deparsed, of_packet) = (self.cells.deparsed(), self.cells.of_packet());
        let graph = &mut self.graph;
        let mut conditions: Vec<Wire> = paths.iter().map(|(cond, _)| *cond).collect();
        for (when, other) in paths.iter().rev() {
            // Nobody reads the packet of a path without a deparser, so where only one path has had one, the packet is its.
            let has_packet = [&env.cells, &other.cells].map(|cells| !graph.is_false(cells[deparsed]));
            for (number, (cell, value)) in env.cells.iter_mut().zip(&other.cells).enumerate() {
                if has_packet[0] != has_packet[1] && of_packet.contains(&number) {
                    *cell = if has_packet[0] { *cell } else { *value };
                } else if cell != value {
                    // What a deparser has emitted may be of any width.
                    let width = graph.width(*cell).max(graph.width(*value));
                    let (a, b) = (graph.left_fit(*value, width), graph.left_fit(*cell, width));
                    *cell = graph.mux(*when, a, b);
                }
            }
        }
        paths.push((
            cond,
            Env {
                cells: Vec::new(),
                cursor: env.cursor.clone(),
                emitted: env.emitted.clone(),
                body: env.body,
            },
        ));
        env.cursor = meet_places(graph, &paths, |env| &env.cursor)?;
        env.emitted = meet_places(graph, &paths, |env| &env.emitted)?;
        conditions.push(cond);
        Ok((any_of(graph, conditions), env))
    }
}

fn meet_places(graph: &mut Graph, paths: &Paths, of: impl Fn(&Env) -> &Place) -> Step<Place> {
    let places: Vec<(Wire, &Place)> = paths.iter().map(|(cond, env)| (*cond, of(env))).collect();
    let Some((_, first)) = places.last() else { return Err(Construct::Operation("a path from nowhere")) };
    let same = |other: &Place| match (&first.cases, &other.cases) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || (a.len() == 1 && b.len() == 1 && a.keys().eq(b.keys())),
        _ => first.wire == other.wire && first.many == other.many,
    };
    if places.iter().all(|(_, place)| same(place)) {
        return Ok((*first).clone());
    }
    let mut cases = Cases::new();
    for (cond, place) in &places {
        let Some(of) = &place.cases else {
            // From outside on one path and known on another: only the number can be told.
            let mut wire = first.wire;
            for (cond, place) in places.iter().rev().skip(1) {
                wire = graph.mux(*cond, place.wire, wire);
            }
            let many = places.iter().any(|(_, place)| place.many);
            return Ok(Place { wire, cases: None, many });
        };
        for (value, when) in of.iter() {
            let when = graph.and(*cond, *when);
            graph.add_case(&mut cases, *value, when);
        }
    }
    Place::of(cases, graph)
}

/// Whether any condition holds; those of the two sides of a branch become that of the branch.
fn any_of(graph: &mut Graph, mut conditions: Vec<Wire>) -> Wire {
    /// More are not compared with each other.
    const FEW: usize = 24;
    let mut again = conditions.len() <= FEW;
    while again && conditions.len() > 1 {
        again = false;
        'pairs: for a in 0..conditions.len() {
            for b in a + 1..conditions.len() {
                if let Some(joined) = graph.halves(conditions[a], conditions[b]) {
                    conditions.swap_remove(b);
                    conditions[a] = joined;
                    again = true;
                    break 'pairs;
                }
            }
        }
    }
    // A balanced tree.
    while conditions.len() > 1 {
        conditions = conditions
            .chunks(2)
            .map(|pair| match pair {
                [a, b] => graph.or(*a, *b),
                _ => pair[0],
            })
            .collect();
    }
    conditions.pop().unwrap_or_else(|| graph.bool(false))
}
