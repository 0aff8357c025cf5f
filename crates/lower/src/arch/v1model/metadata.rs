//! `standard_metadata` and the contract with the switch.
//!
//! Fields that the switch gives are filled where the parser and egress start, but only those that the program reads.
//! What the program asks for is told to the switch where ingress and egress end, so that a later assignment to
//! `egress_spec` or `mcast_grp` still counts, as it does in bmv2.

use millrace_pipeline::{BinaryOp, BodyId, Expr, Intrinsic, PacketPath, SlotId};

use super::drop_port::{drop_port, no_drop_port};
use super::{standard_slot, wishes};
use crate::arch::blocks::Typed;
use crate::arch::fill::Fills;
use crate::code::Code;
use crate::context::Lowering;
use crate::fail::Lower;

/// Nanoseconds in a microsecond, the unit of v1model's times.
pub(super) const MICROSECOND: u128 = 1000;

/// What the parser starts with.
const AT_INGRESS: &[(&str, Source)] = &[
    ("ingress_port", Source::Number(Intrinsic::IngressPort)),
    ("packet_length", Source::Number(Intrinsic::PacketLength)),
    ("instance_type", Source::Number(Intrinsic::PacketPath)),
    ("ingress_global_timestamp", Source::Time(Intrinsic::IngressTimestamp)),
];

/// What egress starts with. `egress_spec` is not the drop port there, whatever ingress made of it. A packet that was
/// sent back and now leaves by unicast stays one that was sent back.
const AT_EGRESS: &[(&str, Source)] = &[
    ("egress_port", Source::Number(Intrinsic::EgressPort)),
    ("egress_spec", Source::NoDropPort),
    ("packet_length", Source::Number(Intrinsic::PacketLength)),
    ("instance_type", Source::Copy(Intrinsic::PacketPath)),
    ("egress_rid", Source::Number(Intrinsic::EgressRid)),
    ("enq_timestamp", Source::Time(Intrinsic::EnqueueTimestamp)),
    ("enq_qdepth", Source::Number(Intrinsic::EnqueueDepth)),
    ("deq_timedelta", Source::Time(Intrinsic::QueueDelay)),
    ("deq_qdepth", Source::Number(Intrinsic::DequeueDepth)),
    ("qid", Source::Number(Intrinsic::QueueId)),
    ("egress_global_timestamp", Source::Time(Intrinsic::EgressTimestamp)),
];

#[derive(Clone, Copy)]
enum Source {
    /// As it is, cut or widened to the field.
    Number(Intrinsic),
    /// Nanoseconds to microseconds.
    Time(Intrinsic),
    /// As a number, unless it is 0: then the field stays.
    Copy(Intrinsic),
    NoDropPort,
}

/// The field that is itself a slot of the contract: `parser_error`.
pub(super) fn give_roles(cx: &mut Lowering<'_>, standard: &Typed) {
    if let Some(slot) = standard.slot(cx, "parser_error")
        && cx.ir.program().slots[slot].ty == Intrinsic::ParserError.ty()
    {
        cx.ir.program_mut().intrinsics.set(Intrinsic::ParserError, Some(slot));
    }
}

/// Fills the fields that the switch gives and the program reads.
pub(super) fn fill_at_start(cx: &mut Lowering<'_>, parser: BodyId, egress: BodyId) {
    for (body, sources) in [(parser, AT_INGRESS), (egress, AT_EGRESS)] {
        let mut fills = Fills::default();
        for (name, source) in sources {
            let field = standard_slot(cx, name);
            fills.add(field, move |cx| value(cx, field, *source));
        }
        if body == parser
            && let Some((field, value)) = wishes::at_arrival(cx)
        {
            fills.add(Some(field), value);
        }
        fills.write(cx, body);
    }
}

fn value(cx: &mut Lowering<'_>, field: Option<SlotId>, source: Source) -> Expr {
    match source {
        Source::Number(role) => Expr::Read(cx.ir.intrinsic(role)),
        Source::Time(role) => {
            let nanoseconds = Expr::Read(cx.ir.intrinsic(role));
            Expr::binary(BinaryOp::Div, nanoseconds, Expr::bits(64, MICROSECOND))
        }
        Source::Copy(role) => {
            let path = Expr::Read(cx.ir.intrinsic(role));
            let copied = path.clone().eq(Expr::bits(32, u128::from(PacketPath::Normal as u32))).not();
            match field {
                Some(slot) => {
                    let width = cx.ir.program().slots[slot].ty.bits().unwrap_or(32);
                    let path = path.zext_to(width, cx.ir.program());
                    Expr::Mux(Box::new(copied), Box::new(path), Box::new(Expr::Read(slot)))
                }
                None => path,
            }
        }
        Source::NoDropPort => {
            let ty = field.map(|slot| cx.ir.program().slots[slot].ty);
            no_drop_port(ty.and_then(|ty| ty.bits()).unwrap_or(9))
        }
    }
}

/// Whether `egress_spec` asks to drop.
fn drops(code: &Code<'_, '_>) -> Expr {
    match standard_slot(code.cx, "egress_spec") {
        Some(slot) => {
            let width = code.cx.ir.program().slots[slot].ty.bits().unwrap_or(9);
            Expr::Read(slot).eq(drop_port(width))
        }
        None => Expr::Bool(false),
    }
}

/// The end of ingress. Resubmission comes before multicast, that before dropping, that before unicast.
pub(super) fn leave_ingress(code: &mut Code<'_, '_>) -> Lower<()> {
    let mut drop = drops(code);
    let number = |code: &mut Code<'_, '_>, name: &str, role: Intrinsic| {
        let slot = standard_slot(code.cx, name)?;
        let width = role.ty().bits()?;
        let value = Expr::Read(slot).zext_to(width, code.cx.ir.program());
        let dst = code.cx.ir.intrinsic(role);
        code.assign(dst, value);
        Some(slot)
    };
    number(code, "egress_spec", Intrinsic::EgressSpec);
    if let Some(group) = number(code, "mcast_grp", Intrinsic::MulticastGroup) {
        let width = code.cx.ir.program().slots[group].ty.bits().unwrap_or(16);
        drop = drop.and(Expr::Read(group).eq(Expr::bits(width, 0)));
    }
    let dropped = drops(code);
    if let Some(none) = wishes::tell_ports(code, dropped) {
        drop = drop.and(none);
    }
    number(code, "priority", Intrinsic::Priority);
    wishes::tell(code);
    if let Some(resubmit) = code.cx.ir.program().intrinsics.get(Intrinsic::Resubmit) {
        drop = drop.and(Expr::Read(resubmit).not());
    }
    let dst = code.cx.ir.intrinsic(Intrinsic::Drop);
    code.assign(dst, drop);
    Ok(())
}

/// The end of egress. Dropping comes before recirculation.
pub(super) fn leave_egress(code: &mut Code<'_, '_>) -> Lower<()> {
    let drop = drops(code);
    let dst = code.cx.ir.intrinsic(Intrinsic::Drop);
    code.assign(dst, drop);
    if let Some(recirculate) = code.cx.ir.program().intrinsics.get(Intrinsic::Recirculate) {
        let wanted = Expr::Read(recirculate).and(Expr::Read(dst).not());
        code.assign(recirculate, wanted);
    }
    Ok(())
}
