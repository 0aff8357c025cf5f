//! Names: what each one means at a place in the program.
//!
//! A name is visible from its declaration on (specification, "Name resolution"). Declarations at the top level carry the
//! number of their place, so that the body of a generic declaration can be read again later and still sees only what stood
//! before it.

use crate::hir::{ActionId, Expr, ExternId, InstanceId, PackageId, TableId, Ty, VarId};
use crate::hir::{BlockTypeId, ExternFunctionId};
use foldhash::HashMap;
use millrace_syntax::Span;
use millrace_syntax::ast::Text;
use std::rc::Rc;

/// The number of a place among the declarations of the top level.
pub(crate) type Mark = u32;

/// What a name means.
#[derive(Clone, Debug)]
pub(crate) enum Entity {
    /// A variable or parameter.
    Var(VarId),
    /// A constant with its folded value.
    Const(Rc<Expr>),
    /// An instance.
    Instance(InstanceId),
    /// A table.
    Table(TableId),
    /// An action.
    Action(ActionId),
    /// A function, one of several with this name.
    Function(FunctionRef),
    /// A member of `match_kind`.
    MatchKind(usize),
    /// A type.
    Type(TypeEntity),
    /// Something whose declaration has errors: uses of it are silent.
    Broken,
}

impl Entity {
    /// What it is, for messages.
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Self::Var(_) => "variable",
            Self::Const(_) => "constant",
            Self::Instance(_) => "instance",
            Self::Table(_) => "table",
            Self::Action(_) => "action",
            Self::Function(_) => "function",
            Self::MatchKind(_) => "match kind",
            Self::Type(_) => "type",
            Self::Broken => "damaged declaration",
        }
    }
}

/// A function that a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FunctionRef {
    /// An extern function.
    Extern(ExternFunctionId),
    /// A function with a body: an index in the declarations.
    Plain(usize),
}

/// A type that a name means.
#[derive(Clone, Debug)]
pub(crate) enum TypeEntity {
    /// A type that needs no arguments.
    Known(Ty),
    /// A structure with type parameters: an index in the declarations.
    Struct(usize),
    /// An extern object, generic or not.
    Extern(ExternId),
    /// A parser or control with type parameters: an index in the declarations.
    Block(usize),
    /// A parser type or control type, generic or not.
    BlockType(BlockTypeId),
    /// A package, generic or not.
    Package(PackageId),
}

#[derive(Clone, Debug)]
struct Global {
    mark: Mark,
    entity: Entity,
    span: Span,
}

/// One block of local names.
#[derive(Clone, Debug, Default)]
struct Local {
    names: HashMap<Text, (Entity, Span)>,
}

/// All names visible now.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    globals: HashMap<Text, Vec<Global>>,
    locals: Vec<Local>,
    now: Mark,
    visible: Mark,
}

/// What [`Scopes::leave_local_names`] put aside.
#[derive(Debug)]
pub(crate) struct Aside {
    locals: Vec<Local>,
    visible: Mark,
}

impl Scopes {
    /// The place of the declaration being read.
    pub(crate) fn mark(&self) -> Mark {
        self.visible
    }

    /// Whether names declared now are global.
    pub(crate) fn at_top_level(&self) -> bool {
        self.locals.is_empty()
    }

    /// Goes on to the next declaration of the top level.
    pub(crate) fn advance(&mut self) {
        self.now += 1;
        self.visible = self.now;
    }

    /// Looks from another place of the top level, without local names.
    pub(crate) fn leave_local_names(&mut self, mark: Mark) -> Aside {
        let aside = Aside { locals: std::mem::take(&mut self.locals), visible: self.visible };
        self.visible = mark;
        aside
    }

    /// Comes back from there.
    pub(crate) fn return_to(&mut self, aside: Aside) {
        self.locals = aside.locals;
        self.visible = aside.visible;
    }

    /// Opens a block.
    pub(crate) fn push(&mut self) {
        self.locals.push(Local::default());
    }

    /// Closes the innermost block.
    pub(crate) fn pop(&mut self) {
        self.locals.pop();
    }

    /// Declares a name in the innermost block, or at the top level. Gives the place of an earlier declaration in the
    /// same scope, which stays in force; functions may share a name at the top level.
    pub(crate) fn declare(&mut self, name: &Text, entity: Entity, span: Span) -> Result<(), Span> {
        if let Some(local) = self.locals.last_mut() {
            if let Some((_, earlier)) = local.names.get(name) {
                return Err(*earlier);
            }
            local.names.insert(name.clone(), (entity, span));
            return Ok(());
        }
        let mark = self.now;
        let all = self.globals.entry(name.clone()).or_default();
        let is_function = matches!(entity, Entity::Function(_));
        let clash = all.iter().find(|g| !(is_function && matches!(g.entity, Entity::Function(_))));
        if let Some(clash) = clash {
            return Err(clash.span);
        }
        all.push(Global { mark, entity, span });
        Ok(())
    }

    /// Declares one more global of a name that is taken.
    pub(crate) fn declare_overload(&mut self, name: &Text, entity: Entity, span: Span) {
        let mark = self.now;
        self.globals.entry(name.clone()).or_default().push(Global { mark, entity, span });
    }

    /// The types that a name means at the top level, in order of declaration.
    pub(crate) fn global_types(&self, name: &str) -> Vec<(TypeEntity, Span)> {
        let all = self.globals.get(name).map_or(&[][..], Vec::as_slice);
        let visible = all.iter().filter(|g| g.mark <= self.visible);
        visible
            .filter_map(|g| match &g.entity {
                Entity::Type(entity) => Some((entity.clone(), g.span)),
                _ => None,
            })
            .collect()
    }

    /// What a name means here, and where it was declared.
    pub(crate) fn lookup(&self, name: &str, absolute: bool) -> Option<(&Entity, Span)> {
        if !absolute {
            for local in self.locals.iter().rev() {
                if let Some((entity, span)) = local.names.get(name) {
                    return Some((entity, *span));
                }
            }
        }
        let all = self.globals.get(name)?;
        all.iter().rev().find(|g| g.mark <= self.visible).map(|g| (&g.entity, g.span))
    }

    /// Whether the scope just around the innermost one declares this name.
    pub(crate) fn in_enclosing_scope(&self, name: &str) -> bool {
        let around = self.locals.len().checked_sub(2).and_then(|i| self.locals.get(i));
        around.is_some_and(|l| l.names.contains_key(name))
    }

    /// What a name declared now in the innermost block hides: something of a block around, or a value of the top level.
    pub(crate) fn hidden_by(&self, name: &str) -> Option<(&Entity, Span)> {
        let (last, around) = self.locals.split_last()?;
        if last.names.contains_key(name) {
            return None;
        }
        if let Some((entity, span)) = around.iter().rev().find_map(|l| l.names.get(name)) {
            return (!matches!(entity, Entity::Type(_) | Entity::Broken)).then_some((entity, *span));
        }
        let (entity, span) = self.lookup(name, true)?;
        matches!(entity, Entity::Const(_) | Entity::Instance(_) | Entity::Action(_)).then_some((entity, span))
    }

    /// All functions that a name means here, in order of declaration; empty when it means something else.
    pub(crate) fn functions(&self, name: &str, absolute: bool) -> Vec<(FunctionRef, Span)> {
        match self.lookup(name, absolute) {
            Some((Entity::Function(_), _)) => {}
            _ => return Vec::new(),
        }
        let all = self.globals.get(name).map_or(&[][..], Vec::as_slice);
        all.iter()
            .filter(|g| g.mark <= self.visible)
            .filter_map(|g| match g.entity {
                Entity::Function(f) => Some((f, g.span)),
                _ => None,
            })
            .collect()
    }

    /// Every name visible here.
    pub(crate) fn visible_names(&self) -> impl Iterator<Item = &str> {
        let locals = self.locals.iter().flat_map(|l| l.names.keys());
        let globals = self.globals.iter().filter(|(_, all)| all.iter().any(|g| g.mark <= self.visible));
        locals.chain(globals.map(|(name, _)| name)).map(|t| &**t)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_declarations_are_not_visible_from_earlier_places() {
        let mut scopes = Scopes::default();
        let name: Text = "x".into();
        scopes.advance();
        let mark = scopes.mark();
        scopes.advance();
        scopes.declare(&name, Entity::Broken, Span::default()).unwrap();
        assert!(scopes.lookup("x", false).is_some());
        let aside = scopes.leave_local_names(mark);
        assert!(scopes.lookup("x", false).is_none());
        scopes.return_to(aside);
        assert!(scopes.declare(&name, Entity::Broken, Span::default()).is_err());
    }
}
