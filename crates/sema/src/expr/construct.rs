//! Instances: where they may be made, and of what.

use super::ArgMode;
use crate::check::Checker;
use crate::codes;
use crate::context::CodeContext;
use crate::hir::{CtorArg, Instance, InstanceId, Local, Ty, TyKind};
use crate::scope::TypeEntity;
use millrace_syntax::ast::{self, Annotation, Argument, Declaration, Name};
use millrace_syntax::{Diagnostic, Span};

/// An instance to be made.
pub(crate) struct Construction<'a, 's> {
    /// Of what.
    pub(crate) entity: TypeEntity,
    /// The name as written.
    pub(crate) type_name: &'s Name,
    /// Type arguments as written; empty: to be found out.
    pub(crate) type_args: &'a [ast::Type],
    /// Constructor arguments.
    pub(crate) args: &'a [Argument],
    /// The name of the instance; none when it is made in place.
    pub(crate) name: Option<&'s Name>,
    /// What stands before it.
    pub(crate) annotations: &'a [Annotation],
    /// Definitions of abstract methods.
    pub(crate) initializer: Option<&'a [Declaration]>,
    /// Its place.
    pub(crate) span: Span,
    /// The type that the place wants, which may tell type arguments.
    pub(crate) expected: Option<Ty>,
}

impl<'a> Checker<'a> {
    /// Makes an instance; none after an error.
    pub(crate) fn construct(&mut self, mut c: Construction<'a, '_>) -> Option<InstanceId> {
        c.entity = self.choose_type_overload(&c)?;
        let c = &c;
        let (ty, signature) = self.constructor(c)?;
        if self.is_unknown(ty) {
            self.check_loose_args(c.args);
            return None;
        }
        self.check_placement(ty, c)?;
        if let Some(expected) = c.expected
            && matches!(self.kind(expected), TyKind::Extern(..) | TyKind::Package(..))
        {
            self.unify(expected, ty);
        }
        let args = self.check_args(&signature, c.args, ArgMode::Constructor, c.span)?;
        let ty = self.finish_type(ty).ok()?;
        let ctor_params = signature.params.iter().map(|p| p.name.clone()).collect();
        let args = args.into_iter().map(|a| a.value.map_or(CtorArg::Omitted, CtorArg::Expr)).collect();
        let id = self.hir.instances.push(Instance {
            name: c.name.map(|n| n.to_string()),
            ty,
            args,
            ctor_params,
            methods: Vec::new(),
            annotations: c.annotations.into(),
            span: c.span,
        });
        self.count_instance(id);
        if let TyKind::Extern(ext, types) = self.kind(ty) {
            self.check_abstract_methods(id, ext, &types, c);
        } else if let Some(first) = c.initializer {
            let at = first.first().map_or(c.span, Declaration::span);
            self.error(codes::ABSTRACT_METHOD, at, "only instances of externs can have an initialiser");
        }
        if matches!(self.here.context, CodeContext::ParserState | CodeContext::ControlApply) {
            self.here.implied.push(Local::Instance(id));
        }
        Some(id)
    }

    /// Which instances may be made here (specification, appendix "Restrictions on compile time and run time calls").
    fn check_placement(&mut self, ty: Ty, c: &Construction<'a, '_>) -> Option<()> {
        let context = self.here.context;
        let named = c.name.is_some();
        let allowed = match self.kind(ty) {
            TyKind::Package(..) => context == CodeContext::TopLevel,
            TyKind::Parser(_) => match context {
                CodeContext::TopLevel => !named,
                CodeContext::ParserLocals => true,
                _ => false,
            },
            TyKind::Control(_) => match context {
                CodeContext::TopLevel => !named,
                CodeContext::ControlLocals => true,
                _ => false,
            },
            _ => match context {
                CodeContext::TopLevel
                | CodeContext::ParserLocals
                | CodeContext::ControlLocals
                | CodeContext::Table => true,
                // One made in place, to call a method of it.
                CodeContext::ParserState | CodeContext::ControlApply => !named,
                CodeContext::AbstractMethod | CodeContext::Action | CodeContext::Function => false,
            },
        };
        if allowed {
            return Some(());
        }
        let shown = self.show(ty);
        let message = format!("`{shown}` cannot be instantiated {}", context.describe());
        let help = match (self.kind(ty), context) {
            (TyKind::Package(..), _) => "a package is instantiated at the top level",
            (TyKind::Parser(_), CodeContext::TopLevel) => {
                "declare it in a parser, or make it an argument of a package"
            }
            (TyKind::Parser(_), _) => "a parser is instantiated among the declarations of a parser",
            (TyKind::Control(_), CodeContext::TopLevel) => {
                "declare it in a control, or make it an argument of a package"
            }
            (TyKind::Control(_), _) => "a control is instantiated among the declarations of a control",
            _ => "declare it before the `apply` block or the states",
        };
        self.report(Diagnostic::error(codes::INSTANCE_NOT_ALLOWED, c.span, message).with_help(help));
        None
    }
}
