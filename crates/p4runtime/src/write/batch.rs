//! Applying the updates of a batch to a switch, and taking them back.

use super::Op;
use super::one_shot::forget_one_shot;
use crate::refusal::Refusal;
use crate::shadow::Shadow;
use millrace_dataplane::Switch;
use millrace_pipeline::ProfileId;
use millrace_state::Tables;
use tonic::Code;

/// Most updates that are applied between two rounds of the worker, unless they have to be applied together.
pub(crate) const CHUNK: usize = 64;

type Undo = Box<dyn FnOnce(&mut Site<'_>, &mut Shadow) + Send>;

/// What updates are applied to.
pub(crate) struct Site<'a> {
    /// What any thread may write.
    pub(crate) tables: &'a mut Tables,
    /// What the worker owns; none on another thread.
    pub(crate) switch: Option<&'a mut Switch>,
    /// The switch's time.
    pub(crate) now_ns: u64,
}

impl Site<'_> {
    /// What the worker owns.
    pub(super) fn switch(&mut self) -> Result<&mut Switch, Refusal> {
        self.switch.as_deref_mut().ok_or_else(|| Refusal::new(Code::Internal, "only the worker can do this"))
    }

    /// Does something to what the worker owns, where it was done before.
    pub(super) fn on_switch(&mut self, undo: impl FnOnce(&mut Switch)) {
        if let Some(switch) = self.switch.as_deref_mut() {
            undo(switch);
        }
    }
}

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

    /// Applies one update. Those that [`Op::needs_worker`] names need a site with the switch.
    pub(crate) fn apply(&mut self, site: &mut Site<'_>, op: Op) -> Result<(), Refusal> {
        match op {
            Op::Entry(op) => op.apply(site, self),
            Op::Default(op) => op.apply(site, self),
            Op::DirectCounter(op) => op.apply(site, self),
            Op::DirectMeter(op) => op.apply(site, self),
            Op::Member(op) => op.apply(site, self),
            Op::Group(op) => op.apply(site, self),
            Op::Counter(op) => op.apply(site, self),
            Op::Meter(op) => op.apply(site, self),
            Op::Register(op) => op.apply(site, self),
            Op::ValueSet(op) => op.apply(site, self),
            Op::Digest(op) => op.apply(self),
            Op::Multicast(op) => op.apply(site, self),
            Op::Clone(op) => op.apply(site, self),
        }
    }

    /// Takes everything back.
    pub(crate) fn roll_back(&mut self, site: &mut Site<'_>) {
        self.retired.clear();
        while let Some(undo) = self.undo.as_mut().and_then(Vec::pop) {
            undo(site, &mut self.shadow);
        }
    }

    /// The batch stays.
    pub(crate) fn commit(&mut self, tables: &mut Tables) {
        for (profile, group) in std::mem::take(&mut self.retired) {
            forget_one_shot(tables, &mut self.shadow, profile, group);
        }
    }

    pub(super) fn can_undo(&self) -> bool {
        self.undo.is_some()
    }

    /// Remembers how to take back what was just done.
    pub(super) fn on_undo(&mut self, undo: impl FnOnce(&mut Site<'_>, &mut Shadow) + Send + 'static) {
        if let Some(list) = &mut self.undo {
            list.push(Box::new(undo));
        }
    }

    /// A one-shot group lost its entry.
    pub(super) fn retire(&mut self, site: &mut Site<'_>, profile: ProfileId, group: u32) {
        match self.undo {
            Some(_) => self.retired.push((profile, group)),
            None => forget_one_shot(site.tables, &mut self.shadow, profile, group),
        }
    }
}
