//! Frames that lie in memory, switched a burst at a time.
//!
//! Compiled code takes a whole burst through ingress and egress where it lies. A packet that needs the traffic manager
//! (a copy, a second pass, a queue) comes back with its storage and goes on from there, in the place that it has in the
//! order of the burst. Programs that could notice that a burst runs ahead ([`crate::order`]) go packet by packet.

use crate::context::{Context, JitContext, Spare};
use crate::flight::Origin;
use crate::jit::{Ahead, drop_reason};
use crate::queues::Waiting;
use crate::switch::{MAX_COPIES, Switch, SwitchError};
use crate::{DropReason, PortId};
use millrace_jit::sampling::{Mark, mark};
use millrace_jit::{Batch, Results, Verdict};
use millrace_ports::{Burst, MAX_BATCH, Place, null::Written};

/// A packet of a burst from the first one on that needs the switch.
enum Left {
    /// It is to be sent.
    Forward(PortId, Vec<u8>),
    Dropped(DropReason, Option<PortId>),
    /// It has passed ingress; its storage, and its number in the burst.
    BehindIngress(JitContext, usize),
    /// It has passed egress, for that port; its storage.
    BehindEgress(PortId, JitContext),
}

/// Frames as they came in, as far as a program may write them.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// The start of each frame, with whatever lies behind a shorter one.
    blocks: Vec<[u8; BLOCK]>,
    /// How many blocks of each.
    each: usize,
}

/// What is copied at once of a frame that may be needed again.
const BLOCK: usize = 32;

impl Switch {
    /// Switches the frames of a burst, which come in on one port, at the time that the clock shows now, and hands on
    /// what leaves, in order; [`Switch::take_messages`] has the rest. Of the burst's memory it changes at most what [`Switch::written`] says.
    #[inline]
    pub fn switch_burst(&mut self, port: PortId, burst: &mut Burst<'_>, mut sent: impl FnMut(PortId, &[u8])) {
        for places in burst.places.chunks(MAX_BATCH) {
            let mut part = Burst { memory: &mut *burst.memory, places };
            if !self.run_ahead(port, &mut part, &mut sent) {
                self.one_by_one(port, &part, &mut sent);
            }
        }
    }

    /// What [`Switch::switch_burst`] may change of a frame and its surroundings.
    pub fn written(&self) -> Written {
        let ahead = self.engine.jit.as_ref().and_then(|jit| jit.ahead.as_ref());
        ahead.map_or_else(Written::default, Ahead::written)
    }

    /// Makes the best code for bursts here and now; else a large program starts with quickly made code, and a program that
    /// proves busy gets better code when another thread has made it.
    ///
    /// # Errors
    /// Why there is no better code; what there is goes on.
    pub fn use_best_code(&mut self) -> Result<(), SwitchError> {
        match &mut self.engine.jit {
            Some(jit) => {
                jit.use_best(&mut self.state).map_err(|error| SwitchError::Engine(error.to_string()))
            }
            None => Ok(()),
        }
    }

    /// The name of what runs the program.
    pub fn engine_name(&self) -> &'static str {
        self.engine.kind().name()
    }

    /// Has each packet of a burst pass the bodies on its own.
    fn one_by_one(&mut self, port: PortId, burst: &Burst<'_>, sent: &mut impl FnMut(PortId, &[u8])) {
        let frames = burst.places.iter().filter_map(|place| Some((port, frame(burst.memory, place)?)));
        let mut outcome = self.inject_batch(frames, 0);
        self.effects.digests.append(&mut outcome.digests);
        self.effects.log.append(&mut outcome.log);
        outcome.outputs().for_each(|(port, frame)| sent(port, frame));
    }

    /// Has compiled code take a burst as far as it can; false, and nothing done, when it may not.
    fn run_ahead(
        &mut self,
        port: PortId,
        burst: &mut Burst<'_>,
        sent: &mut impl FnMut(PortId, &[u8]),
    ) -> bool {
        if !self.queues.are_direct() || !self.port_exists(port) {
            return false;
        }
        let Some(jit) = self.engine.jit.as_deref_mut() else { return false };
        if let Err(error) = jit.look(&mut self.state) {
            self.effects.log.push(format!("{error}; the interpreter goes on"));
            self.engine.jit = None;
            return false;
        }
        let Some(ahead) = &mut jit.ahead else { return false };
        if ahead.reads_time || !self.clock.is_real() {
            self.now_ns = self.clock.now_ns();
        }
        let written = ahead.written();
        if ahead.keeps_arrivals {
            jit.arrivals.keep(burst, written.behind);
        }
        let places = Place::as_pairs(burst.places);
        let Some(batch) = Batch::new(burst.memory, places, port, ahead.code.headroom()) else {
            return false;
        };
        let bytes = batch.bytes();
        let mut host = ahead.code.host(&mut self.state);
        let results = batch.run(&ahead.code, &mut host, &mut ahead.contexts, &mut jit.outcomes, self.now_ns);

        if results.len() < burst.places.len() {
            // A table has changed its form between the look and the run.
            return false;
        }
        let mut dropped = 0;
        let mut known = self.counters.known();
        let done = results.while_each(|at, outcome, len| {
            if known.sent(outcome.port_to_send(), len) {
                sent(outcome.number(), results.bytes(at));
                return true;
            }
            let drops = outcome.verdict() == Verdict::IngressDrop;
            dropped += u64::from(drops);
            drops
        });
        let left = match done < results.len() {
            true => leave(ahead, &mut jit.spare, &results, done, &mut dropped),
            false => Vec::new(),
        };
        self.effects.append(host.take_effects());
        drop(host);
        self.counters.received_many(port, burst.places.len() as u64, bytes);
        self.counters.dropped_many(DropReason::IngressDrop, port, dropped);
        if !left.is_empty() {
            if !ahead.reads_time {
                self.now_ns = self.clock.now_ns();
            }
            self.finish_left(port, left, burst, sent);
        }
        true
    }
}

/// What the packets of a burst need from number `first` on. Those that ingress drops in front of the first one that needs
/// something are counted.
fn leave(
    ahead: &Ahead,
    spare: &mut Spare,
    results: &Results<'_>,
    first: usize,
    dropped: &mut u64,
) -> Vec<Left> {
    let mut left = Vec::with_capacity(results.len() - first);
    for (at, outcome) in results.outcomes().iter().enumerate().skip(first) {
        let number = outcome.number();
        left.push(match outcome.verdict() {
            Verdict::IngressDrop if left.is_empty() => {
                *dropped += 1;
                continue;
            }
            Verdict::Forward => Left::Forward(number, results.bytes(at).to_vec()),
            verdict @ (Verdict::Stopped | Verdict::StoppedBehindEgress) => {
                let own = spare.take(&ahead.contexts.storage, at, results.bytes(at));
                match verdict {
                    Verdict::Stopped => Left::BehindIngress(own, at),
                    _ => Left::BehindEgress(number, own),
                }
            }
            Verdict::EgressDrop => Left::Dropped(DropReason::EgressDrop, Some(number)),
            other => Left::Dropped(drop_reason(other, number).unwrap_or(DropReason::StepLimit), None),
        });
    }
    left
}

/// The bytes of a frame, when it lies in the memory.
fn frame<'m>(memory: &'m [u8], place: &Place) -> Option<&'m [u8]> {
    memory.get(place.at as usize..)?.get(..place.len as usize)
}

impl Arrivals {
    /// Keeps the first `written` bytes of each frame, in front of the program.
    #[inline]
    fn keep(&mut self, burst: &Burst<'_>, written: usize) {
        let longest = || burst.places.iter().map(|place| place.len as usize).max().unwrap_or(0);
        self.each = if written <= 8 * BLOCK { written } else { written.min(longest()) }.div_ceil(BLOCK);
        self.blocks.resize(self.each * burst.places.len(), [0; BLOCK]);
        if self.each == 0 {
            return;
        }
        for (kept, place) in self.blocks.chunks_exact_mut(self.each).zip(burst.places) {
            let bytes = burst.memory.get(place.at as usize..).unwrap_or(&[]);
            let (whole, rest) = bytes.as_chunks::<BLOCK>();
            // Block by block, as a call would cost more than it copies.
            for (kept, block) in kept.iter_mut().zip(whole) {
                *kept = *block;
            }
            if let Some(last) = kept.get_mut(whole.len()) {
                last[..rest.len()].copy_from_slice(rest);
            }
        }
    }

    /// A frame as it came in, from what was kept and what the program has not changed.
    fn frame(&self, number: usize, burst: &Burst<'_>) -> Vec<u8> {
        let Some(place) = burst.places.get(number) else { return Vec::new() };
        let mut frame = frame(burst.memory, place).unwrap_or(&[]).to_vec();
        let kept = self.blocks.iter().skip(number * self.each).take(self.each).flatten();
        frame.iter_mut().zip(kept).for_each(|(byte, kept)| *byte = *kept);
        frame
    }
}

impl Switch {
    /// Goes on with the packets of a burst from the first one on that needs the switch.
    fn finish_left(
        &mut self,
        port: PortId,
        left: Vec<Left>,
        burst: &Burst<'_>,
        sent: &mut impl FnMut(PortId, &[u8]),
    ) {
        // What a packet asks for in ingress happens in its own place, what it asks for in egress behind the burst: there
        // the rest of the burst is in the queues already.
        let mut later = Waiting::default();
        mark(Mark::Replication);
        let origin = Origin { port, time_ns: self.now_ns, passes: 1, budget: MAX_COPIES, journey: None };
        for packet in left {
            match packet {
                Left::Forward(to, bytes) => self.finish_frame(to, bytes, &origin),
                Left::Dropped(reason, to) => self.drop_packet(reason, &origin, to),
                Left::BehindIngress(context, number) => {
                    let parsed_bits = context.storage.parsed_bits(0);
                    let context = Context::Jit(context);
                    let arrival = match &self.engine.jit {
                        Some(jit) if self.wants_arrival(&context) => jit.arrivals.frame(number, burst),
                        _ => Vec::new(),
                    };
                    self.behind_ingress(context, arrival, parsed_bits, origin);
                    self.run_again();
                    for _ in 0..self.queues.waiting() {
                        let Some((departure, stay)) = self.queues.pop_waiting() else { break };
                        self.egress(departure, stay);
                        self.run_again();
                    }
                }
                Left::BehindEgress(to, context) => {
                    let parsed_bits = context.storage.parsed_bits(0);
                    self.behind_egress(Context::Jit(context), to, origin, parsed_bits, None);
                    self.run_again();
                }
            }
            self.queues.set_aside(&mut later);
        }
        self.queues.put_waiting(later);
        self.process();
        self.outcome.outputs().for_each(|(port, frame)| sent(port, frame));
        self.outcome.clear();
        mark(Mark::Burst);
    }

    fn run_again(&mut self) {
        while let Some(arrival) = self.again.pop_front() {
            self.ingress(arrival);
        }
    }
}
