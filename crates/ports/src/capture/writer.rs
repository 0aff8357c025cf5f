//! The thread that brings captures to their files.

use crate::pcap::{file_header, write_header};
use pcap_file::pcap::PcapHeader;
use pcap_file::{Endianness, TsResolution};
use rtrb::Consumer;
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// So long the thread rests when no capture has brought anything.
const REST: Duration = Duration::from_millis(2);

/// The thread that writes. It ends, with all files whole, when this is dropped.
#[derive(Debug)]
pub(super) struct Writer {
    jobs: Option<Sender<Job>>,
    next: AtomicU64,
    thread: Option<JoinHandle<()>>,
}

/// The thread has ended.
#[derive(Debug)]
pub(super) struct WriterEnded;

enum Job {
    Add(u64, File, Consumer<u8>),
    Finish(u64, SyncSender<io::Result<()>>),
}

/// A file, and what is to be written to it.
struct Writing {
    id: u64,
    file: File,
    /// None once the file could not be written: whoever fills the ring sees that nobody empties it.
    bytes: Option<Consumer<u8>>,
    failed: Option<io::Error>,
}

impl Writer {
    pub(super) fn start() -> io::Result<Writer> {
        let (jobs, list) = channel();
        let thread = std::thread::Builder::new().name("capture".to_owned()).spawn(move || work(&list))?;
        Ok(Writer { jobs: Some(jobs), next: AtomicU64::new(0), thread: Some(thread) })
    }

    /// Writes what comes to a file from now on, and gives the number to end that with.
    pub(super) fn add(&self, file: File, bytes: Consumer<u8>) -> Result<u64, WriterEnded> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.send(Job::Add(id, file, bytes))?;
        Ok(id)
    }

    /// Writes what has come until now, closes the file, and says whether all of it could be written.
    pub(super) fn finish(&self, id: u64) -> Result<io::Result<()>, WriterEnded> {
        let (answer, answered) = sync_channel(1);
        self.send(Job::Finish(id, answer))?;
        answered.recv().map_err(|_| WriterEnded)
    }

    fn send(&self, job: Job) -> Result<(), WriterEnded> {
        self.jobs.as_ref().ok_or(WriterEnded)?.send(job).map_err(|_| WriterEnded)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
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
            Ok(Job::Add(id, file, bytes)) => files.push(Writing::new(id, file, bytes)),
            Ok(Job::Finish(id, answer)) => {
                let at = files.iter().position(|file| file.id == id);
                let ended = at.map_or(Ok(()), |at| files.swap_remove(at).end());
                // Whoever asked may have gone.
                let _ = answer.try_send(ended);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                // What fails now has nobody left to be told.
                files.into_iter().for_each(|file| drop(file.end()));
                return;
            }
        }
    }
}

impl Writing {
    fn new(id: u64, mut file: File, bytes: Consumer<u8>) -> Writing {
        let (endianness, ts_resolution) = (Endianness::Little, TsResolution::NanoSecond);
        let header = file_header(PcapHeader { endianness, ts_resolution, ..PcapHeader::default() });
        let failed = write_header(&header, &mut file).err();
        let bytes = Some(bytes).filter(|_| failed.is_none());
        Writing { id, file, bytes, failed }
    }

    /// Writes what has come; says whether there was something.
    fn write(&mut self) -> bool {
        let Some(bytes) = &mut self.bytes else { return false };
        let Ok(chunk) = bytes.read_chunk(bytes.slots()) else { return false };
        if chunk.is_empty() {
            return false;
        }
        let (first, second) = chunk.as_slices();
        let written = self.file.write_all(first).and_then(|()| self.file.write_all(second));
        chunk.commit_all();
        if let Err(error) = written {
            (self.failed, self.bytes) = (Some(error), None);
        }
        true
    }

    fn end(mut self) -> io::Result<()> {
        self.write();
        self.failed.map_or(Ok(()), Err)
    }
}
