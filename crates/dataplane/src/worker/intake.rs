//! Ingress scheduling: how a worker shares itself among its ports.
//!
//! Without a setting it takes a batch from each port in turn: a port that is flooded with long frames then takes more of the worker than
//! others, and all ports are alike. With one, ports of a higher class go first, and ports of one class share the worker by **deficit round
//! robin** (Shreedhar and Varghese 1996): in each round a port may take as many bytes as its quantum more, batch after batch. A batch is
//! taken as a whole, so a port can get ahead of its account by a batch, and then waits for as many rounds as that takes.
//!
//! Of any two ports of a class that always have frames, the bytes taken, each divided by the port's quantum, differ by at most one and by
//! what a batch has of the quantum: an account is never above its quantum, and never further below 0 than a batch has bytes.
//!
//! A batch that takes longer than a turn ([`crate::turns`]) ends the round for its port, as nothing is taken from there until the rest of the
//! batch is done. What the port has left of its quantum is for the next round then, so its account is up to twice its quantum: otherwise each
//! interruption of the worker's thread would cost the port with the largest share most.

use super::Worker;
use super::live::LivePorts;
use crate::PortId;
use millrace_frames::{MAX_BATCH, MAX_FRAME};
use std::collections::BTreeMap;
use std::fmt;

/// Least quantum, in bytes: below that, rounds are counted more often than frames are taken.
pub const MIN_QUANTUM: u32 = 64;
/// Largest quantum, in bytes: that of a whole batch of the longest frames.
pub const MAX_QUANTUM: u32 = (MAX_BATCH * MAX_FRAME) as u32;
/// The quantum of ports when nobody says otherwise: a batch of frames of 1514 bytes.
pub const DEFAULT_QUANTUM: u32 = MAX_BATCH as u32 * 1514;
/// Classes of ports.
pub const INTAKE_CLASSES: u8 = 8;

/// How a port takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intake {
    /// Its class, below [`INTAKE_CLASSES`]: ports of a higher one go first, whatever waits at others.
    pub class: u8,
    /// Its share among the ports of its class, in bytes a round.
    pub quantum: u32,
}

impl Default for Intake {
    fn default() -> Intake {
        Intake { class: 0, quantum: DEFAULT_QUANTUM }
    }
}

/// Why ports go on taking part as they did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntakeError {
    /// There is no such port.
    UnknownPort(PortId),
    /// There is no such class.
    Class(u8),
    /// The quantum is below [`MIN_QUANTUM`] or above [`MAX_QUANTUM`].
    Quantum(u32),
    /// All ports replay captures: their frames have an order.
    Simulated,
    /// The worker has ended.
    Ended,
}

impl fmt::Display for IntakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IntakeError::UnknownPort(port) => write!(f, "there is no port {port}"),
            IntakeError::Class(class) => {
                write!(
                    f,
                    "ports have {INTAKE_CLASSES} classes of ingress, counted from 0: there is no {class}"
                )
            }
            IntakeError::Quantum(quantum) => {
                write!(f, "a quantum of ingress has {MIN_QUANTUM} to {MAX_QUANTUM} bytes, not {quantum}")
            }
            IntakeError::Simulated => {
                f.write_str("ports that replay captures take their frames in the order of their times")
            }
            IntakeError::Ended => crate::RequestError.fmt(f),
        }
    }
}

impl std::error::Error for IntakeError {}

impl From<crate::RequestError> for IntakeError {
    fn from(_: crate::RequestError) -> IntakeError {
        IntakeError::Ended
    }
}

impl Intake {
    /// Whether a port may take part like that.
    ///
    /// # Errors
    /// [`IntakeError`].
    pub fn check(self) -> Result<(), IntakeError> {
        if self.class >= INTAKE_CLASSES {
            return Err(IntakeError::Class(self.class));
        }
        if !(MIN_QUANTUM..=MAX_QUANTUM).contains(&self.quantum) {
            return Err(IntakeError::Quantum(self.quantum));
        }
        Ok(())
    }
}

/// Has a port share all workers with other ports like that.
pub(super) fn set(leader: &mut Worker, port: PortId, intake: Option<Intake>) -> Result<(), IntakeError> {
    intake.map_or(Ok(()), Intake::check)?;
    if leader.simulated.is_some() {
        return Err(IntakeError::Simulated);
    }
    if leader.ports.find(port).is_none() {
        return Err(IntakeError::UnknownPort(port));
    }
    leader.with_all(|workers| workers.iter_mut().for_each(|worker| worker.seat.intakes.set(port, intake)));
    Ok(())
}

/// How the ports of a worker take part, if that was set for one of them.
#[derive(Debug, Default)]
pub(super) struct Intakes {
    set: BTreeMap<PortId, Intake>,
    /// For each queue pair, in the order in which they are asked.
    turns: Vec<Turn>,
    /// The turn that comes next.
    at: usize,
    /// The turn before that goes on.
    again: bool,
    /// A port of a class above has more: those of lower ones wait.
    more_in: Option<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Turn {
    /// The place of the queue pair, and its port.
    place: usize,
    port: PortId,
    intake: Intake,
    /// Bytes that it may take before others have theirs; below 0 it got ahead.
    account: i64,
    /// There may be more where it took from last.
    has_more: bool,
}

impl Intakes {
    /// Whether no port was set: a worker takes a batch from each in turn.
    #[inline]
    pub(super) fn are_alike(&self) -> bool {
        self.set.is_empty()
    }

    /// Sets how a port takes part; none: as others.
    pub(super) fn set(&mut self, port: PortId, intake: Option<Intake>) {
        match intake {
            Some(intake) => _ = self.set.insert(port, intake),
            None => _ = self.set.remove(&port),
        }
        self.turns.clear();
    }

    /// How ports take part that were set.
    pub(super) fn settings(&self) -> impl Iterator<Item = (PortId, Intake)> {
        self.set.iter().map(|(port, intake)| (*port, *intake))
    }

    /// A round begins over these ports.
    pub(super) fn begin(&mut self, ports: &LivePorts) {
        // Queue pairs come and go, and change their places.
        let stays = |turn: &Turn| ports.get(turn.place).is_some_and(|live| live.id == turn.port);
        if self.turns.len() != ports.len() || !self.turns.iter().all(stays) {
            let turn = |(place, id)| {
                let intake = self.set.get(&id).copied().unwrap_or_default();
                Turn { place, port: id, intake, account: 0, has_more: false }
            };
            self.turns = ports.iter().map(|live| live.id).enumerate().map(turn).collect();
            self.turns.sort_by_key(|turn| std::cmp::Reverse(turn.intake.class));
        }
        (self.at, self.again, self.more_in) = (0, false, None);
    }

    /// The queue pair that is asked next in this round.
    pub(super) fn next(&mut self) -> Option<usize> {
        if std::mem::take(&mut self.again) {
            return self.turns.get(self.at - 1).map(|turn| turn.place);
        }
        while let Some(turn) = self.turns.get(self.at) {
            let class = turn.intake.class;
            if self.more_in.is_some_and(|above| above > class) {
                return None;
            }
            if self.at.checked_sub(1).is_none_or(|before| self.turns[before].intake.class != class) {
                self.fill_accounts(class);
            }
            let Turn { place, account, has_more, .. } = self.turns[self.at];
            self.at += 1;
            if account > 0 {
                return Some(place);
            }
            // It waits until others had their share.
            if has_more {
                self.more_in = Some(class);
            }
        }
        None
    }

    /// Lets the ports of a class have as many rounds' quanta as it takes until one of them may take something: rounds in which none
    /// may need not be waited for.
    fn fill_accounts(&mut self, class: u8) {
        let turns = || self.turns[self.at..].iter().take_while(|turn| turn.intake.class == class);
        let rounds = |turn: &Turn| 1 + -turn.account.min(0) / i64::from(turn.intake.quantum);
        let least = turns().map(rounds).min().unwrap_or(1);
        let filled = turns().count();
        for turn in &mut self.turns[self.at..][..filled] {
            turn.account += least * i64::from(turn.intake.quantum);
        }
    }

    /// The queue pair that was asked has given so many bytes, and there may be more. Without more its account begins at 0 again, as that of an
    /// empty queue does: a port that was idle has saved nothing.
    pub(super) fn took(&mut self, bytes: u64, more: bool) {
        let Some(turn) = self.at.checked_sub(1).and_then(|last| self.turns.get_mut(last)) else { return };
        match more {
            true => {
                turn.account -= i64::try_from(bytes).unwrap_or(i64::MAX);
                self.again = turn.account > 0;
                self.more_in = Some(turn.intake.class);
            }
            false => turn.account = 0,
        }
        turn.has_more = more;
    }

    /// Nothing is taken from the queue pair that was asked until what came there before is done. It may have frames, so it keeps its account.
    fn waits(&mut self) {
        let Some(turn) = self.at.checked_sub(1).and_then(|last| self.turns.get_mut(last)) else { return };
        turn.account = turn.account.min(turn.intake.quantum.into());
        turn.has_more = false;
    }
}

/// Takes from each port as much as its share is; says whether there was any, or may be more.
pub(super) fn round(worker: &mut Worker) -> bool {
    let mut busy = false;
    worker.seat.intakes.begin(&worker.ports);
    while let Some(at) = worker.seat.intakes.next() {
        match worker.take_from(at) {
            Some((any, bytes)) => {
                worker.seat.intakes.took(bytes, any);
                busy |= any;
            }
            None => worker.seat.intakes.waits(),
        }
    }
    busy
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::relay::{Access, Past};
    use millrace_drivers::NullPort;

    fn ports(count: u32) -> LivePorts {
        let mut ports = LivePorts::default();
        for id in 0..count {
            let pair = Box::new(NullPort::open("-").unwrap());
            ports.push(id, Access { queue: Some(0), pair, past: Past::default() });
        }
        ports
    }

    /// Bytes that each port has taken after so many rounds, with batches of 64 frames of that length at each port; none: it has none.
    fn take<const N: usize>(intakes: &mut Intakes, lengths: [Option<u64>; N], rounds: usize) -> [u64; N] {
        let ports = ports(N as u32);
        let mut taken = [0; N];
        for _ in 0..rounds {
            intakes.begin(&ports);
            while let Some(place) = intakes.next() {
                let bytes = lengths[place].map_or(0, |length| length * MAX_BATCH as u64);
                taken[place] += bytes;
                intakes.took(bytes, bytes > 0);
            }
        }
        taken
    }

    #[test]
    fn ports_that_were_not_set_are_alike_in_bytes() {
        let mut intakes = Intakes::default();
        assert!(intakes.are_alike());
        intakes.set(0, Some(Intake::default()));
        assert!(!intakes.are_alike());
        // Long frames and short ones.
        let [long, short] = take(&mut intakes, [Some(9000), Some(64)], 100_000);
        let quanta = 100_000 * u64::from(DEFAULT_QUANTUM);
        assert!(long.abs_diff(quanta) <= 9000 * 64 && short.abs_diff(quanta) <= 64 * 64, "{long}, {short}");
    }

    #[test]
    fn shares_are_those_of_the_quanta() {
        let mut intakes = Intakes::default();
        intakes.set(0, Some(Intake { class: 3, quantum: 6000 }));
        intakes.set(1, Some(Intake { class: 3, quantum: 2000 }));
        intakes.set(2, Some(Intake { class: 3, quantum: 1000 }));
        let taken = take(&mut intakes, [Some(1500), Some(64), Some(300)], 200_000);
        // Rounds that each has had.
        let rounds: Vec<f64> = taken
            .iter()
            .zip([6000.0, 2000.0, 1000.0])
            .map(|(taken, quantum)| *taken as f64 / quantum)
            .collect();
        assert!(rounds[0] > 200_000.0);
        for other in [1, 2] {
            assert!((rounds[0] - rounds[other]).abs() <= 1.0 + 1500.0 * 64.0 / 6000.0, "{rounds:?}");
        }
    }

    #[test]
    fn a_port_that_is_held_back_keeps_its_share() {
        let mut intakes = Intakes::default();
        let batch = 64 * MAX_BATCH as u32;
        intakes.set(0, Some(Intake { class: 0, quantum: 3 * batch }));
        intakes.set(1, Some(Intake { class: 0, quantum: batch }));
        let ports = ports(2);
        let mut taken = [0u32; 2];
        for round in 0..1000 {
            intakes.begin(&ports);
            let mut is_held = false;
            while let Some(place) = intakes.next() {
                if place == 0 && is_held {
                    intakes.waits();
                    continue;
                }
                // In each second round the first batch takes longer than a turn.
                is_held |= place == 0 && round % 2 == 1;
                taken[place] += 1;
                intakes.took(batch.into(), true);
            }
        }
        assert!(taken[0].abs_diff(3 * taken[1]) <= 3, "{taken:?}");
        // Many rounds without anything save no more than the next one's share.
        let mut most = 0;
        for round in 0..100 {
            intakes.begin(&ports);
            while let Some(place) = intakes.next() {
                match (place, round) {
                    (0, ..99) => intakes.waits(),
                    (place, _) => {
                        most += usize::from(place == 0);
                        intakes.took(batch.into(), true);
                    }
                }
            }
        }
        assert_eq!(most, 6);
    }

    #[test]
    fn a_higher_class_goes_first_as_long_as_it_has_frames() {
        let mut intakes = Intakes::default();
        intakes.set(1, Some(Intake { class: 7, ..Intake::default() }));
        let [low, high] = take(&mut intakes, [Some(64), Some(64)], 10);
        assert_eq!(low, 0);
        assert!(high.abs_diff(10 * u64::from(DEFAULT_QUANTUM)) <= 64 * 64);
        // A port that got ahead of its account still has frames.
        intakes.set(1, Some(Intake { class: 7, quantum: 64 }));
        assert_eq!(take(&mut intakes, [Some(64), Some(64)], 10)[0], 0);
        let [low, high] = take(&mut intakes, [Some(64), None], 10);
        assert_eq!(high, 0);
        assert!(low.abs_diff(10 * u64::from(DEFAULT_QUANTUM)) <= 64 * 64);
    }

    /// A queue pair has moved: another port is in its place.
    #[test]
    fn a_share_is_that_of_the_port_whatever_its_place() {
        let mut intakes = Intakes::default();
        intakes.set(1, Some(Intake { class: 7, ..Intake::default() }));
        let mut ports = ports(3);
        let mut first = |ports: &LivePorts| {
            intakes.begin(ports);
            intakes.next().map(|place| ports[place].id)
        };
        assert_eq!(first(&ports), Some(1));
        let moved = ports.remove(0);
        ports.push(0, Access { queue: Some(0), pair: moved.port, past: Past::default() });
        assert_eq!(first(&ports), Some(1));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let check = |class, quantum| Intake { class, quantum }.check();
        assert_eq!((check(7, MIN_QUANTUM), check(0, MAX_QUANTUM)), (Ok(()), Ok(())));
        assert_eq!(check(8, 100), Err(IntakeError::Class(8)));
        assert_eq!(check(0, MIN_QUANTUM - 1), Err(IntakeError::Quantum(63)));
        assert_eq!(check(0, MAX_QUANTUM + 1), Err(IntakeError::Quantum(MAX_QUANTUM + 1)));
        let error = IntakeError::Quantum(63).to_string();
        assert_eq!(error, "a quantum of ingress has 64 to 1048576 bytes, not 63");
    }
}
