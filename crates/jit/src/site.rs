//! Which part of a program a piece of machine code is of, as Cranelift carries it along.

use cranelift_codegen::ir::SourceLoc;
use millrace_midend::Site;
use millrace_pipeline::{ActionId, TableId};
use std::ops::Range;

/// Where the number of a table or action ends in a source location, and the kind begins.
const KIND: u32 = 28;

/// As Cranelift carries it along.
pub(crate) fn location(site: Site) -> SourceLoc {
    let (kind, number) = match site {
        Site::Glue => (0, 0),
        Site::Parser => (1, 0),
        Site::Control => (2, 0),
        Site::Table(table) => (3, table.as_u32()),
        Site::Action(action) => (4, action.as_u32()),
        Site::Deparser => (5, 0),
    };
    SourceLoc::new(kind << KIND | number & ((1 << KIND) - 1))
}

fn from_location(location: SourceLoc) -> Site {
    let number = location.bits() & ((1 << KIND) - 1);
    match location.bits() >> KIND {
        1 => Site::Parser,
        2 => Site::Control,
        3 => Site::Table(TableId::from_u32(number)),
        4 => Site::Action(ActionId::from_u32(number)),
        5 => Site::Deparser,
        _ => Site::Glue,
    }
}

/// The sites of a piece of code, by offset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sites(Vec<(Range<u32>, Site)>);

impl Sites {
    /// From ranges in the order of the code.
    pub(crate) fn new(ranges: impl Iterator<Item = (Range<u32>, SourceLoc)>) -> Sites {
        Sites(ranges.map(|(range, location)| (range, from_location(location))).collect())
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

    #[test]
    fn sites_are_found_by_offset() {
        let sites = [Site::Parser, Site::Table(TableId::from_u32(7)), Site::Action(ActionId::from_u32(3))];
        let ranges = sites.iter().zip([0..4, 4..9, 12..20]).map(|(site, range)| (range, location(*site)));
        let found = Sites::new(ranges);
        let at = [0, 3, 4, 8, 9, 12, 19, 20].map(|offset| found.at(offset));
        let [parser, table, action] = sites;
        assert_eq!(at, [parser, parser, table, table, Site::Glue, action, action, Site::Glue]);
    }
}
