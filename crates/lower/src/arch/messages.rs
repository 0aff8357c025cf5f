//! What programs tell the outside besides packets: digests, assertions.

use millrace_pipeline::{Digest, DigestId, Expr, Inst, Type};
use millrace_sema::hir::{self, Ty};
use millrace_syntax::Span;

use crate::code::Code;
use crate::context::Lowering;
use crate::fail::{Lower, code, fail};
use crate::show;
use crate::types::{self, Shape};
use crate::value::Value;

/// A new kind of digest whose messages are values of that type.
pub(super) fn digest(
    cx: &mut Lowering<'_>,
    name: &str,
    receiver: u32,
    ty: Ty,
    span: Span,
) -> Lower<DigestId> {
    let mut members = Vec::new();
    digest_members(cx, ty, "", &mut members, span)?;
    let name = cx.object_name("digest", name);
    Ok(cx.ir.program_mut().digests.push(Digest { name, receiver, members }))
}

/// Sends a digest with the scalars of a value.
pub(super) fn send_digest(code: &mut Code<'_, '_>, digest: DigestId, value: &Value) {
    let values = value.scalars();
    code.push(Inst::Digest { digest, values });
}

/// The names and types of the scalars of a type, in the order of [`Value::scalars`].
fn digest_members(
    cx: &Lowering<'_>,
    ty: Ty,
    prefix: &str,
    list: &mut Vec<(String, Type)>,
    span: Span,
) -> Lower<()> {
    match cx.shape(ty) {
        Shape::Unit => {}
        Shape::Struct | Shape::Header(_) | Shape::Union(_) => {
            for (name, ty) in types::members(&cx.hir.types, ty) {
                let name = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
                digest_members(cx, ty, &name, list, span)?;
            }
        }
        Shape::Stack(element, n) => {
            for i in 0..n {
                digest_members(cx, element, &format!("{prefix}[{i}]"), list, span)?;
            }
        }
        Shape::Scalar(scalar) => list.push((if prefix.is_empty() { "value" } else { prefix }.into(), scalar)),
        // A number without a width is sent with 64 bits.
        Shape::CompileTime => {
            list.push((if prefix.is_empty() { "value" } else { prefix }.into(), Type::Bits(64)));
        }
        Shape::List | Shape::Object => {
            return fail(code::ARCHITECTURE, span, "a value of this type cannot be sent in a digest");
        }
    }
    Ok(())
}

/// `assert(condition)` and `assume(condition)`.
pub(super) fn assertion<'a>(code: &mut Code<'_, 'a>, name: &str, condition: &'a hir::Expr) -> Lower<Value> {
    let cond = code.scalar(condition)?;
    let text = show::expr(code.cx.hir, condition);
    code.push(Inst::Assert { cond, text: format!("{name}({text})") });
    Ok(Value::Unit)
}

/// A uniformly distributed number from `low` to `high`, which are `width` bits wide.
pub(super) fn draw(code: &mut Code<'_, '_>, width: u32, low: Expr, high: Expr) -> Expr {
    let dst = code.temp(Type::Bits(width));
    code.push(Inst::Random { dst, low, high });
    Expr::Read(dst)
}
