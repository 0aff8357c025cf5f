//! How control texts count priorities.

/// The highest priority: P4Runtime's are positive 32-bit numbers and the largest wins, as in the tables.
const HIGHEST: u32 = i32::MAX as u32;

/// The priority of the tables (the largest wins) for one of bmv2 (the smallest wins); none when it is too large.
pub fn from_bmv2_priority(priority: u64) -> Option<u32> {
    u32::try_from(priority).ok().and_then(|priority| HIGHEST.checked_sub(priority)).filter(|&kept| kept > 0)
}

/// The priority of bmv2 for one of the tables.
pub fn bmv2_priority(kept: u32) -> u32 {
    HIGHEST.saturating_sub(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_priority_of_bmv2_is_the_largest_here() {
        assert!(from_bmv2_priority(0) > from_bmv2_priority(1));
        assert_eq!(bmv2_priority(from_bmv2_priority(77).unwrap()), 77);
        assert_eq!(from_bmv2_priority(u64::from(HIGHEST)), None);
        assert_eq!(from_bmv2_priority(u64::MAX), None);
    }
}
