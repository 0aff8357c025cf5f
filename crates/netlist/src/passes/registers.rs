//! Registers that always hold the same value, and registers that always hold what another one does, as a whole or in some of their bits.

use crate::*;
use rustc_hash::FxHashMap;

/// What a register is known to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Constant(Bits),
    /// What another register holds, which is not known.
    Same(RegisterId),
    /// Some of its bits are constants, or what others hold.
    Pieces(Pieces),
}

/// A register of which some bits are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pieces {
    /// What its bits are, the lowest first.
    all: Vec<Piece>,
    /// The bits that it still has to hold, as runs: the first, and how many.
    kept: Vec<(u32, u32)>,
}

/// Bits of a register that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Constant(Bits),
    /// So many bits from one on that the register keeps.
    Own(u32, u32),
    /// So many bits from one on of the value of another register, which comes earlier.
    Of(NodeId, u32, u32),
}

impl Pieces {
    /// The next bit of the register is one that it keeps.
    pub(super) fn keep(&mut self, bit: u32) {
        match self.kept.last_mut() {
            Some((low, width)) if *low + *width == bit => *width += 1,
            _ => self.kept.push((bit, 1)),
        }
    }

    /// Adds a piece above the others.
    pub(super) fn add(&mut self, piece: Piece) {
        match (self.all.last_mut(), &piece) {
            (Some(Piece::Constant(below)), Piece::Constant(more)) => *below = more.concat(below),
            (Some(Piece::Own(low, width)), Piece::Own(from, more)) if *low + *width == *from => {
                *width += more
            }
            (Some(Piece::Of(node, low, width)), Piece::Of(of, from, more))
                if node == of && *low + *width == *from =>
            {
                *width += more;
            }
            _ => self.all.push(piece),
        }
    }

    /// The pieces, the highest first.
    pub(super) fn down(&self) -> impl Iterator<Item = &Piece> {
        self.all.iter().rev()
    }

    /// The runs of bits that are kept, the highest first: the first bit, and how many.
    pub(super) fn kept_down(&self) -> impl Iterator<Item = (u32, u32)> {
        self.kept.iter().rev().copied()
    }

    /// How many bits are kept.
    pub(super) fn width(&self) -> u32 {
        self.kept.iter().map(|(_, width)| width).sum()
    }

    /// Where a bit that is kept is among those.
    pub(super) fn place(&self, bit: u32) -> u32 {
        let below = self.kept.iter().map(|(low, width)| bit.saturating_sub(*low).min(*width));
        below.sum()
    }
}

/// The registers of a module that are known.
#[derive(Default)]
pub(crate) struct Known {
    values: FxHashMap<RegisterId, Value>,
    /// Inputs, and what memories and instances give, of which some bits never change.
    pub(super) values_in_pieces: FxHashMap<NodeId, Pieces>,
}

impl Known {
    pub(crate) fn get(&self, register: RegisterId) -> Option<&Value> {
        self.values.get(&register)
    }

    /// Adds registers of which some bits are known. One that stands for another as a whole keeps its width until the next time.
    pub(super) fn insert_pieces(&mut self, pieces: Vec<(RegisterId, Pieces)>) {
        let more = pieces.into_iter().map(|(register, pieces)| (register, Value::Pieces(pieces)));
        self.values.extend(more);
        let in_pieces = |id: &RegisterId| matches!(self.values.get(id), Some(Value::Pieces(_)));
        let of_these = |value: &Value| matches!(value, Value::Same(other) if in_pieces(other));
        let later: Vec<_> =
            self.values.iter().filter(|(_, value)| of_these(value)).map(|(id, _)| *id).collect();
        later.iter().for_each(|id| drop(self.values.remove(id)));
    }
}

/// Finds them.
///
/// A register is constant if what it starts with is all that it ever takes: its next value is itself or that constant, or it is
/// never enabled. Two registers are equal if they start with the same value and take the same at the same edges.
pub(super) fn known(module: &Module) -> Known {
    let mut known = Known::default();
    let mut first = FxHashMap::default();
    for (id, register) in &module.registers {
        let start = register.reset.clone().unwrap_or(Bits::zero(register.width));
        let Some(next) = register.next.expand() else { continue };
        let constant = |node: NodeId| match &module.nodes[node].op {
            Op::Constant(value) => Some(&**value),
            _ => None,
        };
        let never = register.enable.expand().and_then(constant).is_some_and(Bits::is_zero);
        let itself = module.nodes[next].op == Op::Register(id);
        if never || itself || constant(next) == Some(&start) {
            known.values.insert(id, Value::Constant(start));
            continue;
        }
        let key = (next, register.enable, register.reset.clone(), register.width);
        let other = *first.entry(key).or_insert(id);
        if other != id {
            known.values.insert(id, Value::Same(other));
        }
    }
    known
}
