//! The mode of a running switch, set between two rounds of all of its workers.

use super::{Worker, schedulers};
use crate::{DropReason, Mode, PortId};

/// Has all workers heed another mode.
pub(super) fn set(worker: &mut Worker, mode: Mode) {
    worker.with_all(|workers| {
        workers.iter_mut().for_each(|worker| worker.switch.set_mode(mode));
        if mode.conduct().sends {
            return;
        }
        // What one worker has handed over to another was switched before, and leaves before.
        workers.iter_mut().for_each(|worker| worker.complete());
        for worker in workers.iter_mut() {
            worker.flush();
            let ports: Vec<PortId> = worker.ports.iter().map(|live| live.id).collect();
            ports.into_iter().for_each(|port| schedulers::give_up(worker, port, DropReason::Mode));
        }
    });
}
