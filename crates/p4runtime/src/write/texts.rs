//! Numbers of texts that nothing holds any more are given to other texts, when there are none left.

use super::CHUNK;
use crate::catalog::{Catalog, FieldInfo};
use crate::forwarding::Loaded;
use crate::refusal::Refusal;
use crate::translation::{Codec, Numbers};
use millrace_dataplane::{ObjectRequest, Request};
use millrace_pipeline::{ActionId, Bits, EntryMatch};
use millrace_state::{EntryIndex, Target};
use std::sync::Arc;

/// Entries and members that are looked at while tables are kept from others.
const PART: usize = 4 * CHUNK;

/// What is held, by type.
struct Held<'a> {
    catalog: &'a Catalog,
    numbers: Numbers,
}

impl Held<'_> {
    fn value(&mut self, codec: &Codec, value: &Bits) {
        if let Some(name) = codec.text_of() {
            self.numbers.entry(name.to_owned()).or_default().insert(value.clone());
        }
    }

    fn matches(&mut self, fields: &[FieldInfo], matches: &[EntryMatch]) {
        for (field, given) in fields.iter().zip(matches) {
            // A text is matched as a whole or not at all.
            if let EntryMatch::Exact(value) | EntryMatch::Optional(Some(value)) = given {
                self.value(&field.codec, value);
            }
        }
    }

    fn call(&mut self, id: Option<u32>, args: &[Bits]) {
        let action = id.and_then(|id| self.catalog.actions.get(&id));
        for (param, value) in action.iter().flat_map(|action| &action.params).zip(args) {
            self.value(&param.codec, value);
        }
    }
}

/// Frees the numbers that no entry, default entry, member or value set of a program has.
pub(super) async fn free(catalog: &Catalog, loaded: &Loaded) -> Result<(), tonic::Status> {
    let mut held = Held { catalog, numbers: Numbers::new() };
    let handle = loaded.target.tables().await?;
    for (_, table) in catalog.tables.iter() {
        let default = handle.lock().default_action(table.table);
        held.call(table.action_ids.get(default.action).copied(), &default.args);
        let mut from = Some(EntryIndex(0));
        while let Some(start) = from {
            let (views, next) = handle.lock().entries_from(table.table, start, PART as u32);
            for view in views {
                held.matches(&table.fields, &view.matches);
                if let Target::Action(call) = &view.target {
                    held.call(table.action_ids.get(call.action).copied(), &call.args);
                }
            }
            from = next;
            tokio::task::yield_now().await;
        }
    }
    for (_, profile) in catalog.profiles.iter() {
        let id_of =
            |action: ActionId| profile.actions.iter().find(|(_, own)| **own == action).map(|(id, _)| *id);
        let mut next = Some(0);
        while let Some(from) = next {
            let part: Vec<_> = handle.lock().members_from(profile.profile, from).take(PART).collect();
            for (_, member) in &part {
                held.call(id_of(member.action), &member.args);
            }
            next = part.last().filter(|_| part.len() == PART).and_then(|(last, _)| last.checked_add(1));
            tokio::task::yield_now().await;
        }
    }
    for (_, set) in catalog.value_sets.iter() {
        let program = Arc::clone(&catalog.program);
        let ask = |to| Request::Objects(program, ObjectRequest::Values(set.set, to));
        for member in loaded.target.ask(ask).await?.map_err(Refusal::from)? {
            held.matches(&set.fields, &member);
        }
    }
    let numbers = held.numbers;
    catalog.keep_texts(&numbers);
    Ok(())
}
