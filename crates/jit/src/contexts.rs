//! The storage of packets outside compiled code.

use crate::layout::{CURSOR, Layout, PARSED, slot_bytes};
use crate::runtime::{bits_of, limbs_of};
use crate::tables::TableEnvs;
use millrace_pipeline::semantics::{Value, VarbitValue};
use millrace_pipeline::*;

/// The contexts of a batch, one for each packet.
#[derive(Clone, Debug)]
pub struct Contexts {
    layout: Layout,
    words: Vec<u64>,
    stage: Vec<u64>,
    count: usize,
    /// The tables as the running code sees them.
    pub(crate) tables: TableEnvs,
}

impl Contexts {
    pub(crate) fn new(layout: Layout, count: usize, stage_bytes: usize) -> Contexts {
        let words = vec![0; count * layout.size() / 8];
        Contexts {
            layout,
            words,
            stage: vec![0; stage_bytes.div_ceil(8) + 1],
            count,
            tables: TableEnvs::default(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The memory of contexts and of the schedule, for [`crate::abi::Env`].
    pub fn memory(&mut self) -> (*mut u8, *mut u8) {
        (self.words.as_mut_ptr().cast(), self.stage.as_mut_ptr().cast())
    }

    fn own(&self, packet: usize) -> &[u64] {
        let words = self.layout.size() / 8;
        &self.words[packet * words..(packet + 1) * words]
    }

    fn own_mut(&mut self, packet: usize) -> &mut [u64] {
        let words = self.layout.size() / 8;
        &mut self.words[packet * words..(packet + 1) * words]
    }

    /// Sets a context to how it is in front of a program: slots 0, headers invalid, the cursor at the start.
    pub fn clear(&mut self, packet: usize) {
        self.own_mut(packet).fill(0);
    }

    /// The parser's cursor, in bits.
    pub fn cursor(&self, packet: usize) -> u64 {
        self.own(packet)[CURSOR as usize / 8]
    }

    /// Sets the parser's cursor.
    pub fn set_cursor(&mut self, packet: usize, bits: u64) {
        self.own_mut(packet)[CURSOR as usize / 8] = bits;
    }

    /// The bits that valid headers had behind the last parser.
    pub fn parsed_bits(&self, packet: usize) -> u64 {
        self.own(packet)[PARSED as usize / 8]
    }

    /// Makes all headers invalid.
    pub fn invalidate_headers(&mut self, program: &Program, packet: usize) {
        for (header, described) in &program.headers {
            let at = self.layout.valid_at(header) as usize;
            let word = &mut self.own_mut(packet)[at / 8];
            *word &= !(0xff << (at % 8 * 8));
            described.fields.iter().for_each(|field| self.clear_slot(program, packet, *field));
        }
    }

    /// Sets a slot to 0, false or empty.
    pub fn clear_slot(&mut self, program: &Program, packet: usize, slot: SlotId) {
        let at = self.layout.slots[slot] as usize / 8;
        let words = slot_bytes(program.slots[slot].ty) as usize / 8;
        self.own_mut(packet)[at..at + words].fill(0);
    }

    /// The bits that all valid headers have together.
    pub fn header_bits(&self, program: &Program, packet: usize) -> u64 {
        let valid = program.headers.iter().filter(|(header, _)| self.is_valid(packet, *header));
        valid
            .map(|(_, header)| {
                let varbits = header.fields.iter().map(|field| match program.slots[*field].ty {
                    Type::Varbit(_) => self.own(packet)[self.layout.slots[*field] as usize / 8],
                    Type::Bool | Type::Bits(_) => 0,
                });
                u64::from(header.fixed_bits) + varbits.sum::<u64>()
            })
            .sum()
    }

    /// Makes one context what a context of another set is.
    pub fn copy_from(&mut self, packet: usize, other: &Contexts, of: usize) {
        self.own_mut(packet).copy_from_slice(other.own(of));
    }

    /// Whether a header is valid.
    pub fn is_valid(&self, packet: usize, header: HeaderId) -> bool {
        let at = self.layout.valid_at(header) as usize;
        self.own(packet)[at / 8].to_le_bytes()[at % 8] != 0
    }

    /// The value of a slot; of a field of an invalid header 0.
    pub fn read(&self, program: &Program, packet: usize, slot: SlotId) -> Value {
        let words = &self.own(packet)[self.layout.slots[slot] as usize / 8..];
        match program.slots[slot].ty {
            Type::Bool => Value::Bool(words[0] != 0),
            Type::Bits(width) => Value::Bits(bits_of(width, &words[..width.div_ceil(64) as usize])),
            Type::Varbit(_) => {
                let len = words[0] as u32;
                let bytes: Vec<u8> = words[1..1 + len.div_ceil(64) as usize]
                    .iter()
                    .flat_map(|word| word.to_le_bytes())
                    .collect();
                Value::Varbit(match len {
                    0 => VarbitValue::EMPTY,
                    _ => VarbitValue::new(Bits::from_bytes(len, &bytes[..len.div_ceil(8) as usize])),
                })
            }
        }
    }

    /// Gives a slot that is no header field a value of its type; any other value is left out.
    pub fn write(&mut self, program: &Program, packet: usize, slot: SlotId, value: &Value) {
        let at = self.layout.slots[slot] as usize / 8;
        let words = &mut self.own_mut(packet)[at..];
        match value {
            _ if !value.fits(program.slots[slot].ty) => {}
            Value::Bool(truth) => words[0] = u64::from(*truth),
            Value::Bits(bits) => limbs_of(bits).zip(words).for_each(|(limb, word)| *word = limb),
            Value::Varbit(varbit) => {
                words[0] = u64::from(varbit.len());
                let bytes = varbit.bits().map_or_else(Vec::new, Bits::to_bytes);
                for (chunk, word) in bytes.chunks(8).zip(&mut words[1..]) {
                    let mut le = [0; 8];
                    le[..chunk.len()].copy_from_slice(chunk);
                    *word = u64::from_le_bytes(le);
                }
            }
        }
    }
}
