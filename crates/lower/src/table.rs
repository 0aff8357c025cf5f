//! Tables: keys, the list of actions, the default, sizes. A table is lowered when it is applied first; its key is
//! evaluated by the application itself when it is pure, and before it otherwise.

use foldhash::{HashSet, HashSetExt};
use millrace_pipeline::SourceKind;
use millrace_pipeline::{self as ir, ActionScope, Expr, MatchKind, SlotId, Type};
use millrace_sema::hir::{self, ActionId, ActionRef, TableId};
use num_traits::ToPrimitive;
use std::rc::Rc;

use crate::action::BoundAction;
use crate::arch::learning::{self, Learned};
use crate::code::Code;
use crate::fail::{Lower, code, fail, internal};
use crate::names::{control_plane_name, has_annotation};
use crate::types;
use crate::value::Value;

/// A table that was applied at least once.
pub(crate) struct TableState {
    /// In the IR.
    pub(crate) id: ir::TableId,
    /// What its list of actions names, in order: what an action index means.
    pub(crate) actions: Vec<ActionId>,
    /// What it learns from packets, if it does.
    pub(crate) learned: Option<Rc<Learned>>,
    /// Where the key is put before each application, if evaluating it takes code.
    prepared: Option<Vec<SlotId>>,
}

/// The match kind with that name, but for `selector`.
pub(crate) fn match_kind(name: &str) -> Option<MatchKind> {
    Some(match name {
        "exact" => MatchKind::Exact,
        "lpm" => MatchKind::Lpm,
        "ternary" => MatchKind::Ternary,
        "range" => MatchKind::Range,
        "optional" => MatchKind::Optional,
        _ => return None,
    })
}

impl<'a> Code<'_, 'a> {
    /// A table of the block at hand, ready to be applied here.
    pub(crate) fn table(&mut self, id: TableId) -> Lower<Rc<TableState>> {
        let hir = self.cx.hir;
        let table = &hir.tables[id];
        let Some(scope) = self.scope() else { return internal(table.span, "a table outside a control") };
        let known = self.cx.objects.block(scope).and_then(|b| b.tables.get(&id)).cloned();
        match known {
            Some(state) => {
                if let Some(slots) = &state.prepared {
                    for (value, slot) in self.key_values(table)?.into_iter().zip(slots) {
                        self.assign(*slot, value);
                    }
                }
                Ok(state)
            }
            None => {
                let state = Rc::new(self.lower_table(table)?);
                if let Some(block) = self.cx.objects.block_mut(scope) {
                    block.tables.insert(id, state.clone());
                }
                Ok(state)
            }
        }
    }

    fn key_values(&mut self, table: &'a hir::Table) -> Lower<Vec<Expr>> {
        let values = self.eval_all(table.keys.iter().map(|k| &k.expr))?;
        let mut list = Vec::with_capacity(values.len());
        for (value, key) in values.into_iter().zip(&table.keys) {
            let value = match value {
                Value::Scalar(e) => e,
                Value::Unit => Expr::bits(1, 0),
                Value::Int(n) => Expr::Const(ir::Bits::from_bigint(self.width(key.expr.ty), &n)),
                _ => return internal(key.span, "a key must be a scalar"),
            };
            list.push(match self.type_of(&value) {
                Type::Bool => value.bool_to_bits(),
                Type::Bits(_) => value,
                Type::Varbit(_) => {
                    return fail(code::PLACE, key.span, "a `varbit` cannot be matched by a table");
                }
            });
        }
        Ok(list)
    }

    fn lower_table(&mut self, table: &'a hir::Table) -> Lower<TableState> {
        let path = self.scope().and_then(|s| self.cx.objects.block(s)).map_or("", |b| b.path.as_str());
        let name = control_plane_name(path, &table.name, &table.annotations);
        let name = self.cx.object_name("table", &name);
        let before = self.mark();
        let mut values = self.key_values(table)?;
        let mut prepared = None;
        let learns = self.table_learns(table)?;
        if self.mark() != before || learns {
            let mut slots = Vec::with_capacity(values.len());
            for (value, key) in values.iter_mut().zip(&table.keys) {
                let ty = self.type_of(value);
                let slot = self.cx.ir.metadata(&format!("{name}.key.{}", key.name), ty);
                let computed = std::mem::replace(value, Expr::Read(slot));
                self.assign(slot, computed);
                slots.push(slot);
            }
            prepared = Some(slots);
        }
        let default = ir::ActionCall { action: 0, args: Vec::new() };
        let mut lowered = ir::Table {
            const_default: table.const_default,
            const_entries: table.const_entries && !table.entries.is_empty(),
            ..ir::Table::new(name, Vec::new(), Vec::new(), default, self.table_size(table)?)
        };
        for (value, key) in values.into_iter().zip(&table.keys) {
            match match_kind(&key.match_kind) {
                Some(MatchKind::Lpm) if lowered.keys.iter().any(|k| k.kind == MatchKind::Lpm) => {
                    let message = "a table has at most one `lpm` key: which prefix would be the longest?";
                    return fail(code::ARCHITECTURE, key.span, message);
                }
                Some(kind) => lowered.keys.push(ir::TableKey { name: key.name.clone(), value, kind }),
                None if key.match_kind == "selector" => lowered.selector_inputs.push(value),
                None => {
                    let kind = &key.match_kind;
                    return fail(
                        code::ARCHITECTURE,
                        key.span,
                        format!("the architecture does not know the match kind `{kind}`"),
                    );
                }
            }
        }
        self.table_properties(table, &mut lowered)?;
        let learned = match &prepared {
            Some(key) if learns => {
                Some(learning::create(self, table, &lowered.name, lowered.size, key.clone())?)
            }
            _ => None,
        };
        let around = learning::enter(self, learned.clone());
        let mut actions = self.table_actions(table, &mut lowered)?;
        learning::enter(self, around);
        lowered.entries = self.entries(table, &lowered, &actions)?;
        let n = lowered.entries.len() as u64;
        lowered.size = lowered.size.max(n);
        // Without a selector there is nothing to select with them.
        let profile = lowered.profile.map(|id| &self.cx.ir.program().profiles[id]);
        match profile.is_some_and(|p| p.selector.is_some()) {
            true => lowered.empty_group = Some(self.empty_group(table, &mut lowered, &mut actions)?),
            false => lowered.selector_inputs.clear(),
        }
        self.cx.sites.stands(SourceKind::Table, &lowered.name, table.span);
        let id = self.cx.ir.program_mut().tables.push(lowered);
        Ok(TableState { id, actions: actions.into_iter().map(|a| a.hir).collect(), learned, prepared })
    }

    fn table_size(&mut self, table: &'a hir::Table) -> Lower<u64> {
        let Some(size) = &table.size else { return Ok(self.default_table_size()) };
        let number = self.cx.constant_number(size, self.scope())?;
        match number.to_u64() {
            Some(n) if n <= ir::limits::MAX_TABLE_SIZE => Ok(n),
            _ => {
                let limit = ir::limits::MAX_TABLE_SIZE;
                fail(code::LIMIT, size.span, format!("the size of a table is 0 to {limit}, not {number}"))
            }
        }
    }

    /// The actions of a table, and what runs at a miss.
    fn table_actions(&mut self, table: &'a hir::Table, lowered: &mut ir::Table) -> Lower<Vec<BoundAction>> {
        let mut actions: Vec<BoundAction> = Vec::new();
        let mut listed = HashSet::new();
        for reference in &table.actions {
            if !listed.insert(reference.action) {
                continue;
            }
            let action = self.table_action(reference)?;
            let scope = match () {
                () if has_annotation(&reference.annotations, "tableonly") => ActionScope::TableOnly,
                () if has_annotation(&reference.annotations, "defaultonly") => ActionScope::DefaultOnly,
                () => ActionScope::Both,
            };
            lowered.actions.push(ir::TableAction { action: action.id, scope });
            actions.push(action);
        }
        match &table.default_action {
            Some(default) => {
                if !actions.iter().any(|a| a.hir == default.action) {
                    let action = self.table_action(default)?;
                    lowered
                        .actions
                        .push(ir::TableAction { action: action.id, scope: ActionScope::DefaultOnly });
                    actions.push(action);
                }
                lowered.default = self.action_call(default, &actions)?;
            }
            None => lowered.default = self.do_nothing(lowered, &mut actions)?,
        }
        Ok(actions)
    }

    /// What runs for an entry whose group is empty: what the program says (PSA), or nothing.
    fn empty_group(
        &mut self,
        table: &'a hir::Table,
        lowered: &mut ir::Table,
        actions: &mut Vec<BoundAction>,
    ) -> Lower<ir::ActionCall> {
        match &table.empty_group_action {
            Some(action) => self.action_call(action, actions),
            None => self.do_nothing(lowered, actions),
        }
    }

    /// `NoAction`, which is added to the list if it is not there. Another action of its name stands for it if that does
    /// nothing, too: p4c writes `@name(".NoAction") action NoAction_1() {}` into programs that it prints.
    fn do_nothing(
        &mut self,
        lowered: &mut ir::Table,
        actions: &mut Vec<BoundAction>,
    ) -> Lower<ir::ActionCall> {
        let no_action = self.no_action()?;
        let known = &self.cx.ir.program().actions;
        let name = &known[no_action.id].name;
        let at = match actions.iter().position(|a| known[a.id].name == *name) {
            Some(at) => {
                let listed = &self.cx.hir.actions[actions[at].hir];
                if !(listed.params.is_empty() && listed.body.is_empty()) {
                    let message = "the name `NoAction` is taken by an action that does something: a table that lists this one \
                                   needs that of core.p4, too";
                    return fail(code::PLACE, listed.span, message);
                }
                at
            }
            None => {
                lowered
                    .actions
                    .push(ir::TableAction { action: no_action.id, scope: ActionScope::DefaultOnly });
                actions.push(no_action);
                actions.len() - 1
            }
        };
        Ok(ir::ActionCall { action: at, args: Vec::new() })
    }

    /// An action with its data, as default or in an entry.
    pub(crate) fn action_call(
        &mut self,
        reference: &'a ActionRef,
        actions: &[BoundAction],
    ) -> Lower<ir::ActionCall> {
        let Some(at) = actions.iter().position(|a| a.hir == reference.action) else {
            return internal(reference.span, "an action that the table does not list");
        };
        let hir = self.cx.hir;
        let params = &hir.actions[reference.action].params;
        let mut args = Vec::new();
        for (param, arg) in params.iter().zip(&reference.args) {
            let declared = &hir.vars[*param];
            if declared.kind != hir::VarKind::Param(hir::Direction::None) {
                continue;
            }
            let Some(value) = &arg.value else {
                return internal(reference.span, "an argument is missing");
            };
            let value = self.cx.must_be_constant(value, self.scope())?;
            self.cx.constant_scalars(&value, declared.ty, &mut args);
        }
        Ok(ir::ActionCall { action: at, args })
    }

    /// The width of a key.
    pub(crate) fn key_width(&self, key: &hir::Key) -> u32 {
        types::bit_width(&self.cx.hir.types, key.expr.ty).unwrap_or(1).max(1)
    }
}
