//! The parser: states that extract, look ahead, verify and select.

use crate::program::Names;
use crate::scope::{CodeKind, Text};
use crate::stmt::{Calls, Externs, Stmts};
use crate::types::{Ty, Types};
use millrace_pipeline::arbitrary::Rng;

/// Values that a select compares a `kind` with; packets have them often.
pub(crate) const KINDS: usize = 4;

/// Writes the parser of the headers.
pub(crate) fn parser(rng: &mut Rng, types: &Types, names: &Names, text: &mut Text, locals: &mut u32) {
    text.open("parser P(packet_in packet, out headers_t hdr, inout meta_t meta,");
    text.line("inout standard_metadata_t standard_metadata) {");
    // A header's state, for each header, then that of the stack.
    let states: Vec<String> = (0..names.headers.len()).map(|at| format!("parse_{at}")).collect();
    let stack = names.stacks.first();
    for (at, (path, header)) in names.headers.iter().enumerate() {
        text.open(format!("state {} {{", if at == 0 { "start" } else { &states[at] }));
        match types.headers[*header].varbit {
            Some(most) => {
                let step = most / 32;
                let bits = format!("((bit<32>)(packet.lookahead<bit<8>>() & 3)) * {}", step * 8);
                text.line(format!("packet.extract({path}, {bits});"));
            }
            None => text.line(format!("packet.extract({path});")),
        }
        let (externs, calls) = (Externs::default(), Calls::default());
        let mut stmts = Stmts {
            scope: names.scope(types, CodeKind::Parser, at + 1),
            rng: &mut *rng,
            types,
            externs: &externs,
            calls: &calls,
            text: &mut *text,
            locals,
            result: None,
        };
        let count = stmts.rng.below(3);
        stmts.some(count, 1);
        if stmts.rng.one_in(4) {
            let cond = stmts.expr(Ty::Bool, 2);
            let error = ["NoMatch", "Odd", "PacketTooShort"][stmts.rng.below(3)];
            stmts.text.line(format!("verify({cond}, error.{error});"));
        }
        if stmts.rng.one_in(8) {
            stmts.text.line(format!("packet.advance({});", 8 * stmts.rng.below(4)));
        }
        let mut targets: Vec<String> = states[at + 1..].to_vec();
        targets.extend(stack.map(|_| "parse_stack".to_owned()));
        targets.extend(["accept".to_owned(), "accept".to_owned(), "reject".to_owned()]);
        transition(&mut stmts, &format!("{path}.kind"), &targets);
        text.close("}");
    }
    if let Some(stack) = stack {
        text.open("state parse_stack {");
        text.line(format!("packet.extract({}.next);", stack.path));
        text.open(format!("transition select({}.last.kind) {{", stack.path));
        text.line(format!("8w0 &&& 8w{}: parse_stack;", 1 + rng.below(3)));
        text.line("default: accept;");
        text.close("}");
        text.close("}");
    }
    text.close("}");
}

fn transition(stmts: &mut Stmts<'_>, kind: &str, targets: &[String]) {
    let target = |rng: &mut Rng| rng.pick(targets).cloned().unwrap_or_else(|| "accept".into());
    if stmts.rng.one_in(5) {
        let target = target(stmts.rng);
        return stmts.text.line(format!("transition {target};"));
    }
    let two = stmts.rng.one_in(3);
    let ahead = stmts.rng.one_in(4);
    let first = if ahead { "packet.lookahead<bit<8>>()".to_owned() } else { kind.to_owned() };
    let second = match two {
        true => format!(", {}", stmts.expr(Ty::Bit(4), 2)),
        false => String::new(),
    };
    stmts.text.open(format!("transition select({first}{second}) {{"));
    for _ in 0..1 + stmts.rng.below(4) {
        let rng = &mut *stmts.rng;
        let set = match rng.below(4) {
            0 => format!("8w{} &&& 8w{}", rng.below(8), rng.below(16)),
            1 => format!("8w{}..8w{}", rng.below(3), 3 + rng.below(200)),
            _ => format!("8w{}", rng.below(KINDS)),
        };
        let set = match two {
            true => {
                format!("({set}, {})", if rng.one_in(3) { "_".into() } else { format!("4w{}", rng.below(4)) })
            }
            false => set,
        };
        let target = target(rng);
        stmts.text.line(format!("{set}: {target};"));
    }
    if stmts.rng.below(4) > 0 {
        let target = target(stmts.rng);
        stmts.text.line(format!("default: {target};"));
    }
    stmts.text.close("}");
}
