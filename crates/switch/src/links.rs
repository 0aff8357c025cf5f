//! Links that are busy: what is for them waits in the queues of their ports, where programs see it.

use crate::worker::Worker;
use millrace_ports::MAX_BATCH;
use std::time::Duration;

/// Frames that a link is given while packets wait for links: as many as a batch, so that the rest waits in the switch.
const LINK_FRAMES: usize = MAX_BATCH;
/// How often a worker with nothing else to do looks at busy links.
const LINK_WAIT: Duration = Duration::from_millis(1);

impl Worker {
    /// Has packets wait for links that are busy, if that is wanted.
    pub(crate) fn look_at_links(&mut self) {
        if !self.switch.queues.are_to_wait() {
            return;
        }
        for live in self.ports.iter_mut() {
            let in_flight = live.port.in_flight() + live.sending.len();
            let room = LINK_FRAMES.saturating_sub(in_flight) as u32;
            self.switch.queues.set_room(live.id, (in_flight > 0).then_some(room));
        }
    }

    /// How long to wait for something else, when packets wait for links.
    pub(crate) fn or_until_links_are_free(&self, timeout: Option<Duration>) -> Option<Duration> {
        match self.switch.queues.wait_for_links() {
            true => Some(timeout.unwrap_or(LINK_WAIT).min(LINK_WAIT)),
            false => timeout,
        }
    }
}
