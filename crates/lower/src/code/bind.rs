//! Arguments to parameters: copy-in and copy-out, and when a parameter may be another name for its argument.
//!
//! The specification copies every argument in, left to right as they are written, and copies `out` and `inout` parameters back at the
//! end in the same order.
//! A parameter is made an alias of its argument where no program can tell the difference: the callee reaches the
//! argument's storage in no other way, and the argument keeps what is written to it.

use foldhash::HashSet;
use millrace_pipeline::{Expr, Home};
use millrace_sema::hir::{self, Arg, Direction, ExprKind, VarId};
use std::rc::Rc;

use super::Code;
use crate::fail::Lower;
use crate::objects::{Binding, ObjectId};
use crate::storage::{Footprint, LValue, Storage};
use crate::survey;
use crate::types::Shape;
use crate::value::Value;

/// Which arguments a parameter may be an alias of.
pub(crate) enum Alias {
    /// Any: the callee reaches nothing but its parameters.
    Any,
    /// None: the parameters have storage of their own.
    Never,
    /// Those whose variable is not among these, which the callee names itself.
    Except(Rc<HashSet<VarId>>),
}

impl Alias {
    fn allows(&self, expr: &hir::Expr) -> bool {
        match self {
            Alias::Any => true,
            Alias::Never => false,
            Alias::Except(vars) => {
                let mut clean = true;
                survey::walk_expr(expr, &mut |node| {
                    if let survey::Node::Expr(hir::Expr { kind: ExprKind::Var(v), .. }) = node {
                        clean &= !vars.contains(v);
                    }
                });
                clean
            }
        }
    }
}

/// Parameters with what they mean in the callee.
pub(crate) struct Bound {
    /// One for each parameter.
    pub(crate) vars: Vec<(VarId, Binding)>,
    /// What is copied back at the end, in order.
    pub(crate) copy_outs: Vec<(LValue, Storage)>,
}

/// An argument that was looked at but not bound yet.
enum Seen {
    Done(Binding),
    In(LValue, bool),
    /// The last is storage that the value was copied to already.
    OutOrInOut(LValue, bool, Option<Storage>),
}

impl<'a> Code<'_, 'a> {
    /// Evaluates arguments and binds parameters to them. `owner` keeps the storage of its parameters from call to call.
    pub(crate) fn bind(
        &mut self,
        params: &[VarId],
        args: &'a [Arg],
        alias: &Alias,
        owner: Option<ObjectId>,
    ) -> Lower<Bound> {
        let effects = args.iter().filter_map(|a| a.value.as_ref()).any(survey::has_effects);
        let mut order: Vec<usize> = (0..params.len().min(args.len())).collect();
        order.sort_by_key(|&i| args[i].turn);
        let mut seen = Vec::with_capacity(order.len());
        for i in order {
            let (param, arg) = (params[i], &args[i]);
            let entry = match (arg.direction, &arg.value) {
                (Direction::In | Direction::None, Some(value)) => {
                    self.look_at_in(param, value, effects, alias, owner)?
                }
                (Direction::In | Direction::None, None) => Seen::In(LValue::Missing(arg.ty), false),
                (_, Some(value)) => {
                    let lvalue = self.access(value)?;
                    if effects {
                        // What later arguments do must not show in this one.
                        let storage = self.param_storage(param, owner)?;
                        if arg.direction == Direction::InOut {
                            let value = self.load(&lvalue)?;
                            self.store_in(&storage, value)?;
                        }
                        Seen::OutOrInOut(lvalue, false, Some(storage))
                    } else {
                        Seen::OutOrInOut(lvalue, alias.allows(value), None)
                    }
                }
                (_, None) => Seen::OutOrInOut(LValue::Missing(arg.ty), false, None),
            };
            seen.push((i, entry));
        }
        seen.sort_by_key(|(i, _)| *i);
        self.settle_bindings(params, args, seen.into_iter().map(|(_, entry)| entry).collect(), owner)
    }

    fn look_at_in(
        &mut self,
        param: VarId,
        value: &'a hir::Expr,
        effects: bool,
        alias: &Alias,
        owner: Option<ObjectId>,
    ) -> Lower<Seen> {
        if self.cx.shape(value.ty) == Shape::Object {
            return Ok(match self.object_argument(value)? {
                Some(binding) => Seen::Done(binding),
                None => Seen::In(LValue::Missing(value.ty), false),
            });
        }
        if effects {
            let value = self.eval(value)?;
            if value.is_constant() {
                return Ok(Seen::Done(Binding::Value(value)));
            }
            let storage = self.param_storage(param, owner)?;
            self.store_in(&storage, value)?;
            return Ok(Seen::Done(Binding::Storage(storage)));
        }
        let lvalue = if self.is_path(value) { self.access(value)? } else { LValue::Value(self.eval(value)?) };
        Ok(Seen::In(lvalue, alias.allows(value)))
    }

    fn object_argument(&mut self, expr: &'a hir::Expr) -> Lower<Option<Binding>> {
        Ok(match &expr.kind {
            ExprKind::Var(var) => self.binding(*var).cloned(),
            ExprKind::Instance(instance) => Some(Binding::Object(self.object(*instance)?)),
            ExprKind::This => self.frame().this.map(Binding::Object),
            _ => None,
        })
    }

    fn settle_bindings(
        &mut self,
        params: &[VarId],
        args: &'a [Arg],
        seen: Vec<Seen>,
        owner: Option<ObjectId>,
    ) -> Lower<Bound> {
        let footprints: Vec<Footprint> = seen
            .iter()
            .map(|s| {
                let mut footprint = Footprint::default();
                if let Seen::OutOrInOut(lvalue, ..) = s {
                    footprint.add_lvalue(lvalue);
                }
                footprint
            })
            .collect();
        let mut written = Footprint::default();
        footprints.iter().for_each(|f| written.extend(f));
        let mut bound = Bound { vars: Vec::new(), copy_outs: Vec::new() };
        let mut copy_outs: Vec<(usize, (LValue, Storage))> = Vec::new();
        let mut fresh: Vec<(usize, Storage)> = Vec::new();
        for (i, (entry, &param)) in seen.into_iter().zip(params).enumerate() {
            let binding = match entry {
                Seen::Done(binding) => binding,
                Seen::In(lvalue, may_alias) => self.bind_in(param, lvalue, may_alias, &written, owner)?,
                Seen::OutOrInOut(lvalue, may_alias, copied) => {
                    let apart =
                        || footprints.iter().enumerate().all(|(j, f)| i == j || !f.meets(&footprints[i]));
                    match &lvalue {
                        LValue::Storage(storage)
                            if may_alias
                                && storage.can_stand_for_variable(self.cx.ir.program())
                                && apart() =>
                        {
                            if args[i].direction == Direction::Out {
                                fresh.push((i, storage.clone()));
                            }
                            Binding::Storage(storage.clone())
                        }
                        _ => {
                            let (storage, done) = match copied {
                                Some(storage) => (storage, true),
                                None => (self.param_storage(param, owner)?, false),
                            };
                            self.watch_copy(&lvalue, &storage);
                            if args[i].direction == Direction::Out {
                                fresh.push((i, storage.clone()));
                            } else if !done {
                                let value = self.load(&lvalue)?;
                                self.copying(|code| code.store_in(&storage, value))?;
                            }
                            copy_outs.push((args[i].turn, (lvalue, storage.clone())));
                            Binding::Storage(storage)
                        }
                    }
                }
            };
            bound.vars.push((param, binding));
        }
        copy_outs.sort_by_key(|(turn, _)| *turn);
        bound.copy_outs = copy_outs.into_iter().map(|(_, copy)| copy).collect();
        // Only when all arguments are read: an alias of an `out` argument loses what it held.
        for (_, storage) in fresh {
            self.reset(&storage);
        }
        Ok(bound)
    }

    fn bind_in(
        &mut self,
        param: VarId,
        lvalue: LValue,
        may_alias: bool,
        written: &Footprint,
        owner: Option<ObjectId>,
    ) -> Lower<Binding> {
        if let (LValue::Storage(storage), true) = (&lvalue, may_alias) {
            let mut read = Footprint::default();
            read.add_value(&Value::read(storage), self.cx.ir.program());
            if !read.meets(written) {
                return Ok(Binding::Storage(storage.clone()));
            }
        }
        let value = self.load(&lvalue)?;
        if value.is_constant() {
            return Ok(Binding::Value(value));
        }
        // A block's tables may refer to its parameters from outside this call.
        let keeps = owner.and_then(|o| self.cx.objects.block(o)).is_some_and(|b| b.has_tables);
        if may_alias && !keeps && value.is_trivial() {
            let mut read = Footprint::default();
            read.add_value(&value, self.cx.ir.program());
            if !read.meets(written) {
                return Ok(Binding::Value(value));
            }
        }
        let storage = self.param_storage(param, owner)?;
        self.store_in(&storage, value)?;
        Ok(Binding::Storage(storage))
    }

    /// The storage of a parameter or variable.
    pub(crate) fn param_storage(&mut self, var: VarId, owner: Option<ObjectId>) -> Lower<Storage> {
        if let Some(block) = owner.and_then(|o| self.cx.objects.block(o))
            && let Some(storage) = block.storage.get(&var)
        {
            return Ok(storage.clone());
        }
        let hir = self.cx.hir;
        let declared = &hir.vars[var];
        let prefix = match owner.and_then(|o| self.cx.objects.block(o)) {
            Some(block) => &block.path,
            None => &self.frame().path,
        };
        let name = format!("{prefix}.{}", declared.name);
        // Whether other bodies (actions) use it shows at the end: see crate::homes.
        let storage = self.cx.allocate(declared.ty, &name, Home::Local, declared.span)?;
        if let Some(block) = owner.and_then(|o| self.cx.objects.block_mut(o)) {
            block.storage.insert(var, storage.clone());
        }
        Ok(storage)
    }

    /// Evaluates expressions left to right, so that each has the value it had at its turn.
    pub(crate) fn eval_all(&mut self, exprs: impl IntoIterator<Item = &'a hir::Expr>) -> Lower<Vec<Value>> {
        let exprs: Vec<&'a hir::Expr> = exprs.into_iter().collect();
        let last = exprs.iter().rposition(|e| survey::has_effects(e));
        let mut values = Vec::with_capacity(exprs.len());
        for (i, expr) in exprs.into_iter().enumerate() {
            let value = self.eval(expr)?;
            values.push(if last.is_some_and(|last| i < last) { self.settle(value) } else { value });
        }
        Ok(values)
    }

    /// Evaluates two scalars left to right.
    pub(crate) fn two(&mut self, a: &'a hir::Expr, b: &'a hir::Expr) -> Lower<(Value, Value)> {
        let mut values = self.eval_all([a, b])?.into_iter();
        Ok((values.next().unwrap_or(Value::Unit), values.next().unwrap_or(Value::Unit)))
    }

    /// Evaluates one scalar.
    pub(crate) fn scalar(&mut self, expr: &'a hir::Expr) -> Lower<Expr> {
        let value = self.eval(expr)?;
        self.as_scalar(value, expr)
    }

    /// The scalar that a value is. `bit<0>` counts as one bit that is 0.
    pub(crate) fn as_scalar(&mut self, value: Value, expr: &'a hir::Expr) -> Lower<Expr> {
        match value {
            Value::Scalar(e) => Ok(e),
            Value::Unit => Ok(Expr::bits(1, 0)),
            Value::Int(number) => {
                let width = u32::try_from(number.bits()).unwrap_or(u32::MAX).clamp(32, 1024);
                Ok(Expr::Const(millrace_pipeline::Bits::from_bigint(width, &number)))
            }
            _ => crate::fail::internal(expr.span, "a number or truth value was expected here"),
        }
    }
}
