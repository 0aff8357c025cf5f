//! A program that runs, as clients name what it has.

use super::handles::Handles;
use md5::{Digest, Md5};
use millrace_describe::image;
use millrace_pipeline::{ActionId, Program, TableId};
use millrace_state::{Schema, TablesHandle};
use millrace_thrift_api::{InvalidTableOperation, TableCode};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The program that runs at the time of a call.
pub(super) struct Running {
    pub(super) loaded: Arc<Loaded>,
    pub(super) tables: TablesHandle,
    pub(super) now_ns: u64,
}

/// What is known of a program for as long as it runs.
pub(super) struct Loaded {
    pub(super) program: Arc<Program>,
    tables: HashMap<String, TableId>,
    schema: Schema,
    json: OnceLock<String>,
    handles: Mutex<Handles>,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded").field("program", &self.program.name).finish_non_exhaustive()
    }
}

impl Loaded {
    pub(super) fn new(program: Arc<Program>, json: Option<String>) -> Loaded {
        let loaded = Loaded {
            tables: program.tables.iter().map(|(id, table)| (table.name.clone(), id)).collect(),
            schema: Schema::new(Arc::clone(&program)),
            json: OnceLock::new(),
            handles: Mutex::default(),
            program,
        };
        if let Some(json) = json {
            // Nobody else has it yet.
            let _ = loaded.json.set(json);
        }
        loaded
    }

    /// The description of the program in bmv2's layout, and the program itself.
    pub(super) fn json(&self) -> &str {
        self.json.get_or_init(|| image::text_without_p4info(&self.program))
    }

    /// The MD5 sum of the description.
    pub(super) fn md5(&self) -> Vec<u8> {
        Md5::digest(self.json()).to_vec()
    }

    /// A table.
    pub(super) fn table(&self, name: &str) -> Result<TableId, InvalidTableOperation> {
        self.tables.get(name).copied().ok_or(TableCode::InvalidTableName.into())
    }

    /// The widths of a table's key fields in bits.
    pub(super) fn key_widths(&self, table: TableId) -> &[u32] {
        self.schema.key_widths(table)
    }

    /// The widths of an action's parameters in bits.
    pub(super) fn param_widths(&self, action: ActionId) -> &[u32] {
        self.schema.param_widths(action)
    }

    /// The handles of entries. Not to be asked for while the tables are locked.
    pub(super) fn handles(&self) -> MutexGuard<'_, Handles> {
        lock(&self.handles)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
