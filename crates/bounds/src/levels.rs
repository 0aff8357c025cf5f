//! How many accesses of a block come one after the other: each needs the one before.
//!
//! A processor asks for lines of memory ahead, as far as it knows their addresses. So those of a block whose addresses are there when it
//! starts are asked for at once (level 0), those whose addresses are made of these come after them (level 1), and so on. Whatever is
//! not followed in detail (flags, vector registers, what was stored) counts as one value that waits for all that was put into it.
//!
//! A branch may depend on all accesses of its block, and be mispredicted; so the next block starts when they have come, with level 0.

use crate::decode::{Access, Flow, Instruction, REGISTERS, register};

/// Instructions that a processor looks ahead over at least: those of later windows wait for all before. Processors that run ahead
/// at all have 128 or more since 2010.
const WINDOW: usize = 128;

/// For each value, how many accesses it waits for, of one after the other.
#[derive(Default)]
pub(crate) struct Levels {
    registers: [u32; REGISTERS],
    /// Of flags and all other registers.
    others: u32,
    /// Of all that was put into the frame.
    frame: u32,
    /// Of all that was stored elsewhere.
    stored: u32,
    /// Nothing is below it any more.
    floor: u32,
    most: u32,
}

impl Levels {
    /// That of an access of the next instruction.
    pub(crate) fn of(&self, access: &Access) -> u32 {
        self.known(&access.registers)
    }

    /// That of values in registers.
    fn known(&self, registers: &[u16]) -> u32 {
        let levels = registers.iter().filter(|number| **number != 0).map(|number| match register(*number) {
            Some(at) => self.registers[at],
            None => self.others,
        });
        levels.fold(self.floor, u32::max)
    }

    /// Goes on after an instruction, the one with this number in its block.
    pub(crate) fn pass(&mut self, at: usize, instruction: &Instruction) {
        let mut level = self.known(&instruction.reads);
        let loads =
            |in_frame| instruction.accesses.iter().any(|access| access.reads && access.in_frame == in_frame);
        if loads(true) {
            level = level.max(self.frame);
        }
        if loads(false) {
            level = (level + 1).max(self.stored);
        }
        self.most = self.most.max(level);
        for number in instruction.changes.iter().filter(|number| **number != 0) {
            match register(*number) {
                Some(at) => self.registers[at] = level,
                None => self.others = self.others.max(level),
            }
        }
        for access in instruction.accesses.iter().filter(|access| access.writes) {
            let stored = if access.in_frame { &mut self.frame } else { &mut self.stored };
            *stored = level.max(*stored);
        }
        if instruction.flow == Flow::Call || (at + 1).is_multiple_of(WINDOW) {
            self.floor = self.most + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Decode;
    use millrace_midend::machine::Processor;

    /// The levels of the accesses outside of the frame, in order.
    fn levels(bytes: &[u8]) -> Vec<u32> {
        let (mut decode, mut levels, mut found) =
            (Decode::new(bytes, Processor::X86_64), Levels::default(), Vec::new());
        let (mut at, mut number) = (0, 0);
        while (at as usize) < bytes.len() {
            let instruction = decode.at(at).unwrap();
            let outside = instruction.accesses.iter().filter(|access| !access.in_frame);
            found.extend(outside.map(|access| levels.of(access)));
            levels.pass(number, &instruction);
            (at, number) = (at + instruction.len, number + 1);
        }
        found
    }

    #[test]
    fn what_an_address_is_made_of_comes_first() {
        // mov rax, [rdi]; mov rcx, [rsi]; mov rdx, [rax]
        assert_eq!(levels(&[0x48, 0x8b, 0x07, 0x48, 0x8b, 0x0e, 0x48, 0x8b, 0x10]), [0, 0, 1]);
        // mov rax, [rdi]; mov [rsp + 8], rax; mov rcx, [rsp + 8]; mov rdx, [rcx]
        let by_frame =
            [0x48, 0x8b, 0x07, 0x48, 0x89, 0x44, 0x24, 8, 0x48, 0x8b, 0x4c, 0x24, 8, 0x48, 0x8b, 0x11];
        assert_eq!(levels(&by_frame), [0, 1]);
    }

    #[test]
    fn flags_vectors_and_what_was_stored_are_waited_for() {
        // cmp [rdi], eax; sete cl; movzx ecx, cl; mov rdx, [rsi + rcx]
        let by_flags = [0x39, 0x07, 0x0f, 0x94, 0xc1, 0x0f, 0xb6, 0xc9, 0x48, 0x8b, 0x14, 0x0e];
        assert_eq!(levels(&by_flags), [0, 1]);
        // movq xmm0, [rdi]; movq rax, xmm0; mov rcx, [rax]
        let by_vector = [0xf3, 0x0f, 0x7e, 0x07, 0x66, 0x48, 0x0f, 0x7e, 0xc0, 0x48, 0x8b, 0x08];
        assert_eq!(levels(&by_vector), [0, 1]);
        // mov rax, [rdi]; mov rax, [rax]; mov [rsi], rax; mov rcx, [rsi]; mov rdx, [rcx]
        let by_memory = [0x48, 0x8b, 7, 0x48, 0x8b, 0, 0x48, 0x89, 6, 0x48, 0x8b, 0x0e, 0x48, 0x8b, 0x11];
        assert_eq!(levels(&by_memory), [0, 1, 0, 0, 2]);
    }

    #[test]
    fn after_a_call_all_starts_again() {
        // mov rax, [rdi]; call rbx; mov rdx, [r12]
        assert_eq!(levels(&[0x48, 0x8b, 0x07, 0xff, 0xd3, 0x49, 0x8b, 0x14, 0x24]), [0, 2]);
    }
}
