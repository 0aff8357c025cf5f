//! Why a write or a creation was refused, in words an operator understands.

use crate::account::{MAX_BAG_NS, MAX_FRAME, MAX_JITTER_NS, MIN_BAG_NS};
use crate::engines::NoMemory;
use std::fmt;

/// Why a table, profile or array cannot be made as specified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecError {
    /// A size is above its written limit. `what` names the size.
    TooLarge {
        /// What is too large, as a noun phrase.
        what: &'static str,
        /// The size asked for.
        asked: u64,
        /// The written limit.
        limit: u64,
    },
    /// A table without ternary, range or optional keys has more than one lpm key, so that "longest" has no meaning.
    SeveralLpmKeys,
    /// The system gives no memory for it.
    NoMemory(NoMemory),
}

impl From<NoMemory> for SpecError {
    fn from(error: NoMemory) -> SpecError {
        SpecError::NoMemory(error)
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpecError::TooLarge { what, asked, limit } => {
                write!(f, "{what} is {asked}, the limit is {limit}")
            }
            SpecError::SeveralLpmKeys => f.write_str("a table can have only one lpm key"),
            SpecError::NoMemory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SpecError {}

/// Why a write to a table or a value set was refused. The table is as it was before the write.
///
/// `field` counts the key fields from 0 in the order of the schema; messages count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableError {
    /// The table holds as many entries as it may.
    Full {
        /// The number of entries the table may hold.
        limit: u32,
    },
    /// The system gives no memory for the entry.
    NoMemory(NoMemory),
    /// The table has no key fields, so no entry could ever match.
    NoKey,
    /// An entry with the same match and priority is there already.
    Duplicate,
    /// No entry has this index, or this match and priority.
    NotFound,
    /// The entry matches on more or fewer fields than the key has.
    WrongFieldCount {
        /// Fields in the key.
        expected: usize,
        /// Fields in the entry.
        found: usize,
    },
    /// A match is of a kind that the key field does not have.
    WrongKind {
        /// The key field.
        field: usize,
        /// The kind of the key field.
        expected: &'static str,
        /// The kind of the match in the entry.
        found: &'static str,
    },
    /// A value has too few or too many bytes, or bits set above the field's width.
    WrongWidth {
        /// The key field.
        field: usize,
        /// The width of the field in bits.
        width: u32,
        /// The number of bytes of the value.
        found_bytes: usize,
    },
    /// A prefix is longer than the field.
    BadPrefix {
        /// The key field.
        field: usize,
        /// The width of the field in bits.
        width: u32,
        /// The prefix length in bits.
        prefix_len: u32,
    },
    /// The low end of a range is above its high end.
    EmptyRange {
        /// The key field.
        field: usize,
    },
    /// A priority was given where matches cannot overlap.
    PriorityNotUsed {
        /// The priority given.
        priority: u32,
    },
    /// The entry is declared const by the program.
    ConstEntry,
    /// All entries of the table are declared const by the program.
    ConstTable,
    /// The default action is declared const by the program.
    ConstDefault,
    /// The table takes its actions from an action profile and the entry names an action itself.
    NeedsProfile,
    /// The table has no action profile and the entry names a member or a group.
    NoProfile,
    /// The action's packed arguments are longer than the written limit.
    ActionTooLong {
        /// Bytes of the arguments.
        bytes: usize,
        /// The written limit in bytes.
        limit: usize,
    },
    /// An idle timeout was given and the table does not support it.
    NoIdleTimeout,
    /// The table has no direct counter.
    NoCounter,
    /// The table has no direct meter.
    NoMeter,
    /// The rates or burst sizes of a direct meter were refused.
    Meter(MeterError),
}

impl From<NoMemory> for TableError {
    fn from(error: NoMemory) -> TableError {
        TableError::NoMemory(error)
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableError::Full { limit } => write!(f, "the table is full: it holds {limit} entries, its limit"),
            TableError::NoMemory(error) => error.fmt(f),
            TableError::NoKey => f.write_str("the table has no key, it can only have a default action"),
            TableError::Duplicate => {
                f.write_str("an entry with this match and priority is already in the table")
            }
            TableError::NotFound => f.write_str("no such entry in the table"),
            TableError::WrongFieldCount { expected, found } => {
                write!(f, "the table's key has {expected} field(s), the entry matches on {found}")
            }
            TableError::WrongKind { field, expected, found } => {
                write!(f, "key field {} matches by {expected}, the entry gives {found}", field + 1)
            }
            TableError::WrongWidth { field, width, found_bytes } => write!(
                f,
                "key field {} is {width} bits wide ({} bytes), the value of {found_bytes} bytes does not fit",
                field + 1,
                width.div_ceil(8)
            ),
            TableError::BadPrefix { field, width, prefix_len } => {
                write!(
                    f,
                    "key field {} is {width} bits wide, a prefix of {prefix_len} is too long",
                    field + 1
                )
            }
            TableError::EmptyRange { field } => {
                write!(f, "the range of key field {} is empty: its low end is above its high end", field + 1)
            }
            TableError::PriorityNotUsed { priority } => write!(
                f,
                "priority {priority} given, but a table without ternary, range or optional keys has no priorities"
            ),
            TableError::ConstEntry => f.write_str("the entry is const in the program and cannot be changed"),
            TableError::ConstTable => {
                f.write_str("the table's entries are const in the program, none can be added")
            }
            TableError::ConstDefault => f.write_str("the table's default action is const in the program"),
            TableError::NeedsProfile => {
                f.write_str("the table takes its actions from an action profile: give a member or a group")
            }
            TableError::NoProfile => f.write_str("the table has no action profile: give an action"),
            TableError::ActionTooLong { bytes, limit } => {
                write!(f, "the action's arguments take {bytes} bytes, the limit is {limit}")
            }
            TableError::NoIdleTimeout => f.write_str("the table does not support idle timeouts"),
            TableError::NoCounter => f.write_str("the table has no direct counter"),
            TableError::NoMeter => f.write_str("the table has no direct meter"),
            TableError::Meter(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TableError {}

impl From<MeterError> for TableError {
    fn from(error: MeterError) -> TableError {
        TableError::Meter(error)
    }
}

/// Why a meter configuration was refused. The meter is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterError {
    /// The peak rate is below the committed rate (RFC 2698 section 2 wants it equal or greater).
    PeakBelowCommitted,
    /// The array has no meter with this index.
    OutOfRange {
        /// The index given.
        index: u64,
        /// The number of meters.
        size: u64,
    },
    /// The parameters of an account for what meters by rates, or rates for an account.
    OtherKind,
    /// The parameters of an account were refused.
    Account(AccountError),
}

/// Which parameter of an account is outside of its limits. It is in nanoseconds, Smax in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountError {
    /// The bandwidth allocation gap.
    Bag(u64),
    /// The jitter.
    Jitter(u64),
    /// The longest frame.
    Smax(u32),
}

impl fmt::Display for AccountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccountError::Bag(bag) => {
                write!(f, "a BAG of {bag} ns is outside of the limits, {MIN_BAG_NS} to {MAX_BAG_NS} ns")
            }
            AccountError::Jitter(jitter) => {
                write!(f, "a jitter of {jitter} ns is above the limit, {MAX_JITTER_NS} ns")
            }
            AccountError::Smax(smax) => {
                write!(f, "an Smax of {smax} bytes is outside of the limits, 1 to {MAX_FRAME} bytes")
            }
        }
    }
}

impl std::error::Error for AccountError {}

impl From<AccountError> for MeterError {
    fn from(error: AccountError) -> MeterError {
        MeterError::Account(error)
    }
}

impl fmt::Display for MeterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MeterError::PeakBelowCommitted => f.write_str("the peak rate is below the committed rate"),
            MeterError::OutOfRange { index, size } => {
                write!(f, "meter {index} does not exist, there are {size}, counted from 0")
            }
            MeterError::OtherKind => {
                f.write_str("a meter has rates and bursts, an account has BAG, jitter, Smax and a test")
            }
            MeterError::Account(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MeterError {}

/// Why a write to an action profile was refused. The profile is as it was before the write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileError {
    /// The profile holds as many members as it may.
    MembersFull {
        /// The number of members the profile may hold.
        limit: u32,
    },
    /// The profile holds as many groups as it may.
    GroupsFull {
        /// The number of groups the profile may hold.
        limit: u32,
    },
    /// The weights of all groups would add up to more than whoever looks up holds ([`crate::ActionProfile::set_capacity`]).
    PlacesFull {
        /// The largest sum.
        limit: u32,
    },
    /// The weights of a group add up to more than the profile allows.
    GroupTooLarge {
        /// The sum of the weights asked for.
        weight: u64,
        /// The largest sum allowed.
        limit: u32,
    },
    /// A member with this id is there already.
    DuplicateMember(u32),
    /// A group with this id is there already.
    DuplicateGroup(u32),
    /// There is no member with this id.
    NoMember(u32),
    /// There is no group with this id.
    NoGroup(u32),
    /// The member is still in a group or used by a table entry.
    MemberInUse(u32),
    /// The group is still used by a table entry.
    GroupInUse(u32),
    /// A member of a group has weight 0.
    ZeroWeight {
        /// The member's id.
        member: u32,
    },
    /// A group names the same member twice.
    RepeatedMember {
        /// The member's id.
        member: u32,
    },
    /// The profile has no selector, so there are no groups.
    NoSelector,
    /// The action's packed arguments are longer than the written limit.
    ActionTooLong {
        /// Bytes of the arguments.
        bytes: usize,
        /// The written limit in bytes.
        limit: usize,
    },
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProfileError::MembersFull { limit } => {
                write!(f, "the action profile is full: it holds {limit} members, its limit")
            }
            ProfileError::GroupsFull { limit } => {
                write!(f, "the action profile is full: it holds {limit} groups, its limit")
            }
            ProfileError::PlacesFull { limit } => {
                write!(
                    f,
                    "the action profile is full: the weights of all groups are at most {limit}, its limit"
                )
            }
            ProfileError::GroupTooLarge { weight, limit } => {
                write!(f, "the group's weights add up to {weight}, the limit is {limit}")
            }
            ProfileError::DuplicateMember(id) => write!(f, "member {id} already exists"),
            ProfileError::DuplicateGroup(id) => write!(f, "group {id} already exists"),
            ProfileError::NoMember(id) => write!(f, "no member {id} in the action profile"),
            ProfileError::NoGroup(id) => write!(f, "no group {id} in the action profile"),
            ProfileError::MemberInUse(id) => {
                write!(f, "member {id} is still used by a group or a table entry")
            }
            ProfileError::GroupInUse(id) => write!(f, "group {id} is still used by a table entry"),
            ProfileError::ZeroWeight { member } => write!(f, "member {member} has weight 0 in the group"),
            ProfileError::RepeatedMember { member } => {
                write!(f, "member {member} is in the group twice, use its weight instead")
            }
            ProfileError::NoSelector => {
                f.write_str("the action profile has no selector, it cannot have groups")
            }
            ProfileError::ActionTooLong { bytes, limit } => {
                write!(f, "the action's arguments take {bytes} bytes, the limit is {limit}")
            }
        }
    }
}

impl std::error::Error for ProfileError {}
