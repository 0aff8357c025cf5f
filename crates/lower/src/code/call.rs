//! Calls, inlined: functions, actions, nested parsers and controls, abstract methods, tables.

use foldhash::{HashMap, HashMapExt};
use indexmap::IndexMap;
use millrace_pipeline::{BodyKind, Expr, SlotId, Type};
use millrace_sema::hir::{
    self, ActionId, ActionRef, Call, Callee, ExprKind, FunctionId, Local, Stmt, StmtKind, TableId, Ty, VarId,
};
use millrace_syntax::Span;
use std::rc::Rc;

use super::bind::{Alias, Bound};
use super::{Code, Frame};
use crate::fail::{Lower, code, fail, internal};
use crate::limits::MAX_INLINE_DEPTH;
use crate::objects::{Binding, BlockType, ExternObject, Object, ObjectId};
use crate::survey;
use crate::types::Shape;
use crate::value::Value;

/// What receives a method call.
#[derive(Clone, Debug)]
pub(crate) enum Receiver {
    /// An extern object.
    Object(ObjectId),
    /// `packet_in`.
    PacketIn,
    /// `packet_out`.
    PacketOut,
}

/// What the code of a callee can name besides its parameters.
#[derive(Clone, Copy)]
struct Scope {
    block: Option<ObjectId>,
    is_block: bool,
    this: Option<ObjectId>,
}

impl<'a> Code<'_, 'a> {
    /// A call; its value.
    pub(crate) fn call(&mut self, call: &'a Call) -> Lower<Value> {
        match &call.callee {
            Callee::Function(id) => self.call_function(*id, call, None, self.scope()),
            Callee::Action(id) => self.call_action(*id, call),
            Callee::ExternFunction(id) => {
                if let Some(value) = self.call_plugin(*id, call)? {
                    return Ok(value);
                }
                let name = self.cx.hir.extern_functions[*id].name.as_str();
                self.in_turn(call, |code| code.call_extern_function(name, call))
            }
            Callee::ExternMethod(receiver, method) => self.call_method(receiver, *method, call),
            Callee::Apply(receiver) => self.call_block(receiver, call),
            Callee::Table(table) => {
                self.apply_table(*table, false, false, call.span)?;
                Ok(Value::Unit)
            }
            Callee::SetValid(header) => self.set_validity(header, true),
            Callee::SetInvalid(header) => self.set_validity(header, false),
            Callee::PushFront(stack, n) => self.push_front(stack, *n),
            Callee::PopFront(stack, n) => self.pop_front(stack, *n),
        }
    }

    fn enter(&mut self, bound: Bound, scope: Scope, path: String, span: Span) -> Lower<()> {
        if self.frames.len() > MAX_INLINE_DEPTH {
            return fail(code::LIMIT, span, format!("calls nest deeper than {MAX_INLINE_DEPTH}"));
        }
        self.cx.budget.call(span)?;
        self.cx.budget.name_bytes += path.len();
        let ret = self.block();
        self.frames.push(Frame {
            block: scope.block,
            is_block: scope.is_block,
            this: scope.this,
            vars: bound.vars.into_iter().collect(),
            ret,
            result: None,
            exit: None,
            call: span,
            copy_outs: bound.copy_outs,
            loops: Vec::new(),
            path,
            states: IndexMap::new(),
        });
        Ok(())
    }

    /// Goes to where the innermost call returns, leaves it and copies out.
    fn leave(&mut self) -> Lower<()> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        self.continue_at(frame.ret);
        for (lvalue, storage) in &frame.copy_outs {
            self.copying(|code| code.store(lvalue, Value::read(storage)))?;
        }
        Ok(())
    }

    fn call_function(
        &mut self,
        id: FunctionId,
        call: &'a Call,
        this: Option<ObjectId>,
        block: Option<ObjectId>,
    ) -> Lower<Value> {
        let function = &self.cx.hir.functions[id];
        // An abstract method may name what is around its instance.
        let alias = if this.is_some() { Alias::Never } else { Alias::Any };
        let bound = self.bind(&function.params, &call.args, &alias, None)?;
        self.run_function(function, bound, call, this, block)
    }

    fn run_function(
        &mut self,
        function: &'a hir::Function,
        bound: Bound,
        call: &'a Call,
        this: Option<ObjectId>,
        block: Option<ObjectId>,
    ) -> Lower<Value> {
        let plain = bound.copy_outs.is_empty();
        let path = format!("{}.{}", self.name, function.name);
        self.enter(bound, Scope { block, is_block: false, this }, path, call.span)?;
        if let ([Stmt { kind: StmtKind::Return(Some(value)), .. }], true) = (function.body.as_slice(), plain)
        {
            let value = self.eval(value)?;
            self.leave()?;
            return Ok(value);
        }
        let result = match self.cx.shape(function.ret) {
            Shape::Unit => None,
            _ => Some(self.temp_storage(function.ret)?),
        };
        self.frame_mut().result = result.clone();
        self.stmts(&function.body)?;
        self.leave()?;
        Ok(result.map_or(Value::Unit, |storage| Value::read(&storage)))
    }

    fn call_action(&mut self, id: ActionId, call: &'a Call) -> Lower<Value> {
        let action = &self.cx.hir.actions[id];
        let alias = Alias::Except(self.cx.mentions(id));
        let bound = self.bind(&action.params, &call.args, &alias, None)?;
        let path = format!("{}.{}", self.name, action.name);
        let scope = Scope { block: self.scope(), is_block: false, this: self.frame().this };
        self.enter(bound, scope, path, call.span)?;
        self.begin_action(action)?;
        self.stmts(&action.body)?;
        self.leave()?;
        Ok(Value::Unit)
    }

    /// Runs an action out of a table's list here, with the values of the parameters that entries give.
    pub(crate) fn run_action(&mut self, reference: &'a ActionRef, data: Vec<(VarId, Value)>) -> Lower<()> {
        let hir = self.cx.hir;
        let action = &hir.actions[reference.action];
        let given = |p: &VarId| data.iter().any(|(var, _)| var == p);
        let bound: Vec<VarId> = action.params.iter().copied().filter(|p| !given(p)).collect();
        let alias = Alias::Except(self.cx.mentions(reference.action));
        let mut bound = self.bind(&bound, &reference.args, &alias, None)?;
        for (var, value) in data {
            let storage = self.temp_storage(hir.vars[var].ty)?;
            self.store_in(&storage, value)?;
            bound.vars.push((var, Binding::Storage(storage)));
        }
        let path = format!("{}.{}", self.name, action.name);
        let scope = Scope { block: self.scope(), is_block: false, this: self.frame().this };
        self.enter(bound, scope, path, reference.span)?;
        self.begin_action(action)?;
        self.stmts(&action.body)?;
        self.leave()
    }

    // ---- Externs ----

    /// Which object a receiver is.
    fn receiver(&mut self, expr: &'a hir::Expr) -> Lower<Receiver> {
        let binding = match &expr.kind {
            ExprKind::Var(var) => self.binding(*var).cloned(),
            ExprKind::Instance(instance) => Some(Binding::Object(self.object(*instance)?)),
            ExprKind::This => self.frame().this.map(Binding::Object),
            _ => None,
        };
        match binding {
            Some(Binding::Object(object)) => Ok(Receiver::Object(object)),
            Some(Binding::PacketIn) => Ok(Receiver::PacketIn),
            Some(Binding::PacketOut) => Ok(Receiver::PacketOut),
            _ => internal(expr.span, "an object was expected here"),
        }
    }

    fn call_method(&mut self, receiver: &'a hir::Expr, method: usize, call: &'a Call) -> Lower<Value> {
        let object = match self.receiver(receiver)? {
            Receiver::PacketIn => return self.packet_in(receiver, method, call),
            Receiver::PacketOut => return self.packet_out(receiver, method, call),
            Receiver::Object(object) => object,
        };
        let Object::Extern(instance, _) = self.cx.objects.get(object) else {
            return internal(receiver.span, "a method of what is no extern");
        };
        let instance: Rc<ExternObject> = instance.clone();
        let Some(declared) = self.cx.hir.externs[instance.ty].methods.get(method) else {
            return internal(call.span, "no such method");
        };
        if let Some((_, id)) = instance.methods.iter().find(|(name, _)| *name == declared.name) {
            return self.call_function(*id, call, Some(object), instance.owner);
        }
        self.in_turn(call, |code| code.call_extern_method(object, &instance, &declared.name, call))
    }

    /// Calls an extern, which evaluates its arguments as it needs them. If one of them calls something, numbers and truth values among them,
    /// and in lists, are evaluated before, in the order in which they are written.
    fn in_turn(&mut self, call: &'a Call, f: impl FnOnce(&mut Self) -> Lower<Value>) -> Lower<Value> {
        if !call.args.iter().filter_map(|arg| arg.value.as_ref()).any(survey::has_effects) {
            return f(self);
        }
        let mut args: Vec<&'a hir::Arg> = call.args.iter().collect();
        args.sort_by_key(|arg| arg.turn);
        let mut early = HashMap::new();
        for arg in args {
            if let (hir::Direction::In | hir::Direction::None, Some(value)) = (arg.direction, &arg.value) {
                self.evaluate_early(value, &mut early)?;
            }
        }
        let around = std::mem::replace(&mut self.early, early);
        let result = f(self);
        self.early = around;
        result
    }

    fn evaluate_early(
        &mut self,
        expr: &'a hir::Expr,
        early: &mut HashMap<*const hir::Expr, Value>,
    ) -> Lower<()> {
        match &expr.kind {
            ExprKind::Aggregate(members) => members.iter().try_for_each(|m| self.evaluate_early(m, early)),
            ExprKind::InTurn(members) => members.iter().try_for_each(|(_, m)| self.evaluate_early(m, early)),
            ExprKind::Cast(list) if matches!(list.kind, ExprKind::Aggregate(_)) => {
                self.evaluate_early(list, early)
            }
            _ if matches!(self.cx.shape(expr.ty), Shape::Scalar(_)) => {
                let value = self.eval(expr)?;
                early.insert(std::ptr::from_ref(expr), self.settle(value));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    // ---- Blocks ----

    fn call_block(&mut self, receiver: &'a hir::Expr, call: &'a Call) -> Lower<Value> {
        let Receiver::Object(object) = self.receiver(receiver)? else {
            return internal(receiver.span, "a packet cannot be applied");
        };
        let Some(block) = self.cx.objects.block(object) else {
            return internal(receiver.span, "this cannot be applied");
        };
        let alias = if block.own_params { Alias::Never } else { Alias::Any };
        let (ty, path) = (block.ty, block.path.clone());
        let params: &[VarId] = match ty {
            BlockType::Parser(id) => &self.cx.hir.parsers[id].params,
            BlockType::Control(id) => &self.cx.hir.controls[id].params,
        };
        let mut bound = self.bind(params, &call.args, &alias, Some(object))?;
        let vars = std::mem::take(&mut bound.vars);
        self.enter(bound, Scope { block: Some(object), is_block: true, this: None }, path, call.span)?;
        self.run_block(object, ty, vars)?;
        self.leave()?;
        Ok(Value::Unit)
    }

    /// The code of a parser or control, whose frame is the innermost, up to where it returns or accepts.
    pub(crate) fn run_block(
        &mut self,
        object: ObjectId,
        ty: BlockType,
        params: Vec<(VarId, Binding)>,
    ) -> Lower<()> {
        if let Some(block) = self.cx.objects.block_mut(object) {
            block.vars.extend(params);
        }
        let hir = self.cx.hir;
        let locals = match ty {
            BlockType::Parser(id) => &hir.parsers[id].locals,
            BlockType::Control(id) => &hir.controls[id].locals,
        };
        for local in locals {
            if let Local::Var(var, init) = local {
                self.declare(*var, init.as_ref())?;
            }
        }
        match ty {
            BlockType::Parser(id) => self.parser_states(&hir.parsers[id]),
            BlockType::Control(id) => self.stmts(&hir.controls[id].body),
        }
    }

    /// A declaration of a variable runs: it has its initial value, or 0.
    pub(crate) fn declare(&mut self, var: VarId, init: Option<&'a hir::Expr>) -> Lower<()> {
        let hir = self.cx.hir;
        let ty: Ty = hir.vars[var].ty;
        // The initial value does not see the variable.
        let value = match init {
            Some(init) => Some(self.eval(init)?),
            None => None,
        };
        let owner = self.owner();
        if let Some(init) = init {
            self.cx.remember_initial(owner, var, init);
        }
        let binding = match (self.cx.shape(ty), value) {
            (Shape::CompileTime | Shape::List | Shape::Object, Some(value)) => Binding::Value(value),
            (_, value) => {
                let storage = self.param_storage(var, owner)?;
                match value {
                    Some(value) => self.store_in(&storage, value)?,
                    None => self.reset(&storage),
                }
                Binding::Storage(storage)
            }
        };
        self.bind_var(var, binding);
        Ok(())
    }

    // ---- Tables ----

    /// Applies a table; slots that get whether it hit and which action ran, if wanted.
    pub(crate) fn apply_table(
        &mut self,
        id: TableId,
        want_hit: bool,
        want_action: bool,
        span: Span,
    ) -> Lower<(Option<SlotId>, Option<SlotId>)> {
        if self.body.kind() != BodyKind::Control {
            return fail(
                code::PLACE,
                span,
                "a table cannot be applied here: only controls between parser and deparser can",
            );
        }
        let table = self.table(id)?;
        let hit = want_hit.then(|| self.temp(Type::Bool));
        let action = want_action.then(|| self.temp(Type::Bits(16)));
        let next = self.block();
        let hir = self.cx.hir;
        let exit = if self.cx.table_may_exit(id) { self.exit_target()? } else { next };
        let apply = |code: &mut Self| {
            code.body.apply(table.id, hit, action, next, exit);
            code.body.switch_to(next);
        };
        match &table.learned {
            Some(learned) => {
                let (declared, numbers) = (&hir.tables[id], &table.actions);
                self.apply_learning(learned, declared, numbers, apply, (hit, action))?;
            }
            None => apply(self),
        }
        Ok((hit, action))
    }

    /// Whether an application hit.
    pub(crate) fn table_hit(&mut self, id: TableId, span: Span) -> Lower<Expr> {
        let (hit, _) = self.apply_table(id, true, false, span)?;
        Ok(hit.map_or(Expr::Bool(false), Expr::Read))
    }
}
