//! The host of compiled code: the program's objects and what it sends out.

use super::writer::numbers_at;
use super::{Texts, Writer};
use crate::abi::Moved;
use crate::layout::Layout;
use millrace_frames::{HEADROOM, TAILROOM};
use millrace_pipeline::semantics::Value;
use millrace_pipeline::*;
use millrace_state::{Effects, EntryIndex, State, format_log};

/// What compiled code works with while it runs.
pub struct Host<'a> {
    pub(crate) state: &'a mut State,
    /// The end of the times of the batch, one for each packet.
    times_end: *const u64,
    pub(crate) effects: &'a mut Effects,
    texts: &'a Texts,
    pub(crate) layout: &'a Layout,
    /// What is put together, by [`Writer`].
    writers: [bits::BitWriter; 2],
    /// The arguments of the next log line.
    pub(crate) arguments: Vec<Value>,
    /// What the latest call of a plugin gave. A host is made for each batch, and few programs call plugins: no room before.
    pub(crate) results: Vec<u64>,
    /// Packets that did not fit where they were.
    moved: Vec<Box<[u8]>>,
}

impl<'a> Host<'a> {
    pub(crate) fn new(
        (state, effects): (&'a mut State, &'a mut Effects),
        texts: &'a Texts,
        layout: &'a Layout,
    ) -> Host<'a> {
        // Else no message would have room.
        effects.reserve(state.program());
        Host {
            state,
            times_end: std::ptr::null(),
            effects,
            texts,
            layout,
            writers: Default::default(),
            arguments: Vec::new(),
            results: Vec::new(),
            moved: Vec::new(),
        }
    }

    pub(crate) fn program(&self) -> &Program {
        self.state.program()
    }

    /// A batch starts whose packets came at these times; packets that moved in the last one are gone.
    pub(crate) fn start(&mut self, times: &[u64]) {
        self.times_end = times.as_ptr_range().end;
        self.moved.clear();
        self.state.start_batch();
    }

    /// When a packet of the batch came.
    ///
    /// # Safety
    /// The batch runs, and has a packet whose place is so many bytes from the end of the last one's.
    pub(crate) unsafe fn arrival(&self, before_end: i32) -> u64 {
        // SAFETY: the times of a batch that runs are borrowed; each takes as many bytes as a place.
        unsafe { *self.times_end.byte_offset(before_end as isize) }
    }

    /// The program's objects.
    pub fn state(&mut self) -> &mut State {
        self.state
    }

    /// The entry that a number from compiled code means: one less; 0: none.
    pub(crate) fn entry(number: u64) -> Option<EntryIndex> {
        number.checked_sub(1).map(|entry| EntryIndex(entry as u32))
    }

    /// Sends the message that these words end.
    pub(crate) fn digest(&mut self, words: &[u64]) {
        self.effects.add_to_message(words);
        self.effects.end_message();
    }

    pub(crate) fn log(&mut self, text: u64) {
        let arguments = std::mem::take(&mut self.arguments);
        self.effects.say(format_log(self.texts.get(text), &arguments));
    }

    pub(crate) fn assert_failed(&mut self, text: u64) {
        self.effects.say(format!("assertion failed: {}", self.texts.get(text)));
    }

    /// Calls a plugin for a packet; says whether the packet is to be dropped. A packet that grows moves to memory of its own.
    ///
    /// # Safety
    /// The packet is as `packet` says, and nothing else uses it meanwhile.
    pub(crate) unsafe fn call(
        &mut self,
        plugin: PluginId,
        args: &[u64],
        results: usize,
        packet: &mut Moved,
        cursor: usize,
    ) -> bool {
        let len = packet.len as usize;
        let start = cursor.div_ceil(8).min(len);
        self.results.resize(results.min(limits::MAX_PLUGIN_WORDS), 0);
        // SAFETY: the payload of the packet.
        let payload = unsafe { std::slice::from_raw_parts(packet.data.add(start), len - start) };
        let called = self.state.call_plugin(plugin, args, &mut self.results, payload);
        if let Some(reply) = called.reply {
            self.effects.answer(reply);
        }
        let Some((replaced, by)) = called.payload else { return called.drop };
        let rest = len - start - replaced;
        let new_len = start + by.len() + rest;
        if new_len <= len {
            // SAFETY: all lies in the packet, which does not grow; what the plugin gives is in its memory.
            unsafe {
                let to = packet.data.add(start);
                std::ptr::copy(to.add(replaced), to.add(by.len()), rest);
                std::ptr::copy_nonoverlapping(by.as_ptr(), to, by.len());
            }
        } else {
            let mut memory = vec![0; HEADROOM + new_len + TAILROOM].into_boxed_slice();
            let (front, after) = memory[HEADROOM..].split_at_mut(start);
            // SAFETY: the packet as it was.
            let old = unsafe { std::slice::from_raw_parts(packet.data, len) };
            front.copy_from_slice(&old[..start]);
            after[..by.len()].copy_from_slice(by);
            after[by.len()..by.len() + rest].copy_from_slice(&old[start + replaced..]);
            packet.data = memory[HEADROOM..].as_mut_ptr();
            self.moved.push(memory);
        }
        packet.len = new_len as u64;
        called.drop
    }

    /// # Safety
    /// `keys` points to a number for each field of the set, one after another, each as its limbs.
    pub(crate) unsafe fn is_member(&self, id: ValueSetId, keys: *const u64) -> bool {
        let widths: Vec<u32> =
            self.program().value_sets[id].fields.iter().map(|(_, width, _)| *width).collect();
        // SAFETY: the caller promises them.
        let keys = unsafe { numbers_at(keys, &widths) };
        self.state.is_member(id, &keys)
    }

    pub(crate) fn writer(&mut self, number: u64) -> &mut bits::BitWriter {
        &mut self.writers[usize::from(number != 0)]
    }

    /// Appends the bytes after the cursor.
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

    /// The packet becomes what was written, and the bytes after the cursor.
    pub(crate) fn put_together(&mut self, packet: &mut Moved, cursor: usize, growth: usize) {
        let headers = std::mem::take(self.writer(Writer::Packet as u64));
        if headers.len_bits().is_multiple_of(8) {
            self.put_in_front(packet, cursor, growth, headers.bytes());
            // The next packet uses its memory again.
            *self.writer(Writer::Packet as u64) = headers;
            return;
        }
        *self.writer(Writer::Packet as u64) = headers;
        self.put_elsewhere(packet, cursor);
    }

    /// The packet becomes these headers, and the bytes after the cursor: before the payload if the payload can stay
    /// where it is and the headers take at most `growth` bytes of the headroom, else in memory of its own. The headers
    /// are not in the packet.
    pub(crate) fn put_in_front(&mut self, packet: &mut Moved, cursor: usize, growth: usize, headers: &[u8]) {
        if cursor.is_multiple_of(8) && headers.len() <= cursor / 8 + growth {
            // SAFETY: the new headers end where the payload starts, and begin in the packet or its headroom.
            unsafe {
                let front = packet.data.add(cursor / 8).sub(headers.len());
                std::ptr::copy_nonoverlapping(headers.as_ptr(), front, headers.len());
                packet.data = front;
            }
            packet.len = packet.len - (cursor / 8) as u64 + headers.len() as u64;
            return;
        }
        let writer = self.writer(Writer::Packet as u64);
        writer.begin(headers.len());
        writer.push_bytes(headers);
        self.put_elsewhere(packet, cursor);
    }

    /// The packet becomes what was written, and the bytes after the cursor, in memory of its own.
    fn put_elsewhere(&mut self, packet: &mut Moved, cursor: usize) {
        // SAFETY: the packet as it is.
        let old = unsafe { std::slice::from_raw_parts(packet.data, packet.len as usize) };
        self.write_payload(Writer::Packet, old, cursor);
        let bytes = std::mem::take(self.writer(Writer::Packet as u64)).finish();
        let mut memory = vec![0; HEADROOM + bytes.len() + TAILROOM].into_boxed_slice();
        memory[HEADROOM..HEADROOM + bytes.len()].copy_from_slice(&bytes);
        packet.len = bytes.len() as u64;
        packet.data = memory[HEADROOM..].as_mut_ptr();
        self.moved.push(memory);
    }
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        self.state.end_batch();
    }
}
