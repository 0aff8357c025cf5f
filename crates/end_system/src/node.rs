//! An end system with applications that measure: each port sends a message now and then, each one that comes is counted and timed.

use crate::plan::Plan;
use millrace_afdx::{
    EndSystem, LimitError, MAX_MESSAGE, Meter, MeterCounts, Network, STAMP_BYTES, Source, Transmission,
    Verdict, VlId, frames_of, unfragmented,
};

/// The period of messages is longer by one part in so many than the shortest that there can be: a queue that comes of a machine that was late
/// gets empty again.
const SLACK: u64 = 4;

/// What the applications of an end system send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Nothing at all.
    pub is_silent: bool,
    /// The time from one message of a port to the next, in nanoseconds; none: as often as its sub-VL can send one, and a quarter of that
    /// longer.
    pub period_ns: Option<u64>,
    /// Bytes of each message; none: as many as one frame has room for.
    pub bytes: Option<usize>,
}

/// A port that sends.
#[derive(Debug)]
struct Sender {
    source: Source,
    port: usize,
    vl: VlId,
    sub_vl: usize,
    /// Messages that the end system did not take.
    refused: u64,
}

/// What a port has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The virtual link.
    pub vl: VlId,
    /// The sub-VL.
    pub sub_vl: usize,
    /// Messages sent.
    pub messages: u64,
    /// Messages that the end system did not take.
    pub refused: u64,
}

/// An end system with its applications. It has no clock.
#[derive(Debug)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// The end system.
    pub es: EndSystem,
    senders: Vec<Sender>,
    /// Of each port that receives.
    meters: Vec<(VlId, usize, Meter)>,
    /// Nothing is sent from this time on.
    until_ns: u64,
}

impl Node {
    /// The end system of a plan, whose ports send from this time until another one.
    ///
    /// # Errors
    /// [`LimitError`] for a period or a length that there cannot be.
    pub fn new(plan: Plan, traffic: Traffic, (from_ns, until_ns): (u64, u64)) -> Result<Node, LimitError> {
        let mut senders = Vec::new();
        for planned in plan.sends.iter().filter(|_| !traffic.is_silent) {
            let length = traffic.bytes.unwrap_or(unfragmented(planned.lmax).max(STAMP_BYTES));
            let frames = frames_of(length, planned.lmax) as u64;
            let shortest_ns = planned.share_ns.saturating_mul(frames);
            let period_ns = traffic.period_ns.unwrap_or(shortest_ns.saturating_add(shortest_ns / SLACK));
            senders.push(Sender {
                source: Source::new(from_ns, period_ns, length, MAX_MESSAGE)?,
                port: planned.port,
                vl: planned.vl,
                sub_vl: planned.sub_vl,
                refused: 0,
            });
        }
        let meters = plan.receives.iter().map(|(vl, sub_vl)| (*vl, *sub_vl, Meter::default())).collect();
        Ok(Node { name: plan.name, es: plan.es, senders, meters, until_ns })
    }

    /// When there is something to do next; a time that has passed means at once.
    pub fn next_ns(&self) -> Option<u64> {
        let due = self.senders.iter().map(|sender| sender.source.next_ns());
        let messages = due.min().filter(|next| *next < self.until_ns);
        messages.into_iter().chain(self.es.transmitter.next_ns()).min()
    }

    /// Does what is due at this time: messages to frames, at most one frame of each line.
    pub fn step(&mut self, now_ns: u64, leaves: impl FnMut(Transmission<'_>)) {
        let (transmitter, until_ns) = (&mut self.es.transmitter, self.until_ns);
        // What was due before the end is sent, however late: as long as it is due, `next_ns` says so.
        for sender in self.senders.iter_mut().filter(|sender| sender.source.next_ns() < until_ns) {
            let Some(message) = sender.source.due(now_ns) else { continue };
            match transmitter.send(now_ns, sender.port, message) {
                Ok(()) => sender.source.sent(),
                Err(_) => sender.refused += 1,
            }
        }
        transmitter.step(now_ns, leaves);
    }

    /// A frame came by a network; its message goes to the application at once.
    pub fn receive(&mut self, now_ns: u64, network: Network, frame: &[u8]) -> Verdict {
        let verdict = self.es.receiver.receive(now_ns, network, frame);
        if let Verdict::Delivered(port) = verdict
            && let Some((.., meter)) = self.meters.get_mut(port)
        {
            while let Some(message) = self.es.receiver.take(port) {
                meter.take(message.at_ns, &message.data);
            }
        }
        verdict
    }

    /// What each port has sent.
    pub fn sent(&self) -> impl Iterator<Item = Sent> {
        self.senders.iter().map(|sender| Sent {
            vl: sender.vl,
            sub_vl: sender.sub_vl,
            messages: sender.source.count(),
            refused: sender.refused,
        })
    }

    /// What each port has received: its virtual link and sub-VL, and what was measured.
    pub fn received(&self) -> impl Iterator<Item = (VlId, usize, MeterCounts)> {
        self.meters.iter().map(|(vl, sub_vl, meter)| (*vl, *sub_vl, meter.counts()))
    }
}
