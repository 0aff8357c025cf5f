//! Registers as flip-flops: what a bit takes, and which choices before it are pins of its flip-flop.

use super::bits::Lit;
use crate::sim::flatten::{Flat, Value};
use crate::*;

/// A register.
pub(super) struct Cells {
    pub(super) scope: u32,
    pub(super) id: RegisterId,
    /// What each bit takes.
    pub(super) next: Box<[Lit]>,
    /// Those whose signals differ, the lowest bits first.
    pub(super) parts: Vec<Part>,
    pub(super) has_reset: bool,
}

/// Some bits of a register.
pub(super) struct Part {
    /// The bit after its last one, in the register.
    pub(super) end: u32,
    /// Signals of all of them, which are pins of flip-flops: whether it takes anything, when it takes a constant.
    pub(super) control: Vec<Lit>,
    pub(super) pins: Vec<Pin>,
    /// The constant that bits of the register take.
    pub(super) set: Option<Bits>,
}

impl Cells {
    /// The number of the part that has a bit.
    pub(super) fn part_of(&self, bit: u32) -> usize {
        self.parts.partition_point(|part| part.end <= bit)
    }

    /// What chooses of a bit.
    pub(super) fn control(&self, bit: u32) -> &[Lit] {
        self.parts.get(self.part_of(bit)).map_or(&[], |part| &part.control)
    }

    /// Whether a bit only takes one value, always or where it is enabled.
    pub(super) fn only_moves(&self, bit: u32) -> bool {
        !self.has_reset && self.parts.get(self.part_of(bit)).is_some_and(|part| part.set.is_none())
    }

    /// Bits after those that are there.
    pub(super) fn push(&mut self, part: Part) {
        match self.parts.last_mut() {
            Some(last) if last.set.is_none() && last.control == part.control && last.pins == part.pins => {
                last.end = part.end;
            }
            _ => self.parts.push(part),
        }
    }
}

/// What a signal of a register's bits does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pin {
    /// They take a value where it is 1.
    Enable,
    /// They take a constant where it is 1.
    Set,
}

/// A choice that is a pin of flip-flops.
#[derive(Clone)]
pub(super) struct Choice {
    pub(super) select: Value,
    /// It is made where `select` is 0.
    pub(super) is_inverted: bool,
    /// What they take then; none: they take a value then, and else keep what they hold.
    pub(super) constant: Option<Bits>,
}

/// What a register takes without choices that are pins of flip-flops, the lowest bits first: parts of it may have choices of their own.
pub(super) fn parts(
    flat: &Flat<'_>,
    (scope, id): (usize, RegisterId),
    register: &Register,
    next: Value,
) -> Vec<(Value, Vec<Choice>)> {
    let mut done = Vec::new();
    let mut open = vec![(next, 0, Vec::new())];
    while let Some((mut value, low, mut chosen)) = open.pop() {
        let width = flat.node(value).1.width;
        while let Some((rest, choice)) = choice(flat, (scope, id), (register, low), value) {
            let is_set = |choice: &Choice| choice.constant.is_some();
            // A flip-flop has one pin of each kind, and keeps as a whole.
            let is_new = chosen.iter().all(|other| is_set(other) != is_set(&choice));
            if !is_new || !is_set(&choice) && (register.enable.is_some() || width < register.width) {
                break;
            }
            chosen.push(choice);
            value = rest;
        }
        match &flat.node(value) {
            (at, Node { op: Op::Concat(all), .. }) => {
                // The last one is lowest, and the next.
                let mut above = low + width;
                for part in all.iter() {
                    let value = flat.value(*at, *part);
                    above -= flat.node(value).1.width;
                    open.push((value, above, chosen.clone()));
                }
            }
            _ => done.push((value, chosen)),
        }
    }
    done
}

/// The choice that bits of a register from `low` on make last, and what they take else.
fn choice(
    flat: &Flat<'_>,
    (scope, id): (usize, RegisterId),
    (register, low): (&Register, u32),
    value: Value,
) -> Option<(Value, Choice)> {
    let (at, node) = flat.node(value);
    let Op::Mux(select, a, b) = node.op else { return None };
    let (select, a, b) = (flat.value(at, select), flat.value(at, a), flat.value(at, b));
    let is_own = |value: Value| {
        let (of, node) = flat.node(value);
        of == scope && node.op == Op::Register(id)
    };
    let constant = |value: Value| match &flat.node(value).1.op {
        Op::Constant(bits) => register.can_be_set(low, bits).then(|| Bits::clone(bits)),
        _ => None,
    };
    if is_own(a) || is_own(b) {
        let is_inverted = is_own(a);
        return Some((if is_inverted { b } else { a }, Choice { select, is_inverted, constant: None }));
    }
    match (constant(a), constant(b)) {
        (Some(value), _) => Some((b, Choice { select, is_inverted: false, constant: Some(value) })),
        (_, Some(value)) => Some((a, Choice { select, is_inverted: true, constant: Some(value) })),
        _ => None,
    }
}
