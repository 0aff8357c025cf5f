//! Text forms of plans, graphs and what is live: for people, and for the file tests. docs/dev/ir.md describes them.
//!
//! Blocks and nodes are numbered in reverse postorder from the entry, so that a text does not depend on the order in which they
//! were made. What packets never reach is left out. Names, expressions and operations of the IR are written as in its own text.

use crate::cfg::{Cfg, CfgId, Input, Leave, Op, Spill, Term};
use crate::facts::{Cursor, Facts, HeaderPlace};
use crate::liveness::Live;
use crate::plan::{Plan, Start, Step};
use crate::simplify::simplify;
use crate::specialise::{NodeId, Specialised, reverse_postorder};
use crate::verdict::Verdict;
use millrace_pipeline::entity::{EntityRef, SecondaryMap};
use millrace_pipeline::text::{print_expr, print_inst, print_matcher, print_name};
use millrace_pipeline::*;
use rustc_hash::FxHashMap;
use std::fmt::{self, Write};

/// Adds formatted text. Writing to a string cannot fail.
macro_rules! put {
    ($text:expr, $($arg:tt)*) => {{ let _ = write!($text, $($arg)*); }};
}

impl Plan {
    /// The plan as text: its name and start, then a line for each step.
    pub fn to_text(&self, program: &Program) -> String {
        let start = match self.start {
            Start::Arrival => "arrival",
            Start::Unparsed => "unparsed",
            Start::Context => "context",
        };
        let mut text = format!("plan {} from {start}\n", self.name);
        for step in &self.steps {
            match step {
                Step::Body(body) => {
                    let body = &program.bodies[*body];
                    put!(text, "    {} {}\n", body.kind.name(), print_name(&body.name));
                }
                Step::TrafficManager { classes: false } => text.push_str("    traffic_manager\n"),
                Step::TrafficManager { classes: true } => text.push_str("    traffic_manager by class\n"),
                Step::CloneBeforeDeparser(nth) => put!(text, "    clone_before_deparser {nth}\n"),
                Step::DropInEgress => text.push_str("    drop_in_egress\n"),
                Step::Transmit { cloned: false } => text.push_str("    transmit\n"),
                Step::Transmit { cloned: true } => text.push_str("    transmit, cloned already\n"),
                Step::Stop => text.push_str("    stop\n"),
            }
        }
        text
    }
}

impl Cfg {
    /// The graph as text: for each block its number and the block of a body that it comes from, its operations, and where it goes.
    pub fn to_text(&self, program: &Program) -> String {
        let order = reverse_postorder(self.blocks.len(), self.entry, |block| &self.blocks[block].term);
        let numbers = numbers(&order);
        let name = |block: &CfgId| format!("block{}", numbers[block]);
        let printer = Printer { program, facts: None };
        let mut text = String::new();
        for id in order {
            let block = &self.blocks[id];
            put!(text, "{} {}\n", name(&id), block.origin);
            block.ops.iter().for_each(|op| put!(text, "    {}\n", printer.op(op)));
            put!(text, "    {}\n\n", printer.term(&block.term, &name));
        }
        text.truncate(text.trim_end().len() + 1);
        text
    }
}

impl Specialised {
    /// The graph as text: for each node its number, the block of a body that it comes from and what holds at its start, then its
    /// operations and where it goes. Expressions have what is known put in.
    pub fn to_text(&self, program: &Program, cfg: &Cfg) -> String {
        let numbers = numbers(&self.order);
        let name = |node: &NodeId| match numbers.get(node) {
            Some(number) => format!("n{number}"),
            None => "nowhere".to_owned(),
        };
        let mut text = String::new();
        for id in &self.order {
            let node = &self.nodes[*id];
            let block = &cfg.blocks[node.block];
            put!(text, "{} {}", name(id), block.origin);
            put_facts(&mut text, program, &node.entry);
            text.push('\n');
            let mut facts = node.entry.clone();
            for op in &block.ops {
                put!(text, "    {}\n", Printer { program, facts: Some(&facts) }.op(op));
                facts.transfer(program, op, &|slot| self.tracked[slot]);
            }
            put!(text, "    {}\n\n", Printer { program, facts: None }.term(&node.term, &name));
        }
        text.truncate(text.trim_end().len() + 1);
        text
    }

    /// What is [live](crate::liveness::live) at the start of each node, one a line, with the numbers of [`Specialised::to_text`].
    pub fn live_to_text(&self, program: &Program, cfg: &Cfg, live: &SecondaryMap<NodeId, Live>) -> String {
        let mut text = String::new();
        for (number, id) in self.order.iter().enumerate() {
            let origin = &cfg.blocks[self.nodes[*id].block].origin;
            put!(text, "n{number} {origin}: {}\n", live[*id].to_text(program));
        }
        text
    }
}

impl Live {
    /// The names of what is live, with a word for each kind that is no slot.
    pub fn to_text(&self, program: &Program) -> String {
        let slots = program.slots.iter().filter(|(id, _)| self.slots.contains(id.index()));
        let mut all: Vec<String> = slots.map(|(_, slot)| print_name(&slot.name)).collect();
        let entries = program.tables.iter().filter(|(id, _)| self.entries.contains(id.index()));
        all.extend(entries.map(|(_, table)| format!("entry of {}", print_name(&table.name))));
        let flags =
            [(self.parsed, "length of parsed headers"), (self.out, "port or error"), (self.steps, "steps")];
        all.extend(flags.iter().filter(|(is_live, _)| *is_live).map(|(_, word)| (*word).to_owned()));
        if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
    }
}

fn numbers<K: EntityRef + std::hash::Hash>(order: &[K]) -> FxHashMap<K, usize> {
    order.iter().enumerate().map(|(at, id)| (*id, at)).collect()
}

fn put_facts(text: &mut String, program: &Program, facts: &Facts) {
    match facts.cursor {
        Cursor::At(at) => put!(text, " cursor {at}"),
        Cursor::Byte => text.push_str(" cursor byte"),
        Cursor::Bit => text.push_str(" cursor bit"),
    }
    if facts.room > 0 {
        put!(text, " room {}", facts.room);
    }
    if facts.phase > 0 {
        put!(text, " loop {}", facts.phase);
    }
    for (header, layout) in &program.headers {
        if facts.place(header) != HeaderPlace::Invalid {
            put!(text, " {} {}", print_name(&layout.name), facts.place(header));
        }
    }
    for (slot, value) in &facts.constants {
        put!(text, " {}={value:#x}", print_name(&program.slots[*slot].name));
    }
}

struct Printer<'a> {
    program: &'a Program,
    /// What is put into expressions.
    facts: Option<&'a Facts>,
}

impl Printer<'_> {
    fn op(&self, op: &Op) -> String {
        match op {
            Op::Inst(inst) => {
                let mut inst = inst.clone();
                if let Some(facts) = self.facts {
                    inst.for_each_expr_mut(&mut |expr| *expr = simplify(self.program, expr, facts));
                }
                print_inst(self.program, &inst)
            }
            Op::Clear(slot) => format!("clear {}", self.slot(*slot)),
            Op::Argument { dst, table, action, param } => {
                let described = &self.program.tables[*table];
                let action = self.action(*table, *action);
                format!("argument {}, {}, {action}, {param}", self.slot(*dst), print_name(&described.name))
            }
            Op::Hit { dst } => format!("hit {}", self.slot(*dst)),
            Op::AtHit { table, meter } => {
                let meter = meter.map_or(String::new(), |slot| format!(", meter {}", self.slot(slot)));
                format!("at_hit {}{meter}", self.table(*table))
            }
            Op::Input { dst, input } => {
                let input = match input {
                    Input::Port => "port",
                    Input::Arrival => "arrival",
                    Input::Now => "now",
                    Input::Length => "length",
                    Input::LengthNow => "length_now",
                    Input::Out => "out",
                    Input::Copy => "copy",
                };
                format!("input {}, {input}", self.slot(*dst))
            }
            Op::NoteParsed => "note_parsed".to_owned(),
            Op::Deparse { headers, keep, growth } => {
                let names: Vec<String> = headers.iter().map(|header| self.header(*header)).collect();
                format!("deparse ({}){}", names.join(", "), deparse_words(*keep, *growth))
            }
            Op::StartEmit => "start_emit".to_owned(),
            Op::Emit(header) => format!("emit {}", self.header(*header)),
            Op::FinishEmit { keep, growth } => format!("finish_emit{}", deparse_words(*keep, *growth)),
            Op::Reparse => "reparse".to_owned(),
            Op::SetOut(expr) => format!("set_out {}", self.expr(expr)),
            Op::StartCopies => "start_copies".to_owned(),
            Op::NextCopy => "next_copy".to_owned(),
            Op::DropCopy(None) => "drop_copy".to_owned(),
            Op::DropCopy(Some(site)) => format!("drop_copy {}", self.slot(*site)),
            Op::SetError => "set_error".to_owned(),
            Op::AddSite(slot) => format!("add_site {}", self.slot(*slot)),
            Op::AddClass(slot) => format!("add_class {}", self.slot(*slot)),
            Op::AddQueue(slot) => format!("add_queue {}", self.slot(*slot)),
            Op::StartSteps => "start_steps".to_owned(),
            Op::ForgetSteps => "forget_steps".to_owned(),
            Op::AddSteps => "add_steps".to_owned(),
            Op::AssertFailed(text) => format!("assert_failed {text:?}"),
        }
    }

    fn term<T>(&self, term: &Term<T>, name: &dyn Fn(&T) -> String) -> String {
        match term {
            Term::Goto(to) => format!("goto {}", name(to)),
            Term::Branch { cond, then, els } => {
                format!("branch {}, {}, {}", self.expr(cond), name(then), name(els))
            }
            Term::Select { keys, cases, default } => {
                let keys: Vec<String> = keys.iter().map(|key| self.expr(key)).collect();
                let mut text = format!("select ({}) {{\n", keys.join(", "));
                for (matchers, to) in cases {
                    let matchers: Vec<String> =
                        matchers.iter().map(|matcher| print_matcher(self.program, matcher)).collect();
                    match matchers.as_slice() {
                        [one] => put!(text, "        {one} => {}\n", name(to)),
                        many => put!(text, "        ({}) => {}\n", many.join(", "), name(to)),
                    }
                }
                put!(text, "        default => {}\n    }}", name(default));
                text
            }
            Term::Extract { header, next, short } => {
                format!("extract {}, next = {}, short = {}", self.header(*header), name(next), name(short))
            }
            Term::ExtractVar { header, bits, next, short, long, invalid } => format!(
                "extract_var {}, {}, next = {}, short = {}, long = {}, invalid = {}",
                self.header(*header),
                self.expr(bits),
                name(next),
                name(short),
                name(long),
                name(invalid)
            ),
            Term::Advance { bits, next, short, invalid } => format!(
                "advance {}, next = {}, short = {}, invalid = {}",
                self.expr(bits),
                name(next),
                name(short),
                name(invalid)
            ),
            Term::Lookahead { dst, skip, next, short } => {
                let skip = if *skip == 0 { String::new() } else { format!(", skip {skip}") };
                format!("lookahead {}{skip}, next = {}, short = {}", self.slot(*dst), name(next), name(short))
            }
            Term::Step { steps, next, limit } => {
                format!("step {steps}, next = {}, limit = {}", name(next), name(limit))
            }
            Term::Lookup { table, next } => format!("lookup {}, next = {}", self.table(*table), name(next)),
            Term::Dispatch { table, actions } => {
                let mut text = format!("dispatch {} {{\n", self.table(*table));
                for (index, to) in actions.iter().enumerate() {
                    put!(text, "        {} => {}\n", self.action(*table, index), name(to));
                }
                text.push_str("    }");
                text
            }
            Term::MoreCopies { more, done } => {
                format!("more_copies, more = {}, done = {}", name(more), name(done))
            }
            Term::Leave(leave) => leave.to_string(),
        }
    }

    fn expr(&self, expr: &Expr) -> String {
        match self.facts {
            Some(facts) => print_expr(self.program, &simplify(self.program, expr, facts)),
            None => print_expr(self.program, expr),
        }
    }

    fn slot(&self, slot: SlotId) -> String {
        print_name(&self.program.slots[slot].name)
    }

    fn header(&self, header: HeaderId) -> String {
        print_name(&self.program.headers[header].name)
    }

    fn table(&self, table: TableId) -> String {
        print_name(&self.program.tables[table].name)
    }

    /// An action by its place in the list of a table.
    fn action(&self, table: TableId, place: usize) -> String {
        let listed = &self.program.tables[table].actions[place];
        print_name(&self.program.actions[listed.action].name)
    }
}

fn deparse_words(keep: bool, growth: u32) -> String {
    let keep = if keep { " keep" } else { "" };
    match growth {
        0 => keep.to_owned(),
        bytes => format!("{keep} growth {bytes}"),
    }
}

impl fmt::Display for Leave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "leave {}", self.verdict.name())?;
        match self.out {
            // Of these the number says nothing.
            Some(0) if self.verdict != Verdict::CloneBeforeDeparser => {}
            Some(number) => write!(f, " {number}")?,
            None => f.write_str(" as remembered")?,
        }
        match self.spill {
            Spill::Nothing => Ok(()),
            Spill::Metadata => f.write_str(", spill metadata"),
            Spill::Everything => f.write_str(", spill everything"),
        }
    }
}
