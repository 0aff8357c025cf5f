//! Frames that lie in memory, switched a burst at a time.
//!
//! Compiled code takes a whole burst through ingress and egress where it lies. A packet that needs the traffic manager
//! (a copy, a second pass, a queue) comes back with its storage and goes on from there, in the place that it has in the
//! order of the burst. Programs that could notice that a burst runs ahead ([`crate::order`]) go packet by packet.

mod arrivals;

pub(crate) use arrivals::Arrivals;

use crate::buffers::Buffers;
use crate::counters::{KnownCounters, members};
use crate::drops::{Loss, loss};
use crate::flight::{Departure, Origin, Passed};
use crate::queues::{MAX_PRIORITIES, Waiting};
use crate::switch::Switch;
use crate::{DropReason, PortId, Sent, copies, egress, ingress};
use millrace_engine::{Batch, Context, Mark, Outcome, Ran, Results, Times, mark};
use millrace_frames::{Burst, MAX_BATCH, Service};
use millrace_midend::Verdict;
use millrace_pipeline::{PacketPath, Program};
use std::sync::Arc;

/// A packet of a burst from the first one on that needs the switch.
#[derive(Debug)]
enum Left {
    /// It is to be sent.
    Forward(PortId, Vec<u8>),
    /// It is to be sent to each port of a set.
    ForwardEach(u32, Vec<u8>),
    Dropped(Loss, Option<PortId>),
    /// It has passed ingress; its storage.
    AfterIngress(Context),
    /// It has passed egress, for that port; its storage.
    AfterEgress(PortId, Context),
    /// It has passed egress, wholly or but for what it asks for, and is to wait in the queue of that class.
    Queued(PortId, u8, Passed, Context),
}

/// A packet of a burst that goes on later.
#[derive(Debug)]
pub(crate) struct Rest {
    left: Left,
    /// Its bytes as they came in, when they are needed.
    arrival: Vec<u8>,
    origin: Origin,
}

impl Rest {
    /// The port that it came in on.
    pub(crate) fn port(&self) -> PortId {
        self.origin.port
    }

    /// The port that it is for, if it is for one and this is known.
    pub(crate) fn to(&self, program: &Program) -> Option<PortId> {
        match &self.left {
            Left::Forward(port, _) | Left::AfterEgress(port, _) | Left::Queued(port, ..) => Some(*port),
            Left::Dropped(_, port) => *port,
            Left::ForwardEach(..) => None,
            Left::AfterIngress(context) => ingress::only_port(program, context),
        }
    }
}

/// The times of packets whose program does not look at them.
const NO_TIMES: &[u64; MAX_BATCH] = &[0; MAX_BATCH];

/// A packet that leaves a burst.
#[derive(Clone, Copy, Debug)]
pub struct Output<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// The number of the packet of the burst whose room they lie in; none: they lie elsewhere. Packets may overtake others, and
    /// each number comes once.
    pub number: Option<usize>,
    /// How its port is to serve it, of a switch whose ports tell packets apart.
    pub service: Service,
    /// How many links between switches of one device the packet had taken that it comes from, if its bytes lie elsewhere.
    pub hops: u8,
}

impl<'a> Output<'a> {
    /// In the room of the packet of that number.
    fn within(number: usize, bytes: &'a [u8], service: Service) -> Output<'a> {
        Output { bytes, number: Some(number), service, hops: 0 }
    }

    fn elsewhere(sent: &'a Sent) -> Output<'a> {
        Output { bytes: &sent.bytes, number: None, service: sent.service, hops: sent.hops }
    }
}

/// [`Switch::switch_burst`].
#[inline]
pub(crate) fn pass(
    switch: &mut Switch,
    port: PortId,
    burst: &mut Burst<'_>,
    times: &[u64],
    mut sent: impl FnMut(PortId, Output<'_>),
) {
    switch.traffic.turns.begin();
    for first in (0..burst.places().len()).step_by(MAX_BATCH) {
        let mut part = burst.part(first..first + MAX_BATCH);
        let mut sent = |port, output: Output<'_>| {
            sent(port, Output { number: output.number.map(|number| first + number), ..output });
        };
        let times = times.get(first..).unwrap_or(&[]);
        if !run_ahead(switch, port, &mut part, times, &mut sent) {
            one_by_one(switch, port, &part, times, &mut sent);
        }
    }
}

/// Has each packet of a burst pass the bodies on its own.
fn one_by_one(
    switch: &mut Switch,
    port: PortId,
    burst: &Burst<'_>,
    times: &[u64],
    sent: &mut impl FnMut(PortId, Output<'_>),
) {
    let frame = |number| Some((port, burst.frame(number)?, times.get(number).copied()));
    switch.switch_each((0..burst.places().len()).filter_map(frame), 0);
    // What was said is taken with that of bursts.
    let outcome = switch.take_packets();
    outcome.sent.iter().for_each(|left| sent(left.port, Output::elsewhere(left)));
}

/// Has compiled code take a burst as far as it can; false, and nothing done, when it may not.
fn run_ahead(
    switch: &mut Switch,
    port: PortId,
    burst: &mut Burst<'_>,
    times: &[u64],
    sent: &mut impl FnMut(PortId, Output<'_>),
) -> bool {
    let classes = switch.traffic.queues.classes();
    if !(switch.traffic.queues.are_direct() || classes.is_some())
        || switch.ports.closed(port, &mut switch.ledger.counters).is_some()
    {
        return false;
    }
    let bursts = match switch.forwarder.engines.bursts(&mut switch.forwarder.state) {
        Ok(Some(bursts)) => bursts,
        Ok(None) => return false,
        Err(error) => {
            switch.forwarder.effects.say(format!("{error}; the interpreter goes on"));
            return false;
        }
    };
    let reads_time = switch.forwarder.reads_time;
    if reads_time || !switch.clock.is_real() {
        switch.now_ns = switch.clock.now_ns();
    }
    if bursts.keeps_arrivals() {
        switch.arrivals.keep(burst, bursts.footprint().within);
    }
    let (packets, bytes) = (burst.places().len(), burst.bytes());
    let each = match reads_time {
        true => switch.arrivals.note_times(packets, times, switch.now_ns),
        false => NO_TIMES.get(..packets).unwrap_or(&[]),
    };
    let Some(batch) = Batch::new(burst.reborrow(), port) else { return false };
    let mut dropped = 0;
    let left = {
        let mut bursts = bursts;
        let mut host = bursts.host(&mut switch.forwarder.state, &mut switch.forwarder.effects);
        let mut ran = bursts.run(batch, &mut host, Times { each, now_ns: switch.now_ns });
        if ran.results.len() < packets {
            // A table has changed its form between the look and the run, or frames have less headroom than the code takes.
            return false;
        }
        let mut known = switch.ledger.counters.known();
        let hops = (!switch.traffic.allowances.copies.is_limited()).then_some(switch.hops);
        let left = send(&mut ran, (classes, hops), (&mut known, &mut dropped), &mut switch.buffers, sent);
        switch.buffers.dropped_copies.extend_from_slice(ran.results.dropped_copies());
        left
    };
    switch.ledger.counters.received_many(port, packets as u64, bytes);
    switch.ledger.counters.dropped_many(DropReason::IngressDrop, port, dropped);
    if !switch.buffers.dropped_copies.is_empty() {
        count_dropped_copies(switch, port);
    }
    if !left.is_empty() || !switch.forwarder.effects.answers.is_empty() {
        if !reads_time {
            switch.now_ns = switch.clock.now_ns();
        }
        finish_left(switch, port, left, burst, sent);
    }
    true
}

/// Counts the copies that egress has dropped.
#[cold]
fn count_dropped_copies(switch: &mut Switch, port: PortId) {
    let origin = switch.origin(port, switch.now_ns, None);
    let mut dropped = std::mem::take(&mut switch.buffers.dropped_copies);
    for copy in dropped.drain(..) {
        let loss = Loss::at(DropReason::EgressDrop, copy.drop_site());
        switch.count_drop(loss, &origin, Some(copy.port()));
    }
    // Its memory serves the next burst.
    switch.buffers.dropped_copies = dropped;
}

/// Sends the packets of a burst that need no more of the switch, and gives the others. `hops` are those of the packets, if copies of them
/// may be made without asking.
#[inline]
fn send(
    ran: &mut Ran<'_>,
    (classes, hops): (Option<u8>, Option<u8>),
    (known, dropped): (&mut KnownCounters<'_>, &mut u64),
    buffers: &mut Buffers,
    sent: &mut impl FnMut(PortId, Output<'_>),
) -> Vec<(usize, Left)> {
    let served = classes.map(|classes| send_by_class(&ran.results, classes, known, dropped, sent));
    if let Some(left) = served.flatten() {
        return left;
    }
    let done = match classes {
        None if ran.by_class() => send_with_class(&ran.results, known, dropped, sent),
        None => send_in_order(&ran.results, hops, (known, dropped), sent),
        Some(_) => 0,
    };
    match done < ran.results.len() {
        true => leave(ran, done, (known, dropped), buffers),
        false => Vec::new(),
    }
}

/// Sends the packets of a burst up to the first one that needs the switch, also one for a port that is not known yet; gives its
/// number. It is no part of its caller, so that its loop has the registers for itself.
#[inline(never)]
fn send_in_order(
    results: &Results<'_>,
    hops: Option<u8>,
    (known, dropped): (&mut KnownCounters<'_>, &mut u64),
    sent: &mut impl FnMut(PortId, Output<'_>),
) -> usize {
    // Packets that follow one another are mostly dropped at one place: their count stays in a register.
    let (mut same, mut count) = (Outcome::NONE, 0);
    let done = results.while_each(|at, outcome, len| {
        if known.sent(outcome.port_to_send(), len) {
            sent(outcome.number(), Output::within(at, results.bytes(at), Service::default()));
            return true;
        }
        if outcome == same {
            count += 1;
            return true;
        }
        match outcome.verdict() {
            Verdict::IngressDrop => {
                known.dropped_at(same.drop_site(), count);
                *dropped += count;
                (same, count) = (outcome, 1);
                true
            }
            Verdict::ForwardEach => {
                let Some(hops) = hops else { return false };
                let ports = outcome.number();
                // Most sets have one port, so no loop.
                if ports.is_power_of_two() {
                    let port = ports.trailing_zeros();
                    let goes = known.sent(port.into(), len);
                    if goes {
                        sent(port, Output::within(at, results.bytes(at), Service::default()));
                    }
                    return goes;
                }
                let goes = known.sent_to_each(ports, len);
                if goes {
                    send_copies(results, at, (ports, hops), sent);
                }
                goes
            }
            _ => false,
        }
    });
    known.dropped_at(same.drop_site(), count);
    *dropped += count;
    done
}

/// Sends a packet to each port of a set: to the last one from where it lies, to the others copies of it.
fn send_copies(
    results: &Results<'_>,
    at: usize,
    (ports, hops): (u32, u8),
    sent: &mut impl FnMut(PortId, Output<'_>),
) {
    // Egress may have dropped all of them.
    let Some(last) = ports.checked_ilog2() else { return };
    let (bytes, service) = (results.bytes(at), Service::default());
    for port in members(ports & !(1 << last)) {
        sent(port, Output { bytes, number: None, service, hops });
    }
    sent(last, Output::within(at, bytes, service));
}

/// As [`send_in_order`], of code that tells the class of each packet: its port tells classes apart.
#[inline]
fn send_with_class(
    results: &Results<'_>,
    known: &mut KnownCounters<'_>,
    dropped: &mut u64,
    sent: &mut impl FnMut(PortId, Output<'_>),
) -> usize {
    results.while_each(|at, outcome, len| match outcome.verdict() {
        Verdict::Forward if known.sent(u64::from(outcome.number()), len) => {
            let service = Service { class: outcome.class(), queue: outcome.queue() };
            sent(outcome.number(), Output::within(at, results.bytes(at), service));
            true
        }
        Verdict::IngressDrop => {
            *dropped += 1;
            known.dropped_at(outcome.drop_site(), 1);
            true
        }
        _ => false,
    })
}

/// Sends the packets of a burst, those of the highest class first, and gives those for ports that are not known yet, in the same
/// order. None, and nothing is done, when a packet needs more of the switch: then all of them wait in queues.
fn send_by_class(
    results: &Results<'_>,
    classes: u8,
    known: &mut KnownCounters<'_>,
    dropped: &mut u64,
    sent: &mut impl FnMut(PortId, Output<'_>),
) -> Option<Vec<(usize, Left)>> {
    let is_simple = |outcome: &Outcome| matches!(outcome.verdict(), Verdict::Forward | Verdict::IngressDrop);
    if !results.outcomes().iter().all(is_simple) {
        return None;
    }
    // The numbers of the packets of each class, in their order.
    let mut waiting = [[0u8; MAX_BATCH]; MAX_PRIORITIES as usize];
    let mut counts = [0usize; MAX_PRIORITIES as usize];
    const { assert!(MAX_BATCH <= 1 << 8) };
    for (at, outcome) in results.outcomes().iter().enumerate() {
        if outcome.verdict() == Verdict::IngressDrop {
            *dropped += 1;
            known.dropped_at(outcome.drop_site(), 1);
            continue;
        }
        // A class that ports do not have is the lowest.
        let class = usize::from(if outcome.class() < classes { outcome.class() } else { 0 });
        waiting[class][counts[class]] = at as u8;
        counts[class] += 1;
    }
    let mut left = Vec::new();
    for (waiting, count) in waiting.iter().zip(counts).rev() {
        for at in waiting[..count].iter().map(|at| usize::from(*at)) {
            let (port, bytes) = (results.outcomes()[at].number(), results.bytes(at));
            match known.sent(u64::from(port), bytes.len() as u32) {
                true => sent(port, Output::within(at, bytes, Service::default())),
                false => left.push((at, Left::Forward(port, bytes.to_vec()))),
            }
        }
    }
    Some(left)
}

/// The packets of a burst from number `first` on, with what they need. Those that ingress drops before the first one that needs
/// something are counted.
fn leave(
    ran: &mut Ran<'_>,
    first: usize,
    (known, dropped): (&mut KnownCounters<'_>, &mut u64),
    buffers: &mut Buffers,
) -> Vec<(usize, Left)> {
    let mut left: Vec<(usize, Left)> = Vec::with_capacity(ran.results.len() - first);
    for (at, outcome) in ran.results.outcomes().iter().enumerate().skip(first) {
        let number = outcome.number();
        let one = match outcome.verdict() {
            Verdict::IngressDrop if left.is_empty() => {
                *dropped += 1;
                known.dropped_at(outcome.drop_site(), 1);
                continue;
            }
            verdict @ (Verdict::Forward | Verdict::StoppedAfterEgress) if ran.by_class() => {
                let passed = if verdict == Verdict::Forward { Passed::All } else { Passed::Bodies };
                Left::Queued(number, outcome.class(), passed, ran.context(at))
            }
            Verdict::Forward => Left::Forward(number, buffers.copy(ran.results.bytes(at))),
            Verdict::ForwardEach => Left::ForwardEach(number, buffers.copy(ran.results.bytes(at))),
            Verdict::Stopped => Left::AfterIngress(ran.context(at)),
            Verdict::StoppedAfterEgress => Left::AfterEgress(number, ran.context(at)),
            Verdict::EgressDrop => {
                Left::Dropped(Loss::at(DropReason::EgressDrop, outcome.drop_site()), Some(number))
            }
            other => {
                let loss = loss(other, number, outcome.drop_site());
                Left::Dropped(loss.unwrap_or(DropReason::StepLimit.into()), None)
            }
        };
        left.push((at, one));
    }
    left
}

/// Goes on with the packets of a burst from the first one on that needs the switch.
fn finish_left(
    switch: &mut Switch,
    port: PortId,
    left: Vec<(usize, Left)>,
    burst: &Burst<'_>,
    sent: &mut impl FnMut(PortId, Output<'_>),
) {
    // What a packet asks for in ingress happens in its own place, what it asks for in egress after the burst: there
    // the rest of the burst is in the queues already.
    let mut later = Waiting::default();
    let held = Arc::clone(&switch.forwarder.program);
    let program = &*held;
    mark(Mark::Replication);
    switch.traffic.budget.start_batch();
    if !switch.forwarder.effects.answers.is_empty() {
        let origin = switch.origin(port, switch.now_ns, None);
        switch.send_answers(&origin);
    }
    for (number, left) in left {
        let known = switch.arrivals.times.get(number).filter(|_| switch.forwarder.reads_time);
        let time_ns = known.copied().unwrap_or(switch.now_ns);
        let origin = switch.origin(port, time_ns, None);
        let arrival = arrival_of(switch, &left, number, burst);
        if switch.traffic.turns.look() {
            leave_for_later(switch, Rest { left, arrival, origin });
            continue;
        }
        let passed_ingress = matches!(left, Left::AfterIngress(..));
        go_on_from(switch, program, left, arrival, origin);
        run_again(switch, program);
        if passed_ingress {
            for _ in 0..switch.traffic.queues.waiting() {
                if switch.traffic.turns.look() {
                    break;
                }
                let Some((departure, stay)) = switch.traffic.queues.pop_waiting() else { break };
                egress::egress(switch, program, departure, stay);
                run_again(switch, program);
            }
        }
        if !switch.traffic.turns.is_over() {
            switch.traffic.queues.set_aside(&mut later);
        }
    }
    switch.traffic.queues.put_waiting(later);
    switch.process();
    let left = switch.ledger.outcome.sent.iter();
    left.for_each(|left| sent(left.port, Output::elsewhere(left)));
    switch.traffic.budget.release_sent(&switch.ledger.outcome);
    switch.ledger.outcome.sent.drain(..).for_each(|sent| switch.buffers.take_back(sent.bytes));
    switch.ledger.outcome.clear();
    mark(Mark::Burst);
}

/// The bytes of a packet as they came in, if they may be needed.
fn arrival_of(switch: &mut Switch, left: &Left, number: usize, burst: &Burst<'_>) -> Vec<u8> {
    match left {
        Left::AfterIngress(context) if ingress::wants_arrival_of(switch, context) => {
            switch.arrivals.frame(number, burst, &mut switch.buffers)
        }
        _ => Vec::new(),
    }
}

/// The bytes that a packet counts for while it waits.
fn bytes_of(switch: &Switch, rest: &Rest) -> usize {
    let len = match &rest.left {
        Left::Forward(_, bytes) | Left::ForwardEach(_, bytes) => bytes.len(),
        Left::Dropped(..) => 0,
        Left::AfterIngress(context) | Left::AfterEgress(_, context) | Left::Queued(_, _, _, context) => {
            context.len()
        }
    };
    switch.forwarder.weights.bytes_held(len) + rest.arrival.len()
}

/// Drops a packet that was left for later.
pub(crate) fn drop_rest(switch: &mut Switch, rest: &Rest) {
    switch.traffic.budget.release(bytes_of(switch, rest));
    switch.drop_packet(DropReason::BatchLimit, &rest.origin, None);
}

/// A packet waits for another turn.
fn leave_for_later(switch: &mut Switch, rest: Rest) {
    match switch.traffic.budget.hold(bytes_of(switch, &rest)) {
        Ok(()) => switch.traffic.rest.push_back(rest),
        Err(reason) => switch.drop_packet(reason, &rest.origin, None),
    }
}

/// Goes on with a packet that was left for later.
pub(crate) fn go_on_with(switch: &mut Switch, program: &Program, rest: Rest) {
    switch.traffic.budget.release(bytes_of(switch, &rest));
    go_on_from(switch, program, rest.left, rest.arrival, rest.origin);
}

/// Goes on with a packet where compiled code left it.
#[inline(always)]
fn go_on_from(switch: &mut Switch, program: &Program, left: Left, arrival: Vec<u8>, origin: Origin) {
    match left {
        Left::Forward(to, bytes) => egress::finish_frame(switch, to, bytes, &origin),
        Left::ForwardEach(ports, bytes) => copies::send_each(switch, ports, bytes, &origin),
        Left::Dropped(loss, to) => switch.drop_packet(loss, &origin, to),
        Left::AfterIngress(mut context) => {
            switch.charge(&origin, switch.forwarder.weights.ingress, &mut context);
            ingress::after_ingress(switch, program, context, arrival, origin);
        }
        Left::AfterEgress(to, mut context) => {
            let parsed_bits = context.parsed_bits();
            let weight = switch.forwarder.weights.ingress.saturating_add(switch.forwarder.weights.egress);
            switch.charge(&origin, weight, &mut context);
            egress::after_egress(switch, program, context, to, origin, (parsed_bits, None));
        }
        Left::Queued(port, priority, passed, mut context) => {
            let parsed_bits = context.parsed_bits();
            let weight = switch.forwarder.weights.ingress.saturating_add(switch.forwarder.weights.egress);
            switch.charge(&origin, weight, &mut context);
            let path = PacketPath::Normal;
            let (rid, truncate) = (0, None);
            let waits =
                Departure { context, passed, path, origin, parsed_bits, port, rid, priority, truncate };
            switch.enqueue(waits, None);
        }
    }
}

fn run_again(switch: &mut Switch, program: &Program) {
    while !switch.traffic.again.is_empty() && !switch.traffic.turns.look() {
        let Some(arrival) = switch.traffic.again.pop_front() else { break };
        ingress::ingress(switch, program, arrival);
    }
}
