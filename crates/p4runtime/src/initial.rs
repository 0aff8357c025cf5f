//! The entries that a program comes with, as a controller would write them.

use crate::Pipeline;
use crate::catalog::Catalog;
use crate::p4info::definition;
use crate::proto::v1::entity::Entity as Kind;
use crate::proto::v1::{Entity, Update, WriteRequest, update};
use crate::read::program_entry;
use millrace_control::image::Image;
use prost::Message;
use prost_reflect::DynamicMessage;
use prost_reflect::text_format::FormatOptions;
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
        let state = millrace_switch::State::new(Arc::clone(&pipeline.program));
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
    ///
    /// # Errors
    /// The definitions are damaged.
    pub fn to_text(&self) -> Result<String, String> {
        Ok(self.dynamic()?.to_text_format_with_options(&FormatOptions::new().pretty(true)) + "\n")
    }

    /// In protobuf's JSON form.
    ///
    /// # Errors
    /// The definitions are damaged.
    pub fn to_json(&self) -> Result<String, String> {
        serde_json::to_string_pretty(&self.dynamic()?).map_err(|error| error.to_string())
    }

    fn dynamic(&self) -> Result<DynamicMessage, String> {
        let kind = definition("p4.v1.WriteRequest")?;
        DynamicMessage::decode(kind, &*self.to_binary()).map_err(|error| error.to_string())
    }
}
