//! What an expected packet looks like.

/// Hexadecimal digits, of which some may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// The digits; none: any.
    digits: Vec<Option<u8>>,
    /// Whether nothing may follow.
    exact_length: bool,
}

impl Pattern {
    /// From its digits and whether a `$` ended it.
    pub(crate) fn new(digits: Vec<Option<u8>>, exact_length: bool) -> Pattern {
        Pattern { digits, exact_length }
    }

    /// Bytes that it describes, the last one perhaps by half.
    pub fn length(&self) -> usize {
        self.digits.len().div_ceil(2)
    }

    /// Whether nothing may follow.
    pub fn exact_length(&self) -> bool {
        self.exact_length
    }

    /// A byte as two digits, `*` for those that may be anything; nothing after its end.
    pub fn byte_text(&self, index: usize) -> String {
        let digits = self.digits.get(index * 2..).unwrap_or_default();
        digits
            .iter()
            .take(2)
            .map(|digit| digit.map_or('*', |d| char::from_digit(d.into(), 16).unwrap_or('?')))
            .collect()
    }

    /// Whether a byte fits.
    pub fn fits(&self, index: usize, byte: u8) -> bool {
        let halves = [byte >> 4, byte & 0xf];
        let digits = self.digits.get(index * 2..).unwrap_or_default();
        digits.iter().zip(halves).all(|(digit, half)| digit.is_none_or(|digit| digit == half))
    }

    /// Whether a packet fits.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        let long_enough = bytes.len() >= self.length();
        let short_enough = !self.exact_length || bytes.len() <= self.length();
        long_enough && short_enough && bytes.iter().enumerate().all(|(index, byte)| self.fits(index, *byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        let digits = text.trim_end_matches('$').chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect();
        Pattern::new(digits, text.ends_with('$'))
    }

    #[test]
    fn stars_match_digits_and_the_end_is_open() {
        let open = pattern("0a*1");
        assert!(open.matches(&[0x0a, 0xf1]) && open.matches(&[0x0a, 0x01, 0xff]));
        assert!(!open.matches(&[0x0a, 0xf2]) && !open.matches(&[0x0a]));
        let closed = pattern("0a*1$");
        assert!(closed.matches(&[0x0a, 0xf1]) && !closed.matches(&[0x0a, 0x01, 0xff]));
        assert_eq!(open.byte_text(1), "*1");
        let half = pattern("0af");
        assert!(half.matches(&[0x0a, 0xf7]) && !half.matches(&[0x0a, 0x07]) && !half.matches(&[0x0a]));
        assert!(pattern("").matches(&[]) && !pattern("$").matches(&[1]));
    }
}
