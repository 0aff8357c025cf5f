//! Who takes what: the parts of the program in each instance.

use super::{Area, Owner};
use crate::sim::flatten::Flat;
use crate::*;
use cranelift_entity::EntityRef;
use cranelift_entity::packed_option::PackedOption;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Numbers of owners: of each instance one for what has no place, then one for each place of its module.
pub(super) struct Owners {
    /// The first number of each instance, and the one after the last.
    first: Vec<u32>,
}

impl Owners {
    pub(super) fn new(flat: &Flat<'_>) -> Owners {
        let mut first = vec![0];
        let mut next = 0;
        for scope in &flat.scopes {
            next += 1 + scope.module.places.len() as u32;
            first.push(next);
        }
        Owners { first }
    }

    pub(super) fn len(&self) -> usize {
        self.first.last().map_or(0, |end| *end as usize)
    }

    /// The number of what comes from a place, in an instance.
    pub(super) fn of(&self, scope: usize, place: PackedOption<PlaceId>) -> u32 {
        self.first[scope] + place.expand().map_or(0, |place| 1 + place.index() as u32)
    }

    /// What owners take, by their names; lines of the source are no parts.
    pub(super) fn named(&self, flat: &Flat<'_>, areas: Vec<Area>) -> BTreeMap<Owner, Area> {
        let mut named: BTreeMap<Owner, Area> = BTreeMap::new();
        let mut areas = areas.into_iter();
        for scope in &flat.scopes {
            let instance = scope.path.trim_end_matches('.');
            let parts = scope.module.places.values().map(|place| match place {
                Place::Part(part) => Arc::clone(part),
                Place::Line { .. } => Arc::default(),
            });
            for (part, area) in [Arc::default()].into_iter().chain(parts).zip(&mut areas) {
                *named.entry(Owner { instance: instance.to_owned(), part }).or_default() += area;
            }
        }
        named
    }
}
