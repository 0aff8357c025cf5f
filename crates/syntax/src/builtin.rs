//! The include files that come with Millrace: `core.p4` and the architectures, embedded in the binary.

/// Names (`/`-separated, relative to the include folder) and texts, sorted by name.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// The text of an embedded include file.
pub fn builtin_include(name: &str) -> Option<&'static str> {
    FILES.binary_search_by(|(n, _)| (*n).cmp(name)).ok().map(|i| FILES[i].1)
}

/// The names of all embedded include files.
pub fn builtin_includes() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_file_is_found() {
        assert!(builtin_includes().count() > 3);
        assert!(builtin_includes().all(|name| builtin_include(name).is_some()));
        assert!(builtin_include("core.p4").is_some_and(|text| text.contains("packet_in")));
        assert!(builtin_include("no_such.p4").is_none());
    }
}
