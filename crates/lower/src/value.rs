//! Values of expressions: trees of pure IR expressions in the shape of their type.

use millrace_pipeline::{Expr, Program, SlotId, Type};
use num_bigint::BigInt;

use crate::storage::{HeaderStorage, StackStorage, Storage};

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// No bits.
    Unit,
    /// One scalar.
    Scalar(Expr),
    /// A structure, tuple or list.
    Tuple(Vec<Value>),
    /// A header. Where it is not valid its fields are 0.
    Header(Box<HeaderValue>),
    /// A header union: its members are headers, at most one of them valid.
    Union(Vec<Value>),
    /// A stack or array.
    Stack(Vec<Value>, Option<Expr>),
    /// An `int`.
    Int(BigInt),
    /// A `string`.
    Text(String),
}

/// A header.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeaderValue {
    /// Whether it is valid.
    pub(crate) valid: Expr,
    /// Its fields.
    pub(crate) fields: Vec<Value>,
}

impl Value {
    /// A header.
    pub(crate) fn header(valid: Expr, fields: Vec<Value>) -> Value {
        Value::Header(Box::new(HeaderValue { valid, fields }))
    }

    /// What storage holds now.
    pub(crate) fn read(storage: &Storage) -> Value {
        let all = |parts: &[Storage]| parts.iter().map(Value::read).collect::<Vec<_>>();
        match storage {
            Storage::Unit => Value::Unit,
            Storage::Scalar(slot) => Value::Scalar(Expr::Read(*slot)),
            Storage::Struct(members) => Value::Tuple(all(members)),
            Storage::Header(header) => {
                let HeaderStorage { id, fields, .. } = &**header;
                Value::header(Expr::IsValid(*id), all(fields))
            }
            Storage::Union(members) => Value::Union(all(members)),
            Storage::Stack(stack) => {
                let StackStorage { elements, next } = &**stack;
                Value::Stack(all(elements), next.map(Expr::Read))
            }
        }
    }

    /// Calls `f` with every expression of the tree.
    pub(crate) fn for_each<'v>(&'v self, f: &mut impl FnMut(&'v Expr)) {
        match self {
            Value::Unit | Value::Int(_) | Value::Text(_) => {}
            Value::Scalar(e) => f(e),
            Value::Tuple(members) | Value::Union(members) => members.iter().for_each(|v| v.for_each(f)),
            Value::Header(header) => {
                f(&header.valid);
                header.fields.iter().for_each(|v| v.for_each(f));
            }
            Value::Stack(elements, next) => {
                elements.iter().for_each(|v| v.for_each(f));
                next.iter().for_each(f);
            }
        }
    }

    /// The same tree with other expressions, in the order of [`Value::for_each`].
    pub(crate) fn map(self, f: &mut impl FnMut(Expr) -> Expr) -> Value {
        let all = |values: Vec<Value>, f: &mut _| values.into_iter().map(|v| v.map(f)).collect::<Vec<_>>();
        match self {
            Value::Scalar(e) => Value::Scalar(f(e)),
            Value::Tuple(members) => Value::Tuple(all(members, f)),
            Value::Union(members) => Value::Union(all(members, f)),
            Value::Header(header) => {
                let HeaderValue { valid, fields } = *header;
                let valid = f(valid);
                Value::header(valid, all(fields, f))
            }
            Value::Stack(elements, next) => {
                let elements = all(elements, f);
                Value::Stack(elements, next.map(f))
            }
            value @ (Value::Unit | Value::Int(_) | Value::Text(_)) => value,
        }
    }

    /// Whether there are headers in it.
    pub(crate) fn has_headers(&self) -> bool {
        match self {
            Value::Header(_) | Value::Union(_) => true,
            Value::Tuple(members) | Value::Stack(members, _) => members.iter().any(Value::has_headers),
            Value::Unit | Value::Scalar(_) | Value::Int(_) | Value::Text(_) => false,
        }
    }

    /// The scalars in order, without validity and `nextIndex`.
    pub(crate) fn scalars(&self) -> Vec<Expr> {
        fn collect(value: &Value, list: &mut Vec<Expr>) {
            match value {
                Value::Unit | Value::Text(_) => {}
                Value::Int(number) => {
                    list.push(Expr::Const(millrace_pipeline::Bits::from_bigint(64, number)))
                }
                Value::Scalar(e) => list.push(e.clone()),
                Value::Tuple(members) | Value::Union(members) => {
                    members.iter().for_each(|v| collect(v, list))
                }
                Value::Header(header) => header.fields.iter().for_each(|v| collect(v, list)),
                Value::Stack(elements, _) => elements.iter().for_each(|v| collect(v, list)),
            }
        }
        let mut list = Vec::new();
        collect(self, &mut list);
        list
    }

    /// The member with that number.
    pub(crate) fn member(self, index: usize) -> Option<Value> {
        let mut members = match self {
            Value::Tuple(members) | Value::Union(members) | Value::Stack(members, _) => members,
            Value::Header(header) => header.fields,
            _ => return None,
        };
        (index < members.len()).then(|| members.swap_remove(index))
    }

    /// `cond ? a : b`; the condition is read once for each scalar.
    pub(crate) fn mux(cond: &Expr, a: Value, b: Value) -> Value {
        let pairs = |a: Vec<Value>, b: Vec<Value>| {
            a.into_iter().zip(b).map(|(a, b)| Value::mux(cond, a, b)).collect::<Vec<_>>()
        };
        let choose = |a: Expr, b: Expr| if a == b { a } else { Expr::mux(cond.clone(), a, b) };
        match (a, b) {
            (Value::Scalar(a), Value::Scalar(b)) => Value::Scalar(choose(a, b)),
            (Value::Tuple(a), Value::Tuple(b)) => Value::Tuple(pairs(a, b)),
            (Value::Union(a), Value::Union(b)) => Value::Union(pairs(a, b)),
            (Value::Header(a), Value::Header(b)) => {
                Value::header(choose(a.valid, b.valid), pairs(a.fields, b.fields))
            }
            (Value::Stack(a, an), Value::Stack(b, bn)) => {
                let next = an.zip(bn).map(|(a, b)| choose(a, b));
                Value::Stack(pairs(a, b), next)
            }
            (a, _) => a,
        }
    }

    /// Equality as the specification defines it for each type.
    pub(crate) fn equal(a: &Value, b: &Value) -> Expr {
        let pairs = |a: &[Value], b: &[Value]| Expr::all(a.iter().zip(b).map(|(a, b)| Value::equal(a, b)));
        match (a, b) {
            (Value::Scalar(a), Value::Scalar(b)) => a.clone().eq(b.clone()),
            (Value::Int(a), Value::Int(b)) => Expr::Bool(a == b),
            (Value::Text(a), Value::Text(b)) => Expr::Bool(a == b),
            // Unions are equal when both are invalid or the same member is valid in both and equal: since at most
            // one member is valid, that is the equality of all members.
            (Value::Tuple(a), Value::Tuple(b))
            | (Value::Union(a), Value::Union(b))
            | (Value::Stack(a, _), Value::Stack(b, _)) => pairs(a, b),
            (Value::Header(a), Value::Header(b)) => {
                let both = a.valid.clone().and(b.valid.clone());
                let none = a.valid.clone().not().and(b.valid.clone().not());
                none.or(both.and(pairs(&a.fields, &b.fields)))
            }
            _ => Expr::Bool(true),
        }
    }

    /// Whether a header, or some member of a union, is valid.
    pub(crate) fn validity(&self) -> Expr {
        match self {
            Value::Header(header) => header.valid.clone(),
            Value::Union(members) => Expr::any(members.iter().map(Value::validity)),
            _ => Expr::Bool(true),
        }
    }

    /// Whether using the value more than once costs nothing: constants and single slots.
    pub(crate) fn is_trivial(&self) -> bool {
        let mut trivial = true;
        self.for_each(&mut |e| trivial &= is_trivial(e));
        trivial
    }

    /// Whether it is the same for every packet.
    pub(crate) fn is_constant(&self) -> bool {
        let mut constant = true;
        self.for_each(&mut |e| constant &= matches!(e, Expr::Const(_) | Expr::Bool(_)));
        constant
    }
}

/// Whether an expression is a constant or reads one thing.
pub(crate) fn is_trivial(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Const(_) | Expr::Bool(_) | Expr::Read(_) | Expr::IsValid(_) | Expr::PacketLength | Expr::Cursor
    )
}

/// The constant 0 or false of a type; the empty string is what `empty` holds.
pub(crate) fn zero_scalar(ty: Type, empty: impl FnOnce(u32) -> SlotId) -> Expr {
    match ty {
        Type::Bool => Expr::Bool(false),
        Type::Bits(w) => Expr::bits(w, 0),
        Type::Varbit(w) => Expr::Read(empty(w)),
    }
}

/// The value whose number the index is, out of a list of the same shape; `outside` when the index is larger. The
/// depth of the result is the logarithm of the length.
pub(crate) fn choose(index: &Expr, mut values: Vec<Value>, outside: Value, program: &Program) -> Value {
    let width = index.ty(program).bits().unwrap_or(1);
    if let Some(constant) = index.as_const() {
        let at = usize::try_from(constant.to_u64_saturating()).unwrap_or(usize::MAX);
        return if at < values.len() { values.swap_remove(at) } else { outside };
    }
    let fits = if width >= 32 { values.len() } else { values.len().min(1 << width) };
    values.truncate(fits);
    let covers_all = width < 32 && fits == 1 << width;
    let Some(tree) = choose_in(index, width, 0, values) else { return outside };
    if covers_all {
        return tree;
    }
    let inside = index.clone().lt(Expr::bits(width, fits as u128));
    Value::mux(&inside, tree, outside)
}

fn choose_in(index: &Expr, width: u32, first: usize, mut values: Vec<Value>) -> Option<Value> {
    if values.len() <= 1 {
        return values.pop();
    }
    let half = values.len() / 2;
    let upper = values.split_off(half);
    let cond = index.clone().lt(Expr::bits(width, (first + half) as u128));
    let low = choose_in(index, width, first, values)?;
    let high = choose_in(index, width, first + half, upper)?;
    Some(Value::mux(&cond, low, high))
}
