//! The extern functions of v1model.

use millrace_pipeline::{DigestId, Expr, Inst, Intrinsic};
use millrace_sema::Constant;
use millrace_sema::hir::{self, Arg, Call, Ty, TyKind};

use super::drop_port::drop_port;
use super::{checksum, field_list, model, model_mut, wishes};
use crate::arch::messages;
use crate::code::Code;
use crate::fail::{Lower, code as kind, fail, internal};
use crate::storage::LValue;
use crate::types;
use crate::value::Value;

/// A call of an extern function.
pub(crate) fn call_function<'a>(code: &mut Code<'_, 'a>, name: &str, call: &'a Call) -> Lower<Value> {
    let args: Vec<Option<&'a hir::Expr>> = call.args.iter().map(|a| a.value.as_ref()).collect();
    match (name, args.as_slice()) {
        ("mark_to_drop", []) => mark_to_drop(code, None, call),
        ("mark_to_drop", [Some(standard)]) => mark_to_drop(code, Some(standard), call),
        ("hash", _) => checksum::hash(code, call),
        ("verify_checksum", _) => checksum::verify(code, call, false),
        ("verify_checksum_with_payload", _) => checksum::verify(code, call, true),
        ("update_checksum", _) => checksum::update(code, call, false),
        ("update_checksum_with_payload", _) => checksum::update(code, call, true),
        ("random", _) => random(code, call),
        ("digest", [Some(receiver), Some(data)]) => digest(code, receiver, data, call),
        ("truncate", [Some(length)]) => {
            let length = code.scalar(length)?.zext_to(32, code.cx.ir.program());
            let slot = code.cx.ir.intrinsic(Intrinsic::Truncate);
            code.assign(slot, length);
            Ok(Value::Unit)
        }
        ("clone", [_, Some(session)]) => {
            let list = field_list::nothing(code.cx);
            clone(code, session, List::Known(list))
        }
        ("clone3", [_, Some(session), Some(data)]) => {
            let list = field_list::named_by(code, data)?;
            clone(code, session, List::Known(list))
        }
        ("clone_preserving_field_list", [_, Some(session), Some(list)]) => {
            clone(code, session, List::Given(list))
        }
        ("resubmit" | "recirculate", [data]) => {
            let list = match data {
                Some(data) => field_list::named_by(code, data)?,
                None => field_list::nothing(code.cx),
            };
            again(code, name, List::Known(list))
        }
        ("resubmit_preserving_field_list", [Some(list)]) => again(code, "resubmit", List::Given(list)),
        ("recirculate_preserving_field_list", [Some(list)]) => again(code, "recirculate", List::Given(list)),
        ("log_msg", [Some(format)]) => log(code, format, None),
        ("log_msg", [Some(format), Some(data)]) => log(code, format, Some(data)),
        ("assert" | "assume", [Some(condition)]) => messages::assertion(code, name, condition),
        _ => fail(kind::FOREIGN, call.span, format!("v1model has no extern function `{name}`")),
    }
}

/// `mark_to_drop(standard_metadata)`; without argument, of the packet's own.
fn mark_to_drop<'a>(
    code: &mut Code<'_, 'a>,
    standard: Option<&'a hir::Expr>,
    call: &'a Call,
) -> Lower<Value> {
    let (target, ty) = match standard {
        Some(standard) => (code.access(standard)?, standard.ty),
        None => match model(&code.cx.arch).and_then(|s| s.standard.as_ref()) {
            Some(standard) => (LValue::Storage(standard.storage.clone()), standard.ty),
            None => return internal(call.span, "no standard metadata"),
        },
    };
    let zero = |width| Expr::bits(width, 0);
    code.note_drop("mark_to_drop");
    wishes::forget_ports(code);
    for (name, value) in [("egress_spec", drop_port as fn(u32) -> Expr), ("mcast_grp", zero)] {
        let members = types::members(&code.cx.hir.types, ty);
        let Some(at) = members.iter().position(|(n, _)| n == name) else { continue };
        let width = code.width(members[at].1);
        let LValue::Storage(storage) = &target else {
            return internal(call.span, "standard metadata that is not in one storage");
        };
        if let Some(field) = storage.member(at) {
            let (field, value) = (field.clone(), Value::Scalar(value(width)));
            code.copying(|code| code.store_in(&field, value))?;
        }
    }
    Ok(Value::Unit)
}

/// `random(result, low, high)`.
fn random<'a>(code: &mut Code<'_, 'a>, call: &'a Call) -> Lower<Value> {
    let [Arg { value: Some(result), .. }, Arg { value: Some(low), .. }, Arg { value: Some(high), .. }] =
        call.args.as_slice()
    else {
        return internal(call.span, "`random` takes three arguments");
    };
    let target = code.access(result)?;
    let (low_value, high_value) = code.two(low, high)?;
    let width = code.width(result.ty);
    let low = code.as_scalar(low_value, low)?.zext_to(width, code.cx.ir.program());
    let high = code.as_scalar(high_value, high)?.zext_to(width, code.cx.ir.program());
    let drawn = messages::draw(code, width, low, high);
    code.store(&target, Value::Scalar(drawn))?;
    Ok(Value::Unit)
}

/// `digest(receiver, data)`: the values are those at the call.
fn digest<'a>(
    code: &mut Code<'_, 'a>,
    receiver: &'a hir::Expr,
    data: &'a hir::Expr,
    call: &'a Call,
) -> Lower<Value> {
    let receiver = match code.cx.constant(receiver, code.scope()) {
        Ok(Constant::Int(number)) => u32::try_from(number).unwrap_or(0),
        // bmv2 ignores the receiver; one that is not constant only has no name of its own.
        _ => 0,
    };
    let value = code.eval(data)?;
    let digest = digest_kind(code, data.ty, receiver, call)?;
    messages::send_digest(code, digest, &value);
    Ok(Value::Unit)
}

fn digest_kind(code: &mut Code<'_, '_>, ty: Ty, receiver: u32, call: &Call) -> Lower<DigestId> {
    if let Some(id) = model(&code.cx.arch).and_then(|s| s.digests.get(&(ty, receiver))) {
        return Ok(*id);
    }
    let name = match code.cx.hir.types.kind(ty) {
        TyKind::Struct(id) => code.cx.hir.types.structs[*id].name.clone(),
        // A message without a named type has a number.
        _ => format!("digest_{}", code.cx.ir.program().digests.len()),
    };
    let id = messages::digest(code.cx, &name, receiver, ty, call.span)?;
    if let Some(model) = model_mut(&mut code.cx.arch) {
        model.digests.insert((ty, receiver), id);
    }
    Ok(id)
}

/// The number of a field list.
enum List<'a> {
    Known(u32),
    Given(&'a hir::Expr),
}

fn list_number<'a>(code: &mut Code<'_, 'a>, list: List<'a>) -> Lower<Expr> {
    match list {
        List::Known(number) => Ok(Expr::bits(32, u128::from(number))),
        List::Given(expr) => Ok(code.scalar(expr)?.zext_to(32, code.cx.ir.program())),
    }
}

fn clone<'a>(code: &mut Code<'_, 'a>, session: &'a hir::Expr, list: List<'a>) -> Lower<Value> {
    let session = code.scalar(session)?.zext_to(32, code.cx.ir.program());
    let list = list_number(code, list)?;
    for (role, value) in [
        (Intrinsic::Clone, Expr::Bool(true)),
        (Intrinsic::CloneSession, session),
        (Intrinsic::CloneList, list),
    ] {
        let slot = code.cx.ir.intrinsic(role);
        code.assign(slot, value);
    }
    Ok(Value::Unit)
}

/// `resubmit` and `recirculate`.
fn again<'a>(code: &mut Code<'_, 'a>, name: &str, list: List<'a>) -> Lower<Value> {
    let (flag, number) = match name {
        "resubmit" => (Intrinsic::Resubmit, Intrinsic::ResubmitList),
        _ => (Intrinsic::Recirculate, Intrinsic::RecirculateList),
    };
    let list = list_number(code, list)?;
    let (flag, number) = (code.cx.ir.intrinsic(flag), code.cx.ir.intrinsic(number));
    code.assign(flag, Expr::Bool(true));
    code.assign(number, list);
    Ok(Value::Unit)
}

/// `log_msg(format)` and `log_msg(format, data)`.
fn log<'a>(code: &mut Code<'_, 'a>, format: &'a hir::Expr, data: Option<&'a hir::Expr>) -> Lower<Value> {
    let Value::Text(text) = code.eval(format)? else {
        return fail(kind::CONSTANT, format.span, "the message must be known at compile time");
    };
    let args = match data {
        Some(data) => code.eval(data)?.scalars(),
        None => Vec::new(),
    };
    code.push(Inst::Log { format: text, args });
    Ok(Value::Unit)
}
