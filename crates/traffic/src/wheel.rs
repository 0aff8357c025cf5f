//! Timers by the nanosecond: a hierarchical timing wheel.
//!
//! Eleven rings of 64 slots stand for the digits of a time in base 64. A timer lies in the ring of the highest digit in which its time
//! differs from the wheel's, in the slot of that digit: so a slot of the lowest ring is one nanosecond, and a timer is found without a
//! search. When the wheel comes to a slot of a higher ring, the timers of the slot go to lower rings.
//!
//! **Cost.** Insertion and cancellation are O(1). A timer changes its ring at most ten times before it fires, however many others there
//! are; with times at most a second ahead, four times.
//!
//! **Order.** Let `e` be the wheel's time and `d > e` a timer's. All times of lower rings share more leading digits with `e` than `d`
//! does, so they are before `d`; within a ring a smaller slot is earlier; so the first slot in use of the lowest ring in use has the
//! earliest timer, and if that ring is the lowest one the slot is its time exactly. The ring of a timer depends on `e` and `d` only, so
//! two timers of one time are always in one list, to which the later asked for is appended: **they fire in the order of their times, and
//! for one time in the order in which they were asked for.** (Timers asked for a time that has passed fire next, among each other in the
//! order of asking.)
//!
//! **Memory.** 704 slots of 16 bytes, and an entry for as many timers as were ever set together, up to the capacity.
//!
//! Hashed and hierarchical timing wheels are from G. Varghese and T. Lauck, SOSP 1987.

/// Bits of a digit.
const BITS: u32 = 6;
/// Slots of a ring.
const SLOTS: usize = 1 << BITS;
/// Rings: 66 bits hold any time.
const RINGS: usize = 11;
/// No entry.
const NONE: u32 = u32::MAX;
/// Not in a slot.
const FREE: u16 = u16::MAX;
/// Most timers of a wheel.
pub const MAX_TIMERS: usize = 1 << 24;

/// A timer that was set. It stays the name of that timer alone, also after it has fired or was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timer {
    entry: u32,
    generation: u32,
}

/// A timer that fires, or nothing.
#[derive(Clone, Debug)]
struct Entry<T> {
    time: u64,
    previous: u32,
    next: u32,
    generation: u32,
    slot: u16,
    value: Option<T>,
}

/// The timers of one nanosecond, or of 64^ring of them.
#[derive(Clone, Copy, Debug)]
struct Slot {
    first: u32,
    last: u32,
    /// No timer of the slot is before this.
    earliest: u64,
}

const EMPTY: Slot = Slot { first: NONE, last: NONE, earliest: u64::MAX };

/// Timers, each with a value that it gives when it fires.
#[derive(Clone, Debug)]
pub struct Wheel<T> {
    now: u64,
    occupied: [u64; RINGS],
    slots: Box<[Slot]>,
    entries: Vec<Entry<T>>,
    free: u32,
    len: usize,
    capacity: usize,
}

impl<T> Wheel<T> {
    /// A wheel for at most so many timers (and at most [`MAX_TIMERS`]), whose time starts at `now_ns`.
    pub fn new(capacity: usize, now_ns: u64) -> Wheel<T> {
        Wheel {
            now: now_ns,
            occupied: [0; RINGS],
            slots: vec![EMPTY; RINGS * SLOTS].into(),
            entries: Vec::new(),
            free: NONE,
            len: 0,
            capacity: capacity.min(MAX_TIMERS),
        }
    }

    /// Timers that are set.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no timer is set.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Most timers that may be set together.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Sets a timer. Gives the value back when as many timers are set as the wheel has room for. A time that has passed means: at once.
    #[inline]
    pub fn set(&mut self, time_ns: u64, value: T) -> Result<Timer, T> {
        if self.len == self.capacity {
            return Err(value);
        }
        let entry = match self.free {
            NONE => {
                let fresh =
                    Entry { time: 0, previous: NONE, next: NONE, generation: 0, slot: FREE, value: None };
                self.entries.push(fresh);
                self.entries.len() as u32 - 1
            }
            free => {
                self.free = self.entries[free as usize].next;
                free
            }
        };
        self.len += 1;
        let place = &mut self.entries[entry as usize];
        place.time = time_ns;
        place.value = Some(value);
        let generation = place.generation;
        self.link(entry);
        Ok(Timer { entry, generation })
    }

    /// Takes a timer back, if it has neither fired nor been cancelled.
    #[inline]
    pub fn cancel(&mut self, timer: Timer) -> Option<T> {
        let entry = self.entries.get(timer.entry as usize)?;
        if entry.generation != timer.generation || entry.slot == FREE {
            return None;
        }
        self.unlink(timer.entry);
        Some(self.release(timer.entry))
    }

    /// When a timer fires, if it is still set.
    pub fn time_ns(&self, timer: Timer) -> Option<u64> {
        let entry = self.entries.get(timer.entry as usize)?;
        (entry.generation == timer.generation && entry.slot != FREE).then_some(entry.time)
    }

    /// The next timer that is due, with its time. None fires before its time; all that are due fire if this is called until it gives
    /// nothing.
    #[inline]
    pub fn expire(&mut self, now_ns: u64) -> Option<(u64, T)> {
        loop {
            let Some((ring, slot)) = self.first_slot() else {
                self.now = self.now.max(now_ns);
                return None;
            };
            let start = self.start_of(ring, slot);
            if start > now_ns {
                self.now = self.now.max(now_ns);
                return None;
            }
            self.now = self.now.max(start);
            if ring == 0 {
                let entry = self.slots[slot].first;
                self.unlink(entry);
                let time = self.entries[entry as usize].time;
                return Some((time, self.release(entry)));
            }
            self.lower(ring, slot);
        }
    }

    /// When the next timer fires; after a cancellation it may be up to a slot of its ring too early, never too late. At once if it has
    /// passed.
    #[inline]
    pub fn next_ns(&self) -> Option<u64> {
        let (ring, slot) = self.first_slot()?;
        Some(self.slots[ring * SLOTS + slot].earliest)
    }

    /// The first slot in use of the lowest ring in use.
    #[inline]
    fn first_slot(&self) -> Option<(usize, usize)> {
        let ring = self.occupied.iter().position(|slots| *slots != 0)?;
        Some((ring, self.occupied[ring].trailing_zeros() as usize))
    }

    /// The first time of a slot.
    fn start_of(&self, ring: usize, slot: usize) -> u64 {
        let shift = ring as u32 * BITS;
        let above = self.now.checked_shr(shift + BITS).and_then(|high| high.checked_shl(shift + BITS));
        above.unwrap_or(0) | (slot as u64) << shift
    }

    /// Appends an entry to the slot of its time.
    #[inline]
    fn link(&mut self, entry: u32) {
        let time = self.entries[entry as usize].time;
        let place = time.max(self.now);
        let ring = ((63 - ((place ^ self.now) | 1).leading_zeros()) / BITS) as usize;
        let digit = (place >> (ring as u32 * BITS)) as usize % SLOTS;
        let index = ring * SLOTS + digit;
        self.occupied[ring] |= 1 << digit;
        let slot = &mut self.slots[index];
        let last = std::mem::replace(&mut slot.last, entry);
        slot.earliest = slot.earliest.min(time);
        if last == NONE {
            slot.first = entry;
        }
        let this = &mut self.entries[entry as usize];
        (this.previous, this.next, this.slot) = (last, NONE, index as u16);
        if last != NONE {
            self.entries[last as usize].next = entry;
        }
    }

    /// Takes an entry out of its slot.
    #[inline]
    fn unlink(&mut self, entry: u32) {
        let this = &mut self.entries[entry as usize];
        let (previous, next, index) = (this.previous, this.next, this.slot as usize);
        this.slot = FREE;
        match previous {
            NONE => self.slots[index].first = next,
            previous => self.entries[previous as usize].next = next,
        }
        match next {
            NONE => self.slots[index].last = previous,
            next => self.entries[next as usize].previous = previous,
        }
        if self.slots[index].first == NONE {
            self.slots[index] = EMPTY;
            self.occupied[index / SLOTS] &= !(1 << (index % SLOTS));
        }
    }

    /// Gives the value of an entry that is in no slot, and the entry to the free ones.
    #[inline]
    fn release(&mut self, entry: u32) -> T {
        let this = &mut self.entries[entry as usize];
        this.generation = this.generation.wrapping_add(1);
        this.next = self.free;
        self.free = entry;
        self.len -= 1;
        this.value.take().expect("a timer that is set has a value")
    }

    /// Sends the timers of a slot, whose first time the wheel has come to, to lower rings.
    fn lower(&mut self, ring: usize, slot: usize) {
        let mut entry = std::mem::replace(&mut self.slots[ring * SLOTS + slot], EMPTY).first;
        self.occupied[ring] &= !(1 << slot);
        while entry != NONE {
            let next = self.entries[entry as usize].next;
            self.link(entry);
            entry = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fired(wheel: &mut Wheel<u32>, now: u64) -> Vec<(u64, u32)> {
        std::iter::from_fn(|| wheel.expire(now)).collect()
    }

    #[test]
    fn timers_fire_at_their_nanosecond_and_in_their_order() {
        let mut wheel = Wheel::new(10, 1000);
        for (value, time) in [(1, 5_000_000_000), (2, 1001), (3, 1001), (4, 1_000_000), (5, 999)] {
            wheel.set(time, value).unwrap();
        }
        assert_eq!(wheel.next_ns(), Some(999));
        assert_eq!(fired(&mut wheel, 1000), [(999, 5)]);
        assert_eq!(wheel.next_ns(), Some(1001));
        assert_eq!(fired(&mut wheel, 1001), [(1001, 2), (1001, 3)]);
        assert_eq!(wheel.next_ns(), Some(1_000_000));
        assert_eq!(fired(&mut wheel, 999_999), []);
        // Asked for now and for the past: at once.
        wheel.set(999_999, 6).unwrap();
        wheel.set(7, 7).unwrap();
        assert_eq!(fired(&mut wheel, 999_999), [(999_999, 6), (7, 7)]);
        assert_eq!(fired(&mut wheel, 4_999_999_999), [(1_000_000, 4)]);
        assert_eq!(wheel.next_ns(), Some(5_000_000_000));
        assert_eq!(fired(&mut wheel, u64::MAX), [(5_000_000_000, 1)]);
        assert!(wheel.is_empty() && wheel.next_ns().is_none());
        wheel.set(u64::MAX, 8).unwrap();
        assert_eq!(fired(&mut wheel, u64::MAX), [(u64::MAX, 8)]);
    }

    #[test]
    fn the_largest_time_is_a_time() {
        let mut wheel = Wheel::new(2, 0);
        wheel.set(u64::MAX, 1).unwrap();
        wheel.set(u64::MAX - 1, 2).unwrap();
        assert_eq!(fired(&mut wheel, u64::MAX - 2), []);
        assert_eq!(fired(&mut wheel, u64::MAX), [(u64::MAX - 1, 2), (u64::MAX, 1)]);
    }

    #[test]
    fn a_full_wheel_refuses_and_a_timer_of_before_is_nobodys() {
        let mut wheel = Wheel::new(1, 0);
        let first = wheel.set(10, 'a').unwrap();
        assert_eq!(wheel.set(10, 'b'), Err('b'));
        assert_eq!((wheel.time_ns(first), wheel.cancel(first)), (Some(10), Some('a')));
        // The entry is used again: the old timer does not cancel the new one.
        let second = wheel.set(20, 'c').unwrap();
        assert_eq!((wheel.cancel(first), wheel.time_ns(first)), (None, None));
        assert_eq!(wheel.expire(20), Some((20, 'c')));
        assert_eq!(wheel.cancel(second), None);
    }

    /// A list of timers, looked through from its start.
    #[derive(Default)]
    struct Slow {
        timers: Vec<(u64, u32)>,
    }

    impl Slow {
        fn expire(&mut self, now: u64) -> Vec<(u64, u32)> {
            let mut due: Vec<_> = self.timers.iter().copied().filter(|timer| timer.0 <= now).collect();
            self.timers.retain(|timer| timer.0 > now);
            due.sort_by_key(|timer| timer.0);
            due
        }
    }

    #[derive(Clone, Debug)]
    enum Operation {
        Set(u64),
        Cancel(usize),
        Pass(u64),
    }

    fn operation() -> impl Strategy<Value = Operation> {
        // Delays of all sizes, so that all rings have timers.
        let delay = || (0u32..40, any::<u64>()).prop_map(|(bits, random)| random & ((1 << bits) - 1));
        prop_oneof![
            5 => delay().prop_map(Operation::Set),
            1 => any::<usize>().prop_map(Operation::Cancel),
            3 => delay().prop_map(Operation::Pass),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn a_wheel_does_what_a_sorted_list_does(
            start in any::<u32>(), operations in prop::collection::vec(operation(), 1..300)
        ) {
            let mut now = u64::from(start);
            let mut wheel = Wheel::new(200, now);
            let mut slow = Slow::default();
            let mut timers = Vec::new();
            for (number, operation) in operations.into_iter().enumerate() {
                let number = number as u32;
                match operation {
                    Operation::Set(delay) => match wheel.set(now + delay, number) {
                        Ok(timer) => {
                            slow.timers.push((now + delay, number));
                            timers.push((timer, number));
                        }
                        Err(_) => prop_assert_eq!(slow.timers.len(), 200),
                    },
                    Operation::Cancel(which) if !timers.is_empty() => {
                        let (timer, value) = timers[which % timers.len()];
                        let at = slow.timers.iter().position(|timer| timer.1 == value);
                        prop_assert_eq!(wheel.time_ns(timer), at.map(|at| slow.timers[at].0));
                        prop_assert_eq!(wheel.cancel(timer), at.map(|at| slow.timers.remove(at).1));
                    }
                    Operation::Cancel(_) => {}
                    Operation::Pass(time) => {
                        now += time;
                        prop_assert_eq!(fired(&mut wheel, now), slow.expire(now));
                    }
                }
                prop_assert_eq!(wheel.len(), slow.timers.len());
                let first = slow.timers.iter().map(|timer| timer.0).min();
                prop_assert_eq!(wheel.next_ns().is_some(), first.is_some());
                prop_assert!(wheel.next_ns() <= first);
            }
            prop_assert_eq!(fired(&mut wheel, u64::MAX), slow.expire(u64::MAX));
        }

        #[test]
        fn without_cancellations_the_next_time_is_exact(times in prop::collection::vec(0u64..1 << 40, 1..100)) {
            let mut wheel = Wheel::new(100, 0);
            for time in &times {
                wheel.set(*time, ()).unwrap();
            }
            let mut left = times;
            left.sort();
            for time in left {
                prop_assert_eq!(wheel.next_ns(), Some(time));
                prop_assert_eq!(wheel.expire(time), Some((time, ())));
            }
        }
    }
}
