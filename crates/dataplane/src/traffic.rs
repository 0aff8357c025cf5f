//! The traffic manager: packets under way between stages, and what they may cost.

use crate::budget::Budget;
use crate::burst::Rest;
use crate::flight::{Arrival, Departure};
use crate::queues::{Queues, Waiting};
use crate::quotas::Allowances;
use crate::turns::Turns;
use crate::{DropReason, PortId};
use millrace_pipeline::Program;
use millrace_traffic::Plan;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Packets that are in the switch, and the limits for them.
#[derive(Debug)]
pub(crate) struct Traffic {
    /// Packets before egress.
    pub(crate) queues: Queues,
    /// Packets that start again, before others.
    pub(crate) again: VecDeque<Arrival>,
    /// Packets that have come in.
    pub(crate) input: VecDeque<Arrival>,
    /// Packets of bursts that compiled code has taken some of the way.
    pub(crate) rest: VecDeque<Rest>,
    pub(crate) budget: Budget,
    /// What quotas leave them.
    pub(crate) allowances: Allowances,
    pub(crate) turns: Turns,
    /// How ports serve what leaves by them ([`crate::Control::schedule`]), of those that tell packets apart.
    pub(crate) plans: BTreeMap<PortId, Arc<Plan>>,
    put_off: PutOff,
}

/// Packets that wait for another turn.
#[derive(Debug, Default)]
pub(crate) struct PutOff {
    pub(crate) again: VecDeque<Arrival>,
    pub(crate) input: VecDeque<Arrival>,
    pub(crate) waiting: Waiting,
    pub(crate) rest: VecDeque<Rest>,
    /// The ports that they came in on.
    ports: Vec<PortId>,
}

impl PutOff {
    fn note_ports(&mut self) {
        let again = self.again.iter().chain(&self.input).map(|arrival| arrival.origin.port);
        let rest = self.rest.iter().map(Rest::port);
        // Most packets that follow one another came in on one port.
        let waiting = self.waiting.departures().map(|departure| departure.origin.port);
        for port in again.chain(rest).chain(waiting) {
            if self.ports.last() != Some(&port) && !self.ports.contains(&port) {
                self.ports.push(port);
            }
        }
    }
}

impl Traffic {
    pub(crate) fn new(queues: Queues, packet_memory: usize) -> Traffic {
        Traffic {
            queues,
            again: VecDeque::new(),
            input: VecDeque::new(),
            rest: VecDeque::new(),
            budget: Budget::new(packet_memory),
            allowances: Allowances::default(),
            turns: Turns::default(),
            plans: BTreeMap::new(),
            put_off: PutOff::default(),
        }
    }

    /// The next packet before ingress.
    pub(crate) fn next_arrival(&mut self) -> Option<Arrival> {
        self.again.pop_front().or_else(|| self.input.pop_front())
    }

    /// Queues a packet that takes so many bytes while it waits.
    ///
    /// # Errors
    /// The packet, and why its queue did not take it.
    pub(crate) fn enqueue(
        &mut self,
        departure: Departure,
        bytes: usize,
        now_ns: u64,
    ) -> Result<(), (Box<Departure>, DropReason)> {
        if let Err(reason) = self.budget.hold(bytes) {
            return Err((Box::new(departure), reason));
        }
        self.queues.push(departure, now_ns).inspect_err(|_| self.budget.release(bytes))
    }

    /// Whether packets wait for another turn.
    pub(crate) fn has_put_off(&self) -> bool {
        let PutOff { again, input, waiting, rest, .. } = &self.put_off;
        !again.is_empty() || !input.is_empty() || !waiting.is_empty() || !rest.is_empty()
    }

    /// Whether packets that came in on a port wait for another turn, so that later ones are to wait at the port.
    pub(crate) fn holds_back(&self, port: PortId) -> bool {
        self.put_off.ports.contains(&port)
    }

    /// Puts off what is under way.
    pub(crate) fn put_off(&mut self) {
        let later = &mut self.put_off;
        later.again.append(&mut self.again);
        later.input.append(&mut self.input);
        later.rest.append(&mut self.rest);
        self.queues.set_aside(&mut later.waiting);
        later.note_ports();
    }

    /// Takes out what was put off: all of it, or what came in on a port or is known to be for it.
    pub(crate) fn take_put_off(&mut self, of: Option<PortId>, program: &Program) -> PutOff {
        let goes = |from: PortId, to: Option<PortId>| of.is_none_or(|port| from == port || to == Some(port));
        let PutOff { again, input, waiting, rest, .. } = std::mem::take(&mut self.put_off);
        let (mut gone, mut stays) = (PutOff::default(), PutOff::default());
        (gone.again, stays.again) = again.into_iter().partition(|arrival| goes(arrival.origin.port, None));
        (gone.input, stays.input) = input.into_iter().partition(|arrival| goes(arrival.origin.port, None));
        (gone.rest, stays.rest) = rest.into_iter().partition(|rest| goes(rest.port(), rest.to(program)));
        (gone.waiting, stays.waiting) =
            waiting.partition(|departure| goes(departure.origin.port, Some(departure.port)));
        stays.note_ports();
        self.put_off = stays;
        gone
    }

    /// What was put off is under way again.
    pub(crate) fn take_up(&mut self) {
        let PutOff { mut again, mut input, waiting, mut rest, .. } = std::mem::take(&mut self.put_off);
        // Nothing else is under way between two turns, but what came since goes after what was put off.
        again.append(&mut self.again);
        input.append(&mut self.input);
        rest.append(&mut self.rest);
        (self.again, self.input, self.rest) = (again, input, rest);
        self.queues.put_waiting(waiting);
    }
}
