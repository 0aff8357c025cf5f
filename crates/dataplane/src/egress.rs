//! Egress, and what becomes of a packet after it.

use crate::copies;
use crate::drops::Loss;
use crate::flight::{Arrival, Departure, Kept, Origin, Passed, QueueStay};
use crate::switch::{MAX_COPIES, Switch};
use crate::trace::Fate;
use crate::{DropReason, PortId};
use millrace_engine::{Context, Stage};
use millrace_frames::MAX_FRAME;
use millrace_midend::Verdict;
use millrace_pipeline::*;

/// A packet passes the bodies of egress, is cloned, and then dropped, recirculated or sent.
pub(crate) fn egress(switch: &mut Switch, program: &Program, departure: Departure, stay: QueueStay) {
    let Departure { mut context, passed, path, mut origin, parsed_bits, port, rid, priority, truncate } =
        departure;
    switch.traffic.budget.release(switch.forwarder.weights.bytes_held(context.len()));
    match passed {
        Passed::Nothing => {}
        Passed::Bodies => {
            return after_egress(switch, program, context, port, origin, (parsed_bits, truncate));
        }
        Passed::All => {
            let bytes = switch.buffers.copy(context.bytes());
            switch.forwarder.engines.take_back(context);
            return finish_frame(switch, port, bytes, &origin);
        }
    }
    if std::mem::take(&mut origin.has_rested) {
        (origin.passes, origin.budget) = (1, MAX_COPIES);
        origin.steps = switch.traffic.budget.set_out();
    }
    // Packets that pass once have not had the time.
    if path != PacketPath::Normal && switch.traffic.budget.is_spent(origin.steps) {
        switch.forwarder.engines.take_back(context);
        return switch.drop_packet(DropReason::JourneyLimit, &origin, Some(port));
    }
    let length = length_now(program, &context, parsed_bits);
    switch.forwarder.tracer.enter(origin.journey, length as usize);
    context.set(program, Intrinsic::Priority, u64::from(priority));
    describe_departure(switch, program, &mut context, length, path, (port, rid), stay);

    // What has not waited is policed at the time at which it came, as in a burst.
    let time_ns = if stay.waited || path == PacketPath::EgressClone { switch.now_ns } else { origin.time_ns };
    let ran = run_egress(switch, program, &mut context, &mut origin, parsed_bits, time_ns);
    switch.send_answers(&origin);
    switch.charge(&origin, switch.forwarder.weights.egress, &mut context);
    if let Err(reason) = ran {
        switch.forwarder.engines.take_back(context);
        return switch.drop_packet(reason, &origin, Some(port));
    }
    send(switch, program, context, port, origin, truncate);
}

/// Cuts a packet that passed egress, and sends it or sends it back.
fn send(
    switch: &mut Switch,
    program: &Program,
    context: Context,
    port: PortId,
    origin: Origin,
    truncate: Option<u32>,
) {
    let asks = |role| context.get(program, role);
    let limit = Some(asks(Intrinsic::Truncate)).filter(|limit| *limit > 0);
    let recirculates = asks(Intrinsic::Recirculate) != 0;
    let kept = match recirculates {
        true => Kept::of_list(program, &context, asks(Intrinsic::RecirculateList)),
        false => Kept::default(),
    };
    let whole = context.bytes();
    let limits = [truncate.map(u64::from), limit].into_iter().flatten();
    let limits = limits.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let bytes = switch.buffers.copy(&whole[..limits.fold(whole.len(), usize::min)]);
    switch.forwarder.engines.take_back(context);
    if bytes.len() <= MAX_FRAME && recirculates {
        recirculate(switch, kept, bytes, origin);
    } else {
        finish_frame(switch, port, bytes, &origin);
    }
}

/// A packet is done with egress and only to be sent.
pub(crate) fn finish_frame(switch: &mut Switch, port: PortId, bytes: Vec<u8>, origin: &Origin) {
    if bytes.len() > MAX_FRAME {
        return switch.drop_packet(DropReason::Oversize, origin, Some(port));
    }
    switch.transmit(port, bytes, origin);
}

/// Goes on with a packet that compiled code has taken through egress.
pub(crate) fn after_egress(
    switch: &mut Switch,
    program: &Program,
    context: Context,
    port: PortId,
    mut origin: Origin,
    (parsed_bits, truncate): (u64, Option<u32>),
) {
    match finish_egress(switch, program, &context, &mut origin, parsed_bits) {
        Ok(()) => send(switch, program, context, port, origin, truncate),
        Err(reason) => {
            switch.forwarder.engines.take_back(context);
            switch.drop_packet(reason, &origin, Some(port));
        }
    }
}

/// What the switch tells a program about a packet before egress.
fn describe_departure(
    switch: &Switch,
    program: &Program,
    context: &mut Context,
    length: u64,
    path: PacketPath,
    (port, rid): (u32, u16),
    stay: QueueStay,
) {
    switch.forwarder.engines.reset_at_egress(program, context);
    let mut set = |role, value| context.set(program, role, value);
    for asked_in_egress in [
        Intrinsic::Drop,
        Intrinsic::Clone,
        Intrinsic::CloneSession,
        Intrinsic::CloneList,
        Intrinsic::Recirculate,
        Intrinsic::RecirculateList,
    ] {
        set(asked_in_egress, 0);
    }
    set(Intrinsic::PacketLength, length);
    set(Intrinsic::PacketPath, path as u64);
    set(Intrinsic::EgressPort, u64::from(port));
    set(Intrinsic::EgressRid, u64::from(rid));
    set(Intrinsic::EnqueueTimestamp, stay.enqueued_ns);
    set(Intrinsic::EnqueueDepth, u64::from(stay.enqueue_depth));
    set(Intrinsic::QueueDelay, switch.now_ns.saturating_sub(stay.enqueued_ns));
    set(Intrinsic::DequeueDepth, u64::from(stay.dequeue_depth));
    set(Intrinsic::QueueId, u64::from(stay.queue));
    set(Intrinsic::EgressTimestamp, switch.now_ns);
}

/// Runs egress at a time and makes the clones that it asks for; says why the packet is dropped. A packet that is not has its
/// other requests in its storage.
fn run_egress(
    switch: &mut Switch,
    program: &Program,
    context: &mut Context,
    origin: &mut Origin,
    parsed_bits: u64,
    time_ns: u64,
) -> Result<(), Loss> {
    let mut ended = switch.forwarder.run(Stage::Egress, context, time_ns)?;
    while ended.verdict == Verdict::CloneBeforeDeparser {
        copies::clone_egress(switch, program, context, origin, parsed_bits);
        ended = switch.forwarder.run(Stage::Tail(ended.number), context, time_ns)?;
    }
    if ended.verdict == Verdict::Forward {
        // Nothing was asked for, and the storage has not been written.
        for role in [Intrinsic::Truncate, Intrinsic::Recirculate] {
            context.set(program, role, 0);
        }
        return Ok(());
    }
    finish_egress(switch, program, context, origin, parsed_bits)
}

/// What egress leaves to the switch: a clone, if none was made before, and a drop.
fn finish_egress(
    switch: &mut Switch,
    program: &Program,
    context: &Context,
    origin: &mut Origin,
    parsed_bits: u64,
) -> Result<(), Loss> {
    if switch.forwarder.clones_after_egress() {
        copies::clone_egress(switch, program, context, origin, parsed_bits);
    }
    switch.forwarder.check_drop(context)
}

/// Sends a packet back to ingress as it is now.
fn recirculate(switch: &mut Switch, kept: Kept, bytes: Vec<u8>, origin: Origin) {
    let again = Origin { time_ns: switch.now_ns, ..origin };
    let arrival = Arrival { bytes, path: PacketPath::Recirculate, origin: again, kept };
    if let Some(journey) = switch.start_again(arrival) {
        switch.forwarder.tracer.fate(origin.journey, || Fate::Recirculated { journey });
    }
}

/// The length of a packet in bytes, counting headers that became valid or invalid since it was parsed.
fn length_now(program: &Program, context: &Context, parsed_bits: u64) -> u64 {
    let received = context.bytes().len() as u64;
    if program.deparse_at_ingress {
        return received;
    }
    let headers = context.header_bits(program);
    (received + headers / 8).saturating_sub(parsed_bits / 8)
}
