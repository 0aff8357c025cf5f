//! The cache lines that code has touched: by the registers that it had before each instruction, and what a decoder says of the
//! instruction. It shares nothing with the analysis.

use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, OpAccess, Register};
use millrace_jit::stepping::Steps;
use std::collections::BTreeSet;

/// Bytes of a cache line.
const LINE: u64 = 64;

/// The lines outside of the code's frame that its own instructions have touched.
pub fn touched(code: &[u8], steps: &Steps) -> BTreeSet<u64> {
    let mut factory = InstructionInfoFactory::new();
    let mut lines = BTreeSet::new();
    for (at, registers) in steps.trace.iter().zip(&steps.registers) {
        let bytes = code.get(*at as usize..).unwrap_or(&[]);
        let found = Decoder::with_ip(64, bytes, u64::from(*at), DecoderOptions::NONE).decode();
        let value = |register: Register, _: usize, _: usize| {
            // Segments start at 0.
            Some(if register.is_gpr() { registers[register.number()] } else { 0 })
        };
        for memory in factory.info(&found).used_memory() {
            let is_frame = matches!(memory.base(), Register::RSP | Register::RBP);
            let is_used = !matches!(memory.access(), OpAccess::None | OpAccess::NoMemAccess);
            if let (false, true, Some(first)) = (is_frame, is_used, memory.virtual_address(0, value)) {
                let last = first + (memory.memory_size().size() as u64).max(1) - 1;
                lines.extend(first / LINE..=last / LINE);
            }
        }
    }
    lines
}
