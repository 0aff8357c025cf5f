//! The extern functions of PNA.

use millrace_pipeline::{Expr, Intrinsic, SlotId, Type};
use millrace_sema::hir::{self, Call};

use super::learning;
use super::metadata::is_net_port;
use crate::arch::Architecture;
use crate::arch::messages;
use crate::arch::objects::enum_number;
use crate::code::Code;
use crate::fail::{Lower, code as kind, fail};
use crate::types::ENUM_BITS;
use crate::value::Value;

/// A call of an extern function.
pub(crate) fn call_function<'a>(code: &mut Code<'_, 'a>, name: &str, call: &'a Call) -> Lower<Value> {
    let args: Vec<Option<&'a hir::Expr>> = call.args.iter().map(|a| a.value.as_ref()).collect();
    match (name, args.as_slice()) {
        ("drop_packet", []) => drop_packet(code),
        ("send_to_port", [Some(port)]) => {
            let port = code.scalar(port)?.zext_to(32, code.cx.ir.program());
            fate(code, false, false);
            let spec = code.cx.ir.intrinsic(Intrinsic::EgressSpec);
            code.assign(spec, port);
        }
        ("recirculate", []) => {
            recirculation(code);
            fate(code, false, true);
        }
        ("mirror_packet", [Some(slot), Some(session)]) => {
            let (_, session_value) = code.two(slot, session)?;
            let session = code.as_scalar(session_value, session)?.zext_to(32, code.cx.ir.program());
            for (role, value) in [(Intrinsic::Clone, Expr::Bool(true)), (Intrinsic::CloneSession, session)] {
                let slot = code.cx.ir.intrinsic(role);
                code.assign(slot, value);
            }
        }
        ("SelectByDirection", [Some(direction), Some(inwards), Some(outwards)]) => {
            let mut values = code.eval_all([*direction, *inwards, *outwards])?.into_iter();
            let (Some(given), Some(a), Some(b)) = (values.next(), values.next(), values.next()) else {
                return Ok(Value::Unit);
            };
            let given = code.as_scalar(given, direction)?;
            let from_net = match code.type_of(&given) {
                Type::Bool => given,
                _ => {
                    let number = enum_number(code.cx, "PNA_Direction_t", "NET_TO_HOST").unwrap_or_default();
                    given.eq(Expr::bits(ENUM_BITS, number))
                }
            };
            return Ok(Value::mux(&from_net, a, b));
        }
        ("is_net_port", [Some(port)]) => return Ok(Value::Scalar(is_net_port(code.scalar(port)?))),
        ("is_host_port", [Some(port)]) => return Ok(Value::Scalar(is_net_port(code.scalar(port)?).not())),
        ("assert" | "assume", [Some(condition)]) => return messages::assertion(code, name, condition),
        _ => match learning::call(code, name, &args, call)? {
            Some(value) => return Ok(value),
            None => {
                return fail(kind::FOREIGN, call.span, format!("PNA has no extern function `{name}`"));
            }
        },
    }
    Ok(Value::Unit)
}

/// `drop_packet()`.
pub(super) fn drop_packet(code: &mut Code<'_, '_>) {
    code.note_drop("drop_packet");
    fate(code, true, false);
}

/// What becomes of the packet as far as is known now.
fn fate(code: &mut Code<'_, '_>, drop: bool, recirculate: bool) {
    let slot = code.cx.ir.intrinsic(Intrinsic::Drop);
    code.assign(slot, Expr::Bool(drop));
    let known = match &code.cx.arch {
        Architecture::Pna(model) => model.recirculate,
        _ => None,
    };
    if let Some(slot) = known {
        code.assign(slot, Expr::Bool(recirculate));
    }
}

/// The slot that says so; programs that never recirculate have none.
fn recirculation(code: &mut Code<'_, '_>) -> SlotId {
    if let Architecture::Pna(model) = &code.cx.arch
        && let Some(slot) = model.recirculate
    {
        return slot;
    }
    let slot = code.cx.ir.metadata("recirculate", Type::Bool);
    if let Architecture::Pna(model) = &mut code.cx.arch {
        model.recirculate = Some(slot);
    }
    slot
}
