//! Plugins for the Millrace P4 switch, written in Rust.
//!
//! A plugin is a function that a P4 program calls for a packet. It gets the numbers that the program passes and the payload, the
//! bytes that the program's parser has not extracted. It gives numbers, and may change the payload (where the program grants it),
//! answer with a packet of its own, and have the packet dropped.
//!
//! ```
//! use millrace_plugin::{Call, plugin};
//!
//! // A buffer of 256 bytes for the start of the payload, and none for packets of its own.
//! plugin! { payload: 256, reply: 0, call: count }
//!
//! /// How many bytes of the payload are the number that the program passes.
//! fn count(call: &mut Call<'_>) {
//!     let wanted = call.arg(0);
//!     let found = call.payload().iter().filter(|byte| u64::from(**byte) == wanted).count();
//!     call.give(0, found as u64);
//! }
//! ```
//!
//! The program declares it as `@plugin("count") extern bit<32> count(in bit<8> wanted);`.
//!
//! Build with `cargo build --release --target wasm32-unknown-unknown` as a `cdylib`. The plugin may use the standard library; what
//! of it needs a system fails or traps. A panic traps: the switch counts a failure and goes on with a fresh instance. What a
//! plugin keeps in statics is that of one worker's instance, until it is replaced or fails.

#![no_std]

use core::cell::UnsafeCell;

/// The most words that come in, and the most that go out.
pub const MAX_WORDS: usize = 32;
/// The most bytes of a buffer.
pub const MAX_BYTES: usize = 16 << 10;

/// The version of the area that the switch looks for.
const VERSION: u32 = 1;
const DROP: i32 = 1;
const REWRITTEN: i32 = 2;
const REPLY: i32 = 4;

/// The first part of what plugin and switch talk through; the switch knows the offsets of its fields.
#[repr(C)]
struct Head {
    version: u32,
    payload_room: u32,
    payload_at: u32,
    reply_room: u32,
    reply_at: u32,
    payload_len: u32,
    payload_total: u32,
    reply_len: u32,
    may_rewrite: u32,
    ins: u32,
    outs: u32,
    gap: u32,
    args: [u64; MAX_WORDS],
    results: [u64; MAX_WORDS],
}

/// What a plugin and the switch talk through, with buffers of `P` bytes for payloads and `R` bytes for packets of its own.
/// [`plugin!`] makes it.
pub struct Area<const P: usize, const R: usize> {
    head: UnsafeCell<Head>,
    payload: UnsafeCell<[u8; P]>,
    reply: UnsafeCell<[u8; R]>,
}

// SAFETY: an instance has one thread, and the switch looks at the area only while the plugin does not run.
unsafe impl<const P: usize, const R: usize> Sync for Area<P, R> {}

impl<const P: usize, const R: usize> Default for Area<P, R> {
    fn default() -> Area<P, R> {
        Area::new()
    }
}

impl<const P: usize, const R: usize> Area<P, R> {
    /// One that has not been described yet.
    pub const fn new() -> Area<P, R> {
        const { assert!(P <= MAX_BYTES && R <= MAX_BYTES, "a buffer has at most 16384 bytes") };
        let head = Head {
            version: VERSION,
            payload_room: P as u32,
            payload_at: 0,
            reply_room: R as u32,
            reply_at: 0,
            payload_len: 0,
            payload_total: 0,
            reply_len: 0,
            may_rewrite: 0,
            ins: 0,
            outs: 0,
            gap: 0,
            args: [0; MAX_WORDS],
            results: [0; MAX_WORDS],
        };
        Area { head: UnsafeCell::new(head), payload: UnsafeCell::new([0; P]), reply: UnsafeCell::new([0; R]) }
    }

    /// Its address, once it says where its buffers are.
    pub fn describe(&self) -> i32 {
        // SAFETY: nothing else uses it meanwhile: the switch calls this once, before any call.
        let head = unsafe { &mut *self.head.get() };
        head.payload_at = self.payload.get() as usize as u32;
        head.reply_at = self.reply.get() as usize as u32;
        self.head.get() as usize as i32
    }

    /// Has the plugin answer a call.
    pub fn call(&self, plugin: impl FnOnce(&mut Call<'_>)) -> i32 {
        // SAFETY: nothing else uses them while the plugin runs, and a plugin does not run within itself.
        let (head, payload, reply) =
            unsafe { (&mut *self.head.get(), &mut *self.payload.get(), &mut *self.reply.get()) };
        let mut call = Call { head, payload, reply, answer: 0 };
        plugin(&mut call);
        call.answer
    }
}

/// What a call is about, and what the plugin says.
pub struct Call<'a> {
    head: &'a mut Head,
    payload: &'a mut [u8],
    reply: &'a mut [u8],
    answer: i32,
}

/// There is no room for so many bytes, or the program does not grant it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

impl Call<'_> {
    /// The numbers that the program passes: each as one word, or as several of 64 bits, the most significant one first.
    pub fn args(&self) -> &[u64] {
        &self.head.args[..(self.head.ins as usize).min(MAX_WORDS)]
    }

    /// One of them; 0 where there is none.
    pub fn arg(&self, index: usize) -> u64 {
        self.args().get(index).copied().unwrap_or(0)
    }

    /// Gives a number: what the function returns first, then its `out` and `inout` parameters, each in words as those that come
    /// in. What the program does not take is lost; what is not given is 0.
    pub fn give(&mut self, index: usize, value: u64) {
        let outs = (self.head.outs as usize).min(MAX_WORDS);
        if let Some(result) = self.head.results[..outs].get_mut(index) {
            *result = value;
        }
    }

    /// The payload, as far as the buffer has room for it.
    pub fn payload(&self) -> &[u8] {
        &self.payload[..(self.head.payload_len as usize).min(self.payload.len())]
    }

    /// Bytes of the whole payload, also those that the buffer has no room for.
    pub fn payload_len(&self) -> usize {
        self.head.payload_total as usize
    }

    /// Whether the program grants changes of the payload.
    pub fn may_rewrite(&self) -> bool {
        self.head.may_rewrite != 0
    }

    /// The payload, to be changed where it is.
    ///
    /// # Errors
    /// The program does not grant that.
    pub fn payload_mut(&mut self) -> Result<&mut [u8], Refused> {
        let len = self.payload().len();
        self.resize_payload(len)
    }

    /// The payload with another length, to be changed: bytes that are new are what was in the buffer before. What the buffer had
    /// no room for follows.
    ///
    /// # Errors
    /// The program does not grant that, or the buffer has no room.
    pub fn resize_payload(&mut self, len: usize) -> Result<&mut [u8], Refused> {
        if !self.may_rewrite() || len > self.payload.len() {
            return Err(Refused);
        }
        self.answer |= REWRITTEN;
        self.head.payload_len = len as u32;
        Ok(&mut self.payload[..len])
    }

    /// Has the packet dropped.
    pub fn drop(&mut self) {
        self.answer |= DROP;
    }

    /// A packet of so many bytes that goes to the port which this one came in on, to be filled in; the last one of a call counts.
    ///
    /// # Errors
    /// The buffer has no room.
    pub fn reply(&mut self, len: usize) -> Result<&mut [u8], Refused> {
        let packet = self.reply.get_mut(..len).ok_or(Refused)?;
        self.answer |= REPLY;
        self.head.reply_len = len as u32;
        Ok(packet)
    }
}

/// Makes a function a plugin: `plugin! { payload: BYTES, reply: BYTES, call: FUNCTION }`, with the room for the start of payloads
/// and for packets of its own, each at most [`MAX_BYTES`]. The switch copies of a payload what there is room for, so a plugin that
/// looks at none is cheapest with 0.
#[macro_export]
macro_rules! plugin {
    (payload: $payload:expr, reply: $reply:expr, call: $call:path $(,)?) => {
        static MILLRACE_AREA: $crate::Area<{ $payload }, { $reply }> = $crate::Area::new();

        #[unsafe(no_mangle)]
        extern "C" fn millrace_area() -> i32 {
            MILLRACE_AREA.describe()
        }

        #[unsafe(no_mangle)]
        extern "C" fn millrace_call() -> i32 {
            MILLRACE_AREA.call($call)
        }
    };
}
