//! The storage of one packet between bodies, as the engine that works on the packet keeps it.

use millrace_jit::Contexts;
use millrace_jit::abi::{HEADROOM, TAILROOM};
use millrace_pipeline::semantics::Value;
use millrace_pipeline::*;

/// One packet with its storage.
#[derive(Clone, Debug)]
pub(crate) enum Context {
    /// As the interpreter keeps it.
    Interp(millrace_interp::Context),
    /// As compiled code keeps it.
    Jit(JitContext),
}

/// A packet in a buffer of its own, with the one context of a set.
#[derive(Clone, Debug)]
pub(crate) struct JitContext {
    pub(crate) contexts: Contexts,
    /// The packet, with room in front and behind.
    pub(crate) buffer: Vec<u8>,
    pub(crate) len: usize,
}

impl JitContext {
    /// A packet of these bytes. `contexts` holds one.
    pub(crate) fn new(contexts: Contexts, bytes: &[u8]) -> JitContext {
        let mut context = JitContext { contexts, buffer: Vec::new(), len: 0 };
        context.set_bytes(bytes);
        context
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[HEADROOM..HEADROOM + self.len]
    }

    /// The same packet for the interpreter.
    pub(crate) fn interpreted(&self, program: &Program) -> Context {
        let mut context = millrace_interp::Context::new(program, self.bytes().to_vec());
        for header in program.headers.keys().filter(|header| self.contexts.is_valid(0, *header)) {
            context.phv.set_valid(program, header);
        }
        for slot in program.slots.keys() {
            context.phv.write(program, slot, self.contexts.read(program, 0, slot));
        }
        context.cursor = usize::try_from(self.contexts.cursor(0)).unwrap_or(usize::MAX);
        Context::Interp(context)
    }

    pub(crate) fn set_bytes(&mut self, bytes: &[u8]) {
        self.len = bytes.len();
        self.buffer.clear();
        self.buffer.reserve(HEADROOM + bytes.len() + TAILROOM);
        self.buffer.resize(HEADROOM, 0);
        self.buffer.extend_from_slice(bytes);
        self.buffer.resize(HEADROOM + bytes.len() + TAILROOM, 0);
    }
}

impl Context {
    /// Writes the slot of a role, when the program has it. A value of another width is cut or zero-extended.
    pub(crate) fn set(&mut self, program: &Program, role: Intrinsic, value: u64) {
        let Some(slot) = program.intrinsics.get(role) else { return };
        let value = match program.slots[slot].ty {
            Type::Bool => Value::Bool(value != 0),
            Type::Bits(width) => Value::Bits(Bits::new(width, u128::from(value))),
            Type::Varbit(_) => return,
        };
        self.write(program, slot, value);
    }

    /// Reads the slot of a role; 0 when the program does not have it.
    pub(crate) fn get(&self, program: &Program, role: Intrinsic) -> u64 {
        let slot = program.intrinsics.get(role);
        slot.map_or(0, |slot| self.read(program, slot).as_bits().to_u64_saturating())
    }

    /// The value of a slot; while it is a field of an invalid header 0, false or empty.
    pub(crate) fn read(&self, program: &Program, slot: SlotId) -> Value {
        match self {
            Context::Interp(context) => context.phv.read(program, slot),
            Context::Jit(context) => context.contexts.read(program, 0, slot),
        }
    }

    /// Gives a slot a value; lost while it is a field of an invalid header.
    pub(crate) fn write(&mut self, program: &Program, slot: SlotId, value: Value) {
        match self {
            Context::Interp(context) => context.phv.write(program, slot, value),
            Context::Jit(context) => {
                let is_there = match program.slots[slot].home {
                    Home::Header { header, .. } => context.contexts.is_valid(0, header),
                    Home::Metadata | Home::Local => true,
                };
                if is_there {
                    context.contexts.write(program, 0, slot, &value);
                }
            }
        }
    }

    /// Sets a slot to 0, false or empty.
    pub(crate) fn clear(&mut self, program: &Program, slot: SlotId) {
        match self {
            Context::Interp(context) => context.phv.clear(program, slot),
            Context::Jit(context) => context.contexts.clear_slot(program, 0, slot),
        }
    }

    /// The bits that all valid headers have together.
    pub(crate) fn header_bits(&self, program: &Program) -> u64 {
        match self {
            Context::Interp(context) => context.phv.header_bits(program),
            Context::Jit(context) => context.contexts.header_bits(program, 0),
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
                context.contexts.invalidate_headers(program, 0);
                context.contexts.set_cursor(0, 0);
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

    /// The packet's bytes, of a packet that is done.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self {
            Context::Interp(context) => context.bytes,
            Context::Jit(context) => context.bytes().to_vec(),
        }
    }
}
