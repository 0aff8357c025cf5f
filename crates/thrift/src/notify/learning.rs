//! Digests as bmv2 tells of them: samples in lists, each sample once until it is acknowledged.
//!
//! Samples gather until there are as many as clients want in a message (1), or until the first of them has waited for so
//! long (1 s). What was sent is remembered, and the same sample is not sent again, until a client acknowledges it: so a
//! controller hears of a station once, and not for each packet until it has written the entry.

use super::{Publisher, message};
use millrace_dataplane::DigestMessage;
use millrace_describe::bmv2;
use millrace_pipeline::semantics::Value;
use millrace_pipeline::{Bits, DigestId, Program};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Most samples in a message.
pub const MAX_SAMPLES: usize = 1024;
/// Most samples of a list that are remembered until they are acknowledged. Then those of the oldest message are forgotten.
pub const MAX_UNACKNOWLEDGED: usize = 65_536;

/// How long samples wait if nobody says otherwise.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The lists of the program that runs.
#[derive(Debug)]
pub(crate) struct Learning {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    publisher: Arc<Publisher>,
    device_id: u64,
    lists: Mutex<Lists>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Lists {
    /// The program that they are of.
    program: Option<Arc<Program>>,
    /// By their ids.
    lists: BTreeMap<i32, List>,
    stop: bool,
}

#[derive(Debug)]
struct List {
    most: usize,
    timeout: Option<Duration>,
    /// The message that gathers.
    buffer_id: u64,
    samples: Vec<u8>,
    count: usize,
    begun: Option<Instant>,
    /// What is not acknowledged, by message and place in it.
    known: HashSet<Vec<u8>>,
    sent: BTreeMap<u64, Vec<Option<Vec<u8>>>>,
}

impl Default for List {
    fn default() -> List {
        List {
            most: 1,
            timeout: Some(TIMEOUT),
            buffer_id: 0,
            samples: Vec::new(),
            count: 0,
            begun: None,
            known: HashSet::new(),
            sent: BTreeMap::new(),
        }
    }
}

/// Why lists stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LearningError {
    /// The program has no list of that id.
    NoList,
    /// A number that makes no sense, or is above [`MAX_SAMPLES`].
    BadNumber,
}

impl Learning {
    pub(crate) fn start(publisher: Arc<Publisher>, device_id: u64) -> std::io::Result<Learning> {
        let lists = Mutex::default();
        let shared = Arc::new(Shared { publisher, device_id, lists, changed: Condvar::new() });
        let timing = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("learning".into()).spawn(move || send_in_time(&timing))?;
        Ok(Learning { shared, thread: Some(thread) })
    }

    /// A digest of a packet.
    pub(crate) fn digest(&self, program: &Arc<Program>, digest: &DigestMessage) {
        let Some(id) = list_id(program, digest.digest) else { return };
        let mut sample = Vec::new();
        digest.values.iter().for_each(|value| add_value(&mut sample, value));
        let mut lists = self.shared.lists();
        lists.are_of(program);
        let list = lists.lists.entry(id).or_default();
        if list.add(sample) {
            let message = list.take(self.shared.device_id, id);
            self.shared.publisher.publish(&message);
        } else if list.count == 1 {
            self.shared.changed.notify_one();
        }
    }

    /// What was sent of samples of a message is sent again when it comes again; `None`: of all of them.
    pub(crate) fn acknowledge(
        &self,
        program: &Arc<Program>,
        id: i32,
        buffer: i64,
        samples: Option<&[i32]>,
    ) -> Result<(), LearningError> {
        self.with_list(program, id, |list| {
            // A message that is not known any more was acknowledged before, or forgotten.
            let buffer = buffer as u64;
            let Some(sent) = list.sent.get_mut(&buffer) else { return };
            match samples {
                Some(samples) => {
                    for sample in samples.iter().filter_map(|sample| usize::try_from(*sample).ok()) {
                        if let Some(bytes) = sent.get_mut(sample).and_then(Option::take) {
                            list.known.remove(&bytes);
                        }
                    }
                }
                None => sent.iter_mut().filter_map(Option::take).for_each(|bytes| {
                    list.known.remove(&bytes);
                }),
            }
            if sent.iter().all(Option::is_none) && buffer != list.buffer_id {
                list.sent.remove(&buffer);
            }
        })
    }

    /// How long samples wait for others, in milliseconds; 0: until there are enough.
    pub(crate) fn set_timeout(&self, program: &Arc<Program>, id: i32, ms: i32) -> Result<(), LearningError> {
        let ms = u64::try_from(ms).map_err(|_| LearningError::BadNumber)?;
        self.with_list(program, id, |list| list.timeout = (ms > 0).then(|| Duration::from_millis(ms)))?;
        self.shared.changed.notify_one();
        Ok(())
    }

    /// How many samples a message has.
    pub(crate) fn set_size(
        &self,
        program: &Arc<Program>,
        id: i32,
        samples: i32,
    ) -> Result<(), LearningError> {
        let most = usize::try_from(samples).ok().filter(|most| (1..=MAX_SAMPLES).contains(most));
        let most = most.ok_or(LearningError::BadNumber)?;
        self.with_list(program, id, |list| {
            list.most = most;
            if list.count >= most {
                let message = list.take(self.shared.device_id, id);
                self.shared.publisher.publish(&message);
            }
        })
    }

    fn with_list(
        &self,
        program: &Arc<Program>,
        id: i32,
        change: impl FnOnce(&mut List),
    ) -> Result<(), LearningError> {
        if !program.digests.keys().any(|digest| list_id(program, digest) == Some(id)) {
            return Err(LearningError::NoList);
        }
        let mut lists = self.shared.lists();
        lists.are_of(program);
        change(lists.lists.entry(id).or_default());
        Ok(())
    }
}

impl Drop for Learning {
    fn drop(&mut self) {
        self.shared.lists().stop = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lists {
    /// Another program begins again.
    fn are_of(&mut self, program: &Arc<Program>) {
        if !self.program.as_ref().is_some_and(|known| Arc::ptr_eq(known, program)) {
            self.program = Some(Arc::clone(program));
            self.lists.clear();
        }
    }
}

impl List {
    /// Adds a sample unless it is known; says whether there are enough to be sent.
    fn add(&mut self, sample: Vec<u8>) -> bool {
        if self.known.contains(&sample) {
            return false;
        }
        while self.known.len() >= MAX_UNACKNOWLEDGED {
            let Some((_, forgotten)) = self.sent.pop_first() else { break };
            forgotten.into_iter().flatten().for_each(|bytes| {
                self.known.remove(&bytes);
            });
        }
        self.samples.extend_from_slice(&sample);
        self.count += 1;
        self.begun.get_or_insert_with(Instant::now);
        self.known.insert(sample.clone());
        self.sent.entry(self.buffer_id).or_default().push(Some(sample));
        self.count >= self.most
    }

    /// The message that has gathered; another one begins.
    fn take(&mut self, device_id: u64, id: i32) -> Vec<u8> {
        let count = self.count as u32;
        let mut bytes = message(
            b"LEA|",
            device_id,
            &[&0u32.to_le_bytes(), &id.to_le_bytes(), &self.buffer_id.to_le_bytes(), &count.to_le_bytes()],
        );
        bytes.append(&mut self.samples);
        self.count = 0;
        self.begun = None;
        self.buffer_id += 1;
        bytes
    }

    /// When what has gathered is sent at the latest.
    fn due(&self) -> Option<Instant> {
        self.begun?.checked_add(self.timeout?)
    }
}

/// Sends what has waited for long enough.
fn send_in_time(shared: &Shared) {
    let mut lists = shared.lists();
    while !lists.stop {
        let now = Instant::now();
        for (id, list) in &mut lists.lists {
            if list.due().is_some_and(|due| due <= now) {
                let message = list.take(shared.device_id, *id);
                shared.publisher.publish(&message);
            }
        }
        let next = lists.lists.values().filter_map(List::due).min();
        lists = match next {
            Some(due) => {
                let wait = due.saturating_duration_since(now);
                shared.changed.wait_timeout(lists, wait).unwrap_or_else(PoisonError::into_inner).0
            }
            None => shared.changed.wait(lists).unwrap_or_else(PoisonError::into_inner),
        };
    }
}

/// The id of a list, which clients get with the description of the program.
fn list_id(program: &Program, digest: DigestId) -> Option<i32> {
    let name = &program.digests.get(digest)?.name;
    bmv2::id(program, bmv2::Resource::Digest, name).and_then(|id| i32::try_from(id).ok())
}

/// Adds a field in whole bytes, the highest first.
fn add_value(sample: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Bool(truth) => sample.push(u8::from(*truth)),
        Value::Bits(bits) => add_bits(sample, bits),
        Value::Varbit(varbit) => varbit.bits().into_iter().for_each(|bits| add_bits(sample, bits)),
    }
}

fn add_bits(sample: &mut Vec<u8>, bits: &Bits) {
    let bytes = bits.to_biguint().to_bytes_be();
    let wanted = bits.width().div_ceil(8) as usize;
    sample.extend(std::iter::repeat_n(0, wanted.saturating_sub(bytes.len())));
    sample.extend_from_slice(&bytes[bytes.len().saturating_sub(wanted)..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_sent_once_until_it_is_acknowledged() {
        let mut list = List { most: 2, ..List::default() };
        assert!(!list.add(vec![1]));
        assert!(!list.add(vec![1]), "known");
        assert!(list.add(vec![2]));
        let sent = list.take(7, 3);
        // Topic, device, context, list, message, samples: as the controllers of p4-learning unpack it.
        assert_eq!(sent[..32], *b"LEA|\x07\0\0\0\0\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0");
        assert_eq!(sent[32..], [1, 2]);
        assert!(!list.add(vec![2]) && list.count == 0);
        assert!(!list.add(vec![4]));
        assert_eq!((list.buffer_id, list.count), (1, 1));
    }

    #[test]
    fn what_nobody_acknowledges_is_forgotten_from_its_beginning() {
        let mut list = List::default();
        for number in 0..=MAX_UNACKNOWLEDGED as u32 {
            assert!(list.add(number.to_be_bytes().to_vec()));
            list.take(0, 1);
        }
        assert_eq!(list.known.len(), MAX_UNACKNOWLEDGED);
        assert_eq!(list.sent.len(), MAX_UNACKNOWLEDGED);
        assert!(list.add(0u32.to_be_bytes().to_vec()), "it was forgotten");
    }

    #[test]
    fn values_have_whole_bytes() {
        let mut sample = Vec::new();
        add_value(&mut sample, &Value::Bits(Bits::new(48, 0x0a_0b0c)));
        add_value(&mut sample, &Value::Bits(Bits::new(9, 0x102)));
        add_value(&mut sample, &Value::Bool(true));
        assert_eq!(sample, [0, 0, 0, 0x0a, 0x0b, 0x0c, 0x01, 0x02, 1]);
    }
}
