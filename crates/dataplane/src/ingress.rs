//! Ingress, and what the traffic manager does with a packet after it.

use crate::copies::{self, Master};
use crate::drops::Loss;
use crate::flight::{Arrival, Kept, Origin};
use crate::replication::Replica;
use crate::switch::Switch;
use crate::trace::Fate;
use crate::{DropReason, PortId};
use millrace_engine::Context;
use millrace_pipeline::*;

/// A packet passes the bodies of ingress.
pub(crate) fn ingress(switch: &mut Switch, program: &Program, arrival: Arrival) {
    let Arrival { bytes, path, origin, kept } = arrival;
    switch.traffic.budget.release(bytes.len());
    switch.forwarder.tracer.enter(origin.journey, bytes.len());
    // Bodies change the bytes, and clones and resubmission want them as they were.
    let mut context = switch.forwarder.engines.context(&bytes);
    kept.restore(program, &mut context);
    describe_arrival(program, &mut context, &origin, path);
    let ran = switch.forwarder.run_ingress(&mut context, origin.time_ns);
    switch.send_answers(&origin);
    switch.charge(&origin, switch.forwarder.weights.ingress, &mut context);
    match ran {
        Ok(()) => after_ingress(switch, program, context, bytes, origin),
        Err(reason) => {
            switch.forwarder.engines.take_back(context);
            switch.buffers.take_back(bytes);
            switch.drop_packet(reason, &origin, None);
        }
    }
}

/// Whether what comes after ingress needs the packet as it came in.
pub(crate) fn wants_arrival_of(switch: &Switch, context: &Context) -> bool {
    let asks = |role: &Intrinsic| context.get(&switch.forwarder.program, *role) != 0;
    [Intrinsic::Clone, Intrinsic::Resubmit].iter().any(asks)
}

/// The port that a packet is for after ingress, if it goes to one.
pub(crate) fn only_port(program: &Program, context: &Context) -> Option<PortId> {
    let others = [Intrinsic::Resubmit, Intrinsic::MulticastGroup, Intrinsic::Drop, Intrinsic::EgressPorts];
    let goes_there = others.iter().all(|role| context.get(program, *role) == 0);
    goes_there.then(|| context.get(program, Intrinsic::EgressSpec) as u32)
}

/// Clone, then resubmit, else multicast, else drop, else unicast. (Digests went out when they were made.)
pub(crate) fn after_ingress(
    switch: &mut Switch,
    program: &Program,
    mut context: Context,
    received: Vec<u8>,
    mut origin: Origin,
) {
    let parsed_bits = context.parsed_bits();
    if context.get(program, Intrinsic::Clone) != 0 {
        copies::clone_ingress(switch, program, &context, &received, &mut origin);
    }

    if context.get(program, Intrinsic::Resubmit) != 0 {
        let list = context.get(program, Intrinsic::ResubmitList);
        let kept = Kept::of_list(program, &context, list);
        switch.forwarder.engines.take_back(context);
        let again = Arrival { bytes: received, path: PacketPath::Resubmit, origin, kept };
        if let Some(journey) = switch.start_again(again) {
            switch.forwarder.tracer.fate(origin.journey, || Fate::Resubmitted { journey });
        }
        return;
    }

    switch.buffers.take_back(received);
    let group = context.get(program, Intrinsic::MulticastGroup) as u32;
    let drop = context.get(program, Intrinsic::Drop) != 0;
    if group == 0 && drop {
        let loss = Loss::at(DropReason::IngressDrop, context.drop_site(program));
        switch.forwarder.engines.take_back(context);
        return switch.drop_packet(loss, &origin, None);
    }
    let port = context.get(program, Intrinsic::EgressSpec) as u32;
    let priority = context.get(program, Intrinsic::Priority) as u8;
    origin.service.queue = context.get(program, Intrinsic::Queue) as u16;
    origin.send_at_ns = context.get(program, Intrinsic::SendTime);
    if program.deparse_at_ingress {
        context.unparse(program);
    }
    let ports = context.get(program, Intrinsic::EgressPorts);
    let one = group == 0 && ports == 0;
    let path = if one { PacketPath::Normal } else { PacketPath::Replication };
    let master = Master { context, path, origin, parsed_bits, priority, truncate: None };
    if one {
        let budget = origin.budget;
        switch.enqueue(master.into_departure(Replica { port, rid: 0 }, budget), origin.journey);
    } else if group != 0 {
        copies::multicast(switch, master, group);
    } else {
        let copies: Vec<Replica> = (0..u64::BITS)
            .filter(|port| ports >> port & 1 != 0)
            .map(|port| Replica { port, rid: 0 })
            .collect();
        copies::replicate(switch, master, &copies);
    }
}

/// What the switch tells a program about a packet that comes in.
pub(crate) fn describe_arrival(program: &Program, context: &mut Context, origin: &Origin, path: PacketPath) {
    context.set(program, Intrinsic::IngressPort, u64::from(origin.port));
    context.set(program, Intrinsic::IngressTimestamp, origin.time_ns);
    context.set(program, Intrinsic::PacketLength, context.bytes().len() as u64);
    context.set(program, Intrinsic::PacketPath, path as u64);
}
