//! The user-space switch: parser, pipeline, deparser. A packet passes unless it is marked to be dropped, or its
//! `output_action` says so. What the parser rejects goes on as it came, as with p4c's back end, whose programs return
//! "pass" there.

use millrace_pipeline::{Expr, Intrinsic, OnReject};
use millrace_sema::hir;

use super::{model, model_mut, truncation};
use crate::arch::blocks::{BoundBlock, Typed, params, storage};
use crate::arch::fill::Fills;
use crate::arch::objects::enum_number;
use crate::code::Code;
use crate::context::Lowering;
use crate::fail::Lower;
use crate::objects::{Binding, ObjectId};
use crate::sites::Asks;
use crate::types::ENUM_BITS;

pub(super) fn assemble(
    cx: &mut Lowering<'_>,
    main: &hir::Instance,
    parser: ObjectId,
    pipeline: ObjectId,
    deparser: ObjectId,
) -> Lower<()> {
    let headers = storage(cx, pipeline, 0, "", main)?;
    let user = storage(cx, pipeline, 1, "", main)?;
    // The first edition had no standard metadata.
    let standard = match params(cx, pipeline).len() {
        2 => None,
        _ => Some(storage(cx, pipeline, 2, "", main)?),
    };
    let sent = ["PASS", "REDIRECT"].map(|name| enum_number(cx, "ubpf_action", name));
    let action = standard.as_ref().and_then(|standard| standard.slot(cx, "output_action"));
    cx.sites.watch(action, Asks::Without(sent.into_iter().flatten().collect()));
    if let Some(model) = model_mut(cx) {
        model.standard = standard.clone();
    }
    let mut arguments = vec![headers.binding(), user.binding()];
    arguments.extend(standard.as_ref().map(Typed::binding));
    let of_parser = [vec![Binding::PacketIn], arguments.clone()].concat();

    // The pipeline first: whether it cuts packets shows in what the parser has to keep.
    let pipeline = BoundBlock::control(pipeline, arguments).lower_between(
        cx,
        main,
        |_| Ok(()),
        |code| {
            leave(code);
            Ok(())
        },
    )?;
    let parser = BoundBlock::parser(parser, of_parser).lower_between(
        cx,
        main,
        |code| {
            super::send_back(code);
            pass(code);
            Ok(())
        },
        |code| truncation::keep_parsed(code, &headers),
    )?;
    let deparser =
        BoundBlock::deparser(deparser, vec![Binding::PacketOut, headers.binding()]).lower(cx, main)?;
    if let Some(standard) = &standard {
        let mut fills = Fills::default();
        for (field, role) in
            [("input_port", Intrinsic::IngressPort), ("packet_length", Intrinsic::PacketLength)]
        {
            fills.add(standard.slot(cx, field), move |cx| Expr::Read(cx.ir.intrinsic(role)));
        }
        fills.write(cx, parser);
    }
    let program = cx.ir.program_mut();
    program.ingress = vec![parser, pipeline, deparser];
    program.on_reject = OnReject::PassOn;
    program.deparse_at_ingress = true;
    Ok(())
}

/// Packets start with the action `PASS`.
fn pass(code: &mut Code<'_, '_>) {
    let standard = model(code.cx).and_then(|s| s.standard.clone());
    let action = standard.and_then(|s| s.slot(code.cx, "output_action"));
    if let (Some(action), Some(pass)) = (action, enum_number(code.cx, "ubpf_action", "PASS")) {
        code.assign(action, Expr::bits(ENUM_BITS, pass));
    }
}

/// The end of the pipeline.
fn leave(code: &mut Code<'_, '_>) {
    let drop = code.cx.ir.intrinsic(Intrinsic::Drop);
    let mut dropped = Expr::Read(drop);
    if let Some(standard) = model(code.cx).and_then(|s| s.standard.clone()) {
        let action = standard.slot(code.cx, "output_action");
        let is = |code: &Code<'_, '_>, name: &str| match (action, enum_number(code.cx, "ubpf_action", name)) {
            (Some(action), Some(number)) => Expr::Read(action).eq(Expr::bits(ENUM_BITS, number)),
            _ => Expr::Bool(false),
        };
        dropped = Expr::any([dropped, is(code, "ABORT"), is(code, "DROP")]);
        let spec = code.cx.ir.intrinsic(Intrinsic::EgressSpec);
        let back = Expr::Read(spec);
        let port = standard.slot(code.cx, "output_port").map_or_else(|| back.clone(), Expr::Read);
        let port = Expr::mux(is(code, "REDIRECT"), port, back);
        code.assign(spec, port);
        for (field, role) in [("clone", Intrinsic::Clone), ("clone_port", Intrinsic::CloneSession)] {
            if let Some(slot) = standard.slot(code.cx, field) {
                let asked = code.cx.ir.intrinsic(role);
                code.assign(asked, Expr::Read(slot));
            }
        }
    }
    let cut_to_nothing = truncation::cuts_to_nothing(code);
    code.assign(drop, dropped.or(cut_to_nothing));
}
