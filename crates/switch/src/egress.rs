//! Egress, and what becomes of a packet behind it.

use crate::DropReason;
use crate::flight::{Arrival, Departure, Kept, Next, Origin, QueueStay, reset_metadata};
use crate::switch::Switch;
use crate::trace::Fate;
use millrace_interp::Context;
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

        // Where headers pass through the traffic manager, a clone has them as they are in front of the deparser; else it
        // starts from the bytes behind it.
        let mut cloned = false;
        for body in &program.egress {
            if !program.deparse_at_ingress && program.bodies[*body].kind == BodyKind::Deparser {
                self.clone_egress(&context, &mut origin, parsed_bits);
                cloned = true;
                if context.get(&program, Intrinsic::Drop) != 0 {
                    return self.drop_packet(DropReason::EgressDrop, &origin, Some(port));
                }
            }
            match self.run(*body, &mut context) {
                Next::Body => {}
                Next::Behind => break,
                Next::Drop(reason) => return self.drop_packet(reason, &origin, Some(port)),
            }
        }
        if !cloned {
            self.clone_egress(&context, &mut origin, parsed_bits);
        }
        if context.get(&program, Intrinsic::Drop) != 0 {
            return self.drop_packet(DropReason::EgressDrop, &origin, Some(port));
        }
        let mut bytes = std::mem::take(&mut context.bytes);
        let limits =
            [truncate.map(u64::from), Some(context.get(&program, Intrinsic::Truncate)).filter(|l| *l > 0)];
        if let Some(limit) = limits.into_iter().flatten().min() {
            bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        if bytes.len() > MAX_FRAME {
            return self.drop_packet(DropReason::Oversize, &origin, Some(port));
        }
        if context.get(&program, Intrinsic::Recirculate) != 0 {
            self.recirculate(&context, bytes, origin);
        } else {
            self.transmit(port, bytes, &origin);
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
        program.reset_at_egress.iter().for_each(|slot| context.phv.clear(program, *slot));
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
    fn clone_egress(&mut self, context: &Context, origin: &mut Origin, parsed_bits: u64) {
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
            let mut bytes = context.bytes.clone();
            if let Some(length) = session.truncate {
                bytes.truncate(length as usize);
            }
            Context::new(&program, bytes)
        } else {
            let mut clone = context.clone();
            reset_metadata(&program, &mut clone.phv);
            clone
        };
        kept.restore(&program, &mut clone.phv);
        clone.set(&program, Intrinsic::IngressPort, u64::from(origin.port));
        clone.set(&program, Intrinsic::IngressTimestamp, origin.time_ns);
        let origin_of_clone = Origin { passes: origin.passes + 1, ..*origin };
        self.send_clone(clone, PacketPath::EgressClone, origin_of_clone, parsed_bits, &session);
    }

    /// Sends a packet back to ingress as it is now.
    fn recirculate(&mut self, context: &Context, bytes: Vec<u8>, origin: Origin) {
        let program = Arc::clone(&self.program);
        let list = context.get(&program, Intrinsic::RecirculateList);
        let kept = Kept::of_list(&program, context, list);
        let again = Origin { time_ns: self.now_ns, ..origin };
        let arrival = Arrival { bytes, path: PacketPath::Recirculate, origin: again, kept };
        if let Some(journey) = self.start_again(arrival) {
            self.tracer.fate(origin.journey, || Fate::Recirculated { journey });
        }
    }
}

/// The length of a packet in bytes, counting headers that became valid or invalid since it was parsed.
fn length_now(program: &Program, context: &Context, parsed_bits: u64) -> u64 {
    let received = context.length() as u64;
    if program.deparse_at_ingress {
        return received;
    }
    let headers = context.phv.header_bits(program);
    (received + headers / 8).saturating_sub(parsed_bits / 8)
}
