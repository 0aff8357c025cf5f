//! Ports whose frames carry times: the frames of all of them go in that order, as far as they have come.

use super::Worker;
use super::live::LivePorts;
use crate::links;
use millrace_frames::MAX_BATCH;
use std::time::{Duration, Instant};

/// How a worker reads them.
#[derive(Debug, Default)]
pub(super) struct Streams {
    /// Whether there are any.
    pub(super) any: bool,
    /// Whether the worker goes on when all its ports have ended.
    pub(super) go_on: bool,
    /// No frame is taken before.
    from: Option<Instant>,
}

impl Streams {
    pub(super) fn of(ports: &LivePorts) -> Streams {
        Streams { any: ports.iter().any(|port| port.is_stamped), ..Streams::default() }
    }

    pub(super) fn start_after(&mut self, wait: Duration) {
        self.go_on = true;
        self.from = Instant::now().checked_add(wait);
    }

    /// How long no frame is taken yet.
    pub(super) fn held(&self) -> Option<Duration> {
        let left = self.from?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }
}

/// Takes up to a batch of frames, one by one; says whether there may be more at once.
pub(super) fn round(worker: &mut Worker) -> bool {
    if worker.streams.held().is_some() {
        return false;
    }
    worker.streams.from = None;
    for _ in 0..MAX_BATCH {
        // Frames are switched in the order of their times, over all ports.
        if worker.switch.traffic.has_put_off() {
            return true;
        }
        let Some(at) = earliest(worker) else {
            // Asking those that have nothing tells why: the end, damage, or that they wait.
            for at in 0..worker.ports.len() {
                let live = &mut worker.ports[at];
                if live.is_stamped && !live.ended && live.port.next_arrival_ns().is_none() {
                    worker.receive(at);
                }
            }
            return false;
        };
        worker.receive(at);
        if !worker.packets.received.is_empty() {
            links::look(&mut worker.switch, &mut worker.ports);
            worker.switch_batch(at, 0);
        }
    }
    true
}

/// The place of the port that has the earliest frame. A frame that comes while the others are looked at was written
/// after one that has been found there: all are looked at again until nothing new comes, so that no frame is
/// overtaken by one that was written later.
fn earliest(worker: &mut Worker) -> Option<usize> {
    let (mut found, mut earliest) = (0, None);
    loop {
        let streams = worker.ports.iter_mut().enumerate().filter(|(_, port)| port.is_stamped && !port.ended);
        let arrivals: (usize, Option<(u64, usize)>) = streams
            .filter_map(|(at, port)| Some((port.port.next_arrival_ns()?, at)))
            .fold((0, None), |(count, least), arrival| {
                (count + 1, Some(least.map_or(arrival, |least: (u64, usize)| least.min(arrival))))
            });
        if arrivals.0 == found {
            return earliest;
        }
        (found, earliest) = (arrivals.0, arrivals.1.map(|(_, at)| at));
    }
}
