//! Words that many findings need: what would put a wrong name right (a near one, one of a few, an include), and counts.

use millrace_syntax::{Diagnostic, nearest};
use num_bigint::BigInt;

/// Most names that are listed when none is near.
const MAX_LISTED: usize = 8;

/// Names that programs use without declaring them, and the file that does.
const INCLUDES: [(&str, &[&str]); 2] = [
    (
        "core.p4",
        &["packet_in", "packet_out", "NoAction", "exact", "ternary", "lpm", "verify", "static_assert"],
    ),
    (
        "v1model.p4",
        &[
            "standard_metadata_t",
            "V1Switch",
            "range",
            "optional",
            "selector",
            "mark_to_drop",
            "verify_checksum",
            "update_checksum",
            "HashAlgorithm",
            "CounterType",
            "MeterType",
        ],
    ),
];

/// Adds the nearest name to a finding about an unknown one; without a near one, all names if they are few. `what` they are:
/// "the members".
pub(crate) fn suggest<'n>(
    found: Diagnostic,
    name: &str,
    known: impl Iterator<Item = &'n str> + Clone,
    what: &str,
) -> Diagnostic {
    if let Some(near) = nearest(name, known.clone()) {
        return found.with_help(format!("`{near}` has a similar name"));
    }
    let names: Vec<String> = known.take(MAX_LISTED + 1).map(|n| format!("`{n}`")).collect();
    match names.split_last() {
        Some((only, [])) => found.with_help(format!("{what}: only {only}")),
        Some((last, rest)) if names.len() <= MAX_LISTED => {
            found.with_help(format!("{what}: {} and {last}", rest.join(", ")))
        }
        _ => found,
    }
}

/// A number as a message shows it: to write a long one in decimal takes time that grows with its square.
pub(crate) fn number(value: &BigInt) -> String {
    match value.bits() {
        0..=512 => value.to_string(),
        bits => format!("a number of {bits} bits"),
    }
}

/// A number with its noun: `1 key`, `2 keys`.
pub(crate) fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// The file that declares a name programs often use without including it.
pub(crate) fn included_by(name: &str) -> Option<&'static str> {
    INCLUDES.iter().find(|(_, names)| names.contains(&name)).map(|(file, _)| *file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_syntax::Span;

    #[test]
    fn a_few_names_are_listed_and_many_are_not() {
        let help = |names: &[&str]| {
            let found = Diagnostic::error("test", Span::default(), "");
            suggest(found, "far_away", names.iter().copied(), "the members").help
        };
        assert_eq!(help(&["x"]).as_deref(), Some("the members: only `x`"));
        assert_eq!(help(&["x", "y", "z"]).as_deref(), Some("the members: `x`, `y` and `z`"));
        assert_eq!(help(&["x", "far_awai"]).as_deref(), Some("`far_awai` has a similar name"));
        assert_eq!(help(&["x"; 9]), None);
        assert_eq!(help(&[]), None);
    }

    #[test]
    fn names_of_the_included_files_are_known() {
        assert_eq!(included_by("lpm"), Some("core.p4"));
        assert_eq!(included_by("standard_metadata_t"), Some("v1model.p4"));
        assert_eq!(included_by("lpm6"), None);
    }
}
