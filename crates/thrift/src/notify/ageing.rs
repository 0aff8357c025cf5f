//! Entries that were idle for longer than their timeout, as bmv2 tells of them: looked for once a second, and told again
//! every other time while they are there and idle.

use super::{Publisher, message};
use std::collections::HashSet;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two looks.
const SWEEP: Duration = Duration::from_secs(1);
/// Most entries in a message; the rest of a table follows a sweep later.
const MAX_ENTRIES: usize = 65_536;

/// The handles of the entries of a table that are idle, with the id of the table.
pub(crate) type Idle = Vec<(i32, Vec<i32>)>;

/// Looks for them until it is dropped.
#[derive(Debug)]
pub(crate) struct Ageing {
    stop: Mutex<Option<Sender<()>>>,
    thread: Option<JoinHandle<()>>,
}

impl Ageing {
    /// Asks each second which entries are idle; none: the switch has ended.
    pub(crate) fn start(
        publisher: Arc<Publisher>,
        device_id: u64,
        idle: impl Fn() -> Option<Idle> + Send + 'static,
    ) -> std::io::Result<Ageing> {
        let (stop, stopped) = channel::<()>();
        let sweep = move || {
            let mut told = HashSet::new();
            let mut buffer_id = 0;
            while stopped.recv_timeout(SWEEP) == Err(RecvTimeoutError::Timeout) {
                let Some(idle) = idle() else { return };
                for message in messages(device_id, &idle, &mut told, &mut buffer_id) {
                    publisher.publish(&message);
                }
            }
        };
        let thread = std::thread::Builder::new().name("ageing".into()).spawn(sweep)?;
        Ok(Ageing { stop: Mutex::new(Some(stop)), thread: Some(thread) })
    }
}

impl Drop for Ageing {
    fn drop(&mut self) {
        drop(self.stop.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What is told of the entries that are idle now; `told` are those of the look before.
fn messages(
    device_id: u64,
    idle: &Idle,
    told: &mut HashSet<(i32, i32)>,
    buffer_id: &mut u64,
) -> Vec<Vec<u8>> {
    let mut telling = HashSet::new();
    let mut messages = Vec::new();
    for (table, handles) in idle {
        let new = handles.iter().filter(|handle| !told.contains(&(*table, **handle))).take(MAX_ENTRIES);
        let handles: Vec<i32> = new.copied().collect();
        if handles.is_empty() {
            continue;
        }
        let mut bytes = message(
            b"AGE|",
            device_id,
            &[
                &0u32.to_le_bytes(),
                &buffer_id.to_le_bytes(),
                &table.to_le_bytes(),
                &(handles.len() as u32).to_le_bytes(),
            ],
        );
        handles.iter().for_each(|handle| bytes.extend_from_slice(&handle.to_le_bytes()));
        telling.extend(handles.iter().map(|handle| (*table, *handle)));
        messages.push(bytes);
        *buffer_id += 1;
    }
    *told = telling;
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_entry_is_told_every_other_time() {
        let (mut told, mut id) = (HashSet::new(), 0);
        let idle = vec![(3, vec![0x0100_0002]), (4, vec![])];
        let first = messages(9, &idle, &mut told, &mut id);
        assert_eq!(first.len(), 1);
        assert_eq!(
            first[0],
            *b"AGE|\x09\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x03\0\0\0\x01\0\0\0\x02\0\0\x01"
        );
        assert!(messages(9, &idle, &mut told, &mut id).is_empty());
        assert_eq!(messages(9, &idle, &mut told, &mut id).len(), 1);
    }
}
