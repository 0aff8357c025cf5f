//! The storage of one packet between bodies, as the engine that works on the packet keeps it.

use millrace_frames::{HEADROOM, TAILROOM};
use millrace_jit::Storage;
use millrace_pipeline::semantics::Value;
use millrace_pipeline::*;

/// One packet with its storage.
#[derive(Clone, Debug)]
pub struct Context(pub(crate) Kept);

/// A packet as an engine keeps it.
#[derive(Clone, Debug)]
pub(crate) enum Kept {
    /// The interpreter.
    Interp(Box<InterpContext>),
    /// Compiled code.
    Jit(JitContext),
}

/// A packet of the interpreter.
#[derive(Clone, Debug)]
pub(crate) struct InterpContext {
    pub(crate) packet: millrace_interp::Context,
    /// The bits that valid headers had after the parser of ingress.
    pub(crate) parsed_bits: u64,
}

/// A packet in a buffer of its own.
#[derive(Clone, Debug)]
pub(crate) struct JitContext {
    /// Its storage alone.
    pub(crate) storage: Storage,
    /// The packet, with room before and after it.
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
    fn interpreted(&self, program: &Program) -> InterpContext {
        let mut packet = millrace_interp::Context::new(program, self.bytes().to_vec());
        for header in program.headers.keys().filter(|header| self.storage.is_valid(0, *header)) {
            packet.phv.set_valid(program, header);
        }
        for slot in program.slots.keys() {
            packet.phv.write(program, slot, self.storage.read(program, 0, slot));
        }
        packet.cursor = usize::try_from(self.storage.cursor(0)).unwrap_or(usize::MAX);
        packet.steps = self.storage.steps(0);
        InterpContext { packet, parsed_bits: self.storage.parsed_bits(0) }
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
    /// A packet of the interpreter that no stage has seen.
    pub fn interpreted(program: &Program, bytes: Vec<u8>) -> Context {
        let packet = millrace_interp::Context::new(program, bytes);
        Context(Kept::Interp(Box::new(InterpContext { packet, parsed_bits: 0 })))
    }

    /// Has the packet be the interpreter's from now on.
    pub(crate) fn make_interpreted(&mut self, program: &Program) -> &mut InterpContext {
        if let Kept::Jit(own) = &self.0 {
            self.0 = Kept::Interp(Box::new(own.interpreted(program)));
        }
        match &mut self.0 {
            Kept::Interp(context) => context,
            Kept::Jit(_) => unreachable!("it has just been changed"),
        }
    }

    /// The packet as the interpreter has it, which it is from now on, and the bits that its headers had after the parser: for engines of
    /// callers, whose packets are the interpreter's.
    pub fn interpreter_mut(&mut self, program: &Program) -> (&mut millrace_interp::Context, &mut u64) {
        let context = self.make_interpreted(program);
        (&mut context.packet, &mut context.parsed_bits)
    }

    /// The bits that valid headers had after the parser of ingress.
    pub fn parsed_bits(&self) -> u64 {
        match &self.0 {
            Kept::Interp(context) => context.parsed_bits,
            Kept::Jit(context) => context.storage.parsed_bits(0),
        }
    }

    /// Writes the slot of a role, when the program has it. A value of another width is cut or zero-extended.
    pub fn set(&mut self, program: &Program, role: Intrinsic, value: u64) {
        let Some(slot) = program.intrinsics.get(role) else { return };
        if let (Kept::Jit(context), Home::Metadata | Home::Local) = (&mut self.0, program.slots[slot].home) {
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
    pub fn get(&self, program: &Program, role: Intrinsic) -> u64 {
        let Some(slot) = program.intrinsics.get(role) else { return 0 };
        match &self.0 {
            Kept::Interp(context) => context.packet.phv.read(program, slot).as_bits().to_u64_saturating(),
            Kept::Jit(context) => context.storage.read_number(program, 0, slot),
        }
    }

    /// Where the program asked for the packet to be dropped.
    pub fn drop_site(&self, program: &Program) -> u16 {
        self.get(program, Intrinsic::DropSite) as u16
    }

    /// The value of a slot; while it is a field of an invalid header 0, false or empty.
    pub fn read(&self, program: &Program, slot: SlotId) -> Value {
        match &self.0 {
            Kept::Interp(context) => context.packet.phv.read(program, slot),
            Kept::Jit(context) => context.storage.read(program, 0, slot),
        }
    }

    /// Gives a slot a value; lost while it is a field of an invalid header.
    pub fn write(&mut self, program: &Program, slot: SlotId, value: Value) {
        match &mut self.0 {
            Kept::Interp(context) => context.packet.phv.write(program, slot, value),
            Kept::Jit(context) => {
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
    pub fn clear(&mut self, program: &Program, slot: SlotId) {
        match &mut self.0 {
            Kept::Interp(context) => context.packet.phv.clear(program, slot),
            Kept::Jit(context) => context.storage.clear_slot(program, 0, slot),
        }
    }

    /// The bits that all valid headers have together.
    pub fn header_bits(&self, program: &Program) -> u64 {
        match &self.0 {
            Kept::Interp(context) => context.packet.phv.header_bits(program),
            Kept::Jit(context) => context.storage.header_bits(program, 0),
        }
    }

    /// All headers become invalid and the cursor goes to the start: the packet is to be parsed again.
    pub fn unparse(&mut self, program: &Program) {
        match &mut self.0 {
            Kept::Interp(context) => {
                context.packet.phv.invalidate_all();
                context.packet.cursor = 0;
            }
            Kept::Jit(context) => {
                context.storage.invalidate_headers(program, 0);
                context.storage.set_cursor(0, 0);
            }
        }
    }

    /// The steps that bodies have taken since this was asked last, of those whose steps are counted.
    pub fn take_steps(&mut self) -> u64 {
        match &mut self.0 {
            Kept::Interp(context) => std::mem::take(&mut context.packet.steps),
            Kept::Jit(context) => context.storage.take_steps(0),
        }
    }

    /// How many bytes the packet has.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Kept::Interp(context) => context.packet.bytes.len(),
            Kept::Jit(context) => context.len,
        }
    }

    /// Whether the packet has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The packet's bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Kept::Interp(context) => &context.packet.bytes,
            Kept::Jit(context) => context.bytes(),
        }
    }
}
