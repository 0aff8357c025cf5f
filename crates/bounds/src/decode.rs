//! Machine code as instructions: only what their cost and their order say.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use millrace_midend::machine::Processor;

/// One instruction.
#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    /// Its first byte.
    pub(crate) at: u32,
    /// Its bytes.
    pub(crate) len: u32,
    /// Where it goes.
    pub(crate) flow: Flow,
    /// What it reads and writes in memory.
    pub(crate) accesses: Vec<Access>,
    /// The registers that it changes, by number; those with the same number overlap.
    pub(crate) changes: Vec<u16>,
    /// The registers that it reads, also for addresses.
    pub(crate) reads: Vec<u16>,
    /// Where the address that it leaves in a register or in the frame comes from.
    pub(crate) moves: Moves,
}

/// What an instruction does with an address that is in a register or in the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Moves {
    /// Nothing that is told here.
    #[default]
    Nothing,
    /// Gives a register the sum of another one and a number.
    Sum {
        /// The register.
        to: u16,
        /// The other one, or the same.
        from: u16,
        /// The number.
        by: i64,
    },
    /// Gives a register all 64 bits of a place in the frame.
    Load {
        /// The register.
        to: u16,
        /// The place, from the register that frames are addressed by.
        at: i64,
    },
    /// Gives a place in the frame all bits of a register.
    Store {
        /// The place.
        at: i64,
        /// The register.
        from: u16,
    },
    /// Gives a register the address of a place in the frame.
    Lend {
        /// The place.
        at: i64,
    },
}

/// Where an instruction goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// To the next one.
    Next,
    /// To one place.
    Jump(u32),
    /// To one place, or to the next one.
    Branch(u32),
    /// To one of the places that the table after it names.
    Table,
    /// To a function, and from there to the next one.
    Call,
    /// Out of the code.
    Return,
    /// Nowhere: the program would end here.
    Trap,
}

/// A place in memory that an instruction uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Whether it is in the frame of the function.
    pub(crate) in_frame: bool,
    /// Whether it is written.
    pub(crate) writes: bool,
    /// Whether it is read, and not only asked for.
    pub(crate) reads: bool,
    /// The registers that the address is made of, as of [`Instruction::changes`]; 0: none.
    pub(crate) registers: [u16; 2],
    /// What the second register is multiplied by.
    pub(crate) scale: u8,
    /// What is added to them.
    pub(crate) offset: i64,
    /// Bytes.
    pub(crate) size: u32,
}

/// A place of the code that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Undecodable(pub(crate) u32);

/// Decodes instructions one at a time, from any place.
pub(crate) struct Decode<'a> {
    bytes: &'a [u8],
    processor: Processor,
    factory: InstructionInfoFactory,
}

impl<'a> Decode<'a> {
    pub(crate) fn new(bytes: &'a [u8], processor: Processor) -> Decode<'a> {
        Decode { bytes, processor, factory: InstructionInfoFactory::new() }
    }

    /// The instruction at a place.
    pub(crate) fn at(&mut self, at: u32) -> Result<Instruction, Undecodable> {
        match self.processor {
            Processor::X86_64 => self.x86(at),
            Processor::Aarch64 => aarch64(self.bytes, at),
        }
    }

    fn x86(&mut self, at: u32) -> Result<Instruction, Undecodable> {
        let bytes = self.bytes.get(at as usize..).unwrap_or(&[]);
        let mut decoder = Decoder::with_ip(64, bytes, u64::from(at), DecoderOptions::NONE);
        let found = decoder.decode();
        if found.is_invalid() {
            return Err(Undecodable(at));
        }
        let target = || u32::try_from(found.near_branch_target()).map_err(|_| Undecodable(at));
        let flow = match found.flow_control() {
            FlowControl::Next => Flow::Next,
            FlowControl::UnconditionalBranch => Flow::Jump(target()?),
            FlowControl::ConditionalBranch => Flow::Branch(target()?),
            FlowControl::IndirectBranch => Flow::Table,
            FlowControl::Call | FlowControl::IndirectCall => Flow::Call,
            FlowControl::Return => Flow::Return,
            FlowControl::Exception | FlowControl::Interrupt => Flow::Trap,
            FlowControl::XbeginXabortXend => return Err(Undecodable(at)),
        };
        let info = self.factory.info(&found);
        let is_frame = |register: Register| matches!(register, Register::RSP | Register::RBP);
        // A request for a line reads nothing, but brings it.
        let asks = matches!(
            found.mnemonic(),
            Mnemonic::Prefetcht0 | Mnemonic::Prefetcht1 | Mnemonic::Prefetcht2 | Mnemonic::Prefetchnta
        );
        let uses = |access: OpAccess| asks || access != OpAccess::NoMemAccess && access != OpAccess::None;
        let accesses = info.used_memory().iter().filter(|memory| uses(memory.access()));
        let accesses = accesses
            .map(|memory| Access {
                in_frame: is_frame(memory.base()),
                writes: is_write(memory.access()),
                reads: !asks && is_read(memory.access()),
                registers: [number(memory.base()), number(memory.index())],
                scale: memory.scale() as u8,
                offset: memory.displacement() as i64,
                size: memory.memory_size().size().max(1) as u32,
            })
            .collect();
        let written = info.used_registers().iter().filter(|register| is_write(register.access()));
        let mut changes: Vec<u16> = written.map(|register| number(register.register())).collect();
        let read = info.used_registers().iter().filter(|register| is_read(register.access()));
        let mut reads: Vec<u16> = read.map(|register| number(register.register())).collect();
        if found.rflags_read() != 0 {
            reads.push(FLAGS);
        }
        if found.rflags_modified() != 0 {
            changes.push(FLAGS);
        }
        if flow == Flow::Call {
            changes.extend(CHANGED_BY_CALLS.map(number));
        }
        Ok(Instruction { at, len: found.len() as u32, flow, accesses, changes, reads, moves: moves(&found) })
    }
}

/// What a function may leave in other registers than its caller had there (System V ABI for x86-64, 3.2.1).
const CHANGED_BY_CALLS: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];

/// The register that places of the frame are told from, by number.
pub(crate) const FRAME_X86: u16 = Register::RSP as u16;
/// Registers that addresses are made of.
pub(crate) const REGISTERS: usize = 16;

/// The place among [`REGISTERS`] of a register by number; none: it is no part of addresses.
pub(crate) fn register(number: u16) -> Option<usize> {
    let at = usize::from(number.checked_sub(Register::RAX as u16)?);
    (at < REGISTERS).then_some(at)
}

/// The flags, as a register by number.
const FLAGS: u16 = u16::MAX;

/// A register by number: that of all 64 bits of it.
fn number(register: Register) -> u16 {
    match register {
        Register::None => 0,
        register => register.full_register() as u16,
    }
}

/// What an instruction of x86-64 does with an address.
fn moves(found: &iced_x86::Instruction) -> Moves {
    let (first, second) = (found.op0_register(), found.op1_register());
    let is_whole = |register: Register| register.is_gpr64();
    let is_plain = found.memory_index() == Register::None && found.segment_prefix() == Register::None;
    let (base, distance) = (found.memory_base(), found.memory_displacement64() as i64);
    let is_frame = base == Register::RSP && is_plain;
    match (found.mnemonic(), found.op0_kind(), found.op1_kind()) {
        (Mnemonic::Mov, OpKind::Register, OpKind::Register) if is_whole(first) && is_whole(second) => {
            Moves::Sum { to: number(first), from: number(second), by: 0 }
        }
        (Mnemonic::Mov, OpKind::Register, OpKind::Memory) if is_whole(first) && is_frame => {
            Moves::Load { to: number(first), at: distance }
        }
        (Mnemonic::Mov, OpKind::Memory, OpKind::Register) if is_whole(second) && is_frame => {
            Moves::Store { at: distance, from: number(second) }
        }
        (Mnemonic::Lea, ..) if is_frame => Moves::Lend { at: distance },
        (Mnemonic::Lea, ..) if is_whole(first) && is_whole(base) && is_plain => {
            Moves::Sum { to: number(first), from: number(base), by: distance }
        }
        (Mnemonic::Add | Mnemonic::Sub, OpKind::Register, _) if is_whole(first) => {
            // With a sign of 32 bits at most, so its negative is a number, too.
            match found.try_immediate(1) {
                Ok(number_of) => {
                    let by = number_of as i64;
                    let by = if found.mnemonic() == Mnemonic::Sub { -by } else { by };
                    Moves::Sum { to: number(first), from: number(first), by }
                }
                Err(_) => Moves::Nothing,
            }
        }
        _ => Moves::Nothing,
    }
}

fn is_read(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn is_write(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// A bit field of an instruction word.
fn field(word: u32, low: u32, bits: u32) -> u32 {
    word >> low & ((1 << bits) - 1)
}

/// Decodes an instruction of 64-bit Arm by the tables of the Arm ARM, C4.1: branches, and which ones load and store.
fn aarch64(bytes: &[u8], at: u32) -> Result<Instruction, Undecodable> {
    let word = bytes.get(at as usize..).and_then(|rest| rest.first_chunk::<4>()).ok_or(Undecodable(at))?;
    let word = u32::from_le_bytes(*word);
    let to = |words: u32, bits: u32| {
        // Sign-extended, in words.
        let distance = ((words << (32 - bits)) as i32 >> (32 - bits)) * 4;
        at.checked_add_signed(distance).ok_or(Undecodable(at))
    };
    let flow = match word {
        _ if word & 0xfc00_0000 == 0x1400_0000 => Flow::Jump(to(field(word, 0, 26), 26)?),
        _ if word & 0xfc00_0000 == 0x9400_0000 || word & 0xffff_fc1f == 0xd63f_0000 => Flow::Call,
        _ if word & 0xff00_0010 == 0x5400_0000 => Flow::Branch(to(field(word, 5, 19), 19)?),
        _ if word & 0x7e00_0000 == 0x3400_0000 => Flow::Branch(to(field(word, 5, 19), 19)?),
        _ if word & 0x7e00_0000 == 0x3600_0000 => Flow::Branch(to(field(word, 5, 14), 14)?),
        _ if word & 0xffff_fc1f == 0xd61f_0000 => Flow::Table,
        _ if word & 0xffff_fc1f == 0xd65f_0000 || word & 0xffff_fbff == 0xd65f_0bff => Flow::Return,
        // udf, and brk of a trap.
        _ if word & 0xffff_0000 == 0 || word & 0xffe0_001f == 0xd420_0000 => Flow::Trap,
        _ => Flow::Next,
    };
    // Loads and stores have bit 27 set and bit 25 clear.
    let mut accesses = Vec::new();
    if word & 0x0a00_0000 == 0x0800_0000 {
        // Literals (bits 29 to 27 are 011, 24 is 0) are read from the code. Which ones store is not told: too few marks are
        // right, wrong ones are not.
        let is_literal = word & 0x3b00_0000 == 0x1800_0000;
        let base = field(word, 5, 5);
        let is_indexed = word & 0x3b20_0c00 == 0x3820_0800;
        accesses.push(Access {
            in_frame: !is_literal && matches!(base, 29 | 31),
            writes: false,
            reads: true,
            registers: [base as u16 + 1, if is_indexed { field(word, 16, 5) as u16 + 1 } else { 0 }],
            scale: 1,
            // Not decoded: each access counts alone, since its register may differ from itself.
            offset: i64::from(at) * i64::from(crate::cost::LINE),
            size: 16,
        });
    }
    let changes = vec![field(word, 0, 5) as u16 + 1];
    Ok(Instruction { at, len: 4, flow, accesses, changes, reads: Vec::new(), moves: Moves::Nothing })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(bytes: &[u8], at: u32) -> Flow {
        aarch64(bytes, at).unwrap().flow
    }

    #[test]
    fn branches_of_arm_lead_where_an_assembler_says() {
        // As an assembler writes them at address 8: b 0; b.eq 16; cbz x1, 24; tbnz w2, #3, 4; br x5; blr x6; bl 8; ret; brk #1.
        let at_eight = |word: u32| {
            let mut code = vec![0; 8];
            code.extend(word.to_le_bytes());
            flow(&code, 8)
        };
        assert_eq!(at_eight(0x17ff_fffe), Flow::Jump(0));
        assert_eq!(at_eight(0x5400_0040), Flow::Branch(16));
        assert_eq!(at_eight(0xb400_0081), Flow::Branch(24));
        assert_eq!(at_eight(0x371f_ffe2), Flow::Branch(4));
        assert_eq!(at_eight(0xd61f_00a0), Flow::Table);
        assert_eq!(at_eight(0xd63f_00c0), Flow::Call);
        assert_eq!(at_eight(0x9400_0000), Flow::Call);
        assert_eq!(at_eight(0xd65f_03c0), Flow::Return);
        assert_eq!(at_eight(0xd420_0020), Flow::Trap);
        assert_eq!(at_eight(0xf940_0020), Flow::Next);
    }
}
