//! Flows that come to the workers of a switch by queue pairs.

use crate::PORTS;
use crate::flows::{Flow, Made};
use millrace_dataplane::{Notice, PortId, Spread, Switch, Worker};
use millrace_drivers::{FarEnd, MemoryPort, Next, QueuePair};
use millrace_frames::MAX_BATCH;
use millrace_pipeline::arbitrary::Rng;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// How frames come to the workers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Queues {
    /// By a queue pair for each worker, which has the flows of some hashes.
    Each(Batches),
    /// By one queue pair, whose frames the first worker spreads.
    One,
}

/// How many packets come at once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Batches {
    Single,
    Random(u64),
}

type Sent = Arc<Mutex<Vec<(PortId, Vec<u8>)>>>;

/// A queue pair: what comes, and where it is noted what leaves.
struct Queue {
    port: PortId,
    coming: VecDeque<Vec<u8>>,
    frame: Vec<u8>,
    /// How many more come with this batch.
    left: usize,
    batches: Batches,
    rng: Rng,
    sent: Sent,
}

impl FarEnd for Queue {
    fn asked(&mut self) {
        self.left = match self.batches {
            Batches::Single => 1,
            Batches::Random(_) => 1 + self.rng.below(MAX_BATCH),
        };
    }

    fn next(&mut self) -> Next<'_> {
        if self.coming.is_empty() {
            return Next::End;
        }
        let Some(left) = self.left.checked_sub(1) else { return Next::None };
        self.left = left;
        self.frame = self.coming.pop_front().unwrap_or_default();
        Next::Frame(&self.frame)
    }

    fn take(&mut self, frame: &[u8]) -> bool {
        self.sent.lock().unwrap().push((self.port, frame.to_vec()));
        true
    }
}

/// Runs a switch with so many workers until all packets of the flows have passed.
pub(crate) fn run(switch: Switch, flows: &[Flow], workers: usize, queues: Queues) -> (Made, Switch) {
    let (pairs, batches, spread) = match queues {
        Queues::Each(batches) => (workers, batches, Spread::default()),
        Queues::One => (1, Batches::Random(1), Spread::Symmetric),
    };
    let sent: Vec<Sent> = (0..pairs).map(|_| Sent::default()).collect();
    let queue = |port: PortId, pair: usize| {
        let own = flows.iter().filter(|flow| flow.port == port && pair_of(flow, pairs) == pair);
        let seed = match batches {
            Batches::Single => 0,
            Batches::Random(seed) => seed,
        };
        let queue = Queue {
            port,
            coming: merged(own),
            frame: Vec::new(),
            left: 0,
            batches,
            rng: Rng::new(seed ^ u64::from(port) << 8 ^ pair as u64),
            sent: Arc::clone(&sent[pair]),
        };
        Box::new(MemoryPort::new(queue)) as Box<dyn QueuePair>
    };
    let ports = PORTS.map(|port| (port, (0..pairs).map(|pair| queue(port, pair)).collect()));
    let worker = Worker::with_followers(switch, ports.collect(), workers, spread);
    let mut worker = worker.unwrap_or_else(|error| panic!("{error}"));
    let notices = worker.notices();
    let summary = worker.run();
    assert!(summary.failed.is_empty() && summary.lost_notices == 0);
    let messages = notices.iter().filter_map(|notice| match notice {
        Notice::Digest { message, .. } => Some(format!("{message:?}")),
        Notice::Log(line) => Some(line),
        _ => None,
    });
    let messages = messages.collect();
    let sent = sent.iter().flat_map(|sent| std::mem::take(&mut *sent.lock().unwrap())).collect();
    (Made { sent, messages }, summary.switch)
}

/// The queue pair that a device's hash chooses for a flow.
fn pair_of(flow: &Flow, pairs: usize) -> usize {
    usize::from(flow.number).wrapping_mul(0x9e37) / 3 % pairs
}

/// The packets of flows, one of each in turn.
fn merged<'f>(flows: impl Iterator<Item = &'f Flow>) -> VecDeque<Vec<u8>> {
    let flows: Vec<&Flow> = flows.collect();
    let longest = flows.iter().map(|flow| flow.packets.len()).max().unwrap_or(0);
    let turn =
        |at: usize| flows.iter().filter_map(move |flow| flow.packets.get(at).cloned()).collect::<Vec<_>>();
    (0..longest).flat_map(turn).collect()
}
