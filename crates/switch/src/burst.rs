//! Frames that lie in memory, switched a burst at a time.
//!
//! Compiled code takes a whole burst through ingress and egress where it lies. A packet that needs the traffic manager
//! (a copy, a second pass, a queue) comes back with its storage and goes on from there, in the place that it has in the
//! order of the burst. Programs that could notice that a burst runs ahead ([`crate::order`]) go packet by packet.

use crate::context::{Context, JitContext};
use crate::flight::Origin;
use crate::jit::{drop_reason, take_effects};
use crate::queues::Waiting;
use crate::switch::{MAX_COPIES, Switch};
use crate::{DropReason, PortId};
use millrace_jit::Verdict;
use millrace_ports::{Burst, MAX_BATCH, MAX_FRAME, Place, null::Written};

/// A packet of a burst from the first one on that needs the switch.
enum Left {
    /// It is to be sent.
    Forward(PortId, Vec<u8>),
    Dropped(DropReason, Option<PortId>),
    /// It has passed ingress; its storage, and the bytes as they came in.
    BehindIngress(Box<JitContext>, Vec<u8>),
    /// It has passed egress, for that port; its storage.
    BehindEgress(PortId, Box<JitContext>),
}

impl Switch {
    /// Switches the frames of a burst, which come in on one port, at the time that the clock shows now, and hands on
    /// what leaves, in order; [`Switch::take_messages`] has the rest. Of the burst's memory it changes at most what [`Switch::written`] says.
    #[inline]
    pub fn switch_burst(&mut self, port: PortId, burst: &mut Burst<'_>, mut sent: impl FnMut(PortId, &[u8])) {
        for places in burst.places.chunks(MAX_BATCH) {
            if self.may_run_ahead(port, places) {
                let mut part = Burst { memory: &mut *burst.memory, places };
                self.run_ahead(port, &mut part, &mut sent);
            } else {
                let memory = &*burst.memory;
                let frames = places.iter().filter_map(|place| Some((port, frame(memory, place)?)));
                let mut outcome = self.inject_batch(frames, 0);
                self.effects.digests.append(&mut outcome.digests);
                self.effects.log.append(&mut outcome.log);
                outcome.outputs().for_each(|(port, frame)| sent(port, frame));
            }
        }
    }

    /// What [`Switch::switch_burst`] may change of a frame and its surroundings.
    pub fn written(&self) -> Written {
        let through = self.engine.jit.as_ref().and_then(|jit| jit.through.as_ref());
        through.map_or_else(Written::default, |code| Written { front: code.headroom(), behind: MAX_FRAME })
    }

    /// The name of what runs the program.
    pub fn engine_name(&self) -> &'static str {
        self.engine.kind().name()
    }

    /// Whether compiled code may take a burst as far as it can.
    fn may_run_ahead(&mut self, port: PortId, places: &[Place]) -> bool {
        self.engine.jit.as_ref().is_some_and(|jit| jit.through.is_some())
            && self.queues.are_direct()
            && places.iter().all(|place| place.len as usize <= MAX_FRAME)
            && self.port_exists(port)
    }

    fn run_ahead(&mut self, port: PortId, burst: &mut Burst<'_>, sent: &mut impl FnMut(PortId, &[u8])) {
        self.now_ns = self.clock.now_ns();
        let Some(jit) = self.engine.jit.as_deref_mut() else { return };
        let Some(code) = &jit.through else { return };
        let arrivals: Vec<Vec<u8>> = match jit.keeps_arrivals {
            true => {
                burst.places.iter().map(|place| frame(burst.memory, place).unwrap_or(&[]).to_vec()).collect()
            }
            false => Vec::new(),
        };
        let mut host = code.host(&mut self.state);
        let mut batch = jit.list.over(burst.memory, code.headroom());
        let mut bytes = 0;
        for place in burst.places {
            bytes += u64::from(place.len);
            batch.push(place.at as usize, place.len as usize, port);
        }
        self.counters.received_many(port, burst.places.len() as u64, bytes);
        let results = batch.run(code, &mut host, &mut jit.contexts, self.now_ns);
        let (mut dropped_in_ingress, mut left) = (0, Vec::new());
        for (at, (verdict, number)) in results.verdicts().enumerate() {
            match verdict {
                Verdict::Forward
                    if left.is_empty() && self.counters.sent_to_known(number, results.bytes(at)) =>
                {
                    sent(number, results.bytes(at));
                }
                Verdict::IngressDrop if left.is_empty() => dropped_in_ingress += 1,
                Verdict::Forward => left.push(Left::Forward(number, results.bytes(at).to_vec())),
                Verdict::Stopped | Verdict::StoppedBehindEgress => {
                    let mut own = JitContext::new(code.contexts(1), results.bytes(at));
                    own.contexts.copy_from(0, &jit.contexts, at);
                    left.push(match verdict {
                        Verdict::Stopped => {
                            let arrival = arrivals.get(at).cloned().unwrap_or_default();
                            Left::BehindIngress(Box::new(own), arrival)
                        }
                        _ => Left::BehindEgress(number, Box::new(own)),
                    });
                }
                Verdict::EgressDrop => left.push(Left::Dropped(DropReason::EgressDrop, Some(number))),
                other => {
                    let reason = drop_reason(other, number).unwrap_or(DropReason::StepLimit);
                    left.push(Left::Dropped(reason, None));
                }
            }
        }
        take_effects(host.take_effects(), &mut self.effects);
        drop(host);
        self.counters.dropped_many(DropReason::IngressDrop, port, dropped_in_ingress);
        if !left.is_empty() {
            self.finish_left(port, left, sent);
        }
    }
}

/// The bytes of a frame, when it lies in the memory.
fn frame<'m>(memory: &'m [u8], place: &Place) -> Option<&'m [u8]> {
    memory.get(place.at as usize..)?.get(..place.len as usize)
}

impl Switch {
    /// Goes on with the packets of a burst from the first one on that needs the switch.
    fn finish_left(&mut self, port: PortId, left: Vec<Left>, sent: &mut impl FnMut(PortId, &[u8])) {
        // What a packet asks for in ingress happens in its own place, what it asks for in egress behind the burst: there
        // the rest of the burst is in the queues already.
        let mut later = Waiting::default();
        let origin = Origin { port, time_ns: self.now_ns, passes: 1, budget: MAX_COPIES, journey: None };
        for packet in left {
            match packet {
                Left::Forward(to, bytes) => self.finish_frame(to, bytes, &origin),
                Left::Dropped(reason, to) => self.drop_packet(reason, &origin, to),
                Left::BehindIngress(context, arrival) => {
                    let parsed_bits = context.contexts.parsed_bits(0);
                    self.behind_ingress(Context::Jit(*context), arrival, parsed_bits, origin);
                    self.run_again();
                    for (departure, stay) in self.queues.take_waiting() {
                        self.egress(departure, stay);
                        self.run_again();
                    }
                }
                Left::BehindEgress(to, context) => {
                    let parsed_bits = context.contexts.parsed_bits(0);
                    self.behind_egress(Context::Jit(*context), to, origin, parsed_bits, None);
                    self.run_again();
                }
            }
            later.append(self.queues.take_waiting());
        }
        self.queues.put_waiting(later);
        self.process();
        std::mem::take(&mut self.outcome).outputs().for_each(|(port, frame)| sent(port, frame));
    }

    fn run_again(&mut self) {
        while let Some(arrival) = self.again.pop_front() {
            self.ingress(arrival);
        }
    }
}
