//! The thread that writes flows to files. Ports hand records over through rings and never wait for the disk while packets pass.

use super::format::{Encoder, Format, Teller};
use super::table::FlowRecord;
use rtrb::{Consumer, Producer, RingBuffer};
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Records of a port that wait for the disk.
pub const WAITING_RECORDS: usize = 8192;
/// Records that are written at once.
const AT_ONCE: usize = 1024;
/// How often the thread looks for records.
const INTERVAL: Duration = Duration::from_millis(50);
/// Nobody waits longer than that for the files at the end.
pub(crate) const END_TIME: Duration = Duration::from_secs(5);

/// What is counted of the flows of a step.
#[derive(Debug, Default)]
pub(crate) struct FlowCounts {
    /// Flows that are in the table now.
    pub(crate) flows: AtomicU64,
    /// Records that are in the file.
    pub(crate) told: AtomicU64,
    /// Records that are not, because they came too fast or the file cannot be written.
    pub(crate) lost: AtomicU64,
    /// Why the file is not written any more.
    pub(crate) error: OnceLock<String>,
}

/// The end of a ring that a port has.
pub(super) struct Outlet {
    ring: Producer<FlowRecord>,
    counts: Arc<FlowCounts>,
    /// Flows that [`FlowCounts::flows`] has of this port.
    flows: u64,
}

impl Outlet {
    pub(super) fn is_full(&self) -> bool {
        self.ring.is_full() && !self.ring.is_abandoned()
    }

    pub(super) fn put(&mut self, record: &FlowRecord) {
        if self.ring.is_abandoned() || self.ring.push(*record).is_err() {
            self.lost();
        }
    }

    pub(super) fn lost(&self) {
        self.counts.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Says how many flows the port has now.
    pub(super) fn flows(&mut self, flows: usize) {
        let flows = flows as u64;
        if flows != self.flows {
            // Wraps, as the sum does when it is less.
            self.counts.flows.fetch_add(flows.wrapping_sub(self.flows), Ordering::Relaxed);
            self.flows = flows;
        }
    }
}

struct Source {
    ring: Consumer<FlowRecord>,
    sink: usize,
    teller: Teller,
    counts: Arc<FlowCounts>,
}

#[derive(Default)]
struct Shared {
    sources: Mutex<Vec<Source>>,
    is_ending: AtomicBool,
}

/// The thread, and how rings get to it.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts a thread that writes these files.
    pub(crate) fn start(files: Vec<(File, Format)>) -> io::Result<Writer> {
        let shared = Arc::<Shared>::default();
        let of_thread = Arc::clone(&shared);
        let sinks = files.into_iter().map(|(file, format)| (file, Encoder::new(format))).collect();
        let work = move || write_all(&of_thread, sinks);
        let thread = std::thread::Builder::new().name("flows".to_owned()).spawn(work)?;
        Ok(Writer { shared, thread: Some(thread) })
    }

    /// A ring to the file of that number.
    pub(super) fn outlet(&self, sink: usize, teller: Teller, counts: &Arc<FlowCounts>) -> Outlet {
        let (ring, consumer) = RingBuffer::new(WAITING_RECORDS);
        let source = Source { ring: consumer, sink, teller, counts: Arc::clone(counts) };
        self.shared.sources.lock().unwrap_or_else(PoisonError::into_inner).push(source);
        Outlet { ring, counts: Arc::clone(counts), flows: 0 }
    }
}

impl Drop for Writer {
    /// Waits until the files are whole, at most [`END_TIME`]: a thread that the disk holds is left to the system.
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return };
        thread.thread().unpark();
        let begun = Instant::now();
        while !thread.is_finished() {
            if begun.elapsed() > END_TIME {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = thread.join();
    }
}

fn write_all(shared: &Shared, mut sinks: Vec<(File, Encoder)>) {
    let mut records = Vec::with_capacity(AT_ONCE);
    let mut bytes = Vec::new();
    let mut ends_at = None;
    loop {
        let mut has_more = false;
        let mut sources = shared.sources.lock().unwrap_or_else(PoisonError::into_inner);
        for source in &mut *sources {
            records.clear();
            records.extend(std::iter::from_fn(|| source.ring.pop().ok()).take(AT_ONCE));
            has_more |= records.len() == AT_ONCE;
            let Some((file, encoder)) = sinks.get_mut(source.sink).filter(|_| !records.is_empty()) else {
                continue;
            };
            let Source { counts, teller, .. } = source;
            let count = records.len() as u64;
            if counts.error.get().is_some() {
                counts.lost.fetch_add(count, Ordering::Relaxed);
                continue;
            }
            bytes.clear();
            encoder.encode(*teller, &records, &mut bytes);
            match file.write_all(&bytes) {
                Ok(()) => counts.told.fetch_add(count, Ordering::Relaxed),
                Err(error) => {
                    let _ = counts.error.set(error.to_string());
                    counts.lost.fetch_add(count, Ordering::Relaxed)
                }
            };
        }
        // A port that is gone put its last records there before that.
        sources.retain(|source| !(source.ring.is_abandoned() && source.ring.is_empty()));
        let is_done = sources.is_empty();
        drop(sources);
        if shared.is_ending.load(Ordering::Relaxed) {
            let ends_at = *ends_at.get_or_insert_with(|| Instant::now() + END_TIME);
            if is_done || Instant::now() > ends_at {
                return;
            }
        }
        if !has_more {
            std::thread::park_timeout(INTERVAL);
        }
    }
}
