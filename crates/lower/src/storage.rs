//! Storage: trees of slots and headers, in which values live; l-values, which name storage.

use foldhash::HashSet;
use millrace_pipeline::{Expr, HeaderId, Home, Program, SlotId};
use millrace_sema::hir::Ty;
use std::rc::Rc;

use crate::value::Value;

/// The storage of one variable or of a part of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Storage {
    /// No bits.
    Unit,
    /// One slot.
    Scalar(SlotId),
    /// A structure or tuple.
    Struct(Rc<[Storage]>),
    /// A header.
    Header(Rc<HeaderStorage>),
    /// A header union: its members are headers that know each other.
    Union(Rc<[Storage]>),
    /// A stack of headers or unions, or an array.
    Stack(Rc<StackStorage>),
}

/// A header.
#[derive(Debug, PartialEq)]
pub(crate) struct HeaderStorage {
    /// The header.
    pub(crate) id: HeaderId,
    /// Its fields.
    pub(crate) fields: Vec<Storage>,
    /// The other members of its union: they become invalid when this becomes valid.
    pub(crate) siblings: Vec<HeaderId>,
}

/// A stack.
#[derive(Debug, PartialEq)]
pub(crate) struct StackStorage {
    /// Lowest index first.
    pub(crate) elements: Vec<Storage>,
    /// `nextIndex`; none for an array of other things than headers.
    pub(crate) next: Option<SlotId>,
}

/// What an expression that may be written to, or a path through one that may not, refers to.
#[derive(Clone, Debug)]
pub(crate) enum LValue {
    /// Storage.
    Storage(Storage),
    /// That element whose number the index is; none of them when it is larger. The index is pure and stable.
    Choice(Expr, Vec<LValue>),
    /// Bits high to low of another.
    Slice(Box<LValue>, u32, u32),
    /// A value: can be read only.
    Value(Value),
    /// Nothing: reads as zero, writes are lost. (An element outside a stack, an argument `_`.)
    Missing(Ty),
}

/// Sets of storage, to see whether two accesses can meet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Footprint {
    slots: HashSet<SlotId>,
    headers: HashSet<HeaderId>,
}

impl Footprint {
    /// Adds all slots and headers of it.
    pub(crate) fn add_storage(&mut self, storage: &Storage) {
        match storage {
            Storage::Unit => {}
            Storage::Scalar(slot) => {
                self.slots.insert(*slot);
            }
            Storage::Struct(members) | Storage::Union(members) => {
                members.iter().for_each(|p| self.add_storage(p));
            }
            Storage::Header(header) => {
                self.headers.insert(header.id);
                self.headers.extend(&header.siblings);
                header.fields.iter().for_each(|p| self.add_storage(p));
            }
            Storage::Stack(stack) => {
                self.slots.extend(stack.next);
                stack.elements.iter().for_each(|p| self.add_storage(p));
            }
        }
    }

    /// Adds what a write to an l-value can change.
    pub(crate) fn add_lvalue(&mut self, lvalue: &LValue) {
        match lvalue {
            LValue::Storage(storage) => self.add_storage(storage),
            LValue::Choice(_, alternatives) => alternatives.iter().for_each(|l| self.add_lvalue(l)),
            LValue::Slice(base, _, _) => self.add_lvalue(base),
            LValue::Value(_) | LValue::Missing(_) => {}
        }
    }

    /// Adds what an expression reads. A field of a header depends on the validity of the header too.
    pub(crate) fn add_expr(&mut self, expr: &Expr, program: &Program) {
        expr.walk(&mut |e| match e {
            Expr::Read(slot) => {
                self.slots.insert(*slot);
                if let Home::Header { header, .. } = program.slots[*slot].home {
                    self.headers.insert(header);
                }
            }
            Expr::IsValid(header) => {
                self.headers.insert(*header);
            }
            _ => {}
        });
    }

    /// Adds what a value reads.
    pub(crate) fn add_value(&mut self, value: &Value, program: &Program) {
        value.for_each(&mut |e| self.add_expr(e, program));
    }

    /// Whether the two have something in common.
    pub(crate) fn meets(&self, other: &Footprint) -> bool {
        let (few, many) = if self.slots.len() < other.slots.len() { (self, other) } else { (other, self) };
        few.slots.iter().any(|s| many.slots.contains(s))
            || self.headers.iter().any(|h| other.headers.contains(h))
    }

    /// Adds another.
    pub(crate) fn extend(&mut self, other: &Footprint) {
        self.slots.extend(&other.slots);
        self.headers.extend(&other.headers);
    }
}

impl Storage {
    /// Whether a name for this storage behaves as a variable of its own would, as long as nothing else touches it. A
    /// field of a header does not: while the header is invalid it loses what is written. Nor does one member of a union: what is done to
    /// it is done to the others.
    pub(crate) fn can_stand_for_variable(&self, program: &Program) -> bool {
        match self {
            Storage::Unit | Storage::Union(_) => true,
            Storage::Header(header) => header.siblings.is_empty(),
            Storage::Scalar(slot) => !matches!(program.slots[*slot].home, Home::Header { .. }),
            Storage::Struct(members) => members.iter().all(|p| p.can_stand_for_variable(program)),
            Storage::Stack(stack) => stack.elements.iter().all(|p| p.can_stand_for_variable(program)),
        }
    }

    /// The member with that number of a structure, header or union.
    pub(crate) fn member(&self, index: usize) -> Option<&Storage> {
        match self {
            Storage::Struct(members) | Storage::Union(members) => members.get(index),
            Storage::Header(header) => header.fields.get(index),
            _ => None,
        }
    }

    /// Calls `f` with every slot, but not `nextIndex`.
    pub(crate) fn for_each_slot(&self, f: &mut impl FnMut(SlotId)) {
        match self {
            Storage::Unit => {}
            Storage::Scalar(slot) => f(*slot),
            Storage::Struct(members) | Storage::Union(members) => {
                members.iter().for_each(|p| p.for_each_slot(f))
            }
            Storage::Header(header) => header.fields.iter().for_each(|p| p.for_each_slot(f)),
            Storage::Stack(stack) => stack.elements.iter().for_each(|p| p.for_each_slot(f)),
        }
    }
}
