//! Table entries: what is asked for, and what is kept.

use crate::action::{ActionCall, ActionDataId};
use crate::counter::CounterValue;
use crate::key::FieldMatch;
use crate::meter::MeterConfig;

/// Names one entry of one table, small enough for a packet's context. An index is used again after its entry was
/// removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct EntryIndex(pub u32);

impl EntryIndex {
    /// No entry matched: the index of the default entry, which holds the default action.
    pub const MISS: EntryIndex = EntryIndex(0);

    /// Whether an entry matched.
    pub fn is_hit(self) -> bool {
        self != EntryIndex::MISS
    }
}

/// A member that existed in its action profile when this was made ([`crate::ActionProfile::member_ref`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberRef(pub(crate) u32);

impl MemberRef {
    /// The member's id.
    pub fn id(self) -> u32 {
        self.0
    }
}

/// A group that existed in its action profile when this was made ([`crate::ActionProfile::group_ref`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupRef(pub(crate) u32);

impl GroupRef {
    /// The group's id.
    pub fn id(self) -> u32 {
        self.0
    }
}

/// What an entry does when it matches, as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EntryTarget {
    /// One action.
    Action(ActionCall),
    /// The action of one member of the table's action profile.
    Member(MemberRef),
    /// The action of a member selected from a group of the table's action profile.
    Group(GroupRef),
}

impl EntryTarget {
    /// Bytes of the arguments that an entry brings with it.
    pub fn arguments(&self) -> u64 {
        match self {
            EntryTarget::Action(call) => call.data.len() as u64,
            EntryTarget::Member(_) | EntryTarget::Group(_) => 0,
        }
    }
}

/// What an entry does when it matches, as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetRef {
    /// One action, to be read with [`crate::Table::action`].
    Action(ActionDataId),
    /// The action of one member, to be read with [`crate::ActionProfile::member`].
    Member(MemberRef),
    /// To be selected with [`crate::ActionProfile::select`].
    Group(GroupRef),
}

/// An entry to be inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntrySpec {
    /// One match per key field, in order.
    pub matches: Vec<FieldMatch>,
    /// The larger number wins. 0 in tables without ternary, range or optional keys.
    pub priority: u32,
    /// What to do on a match.
    pub target: EntryTarget,
    /// The program declares it const: the control plane can neither modify nor remove it.
    pub is_const: bool,
    /// Idle for this long (ns) and [`crate::Table::expired`] lists it; 0 for never.
    pub idle_timeout_ns: u64,
    /// The time of the insertion (ns), from which idleness counts.
    pub created_ns: u64,
}

impl EntrySpec {
    /// An entry with an action, no priority and nothing special.
    pub fn new(matches: Vec<FieldMatch>, action: ActionCall) -> EntrySpec {
        EntrySpec {
            matches,
            priority: 0,
            target: EntryTarget::Action(action),
            is_const: false,
            idle_timeout_ns: 0,
            created_ns: 0,
        }
    }

    /// The same with a priority; the larger number wins.
    pub fn with_priority(self, priority: u32) -> EntrySpec {
        EntrySpec { priority, ..self }
    }

    /// The same with another target.
    pub fn with_target(self, target: EntryTarget) -> EntrySpec {
        EntrySpec { target, ..self }
    }

    /// The same, const.
    pub fn constant(self) -> EntrySpec {
        EntrySpec { is_const: true, ..self }
    }
}

/// An entry in a table. The default entry (index 0) has no matches.
#[derive(Clone, Debug)]
pub struct Entry {
    pub(crate) matches: Box<[FieldMatch]>,
    pub(crate) priority: u32,
    pub(crate) target: TargetRef,
    pub(crate) is_const: bool,
    pub(crate) counter: CounterValue,
    pub(crate) meter: Option<MeterConfig>,
    pub(crate) idle_timeout_ns: u64,
    pub(crate) last_hit_ns: u64,
}

impl Entry {
    /// The matches in canonical form, one per key field.
    pub fn matches(&self) -> &[FieldMatch] {
        &self.matches
    }

    /// The priority; the larger number wins.
    pub fn priority(&self) -> u32 {
        self.priority
    }

    /// What the entry does.
    pub fn target(&self) -> TargetRef {
        self.target
    }

    /// Whether the control plane may not change it.
    pub fn is_const(&self) -> bool {
        self.is_const
    }

    /// Its direct counter; zero in a table without one.
    pub fn counter(&self) -> CounterValue {
        self.counter
    }

    /// How its direct meter is configured; none in a table without one.
    pub fn meter(&self) -> Option<MeterConfig> {
        self.meter
    }

    /// Its idle timeout in ns, 0 for none.
    pub fn idle_timeout_ns(&self) -> u64 {
        self.idle_timeout_ns
    }

    /// When it last matched a packet, or was inserted, in ns.
    pub fn last_hit_ns(&self) -> u64 {
        self.last_hit_ns
    }
}
