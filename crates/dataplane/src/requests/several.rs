//! Requests to a switch with several workers, answered while none of them has a packet under way.
//!
//! What workers share is read and written once, through the switch of the leading worker. What each has a copy of is written to
//! each: every copy is the same before, and a write gives the same on the same, so all are the same after.

use super::{GroupWrite, ObjectError, ObjectRequest, Request, serve, write_all};
use crate::switch::Switch;
use crate::{Counters, PortCounters, PortId, quotas};
use millrace_state::{BuildError, ObjectWrite};
use std::sync::Arc;

impl Request {
    /// Whether the leading worker answers it without the others: it asks for what workers share, or have the same copies of.
    pub(crate) fn is_for_one(&self) -> bool {
        match self {
            Request::Look(_) | Request::Replication(_) | Request::Groups(..) | Request::Sessions(..) => true,
            Request::Group(..) | Request::Session(..) => true,
            Request::Quotas(_) => true,
            Request::Objects(_, request) => match request {
                ObjectRequest::Registers(..)
                | ObjectRequest::Meters(..)
                | ObjectRequest::Values(..)
                | ObjectRequest::Hash(..) => true,
                ObjectRequest::Write(lists, _) => !lists.iter().flatten().any(is_of_copies),
                ObjectRequest::Reset(_) => false,
            },
            Request::Ports(_)
            | Request::EnablePort(..)
            | Request::Replicate(..)
            | Request::Node(..)
            | Request::Queues(..)
            | Request::SetQuotas(..)
            | Request::TakeOver(..)
            | Request::Pause(_) => false,
        }
    }
}

/// Whether each worker has a copy of the object.
fn is_of_copies(write: &ObjectWrite) -> bool {
    match write {
        ObjectWrite::Register { .. }
        | ObjectWrite::ResetRegister(_)
        | ObjectWrite::Meter { .. }
        | ObjectWrite::MeterCounts { .. } => false,
        ObjectWrite::InsertValue(..)
        | ObjectWrite::RemoveValue(..)
        | ObjectWrite::ReplaceValues(..)
        | ObjectWrite::Hash(..) => true,
    }
}

/// Does what a request asks of the switches of all workers, and answers it.
pub(crate) fn serve_all(first: &mut Switch, others: &mut [&mut Switch], request: Request) {
    match request {
        Request::Ports(to) => to.give(ports(first, others)),
        Request::EnablePort(port, is_enabled, to) => {
            others.iter_mut().for_each(|switch| _ = switch.enable_port(port, is_enabled));
            to.give(first.enable_port(port, is_enabled));
        }
        Request::Replicate(writes, to) => {
            let groups = first.replication_mut();
            let done: Vec<_> = writes.iter().cloned().map(|write: GroupWrite| groups.write(write)).collect();
            // Quotas are looked at once: what the first took, the others take.
            for (write, _) in writes.iter().zip(&done).filter(|(_, done)| done.is_ok()) {
                others.iter_mut().for_each(|switch| drop(switch.replication_mut().write(write.clone())));
            }
            to.give(done);
        }
        Request::Node(write, to) => {
            let done = first.replication_mut().write_node(write.clone());
            if done.is_ok() {
                others.iter_mut().for_each(|switch| drop(switch.replication_mut().write_node(write.clone())));
            }
            to.give(done);
        }
        Request::SetQuotas(quotas, to) => {
            quotas::set(first, others, quotas);
            to.give(());
        }
        Request::Queues(write, to) => {
            others.iter_mut().for_each(|switch| _ = switch.write_queues(write));
            to.give(first.write_queues(write));
        }
        Request::TakeOver(mut next, to) => {
            let fits = first.check_room_for(&next);
            to.give(fits.and_then(|()| next.share_with(others.len())).map(|shared| {
                for (switch, next) in others.iter_mut().zip(shared) {
                    drop(switch.take_over(next));
                }
                Box::new(first.take_over(*next))
            }))
        }
        Request::Objects(program, ObjectRequest::Write(lists, to)) => {
            if !Arc::ptr_eq(first.program(), &program) {
                return to.give(Err(ObjectError::Replaced));
            }
            let done = lists.iter().map(|list| {
                let done = write_all(first.state_mut(), list);
                if done.is_ok() {
                    for write in list.iter().filter(|write| is_of_copies(write)) {
                        // What one copy took, the others take.
                        others.iter_mut().for_each(|switch| drop(switch.state_mut().write(write)));
                    }
                }
                done
            });
            to.give(Ok(done.collect()));
        }
        Request::Objects(program, ObjectRequest::Reset(to)) => {
            to.give(match Arc::ptr_eq(first.program(), &program) {
                true => reset(first, others).map_err(ObjectError::State),
                false => Err(ObjectError::Replaced),
            })
        }
        for_one => serve(first, for_one),
    }
}

/// What was counted of each port, by all workers together.
fn ports(first: &Switch, others: &[&mut Switch]) -> Vec<(PortId, PortCounters)> {
    let mut counters: Counters = first.counters().clone();
    others.iter().for_each(|switch| counters.add(switch.counters()));
    counters.ports().collect()
}

/// Empties all objects, or none where there is no memory for empty ones.
fn reset(first: &mut Switch, others: &mut [&mut Switch]) -> Result<(), BuildError> {
    let handle = first.state().handle();
    first.note(&mut handle.lock());
    let made = first.state_mut().reset(&mut handle.lock());
    let shared =
        made.and_then(|()| others.iter().map(|_| first.state_mut().share()).collect::<Result<Vec<_>, _>>());
    let mut tables = handle.lock();
    match shared {
        Ok(states) => {
            first.keep(&mut tables);
            for (switch, state) in others.iter_mut().zip(states) {
                *switch.state_mut() = state;
            }
            Ok(())
        }
        Err(error) => {
            // Nothing of what was there before has changed.
            let _ = first.undo(&mut tables);
            Err(error)
        }
    }
}
