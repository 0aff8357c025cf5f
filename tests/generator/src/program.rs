//! A whole program.

use crate::control::{Control, control};
use crate::expr::Exprs;
use crate::packets::packets;
use crate::parser::parser;
use crate::scope::{CodeKind, Function, Scope, Stack, Text};
use crate::stmt::{Calls, Externs, Pipeline, Stmts};
use crate::types::{Ty, Types};
use millrace_pipeline::arbitrary::Rng;

/// A program with what it is run on.
#[derive(Clone, Debug)]
pub struct Generated {
    /// P4_16 for v1model.
    pub source: String,
    /// Runtime commands, each by itself: some add an entry twice and are refused.
    pub commands: Vec<String>,
    /// Packets.
    pub packets: Vec<Vec<u8>>,
}

/// What a program's blocks share.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// Paths of headers, with their types.
    pub(crate) headers: Vec<(String, usize)>,
    pub(crate) stacks: Vec<Stack>,
    functions: Vec<Function>,
    metadata: Vec<(String, Ty)>,
}

/// Writes a program of about that size (from 1 on).
pub fn generate(seed: u64, size: usize) -> Generated {
    let mut rng = Rng::new(seed);
    let size = size.max(1);
    let types = Types::random(&mut rng, size);
    let mut names = Names::random(&mut rng, &types);
    let (mut text, mut commands, mut locals) = (Text::default(), Vec::new(), 0);
    text.line("#include <core.p4>");
    text.line("#include <v1model.p4>");
    text.line("error { Odd }");
    text.append(&types.to_string());
    names.declare(&mut text, &types);
    for number in 0..rng.below(3) {
        let function = function(&mut rng, &types, format!("fn{number}"), &names, &mut text, &mut locals);
        names.functions.push(function);
    }
    parser(&mut rng, &types, &names, &mut text, &mut locals);
    checksums(&mut rng, &types, &names, &mut text);
    let mut inner = Vec::new();
    if rng.one_in(3) {
        let own = Control { name: "Inner", pipeline: Pipeline::Inner, size: 1, inner: &[] };
        control(&own, &mut rng, &types, &names, &mut text, &mut commands, &mut locals);
        inner.push("Inner".to_owned());
    }
    for (name, pipeline, inner) in [
        ("I", Pipeline::Ingress, &inner[..]),
        ("E", Pipeline::Egress, if rng.one_in(2) { &inner[..] } else { &[] }),
    ] {
        let size = if pipeline == Pipeline::Ingress { size } else { 1 + size / 2 };
        let own = Control { name, pipeline, size, inner };
        control(&own, &mut rng, &types, &names, &mut text, &mut commands, &mut locals);
    }
    text.open("control D(packet_out packet, in headers_t hdr) {");
    text.open("apply {");
    if rng.one_in(2) {
        text.line("packet.emit(hdr);");
    } else {
        names.headers.iter().for_each(|(path, _)| text.line(format!("packet.emit({path});")));
        names.stacks.iter().for_each(|stack| text.line(format!("packet.emit({});", stack.path)));
    }
    text.close("}");
    text.close("}");
    text.line("V1Switch(P(), V(), I(), E(), C(), D()) main;");
    Generated { source: text.finish(), commands, packets: packets(&mut rng, &types, &names) }
}

impl Names {
    fn random(rng: &mut Rng, types: &Types) -> Names {
        let headers = (0..types.headers.len()).map(|at| (format!("hdr.h{at}"), at)).collect();
        let mut stacks = Vec::new();
        let plain = types.headers.iter().rposition(|header| header.varbit.is_none());
        if let (Some(header), true) = (plain, rng.one_in(2)) {
            stacks.push(Stack { path: "hdr.st".into(), header, size: 2 + rng.below(3) as u32 });
        }
        let mut metadata: Vec<(String, Ty)> = (0..2 + rng.below(4))
            .map(|at| {
                let ty = types.scalar(rng);
                (format!("m{at}"), ty)
            })
            .collect();
        metadata.push(("s".into(), Ty::Struct(rng.below(types.structs.len()))));
        Names { headers, stacks, functions: Vec::new(), metadata }
    }

    fn declare(&self, text: &mut Text, types: &Types) {
        text.open("struct headers_t {");
        for (path, header) in &self.headers {
            text.line(format!("{} {};", types.headers[*header].name, path.trim_start_matches("hdr.")));
        }
        for stack in &self.stacks {
            let name = &types.headers[stack.header].name;
            text.line(format!("{name}[{}] {};", stack.size, stack.path.trim_start_matches("hdr.")));
        }
        text.close("}");
        text.open("struct meta_t {");
        for (at, (name, ty)) in self.metadata.iter().enumerate() {
            let kept = if at % 2 == 0 { "@field_list(1) " } else { "" };
            text.line(format!("{kept}{} {name};", types.name(*ty)));
        }
        text.close("}");
    }

    /// What code may name that sees the first so many headers.
    pub(crate) fn scope(&self, types: &Types, kind: CodeKind, headers: usize) -> Scope {
        let mut scope = Scope::new(kind);
        for (path, header) in &self.headers[..headers] {
            scope.add(types, path, Ty::Header(*header), true);
        }
        if kind != CodeKind::Parser {
            for stack in &self.stacks {
                for at in 0..stack.size {
                    scope.add(types, &format!("{}[{at}]", stack.path), Ty::Header(stack.header), true);
                }
            }
            scope.stacks.clone_from(&self.stacks);
        }
        for (name, ty) in &self.metadata {
            scope.add(types, &format!("meta.{name}"), *ty, true);
        }
        scope.add(types, "standard_metadata.ingress_port", Ty::Bit(9), false);
        scope.add(types, "standard_metadata.packet_length", Ty::Bit(32), false);
        scope.functions.clone_from(&self.functions);
        scope
    }
}

fn function(
    rng: &mut Rng,
    types: &Types,
    name: String,
    names: &Names,
    text: &mut Text,
    locals: &mut u32,
) -> Function {
    let result = types.scalar(rng);
    let params: Vec<(Ty, bool)> = (0..1 + rng.below(3)).map(|_| (types.scalar(rng), rng.one_in(4))).collect();
    let mut scope = Scope::new(CodeKind::Function);
    scope.functions.clone_from(&names.functions);
    let mut written = Vec::new();
    for (at, (ty, inout)) in params.iter().enumerate() {
        scope.add(types, &format!("x{at}"), *ty, *inout);
        written.push(format!("{} {} x{at}", if *inout { "inout" } else { "in" }, types.name(*ty)));
    }
    text.open(format!("{} {name}({}) {{", types.name(result), written.join(", ")));
    let count = 1 + rng.below(4);
    let (externs, calls) = (&Externs::default(), &Calls::default());
    let mut stmts = Stmts { rng, types, externs, calls, scope, text, locals, result: Some(result) };
    stmts.some(count, 1);
    let value = stmts.expr(result, 2);
    stmts.text.line(format!("return {value};"));
    text.close("}");
    Function { name, result, params }
}

/// Both checksum controls, over a header of whole bytes when there is a field for the sum.
fn checksums(rng: &mut Rng, types: &Types, names: &Names, text: &mut Text) {
    let mut found = None;
    for (path, header) in &names.headers {
        let fields = &types.headers[*header].fields;
        let sum = fields.iter().find(|field| field.ty == Ty::Bit(16));
        if let (Some(sum), true) = (sum, types.headers[*header].varbit.is_none()) {
            found = Some((path, sum.name.clone(), fields));
        }
    }
    let mut scope = names.scope(types, CodeKind::Control, names.headers.len());
    scope.vars.retain(|var| !var.path.starts_with("standard_metadata"));
    for (control, call) in [("V", "verify_checksum"), ("C", "update_checksum")] {
        text.open(format!("control {control}(inout headers_t hdr, inout meta_t meta) {{"));
        text.open("apply {");
        if let (Some((path, sum, fields)), true) = (&found, rng.one_in(2)) {
            let listed: Vec<String> = fields
                .iter()
                .filter(|field| field.name != *sum && types.bits(field.ty).is_multiple_of(16))
                .filter(|field| matches!(field.ty, Ty::Bit(_)))
                .map(|field| format!("{path}.{}", field.name))
                .chain(["16w7".to_owned()])
                .collect();
            let more = Exprs { rng: &mut *rng, types, scope: &scope, constant: false }.of(Ty::Bit(8), 1);
            text.line(format!(
                "{call}({path}.isValid(), {{ {}, 8w1, {more} }}, {path}.{sum}, HashAlgorithm.csum16);",
                listed.join(", ")
            ));
        }
        text.close("}");
        text.close("}");
    }
}
