//! Credit-based shaper of IEEE 802.1Q, 8.6.8.2 (from 802.1Qav).
//!
//! A queue has a credit, in bits. It may send while the credit is not negative. The credit rises at the *idle slope* while frames wait;
//! it falls at the *send slope* while one is sent; when the queue is empty and the credit positive, it becomes 0; when the queue is
//! empty and the credit negative, it rises to 0 and stays there. With gates before the queue, the credit stands still while the gate is
//! closed (see [`CreditShaper::freeze`]).
//!
//! The send slope is the idle slope less the rate of the port, so a frame costs its length while the idle slope goes on: that is how it
//! is computed, without a division, in billionths of a bit. A slope in bit/s times nanoseconds is a whole number of these, so nothing
//! is rounded and nothing drifts. Only the end of a frame is rounded, up to the next nanosecond; the idle slope goes on until then.
//!
//! **Bounds** (Annex L). Let `R` be the rate of the port, `I < R` the idle slope, `N` the longest frame of this queue, `M` the longest
//! frame of lower priority. For the queue of highest priority, without limits set by hand,
//!
//! > `loCredit = -N · (R - I) / R  <=  credit  <=  hiCredit = M · I / R`
//!
//! *Proof.* The credit falls only while a frame is sent, which begins at a credit of at least 0, lasts at most `N / R` and lowers it
//! by `R - I` a second: that is `loCredit`. The credit rises above 0 only while a frame waits (an empty queue has 0 at most); the queue
//! could send, so the port is sending a frame of others. When that one began, the queue could not send: it was empty or its credit
//! negative, so its credit was at most 0. At its end, at most `M / R` later, the queue sends, and no other frame begins before the queue
//! is empty or its credit negative again. So the credit rises from at most 0 for at most `M / R`: that is `hiCredit`. ∎
//!
//! The next queue also waits for the first one, whose idle slope be `I'` and longest frame `N'`: one lower frame begins, then the first
//! sends as long as it may. In a time `T` it sends at most `I' · T - loCredit'` bits, so `R · T <= M + I' · T + N' · (R - I') / R`
//! and `hiCredit = I · T = I · (M / (R - I') + N' / R)`.
//!
//! In an interval of `t` seconds the queue therefore sends at most `I · t + hiCredit - loCredit` bits.
//!
//! Limits set by hand clip the credit: a `hiCredit` below the bound loses bandwidth that the queue was promised; a `loCredit` above the
//! bound (nearer to 0) gives it more.

use crate::setting::{BYTE, MAX_BURST, MAX_RATE, SECOND, SettingError, wire_ns, within};

/// What a credit-based shaper is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// Rate that the queue may have, in bit/s: 1 to one less than the rate of the port.
    pub idle_slope: u64,
    /// Rate of the port, in bit/s: at most [`MAX_RATE`].
    pub port_rate: u64,
    /// Most credit, in bytes: at most [`MAX_BURST`].
    pub hi_credit: u64,
    /// How far below 0 the credit may fall, in bytes: at most [`MAX_BURST`].
    pub lo_credit: u64,
    /// Bytes that a frame takes on the wire in addition to its own.
    pub overhead: u32,
}

impl Credit {
    /// The setting for a queue of highest priority by Annex L: credit limits, rounded up to whole bytes, from the longest frame of the
    /// queue and the longest of others, both with their overhead.
    pub fn of(
        idle_slope: u64,
        port_rate: u64,
        longest: u32,
        longest_of_others: u32,
        overhead: u32,
    ) -> Credit {
        let share = |bytes: u32, slope: u64| {
            (u128::from(bytes) * u128::from(slope)).div_ceil(u128::from(port_rate.max(1))) as u64
        };
        let (hi_credit, lo_credit) =
            (share(longest_of_others, idle_slope), share(longest, port_rate.saturating_sub(idle_slope)));
        Credit { idle_slope, port_rate, hi_credit, lo_credit, overhead }
    }

    /// The send slope, in bit/s: negative.
    pub fn send_slope(&self) -> i64 {
        self.idle_slope as i64 - self.port_rate as i64
    }

    /// Refuses a send slope that does not fit the idle slope and the rate of the port.
    pub fn check_send_slope(&self, is: i64) -> Result<(), SettingError> {
        let wanted = self.send_slope();
        if is == wanted { Ok(()) } else { Err(SettingError::SendSlope { is, wanted }) }
    }

    fn check(&self) -> Result<(), SettingError> {
        within("rate of the port", "bit/s", self.port_rate, 2..=MAX_RATE)?;
        within("idle slope", "bit/s", self.idle_slope, 1..=self.port_rate - 1)?;
        within("high credit", "bytes", self.hi_credit, 0..=MAX_BURST)?;
        within("low credit", "bytes below 0", self.lo_credit, 0..=MAX_BURST)?;
        Ok(())
    }
}

/// The credit of a queue.
#[derive(Clone, Debug)]
pub struct CreditShaper {
    /// In billionths of a bit, at `since`.
    credit: i64,
    /// In the time to come while a frame is sent: its end.
    since: u64,
    setting: Credit,
    high: i64,
    low: i64,
    waiting: bool,
    frozen: bool,
}

impl CreditShaper {
    /// The shaper of an empty queue, with a credit of 0.
    pub fn new(setting: Credit, now_ns: u64) -> Result<CreditShaper, SettingError> {
        setting.check()?;
        let (high, low) = ((setting.hi_credit * BYTE) as i64, -((setting.lo_credit * BYTE) as i64));
        Ok(CreditShaper { credit: 0, since: now_ns, setting, high, low, waiting: false, frozen: false })
    }

    /// The setting.
    pub fn setting(&self) -> Credit {
        self.setting
    }

    /// Another setting from now on (or from the end of the frame that is sent); the credit stays, within its limits.
    pub fn replace(&mut self, setting: Credit, now_ns: u64) -> Result<(), SettingError> {
        let new = CreditShaper::new(setting, now_ns)?;
        self.settle(now_ns);
        let credit = self.credit.clamp(new.low, new.high);
        *self = CreditShaper { credit, since: self.since, waiting: self.waiting, frozen: self.frozen, ..new };
        Ok(())
    }

    /// The queue has frames from now on.
    #[inline]
    pub fn fill(&mut self, now_ns: u64) {
        self.settle(now_ns);
        self.waiting = true;
    }

    /// The queue is empty from now on: its last frame is being sent, or was discarded.
    #[inline]
    pub fn empty(&mut self, now_ns: u64) {
        self.settle(now_ns);
        self.waiting = false;
        self.settle(now_ns);
    }

    /// The gate of the queue closes: the credit stands still from now on, or from the end of the frame that is sent.
    pub fn freeze(&mut self, now_ns: u64) {
        self.settle(now_ns);
        self.frozen = true;
    }

    /// The gate of the queue opens.
    pub fn thaw(&mut self, now_ns: u64) {
        self.settle(now_ns);
        self.frozen = false;
    }

    /// When the queue may send, if it waits until then and its gate is open; maybe a time that has passed.
    #[inline]
    pub fn eligible_ns(&self) -> u64 {
        match self.credit {
            0.. => self.since,
            owed => self.since.saturating_add(owed.unsigned_abs().div_ceil(self.setting.idle_slope)),
        }
    }

    /// A frame of `len` bytes begins to be sent. Gives the end of it at the rate of the port, before which the queue may not send again.
    #[inline]
    pub fn send(&mut self, len: u32, now_ns: u64) -> u64 {
        self.settle(now_ns);
        let bytes = (u64::from(len) + u64::from(self.setting.overhead)).min(MAX_BURST);
        let time = wire_ns(bytes, self.setting.port_rate);
        // The idle slope is below the rate of the port: what comes is at most what the frame costs, and a nanosecond's.
        let change = (self.setting.idle_slope * time) as i64 - (bytes * BYTE) as i64;
        self.credit = self.credit.saturating_add(change).max(self.low);
        self.since += time;
        self.since
    }

    /// The credit, in whole bits, rounded down; while a frame is sent, the one that it ends with.
    pub fn credit_bits(&self, now_ns: u64) -> i64 {
        let mut then = self.clone();
        then.settle(now_ns);
        then.credit.div_euclid(SECOND as i64)
    }

    /// When the credit was last worked out; in the time to come while a frame is sent.
    pub fn since_ns(&self) -> u64 {
        self.since
    }

    /// For how long the credit has to rise from [`CreditShaper::since_ns`] on until the queue may send. With gates it rises while
    /// the gate is open: the queue may send at [`crate::gates::Gates::after_open`] this time.
    pub fn owed_ns(&self) -> u64 {
        self.eligible_ns() - self.since
    }

    /// Works the credit out at a time, of which the gate was open for `open_ns` since [`CreditShaper::since_ns`]
    /// ([`crate::gates::Gates::open_between`]). With this before each other call at that time, nobody has to say when gates open and
    /// close.
    #[inline]
    pub fn pass(&mut self, now_ns: u64, open_ns: u64) {
        if now_ns < self.since {
            return;
        }
        let most = if self.waiting { self.high } else { 0 };
        // Credit above 0 of an empty queue goes also while its gate is closed.
        let comes = self.setting.idle_slope.saturating_mul(open_ns).min(i64::MAX as u64) as i64;
        self.credit = self.credit.saturating_add(comes).min(most);
        self.since = now_ns;
    }

    #[inline]
    fn settle(&mut self, now_ns: u64) {
        let passed = if self.frozen { 0 } else { now_ns.saturating_sub(self.since) };
        self.pass(now_ns, passed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GIGA: u64 = 1_000_000_000;

    fn shaper(setting: Credit) -> CreditShaper {
        CreditShaper::new(setting, 0).unwrap()
    }

    #[test]
    fn a_hand_computed_case() {
        // 100 Mbit/s of 1 Gbit/s, frames of 1250 bytes: 10 us on the wire, which cost 10,000 bits and give 1000.
        let mut shaper = shaper(Credit::of(GIGA / 10, GIGA, 1250, 1250, 0));
        assert_eq!((shaper.setting().hi_credit, shaper.setting().lo_credit), (125, 1125));
        shaper.fill(0);
        assert_eq!(shaper.eligible_ns(), 0);
        assert_eq!(shaper.send(1250, 0), 10_000);
        assert_eq!(shaper.credit_bits(10_000), -9000);
        // 9000 bits at 100 Mbit/s: 90 us.
        assert_eq!(shaper.eligible_ns(), 100_000);
        // Another frame has the port until 110 us: the credit rises to 1000 bits, and no further.
        assert_eq!(shaper.credit_bits(100_000), 0);
        assert_eq!(shaper.credit_bits(110_000), 1000);
        assert_eq!(shaper.credit_bits(200_000), 1000);
        assert_eq!(shaper.send(1250, 110_000), 120_000);
        shaper.empty(110_000);
        // The empty queue's credit rises to 0 and no further.
        assert_eq!(shaper.credit_bits(120_000), -8000);
        assert_eq!(shaper.credit_bits(1_000_000), 0);
    }

    #[test]
    fn the_credit_of_an_empty_queue_is_not_positive() {
        let mut shaper = shaper(Credit::of(GIGA / 2, GIGA, 1250, 12_500, 0));
        shaper.fill(0);
        assert_eq!(shaper.credit_bits(100_000), 50_000);
        shaper.send(1250, 100_000);
        // While the last frame is sent the credit is kept: a frame that comes before its end has the rest.
        shaper.empty(100_000);
        let mut late = shaper.clone();
        shaper.fill(109_999);
        assert_eq!(shaper.credit_bits(110_000), 45_000);
        late.fill(110_000);
        assert_eq!(late.credit_bits(110_000), 0);
        // A queue whose frames are discarded is empty at once.
        late.fill(120_000);
        late.empty(200_000);
        assert_eq!(late.credit_bits(200_000), 0);
    }

    #[test]
    fn a_closed_gate_stops_the_credit() {
        let mut shaper = shaper(Credit::of(GIGA / 10, GIGA, 1250, 1250, 0));
        shaper.fill(0);
        shaper.send(1250, 0);
        shaper.freeze(5_000);
        assert_eq!(shaper.credit_bits(50_000), -9000);
        shaper.thaw(50_000);
        assert_eq!((shaper.credit_bits(60_000), shaper.eligible_ns()), (-8000, 140_000));
    }

    /// Gates that are told to the shaper, and gates that it is asked about.
    #[test]
    fn gates_that_are_told_and_gates_that_are_looked_up_are_the_same() {
        use crate::gates::{GateEntry, GateList, Gates, Schedule};
        let entries =
            [(1, 3000), (0, 5000)].map(|(open, interval_ns)| GateEntry { open, interval_ns }).to_vec();
        let list = GateList { base_ns: 0, cycle_ns: 0, extension_ns: 0, entries };
        let mut gates = Gates::new(std::sync::Arc::new(Schedule::new(list).unwrap()), GIGA, 0, 0, 0).unwrap();
        let setting = Credit::of(GIGA / 4, GIGA, 125, 1250, 0);
        let (mut told, mut asking) = (shaper(setting), shaper(setting));
        told.fill(0);
        asking.fill(0);
        let (mut now, mut sent, mut change) = (0, 0, 3000);
        while now < 200_000 {
            let next = gates.after_open(0, asking.since_ns(), asking.owed_ns()).unwrap().max(now);
            let next = gates.opens_ns(0, 125, next).unwrap();
            while change <= next {
                if change % 8000 == 0 {
                    told.thaw(change)
                } else {
                    told.freeze(change)
                }
                change += if change % 8000 == 0 { 3000 } else { 5000 };
            }
            assert!(told.eligible_ns() <= next);
            asking.pass(next, gates.open_between(0, asking.since_ns(), next));
            assert_eq!(told.credit_bits(next), asking.credit_bits(next));
            now = told.send(125, next);
            assert_eq!(asking.send(125, next), now);
            sent += 1;
        }
        // A quarter of 1 Gbit/s while the gate is open, three eighths of the time: 18.75 frames of 1000 bits in 200 us, and the first.
        assert!((18..=20).contains(&sent), "{sent}");
    }

    #[test]
    fn settings_have_limits() {
        let good = Credit::of(GIGA / 10, GIGA, 1538, 1538, 0);
        let refusal = |setting: Credit| CreditShaper::new(setting, 0).unwrap_err().to_string();
        assert_eq!(
            refusal(Credit { idle_slope: GIGA, ..good }),
            "idle slope is 1000000000 bit/s, it may be 1 to 999999999 bit/s"
        );
        assert!(refusal(Credit { port_rate: MAX_RATE + 1, ..good }).starts_with("rate of the port"));
        assert!(refusal(Credit { hi_credit: MAX_BURST + 1, ..good }).starts_with("high credit"));
        assert!(refusal(Credit { lo_credit: MAX_BURST + 1, ..good }).starts_with("low credit"));
        assert_eq!(good.check_send_slope(-900_000_000), Ok(()));
        assert_eq!(
            good.check_send_slope(-980_000_000).unwrap_err().to_string(),
            "send slope is -980000000 bit/s, it has to be -900000000 bit/s: the idle slope less the rate of the port"
        );
    }

    #[test]
    fn the_largest_settings_do_not_overflow() {
        let most = Credit {
            idle_slope: MAX_RATE - 1,
            port_rate: MAX_RATE,
            hi_credit: MAX_BURST,
            lo_credit: MAX_BURST,
            overhead: u32::MAX,
        };
        let mut shaper = shaper(most);
        shaper.fill(0);
        assert_eq!(shaper.credit_bits(u64::MAX / 2), 1 << 33);
        for now in [0, u64::MAX / 2, u64::MAX / 2 + 1] {
            shaper.send(u32::MAX, now);
        }
        let mut slow = self::shaper(Credit { idle_slope: 1, ..most });
        slow.fill(0);
        for _ in 0..3 {
            slow.send(u32::MAX, 0);
        }
        assert_eq!(slow.credit_bits(0), -(1 << 33));
        assert!(slow.eligible_ns() > u64::MAX / 3);
    }

    /// The shaper as the standard says it, nanosecond by nanosecond. Frames take whole nanoseconds.
    struct Slow {
        setting: Credit,
        credit: i128,
        now: u64,
        end: u64,
        waiting: bool,
        frozen: bool,
    }

    impl Slow {
        fn limits(&self) -> (i128, i128) {
            let unit = i128::from(BYTE);
            (-i128::from(self.setting.lo_credit) * unit, i128::from(self.setting.hi_credit) * unit)
        }

        fn step(&mut self) {
            let (low, high) = self.limits();
            if self.now < self.end {
                self.credit += i128::from(self.setting.send_slope());
                if self.now + 1 == self.end {
                    self.credit = self.credit.max(low);
                }
            } else if !self.frozen && (self.waiting || self.credit < 0) {
                self.credit += i128::from(self.setting.idle_slope);
                self.credit = if self.waiting { self.credit.min(high) } else { self.credit.min(0) };
            }
            self.now += 1;
            self.look();
        }

        /// What holds at an instant.
        fn look(&mut self) {
            if self.now >= self.end && !self.waiting && self.credit > 0 {
                self.credit = 0;
            }
            if self.now >= self.end {
                self.credit = self.credit.min(self.limits().1);
            }
        }
    }

    proptest! {
        #[test]
        fn the_credit_is_what_the_standard_says(
            rate in prop_oneof![Just(GIGA), Just(2 * GIGA), Just(4 * GIGA), Just(8 * GIGA)],
            share in 1u64..1000,
            hi_credit in 0u64..300,
            lo_credit in 0u64..300,
            events in prop::collection::vec((0u64..400, 0u8..6, 1u32..250), 1..60),
        ) {
            let idle_slope = rate / 1000 * share;
            let setting = Credit { idle_slope, port_rate: rate, hi_credit, lo_credit, overhead: 4 };
            let mut fast = shaper(setting);
            let mut slow = Slow { setting, credit: 0, now: 0, end: 0, waiting: false, frozen: false };
            for (wait, event, len) in events {
                let claimed = fast.eligible_ns();
                for _ in 0..wait {
                    slow.step();
                    if slow.now >= slow.end && slow.waiting && !slow.frozen {
                        prop_assert_eq!(slow.credit >= 0, claimed <= slow.now);
                    }
                }
                let now = slow.now;
                match event {
                    0 | 1 => { fast.fill(now); slow.waiting = true; }
                    2 => { fast.empty(now); slow.waiting = false; }
                    3 => {
                        let flip = !slow.frozen;
                        if flip { fast.freeze(now) } else { fast.thaw(now) }
                        slow.frozen = flip;
                    }
                    _ if slow.waiting && slow.credit >= 0 && now >= slow.end => {
                        slow.end = now + u64::from(len + 4) * 8 * GIGA / rate;
                        prop_assert_eq!(fast.send(len, now), slow.end);
                        if event == 5 { fast.empty(now); slow.waiting = false; }
                    }
                    _ => {}
                }
                slow.look();
                if now >= slow.end {
                    prop_assert_eq!(i128::from(fast.credit_bits(now)), slow.credit.div_euclid(GIGA.into()));
                }
            }
        }

        /// A port with a shaped queue over one that always has frames: Annex L, and the shaped queue's rate.
        #[test]
        fn credit_and_rate_are_within_their_bounds(
            rate in prop::sample::select(vec![1, 10, 25, 100, 250, 400, 1000, 4000]),
            share in 1u64..100,
            seed in any::<u64>(),
        ) {
            // Frames of a multiple of 50 bytes take whole nanoseconds at all of these rates: 0.1 to 400 Gbit/s.
            let rate = rate * GIGA / 10;
            let idle_slope = rate / 100 * share;
            let (longest, others) = (1000u32, 1500u32);
            // Limits far away: what is found comes from the algorithm alone.
            let bounds = Credit::of(idle_slope, rate, longest + 50, others + 50, 50);
            let free = Credit { hi_credit: MAX_BURST, lo_credit: MAX_BURST, ..bounds };
            let mut shaper = shaper(free);
            let (mut now, mut sent, mut random) = (0u64, 0u64, seed | 1);
            let mut next = |below: u32| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                (random >> 32) as u32 % below
            };
            shaper.fill(0);
            for _ in 0..3000 {
                let credit = shaper.credit_bits(now);
                prop_assert!(credit <= (bounds.hi_credit * 8) as i64);
                prop_assert!(credit >= -((bounds.lo_credit * 8) as i64));
                if shaper.eligible_ns() <= now {
                    let len = 50 + 50 * next(longest / 50);
                    sent += u64::from(len + 50) * 8;
                    now = shaper.send(len, now);
                } else {
                    now += wire_ns(u64::from(100 + 50 * next(others / 50)), rate);
                }
                let most = u128::from(idle_slope) * u128::from(now) / u128::from(GIGA)
                    + u128::from(bounds.hi_credit + bounds.lo_credit) * 8;
                prop_assert!(u128::from(sent) <= most);
            }
            let promised = u128::from(idle_slope) * u128::from(now) / u128::from(GIGA);
            prop_assert!(u128::from(sent) + u128::from(bounds.hi_credit) * 8 >= promised);
        }
    }
}
