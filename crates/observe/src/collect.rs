//! From a running switch to its status.

use crate::process::{self, Started};
use crate::status;
use crate::{Modes, Plugins, afdx};
use millrace_dataplane::{Control, DropReason, Pending, Report, ReportError};
use millrace_drivers::{Captures, Links, PortLink};
use millrace_inputs::InputsStatus;
use millrace_observe_api::{ModeStatus, Process, Status};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
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
    pub(crate) modes: Arc<dyn Modes>,
    /// Whether the process is the switch's alone.
    pub(crate) shows_process: bool,
}

/// Switches that are asked at once: the lane of a device answers all of them before it takes the next frames.
const ASKED_AT_ONCE: usize = 16;

/// One of many switches that has not answered for so long is not waited for, so that the others are told.
const SLOW: Duration = Duration::from_millis(500);

/// A switch that was asked.
enum Asked {
    Known(Arc<Status>),
    Pending(Pending<Report>),
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
        let asked = self.ask()?;
        self.answer(asked, PATIENCE)
    }

    /// Asks, if what is known is not of a moment ago.
    fn ask(&self) -> Result<Asked, ReportError> {
        match &self.last {
            Some((at, status)) if at.elapsed() < FRESH => Ok(Asked::Known(Arc::clone(status))),
            _ => Ok(Asked::Pending(self.control.ask_report()?)),
        }
    }

    /// Waits for the answer.
    fn answer(&mut self, asked: Asked, patience: Duration) -> Result<Arc<Status>, ReportError> {
        let pending = match asked {
            Asked::Known(status) => return Ok(status),
            Asked::Pending(pending) => pending,
        };
        let status = Arc::new(self.status_of(&pending.wait(patience)?));
        self.last = Some((Instant::now(), Arc::clone(&status)));
        Ok(status)
    }

    /// The next status is a new one.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }

    fn status_of(&self, report: &Report) -> Status {
        // Reasons that have not come up yet are told too, so that whoever collects sees them begin.
        let known = DropReason::ALL.into_iter().map(|reason| (reason, 0));
        let mut drops = BTreeMap::new();
        for (reason, count) in known.chain(report.drops.iter().copied()) {
            *drops.entry(reason.label(&report.program)).or_default() += count;
        }
        let links: BTreeMap<u32, PortLink> =
            self.seen.links.now().into_iter().map(|link| (link.port.into(), link)).collect();
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            program: report.program.name.clone(),
            engine: report.engine.to_owned(),
            now_ns: report.now_ns,
            ports: report.ports.iter().map(|port| status::port(port, links.get(&port.port))).collect(),
            drops,
            drop_sites: report.drop_sites.iter().map(status::drop_site).collect(),
            tables: status::tables(report),
            queues: report.queues.plain.iter().map(status::queue).collect(),
            plans: report.queues.planned.iter().map(status::plan).collect(),
            bursts: status::distribution(&report.bursts.sizes),
            latency_ns: status::distribution(&report.bursts.latency),
            lost_notices: report.workers.iter().map(|worker| worker.lost_notices).sum(),
            workers: report.workers.iter().map(status::worker).collect(),
            captures: self.seen.captures.status().into_iter().map(status::capture).collect(),
            inputs: self.seen.inputs.now().into_iter().map(status::step).collect(),
            plugins: self.seen.plugins.list(),
            process: match self.seen.shows_process {
                true => process::now(self.started),
                false => Process::default(),
            },
            mode: ModeStatus { mode: report.mode.to_string(), ..self.seen.modes.now() },
            configuration: self.seen.modes.configuration(),
            afdx: afdx::status(report),
            own_end_system: self.seen.modes.own_end_system(),
        }
    }
}

/// Asks many switches, each of which has its answer or the reason why not when this returns, at most about so long after it began.
/// Whoever calls this for several of the same names them in one order, or two such calls wait for each other.
pub(crate) fn ask_all(list: &[&Mutex<Collector>], most: Duration) -> Vec<Result<Arc<Status>, ReportError>> {
    let until = Instant::now() + most;
    let mut answers = Vec::with_capacity(list.len());
    for some in list.chunks(ASKED_AT_ONCE) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            answers.extend(some.iter().map(|_| Err(ReportError::Busy)));
            continue;
        }
        let asked = some.iter().map(|collector| {
            let collector = collector.lock().unwrap_or_else(PoisonError::into_inner);
            let asked = collector.ask();
            (collector, asked)
        });
        // All of them are asked before one is waited for.
        let asked: Vec<_> = asked.collect();
        answers.extend(asked.into_iter().map(|(mut collector, asked)| {
            let left = until.saturating_duration_since(Instant::now());
            asked.and_then(|asked| collector.answer(asked, left.min(SLOW)))
        }));
    }
    answers
}
