//! What a program asks of the switch by fields of its own metadata: `@arrived_at("ns") bit<64> arrived;`, which holds when the packet
//! came, `@egress_queue bit<16> queue;`, the queue of its class that a packet waits in, `@send_at bit<48> when;`, the time before which
//! it does not go on to egress, and `@egress_ports bit<64> ports;`, the ports that get a copy of it: bit N stands for port N.
//!
//! `standard_metadata` has no fields for these. A set of ports that is not empty goes before `egress_spec`, as a multicast group does, and
//! like a group it is forgotten by `mark_to_drop`, until `egress_spec` is assigned again. A time is in microseconds, as those of
//! `standard_metadata` are, or with `@send_at("ns")` and `@arrived_at("ns")` in nanoseconds. The last values that ingress has given the
//! fields count.

use millrace_pipeline::{BinaryOp, Expr, Intrinsic, SlotId, Type};
use millrace_sema::hir::{Ty, TyKind};
use millrace_syntax::ast::{Annotation, AnnotationBody, AnnotationTokenKind};

use super::{metadata::MICROSECOND, model, model_mut};
use crate::arch::blocks::params;
use crate::arch::fill::Source;
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
    ports: Option<SlotId>,
    /// As `send_at`.
    pub(super) arrived: Option<(SlotId, u128)>,
    /// With `ports`: whether the packet was marked to be dropped.
    marked: Option<SlotId>,
}

/// Finds the fields in the user's metadata.
pub(super) fn declare(cx: &mut Lowering<'_>, parser: ObjectId, user: &Storage) -> Lower<()> {
    let Some(var) = params(cx, parser).get(2) else { return Ok(()) };
    let mut wishes = Wishes::default();
    collect(cx, user, cx.hir.vars[*var].ty, &mut wishes)?;
    wishes.marked = wishes.ports.map(|_| cx.ir.metadata("switch.marked_to_drop", Type::Bool));
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
            } else if is_called(annotation, "arrived_at") {
                let asked = (slot_of(cx, member, annotation, 64)?, unit(annotation)?);
                take(&mut wishes.arrived, asked, annotation)?;
            } else if is_called(annotation, "egress_ports") {
                take(&mut wishes.ports, slot_of(cx, member, annotation, 64)?, annotation)?;
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
        _ => fail(
            code::ARCHITECTURE,
            annotation.span,
            format!("the unit of `@{}` is \"us\" or \"ns\"", annotation.name.text),
        ),
    }
}

/// The field that holds when the packet came, and its value.
pub(super) fn at_arrival<'s>(cx: &Lowering<'_>) -> Option<(SlotId, Source<'s>)> {
    let (field, unit) = model(&cx.arch)?.wishes.arrived?;
    let value = move |cx: &mut Lowering<'_>| {
        let time = Expr::Read(cx.ir.intrinsic(Intrinsic::IngressTimestamp));
        if unit == 1 { time } else { Expr::binary(BinaryOp::Div, time, Expr::bits(64, unit)) }
    };
    Some((field, Box::new(value)))
}

/// The packet is marked to be dropped: its set of ports counts no more.
pub(super) fn forget_ports(code: &mut Code<'_, '_>) {
    let marked = model(&code.cx.arch).and_then(|model| model.wishes.marked);
    if let Some(marked) = marked {
        code.assign(marked, Expr::Bool(true));
    }
}

/// At the end of ingress, after `egress_spec` was told: tells the switch which ports get a copy, none of a packet that is to be `dropped`
/// and was marked so. A set of one port becomes that port, so that the packet goes on as one for a port. Gives whether the set is empty.
pub(super) fn tell_ports(code: &mut Code<'_, '_>, dropped: Expr) -> Option<Expr> {
    let wishes = model(&code.cx.arch)?.wishes;
    let (ports, marked) = (wishes.ports?, wishes.marked?);
    let asked = Expr::Read(ports).zext_to(64, code.cx.ir.program());
    let none = || Expr::bits(64, 0);
    let set = code.in_temp(Expr::mux(Expr::Read(marked).and(dropped), none(), asked));
    let is_empty = set.clone().eq(none());
    let and = |mask: Expr| Expr::binary(BinaryOp::And, set.clone(), mask);
    let lower = Expr::binary(BinaryOp::Sub, set.clone(), Expr::bits(64, 1));
    let is_one = code.in_temp(is_empty.clone().not().and(and(lower).eq(none())));
    // Bit I of its number: whether it is among the ports whose numbers have that bit.
    let bits = (0..6u32).rev().map(|i| {
        let members = (0..64u32).filter(|port| port >> i & 1 == 1).fold(0u128, |mask, port| mask | 1 << port);
        and(Expr::bits(64, members)).eq(none()).not().bool_to_bits()
    });
    let number = bits.reduce(Expr::concat)?.zext_to(32, code.cx.ir.program());
    let spec = code.cx.ir.intrinsic(Intrinsic::EgressSpec);
    code.assign(spec, Expr::mux(is_one.clone(), number, Expr::Read(spec)));
    let copies = code.cx.ir.intrinsic(Intrinsic::EgressPorts);
    code.assign(copies, Expr::mux(is_one, none(), set));
    Some(is_empty)
}

/// At the end of ingress: tells the switch.
pub(super) fn tell(code: &mut Code<'_, '_>) {
    let wishes = model(&code.cx.arch).map(|model| model.wishes);
    let Some(Wishes { queue, send_at, .. }) = wishes else { return };
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
