//! One thread that forwards.

use crate::clock::{Stopwatch, Taken};
use crate::report::Rate;
use millrace_ports::null::{Replay, Sink};
use millrace_switch::{PortId, Switch};
use std::time::Duration;

/// Frames between two looks at the clock.
const FRAMES_BETWEEN_LOOKS: u64 = 50_000;

/// A switch with the receive queues that it serves.
pub(crate) struct Worker {
    pub(crate) switch: Switch,
    pub(crate) queues: Vec<Replay>,
    pub(crate) port: PortId,
    /// The queue that is served next.
    next: usize,
}

/// What one pass gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pass {
    pub(crate) sink: Sink,
    /// Drops by reason.
    pub(crate) drops: Vec<(String, u64)>,
}

impl Worker {
    pub(crate) fn new(switch: Switch, queues: Vec<Replay>, port: PortId) -> Worker {
        Worker { switch, queues, port, next: 0 }
    }

    /// Switches each frame once and looks at what comes out.
    pub(crate) fn checked_pass(&mut self) -> Pass {
        let mut sink = Sink::default();
        let before = self.drops();
        for queue in &mut self.queues {
            while !queue.is_at_start() {
                queue.burst();
                queue.finish();
            }
            loop {
                self.switch.switch_burst(self.port, &mut queue.burst(), |port, frame| sink.take(port, frame));
                queue.finish();
                if queue.is_at_start() {
                    break;
                }
            }
        }
        let drops = self.drops().into_iter().map(|(reason, count)| {
            let earlier = before.iter().find(|(other, _)| *other == reason).map_or(0, |(_, count)| *count);
            (reason, count - earlier)
        });
        Pass { sink, drops: drops.filter(|(_, count)| *count > 0).collect() }
    }

    fn drops(&self) -> Vec<(String, u64)> {
        let program = self.switch.program();
        self.switch.counters().all_drops().map(|(reason, count)| (reason.label(program), count)).collect()
    }

    /// Forwards for that long on the wall.
    pub(crate) fn round(&mut self, watch: &mut Stopwatch, length: Duration) -> Rate {
        let (mut frames, started) = (0, watch.start());
        loop {
            let taken = self.forward(FRAMES_BETWEEN_LOOKS);
            frames += taken;
            let time = watch.taken(&started);
            if time.wall >= length || taken == 0 {
                return rate(frames, &time);
            }
        }
    }

    /// Forwards at least that many frames; says how many.
    fn forward(&mut self, frames: u64) -> u64 {
        let mut forwarded = 0;
        let mut idle = 0;
        while forwarded < frames && idle < self.queues.len() {
            let at = self.next;
            self.next = (at + 1) % self.queues.len();
            let queue = &mut self.queues[at];
            let mut burst = queue.burst();
            let length = burst.places.len() as u64;
            self.switch.switch_burst(self.port, &mut burst, |_, _| ());
            // Nobody listens, and they must not pile up.
            if self.switch.has_messages() {
                self.switch.take_messages();
            }
            queue.finish();
            forwarded += length;
            idle = if length == 0 { idle + 1 } else { 0 };
        }
        forwarded
    }
}

fn rate(frames: u64, taken: &Taken) -> Rate {
    let mpps = |time: Duration| match time.is_zero() {
        true => 0.0,
        false => frames as f64 / time.as_secs_f64() / 1e6,
    };
    Rate {
        cpu_mpps: mpps(taken.cpu),
        wall_mpps: mpps(taken.wall),
        instructions: taken.instructions.filter(|_| frames > 0).map(|count| count as f64 / frames as f64),
    }
}
