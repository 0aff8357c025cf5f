//! The story of one packet, as data and as text.
//!
//! A trace is a list of journeys: one way through ingress or egress each, by the packet or by a copy. Every journey ends
//! in one or several fates, which name the journeys that follow.

use crate::PortId;
use serde::Serialize;
use std::fmt;

/// Names a journey: its place in [`Trace::journeys`].
pub type JourneyId = u32;

/// What happened to one packet and all its copies.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Trace {
    /// The port that it came in on.
    pub port: PortId,
    /// When, in nanoseconds of the switch's clock.
    pub time_ns: u64,
    /// The whole frame, in hexadecimal.
    pub bytes: String,
    /// The paths through the program, in the order in which they were begun.
    pub journeys: Vec<Journey>,
    /// Whether steps were left out because there were too many.
    pub cut: bool,
}

/// One way through ingress or egress.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Journey {
    /// Its name.
    pub id: JourneyId,
    /// The journey that it follows.
    pub parent: Option<JourneyId>,
    /// Which part of the program.
    pub kind: JourneyKind,
    /// How this copy came to be: `normal`, `ingress_clone`, ...
    pub path: &'static str,
    /// The port that it came in on (ingress) or is for (egress).
    pub port: PortId,
    /// The replica number.
    pub rid: u16,
    /// Its length in bytes at the start.
    pub length: usize,
    /// What the program did.
    pub steps: Vec<Step>,
    /// What became of it.
    pub fates: Vec<Fate>,
    /// When the hardware of the program does this, where there is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<StageCycles>,
}

/// The cycles of a stage in hardware, counted from the one in which it takes the frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StageCycles {
    /// The cycle in which the stage says what becomes of the frame.
    pub last: u32,
    /// The length of a cycle in picoseconds.
    pub period_ps: u32,
    /// The steps that ask a table or an object.
    pub steps: Vec<StepCycles>,
    /// The steps that start a parser, a state of it, a control or a deparser.
    pub starts: Vec<StartCycles>,
}

/// When it is known that a frame gets to a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StartCycles {
    /// The step, counted from 0.
    pub step: usize,
    /// The cycle.
    pub known: u32,
    /// The last cycle that it may be, where hardware has the step several times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub or_until: Option<u32>,
}

/// When a step asks a table or an object, and when that answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepCycles {
    /// The step, counted from 0.
    pub step: usize,
    /// The cycle of the request.
    pub asked: u32,
    /// The cycle of the answer; none where there is none, as of a counter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered: Option<u32>,
}

/// The part of a program that a journey goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JourneyKind {
    /// The bodies before the traffic manager.
    Ingress,
    /// The parser again, for a clone of the packet as it came in.
    Reparse,
    /// The bodies after the traffic manager.
    Egress,
}

/// A name with a value in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    /// Of the field, parameter or key.
    pub name: String,
    /// `0x0a000001`, `true`.
    pub value: String,
}

/// A key field of a table that was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyField {
    /// The control plane's name.
    pub name: String,
    /// Its value for this packet.
    pub value: String,
    /// What the entry matched: `0x0a000000/8`, `0x01 &&& 0xff`, `0x01..0x05`, `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<String>,
}

/// What a block of a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockKind {
    /// It takes a packet apart.
    Parser,
    /// It applies tables.
    Control,
    /// It puts a packet together.
    Deparser,
}

/// One thing that the program did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// A parser, control or deparser starts.
    Block {
        /// Its name.
        name: String,
        /// Which of them.
        kind: BlockKind,
        /// Where it stands in the source: `router.p4:61`.
        #[serde(skip_serializing_if = "Option::is_none")]
        place: Option<String>,
    },
    /// A parser state starts.
    State {
        /// Its name.
        name: String,
        /// Where it stands in the source.
        #[serde(skip_serializing_if = "Option::is_none")]
        place: Option<String>,
    },
    /// A select chose.
    Select {
        /// The values it looked at.
        keys: Vec<String>,
        /// What they are values of, in the program's words; empty for what has no short ones.
        names: Vec<String>,
        /// The case, counted from 0; none: the default.
        case: Option<usize>,
    },
    /// A header was read from the packet.
    Extract {
        /// The header.
        header: String,
        /// Its type.
        #[serde(rename = "type")]
        type_name: String,
        /// The bits it took.
        bits: usize,
        /// Its fields.
        fields: Vec<Field>,
    },
    /// The parser skipped bits.
    Advance {
        /// How many.
        bits: usize,
    },
    /// The parser rejected the packet.
    Reject {
        /// The error.
        error: String,
    },
    /// A table was applied.
    Table {
        /// Its name.
        table: String,
        /// Where it stands in the source.
        #[serde(skip_serializing_if = "Option::is_none")]
        place: Option<String>,
        /// Its key.
        keys: Vec<KeyField>,
        /// Whether an entry matched.
        hit: bool,
        /// The entry: its `millrace_state::EntryIndex`. Fronts give it the number that their users know it by.
        #[serde(skip_serializing_if = "Option::is_none")]
        entry: Option<u32>,
        /// Its priority, when the table has priorities: as kept, so the largest wins.
        #[serde(skip_serializing_if = "Option::is_none")]
        priority: Option<u32>,
        /// The member of an action profile that it chose.
        #[serde(skip_serializing_if = "Option::is_none")]
        member: Option<u32>,
        /// The group that the member was chosen from.
        #[serde(skip_serializing_if = "Option::is_none")]
        group: Option<u32>,
        /// The action that ran.
        action: String,
        /// Where that stands in the source.
        #[serde(skip_serializing_if = "Option::is_none")]
        action_place: Option<String>,
        /// Its arguments.
        args: Vec<Field>,
    },
    /// The action ended the control.
    Exit,
    /// A slot of a header or of metadata changed.
    Assign {
        /// The slot.
        slot: String,
        /// The value before.
        before: String,
        /// The value now.
        value: String,
    },
    /// A write to a field of an invalid header was lost.
    LostWrite {
        /// The slot.
        slot: String,
        /// The value.
        value: String,
    },
    /// A header became valid.
    Valid {
        /// The header.
        header: String,
    },
    /// A header became invalid.
    Invalid {
        /// The header.
        header: String,
    },
    /// A header was put before the payload.
    Emit {
        /// The header.
        header: String,
    },
    /// A register was read.
    RegisterRead {
        /// The register.
        register: String,
        /// The cell.
        index: u64,
        /// The value.
        value: String,
    },
    /// A register was written.
    RegisterWrite {
        /// The register.
        register: String,
        /// The cell.
        index: u64,
        /// The value.
        value: String,
    },
    /// A counter counted.
    Count {
        /// The counter.
        counter: String,
        /// The cell.
        index: u64,
    },
    /// A meter gave a colour.
    Meter {
        /// The meter.
        meter: String,
        /// The colour.
        color: &'static str,
    },
    /// A plugin was called.
    Plugin {
        /// Its name.
        plugin: String,
        /// The arguments.
        args: Vec<u64>,
        /// What it gave.
        results: Vec<u64>,
        /// Whether the packet is to be dropped.
        drop: bool,
    },
    /// A message went to the control plane.
    Digest {
        /// Its kind.
        digest: String,
        /// Its members.
        fields: Vec<Field>,
    },
    /// The program wrote a line to its log.
    Log {
        /// The line.
        line: String,
    },
    /// An assertion did not hold.
    AssertFailed {
        /// The assertion.
        text: String,
    },
}

/// What became of a packet or copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "fate", rename_all = "snake_case")]
pub enum Fate {
    /// It was cloned.
    Cloned {
        /// The clone session.
        session: u32,
        /// Its journey through the parser, when it is parsed again.
        #[serde(skip_serializing_if = "Option::is_none")]
        reparse: Option<JourneyId>,
    },
    /// It was not cloned, because the clone session does not exist.
    NotCloned {
        /// The clone session.
        session: u32,
    },
    /// It goes to egress.
    Forwarded {
        /// The port.
        port: PortId,
        /// The replica number.
        rid: u16,
        /// Its journey there.
        journey: JourneyId,
    },
    /// Copies go to egress, each with its own `Forwarded`.
    Multicast {
        /// The group.
        group: u32,
        /// How many copies.
        copies: usize,
    },
    /// It starts again as it came in.
    Resubmitted {
        /// Its journey.
        journey: JourneyId,
    },
    /// It starts again as it is.
    Recirculated {
        /// Its journey.
        journey: JourneyId,
    },
    /// It left.
    Sent {
        /// The port.
        port: PortId,
        /// The whole frame, in hexadecimal.
        bytes: String,
    },
    /// It did not.
    Dropped {
        /// Why: a label of [`crate::DropReason`].
        reason: String,
        /// Where the program asked for it, when that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        site: Option<String>,
    },
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "packet of {} bytes on port {} at {} ns", self.bytes.len() / 2, self.port, self.time_ns)?;
        write_hex(f, &self.bytes)?;
        for journey in &self.journeys {
            write!(f, "\n{journey}")?;
        }
        if self.cut {
            writeln!(f, "\n(more steps were left out)")?;
        }
        Ok(())
    }
}

impl fmt::Display for Journey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            JourneyKind::Ingress => "ingress",
            JourneyKind::Reparse => "parse again",
            JourneyKind::Egress => "egress",
        };
        write!(f, "#{} {kind}, port {}, {}", self.id, self.port, self.path)?;
        if self.rid != 0 {
            write!(f, ", replica {}", self.rid)?;
        }
        if let Some(parent) = self.parent {
            write!(f, ", from #{parent}")?;
        }
        writeln!(f, ", {} bytes", self.length)?;
        if let Some(StageCycles { last, period_ps, .. }) = &self.hardware {
            let ns = f64::from(*last) * f64::from(*period_ps) / 1e3;
            writeln!(f, "  in hardware: cycle 0 to {last} ({ns:.1} ns)")?;
        }
        for (number, step) in self.steps.iter().enumerate() {
            write!(f, "{step}")?;
            let starts = self.hardware.iter().flat_map(|stage| &stage.starts);
            for StartCycles { known, or_until, .. } in starts.filter(|start| start.step == number) {
                match or_until {
                    Some(last) => write!(f, ", known in cycle {known} to {last}")?,
                    None => write!(f, ", known in cycle {known}")?,
                }
            }
            writeln!(f)?;
            let cycles = self.hardware.iter().flat_map(|stage| &stage.steps);
            for cycles in cycles.filter(|cycles| cycles.step == number) {
                match cycles.answered {
                    Some(answered) => {
                        writeln!(f, "      asked in cycle {}, answered in cycle {answered}", cycles.asked)?;
                    }
                    None => writeln!(f, "      done in cycle {}", cycles.asked)?,
                }
            }
        }
        for fate in &self.fates {
            fate.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Block { name, place, .. } => write!(f, "  {name}{}", at_place(place.as_deref())),
            Step::State { name, place } => write!(f, "    state {name}{}", at_place(place.as_deref())),
            Step::Select { keys, names, case } => {
                let named = keys.iter().zip(names).map(|(key, name)| match name.as_str() {
                    "" => key.clone(),
                    name => format!("{name} = {key}"),
                });
                write!(f, "      select ({}): ", named.collect::<Vec<_>>().join(", "))?;
                match case {
                    Some(case) => write!(f, "case {}", case + 1),
                    None => f.write_str("default"),
                }
            }
            Step::Extract { header, type_name, bits, fields } => {
                write!(f, "      extract {header} ({type_name}, {bits} bits)")?;
                fields
                    .iter()
                    .try_for_each(|field| write!(f, "\n        {} = {}", short(&field.name), field.value))
            }
            Step::Advance { bits } => write!(f, "      advance {bits} bits"),
            Step::Reject { error } => write!(f, "      reject: {error}"),
            Step::Table {
                table,
                place,
                keys,
                hit,
                entry,
                priority,
                member,
                group,
                action,
                action_place,
                args,
            } => {
                write!(f, "    table {table}{}", at_place(place.as_deref()))?;
                for key in keys {
                    write!(f, "\n      key {} = {}", key.name, key.value)?;
                    if let Some(matched) = &key.matched {
                        write!(f, " in {matched}")?;
                    }
                }
                match (hit, entry) {
                    (true, Some(entry)) => write!(f, "\n      hit entry {entry}")?,
                    (true, None) => f.write_str("\n      hit")?,
                    (false, _) => f.write_str("\n      miss")?,
                }
                if let Some(priority) = priority {
                    write!(f, " priority {priority}")?;
                }
                if let Some(member) = member {
                    write!(f, " member {member}")?;
                }
                if let Some(group) = group {
                    write!(f, " of group {group}")?;
                }
                write!(f, "\n      action {action}(")?;
                for (at, arg) in args.iter().enumerate() {
                    write!(f, "{}{} = {}", if at == 0 { "" } else { ", " }, arg.name, arg.value)?;
                }
                write!(f, "){}", at_place(action_place.as_deref()))
            }
            Step::Exit => f.write_str("      exit"),
            Step::Assign { slot, before, value } => write!(f, "      {slot} = {value} (was {before})"),
            Step::LostWrite { slot, value } => {
                write!(f, "      {slot} = {value} is lost: the header is invalid")
            }
            Step::Valid { header } => write!(f, "      {header} becomes valid"),
            Step::Invalid { header } => write!(f, "      {header} becomes invalid"),
            Step::Emit { header } => write!(f, "    emit {header}"),
            Step::RegisterRead { register, index, value } => {
                write!(f, "      read {register}[{index}]: {value}")
            }
            Step::RegisterWrite { register, index, value } => {
                write!(f, "      write {register}[{index}] = {value}")
            }
            Step::Count { counter, index } => write!(f, "      count {counter}[{index}]"),
            Step::Meter { meter, color } => write!(f, "      meter {meter}: {color}"),
            Step::Plugin { plugin, args, results, drop } => {
                let words = |of: &[u64]| of.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
                let drop = if *drop { ", drop" } else { "" };
                write!(f, "      plugin {plugin}({}): ({}){drop}", words(args), words(results))
            }
            Step::Digest { digest, fields } => {
                write!(f, "      digest {digest}")?;
                fields.iter().try_for_each(|field| write!(f, "\n        {} = {}", field.name, field.value))
            }
            Step::Log { line } => write!(f, "      log: {line}"),
            Step::AssertFailed { text } => write!(f, "      assertion failed: {text}"),
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fate::Cloned { session, reparse: Some(journey) } => {
                writeln!(f, "  cloned by session {session}, as #{journey}")
            }
            Fate::Cloned { session, reparse: None } => writeln!(f, "  cloned by session {session}"),
            Fate::NotCloned { session } => {
                writeln!(f, "  not cloned: there is no clone session {session}")
            }
            Fate::Forwarded { port, rid: 0, journey } => writeln!(f, "  to port {port}, as #{journey}"),
            Fate::Forwarded { port, rid, journey } => {
                writeln!(f, "  to port {port} with replica number {rid}, as #{journey}")
            }
            Fate::Multicast { group, copies } => writeln!(f, "  to multicast group {group}: {copies} copies"),
            Fate::Resubmitted { journey } => writeln!(f, "  resubmitted, as #{journey}"),
            Fate::Recirculated { journey } => writeln!(f, "  recirculated, as #{journey}"),
            Fate::Sent { port, bytes } => {
                writeln!(f, "  sent on port {port}, {} bytes", bytes.len() / 2)?;
                write_hex(f, bytes)
            }
            Fate::Dropped { reason, site: None } => writeln!(f, "  dropped: {reason}"),
            Fate::Dropped { reason, site: Some(site) } => writeln!(f, "  dropped: {reason}: {site}"),
        }
    }
}

/// A place in the source, to stand after what is there.
fn at_place(place: Option<&str>) -> String {
    place.map_or_else(String::new, |place| format!(" ({place})"))
}

/// The last part of a dotted name.
pub(crate) fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Hexadecimal digits in lines of 16 bytes with their offset.
fn write_hex(f: &mut fmt::Formatter<'_>, digits: &str) -> fmt::Result {
    for (line, chunk) in digits.as_bytes().chunks(32).enumerate() {
        write!(f, "    {:04x}:", line * 16)?;
        for pair in chunk.chunks(2) {
            write!(f, " {}", String::from_utf8_lossy(pair))?;
        }
        writeln!(f)?;
    }
    Ok(())
}
