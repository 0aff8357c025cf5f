//! Ids and aliases: two passes, so that both depend on the set of names and not on their order.

use std::collections::{BTreeMap, HashMap, HashSet};

/// Names a resource: one byte for its kind, three for its name.
pub(super) type Id = u32;

/// The kinds of resources with their first byte (`P4Ids.Prefix` of the P4Runtime specification).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Kind {
    Action = 0x01,
    Table = 0x02,
    ValueSet = 0x03,
    ControllerHeader = 0x04,
    ActionProfile = 0x11,
    Counter = 0x12,
    DirectCounter = 0x13,
    Meter = 0x14,
    DirectMeter = 0x15,
    Register = 0x16,
    Digest = 0x17,
}

/// The names of all resources; [`Symbols::assign`] turns them into ids.
#[derive(Default)]
pub(super) struct Symbols {
    by_kind: BTreeMap<Kind, BTreeMap<String, Option<u32>>>,
}

impl Symbols {
    /// A resource with the number of its `@id`, if it has one. The first of a name counts.
    pub(super) fn add(&mut self, kind: Kind, name: &str, id: Option<u32>) {
        self.by_kind.entry(kind).or_default().entry(name.to_owned()).or_insert(id);
    }

    /// Gives every resource its id and alias.
    pub(super) fn assign(self) -> Ids {
        let prefix = |kind: Kind| u32::from(kind as u8) << 24;
        let mut ids = HashMap::new();
        let mut taken = HashSet::new();
        for (&kind, names) in &self.by_kind {
            for (name, id) in names {
                let Some(id) = id else { continue };
                let id = (id & 0x00ff_ffff) | prefix(kind);
                if taken.insert(id) {
                    ids.insert((kind, name.clone()), id);
                }
            }
        }
        for (&kind, names) in &self.by_kind {
            for name in names.keys() {
                if ids.contains_key(&(kind, name.clone())) {
                    continue;
                }
                let mut value = one_at_a_time(name.as_bytes());
                // A program has far fewer than 2^24 names (its size is limited), so there is always a free one.
                let id = loop {
                    let id = prefix(kind) | (value & 0x00ff_ffff);
                    if taken.insert(id) {
                        break id;
                    }
                    value = value.wrapping_add(1);
                };
                ids.insert((kind, name.clone()), id);
            }
        }
        let names: HashSet<&str> =
            self.by_kind.values().flat_map(|names| names.keys().map(String::as_str)).collect();
        let mut suffixes: HashMap<&str, u32> = HashMap::new();
        for name in &names {
            for suffix in suffixes_of(name) {
                *suffixes.entry(suffix).or_default() += 1;
            }
        }
        let aliases = names
            .iter()
            .map(|name| {
                let alias = suffixes_of(name).find(|suffix| suffixes[suffix] < 2).unwrap_or(name);
                ((*name).to_owned(), alias.to_owned())
            })
            .collect();
        Ids { ids, aliases }
    }
}

/// The suffixes of a name at its dots, shortest first.
fn suffixes_of(name: &str) -> impl Iterator<Item = &str> {
    name.rmatch_indices('.').map(|(dot, _)| &name[dot + 1..]).chain(std::iter::once(name))
}

/// The ids and aliases of a program.
#[derive(Default)]
pub(super) struct Ids {
    ids: HashMap<(Kind, String), Id>,
    aliases: HashMap<String, String>,
}

impl Ids {
    /// The id of a resource; 0, which P4Runtime keeps free, for one that was not added.
    pub(super) fn id(&self, kind: Kind, name: &str) -> Id {
        self.ids.get(&(kind, name.to_owned())).copied().unwrap_or(0)
    }

    /// The alias of a resource.
    pub(super) fn alias(&self, name: &str) -> String {
        self.aliases.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }
}

/// Bob Jenkins' one-at-a-time hash.
fn one_at_a_time(bytes: &[u8]) -> u32 {
    let mut hash = 0u32;
    for &byte in bytes {
        hash = hash.wrapping_add(byte.into());
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

/// Numbers of fields and parameters within their owner: those given by `@id`, the others 1, 2, 3, ... around them.
pub(super) fn field_ids(given: &[Option<u32>]) -> Vec<u32> {
    let mut taken: HashSet<u32> = given.iter().flatten().copied().collect();
    let mut next = 1;
    given
        .iter()
        .map(|id| {
            if let Some(id) = id {
                next += 1;
                return *id;
            }
            while taken.contains(&next) {
                next += 1;
            }
            taken.insert(next);
            next
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_that_p4c_recorded() {
        let mut symbols = Symbols::default();
        symbols.add(Kind::Action, "NoAction", None);
        symbols.add(Kind::Action, "IngressI.drop", None);
        symbols.add(Kind::Table, "IngressI.indirect", None);
        symbols.add(Kind::ActionProfile, "ap", None);
        symbols.add(Kind::Action, "ingress.given", Some(5));
        let ids = symbols.assign();
        assert_eq!(ids.id(Kind::Action, "NoAction"), 21257015);
        assert_eq!(ids.id(Kind::Action, "IngressI.drop"), 23455883);
        assert_eq!(ids.id(Kind::Table, "IngressI.indirect"), 46872340);
        assert_eq!(ids.id(Kind::ActionProfile, "ap"), 294074782);
        assert_eq!(ids.id(Kind::Action, "ingress.given"), 0x0100_0005);
    }

    #[test]
    fn an_alias_is_the_shortest_suffix_of_its_own() {
        let mut symbols = Symbols::default();
        symbols.add(Kind::Action, "ingress.a.drop", None);
        symbols.add(Kind::Action, "ingress.b.drop", None);
        symbols.add(Kind::Table, "ingress.t", None);
        symbols.add(Kind::Table, "t", None);
        let ids = symbols.assign();
        assert_eq!(ids.alias("ingress.a.drop"), "a.drop");
        assert_eq!(ids.alias("ingress.t"), "ingress.t");
        assert_eq!(ids.alias("t"), "t");
    }

    #[test]
    fn fields_count_around_given_numbers() {
        assert_eq!(field_ids(&[None, None]), [1, 2]);
        assert_eq!(field_ids(&[Some(2), None, None]), [2, 3, 4]);
        assert_eq!(field_ids(&[None, Some(1), None]), [2, 1, 3]);
    }
}
