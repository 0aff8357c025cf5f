//! XDP: parser, switch, deparser. What the kernel would do with a packet is done here as far as there is something to
//! do: `XDP_PASS` and `XDP_TX` send it back where it came from, `XDP_REDIRECT` sends it to `output_port`, the others
//! drop it. So do parser errors.

use millrace_pipeline::{Expr, Intrinsic, OnReject};
use millrace_sema::hir;

use crate::arch::blocks::{BoundBlock, Typed, drop_by_default, storage};
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
    switch: ObjectId,
    deparser: ObjectId,
) -> Lower<()> {
    let headers = storage(cx, switch, 0, "", main)?;
    let input = storage(cx, switch, 1, "", main)?;
    let output = storage(cx, switch, 2, "", main)?;
    let sent = ["XDP_PASS", "XDP_TX", "XDP_REDIRECT"].map(|name| enum_number(cx, "xdp_action", name));
    let action = output.slot(cx, "output_action");
    cx.sites.watch(action, Asks::Without(sent.into_iter().flatten().collect()));
    drop_by_default(cx, switch, "no action was chosen");
    cx.watch_states();
    let parser = BoundBlock::parser(parser, vec![Binding::PacketIn, headers.binding()]).lower(cx, main)?;
    let arguments = vec![headers.binding(), input.binding(), output.binding()];
    let switch = BoundBlock::control(switch, arguments).lower_between(
        cx,
        main,
        |_| Ok(()),
        |code| {
            leave(code, &output);
            Ok(())
        },
    )?;
    let deparser =
        BoundBlock::deparser(deparser, vec![headers.binding(), Binding::PacketOut]).lower(cx, main)?;
    let mut fills = Fills::default();
    fills.add(input.slot(cx, "input_port"), |cx| Expr::Read(cx.ir.intrinsic(Intrinsic::IngressPort)));
    fills.write(cx, switch);
    let program = cx.ir.program_mut();
    program.ingress = vec![parser, switch, deparser];
    program.on_reject = OnReject::Drop;
    program.deparse_at_ingress = true;
    Ok(())
}

fn leave(code: &mut Code<'_, '_>, output: &Typed) {
    let action = output.slot(code.cx, "output_action");
    let is = |code: &Code<'_, '_>, name: &str| match (action, enum_number(code.cx, "xdp_action", name)) {
        (Some(action), Some(number)) => Expr::Read(action).eq(Expr::bits(ENUM_BITS, number)),
        _ => Expr::Bool(false),
    };
    let forwarded = Expr::any(["XDP_PASS", "XDP_TX", "XDP_REDIRECT"].map(|name| is(code, name)));
    let drop = code.cx.ir.intrinsic(Intrinsic::Drop);
    code.assign(drop, forwarded.not());
    let back = Expr::Read(code.cx.ir.intrinsic(Intrinsic::IngressPort));
    let port = output.slot(code.cx, "output_port").map_or_else(|| back.clone(), Expr::Read);
    let port = Expr::mux(is(code, "XDP_REDIRECT"), port, back);
    let spec = code.cx.ir.intrinsic(Intrinsic::EgressSpec);
    code.assign(spec, port);
}
