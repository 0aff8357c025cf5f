//! The replicator: multicast groups and clone sessions, and what undoes the writes to them.

use crate::Replication;
use crate::replication::Replica;
use millrace_state::Account;
use std::sync::Arc;

/// Multicast groups and clone sessions of a switch.
#[derive(Debug, Default)]
pub(crate) struct Replicator {
    groups: Replication,
    /// What they are charged to; those of followers are copies, which are charged to nobody.
    account: Option<Arc<Account>>,
    /// Whether writes note what undoes them, and the groups as they were before the first one.
    noted: Option<Option<Replication>>,
    /// How often they may have been written.
    revision: u64,
    /// Room for the copies of a packet.
    copies: Vec<Replica>,
    /// Whether those of the switch that it takes over from go on in place of these.
    gives_way: bool,
}

impl Replicator {
    /// The same groups and sessions for one more worker.
    pub(crate) fn share(&self) -> Replicator {
        Replicator { groups: self.groups.apart(), gives_way: self.gives_way, ..Replicator::default() }
    }

    /// From now on groups and sessions are charged to that account, also where it is more than that may have.
    pub(crate) fn charge_to(&mut self, account: &Arc<Account>) {
        self.groups.charge_to(account);
        self.account = Some(Arc::clone(account));
    }

    /// When its switch takes over, groups and sessions that there are then go on in place of these.
    pub(crate) fn give_way(&mut self) {
        self.gives_way = true;
    }

    pub(crate) fn gives_way(&self) -> bool {
        self.gives_way
    }

    pub(crate) fn is_charged(&self) -> bool {
        self.account.is_some()
    }

    pub(crate) fn groups(&self) -> &Replication {
        &self.groups
    }

    /// Another number after each write.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// An empty list for the copies of a packet, to be given back ([`Replicator::take_back`]).
    pub(crate) fn list(&mut self) -> Vec<Replica> {
        std::mem::take(&mut self.copies)
    }

    /// Keeps the memory of a list.
    pub(crate) fn take_back(&mut self, mut list: Vec<Replica>) {
        list.clear();
        self.copies = list;
    }

    /// To be written.
    pub(crate) fn groups_mut(&mut self) -> &mut Replication {
        self.revision += 1;
        if let Some(before @ None) = &mut self.noted {
            *before = Some(self.groups.clone());
        }
        &mut self.groups
    }

    /// From now on writes note what undoes them.
    pub(crate) fn note(&mut self) {
        self.noted = Some(None);
    }

    /// All that was written since [`Replicator::note`] stays.
    pub(crate) fn keep(&mut self) {
        self.noted = None;
    }

    /// Takes back all that was written since [`Replicator::note`].
    pub(crate) fn undo(&mut self) {
        if let Some(before) = self.noted.take().flatten() {
            self.groups = before;
            self.revision += 1;
            if let Some(account) = &self.account {
                self.groups.charge_to(account);
            }
        }
    }
}
