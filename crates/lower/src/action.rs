//! Actions that tables run: bodies of their own. A table that binds arguments to parameters gets a copy of the action.

use millrace_pipeline::{self as ir, BodyKind, Home};
use millrace_sema::hir::{ActionId, ActionRef, Direction, VarKind};

use crate::code::Alias;
use crate::code::Code;
use crate::fail::{Lower, code, fail};
use crate::names::control_plane_name;
use crate::objects::Binding;
use crate::storage::Storage;

/// An action in the list of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundAction {
    /// In the typed program.
    pub(crate) hir: ActionId,
    /// In the IR.
    pub(crate) id: ir::ActionId,
}

impl<'a> Code<'_, 'a> {
    /// An action for the list of a table.
    pub(crate) fn table_action(&mut self, reference: &'a ActionRef) -> Lower<BoundAction> {
        let id = reference.action;
        let hir = self.cx.hir;
        let bound =
            hir.actions[id].params.iter().any(|p| hir.vars[*p].kind != VarKind::Param(Direction::None));
        // Actions of a table that learns may change that table.
        let own = bound || self.is_learning();
        if let (Some(lowered), false) = (self.known_action(id), own) {
            return Ok(BoundAction { hir: id, id: lowered });
        }
        let lowered = self.lower_action(reference)?;
        if !own {
            self.remember_action(id, lowered);
        }
        Ok(BoundAction { hir: id, id: lowered })
    }

    /// Actions without bound arguments are shared by the tables of one block, those of the top level by all.
    fn known_action(&self, id: ActionId) -> Option<ir::ActionId> {
        match self.cx.hir.actions[id].control {
            Some(_) => self.cx.objects.block(self.scope()?)?.actions.get(&id).copied(),
            None => self.cx.global_actions.get(&id).copied(),
        }
    }

    fn remember_action(&mut self, id: ActionId, lowered: ir::ActionId) {
        match self.cx.hir.actions[id].control {
            Some(_) => {
                if let Some(block) = self.scope().and_then(|o| self.cx.objects.block_mut(o)) {
                    block.actions.insert(id, lowered);
                }
            }
            None => {
                self.cx.global_actions.insert(id, lowered);
            }
        }
    }

    fn lower_action(&mut self, reference: &'a ActionRef) -> Lower<ir::ActionId> {
        let hir = self.cx.hir;
        let action = &hir.actions[reference.action];
        let owner = self.scope();
        let prefix = match (action.control, owner.and_then(|o| self.cx.objects.block(o))) {
            (Some(_), Some(block)) => block.path.as_str(),
            _ => "",
        };
        let name = control_plane_name(prefix, &action.name, &action.annotations);
        // The body's name is unique, and so are the names of the parameters after it.
        let unique = self.cx.object_name("action", &name);
        let mut params = Vec::new();
        let (mut code, end) = Code::new(self.cx, &unique, BodyKind::Action, owner, action.span);
        let (bound, data): (Vec<_>, Vec<_>) =
            action.params.iter().copied().partition(|p| hir.vars[*p].kind != VarKind::Param(Direction::None));
        for var in data {
            let declared = &hir.vars[var];
            // `@name` of a parameter is its name in P4Info, so clients give arguments by it.
            let local = control_plane_name("", &declared.name, &declared.annotations);
            let name = format!("{unique}.{local}");
            let storage = code.cx.allocate(declared.ty, &name, Home::Local, declared.span)?;
            if !is_plain(&storage, code.cx.ir.program()) {
                return fail(
                    crate::fail::code::PLACE,
                    declared.span,
                    "the control plane cannot give a value of this type",
                );
            }
            storage.for_each_slot(&mut |slot| params.push(slot));
            code.bind_var(var, Binding::Storage(storage));
        }
        let alias = Alias::Except(code.cx.mentions(reference.action));
        let bindings = code.bind(&bound, &reference.args, &alias, None)?;
        code.open(bindings);
        code.begin_action(action)?;
        code.stmts(&action.body)?;
        code.body.goto(end);
        code.close(end)?;
        let body = code.finish()?;
        Ok(self.cx.ir.action(&name, params, body))
    }

    /// The action that does nothing.
    pub(crate) fn no_action(&mut self) -> Lower<BoundAction> {
        let hir = self.cx.hir;
        let declared = hir.actions.iter().find(|(_, a)| a.name == "NoAction" && a.control.is_none());
        let Some((id, action)) = declared else {
            return fail(code::PLACE, self.span, "the action `NoAction` is not declared; include <core.p4>");
        };
        if let Some(lowered) = self.known_action(id) {
            return Ok(BoundAction { hir: id, id: lowered });
        }
        let owner = self.scope();
        let (mut code, end) = Code::new(self.cx, "NoAction", BodyKind::Action, owner, action.span);
        code.body.goto(end);
        code.close(end)?;
        let body = code.finish()?;
        let lowered = self.cx.ir.action("NoAction", Vec::new(), body);
        self.remember_action(id, lowered);
        Ok(BoundAction { hir: id, id: lowered })
    }
}

/// Whether the control plane can give the value of a parameter: numbers and truth values, also in structures.
fn is_plain(storage: &Storage, program: &ir::Program) -> bool {
    match storage {
        Storage::Unit => true,
        Storage::Scalar(slot) => !matches!(program.slots[*slot].ty, ir::Type::Varbit(_)),
        Storage::Struct(members) => members.iter().all(|p| is_plain(p, program)),
        _ => false,
    }
}
