//! Digest lists: collecting messages, leaving out what the controller has not acknowledged yet (specification,
//! "DigestEntry").

use crate::catalog::Catalog;
use crate::refusal::Refusal;
use millrace_dataplane::DigestMessage;
use millrace_p4runtime_api::v1::{DigestList, P4Data, digest_entry::Config};
use millrace_pipeline::semantics::Value;
use millrace_pipeline::{DigestId, Program};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Most messages of one list, also when the controller sets no limit.
pub(crate) const MAX_LIST: usize = 1024;
/// Most messages of one digest that wait for an acknowledgement; beyond that the oldest list counts as acknowledged.
const MAX_CACHED: usize = 1 << 16;
/// As much in bytes of memory: a program may send values of thousands of bits.
const MAX_CACHED_BYTES: usize = 16 << 20;

/// All digests of the program that runs.
#[derive(Debug)]
pub(crate) struct Digests {
    catalog: Arc<Catalog>,
    enabled: HashMap<DigestId, Collector>,
    next_list: u64,
}

#[derive(Debug)]
struct Collector {
    id: u32,
    config: Config,
    buffer: Vec<Vec<Value>>,
    /// When the first message of the buffer came.
    since: Instant,
    sent: VecDeque<SentList>,
    /// The messages of the buffer and of the lists that were sent.
    known: HashSet<Vec<Value>>,
    /// The memory of these messages, which are here twice.
    bytes: usize,
}

#[derive(Debug)]
struct SentList {
    list_id: u64,
    at: Instant,
    messages: Vec<Vec<Value>>,
}

impl Digests {
    pub(crate) fn new(catalog: Arc<Catalog>) -> Digests {
        Digests { catalog, enabled: HashMap::new(), next_list: 1 }
    }

    /// What is enabled from now on, and how.
    pub(crate) fn configure(&mut self, configs: &HashMap<DigestId, Config>) {
        self.enabled.retain(|digest, _| configs.contains_key(digest));
        for (id, info) in self.catalog.digests.iter() {
            let Some(config) = configs.get(&info.digest) else { continue };
            let fresh = || Collector {
                id,
                config: *config,
                buffer: Vec::new(),
                since: Instant::now(),
                sent: VecDeque::new(),
                known: HashSet::new(),
                bytes: 0,
            };
            self.enabled.entry(info.digest).or_insert_with(fresh).config = *config;
        }
    }

    /// Takes a message of a program; gives a list that is to be sent now.
    pub(crate) fn take(
        &mut self,
        program: &Arc<Program>,
        message: DigestMessage,
        now: Instant,
    ) -> Option<DigestList> {
        if !Arc::ptr_eq(program, &self.catalog.program) {
            return None;
        }
        let collector = self.enabled.get_mut(&message.digest)?;
        collector.expire(now);
        if !collector.known.insert(message.values.clone()) {
            return None;
        }
        collector.bytes += memory(&message.values);
        if collector.buffer.is_empty() {
            collector.since = now;
        }
        collector.buffer.push(message.values);
        let limit = match usize::try_from(collector.config.max_list_size) {
            Ok(size @ 1..=MAX_LIST) => size,
            _ => MAX_LIST,
        };
        let is_large = collector.bytes > MAX_CACHED_BYTES;
        if collector.buffer.len() >= limit || collector.config.max_timeout_ns <= 0 || is_large {
            return Some(self.list(message.digest, now));
        }
        None
    }

    /// The lists whose oldest message has waited long enough.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<DigestList> {
        let due =
            self.enabled.iter().filter(|(_, collector)| collector.deadline().is_some_and(|at| at <= now));
        let due: Vec<DigestId> = due.map(|(digest, _)| *digest).collect();
        due.into_iter().map(|digest| self.list(digest, now)).collect()
    }

    /// When a list is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.enabled.values().filter_map(Collector::deadline).min()
    }

    /// The controller has acted on a list.
    pub(crate) fn acknowledge(&mut self, digest_id: u32, list_id: u64) -> Result<(), Refusal> {
        let digest =
            self.catalog.digests.get(digest_id).map_err(|refusal| Refusal::invalid(refusal.message))?;
        if let Some(collector) = self.enabled.get_mut(&digest.digest)
            && let Some(at) = collector.sent.iter().position(|list| list.list_id == list_id)
            && let Some(list) = collector.sent.remove(at)
        {
            collector.forget(&list);
        }
        Ok(())
    }

    fn list(&mut self, digest: DigestId, now: Instant) -> DigestList {
        let list_id = self.next_list;
        self.next_list += 1;
        let mut list = DigestList { list_id, timestamp: since_epoch_ns(), ..DigestList::default() };
        let Some(collector) = self.enabled.get_mut(&digest) else { return list };
        let messages = std::mem::take(&mut collector.buffer);
        list.digest_id = collector.id;
        if let Ok(info) = self.catalog.digests.get(collector.id) {
            let data = |values: &Vec<Value>| -> P4Data { info.shape.write(&mut values.iter().cloned()) };
            list.data = messages.iter().map(data).collect();
        }
        collector.sent.push_back(SentList { list_id, at: now, messages });
        collector.expire(now);
        list
    }
}

impl Collector {
    fn deadline(&self) -> Option<Instant> {
        let timeout = Duration::from_nanos(u64::try_from(self.config.max_timeout_ns).unwrap_or(0));
        (!self.buffer.is_empty()).then(|| self.since + timeout)
    }

    /// Forgets what the controller should have acknowledged by now.
    fn expire(&mut self, now: Instant) {
        let timeout = Duration::from_nanos(u64::try_from(self.config.ack_timeout_ns).unwrap_or(0));
        while let Some(oldest) = self.sent.front() {
            let fits = self.known.len() <= MAX_CACHED && self.bytes <= MAX_CACHED_BYTES;
            if now.duration_since(oldest.at) < timeout && fits {
                break;
            }
            let Some(oldest) = self.sent.pop_front() else { break };
            self.forget(&oldest);
        }
    }

    fn forget(&mut self, list: &SentList) {
        for message in &list.messages {
            if self.known.remove(message) {
                self.bytes -= memory(message);
            }
        }
    }
}

/// About the memory of a message that is kept twice, in bytes.
fn memory(message: &[Value]) -> usize {
    let value = |value: &Value| match value {
        Value::Bits(bits) => bits.width() as usize / 8,
        Value::Varbit(varbit) => varbit.bits().map_or(0, |bits| bits.width() as usize / 8),
        Value::Bool(_) => 0,
    };
    2 * (64 + message.iter().map(|each| 48 + value(each)).sum::<usize>())
}

/// Nanoseconds since 1970.
pub(crate) fn since_epoch_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_pipeline::Bits;

    #[test]
    fn what_waits_for_acknowledgements_is_bounded_in_bytes() {
        let config = Config { ack_timeout_ns: i64::MAX, ..Config::default() };
        let now = Instant::now();
        let mut collector = Collector {
            id: 1,
            config,
            buffer: Vec::new(),
            since: now,
            sent: VecDeque::new(),
            known: HashSet::new(),
            bytes: 0,
        };
        // 8 KiB each, twice.
        for number in 0..4096 {
            let messages = vec![vec![Value::Bits(Bits::new(1 << 16, number.into()))]];
            collector.bytes += memory(&messages[0]);
            collector.known.insert(messages[0].clone());
            collector.sent.push_back(SentList { list_id: number, at: now, messages });
            collector.expire(now);
            assert!(collector.bytes <= MAX_CACHED_BYTES);
        }
        assert_eq!(collector.known.len(), collector.sent.len());
        assert!((900..1024).contains(&collector.known.len()), "{}", collector.known.len());
        collector.config.ack_timeout_ns = 0;
        collector.expire(now);
        assert_eq!((collector.known.len(), collector.bytes), (0, 0));
    }
}
