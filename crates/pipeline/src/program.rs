//! The program as a whole: its storage, its code and its objects.

use crate::*;
use cranelift_entity::PrimaryMap;

/// One switch program, fully elaborated.
///
/// A packet meets the bodies of [`Program::ingress`] in order, then the traffic manager of the switch, then those of
/// [`Program::egress`] once for each copy. Slots and header validity are the packet's own and pass through the traffic
/// manager with it, except those that [`Program::reset_at_egress`] names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The name of the program (the source file's stem).
    pub name: String,
    /// The architecture it was written for: `v1model`, `psa`, ... Informative only: no consumer branches on it.
    pub architecture: String,
    /// The names of error codes; a code is an index here. Code 0 is `NoError`.
    pub errors: Vec<String>,
    /// All scalars.
    pub slots: PrimaryMap<SlotId, Slot>,
    /// All header instances.
    pub headers: PrimaryMap<HeaderId, Header>,
    /// All header stacks; their elements are headers too.
    pub stacks: PrimaryMap<StackId, Stack>,
    /// All bodies of code.
    pub bodies: PrimaryMap<BodyId, Body>,
    /// All actions.
    pub actions: PrimaryMap<ActionId, Action>,
    /// All tables.
    pub tables: PrimaryMap<TableId, Table>,
    /// All action profiles and selectors.
    pub profiles: PrimaryMap<ProfileId, Profile>,
    /// All indexed counters.
    pub counters: PrimaryMap<CounterId, Counter>,
    /// All indexed meters.
    pub meters: PrimaryMap<MeterId, Meter>,
    /// All registers.
    pub registers: PrimaryMap<RegisterId, Register>,
    /// All parser value sets.
    pub value_sets: PrimaryMap<ValueSetId, ValueSet>,
    /// All hashes whose parameters the control plane may set.
    pub hashes: PrimaryMap<HashId, OwnHash>,
    /// All kinds of digest.
    pub digests: PrimaryMap<DigestId, Digest>,
    /// All plugins that are called.
    pub plugins: PrimaryMap<PluginId, Plugin>,
    /// The metadata that clone, resubmit and recirculate can keep, by field list number.
    pub field_lists: Vec<FieldList>,
    /// Which slots carry the contract with the switch. A role that is absent is neither written nor read.
    pub intrinsics: Intrinsics,
    /// The bodies before the traffic manager, in order.
    pub ingress: Vec<BodyId>,
    /// The bodies after the traffic manager, in order.
    pub egress: Vec<BodyId>,
    /// What a parser's rejection means here.
    pub on_reject: OnReject,
    /// Whether a packet is put together again (the bytes emitted so far, then the rest of the packet) between ingress
    /// and egress, so that egress starts with a parser on new bytes and with every header invalid (PSA, PNA). When
    /// false, headers pass through the traffic manager as they are (v1model).
    pub deparse_at_ingress: bool,
    /// Metadata slots that are set to 0 or false before egress.
    pub reset_at_egress: Vec<SlotId>,
    /// What packets pass at ports before and after the program, unless who runs it has something else. Informative for engines.
    pub chains: Vec<ChainText>,
    /// The places that ask for packets to be dropped; what packets carry in the slot of [`Intrinsic::DropSite`] is an
    /// index here. The first one stands for packets whose drop nothing asked for: where the architecture drops what is
    /// not sent, it says so, and else it is empty. Informative only.
    pub drop_sites: Vec<DropSite>,
    /// Where bodies, parser states and tables stand in the source. Informative only.
    pub source_lines: Vec<SourceLine>,
}

impl Program {
    /// The most bits that a header has, with the longest numbers of varying length.
    pub fn most_bits(&self, header: HeaderId) -> u64 {
        let header = &self.headers[header];
        let varbits = header.fields.iter().map(|field| match self.slots[*field].ty {
            Type::Varbit(width) => u64::from(width),
            Type::Bool | Type::Bits(_) => 0,
        });
        u64::from(header.fixed_bits) + varbits.sum::<u64>()
    }
}

/// The type of a scalar or of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A truth value.
    Bool,
    /// A bit string of that many bits, 1 to [`limits::MAX_WIDTH`]. Signed numbers are bit strings too: the operation
    /// says how to read them.
    Bits(u32),
    /// A bit string of varying length, at most that many bits, a multiple of 8 at run time.
    Varbit(u32),
}

/// One scalar of storage. It starts as 0, false or the empty string.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// The name in the source, for people: `hdr.ipv4.ttl`. Unique in the program.
    pub name: String,
    /// What it holds.
    pub ty: Type,
    /// Where it lives and how long.
    pub home: Home,
}

/// Where a slot lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Home {
    /// A field of that header, at `offset` bits from its start (for fields after a varbit: from the start with the
    /// varbit empty). Reads 0 and loses writes while the header is invalid.
    Header {
        /// The header.
        header: HeaderId,
        /// Bits before this field.
        offset: u32,
    },
    /// The packet's metadata: lives as long as the packet, from ingress to egress, unless
    /// [`Program::reset_at_egress`] names it.
    Metadata,
    /// A temporary of one body or action: starts as 0 at each run of it; no other body names it.
    Local,
}

/// A header instance: a validity bit and the fields that stand after one another in the packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The name in the source: `hdr.ipv4`, `hdr.mpls[2]`. Unique in the program.
    pub name: String,
    /// The name of its type in the source.
    pub type_name: String,
    /// The fields in order; each has [`Home::Header`] with this header.
    pub fields: Vec<SlotId>,
    /// The bits of all fields but the varbit.
    pub fixed_bits: u32,
}

/// A header stack. Indexing is already expanded: this tells who belongs together, and which slot counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// The name in the source: `hdr.mpls`.
    pub name: String,
    /// The elements, lowest index first.
    pub elements: Vec<HeaderId>,
    /// The slot of `nextIndex`, a `Bits(32)`.
    pub next: SlotId,
}

/// Metadata kept by clone, resubmit and recirculate.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldList {
    /// The number that the program gives with the request.
    pub id: u32,
    /// The slots that keep their values; all others are cleared.
    pub slots: Vec<SlotId>,
}

/// What becomes of a packet that its parser rejects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnReject {
    /// It goes on with [`Intrinsic::ParserError`] set (v1model).
    #[default]
    Continue,
    /// It is dropped with the reason `parser_error` (ebpf, xdp, SimpleSumeSwitch).
    Drop,
    /// It skips the bodies that follow, up to the traffic manager or the port, and goes on as it came (ubpf).
    PassOn,
}
