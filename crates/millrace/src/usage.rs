//! `millrace compile --report`: what of the switch a program uses.

use crate::findings::Failure;
use crate::output::{say, say_line};
use crate::source::write_output;
use millrace_describe::usage::{FEATURES, Usage};
use millrace_pipeline::{Program, Type, passes};
use serde_json::json;
use std::fmt::Write;
use std::path::Path;

/// Says it, as text or as one JSON object.
pub(crate) fn report(program: &Program, output: Option<&Path>, as_json: bool) -> Result<(), Failure> {
    let mut program = program.clone();
    passes::optimize(&mut program);
    let usage = Usage::of(&program);
    let text = if as_json { format!("{}\n", as_object(&program, &usage)) } else { as_text(&program, &usage) };
    match output {
        Some(path) => {
            write_output(Some(path), &text)?;
            if as_json {
                say_line(json!({ "ok": true, "output": path.display().to_string(), "bytes": text.len() }));
            }
        }
        None => say(&text),
    }
    Ok(())
}

/// Bits of all scalars of a packet: of headers, and others.
fn bits(program: &Program) -> (u64, u64) {
    let width = |ty: Type| match ty {
        Type::Bool => 1,
        Type::Bits(width) | Type::Varbit(width) => u64::from(width),
    };
    let of = |headers: bool| {
        let slots = program.slots.values();
        let slots =
            slots.filter(|slot| matches!(slot.home, millrace_pipeline::Home::Header { .. }) == headers);
        slots.map(|slot| width(slot.ty)).sum()
    };
    (of(true), of(false))
}

fn as_object(program: &Program, usage: &Usage) -> serde_json::Value {
    let (header_bits, other_bits) = bits(program);
    let features: serde_json::Map<String, serde_json::Value> =
        usage.features.iter().map(|(key, places)| ((*key).to_owned(), json!(places))).collect();
    let surplus: Vec<_> =
        usage.surplus.iter().map(|(kind, name)| json!({ "kind": kind, "name": name })).collect();
    json!({
        "ok": true, "program": program.name, "architecture": program.architecture, "uses": features,
        "surplus": surplus, "header_bits": header_bits, "other_bits": other_bits,
    })
}

fn as_text(program: &Program, usage: &Usage) -> String {
    let mut text = format!("{} ({})\n", program.name, program.architecture);
    let (header_bits, other_bits) = bits(program);
    _ = writeln!(
        text,
        "A packet has {header_bits} bits of headers and {other_bits} bits of other values.\n\nUsed of the switch:"
    );
    for ((_, places), (_, what)) in
        usage.features.iter().zip(FEATURES).filter(|((_, places), _)| !places.is_empty())
    {
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        _ = writeln!(text, "  {what}: {}", places.join(", "));
    }
    text.push_str("\nNot used, so without code in the compiled program:\n");
    let unused = usage.features.iter().zip(FEATURES).filter(|((_, places), _)| places.is_empty());
    unused.for_each(|(_, (_, what))| _ = writeln!(text, "  {what}"));
    match usage.surplus.as_slice() {
        [] => text.push_str("\nNothing of the program is surplus.\n"),
        surplus => {
            text.push_str("\nSurplus in the program, as no packet meets it:\n");
            surplus.iter().for_each(|(kind, name)| _ = writeln!(text, "  {kind} {name}"));
        }
    }
    text
}
