//! What the steps of chains have counted.

use crate::flows::FlowCounts;
use crate::selector::Decided;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a step has counted, of all queue pairs of its port.
#[derive(Debug, Default)]
pub(crate) struct StepCounts {
    packets: AtomicU64,
    passed: AtomicU64,
    accounted: AtomicU64,
    dropped: AtomicU64,
    pub(crate) flows: Arc<FlowCounts>,
}

impl StepCounts {
    /// Counts the packets of a batch.
    pub(crate) fn add(&self, set: u64, Decided { pass, account }: Decided) {
        let count = |counter: &AtomicU64, set: u64| {
            if set != 0 {
                counter.fetch_add(set.count_ones().into(), Ordering::Relaxed);
            }
        };
        count(&self.packets, set);
        count(&self.passed, pass);
        count(&self.accounted, account);
        count(&self.dropped, set & !(pass | account));
    }

    fn of(&self, place: Place, file: Option<&str>) -> StepStatus {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let flows = file.map(|file| FlowStatus {
            file: file.to_owned(),
            flows: read(&self.flows.flows),
            records: read(&self.flows.told),
            lost: read(&self.flows.lost),
            error: self.flows.error.get().cloned(),
        });
        StepStatus {
            place,
            packets: read(&self.packets),
            passed: read(&self.passed),
            accounted: read(&self.accounted),
            dropped: read(&self.dropped),
            flows,
        }
    }
}

/// The counters of the chains of a switch, for another thread.
#[derive(Clone, Debug, Default)]
pub struct InputsStatus(Arc<Mutex<Arc<[ShownStep]>>>);

#[derive(Clone, Debug)]
pub(crate) struct ShownStep {
    pub(crate) place: Place,
    pub(crate) file: Option<String>,
    pub(crate) counts: Arc<StepCounts>,
}

impl InputsStatus {
    pub(crate) fn of(steps: Arc<[ShownStep]>) -> InputsStatus {
        InputsStatus(Arc::new(Mutex::new(steps)))
    }

    /// From now on these steps are shown.
    pub(crate) fn set(&self, steps: Arc<[ShownStep]>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = steps;
    }

    /// What all steps have counted so far.
    pub fn now(&self) -> Vec<StepStatus> {
        let steps = Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner));
        steps.iter().map(|step| step.counts.of(step.place, step.file.as_deref())).collect()
    }
}

/// Which step is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The port.
    pub port: u32,
    /// Whether it is of what the port sends; else of what it receives.
    pub is_output: bool,
    /// Its number in the chain, from 1.
    pub step: usize,
    /// The name of the plugin.
    pub plugin: &'static str,
}

impl Place {
    /// The port and direction.
    pub(crate) fn at(&self) -> (u32, bool) {
        (self.port, self.is_output)
    }

    /// `input` or `output`.
    pub fn direction(&self) -> &'static str {
        if self.is_output { "output" } else { "input" }
    }
}

/// What a step has counted so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepStatus {
    /// Which one.
    pub place: Place,
    /// Packets that came to it.
    pub packets: u64,
    /// Those that went on.
    pub passed: u64,
    /// Those that it counted in flows. The plugin `account` lets them go on too, the others do not.
    pub accounted: u64,
    /// Those that it dropped.
    pub dropped: u64,
    /// Of its flows, if it has an account.
    pub flows: Option<FlowStatus>,
}

/// What is known of the flows of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStatus {
    /// Where they are told.
    pub file: String,
    /// Flows that are in the table now.
    pub flows: u64,
    /// Records that are in the file.
    pub records: u64,
    /// Records that are not, because they came too fast or the file cannot be written.
    pub lost: u64,
    /// Why the file is not written any more.
    pub error: Option<String>,
}
