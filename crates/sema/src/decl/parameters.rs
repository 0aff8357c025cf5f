//! Which parameters a declaration may have.

use crate::check::Checker;
use crate::codes;
use crate::expr::Why;
use crate::hir::{Direction, Ty, TyKind, Var, VarId, VarKind};
use crate::repeated::Names;
use crate::scope::Entity;
use foldhash::{HashMap, HashMapExt};
use millrace_syntax::Diagnostic;
use millrace_syntax::ast;

/// What the parameters belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParamOf {
    /// A function, or the definition of an abstract method.
    Function,
    /// An action.
    Action,
    /// A parser or parser type.
    Parser,
    /// A control or control type.
    Control,
    /// A parser's constructor.
    ParserConstructor,
    /// A control's constructor.
    ControlConstructor,
    /// A package.
    Package,
    /// An extern function or method.
    Extern,
    /// An extern object's constructor.
    ExternConstructor,
}

impl ParamOf {
    fn is_constructor(self) -> bool {
        matches!(
            self,
            Self::ParserConstructor | Self::ControlConstructor | Self::Package | Self::ExternConstructor
        )
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Function => "a function",
            Self::Action => "an action",
            Self::Parser => "a parser",
            Self::Control => "a control",
            Self::ParserConstructor => "a parser's constructor",
            Self::ControlConstructor => "a control's constructor",
            Self::Package => "a package",
            Self::Extern => "an extern",
            Self::ExternConstructor => "an extern's constructor",
        }
    }
}

impl<'a> Checker<'a> {
    /// Reads parameters and reports those that such a declaration cannot have.
    pub(crate) fn check_params(&mut self, params: &'a [ast::Parameter], of: ParamOf) -> Vec<Ty> {
        let mut types = Vec::with_capacity(params.len());
        let mut names = Names::default();
        for param in params {
            self.check_annotations(&param.annotations);
            if let Some(earlier) = names.take(param.name.as_str(), param.name.span) {
                self.duplicate(&param.name, earlier);
            }
            let ty = self.resolve_type(&param.ty);
            let fits = self.check_param_type(param, ty, of);
            let ty = if fits { ty } else { self.unknown_ty() };
            self.check_param_extras(param, ty, of);
            types.push(ty);
        }
        types
    }

    fn check_param_type(&mut self, param: &'a ast::Parameter, ty: Ty, of: ParamOf) -> bool {
        let directed = param.direction != ast::Direction::None;
        if directed && of.is_constructor() {
            let message = format!("a parameter of {} has no direction", of.noun());
            self.report(
                Diagnostic::error(codes::BAD_DIRECTION, param.span, message)
                    .with_help("leave the direction out"),
            );
            return true;
        }
        let shown = self.show(ty);
        let allowed = match self.kind(ty) {
            TyKind::Unknown | TyKind::Var(_) => true,
            TyKind::Void => false,
            TyKind::Package(..) => of == ParamOf::Package,
            // A signature is wanted, so that any parser or control that has it can be given.
            TyKind::Parser(_) | TyKind::Control(_) => false,
            TyKind::BlockType(id, _) => match self.hir.block_types[id].is_parser {
                true => matches!(of, ParamOf::Package | ParamOf::ParserConstructor),
                false => matches!(of, ParamOf::Package | ParamOf::ControlConstructor),
            },
            TyKind::Extern(..) => !matches!(of, ParamOf::Action | ParamOf::Function),
            TyKind::Int => of != ParamOf::Action,
            _ => true,
        };
        if !allowed {
            let message = format!("a parameter of {} cannot have the type `{shown}`", of.noun());
            let mut found = Diagnostic::error(codes::BAD_TYPE_HERE, param.span, message);
            found.help = match self.kind(ty) {
                TyKind::Int => Some("give it a width: `bit<32>`".into()),
                TyKind::Parser(_) | TyKind::Control(_) if of.is_constructor() => Some(
                    "take one by its signature: `parser P(...);` or `control C(...);` declares it".into(),
                ),
                _ => None,
            };
            self.report(found);
            return false;
        }
        let undirected = matches!(
            self.kind(ty),
            TyKind::Extern(..) | TyKind::Int | TyKind::String | TyKind::MatchKind | TyKind::List(_)
        );
        if directed && undirected {
            let message = format!("a parameter of type `{shown}` cannot have a direction");
            self.report(
                Diagnostic::error(codes::BAD_DIRECTION, param.span, message)
                    .with_help("leave the direction out"),
            );
        }
        true
    }

    fn check_param_extras(&mut self, param: &'a ast::Parameter, ty: Ty, of: ParamOf) {
        let optional = param.annotations.iter().find(|a| a.name.as_str() == "optional");
        if let Some(optional) = optional {
            let allowed = matches!(
                of,
                ParamOf::Package
                    | ParamOf::Parser
                    | ParamOf::Control
                    | ParamOf::Extern
                    | ParamOf::ExternConstructor
            );
            if !allowed {
                let message = format!("a parameter of {} cannot be optional", of.noun());
                self.error(codes::BAD_DEFAULT, optional.span, message);
            }
            if let Some(default) = &param.default {
                self.error(
                    codes::BAD_DEFAULT,
                    default.span,
                    "an optional parameter cannot have a default value",
                );
            }
        }
        let Some(default) = &param.default else { return };
        if matches!(param.direction, ast::Direction::Out | ast::Direction::InOut) {
            self.report(
                Diagnostic::error(
                    codes::BAD_DEFAULT,
                    default.span,
                    "only values that go in can have a default",
                )
                .with_secondary(param.span, "this parameter goes out"),
            );
            return;
        }
        if of.is_constructor()
            && let ast::ExprKind::Call { args, .. } = &default.kind
        {
            // An instance: made again where the default is used.
            self.check_loose_args(args);
            return;
        }
        let checked = self.check_expr(default, Some(ty));
        if !self.mentions_vars(ty) {
            let checked = self.coerce(checked, ty, Why::Declared(param.ty.span));
            if !self.is_known(&checked) {
                let message = "a default value must be known at compile time";
                self.error(codes::NOT_CONSTANT, default.span, message);
            }
        }
    }

    /// Declares parameters as variables in the innermost scope.
    pub(crate) fn declare_params(&mut self, params: &'a [ast::Parameter], of: ParamOf) -> Vec<VarId> {
        let types = self.check_params(params, of);
        let mut times: HashMap<&str, usize> = HashMap::new();
        params.iter().for_each(|p| *times.entry(p.name.as_str()).or_default() += 1);
        let mut vars = Vec::with_capacity(params.len());
        for (param, ty) in params.iter().zip(types) {
            let direction = match param.direction {
                ast::Direction::None => Direction::None,
                ast::Direction::In => Direction::In,
                ast::Direction::Out => Direction::Out,
                ast::Direction::InOut => Direction::InOut,
            };
            let kind = if of.is_constructor() { VarKind::CtorParam } else { VarKind::Param(direction) };
            let ty = self.finish_type(ty).unwrap_or(ty);
            let var = self.hir.vars.push(Var {
                name: param.name.to_string(),
                ty,
                kind,
                annotations: param.annotations.clone().into(),
                span: param.name.span,
            });
            if let Some((Entity::Type(_), declared)) = self.scopes.lookup(param.name.as_str(), false)
                && self.scopes.in_enclosing_scope(param.name.as_str())
            {
                self.duplicate(&param.name, declared);
            }
            self.report_shadow(&param.name);
            let taken = self.scopes.declare(&param.name.text, Entity::Var(var), param.name.span);
            let in_list = times.get(param.name.as_str()).is_some_and(|times| *times > 1);
            if let (Err(earlier), false) = (taken, in_list) {
                self.duplicate(&param.name, earlier);
            }
            vars.push(var);
        }
        vars
    }
}
