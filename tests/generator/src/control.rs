//! Controls: externs, actions, tables, and the code that applies them.

use crate::expr::Exprs;
use crate::program::Names;
use crate::scope::{CodeKind, Text};
use crate::stmt::{Action, Calls, Externs, Pipeline, Stmts};
use crate::table::table;
use crate::types::{Ty, Types};
use millrace_pipeline::arbitrary::Rng;

/// What a control is made with.
pub(crate) struct Control<'a> {
    pub(crate) name: &'a str,
    pub(crate) pipeline: Pipeline,
    pub(crate) size: usize,
    /// Controls that it may call, by their types.
    pub(crate) inner: &'a [String],
}

const PARAMS: &str = "inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata";

/// Writes a control; adds commands for the entries of its tables.
pub(crate) fn control(
    control: &Control<'_>,
    rng: &mut Rng,
    types: &Types,
    names: &Names,
    text: &mut Text,
    commands: &mut Vec<String>,
    locals: &mut u32,
) {
    let Control { name, pipeline, size, inner } = *control;
    text.open(format!("control {name}({PARAMS}) {{"));
    let externs = externs(rng, types, text);
    let mut calls = Calls { pipeline, ..Calls::default() };
    for (number, own) in inner.iter().enumerate() {
        text.line(format!("{own}() inner{number};"));
        calls.controls.push(format!("inner{number}"));
    }
    let mut scope = names.scope(types, CodeKind::Action, names.headers.len());
    for number in 0..rng.below(3) {
        let ty = types.scalar(rng);
        let value = Exprs { rng, types, scope: &scope, constant: true }.of(ty, 1);
        let own = format!("own{number}");
        text.line(format!("{} {own} = {value};", types.name(ty)));
        scope.add(types, &own, ty, true);
    }
    let none = Calls { pipeline, ..Calls::default() };
    let mut actions: Vec<Action> = Vec::new();
    for number in 0..1 + rng.below(2 + size / 2) {
        let action = signature(rng, types, format!("a{number}"));
        let mut own = scope.clone();
        let mut params: Vec<String> = Vec::new();
        for (at, (ty, written)) in action.directed.iter().enumerate() {
            let direction = if *written { ["inout", "out"][rng.below(2)] } else { "in" };
            params.push(format!("{direction} {} d{at}", types.name(*ty)));
            own.add(types, &format!("d{at}"), *ty, *written);
        }
        for (at, ty) in action.data.iter().enumerate() {
            params.push(format!("{} p{at}", types.name(*ty)));
            own.add(types, &format!("p{at}"), *ty, false);
        }
        text.open(format!("action {}({}) {{", action.name, params.join(", ")));
        // What is `out` has a value before anything reads it.
        for (at, (ty, written)) in action.directed.iter().enumerate() {
            if *written && params[at].starts_with("out") {
                let value = Exprs { rng, types, scope: &scope, constant: true }.literal(*ty);
                text.line(format!("d{at} = {value};"));
            }
        }
        let count = 1 + rng.below(size);
        let (externs, calls, scope) = (&externs, &none, own);
        Stmts {
            rng: &mut *rng,
            types,
            externs,
            calls,
            scope,
            text: &mut *text,
            locals: &mut *locals,
            result: None,
        }
        .some(count, 1);
        text.close("}");
        actions.push(action);
    }
    calls.actions = actions;
    scope.kind = CodeKind::Control;
    let mut body = Text::default();
    std::mem::swap(&mut body, text);
    let mut stmts = Stmts {
        rng,
        types,
        externs: &externs,
        calls: &Calls { tables: Vec::new(), ..calls.clone() },
        scope,
        text: &mut body,
        locals,
        result: None,
    };
    let actions = calls.actions.clone();
    for number in 0..1 + stmts.rng.below(1 + size) {
        let own = format!("{name}_t{number}");
        let listed = table(&own, &mut stmts, &actions, commands);
        calls.tables.push((own, listed));
    }
    stmts.calls = &calls;
    stmts.text.open("apply {");
    let count = 2 + stmts.rng.below(2 * size);
    stmts.some(count, 2);
    if pipeline == Pipeline::Ingress {
        // Most packets go somewhere.
        stmts.text.open("if (standard_metadata.egress_spec == 0) {");
        stmts.text.line("standard_metadata.egress_spec = standard_metadata.ingress_port ^ 1;");
        stmts.text.close("}");
    }
    stmts.text.close("}");
    stmts.text.close("}");
    std::mem::swap(&mut body, text);
}

fn signature(rng: &mut Rng, types: &Types, name: String) -> Action {
    let directed = match rng.below(4) {
        0 => (0..1 + rng.below(2)).map(|_| (types.scalar(rng), rng.one_in(2))).collect(),
        _ => Vec::new(),
    };
    let data = (0..rng.below(4))
        .map(|_| match rng.below(8) {
            0 => Ty::Bool,
            _ => Ty::Bit(types.width(rng)),
        })
        .collect();
    Action { name, directed, data }
}

fn externs(rng: &mut Rng, types: &Types, text: &mut Text) -> Externs {
    let mut externs = Externs::default();
    for number in 0..rng.below(3) {
        let (ty, size) = (Ty::Bit(types.width(rng)), 1 + rng.below(16) as u32);
        let name = format!("r{number}");
        text.line(format!("register<{}>({size}) {name};", types.name(ty)));
        externs.registers.push((name, ty, size));
    }
    for number in 0..rng.below(2) {
        let (size, name) = (1 + rng.below(16) as u32, format!("c{number}"));
        let unit = ["packets", "bytes", "packets_and_bytes"][rng.below(3)];
        text.line(format!("counter({size}, CounterType.{unit}) {name};"));
        externs.counters.push((name, size));
    }
    if rng.one_in(4) {
        let (size, name) = (1 + rng.below(8) as u32, "m0".to_owned());
        text.line(format!("meter({size}, MeterType.{}) {name};", ["packets", "bytes"][rng.below(2)]));
        externs.meters.push((name, size));
    }
    externs
}
