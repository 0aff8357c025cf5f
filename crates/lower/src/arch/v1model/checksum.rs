//! Hashes and checksums.

use millrace_pipeline::{DataItem, Expr, HashAlgorithm};
use millrace_sema::Constant;
use millrace_sema::hir::{self, Arg, Call};

use super::standard_field;
use crate::arch::objects::enum_member;
use crate::arch::{hashing, messages};
use crate::code::Code;
use crate::fail::{Lower, code as kind, fail, internal};
use crate::value::Value;

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
    let name = enum_member(code.cx, "HashAlgorithm", member);
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
    let mut items = hashing::items_of(code, data)?;
    if payload {
        items.push(DataItem::Payload);
    }
    match asked {
        Asked::Hash(algorithm) => Ok(hashing::hash(code, algorithm, items, width)),
        Asked::Random => {
            let (low, high) = (Expr::bits(width, 0), Expr::Const(millrace_pipeline::Bits::ones(width)));
            Ok(messages::draw(code, width, low, high))
        }
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
    let width = width.max(hashing::HASH_WIDTH);
    let base = code.as_scalar(base_value, base)?.zext_to(width, code.cx.ir.program());
    let max = code.as_scalar(max_value, max)?.zext_to(width, code.cx.ir.program());
    let hashed = compute(code, algorithm, data, false, width)?;
    let cut = hashing::within(hashed, base, max).zext_to(code.width(result.ty), code.cx.ir.program());
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
    if let Some(storage) = standard_field(code.cx, "checksum_error") {
        code.store_in(&storage, Value::Scalar(Expr::bits(1, 1)))?;
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
    let items = hashing::items_of(code, data)?;
    Ok(Value::Scalar(hashing::hash(code, HashAlgorithm::Csum16, items, 16)))
}
