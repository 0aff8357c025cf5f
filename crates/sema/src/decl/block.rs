//! What parsers and controls have in common: type parameters, parameters and local declarations.

use crate::check::Checker;
use crate::codes;
use crate::context::CodeContext;
use crate::declarations::{BlockAst, BlockSource};
use crate::hir::{self, Instance, Local, Ty, TyKind};
use crate::limits::{MAX_INSTANTIATION_DEPTH, MAX_INSTANTIATIONS};
use crate::scope::{Entity, TypeEntity};
use millrace_syntax::ast::{self, Declaration};

impl<'a> Checker<'a> {
    /// A parser or control: checked at once, or, if it has type parameters, once for its findings and later for each use.
    pub(crate) fn block(&mut self, ast: BlockAst<'a>) {
        let header = ast.header();
        self.check_type_params(&header.type_params);
        if header.type_params.is_empty() {
            self.new_block(ast, true);
            return;
        }
        let index = self.decls.blocks.len();
        let mark = self.scopes.mark();
        self.decls.blocks.push(BlockSource { ast, mark, instances: Default::default() });
        self.declare_constructible(&header.name, TypeEntity::Block(index));
        let args = self.rigid_args(&header.type_params);
        self.abstractly(|c| {
            c.with_types(mark, &header.type_params, &args, |c| c.new_block(ast, false));
        });
    }

    /// The type of a parser or control with these type arguments.
    pub(crate) fn block_instance(&mut self, index: usize, args: Vec<Ty>) -> Ty {
        if let Some(&ty) = self.decls.blocks[index].instances.get(&args) {
            return ty;
        }
        let (ast, mark) = (self.decls.blocks[index].ast, self.decls.blocks[index].mark);
        let header = ast.header();
        let too_many = self.decls.blocks[index].instances.len() >= MAX_INSTANTIATIONS;
        if too_many || self.here.instantiation_depth >= MAX_INSTANTIATION_DEPTH {
            let message = format!("`{}` is used with too many types", header.name);
            self.error(codes::TYPE_ARGUMENTS, header.name.span, message);
            return self.unknown_ty();
        }
        self.here.instantiation_depth += 1;
        let ty = self.with_types(mark, &header.type_params, &args, |c| c.new_block(ast, false));
        self.here.instantiation_depth -= 1;
        self.decls.blocks[index].instances.insert(args, ty);
        ty
    }

    fn new_block(&mut self, ast: BlockAst<'a>, declare: bool) -> Ty {
        match ast {
            BlockAst::Parser(d) => self.new_parser(d, declare),
            BlockAst::Control(d) => self.new_control(d, declare),
        }
    }

    /// A local declaration of a parser or control.
    pub(crate) fn local_declaration(&mut self, d: &'a Declaration, locals: &mut Vec<Local>) {
        match d {
            Declaration::Constant(d) => {
                if let Some((var, value)) = self.constant_declaration(d) {
                    locals.push(Local::Var(var, Some(value)));
                }
            }
            Declaration::Variable(d) => {
                let (var, init) = self.variable_declaration(d);
                locals.push(Local::Var(var, init));
            }
            Declaration::Instantiation(d) => {
                if let Some(id) = self.instance_declaration(d) {
                    locals.push(Local::Instance(id));
                }
            }
            Declaration::Action(d) if self.here.context == CodeContext::ControlLocals => {
                self.check_annotations(&d.annotations);
                let id = self.action(d);
                locals.push(Local::Action(id));
            }
            Declaration::Table(d) if self.here.context == CodeContext::ControlLocals => {
                self.check_annotations(&d.annotations);
                let id = self.table(d);
                locals.push(Local::Table(id));
            }
            Declaration::ValueSet(d) if self.here.context == CodeContext::ParserLocals => {
                if let Some(id) = self.value_set(d) {
                    locals.push(Local::Instance(id));
                }
            }
            other => {
                let message = format!("this declaration cannot stand {}", self.here.context.describe());
                self.error(codes::STATEMENT_NOT_ALLOWED, other.span(), message);
            }
        }
    }

    /// `value_set<T>(size) x;`
    fn value_set(&mut self, d: &'a ast::ValueSet) -> Option<hir::InstanceId> {
        self.check_annotations(&d.annotations);
        let element = self.resolve_type(&d.ty);
        let fine = match self.kind(element) {
            TyKind::Bits(_) | TyKind::SignedBits(_) | TyKind::Tuple(_) | TyKind::Bool => true,
            TyKind::Struct(_) => !self.is_header(element),
            TyKind::Enum(_) | TyKind::New(_) | TyKind::Unknown | TyKind::Var(_) => true,
            _ => false,
        };
        if !fine {
            let shown = self.show(element);
            self.error(
                codes::BAD_TYPE_HERE,
                d.ty.span,
                format!("a value set cannot hold values of `{shown}`"),
            );
        }
        let element = if fine { element } else { self.unknown_ty() };
        let size = self.check_expr(&d.size, None);
        let size = self.without_enum(size);
        let numeric = matches!(
            self.kind(size.ty),
            TyKind::Int | TyKind::Bits(_) | TyKind::SignedBits(_) | TyKind::Unknown
        );
        if !numeric || !self.is_known(&size) {
            let message = "the size of a value set must be a number known at compile time";
            self.error(codes::NOT_CONSTANT, d.size.span, message);
        }
        let ty = self.intern(TyKind::ValueSet(element));
        let id = self.hir.instances.push(Instance {
            name: Some(d.name.to_string()),
            ty,
            args: vec![hir::CtorArg::Expr(size)],
            ctor_params: vec!["size".into()],
            methods: Vec::new(),
            annotations: d.annotations.clone().into(),
            span: d.name.span,
        });
        self.count_instance(id);
        self.declare_or_report_shadow(&d.name, Entity::Instance(id));
        Some(id)
    }
}
