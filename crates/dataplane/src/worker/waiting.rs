//! What a worker does when a round found nothing: it looks again at once, or sleeps until something comes.

use super::{Worker, schedulers};
use crate::{attached, links};
use millrace_drivers::wait_readable;
use rustix::thread::set_current_timer_slack;
use std::fmt;
use std::num::NonZeroU64;
use std::os::fd::RawFd;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// How long a worker that polls adaptively goes on looking after the last packet. Many times what it takes to wake a thread, so
/// packets of a flow in both directions find it awake; short enough that a switch with a packet now and then mostly sleeps.
pub const POLL_TIME: Duration = Duration::from_micros(200);
/// How long a worker sleeps when it cannot wait for its descriptors.
const FALLBACK_WAIT: Duration = Duration::from_millis(1);

/// How workers wait for packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Polling {
    /// They sleep as soon as there is nothing to do: an idle switch takes no time of a processor, and a packet that finds its worker
    /// asleep waits until the system has woken it.
    #[default]
    Interrupt,
    /// They sleep when nothing has come for [`POLL_TIME`].
    Adaptive,
    /// They never sleep, and take all time of their processors.
    Busy,
}

impl Polling {
    /// All of them, with their names.
    pub const ALL: [(Polling, &str); 3] =
        [(Polling::Interrupt, "interrupt"), (Polling::Adaptive, "adaptive"), (Polling::Busy, "busy")];
}

impl fmt::Display for Polling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name) = Polling::ALL[*self as usize];
        f.write_str(name)
    }
}

impl FromStr for Polling {
    type Err = String;

    fn from_str(text: &str) -> Result<Polling, String> {
        let named = Polling::ALL.iter().find(|(_, name)| *name == text);
        named.map(|(polling, _)| *polling).ok_or_else(|| {
            let names = Polling::ALL.map(|(_, name)| name).join(", ");
            format!("workers do not wait by `{text}` ({names})")
        })
    }
}

/// How long a worker has had nothing to do.
#[derive(Debug, Default)]
pub(super) struct Idleness {
    pub(super) polling: Polling,
    /// Since the first round that found nothing.
    since: Option<Instant>,
}

impl Idleness {
    /// A round found something.
    #[inline]
    pub(super) fn ends(&mut self) {
        self.since = None;
    }

    /// A round found nothing: whether the worker looks again at once.
    pub(super) fn goes_on(&mut self) -> bool {
        match self.polling {
            Polling::Interrupt => false,
            Polling::Busy => true,
            Polling::Adaptive => {
                let now = Instant::now();
                now.saturating_duration_since(*self.since.get_or_insert(now)) < POLL_TIME
            }
        }
    }
}

/// Has the system wake the calling thread when its time is over, and not within the 50 us after it that others may take.
pub(super) fn wake_in_time() {
    // One nanosecond is the least. Who cannot have it is woken later.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Waits until a frame or a request comes or a queued packet may leave.
pub(super) fn wait(worker: &mut Worker) {
    worker.pace.rest();
    let held = worker.streams.held();
    let ports = worker.ports.iter().filter(|port| !(port.ended || held.is_some() && port.is_stamped));
    let mut descriptors: Vec<RawFd> = worker.mailbox.poll_fd().into_iter().collect();
    for live in ports {
        match live.port.poll_fd() {
            Some(fd) => descriptors.push(fd),
            // A port without a descriptor never makes its worker wait.
            None => return,
        }
    }
    let device = worker.switch.forwarder.device.as_mut();
    // Control writes without a word to the worker.
    let look = device.is_some().then_some(attached::LOOK);
    descriptors.extend(device.and_then(|device| device.poll_fd()));
    let timeout = until_due(worker).into_iter().chain(held).chain(look).min();
    if wait_readable(&descriptors, timeout).is_err() {
        std::thread::sleep(FALLBACK_WAIT);
    }
    worker.mailbox.look();
}

/// How long no packet that waits in the worker may go on; none: none waits.
pub(super) fn until_due(worker: &Worker) -> Option<Duration> {
    let next = worker.switch.next_departure_ns();
    // The memory of ports is not looked at in vain.
    let wakes = worker.ports.any_keeps().then(|| schedulers::wake_ns(&worker.ports)).flatten();
    let next = next.into_iter().chain(wakes).min();
    let due = next.map(|next| Duration::from_nanos(next.saturating_sub(worker.switch.now_ns())));
    links::or_until_free(&worker.switch, due)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adaptive_worker_looks_again_for_a_time_and_then_sleeps() {
        let mut idleness = Idleness { polling: Polling::Adaptive, since: None };
        assert!(idleness.goes_on(), "the first round without a packet");
        idleness.since = Instant::now().checked_sub(POLL_TIME);
        assert!(!idleness.goes_on() && !idleness.goes_on());
        idleness.ends();
        assert!(idleness.goes_on(), "a packet came");
        let mut goes_on = |polling| {
            idleness.polling = polling;
            idleness.goes_on()
        };
        assert!(!goes_on(Polling::Interrupt) && goes_on(Polling::Busy));
    }

    #[test]
    fn modes_have_names() {
        for (polling, name) in Polling::ALL {
            assert_eq!((polling.to_string().as_str(), name.parse()), (name, Ok(polling)));
        }
        let refused = "always".parse::<Polling>().unwrap_err();
        assert_eq!(refused, "workers do not wait by `always` (interrupt, adaptive, busy)");
    }
}
