//! Hashes of their own: CRCs whose parameters the control plane sets.

use crate::state::State;
use millrace_pipeline::entity::PrimaryMap;
use millrace_pipeline::*;

impl State {
    /// The CRC that a hash computes now.
    pub fn own_hash(&self, id: HashId) -> &Crc {
        &self.own.hashes[id]
    }

    /// Has a hash compute another CRC from now on. False, and nothing changed, when that is not of its width. A reset leaves
    /// it, as bmv2's does.
    pub fn set_own_hash(&mut self, id: HashId, parameters: CrcParameters) -> bool {
        self.object_writes += 1;
        let hash = &mut self.own.hashes[id];
        let fits = hash.parameters().width == parameters.width;
        if fits {
            *hash = Crc::new(parameters);
        }
        fits
    }
}

/// The hashes of a program as they are at first.
pub(crate) fn hashes(program: &Program) -> PrimaryMap<HashId, Crc> {
    // A verified program has no others.
    let parameters = program.hashes.values().filter_map(|hash| CrcParameters::of(hash.algorithm));
    parameters.map(Crc::new).collect()
}
