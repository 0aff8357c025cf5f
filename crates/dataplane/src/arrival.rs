//! A frame as it comes to the queues of its port.

use crate::ecn;
use crate::worker::Spread;
use millrace_frames::Service;
use millrace_traffic::{Arrival, Plan};

/// What the queues of a plan are told of a frame. What no queue asks for is not looked up.
#[inline]
pub(crate) fn arrival(plan: &Plan, service: Service, frame: &[u8]) -> Arrival {
    Arrival {
        class: service.class,
        flow: match service.queue {
            0 if plan.has_flows() => Spread::Symmetric.hash(frame),
            queue => queue.into(),
        },
        len: frame.len() as u32,
        ecn: plan.marks() && ecn::is_capable(frame),
        send_at_ns: None,
    }
}
