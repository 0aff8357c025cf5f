//! Which switch a frame of a port of the machine goes to, and the frames on their way there.

use crate::wire::Wire;
use millrace_classifier::{Classifier, Hit, Match, Rule, RuleError, TagAction, Target, Verdict};
use millrace_frames::{Batch, MAX_BATCH, Packet, PacketPool};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which frames of a port of the machine come to a port of a switch.
#[derive(Clone, Debug)]
pub struct Route {
    /// The port of the machine.
    pub physical: u16,
    /// Its frames that come.
    pub matches: Match,
    /// What becomes of their tags.
    pub tag: TagAction,
    /// Whether the switch gets broadcast and multicast of a port that it shares by address.
    pub flood: bool,
    /// The port of the switch.
    pub wire: Arc<Wire>,
}

/// Where frames go.
#[derive(Debug)]
pub(crate) struct Routes {
    classifier: Classifier,
    wires: Vec<Arc<Wire>>,
    /// Frames that were nobody's.
    unclassified: Arc<AtomicU64>,
}

impl Routes {
    /// # Errors
    /// [`RuleError`]: two routes cannot be told apart, or there are too many.
    pub(crate) fn new(routes: &[Route], unclassified: Arc<AtomicU64>) -> Result<Routes, RuleError> {
        let (mut wires, mut places) = (Vec::new(), HashMap::new());
        let mut rules = Vec::new();
        for Route { physical, matches, tag, flood, wire } in routes {
            let place = *places.entry(Arc::as_ptr(wire)).or_insert_with(|| {
                wires.push(Arc::clone(wire));
                wires.len() as u32 - 1
            });
            let target = Target { switch: 0, port: place };
            rules.push(Rule {
                physical: *physical,
                matches: matches.clone(),
                target,
                tag: *tag,
                flood: *flood,
            });
        }
        Ok(Routes { classifier: Classifier::new(&rules)?, wires, unclassified })
    }
}

/// Says which switch a frame of a port of the machine belongs to, in a way that nobody here knows: what [`Match::Id`] compares.
pub trait Classify: std::fmt::Debug + Send {
    /// The result for a frame; none: it has none.
    fn id(&mut self, physical: u16, frame: &[u8]) -> Option<u32>;
}

/// Frames of a lane's ports on their way to the inboxes of switches.
pub(crate) struct Spread {
    routes: Arc<Routes>,
    pub(crate) classify: Option<Box<dyn Classify>>,
    shares: Shares,
    collected: usize,
}

/// What each wire gets.
struct Shares {
    by_wire: Vec<Share>,
    /// The wires that get something.
    touched: Vec<usize>,
}

/// What one wire gets.
#[derive(Default)]
struct Share {
    batch: Batch,
    /// How many it has been given since frames were handed over last.
    given: usize,
}

impl Spread {
    pub(crate) fn new(routes: Arc<Routes>, classify: Option<Box<dyn Classify>>) -> Spread {
        let by_wire = routes.wires.iter().map(|_| Share::default()).collect();
        Spread { routes, classify, shares: Shares { by_wire, touched: Vec::new() }, collected: 0 }
    }

    /// How many wires get something.
    pub(crate) fn touched(&self) -> usize {
        self.shares.touched.len()
    }

    /// Frames that were given and not handed over.
    pub(crate) fn collected(&self) -> usize {
        self.collected
    }

    /// Frames have come to a port of the machine.
    #[inline]
    pub(crate) fn give(&mut self, physical: u16, batch: &mut Batch, pool: &mut PacketPool) {
        let Spread { routes, classify, shares, collected } = self;
        *collected += batch.len();
        let rules = routes.classifier.port(physical);
        if let Some(hit) = rules.whole().filter(|hit| hit.tag == TagAction::Keep) {
            return shares.give_all(&routes.wires[hit.port as usize], hit.port as usize, batch, pool);
        }
        batch.ask_for_frames();
        let mut classify = classify.as_mut().filter(|_| rules.compares_ids());
        let mut verdicts = [Verdict::None; MAX_BATCH];
        for (packet, verdict) in batch.packets_mut().iter_mut().zip(&mut verdicts) {
            let id = classify.as_mut().and_then(|classify| classify.id(physical, packet.data()));
            *verdict = rules.classify(packet.data(), id);
            if let Verdict::One(hit) = verdict {
                hit.tag.apply(packet);
                let batch = &mut shares.by_wire[hit.port as usize].batch;
                // A request for memory that there is not takes as long as a miss.
                batch.make_room();
                batch.ask_for_end();
            }
        }
        for (packet, verdict) in batch.drain().zip(verdicts) {
            match verdict {
                Verdict::One(hit) => shares.give(&routes.wires, hit.port as usize, packet, pool),
                Verdict::None => {
                    routes.unclassified.fetch_add(1, Ordering::Relaxed);
                    pool.put(packet);
                }
                Verdict::All(hits) => shares.give_each(&routes.wires, hits, packet, pool),
            }
        }
    }

    /// Gives the wires what they get, and tells how many came for each of them since the last time.
    #[inline]
    pub(crate) fn hand_over(&mut self, pool: &mut PacketPool, mut tell: impl FnMut(&Wire, usize)) {
        let Spread { routes, shares: Shares { by_wire, touched }, collected, .. } = self;
        for at in touched.drain(..) {
            let (Share { batch, given }, wire) = (&mut by_wire[at], &routes.wires[at]);
            tell(wire, std::mem::take(given));
            wire.deliver(batch, pool);
            batch.rest();
        }
        *collected = 0;
    }
}

impl Shares {
    /// The batch of a wire that is given so many.
    #[inline]
    fn of(&mut self, wire: usize, packets: usize) -> &mut Batch {
        let Share { batch, given } = &mut self.by_wire[wire];
        if *given == 0 {
            self.touched.push(wire);
        }
        *given += packets;
        batch
    }

    /// All frames of a batch go to one wire.
    fn give_all(&mut self, wire: &Wire, at: usize, batch: &mut Batch, pool: &mut PacketPool) {
        let share = self.of(at, batch.len());
        if !share.take_all(batch) {
            // It has some already: they go first.
            wire.deliver(share, pool);
            if !share.take_all(batch) {
                wire.deliver(batch, pool);
            }
        }
    }

    /// A frame goes to each of some wires.
    fn give_each(&mut self, wires: &[Arc<Wire>], hits: &[Hit], mut packet: Packet, pool: &mut PacketPool) {
        let Some((last, others)) = hits.split_last() else { return pool.put(packet) };
        for hit in others {
            let copy = pool.take().map(|mut copy| copy.copy_from(&packet).map(|()| copy));
            match copy {
                Some(Ok(mut copy)) => {
                    hit.tag.apply(&mut copy);
                    self.give(wires, hit.port as usize, copy, pool);
                }
                _ => wires[hit.port as usize].lacks_packet(),
            }
        }
        last.tag.apply(&mut packet);
        self.give(wires, last.port as usize, packet, pool);
    }

    #[inline]
    fn give(&mut self, wires: &[Arc<Wire>], wire: usize, packet: Packet, pool: &mut PacketPool) {
        let share = self.of(wire, 1);
        if share.is_full() {
            wires[wire].deliver(share, pool);
        }
        if let Err(packet) = share.push(packet) {
            pool.put(packet);
        }
    }
}
