//! Ingress, and what the traffic manager does with a packet behind it.

use crate::DropReason;
use crate::context::Context;
use crate::flight::{Arrival, Departure, Kept, Origin};
use crate::replication::{Replica, Session};
use crate::switch::Switch;
use crate::trace::{Fate, JourneyKind};
use millrace_pipeline::*;
use std::sync::Arc;

/// A copy to be replicated: all that its departures have in common.
#[derive(Debug)]
pub(crate) struct Master {
    pub(crate) context: Context,
    pub(crate) path: PacketPath,
    pub(crate) origin: Origin,
    pub(crate) parsed_bits: u64,
    pub(crate) priority: u8,
    pub(crate) truncate: Option<u32>,
}

impl Master {
    /// Of the same packet, but with that storage.
    fn with(&self, context: Context) -> Master {
        let Master { path, origin, parsed_bits, priority, truncate, .. } = *self;
        Master { context, path, origin, parsed_bits, priority, truncate }
    }

    fn into_departure(self, replica: Replica, budget: u32) -> Departure {
        let Master { context, path, origin, parsed_bits, priority, truncate } = self;
        let origin = Origin { budget, ..origin };
        let Replica { port, rid } = replica;
        Departure { context, path, origin, parsed_bits, port, rid, priority, truncate }
    }
}

impl Switch {
    /// A packet passes the bodies of ingress.
    pub(crate) fn ingress(&mut self, arrival: Arrival) {
        let program = Arc::clone(&self.program);
        let Arrival { bytes, path, origin, kept } = arrival;
        self.tracer.enter(origin.journey, bytes.len());
        // Bodies change the bytes, and clones and resubmission want them as they were.
        let mut context = self.new_context(&bytes);
        kept.restore(&program, &mut context);
        describe_arrival(&program, &mut context, &origin, path);
        match self.run_ingress(&mut context) {
            Ok(parsed_bits) => self.behind_ingress(context, bytes, parsed_bits, origin),
            Err(reason) => self.drop_packet(reason, &origin, None),
        }
    }

    /// Whether what comes behind ingress needs the packet as it came in.
    pub(crate) fn wants_arrival(&self, context: &Context) -> bool {
        [Intrinsic::Clone, Intrinsic::Resubmit].iter().any(|role| context.get(&self.program, *role) != 0)
    }

    /// Clone, then resubmit, else multicast, else drop, else unicast. (Digests went out when they were made.)
    pub(crate) fn behind_ingress(
        &mut self,
        mut context: Context,
        received: Vec<u8>,
        parsed_bits: u64,
        mut origin: Origin,
    ) {
        let program = Arc::clone(&self.program);
        if context.get(&program, Intrinsic::Clone) != 0 {
            self.clone_ingress(&context, &received, &mut origin);
        }

        if context.get(&program, Intrinsic::Resubmit) != 0 {
            let list = context.get(&program, Intrinsic::ResubmitList);
            let kept = Kept::of_list(&program, &context, list);
            let again = Arrival { bytes: received, path: PacketPath::Resubmit, origin, kept };
            if let Some(journey) = self.start_again(again) {
                self.tracer.fate(origin.journey, || Fate::Resubmitted { journey });
            }
            return;
        }

        let group = context.get(&program, Intrinsic::MulticastGroup) as u32;
        let drop = context.get(&program, Intrinsic::Drop) != 0;
        if group == 0 && drop {
            self.engine.take_back(context);
            return self.drop_packet(DropReason::IngressDrop, &origin, None);
        }
        let port = context.get(&program, Intrinsic::EgressSpec) as u32;
        let priority = context.get(&program, Intrinsic::Priority) as u8;
        if program.deparse_at_ingress {
            context.unparse(&program);
        }
        let ports = context.get(&program, Intrinsic::EgressPorts);
        let one = group == 0 && ports == 0;
        let path = if one { PacketPath::Normal } else { PacketPath::Replication };
        let master = Master { context, path, origin, parsed_bits, priority, truncate: None };
        if one {
            let budget = origin.budget;
            self.enqueue(master.into_departure(Replica { port, rid: 0 }, budget), origin.journey);
        } else if group != 0 {
            self.multicast(master, group);
        } else {
            let copies: Vec<Replica> = (0..u64::BITS)
                .filter(|port| ports >> port & 1 != 0)
                .map(|port| Replica { port, rid: 0 })
                .collect();
            self.replicate(master, &copies);
        }
    }

    /// Makes the copies of a multicast group.
    fn multicast(&mut self, master: Master, group: u32) {
        let journey = master.origin.journey;
        let Some(copies) = self.replication.copies(group) else {
            return self.drop_packet(DropReason::NoMulticastGroup, &master.origin, None);
        };
        if copies.is_empty() {
            return self.drop_packet(DropReason::EmptyMulticastGroup, &master.origin, None);
        }
        self.tracer.fate(journey, || Fate::Multicast { group, copies: copies.len() });
        self.replicate(master, &copies);
    }

    /// Puts copies in front of egress; those beyond the budget of the packet are dropped.
    fn replicate(&mut self, master: Master, copies: &[Replica]) {
        let made = (copies.len() as u32).min(master.origin.budget);
        let each = (master.origin.budget - made).checked_div(made).unwrap_or(0);
        let (make, beyond) = copies.split_at(made as usize);
        let (origin, journey) = (master.origin, master.origin.journey);
        if let Some((last, others)) = make.split_last() {
            for copy in others {
                let context = self.engine.copy(&master.context);
                self.enqueue(master.with(context).into_departure(*copy, each), journey);
            }
            self.enqueue(master.into_departure(*last, each), journey);
        }
        for copy in beyond {
            self.drop_packet(DropReason::CopyLimit, &origin, Some(copy.port));
        }
    }

    /// A clone of the packet as it came in. Where headers pass through the traffic manager, it is parsed again; all
    /// metadata but the field list starts anew.
    fn clone_ingress(&mut self, context: &Context, received: &[u8], origin: &mut Origin) {
        let program = Arc::clone(&self.program);
        let Some((number, session)) = self.clone_session(context, origin) else { return };
        origin.budget /= 2;
        let kept = Kept::of_list(&program, context, context.get(&program, Intrinsic::CloneList));
        let path = PacketPath::IngressClone;
        let journey = self.tracer.open(JourneyKind::Reparse, origin.journey, path, (origin.port, 0));
        self.tracer.fate(origin.journey, || Fate::Cloned { session: number, reparse: journey });
        let origin_of_clone = Origin { journey, ..*origin };

        let length = session.truncate.map_or(received.len(), |length| received.len().min(length as usize));
        let mut clone = self.new_context(&received[..length]);
        describe_arrival(&program, &mut clone, origin, path);
        let mut parsed_bits = 0;
        if !program.deparse_at_ingress {
            self.tracer.enter(journey, clone.bytes().len());
            let parsed = self.run_parser(&mut clone);
            self.tracer.enter_again(origin.journey);
            match parsed {
                Ok(bits) => parsed_bits = bits,
                Err(reason) => return self.drop_packet(reason, &origin_of_clone, None),
            }
            self.engine.reset_metadata(&program, &mut clone);
        }
        kept.restore(&program, &mut clone);
        self.send_clone(clone, path, origin_of_clone, parsed_bits, &session);
    }

    /// The session that the program asks a clone for. None: it does not exist, which is counted as a drop of the clone.
    pub(crate) fn clone_session(
        &mut self,
        context: &Context,
        origin: &Origin,
    ) -> Option<(u32, Arc<Session>)> {
        let number = context.get(&self.program, Intrinsic::CloneSession) as u32;
        match self.replication.shared_session(number) {
            Some(session) => Some((number, session)),
            None => {
                self.tracer.fate(origin.journey, || Fate::NotCloned { session: number });
                self.count_drop(DropReason::NoCloneSession, origin, None);
                None
            }
        }
    }

    /// Replicates a clone: to the session's multicast group, then to its own copies.
    pub(crate) fn send_clone(
        &mut self,
        context: Context,
        path: PacketPath,
        origin: Origin,
        parsed_bits: u64,
        session: &Session,
    ) {
        let mut copies: Vec<Replica> = Vec::new();
        if let Some(group) = session.group {
            match self.replication.copies(group) {
                Some(of_group) => copies.extend(of_group),
                None => self.drop_packet(DropReason::NoMulticastGroup, &origin, None),
            }
        }
        copies.extend(&session.copies);
        let (priority, truncate) = (session.class_of_service, session.truncate);
        let master = Master { context, path, origin, parsed_bits, priority, truncate };
        self.replicate(master, &copies);
    }
}

/// What the switch tells a program about a packet that comes in.
fn describe_arrival(program: &Program, context: &mut Context, origin: &Origin, path: PacketPath) {
    context.set(program, Intrinsic::IngressPort, u64::from(origin.port));
    context.set(program, Intrinsic::IngressTimestamp, origin.time_ns);
    context.set(program, Intrinsic::PacketLength, context.bytes().len() as u64);
    context.set(program, Intrinsic::PacketPath, path as u64);
}
