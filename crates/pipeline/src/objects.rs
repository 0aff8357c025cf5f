//! What the control plane can name: actions, tables and stateful objects.

use crate::*;

/// An action: parameters that the control plane gives, and code.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// The control plane's name: `ingress.set_nhop`. Actions that a table binds arguments to are copies of one
    /// name; within one table names are unique.
    pub name: String,
    /// Local slots that the action data fills, in order.
    pub params: Vec<SlotId>,
    /// A body of kind [`BodyKind::Action`].
    pub body: BodyId,
}

/// A match-action table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The control plane's name: `ingress.ipv4_lpm`.
    pub name: String,
    /// The key, evaluated in order.
    pub keys: Vec<TableKey>,
    /// The actions that entries may name.
    pub actions: Vec<TableAction>,
    /// What runs at a miss.
    pub default: ActionCall,
    /// Whether the control plane may not change `default`.
    pub const_default: bool,
    /// The most entries it has to hold.
    pub size: u64,
    /// The entries that it starts with.
    pub entries: Vec<TableEntry>,
    /// Whether the control plane may not change the entries.
    pub const_entries: bool,
    /// Entries name members or groups of this profile instead of actions.
    pub profile: Option<ProfileId>,
    /// What a selector hashes to choose a member of a group.
    pub selector_inputs: Vec<Expr>,
    /// What runs at the hit of an entry whose group is empty; none: `default`.
    pub empty_group: Option<ActionCall>,
    /// A counter in each entry.
    pub direct_counter: Option<DirectCounter>,
    /// A meter in each entry.
    pub direct_meter: Option<DirectMeter>,
    /// Whether entries can time out.
    pub idle_timeout: bool,
}

impl Table {
    /// A table with these keys and actions that starts empty, and has nothing else of what a table may have.
    pub fn new(
        name: String,
        keys: Vec<TableKey>,
        actions: Vec<TableAction>,
        default: ActionCall,
        size: u64,
    ) -> Table {
        Table {
            name,
            keys,
            actions,
            default,
            const_default: false,
            size,
            entries: Vec::new(),
            const_entries: false,
            profile: None,
            selector_inputs: Vec::new(),
            empty_group: None,
            direct_counter: None,
            direct_meter: None,
            idle_timeout: false,
        }
    }
}

/// One field of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct TableKey {
    /// The control plane's name: `hdr.ipv4.dst_addr`.
    pub name: String,
    /// A `Bits`; `Bool` keys are `Bits(1)`.
    pub value: Expr,
    /// How it matches.
    pub kind: MatchKind,
}

/// How a field of a key matches. (A selector field is no key: see [`Table::selector_inputs`].)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// Equal.
    Exact,
    /// Longest prefix.
    Lpm,
    /// Value and mask, by priority.
    Ternary,
    /// Between two values, by priority.
    Range,
    /// Equal or anything, by priority.
    Optional,
}

/// An action in the list of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableAction {
    /// The action.
    pub action: ActionId,
    /// Where it may stand.
    pub scope: ActionScope,
}

/// Where an action may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ActionScope {
    /// In entries and as the default.
    #[default]
    Both,
    /// `@tableonly`.
    TableOnly,
    /// `@defaultonly`.
    DefaultOnly,
}

/// An action with its data.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionCall {
    /// Index in [`Table::actions`].
    pub action: usize,
    /// The values of its parameters.
    pub args: Vec<Bits>,
}

/// An entry in the source of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct TableEntry {
    /// One for each key.
    pub matches: Vec<EntryMatch>,
    /// The order among entries that match at once: the largest wins.
    pub priority: u32,
    /// What it runs.
    pub call: ActionCall,
    /// Whether this one entry is `const`.
    pub is_const: bool,
}

/// How an entry matches one field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EntryMatch {
    /// Equal.
    Exact(Bits),
    /// The first `u32` bits are equal.
    Lpm(Bits, u32),
    /// Value under a mask.
    Ternary(Bits, Bits),
    /// Lowest and highest value.
    Range(Bits, Bits),
    /// A value, or anything.
    Optional(Option<Bits>),
}

/// What counters and meters measure, or that a meter is an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Packets.
    Packets,
    /// Bytes of the whole frame.
    Bytes,
    /// Both (counters only).
    PacketsAndBytes,
    /// Credit accounts in place of meters (meters only): ARINC 664's policing of virtual links.
    Account,
}

/// The direct counter of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectCounter {
    /// The control plane's name.
    pub name: String,
    /// What it counts.
    pub unit: Unit,
    /// Counts at each hit by itself (v1model), not only by [`Inst::CountDirect`] (PSA).
    pub at_hit: bool,
}

/// The direct meter of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectMeter {
    /// The control plane's name.
    pub name: String,
    /// What it measures.
    pub unit: Unit,
    /// Where the colour goes at each hit (v1model executes the meter at the lookup); PSA uses [`Inst::MeterDirect`].
    pub at_hit: Option<SlotId>,
}

/// An action profile (P4Runtime: ActionProfile): members, and groups of them when it is a selector.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The control plane's name.
    pub name: String,
    /// The most members.
    pub size: u64,
    /// The hash of a selector; none: no groups.
    pub selector: Option<Selector>,
}

/// How a selector chooses.
#[derive(Clone, Debug, PartialEq)]
pub struct Selector {
    /// Over the table's selector inputs.
    pub algorithm: HashAlgorithm,
    /// The bits of the hash that count.
    pub width: u32,
    /// The most members of a group; 0: no own limit.
    pub max_group_size: u32,
}

/// A hash of its own: a CRC whose parameters the control plane may set. Until then they are those of
/// [`CrcParameters::of`].
#[derive(Clone, Debug, PartialEq)]
pub struct OwnHash {
    /// The control plane's name: bmv2's calculation.
    pub name: String,
    /// [`HashAlgorithm::Crc16Custom`] or [`HashAlgorithm::Crc32Custom`].
    pub algorithm: HashAlgorithm,
}

/// An indexed counter.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// The control plane's name.
    pub name: String,
    /// Cells.
    pub size: u64,
    /// What it counts.
    pub unit: Unit,
}

/// An indexed meter (RFC 2698), or indexed accounts.
#[derive(Clone, Debug, PartialEq)]
pub struct Meter {
    /// The control plane's name.
    pub name: String,
    /// Cells.
    pub size: u64,
    /// What it measures.
    pub unit: Unit,
}

/// A register array. A register of structures is one array for each scalar of it, named `name.member`.
#[derive(Clone, Debug, PartialEq)]
pub struct Register {
    /// The control plane's name.
    pub name: String,
    /// Bits of a cell.
    pub width: u32,
    /// Cells.
    pub size: u64,
    /// What each cell starts with.
    pub initial: Option<Bits>,
}

/// A parser value set.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueSet {
    /// The control plane's name.
    pub name: String,
    /// The fields of a member: name, width in bits, how it matches.
    pub fields: Vec<(String, u32, MatchKind)>,
    /// The most members.
    pub size: u64,
}

/// Code outside of the program that it calls by name ([`Inst::Call`]). What runs it is the switch's.
#[derive(Clone, Debug, PartialEq)]
pub struct Plugin {
    /// The control plane's name.
    pub name: String,
    /// Whether it may change the payload of packets.
    pub rewrites: bool,
    /// Whether packets go on, with results of 0, when there is no plugin of that name or it is off; else they are dropped.
    pub passes: bool,
}

/// A kind of digest message.
#[derive(Clone, Debug, PartialEq)]
pub struct Digest {
    /// The control plane's name: that of the structure sent.
    pub name: String,
    /// The receiver number of v1model's `digest`, 0 elsewhere.
    pub receiver: u32,
    /// The members, flattened: name and type.
    pub members: Vec<(String, Type)>,
}
