//! The regulator of one virtual link: no two frames nearer than the bandwidth allocation gap (BAG).
//!
//! Frames wait in the queues of up to four sub-VLs, which share the VL in round robin. A frame may be released when BAG has passed since
//! the one before was. So what is released is at most one frame of at most Lmax bytes in any half-open interval of length BAG, whatever
//! the application does: the traffic contract that switches police and that delay bounds rest on.
//!
//! ```text
//!   offered    1 2 3        4
//!   released   1       2       3       4        one each BAG at most
//!              |--BAG--|--BAG--|--BAG--|
//! ```
//!
//! **Late frames.** After the regulator, the multiplexer delays a frame until the line is free, at most by the output jitter J. On the
//! line, frames of a VL are then as near as BAG - J, which a switch allows. A machine that is not a real-time system may send a frame even
//! later than release + J, and the next one on time: nearer than BAG - J, and the switch would drop it. [`Regulator::departed`] avoids
//! that: a frame that left at `d` counts as released at `d - J` at the earliest. This is the virtual scheduling algorithm (GCRA of ITU-T
//! I.371) with increment BAG and limit J, so that what leaves always conforms to an account with that jitter.

use crate::limits::{LimitError, within};
use std::collections::VecDeque;

/// Most sub-VLs of a VL.
pub const MAX_SUB_VLS: usize = 4;

/// Least and largest BAG in nanoseconds. The standard has powers of two from 1 to 128 ms; 0.5 ms is common, networks that are
/// evaluated have others.
pub const BAG_LIMITS_NS: (u64, u64) = (10_000, 1_310_000_000);

/// Most frames that wait in the queue of a sub-VL, and how many do if nothing is said.
pub const MAX_QUEUE_FRAMES: usize = 65_536;
/// See [`MAX_QUEUE_FRAMES`]. A message of the longest kind is 6 frames.
pub const DEFAULT_QUEUE_FRAMES: usize = 64;

/// A bandwidth allocation gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bag(u64);

impl Bag {
    /// A gap of so many nanoseconds.
    ///
    /// # Errors
    /// [`LimitError`] outside of [`BAG_LIMITS_NS`].
    pub fn from_ns(ns: u64) -> Result<Bag, LimitError> {
        within("BAG", ns, BAG_LIMITS_NS, "ns").map(Bag)
    }

    /// In nanoseconds.
    pub fn ns(self) -> u64 {
        self.0
    }
}

/// What became of the frames of a regulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegulatorCounters {
    /// Frames that were offered.
    pub offered: u64,
    /// Frames refused because the queue of their sub-VL was full.
    pub refused_full: u64,
    /// Frames refused because the VL has no such sub-VL.
    pub refused_sub_vl: u64,
    /// Frames released.
    pub released: u64,
    /// Frames that left so late that the next one waits for longer than BAG after the release.
    pub late: u64,
}

/// Why a frame was not taken; the frame is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// As many frames wait in the queue of the sub-VL as it has room for.
    QueueFull,
    /// The VL has fewer sub-VLs.
    NoSubVl,
}

/// The regulator of one VL. `F` is a frame, or whatever stands for one.
#[derive(Clone, Debug)]
pub struct Regulator<F> {
    bag: Bag,
    /// Nothing is released before.
    eligible_ns: u64,
    queues: Vec<VecDeque<F>>,
    limit: usize,
    /// The sub-VL that is asked first.
    turn: usize,
    waiting: usize,
    counters: RegulatorCounters,
}

impl<F> Regulator<F> {
    /// A regulator with one to [`MAX_SUB_VLS`] sub-VLs, each with a queue of so many frames. The first frame may leave at once.
    ///
    /// # Errors
    /// [`LimitError`] for a number of sub-VLs or a queue that there cannot be.
    pub fn new(bag: Bag, sub_vls: usize, queue_frames: usize) -> Result<Regulator<F>, LimitError> {
        within("the number of sub-VLs", sub_vls as u64, (1, MAX_SUB_VLS as u64), "")?;
        within("the queue of a sub-VL", queue_frames as u64, (1, MAX_QUEUE_FRAMES as u64), "frames")?;
        let queues = (0..sub_vls).map(|_| VecDeque::new()).collect();
        let counters = RegulatorCounters::default();
        Ok(Regulator { bag, eligible_ns: 0, queues, limit: queue_frames, turn: 0, waiting: 0, counters })
    }

    /// The gap.
    pub fn bag(&self) -> Bag {
        self.bag
    }

    /// Puts a frame into the queue of its sub-VL.
    ///
    /// # Errors
    /// The frame, with the reason, when it is not taken; that is counted.
    pub fn offer(&mut self, sub_vl: usize, frame: F) -> Result<(), (Refused, F)> {
        self.counters.offered += 1;
        let Some(queue) = self.queues.get_mut(sub_vl) else {
            self.counters.refused_sub_vl += 1;
            return Err((Refused::NoSubVl, frame));
        };
        if queue.len() >= self.limit {
            self.counters.refused_full += 1;
            return Err((Refused::QueueFull, frame));
        }
        queue.push_back(frame);
        self.waiting += 1;
        Ok(())
    }

    /// Room for so many more frames of a sub-VL.
    pub fn room(&self, sub_vl: usize) -> usize {
        self.queues.get(sub_vl).map_or(0, |queue| self.limit - queue.len())
    }

    /// Frames that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// When the next frame may be released; a time that has passed means at once. None while no frame waits.
    pub fn next_ns(&self) -> Option<u64> {
        (self.waiting > 0).then_some(self.eligible_ns)
    }

    /// Releases the next frame, if one waits and may be released at this time. The next one then waits for a whole BAG from this time on,
    /// so in virtual time a caller asks at exactly [`Regulator::next_ns`] (or when it offers a frame, if that is later).
    pub fn release(&mut self, now_ns: u64) -> Option<F> {
        if self.waiting == 0 || now_ns < self.eligible_ns {
            return None;
        }
        let count = self.queues.len();
        for step in 0..count {
            // In turn; without a division, which takes as long as all the rest.
            let after = |sub_vl: usize| if sub_vl < count { sub_vl } else { sub_vl - count };
            let sub_vl = after(self.turn + step);
            if let Some(frame) = self.queues[sub_vl].pop_front() {
                self.turn = after(sub_vl + 1);
                self.waiting -= 1;
                self.counters.released += 1;
                self.eligible_ns = now_ns.saturating_add(self.bag.0);
                return Some(frame);
            }
        }
        None
    }

    /// Tells that the first bit of the frame released last left at this time, where up to `jitter_ns` after its release is expected.
    /// Of a frame that left later the next one keeps a distance of BAG - jitter.
    pub fn departed(&mut self, at_ns: u64, jitter_ns: u64) {
        let counted_ns = at_ns.saturating_sub(jitter_ns).saturating_add(self.bag.0);
        if counted_ns > self.eligible_ns && self.counters.released > 0 {
            self.counters.late += 1;
            self.eligible_ns = counted_ns;
        }
    }

    /// Drops what waits, and says how many frames that were. The gap to the frame released last stays.
    pub fn clear(&mut self) -> usize {
        self.queues.iter_mut().for_each(VecDeque::clear);
        std::mem::take(&mut self.waiting)
    }

    /// What has happened so far.
    pub fn counters(&self) -> RegulatorCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn regulator(bag_ms: u64, sub_vls: usize, limit: usize) -> Regulator<u32> {
        Regulator::new(Bag::from_ns(bag_ms * MS).unwrap(), sub_vls, limit).unwrap()
    }

    /// Runs until nothing waits; (time, frame) of each release.
    fn drain(regulator: &mut Regulator<u32>, from_ns: u64) -> Vec<(u64, u32)> {
        let mut released = Vec::new();
        while let Some(next) = regulator.next_ns() {
            let now = next.max(from_ns);
            released.push((now, regulator.release(now).unwrap()));
        }
        released
    }

    #[test]
    fn a_burst_leaves_one_frame_each_bag() {
        let mut vl = regulator(2, 1, 8);
        for frame in 0..4 {
            vl.offer(0, frame).unwrap();
        }
        // The first at once, at 5 ms; then 7, 9 and 11 ms.
        assert_eq!(drain(&mut vl, 5 * MS), [(5 * MS, 0), (7 * MS, 1), (9 * MS, 2), (11 * MS, 3)]);
        // After a silence of more than BAG at once again; nothing is saved up.
        vl.offer(0, 4).unwrap();
        vl.offer(0, 5).unwrap();
        assert_eq!(drain(&mut vl, 30 * MS), [(30 * MS, 4), (32 * MS, 5)]);
    }

    #[test]
    fn a_frame_that_comes_within_bag_waits_for_its_end() {
        let mut vl = regulator(1, 1, 8);
        vl.offer(0, 1).unwrap();
        assert_eq!(vl.release(0), Some(1));
        vl.offer(0, 2).unwrap();
        assert_eq!(vl.release(MS - 1), None);
        assert_eq!(vl.next_ns(), Some(MS));
        assert_eq!(vl.release(MS), Some(2));
        assert_eq!((vl.next_ns(), vl.release(5 * MS)), (None, None));
    }

    #[test]
    fn sub_vls_take_turns_and_an_empty_one_loses_nothing_but_its_turn() {
        let mut vl = regulator(1, 4, 8);
        // Sub-VL 0 has three frames, 1 none, 2 one, 3 two.
        for (sub_vl, frame) in [(0, 1), (0, 2), (0, 3), (2, 21), (3, 31), (3, 32)] {
            vl.offer(sub_vl, frame).unwrap();
        }
        let order: Vec<u32> = drain(&mut vl, 0).into_iter().map(|(_, frame)| frame).collect();
        assert_eq!(order, [1, 21, 31, 2, 32, 3]);
    }

    #[test]
    fn what_is_refused_comes_back_and_is_counted() {
        let mut vl = regulator(1, 2, 2);
        assert_eq!(vl.offer(0, 1), Ok(()));
        assert_eq!(vl.offer(0, 2), Ok(()));
        assert_eq!(vl.offer(0, 3), Err((Refused::QueueFull, 3)));
        assert_eq!(vl.offer(1, 4), Ok(()));
        assert_eq!(vl.offer(2, 5), Err((Refused::NoSubVl, 5)));
        assert_eq!((vl.room(0), vl.room(1), vl.room(2), vl.waiting()), (0, 1, 0, 3));
        let counted =
            RegulatorCounters { offered: 5, refused_full: 1, refused_sub_vl: 1, released: 0, late: 0 };
        assert_eq!(vl.counters(), counted);
    }

    #[test]
    fn limits_are_named() {
        let bag = |ns| Bag::from_ns(ns).map(Bag::ns).map_err(|error| error.to_string());
        assert_eq!(bag(10_000), Ok(10_000));
        assert_eq!(bag(9_999), Err("BAG is 9999 ns: 10000 to 1310000000 ns is allowed".to_owned()));
        let bag = Bag::from_ns(MS).unwrap();
        let error = |sub_vls, frames| Regulator::<()>::new(bag, sub_vls, frames).unwrap_err().to_string();
        assert_eq!(error(5, 1), "the number of sub-VLs is 5: 1 to 4 is allowed");
        assert_eq!(error(0, 1), "the number of sub-VLs is 0: 1 to 4 is allowed");
        assert_eq!(error(1, 0), "the queue of a sub-VL is 0 frames: 1 to 65536 frames is allowed");
    }

    #[test]
    fn after_a_late_departure_the_next_frame_keeps_its_distance() {
        // BAG 1 ms, jitter 0.5 ms. Released at 0, left at 0.3 ms: nothing changes.
        let mut vl = regulator(1, 1, 8);
        vl.offer(0, 1).unwrap();
        vl.release(0).unwrap();
        vl.departed(300_000, 500_000);
        vl.offer(0, 2).unwrap();
        assert_eq!(vl.next_ns(), Some(MS));
        // Released at 1 ms, left at 3 ms (the machine stood still): as if released at 2.5 ms.
        vl.release(MS).unwrap();
        vl.departed(3 * MS, 500_000);
        vl.offer(0, 3).unwrap();
        assert_eq!(vl.next_ns(), Some(3_500_000));
        assert_eq!(vl.counters().late, 1);
    }

    proptest! {
        /// Whatever is offered and whenever it is asked, no two frames are released nearer than BAG, none waits longer than it has to, and
        /// the frames of a sub-VL keep their order.
        #[test]
        fn no_two_frames_are_nearer_than_bag(
            bag in 10_000u64..3_000_000,
            steps in prop::collection::vec((0u64..2_000_000, 0usize..5, any::<bool>()), 1..200),
        ) {
            let mut vl: Regulator<(usize, usize)> = Regulator::new(Bag::from_ns(bag).unwrap(), 4, 16).unwrap();
            let (mut now, mut last): (u64, Option<u64>) = (0, None);
            let mut sub_vl_last = [None; 4];
            for (number, (pause, sub_vl, asks)) in steps.into_iter().enumerate() {
                now += pause;
                let before = vl.waiting();
                let taken = vl.offer(sub_vl, (sub_vl, number)).is_ok();
                prop_assert_eq!(vl.waiting(), before + usize::from(taken));
                if !asks {
                    continue;
                }
                let may = vl.waiting() > 0 && last.is_none_or(|last: u64| now >= last + bag);
                let released = vl.release(now);
                prop_assert_eq!(released.is_some(), may);
                if let Some((sub_vl, number)) = released {
                    last = Some(now);
                    prop_assert!(sub_vl_last[sub_vl].is_none_or(|last| last < number));
                    sub_vl_last[sub_vl] = Some(number);
                }
            }
            let counters = vl.counters();
            prop_assert_eq!(
                counters.offered,
                counters.released + counters.refused_full + counters.refused_sub_vl + vl.waiting() as u64
            );
        }

        /// Departures conform to an account that grows to 1 + J/BAG frames, at one frame each BAG, whatever the delay after the release.
        #[test]
        fn departures_conform_to_an_account_with_the_jitter(
            bag in 10_000u64..1_000_000,
            jitter in 0u64..600_000,
            delays in prop::collection::vec(0u64..3_000_000, 1..100),
        ) {
            let mut vl: Regulator<()> = Regulator::new(Bag::from_ns(bag).unwrap(), 1, 4096).unwrap();
            for _ in &delays {
                vl.offer(0, ()).unwrap();
            }
            // The account, in units of frames * BAG nanoseconds, starts full.
            let full = u128::from(bag) + u128::from(jitter);
            let (mut credit, mut seen, mut now) = (full, 0u64, 0u64);
            for delay in delays {
                let release = vl.next_ns().unwrap().max(now);
                vl.release(release).unwrap();
                now = release + delay;
                vl.departed(now, jitter);
                credit = full.min(credit + u128::from(now - seen));
                seen = now;
                prop_assert!(credit >= u128::from(bag), "at {} with credit {}", now, credit);
                credit -= u128::from(bag);
            }
        }
    }
}
