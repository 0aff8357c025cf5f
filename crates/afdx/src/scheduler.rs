//! The transmitting side of an end system, without what frames look like: a regulator for each VL, a multiplexer for each network.
//!
//! ```text
//!   VL 1  sub-VLs -> regulator \                / multiplexer -> line A
//!   VL 2  sub-VLs -> regulator  > round in time
//!   ...                        /                \ multiplexer -> line B
//! ```
//!
//! A frame gets its sequence number when it is released, since only then the order of the sub-VLs is known, and goes to the lines of its
//! VL's networks, to both if it has two. Everything happens at times that the caller gives: [`Scheduler::next_ns`] says when something can
//! happen next, [`Scheduler::step`] does what can happen at a time. In virtual time a caller steps at exactly those times; in real time
//! whenever it wakes up, and the gap of a VL then counts from when its frame left.

use crate::line::{LineRate, output_jitter_ns};
use crate::multiplexer::{Departure, LineCounters, MAX_LINE_FRAMES, Multiplexer};
use crate::regulator::{Refused, Regulator, RegulatorCounters};
use crate::sequence::{RESET_NUMBER, next_number};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

/// One of the two networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Network {
    /// The first one.
    A,
    /// The second one.
    B,
}

impl Network {
    /// Both.
    pub const ALL: [Network; 2] = [Network::A, Network::B];

    /// 0 for A, 1 for B.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The other one.
    pub fn other(self) -> Network {
        Network::ALL[1 - self.index()]
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Network::A => "A",
            Network::B => "B",
        })
    }
}

/// The networks that a VL is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Networks {
    /// Both: the VL is redundant.
    #[default]
    Both,
    /// One alone.
    One(Network),
}

impl Networks {
    /// Whether this network is one of them.
    pub fn has(self, network: Network) -> bool {
        match self {
            Networks::Both => true,
            Networks::One(one) => one == network,
        }
    }
}

/// A frame that was released: of which VL, with which sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released<F> {
    /// The number of the VL in its scheduler.
    pub vl: usize,
    /// The sequence number.
    pub number: u8,
    /// How many frames of the VL were released before, resets or not.
    pub serial: u64,
    /// The frame.
    pub frame: F,
}

/// A VL as a scheduler has it.
#[derive(Clone, Debug)]
struct Vl<F> {
    regulator: Regulator<(u64, F)>,
    networks: Networks,
    /// The sequence number of the next frame.
    number: u8,
    serial: u64,
    /// Whether it is in `due`.
    is_due: bool,
}

impl<F: Clone> Vl<F> {
    /// Gives a frame its number and has it wait for the lines; where it finds no room it is counted.
    fn give_to_lines(
        &mut self,
        lines: &mut [Multiplexer<Released<F>>; 2],
        now_ns: u64,
        vl: usize,
        length: u64,
        frame: F,
    ) {
        let (number, serial) = (self.number, self.serial);
        self.number = next_number(number);
        self.serial += 1;
        for network in Network::ALL.into_iter().filter(|network| self.networks.has(*network)) {
            let released = Released { vl, number, serial, frame: frame.clone() };
            // What is refused was counted.
            let _ = lines[network.index()].offer(now_ns, length, released);
        }
    }
}

/// Regulators and multiplexers of one end system. VLs are numbered in the order in which they were added.
#[derive(Clone, Debug)]
pub struct Scheduler<F> {
    vls: Vec<Vl<F>>,
    /// VLs with frames, by the earliest time of the next release. A time may be too early after a late departure, never too late.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    lines: [Multiplexer<Released<F>>; 2],
    jitter_ns: u64,
}

impl<F: Clone> Scheduler<F> {
    /// A scheduler without VLs for lines of these rates. `jitter_ns` is the output jitter that the network expects of this end system,
    /// as [`check_output`](crate::check_output) says.
    pub fn new(rates: [LineRate; 2], jitter_ns: u64) -> Scheduler<F> {
        let line = |rate| match Multiplexer::new(rate, MAX_LINE_FRAMES) {
            Ok(line) => line,
            Err(error) => unreachable!("{error}"),
        };
        Scheduler { vls: Vec::new(), due: BinaryHeap::new(), lines: rates.map(line), jitter_ns }
    }

    /// A scheduler for two lines of this rate, whose jitter is that of these VLs by the standard's formula: [`output_jitter_ns`].
    pub fn with_lmax(rate: LineRate, lmax: impl IntoIterator<Item = u64>) -> Scheduler<F> {
        Scheduler::new([rate; 2], output_jitter_ns(rate, lmax))
    }

    /// Adds a VL; its number.
    pub fn add(&mut self, regulator: Regulator<(u64, F)>, networks: Networks) -> usize {
        self.vls.push(Vl { regulator, networks, number: RESET_NUMBER, serial: 0, is_due: false });
        self.vls.len() - 1
    }

    /// Offers a frame of so many bytes with FCS to a sub-VL.
    ///
    /// # Errors
    /// The frame, with the reason, when it is not taken; that is counted. A VL that there is not has no sub-VL.
    pub fn offer(
        &mut self,
        now_ns: u64,
        vl: usize,
        sub_vl: usize,
        length: u64,
        frame: F,
    ) -> Result<(), (Refused, F)> {
        let Some(entry) = self.vls.get_mut(vl) else { return Err((Refused::NoSubVl, frame)) };
        entry.regulator.offer(sub_vl, (length, frame)).map_err(|(reason, (_, frame))| (reason, frame))?;
        if !entry.is_due {
            entry.is_due = true;
            let next = entry.regulator.next_ns().map_or(now_ns, |next| next.max(now_ns));
            self.due.push(Reverse((next, vl)));
        }
        Ok(())
    }

    /// Room for so many more frames of a sub-VL.
    pub fn room(&self, vl: usize, sub_vl: usize) -> usize {
        self.vls.get(vl).map_or(0, |entry| entry.regulator.room(sub_vl))
    }

    /// When something can happen next; a time that has passed means at once. None while no frame waits.
    pub fn next_ns(&self) -> Option<u64> {
        let release = self.due.peek().map(|Reverse((at, _))| *at);
        let departures = self.lines.iter().filter_map(Multiplexer::next_ns);
        release.into_iter().chain(departures).min()
    }

    /// Releases what may be released at this time, in the order of time and then of VLs, and has what can leave leave: at most one frame of
    /// each line, which are told.
    pub fn step(&mut self, now_ns: u64, mut leaves: impl FnMut(Network, Departure<Released<F>>)) {
        self.release(now_ns);
        for network in Network::ALL {
            if let Some(departure) = self.lines[network.index()].depart(now_ns) {
                leaves(network, departure);
            }
        }
    }

    /// Has a frame wait for the lines of a VL without asking its regulator: what a faulty end system does. It gets the next sequence number.
    pub fn babble(&mut self, now_ns: u64, vl: usize, length: u64, frame: F) {
        if let Some(entry) = self.vls.get_mut(vl) {
            entry.give_to_lines(&mut self.lines, now_ns, vl, length, frame);
        }
    }

    /// A reset of the end system: what waits is lost, and numbers start at 0 again. Gaps and what was counted stay. The number of frames
    /// that were lost.
    pub fn reset(&mut self) -> usize {
        let mut lost = 0;
        for entry in &mut self.vls {
            lost += entry.regulator.clear();
            entry.number = RESET_NUMBER;
            entry.is_due = false;
        }
        self.due.clear();
        lost + self.lines.iter_mut().map(Multiplexer::clear).sum::<usize>()
    }

    fn release(&mut self, now_ns: u64) {
        while let Some(&Reverse((at, vl))) = self.due.peek() {
            if at > now_ns {
                return;
            }
            self.due.pop();
            let entry = &mut self.vls[vl];
            if let Some((length, frame)) = entry.regulator.release(now_ns) {
                entry.give_to_lines(&mut self.lines, now_ns, vl, length, frame);
            }
            match entry.regulator.next_ns() {
                // After a release that is later than now, by a whole BAG.
                Some(next) => self.due.push(Reverse((next, vl))),
                None => entry.is_due = false,
            }
        }
    }

    /// Tells that a frame of a VL really left at this time, where that is known better than by [`Departure::start_ns`]: the next one then
    /// keeps its distance ([`Regulator::departed`]).
    pub fn departed(&mut self, vl: usize, at_ns: u64) {
        if let Some(entry) = self.vls.get_mut(vl) {
            entry.regulator.departed(at_ns, self.jitter_ns);
        }
    }

    /// Output jitter that the network expects.
    pub fn jitter_ns(&self) -> u64 {
        self.jitter_ns
    }

    /// The counters of a VL.
    pub fn vl_counters(&self, vl: usize) -> RegulatorCounters {
        self.vls.get(vl).map(|entry| entry.regulator.counters()).unwrap_or_default()
    }

    /// The counters of a line.
    pub fn line_counters(&self, network: Network) -> LineCounters {
        self.lines[network.index()].counters()
    }

    /// Frames that wait, before and after their release; one that waits for two lines counts as two.
    pub fn waiting(&self) -> usize {
        let vls: usize = self.vls.iter().map(|entry| entry.regulator.waiting()).sum();
        vls + self.lines.iter().map(Multiplexer::waiting).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{JitterLimits, TECHNOLOGY_JITTER_NS, check_output};
    use crate::regulator::Bag;
    use proptest::prelude::*;

    fn rate() -> LineRate {
        LineRate::from_bps(100_000_000).unwrap()
    }

    fn scheduler(vls: &[(u64, u64)]) -> Scheduler<u32> {
        let mut scheduler = Scheduler::with_lmax(rate(), vls.iter().map(|(_, lmax)| *lmax));
        for (bag_ns, _) in vls {
            let regulator = Regulator::new(Bag::from_ns(*bag_ns).unwrap(), 1, 4096).unwrap();
            scheduler.add(regulator, Networks::Both);
        }
        scheduler
    }

    #[test]
    fn three_vls_share_both_lines() {
        let mut es = scheduler(&[(1_000_000, 1518), (1_000_000, 64), (2_000_000, 64)]);
        for (vl, length, frame) in [(0, 1518, 1), (0, 1518, 2), (1, 64, 11), (2, 64, 21)] {
            es.offer(0, vl, 0, length, frame).unwrap();
        }
        let mut left = Vec::new();
        while let Some(next) = es.next_ns() {
            es.step(next, |network, out| {
                let Released { vl, number, frame, .. } = out.frame;
                left.push((network, vl, frame, number, out.released_ns, out.start_ns));
            });
        }
        use Network::{A, B};
        let expected = [
            (A, 0, 1, 0, 0, 0),
            (B, 0, 1, 0, 0, 0),
            (A, 1, 11, 0, 0, 123_040),
            (B, 1, 11, 0, 0, 123_040),
            (A, 2, 21, 0, 0, 129_760),
            (B, 2, 21, 0, 0, 129_760),
            (A, 0, 2, 1, 1_000_000, 1_000_000),
            (B, 0, 2, 1, 1_000_000, 1_000_000),
        ];
        assert_eq!(left, expected);
    }

    #[test]
    fn a_vl_of_one_network_leaves_there_alone() {
        let mut es = Scheduler::with_lmax(rate(), [64]);
        let regulator = Regulator::new(Bag::from_ns(1_000_000).unwrap(), 1, 4).unwrap();
        es.add(regulator, Networks::One(Network::B));
        es.offer(7, 0, 0, 64, 'x').unwrap();
        assert_eq!(es.next_ns(), Some(7));
        let mut left = Vec::new();
        es.step(7, |network, out| left.push((network, out.start_ns)));
        assert_eq!((left, es.next_ns()), (vec![(Network::B, 7)], None));
        assert_eq!(es.offer(8, 1, 0, 64, 'y'), Err((Refused::NoSubVl, 'y')));
    }

    /// The sequence numbers of what leaves, until nothing waits.
    fn numbers(es: &mut Scheduler<u32>, mut now: u64) -> Vec<u8> {
        let mut numbers = Vec::new();
        while let Some(next) = es.next_ns() {
            now = next.max(now);
            es.step(now, |network, out| {
                if network == Network::A {
                    numbers.push(out.frame.number);
                }
            });
        }
        numbers
    }

    #[test]
    fn numbers_begin_at_0_go_on_to_255_and_then_from_1() {
        let mut es = scheduler(&[(1_000_000, 64)]);
        (0..258).for_each(|frame| es.offer(0, 0, 0, 64, frame).unwrap());
        let expected: Vec<u8> = (0..=255).chain([1, 2]).collect();
        assert_eq!(numbers(&mut es, 0), expected);
        // A reset loses what waits; numbers begin again.
        (0..3).for_each(|frame| es.offer(0, 0, 0, 64, frame).unwrap());
        assert_eq!((es.reset(), es.next_ns()), (3, None));
        (0..2).for_each(|frame| es.offer(0, 0, 0, 64, frame).unwrap());
        // The gap to what left before the reset is kept: 258 frames took until 257 ms.
        assert_eq!(es.next_ns(), Some(258_000_000));
        assert_eq!(numbers(&mut es, 0), [0, 1]);
    }

    #[test]
    fn a_babbling_vl_ignores_its_gap_and_shares_the_numbers() {
        let mut es = scheduler(&[(1_000_000, 64)]);
        es.offer(0, 0, 0, 64, 1).unwrap();
        es.step(0, |_, _| {});
        es.babble(10_000, 0, 64, 2);
        assert_eq!(es.next_ns(), Some(10_000));
        es.babble(10_000, 0, 64, 3);
        es.offer(10_000, 0, 0, 64, 4).unwrap();
        assert_eq!(numbers(&mut es, 0), [1, 2, 3]);
    }

    /// The BAG in nanoseconds and Lmax of a VL.
    type Limits = (u64, u64);
    /// The time after the offer before, the VL, the length.
    type Offer = (u64, usize, u64);

    /// Any end system within the limits, and any offers.
    fn networks() -> impl Strategy<Value = (Vec<Limits>, Vec<Offer>)> {
        // With 12 VLs the formula may be above 500 us; the bound holds whether that is allowed or not.
        let vls = prop::collection::vec((100_000u64..2_000_000, 64u64..1519), 1..12);
        (vls, prop::collection::vec((0u64..300_000, 0usize..12, 64u64..1519), 1..300))
    }

    proptest! {
        /// In virtual time: releases of a VL are BAG apart, nothing leaves later than the formula allows, both lines carry the same, and
        /// no frame is lost.
        #[test]
        fn the_jitter_bound_holds((vls, offers) in networks()) {
            let checked: Vec<_> = vls.iter().map(|(bag, lmax)| (Bag::from_ns(*bag).unwrap(), *lmax)).collect();
            let limits = JitterLimits { most_ns: u64::MAX, ..JitterLimits::default() };
            let Ok(allowed) = check_output(rate(), limits, &checked) else { return Ok(()) };
            let mut es = scheduler(&vls);
            let mut offers = offers.into_iter();
            let (mut at, mut taken) = (0, 0u64);
            let mut next_offer = offers.next();
            let mut released: Vec<Option<u64>> = vec![None; vls.len()];
            let mut left = [Vec::new(), Vec::new()];
            loop {
                let offer_at = next_offer.map(|(pause, ..)| at + pause);
                let step_at = es.next_ns();
                if let Some(now) = offer_at.filter(|offer| step_at.is_none_or(|step| *offer <= step)) {
                    let (_, vl, length) = next_offer.unwrap();
                    let vl = vl % vls.len();
                    at = now;
                    es.offer(now, vl, 0, length.min(vls[vl].1), 0).unwrap();
                    taken += 1;
                    next_offer = offers.next();
                    continue;
                }
                let Some(now) = step_at else { break };
                es.step(now, |network, out| left[network.index()].push(out));
            }
            for out in &left[0] {
                let vl = out.frame.vl;
                if let Some(last) = released[vl].replace(out.released_ns) {
                    prop_assert!(out.released_ns >= last + vls[vl].0);
                }
            }
            prop_assert_eq!(&left[0], &left[1]);
            prop_assert_eq!(left[0].len() as u64, taken);
            let most = es.line_counters(Network::A).max_jitter_ns;
            // Without the 40 us for the technology.
            prop_assert!(most + TECHNOLOGY_JITTER_NS <= allowed, "{} of {}", most, allowed);
        }
    }
}
