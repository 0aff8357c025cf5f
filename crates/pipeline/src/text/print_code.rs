//! Printing: bodies, instructions, terminators, expressions.

use super::names::{quoted, written};
use super::print::{Printer, put};
use crate::*;
use std::fmt::Write;

impl Printer<'_> {
    pub(super) fn body(&mut self, body: &Body) {
        put!(self, "\nbody {} {}", body.kind.name(), written(&body.name));
        if body.entry.as_u32() != 0 {
            put!(self, " entry {}", body.entry);
        }
        put!(self, " {{\n");
        for (id, block) in &body.blocks {
            put!(self, "{id}");
            if let Some(state) = &block.state {
                put!(self, " state {}", written(state));
            }
            if let Some(line) = block.line {
                put!(self, " line {line}");
            }
            put!(self, ":\n");
            for inst in &block.insts {
                let text = self.inst(inst);
                put!(self, "    {text}\n");
            }
            let text = self.terminator(&block.term);
            put!(self, "    {text}\n");
        }
        put!(self, "}}\n");
    }

    pub(super) fn inst(&self, inst: &Inst) -> String {
        let p = self.program;
        let name = |found: Option<&String>, id: &dyn std::fmt::Display| {
            found.map_or_else(|| format!("{id}?"), |n| written(n))
        };
        let told = |what: &str, told: &Option<Expr>| {
            told.as_ref().map_or_else(String::new, |value| format!(", {what} {}", self.expr(value)))
        };
        match inst {
            Inst::Assign { dst, value } => format!("{} = {}", self.slot(*dst), self.expr(value)),
            Inst::SetValid(header) => format!("set_valid {}", self.header(*header)),
            Inst::SetInvalid(header) => format!("set_invalid {}", self.header(*header)),
            Inst::Extract(header) => format!("extract {}", self.header(*header)),
            Inst::ExtractVar { header, bits } => {
                format!("extract_var {}, {}", self.header(*header), self.expr(bits))
            }
            Inst::Advance { bits } => format!("advance {}", self.expr(bits)),
            Inst::Lookahead { dst, skip: 0 } => format!("lookahead {}", self.slot(*dst)),
            Inst::Lookahead { dst, skip } => format!("lookahead {}, skip {skip}", self.slot(*dst)),
            Inst::Emit(header) => format!("emit {}", self.header(*header)),
            Inst::Count { counter, index } => {
                let counter = name(p.counters.get(*counter).map(|x| &x.name), counter);
                format!("count {counter}, {}", self.expr(index))
            }
            Inst::CountDirect(table) => {
                format!("count_direct {}", name(p.tables.get(*table).map(|x| &x.name), table))
            }
            Inst::Meter { meter, index, color, length, dst } => {
                let meter = name(p.meters.get(*meter).map(|x| &x.name), meter);
                let more = told("color", color) + &told("length", length);
                format!("meter {}, {meter}, {}{more}", self.slot(*dst), self.expr(index))
            }
            Inst::MeterDirect { table, color, length, dst } => {
                let table = name(p.tables.get(*table).map(|x| &x.name), table);
                let more = told("color", color) + &told("length", length);
                format!("meter_direct {}, {table}{more}", self.slot(*dst))
            }
            Inst::RegisterRead { dst, register, index } => {
                let register = name(p.registers.get(*register).map(|x| &x.name), register);
                format!("register_read {}, {register}, {}", self.slot(*dst), self.expr(index))
            }
            Inst::RegisterWrite { register, index, value } => {
                let register = name(p.registers.get(*register).map(|x| &x.name), register);
                format!("register_write {register}, {}, {}", self.expr(index), self.expr(value))
            }
            Inst::AtomicBegin { index: None } => "atomic_begin_all".into(),
            Inst::AtomicBegin { index: Some(index) } => format!("atomic_begin {}", self.expr(index)),
            Inst::AtomicEnd => "atomic_end".into(),
            Inst::Hash { dst, algorithm, own, data } => {
                let items: Vec<String> = data
                    .iter()
                    .map(|item| match item {
                        DataItem::Value(value) => self.expr(value),
                        DataItem::Header(header) => format!("header {}", self.header(*header)),
                        DataItem::Payload => "payload".into(),
                    })
                    .collect();
                let own = own.map_or(String::new(), |own| {
                    format!(" {}", name(p.hashes.get(own).map(|x| &x.name), &own))
                });
                format!("hash {}, {}{own}, ({})", self.slot(*dst), algorithm.name(), items.join(", "))
            }
            Inst::Random { dst, low, high } => {
                format!("random {}, {}, {}", self.slot(*dst), self.expr(low), self.expr(high))
            }
            Inst::Digest { digest, values } => {
                let digest = p.digests.get(*digest).map_or_else(
                    || format!("{digest}?"),
                    |x| {
                        let shared = p.digests.values().filter(|d| d.name == x.name).nth(1).is_some();
                        if shared {
                            format!("{}#{}", written(&x.name), digest.as_u32())
                        } else {
                            written(&x.name)
                        }
                    },
                );
                format!("digest {digest}, ({})", self.exprs(values))
            }
            Inst::Call { dst, plugin, args, results } => {
                let plugin = name(p.plugins.get(*plugin).map(|x| &x.name), plugin);
                format!("call {}, {plugin}, ({}), {results}", self.slot(*dst), self.exprs(args))
            }
            Inst::CallResult { dst, index } => format!("call_result {}, {index}", self.slot(*dst)),
            Inst::Stop { cond } => format!("stop {}", self.expr(cond)),
            Inst::Log { format, args } => format!("log {}, ({})", quoted(format), self.exprs(args)),
            Inst::Assert { cond, text } => format!("assert {}, {}", self.expr(cond), quoted(text)),
        }
    }

    fn terminator(&self, term: &Terminator) -> String {
        match term {
            Terminator::Goto(to) => format!("goto {to}"),
            Terminator::Branch { cond, then, els } => format!("branch {}, {then}, {els}", self.expr(cond)),
            Terminator::Select { keys, cases, default } => {
                let mut text = format!("select ({}) {{\n", self.exprs(keys));
                for case in cases {
                    let matchers: Vec<String> = case.matchers.iter().map(|m| self.matcher(m)).collect();
                    let _ = match matchers.as_slice() {
                        [one] => writeln!(text, "        {one} => {}", case.target),
                        many => writeln!(text, "        ({}) => {}", many.join(", "), case.target),
                    };
                }
                let _ = write!(text, "        default => {default}\n    }}");
                text
            }
            Terminator::Apply { table, hit, action, next, exit } => {
                let table =
                    self.program.tables.get(*table).map_or_else(|| format!("{table}?"), |t| written(&t.name));
                let mut text = format!("apply {table}");
                for (word, slot) in [("hit", hit), ("action", action)] {
                    if let Some(slot) = slot {
                        let _ = write!(text, ", {word} = {}", self.slot(*slot));
                    }
                }
                let _ = write!(text, ", next = {next}, exit = {exit}");
                text
            }
            Terminator::End => "end".into(),
            Terminator::Reject => "reject".into(),
            Terminator::Exit => "exit".into(),
        }
    }

    pub(super) fn matcher(&self, matcher: &Matcher) -> String {
        match matcher {
            Matcher::Any => "_".into(),
            Matcher::Value(value) => value.to_string(),
            Matcher::Mask(value, mask) => format!("{value} &&& {mask}"),
            Matcher::Range(low, high) => format!("{low} .. {high}"),
            Matcher::RangeSigned(low, high) => format!("signed {low} .. {high}"),
            Matcher::ValueSet(set) => {
                let set =
                    self.program.value_sets.get(*set).map_or_else(|| format!("{set}?"), |s| written(&s.name));
                format!("in {set}")
            }
        }
    }

    fn exprs(&self, exprs: &[Expr]) -> String {
        exprs.iter().map(|e| self.expr(e)).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn expr(&self, expr: &Expr) -> String {
        let mut text = String::new();
        self.put_expr(&mut text, expr);
        text
    }

    fn put_expr(&self, text: &mut String, expr: &Expr) {
        match expr {
            Expr::Const(bits) => text.push_str(&bits.to_string()),
            Expr::Bool(b) => text.push_str(if *b { "true" } else { "false" }),
            Expr::Read(slot) => text.push_str(&self.slot(*slot)),
            Expr::IsValid(header) => {
                text.push_str("valid(");
                text.push_str(&self.header(*header));
                text.push(')');
            }
            Expr::PacketLength => text.push_str("packet_length"),
            Expr::Cursor => text.push_str("cursor"),
            Expr::Unary(op, a) => self.put_operation(text, op.name(), &[a], None),
            Expr::Binary(op, a, b) => self.put_operation(text, op.name(), &[a, b], None),
            Expr::Mux(c, a, b) => self.put_operation(text, "mux", &[c, a, b], None),
            Expr::Slice(a, high, low) => {
                self.put_expr(text, a);
                text.push_str(&format!("[{high}:{low}]"));
            }
            Expr::Concat(a, b) => self.put_operation(text, "concat", &[a, b], None),
            Expr::ZeroExtend(a, width) => self.put_operation(text, "zext", &[a], Some(*width)),
            Expr::SignExtend(a, width) => self.put_operation(text, "sext", &[a], Some(*width)),
            Expr::BoolToBits(a) => self.put_operation(text, "bool_to_bits", &[a], None),
        }
    }

    fn put_operation(&self, text: &mut String, word: &str, operands: &[&Expr], width: Option<u32>) {
        text.push_str(word);
        text.push('(');
        for (index, operand) in operands.iter().enumerate() {
            if index > 0 {
                text.push_str(", ");
            }
            self.put_expr(text, operand);
        }
        if let Some(width) = width {
            text.push_str(&format!(", {width}"));
        }
        text.push(')');
    }
}
