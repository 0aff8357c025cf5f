//! Applying the updates of a batch to a switch, and taking them back.

use super::Op;
use crate::refusal::Refusal;
use crate::shadow::Shadow;
use millrace_pipeline::ProfileId;
use millrace_state::State;
use millrace_switch::Switch;

/// Most updates that are applied between two rounds of the worker, unless they have to be applied together.
pub(crate) const CHUNK: usize = 64;

type Undo = Box<dyn FnOnce(&mut Switch, &mut Shadow) + Send>;

/// A batch that is being applied. It goes to the worker and comes back.
#[derive(Default)]
pub(crate) struct Change {
    pub(crate) shadow: Shadow,
    /// How to take back what was done, the last first; none when nothing is ever taken back.
    undo: Option<Vec<Undo>>,
    /// One-shot groups that nothing names any more when the batch stays.
    retired: Vec<(ProfileId, u32)>,
}

impl Change {
    pub(crate) fn new(shadow: Shadow, can_undo: bool) -> Change {
        Change { shadow, undo: can_undo.then(Vec::new), retired: Vec::new() }
    }

    /// Applies one update.
    pub(crate) fn apply(&mut self, switch: &mut Switch, op: Op) -> Result<(), Refusal> {
        match op {
            Op::Entry(op) => op.apply(switch, self),
            Op::Default(op) => op.apply(switch, self),
            Op::DirectCounter(op) => op.apply(switch, self),
            Op::DirectMeter(op) => op.apply(switch, self),
            Op::Member(op) => op.apply(switch, self),
            Op::Group(op) => op.apply(switch, self),
            Op::Counter(op) => op.apply(switch, self),
            Op::Meter(op) => op.apply(switch, self),
            Op::Register(op) => op.apply(switch, self),
            Op::ValueSet(op) => op.apply(switch, self),
            Op::Digest(op) => op.apply(self),
            Op::Multicast(op) => op.apply(switch, self),
            Op::Clone(op) => op.apply(switch, self),
        }
    }

    /// Takes everything back.
    pub(crate) fn roll_back(&mut self, switch: &mut Switch) {
        self.retired.clear();
        while let Some(undo) = self.undo.as_mut().and_then(Vec::pop) {
            undo(switch, &mut self.shadow);
        }
    }

    /// The batch stays.
    pub(crate) fn commit(&mut self, switch: &mut Switch) {
        for (profile, group) in std::mem::take(&mut self.retired) {
            forget_one_shot(switch.state_mut(), &mut self.shadow, profile, group);
        }
    }

    pub(super) fn can_undo(&self) -> bool {
        self.undo.is_some()
    }

    /// Remembers how to take back what was just done.
    pub(super) fn on_undo(&mut self, undo: impl FnOnce(&mut Switch, &mut Shadow) + Send + 'static) {
        if let Some(list) = &mut self.undo {
            list.push(Box::new(undo));
        }
    }

    /// A one-shot group lost its entry.
    pub(super) fn retire(&mut self, switch: &mut Switch, profile: ProfileId, group: u32) {
        match self.undo {
            Some(_) => self.retired.push((profile, group)),
            None => forget_one_shot(switch.state_mut(), &mut self.shadow, profile, group),
        }
    }
}

/// Removes a one-shot group with its members.
pub(super) fn forget_one_shot(state: &mut State, shadow: &mut Shadow, profile: ProfileId, group: u32) {
    let Some(known) = shadow.one_shots.remove(&(profile, group)) else { return };
    // Nothing but the entry that has gone could name them.
    let _ = state.remove_group(profile, group);
    for (member, _) in known.members {
        let _ = state.remove_member(profile, member.member);
    }
}
