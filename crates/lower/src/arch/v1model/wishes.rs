//! What a program asks of the traffic manager by fields of its own metadata: `@egress_queue bit<16> queue;`, the queue of its class that a
//! packet waits in, and `@send_at bit<48> when;`, the time before which it does not go on to egress.
//!
//! `standard_metadata` has no fields for these. A time is in microseconds, as those of `standard_metadata` are, or with `@send_at("ns")` in
//! nanoseconds. The last values that ingress has given the fields count.

use millrace_pipeline::{BinaryOp, Expr, Intrinsic, SlotId};
use millrace_sema::hir::{Ty, TyKind};
use millrace_syntax::ast::{Annotation, AnnotationBody, AnnotationTokenKind};

use super::{metadata::MICROSECOND, model, model_mut};
use crate::arch::blocks::params;
use crate::code::Code;
use crate::context::Lowering;
use crate::fail::{Lower, code, fail};
use crate::names::is_called;
use crate::objects::ObjectId;
use crate::storage::Storage;

/// The fields that ask.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wishes {
    queue: Option<SlotId>,
    /// With the nanoseconds of its unit.
    send_at: Option<(SlotId, u128)>,
}

/// Finds the fields in the user's metadata.
pub(super) fn declare(cx: &mut Lowering<'_>, parser: ObjectId, user: &Storage) -> Lower<()> {
    let Some(var) = params(cx, parser).get(2) else { return Ok(()) };
    let mut wishes = Wishes::default();
    collect(cx, user, cx.hir.vars[*var].ty, &mut wishes)?;
    if let Some(model) = model_mut(&mut cx.arch) {
        model.wishes = wishes;
    }
    Ok(())
}

fn collect(cx: &Lowering<'_>, storage: &Storage, ty: Ty, wishes: &mut Wishes) -> Lower<()> {
    let TyKind::Struct(id) = cx.hir.types.kind(ty) else { return Ok(()) };
    for (i, field) in cx.hir.types.structs[*id].fields.iter().enumerate() {
        let Some(member) = storage.member(i) else { continue };
        for annotation in field.annotations.iter() {
            if is_called(annotation, "egress_queue") {
                take(&mut wishes.queue, slot_of(cx, member, annotation, 16)?, annotation)?;
            } else if is_called(annotation, "send_at") {
                let asked = (slot_of(cx, member, annotation, 64)?, unit(annotation)?);
                take(&mut wishes.send_at, asked, annotation)?;
            }
        }
        collect(cx, member, field.ty, wishes)?;
    }
    Ok(())
}

fn take<T>(place: &mut Option<T>, asked: T, annotation: &Annotation) -> Lower<()> {
    match place.replace(asked) {
        None => Ok(()),
        Some(_) => {
            let why = format!("another field of the metadata has `@{}`", annotation.name.text);
            fail(code::ARCHITECTURE, annotation.span, why)
        }
    }
}

/// The slot of a field of at most so many bits.
fn slot_of(cx: &Lowering<'_>, member: &Storage, annotation: &Annotation, most: u32) -> Lower<SlotId> {
    let mut slots = Vec::new();
    member.for_each_slot(&mut |slot| slots.push(slot));
    let bits = |slot: SlotId| cx.ir.program().slots[slot].ty.bits().filter(|bits| *bits <= most);
    match slots.as_slice() {
        [slot] if bits(*slot).is_some() => Ok(*slot),
        _ => {
            let why =
                format!("`@{}` is for a field of type bit<W>, of at most {most} bits", annotation.name.text);
            fail(code::ARCHITECTURE, annotation.span, why)
        }
    }
}

/// The nanoseconds of the unit of a time.
fn unit(annotation: &Annotation) -> Lower<u128> {
    let tokens = match &annotation.body {
        AnnotationBody::None => return Ok(MICROSECOND),
        AnnotationBody::Tokens(tokens) => tokens.as_slice(),
        _ => &[],
    };
    match tokens {
        [token] if matches!(&token.kind, AnnotationTokenKind::String(text) if &**text == "us") => {
            Ok(MICROSECOND)
        }
        [token] if matches!(&token.kind, AnnotationTokenKind::String(text) if &**text == "ns") => Ok(1),
        _ => fail(code::ARCHITECTURE, annotation.span, "the unit of `@send_at` is \"us\" or \"ns\""),
    }
}

/// At the end of ingress: tells the switch.
pub(super) fn tell(code: &mut Code<'_, '_>) {
    let Some(Wishes { queue, send_at }) = model(&code.cx.arch).map(|model| model.wishes) else { return };
    if let Some(slot) = queue {
        let value = Expr::Read(slot).zext_to(16, code.cx.ir.program());
        let dst = code.cx.ir.intrinsic(Intrinsic::Queue);
        code.assign(dst, value);
    }
    if let Some((slot, unit)) = send_at {
        let time = Expr::Read(slot).zext_to(64, code.cx.ir.program());
        let time = if unit == 1 { time } else { Expr::binary(BinaryOp::Mul, time, Expr::bits(64, unit)) };
        let dst = code.cx.ir.intrinsic(Intrinsic::SendTime);
        code.assign(dst, time);
    }
}
