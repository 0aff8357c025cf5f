//! Arguments: which parameter each one is for, and whether it fits.

use super::Why;
use crate::check::Checker;
use crate::codes;
use crate::hir::{Arg, Direction, Expr, ExprKind, Ty, TyKind};
use crate::scope::Mark;
use crate::wording::{count, suggest};
use foldhash::{HashMap, HashMapExt, HashSet};
use millrace_syntax::ast::{self, Argument};
use millrace_syntax::{Diagnostic, Span};

/// A parameter of something that is called.
#[derive(Clone, Debug)]
pub(crate) struct Param<'a> {
    /// Its name.
    pub(crate) name: String,
    /// Its direction.
    pub(crate) direction: Direction,
    /// Its type, which may have variables.
    pub(crate) ty: Ty,
    /// Whether it is `@optional`.
    pub(crate) optional: bool,
    /// Its default value.
    pub(crate) default: Option<&'a ast::Expr>,
    /// The declaration.
    pub(crate) span: Span,
}

/// What can be called, with fresh variables for its type parameters.
#[derive(Clone, Debug)]
pub(crate) struct Signature<'a> {
    /// Its name.
    pub(crate) name: String,
    /// Its parameters.
    pub(crate) params: Vec<Param<'a>>,
    /// What it returns.
    pub(crate) ret: Ty,
    /// Its type arguments, to be found out.
    pub(crate) type_args: Vec<Ty>,
    /// Where default values are read; none: here.
    pub(crate) mark: Option<Mark>,
    /// The type parameters that default values may name, and what they stand for.
    pub(crate) type_scope: Vec<(&'a [ast::Name], Vec<Ty>)>,
    /// The declaration.
    pub(crate) span: Span,
}

/// What parameters without direction take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgMode {
    /// Values known at compile time, and extern objects.
    Runtime,
    /// Any value: of functions and actions.
    AnyValue,
    /// Only values known at compile time, instances among them.
    Constructor,
}

/// The place of each bound argument among those that are written; those that are not come last.
pub(crate) fn turns(written: &[Argument], bound: &[Option<&Argument>]) -> Vec<usize> {
    let places: HashMap<*const Argument, usize> =
        written.iter().enumerate().map(|(place, arg)| (std::ptr::from_ref(arg), place)).collect();
    let place = |(i, arg): (usize, &Option<&Argument>)| {
        arg.and_then(|arg| places.get(&std::ptr::from_ref(arg)).copied()).unwrap_or(written.len() + i)
    };
    bound.iter().enumerate().map(place).collect()
}

impl<'a> Checker<'a> {
    /// Reads the parameters of something callable. Type parameters must be in scope.
    pub(crate) fn read_params(&mut self, params: &'a [ast::Parameter]) -> Vec<Param<'a>> {
        let read = |p: &'a ast::Parameter| Param {
            name: p.name.to_string(),
            direction: direction(p.direction),
            ty: self.resolve_type(&p.ty),
            optional: is_optional(p),
            default: p.default.as_ref(),
            span: p.span,
        };
        params.iter().map(read).collect()
    }

    /// Whether arguments suit parameters by number and names alone, which is what chooses between overloads.
    pub(crate) fn suits<'p>(
        params: impl Iterator<Item = (&'p str, bool)> + Clone,
        args: &[Argument],
    ) -> bool {
        let total = params.clone().count();
        if args.len() > total {
            return false;
        }
        if args.iter().any(|a| a.name.is_some()) {
            let given: HashSet<&str> =
                args.iter().filter_map(|a| a.name.as_ref()).map(|name| name.as_str()).collect();
            let names: HashSet<&str> = params.clone().map(|(name, _)| name).collect();
            let known = |a: &Argument| a.name.as_ref().is_some_and(|n| names.contains(n.as_str()));
            return args.iter().all(known)
                && params.clone().all(|(name, omittable)| omittable || given.contains(name));
        }
        params.skip(args.len()).all(|(_, omittable)| omittable)
    }

    /// Assigns arguments to parameters; reports those that are missing, unknown or too many.
    pub(crate) fn bind<'p>(
        &mut self,
        what: &str,
        declared: Span,
        params: impl Iterator<Item = (&'p str, bool)> + Clone,
        args: &'a [Argument],
        span: Span,
    ) -> Option<Vec<Option<&'a Argument>>> {
        let total = params.clone().count();
        let named = args.iter().filter(|a| a.name.is_some()).count();
        if named != 0 && named != args.len() {
            self.error(codes::BAD_ARGUMENTS, span, "either all arguments or none must be named");
            return None;
        }
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        if named > 0 {
            params.clone().enumerate().for_each(|(i, (name, _))| {
                numbers.entry(name).or_insert(i);
            });
        }
        let mut bound: Vec<Option<&'a Argument>> = vec![None; total];
        for (i, arg) in args.iter().enumerate() {
            let position = match &arg.name {
                None => i,
                Some(name) => match numbers.get(name.as_str()).copied() {
                    Some(position) => position,
                    None => {
                        let message = format!("{what} has no parameter `{name}`");
                        let found = Diagnostic::error(codes::BAD_ARGUMENTS, name.span, message)
                            .with_label("no such parameter")
                            .with_secondary(declared, "declared here");
                        let known = params.clone().map(|(p, _)| p);
                        self.report(suggest(found, name.as_str(), known, "its parameters"));
                        return None;
                    }
                },
            };
            let Some(slot) = bound.get_mut(position) else {
                let takes = count(total, "argument", "arguments");
                let verb = if args.len() == 1 { "is" } else { "are" };
                let message = format!("{what} takes {takes}, but {} {verb} given", args.len());
                self.report(
                    Diagnostic::error(codes::BAD_ARGUMENTS, arg.span, message)
                        .with_label("one too many")
                        .with_secondary(declared, "declared here"),
                );
                return None;
            };
            if let Some(earlier) = slot {
                let found = Diagnostic::error(codes::BAD_ARGUMENTS, arg.span, "this argument is given twice")
                    .with_secondary(earlier.span, "first given here");
                self.report(found);
                return None;
            }
            *slot = Some(arg);
        }
        let missing: Vec<String> = params
            .zip(&bound)
            .filter(|((_, omittable), arg)| arg.is_none() && !omittable)
            .map(|((name, _), _)| format!("`{name}`"))
            .collect();
        if !missing.is_empty() {
            let message = format!("no argument is given for {} of {what}", missing.join(", "));
            self.report(
                Diagnostic::error(codes::BAD_ARGUMENTS, span, message)
                    .with_secondary(declared, "declared here"),
            );
            return None;
        }
        Some(bound)
    }

    /// Types the arguments of a call, finds out the type arguments, and converts. The result is in parameter order. Nothing
    /// when there was an error.
    pub(crate) fn check_args(
        &mut self,
        signature: &Signature<'a>,
        args: &'a [Argument],
        mode: ArgMode,
        span: Span,
    ) -> Option<Vec<Arg>> {
        let what = format!("`{}`", signature.name);
        let params = signature.params.iter().map(|p| (p.name.as_str(), p.optional || p.default.is_some()));
        let Some(bound) = self.bind(&what, signature.span, params, args, span) else {
            let unknown = self.unknown_ty();
            args.iter()
                .filter_map(|a| a.value.as_ref())
                .for_each(|v| drop(self.check_expr(v, Some(unknown))));
            return None;
        };
        let turns = turns(args, &bound);
        let mut values: Vec<Option<Expr>> = Vec::with_capacity(bound.len());
        for (param, arg) in signature.params.iter().zip(&bound) {
            let value = match arg {
                Some(Argument { value: Some(value), .. }) => Some(self.argument(param, value)),
                Some(arg) if param.direction != Direction::Out && !param.optional => {
                    let message = "`_` can be given only for `out` and for optional parameters";
                    self.error(codes::MISPLACED_DOTS, arg.span, message);
                    return None;
                }
                _ => None,
            };
            values.push(value);
        }
        self.omitted_args(signature, &bound, &mut values);
        self.infer_type_args(signature, &values, mode, span)?;
        let mut result = Vec::with_capacity(values.len());
        let mut fine = true;
        for ((param, value), turn) in signature.params.iter().zip(values).zip(turns) {
            let ty = self.finish_type(param.ty).unwrap_or(param.ty);
            let value = match value {
                Some(value) => {
                    let value = self.pass(param, ty, value, mode);
                    fine &= !matches!(value.kind, ExprKind::Unknown);
                    Some(value)
                }
                None => None,
            };
            result.push(Arg { direction: param.direction, ty, value, turn });
        }
        fine.then_some(result)
    }

    fn argument(&mut self, param: &Param<'a>, value: &'a ast::Expr) -> Expr {
        let wanted = self.settle(param.ty);
        let expected = (!self.has_free_vars(wanted)).then_some(wanted);
        let value = self.check_expr_expecting(value, expected, wanted);
        self.unify(param.ty, value.ty);
        value
    }

    /// Default values for arguments left out, once the others have told what they can about types.
    fn omitted_args(
        &mut self,
        signature: &Signature<'a>,
        bound: &[Option<&'a Argument>],
        values: &mut [Option<Expr>],
    ) {
        for ((param, arg), value) in signature.params.iter().zip(bound).zip(values) {
            if arg.is_some_and(|a| a.value.is_some()) {
                continue;
            }
            match param.default {
                Some(default) if arg.is_none() => {
                    let aside = signature.mark.map(|mark| self.scopes.leave_local_names(mark));
                    self.scopes.push();
                    for (params, types) in &signature.type_scope {
                        self.declare_type_params(params, types);
                    }
                    let checked = self.argument(param, default);
                    self.scopes.pop();
                    if let Some(aside) = aside {
                        self.scopes.return_to(aside);
                    }
                    *value = Some(checked);
                }
                // What is left out tells nothing about the types that only it mentions.
                _ if arg.is_none() || param.optional => self.close_vars(param.ty),
                _ => {}
            }
        }
    }

    /// Types an argument; a constructor call in it may learn its own type arguments from the parameter.
    fn check_expr_expecting(&mut self, e: &'a ast::Expr, expected: Option<Ty>, wanted: Ty) -> Expr {
        let is_call = matches!(e.kind, ast::ExprKind::Call { .. });
        if is_call && !matches!(self.kind(wanted), TyKind::Var(_)) {
            return self.check_expr(e, Some(wanted));
        }
        self.check_expr(e, expected)
    }

    /// Reports type arguments that the arguments do not tell.
    fn infer_type_args(
        &mut self,
        signature: &Signature<'a>,
        values: &[Option<Expr>],
        mode: ArgMode,
        span: Span,
    ) -> Option<()> {
        for &arg in &signature.type_args {
            let settled = match self.finish_type(arg) {
                Ok(settled) => settled,
                Err(name) => {
                    if values.iter().flatten().any(|v| self.is_unknown(v.ty)) {
                        return None;
                    }
                    let message =
                        format!("the type argument `{name}` of `{}` cannot be found out", signature.name);
                    self.report(
                        Diagnostic::error(codes::CANNOT_INFER, span, message)
                            .with_secondary(signature.span, "declared here")
                            .with_help("write the type arguments: `name<...>(...)`"),
                    );
                    return None;
                }
            };
            if self.contains_record(settled) {
                let culprit =
                    values.iter().flatten().find(|v| self.contains_record(v.ty)).map_or(span, |v| v.span);
                self.report(
                    Diagnostic::error(
                        codes::CANNOT_INFER,
                        culprit,
                        "the type of this structure is not known",
                    )
                    .with_help("write the type before it: `(S){ ... }`"),
                );
                return None;
            }
            if self.contains_int(settled) && mode != ArgMode::AnyValue {
                let culprit =
                    values.iter().flatten().find(|v| self.contains_int(v.ty)).map_or(span, |v| v.span);
                self.report(
                    Diagnostic::error(codes::CANNOT_INFER, culprit, "the width of this number is not known")
                        .with_help("give the number a width, such as `8w1`"),
                );
                return None;
            }
        }
        Some(())
    }

    /// Whether `int` is a type or part of it.
    pub(crate) fn contains_int(&self, ty: Ty) -> bool {
        match self.kind(ty) {
            TyKind::Int => true,
            TyKind::Tuple(parts) => parts.into_iter().any(|t| self.contains_int(t)),
            TyKind::List(t) => self.contains_int(t),
            TyKind::Struct(id) if !self.decls.struct_origin.contains_key(&id) => {
                self.hir.types.structs[id].fields.iter().any(|f| self.contains_int(f.ty))
            }
            _ => false,
        }
    }

    /// Whether a structure without a declared type is a type or part of it.
    pub(crate) fn contains_record(&self, ty: Ty) -> bool {
        match self.kind(ty) {
            TyKind::Tuple(parts) => parts.into_iter().any(|t| self.contains_record(t)),
            TyKind::List(t) => self.contains_record(t),
            TyKind::Struct(id) => !self.decls.struct_origin.contains_key(&id),
            _ => false,
        }
    }

    /// Passes a value for a parameter.
    fn pass(&mut self, param: &Param<'a>, ty: Ty, value: Expr, mode: ArgMode) -> Expr {
        let bad = match self.kind(value.ty) {
            TyKind::Table(_)
            | TyKind::ApplyResult(_)
            | TyKind::ActionRun(_)
            | TyKind::ValueSet(_)
            | TyKind::Void => true,
            TyKind::Parser(_) | TyKind::Control(_) | TyKind::BlockType(..) => mode != ArgMode::Constructor,
            TyKind::String | TyKind::Int => {
                param.direction != Direction::None && matches!(self.kind(ty), TyKind::String | TyKind::Int)
            }
            _ => false,
        };
        let is_value = self.is_value_type(param.ty);
        if bad && !self.mentions_vars(param.ty) && !is_value {
            // The declaration of the parameter has an error of its own.
            return self.unknown(value.span);
        }
        if bad {
            let shown = self.show(value.ty);
            let message = format!("a `{shown}` cannot be passed for the parameter `{}`", param.name);
            self.report(
                Diagnostic::error(codes::BAD_TYPE_HERE, value.span, message)
                    .with_secondary(param.span, "the parameter"),
            );
            return self.unknown(value.span);
        }
        match param.direction {
            Direction::Out | Direction::InOut => {
                if value.ty != ty && !self.is_unknown(value.ty) && !self.is_unknown(ty) {
                    self.mismatch(&value, ty, Why::Parameter(param.span));
                    return self.unknown(value.span);
                }
                if !self.check_lvalue(&value) {
                    return self.unknown(value.span);
                }
                value
            }
            Direction::In => self.coerce(value, ty, Why::Parameter(param.span)),
            Direction::None => {
                // A number of any width is fine for `int`.
                let fixed = matches!(self.kind(value.ty), TyKind::Bits(_) | TyKind::SignedBits(_));
                let is_int = matches!(self.kind(ty), TyKind::Int) && fixed && mode == ArgMode::Runtime;
                let value = if is_int { value } else { self.coerce(value, ty, Why::Parameter(param.span)) };
                let is_object = matches!(self.kind(ty), TyKind::Extern(..));
                let fine = match mode {
                    ArgMode::AnyValue => true,
                    ArgMode::Runtime => is_object || self.is_undirected(&value),
                    ArgMode::Constructor => is_object || self.is_known(&value),
                };
                if !fine {
                    let message = format!("the argument for `{}` must be known at compile time", param.name);
                    self.report(
                        Diagnostic::error(codes::NOT_CONSTANT, value.span, message)
                            .with_label("its value is not known at compile time")
                            .with_secondary(param.span, "the parameter has no direction"),
                    );
                    return self.unknown(value.span);
                }
                value
            }
        }
    }
}

/// The direction of the typed program.
pub(crate) fn direction(direction: ast::Direction) -> Direction {
    match direction {
        ast::Direction::None => Direction::None,
        ast::Direction::In => Direction::In,
        ast::Direction::Out => Direction::Out,
        ast::Direction::InOut => Direction::InOut,
    }
}

/// Whether a parameter is annotated `@optional`.
pub(crate) fn is_optional(param: &ast::Parameter) -> bool {
    param.annotations.iter().any(|a| a.name.as_str() == "optional")
}
