//! PNA, the Portable NIC Architecture: pre control, parser, main control, deparser; the editions of bmv2 and tc have no
//! pre control. Packets of both directions pass the same blocks.
//!
//! Ports below 256 are those of the network, the others are the host's. A packet is dropped unless the program sends it
//! somewhere; the last of `drop_packet`, `send_to_port` and `recirculate` counts.

mod functions;
pub(crate) mod learning;
mod metadata;

use millrace_pipeline as ir;
use millrace_sema::hir::{self, Call};
use std::rc::Rc;

use super::blocks::{BoundBlock, storage};
use super::portable::{self, Portable};
use super::{Resource, objects};
use crate::code::Code;
use crate::context::Lowering;
use crate::fail::{Lower, code as kind, fail};
use crate::objects::{Binding, ExternObject, ObjectId};
use crate::value::Value;

pub(crate) use functions::call_function;
pub(crate) use portable::table_properties;

use learning::Learned;
use metadata::Told;

/// The Portable NIC Architecture: what it keeps while a program is lowered.
pub(crate) struct Pna {
    pub(super) portable: Portable,
    /// Whether the packet goes back to the start.
    recirculate: Option<ir::SlotId>,
    /// The table that learns and whose actions are lowered now.
    learning: Option<Rc<Learned>>,
    /// How long learned entries live, by profile.
    lifetimes: Option<ir::RegisterId>,
    /// The next flow id.
    flow_ids: Option<ir::RegisterId>,
}

impl Pna {
    /// Nothing yet.
    pub(super) fn new() -> Pna {
        Pna {
            portable: Portable::new("PNA", "pna"),
            recirculate: None,
            learning: None,
            lifetimes: None,
            flow_ids: None,
        }
    }

    /// Whether actions of a table that learns are lowered now.
    pub(super) fn is_learning(&self) -> bool {
        self.learning.is_some()
    }
}

/// Lowers all blocks of a `PNA_NIC`.
pub(crate) fn assemble(cx: &mut Lowering<'_>, main: &hir::Instance, blocks: &[ObjectId]) -> Lower<()> {
    let (parser, pre, control, deparser) = match *blocks {
        [parser, pre, control, deparser] => (parser, Some(pre), control, deparser),
        [parser, control, deparser] => (parser, None, control, deparser),
        _ => return fail(kind::FOREIGN, main.span, "`PNA_NIC` takes three or four blocks"),
    };
    let headers = storage(cx, control, 0, "", main)?;
    let user = storage(cx, control, 1, "", main)?;
    let input = storage(cx, control, 2, "", main)?;
    let output = storage(cx, control, 3, "", main)?;
    let of_parser = storage(cx, parser, 3, "parser.", main)?;
    let passes = metadata::Passes::declare(cx);

    let mut told = Told::default();
    let mut ingress = Vec::new();
    if let Some(pre) = pre {
        let pre_headers = storage(cx, pre, 0, "pre.", main)?;
        let pre_user = storage(cx, pre, 1, "pre.", main)?;
        let pre_input = storage(cx, pre, 2, "pre.", main)?;
        let pre_output = storage(cx, pre, 3, "pre.", main)?;
        let arguments =
            vec![pre_headers.binding(), pre_user.binding(), pre_input.binding(), pre_output.binding()];
        let body = BoundBlock::control(pre, arguments).lower(cx, main)?;
        told.block(body, pre_input);
        ingress.push(body);
    }
    let arguments = vec![Binding::PacketIn, headers.binding(), user.binding(), of_parser.binding()];
    let parser = BoundBlock::parser(parser, arguments).lower(cx, main)?;
    told.block(parser, of_parser);
    ingress.push(parser);
    let arguments = vec![headers.binding(), user.binding(), input.binding(), output.binding()];
    let control = BoundBlock::control(control, arguments).lower_between(
        cx,
        main,
        |code| {
            functions::drop_packet(code);
            Ok(())
        },
        |code| {
            metadata::leave(code, &output);
            Ok(())
        },
    )?;
    told.block(control, input);
    ingress.push(control);
    let arguments = vec![Binding::PacketOut, headers.binding(), user.binding(), output.binding()];
    let deparser = BoundBlock::deparser(deparser, arguments).lower_between(
        cx,
        main,
        |_| Ok(()),
        |code| {
            metadata::leave_deparser(code);
            Ok(())
        },
    )?;
    told.fill(cx, &passes);
    passes.count(cx, ingress[0]);

    let program = cx.ir.program_mut();
    program.ingress = ingress;
    program.egress = vec![deparser];
    program.on_reject = ir::OnReject::Continue;
    program.deparse_at_ingress = false;
    Ok(())
}

/// Creates what an extern object stands for.
pub(crate) fn create_resource(cx: &mut Lowering<'_>, object: &ExternObject) -> Lower<Option<Resource>> {
    match cx.hir.externs[object.ty].name.as_str() {
        "ipsec_accelerator" => Ok(None),
        _ => portable::create_resource(cx, object),
    }
}

/// A call of a method. There is no IPsec engine: nothing is encrypted, and no packet was decrypted.
pub(crate) fn call_method<'a>(
    code: &mut Code<'_, 'a>,
    object: ObjectId,
    instance: &ExternObject,
    method: &str,
    call: &'a Call,
) -> Lower<Value> {
    if code.cx.hir.externs[instance.ty].name != "ipsec_accelerator" {
        return portable::call_method(code, object, instance, method, call);
    }
    match (method, call.args.first().and_then(|a| a.value.as_ref())) {
        ("from_ipsec", Some(status)) => {
            let target = code.access(status)?;
            let number = objects::enum_number(code.cx, "ipsec_status", "IPSEC_SUCCESS").unwrap_or_default();
            let width = code.width(status.ty);
            code.store(&target, Value::Scalar(ir::Expr::bits(width, number)))?;
            Ok(Value::Scalar(ir::Expr::Bool(false)))
        }
        (_, Some(argument)) => code.eval(argument).map(|_| Value::Unit),
        _ => Ok(Value::Unit),
    }
}
