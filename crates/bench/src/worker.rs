//! One thread that forwards.

use crate::clock::{Stopwatch, Taken};
use crate::report::Rate;
use millrace_dataplane::{Mark, PortId, Switch, mark};
use millrace_drivers::null::{Replay, Sink, frame_digest};
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

/// Frames between two looks at the clock.
const FRAMES_BETWEEN_LOOKS: u64 = 50_000;

/// Time between two samples of a profile: each takes about a hundredth of that, and no other clock beats in time with it.
const BETWEEN_SAMPLES: Duration = Duration::from_nanos(211_111);

/// What left for one frame: the ports, and a sum of the bytes for each.
pub(crate) type Frame = Vec<(PortId, u32)>;

/// What a round under a profile gave.
#[derive(Clone, Debug)]
pub(crate) struct Profiled {
    pub(crate) rate: Rate,
    /// Samples by part.
    pub(crate) parts: BTreeMap<String, u64>,
}

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
                self.switch.switch_burst(self.port, &mut queue.burst(), |port, output| {
                    sink.take(port, output.bytes)
                });
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

    /// Switches each frame once, as a burst of its own; says what left for it.
    pub(crate) fn one_by_one(&mut self) -> Vec<Frame> {
        let mut all = Vec::new();
        for queue in &mut self.queues {
            while !queue.is_at_start() {
                queue.burst();
                queue.finish();
            }
            loop {
                let mut burst = queue.burst();
                for number in 0..burst.places().len() {
                    let mut one = burst.part(number..number + 1);
                    let mut left = Vec::new();
                    self.switch.switch_burst(self.port, &mut one, |port, frame| {
                        left.push((port, frame_digest(port, frame.bytes)));
                    });
                    all.push(left);
                }
                queue.finish();
                if queue.is_at_start() {
                    break;
                }
            }
        }
        all
    }

    /// Switches all frames in whole bursts, over and over for that long, and compares what leaves with what may leave for
    /// each of them: either of two. Says how many frames were looked at, and how many were neither.
    pub(crate) fn compare(&mut self, expected: &[[Frame; 2]], length: Duration) -> (u64, u64) {
        let (mut checked, mut wrong, start) = (0, 0, Instant::now());
        let mut left: Frame = Vec::new();
        while start.elapsed() < length {
            let mut rest = expected;
            for queue in &mut self.queues {
                while !queue.is_at_start() {
                    queue.burst();
                    queue.finish();
                }
                loop {
                    left.clear();
                    let mut burst = queue.burst();
                    let (these, others) = rest.split_at(burst.places().len().min(rest.len()));
                    rest = others;
                    self.switch.switch_burst(self.port, &mut burst, |port, frame| {
                        left.push((port, frame_digest(port, frame.bytes)));
                    });
                    queue.finish();
                    checked += these.len() as u64;
                    wrong += mistakes(these, &left);
                    if queue.is_at_start() {
                        break;
                    }
                }
            }
        }
        (checked, wrong)
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

    /// Forwards for that long on the wall, and looks where the time goes.
    ///
    /// # Errors
    /// Sampling is not possible.
    pub(crate) fn profiled_round(&mut self, watch: &mut Stopwatch, length: Duration) -> io::Result<Profiled> {
        let sampler = self.switch.sample(BETWEEN_SAMPLES)?;
        let rate = self.round(watch, length);
        Ok(Profiled { rate, parts: self.switch.parts(&sampler.stop()) })
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
            let length = burst.places().len() as u64;
            mark(Mark::Burst);
            self.switch.switch_burst(self.port, &mut burst, |_, _| ());
            mark(Mark::Driver);
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

/// How many frames of a burst are not what they may be. What left lies in the order of the frames.
fn mistakes(expected: &[[Frame; 2]], mut left: &[(PortId, u32)]) -> u64 {
    let mut wrong = 0;
    for both in expected {
        // A frame that may be dropped is found last, as nothing fits everywhere.
        let fitting = both.iter().filter(|of| left.starts_with(of)).max_by_key(|of| of.len());
        match fitting {
            Some(of) => left = &left[of.len()..],
            None => {
                wrong += 1;
                left = left.get(both[0].len()..).unwrap_or(&[]);
            }
        }
    }
    wrong + left.len() as u64
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_left_is_one_of_two_for_each_frame() {
        let expected =
            [[vec![(1, 10)], vec![(2, 11)]], [vec![(3, 20)], vec![]], [vec![], vec![(4, 30), (5, 31)]]];
        assert_eq!(mistakes(&expected, &[(1, 10), (3, 20)]), 0);
        assert_eq!(mistakes(&expected, &[(2, 11), (4, 30), (5, 31)]), 0);
        assert_eq!(mistakes(&expected, &[(2, 11)]), 0);
        assert_eq!(mistakes(&expected, &[]), 1, "the first one is lost");
        assert_eq!(mistakes(&expected, &[(1, 11), (3, 20)]), 1, "port and bytes of different sides");
        assert_eq!(mistakes(&expected, &[(1, 10), (3, 20), (4, 30)]), 1, "half of the last one");
        assert_eq!(mistakes(&expected, &[(1, 10), (1, 10)]), 1, "one too many");
    }
}
