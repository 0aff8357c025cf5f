//! From a running switch to its status.

use crate::Plugins;
use crate::process::{self, Started};
use crate::status;
use millrace_dataplane::{Control, DropReason, ReportError};
use millrace_drivers::{Captures, Links, PortLink};
use millrace_inputs::InputsStatus;
use millrace_observe_api::Status;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a switch is asked at most.
pub const REPORTS_A_SECOND: u32 = 10;

/// A status is told again for so long.
const FRESH: Duration = Duration::from_millis(1000 / REPORTS_A_SECOND as u64);
/// How long a worker may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a status tells besides what the worker counts.
pub(crate) struct Seen {
    pub(crate) captures: Arc<Captures>,
    pub(crate) links: Links,
    pub(crate) inputs: InputsStatus,
    pub(crate) plugins: Arc<dyn Plugins>,
}

/// Asks one switch.
pub(crate) struct Collector {
    control: Control,
    seen: Seen,
    started: Started,
    last: Option<(Instant, Arc<Status>)>,
}

impl Collector {
    pub(crate) fn new(control: Control, seen: Seen) -> Collector {
        Collector { control, seen, started: Started::now(), last: None }
    }

    /// The status of now, or of a moment ago. Waits for the worker to end its round, and for whoever writes tables.
    pub(crate) fn status(&mut self) -> Result<Arc<Status>, ReportError> {
        if let Some((at, status)) = &self.last
            && at.elapsed() < FRESH
        {
            return Ok(Arc::clone(status));
        }
        let status = Arc::new(self.ask()?);
        self.last = Some((Instant::now(), Arc::clone(&status)));
        Ok(status)
    }

    /// The next status is a new one.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }

    fn ask(&self) -> Result<Status, ReportError> {
        let report = self.control.report(PATIENCE)?;
        // Reasons that have not come up yet are told too, so that whoever collects sees them begin.
        let known = DropReason::ALL.into_iter().map(|reason| (reason, 0));
        let mut drops = BTreeMap::new();
        for (reason, count) in known.chain(report.drops.iter().copied()) {
            *drops.entry(reason.label(&report.program)).or_default() += count;
        }
        let links: BTreeMap<u32, PortLink> =
            self.seen.links.now().into_iter().map(|link| (link.port.into(), link)).collect();
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            program: report.program.name.clone(),
            engine: report.engine.to_owned(),
            now_ns: report.now_ns,
            ports: report.ports.iter().map(|port| status::port(port, links.get(&port.port))).collect(),
            drops,
            drop_sites: report.drop_sites.iter().map(status::drop_site).collect(),
            tables: status::tables(&report),
            queues: report.queues.plain.iter().map(status::queue).collect(),
            plans: report.queues.planned.iter().map(status::plan).collect(),
            bursts: status::distribution(&report.bursts),
            latency_ns: status::distribution(&report.latency),
            lost_notices: report.workers.iter().map(|worker| worker.lost_notices).sum(),
            workers: report.workers.iter().map(status::worker).collect(),
            captures: self.seen.captures.status().into_iter().map(status::capture).collect(),
            inputs: self.seen.inputs.now().into_iter().map(status::step).collect(),
            plugins: self.seen.plugins.list(),
            process: process::now(self.started),
        })
    }
}
