//! The frame check sequence of Ethernet (CRC-32), some bytes a cycle.

use crate::*;

/// The polynomial, the bit of the first power highest: bits come lowest first, as Ethernet sends them.
const POLYNOMIAL: u32 = 0xedb8_8320;
/// What the register holds after a frame with its check sequence, if that is right.
pub(super) const RESIDUE: u32 = 0xdebb_20e3;

/// What each bit of the register is after so many bytes: which bits of the register and of the bytes it is the exclusive or of.
fn rows(bytes: u32) -> Vec<(u32, Bits)> {
    let count = bytes * 8;
    // A row for each bit, as bits of the state (32) and of the data.
    let mut rows: Vec<(u32, Bits)> = (0..32).map(|bit| (1u32 << bit, Bits::zero(count.max(1)))).collect();
    for at in 0..count {
        let mut one = Bits::zero(count);
        one = one.or(&Bits::new(1, 1).zero_extend(count).shl_by(at.into()));
        let out = (rows[0].0, rows[0].1.xor(&one));
        let mut next: Vec<(u32, Bits)> = rows[1..].to_vec();
        next.push((0, Bits::zero(count)));
        for (bit, row) in next.iter_mut().enumerate() {
            if POLYNOMIAL >> bit & 1 != 0 {
                *row = (row.0 ^ out.0, row.1.xor(&out.1));
            }
        }
        rows = next;
    }
    rows
}

/// The register after so many of the first bytes of `data`.
pub(super) fn after(m: &mut ModuleBuilder, state: NodeId, data: NodeId, bytes: u32) -> NodeId {
    if bytes == 0 {
        return state;
    }
    let data = m.slice(data, 0, bytes * 8);
    let both = m.concat(&[data, state]);
    let mut bits: Vec<NodeId> = rows(bytes)
        .into_iter()
        .map(|(of_state, of_data)| {
            let mask = m.constant(of_data.concat(&Bits::new(32, of_state.into())));
            let chosen = m.and(both, mask);
            m.reduce_xor(chosen)
        })
        .collect();
    bits.reverse();
    m.concat(&bits)
}

/// The register after `count` bytes, 0 to 8, of 64 bits: steps of four, two and one byte, each where its bit of `count` is 1.
pub(super) fn after_some(m: &mut ModuleBuilder, state: NodeId, data: NodeId, count: NodeId) -> NodeId {
    let all = after(m, state, data, 8);
    let (mut state, mut rest) = (state, data);
    for (bit, bytes) in [(2, 4), (1, 2), (0, 1)] {
        let steps = m.bit(count, bit);
        let next = after(m, state, rest, bytes);
        state = m.mux(steps, next, state);
        let later = m.shr_by(rest, bytes * 8);
        rest = m.mux(steps, later, rest);
    }
    let full = m.bit(count, 3);
    m.mux(full, all, state)
}

/// Whether the register would hold [`RESIDUE`] after `count` bytes, 0 to 7, if it has come to `state` by 8 bytes, of which those after
/// the first `count` are 0: that many steps with zeros lead from the residue to a value of its own.
pub(super) fn is_right(m: &mut ModuleBuilder, state: NodeId, count: NodeId) -> NodeId {
    let mut wanted = vec![RESIDUE];
    for at in 0..7usize {
        let mut next = wanted[at];
        for _ in 0..8 {
            next = (next >> 1) ^ if next & 1 != 0 { POLYNOMIAL } else { 0 };
        }
        wanted.push(next);
    }
    // After 7 bytes one of zeros follows, after none eight.
    let zero_bytes: Vec<NodeId> = (0..8)
        .map(|count| match wanted.get(8 - count) {
            Some(value) => m.number(32, (*value).into()),
            None => {
                let mut last = wanted[7];
                for _ in 0..8 {
                    last = (last >> 1) ^ if last & 1 != 0 { POLYNOMIAL } else { 0 };
                }
                m.number(32, last.into())
            }
        })
        .collect();
    let wanted = m.choose(count, &zero_bytes);
    m.eq(state, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One bit after the other.
    fn plain(mut state: u32, bytes: &[u8]) -> u32 {
        for byte in bytes {
            state ^= u32::from(*byte);
            for _ in 0..8 {
                state = (state >> 1) ^ if state & 1 != 0 { POLYNOMIAL } else { 0 };
            }
        }
        state
    }

    #[test]
    fn bytes_at_once_are_bytes_one_by_one() {
        let mut m = ModuleBuilder::new("crc");
        let (state, data, count) = (m.input("state", 32), m.input("data", 64), m.input("count", 4));
        let next = after_some(&mut m, state, data, count);
        m.output("next", next);
        let mut design = Design::new();
        design.add(m.finish());
        let mut sim = Simulator::new(&design).unwrap();
        let signal = |name: &str| sim.input(name).unwrap();
        let (state, data, count) = (signal("state"), signal("data"), signal("count"));
        let next = sim.output("next").unwrap();
        let bytes = *b"12345678";
        for number in 0..=8usize {
            sim.set_u64(state, 0xffff_ffff);
            sim.set_u64(data, u64::from_le_bytes(bytes));
            sim.set_u64(count, number as u64);
            assert_eq!(sim.get_u64(next) as u32, plain(0xffff_ffff, &bytes[..number]), "{number} bytes");
        }
        // The check value of CRC-32.
        assert_eq!(!plain(0xffff_ffff, b"123456789"), 0xcbf4_3926);
        let check = !plain(0xffff_ffff, b"123456789");
        assert_eq!(plain(plain(0xffff_ffff, b"123456789"), &check.to_le_bytes()), RESIDUE);
    }
}
