//! The types of all services.

use crate::wire::{enumerations, structures};

enumerations! {
    /// How a field of a key matches.
    MatchType {
        Exact = 0 "EXACT", Lpm = 1 "LPM", Ternary = 2 "TERNARY", Valid = 3 "VALID", Range = 4 "RANGE"; else Unknown = -1 "UNKNOWN"
    }

    /// What an entry holds.
    ActionEntryType {
        None = 0 "NONE", ActionData = 1 "ACTION_DATA", Member = 2 "MBR_HANDLE", Group = 3 "GRP_HANDLE",
    }

    /// Why an operation on a table or an action profile was refused.
    TableCode {
        TableFull = 1 "TABLE_FULL",
        InvalidHandle = 2 "INVALID_HANDLE",
        ExpiredHandle = 3 "EXPIRED_HANDLE",
        CountersDisabled = 4 "COUNTERS_DISABLED",
        MetersDisabled = 5 "METERS_DISABLED",
        AgeingDisabled = 6 "AGEING_DISABLED",
        InvalidTableName = 7 "INVALID_TABLE_NAME",
        InvalidActionName = 8 "INVALID_ACTION_NAME",
        WrongTableType = 9 "WRONG_TABLE_TYPE",
        InvalidMember = 10 "INVALID_MBR_HANDLE",
        MemberStillUsed = 11 "MBR_STILL_USED",
        MemberInGroup = 12 "MBR_ALREADY_IN_GRP",
        MemberNotInGroup = 13 "MBR_NOT_IN_GRP",
        InvalidGroup = 14 "INVALID_GRP_HANDLE",
        GroupStillUsed = 15 "GRP_STILL_USED",
        EmptyGroup = 16 "EMPTY_GRP",
        Duplicate = 17 "DUPLICATE_ENTRY",
        BadMatchKey = 18 "BAD_MATCH_KEY",
        InvalidMeterOperation = 19 "INVALID_METER_OPERATION",
        DefaultActionIsConst = 20 "DEFAULT_ACTION_IS_CONST",
        DefaultEntryIsConst = 21 "DEFAULT_ENTRY_IS_CONST",
        NoDefaultEntry = 22 "NO_DEFAULT_ENTRY",
        InvalidProfileName = 23 "INVALID_ACTION_PROFILE_NAME",
        NoSelection = 24 "NO_ACTION_PROFILE_SELECTION",
        ImmutableEntries = 25 "IMMUTABLE_TABLE_ENTRIES",
        BadActionData = 26 "BAD_ACTION_DATA",
        NoTableKey = 27 "NO_TABLE_KEY",
        Error = 100 "ERROR",
    }

    /// Why an operation on a counter was refused.
    CounterCode { InvalidName = 1 "INVALID_COUNTER_NAME", InvalidIndex = 2 "INVALID_INDEX", Error = 3 "ERROR" }

    /// Why programs were not exchanged.
    SwapCode {
        Disabled = 1 "CONFIG_SWAP_DISABLED",
        Ongoing = 2 "ONGOING_SWAP",
        NotOngoing = 3 "NO_ONGOING_SWAP",
    }

    /// What is to go on under another program.
    Keep { Everything = 0 "everything", Compatible = 1 "compatible", Nothing = 2 "nothing" }

    /// Why an operation on a meter was refused.
    MeterCode {
        InvalidName = 1 "INVALID_METER_NAME",
        InvalidIndex = 2 "INVALID_INDEX",
        BadRates = 3 "BAD_RATES_LIST",
        InvalidRate = 4 "INVALID_INFO_RATE_VALUE",
        InvalidBurst = 5 "INVALID_BURST_SIZE_VALUE",
        Error = 6 "ERROR",
    }

    /// Why an operation on a register was refused.
    RegisterCode { InvalidName = 1 "INVALID_REGISTER_NAME", InvalidIndex = 2 "INVALID_INDEX", Error = 3 "ERROR" }

    /// Why an operation on a value set was refused.
    ValueSetCode { InvalidName = 1 "INVALID_PARSE_VSET_NAME", Error = 2 "ERROR" }

    /// Why an operation on a digest was refused.
    LearnCode { InvalidId = 1 "INVALID_LIST_ID", InvalidName = 2 "INVALID_LIST_NAME", Error = 3 "ERROR" }

    /// Why an operation on a port was refused.
    PortCode { Error = 1 "ERROR" }

    /// Why a hash keeps its parameters.
    CrcCode {
        InvalidName = 1 "INVALID_CALCULATION_NAME",
        WrongType = 2 "WRONG_TYPE_CALCULATION",
        InvalidConfig = 3 "INVALID_CONFIG",
    }

    /// Why a Toeplitz hash keeps its key.
    ToeplitzCode {
        InvalidName = 1 "INVALID_CALCULATION_NAME",
        WrongType = 2 "WRONG_TYPE_CALCULATION",
        InvalidKey = 3 "INVALID_KEY",
    }

    /// What has an id.
    ResourceType {
        MatchTable = 0 "MATCH_TABLE",
        ActionProfile = 1 "ACTION_PROFILE",
        Counter = 2 "COUNTER",
        Meter = 3 "METER",
        Register = 4 "REGISTER",
        LearningList = 5 "LEARNING_LIST"; else Unknown = -1 "UNKNOWN"
    }

    /// Why something has no id.
    IdCode { InvalidType = 0 "INVALID_RESOURCE_TYPE", InvalidName = 1 "INVALID_RESOURCE_NAME" }

    /// Why an operation on multicast groups was refused.
    PreCode {
        TableFull = 1 "TABLE_FULL",
        InvalidGroup = 2 "INVALID_MGID",
        InvalidGroupHandle = 3 "INVALID_MGRP_HANDLE",
        InvalidNode = 4 "INVALID_L1_HANDLE",
        Error = 5 "ERROR",
    }

    /// Why an operation on a clone session was refused.
    MirroringCode { NotFound = 1 "SESSION_NOT_FOUND" }
}

structures! {
    /// Exactly that value.
    MatchExact { 1 key: Vec<u8> }
    /// A prefix.
    MatchLpm { 1 key: Vec<u8>, 2 prefix_length: i32 }
    /// A value under a mask.
    MatchTernary { 1 key: Vec<u8>, 2 mask: Vec<u8> }
    /// A validity bit.
    MatchValid { 1 key: bool }
    /// Both ends belong to it.
    MatchRange { 1 start: Vec<u8>, 2 end: Vec<u8> }
    /// One field of a key; the part that its type names is there.
    MatchParam {
        1 kind: MatchType,
        2 exact: Option<MatchExact>,
        3 lpm: Option<MatchLpm>,
        4 ternary: Option<MatchTernary>,
        5 valid: Option<MatchValid>,
        6 range: Option<MatchRange>,
    }
    /// What else belongs to an entry. The smallest priority wins; -1: the table has none.
    EntryOptions { 1 priority: Option<i32> }
    /// What a counter counted.
    CounterValue { 1 bytes: i64, 2 packets: i64 }
    /// A rate with its burst.
    MeterRate { 1 units_per_micros: f64, 2 burst_size: i32 }
    /// A port.
    PortInfo { 1 port_num: i32, 2 iface_name: String, 3 is_up: bool, 4 extra: Vec<(String, String)> }
    /// The parameters of a CRC-16.
    Crc16Config {
        1 polynomial: i16, 2 initial_remainder: i16, 3 final_xor_value: i16,
        4 data_reflected: bool, 5 remainder_reflected: bool,
    }
    /// The parameters of a CRC-32.
    Crc32Config {
        1 polynomial: i32, 2 initial_remainder: i32, 3 final_xor_value: i32,
        4 data_reflected: bool, 5 remainder_reflected: bool,
    }
    /// What an entry does.
    ActionEntry {
        1 action_type: ActionEntryType,
        2 action_name: Option<String>,
        3 action_data: Option<Vec<Vec<u8>>>,
        4 mbr_handle: Option<i32>,
        5 grp_handle: Option<i32>,
    }
    /// How long an entry may be idle, and for how long it has been.
    EntryLife { 1 timeout_ms: i32, 2 time_since_hit_ms: i32 }
    /// An entry.
    Entry {
        1 match_key: Vec<MatchParam>,
        2 options: EntryOptions,
        3 entry_handle: i32,
        4 action_entry: ActionEntry,
        5 life: Option<EntryLife>,
    }
    /// A member of an action profile.
    Member { 1 mbr_handle: i32, 2 action_name: String, 3 action_data: Vec<Vec<u8>> }
    /// A group of an action profile.
    Group { 1 grp_handle: i32, 2 mbr_handles: Vec<i32> }
    /// The switch itself.
    SwitchInfo {
        1 device_id: i64,
        2 thrift_port: i32,
        3 notifications_socket: Option<String>,
        4 elogger_socket: Option<String>,
        5 debugger_socket: Option<String>,
    }
    /// Where clones go.
    MirroringSession { 1 port: Option<i32>, 2 mgid: Option<i32> }

    /// An operation on a table or an action profile was refused.
    InvalidTableOperation { 1 code: TableCode }
    /// An operation on a counter was refused.
    InvalidCounterOperation { 1 code: CounterCode }
    /// Programs were not exchanged; why says this switch alone, not bmv2.
    InvalidSwapOperation { 1 code: SwapCode, 2 reason: Option<String> }
    /// An operation on a meter was refused.
    InvalidMeterOperation { 1 code: MeterCode }
    /// An operation on a register was refused.
    InvalidRegisterOperation { 1 code: RegisterCode }
    /// An operation on a value set was refused.
    InvalidParseVSetOperation { 1 code: ValueSetCode }
    /// An operation on a digest was refused.
    InvalidLearnOperation { 1 code: LearnCode }
    /// An operation on a port was refused; why says this switch alone, not bmv2.
    InvalidDevMgrOperation { 1 code: PortCode, 2 reason: Option<String> }
    /// A hash keeps its parameters.
    InvalidCrcOperation { 1 code: CrcCode }
    /// A Toeplitz hash keeps its key.
    InvalidToeplitzHashOperation { 1 code: ToeplitzCode }
    /// Something has no id.
    InvalidIdLookup { 1 code: IdCode }
    /// An operation on multicast groups was refused.
    InvalidMcOperation { 1 code: PreCode }
    /// An operation on a clone session was refused.
    InvalidMirroringOperation { 1 code: MirroringCode }
}

/// The match fields of an entry.
pub type MatchKey = Vec<MatchParam>;
/// The values of an action's parameters, big-endian.
pub type ActionData = Vec<Vec<u8>>;
