//! What belongs to a packet next to its bytes: slots, which headers are valid, the cursor; as compiled code keeps it.

use crate::layout::{CURSOR, Layout, PARSED, TAKEN, slot_bytes};
use millrace_pipeline::semantics::{Value, VarbitValue};
use millrace_pipeline::*;
use std::ops::Range;
use std::sync::Arc;

/// The storage of some packets. All of one program are laid out alike.
#[derive(Clone, Debug)]
pub struct Storage {
    layout: Arc<Layout>,
    words: Vec<u64>,
}

/// Where some slots of a program are in the storage of a packet.
#[derive(Clone, Debug, Default)]
pub struct SlotPlaces(Vec<Range<usize>>);

impl Storage {
    pub(crate) fn new(layout: Arc<Layout>, count: usize) -> Storage {
        let words = vec![0; count * layout.size() / 8];
        Storage { layout, words }
    }

    /// Makes the storage of one packet what that of one of others is.
    pub fn copy_from(&mut self, packet: usize, other: &Storage, of: usize) {
        self.own_mut(packet).copy_from_slice(other.own(of));
    }

    /// Where some slots are, to be cleared together.
    pub fn places(&self, program: &Program, slots: impl IntoIterator<Item = SlotId>) -> SlotPlaces {
        let place = |slot: SlotId| {
            let at = self.layout.slots[slot] as usize / 8;
            at..at + slot_bytes(program.slots[slot].ty) as usize / 8
        };
        let mut places: Vec<Range<usize>> = Vec::new();
        for own in slots.into_iter().map(place) {
            match places.last_mut() {
                Some(last) if last.end == own.start => last.end = own.end,
                _ => places.push(own),
            }
        }
        SlotPlaces(places)
    }

    /// Sets slots to 0, false or empty.
    pub fn clear_places(&mut self, packet: usize, places: &SlotPlaces) {
        let own = self.own_mut(packet);
        places.0.iter().for_each(|place| own[place.clone()].fill(0));
    }

    /// The storage of one of the packets.
    pub fn one(&self, packet: usize) -> Storage {
        Storage { layout: Arc::clone(&self.layout), words: self.own(packet).to_vec() }
    }

    /// Exchanges it with that of as many packets of the same program.
    pub(crate) fn exchange(&mut self, other: &mut Storage) {
        debug_assert_eq!(self.words.len(), other.words.len());
        std::mem::swap(&mut self.words, &mut other.words);
    }

    pub(crate) fn start(&mut self) -> *mut u8 {
        self.words.as_mut_ptr().cast()
    }

    fn own(&self, packet: usize) -> &[u64] {
        let words = self.layout.size() / 8;
        &self.words[packet * words..(packet + 1) * words]
    }

    fn own_mut(&mut self, packet: usize) -> &mut [u64] {
        let words = self.layout.size() / 8;
        &mut self.words[packet * words..(packet + 1) * words]
    }

    /// Sets a context to how it is before a program: slots 0, headers invalid, the cursor at the start.
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

    /// The bits that valid headers had after the last parser.
    pub fn parsed_bits(&self, packet: usize) -> u64 {
        self.own(packet)[PARSED as usize / 8]
    }

    /// The steps that bodies have taken, of those whose steps are counted ([`Work::counts`]).
    pub fn steps(&self, packet: usize) -> u64 {
        self.own(packet)[TAKEN as usize / 8]
    }

    /// The same since this was asked last.
    pub fn take_steps(&mut self, packet: usize) -> u64 {
        std::mem::take(&mut self.own_mut(packet)[TAKEN as usize / 8])
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
        let own = self.own(packet);
        let is_valid = |header: &HeaderId| self.is_valid(packet, *header);
        let fixed = program.headers.iter().filter(|(header, _)| is_valid(header));
        let fixed: u64 = fixed.map(|(_, described)| u64::from(described.fixed_bits)).sum();
        let varbits = self.layout.varbits.iter().filter(|(header, _)| is_valid(header));
        fixed + varbits.map(|(_, slot)| own[self.layout.slots[*slot] as usize / 8]).sum::<u64>()
    }

    /// A slot as a number: the largest one where it does not fit; 0 while it is a field of an invalid header.
    pub fn read_number(&self, program: &Program, packet: usize, slot: SlotId) -> u64 {
        let words = &self.own(packet)[self.layout.slots[slot] as usize / 8..];
        match program.slots[slot].ty {
            Type::Bool | Type::Bits(..=64) => words[0],
            Type::Bits(width) => match words[1..width.div_ceil(64) as usize].iter().all(|word| *word == 0) {
                true => words[0],
                false => u64::MAX,
            },
            Type::Varbit(_) => 0,
        }
    }

    /// Gives a slot that is no header field a number, cut to its width; a varbit stays.
    pub fn write_number(&mut self, program: &Program, packet: usize, slot: SlotId, value: u64) {
        let at = self.layout.slots[slot] as usize / 8;
        let words = &mut self.own_mut(packet)[at..];
        match program.slots[slot].ty {
            Type::Bool => words[0] = u64::from(value != 0),
            Type::Bits(width @ ..=64) => words[0] = value & (u64::MAX >> (64 - width)),
            Type::Bits(width) => {
                words[0] = value;
                words[1..width.div_ceil(64) as usize].fill(0);
            }
            Type::Varbit(_) => {}
        }
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
            Type::Bits(width) => Value::Bits(Bits::from_limbs(width, &words[..width.div_ceil(64) as usize])),
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
            Value::Bits(bits) => bits.limbs().zip(words).for_each(|(limb, word)| *word = limb),
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
