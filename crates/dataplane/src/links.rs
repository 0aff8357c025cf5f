//! Links that are busy: what is for them waits in the queues of their ports, where programs see it.

use crate::Switch;
use crate::worker::live::LivePorts;
use millrace_frames::MAX_BATCH;
use std::time::Duration;

/// Frames that a link is given while packets wait for links: as many as a batch, so that the rest waits in the switch.
pub(crate) const LINK_FRAMES: usize = MAX_BATCH;
/// How often a worker with nothing else to do looks at busy links.
const LINK_WAIT: Duration = Duration::from_millis(1);

/// Has packets wait for links that are busy, if that is wanted, and before egress for the queues of ports that have a plan: these order what
/// they hold, so they need not hold much.
pub(crate) fn look(switch: &mut Switch, ports: &mut LivePorts) {
    if switch.waits_before_egress() {
        for live in ports.iter_mut() {
            if let Some(scheduler) = &live.scheduler {
                let (waiting, _) = scheduler.waiting();
                let room = LINK_FRAMES.saturating_sub(waiting + live.sending.len());
                switch.traffic.queues.planned.set_room(live.id, room);
            }
        }
    }
    if !switch.traffic.queues.are_to_wait() {
        return;
    }
    for live in ports.iter_mut().filter(|live| live.sends && live.scheduler.is_none()) {
        let in_flight = live.port.in_flight() + live.sending.len();
        let room = LINK_FRAMES.saturating_sub(in_flight) as u32;
        switch.traffic.queues.set_room(live.id, (in_flight > 0).then_some(room));
    }
}

/// How long to wait for something else, when packets wait for links.
pub(crate) fn or_until_free(switch: &Switch, timeout: Option<Duration>) -> Option<Duration> {
    match switch.traffic.queues.wait_for_links() {
        true => Some(timeout.unwrap_or(LINK_WAIT).min(LINK_WAIT)),
        false => timeout,
    }
}
