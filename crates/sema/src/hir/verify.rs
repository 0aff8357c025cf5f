//! A check of what a typed program promises its readers, for tests: every expression has a concrete type, parts fit
//! together, ids are in range. A program without errors never breaks one of these rules.

use super::*;

/// What is broken, one line each; empty for a sound program. Meant for programs without errors.
pub fn verify(program: &Program) -> Vec<String> {
    let mut verifier = Verifier { program, broken: Vec::new(), place: String::new() };
    verifier.program();
    verifier.broken
}

struct Verifier<'p> {
    program: &'p Program,
    broken: Vec<String>,
    place: String,
}

impl Verifier<'_> {
    fn fail(&mut self, what: impl std::fmt::Display) {
        if self.broken.len() < 100 {
            self.broken.push(format!("{}: {what}", self.place));
        }
    }

    fn program(&mut self) {
        let p = self.program;
        for (id, f) in &p.functions {
            self.place = format!("{id} {}", f.name);
            self.concrete(f.ret);
            f.params.iter().for_each(|&v| self.var(v));
            self.stmts(&f.body);
        }
        for (id, a) in &p.actions {
            self.place = format!("{id} {}", a.name);
            a.params.iter().for_each(|&v| self.var(v));
            self.stmts(&a.body);
        }
        for (id, t) in &p.tables {
            self.place = format!("{id} {}", t.name);
            self.table(t);
        }
        for (id, c) in &p.parsers {
            self.place = format!("{id} {}", c.name);
            c.params.iter().chain(&c.ctor_params).for_each(|&v| self.var(v));
            self.locals(&c.locals);
            for state in &c.states {
                self.stmts(&state.body);
                self.transition(&state.transition, c.states.len());
            }
            if c.start >= c.states.len() {
                self.fail("start is out of range");
            }
        }
        for (id, c) in &p.controls {
            self.place = format!("{id} {}", c.name);
            c.params.iter().chain(&c.ctor_params).for_each(|&v| self.var(v));
            self.locals(&c.locals);
            self.stmts(&c.body);
        }
        for (id, instance) in &p.instances {
            self.place = format!("{id} {:?}", instance.name);
            self.no_vars(instance.ty);
            for arg in &instance.args {
                if let CtorArg::Expr(e) = arg {
                    self.expr(e);
                }
            }
        }
    }

    fn no_vars(&mut self, ty: Ty) {
        match self.program.types.kind(ty) {
            TyKind::Var(_) => self.fail("a type variable is left"),
            TyKind::Tuple(p) | TyKind::Extern(_, p) | TyKind::Package(_, p) | TyKind::BlockType(_, p) => {
                p.iter().for_each(|&t| self.no_vars(t));
            }
            TyKind::List(t) | TyKind::Stack(t, _) | TyKind::ValueSet(t) | TyKind::Set(t) => self.no_vars(*t),
            TyKind::Struct(id) => {
                let fields: Vec<Ty> = self.program.types.structs[*id].fields.iter().map(|f| f.ty).collect();
                fields.into_iter().for_each(|t| self.no_vars(t));
            }
            _ => {}
        }
    }

    fn concrete(&mut self, ty: Ty) {
        if matches!(self.program.types.kind(ty), TyKind::Unknown) {
            self.fail("an unknown type is left");
        }
        self.no_vars(ty);
    }

    fn var(&mut self, id: VarId) {
        self.no_vars(self.program.vars[id].ty);
    }

    fn same(&mut self, a: Ty, b: Ty, what: &str) {
        if a != b {
            let (x, y) = (self.program.types.kind(a), self.program.types.kind(b));
            self.fail(format!("{what}: {x:?} and {y:?}"));
        }
    }

    fn locals(&mut self, locals: &[Local]) {
        for local in locals {
            if let Local::Var(var, init) = local {
                self.var(*var);
                if let Some(e) = init {
                    self.expr(e);
                    self.same(self.program.vars[*var].ty, e.ty, "initial value");
                }
            }
        }
    }

    fn transition(&mut self, transition: &Transition, states: usize) {
        let (keys, cases) = match transition {
            Transition::Goto(StateRef::State(s)) if *s >= states => {
                return self.fail("a state is out of range");
            }
            Transition::Goto(_) => return,
            Transition::Select { keys, cases, .. } => (keys, cases),
        };
        keys.iter().for_each(|k| self.expr(k));
        let types: Vec<Ty> = keys.iter().map(|k| k.ty).collect();
        for case in cases {
            self.keysets(&case.keysets, &types);
        }
    }

    fn keysets(&mut self, keysets: &[KeySet], types: &[Ty]) {
        let lone = matches!(keysets, [KeySet::Any | KeySet::ValueSet(_)]);
        if keysets.len() != types.len() && !lone {
            self.fail("the number of sets is not that of the keys");
        }
        for (keyset, &ty) in keysets.iter().zip(types) {
            match keyset {
                KeySet::Any | KeySet::ValueSet(_) => {}
                KeySet::Value(e) => {
                    self.expr(e);
                    self.same(e.ty, ty, "value of a set");
                }
                KeySet::Mask(a, b) | KeySet::Range(a, b) => {
                    self.expr(a);
                    self.expr(b);
                    self.same(a.ty, ty, "bound of a set");
                    self.same(b.ty, ty, "bound of a set");
                }
            }
        }
    }

    fn table(&mut self, t: &Table) {
        t.keys.iter().for_each(|k| self.expr(&k.expr));
        let types: Vec<Ty> = t.keys.iter().map(|k| k.expr.ty).collect();
        t.actions.iter().for_each(|a| self.args(&a.args));
        let full =
            t.default_action.iter().chain(&t.empty_group_action).chain(t.entries.iter().map(|e| &e.action));
        for action in full {
            self.args(&action.args);
            if action.args.len() != self.program.actions[action.action].params.len() {
                self.fail("an action has not all its arguments");
            }
        }
        for entry in &t.entries {
            self.keysets(&entry.keysets, &types);
        }
        t.properties.iter().for_each(|p| self.expr(&p.value));
    }

    fn args(&mut self, args: &[Arg]) {
        for arg in args {
            self.no_vars(arg.ty);
            let Some(value) = &arg.value else { continue };
            self.expr(value);
            let is_block = matches!(
                self.program.types.kind(arg.ty),
                TyKind::BlockType(..) | TyKind::Extern(..) | TyKind::Int | TyKind::Unknown
            );
            if !is_block {
                self.same(arg.ty, value.ty, "argument");
            }
        }
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        stmts.iter().for_each(|s| self.stmt(s));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Assign { lhs, rhs } => {
                self.expr(lhs);
                self.expr(rhs);
                self.same(lhs.ty, rhs.ty, "assignment");
            }
            StmtKind::AssignOp { op, lhs, rhs } => {
                self.expr(lhs);
                self.expr(rhs);
                if !matches!(op, BinaryOp::Shl | BinaryOp::Shr) {
                    self.same(lhs.ty, rhs.ty, "assignment with an operator");
                }
            }
            StmtKind::Call(call) => self.call(call),
            StmtKind::Var(var, init) => {
                self.var(*var);
                if let Some(e) = init {
                    self.expr(e);
                    self.same(self.program.vars[*var].ty, e.ty, "initial value");
                }
            }
            StmtKind::Return(Some(e)) => self.expr(e),
            StmtKind::If { cond, then, els } => {
                self.expr(cond);
                self.stmts(then);
                self.stmts(els);
            }
            StmtKind::Block(body) => self.stmts(body),
            StmtKind::SwitchAction { cases, default, .. } => {
                cases.iter().for_each(|c| self.stmts(&c.body));
                default.iter().for_each(|d| self.stmts(d));
            }
            StmtKind::SwitchValue { value, cases, default } => {
                self.expr(value);
                for case in cases {
                    for label in &case.labels {
                        self.expr(label);
                        self.same(label.ty, value.ty, "label");
                    }
                    self.stmts(&case.body);
                }
                default.iter().for_each(|d| self.stmts(d));
            }
            StmtKind::For { init, cond, update, body } => {
                self.stmts(init);
                self.expr(cond);
                self.stmts(update);
                self.stmts(body);
            }
            StmtKind::ForIn { var, collection, body } => {
                self.expr(var);
                match collection {
                    ForCollection::Range(a, b) => {
                        self.expr(a);
                        self.expr(b);
                        self.same(a.ty, var.ty, "loop bound");
                        self.same(b.ty, var.ty, "loop bound");
                    }
                    ForCollection::Elements(e) => self.expr(e),
                }
                self.stmts(body);
            }
            StmtKind::Instance(_)
            | StmtKind::Return(None)
            | StmtKind::Exit
            | StmtKind::Break
            | StmtKind::Continue => {}
        }
    }

    fn call(&mut self, call: &Call) {
        self.args(&call.args);
        call.type_args.iter().for_each(|&t| self.no_vars(t));
        self.concrete(call.ty);
        match &call.callee {
            Callee::Function(id) => {
                let params = &self.program.functions[*id].params;
                if params.len() != call.args.len() {
                    return self.fail("a function has not all its arguments");
                }
                for (&param, arg) in params.iter().zip(&call.args) {
                    self.same(self.program.vars[param].ty, arg.ty, "argument of a function");
                }
                self.same(self.program.functions[*id].ret, call.ty, "result of a function");
            }
            Callee::Action(id) => {
                if self.program.actions[*id].params.len() != call.args.len() {
                    self.fail("an action has not all its arguments");
                }
            }
            Callee::ExternFunction(id) => {
                if self.program.extern_functions[*id].params.len() != call.args.len() {
                    self.fail("an extern function has not all its arguments");
                }
            }
            Callee::ExternMethod(e, index) => {
                self.expr(e);
                if let TyKind::Extern(id, _) = self.program.types.kind(e.ty)
                    && self.program.externs[*id].methods.get(*index).map(|m| m.params.len())
                        != Some(call.args.len())
                {
                    self.fail("a method has not all its arguments");
                }
            }
            Callee::Apply(e)
            | Callee::SetValid(e)
            | Callee::SetInvalid(e)
            | Callee::PushFront(e, _)
            | Callee::PopFront(e, _) => self.expr(e),
            Callee::Table(_) => {}
        }
    }

    fn members_in_turn(&mut self, members: &[(usize, Expr)], kind: &TyKind) {
        let TyKind::Struct(id) = kind else { return self.fail(format!("members of a {kind:?}")) };
        let fields = &self.program.types.structs[*id].fields;
        let mut places: Vec<usize> = members.iter().map(|(place, _)| *place).collect();
        places.sort_unstable();
        if places.into_iter().ne(0..fields.len()) {
            return self.fail("the members are not those of the structure");
        }
        for (place, member) in members {
            self.expr(member);
            self.same(fields[*place].ty, member.ty, "member");
        }
    }

    fn expr(&mut self, e: &Expr) {
        self.concrete(e.ty);
        let kind = self.program.types.kind(e.ty);
        match &e.kind {
            ExprKind::Unknown => self.fail("an unknown expression is left"),
            ExprKind::Int(value) => {
                let repr = crate::constant::representation(self.program, e.ty);
                if let Some((low, high)) = crate::constant::range(repr)
                    && (*value < low || *value > high)
                {
                    self.fail(format!("{value} is out of the range of {kind:?}"));
                }
            }
            ExprKind::Var(id) => self.same(self.program.vars[*id].ty, e.ty, "variable"),
            ExprKind::Aggregate(members) => {
                let types: Vec<Ty> = match kind {
                    TyKind::Tuple(parts) => parts.clone(),
                    TyKind::List(t) => vec![*t; members.len()],
                    TyKind::Struct(id) => {
                        self.program.types.structs[*id].fields.iter().map(|f| f.ty).collect()
                    }
                    _ => return self.fail(format!("members of a {kind:?}")),
                };
                if types.len() != members.len() {
                    self.fail("the number of members is wrong");
                }
                for (member, ty) in members.iter().zip(types) {
                    self.expr(member);
                    self.same(member.ty, ty, "member");
                }
            }
            ExprKind::StackLiteral(members) => {
                let TyKind::Stack(ty, n) = kind else { return self.fail("elements of no stack") };
                if members.len() > *n as usize {
                    self.fail("too many elements");
                }
                for member in members {
                    self.expr(member);
                    self.same(member.ty, *ty, "element");
                }
            }
            ExprKind::Field(base, index) => {
                self.expr(base);
                let ty = match self.program.types.kind(base.ty) {
                    TyKind::Struct(id) => self.program.types.structs[*id].fields.get(*index).map(|f| f.ty),
                    TyKind::Tuple(parts) => parts.get(*index).copied(),
                    _ => None,
                };
                match ty {
                    Some(ty) => self.same(ty, e.ty, "field"),
                    None => self.fail("no such field"),
                }
            }
            ExprKind::Binary(op, a, b) => {
                self.expr(a);
                self.expr(b);
                if !matches!(op, BinaryOp::Shl | BinaryOp::Shr | BinaryOp::Concat) {
                    self.same(a.ty, b.ty, "operands");
                }
            }
            ExprKind::Mux(c, a, b) => {
                self.expr(c);
                self.expr(a);
                self.expr(b);
                self.same(a.ty, e.ty, "choice");
                self.same(b.ty, e.ty, "choice");
            }
            ExprKind::Index(a, b) => {
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Slice(a, high, low) => {
                self.expr(a);
                if *kind != TyKind::Bits(high - low + 1) {
                    self.fail("the type of a slice is wrong");
                }
            }
            ExprKind::StackNext(a)
            | ExprKind::StackLast(a)
            | ExprKind::StackLastIndex(a)
            | ExprKind::Unary(_, a)
            | ExprKind::Cast(a)
            | ExprKind::IsValid(a) => self.expr(a),
            ExprKind::InTurn(members) => self.members_in_turn(members, kind),
            ExprKind::Call(call) => self.call(call),
            ExprKind::Instance(id) => self.same(self.program.instances[*id].ty, e.ty, "instance"),
            ExprKind::Bool(_)
            | ExprKind::String(_)
            | ExprKind::ErrorMember(_)
            | ExprKind::MatchKind(_)
            | ExprKind::EnumMember(_)
            | ExprKind::This
            | ExprKind::Table(_)
            | ExprKind::InvalidHeader
            | ExprKind::TableHit(_)
            | ExprKind::TableMiss(_) => {}
        }
    }
}
