//! PSA, the Portable Switch Architecture (PSA specification 1.2).
//!
//! Ingress is parser, control and deparser; what the deparser puts together goes through the traffic manager, and egress
//! parses it again. A parser error does not end the packet: the control after it sees it in `parser_error`.
//!
//! The switch takes resubmission before multicast before dropping; in PSA a packet that is dropped is not resubmitted
//! and not replicated. So the end of ingress takes both requests back when it drops (section "Behavior of packets after
//! ingress processing is complete").

mod metadata;

use millrace_pipeline::{self as ir, Expr};
use millrace_sema::hir::{self, Call};

use super::blocks::{BoundBlock, Typed, drop_by_default, storage};
use super::carried::Carried;
use super::messages;
use crate::code::Code;
use crate::context::Lowering;
use crate::fail::{Lower, code as kind, fail};
use crate::objects::{Binding, ObjectId};
use crate::sites::Asks;
use crate::value::Value;

use metadata::{List, RECIRCULATE_PORT};

/// The storage of ingress.
struct Ingress {
    headers: Typed,
    user: Typed,
    of_parser: Typed,
    input: Typed,
    output: Typed,
    resubmit: Carried,
    recirculate: Carried,
}

/// The storage of egress.
struct Egress {
    headers: Typed,
    user: Typed,
    of_parser: Typed,
    input: Typed,
    output: Typed,
    of_deparser: Typed,
    normal: Carried,
    clone_from_ingress: Carried,
    clone_from_egress: Carried,
}

/// Lowers all blocks of a `PSA_Switch`.
pub(crate) fn assemble(cx: &mut Lowering<'_>, main: &hir::Instance, blocks: &[ObjectId]) -> Lower<()> {
    let &[ingress_parser, ingress, ingress_deparser, egress_parser, egress, egress_deparser] = blocks else {
        return fail(kind::FOREIGN, main.span, "`PSA_Switch` takes two pipelines of three blocks each");
    };
    let of_ingress = Ingress {
        headers: storage(cx, ingress, 0, "", main)?,
        user: storage(cx, ingress, 1, "", main)?,
        of_parser: storage(cx, ingress_parser, 3, "parser.", main)?,
        input: storage(cx, ingress, 2, "", main)?,
        output: storage(cx, ingress, 3, "", main)?,
        resubmit: carried(cx, ingress_parser, 4, main)?,
        recirculate: carried(cx, ingress_parser, 5, main)?,
    };
    let of_egress = Egress {
        headers: storage(cx, egress, 0, "egress.", main)?,
        user: storage(cx, egress, 1, "egress.", main)?,
        of_parser: storage(cx, egress_parser, 3, "egress.parser.", main)?,
        input: storage(cx, egress, 2, "egress.", main)?,
        output: storage(cx, egress, 3, "egress.", main)?,
        of_deparser: storage(cx, egress_deparser, 6, "egress.", main)?,
        normal: carried(cx, egress_parser, 4, main)?,
        clone_from_ingress: carried(cx, egress_parser, 5, main)?,
        clone_from_egress: carried(cx, egress_parser, 6, main)?,
    };
    for output in [&of_ingress.output, &of_egress.output] {
        let drop = output.slot(cx, "drop");
        cx.sites.watch(drop, Asks::With(1));
    }
    drop_by_default(cx, ingress, "no request to send the packet");
    let kept_port = of_ingress.of_parser.slot(cx, "ingress_port");
    of_ingress.resubmit.declare_list(cx, List::Resubmit as u32, kept_port);
    of_ingress.recirculate.declare_list(cx, List::Recirculate as u32, None);
    of_egress.clone_from_ingress.declare_list(cx, List::CloneFromIngress as u32, None);
    of_egress.clone_from_egress.declare_list(cx, List::CloneFromEgress as u32, None);

    let first =
        lower_ingress(cx, main, [ingress_parser, ingress, ingress_deparser], &of_ingress, &of_egress)?;
    let second = lower_egress(cx, main, [egress_parser, egress, egress_deparser], &of_ingress, &of_egress)?;
    // What a control is told comes from what its parser was told, so that is filled first.
    metadata::fill_controls(cx, (first[1], &of_ingress), (second[1], &of_egress));
    metadata::fill_egress_deparser(cx, second[2], &of_egress);
    metadata::fill_parsers(cx, (first[0], &of_ingress), (second[0], &of_egress));

    let program = cx.ir.program_mut();
    program.ingress = first.to_vec();
    program.egress = second.to_vec();
    program.on_reject = ir::OnReject::Continue;
    program.deparse_at_ingress = true;
    Ok(())
}

fn carried(cx: &mut Lowering<'_>, parser: ObjectId, index: usize, main: &hir::Instance) -> Lower<Carried> {
    let data = storage(cx, parser, index, "", main)?;
    let name = super::blocks::params(cx, parser).get(index).map_or("", |v| cx.hir.vars[*v].name.as_str());
    Ok(Carried::new(cx, data, name))
}

fn lower_ingress(
    cx: &mut Lowering<'_>,
    main: &hir::Instance,
    [parser, control, deparser]: [ObjectId; 3],
    own: &Ingress,
    egress: &Egress,
) -> Lower<[ir::BodyId; 3]> {
    let arguments = vec![
        Binding::PacketIn,
        own.headers.binding(),
        own.user.binding(),
        own.of_parser.binding(),
        own.resubmit.data.binding(),
        own.recirculate.data.binding(),
    ];
    let unpack = |code: &mut Code<'_, '_>| {
        own.resubmit.unpack(code)?;
        own.recirculate.unpack(code)
    };
    let parser = BoundBlock::parser(parser, arguments).lower_between(cx, main, unpack, |_| Ok(()))?;

    let arguments =
        vec![own.headers.binding(), own.user.binding(), own.input.binding(), own.output.binding()];
    let start = |code: &mut Code<'_, '_>| metadata::start_ingress(code, &own.output);
    let control = BoundBlock::control(control, arguments).lower_between(cx, main, start, |_| Ok(()))?;

    let arguments = vec![
        Binding::PacketOut,
        egress.clone_from_ingress.data.binding(),
        own.resubmit.data.binding(),
        egress.normal.data.binding(),
        own.headers.binding(),
        own.user.binding(),
        own.output.binding(),
    ];
    let made = [&egress.clone_from_ingress, &own.resubmit, &egress.normal];
    let start = |code: &mut Code<'_, '_>| {
        made.iter().for_each(|carried| carried.start(code));
        Ok(())
    };
    let leave = |code: &mut Code<'_, '_>| {
        made.iter().for_each(|carried| carried.pack(code));
        metadata::leave_ingress(code, &own.output);
        Ok(())
    };
    let deparser = BoundBlock::deparser(deparser, arguments).lower_between(cx, main, start, leave)?;
    Ok([parser, control, deparser])
}

fn lower_egress(
    cx: &mut Lowering<'_>,
    main: &hir::Instance,
    [parser, control, deparser]: [ObjectId; 3],
    ingress: &Ingress,
    own: &Egress,
) -> Lower<[ir::BodyId; 3]> {
    let arguments = vec![
        Binding::PacketIn,
        own.headers.binding(),
        own.user.binding(),
        own.of_parser.binding(),
        own.normal.data.binding(),
        own.clone_from_ingress.data.binding(),
        own.clone_from_egress.data.binding(),
    ];
    let unpack = |code: &mut Code<'_, '_>| {
        own.normal.unpack(code)?;
        own.clone_from_ingress.unpack(code)?;
        own.clone_from_egress.unpack(code)
    };
    let parser = BoundBlock::parser(parser, arguments).lower_between(cx, main, unpack, |_| Ok(()))?;

    let arguments =
        vec![own.headers.binding(), own.user.binding(), own.input.binding(), own.output.binding()];
    let control = BoundBlock::control(control, arguments).lower(cx, main)?;

    let arguments = vec![
        Binding::PacketOut,
        own.clone_from_egress.data.binding(),
        ingress.recirculate.data.binding(),
        own.headers.binding(),
        own.user.binding(),
        own.output.binding(),
        own.of_deparser.binding(),
    ];
    let made = [&own.clone_from_egress, &ingress.recirculate];
    let start = |code: &mut Code<'_, '_>| {
        made.iter().for_each(|carried| carried.start(code));
        Ok(())
    };
    let leave = |code: &mut Code<'_, '_>| {
        made.iter().for_each(|carried| carried.pack(code));
        metadata::leave_egress(code, &own.output);
        Ok(())
    };
    let deparser = BoundBlock::deparser(deparser, arguments).lower_between(cx, main, start, leave)?;
    Ok([parser, control, deparser])
}

/// A call of an extern function: what the deparsers ask about the packet's fate, and assertions.
pub(crate) fn call_function<'a>(code: &mut Code<'_, 'a>, name: &str, call: &'a Call) -> Lower<Value> {
    let args: Vec<Option<&'a hir::Expr>> = call.args.iter().map(|a| a.value.as_ref()).collect();
    let fate = match (name, args.as_slice()) {
        ("assert" | "assume", [Some(condition)]) => return messages::assertion(code, name, condition),
        ("psa_clone_i2e" | "psa_clone_e2e", [Some(output)]) => {
            let [clone] = members(code, output, ["clone"])?;
            clone
        }
        ("psa_resubmit", [Some(output)]) => {
            let [drop, resubmit] = members(code, output, ["drop", "resubmit"])?;
            resubmit.and(drop.not())
        }
        ("psa_normal", [Some(output)]) => {
            let [drop, resubmit] = members(code, output, ["drop", "resubmit"])?;
            drop.or(resubmit).not()
        }
        ("psa_recirculate", [Some(output), Some(input)]) => {
            let [drop] = members(code, output, ["drop"])?;
            let [port] = members(code, input, ["egress_port"])?;
            port.eq(Expr::bits(32, RECIRCULATE_PORT)).and(drop.not())
        }
        _ => {
            return fail(kind::FOREIGN, call.span, format!("PSA has no extern function `{name}`"));
        }
    };
    Ok(Value::Scalar(fate))
}

/// Members of a structure that are scalars.
fn members<'a, const N: usize>(
    code: &mut Code<'_, 'a>,
    structure: &'a hir::Expr,
    names: [&str; N],
) -> Lower<[Expr; N]> {
    let value = code.eval(structure)?;
    let fields = crate::types::members(&code.cx.hir.types, structure.ty);
    let found = names.map(|name| {
        let at = fields.iter().position(|(field, _)| field == name);
        match at.and_then(|at| value.clone().member(at)) {
            Some(Value::Scalar(scalar)) => scalar,
            _ => Expr::Bool(false),
        }
    });
    Ok(found)
}
