//! Which switch a frame of a port of the machine goes to, and the frames on their way there.

use crate::wire::Wire;
use millrace_classifier::{Classifier, Hit, Match, Rule, RuleError, TagAction, Target, Verdict};
use millrace_frames::{Batch, Packet, PacketPool};
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
        let mut wires: Vec<Arc<Wire>> = Vec::new();
        let mut rules = Vec::new();
        for Route { physical, matches, tag, flood, wire } in routes {
            // The wires of a switch come one after the other.
            let known = wires.iter().rposition(|known| Arc::ptr_eq(known, wire));
            let place = known.unwrap_or_else(|| {
                wires.push(Arc::clone(wire));
                wires.len() - 1
            });
            let target = Target { switch: 0, port: place as u32 };
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

/// Frames of a lane's ports on their way to the inboxes of switches.
pub(crate) struct Spread {
    routes: Arc<Routes>,
    /// What each wire gets.
    shares: Vec<Option<Batch>>,
    /// The wires that get something.
    touched: Vec<usize>,
    collected: usize,
    spare: Vec<Batch>,
}

impl Spread {
    pub(crate) fn new(routes: Arc<Routes>) -> Spread {
        let shares = routes.wires.iter().map(|_| None).collect();
        Spread { routes, shares, touched: Vec::new(), collected: 0, spare: Vec::new() }
    }

    /// How many wires get something.
    pub(crate) fn touched(&self) -> usize {
        self.touched.len()
    }

    /// Frames that were given and not handed over.
    pub(crate) fn collected(&self) -> usize {
        self.collected
    }

    /// Frames have come to a port of the machine.
    #[inline]
    pub(crate) fn give(&mut self, physical: u16, batch: &mut Batch, pool: &mut PacketPool) {
        self.collected += batch.len();
        let routes = Arc::clone(&self.routes);
        match routes.classifier.whole(physical) {
            Some(hit) if hit.tag == TagAction::Keep => self.give_all(hit.port as usize, batch, pool),
            _ => batch.drain().for_each(|packet| self.give_one(&routes, physical, packet, pool)),
        }
    }

    /// All frames of a batch go to one switch.
    fn give_all(&mut self, wire: usize, batch: &mut Batch, pool: &mut PacketPool) {
        let routes = &self.routes;
        let share = share(&mut self.shares, &mut self.touched, &mut self.spare, wire);
        if share.take_all(batch) {
            return;
        }
        // It has some already: they go first.
        routes.wires[wire].deliver(share, pool);
        if !share.take_all(batch) {
            routes.wires[wire].deliver(batch, pool);
        }
    }

    #[inline]
    fn give_one(&mut self, routes: &Routes, physical: u16, packet: Packet, pool: &mut PacketPool) {
        match routes.classifier.classify(physical, packet.data(), None) {
            Verdict::One(hit) => self.give_to(routes, hit, packet, pool),
            Verdict::None => {
                routes.unclassified.fetch_add(1, Ordering::Relaxed);
                pool.put(packet);
            }
            Verdict::All(hits) => {
                let Some((last, others)) = hits.split_last() else { return pool.put(packet) };
                for hit in others {
                    let copy = pool.take().map(|mut copy| copy.copy_from(&packet).map(|()| copy));
                    match copy {
                        Some(Ok(copy)) => self.give_to(routes, *hit, copy, pool),
                        _ => routes.wires[hit.port as usize].lacks_packet(),
                    }
                }
                self.give_to(routes, *last, packet, pool);
            }
        }
    }

    #[inline]
    fn give_to(&mut self, routes: &Routes, hit: Hit, packet: Packet, pool: &mut PacketPool) {
        let wire = hit.port as usize;
        let share = share(&mut self.shares, &mut self.touched, &mut self.spare, wire);
        if share.is_full() {
            routes.wires[wire].deliver(share, pool);
        }
        match share.push(packet) {
            Ok(packet) => hit.tag.apply(packet),
            Err(packet) => pool.put(packet),
        }
    }

    /// Gives the wires what they get.
    #[inline]
    pub(crate) fn hand_over(&mut self, pool: &mut PacketPool) {
        let Spread { routes, shares, touched, spare, collected } = self;
        for wire in touched.drain(..) {
            let Some(mut share) = shares[wire].take() else { continue };
            routes.wires[wire].deliver(&mut share, pool);
            spare.push(share);
        }
        *collected = 0;
    }
}

/// What a wire gets.
#[inline]
fn share<'a>(
    shares: &'a mut [Option<Batch>],
    touched: &mut Vec<usize>,
    spare: &mut Vec<Batch>,
    wire: usize,
) -> &'a mut Batch {
    shares[wire].get_or_insert_with(|| {
        touched.push(wire);
        spare.pop().unwrap_or_default()
    })
}
