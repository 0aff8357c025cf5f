//! The thread that brings captures to their files.

use super::Counts;
use crate::pcap::{FILE_HEADER_BYTES, RECORD_HEADER_BYTES, file_header, write_header};
use pcap_file::pcap::PcapHeader;
use pcap_file::{Endianness, TsResolution};
use rtrb::Consumer;
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A file that has not been written to its end after so long is left to the system: a disk may be full, slow or gone.
pub const CAPTURE_END_TIME: Duration = Duration::from_secs(5);
/// So long the thread rests when no capture has brought anything.
const REST: Duration = Duration::from_millis(2);

/// The thread that writes. It ends, with all files whole, when this is dropped; for which that waits no longer than
/// [`CAPTURE_END_TIME`].
#[derive(Debug)]
pub(super) struct Writer {
    jobs: Option<Sender<Job>>,
    next: AtomicU64,
    ended: Mutex<Receiver<()>>,
}

/// The thread has ended.
#[derive(Debug)]
pub(super) struct WriterEnded;

enum Job {
    Add(u64, File, Vec<Consumer<u8>>, Arc<Counts>),
    Finish(u64, SyncSender<()>),
}

/// A file, and what is to be written to it.
struct Writing {
    id: u64,
    file: File,
    /// The ring of each queue pair. None once the file could not be written: whoever fills them sees that nobody empties them.
    rings: Vec<Consumer<u8>>,
    counts: Arc<Counts>,
    /// The length of the file up to its last whole record.
    whole: u64,
}

impl Writer {
    pub(super) fn start() -> io::Result<Writer> {
        let (jobs, list) = channel();
        let (end, ended) = sync_channel(1);
        std::thread::Builder::new().name("capture".to_owned()).spawn(move || {
            work(&list);
            let _ = end.try_send(());
        })?;
        Ok(Writer { jobs: Some(jobs), next: AtomicU64::new(0), ended: Mutex::new(ended) })
    }

    /// Writes what comes in these rings to a file from now on, and gives the number to end that with.
    pub(super) fn add(
        &self,
        file: File,
        rings: Vec<Consumer<u8>>,
        counts: Arc<Counts>,
    ) -> Result<u64, WriterEnded> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.send(Job::Add(id, file, rings, counts))?;
        Ok(id)
    }

    /// Writes what has come until now, as far as it can be written, and closes the file. It is not waited for
    /// beyond `until`.
    pub(super) fn finish(&self, id: u64, until: Instant) -> Result<io::Result<()>, WriterEnded> {
        let (answer, answered) = sync_channel(1);
        self.send(Job::Finish(id, answer))?;
        match answered.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(()) => Ok(Ok(())),
            Err(RecvTimeoutError::Timeout) => Ok(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("not written to the end after {} seconds", CAPTURE_END_TIME.as_secs()),
            ))),
            Err(RecvTimeoutError::Disconnected) => Err(WriterEnded),
        }
    }

    fn send(&self, job: Job) -> Result<(), WriterEnded> {
        self.jobs.as_ref().ok_or(WriterEnded)?.send(job).map_err(|_| WriterEnded)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.jobs.take());
        // The thread says nothing when it ends by a panic: the channel is closed then.
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(CAPTURE_END_TIME);
    }
}

/// Writes until nobody has jobs any more.
fn work(jobs: &Receiver<Job>) {
    let mut files: Vec<Writing> = Vec::new();
    loop {
        let moved = files.iter_mut().map(|file| usize::from(file.write())).sum::<usize>();
        let rest = if moved > 0 { Duration::ZERO } else { REST };
        let job = match files.is_empty() {
            true => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => jobs.recv_timeout(rest),
        };
        match job {
            Ok(Job::Add(id, file, rings, counts)) => files.push(Writing::new(id, file, rings, counts)),
            Ok(Job::Finish(id, answer)) => {
                let at = files.iter().position(|file| file.id == id);
                at.into_iter().for_each(|at| files.swap_remove(at).end());
                // Whoever asked may have gone.
                let _ = answer.try_send(());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                files.into_iter().for_each(Writing::end);
                return;
            }
        }
    }
}

impl Writing {
    fn new(id: u64, mut file: File, rings: Vec<Consumer<u8>>, counts: Arc<Counts>) -> Writing {
        let (endianness, ts_resolution) = (Endianness::Little, TsResolution::NanoSecond);
        let header = file_header(PcapHeader { endianness, ts_resolution, ..PcapHeader::default() });
        let written = write_header(&header, &mut file);
        let mut writing = Writing { id, file, rings, counts, whole: FILE_HEADER_BYTES };
        if let Err(error) = written {
            writing.whole = 0;
            writing.fail(&error);
        }
        writing
    }

    /// Writes what has come; says whether there was something.
    fn write(&mut self) -> bool {
        let Writing { file, rings, counts, whole, .. } = self;
        let (mut any, mut failed) = (false, None);
        for ring in rings.iter_mut() {
            let bytes = whole_records(ring);
            if let (Ok(chunk), true) = (ring.read_chunk(bytes), failed.is_none() && bytes > 0) {
                any = true;
                let mut passed = Records::default();
                let (first, second) = chunk.as_slices();
                for part in [first, second] {
                    if failed.is_none() {
                        let (written, error) = write_some(file, part);
                        let (records, bytes) = passed.pass(&part[..written]);
                        *whole += bytes;
                        add(&counts.written, records);
                        failed = error;
                    }
                }
                chunk.commit_all();
            }
        }
        failed.iter().for_each(|error| self.fail(error));
        any
    }

    /// Nothing more is written; a record that is there in part is taken away, so that the file can be read.
    fn fail(&mut self, error: &io::Error) {
        self.rings.clear();
        let _ = self.counts.error.set(error.to_string());
        // A file that cannot be cut either ends in the middle of a record.
        let _ = self.file.set_len(self.whole);
    }

    fn end(mut self) {
        self.write();
    }
}

/// How many bytes at the start of a ring are whole records: a worker may be in the middle of the next one, and before its end those of
/// other rings may come.
fn whole_records(ring: &mut Consumer<u8>) -> usize {
    let Ok(chunk) = ring.read_chunk(ring.slots()) else { return 0 };
    let (first, second) = chunk.as_slices();
    let mut records = Records::default();
    let bytes: u64 = [first, second].into_iter().map(|part| records.pass(part).1).sum();
    // No more than there are.
    bytes as usize
}

/// Writes as much as can be written: how much that was, and why not more.
fn write_some(file: &mut File, bytes: &[u8]) -> (usize, Option<io::Error>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return (written, Some(io::ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Some(error)),
        }
    }
    (written, None)
}

/// Only one thread writes the number.
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

/// Where in the records of a capture its bytes are.
#[derive(Debug, Default)]
struct Records {
    header: [u8; RECORD_HEADER_BYTES],
    /// Bytes of the header of this record that are there.
    begun: usize,
    /// Bytes of its frame that are to come.
    left: usize,
    /// Bytes of this record until now.
    length: u64,
}

impl Records {
    /// Goes on by these bytes: how many records end in them, and how many bytes these have.
    fn pass(&mut self, mut bytes: &[u8]) -> (u64, u64) {
        let (mut records, mut whole) = (0, 0);
        loop {
            if self.begun < RECORD_HEADER_BYTES {
                let some = bytes.len().min(RECORD_HEADER_BYTES - self.begun);
                self.header[self.begun..self.begun + some].copy_from_slice(&bytes[..some]);
                (self.begun, self.length) = (self.begun + some, self.length + some as u64);
                bytes = &bytes[some..];
                if self.begun < RECORD_HEADER_BYTES {
                    return (records, whole);
                }
                // The length of what is in the file, after the time.
                self.left =
                    self.header[8..].first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize);
            }
            let some = bytes.len().min(self.left);
            (self.left, self.length) = (self.left - some, self.length + some as u64);
            bytes = &bytes[some..];
            if self.left > 0 {
                return (records, whole);
            }
            (records, whole) = (records + 1, whole + self.length);
            (self.begun, self.length) = (0, 0);
            if bytes.is_empty() {
                return (records, whole);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcap::record_header;

    #[test]
    fn records_are_counted_wherever_they_are_cut() {
        let lengths = [0usize, 1, 60, 1500, 16, 15];
        let mut stream = Vec::new();
        let mut ends = Vec::new();
        for length in lengths {
            stream.extend(record_header(Endianness::Little, 1, 7, length));
            stream.extend(vec![0xff; length]);
            ends.push(stream.len());
        }
        for step in [1, 3, 16, 17, 100, stream.len()] {
            let mut records = Records::default();
            let (mut count, mut whole, mut passed) = (0, 0, 0);
            for part in stream.chunks(step) {
                let (more, bytes) = records.pass(part);
                (count, whole, passed) = (count + more, whole + bytes, passed + part.len());
                let ended = ends.iter().filter(|end| **end <= passed);
                assert_eq!(count, ended.clone().count() as u64, "{step} {passed}");
                assert_eq!(whole, ended.max().copied().unwrap_or(0) as u64, "{step} {passed}");
            }
        }
    }

    #[test]
    fn a_file_that_takes_nothing_says_why() {
        let counts = Arc::<Counts>::default();
        let (_, bytes) = rtrb::RingBuffer::new(64);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let writing = Writing::new(0, full, vec![bytes], Arc::clone(&counts));
        assert!(writing.rings.is_empty());
        assert!(counts.error.get().unwrap().contains("No space left"), "{counts:?}");
    }
}
