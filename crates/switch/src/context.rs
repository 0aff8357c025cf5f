//! The storage of one packet between bodies, as the engine that works on the packet keeps it.

use millrace_jit::Storage;
use millrace_jit::abi::{HEADROOM, TAILROOM};
use millrace_pipeline::semantics::Value;
use millrace_pipeline::*;

/// One packet with its storage.
#[derive(Clone, Debug)]
pub(crate) enum Context {
    /// As the interpreter keeps it.
    Interp(Box<millrace_interp::Context>),
    /// As compiled code keeps it.
    Jit(JitContext),
}

/// A packet in a buffer of its own.
#[derive(Clone, Debug)]
pub(crate) struct JitContext {
    /// Its storage alone.
    pub(crate) storage: Storage,
    /// The packet, with room in front and behind.
    pub(crate) buffer: Vec<u8>,
    pub(crate) len: usize,
}

impl JitContext {
    /// A packet of these bytes.
    fn new(storage: Storage, bytes: &[u8]) -> JitContext {
        let mut context = JitContext { storage, buffer: Vec::new(), len: 0 };
        context.set_bytes(bytes);
        context
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[HEADROOM..HEADROOM + self.len]
    }

    /// The same packet for the interpreter.
    pub(crate) fn interpreted(&self, program: &Program) -> Context {
        let mut context = Box::new(millrace_interp::Context::new(program, self.bytes().to_vec()));
        for header in program.headers.keys().filter(|header| self.storage.is_valid(0, *header)) {
            context.phv.set_valid(program, header);
        }
        for slot in program.slots.keys() {
            context.phv.write(program, slot, self.storage.read(program, 0, slot));
        }
        context.cursor = usize::try_from(self.storage.cursor(0)).unwrap_or(usize::MAX);
        Context::Interp(context)
    }

    pub(crate) fn set_bytes(&mut self, bytes: &[u8]) {
        self.len = bytes.len();
        let end = HEADROOM + bytes.len() + TAILROOM;
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        self.buffer[HEADROOM..HEADROOM + bytes.len()].copy_from_slice(bytes);
    }
}

/// Memory of packets that are done, for others of the program.
#[derive(Debug, Default)]
pub(crate) struct Spare(Vec<JitContext>);

/// Most packets whose memory is kept.
const MAX_SPARE: usize = 256;

impl Spare {
    /// A packet of these bytes with the storage of one of others.
    pub(crate) fn take(&mut self, storage: &Storage, of: usize, bytes: &[u8]) -> JitContext {
        match self.0.pop() {
            Some(mut context) => {
                context.storage.copy_from(0, storage, of);
                context.set_bytes(bytes);
                context
            }
            None => JitContext::new(storage.one(of), bytes),
        }
    }

    pub(crate) fn put(&mut self, context: JitContext) {
        // A long frame would keep its memory for nothing.
        if self.0.len() < MAX_SPARE && context.buffer.len() <= 4096 {
            self.0.push(context);
        }
    }
}

impl Context {
    /// Writes the slot of a role, when the program has it. A value of another width is cut or zero-extended.
    pub(crate) fn set(&mut self, program: &Program, role: Intrinsic, value: u64) {
        let Some(slot) = program.intrinsics.get(role) else { return };
        if let (Context::Jit(context), Home::Metadata | Home::Local) = (&mut *self, program.slots[slot].home)
        {
            return context.storage.write_number(program, 0, slot, value);
        }
        let value = match program.slots[slot].ty {
            Type::Bool => Value::Bool(value != 0),
            Type::Bits(width) => Value::Bits(Bits::new(width, u128::from(value))),
            Type::Varbit(_) => return,
        };
        self.write(program, slot, value);
    }

    /// Reads the slot of a role; 0 when the program does not have it.
    pub(crate) fn get(&self, program: &Program, role: Intrinsic) -> u64 {
        let Some(slot) = program.intrinsics.get(role) else { return 0 };
        match self {
            Context::Interp(context) => context.phv.read(program, slot).as_bits().to_u64_saturating(),
            Context::Jit(context) => context.storage.read_number(program, 0, slot),
        }
    }

    /// The value of a slot; while it is a field of an invalid header 0, false or empty.
    pub(crate) fn read(&self, program: &Program, slot: SlotId) -> Value {
        match self {
            Context::Interp(context) => context.phv.read(program, slot),
            Context::Jit(context) => context.storage.read(program, 0, slot),
        }
    }

    /// Gives a slot a value; lost while it is a field of an invalid header.
    pub(crate) fn write(&mut self, program: &Program, slot: SlotId, value: Value) {
        match self {
            Context::Interp(context) => context.phv.write(program, slot, value),
            Context::Jit(context) => {
                let is_there = match program.slots[slot].home {
                    Home::Header { header, .. } => context.storage.is_valid(0, header),
                    Home::Metadata | Home::Local => true,
                };
                if is_there {
                    context.storage.write(program, 0, slot, &value);
                }
            }
        }
    }

    /// Sets a slot to 0, false or empty.
    pub(crate) fn clear(&mut self, program: &Program, slot: SlotId) {
        match self {
            Context::Interp(context) => context.phv.clear(program, slot),
            Context::Jit(context) => context.storage.clear_slot(program, 0, slot),
        }
    }

    /// The bits that all valid headers have together.
    pub(crate) fn header_bits(&self, program: &Program) -> u64 {
        match self {
            Context::Interp(context) => context.phv.header_bits(program),
            Context::Jit(context) => context.storage.header_bits(program, 0),
        }
    }

    /// All headers become invalid and the cursor goes to the start: the packet is to be parsed again.
    pub(crate) fn unparse(&mut self, program: &Program) {
        match self {
            Context::Interp(context) => {
                context.phv.invalidate_all();
                context.cursor = 0;
            }
            Context::Jit(context) => {
                context.storage.invalidate_headers(program, 0);
                context.storage.set_cursor(0, 0);
            }
        }
    }

    /// The packet's bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Context::Interp(context) => &context.bytes,
            Context::Jit(context) => context.bytes(),
        }
    }
}
