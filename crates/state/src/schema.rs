//! What never changes about the objects of one program.

use crate::WriteError;
use crate::pack;
use millrace_pipeline::entity::{PrimaryMap, SecondaryMap};
use millrace_pipeline::*;
use millrace_tables as tables;
use std::sync::Arc;

/// A program with the widths of its keys and arguments.
#[derive(Debug)]
pub struct Schema {
    pub(crate) program: Arc<Program>,
    /// Widths of the key fields of each table.
    pub(crate) keys: PrimaryMap<TableId, Vec<u32>>,
    /// Widths of the parameters of each action.
    pub(crate) params: SecondaryMap<ActionId, Vec<u32>>,
}

impl Schema {
    /// That of a program.
    pub fn new(program: Arc<Program>) -> Schema {
        let mut keys = PrimaryMap::new();
        for table in program.tables.values() {
            keys.push(table.keys.iter().map(|key| width(key.value.ty(&program))).collect());
        }
        let mut params = SecondaryMap::new();
        for (id, action) in &program.actions {
            params[id] = action.params.iter().map(|slot| width(program.slots[*slot].ty)).collect();
        }
        Schema { program, keys, params }
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The widths of the key fields of a table in bits.
    pub fn key_widths(&self, table: TableId) -> &[u32] {
        &self.keys[table]
    }

    /// The widths of the parameters of an action in bits; a truth value has 1.
    pub fn param_widths(&self, action: ActionId) -> &[u32] {
        &self.params[action]
    }

    /// The arguments of a call that a table keeps.
    pub(crate) fn args_of(&self, id: TableId, call: &tables::ActionCall) -> Vec<Bits> {
        match self.program.tables[id].actions.get(call.action as usize) {
            Some(action) => pack::unpack(&self.params[action.action], &call.data),
            None => Vec::new(),
        }
    }

    /// Where an action stands in a table's list: itself, or the action of its name.
    pub(crate) fn action_in_table(&self, id: TableId, action: ActionId) -> Option<usize> {
        let actions = &self.program.tables[id].actions;
        let itself = actions.iter().position(|listed| listed.action == action);
        itself.or_else(|| {
            let name = &self.program.actions[action].name;
            actions.iter().position(|listed| self.program.actions[listed.action].name == *name)
        })
    }

    /// The profile of a table.
    ///
    /// # Errors
    /// The table has none.
    pub(crate) fn profile_of(&self, table: TableId) -> Result<ProfileId, WriteError> {
        self.program.tables[table].profile.ok_or(WriteError::NoProfile)
    }

    /// The tables that use a profile.
    pub(crate) fn users(&self, profile: ProfileId) -> Vec<TableId> {
        let users = self.program.tables.iter().filter(|(_, table)| table.profile == Some(profile));
        users.map(|(id, _)| id).collect()
    }

    /// The hash of a selector over its inputs, cut to the bits that count.
    pub(crate) fn selector_hash(&self, profile: ProfileId, inputs: &[Bits]) -> u64 {
        let Some(selector) = &self.program.profiles[profile].selector else { return 0 };
        let mut writer = bits::BitWriter::new();
        inputs.iter().for_each(|input| writer.push(input));
        let hash = selector.algorithm.compute(&writer.finish());
        if selector.width < 64 { hash & ((1 << selector.width) - 1) } else { hash }
    }

    /// The arguments of an action, packed, when there are as many as parameters and each has its width.
    pub(crate) fn pack_args(&self, action: ActionId, args: &[Bits]) -> Result<Vec<u8>, WriteError> {
        let (name, params) = (&self.program.actions[action].name, &self.program.actions[action].params);
        let param_name = |slot: &SlotId| short(&self.program.slots[*slot].name).to_owned();
        if args.len() != params.len() {
            return Err(WriteError::ArgCount {
                action: name.clone(),
                params: params.iter().map(param_name).collect(),
                found: args.len(),
            });
        }
        for ((slot, width), arg) in params.iter().zip(&self.params[action]).zip(args) {
            if arg.width() != *width {
                return Err(WriteError::ArgWidth {
                    action: name.clone(),
                    param: param_name(slot),
                    width: *width,
                    found: arg.width(),
                });
            }
        }
        Ok(pack::pack(args))
    }
}

/// The bits of a value in a key or in action data: a truth value has 1.
pub(crate) fn width(ty: Type) -> u32 {
    match ty {
        Type::Bool => 1,
        Type::Bits(width) | Type::Varbit(width) => width,
    }
}

/// The last part of a dotted name.
pub(crate) fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
