//! Sequence numbers of a virtual link: 0 after a reset of the sender, then 1 to 255 and 1 again.

/// The number of the first frame after a reset.
pub const RESET_NUMBER: u8 = 0;

/// Numbers that come again and again: 1 to 255.
pub const SEQUENCE_CYCLE: u8 = 255;

/// The number that follows.
pub fn next_number(number: u8) -> u8 {
    match number {
        u8::MAX => 1,
        _ => number + 1,
    }
}

/// How many steps of [`next_number`] lead from one number to another, 0 to 255; none lead to 0 except from 0 itself.
pub fn steps_between(from: u8, to: u8) -> Option<u8> {
    match (from, to) {
        (0, 0) => Some(0),
        (_, 0) => None,
        // From 0 all are ahead: 1 is one step, 255 are 255.
        (0, _) => Some(to),
        // 1 to 255 are a cycle of 255 numbers.
        _ if to >= from => Some(to - from),
        _ => Some(SEQUENCE_CYCLE - (from - to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_by_hand() {
        let follow = [(0, 1), (1, 2), (127, 128), (254, 255), (255, 1)];
        for (number, next) in follow {
            assert_eq!(next_number(number), next, "after {number}");
        }
        let steps = [
            (0, 0, Some(0)),
            (0, 1, Some(1)),
            (0, 255, Some(255)),
            (7, 0, None),
            (7, 7, Some(0)),
            (7, 9, Some(2)),
            (254, 1, Some(2)),
            (255, 1, Some(1)),
            (255, 2, Some(2)),
            (1, 255, Some(254)),
            (2, 1, Some(254)),
        ];
        for (from, to, expected) in steps {
            assert_eq!(steps_between(from, to), expected, "from {from} to {to}");
        }
    }

    #[test]
    fn steps_are_those_of_next_number() {
        for from in 0..=u8::MAX {
            let mut number = from;
            // From 0 the cycle is entered, and each of its numbers is met.
            for steps in 0..=254u8 {
                assert_eq!(steps_between(from, number), Some(steps));
                number = next_number(number);
            }
        }
    }
}
