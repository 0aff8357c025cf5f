//! Clocks and counters of one thread.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// The CPU time that the calling thread has used.
pub(crate) fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// What a piece of work took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    /// On the wall.
    pub(crate) wall: Duration,
    /// Of this thread.
    pub(crate) cpu: Duration,
    /// Instructions of this thread in user space, where the machine counts them.
    pub(crate) instructions: Option<u64>,
}

/// Measures the calling thread.
pub(crate) struct Stopwatch {
    instructions: Option<InstructionCounter>,
}

/// A measurement that runs.
pub(crate) struct Started {
    wall: Instant,
    cpu: Duration,
    instructions: Option<u64>,
}

impl Stopwatch {
    /// For the calling thread.
    pub(crate) fn new() -> Stopwatch {
        Stopwatch { instructions: InstructionCounter::start() }
    }

    pub(crate) fn start(&mut self) -> Started {
        let instructions = self.instructions.as_mut().and_then(InstructionCounter::read);
        Started { instructions, wall: Instant::now(), cpu: thread_time() }
    }

    pub(crate) fn taken(&mut self, since: &Started) -> Taken {
        let (wall, cpu) = (since.wall.elapsed(), thread_time().saturating_sub(since.cpu));
        let now = self.instructions.as_mut().and_then(InstructionCounter::read);
        let instructions = now.zip(since.instructions).map(|(now, then)| now.saturating_sub(then));
        Taken { wall, cpu, instructions }
    }
}

/// The counter of the machine, when it has one and lets us.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
struct InstructionCounter(perf_event::Counter);

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
impl InstructionCounter {
    fn start() -> Option<InstructionCounter> {
        let mut counter =
            perf_event::Builder::new(perf_event::events::Hardware::INSTRUCTIONS).build().ok()?;
        counter.enable().ok()?;
        Some(InstructionCounter(counter))
    }

    fn read(&mut self) -> Option<u64> {
        self.0.read().ok()
    }
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
struct InstructionCounter;

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
impl InstructionCounter {
    fn start() -> Option<InstructionCounter> {
        None
    }

    fn read(&mut self) -> Option<u64> {
        None
    }
}

/// Cycles of the machine's time stamp counter in a second: the nominal clock rate. 0 where there is none.
pub(crate) fn nominal_hz() -> f64 {
    let clock = quanta::Clock::new();
    let (raw, wall) = (clock.raw(), Instant::now());
    while wall.elapsed() < CALIBRATION {
        std::hint::spin_loop();
    }
    clock.raw().saturating_sub(raw) as f64 / wall.elapsed().as_secs_f64()
}

/// Long enough for a part in ten thousand, short enough not to be noticed.
const CALIBRATION: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_takes_no_cpu_time() {
        let mut watch = Stopwatch::new();
        let started = watch.start();
        std::thread::sleep(Duration::from_millis(30));
        let taken = watch.taken(&started);
        assert!(taken.wall >= Duration::from_millis(30));
        assert!(taken.cpu < Duration::from_millis(20), "{:?}", taken.cpu);
    }

    #[test]
    fn the_time_stamp_counter_runs() {
        assert!(nominal_hz() > 1e6);
    }
}
