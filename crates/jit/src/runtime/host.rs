//! The host of compiled code: the program's objects and what it sends out.

use super::writer::{bits_of, limbs_of};
use super::{Texts, Writer};
use crate::abi::{HEADROOM, Packet, TAILROOM, TableEnv};
use crate::layout::{RecordLayout, argument_size, type_width};
use millrace_pipeline::semantics::Value;
use millrace_pipeline::*;
use millrace_state::{EntryIndex, State};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;

/// What a program sends out beside packets, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// Messages to the control plane.
    pub digests: Vec<DigestMessage>,
    /// Lines for the log.
    pub log: Vec<String>,
}

/// A message to the control plane.
#[derive(Clone, Debug, PartialEq)]
pub struct DigestMessage {
    /// Its kind.
    pub digest: DigestId,
    /// The values of [`Digest::members`].
    pub values: Vec<Value>,
}

/// What compiled code works with while it runs.
pub struct Host<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) now_ns: u64,
    pub(crate) effects: Effects,
    texts: &'a Texts,
    program: Arc<Program>,
    /// What is put together, by [`Writer`].
    writers: [bits::BitWriter; 2],
    /// The arguments of the next digest or log line.
    pub(crate) arguments: Vec<Value>,
    tables: Vec<Records>,
    envs: Vec<TableEnv>,
    /// Packets that did not fit where they were.
    moved: Vec<Box<[u8]>>,
}

/// The action slots of one table.
struct Records {
    layout: RecordLayout,
    bytes: Vec<u64>,
    numbers: HashMap<(usize, Vec<Bits>), u32>,
}

impl<'a> Host<'a> {
    pub(crate) fn new(state: &'a mut State, records: &[RecordLayout], texts: &'a Texts) -> Host<'a> {
        let program = Arc::clone(state.program());
        let tables: Vec<Records> = records
            .iter()
            .map(|layout| Records {
                layout: layout.clone(),
                // Slot 0 is the default action, which a miss writes there.
                bytes: vec![0; layout.stride as usize / 8],
                numbers: HashMap::new(),
            })
            .collect();
        Host {
            state,
            now_ns: 0,
            effects: Effects::default(),
            texts,
            program,
            writers: Default::default(),
            arguments: Vec::new(),
            envs: tables.iter().enumerate().map(|(at, records)| records.env(at)).collect(),
            tables,
            moved: Vec::new(),
        }
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// A batch starts at that time; packets that moved in the last one are gone.
    pub(crate) fn start(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.moved.clear();
    }

    /// What compiled code needs to know of the tables.
    pub(crate) fn table_envs(&self) -> &[TableEnv] {
        &self.envs
    }

    /// The program's objects.
    pub fn state(&mut self) -> &mut State {
        self.state
    }

    /// What the program has sent out since this was asked last.
    pub fn take_effects(&mut self) -> Effects {
        std::mem::take(&mut self.effects)
    }

    /// The entry that a number from compiled code means: one less; 0: none.
    pub(crate) fn entry(number: u64) -> Option<EntryIndex> {
        number.checked_sub(1).map(|entry| EntryIndex(entry as u32))
    }

    /// Looks up one key; gives the action slot and the entry plus one.
    fn lookup(&mut self, id: TableId, keys: &[Bits], inputs: &[Bits]) -> (u32, u32) {
        let found = self.state.lookup(id, keys, inputs, self.now_ns);
        let records = &mut self.tables[id.as_u32() as usize];
        if !found.is_hit() {
            records.write(0, found.action, &found.args);
            return (0, 0);
        }
        (records.intern(found.action, found.args), found.entry.0 + 1)
    }

    pub(crate) fn digest(&mut self, digest: DigestId) {
        let values = std::mem::take(&mut self.arguments);
        self.effects.digests.push(DigestMessage { digest, values });
    }

    pub(crate) fn log(&mut self, text: u64) {
        let arguments = std::mem::take(&mut self.arguments);
        self.effects.log.push(format_log(self.texts.get(text), &arguments));
    }

    pub(crate) fn assert_failed(&mut self, text: u64) {
        self.effects.log.push(format!("assertion failed: {}", self.texts.get(text)));
    }

    /// # Safety
    /// `keys` points to a number for each field of the set, one behind another, each as its limbs.
    pub(crate) unsafe fn is_member(&self, id: ValueSetId, keys: *const u64) -> bool {
        let widths: Vec<u32> =
            self.program.value_sets[id].fields.iter().map(|(_, width, _)| *width).collect();
        // SAFETY: the caller promises them.
        let keys = unsafe { numbers_at(keys, &widths) };
        self.state.is_member(id, &keys)
    }

    pub(crate) fn writer(&mut self, number: u64) -> &mut bits::BitWriter {
        &mut self.writers[usize::from(number != 0)]
    }

    /// Appends what is behind the cursor.
    pub(crate) fn write_payload(&mut self, writer: Writer, packet: &[u8], cursor: usize) {
        let writer = self.writer(writer as u64);
        let whole = cursor.div_ceil(8);
        let partial = (whole * 8 - cursor) as u32;
        if partial > 0
            && let Some(bits) = Bits::read_at(packet, cursor, partial)
        {
            writer.push(&bits);
        }
        writer.push_bytes(packet.get(whole..).unwrap_or(&[]));
    }

    /// The packet becomes what was written, and what is behind the cursor: in front of the payload if that leaves it where
    /// it is and takes at most `growth` bytes of the headroom, else in memory of its own.
    pub(crate) fn put_together(&mut self, packet: &mut Packet, cursor: usize, growth: usize) {
        let bits = self.writer(Writer::Packet as u64).len_bits();
        let fits = cursor.is_multiple_of(8) && bits.is_multiple_of(8) && bits / 8 <= cursor / 8 + growth;
        if fits {
            let headers = std::mem::take(self.writer(Writer::Packet as u64)).finish();
            // SAFETY: the new headers end where the payload starts, and begin in the packet or its headroom.
            unsafe {
                let front = packet.data.add(cursor / 8).sub(headers.len());
                std::ptr::copy_nonoverlapping(headers.as_ptr(), front, headers.len());
                packet.data = front;
            }
            packet.len = packet.len - (cursor / 8) as u32 + headers.len() as u32;
            return;
        }
        // SAFETY: the packet as it is.
        let old = unsafe { std::slice::from_raw_parts(packet.data, packet.len as usize) };
        self.write_payload(Writer::Packet, old, cursor);
        let bytes = std::mem::take(self.writer(Writer::Packet as u64)).finish();
        let mut memory = vec![0; HEADROOM + bytes.len() + TAILROOM].into_boxed_slice();
        memory[HEADROOM..HEADROOM + bytes.len()].copy_from_slice(&bytes);
        packet.len = bytes.len() as u32;
        packet.data = memory[HEADROOM..].as_mut_ptr();
        self.moved.push(memory);
    }
}

impl Records {
    fn env(&self, number: usize) -> TableEnv {
        TableEnv {
            lookup: lookup_batch,
            table: number as *const c_void,
            records: self.bytes.as_ptr().cast(),
            base: std::ptr::null(),
            second: std::ptr::null(),
        }
    }

    fn intern(&mut self, action: usize, args: Vec<Bits>) -> u32 {
        let key = (action, args);
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = self.numbers.len() as u32 + 1;
        self.bytes.resize((number as usize + 1) * self.layout.stride as usize / 8, 0);
        self.write(number, key.0, &key.1);
        self.numbers.insert(key, number);
        number
    }

    fn write(&mut self, number: u32, action: usize, args: &[Bits]) {
        let start = (number * self.layout.stride) as usize;
        let mut record = vec![0u8; self.layout.stride as usize];
        record[..4].copy_from_slice(&(action as u32).to_le_bytes());
        let offsets = self.layout.offsets.get(action).map_or(&[][..], Vec::as_slice);
        for (offset, arg) in offsets.iter().zip(args) {
            let bytes: Vec<u8> = limbs_of(arg).flat_map(u64::to_le_bytes).collect();
            let size = (argument_size(arg.width()).0 as usize).min(bytes.len());
            let offset = *offset as usize;
            record[offset..offset + size].copy_from_slice(&bytes[..size]);
        }
        for (at, word) in record.chunks_exact(8).enumerate() {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(word);
            self.bytes[start / 8 + at] = u64::from_le_bytes(bytes);
        }
    }
}

/// # Safety
/// `address` points to numbers of these widths, one behind another, each as its limbs.
unsafe fn numbers_at(mut address: *const u64, widths: &[u32]) -> Vec<Bits> {
    let mut numbers = Vec::with_capacity(widths.len());
    for width in widths {
        let count = width.div_ceil(64) as usize;
        // SAFETY: the caller promises them.
        unsafe {
            numbers.push(bits_of(*width, std::slice::from_raw_parts(address, count)));
            address = address.add(count);
        }
    }
    numbers
}

/// [`crate::abi::LookupBatch`] over the state's tables; `table` is the number of the table.
unsafe extern "C" fn lookup_batch(
    host: *mut c_void,
    table: *const c_void,
    keys: *const u64,
    inputs: *const u64,
    n: u64,
    slots: *mut u32,
    entries: *mut u32,
) -> u64 {
    // SAFETY: the host that `Env` holds, which nothing else uses now.
    let host = unsafe { &mut *host.cast::<Host<'static>>() };
    let id = TableId::from_u32(table as usize as u32);
    let program = Arc::clone(&host.program);
    let described = &program.tables[id];
    let widths: Vec<u32> = described.keys.iter().map(|key| type_width(key.value.ty(&program))).collect();
    let input_widths: Vec<u32> =
        described.selector_inputs.iter().map(|input| type_width(input.ty(&program))).collect();
    let total: u32 = widths.iter().sum();
    let limbs = total.div_ceil(64) as usize;
    let input_limbs: usize = input_widths.iter().map(|width| width.div_ceil(64) as usize).sum();
    for at in 0..n as usize {
        // SAFETY: `n` keys and inputs, and room for as many results.
        unsafe {
            let mut fields = Vec::new();
            if total > 0 {
                let key = bits_of(total, std::slice::from_raw_parts(keys.add(at * limbs), limbs));
                let mut above = total;
                for width in &widths {
                    above -= width;
                    fields.push(key.slice(above + width - 1, above));
                }
            }
            let own = if input_limbs > 0 {
                numbers_at(inputs.add(at * input_limbs), &input_widths)
            } else {
                Vec::new()
            };
            let (slot, entry) = host.lookup(id, &fields, &own);
            *slots.add(at) = slot;
            if !entries.is_null() {
                *entries.add(at) = entry;
            }
        }
    }
    // Interning may have moved the records.
    let at = table as usize;
    host.envs[at] = host.tables[at].env(at);
    0
}

/// Puts the arguments where `{}` stands in the format, numbers in decimal. A `{}` without an argument stays, an
/// argument without a `{}` is left out.
fn format_log(format: &str, args: &[Value]) -> String {
    let mut line = String::with_capacity(format.len());
    let mut args = args.iter();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once("{}") {
        line.push_str(before);
        match args.next() {
            Some(Value::Bool(truth)) => line.push_str(if *truth { "true" } else { "false" }),
            Some(value) => line.push_str(&value.as_bits().to_biguint().to_string()),
            None => line.push_str("{}"),
        }
        rest = after;
    }
    line.push_str(rest);
    line
}
