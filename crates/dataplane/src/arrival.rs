//! A frame as it comes to the queues of its port.

use crate::ecn;
use crate::worker::Spread;
use millrace_frames::Service;
use millrace_traffic::{Arrival, Plan};

/// What the queues of a plan ask of frames. What none asks for is not looked up.
#[derive(Clone, Copy)]
pub(crate) struct Asks {
    flows: bool,
    ecn: bool,
}

impl Asks {
    #[inline]
    pub(crate) fn of(plan: &Plan) -> Asks {
        Asks { flows: plan.has_flows(), ecn: plan.marks() }
    }

    /// Whether any of it is in the frame itself.
    #[inline]
    pub(crate) fn reads_frames(self) -> bool {
        self.flows || self.ecn
    }

    /// What they are told of a frame.
    #[inline]
    pub(crate) fn arrival(self, service: Service, frame: &[u8]) -> Arrival {
        Arrival {
            class: service.class,
            flow: match service.queue {
                0 if self.flows => Spread::Symmetric.hash(frame),
                queue => queue.into(),
            },
            len: frame.len() as u32,
            ecn: self.ecn && ecn::is_capable(frame),
            send_at_ns: None,
        }
    }
}
