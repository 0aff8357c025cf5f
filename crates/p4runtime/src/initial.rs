//! The entries that a program comes with, as a controller would write them.

use crate::catalog::Catalog;
use crate::read::program_entry;
use millrace_chassis::Pipeline;
use millrace_describe::image::Image;
use millrace_messages::json;
use millrace_messages::text::{Style, write};
use millrace_p4runtime_api::v1::entity::Entity as Kind;
use millrace_p4runtime_api::v1::{Entity, Update, WriteRequest, update};
use prost::Message;
use std::sync::Arc;

/// A request that would write them.
#[derive(Clone, Debug, PartialEq)]
pub struct InitialEntries(WriteRequest);

impl InitialEntries {
    /// Those of a program, table by table.
    ///
    /// # Errors
    /// What is wrong with the program's description.
    pub fn of(image: &Image) -> Result<InitialEntries, String> {
        let pipeline = Pipeline::new(image.clone(), Vec::new())?;
        let state = millrace_dataplane::State::new(Arc::clone(&pipeline.program));
        let state = state.map_err(|error| error.to_string())?;
        let catalog = Catalog::new(&pipeline, &state);
        let tables = state.tables();
        let mut updates = Vec::new();
        for (_, table) in catalog.tables.iter() {
            let entries = tables.entries(table.table).filter_map(|view| program_entry(&catalog, table, view));
            updates.extend(entries.map(|entry| Update {
                r#type: update::Type::Insert.into(),
                entity: Some(Entity { entity: Some(Kind::TableEntry(entry)) }),
            }));
        }
        Ok(InitialEntries(WriteRequest { updates, ..WriteRequest::default() }))
    }

    /// In protobuf's binary form.
    pub fn to_binary(&self) -> Vec<u8> {
        self.0.encode_to_vec()
    }

    /// In protobuf's text form.
    pub fn to_text(&self) -> String {
        match write(&self.0, Style::Brackets) {
            text if text.is_empty() => "\n".into(),
            text => text,
        }
    }

    /// In protobuf's JSON form.
    ///
    /// # Errors
    /// As [`json::write`] says; entries of tables have nothing that has no JSON form.
    pub fn to_json(&self) -> Result<String, String> {
        json::write(&self.0)
    }
}
