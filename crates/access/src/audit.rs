//! The log of changes: what was done, by whom, and what came of it. A thread of its own writes it.

use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

/// Most records that wait for the disk.
pub const AUDIT_QUEUE: usize = 4096;
/// Largest file, in bytes; the one before it is kept, with `.1` after its name.
pub const MAX_AUDIT_FILE: u64 = 64 << 20;
/// Most bytes of each text of a record.
pub const MAX_AUDIT_TEXT: usize = 1024;

/// One change, or an attempt at one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditRecord {
    /// When, in milliseconds since 1970 (UTC).
    pub time_ms: u64,
    /// Who: the name of their entry on the access list, or what else they are known by. None: somebody unknown.
    pub who: Option<String>,
    /// Where they are, as an address.
    pub from: String,
    /// The device, if it concerns one.
    pub device: Option<u64>,
    /// What they asked for.
    pub what: String,
    /// `ok`, or why not.
    pub result: String,
}

impl AuditRecord {
    /// Of this moment. Texts that are too long are cut.
    pub fn now(
        who: Option<&str>,
        from: &str,
        device: Option<u64>,
        what: &str,
        result: Result<(), &str>,
    ) -> AuditRecord {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        AuditRecord {
            time_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            who: who.map(cut),
            from: cut(from),
            device,
            what: cut(what),
            result: cut(result.err().unwrap_or("ok")),
        }
    }
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_AUDIT_TEXT)].to_owned()
}

/// Takes records. Clones are of one log, which is whole on the disk when the last of them has gone.
#[derive(Clone, Debug)]
pub struct AuditLog(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    records: Option<SyncSender<Item>>,
    lost: Arc<AtomicU64>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What goes to the thread that writes.
#[derive(Debug)]
enum Item {
    Record(AuditRecord),
    /// Somebody waits until what came before is written.
    Waits(SyncSender<()>),
}

impl AuditLog {
    /// Goes on with a file, or begins it: lines of JSON, which its owner alone reads.
    ///
    /// # Errors
    /// The file cannot be opened, or there is no thread for it.
    pub fn open(path: &Path) -> io::Result<AuditLog> {
        AuditLog::with(path, MAX_AUDIT_FILE)
    }

    fn with(path: &Path, most: u64) -> io::Result<AuditLog> {
        let mut file = AuditFile::open(path, most)?;
        let (records, taken) = sync_channel(AUDIT_QUEUE);
        let lost = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&lost);
        let write = move || write_all(&mut file, &taken, &counted);
        let thread = std::thread::Builder::new().name("audit".into()).spawn(write)?;
        Ok(AuditLog(Arc::new(Shared { records: Some(records), lost, thread: Mutex::new(Some(thread)) })))
    }

    /// Takes a record, at once. When too many wait for the disk it is lost, and counted.
    pub fn record(&self, record: AuditRecord) {
        let taken =
            self.0.records.as_ref().is_some_and(|records| records.try_send(Item::Record(record)).is_ok());
        if !taken {
            self.0.lost.fetch_add(1, Relaxed);
        }
    }

    /// Waits until all that it has taken is written, for the end of what it is a log of: others may still have clones.
    pub fn finish(&self) {
        let (done, waits) = sync_channel(1);
        if self.0.records.as_ref().is_some_and(|records| records.send(Item::Waits(done)).is_ok()) {
            let _ = waits.recv();
        }
    }

    /// How many records were lost: there was no room for them, or the disk refused them.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Relaxed)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        drop(self.records.take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // What waits is written first.
            let _ = thread.join();
        }
    }
}

/// Says in the log how many records it lacks.
#[derive(Serialize)]
struct Gap {
    time_ms: u64,
    lost: u64,
}

fn write_all(file: &mut AuditFile, items: &Receiver<Item>, lost: &AtomicU64) {
    let mut told = 0;
    for item in items {
        let record = match item {
            Item::Record(record) => record,
            Item::Waits(done) => {
                let _ = done.send(());
                continue;
            }
        };
        let now = lost.load(Relaxed);
        if now != told && file.add(&Gap { time_ms: record.time_ms, lost: now - told }).is_ok() {
            told = now;
        }
        if file.add(&record).is_err() {
            lost.fetch_add(1, Relaxed);
        }
    }
}

/// A file that another one follows when it is full.
#[derive(Debug)]
struct AuditFile {
    path: PathBuf,
    file: File,
    size: u64,
    most: u64,
    /// A machine that lost its power or a full disk has cut off the last line.
    is_torn: bool,
}

impl AuditFile {
    fn open(path: &Path, most: u64) -> io::Result<AuditFile> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let size = file.metadata()?.len();
        Ok(AuditFile { path: path.to_owned(), file, size, most, is_torn: is_torn(path, size) })
    }

    fn add(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut whole = vec![b'\n'];
        serde_json::to_writer(&mut whole, line)?;
        whole.push(b'\n');
        if self.size > 0 && self.size + whole.len() as u64 > self.most {
            let mut before = self.path.clone().into_os_string();
            before.push(".1");
            std::fs::rename(&self.path, before)?;
            *self = AuditFile::open(&self.path, self.most)?;
        }
        // It begins a line of its own.
        let line = &whole[usize::from(!self.is_torn)..];
        let before = self.size;
        let written = self.file.write_all(line);
        self.size = before + line.len() as u64;
        match &written {
            Ok(()) => self.is_torn = false,
            Err(_) => {
                self.size = self.file.metadata().map_or(self.size, |about| about.len());
                self.is_torn |= self.size != before;
            }
        }
        written
    }
}

/// Whether a file of so many bytes ends within a line. What cannot be read, as a pipe, does not.
fn is_torn(path: &Path, size: u64) -> bool {
    let mut last = [b'\n'];
    let Some(at) = size.checked_sub(1) else { return false };
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut last, at));
    read.is_ok() && last != [b'\n']
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("millrace-audit-{name}-{}", std::process::id()))
    }

    fn lines(path: &Path) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_log_is_whole_where_it_ends_although_others_have_it() {
        let path = path("finish");
        let log = AuditLog::open(&path).unwrap();
        let _other = log.clone();
        for what in 0..1000 {
            log.record(AuditRecord::now(Some("one"), "10.0.0.1", None, &what.to_string(), Ok(())));
        }
        log.finish();
        let count = lines(&path).len();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(count, 1000);
    }

    #[test]
    fn records_are_lines_of_json_whatever_is_in_them() {
        let path = path("lines");
        let log = AuditLog::open(&path).unwrap();
        let nasty = "a\"\n\x1b[2J{".to_owned() + &"é".repeat(MAX_AUDIT_TEXT);
        log.record(AuditRecord::now(Some("one"), "10.0.0.1", Some(3), "write", Ok(())));
        log.record(AuditRecord::now(None, &nasty, None, &nasty, Err(&nasty)));
        let other = log.clone();
        drop(log);
        drop(other);
        let lines = lines(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!((&lines[0]["who"], &lines[0]["device"]), (&"one".into(), &3.into()));
        assert_eq!((&lines[0]["what"], &lines[0]["result"]), (&"write".into(), &"ok".into()));
        assert!(lines[0]["time_ms"].as_u64().is_some_and(|time| time > 1_600_000_000_000));
        assert!(lines[1]["who"].is_null() && lines[1]["device"].is_null());
        let what = lines[1]["what"].as_str().unwrap();
        assert!(what.len() <= MAX_AUDIT_TEXT && nasty.starts_with(what));
    }

    #[test]
    fn a_full_file_is_followed_by_another() {
        let path = path("full");
        let log = AuditLog::with(&path, 1000).unwrap();
        for number in 0..50 {
            log.record(AuditRecord::now(None, "here", Some(number), "write", Ok(())));
        }
        drop(log);
        let before = PathBuf::from(format!("{}.1", path.display()));
        let (old, new) = (lines(&before), lines(&path));
        assert!(std::fs::metadata(&before).unwrap().len() <= 1000);
        assert_eq!(new.last().unwrap()["device"], 49);
        assert_eq!(old.last().unwrap()["device"].as_u64().unwrap() + 1, new[0]["device"].as_u64().unwrap());
        std::fs::remove_file(path).unwrap();
        std::fs::remove_file(before).unwrap();
    }

    #[test]
    fn a_line_that_was_cut_off_costs_no_other() {
        let path = path("torn");
        for text in ["", "{\"time_ms\":1}\n", "{\"time_ms\":1}\n{\"time"] {
            std::fs::write(&path, text).unwrap();
            let log = AuditLog::open(&path).unwrap();
            log.record(AuditRecord::now(None, "here", Some(1), "write", Ok(())));
            log.record(AuditRecord::now(None, "here", Some(2), "write", Ok(())));
            drop(log);
            let read = std::fs::read_to_string(&path).unwrap();
            let whole: Vec<serde_json::Value> =
                read.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            assert_eq!(whole.len(), text.matches('\n').count() + 2, "{read}");
            assert_eq!(read.lines().count(), text.lines().count() + 2, "{read}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_finds_no_room_is_counted_and_the_log_says_so() {
        let path = path("gap");
        let mut file = AuditFile::open(&path, MAX_AUDIT_FILE).unwrap();
        let (records, taken) = sync_channel(2);
        let shared = Shared { records: Some(records), lost: Arc::default(), thread: Mutex::new(None) };
        let log = AuditLog(Arc::new(shared));
        for number in 0..5 {
            log.record(AuditRecord::now(None, "here", Some(number), "write", Ok(())));
        }
        assert_eq!(log.lost(), 3);
        let lost = Arc::clone(&log.0.lost);
        drop(log);
        write_all(&mut file, &taken, &lost);
        let lines = lines(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(lines.iter().filter(|line| line["lost"] == 3).count(), 1);
        assert_eq!(lines.last().unwrap()["device"], 1);
    }
}
