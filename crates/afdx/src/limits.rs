//! Values with written limits, and the one error for what exceeds them.

use std::fmt;

/// A value is outside of its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitError {
    /// What has the value, as in `BAG`.
    pub what: &'static str,
    /// The value.
    pub value: u64,
    /// The least that is allowed.
    pub least: u64,
    /// The most that is allowed.
    pub most: u64,
    /// The unit of the three, or nothing for a count.
    pub unit: &'static str,
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LimitError { what, value, least, most, unit } = self;
        let space = if unit.is_empty() { "" } else { " " };
        write!(f, "{what} is {value}{space}{unit}: {least} to {most}{space}{unit} is allowed")
    }
}

impl std::error::Error for LimitError {}

/// Checks a value.
///
/// # Errors
/// [`LimitError`] outside of the limits.
pub(crate) fn within(
    what: &'static str,
    value: u64,
    (least, most): (u64, u64),
    unit: &'static str,
) -> Result<u64, LimitError> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(LimitError { what, value, least, most, unit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_belong_to_what_is_allowed() {
        let check = |value| within("BAG", value, (10, 20), "ns");
        assert_eq!((check(10), check(20)), (Ok(10), Ok(20)));
        assert_eq!(check(9).unwrap_err().to_string(), "BAG is 9 ns: 10 to 20 ns is allowed");
        assert_eq!(
            within("sub-VLs", 5, (1, 4), "").unwrap_err().to_string(),
            "sub-VLs is 5: 1 to 4 is allowed"
        );
    }
}
