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

/// The exclusive or of the bits that each row chooses of a value.
fn sums(m: &mut ModuleBuilder, value: NodeId, rows: &[Bits]) -> NodeId {
    let bits: Vec<NodeId> = (rows.iter().rev())
        .map(|row| {
            let mask = m.constant(row.clone());
            let chosen = m.and(value, mask);
            m.reduce_xor(chosen)
        })
        .collect();
    m.concat(&bits)
}

/// What so many of the first bytes of `data`, at least one, add to the register: it is [`advanced`] and this together after them.
pub(super) fn of_data(m: &mut ModuleBuilder, data: NodeId, bytes: u32) -> NodeId {
    let data = m.slice(data, 0, bytes * 8);
    let rows: Vec<Bits> = rows(bytes).into_iter().map(|(_, of_data)| of_data).collect();
    sums(m, data, &rows)
}

/// The register after so many bytes that are 0.
pub(super) fn advanced(m: &mut ModuleBuilder, state: NodeId, bytes: u32) -> NodeId {
    let rows: Vec<Bits> =
        rows(bytes).into_iter().map(|(of_state, _)| Bits::new(32, of_state.into())).collect();
    sums(m, state, &rows)
}

/// The register after so many of the first bytes of `data`, at least one.
pub(super) fn after(m: &mut ModuleBuilder, state: NodeId, data: NodeId, bytes: u32) -> NodeId {
    let (state, data) = (advanced(m, state, bytes), of_data(m, data, bytes));
    m.xor(state, data)
}

/// The last 1 to 8 bytes of a frame: a step of four of them, and the rest in another cycle.
pub(super) struct Ending {
    /// The register before the last one to four bytes.
    state: NodeId,
    /// The same, with four bytes of data added to its bits.
    mixed: NodeId,
}

impl Ending {
    /// `many` says that there are more than four bytes in `data`.
    pub(super) fn new(m: &mut ModuleBuilder, state: NodeId, (data, many): (NodeId, NodeId)) -> Ending {
        let four = after(m, state, data, 4);
        let state = m.mux(many, four, state);
        let (low, high) = (m.slice(data, 0, 32), m.slice(data, 32, 32));
        let rest = m.mux(many, high, low);
        Ending { state, mixed: m.xor(state, rest) }
    }

    /// A cycle later.
    pub(super) fn delayed(self, m: &mut ModuleBuilder) -> Ending {
        let Ending { state, mixed } = self;
        Ending {
            state: m.delayed("ending_state", state, None),
            mixed: m.delayed("ending_mixed", mixed, None),
        }
    }

    /// The register after so many more bytes, one to four. What a byte adds depends on its exclusive or with the lowest bits of the
    /// register alone.
    pub(super) fn after(&self, m: &mut ModuleBuilder, bytes: u32) -> NodeId {
        let rest = m.shr_by(self.state, bytes * 8);
        let added = of_data(m, self.mixed, bytes);
        m.xor(rest, added)
    }
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
        let (state, data, many) = (m.input("state", 32), m.input("data", 64), m.input("many", 1));
        let ending = Ending::new(&mut m, state, (data, many));
        for bytes in 1..=4 {
            let next = ending.after(&mut m, bytes);
            m.output(&format!("rest{bytes}"), next);
        }
        let next = after(&mut m, state, data, 8);
        m.output("all", next);
        let mut design = Design::new();
        design.add(m.finish());
        let mut sim = Simulator::new(&design).unwrap();
        let signal = |name: &str| sim.input(name).unwrap();
        let (state, data, many) = (signal("state"), signal("data"), signal("many"));
        let all = sim.output("all").unwrap();
        let bytes = *b"12345678";
        sim.set_u64(state, 0xffff_ffff);
        sim.set_u64(data, u64::from_le_bytes(bytes));
        for number in 1..=8usize {
            sim.set_u64(many, u64::from(number > 4));
            let next = sim.output(&format!("rest{}", (number - 1) % 4 + 1)).unwrap();
            assert_eq!(sim.get_u64(next) as u32, plain(0xffff_ffff, &bytes[..number]), "{number} bytes");
        }
        assert_eq!(sim.get_u64(all) as u32, plain(0xffff_ffff, &bytes));
        // The check value of CRC-32.
        assert_eq!(!plain(0xffff_ffff, b"123456789"), 0xcbf4_3926);
        let check = !plain(0xffff_ffff, b"123456789");
        assert_eq!(plain(plain(0xffff_ffff, b"123456789"), &check.to_le_bytes()), RESIDUE);
    }
}
