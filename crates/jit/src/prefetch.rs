//! Asking for a cache line from compiled code, for which the code generator has no instruction.
//!
//! A request is generated as a load of a byte whose value nobody uses and that is marked with a trap code of its own
//! ([`flags`]). The code generator keeps each load that may trap, chooses the registers and the form of its address, and says
//! at which byte of the code it is. There [`turn_loads_into_requests`] changes the opcode: on both machines the instruction that asks
//! for memory has the length and the address forms of a load of a byte. A load in its place would be wrong, since the
//! address need not be valid, and slow, since a load stays in the processor until its data has come.
//!
//! The load extends its sign ([`LOADED`]), which no other load of compiled code does: else the code generator could give the value
//! of a request, which there is not, to a real load of the same byte.

use cranelift_codegen::ir::{MemFlagsData, TrapCode, Type, types};

/// What the loads are marked with.
const REQUEST: TrapCode = TrapCode::unwrap_user(1);

/// The type that the byte is extended to.
pub(crate) const LOADED: Type = types::I64;

/// The flags of a load that becomes a request.
pub(crate) fn flags() -> MemFlagsData {
    MemFlagsData::new().with_trap_code(Some(REQUEST))
}

/// A load that is not as this module knows it, at a byte of the code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unknown(pub(crate) usize);

/// Turns each load that is marked as a request into one. `traps` are those of the code, with the byte that each starts at.
pub(crate) fn turn_loads_into_requests(
    code: &mut [u8],
    traps: impl Iterator<Item = (u32, TrapCode)>,
) -> Result<(), Unknown> {
    for (at, _) in traps.filter(|(_, code)| *code == REQUEST) {
        let at = at as usize;
        code.get_mut(at..).and_then(machine::turn).ok_or(Unknown(at))?;
    }
    Ok(())
}

/// No code is made on other machines, so there is nothing to turn.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod machine {
    pub(super) fn turn(_: &mut [u8]) -> Option<()> {
        None
    }
}

#[cfg(target_arch = "x86_64")]
mod machine {
    /// `movsx r64, byte [address]` is `REX.W 0F BE /r`, `prefetcht1 [address]` is `0F 18 /2`. The other bits of REX are those of
    /// registers of the address, but for R, which belongs to the register that was loaded.
    pub(super) fn turn(code: &mut [u8]) -> Option<()> {
        let [rex, 0x0f, opcode @ 0xbe, form, ..] = code else { return None };
        let is_memory = *form >> 6 != 3;
        if *rex >> 3 != 0x48 >> 3 || !is_memory {
            return None;
        }
        *rex = 0x40 | *rex & 0b11;
        *opcode = 0x18;
        *form = *form & !0b0011_1000 | HINT << 3;
        Some(())
    }

    /// Into the second-level cache (`prefetcht1`). `prefetcht0` (1) would have each request hold a buffer of the first level,
    /// of which there are ten to sixteen, until its line has come.
    const HINT: u8 = 2;
}

#[cfg(target_arch = "aarch64")]
mod machine {
    /// `ldrsb x, [address]` and `prfm hint, [address]` differ in the size, the highest two bits. A positive offset counts bytes in
    /// the one and eight bytes in the other: it is rounded down, which asks for the same line or seldom for the one before. The bit
    /// that says whether an index register is scaled must be 0.
    pub(super) fn turn(code: &mut [u8]) -> Option<()> {
        let word = code.first_chunk_mut::<4>()?;
        let load = u32::from_le_bytes(*word);
        let is_plain = load & 0xffc0_0000 == 0x3980_0000;
        let is_unscaled = load & 0xffe0_0c00 == 0x3880_0000;
        let is_indexed = load & 0xffe0_0c00 == 0x38a0_0800;
        if !(is_plain || is_unscaled || is_indexed) {
            return None;
        }
        let load = match (is_plain, is_indexed) {
            (true, _) => load & !OFFSET | (load & OFFSET) >> 3 & OFFSET,
            (_, true) => load & !SCALED,
            _ => load,
        };
        *word = (load & !0x1f | 3 << 30 | HINT).to_le_bytes();
        Some(())
    }

    /// Where the positive offset is.
    const OFFSET: u32 = 0xfff << 10;
    /// Whether an index register is scaled.
    const SCALED: u32 = 1 << 12;

    /// Into the second-level cache, to stay (`pldl2keep`): see above.
    const HINT: u32 = 2;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turned(code: &[u8]) -> Result<Vec<u8>, Unknown> {
        let mut code = [code, &[0xcc; 4]].concat();
        turn_loads_into_requests(&mut code, [(0, REQUEST), (1, TrapCode::HEAP_OUT_OF_BOUNDS)].into_iter())?;
        Ok(code[..code.len() - 4].to_vec())
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_load_becomes_a_request_for_the_same_address() {
        // As an assembler writes them: movsx of a byte, and prefetcht1.
        let cases: [(&[u8], &[u8]); 4] = [
            // rax, [rdi]
            (&[0x48, 0x0f, 0xbe, 0x07], &[0x40, 0x0f, 0x18, 0x17]),
            // r9, [r8 + 8]
            (&[0x4d, 0x0f, 0xbe, 0x48, 0x08], &[0x41, 0x0f, 0x18, 0x50, 0x08]),
            // rcx, [rax + r12*2]
            (&[0x4a, 0x0f, 0xbe, 0x0c, 0x60], &[0x42, 0x0f, 0x18, 0x14, 0x60]),
            // r15, [r13 + rsi + 0x100]
            (&[0x4d, 0x0f, 0xbe, 0xbc, 0x35, 0, 1, 0, 0], &[0x41, 0x0f, 0x18, 0x94, 0x35, 0, 1, 0, 0]),
        ];
        for (load, request) in cases {
            assert_eq!(turned(load).as_deref(), Ok(request));
        }
        // movzx, a register, no REX.
        for other in [&[0x48, 0x0f, 0xb6, 0x07][..], &[0x48, 0x0f, 0xbe, 0xc7], &[0x0f, 0xbe, 0x07]] {
            assert_eq!(turned(other), Err(Unknown(0)));
        }
    }

    #[test]
    #[cfg(target_arch = "aarch64")]
    fn a_load_becomes_a_request_for_the_same_address() {
        // ldrsb and prfm pldl2keep of [x1], [x1, #16], [x1, #17] and [x1, #16], [x2, #-8], [x3, x4] and [x5, w6, uxtw].
        let cases: [(u32, u32); 6] = [
            (0x3980_0020, 0xf980_0022),
            (0x3980_4020, 0xf980_0822),
            (0x3980_4420, 0xf980_0822),
            (0x389f_8040, 0xf89f_8042),
            (0x38a4_6860, 0xf8a4_6862),
            (0x38a6_48a0, 0xf8a6_48a2),
        ];
        for (load, request) in cases {
            assert_eq!(turned(&load.to_le_bytes()).as_deref(), Ok(&request.to_le_bytes()[..]));
        }
        // ldrb, ldrsb of 32 bits.
        for other in [0x3940_0020_u32, 0x39c0_0020] {
            assert_eq!(turned(&other.to_le_bytes()), Err(Unknown(0)));
        }
    }

    #[test]
    fn a_place_outside_of_the_code_is_refused() {
        assert_eq!(turn_loads_into_requests(&mut [0; 2], [(9, REQUEST)].into_iter()), Err(Unknown(9)));
    }
}
