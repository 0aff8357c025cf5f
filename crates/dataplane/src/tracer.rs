//! Listening to the program and to the switch, to tell the story of one packet.

use crate::PortId;
use crate::drops::Loss;
use crate::trace::{BlockKind, Fate, Field, Journey, JourneyId, JourneyKind, KeyField, Step, Trace, short};
use millrace_engine::{Event, Observer, Phv};
use millrace_pipeline::semantics::Value;
use millrace_pipeline::*;
use millrace_state::{Color, Lookup, State};
use std::collections::HashMap;
use std::sync::Arc;

/// Most steps that one trace keeps.
const MAX_TRACE_STEPS: usize = 1 << 16;

/// Listens when there is a trace to write, and else to nothing.
#[derive(Debug)]
pub(crate) struct Tracer {
    program: Arc<Program>,
    trace: Option<Trace>,
    current: Option<JourneyId>,
    steps: usize,
    /// Where things stand in the source, once somebody asks.
    places: Option<HashMap<(SourceKind, String), String>>,
    /// The body that runs, for the names of its states.
    body: Option<BodyId>,
}

impl Tracer {
    /// One that does not listen.
    pub(crate) fn off(program: &Arc<Program>) -> Tracer {
        let program = Arc::clone(program);
        Tracer { program, trace: None, current: None, steps: 0, places: None, body: None }
    }

    /// Starts to listen.
    pub(crate) fn start(&mut self, port: PortId, time_ns: u64, bytes: &[u8]) {
        self.trace = Some(Trace { port, time_ns, bytes: hex(bytes), ..Trace::default() });
        (self.current, self.steps) = (None, 0);
        if self.places.is_none() {
            let lines = self.program.source_lines.iter();
            let places = lines.map(|at| ((at.kind, at.name.clone()), format!("{}:{}", at.file, at.line)));
            self.places = Some(places.collect());
        }
    }

    fn place(&self, kind: SourceKind, name: &str) -> Option<String> {
        self.places.as_ref()?.get(&(kind, name.to_owned())).cloned()
    }

    /// Ends it.
    pub(crate) fn finish(&mut self) -> Trace {
        self.current = None;
        self.trace.take().unwrap_or_default()
    }

    /// Makes a journey known; it begins with [`Tracer::enter`].
    pub(crate) fn open(
        &mut self,
        kind: JourneyKind,
        parent: Option<JourneyId>,
        path: PacketPath,
        (port, rid): (PortId, u16),
    ) -> Option<JourneyId> {
        let trace = self.trace.as_mut()?;
        let id = JourneyId::try_from(trace.journeys.len()).ok()?;
        trace.journeys.push(Journey {
            id,
            parent,
            kind,
            path: path_name(path),
            port,
            rid,
            length: 0,
            steps: Vec::new(),
            fates: Vec::new(),
            hardware: None,
        });
        Some(id)
    }

    /// What happens next happens on this journey.
    pub(crate) fn enter(&mut self, id: Option<JourneyId>, length: usize) {
        self.current = id;
        if let Some(journey) = self.journey(id) {
            journey.length = length;
        }
    }

    /// What happens next happens on this journey again.
    pub(crate) fn enter_again(&mut self, id: Option<JourneyId>) {
        self.current = id;
    }

    /// Something became of the packet of a journey.
    pub(crate) fn fate(&mut self, id: Option<JourneyId>, fate: impl FnOnce() -> Fate) {
        if let Some(journey) = self.journey(id) {
            journey.fates.push(fate());
        }
    }

    pub(crate) fn dropped(&mut self, id: Option<JourneyId>, Loss { reason, site }: Loss) {
        if self.trace.is_none() {
            return;
        }
        let program = Arc::clone(&self.program);
        let site = site.and_then(|site| program.drop_sites.get(usize::from(site)));
        let site = site.filter(|site| site.is_known()).map(ToString::to_string);
        self.fate(id, || Fate::Dropped { reason: reason.label(&program), site });
    }

    fn journey(&mut self, id: Option<JourneyId>) -> Option<&mut Journey> {
        self.trace.as_mut()?.journeys.get_mut(id? as usize)
    }

    fn table_step(&self, table: TableId, keys: &[Bits], lookup: &Lookup, state: &State) -> Step {
        let object = &self.program.tables[table];
        let entry = state.tables().entry(table, lookup.entry);
        let key_fields = object.keys.iter().zip(keys).enumerate().map(|(at, (key, value))| KeyField {
            name: key.name.clone(),
            value: hex_bits(value),
            matched: entry.as_ref().and_then(|entry| entry.matches.get(at)).map(match_text),
        });
        let action = object.actions.get(lookup.action).map(|listed| &self.program.actions[listed.action]);
        let args = action.map_or(&[][..], |action| action.params.as_slice()).iter().zip(&lookup.args);
        Step::Table {
            table: object.name.clone(),
            place: self.place(SourceKind::Table, &object.name),
            keys: key_fields.collect(),
            hit: lookup.is_hit(),
            entry: lookup.is_hit().then_some(lookup.entry.0),
            priority: entry.filter(|_| state.needs_priority(table)).map(|entry| entry.priority),
            member: lookup.selected.map(|selected| selected.member),
            group: lookup.selected.and_then(|selected| selected.group),
            action: action.map_or_else(String::new, |action| action.name.clone()),
            action_place: action
                .and_then(|action| self.place(SourceKind::Body, &self.program.bodies[action.body].name)),
            args: args
                .map(|(slot, arg)| Field {
                    name: short(&self.program.slots[*slot].name).to_owned(),
                    value: hex_bits(arg),
                })
                .collect(),
        }
    }

    fn step(&self, event: Event<'_>, phv: &Phv) -> Option<Step> {
        let program = &*self.program;
        let header_name = |header: HeaderId| program.headers[header].name.clone();
        Some(match event {
            Event::Body(body) => {
                let name = program.bodies[body].name.clone();
                let kind = match program.bodies[body].kind {
                    BodyKind::Parser => BlockKind::Parser,
                    BodyKind::Control | BodyKind::Action => BlockKind::Control,
                    BodyKind::Deparser => BlockKind::Deparser,
                };
                Step::Block { place: self.place(SourceKind::Body, &name), name, kind }
            }
            Event::State(name) => {
                let body = self.body.map_or("", |body| program.bodies[body].name.as_str());
                let place = self.place(SourceKind::State, &format!("{body}.{name}"));
                Step::State { name: name.to_owned(), place }
            }
            Event::Select { keys, exprs, case } => Step::Select {
                keys: keys.iter().map(hex_value).collect(),
                names: exprs.iter().map(|expr| words(program, expr)).collect(),
                case,
            },
            Event::Extracted { header, bits } => Step::Extract {
                header: header_name(header),
                type_name: program.headers[header].type_name.clone(),
                bits,
                fields: program.headers[header]
                    .fields
                    .iter()
                    .map(|field| Field {
                        name: program.slots[*field].name.clone(),
                        value: hex_value(&phv.read(program, *field)),
                    })
                    .collect(),
            },
            Event::Advanced { bits } => Step::Advance { bits },
            Event::Rejected { name, code } => {
                Step::Reject { error: if name.is_empty() { code.to_string() } else { name.to_owned() } }
            }
            Event::Applied { table, keys, lookup, state } => self.table_step(table, keys, lookup, state),
            Event::Exited => Step::Exit,
            Event::Assigned { slot, value, lost } => {
                let name = &program.slots[slot].name;
                let before = phv.read(program, slot);
                // What the fate of the packet tells in words of its own.
                if Intrinsic::ALL.iter().any(|role| program.intrinsics.get(*role) == Some(slot))
                    && name.starts_with("switch.")
                {
                    return None;
                }
                if lost {
                    Step::LostWrite { slot: name.clone(), value: hex_value(value) }
                } else if program.slots[slot].home == Home::Local || before == *value {
                    return None;
                } else {
                    Step::Assign { slot: name.clone(), before: hex_value(&before), value: hex_value(value) }
                }
            }
            Event::Validity { header, valid, changed: true } => match valid {
                true => Step::Valid { header: header_name(header) },
                false => Step::Invalid { header: header_name(header) },
            },
            Event::Validity { changed: false, .. } => return None,
            Event::Emitted(header) => Step::Emit { header: header_name(header) },
            Event::Register { register, index, value, written } => {
                let (register, value) = (program.registers[register].name.clone(), hex_bits(value));
                match written {
                    true => Step::RegisterWrite { register, index, value },
                    false => Step::RegisterRead { register, index, value },
                }
            }
            Event::Counted { counter, index } => {
                Step::Count { counter: program.counters[counter].name.clone(), index }
            }
            Event::Metered { name, color } => {
                Step::Meter { meter: name.to_owned(), color: color_name(color) }
            }
            Event::Called { name, args, results, drop } => {
                Step::Plugin { plugin: name.to_owned(), args: args.to_vec(), results: results.to_vec(), drop }
            }
            Event::Digest { digest, values } => Step::Digest {
                digest: program.digests[digest].name.clone(),
                fields: program.digests[digest]
                    .members
                    .iter()
                    .zip(values)
                    .map(|((name, _), value)| Field { name: name.clone(), value: hex_value(value) })
                    .collect(),
            },
            Event::Log(line) => Step::Log { line: line.to_owned() },
            Event::AssertFailed(text) => Step::AssertFailed { text: text.to_owned() },
        })
    }
}

impl Observer for Tracer {
    fn event(&mut self, event: Event<'_>, phv: &Phv) {
        if self.trace.is_none() {
            return;
        }
        if let Event::Body(body) = &event {
            self.body = Some(*body);
        }
        let Some(step) = self.step(event, phv) else { return };
        self.steps += 1;
        let full = self.steps > MAX_TRACE_STEPS;
        let current = self.current;
        if full {
            if let Some(trace) = &mut self.trace {
                trace.cut = true;
            }
        } else if let Some(journey) = self.journey(current) {
            journey.steps.push(step);
        }
    }
}

fn path_name(path: PacketPath) -> &'static str {
    match path {
        PacketPath::Normal => "normal",
        PacketPath::IngressClone => "ingress_clone",
        PacketPath::EgressClone => "egress_clone",
        PacketPath::Recirculate => "recirculated",
        PacketPath::Replication => "replicated",
        PacketPath::Resubmit => "resubmitted",
    }
}

fn color_name(color: Color) -> &'static str {
    match color {
        Color::Green => "green",
        Color::Yellow => "yellow",
        Color::Red => "red",
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A number in hexadecimal, with as many digits as its width can have.
fn hex_bits(bits: &Bits) -> String {
    let digits = format!("{:x}", bits.to_biguint());
    format!("0x{digits:0>width$}", width = bits.width().div_ceil(4) as usize)
}

fn hex_value(value: &Value) -> String {
    match value {
        Value::Bool(truth) => truth.to_string(),
        Value::Bits(bits) => hex_bits(bits),
        Value::Varbit(varbit) => varbit.bits().map_or_else(|| "empty".to_owned(), hex_bits),
    }
}

/// What an expression is, in the program's words, when these are short.
fn words(program: &Program, expr: &Expr) -> String {
    match expr {
        Expr::Read(slot) => program.slots[*slot].name.clone(),
        Expr::IsValid(header) => format!("{}.isValid()", program.headers[*header].name),
        Expr::BoolToBits(of) => words(program, of),
        Expr::Slice(of, high, low) => match words(program, of) {
            name if name.is_empty() => name,
            name => format!("{name}[{high}:{low}]"),
        },
        _ => String::new(),
    }
}

fn match_text(given: &EntryMatch) -> String {
    match given {
        EntryMatch::Exact(value) | EntryMatch::Optional(Some(value)) => hex_bits(value),
        EntryMatch::Lpm(value, length) => format!("{}/{length}", hex_bits(value)),
        EntryMatch::Ternary(_, mask) if mask.is_zero() => "*".to_owned(),
        EntryMatch::Ternary(value, mask) => format!("{} &&& {}", hex_bits(value), hex_bits(mask)),
        EntryMatch::Range(low, high) => format!("{}..{}", hex_bits(low), hex_bits(high)),
        EntryMatch::Optional(None) => "*".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_all_digits_of_their_width() {
        assert_eq!(hex_bits(&Bits::new(32, 0x0a000001)), "0x0a000001");
        assert_eq!(hex_bits(&Bits::new(9, 1)), "0x001");
        assert_eq!(hex_bits(&Bits::new(1, 0)), "0x0");
        assert_eq!(hex(&[0, 0xff]), "00ff");
    }

    #[test]
    fn matches_read_as_people_write_them() {
        let b = |value| Bits::new(8, value);
        assert_eq!(match_text(&EntryMatch::Lpm(b(0x10), 4)), "0x10/4");
        assert_eq!(match_text(&EntryMatch::Ternary(b(1), b(0xff))), "0x01 &&& 0xff");
        assert_eq!(match_text(&EntryMatch::Ternary(b(0), b(0))), "*");
        assert_eq!(match_text(&EntryMatch::Range(b(1), b(5))), "0x01..0x05");
        assert_eq!(match_text(&EntryMatch::Optional(None)), "*");
    }
}
