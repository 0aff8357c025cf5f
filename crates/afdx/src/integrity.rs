//! Integrity checking: whether the sequence number of a frame is one that may follow on its network.
//!
//! Each network is checked for itself, before [redundancy management](crate::Redundancy): a frame is valid if its number is one or two
//! steps after the one before on this VL and network, so that a single lost frame is not taken for an error. 0 is valid at any time, since
//! the sender may have been reset; so is the first frame after a reset of the receiver. The number before is that of the frame that was
//! received last, valid or not: else a receiver that missed three frames would refuse all of the following ones.
//!
//! | before | valid | why |
//! | --- | --- | --- |
//! | nothing | 0 to 255 | the receiver was reset |
//! | 0 | 0, 1, 2 | |
//! | 7 | 0, 8, 9 | |
//! | 254 | 0, 255, 1 | 255 is followed by 1 |
//! | 255 | 0, 1, 2 | |
//!
//! The standard's text is not public, and public descriptions leave something open, so the window, the meaning of 0 and of "before" are
//! settings.

use crate::limits::{LimitError, within};
use crate::sequence::{RESET_NUMBER, steps_between};

/// Largest window in numbers: half of them, so that what is ahead and what is old differ.
pub const MAX_WINDOW: u8 = 127;

/// Which frame the next one is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Previous {
    /// The one received last, valid or not.
    #[default]
    Received,
    /// The one last found valid.
    Valid,
}

/// How numbers are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegrityRule {
    window: u8,
    /// Which frame the next one is compared with.
    pub previous: Previous,
    /// Whether 0 is valid after any number.
    pub accepts_reset: bool,
}

impl Default for IntegrityRule {
    /// A window of 2, compared with the frame received last, 0 is valid after any number.
    fn default() -> IntegrityRule {
        IntegrityRule { window: 2, previous: Previous::Received, accepts_reset: true }
    }
}

impl IntegrityRule {
    /// The same with another window: so many numbers after the one before are valid.
    ///
    /// # Errors
    /// [`LimitError`] for 0 and above [`MAX_WINDOW`].
    pub fn with_window(self, window: u8) -> Result<IntegrityRule, LimitError> {
        within("the window of integrity checking", window.into(), (1, MAX_WINDOW.into()), "numbers")?;
        Ok(IntegrityRule { window, ..self })
    }

    /// So many numbers after the one before are valid.
    pub fn window(&self) -> u8 {
        self.window
    }
}

/// What integrity checking says of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integrity {
    /// It is the first one after a reset of the receiver: valid.
    First,
    /// Its number is 0, the sender was reset: valid.
    Reset,
    /// It is in the window, after so many numbers that have not come: valid.
    InWindow {
        /// Numbers left out.
        missed: u8,
    },
    /// Its number is neither: not valid.
    OutOfWindow,
}

impl Integrity {
    /// Whether the frame goes on.
    pub fn is_valid(self) -> bool {
        self != Integrity::OutOfWindow
    }
}

/// What was said so far of the frames of a VL on a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntegrityCounters {
    /// Valid frames: those in the window, resets, and first ones.
    pub valid: u64,
    /// Those of them with the number 0.
    pub resets: u64,
    /// Numbers that were left out before valid frames: frames lost on this network.
    pub missed: u64,
    /// Frames that were not valid.
    pub out_of_window: u64,
}

/// Integrity checking of one VL on one network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntegrityChecker {
    previous: Option<u8>,
    counters: IntegrityCounters,
}

impl IntegrityChecker {
    /// Checks the number of a frame.
    pub fn check(&mut self, rule: &IntegrityRule, number: u8) -> Integrity {
        let verdict = self.verdict(rule, number);
        if verdict.is_valid() || rule.previous == Previous::Received {
            self.previous = Some(number);
        }
        match verdict {
            Integrity::OutOfWindow => self.counters.out_of_window += 1,
            _ => self.counters.valid += 1,
        }
        match verdict {
            Integrity::Reset => self.counters.resets += 1,
            Integrity::InWindow { missed } => self.counters.missed += u64::from(missed),
            Integrity::First | Integrity::OutOfWindow => {}
        }
        verdict
    }

    fn verdict(&self, rule: &IntegrityRule, number: u8) -> Integrity {
        let Some(previous) = self.previous else { return Integrity::First };
        if number == RESET_NUMBER && rule.accepts_reset {
            return Integrity::Reset;
        }
        match steps_between(previous, number) {
            Some(steps) if (1..=rule.window).contains(&steps) => Integrity::InWindow { missed: steps - 1 },
            _ => Integrity::OutOfWindow,
        }
    }

    /// As after a reset of the receiver; what was counted stays.
    pub fn reset(&mut self) {
        self.previous = None;
    }

    /// What has happened so far.
    pub fn counters(&self) -> IntegrityCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that are valid after another one.
    fn valid_after(rule: &IntegrityRule, previous: Option<u8>) -> Vec<u8> {
        let checker = IntegrityChecker { previous, counters: IntegrityCounters::default() };
        (0..=255).filter(|number| checker.verdict(rule, *number).is_valid()).collect()
    }

    #[test]
    fn the_table_of_the_window() {
        let rule = IntegrityRule::default();
        assert_eq!(valid_after(&rule, None).len(), 256);
        assert_eq!(valid_after(&rule, Some(0)), [0, 1, 2]);
        assert_eq!(valid_after(&rule, Some(7)), [0, 8, 9]);
        assert_eq!(valid_after(&rule, Some(253)), [0, 254, 255]);
        assert_eq!(valid_after(&rule, Some(254)), [0, 1, 255]);
        assert_eq!(valid_after(&rule, Some(255)), [0, 1, 2]);
        let strict = IntegrityRule { accepts_reset: false, ..rule.with_window(1).unwrap() };
        assert_eq!(valid_after(&strict, Some(0)), [1]);
        assert_eq!(valid_after(&strict, Some(255)), [1]);
        let error = rule.with_window(128).unwrap_err().to_string();
        assert_eq!(error, "the window of integrity checking is 128 numbers: 1 to 127 numbers is allowed");
    }

    #[test]
    fn sequences_by_hand() {
        use Integrity::{First, InWindow, OutOfWindow, Reset};
        let next = InWindow { missed: 0 };
        // 14: 13 was lost. 17: 15 and 16 were lost, too many. 18 follows the one received last. 18 again is a copy. 200 is wrong, and so
        // 19 is after it; 20 follows 19. 0: the sender was reset, and again. 2: 1 was lost.
        let numbers = [10, 11, 12, 14, 17, 18, 18, 200, 19, 20, 0, 0, 2];
        let received = [
            First,
            next,
            next,
            InWindow { missed: 1 },
            OutOfWindow,
            next,
            OutOfWindow,
            OutOfWindow,
            OutOfWindow,
            next,
            Reset,
            Reset,
            InWindow { missed: 1 },
        ];
        let rule = IntegrityRule::default();
        let mut checker = IntegrityChecker::default();
        assert_eq!(numbers.map(|number| checker.check(&rule, number)), received);
        let counters = IntegrityCounters { valid: 9, resets: 2, missed: 2, out_of_window: 4 };
        assert_eq!(checker.counters(), counters);
        // Compared with the last valid one, 17 after 14 is refused, and so is all that follows it.
        let rule = IntegrityRule { previous: Previous::Valid, ..rule };
        let mut checker = IntegrityChecker::default();
        let verdicts = [14, 17, 18, 15].map(|number| checker.check(&rule, number));
        assert_eq!(verdicts, [First, OutOfWindow, OutOfWindow, next]);
    }

    #[test]
    fn after_a_reset_of_the_receiver_any_number_is_valid() {
        let rule = IntegrityRule::default();
        let mut checker = IntegrityChecker::default();
        checker.check(&rule, 5);
        assert_eq!(checker.check(&rule, 99), Integrity::OutOfWindow);
        checker.reset();
        assert_eq!(checker.check(&rule, 50), Integrity::First);
    }
}
