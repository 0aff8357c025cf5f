//! One packet on its way through a program, and what the program sends out besides it.

use crate::Phv;
use millrace_pipeline::semantics::Value;
use millrace_pipeline::*;
use millrace_state::{Effects, EntryIndex, State};

/// One packet: its bytes, where the parser stands in them, and its storage.
#[derive(Clone, Debug)]
pub struct Context {
    /// The slots and headers.
    pub phv: Phv,
    /// The packet as received, or as a deparser put it together.
    pub bytes: Vec<u8>,
    /// The cursor of the parser, in bits from the start of the packet; never after its end.
    pub cursor: usize,
    /// The steps that bodies have taken whose steps are counted ([`Work::counts`]).
    pub steps: u64,
    /// What the running deparser has emitted.
    pub(crate) emitted: bits::BitWriter,
    /// What the latest call of a plugin gave.
    pub(crate) results: Vec<u64>,
    /// The entry that the latest application of each table hit.
    hits: Vec<(TableId, EntryIndex)>,
}

impl Context {
    /// A packet that no body has seen: storage at its start values, the cursor at the start.
    pub fn new(program: &Program, bytes: Vec<u8>) -> Context {
        Context {
            phv: Phv::new(program),
            bytes,
            cursor: 0,
            steps: 0,
            emitted: bits::BitWriter::new(),
            results: Vec::new(),
            hits: Vec::new(),
        }
    }

    /// Writes the slot of a role, when the program has it. A value of another width is cut or zero-extended.
    pub fn set(&mut self, program: &Program, role: Intrinsic, value: u64) {
        if let Some(slot) = program.intrinsics.get(role) {
            let value = match program.slots[slot].ty {
                Type::Bool => Value::Bool(value != 0),
                Type::Bits(width) => Value::Bits(Bits::new(width, u128::from(value))),
                Type::Varbit(_) => return,
            };
            self.phv.write(program, slot, value);
        }
    }

    /// Reads the slot of a role; 0 when the program does not have it.
    pub fn get(&self, program: &Program, role: Intrinsic) -> u64 {
        let slot = program.intrinsics.get(role);
        slot.map_or(0, |slot| self.phv.read(program, slot).as_bits().to_u64_saturating())
    }

    /// The length of the packet in bytes.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// What the parser has not reached, from the cursor on, filled up with zero bits to whole bytes.
    pub fn payload(&self) -> Vec<u8> {
        let mut writer = bits::BitWriter::new();
        self.write_payload(&mut writer);
        writer.finish()
    }

    pub(crate) fn write_payload(&self, to: &mut bits::BitWriter) {
        let whole = self.cursor.div_ceil(8);
        let partial = (whole * 8 - self.cursor) as u32;
        if partial > 0
            && let Some(bits) = Bits::read_at(&self.bytes, self.cursor, partial)
        {
            to.push(&bits);
        }
        to.push_bytes(self.bytes.get(whole..).unwrap_or(&[]));
    }

    /// Puts the packet together: what was emitted, then what the parser has not reached. The cursor is at its start.
    pub(crate) fn put_together(&mut self) {
        let mut writer = std::mem::take(&mut self.emitted);
        self.write_payload(&mut writer);
        self.bytes = writer.finish();
        self.cursor = 0;
    }

    /// Calls a plugin with the whole bytes after the cursor, and does what it answers; gives whether the packet is to be dropped.
    pub(crate) fn call(
        &mut self,
        plugin: PluginId,
        args: &[u64],
        results: u32,
        state: &mut State,
        effects: &mut Effects,
    ) -> bool {
        self.results.clear();
        self.results.resize(results as usize, 0);
        let start = self.cursor.div_ceil(8).min(self.bytes.len());
        let called = state.call_plugin(plugin, args, &mut self.results, &self.bytes[start..]);
        if let Some(reply) = called.reply {
            effects.answer(reply);
        }
        let drop = called.drop;
        if let Some((replaced, by)) = called.payload {
            self.bytes.splice(start..start + replaced, by.iter().copied());
        }
        drop
    }

    pub(crate) fn set_hit(&mut self, table: TableId, entry: EntryIndex) {
        match self.hits.iter_mut().find(|(other, _)| *other == table) {
            Some((_, latest)) => *latest = entry,
            None => self.hits.push((table, entry)),
        }
    }

    /// The entry that the latest application of the table hit.
    pub(crate) fn hit(&self, table: TableId) -> Option<EntryIndex> {
        let latest = self.hits.iter().find(|(other, _)| *other == table)?.1;
        latest.is_hit().then_some(latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_starts_at_the_bit_of_the_cursor() {
        let mut context = Context::new(&Program::default(), vec![0xab, 0xcd, 0xef]);
        assert_eq!(context.payload(), [0xab, 0xcd, 0xef]);
        context.cursor = 12;
        assert_eq!(context.payload(), [0xde, 0xf0]);
        context.cursor = 24;
        assert_eq!(context.payload(), []);
    }
}
