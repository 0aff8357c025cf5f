//! A switch that runs on threads of its own, and the rates of its workers by their CPU time: other work on the machine takes little away.

use millrace_dataplane::{Control, Summary, Worker};
use rustix::thread::gettid;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// The number of a thread of this process, which gives itself its name when it starts.
pub(crate) fn thread_named(name: &str) -> i32 {
    let is_named = |number: &i32| {
        std::fs::read_to_string(format!("/proc/self/task/{number}/comm"))
            .is_ok_and(|comm| comm.trim_end() == name)
    };
    let begun = Instant::now();
    loop {
        let threads = std::fs::read_dir("/proc/self/task").expect("threads").flatten();
        let mut numbers = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
        if let Some(number) = numbers.find(is_named) {
            return number;
        }
        assert!(begun.elapsed() < PATIENCE, "a thread {name}");
        std::thread::yield_now();
    }
}

/// What a thread of this process has had of its processor.
pub(crate) fn time_of(thread: i32) -> Duration {
    let path = format!("/proc/self/task/{thread}/schedstat");
    let text = std::fs::read_to_string(path).expect("the times of a thread");
    Duration::from_nanos(text.split(' ').next().and_then(|word| word.parse().ok()).expect("a time"))
}

/// A switch that runs.
pub(crate) struct Running {
    pub(crate) control: Control,
    leader: JoinHandle<Summary>,
    /// The numbers of its workers' threads in the system.
    threads: Vec<i32>,
}

impl Running {
    /// Has so many workers run.
    pub(crate) fn start(worker: Worker, workers: usize) -> Running {
        let control = worker.control();
        let (started, thread) = std::sync::mpsc::channel();
        let leader = std::thread::Builder::new().name("worker 0".into()).spawn(move || {
            started.send(gettid().as_raw_nonzero().get()).expect("somebody waits");
            worker.run()
        });
        let first = thread.recv().expect("a thread");
        // The others are named by their numbers; there is no other switch with several workers.
        let threads = (1..workers).map(|number| thread_named(&format!("worker {number}")));
        Running {
            control,
            leader: leader.expect("a thread"),
            threads: std::iter::once(first).chain(threads).collect(),
        }
    }

    /// Packets that each worker has switched, and what it has had of its processor.
    pub(crate) fn now(&self) -> Vec<(u64, Duration)> {
        let report = self.control.report(PATIENCE).expect("a report");
        report
            .workers
            .iter()
            .zip(&self.threads)
            .map(|(worker, thread)| (worker.rx_packets, time_of(*thread)))
            .collect()
    }

    pub(crate) fn stop(self) {
        self.control.stop();
        self.leader.join().expect("the worker");
    }
}
