//! What code needs to run over a batch, apart from the packets.

use crate::layout::Layout;
use crate::objects::ObjectEnvs;
use crate::storage::Storage;
use crate::tables::TableEnvs;
use std::sync::Arc;

/// The storage of the packets of a batch, and memory of the code that runs over it.
#[derive(Debug)]
pub struct Contexts {
    /// One for each packet.
    pub storage: Storage,
    count: usize,
    stage: Vec<u64>,
    /// The tables as the running code sees them.
    pub(crate) tables: TableEnvs,
    /// What it works on itself.
    pub(crate) objects: ObjectEnvs,
}

impl Contexts {
    pub(crate) fn new(layout: Arc<Layout>, count: usize, stage_bytes: usize) -> Contexts {
        let stage = vec![0; stage_bytes.div_ceil(8) + 1];
        let (tables, objects) = Default::default();
        Contexts { storage: Storage::new(layout, count), count, stage, tables, objects }
    }

    /// For how many packets.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether for none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The storage of the packets, and the memory of the schedule, for [`crate::abi::Env`].
    pub fn memory(&mut self) -> (*mut u8, *mut u8) {
        (self.storage.start(), self.stage.as_mut_ptr().cast())
    }

    /// Has the next batch of one packet work with this storage, which the packet had elsewhere; the second time gives it back.
    pub fn exchange(&mut self, storage: &mut Storage) {
        self.storage.exchange(storage);
    }
}
