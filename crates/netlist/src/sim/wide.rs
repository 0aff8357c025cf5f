//! Operations on values of many words whose result depends on all of them: products and shifts by a value.

use super::words::Word;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WideOp {
    Mul,
    /// The second operand of shifts is one word.
    Shl,
    Shr,
    ShrSigned,
}

/// An operation; its operands are words of the graph first, then places of words.
#[derive(Clone, Debug)]
pub(super) struct Wide {
    pub(super) op: WideOp,
    pub(super) a: Vec<Word>,
    pub(super) b: Vec<Word>,
    /// The width of the first operand and of the result.
    pub(super) width: u32,
    /// The place of the first word of the result; the others follow.
    pub(super) to: u32,
}

impl Wide {
    /// Computes the result from `slots` into `out`, which has room for it, both operands being gathered into `room`.
    pub(super) fn run(&self, slots: &[u64], room: &mut Vec<u64>, out: &mut Vec<u64>) {
        room.clear();
        room.extend(self.a.iter().chain(&self.b).map(|at| slots[*at as usize]));
        let (a, b) = room.split_at(self.a.len());
        out.clear();
        out.resize(a.len(), 0);
        match self.op {
            WideOp::Mul => multiply(a, b, out),
            WideOp::Shl => shift_up(a, b[0], out),
            WideOp::Shr => shift_down(a, b[0], 0, out),
            WideOp::ShrSigned => {
                let top = self.width.wrapping_sub(1) % 64;
                let negative = a.last().is_some_and(|word| word >> top & 1 == 1);
                if negative {
                    // As a number of whole words: the bits above the width become copies of the sign, and are cut after.
                    let last = self.a.len() - 1;
                    room[last] |= u64::MAX << top;
                    let (a, b) = room.split_at(self.a.len());
                    shift_down(a, b[0], u64::MAX, out);
                } else {
                    shift_down(a, b[0], 0, out);
                }
            }
        }
        if let Some(last) = out.last_mut() {
            *last &= u64::MAX >> (self.width.wrapping_neg() % 64);
        }
    }
}

/// The low words of a product.
fn multiply(a: &[u64], b: &[u64], out: &mut [u64]) {
    for (at, a) in a.iter().enumerate().filter(|(_, a)| **a != 0) {
        let mut carry = 0;
        for (b, to) in b.iter().zip(&mut out[at..]) {
            // At most (2^64 - 1)^2 + 2 (2^64 - 1), which is 2^128 - 1.
            let sum = u128::from(*a) * u128::from(*b) + u128::from(*to) + carry;
            *to = sum as u64;
            carry = sum >> 64;
        }
    }
}

fn shift_up(a: &[u64], by: u64, out: &mut [u64]) {
    let Some(words) = usize::try_from(by / 64).ok().filter(|words| *words < a.len()) else { return };
    let bits = by % 64;
    for at in words..a.len() {
        let low = if bits > 0 && at > words { a[at - words - 1] >> (64 - bits) } else { 0 };
        out[at] = a[at - words] << bits | low;
    }
}

/// `above` is what comes in from above.
fn shift_down(a: &[u64], by: u64, above: u64, out: &mut [u64]) {
    let words = usize::try_from(by / 64).unwrap_or(usize::MAX).min(a.len());
    let bits = by % 64;
    let word = |at: usize| at.checked_add(words).and_then(|at| a.get(at)).copied().unwrap_or(above);
    for (at, out) in out.iter_mut().enumerate() {
        let high = if bits > 0 { word(at + 1) << (64 - bits) } else { 0 };
        *out = word(at) >> bits | high;
    }
}
