//! Which name is meant by a mistyped one.

/// The candidate nearest to a mistyped name, if any is near enough to be meant. In names of one or two letters every other is
/// near, so only the case may differ.
pub fn nearest<'n>(name: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let limit = match name.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        length => length / 3,
    };
    let distances = candidates.filter(|c| *c != name).map(|c| (edit_distance(name, c), c));
    distances.filter(|(d, _)| *d <= limit).min().map(|(_, c)| c)
}

/// Insertions, deletions, replacements and swaps of neighbours between two names; letters that differ in case only count as
/// equal.
fn edit_distance(a: &str, b: &str) -> usize {
    let letters = |s: &str| -> Vec<char> { s.chars().take(64).map(|c| c.to_ascii_lowercase()).collect() };
    let (a, b) = (letters(a), letters(b));
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1; b.len() + 1];
        for j in 0..b.len() {
            let mut best = (last[j] + usize::from(a[i] != b[j])).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before[j - 1] + 1);
            }
            row[j + 1] = best;
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
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
