//! Paths of requests: what they may be, and which leaves they mean.

use crate::proto::{Path, PathElem};
use crate::tree::Elem;
use tonic::Status;

/// Most paths of one request.
pub const MAX_PATHS: usize = 256;
/// Most elements of one path, with those of its prefix.
pub const MAX_ELEMENTS: usize = 32;
/// Most keys of one element.
const MAX_KEYS: usize = 16;
/// The element that stands for any number of elements.
const ANY_DEPTH: &str = "...";
/// The element, or the value of a key, that stands for any one.
const ANY: &str = "*";

/// A path that was read: the elements of its prefix, then its own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pattern {
    elements: Vec<PathElem>,
}

/// Refuses a request with too many paths.
pub(crate) fn check_count(paths: usize) -> Result<(), Status> {
    match paths <= MAX_PATHS {
        true => Ok(()),
        false => Err(Status::resource_exhausted(format!("a request has at most {MAX_PATHS} paths"))),
    }
}

impl Pattern {
    /// Reads a path below a prefix.
    pub(crate) fn read(prefix: Option<&Path>, path: &Path) -> Result<Pattern, Status> {
        let invalid = |reason: String| Err(Status::invalid_argument(reason));
        for part in prefix.into_iter().chain([path]) {
            #[allow(deprecated, reason = "to say that it is not understood")]
            if !part.element.is_empty() {
                return invalid("a path is made of `elem`; `element` is of gNMI before 0.4".into());
            }
            if !["", "openconfig"].contains(&part.origin.as_str()) {
                return invalid(format!("there is no origin but openconfig: `{}`", short(&part.origin)));
            }
        }
        let elements: Vec<PathElem> =
            prefix.iter().flat_map(|prefix| &prefix.elem).chain(&path.elem).cloned().collect();
        if elements.len() > MAX_ELEMENTS {
            return invalid(format!("a path has at most {MAX_ELEMENTS} elements"));
        }
        match elements.iter().find(|element| element.name.is_empty() || element.key.len() > MAX_KEYS) {
            Some(element) if element.name.is_empty() => invalid("an element of a path has no name".into()),
            Some(element) => invalid(format!("`{}` has more than {MAX_KEYS} keys", short(&element.name))),
            None => Ok(Pattern { elements }),
        }
    }

    /// The length of the shortest beginning of a leaf's path that this means; none if it does not mean the leaf, nor
    /// anything that has it.
    pub(crate) fn node(&self, leaf: &[Elem]) -> Option<usize> {
        debug_assert!(leaf.len() < 63, "a bit for each length");
        let all = (1u64 << (leaf.len() + 1)) - 1;
        // The bit of each length of the leaf's beginning that the elements until now can stand for.
        let mut ends = 1u64;
        for element in &self.elements {
            if ends == 0 {
                return None;
            }
            if element.name == ANY_DEPTH {
                ends = !0 << ends.trailing_zeros() & all;
                continue;
            }
            let goes_on = |(at, own): (usize, &Elem)| {
                (ends >> at & 1 == 1 && is_met(element, own)).then_some(2u64 << at)
            };
            ends = leaf.iter().enumerate().filter_map(goes_on).sum();
        }
        (ends != 0).then_some(ends.trailing_zeros() as usize)
    }

    /// It with any entry in place of those that it names.
    pub(crate) fn of_any_entry(&self) -> Pattern {
        let mut elements = self.elements.clone();
        for value in elements.iter_mut().flat_map(|element| element.key.values_mut()) {
            ANY.clone_into(value);
        }
        Pattern { elements }
    }

    /// Whether it can mean several nodes.
    pub(crate) fn has_wildcards(&self) -> bool {
        let any = |text: &str| text == ANY || text == ANY_DEPTH;
        self.elements.iter().any(|element| any(&element.name) || element.key.values().any(|value| any(value)))
    }

    /// It as text, for messages.
    pub(crate) fn text(&self) -> String {
        if self.elements.is_empty() {
            return "/".into();
        }
        let mut text = String::new();
        for element in &self.elements {
            text.push('/');
            text.push_str(short(&element.name));
            let mut keys: Vec<_> = element.key.iter().collect();
            keys.sort();
            for (key, value) in keys {
                text.push_str(&format!("[{}={}]", short(key), short(value)));
            }
        }
        text
    }

    /// Its elements.
    pub(crate) fn elements(&self) -> &[PathElem] {
        &self.elements
    }
}

/// The beginning of what a client wrote.
fn short(text: &str) -> &str {
    let end = text.char_indices().nth(64).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// Whether an element of a path may stand for one of a leaf's. Keys that are left out may have any value.
fn is_met(wanted: &PathElem, own: &Elem) -> bool {
    let is_own = |(key, value): (&String, &String)| {
        own.key.as_ref().is_some_and(|(name, own)| name == key && (value == ANY || **own == **value))
    };
    (wanted.name == ANY || wanted.name == own.name) && wanted.key.iter().all(is_own)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::collections::HashMap;

    /// A path as people write it.
    pub(crate) fn path(text: &str) -> Path {
        let elem = text.split('/').filter(|part| !part.is_empty()).map(|part| {
            let (name, keys) = part.split_once('[').unwrap_or((part, ""));
            let pairs = keys.trim_end_matches(']').split("][").filter_map(|key| key.split_once('='));
            let key: HashMap<_, _> = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
            PathElem { name: name.to_owned(), key }
        });
        Path { elem: elem.collect(), ..Path::default() }
    }

    fn node(pattern: &str) -> Option<usize> {
        let plain = |name| Elem { name, key: None };
        let list = Elem { name: "interface", key: Some(("name", "eth0".into())) };
        let leaf = [plain("interfaces"), list, plain("state"), plain("counters"), plain("in-octets")];
        Pattern::read(None, &path(pattern)).unwrap().node(&leaf)
    }

    #[test]
    fn paths_mean_a_node_and_all_below() {
        for (pattern, expected) in [
            ("/", Some(0)),
            ("/interfaces", Some(1)),
            ("/interfaces/interface", Some(2)),
            ("/interfaces/interface[name=eth0]/state", Some(3)),
            ("/interfaces/interface[name=*]/state/counters/in-octets", Some(5)),
            ("/interfaces/interface/*/counters", Some(4)),
            ("/interfaces/interface/*", Some(3)),
            ("/interfaces/interface/...", Some(2)),
            ("/.../in-octets", Some(5)),
            ("/interfaces/.../counters", Some(4)),
            ("/.../...", Some(0)),
            ("/.../interface[name=eth0]/.../in-octets", Some(5)),
            ("/interfaces/interface[name=eth1]/state", None),
            ("/interfaces/interface[id=eth0]", None),
            ("/interfaces[name=eth0]", None),
            ("/interfaces/interface/config", None),
            ("/interfaces/interface/state/counters/in-octets/value", None),
            ("/.../out-octets", None),
        ] {
            assert_eq!(node(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn paths_that_are_refused() {
        let refused = |path: &Path| Pattern::read(None, path).unwrap_err().message().to_owned();
        let long = "/x".repeat(MAX_ELEMENTS);
        assert!(Pattern::read(None, &path(&long)).is_ok());
        assert_eq!(
            Pattern::read(Some(&path("/y")), &path(&long)).unwrap_err().message(),
            "a path has at most 32 elements"
        );
        assert_eq!(
            refused(&Path { origin: "cli".into(), ..path("/x") }),
            "there is no origin but openconfig: `cli`"
        );
        let nameless = Path { elem: vec![PathElem::default()], ..Path::default() };
        assert_eq!(refused(&nameless), "an element of a path has no name");
        let mut many = path("/x");
        many.elem[0].key = (0..17).map(|key| (key.to_string(), String::new())).collect();
        assert_eq!(refused(&many), "`x` has more than 16 keys");
        #[allow(deprecated)]
        let old = Path { element: vec!["interfaces".into()], ..Path::default() };
        assert!(refused(&old).contains("before 0.4"));
        assert!(check_count(MAX_PATHS).is_ok() && check_count(MAX_PATHS + 1).is_err());
    }
}
