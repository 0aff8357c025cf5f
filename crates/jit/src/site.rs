//! What a piece of machine code was made for, as Cranelift carries it along.

use cranelift_codegen::ir::SourceLoc;
use millrace_midend::Site;
use millrace_midend::machine::Origin;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The origins of a function's code, each with a number that Cranelift carries along as a source location.
///
/// Number 0 is [`Origin::default`], and comes first: Cranelift counts the others from the first one that it is given.
#[derive(Clone, Debug)]
pub(crate) struct Origins {
    all: Vec<Origin>,
    numbers: FxHashMap<Origin, u32>,
}

impl Default for Origins {
    fn default() -> Origins {
        let first = Origin::default();
        Origins { all: vec![first], numbers: FxHashMap::from_iter([(first, 0)]) }
    }
}

impl Origins {
    /// As Cranelift carries it along.
    pub(crate) fn location(&mut self, origin: Origin) -> SourceLoc {
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(origin).or_insert(next);
        if number == next {
            self.all.push(origin);
        }
        SourceLoc::new(number)
    }

    /// The origin of what Cranelift says was at a location; the first one where it says nothing.
    pub(crate) fn of(&self, location: SourceLoc) -> Origin {
        self.all.get(location.bits() as usize).copied().unwrap_or_default()
    }
}

/// The sites of a piece of code, by offset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sites(Vec<(Range<u32>, Site)>);

impl Sites {
    /// From ranges in the order of the code.
    pub(crate) fn new(ranges: impl Iterator<Item = (Range<u32>, Site)>) -> Sites {
        Sites(ranges.collect())
    }

    pub(crate) fn at(&self, offset: u32) -> Site {
        let after = self.0.partition_point(|(range, _)| range.start <= offset);
        let found = after.checked_sub(1).and_then(|at| self.0.get(at));
        found.filter(|(range, _)| range.contains(&offset)).map_or(Site::Glue, |(_, site)| *site)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_pipeline::{ActionId, TableId};

    #[test]
    fn sites_are_found_by_offset() {
        let sites = [Site::Parser, Site::Table(TableId::from_u32(7)), Site::Action(ActionId::from_u32(3))];
        let ranges = sites.iter().zip([0..4, 4..9, 12..20]).map(|(site, range)| (range, *site));
        let found = Sites::new(ranges);
        let at = [0, 3, 4, 8, 9, 12, 19, 20].map(|offset| found.at(offset));
        let [parser, table, action] = sites;
        assert_eq!(at, [parser, parser, table, table, Site::Glue, action, action, Site::Glue]);
    }

    #[test]
    fn an_origin_has_one_number() {
        let mut origins = Origins::default();
        let parser = Origin { site: Site::Parser, ..Origin::default() };
        let numbers = [parser, Origin::default(), parser].map(|origin| origins.location(origin).bits());
        assert_eq!(numbers, [1, 0, 1]);
        assert_eq!(origins.of(SourceLoc::new(1)), parser);
        assert_eq!(origins.of(SourceLoc::default()), Origin::default());
    }
}
