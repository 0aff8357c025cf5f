//! Which switch a frame of a port of the machine goes to, and the frames on their way there.

use crate::wire::Wire;
use millrace_classifier::{Classifier, Flood, Hit, Match, Rule, RuleError, TagAction, Target, Verdict};
use millrace_frames::{Batch, MAX_BATCH, Packet, PacketPool, ask_for_start};
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
    /// About how many bytes these have.
    bytes: usize,
    /// Where frames of a batch go that do not go to one wire: nobody's, or those of several.
    others: Vec<Option<Flood>>,
}

/// How many wires before one gets its packets what it needs is asked for.
const AHEAD: usize = 4;

/// Where a frame goes: the number of a wire, or from here on a place among those that do not go to one wire. There are no more wires than places
/// of a lane's queues, and no more of the others than packets in a batch.
type Goal = u32;
const NOT_ONE: Goal = 1 << 31;

/// What each wire gets.
struct Shares {
    /// By wire.
    batches: Vec<Batch>,
    /// By wire: how many have gone to its inbox since frames were handed over last, as the batch was full.
    delivered: Vec<usize>,
    /// The wires that get something: their batches have memory.
    touched: Vec<usize>,
    /// How many packets may wait for a wire, at least.
    places: usize,
    /// Whether one more batch may have no room at a wire whose switch keeps up.
    is_full: bool,
}

/// The switch of a wire for which so many packets or more waited before it was given some is slow, or has used its time: nobody waits for it.
pub(crate) const SLOW: usize = 2 * MAX_BATCH;

impl Spread {
    pub(crate) fn new(routes: Arc<Routes>, classify: Option<Box<dyn Classify>>) -> Spread {
        let wires = routes.wires.len();
        let batches = routes.wires.iter().map(|_| Batch::new()).collect();
        let (delivered, touched) = (vec![0; wires], Vec::new());
        let shares = Shares { batches, delivered, touched, places: MAX_BATCH, is_full: false };
        Spread { routes, classify, shares, collected: 0, bytes: 0, others: Vec::with_capacity(MAX_BATCH) }
    }

    /// The wire that all frames of a port of the machine go to as they are.
    pub(crate) fn whole(&self, physical: u16) -> Option<&Arc<Wire>> {
        let hit = self.routes.classifier.whole(physical).filter(|hit| hit.tag == TagAction::Keep)?;
        Some(&self.routes.wires[hit.port as usize])
    }

    /// How many wires get something.
    pub(crate) fn touched(&self) -> usize {
        self.shares.touched.len()
    }

    /// From now on so many packets may wait for a wire, at least.
    pub(crate) fn set_places(&mut self, places: usize) {
        self.shares.places = places.max(MAX_BATCH);
    }

    /// Whether more frames may find no room at a wire, although its switch keeps up.
    pub(crate) fn is_full(&self) -> bool {
        self.shares.is_full
    }

    /// Frames that were given and not handed over.
    pub(crate) fn collected(&self) -> usize {
        self.collected
    }

    /// About how many bytes these have.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Frames have come to a port of the machine.
    ///
    /// First it is found out where each frame goes, and what changes in it is changed; then packets are moved. A packet that is moved right after a
    /// change waits until the processor has stored that.
    #[inline]
    pub(crate) fn give(&mut self, physical: u16, batch: &mut Batch, pool: &mut PacketPool) {
        let Spread { routes, classify, shares, collected, bytes, others } = self;
        *collected += batch.len();
        // As if all were as long as the first: to add them up would cost more than it is for.
        *bytes += batch.packets().first().map_or(0, |first| first.len() * batch.len());
        let rules = routes.classifier.port(physical);
        if let Some(hit) = rules.whole().filter(|hit| hit.tag == TagAction::Keep) {
            return shares.give_all(&routes.wires[hit.port as usize], hit.port as usize, batch, pool);
        }
        batch.ask_for_frames();
        let mut classify = classify.as_mut().filter(|_| rules.compares_ids());
        let mut goals: [Goal; MAX_BATCH] = [NOT_ONE; MAX_BATCH];
        others.clear();
        for (packet, goal) in batch.packets_mut().iter_mut().zip(&mut goals) {
            let hit = rules.by_vlan(packet.data()).or_else(|| {
                let id = classify.as_mut().and_then(|classify| classify.id(physical, packet.data()));
                let other = match rules.classify(packet.data(), id) {
                    Verdict::One(hit) => return Some(hit),
                    Verdict::All(flood) => Some(flood),
                    Verdict::None => None,
                };
                *goal = NOT_ONE | others.len() as Goal;
                others.push(other);
                None
            });
            if let Some(hit) = hit {
                hit.tag.apply(packet);
                shares.expect(hit.port as usize);
                *goal = hit.port;
            }
        }
        batch.deal(&mut goals, &mut shares.batches);
        if batch.is_empty() {
            return;
        }
        // What is left is for no wire or for several, or its batch was full, which a batch is not once its packets have gone to the inbox.
        for goal in goals.iter().take(batch.len()).filter(|goal| **goal < NOT_ONE) {
            shares.deliver_full(&routes.wires, *goal as usize, pool);
        }
        batch.deal(&mut goals, &mut shares.batches);
        for (packet, goal) in batch.drain().zip(goals) {
            match others.get(goal.wrapping_sub(NOT_ONE) as usize).copied().flatten() {
                Some(flood) => shares.give_each(&routes.wires, routes.classifier.hits(flood), packet, pool),
                None => {
                    routes.unclassified.fetch_add(1, Ordering::Relaxed);
                    pool.put(packet);
                }
            }
        }
    }

    /// Gives the wires what they get, and tells how many came for each of them since the last time.
    #[inline]
    pub(crate) fn hand_over(&mut self, pool: &mut PacketPool, mut tell: impl FnMut(&Wire, usize)) {
        let Spread { routes, shares, collected, bytes, .. } = self;
        let Shares { batches, delivered, touched, is_full, .. } = shares;
        let wire = |place: usize| touched.get(place).map(|at| &routes.wires[*at]);
        (0..2 * AHEAD).filter_map(wire).for_each(|wire| ask_for_start(&**wire));
        (0..AHEAD).filter_map(wire).for_each(|wire| wire.ask_ahead());
        for (place, at) in touched.iter().copied().enumerate() {
            // First the wires, then what these point to.
            wire(place + 2 * AHEAD).into_iter().for_each(|wire| ask_for_start(&**wire));
            wire(place + AHEAD).into_iter().for_each(|wire| wire.ask_ahead());
            let (batch, wire) = (&mut batches[at], &routes.wires[at]);
            tell(wire, std::mem::take(&mut delivered[at]) + batch.len());
            wire.deliver(batch, pool);
            batch.rest();
        }
        touched.clear();
        (*collected, *bytes, *is_full) = (0, 0, false);
    }
}

impl Shares {
    /// A wire is going to be given a packet.
    #[inline]
    fn expect(&mut self, wire: usize) {
        let batch = &mut self.batches[wire];
        if !batch.has_memory() {
            // A request for memory that there is not takes as long as a miss.
            batch.make_room();
            self.touched.push(wire);
        }
        batch.ask_for_end();
    }

    /// All frames of a batch go to one wire.
    fn give_all(&mut self, wire: &Wire, at: usize, batch: &mut Batch, pool: &mut PacketPool) {
        self.expect(at);
        if !self.batches[at].take_all(batch) {
            // It has some already: they go first.
            self.deliver(wire, at, pool);
            self.batches[at].take_all(batch);
        }
        self.look(wire, at);
    }

    /// A frame goes to each of some wires.
    fn give_each(&mut self, wires: &[Arc<Wire>], hits: &[Hit], mut packet: Packet, pool: &mut PacketPool) {
        let Some((last, others)) = hits.split_last() else { return pool.put(packet) };
        for hit in others {
            let copy = pool.take().map(|mut copy| copy.copy_from(&packet).map(|()| copy));
            match copy {
                Some(Ok(mut copy)) => {
                    hit.tag.apply(&mut copy);
                    self.expect(hit.port as usize);
                    self.give(wires, hit.port as usize, copy, pool);
                }
                _ => wires[hit.port as usize].lacks_packet(),
            }
        }
        last.tag.apply(&mut packet);
        self.expect(last.port as usize);
        self.give(wires, last.port as usize, packet, pool);
    }

    fn give(&mut self, wires: &[Arc<Wire>], wire: usize, packet: Packet, pool: &mut PacketPool) {
        self.deliver_full(wires, wire, pool);
        // It has room.
        self.batches[wire].push(packet).map_or_else(|packet| pool.put(packet), |_| ());
    }

    /// Gives a wire what there is, if no more fits.
    #[inline]
    fn deliver_full(&mut self, wires: &[Arc<Wire>], wire: usize, pool: &mut PacketPool) {
        if self.batches[wire].is_full() {
            self.deliver(&wires[wire], wire, pool);
            self.look(&wires[wire], wire);
        }
    }

    /// Gives a wire what there is.
    #[cold]
    fn deliver(&mut self, wire: &Wire, at: usize, pool: &mut PacketPool) {
        let batch = &mut self.batches[at];
        self.delivered[at] += batch.len();
        wire.deliver(batch, pool);
        batch.make_room();
    }

    /// Looks whether a wire has room for what it is going to get and a batch more.
    fn look(&mut self, wire: &Wire, at: usize) {
        let (delivered, next) = (self.delivered[at], self.batches[at].len() + MAX_BATCH);
        let waiting = wire.waiting();
        let keeps_up = waiting < SLOW + delivered;
        self.is_full |= keeps_up && waiting + next > self.places;
    }
}
