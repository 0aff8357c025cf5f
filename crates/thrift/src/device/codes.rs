//! Why the switch refused something, in the codes of bmv2.

use millrace_dataplane::ReplicationError;
use millrace_state::{MeterError, ProfileError, TableError, WriteError};
use millrace_thrift_api::{MeterCode, PreCode, TableCode};

/// A refusal by tables or profiles.
pub(super) fn table_code(error: &WriteError) -> TableCode {
    match error {
        WriteError::Table(error) | WriteError::Key { error, .. } => match error {
            TableError::Full { .. } | TableError::NoMemory(_) => TableCode::TableFull,
            TableError::NoKey => TableCode::NoTableKey,
            TableError::Duplicate => TableCode::Duplicate,
            TableError::NotFound => TableCode::InvalidHandle,
            TableError::ConstEntry | TableError::ConstTable => TableCode::ImmutableEntries,
            TableError::ConstDefault => TableCode::DefaultEntryIsConst,
            TableError::NeedsProfile | TableError::NoProfile => TableCode::WrongTableType,
            TableError::ActionTooLong { .. } => TableCode::BadActionData,
            TableError::NoIdleTimeout => TableCode::AgeingDisabled,
            TableError::NoCounter => TableCode::CountersDisabled,
            TableError::NoMeter => TableCode::MetersDisabled,
            TableError::Meter(_) => TableCode::InvalidMeterOperation,
            TableError::WrongFieldCount { .. }
            | TableError::WrongKind { .. }
            | TableError::WrongWidth { .. }
            | TableError::BadPrefix { .. }
            | TableError::EmptyRange { .. }
            | TableError::PriorityNotUsed { .. } => TableCode::BadMatchKey,
        },
        WriteError::Profile(error) => match error {
            ProfileError::MembersFull { .. }
            | ProfileError::GroupsFull { .. }
            | ProfileError::PlacesFull { .. }
            | ProfileError::GroupTooLarge { .. } => TableCode::TableFull,
            ProfileError::NoMember(_) => TableCode::InvalidMember,
            ProfileError::NoGroup(_) => TableCode::InvalidGroup,
            ProfileError::MemberInUse(_) => TableCode::MemberStillUsed,
            ProfileError::GroupInUse(_) => TableCode::GroupStillUsed,
            ProfileError::RepeatedMember { .. } => TableCode::MemberInGroup,
            ProfileError::NoSelector => TableCode::NoSelection,
            ProfileError::ActionTooLong { .. } => TableCode::BadActionData,
            ProfileError::DuplicateMember(_)
            | ProfileError::DuplicateGroup(_)
            | ProfileError::ZeroWeight { .. } => TableCode::Error,
        },
        WriteError::Quota(_) => TableCode::TableFull,
        WriteError::NoProfile => TableCode::WrongTableType,
        WriteError::NoAction { .. } | WriteError::ActionScope { .. } => TableCode::InvalidActionName,
        WriteError::ArgCount { .. } | WriteError::ArgWidth { .. } => TableCode::BadActionData,
        WriteError::MatchCount { .. } | WriteError::KeyWidth { .. } => TableCode::BadMatchKey,
        WriteError::Meter(_) => TableCode::InvalidMeterOperation,
        WriteError::Unknown { .. }
        | WriteError::Ambiguous { .. }
        | WriteError::Index { .. }
        | WriteError::CellWidth { .. } => TableCode::Error,
    }
}

/// A refusal by a meter.
pub(super) fn meter_code(error: &WriteError) -> MeterCode {
    match error {
        WriteError::Index { .. } | WriteError::Meter(MeterError::OutOfRange { .. }) => {
            MeterCode::InvalidIndex
        }
        WriteError::Meter(MeterError::PeakBelowCommitted)
        | WriteError::Table(TableError::Meter(MeterError::PeakBelowCommitted)) => MeterCode::InvalidRate,
        WriteError::Unknown { .. } | WriteError::Ambiguous { .. } => MeterCode::InvalidName,
        _ => MeterCode::Error,
    }
}

/// A refusal by multicast groups.
pub(super) fn pre_code(error: &ReplicationError) -> PreCode {
    match error {
        ReplicationError::TooMany { .. } | ReplicationError::Quota(_) => PreCode::TableFull,
        ReplicationError::GroupZero | ReplicationError::GroupExists(_) => PreCode::InvalidGroup,
        ReplicationError::NoGroup(_) => PreCode::InvalidGroupHandle,
        ReplicationError::NoNode(_) => PreCode::InvalidNode,
        _ => PreCode::Error,
    }
}
