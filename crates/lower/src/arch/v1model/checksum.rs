//! Hashes and checksums.

use millrace_pipeline::{BinaryOp, DataItem, Expr, HashAlgorithm, Inst, Type};
use millrace_sema::Constant;
use millrace_sema::hir::{self, Arg, Call, ExprKind};

use super::standard_field;
use crate::code::Code;
use crate::fail::{Lower, code as kind, fail, internal};
use crate::place::{LValue, Place};
use crate::types::Shape;
use crate::value::Value;

/// The widest number that `hash` calculates with, as in bmv2.
const HASH_WIDTH: u32 = 64;

/// An algorithm by the name of its member of `HashAlgorithm`.
pub(super) fn algorithm(name: &str) -> Option<HashAlgorithm> {
    Some(match name {
        "crc32" => HashAlgorithm::Crc32,
        "crc32_custom" => HashAlgorithm::Crc32Custom,
        "crc16" => HashAlgorithm::Crc16,
        "crc16_custom" => HashAlgorithm::Crc16Custom,
        "identity" => HashAlgorithm::Identity,
        "csum16" => HashAlgorithm::Csum16,
        "xor16" => HashAlgorithm::Xor16,
        _ => return None,
    })
}

/// What a `HashAlgorithm` argument asks for.
enum Asked {
    Hash(HashAlgorithm),
    /// `random`: any number at all.
    Random,
}

fn asked<'a>(code: &mut Code<'_, 'a>, arg: &'a hir::Expr) -> Lower<Asked> {
    let Ok(Constant::EnumMember(member)) = code.cx.constant(arg, code.scope()) else {
        return fail(kind::CONSTANT, arg.span, "the hash algorithm must be known at compile time");
    };
    let name = super::objects::enum_member(code.cx, "HashAlgorithm", member);
    match (name, name.and_then(algorithm)) {
        (_, Some(algorithm)) => Ok(Asked::Hash(algorithm)),
        (Some("random"), _) => Ok(Asked::Random),
        _ => fail(kind::ARCHITECTURE, arg.span, "this hash algorithm is not known"),
    }
}

/// A new number of `width` bits with the hash of the data.
fn compute<'a>(
    code: &mut Code<'_, 'a>,
    algorithm: &'a hir::Expr,
    data: &'a hir::Expr,
    payload: bool,
    width: u32,
) -> Lower<Expr> {
    let asked = asked(code, algorithm)?;
    let mut items = Vec::new();
    data_items(code, data, &mut items)?;
    if payload {
        items.push(DataItem::Payload);
    }
    let dst = code.temp(Type::Bits(width));
    match asked {
        Asked::Hash(algorithm) => code.push(Inst::Hash { dst, algorithm, data: items }),
        Asked::Random => {
            let (low, high) = (Expr::bits(width, 0), Expr::Const(millrace_pipeline::Bits::ones(width)));
            code.push(Inst::Random { dst, low, high });
        }
    }
    Ok(Expr::Read(dst))
}

/// What is hashed: the scalars of the data; a header as a whole counts only when it is valid.
fn data_items<'a>(code: &mut Code<'_, 'a>, data: &'a hir::Expr, items: &mut Vec<DataItem>) -> Lower<()> {
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
            LValue::Place(place) => {
                place_items(code, &place, items);
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
    let (a, b) = (crate::types::members(types, a.ty), crate::types::members(types, b.ty));
    a.len() == b.len() && a.iter().zip(&b).all(|((_, a), (_, b))| code.cx.shape(*a) == code.cx.shape(*b))
}

fn value_items<'a>(code: &mut Code<'_, 'a>, data: &'a hir::Expr, items: &mut Vec<DataItem>) -> Lower<()> {
    let value = code.eval(data)?;
    push_value(code, &value, items);
    Ok(())
}

fn push_value(code: &Code<'_, '_>, value: &Value, items: &mut Vec<DataItem>) {
    for scalar in value.scalars() {
        let scalar = if code.type_of(&scalar) == Type::Bool { scalar.bool_to_bits() } else { scalar };
        items.push(DataItem::Value(scalar));
    }
}

fn place_items(code: &Code<'_, '_>, place: &Place, items: &mut Vec<DataItem>) {
    match place {
        Place::Header(header) => items.push(DataItem::Header(header.id)),
        Place::Struct(members) | Place::Union(members) => {
            members.iter().for_each(|p| place_items(code, p, items));
        }
        Place::Stack(stack) => stack.elements.iter().for_each(|p| place_items(code, p, items)),
        Place::Unit | Place::Scalar(_) => push_value(code, &Value::read(place), items),
    }
}

/// `hash(result, algorithm, base, data, max)`: the result is base + hash mod max, and base when max is 0.
pub(super) fn hash<'a>(code: &mut Code<'_, 'a>, call: &'a Call) -> Lower<Value> {
    let [
        Arg { value: Some(result), .. },
        Arg { value: Some(algorithm), .. },
        Arg { value: Some(base), .. },
        Arg { value: Some(data), .. },
        Arg { value: Some(max), .. },
    ] = call.args.as_slice()
    else {
        return internal(call.span, "`hash` takes five arguments");
    };
    let target = code.access(result)?;
    let (base_value, max_value) = code.two(base, max)?;
    let width = [result.ty, base.ty, max.ty].into_iter().map(|ty| code.width(ty)).max().unwrap_or(1);
    let width = width.max(HASH_WIDTH);
    let base = code.as_scalar(base_value, base)?.zext_to(width, code.cx.ir.program());
    let max = code.as_scalar(max_value, max)?.zext_to(width, code.cx.ir.program());
    let hashed = compute(code, algorithm, data, false, width)?;
    // The remainder of a division by 0 is 0 in the IR, so max = 0 needs no case of its own.
    let sum = base.add(Expr::binary(BinaryOp::Mod, hashed, max));
    let cut = sum.zext_to(code.width(result.ty), code.cx.ir.program());
    code.store(&target, Value::Scalar(cut))?;
    Ok(Value::Unit)
}

/// The arguments of the checksum functions.
struct Checksum<'a> {
    condition: &'a hir::Expr,
    data: &'a hir::Expr,
    checksum: &'a hir::Expr,
    algorithm: &'a hir::Expr,
}

fn arguments(call: &Call) -> Lower<Checksum<'_>> {
    match call.args.as_slice() {
        [
            Arg { value: Some(condition), .. },
            Arg { value: Some(data), .. },
            Arg { value: Some(checksum), .. },
            Arg { value: Some(algorithm), .. },
        ] => Ok(Checksum { condition, data, checksum, algorithm }),
        _ => internal(call.span, "a checksum function takes four arguments"),
    }
}

/// `verify_checksum` and `verify_checksum_with_payload`.
pub(super) fn verify<'a>(code: &mut Code<'_, 'a>, call: &'a Call, payload: bool) -> Lower<Value> {
    let args = arguments(call)?;
    let condition = code.scalar(args.condition)?;
    let (_, join) = code.branch(condition);
    let wanted = code.scalar(args.checksum)?;
    let width = code.width(args.checksum.ty);
    let found = compute(code, args.algorithm, args.data, payload, width)?;
    let (_, same) = code.branch(found.ne(wanted));
    if let Some(place) = standard_field(code.cx, "checksum_error") {
        code.store_place(&place, Value::Scalar(Expr::bits(1, 1)))?;
    }
    code.body.goto(same);
    code.body.switch_to(same);
    code.continue_at(join);
    Ok(Value::Unit)
}

/// `update_checksum` and `update_checksum_with_payload`.
pub(super) fn update<'a>(code: &mut Code<'_, 'a>, call: &'a Call, payload: bool) -> Lower<Value> {
    let args = arguments(call)?;
    let condition = code.scalar(args.condition)?;
    let (_, join) = code.branch(condition);
    let target = code.access(args.checksum)?;
    let width = code.width(args.checksum.ty);
    let found = compute(code, args.algorithm, args.data, payload, width)?;
    code.store(&target, Value::Scalar(found))?;
    code.continue_at(join);
    Ok(Value::Unit)
}

/// `Checksum16.get(data)`.
pub(super) fn checksum16<'a>(code: &mut Code<'_, 'a>, data: &'a hir::Expr) -> Lower<Value> {
    let mut items = Vec::new();
    data_items(code, data, &mut items)?;
    let dst = code.temp(Type::Bits(16));
    code.push(Inst::Hash { dst, algorithm: HashAlgorithm::Csum16, data: items });
    Ok(Value::Scalar(Expr::Read(dst)))
}
