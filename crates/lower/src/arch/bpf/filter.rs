//! The packet filter: a parser, and a control that says whether the packet may pass. Its changes of headers are lost:
//! the packet goes on as it came.

use millrace_pipeline::{Expr, Intrinsic, OnReject};
use millrace_sema::hir;

use crate::arch::blocks::{BoundBlock, drop_by_default, storage};
use crate::context::Lowering;
use crate::fail::Lower;
use crate::objects::{Binding, ObjectId};
use crate::sites::Asks;

pub(super) fn assemble(
    cx: &mut Lowering<'_>,
    main: &hir::Instance,
    parser: ObjectId,
    filter: ObjectId,
) -> Lower<()> {
    let headers = storage(cx, filter, 0, "", main)?;
    let accept = storage(cx, filter, 1, "", main)?;
    if let crate::storage::Storage::Scalar(slot) = &accept.storage {
        cx.sites.watch(Some(*slot), Asks::With(0));
    }
    drop_by_default(cx, filter, "the packet was not accepted");
    cx.watch_states();
    let parser = BoundBlock::parser(parser, vec![Binding::PacketIn, headers.binding()]).lower(cx, main)?;
    let slot = match accept.storage {
        crate::storage::Storage::Scalar(slot) => Some(slot),
        _ => None,
    };
    let arguments = vec![headers.binding(), accept.binding()];
    let filter = BoundBlock::control(filter, arguments).lower_between(
        cx,
        main,
        |_| Ok(()),
        |code| {
            let drop = code.cx.ir.intrinsic(Intrinsic::Drop);
            code.assign(drop, slot.map_or(Expr::Bool(false), |accept| Expr::Read(accept).not()));
            super::send_back(code);
            Ok(())
        },
    )?;
    let program = cx.ir.program_mut();
    program.ingress = vec![parser, filter];
    program.on_reject = OnReject::Drop;
    Ok(())
}
