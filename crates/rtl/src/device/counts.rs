//! What a device counts of lookups and drops: numbers of 64 bits ([`crate::map::connect_counts`]), which never wrap in the life of a
//! device.
//!
//! Events come from registers: nothing that is counted is on a longer path for it.

use super::Reason;
use super::build::{Header, Top};
use super::fate::may_drop;
use super::leave::Leaving;
use super::stages::{From, Placed};
use crate::stage::Output;
use millrace_midend::Verdict;
use millrace_netlist::{NodeId, address_width};
use millrace_pipeline::{PacketPath, Program, TableId};

/// What a number of a device counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counted {
    /// Lookups of a table in which an entry matched.
    Hits(TableId),
    /// Those in which none did.
    Misses(TableId),
    /// Frames and copies that were dropped for a reason other than [`Reason::ParserError`].
    Drops(Reason),
    /// Frames that a parser rejected with this error, by its number in the program; 65535 stands for all that are none of the
    /// program.
    ParserErrors(u16),
    /// Frames that first came in by the port of this number and were dropped before they had a port to leave by.
    DropsFrom(u32),
    /// Frames and copies for the port of this number that were dropped.
    DropsTo(u32),
}

impl Counted {
    /// Its name among the words of registers.
    pub(super) fn name(self, program: &Program) -> String {
        match self {
            Counted::Hits(table) => format!("lookups.{}.hit", program.tables[table].name),
            Counted::Misses(table) => format!("lookups.{}.miss", program.tables[table].name),
            Counted::Drops(reason) => format!("drops.{}", reason.name()),
            Counted::ParserErrors(error) => {
                let name = program.errors.get(usize::from(error));
                let error = name.cloned().unwrap_or_else(|| error.to_string());
                format!("drops.{}.{error}", Reason::ParserError.name())
            }
            Counted::DropsFrom(port) => format!("port{port}.rx_drops"),
            Counted::DropsTo(port) => format!("port{port}.tx_drops"),
        }
    }
}

/// The number of an error that the program does not declare: a frame or control may bring any.
const OTHER_ERROR: u16 = u16::MAX;

/// The highest reason, of what is no copy at all: a session without copies. Nothing counts it.
pub(super) const NOTHING: u128 = 15;

impl Top<'_> {
    /// Counts hits and misses of tables, in all stages.
    pub(super) fn count_lookups(&mut self) {
        let stages = [Some(&self.ingress), Some(&self.egress), self.parser.as_ref(), self.tail.as_ref()];
        for stage in stages.into_iter().flatten() {
            for (table, port) in &stage.lookups {
                let found = self.m.output_of(stage.instance, port);
                let (hit, miss) = (self.m.bit(found, 0), self.m.bit(found, 1));
                self.control.counts(Counted::Hits(*table), hit);
                self.control.counts(Counted::Misses(*table), miss);
            }
        }
    }

    /// Counts frames that a parser has rejected, by its error, when ingress has ended. A frame that is rejected makes no copies.
    pub(super) fn count_parser_errors(&mut self, header: &Header) {
        let rejects = |placed: &Placed<'_>| placed.may_be(Output::Verdict, Verdict::ParserError as u64);
        let of_ingress = rejects(&self.ingress).then_some(From::Ingress);
        let of_clones = self.parser.as_ref().is_some_and(rejects).then_some(From::Parser);
        let is_clone = self.parser.is_some().then(|| self.tag_of(header)).flatten().map(|tag| tag.path);
        let is_clone = is_clone.map(|path| self.m.is(path, PacketPath::IngressClone as u128));
        let (mut errors, mut all) = (Vec::new(), Vec::new());
        for from in of_ingress.into_iter().chain(of_clones) {
            errors.extend(self.parser_errors(from));
            let (verdict, number) =
                (self.said_by(from, Output::Verdict, 4), self.said_by(from, Output::Number, 32));
            let m = &mut self.m;
            let mut rejected = vec![header.valid, m.is(verdict, Verdict::ParserError as u128)];
            match (from, is_clone) {
                (From::Ingress, Some(is_clone)) => rejected.push(m.not(is_clone)),
                (_, is_clone) => rejected.extend(is_clone),
            }
            all.push((m.all(&rejected), number));
        }
        errors.sort_unstable();
        errors.dedup();
        let known = self.known_errors();
        let code = |error: u16| u32::from(error.min(known));
        let m = &mut self.m;
        if errors.is_empty() {
            let none = m.number(1, 0);
            return self.control.shows(&format!("drops.{}", Reason::ParserError.name()), none);
        }
        let bits = address_width(code(errors.last().copied().unwrap_or(0)) + 1);
        let mut code_of = |number: NodeId| {
            let low = m.slice(number, 0, bits);
            if !errors.contains(&OTHER_ERROR) {
                return low;
            }
            let (first, other) = (m.number(32, known.into()), m.number(bits, known.into()));
            let is_known = m.lt(number, first);
            m.mux(is_known, low, other)
        };
        let choices: Vec<(NodeId, NodeId)> =
            all.iter().map(|(rejected, number)| (*rejected, code_of(*number))).collect();
        let rejected: Vec<NodeId> = all.iter().map(|(rejected, _)| *rejected).collect();
        let (rejected, number) = (m.any(&rejected), m.one_hot(bits, &choices));
        let rejected = m.delayed("counted_rejected", rejected, Some(0));
        let number = m.delayed("counted_error", number, None);
        for error in errors {
            let is = self.m.is(number, code(error).into());
            let event = self.m.and(rejected, is);
            self.control.counts(Counted::ParserErrors(error), event);
        }
    }

    /// How many errors the program declares.
    fn known_errors(&self) -> u16 {
        self.program.errors.len().min(usize::from(OTHER_ERROR)) as u16
    }

    /// The errors that the parser of a stage may have.
    fn parser_errors(&mut self, from: From) -> Vec<u16> {
        let known = self.known_errors();
        let (placed, _) = self.placed(from);
        let of = |number: u64| u16::try_from(number).ok().filter(|error| *error < known);
        match placed.and_then(|placed| placed.values(Output::Number)) {
            Some(values) => values.iter().map(|value| of(*value).unwrap_or(OTHER_ERROR)).collect(),
            None => (0..known).chain([OTHER_ERROR]).collect(),
        }
    }

    /// Counts drops, by reason and by port: where a frame came in first, as long as it has no port to leave by. `full` says that the queue of
    /// a copy was full.
    pub(super) fn count_drops(&mut self, leaving: &Leaving, full: NodeId) {
        let may_drop = Reason::DROPS.map(|reason| may_drop(self, reason));
        let origin = self.tag_of(&leaving.copy.header).map(|tag| tag.origin);
        let (m, shape) = (&mut self.m, self.shape);
        let queue_full = m.number(4, Reason::QueueFull as u128);
        let none = m.number(4, 0);
        let of_queue = m.mux(full, queue_full, none);
        let reason = m.or(leaving.reason, of_queue);
        let (sent, nothing) = (m.is(reason, Reason::Sent as u128), m.is(reason, NOTHING));
        let kept = m.or(sent, nothing);
        let dropped = m.not(kept);
        let dropped = m.and(leaving.copy.header.valid, dropped);
        let from = origin.unwrap_or(leaving.copy.header.port);
        let spent = m.is(reason, Reason::RecirculationLimit as u128);
        let at_port = m.not(spent);
        let has_port = m.and(leaving.has_port, at_port);

        let dropped = m.delayed("counted_drop", dropped, Some(0));
        let reason = m.delayed("counted_reason", reason, None);
        let has_port = m.delayed("counted_has_port", has_port, None);
        let from = m.delayed("counted_from", from, None);
        let to = m.delayed("counted_to", leaving.to, None);
        let lost = leaving.cloned.as_ref().map(|cloned| {
            let lost = m.delayed("counted_lost_clone", cloned.lost, Some(0));
            (lost, m.delayed("counted_from_of_clone", cloned.from, None))
        });
        for (drop, may) in Reason::DROPS.into_iter().zip(may_drop) {
            // Counted by their errors, and where frames leave.
            if matches!(drop, Reason::ParserError | Reason::TxRefused) {
                continue;
            }
            if !may {
                let never = self.m.number(1, 0);
                self.control.shows(&Counted::Drops(drop).name(self.program), never);
                continue;
            }
            let is = self.m.is(reason, drop as u128);
            let event = self.m.and(dropped, is);
            self.control.counts(Counted::Drops(drop), event);
            if let (Reason::QueueFull, Some((lost, _))) = (drop, lost) {
                self.control.counts(Counted::Drops(drop), lost);
            }
        }
        let at_port = self.m.and(dropped, has_port);
        let before = self.m.not(has_port);
        let before = self.m.and(dropped, before);
        for (port, number) in (0..).zip(&shape.numbers) {
            let (own, other) = (self.m.is(from, port), self.m.is(to, port));
            let (from, to) = (self.m.and(before, own), self.m.and(at_port, other));
            self.control.counts(Counted::DropsFrom(*number), from);
            self.control.counts(Counted::DropsTo(*number), to);
            if let Some((lost, from)) = lost {
                let own = self.m.is(from, port);
                let event = self.m.and(lost, own);
                self.control.counts(Counted::DropsFrom(*number), event);
            }
        }
    }
}
