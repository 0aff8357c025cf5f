//! Which name is meant by a mistyped one.

/// The most pairs of letters that are compared for one mistyped name. Where there are more, none is found.
const MAX_STEPS: usize = 1 << 20;

/// The most letters of a name that are looked at.
const MAX_LETTERS: usize = 64;

/// The candidate nearest to a mistyped name, if any is near enough to be meant. In names of one or two letters every other is
/// near, so only the case may differ.
pub fn nearest<'n>(name: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let limit = match name.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        length => length / 3,
    };
    let length = name.len();
    // Each insertion or deletion changes the length by one letter, of at most four bytes.
    let near = |c: &&str| *c != name && c.len().abs_diff(length) <= 4 * limit;
    let mut steps = 0;
    let mut best: Option<(usize, &'n str)> = None;
    for candidate in candidates.filter(near) {
        steps += candidate.len().min(MAX_LETTERS) * length.min(MAX_LETTERS);
        if steps > MAX_STEPS {
            return None;
        }
        let found = (edit_distance(name, candidate), candidate);
        if found.0 <= limit && best.is_none_or(|best| found < best) {
            best = Some(found);
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours between two names; letters that differ in case only count as
/// equal.
fn edit_distance(a: &str, b: &str) -> usize {
    let letters = |s: &str| s.chars().take(MAX_LETTERS).map(|c| c.to_ascii_lowercase()).collect::<String>();
    strsim::osa_distance(&letters(a), &letters(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["ethernet", "ipv4", "tcp", "a"];
        assert_eq!(nearest("etherent", names.into_iter()), Some("ethernet"));
        assert_eq!(nearest("ipv5", names.into_iter()), Some("ipv4"));
        assert_eq!(nearest("tpc", names.into_iter()), Some("tcp"));
        assert_eq!(nearest("udp_header", names.into_iter()), None);
        assert_eq!(nearest("TCP", names.into_iter()), Some("tcp"));
        assert_eq!(nearest("b", names.into_iter()), None);
        assert_eq!(nearest("A", names.into_iter()), Some("a"));
    }
}
