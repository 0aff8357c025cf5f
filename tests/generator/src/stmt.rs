//! Statements.

use crate::expr::Exprs;
use crate::scope::{CodeKind, Scope, Text};
use crate::types::{Ty, Types};
use millrace_pipeline::arbitrary::Rng;

/// Instances of externs that code may use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Externs {
    /// Names with the type of a cell and the number of cells.
    pub(crate) registers: Vec<(String, Ty, u32)>,
    pub(crate) counters: Vec<(String, u32)>,
    pub(crate) meters: Vec<(String, u32)>,
}

/// An action, with its parameters with a direction and those without.
#[derive(Clone, Debug)]
pub(crate) struct Action {
    pub(crate) name: String,
    /// The type, and whether the argument must be something that can be written.
    pub(crate) directed: Vec<(Ty, bool)>,
    pub(crate) data: Vec<Ty>,
}

/// What a control's code may call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    pub(crate) actions: Vec<Action>,
    /// Names of tables, with the names of their actions.
    pub(crate) tables: Vec<(String, Vec<String>)>,
    /// Instances of controls that take the headers and the metadata.
    pub(crate) controls: Vec<String>,
    /// Whether this is ingress, egress, or something between.
    pub(crate) pipeline: Pipeline,
}

/// Where in the switch a control stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pipeline {
    Ingress,
    Egress,
    /// Called by one of them, or by none.
    #[default]
    Inner,
}

/// Writes statements.
pub(crate) struct Stmts<'a> {
    pub(crate) rng: &'a mut Rng,
    pub(crate) types: &'a Types,
    pub(crate) externs: &'a Externs,
    pub(crate) calls: &'a Calls,
    pub(crate) scope: Scope,
    pub(crate) text: &'a mut Text,
    /// Names of locals count up, as a name is declared once.
    pub(crate) locals: &'a mut u32,
    /// What a function gives back.
    pub(crate) result: Option<Ty>,
}

impl Stmts<'_> {
    pub(crate) fn expr(&mut self, ty: Ty, depth: u32) -> String {
        Exprs { rng: self.rng, types: self.types, scope: &self.scope, constant: false }.of(ty, depth)
    }

    fn literal(&mut self, ty: Ty) -> String {
        Exprs { rng: self.rng, types: self.types, scope: &self.scope, constant: true }.leaf(ty)
    }

    /// Some statements, with blocks in them at most so deep.
    pub(crate) fn some(&mut self, count: usize, depth: u32) {
        for _ in 0..count {
            self.one(depth);
        }
    }

    /// Statements between braces.
    fn block(&mut self, opening: &str, closing: &str, count: usize, depth: u32) {
        let outside = self.scope.clone();
        self.text.open(opening);
        self.some(count, depth);
        self.text.close(closing);
        self.scope = outside;
    }

    fn one(&mut self, depth: u32) {
        let kind = self.scope.kind;
        match self.rng.below(24) {
            0..=5 => self.assign(),
            6 => self.assign_slice(),
            7 => self.declare(),
            8 | 9 if depth > 0 => self.branch(depth - 1),
            10 if depth > 0 && kind != CodeKind::Parser => self.repeat(depth - 1),
            11 if depth > 0 && kind == CodeKind::Control => self.switch(depth - 1),
            12 => self.copy(),
            13 if matches!(kind, CodeKind::Control | CodeKind::Action) => self.validity(),
            14 => self.stack(),
            15 | 16 if matches!(kind, CodeKind::Control | CodeKind::Action) => self.stateful(),
            17 if kind == CodeKind::Control || kind == CodeKind::Action => self.ask(),
            18 | 19 if kind == CodeKind::Control && self.scope.loops == 0 => self.apply(depth),
            20 if kind == CodeKind::Control => self.call(),
            21 => self.leave(),
            22 if matches!(kind, CodeKind::Control | CodeKind::Action) => self.calculate(),
            _ => self.assign(),
        }
    }

    fn assign(&mut self) {
        let scalar = |ty: Ty| !matches!(ty, Ty::Header(_) | Ty::Struct(_));
        let Some(var) = self.scope.pick(self.rng, |var| var.writable && scalar(var.ty)).cloned() else {
            return;
        };
        let operator = match var.ty {
            Ty::Bit(_) | Ty::Int(_) if self.rng.one_in(6) => {
                ["+=", "-=", "*=", "&=", "|=", "^=", "|+|=", "|-|="][self.rng.below(8)]
            }
            _ => "=",
        };
        let value = self.expr(var.ty, 3);
        self.text.line(format!("{} {operator} {value};", var.path));
    }

    fn assign_slice(&mut self) {
        let wide = |ty: Ty| matches!(ty, Ty::Bit(width) if width > 1);
        let Some(var) = self.scope.pick(self.rng, |var| var.writable && wide(var.ty)).cloned() else {
            return;
        };
        let Ty::Bit(width) = var.ty else { return };
        let part = 1 + self.rng.below(width as usize) as u32;
        let low = self.rng.below((width - part) as usize + 1) as u32;
        let value = self.expr(Ty::Bit(part), 2);
        self.text.line(format!("{}[{}:{low}] = {value};", var.path, low + part - 1));
    }

    fn declare(&mut self) {
        let ty = match self.rng.below(6) {
            0 => Ty::Struct(self.rng.below(self.types.structs.len())),
            _ => self.types.scalar(self.rng),
        };
        let name = self.fresh();
        let value = match ty {
            Ty::Struct(_) => self.literal(ty),
            _ => self.expr(ty, 3),
        };
        self.text.line(format!("{} {name} = {value};", self.types.name(ty)));
        self.scope.add(self.types, &name, ty, true);
    }

    fn fresh(&mut self) -> String {
        *self.locals += 1;
        format!("v{}", self.locals)
    }

    fn branch(&mut self, depth: u32) {
        let cond = self.expr(Ty::Bool, 3);
        let count = 1 + self.rng.below(3);
        if self.rng.one_in(2) {
            self.block(&format!("if ({cond}) {{"), "}", count, depth);
            return;
        }
        self.block(&format!("if ({cond}) {{"), "} else {", count, depth);
        self.block("", "}", 1 + count / 2, depth);
    }

    /// A loop of few rounds.
    fn repeat(&mut self, depth: u32) {
        if self.scope.loops > 1 {
            return;
        }
        let name = self.fresh();
        let outside = self.scope.clone();
        let rounds = 1 + self.rng.below(4);
        match self.rng.below(3) {
            0 => self.text.open(format!("for (bit<8> {name} in 8w1..8w{rounds}) {{")),
            _ => {
                self.text.open(format!("for (bit<8> {name} = 0; {name} < {rounds}; {name} = {name} + 1) {{"))
            }
        }
        self.scope.add(self.types, &name, Ty::Bit(8), false);
        self.scope.loops += 1;
        let count = 1 + self.rng.below(3);
        self.some(count, depth);
        if self.rng.one_in(3) {
            let cond = self.expr(Ty::Bool, 2);
            let word = ["break", "continue"][self.rng.below(2)];
            self.text.line(format!("if ({cond}) {{ {word}; }}"));
            self.assign();
        }
        self.text.close("}");
        self.scope = outside;
    }

    fn switch(&mut self, depth: u32) {
        let table = self.rng.pick(&self.calls.tables).cloned();
        if let (Some((table, actions)), true) = (table, self.scope.loops == 0 && self.rng.one_in(2)) {
            self.text.open(format!("switch ({table}.apply().action_run) {{"));
            let labels = actions.iter().take(1 + self.rng.below(3)).map(|name| format!("{name}:")).collect();
            self.cases(labels, depth);
            return self.text.close("}");
        }
        let width = self.types.width(self.rng);
        let value = self.expr(Ty::Bit(width), 3);
        self.text.open(format!("switch ({value}) {{"));
        let mut labels: Vec<String> = (0..1 + self.rng.below(3))
            .map(|_| format!("{width}w{}:", self.rng.bits(width.min(5)).to_biguint()))
            .collect();
        labels.sort();
        labels.dedup();
        self.cases(labels, depth);
        self.text.close("}");
    }

    fn cases(&mut self, labels: Vec<String>, depth: u32) {
        let mut labels = labels;
        if self.rng.one_in(2) {
            labels.push("default:".into());
        }
        let last = labels.len() - 1;
        for (at, label) in labels.into_iter().enumerate() {
            // A label without statements goes on to those of the next.
            if at < last && self.rng.one_in(5) {
                self.text.line(label);
                continue;
            }
            let count = 1 + self.rng.below(2);
            self.block(&format!("{label} {{"), "}", count, depth);
        }
    }

    /// A whole header or struct.
    fn copy(&mut self) {
        let record = |ty: Ty| matches!(ty, Ty::Header(_) | Ty::Struct(_));
        let Some(to) = self.scope.pick(self.rng, |var| var.writable && record(var.ty)).cloned() else {
            return;
        };
        let from = self.scope.pick(self.rng, |var| var.ty == to.ty).map(|var| var.path.clone());
        let has_varbit = matches!(to.ty, Ty::Header(at) if self.types.headers[at].varbit.is_some());
        match from {
            Some(from) if has_varbit || self.rng.below(3) > 0 => {
                self.text.line(format!("{} = {from};", to.path));
            }
            _ if has_varbit => {}
            _ => {
                let value = self.literal(to.ty);
                self.text.line(format!("{} = {value};", to.path));
            }
        }
    }

    fn validity(&mut self) {
        let header = |ty: Ty| matches!(ty, Ty::Header(_));
        let Some(var) = self.scope.pick(self.rng, |var| var.writable && header(var.ty)).cloned() else {
            return;
        };
        let method = ["setValid", "setValid", "setInvalid"][self.rng.below(3)];
        self.text.line(format!("{}.{method}();", var.path));
    }

    fn stack(&mut self) {
        let Some(stack) = self.rng.pick(&self.scope.stacks).cloned() else { return };
        match self.scope.kind {
            CodeKind::Control | CodeKind::Action => {
                let method = ["push_front", "pop_front"][self.rng.below(2)];
                let by = 1 + self.rng.below(stack.size as usize);
                self.text.line(format!("{}.{method}({by});", stack.path));
            }
            CodeKind::Parser | CodeKind::Function => {}
        }
    }

    fn index(&mut self, size: u32) -> String {
        // Now and then outside.
        match self.rng.below(3) {
            0 => self.rng.below(size as usize + 1).to_string(),
            _ => format!("(bit<32>)({})", self.expr(Ty::Bit(8), 1)),
        }
    }

    fn stateful(&mut self) {
        match self.rng.below(5) {
            0 | 1 => {
                let Some((name, ty, size)) = self.rng.pick(&self.externs.registers).cloned() else { return };
                let index = self.index(size);
                if self.rng.one_in(2) {
                    let value = self.expr(ty, 2);
                    return self.text.line(format!("{name}.write({index}, {value});"));
                }
                let Some(to) = self.scope.pick(self.rng, |var| var.writable && var.ty == ty) else { return };
                self.text.line(format!("{name}.read({}, {index});", to.path));
            }
            2 | 3 => {
                let Some((name, size)) = self.rng.pick(&self.externs.counters).cloned() else { return };
                let index = self.index(size);
                self.text.line(format!("{name}.count({index});"));
            }
            _ => {
                let Some((name, size)) = self.rng.pick(&self.externs.meters).cloned() else { return };
                let index = self.index(size);
                let enough = |ty: Ty| matches!(ty, Ty::Bit(width) if width >= 2);
                let Some(to) = self.scope.pick(self.rng, |var| var.writable && enough(var.ty)) else {
                    return;
                };
                self.text.line(format!("{name}.execute_meter({index}, {});", to.path));
            }
        }
    }

    /// A list of values.
    fn values(&mut self, most: usize) -> String {
        let values: Vec<String> = (0..1 + self.rng.below(most))
            .map(|_| {
                let width = self.types.width(self.rng);
                self.expr(Ty::Bit(width), 1)
            })
            .collect();
        format!("{{ {} }}", values.join(", "))
    }

    fn calculate(&mut self) {
        let bits = |ty: Ty| matches!(ty, Ty::Bit(_));
        let Some(to) = self.scope.pick(self.rng, |var| var.writable && bits(var.ty)).cloned() else { return };
        let Ty::Bit(width) = to.ty else { return };
        let algorithm = ["crc16", "crc32", "csum16", "xor16", "identity"][self.rng.below(5)];
        // Bytes that are not whole are another question for each algorithm.
        let data: Vec<String> = (0..1 + self.rng.below(3))
            .map(|_| {
                let width = [8, 16, 32, 48][self.rng.below(4)];
                self.expr(Ty::Bit(width), 1)
            })
            .collect();
        let base = self.literal(Ty::Bit(width));
        let most = self.literal(Ty::Bit(width));
        self.text.line(format!(
            "hash({}, HashAlgorithm.{algorithm}, {base}, {{ {} }}, {most});",
            to.path,
            data.join(", ")
        ));
    }

    /// Something that the switch does for the program.
    fn ask(&mut self) {
        let pipeline = self.calls.pipeline;
        let line = match self.rng.below(14) {
            0 => "mark_to_drop(standard_metadata);".into(),
            1 => format!("digest(1, {});", self.values(3)),
            2 => format!("log_msg(\"v {{}} {{}}\", {});", self.two_values()),
            3 if pipeline == Pipeline::Ingress => format!("clone(CloneType.I2E, {});", self.rng.below(5)),
            3 if pipeline == Pipeline::Egress => format!("clone(CloneType.E2E, {});", self.rng.below(5)),
            4 if pipeline == Pipeline::Ingress && self.rng.one_in(2) => {
                "resubmit_preserving_field_list(1);".into()
            }
            4 if pipeline == Pipeline::Egress && self.rng.one_in(2) => {
                "recirculate_preserving_field_list(1);".into()
            }
            5 => format!("truncate({});", 4 + self.rng.below(60)),
            6 if pipeline == Pipeline::Ingress => {
                format!("standard_metadata.mcast_grp = {};", self.rng.below(5))
            }
            7 => format!("assert({});", self.expr(Ty::Bool, 2)),
            8 if pipeline == Pipeline::Ingress => {
                format!("clone_preserving_field_list(CloneType.I2E, {}, 1);", self.rng.below(5))
            }
            _ if pipeline == Pipeline::Ingress => {
                format!("standard_metadata.egress_spec = {};", self.expr(Ty::Bit(9), 2))
            }
            _ => return,
        };
        self.text.line(line);
    }

    fn two_values(&mut self) -> String {
        format!("{{ {}, {} }}", self.expr(Ty::Bit(8), 1), self.expr(Ty::Bit(16), 1))
    }

    fn apply(&mut self, depth: u32) {
        let control = self.rng.pick(&self.calls.controls).cloned();
        if let (Some(name), true) = (control, self.rng.one_in(4)) {
            return self.text.line(format!("{name}.apply(hdr, meta, standard_metadata);"));
        }
        let Some((name, _)) = self.rng.pick(&self.calls.tables).cloned() else { return };
        match self.rng.below(3) {
            0 if depth > 0 => {
                let way = ["t.apply().hit", "t.apply().miss", "!t.apply().hit"][self.rng.below(3)];
                let cond = way.replace("t.", &format!("{name}."));
                self.block(&format!("if ({cond}) {{"), "}", 2, depth - 1);
            }
            _ => self.text.line(format!("{name}.apply();")),
        }
    }

    /// An action, called.
    fn call(&mut self) {
        let Some(action) = self.rng.pick(&self.calls.actions).cloned() else { return };
        let Some(mut arguments) = self.directed(&action) else { return };
        arguments.extend(action.data.iter().map(|ty| self.expr(*ty, 2)));
        self.text.line(format!("{}({});", action.name, arguments.join(", ")));
    }

    /// Arguments for the parameters with a direction; none when nothing fits.
    pub(crate) fn directed(&mut self, action: &Action) -> Option<Vec<String>> {
        let mut arguments = Vec::new();
        for (ty, written) in &action.directed {
            arguments.push(match written {
                true => self.scope.pick(self.rng, |var| var.writable && var.ty == *ty)?.path.clone(),
                false => self.expr(*ty, 1),
            });
        }
        Some(arguments)
    }

    fn leave(&mut self) {
        if self.rng.below(3) > 0 || self.scope.kind == CodeKind::Parser {
            return;
        }
        let cond = self.expr(Ty::Bool, 2);
        let way = match (self.result, self.scope.kind) {
            (Some(ty), _) => format!("return {}", self.expr(ty, 2)),
            (None, CodeKind::Function) => "return".into(),
            (None, _) => ["exit", "return"][self.rng.below(2)].into(),
        };
        self.text.line(format!("if ({cond}) {{ {way}; }}"));
    }
}
