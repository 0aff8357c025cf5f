//! Elaboration: the instances of parsers, controls and externs, each with its own storage and control-plane names.

use millrace_pipeline as ir;
use millrace_pipeline::entity::{PrimaryMap, entity_impl};
use millrace_sema::Constant;
use millrace_sema::hir::{
    self, ActionId, ControlId, CtorArg, ExprKind, ExternId, FunctionId, InstanceId, Local, ParserId, TableId,
    Ty, TyKind, VarId,
};
use millrace_syntax::Span;

use foldhash::{HashMap, HashMapExt, HashSet};
use std::rc::Rc;

use crate::arch::Resource;
use crate::context::Lowering;
use crate::fail::{Lower, code, fail, internal};
use crate::limits::MAX_INSTANCE_DEPTH;
use crate::names::{control_plane_name, has_annotation};
use crate::storage::Storage;
use crate::table::TableState;
use crate::value::Value;

/// An elaborated instance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectId(u32);
entity_impl!(ObjectId, "object");

/// What a variable means where it is in scope.
#[derive(Clone, Debug)]
pub(crate) enum Binding {
    /// Storage.
    Storage(Storage),
    /// A value that does not change while the variable is in scope.
    Value(Value),
    /// An instance.
    Object(ObjectId),
    /// The packet that a parser reads.
    PacketIn,
    /// The packet that a deparser writes.
    PacketOut,
}

/// An instance.
pub(crate) enum Object {
    /// Of a parser or control.
    Block(Box<Block>),
    /// Of an extern.
    Extern(Rc<ExternObject>, Option<Resource>),
    /// A parser value set.
    ValueSet(ir::ValueSetId, usize),
    /// Of a package.
    Package(Vec<CtorValue>),
}

/// Which declaration a block is an instance of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BlockType {
    /// A parser.
    Parser(ParserId),
    /// A control.
    Control(ControlId),
}

/// An instance of a parser or control.
pub(crate) struct Block {
    /// Which.
    pub(crate) ty: BlockType,
    /// Its control-plane name.
    pub(crate) path: String,
    /// What was given for its constructor parameters.
    constants: HashMap<VarId, Constant>,
    /// What its variables start with, where that is known: the value of those that are constants.
    initial: HashMap<VarId, Constant>,
    /// Its own instances.
    objects: HashMap<InstanceId, ObjectId>,
    /// Parameters and variables.
    pub(crate) vars: HashMap<VarId, Binding>,
    /// Storage that a variable keeps when the block is inlined more than once.
    pub(crate) storage: HashMap<VarId, Storage>,
    /// Its tables that were applied.
    pub(crate) tables: HashMap<TableId, Rc<TableState>>,
    /// Its actions that a table uses.
    pub(crate) actions: HashMap<ActionId, ir::ActionId>,
    /// Whether several places apply it although tables refer to its parameters, so that these need storage of
    /// their own.
    pub(crate) own_params: bool,
    /// Whether it contains tables, itself or in an instance.
    pub(crate) has_tables: bool,
}

/// An instance of an extern.
#[derive(Debug)]
pub(crate) struct ExternObject {
    /// Of which kind.
    pub(crate) ty: ExternId,
    /// With which types.
    pub(crate) type_args: Vec<Ty>,
    /// What was given for its constructor parameters: name and value.
    pub(crate) args: Vec<(String, CtorValue)>,
    /// Its control-plane name.
    pub(crate) path: String,
    /// The abstract methods that it defines.
    pub(crate) methods: Vec<(String, FunctionId)>,
    /// The block it is declared in.
    pub(crate) owner: Option<ObjectId>,
    /// The declaration.
    pub(crate) span: Span,
}

/// A constructor argument.
#[derive(Clone, Debug)]
pub(crate) enum CtorValue {
    /// A compile-time value.
    Constant(Constant),
    /// An instance.
    Object(ObjectId),
    /// Left out.
    Omitted,
}

impl ExternObject {
    /// The number given for a constructor parameter.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.args.iter().find(|(n, _)| n == name).and_then(|(_, value)| match value {
            CtorValue::Constant(Constant::Int(n)) => u64::try_from(n.clone()).ok(),
            CtorValue::Constant(Constant::EnumMember(i)) => u64::try_from(*i).ok(),
            _ => None,
        })
    }

    /// The compile-time value given for a constructor parameter.
    pub(crate) fn constant(&self, name: &str) -> Option<&Constant> {
        self.args.iter().find(|(n, _)| n == name).and_then(|(_, value)| match value {
            CtorValue::Constant(c) => Some(c),
            _ => None,
        })
    }
}

/// All instances.
#[derive(Default)]
pub(crate) struct Objects {
    all: PrimaryMap<ObjectId, Object>,
    globals: HashMap<InstanceId, ObjectId>,
    /// What is declared at the top level; found once.
    top_level: Option<HashSet<InstanceId>>,
}

impl Objects {
    /// An instance.
    pub(crate) fn get(&self, id: ObjectId) -> &Object {
        &self.all[id]
    }

    /// A parser or control.
    pub(crate) fn block(&self, id: ObjectId) -> Option<&Block> {
        match &self.all[id] {
            Object::Block(block) => Some(block),
            _ => None,
        }
    }

    /// A parser or control, to change it.
    pub(crate) fn block_mut(&mut self, id: ObjectId) -> Option<&mut Block> {
        match &mut self.all[id] {
            Object::Block(block) => Some(block),
            _ => None,
        }
    }

    /// What was given for a constructor parameter of a block.
    pub(crate) fn constant(&self, block: ObjectId, var: VarId) -> Option<&Constant> {
        self.block(block)?.constants.get(&var)
    }

    /// As [`Objects::constant`]; also what a variable starts with. Only for expressions that the checker found to be
    /// known at compile time: they name no variable that changes.
    pub(crate) fn constant_or_initial(&self, block: ObjectId, var: VarId) -> Option<&Constant> {
        let block = self.block(block)?;
        block.constants.get(&var).or_else(|| block.initial.get(&var))
    }

    /// Whether an instance is declared at the top level.
    fn is_global(&mut self, instance: InstanceId, hir: &hir::Program) -> bool {
        self.top_level.get_or_insert_with(|| hir.globals.iter().copied().collect()).contains(&instance)
    }

    /// The instance that a declaration stands for within a block.
    pub(crate) fn find(&self, instance: InstanceId, block: Option<ObjectId>) -> Option<ObjectId> {
        let local = block.and_then(|b| self.block(b)).and_then(|b| b.objects.get(&instance));
        local.or_else(|| self.globals.get(&instance)).copied()
    }
}

impl Lowering<'_> {
    /// Elaborates what is declared at the top level, except packages and blocks: these only when they are used.
    pub(crate) fn elaborate_globals(&mut self) -> Lower<()> {
        for &instance in &self.hir.globals {
            if matches!(self.hir.types.kind(self.hir.instances[instance].ty), TyKind::Extern(..)) {
                self.instance(instance, None)?;
            }
        }
        Ok(())
    }

    /// The object of an instance within a block, elaborated at first use.
    pub(crate) fn instance(&mut self, instance: InstanceId, owner: Option<ObjectId>) -> Lower<ObjectId> {
        if let Some(object) = self.objects.find(instance, owner) {
            return Ok(object);
        }
        let owner = if self.objects.is_global(instance, self.hir) { None } else { owner };
        let object = self.elaborate(instance, owner)?;
        match owner.and_then(|o| self.objects.block_mut(o)) {
            Some(block) => block.objects.insert(instance, object),
            None => self.objects.globals.insert(instance, object),
        };
        Ok(object)
    }

    fn elaborate(&mut self, instance: InstanceId, owner: Option<ObjectId>) -> Lower<ObjectId> {
        let hir = self.hir;
        let declared = &hir.instances[instance];
        self.budget.instance(declared.span)?;
        let mut args = Vec::with_capacity(declared.args.len());
        for arg in &declared.args {
            args.push(self.ctor_arg(arg, owner)?);
        }
        let prefix = match owner.and_then(|o| self.objects.block(o)) {
            Some(block) => block.path.clone(),
            None => String::new(),
        };
        // Nesting shows in the names, and instances cannot contain themselves, so this ends; the limit keeps names
        // and recursion within bounds.
        self.budget.name_bytes += prefix.len();
        if prefix.matches('.').count() > MAX_INSTANCE_DEPTH {
            return fail(
                code::LIMIT,
                declared.span,
                format!("instances nest deeper than {MAX_INSTANCE_DEPTH}"),
            );
        }
        match hir.types.kind(declared.ty) {
            TyKind::Parser(id) => {
                let parser = &hir.parsers[*id];
                let path = self.block_path(instance, owner, &prefix, &parser.name);
                self.elaborate_block(
                    BlockType::Parser(*id),
                    path,
                    &parser.ctor_params,
                    args,
                    &parser.locals,
                    owner,
                    instance,
                )
            }
            TyKind::Control(id) => {
                let control = &hir.controls[*id];
                let path = self.block_path(instance, owner, &prefix, &control.name);
                self.elaborate_block(
                    BlockType::Control(*id),
                    path,
                    &control.ctor_params,
                    args,
                    &control.locals,
                    owner,
                    instance,
                )
            }
            TyKind::Extern(id, type_args) => {
                let name = declared.name.clone().unwrap_or_else(|| hir.externs[*id].name.clone());
                // One made in place has a name only where `@name` gives it one, and that is the whole name.
                let prefix = match &declared.name {
                    None if has_annotation(&declared.annotations, "name") => "",
                    _ => &prefix,
                };
                let path = control_plane_name(prefix, &name, &declared.annotations);
                let object = Rc::new(ExternObject {
                    ty: *id,
                    type_args: type_args.clone(),
                    args: declared.ctor_params.iter().cloned().zip(args).collect(),
                    path,
                    methods: declared.methods.clone(),
                    owner,
                    span: declared.span,
                });
                let resource = self.create_resource(&object)?;
                Ok(self.objects.all.push(Object::Extern(object, resource)))
            }
            TyKind::Package(..) => Ok(self.objects.all.push(Object::Package(args))),
            TyKind::ValueSet(ty) => self.elaborate_value_set(instance, *ty, &prefix, &args),
            _ => internal(declared.span, "an instance of what cannot be instantiated"),
        }
    }

    /// A block of the architecture is named after its declaration, a nested one after its instance.
    fn block_path(
        &self,
        instance: InstanceId,
        owner: Option<ObjectId>,
        prefix: &str,
        type_name: &str,
    ) -> String {
        let declared = &self.hir.instances[instance];
        match (&declared.name, owner) {
            (_, None) => type_name.to_owned(),
            (Some(name), _) => control_plane_name(prefix, name, &declared.annotations),
            (None, _) => control_plane_name(prefix, &format!("{type_name}_inst"), &declared.annotations),
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn elaborate_block(
        &mut self,
        ty: BlockType,
        path: String,
        params: &[VarId],
        args: Vec<CtorValue>,
        locals: &[Local],
        owner: Option<ObjectId>,
        instance: InstanceId,
    ) -> Lower<ObjectId> {
        let hir = self.hir;
        let has_tables = self.has_tables(ty);
        self.budget.name_bytes += path.len();
        let several = match owner.and_then(|o| self.objects.block(o)).map(|b| b.ty) {
            Some(owner) => self.applications(owner, instance) > 1,
            None => false,
        };
        let mut block = Block {
            ty,
            path,
            constants: HashMap::new(),
            initial: HashMap::new(),
            objects: HashMap::new(),
            vars: HashMap::new(),
            storage: HashMap::new(),
            tables: HashMap::new(),
            actions: HashMap::new(),
            own_params: several && has_tables,
            has_tables,
        };
        for (&param, arg) in params.iter().zip(args) {
            match arg {
                CtorValue::Constant(value) => {
                    let shown = self.constant_value(&value, hir.vars[param].ty, hir.vars[param].span)?;
                    block.vars.insert(param, Binding::Value(shown));
                    block.constants.insert(param, value);
                }
                CtorValue::Object(object) => {
                    // The same instance may have been given to several blocks.
                    if let Some(shared) = self.objects.block_mut(object) {
                        shared.own_params = shared.has_tables;
                    }
                    block.vars.insert(param, Binding::Object(object));
                }
                CtorValue::Omitted => {}
            }
        }
        let id = self.objects.all.push(Object::Block(Box::new(block)));
        for local in locals {
            match local {
                Local::Var(var, Some(init)) => self.remember_initial(Some(id), *var, init),
                Local::Instance(instance) => {
                    self.instance(*instance, Some(id))?;
                }
                _ => {}
            }
        }
        Ok(id)
    }

    fn ctor_arg(&mut self, arg: &CtorArg, owner: Option<ObjectId>) -> Lower<CtorValue> {
        let CtorArg::Expr(expr) = arg else { return Ok(CtorValue::Omitted) };
        match &expr.kind {
            ExprKind::Instance(instance) => return Ok(CtorValue::Object(self.instance(*instance, owner)?)),
            ExprKind::Var(var) => {
                if let Some(block) = owner.and_then(|o| self.objects.block(o))
                    && let Some(Binding::Object(object)) = block.vars.get(var)
                {
                    return Ok(CtorValue::Object(*object));
                }
            }
            _ => {}
        }
        match self.must_be_constant(expr, owner)? {
            Constant::Instance(instance) => Ok(CtorValue::Object(self.instance(instance, owner)?)),
            value => Ok(CtorValue::Constant(value)),
        }
    }

    fn elaborate_value_set(
        &mut self,
        instance: InstanceId,
        ty: Ty,
        prefix: &str,
        args: &[CtorValue],
    ) -> Lower<ObjectId> {
        let declared = &self.hir.instances[instance];
        let name = declared.name.clone().unwrap_or_else(|| "value_set".into());
        let name = control_plane_name(prefix, &name, &declared.annotations);
        let size = match args.first() {
            Some(CtorValue::Constant(Constant::Int(n))) => u64::try_from(n.clone()).ok(),
            _ => None,
        };
        let Some(size) = size.filter(|s| *s <= ir::limits::MAX_TABLE_SIZE) else {
            let limit = ir::limits::MAX_TABLE_SIZE;
            return fail(code::LIMIT, declared.span, format!("the size of a value set is 0 to {limit}"));
        };
        let mut fields = Vec::new();
        self.value_set_fields(ty, "", ir::MatchKind::Exact, &mut fields, declared.span)?;
        let keys = fields.len();
        let name = self.object_name("value set", &name);
        let set = self.ir.program_mut().value_sets.push(ir::ValueSet { name, fields, size });
        Ok(self.objects.all.push(Object::ValueSet(set, keys)))
    }

    fn value_set_fields(
        &self,
        ty: Ty,
        prefix: &str,
        kind: ir::MatchKind,
        list: &mut Vec<(String, u32, ir::MatchKind)>,
        span: Span,
    ) -> Lower<()> {
        let types = &self.hir.types;
        if let Some(width) = crate::types::bit_width(types, ty) {
            let name = if prefix.is_empty() { "value" } else { prefix };
            list.push((name.to_owned(), width.max(1), kind));
            return Ok(());
        }
        let annotations: Vec<_> = match types.kind(ty) {
            TyKind::Struct(id) => types.structs[*id].fields.iter().map(|f| f.annotations.clone()).collect(),
            TyKind::Tuple(members) => vec![[].into(); members.len()],
            _ => return fail(code::PLACE, span, "a value set holds numbers or structures of numbers"),
        };
        for ((name, ty), annotations) in crate::types::members(types, ty).into_iter().zip(annotations) {
            let name = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
            let kind = match_annotation(&annotations).unwrap_or(kind);
            self.value_set_fields(ty, &name, kind, list, span)?;
        }
        Ok(())
    }

    /// What a variable of a block starts with, if that is known.
    pub(crate) fn remember_initial(&mut self, block: Option<ObjectId>, var: VarId, init: &hir::Expr) {
        if let Ok(value) = self.known_value(init, block)
            && let Some(block) = block.and_then(|b| self.objects.block_mut(b))
        {
            block.initial.insert(var, value);
        }
    }
}

/// `@match(ternary)` on a field of a value set.
fn match_annotation(annotations: &[millrace_syntax::ast::Annotation]) -> Option<ir::MatchKind> {
    use millrace_syntax::ast::AnnotationBody;
    let annotation = annotations.iter().find(|a| crate::names::is_called(a, "match"))?;
    let AnnotationBody::Tokens(tokens) = &annotation.body else { return None };
    crate::table::match_kind(&tokens.first()?.text)
}
