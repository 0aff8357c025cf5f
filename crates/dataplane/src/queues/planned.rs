//! The queues before egress of ports with a plan, for programs whose packets have to wait there.
//!
//! They give out no more than the queues at the port's device have room for ([`Planned::set_room`]): these order what they hold, and so
//! a packet of a high class overtakes those that wait here.

use crate::arrival::Asks;
use crate::flight::{Departure, QueueStay};
use crate::{DropReason, PortId};
use millrace_frames::Service;
use millrace_traffic::{Egress, Next, Plan, QueueReport};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A packet that its queue did not keep, and why.
pub(super) type Discarded = (Departure, DropReason);

/// The ports whose packets wait here.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    ports: BTreeMap<PortId, Port>,
    /// Packets in the queues of all of them.
    len: usize,
}

#[derive(Debug)]
struct Port {
    egress: Egress<Departure>,
    /// Packets that the device's queues have room for; none: nobody has said.
    room: Option<usize>,
}

impl Port {
    fn new(plan: &Arc<Plan>, now_ns: u64) -> Port {
        Port { egress: Egress::new(Arc::clone(plan), now_ns), room: None }
    }

    fn has_room(&self) -> bool {
        self.room != Some(0)
    }
}

impl Planned {
    /// The same ports, without packets, for one more worker.
    pub(super) fn share(&self) -> Planned {
        let ports = self.ports.iter().map(|(id, port)| (*id, Port::new(port.egress.plan(), 0)));
        Planned { ports: ports.collect(), len: 0 }
    }

    pub(super) fn has_ports(&self) -> bool {
        !self.ports.is_empty()
    }

    pub(super) fn has(&self, port: PortId) -> bool {
        self.ports.contains_key(&port)
    }

    /// Packets that wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Has a packet wait for its port, which is one of these; or gives it back, with the reason.
    pub(super) fn push(
        &mut self,
        departure: Departure,
        now_ns: u64,
    ) -> Result<(), (Box<Departure>, DropReason)> {
        let Some(port) = self.ports.get_mut(&departure.port) else {
            return Err((Box::new(departure), DropReason::NoQueue));
        };
        let service = Service { class: departure.priority, ..departure.origin.service };
        let arrival = Asks::of(port.egress.plan()).arrival(service, departure.context.bytes());
        match port.egress.offer(arrival, now_ns, departure) {
            Ok(_) => {
                self.len += 1;
                Ok(())
            }
            Err(refused) => Err((Box::new(refused.packet), refused.reason.into())),
        }
    }

    /// The next packet that may leave now; those that queues did not keep come to the others.
    pub(super) fn pop(
        &mut self,
        now_ns: u64,
        discarded: &mut Vec<Discarded>,
    ) -> Option<(Departure, QueueStay)> {
        if self.len == 0 {
            return None;
        }
        for port in self.ports.values_mut().filter(|port| port.has_room()) {
            loop {
                match port.egress.next(now_ns) {
                    Next::Leaves(left) => {
                        self.len -= 1;
                        port.room = port.room.map(|room| room - 1);
                        let mut departure = left.packet;
                        departure.origin.is_marked |= left.mark;
                        let stay = QueueStay {
                            enqueued_ns: left.enqueued_ns,
                            enqueue_depth: left.enqueue_depth,
                            dequeue_depth: left.dequeue_depth,
                            queue: left.queue,
                            waited: true,
                        };
                        return Some((departure, stay));
                    }
                    Next::Discarded(departure, why) => {
                        self.len -= 1;
                        discarded.push((departure, why.into()));
                    }
                    Next::Nothing => break,
                }
            }
        }
        None
    }

    /// Takes all packets out.
    pub(super) fn take_all(&mut self, mut each: impl FnMut(Departure)) {
        self.ports.values_mut().for_each(|port| port.egress.take_all(&mut each));
        self.len = 0;
    }

    /// When a packet may leave.
    pub(super) fn next_ns(&self) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let with_room = self.ports.values().filter(|port| port.has_room());
        with_room.filter_map(|port| port.egress.wake_ns()).min()
    }

    /// Whether packets wait only for the queues at their device.
    pub(super) fn are_held(&self) -> bool {
        self.ports.values().any(|port| !port.has_room() && !port.egress.is_empty())
    }

    /// Says how many packets the queues at the device of a port have room for.
    pub(crate) fn set_room(&mut self, port: PortId, room: usize) {
        if let Some(port) = self.ports.get_mut(&port) {
            port.room = Some(room);
        }
    }

    /// Has packets of these ports, and of no others, wait here. What waits for another one is given out.
    pub(super) fn set(
        &mut self,
        plans: &BTreeMap<PortId, Arc<Plan>>,
        now_ns: u64,
        mut freed: impl FnMut(Departure),
        discarded: &mut Vec<Discarded>,
    ) {
        self.ports.retain(|id, port| {
            let stays = plans.contains_key(id);
            if !stays {
                port.egress.take_all(&mut freed);
            }
            stays
        });
        for (id, plan) in plans {
            let egress = &mut self.ports.entry(*id).or_insert_with(|| Port::new(plan, now_ns)).egress;
            if !Arc::ptr_eq(plan, egress.plan()) {
                egress.replace(Arc::clone(plan), now_ns, |departure, why| {
                    discarded.push((departure, why.into()));
                });
            }
        }
        self.len = self.ports.values().map(|port| port.egress.len()).sum();
    }

    /// What the queues of a port tell.
    pub(crate) fn reports(&self, port: PortId) -> impl Iterator<Item = QueueReport> {
        self.ports.get(&port).into_iter().flat_map(|port| port.egress.queues())
    }
}
