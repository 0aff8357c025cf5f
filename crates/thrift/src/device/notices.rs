//! What a device tells its subscribers.

use super::Device;
use super::loaded::Running;
use crate::notify::{self, Ageing, Idle, Learning, Publisher, Swap};
use millrace_dataplane::{DigestMessage, PortId};
use millrace_describe::bmv2;
use millrace_pipeline::Program;
use std::io;
use std::sync::Arc;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Notices {
    publisher: Arc<Publisher>,
    pub(super) learning: Learning,
    device_id: u64,
}

impl Notices {
    pub(super) fn start(publisher: Publisher, device_id: u64) -> io::Result<Notices> {
        let publisher = Arc::new(publisher);
        let learning = Learning::start(Arc::clone(&publisher), device_id)?;
        Ok(Notices { publisher, learning, device_id })
    }

    /// Looks for idle entries from now on.
    pub(crate) fn watch_entries(
        &self,
        idle: impl Fn() -> Option<Idle> + Send + 'static,
    ) -> io::Result<Ageing> {
        let publisher = Arc::clone(&self.publisher);
        let subscribed = Arc::clone(&self.publisher);
        // Nobody is told, so nothing needs to be looked for.
        let idle = move || if subscribed.has_subscribers() { idle() } else { Some(Idle::new()) };
        Ageing::start(publisher, self.device_id, idle)
    }

    pub(crate) fn address(&self) -> &str {
        self.publisher.address()
    }

    pub(crate) fn link(&self, port: PortId, is_up: bool) {
        self.publisher.publish(&notify::link(self.device_id, port, is_up));
    }

    pub(super) fn swap(&self, how: Swap) {
        self.publisher.publish(&notify::swap(self.device_id, how));
    }

    pub(crate) fn digest(&self, program: &Arc<Program>, digest: &DigestMessage) {
        self.learning.digest(program, digest);
    }
}

impl Device {
    /// The entries of the program that runs which were idle for longer than their timeouts; none: the switch has ended.
    pub(crate) fn idle_entries(&self) -> Option<Idle> {
        // What waits to take over has had no packets.
        if self.waiting().is_some() {
            return Some(Idle::new());
        }
        let Running { loaded, tables, now_ns } = self.running().ok()?;
        let mut idle = Idle::new();
        let program = &loaded.program;
        for (id, table) in program.tables.iter().filter(|(_, table)| table.idle_timeout) {
            let Some(number) = bmv2::id(program, bmv2::Resource::Table, &table.name) else { continue };
            let Ok(number) = i32::try_from(number) else { continue };
            let mut handles = loaded.handles();
            let tables = tables.lock();
            let entries: Vec<_> = tables.expired(id, now_ns).collect();
            idle.push((number, entries.iter().map(|entry| handles.handle(&tables, id, *entry)).collect()));
        }
        Some(idle)
    }
}
