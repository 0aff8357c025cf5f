//! Packets between the stages of a switch.

use crate::PortId;
use crate::trace::JourneyId;
use millrace_engine::Context;
use millrace_frames::Service;
use millrace_pipeline::semantics::Value;
use millrace_pipeline::*;

/// Which steps are counted together: those of a packet and all its copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Journeying(pub(crate) u16);

/// A packet that has waited for its time for so long may come by as often again as one that has just come: at most a hundred times a
/// second, which a switch can bear of as many packets as may wait.
pub(crate) const REST_NS: u64 = 10_000_000;

/// What goes with a packet and all that becomes of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// The port that it came in on.
    pub(crate) port: PortId,
    /// When it came in, or began ingress again.
    pub(crate) time_ns: u64,
    /// How often it, or what it was copied from, has begun ingress or was cloned in egress.
    pub(crate) passes: u32,
    /// How many more copies and passes may come of it.
    pub(crate) budget: u32,
    /// Whose steps it takes.
    pub(crate) steps: Journeying,
    /// The part of the trace that it came from.
    pub(crate) journey: Option<JourneyId>,
    /// How its port is to serve it; its class is that which it had before egress.
    pub(crate) service: Service,
    /// How many links between switches of one device it has taken.
    pub(crate) hops: u8,
    /// It waits before egress until then; 0: it does not.
    pub(crate) send_at_ns: u64,
    /// It has waited for its time for [`REST_NS`], so its passes are counted from the first again.
    pub(crate) has_rested: bool,
    /// Its queue has marked it for congestion.
    pub(crate) is_marked: bool,
}

/// A packet before ingress.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) bytes: Vec<u8>,
    pub(crate) path: PacketPath,
    pub(crate) origin: Origin,
    /// Metadata kept from an earlier pass.
    pub(crate) kept: Kept,
}

/// What of egress a packet that waits in a queue has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// Nothing.
    Nothing,
    /// Its bodies; it may ask to be cloned, cut or sent back.
    Bodies,
    /// All of it: it is only to be sent.
    All,
}

/// A packet before egress, or one that compiled code has taken through egress before it waits in its queue.
#[derive(Clone, Debug)]
pub(crate) struct Departure {
    pub(crate) context: Context,
    pub(crate) passed: Passed,
    pub(crate) path: PacketPath,
    pub(crate) origin: Origin,
    /// The bits that valid headers had after the parser: what they have more by now, the packet is longer.
    pub(crate) parsed_bits: u64,
    /// Where it goes, and which copy it is.
    pub(crate) port: PortId,
    pub(crate) rid: u16,
    /// Its class of service.
    pub(crate) priority: u8,
    /// It keeps at most that many bytes, by its clone session.
    pub(crate) truncate: Option<u32>,
}

/// What a queue knows of a packet when it gives it out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueStay {
    pub(crate) enqueued_ns: u64,
    pub(crate) enqueue_depth: u32,
    pub(crate) dequeue_depth: u32,
    /// Which queue, counted from that of the highest class.
    pub(crate) queue: u32,
    /// Whether it waited in one.
    pub(crate) waited: bool,
}

impl QueueStay {
    /// Of a packet that met no queue.
    pub(crate) fn none(enqueued_ns: u64) -> QueueStay {
        QueueStay { enqueued_ns, ..QueueStay::default() }
    }
}

/// Metadata that survives where all other starts again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept(Vec<(SlotId, Value)>);

impl Kept {
    /// The values of a field list; nothing when the program has no list of this number.
    pub(crate) fn of_list(program: &Program, context: &Context, list: u64) -> Kept {
        let list = program.field_lists.iter().find(|candidate| u64::from(candidate.id) == list);
        let slots = list.map_or(&[][..], |list| list.slots.as_slice());
        Kept(slots.iter().map(|slot| (*slot, context.read(program, *slot))).collect())
    }

    /// Writes the values into the storage of another pass.
    pub(crate) fn restore(self, program: &Program, context: &mut Context) {
        self.0.into_iter().for_each(|(slot, value)| context.write(program, slot, value));
    }
}
