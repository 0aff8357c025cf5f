//! Where the time of a forwarding thread goes, by part of the program and of the switch.

use crate::switch::Switch;
use millrace_jit::sampling::{Mark, Sampler, Samples};
use millrace_jit::{Site, Statistics};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

impl Switch {
    /// What compiling took so far, and gave; nothing where there is no compiled code.
    pub fn compile_statistics(&self) -> Statistics {
        self.engine.jit.as_ref().map(|jit| jit.statistics()).unwrap_or_default()
    }

    /// Whether the lookups of tables are counted.
    pub fn counts_lookups(&self) -> bool {
        self.engine.jit.as_ref().is_none_or(|jit| jit.count_lookups)
    }

    /// Starts to sample what the calling thread does, that often.
    ///
    /// # Errors
    /// What the operating system says; [`io::ErrorKind::Unsupported`] where there is no compiled code for bursts, or
    /// sampling is not written for the machine.
    pub fn sample(&self, interval: Duration) -> io::Result<Sampler> {
        let ahead = self.engine.jit.as_ref().and_then(|jit| jit.ahead.as_ref());
        ahead.ok_or(io::ErrorKind::Unsupported)?.code.sampler(interval)
    }

    /// The samples by part: `parser`, `table NAME`, `action NAME`, `control`, `deparser`, `replication`, `burst` (frames to
    /// and from the code, ports and counters) and `driver`.
    pub fn parts(&self, samples: &Samples) -> BTreeMap<String, u64> {
        let mut parts = BTreeMap::new();
        let ahead = self.engine.jit.as_ref().and_then(|jit| jit.ahead.as_ref());
        for (offset, count) in &samples.in_code {
            let site = ahead.map_or(Site::Glue, |ahead| ahead.code.site(*offset));
            let name = match site {
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
