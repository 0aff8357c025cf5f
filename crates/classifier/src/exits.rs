//! Where frames of virtual ports leave the device.

use crate::exact::Exact;
use crate::rule::Target;
use crate::tags::TagsOut;
use std::collections::HashMap;
use std::fmt;

/// A physical port that frames of a virtual port leave through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exit {
    /// The physical port.
    pub physical: u16,
    /// What becomes of tags there.
    pub tags: TagsOut,
}

/// The exits of all virtual ports, each of which has none, one or several.
#[derive(Debug)]
pub struct TagMap {
    exits: Box<[Exit]>,
    /// The part of `exits` of each target.
    parts: Exact<(u32, u32)>,
}

/// Frames of one virtual port would leave through one physical port with two kinds of tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmbiguousExit {
    /// The virtual port.
    pub target: Target,
    /// The physical port.
    pub physical: u16,
}

impl TagMap {
    /// A map of these exits, in their order for each target. One that is there again counts once: rules for several
    /// addresses of one VLAN have the same exit.
    ///
    /// # Errors
    /// [`AmbiguousExit`] when two exits differ only in what becomes of tags.
    pub fn new(pairs: &[(Target, Exit)]) -> Result<TagMap, AmbiguousExit> {
        let mut seen = HashMap::new();
        let mut kept = Vec::new();
        for (target, exit) in pairs {
            match seen.insert((*target, exit.physical), exit.tags) {
                None => kept.push((*target, *exit)),
                Some(before) if before == exit.tags => {}
                Some(_) => return Err(AmbiguousExit { target: *target, physical: exit.physical }),
            }
        }
        kept.sort_by_key(|(target, _)| *target);
        let mut parts: Vec<(u64, (u32, u32))> = Vec::new();
        for (at, (target, _)) in (0..).zip(&kept) {
            match parts.last_mut() {
                Some((last, (_, to))) if *last == key(*target) => *to = at + 1,
                _ => parts.push((key(*target), (at, at + 1))),
            }
        }
        Ok(TagMap { exits: kept.into_iter().map(|(_, exit)| exit).collect(), parts: Exact::new(&parts) })
    }

    /// The exits of a virtual port.
    #[inline]
    pub fn exits(&self, target: Target) -> &[Exit] {
        let (from, to) = self.parts.find(key(target)).unwrap_or((0, 0));
        &self.exits[from as usize..to as usize]
    }
}

#[inline]
fn key(target: Target) -> u64 {
    u64::from(target.port) << 16 | u64::from(target.switch)
}

impl fmt::Display for AmbiguousExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Target { switch, port }, physical) = (self.target, self.physical);
        write!(
            f,
            "frames of switch {switch} port {port} would leave physical port {physical} with two kinds of tags"
        )
    }
}

impl std::error::Error for AmbiguousExit {}
