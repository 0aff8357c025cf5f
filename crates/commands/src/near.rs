//! What was probably meant.

use strsim::osa_distance;

/// The known name that is nearest to one that is unknown, if any is near enough. The last part of a dotted name counts,
/// too: `ipv4_lmp` is near to `ingress.ipv4_lpm`.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer names than any sane one are not compared: the cost grows with the product of the lengths.
    const LONGEST: usize = 128;
    if name.is_empty() || name.len() > LONGEST {
        return None;
    }
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .filter(|full| full.len() <= LONGEST)
        .filter_map(|full| {
            let short = full.rsplit('.').next().unwrap_or(full);
            let near = osa_distance(name, full).min(osa_distance(name, short));
            (near <= allowed).then_some((near, full))
        })
        .min_by_key(|(near, _)| *near)
        .map(|(_, full)| full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let known = ["ingress.ipv4_lpm", "ingress.ipv6_lpm", "egress.send_frame"];
        assert_eq!(nearest("ipv4_lmp", known), Some("ingress.ipv4_lpm"));
        assert_eq!(nearest("sendframe", known), Some("egress.send_frame"));
        assert_eq!(nearest("ingres.ipv6_lpm", known), Some("ingress.ipv6_lpm"));
        assert_eq!(nearest("acl", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
    }
}
