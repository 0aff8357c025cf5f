//! What hash and checksum externs of all architectures share: the data that they run over, and ranges of results.

use millrace_pipeline::{
    BinaryOp, CrcParameters, DataItem, Expr, HashAlgorithm, HashId, Inst, OwnHash, Type,
};
use millrace_sema::hir::{self, ExprKind};

use crate::code::Code;
use crate::fail::Lower;
use crate::storage::{LValue, Storage};
use crate::types::{Shape, members};
use crate::value::Value;

/// The fewest bits that a hash is calculated with before it is brought into a range, as in bmv2.
pub(super) const HASH_WIDTH: u32 = 64;

/// The data of an argument.
pub(super) fn items_of<'a>(code: &mut Code<'_, 'a>, data: &'a hir::Expr) -> Lower<Vec<DataItem>> {
    let mut items = Vec::new();
    data_items(code, data, &mut items)?;
    Ok(items)
}

/// The hash of data, cut or widened to a number of that width.
pub(super) fn hash(
    code: &mut Code<'_, '_>,
    algorithm: HashAlgorithm,
    data: Vec<DataItem>,
    width: u32,
) -> Expr {
    let dst = code.temp(Type::Bits(width));
    let own = CrcParameters::of(algorithm).map(|_| own_hash(code, algorithm));
    code.push(Inst::Hash { dst, algorithm, own, data });
    Expr::Read(dst)
}

/// A hash of its own, named as p4c names them: `calc`, `calc_0`, `calc_1` and so on.
fn own_hash(code: &mut Code<'_, '_>, algorithm: HashAlgorithm) -> HashId {
    let hashes = &mut code.cx.ir.program_mut().hashes;
    let name = hashes.len().checked_sub(1).map_or_else(|| "calc".to_owned(), |more| format!("calc_{more}"));
    hashes.push(OwnHash { name, algorithm })
}

/// `base + hashed mod max`, and `base` when `max` is 0: the remainder of a division by 0 is 0 in the IR. All three
/// have one width.
pub(super) fn within(hashed: Expr, base: Expr, max: Expr) -> Expr {
    base.add(Expr::binary(BinaryOp::Mod, hashed, max))
}

/// What is hashed: the scalars of the data; a header as a whole counts only when it is valid.
pub(super) fn data_items<'a>(
    code: &mut Code<'_, 'a>,
    data: &'a hir::Expr,
    items: &mut Vec<DataItem>,
) -> Lower<()> {
    match &data.kind {
        ExprKind::Aggregate(members) if !matches!(code.cx.shape(data.ty), Shape::Header(_)) => {
            members.iter().try_for_each(|e| data_items(code, e, items))
        }
        ExprKind::Cast(inner) if matches!(inner.kind, ExprKind::Aggregate(_)) => {
            // The members may need conversions of their own.
            if let (ExprKind::Aggregate(members), true) = (&inner.kind, same_scalars(code, inner, data)) {
                return members.iter().try_for_each(|e| data_items(code, e, items));
            }
            value_items(code, data, items)
        }
        _ if code.is_path(data) => match code.access(data)? {
            LValue::Storage(storage) => {
                storage_items(code, &storage, items);
                Ok(())
            }
            lvalue => {
                let value = code.load(&lvalue)?;
                push_value(code, &value, items);
                Ok(())
            }
        },
        _ => value_items(code, data, items),
    }
}

fn same_scalars(code: &Code<'_, '_>, a: &hir::Expr, b: &hir::Expr) -> bool {
    let types = &code.cx.hir.types;
    let (a, b) = (members(types, a.ty), members(types, b.ty));
    a.len() == b.len() && a.iter().zip(&b).all(|((_, a), (_, b))| code.cx.shape(*a) == code.cx.shape(*b))
}

fn value_items<'a>(code: &mut Code<'_, 'a>, data: &'a hir::Expr, items: &mut Vec<DataItem>) -> Lower<()> {
    let value = code.eval(data)?;
    push_value(code, &value, items);
    Ok(())
}

pub(super) fn push_value(code: &Code<'_, '_>, value: &Value, items: &mut Vec<DataItem>) {
    for scalar in value.scalars() {
        let scalar = if code.type_of(&scalar) == Type::Bool { scalar.bool_to_bits() } else { scalar };
        items.push(DataItem::Value(scalar));
    }
}

fn storage_items(code: &Code<'_, '_>, storage: &Storage, items: &mut Vec<DataItem>) {
    match storage {
        Storage::Header(header) => items.push(DataItem::Header(header.id)),
        Storage::Struct(members) | Storage::Union(members) => {
            members.iter().for_each(|p| storage_items(code, p, items));
        }
        Storage::Stack(stack) => stack.elements.iter().for_each(|p| storage_items(code, p, items)),
        Storage::Unit | Storage::Scalar(_) => push_value(code, &Value::read(storage), items),
    }
}
