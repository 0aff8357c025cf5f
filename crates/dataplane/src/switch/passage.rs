//! A packet's passage from part to part: in, from stage to stage, out, or dropped.

use super::{MAX_COPIES, Switch};
use crate::drops::Loss;
use crate::flight::{Arrival, Departure, Kept, Origin};
use crate::outcome::Outcome;
use crate::trace::{Fate, JourneyId, JourneyKind};
use crate::tracer::hex;
use crate::{DropReason, PortId, attached, burst, ecn, egress, ingress, quotas};
use millrace_engine::Context;
use millrace_frames::{MAX_FRAME, Service};
use millrace_pipeline::PacketPath;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long packets of a program, or for a port, that is to go may keep others waiting.
const PATIENCE: Duration = Duration::from_millis(100);

impl Switch {
    /// Lets all packets leave that wait. What a live switch cannot finish soon is dropped: the next program waits.
    pub(crate) fn run_empty(&mut self) {
        let begun = Instant::now();
        let program = Arc::clone(&self.forwarder.program);
        self.now_ns = self.clock.now_ns();
        attached::take(self, true);
        self.settle_device();
        loop {
            self.take_all_turns(begun, None);
            let Some((departure, stay)) = self.traffic.queues.pop_any() else { break };
            egress::egress(self, &program, departure, stay);
        }
    }

    /// Before a port goes: lets all packets leave that may leave now, in as many turns as they take. What a live switch cannot finish soon
    /// of what came in on the port or is for it is dropped, as other ports wait; so is what waits for its time or a rate. None of it may
    /// leave by a port that gets the number later.
    pub(crate) fn finish_port(&mut self, port: PortId) -> Outcome {
        self.take_all_turns(Instant::now(), Some(port));
        for departure in self.traffic.queues.take_for(port) {
            self.drop_departure(DropReason::NoQueue, &departure);
        }
        self.take_outcome()
    }

    /// Works until nothing is put off. After [`PATIENCE`] the rest is dropped: all of it, or what came in on a port or is for it.
    fn take_all_turns(&mut self, begun: Instant, of: Option<PortId>) {
        self.take_turn();
        while self.traffic.has_put_off() {
            if begun.elapsed() > PATIENCE {
                return self.drop_put_off(of);
            }
            self.take_turn();
        }
    }

    /// Exchanges program, code and objects with another switch.
    pub(crate) fn exchange(&mut self, next: &mut Switch) {
        std::mem::swap(&mut self.forwarder, &mut next.forwarder);
        self.forwarder.effects.clear();
        next.forwarder.effects.clear();
        self.forwarder.state.account().set_limits(self.traffic.allowances.quotas().limits());
        self.charge_replicators(next);
        self.traffic.turns.set_heavy(self.forwarder.weights.are_heavy());
        self.ledger.counters.start_sites(&self.forwarder.program);
        // Code that cannot be made is not missed: packets go by the class 0 then.
        let _ = self.tell_classes(!self.traffic.plans.is_empty());
        self.serve_plans();
        attached::inherit(self, next);
        if let Some(act) = next.take_at_exchange() {
            act();
        }
    }

    /// Groups and sessions are charged to the account of the program that they are there with, those of a leading worker.
    pub(crate) fn charge_replicators(&mut self, next: &mut Switch) {
        for switch in [self, next] {
            if switch.replicator.is_charged() {
                switch.replicator.charge_to(switch.forwarder.state.account());
            }
        }
    }

    pub(crate) fn let_time_pass(&mut self, time_ns: u64) {
        while let Some(next) = self.traffic.queues.next_departure_ns() {
            self.clock.advance_to(next.min(time_ns));
            if next > self.clock.now_ns() {
                break;
            }
            self.process();
            if self.traffic.turns.is_over() {
                break;
            }
        }
        self.clock.advance_to(time_ns);
        self.now_ns = self.clock.now_ns();
    }

    /// A packet enters the switch that came at a time; none: now.
    pub(crate) fn receive(&mut self, port: PortId, bytes: &[u8], came_ns: Option<u64>) {
        let path = PacketPath::Normal;
        let journey = self.forwarder.tracer.open(JourneyKind::Ingress, None, path, (port, 0));
        let time_ns = came_ns.map_or(self.now_ns, |came| came.min(self.now_ns));
        let origin = self.origin(port, time_ns, journey);
        if let Some(reason) = self.ports.closed(port, &mut self.ledger.counters) {
            return self.drop_packet(reason, &origin, None);
        }
        self.ledger.counters.received(port, bytes.len());
        if bytes.len() > MAX_FRAME {
            return self.drop_packet(DropReason::Oversize, &origin, None);
        }
        if let Err(reason) = self.traffic.budget.hold(bytes.len()) {
            return self.drop_packet(reason, &origin, None);
        }
        self.traffic.input.push_back(Arrival {
            bytes: self.buffers.copy(bytes),
            path,
            origin,
            kept: Kept::default(),
        });
    }

    /// What goes with a packet that came in at a time.
    pub(crate) fn origin(&mut self, port: PortId, time_ns: u64, journey: Option<JourneyId>) -> Origin {
        let steps = self.traffic.budget.set_out();
        Origin {
            port,
            time_ns,
            passes: 1,
            budget: MAX_COPIES,
            steps,
            journey,
            service: Service::default(),
            hops: self.hops,
            send_at_ns: 0,
            has_rested: false,
            is_marked: false,
        }
    }

    /// Works until nothing is left that can go on now, or the turn is over.
    pub(crate) fn process(&mut self) {
        // Once for all of them: workers share the program, and with it the count of those that hold it.
        let program = Arc::clone(&self.forwarder.program);
        self.now_ns = self.clock.now_ns();
        loop {
            if self.traffic.turns.look() {
                return self.traffic.put_off();
            }
            if let Some(arrival) = self.traffic.next_arrival() {
                ingress::ingress(self, &program, arrival);
            } else if self.traffic.queues.waiting() == 0
                && let Some(rest) = self.traffic.rest.pop_front()
            {
                burst::go_on_with(self, &program, rest);
            } else if let Some((departure, stay)) = self.traffic.queues.pop(self.now_ns) {
                egress::egress(self, &program, departure, stay);
            } else {
                break;
            }
        }
        self.drop_discarded();
    }

    pub(crate) fn take_outcome(&mut self) -> Outcome {
        let mut outcome = self.take_packets();
        let (digests, log) = quotas::take_said(self);
        (outcome.digests, outcome.log) = (digests.collect(), log);
        outcome
    }

    /// What became of packets, without what programs said.
    pub(crate) fn take_packets(&mut self) -> Outcome {
        let outcome = std::mem::take(&mut self.ledger.outcome);
        self.traffic.budget.release_sent(&outcome);
        outcome
    }

    /// Puts a packet before egress, where it has a journey of its own.
    pub(crate) fn enqueue(&mut self, mut departure: Departure, from: Option<JourneyId>) {
        let place = (departure.port, departure.rid);
        let journey = self.forwarder.tracer.open(JourneyKind::Egress, from, departure.path, place);
        departure.origin.journey = journey;
        departure.origin.service.class = departure.priority;
        if let Some(journey) = journey {
            self.forwarder.tracer.fate(from, || Fate::Forwarded { port: place.0, rid: place.1, journey });
        }
        let bytes = self.forwarder.weights.bytes_held(departure.context.len());
        if let Err((refused, reason)) = self.traffic.enqueue(departure, bytes, self.now_ns) {
            self.drop_packet(reason, &refused.origin, Some(refused.port));
        }
    }

    /// A packet starts again at ingress, unless it did so too often.
    pub(crate) fn start_again(&mut self, mut arrival: Arrival) -> Option<JourneyId> {
        let origin = &mut arrival.origin;
        if origin.passes >= self.max_passes || origin.budget == 0 {
            let origin = *origin;
            self.drop_packet(DropReason::RecirculationLimit, &origin, None);
            return None;
        }
        let refused = if self.traffic.budget.is_spent(origin.steps) {
            Some(DropReason::JourneyLimit)
        } else if self.traffic.budget.take_copies(1) == 0 {
            Some(DropReason::BatchLimit)
        } else if let Err(reason) = self.traffic.budget.check(arrival.bytes.len()) {
            Some(reason)
        } else if self.traffic.allowances.recirculations.take(1, self.now_ns) == 0 {
            Some(DropReason::RecirculationQuota)
        } else {
            self.traffic.budget.hold(arrival.bytes.len()).err()
        };
        if let Some(reason) = refused {
            let origin = *origin;
            self.drop_packet(reason, &origin, None);
            return None;
        }
        origin.passes += 1;
        origin.budget -= 1;
        let place = (origin.port, 0);
        origin.journey =
            self.forwarder.tracer.open(JourneyKind::Ingress, origin.journey, arrival.path, place);
        let journey = origin.journey;
        self.traffic.again.push_back(arrival);
        journey
    }

    /// A packet leaves the switch.
    pub(crate) fn transmit(&mut self, port: PortId, bytes: Vec<u8>, origin: &Origin) {
        if let Some(reason) = self.ports.closed_to(port, origin.port, &mut self.ledger.counters) {
            return self.drop_packet(reason, origin, Some(port));
        }
        if let Err(reason) = self.traffic.budget.hold(bytes.len()) {
            return self.drop_packet(reason, origin, Some(port));
        }
        let bytes = if origin.is_marked { ecn::marked(bytes) } else { bytes };
        self.forwarder.tracer.fate(origin.journey, || Fate::Sent { port, bytes: hex(&bytes) });
        self.ledger.sent(port, origin, bytes, self.now_ns);
    }

    /// Sends what plugins have answered a packet with to the port that it came in on.
    pub(crate) fn send_answers(&mut self, origin: &Origin) {
        if self.forwarder.effects.answers.is_empty() {
            return;
        }
        for bytes in self.forwarder.effects.take_answers() {
            egress::finish_frame(self, origin.port, bytes, origin);
        }
    }

    /// A packet goes nowhere.
    pub(crate) fn drop_packet(
        &mut self,
        loss: impl Into<Loss>,
        origin: &Origin,
        egress_port: Option<PortId>,
    ) {
        let loss = loss.into();
        self.forwarder.tracer.dropped(origin.journey, loss);
        self.count_drop(loss, origin, egress_port);
    }

    /// A packet or copy goes nowhere, which the trace tells in its own way.
    pub(crate) fn count_drop(&mut self, loss: impl Into<Loss>, origin: &Origin, egress_port: Option<PortId>) {
        self.ledger.dropped(loss.into(), origin, egress_port);
    }

    /// Drops what queues did not keep.
    fn drop_discarded(&mut self) {
        while let Some((departure, reason)) = self.traffic.queues.pop_discarded() {
            self.drop_departure(reason, &departure);
        }
    }

    /// Counts the steps that a packet has taken: those of stages that count them, and what the others weigh.
    pub(crate) fn charge(&mut self, origin: &Origin, weight: u32, context: &mut Context) {
        self.traffic.budget.take_steps(origin.steps, u64::from(weight) + context.take_steps());
    }

    /// Works for another turn on what was put off.
    pub(crate) fn go_on(&mut self) -> Outcome {
        self.take_turn();
        self.take_outcome()
    }

    fn take_turn(&mut self) {
        self.traffic.turns.begin();
        self.traffic.take_up();
        self.process();
    }

    /// Drops what was put off: all of it, or what came in on a port or is for it. The rest stays put off.
    fn drop_put_off(&mut self, of: Option<PortId>) {
        let gone = self.traffic.take_put_off(of, &self.forwarder.program);
        for arrival in gone.again.iter().chain(&gone.input) {
            self.traffic.budget.release(arrival.bytes.len());
            self.drop_packet(DropReason::BatchLimit, &arrival.origin, None);
        }
        gone.rest.iter().for_each(|rest| burst::drop_rest(self, rest));
        for departure in gone.waiting.departures() {
            self.drop_departure(DropReason::BatchLimit, departure);
        }
    }

    /// A packet that waited before egress goes nowhere.
    fn drop_departure(&mut self, reason: DropReason, departure: &Departure) {
        self.traffic.budget.release(self.forwarder.weights.bytes_held(departure.context.len()));
        self.drop_packet(reason, &departure.origin, Some(departure.port));
    }
}
