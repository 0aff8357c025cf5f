//! Bursts that pass an idle port.
//!
//! While its device has room, a port without a rate is idle whenever a burst comes, and the burst is gone before the next. What such a
//! port decides is the order of the packets in the burst. That takes no lists and no walk down a tree: the packets are sorted by queue,
//! and the queues take their turns as their discipline says. The order, and all that is counted, is what [`Egress::offer`] of all packets
//! and then [`Egress::next`] until nothing is left would give (`tests/against_model.rs`, `tests/passes.rs`).
//!
//! It is done for a tree of one node over queues whose turns depend on nothing before: strict priority, round robin, deficit round robin.
//! Virtual times of fair queueing go on while a port is idle.

use crate::egress::Egress;
use crate::plan::{Among, CLASSES, Kind, Plan, Queue, Share};
use crate::report::Arrival;

/// Most packets of a burst.
const BURST: usize = 64;
/// The bits of a group in what is noted of a queue.
const GROUP: u32 = BURST as u32 - 1;

/// What bursts that pass a port need.
#[derive(Debug)]
pub(crate) struct Passing {
    turns: Turns,
    /// A burst with no more packets and bytes than these has room, whichever queues it goes to.
    most: Most,
    overhead: u32,
    /// For each queue: the burst that had a packet for it last, and the group of those packets.
    seen: Box<[u32]>,
    /// The number of this burst, above the bits of a group.
    burst: u32,
    groups: [Group; BURST],
    /// The group of each packet, and its length.
    packets: [(u8, u32); BURST],
    order: [u8; BURST],
}

#[derive(Clone, Copy, Debug)]
struct Most {
    packets: u32,
    bytes: u64,
    longest: u32,
}

/// The packets of one queue.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    queue: u32,
    packets: u32,
    bytes: u64,
    /// Where the next of them comes in the order.
    at: usize,
    deficit: u64,
}

/// How queues take turns.
#[derive(Debug)]
enum Turns {
    /// The first that has a packet.
    Priority,
    /// A packet each.
    RoundRobin,
    /// As many bytes each, with what the last turn has left; the least of them.
    Deficit(Box<[u32]>, u32),
}

impl Passing {
    /// None if bursts cannot pass a port with that plan. Queues have numbers in the order of the plan.
    pub(crate) fn new(plan: &Plan, settings: &[Queue]) -> Option<Passing> {
        let port = plan.port();
        if port.rate.is_some() || !settings.iter().all(Queue::is_plain) {
            return None;
        }
        let deficit = |quanta: Vec<u32>| {
            let least = quanta.iter().copied().min().unwrap_or(0);
            Turns::Deficit(quanta.into(), least)
        };
        let turns = match &plan.root().kind {
            Kind::Queue(_) => Turns::Priority,
            Kind::Priority(nodes) if nodes.iter().all(|node| node.is_queue()) => Turns::Priority,
            Kind::RoundRobin(nodes) if nodes.iter().all(|node| node.is_queue()) => Turns::RoundRobin,
            Kind::Deficit(shares) if shares.iter().all(|share| share.node.is_queue()) => {
                deficit(shares.iter().map(|Share { share, .. }| *share).collect())
            }
            Kind::Flows(flows) if flows.each.is_queue() => match &flows.among {
                Among::Priority => Turns::Priority,
                Among::RoundRobin => Turns::RoundRobin,
                Among::Deficit(quanta) if quanta.len() > 1 => deficit(quanta.clone()),
                Among::Deficit(quanta) => deficit(vec![quanta[0]; flows.count as usize]),
                Among::Fair(_) => return None,
            },
            _ => return None,
        };
        let least = |of: fn(&Queue) -> u64| settings.iter().map(of).min().unwrap_or(0);
        Some(Passing {
            turns,
            most: Most {
                packets: (least(|queue| queue.packets.into()) as u32).min(port.packets),
                bytes: least(|queue| queue.bytes).min(plan.shared()),
                longest: port.longest,
            },
            overhead: port.overhead,
            seen: vec![0; plan.queues()].into(),
            burst: 0,
            groups: [Group::default(); BURST],
            packets: [(0, 0); BURST],
            order: [0; BURST],
        })
    }

    /// Sorts the packets of a burst, of which the queue and the length are given, into groups; gives the numbers of packets and groups.
    /// None if there is no room.
    #[inline]
    fn sort(&mut self, packets: impl Iterator<Item = (u32, u32)>) -> Option<(usize, usize)> {
        self.burst = self.burst.wrapping_add(GROUP + 1);
        if self.burst == 0 {
            self.seen.fill(0);
            self.burst = GROUP + 1;
        }
        let (mut count, mut groups, mut bytes, mut longest) = (0, 0usize, 0, 0);
        for (queue, len) in packets {
            let seen = &mut self.seen[queue as usize];
            // Which of the two it is, nothing foretells: without a branch.
            let is_new = *seen & !GROUP != self.burst;
            let number = if is_new { groups as u32 } else { *seen & GROUP } & GROUP;
            *seen = self.burst | number;
            groups += usize::from(is_new);
            let group = &mut self.groups[number as usize];
            let (packets, before) = if is_new { (0, 0) } else { (group.packets, group.bytes) };
            (group.queue, group.packets, group.bytes) = (queue, packets + 1, before + u64::from(len));
            *self.packets.get_mut(count)? = (number as u8, len);
            count += 1;
            bytes += u64::from(len);
            longest = longest.max(len);
        }
        let Most { packets, bytes: most_bytes, longest: most_longest } = self.most;
        let has_room = count <= packets as usize && bytes <= most_bytes && longest <= most_longest;
        has_room.then_some((count, groups))
    }

    /// Puts the packets in order.
    #[inline]
    fn arrange(&mut self, count: usize, queues: usize) {
        let groups = &mut self.groups[..queues];
        let overhead = u64::from(self.overhead);
        if let Turns::Priority = self.turns
            && !groups.is_sorted_by_key(|group| group.queue)
        {
            let mut ranks: [u8; BURST] = std::array::from_fn(|number| number as u8);
            let ranks = &mut ranks[..groups.len()];
            ranks.sort_unstable_by_key(|number| groups[usize::from(*number)].queue);
            let mut at = 0;
            for number in ranks {
                let group = &mut groups[usize::from(*number)];
                group.at = at;
                at += group.packets as usize;
            }
        } else {
            let mut at = 0;
            for group in &mut *groups {
                group.at = at;
                at += group.packets as usize;
            }
        }
        for (number, (group, _)) in (0..).zip(&self.packets[..count]) {
            let group = &mut groups[usize::from(*group) % BURST];
            self.order[group.at % BURST] = number;
            group.at += 1;
        }
        let takes_one_turn = match &self.turns {
            Turns::Priority => true,
            Turns::RoundRobin => queues == count,
            Turns::Deficit(_, least) => groups
                .iter()
                .all(|group| group.bytes + overhead * u64::from(group.packets) <= u64::from(*least)),
        };
        if !takes_one_turn {
            self.take_turns(count, queues);
        }
    }

    /// Puts the packets, which are in the order of their groups, in the order of turns: groups that have packets left after one take
    /// part in the next.
    fn take_turns(&mut self, count: usize, groups: usize) {
        let sorted = self.order;
        let mut ring: [u8; BURST] = std::array::from_fn(|number| number as u8);
        let (mut left, mut next) = (groups, 0);
        for group in &mut self.groups[..groups] {
            group.at -= group.packets as usize;
            group.deficit = 0;
        }
        while left > 0 && next < count {
            let mut stay = 0;
            for turn in 0..left {
                let group = &mut self.groups[usize::from(ring[turn])];
                let end = group.at + group.packets as usize;
                let most = match &self.turns {
                    Turns::Deficit(quanta, _) => {
                        group.deficit += u64::from(quanta[group.queue as usize]);
                        end
                    }
                    Turns::Priority | Turns::RoundRobin => {
                        group.deficit = u64::MAX;
                        group.at + 1
                    }
                };
                while group.at < most {
                    let number = sorted[group.at];
                    let len = u64::from(self.packets[usize::from(number)].1 + self.overhead);
                    if len > group.deficit {
                        break;
                    }
                    group.deficit -= len;
                    self.order[next] = number;
                    (group.at, next) = (group.at + 1, next + 1);
                }
                // So that the end stays where it is.
                group.packets = (end - group.at) as u32;
                if group.at < end {
                    ring[stay] = ring[turn];
                    stay += 1;
                }
            }
            left = stay;
        }
    }
}

impl<P> Egress<P> {
    /// Has a burst pass an idle port: gives the order, by number, in which the packets would leave if they were all offered now and then
    /// asked for, and counts them as sent. None, and nothing is done, if the port is not idle, a packet may have no room or may not
    /// leave at once, or the plan has another tree than those above.
    #[inline]
    pub fn arrange(&mut self, burst: impl Iterator<Item = Arrival>) -> Option<&[u8]> {
        if self.len > 0 {
            return None;
        }
        let passing = self.passing.as_deref_mut()?;
        let routes = &self.routes;
        let mut waits = false;
        let packets = burst.map(|Arrival { class, flow, len, send_at_ns, .. }| {
            waits |= send_at_ns.is_some();
            (routes[usize::from(class).min(CLASSES - 1)].queue(flow), len)
        });
        let (count, groups) = passing.sort(packets).filter(|_| !waits)?;
        for Group { queue, packets, bytes, .. } in &passing.groups[..groups] {
            let (fifo, counts) =
                (&mut self.tree.fifos[*queue as usize], &mut self.queues.counts[*queue as usize]);
            fifo.largest_packets = fifo.largest_packets.max(*packets);
            fifo.largest_bytes = fifo.largest_bytes.max(*bytes);
            counts.sent += u64::from(*packets);
            counts.sent_bytes += bytes;
        }
        passing.arrange(count, groups);
        Some(&passing.order[..count])
    }

    /// Whether bursts may pass the port now.
    #[inline]
    pub fn may_arrange(&self) -> bool {
        self.len == 0 && self.passing.is_some()
    }
}
