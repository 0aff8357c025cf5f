//! Where the time of a forwarding thread goes, by part of the program and of the switch.

use crate::forwarder::Forwarder;
use millrace_engine::{Mark, Samples};
use millrace_midend::Site;
use std::collections::BTreeMap;

impl Forwarder {
    /// The samples by part: `parser`, `table NAME`, `action NAME`, `control`, `deparser`, `replication`, `burst` (frames to
    /// and from the code, ports and counters) and `driver`.
    pub(crate) fn parts(&self, samples: &Samples) -> BTreeMap<String, u64> {
        let mut parts = BTreeMap::new();
        for (offset, count) in &samples.in_code {
            let name = match self.engines.site(*offset) {
                Site::Parser => "parser".to_owned(),
                Site::Control => "control".to_owned(),
                Site::Deparser => "deparser".to_owned(),
                Site::Table(table) => match self.program.tables.get(table) {
                    Some(table) => format!("table {}", table.name),
                    None => "control".to_owned(),
                },
                Site::Action(action) => match self.program.actions.get(action) {
                    Some(action) => format!("action {}", action.name),
                    None => "control".to_owned(),
                },
                Site::Glue => "burst".to_owned(),
            };
            *parts.entry(name).or_default() += count;
        }
        for (mark, count) in &samples.elsewhere {
            let name = match mark {
                Mark::Driver => "driver",
                Mark::Burst => "burst",
                Mark::Replication => "replication",
            };
            *parts.entry(name.to_owned()).or_default() += count;
        }
        parts
    }
}
