//! Commands as they are written: split into words, counted, but not yet looked up.

use std::ops::Range;

/// A word of a text, with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    /// The word.
    pub text: &'a str,
    /// Its first byte in the text.
    pub start: usize,
}

impl Word<'_> {
    /// Its place in the text.
    pub fn at(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    /// The place of a part of it.
    pub fn part(&self, part: Range<usize>) -> Range<usize> {
        self.start + part.start..self.start + part.end
    }
}

/// One line that holds a command.
#[derive(Clone, Debug)]
pub struct Line<'l, 'a> {
    /// Its number, from 1.
    pub number: usize,
    /// The place of the whole command.
    pub at: Range<usize>,
    /// What it says.
    pub command: Command<'l, 'a>,
}

/// The profile of a command: its own name, or that of a table that uses it (the older commands say it so).
#[derive(Clone, Copy, Debug)]
pub enum ProfileName<'a> {
    /// `act_prof_...`
    Profile(Word<'a>),
    /// `table_indirect_...`
    Table(Word<'a>),
}

/// Rates with burst sizes: committed and peak, in millionths of a unit per second and in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Committed rate.
    pub committed: u64,
    /// Committed burst.
    pub committed_burst: u64,
    /// Peak rate.
    pub peak: u64,
    /// Peak burst.
    pub peak_burst: u64,
}

/// The parameters of a credit account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The bandwidth allocation gap, in nanoseconds.
    pub bag_ns: u64,
    /// The jitter, in nanoseconds.
    pub jitter_ns: u64,
    /// The longest frame, in bytes.
    pub smax: u32,
    /// What a frame must find.
    pub test: Test,
}

/// What a frame must find in its account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Its length.
    Bytes,
    /// The longest frame's.
    Frames,
    /// Each of the two.
    Both,
}

/// Which queues are meant: one class of one port, a port, or all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuePlace {
    /// The port; none: all.
    pub port: Option<u32>,
    /// The class of service; none: all of the port.
    pub priority: Option<u8>,
}

/// A command. Names and values are words of the text; numbers that need no program to be read are numbers.
#[derive(Clone, Debug)]
#[allow(
    missing_docs,
    reason = "each is named and shaped as the command of bmv2; see COMMANDS for their usage"
)]
pub enum Command<'l, 'a> {
    TableAdd { table: Word<'a>, action: Word<'a>, matches: &'l [Word<'a>], args: &'l [Word<'a>] },
    TableSetDefault { table: Word<'a>, action: Word<'a>, args: &'l [Word<'a>] },
    TableResetDefault { table: Word<'a> },
    TableModify { table: Word<'a>, action: Word<'a>, handle: (u32, Word<'a>), args: &'l [Word<'a>] },
    TableDelete { table: Word<'a>, handle: (u32, Word<'a>) },
    TableSetTimeout { table: Word<'a>, handle: (u32, Word<'a>), milliseconds: u64 },
    TableClear { table: Word<'a> },
    TableDump { table: Word<'a> },
    TableDumpEntry { table: Word<'a>, handle: (u32, Word<'a>) },
    TableDumpEntryFromKey { table: Word<'a>, key: &'l [Word<'a>] },
    TableNumEntries { table: Word<'a> },
    TableInfo { table: Word<'a> },
    TableShowActions { table: Word<'a> },
    ShowTables,
    ShowActions,
    ShowValueSets,
    ShowPorts,
    CreateMember { profile: ProfileName<'a>, action: Word<'a>, args: &'l [Word<'a>] },
    ModifyMember { profile: ProfileName<'a>, action: Word<'a>, member: (u32, Word<'a>), args: &'l [Word<'a>] },
    DeleteMember { profile: ProfileName<'a>, member: (u32, Word<'a>) },
    CreateGroup { profile: ProfileName<'a> },
    DeleteGroup { profile: ProfileName<'a>, group: (u32, Word<'a>) },
    AddToGroup { profile: ProfileName<'a>, member: (u32, Word<'a>), group: (u32, Word<'a>) },
    RemoveFromGroup { profile: ProfileName<'a>, member: (u32, Word<'a>), group: (u32, Word<'a>) },
    DumpProfile { profile: ProfileName<'a> },
    DumpMember { profile: ProfileName<'a>, member: (u32, Word<'a>) },
    DumpGroup { profile: ProfileName<'a>, group: (u32, Word<'a>) },
    IndirectAdd { table: Word<'a>, matches: &'l [Word<'a>], target: &'l [Word<'a>], group: bool },
    IndirectSetDefault { table: Word<'a>, target: (u32, Word<'a>), group: bool },
    GroupCreate { group: (u32, Word<'a>) },
    GroupDestroy { group: (u32, Word<'a>) },
    NodeCreate { rid: u16, ports: &'l [Word<'a>], lags: &'l [Word<'a>] },
    NodeUpdate { node: (u32, Word<'a>), ports: &'l [Word<'a>], lags: &'l [Word<'a>] },
    NodeDestroy { node: (u32, Word<'a>) },
    NodeAssociate { group: (u32, Word<'a>), node: (u32, Word<'a>) },
    NodeDissociate { group: (u32, Word<'a>), node: (u32, Word<'a>) },
    LagMembership { lag: (u32, Word<'a>), ports: &'l [Word<'a>] },
    MulticastDump,
    MirroringAdd { session: (u32, Word<'a>), port: u32, truncate: Option<u32> },
    MirroringAddGroup { session: (u32, Word<'a>), group: u32 },
    MirroringDelete { session: (u32, Word<'a>) },
    MirroringGet { session: (u32, Word<'a>) },
    RegisterRead { register: Word<'a>, index: Option<(u64, Word<'a>)> },
    RegisterWrite { register: Word<'a>, index: (u64, Word<'a>), value: Word<'a> },
    RegisterReset { register: Word<'a> },
    CounterRead { counter: Word<'a>, index: (u64, Word<'a>) },
    CounterWrite { counter: Word<'a>, index: (u64, Word<'a>), packets: u64, bytes: u64 },
    CounterReset { counter: Word<'a> },
    AccountSet { account: Word<'a>, index: (u64, Word<'a>), parameters: Parameters },
    AccountArraySet { account: Word<'a>, parameters: Parameters },
    AccountGet { account: Word<'a>, index: (u64, Word<'a>) },
    MeterSetRates { meter: Word<'a>, index: (u64, Word<'a>), rates: Rates },
    MeterArraySetRates { meter: Word<'a>, rates: Rates },
    MeterGetRates { meter: Word<'a>, index: (u64, Word<'a>) },
    ValueSetAdd { set: Word<'a>, value: &'l [Word<'a>] },
    ValueSetRemove { set: Word<'a>, value: &'l [Word<'a>] },
    ValueSetClear { set: Word<'a> },
    ValueSetGet { set: Word<'a> },
    SetQueueDepth { packets: u32, place: QueuePlace },
    SetQueueRate { packets_per_second: u64, place: QueuePlace },
    ResetState,
    Help { command: Option<Word<'a>> },
}

/// What a command is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Changes tables.
    Tables,
    /// Shows tables and actions.
    TableViews,
    /// Members and groups of action profiles.
    Profiles,
    /// Multicast groups and clone sessions.
    Replication,
    /// Counters, meters, registers and value sets.
    Cells,
    /// The switch itself.
    Switch,
}

impl Command<'_, '_> {
    /// What it is about.
    pub fn topic(&self) -> Topic {
        match self {
            Command::TableAdd { .. }
            | Command::TableSetDefault { .. }
            | Command::TableResetDefault { .. }
            | Command::TableModify { .. }
            | Command::TableDelete { .. }
            | Command::TableSetTimeout { .. }
            | Command::TableClear { .. }
            | Command::IndirectAdd { .. }
            | Command::IndirectSetDefault { .. } => Topic::Tables,
            Command::TableDump { .. }
            | Command::TableDumpEntry { .. }
            | Command::TableDumpEntryFromKey { .. }
            | Command::TableNumEntries { .. }
            | Command::TableInfo { .. }
            | Command::TableShowActions { .. }
            | Command::ShowTables
            | Command::ShowActions => Topic::TableViews,
            Command::CreateMember { .. }
            | Command::ModifyMember { .. }
            | Command::DeleteMember { .. }
            | Command::CreateGroup { .. }
            | Command::DeleteGroup { .. }
            | Command::AddToGroup { .. }
            | Command::RemoveFromGroup { .. }
            | Command::DumpProfile { .. }
            | Command::DumpMember { .. }
            | Command::DumpGroup { .. } => Topic::Profiles,
            Command::GroupCreate { .. }
            | Command::GroupDestroy { .. }
            | Command::NodeCreate { .. }
            | Command::NodeUpdate { .. }
            | Command::NodeDestroy { .. }
            | Command::NodeAssociate { .. }
            | Command::NodeDissociate { .. }
            | Command::LagMembership { .. }
            | Command::MulticastDump
            | Command::MirroringAdd { .. }
            | Command::MirroringAddGroup { .. }
            | Command::MirroringDelete { .. }
            | Command::MirroringGet { .. } => Topic::Replication,
            Command::RegisterRead { .. }
            | Command::RegisterWrite { .. }
            | Command::RegisterReset { .. }
            | Command::CounterRead { .. }
            | Command::CounterWrite { .. }
            | Command::CounterReset { .. }
            | Command::AccountSet { .. }
            | Command::AccountArraySet { .. }
            | Command::AccountGet { .. }
            | Command::MeterSetRates { .. }
            | Command::MeterArraySetRates { .. }
            | Command::MeterGetRates { .. }
            | Command::ValueSetAdd { .. }
            | Command::ValueSetRemove { .. }
            | Command::ValueSetClear { .. }
            | Command::ValueSetGet { .. }
            | Command::ShowValueSets => Topic::Cells,
            Command::ShowPorts
            | Command::SetQueueDepth { .. }
            | Command::SetQueueRate { .. }
            | Command::ResetState
            | Command::Help { .. } => Topic::Switch,
        }
    }
}
