//! Egress, and what becomes of a packet behind it.

use crate::context::Context;
use crate::flight::{Arrival, Departure, Kept, Origin, QueueStay};
use crate::switch::Switch;
use crate::trace::Fate;
use crate::{DropReason, PortId};
use millrace_pipeline::*;
use millrace_ports::MAX_FRAME;
use std::sync::Arc;

impl Switch {
    /// A packet passes the bodies of egress, is cloned, and then dropped, recirculated or sent.
    pub(crate) fn egress(&mut self, departure: Departure, stay: QueueStay) {
        let program = Arc::clone(&self.program);
        let Departure { mut context, path, mut origin, parsed_bits, port, rid, priority, truncate } =
            departure;
        let length = length_now(&program, &context, parsed_bits);
        self.tracer.enter(origin.journey, length as usize);
        context.set(&program, Intrinsic::Priority, u64::from(priority));
        self.describe_departure(&mut context, length, path, (port, rid), stay);

        if let Err(reason) = self.run_egress(&mut context, &mut origin, parsed_bits) {
            self.engine.take_back(context);
            return self.drop_packet(reason, &origin, Some(port));
        }
        self.send(context, port, origin, truncate);
    }

    /// Cuts a packet that passed egress, and sends it or sends it back.
    fn send(&mut self, context: Context, port: PortId, origin: Origin, truncate: Option<u32>) {
        let program = Arc::clone(&self.program);
        let asks = |role| context.get(&program, role);
        let limit = Some(asks(Intrinsic::Truncate)).filter(|limit| *limit > 0);
        let recirculates = asks(Intrinsic::Recirculate) != 0;
        let kept = match recirculates {
            true => Kept::of_list(&program, &context, asks(Intrinsic::RecirculateList)),
            false => Kept::default(),
        };
        let whole = context.bytes();
        let limits = [truncate.map(u64::from), limit].into_iter().flatten();
        let limits = limits.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let bytes = whole[..limits.fold(whole.len(), usize::min)].to_vec();
        self.engine.take_back(context);
        if bytes.len() <= MAX_FRAME && recirculates {
            self.recirculate(kept, bytes, origin);
        } else {
            self.finish_frame(port, bytes, &origin);
        }
    }

    /// A packet is done with egress and only to be sent.
    pub(crate) fn finish_frame(&mut self, port: PortId, bytes: Vec<u8>, origin: &Origin) {
        if bytes.len() > MAX_FRAME {
            return self.drop_packet(DropReason::Oversize, origin, Some(port));
        }
        self.transmit(port, bytes, origin);
    }

    /// Goes on with a packet that compiled code has taken through egress.
    pub(crate) fn behind_egress(
        &mut self,
        context: Context,
        port: PortId,
        mut origin: Origin,
        parsed_bits: u64,
        truncate: Option<u32>,
    ) {
        match self.finish_egress(&context, &mut origin, parsed_bits) {
            Ok(()) => self.send(context, port, origin, truncate),
            Err(reason) => self.drop_packet(reason, &origin, Some(port)),
        }
    }

    /// What the switch tells a program about a packet in front of egress.
    fn describe_departure(
        &self,
        context: &mut Context,
        length: u64,
        path: PacketPath,
        (port, rid): (u32, u16),
        stay: QueueStay,
    ) {
        let program = &*self.program;
        self.engine.reset_at_egress(program, context);
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
        set(Intrinsic::QueueDelay, self.now_ns.saturating_sub(stay.enqueued_ns));
        set(Intrinsic::DequeueDepth, u64::from(stay.dequeue_depth));
        set(Intrinsic::EgressTimestamp, self.now_ns);
    }

    /// Makes a clone of the packet as it is, if the program asks for one: with its headers where they pass through the
    /// traffic manager, else of its bytes. All metadata but the field list starts anew.
    pub(crate) fn clone_egress(&mut self, context: &Context, origin: &mut Origin, parsed_bits: u64) {
        let program = Arc::clone(&self.program);
        if context.get(&program, Intrinsic::Clone) == 0 {
            return;
        }
        let Some((number, session)) = self.clone_session(context, origin) else { return };
        origin.budget /= 2;
        if origin.passes >= self.max_passes {
            return self.drop_packet(DropReason::RecirculationLimit, origin, None);
        }
        self.tracer.fate(origin.journey, || Fate::Cloned { session: number, reparse: None });
        let kept = Kept::of_list(&program, context, context.get(&program, Intrinsic::CloneList));
        let mut clone = if program.deparse_at_ingress {
            let bytes = context.bytes();
            let length = session.truncate.map_or(bytes.len(), |length| bytes.len().min(length as usize));
            self.new_context(&bytes[..length])
        } else {
            let mut clone = self.engine.copy(context);
            self.engine.reset_metadata(&program, &mut clone);
            clone
        };
        kept.restore(&program, &mut clone);
        clone.set(&program, Intrinsic::IngressPort, u64::from(origin.port));
        clone.set(&program, Intrinsic::IngressTimestamp, origin.time_ns);
        let origin_of_clone = Origin { passes: origin.passes + 1, ..*origin };
        self.send_clone(clone, PacketPath::EgressClone, origin_of_clone, parsed_bits, &session);
    }

    /// Sends a packet back to ingress as it is now.
    fn recirculate(&mut self, kept: Kept, bytes: Vec<u8>, origin: Origin) {
        let again = Origin { time_ns: self.now_ns, ..origin };
        let arrival = Arrival { bytes, path: PacketPath::Recirculate, origin: again, kept };
        if let Some(journey) = self.start_again(arrival) {
            self.tracer.fate(origin.journey, || Fate::Recirculated { journey });
        }
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
