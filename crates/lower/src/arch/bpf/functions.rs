//! The extern functions of ubpf and XDP.

use millrace_pipeline::{DataItem, Expr, HashAlgorithm, Intrinsic, UnaryOp};
use millrace_sema::hir::{self, Call};

use super::{library, lookup3, model, model_mut, truncation};
use crate::arch::portable::ones_complement_add;
use crate::arch::{hashing, messages};
use crate::code::Code;
use crate::fail::{Lower, code as kind, fail};
use crate::value::Value;

/// A call of an extern function.
pub(crate) fn call_function<'a>(code: &mut Code<'_, 'a>, name: &str, call: &'a Call) -> Lower<Value> {
    let args: Vec<Option<&'a hir::Expr>> = call.args.iter().map(|a| a.value.as_ref()).collect();
    let value = match (name, args.as_slice()) {
        ("mark_to_drop", []) => return Ok(mark(code, true)),
        ("mark_to_pass", []) => return Ok(mark(code, false)),
        ("truncate", [Some(length)]) => return truncation::truncate(code, length),
        ("hash", [Some(result), Some(_), Some(data)]) => {
            let target = code.access(result)?;
            let items = hashing::items_of(code, data)?;
            let hash = lookup3::hash(code, items, data)?;
            code.store(&target, Value::Scalar(hash))?;
            return Ok(Value::Unit);
        }
        ("ubpf_time_get_ns" | "BPF_KTIME_GET_NS", []) => {
            let time = Expr::Read(code.cx.ir.intrinsic(Intrinsic::IngressTimestamp));
            time.zext_to(code.width(call.ty), code.cx.ir.program())
        }
        ("csum_replace2" | "csum_replace4" | "incremental_checksum", [Some(sum), Some(old), Some(new)]) => {
            replace(code, [sum, old, new])?
        }
        ("ebpf_ipv4_checksum", fields) => {
            let fields: Vec<&hir::Expr> = fields.iter().copied().flatten().collect();
            let values = code.eval_all(fields.iter().copied())?;
            let mut items = Vec::new();
            values.iter().for_each(|value| hashing::push_value(code, value, &mut items));
            hashing::hash(code, HashAlgorithm::Csum16, items, 16)
        }
        ("BPF_PERF_EVENT_OUTPUT", []) => perf_event(code, call)?,
        (_, args) => match library::call(code, name, args, call)? {
            Some(value) => value,
            None => {
                let arch = model(code.cx).map_or("", |s| s.name());
                let message = format!("{arch} has no extern function `{name}`");
                return fail(kind::FOREIGN, call.span, message);
            }
        },
    };
    Ok(Value::Scalar(value))
}

fn mark(code: &mut Code<'_, '_>, drop: bool) -> Value {
    if drop {
        code.note_drop("mark_to_drop");
    }
    let slot = code.cx.ir.intrinsic(Intrinsic::Drop);
    code.assign(slot, Expr::Bool(drop));
    Value::Unit
}

/// A checksum after one field of the data has changed (RFC 1624, equation 3): `~(~sum + ~old + new)`.
fn replace<'a>(code: &mut Code<'_, 'a>, args: [&'a hir::Expr; 3]) -> Lower<Expr> {
    let [sum, old, new] = args;
    let values = code.eval_all(args)?;
    let mut scalars = Vec::new();
    for (value, expr) in values.into_iter().zip([sum, old, new]) {
        scalars.push(code.as_scalar(value, expr)?);
    }
    let mut scalars = scalars.into_iter();
    let (Some(sum), Some(old), Some(new)) = (scalars.next(), scalars.next(), scalars.next()) else {
        return crate::fail::internal(code.span, "a checksum function takes three arguments");
    };
    let complement = |e| Expr::unary(UnaryOp::BitNot, e);
    let changes = vec![DataItem::Value(complement(old)), DataItem::Value(new)];
    let changes = hashing::hash(code, HashAlgorithm::OnesComplementSum, changes, 16);
    let sum = ones_complement_add(code, complement(sum), changes);
    Ok(complement(sum))
}

/// `BPF_PERF_EVENT_OUTPUT()`: tells user space about the packet, by a digest with its port and length.
fn perf_event(code: &mut Code<'_, '_>, call: &Call) -> Lower<Expr> {
    let known = model(code.cx).and_then(|s| s.perf_event);
    let digest = match known {
        Some(digest) => digest,
        None => {
            let name = code.cx.object_name("digest", "perf_event");
            let members =
                [("input_port", Intrinsic::IngressPort), ("packet_length", Intrinsic::PacketLength)];
            let members = members.map(|(name, role)| (name.to_owned(), role.ty())).to_vec();
            let digest = millrace_pipeline::Digest { name, receiver: 0, members };
            let digest = code.cx.ir.program_mut().digests.push(digest);
            if let Some(model) = model_mut(code.cx) {
                model.perf_event = Some(digest);
            }
            digest
        }
    };
    let members = [Intrinsic::IngressPort, Intrinsic::PacketLength];
    let values = members.map(|role| Value::Scalar(Expr::Read(code.cx.ir.intrinsic(role)))).to_vec();
    messages::send_digest(code, digest, &Value::Tuple(values));
    Ok(Expr::bits(code.width(call.ty), 0))
}
