//! Copies of packets: of multicast groups, and clones.

use crate::counters::members;
use crate::flight::{Departure, Kept, Origin, Passed};
use crate::ingress::describe_arrival;
use crate::replication::{Replica, Session};
use crate::switch::Switch;
use crate::trace::{Fate, JourneyKind};
use crate::{DropReason, egress};
use millrace_engine::Context;
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

    pub(crate) fn into_departure(self, replica: Replica, budget: u32) -> Departure {
        let Master { context, path, origin, parsed_bits, priority, truncate } = self;
        let origin = Origin { budget, ..origin };
        let Replica { port, rid } = replica;
        Departure {
            context,
            passed: Passed::Nothing,
            path,
            origin,
            parsed_bits,
            port,
            rid,
            priority,
            truncate,
        }
    }
}

/// Makes the copies of a multicast group.
pub(crate) fn multicast(switch: &mut Switch, master: Master, group: u32) {
    let journey = master.origin.journey;
    let mut copies = switch.replicator.list();
    if !switch.replicator.groups().add_copies(group, &mut copies) {
        switch.drop_packet(DropReason::NoMulticastGroup, &master.origin, None);
    } else if copies.is_empty() {
        switch.drop_packet(DropReason::EmptyMulticastGroup, &master.origin, None);
    } else {
        switch.forwarder.tracer.fate(journey, || Fate::Multicast { group, copies: copies.len() });
        replicate(switch, master, &copies);
    }
    switch.replicator.take_back(copies);
}

/// Puts copies before egress; those beyond the budget of the packet are dropped.
pub(crate) fn replicate(switch: &mut Switch, master: Master, copies: &[Replica]) {
    let made = (copies.len() as u32).min(master.origin.budget);
    let each = (master.origin.budget - made).checked_div(made).unwrap_or(0);
    let (quota, spent) = match master.path {
        PacketPath::IngressClone | PacketPath::EgressClone => {
            (&switch.traffic.allowances.clones, DropReason::CloneQuota)
        }
        _ => (&switch.traffic.allowances.copies, DropReason::CopyQuota),
    };
    let of_quota = quota.take(u64::from(made), switch.now_ns) as u32;
    let of_batch = switch.traffic.budget.take_copies(of_quota);
    let (wanted, beyond) = copies.split_at(made as usize);
    let (wanted, beyond_quota) = wanted.split_at(of_quota as usize);
    let (make, beyond_batch) = wanted.split_at(of_batch as usize);
    let (origin, journey) = (master.origin, master.origin.journey);
    if let Some((last, others)) = make.split_last() {
        let bytes = switch.forwarder.weights.bytes_held(master.context.len());
        for copy in others {
            // Looked at first, as a copy costs what it is long.
            if let Err(reason) = switch.traffic.budget.check(bytes) {
                switch.drop_packet(reason, &origin, Some(copy.port));
                continue;
            }
            let context = switch.forwarder.engines.copy(&master.context);
            switch.enqueue(master.with(context).into_departure(*copy, each), journey);
        }
        switch.enqueue(master.into_departure(*last, each), journey);
    }
    for copy in beyond {
        switch.drop_packet(DropReason::CopyLimit, &origin, Some(copy.port));
    }
    for copy in beyond_quota {
        switch.drop_packet(spent, &origin, Some(copy.port));
    }
    for copy in beyond_batch {
        switch.drop_packet(DropReason::BatchLimit, &origin, Some(copy.port));
    }
}

/// Sends a frame that has passed egress to each port of a set; the copies count as those of [`replicate`].
pub(crate) fn send_each(switch: &mut Switch, ports: u32, bytes: Vec<u8>, origin: &Origin) {
    let made = ports.count_ones().min(origin.budget);
    let of_quota = switch.traffic.allowances.copies.take(u64::from(made), switch.now_ns) as u32;
    let of_batch = switch.traffic.budget.take_copies(of_quota);
    for (number, port) in (0..).zip(members(ports)) {
        let refused = match number {
            number if number < of_batch => None,
            number if number < of_quota => Some(DropReason::BatchLimit),
            number if number < made => Some(DropReason::CopyQuota),
            _ => Some(DropReason::CopyLimit),
        };
        match refused {
            None => {
                let copy = switch.buffers.copy(&bytes);
                egress::finish_frame(switch, port, copy, origin);
            }
            Some(reason) => switch.drop_packet(reason, origin, Some(port)),
        }
    }
    switch.buffers.take_back(bytes);
}

/// A clone of the packet as it came in. Where headers pass through the traffic manager, it is parsed again; all
/// metadata but the field list starts again.
pub(crate) fn clone_ingress(
    switch: &mut Switch,
    program: &Program,
    context: &Context,
    received: &[u8],
    origin: &mut Origin,
) {
    let Some((number, session)) = clone_session(switch, context, origin) else { return };
    if is_refused(switch, &session, origin) {
        return;
    }
    origin.budget /= 2;
    let kept = Kept::of_list(program, context, context.get(program, Intrinsic::CloneList));
    let path = PacketPath::IngressClone;
    let journey = switch.forwarder.tracer.open(JourneyKind::Reparse, origin.journey, path, (origin.port, 0));
    switch.forwarder.tracer.fate(origin.journey, || Fate::Cloned { session: number, reparse: journey });
    let origin_of_clone = Origin { journey, ..*origin };

    let length = session.truncate.map_or(received.len(), |length| received.len().min(length as usize));
    let mut clone = switch.forwarder.engines.context(&received[..length]);
    describe_arrival(program, &mut clone, origin, path);
    let mut parsed_bits = 0;
    if !program.deparse_at_ingress {
        switch.forwarder.tracer.enter(journey, clone.bytes().len());
        let parsed = switch.forwarder.run_parser(&mut clone, origin.time_ns);
        switch.charge(&origin_of_clone, switch.forwarder.weights.ingress, &mut clone);
        switch.forwarder.tracer.enter_again(origin.journey);
        match parsed {
            Ok(bits) => parsed_bits = bits,
            Err(reason) => {
                switch.forwarder.engines.take_back(clone);
                return switch.drop_packet(reason, &origin_of_clone, None);
            }
        }
        switch.forwarder.engines.reset_metadata(program, &mut clone);
    }
    kept.restore(program, &mut clone);
    send_clone(switch, clone, path, origin_of_clone, parsed_bits, &session);
}

/// The session that the program asks a clone for. None: it does not exist, which is counted as a drop of the clone.
pub(crate) fn clone_session(
    switch: &mut Switch,
    context: &Context,
    origin: &Origin,
) -> Option<(u32, Arc<Session>)> {
    let number = context.get(&switch.forwarder.program, Intrinsic::CloneSession) as u32;
    match switch.replicator.groups().shared_session(number) {
        Some(session) => Some((number, session)),
        None => {
            switch.forwarder.tracer.fate(origin.journey, || Fate::NotCloned { session: number });
            switch.count_drop(DropReason::NoCloneSession, origin, None);
            None
        }
    }
}

/// Whether the quota of clones is used up, before anything is done for one. All its copies are counted then.
fn is_refused(switch: &mut Switch, session: &Session, origin: &Origin) -> bool {
    if !switch.traffic.allowances.clones.is_spent(switch.now_ns) {
        return false;
    }
    let mut copies = switch.replicator.list();
    if let Some(group) = session.group {
        // One that does not exist is the clone's own loss.
        let _ = switch.replicator.groups().add_copies(group, &mut copies);
    }
    copies.extend(&session.copies);
    for copy in &copies {
        switch.drop_packet(DropReason::CloneQuota, origin, Some(copy.port));
    }
    let is_refused = !copies.is_empty();
    switch.replicator.take_back(copies);
    is_refused
}

/// Replicates a clone: to the session's multicast group, then to its own copies.
pub(crate) fn send_clone(
    switch: &mut Switch,
    context: Context,
    path: PacketPath,
    origin: Origin,
    parsed_bits: u64,
    session: &Session,
) {
    let mut copies = switch.replicator.list();
    if let Some(group) = session.group
        && !switch.replicator.groups().add_copies(group, &mut copies)
    {
        switch.drop_packet(DropReason::NoMulticastGroup, &origin, None);
    }
    copies.extend(&session.copies);
    let (priority, truncate) = (session.class_of_service, session.truncate);
    let master = Master { context, path, origin, parsed_bits, priority, truncate };
    replicate(switch, master, &copies);
    switch.replicator.take_back(copies);
}

/// Makes a clone of the packet as it is, if the program asks for one: with its headers where they pass through the
/// traffic manager, else of its bytes. All metadata but the field list starts again.
pub(crate) fn clone_egress(
    switch: &mut Switch,
    program: &Program,
    context: &Context,
    origin: &mut Origin,
    parsed_bits: u64,
) {
    if context.get(program, Intrinsic::Clone) == 0 {
        return;
    }
    let Some((number, session)) = clone_session(switch, context, origin) else { return };
    if is_refused(switch, &session, origin) {
        return;
    }
    origin.budget /= 2;
    if origin.passes >= switch.max_passes {
        return switch.drop_packet(DropReason::RecirculationLimit, origin, None);
    }
    switch.forwarder.tracer.fate(origin.journey, || Fate::Cloned { session: number, reparse: None });
    let kept = Kept::of_list(program, context, context.get(program, Intrinsic::CloneList));
    let mut clone = if program.deparse_at_ingress {
        let bytes = context.bytes();
        let length = session.truncate.map_or(bytes.len(), |length| bytes.len().min(length as usize));
        switch.forwarder.engines.context(&bytes[..length])
    } else {
        let mut clone = switch.forwarder.engines.copy(context);
        switch.forwarder.engines.reset_metadata(program, &mut clone);
        clone
    };
    kept.restore(program, &mut clone);
    clone.set(program, Intrinsic::IngressPort, u64::from(origin.port));
    clone.set(program, Intrinsic::IngressTimestamp, origin.time_ns);
    let origin_of_clone = Origin { passes: origin.passes + 1, ..*origin };
    send_clone(switch, clone, PacketPath::EgressClone, origin_of_clone, parsed_bits, &session);
}
