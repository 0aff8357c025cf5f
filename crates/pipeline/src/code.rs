//! Code: bodies, blocks, instructions, terminators, expressions.

use crate::*;
use cranelift_entity::PrimaryMap;

/// A graph of blocks with one entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// For people: `ingress`, `ParserImpl`. Unique among the bodies.
    pub name: String,
    /// What it may contain.
    pub kind: BodyKind,
    /// The blocks.
    pub blocks: PrimaryMap<BlockId, Block>,
    /// Where it starts.
    pub entry: BlockId,
}

/// What a body may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BodyKind {
    /// May extract, look ahead, advance and reject.
    Parser,
    /// May apply tables.
    Control,
    /// May emit; what it emitted, then the packet after the parser's cursor, is the new packet.
    Deparser,
    /// The code of one action: runs inside an application; may exit.
    Action,
}

/// A run of instructions without a branch.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The parser state that starts here, for traces and profiles: `parse_ipv4`, `sub.start`.
    pub state: Option<String>,
    /// The line of its first statement, in the file of the body.
    pub line: Option<u32>,
    /// What it does, in order.
    pub insts: Vec<Inst>,
    /// Where it goes.
    pub term: Terminator,
}

/// One effect.
///
/// In a parser body, [`Inst::Extract`], [`Inst::ExtractVar`], [`Inst::Advance`] and [`Inst::Lookahead`] can fail: then
/// the slot of [`Intrinsic::ParserError`] is set, the instruction has no other effect, and the body ends as by
/// [`Terminator::Reject`].
#[derive(Clone, Debug, PartialEq)]
pub enum Inst {
    /// Evaluates, then writes. Lost when `dst` is a field of an invalid header.
    Assign {
        /// Where to.
        dst: SlotId,
        /// Of the type of `dst`.
        value: Expr,
    },
    /// Makes a header valid. If it was invalid, all its fields become 0 (a varbit: empty); otherwise nothing changes.
    SetValid(HeaderId),
    /// Makes a header invalid.
    SetInvalid(HeaderId),
    /// Parser: reads the header at the cursor, makes it valid and moves the cursor. Fails with `PacketTooShort`.
    /// The header has no varbit.
    Extract(HeaderId),
    /// Parser: as `Extract` for a header with one varbit field, which gets `bits` bits. Fails with `HeaderTooShort`
    /// when `bits` is wider than the field, `ParserInvalidArgument` when it is no multiple of 8, `PacketTooShort`.
    ExtractVar {
        /// A header with one varbit field.
        header: HeaderId,
        /// `Bits(32)`: the length of the varbit.
        bits: Expr,
    },
    /// Parser: moves the cursor by `bits`, a `Bits(32)`. Fails with `PacketTooShort`, `ParserInvalidArgument` when it
    /// is no multiple of 8.
    Advance {
        /// How far.
        bits: Expr,
    },
    /// Parser: reads the next `Bits(w)` of `dst` without moving the cursor. Fails with `PacketTooShort`.
    Lookahead {
        /// The slot that gets the bits. Bits wider than a header are split by the producer with `skip`.
        dst: SlotId,
        /// Bits between the cursor and the first bit that is read.
        skip: u32,
    },
    /// Deparser: appends the header if it is valid.
    Emit(HeaderId),
    /// Adds this packet to a cell of a counter. An index outside counts nothing.
    Count {
        /// The array.
        counter: CounterId,
        /// An unsigned `Bits`.
        index: Expr,
    },
    /// Adds this packet to the direct counter of the entry that the table's latest application for this packet hit.
    CountDirect(TableId),
    /// Meters this packet at a cell of a meter: 0 green, 1 yellow, 2 red. An index outside gives green. A cell of accounts gives green to
    /// a packet that passes, and red to others.
    Meter {
        /// The array.
        meter: MeterId,
        /// An unsigned `Bits`.
        index: Expr,
        /// The colour the packet has already (colour-aware), `Bits`; colour-blind without.
        color: Option<Expr>,
        /// The bytes that it counts for, `Bits`; without, those of the packet as it came to the parser that ran last.
        length: Option<Expr>,
        /// A `Bits`.
        dst: SlotId,
    },
    /// Meters this packet at the direct meter of the entry that the table's latest application hit; green at a miss.
    MeterDirect {
        /// The table.
        table: TableId,
        /// As for `Meter`.
        color: Option<Expr>,
        /// As for `Meter`.
        length: Option<Expr>,
        /// A `Bits`.
        dst: SlotId,
    },
    /// Reads a cell of a register. An index outside reads 0.
    RegisterRead {
        /// Of the register's width.
        dst: SlotId,
        /// The array.
        register: RegisterId,
        /// An unsigned `Bits`.
        index: Expr,
    },
    /// Writes a cell of a register. An index outside writes nothing.
    RegisterWrite {
        /// The array.
        register: RegisterId,
        /// An unsigned `Bits`.
        index: Expr,
        /// Of the register's width.
        value: Expr,
    },
    /// Starts an atomic section: until it ends, no other worker runs one of the same name. The name is the value of `index`; a
    /// section without one excludes all others, and then no section of the program has one. A section that is open ends first.
    AtomicBegin {
        /// An unsigned `Bits`.
        index: Option<Expr>,
    },
    /// Ends the section that is open, if there is one. The end of the packet's batch ends it too.
    AtomicEnd,
    /// Hashes the data. The result is cut or zero-extended to the width of `dst`.
    Hash {
        /// A `Bits`.
        dst: SlotId,
        /// The algorithm.
        algorithm: HashAlgorithm,
        /// Whose parameters it has, of the same algorithm.
        own: Option<HashId>,
        /// What is hashed: the concatenation of the items. A total that is no multiple of 8 bits is padded with
        /// zero bits at the end.
        data: Vec<DataItem>,
    },
    /// A uniformly distributed number from `low` to `high`, both included; `low` when `high` is less.
    Random {
        /// A `Bits`.
        dst: SlotId,
        /// Of the type of `dst`.
        low: Expr,
        /// Of the type of `dst`.
        high: Expr,
    },
    /// Sends a message to the control plane.
    Digest {
        /// Which kind.
        digest: DigestId,
        /// The values of its members, flattened.
        values: Vec<Expr>,
    },
    /// Calls a plugin with the arguments and the payload: the bytes after the parser's cursor, from the next whole byte on.
    /// `dst` gets 1 when the packet is to be dropped and 0 when not; dropping it is for [`Inst::Stop`]. A plugin that
    /// [rewrites](Plugin::rewrites) may change the payload and its length, and with it [`Expr::PacketLength`]. A plugin may also
    /// have the switch send a packet of its own to the port that this one came in on.
    Call {
        /// A `Bits`.
        dst: SlotId,
        /// Which one.
        plugin: PluginId,
        /// `Bits` of at most 64 bits each; at most [`limits::MAX_PLUGIN_WORDS`].
        args: Vec<Expr>,
        /// How many results it gives; as many at most.
        results: u32,
    },
    /// Reads a result of the call before it: between the two there are only others of these. The result is cut or zero-extended
    /// to the width of `dst`.
    CallResult {
        /// A `Bits`.
        dst: SlotId,
        /// Which one, from 0 on.
        index: u32,
    },
    /// Drops the packet with the reason `plugin`, when `cond` is true. The body ends.
    Stop {
        /// A `Bool`.
        cond: Expr,
    },
    /// Writes a line to the log. `{}` in the format takes the next argument.
    Log {
        /// The text.
        format: String,
        /// The arguments.
        args: Vec<Expr>,
    },
    /// Drops the packet with the reason `assert` and tells the log, when `cond` is false. The body ends.
    Assert {
        /// A `Bool`.
        cond: Expr,
        /// The condition in the source, and its place.
        text: String,
    },
}

/// Where a block goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Terminator {
    /// There.
    Goto(BlockId),
    /// By a truth value.
    Branch {
        /// A `Bool`.
        cond: Expr,
        /// When true.
        then: BlockId,
        /// When false.
        els: BlockId,
    },
    /// The first case whose matchers all match; none: `default`.
    Select {
        /// `Bits` or `Bool`.
        keys: Vec<Expr>,
        /// In order of precedence.
        cases: Vec<Case>,
        /// When no case matches.
        default: BlockId,
    },
    /// Looks up a table and runs the action that it gives.
    Apply {
        /// The table.
        table: TableId,
        /// A `Bool` that gets whether an entry matched.
        hit: Option<SlotId>,
        /// A `Bits(16)` that gets the index of the action in [`Table::actions`].
        action: Option<SlotId>,
        /// When the action returns.
        next: BlockId,
        /// When the action exits.
        exit: BlockId,
    },
    /// The body is done (a parser accepts, an action returns).
    End,
    /// Parser only: rejects the packet; see [`Program::on_reject`]. The slot of [`Intrinsic::ParserError`] was set.
    Reject,
    /// Action only: ends the action and takes the `exit` edge of the application.
    Exit,
}

/// One alternative of a select.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// One for each key, in order; a value set takes as many keys as it has fields.
    pub matchers: Vec<Matcher>,
    /// Where to go.
    pub target: BlockId,
}

/// How a key matches.
#[derive(Clone, Debug, PartialEq)]
pub enum Matcher {
    /// Any value.
    Any,
    /// Equal. (For a `Bool` key: `Bits` of width 1.)
    Value(Bits),
    /// Equal under a mask.
    Mask(Bits, Bits),
    /// Between, unsigned, both included.
    Range(Bits, Bits),
    /// Between, two's complement, both included.
    RangeSigned(Bits, Bits),
    /// A member of a parser value set.
    ValueSet(ValueSetId),
}

/// A part of what is hashed.
#[derive(Clone, Debug, PartialEq)]
pub enum DataItem {
    /// The bits of a value; a varbit gives the bits that it has.
    Value(Expr),
    /// The bits of a header as it stands; nothing when it is invalid.
    Header(HeaderId),
    /// The packet after the parser's cursor.
    Payload,
}

/// A pure tree. Evaluation reads slots and never fails.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A constant `Bits`.
    Const(Bits),
    /// A constant `Bool`.
    Bool(bool),
    /// The value of a slot: 0, false or empty while it is a field of an invalid header.
    Read(SlotId),
    /// Whether a header is valid.
    IsValid(HeaderId),
    /// The length of the packet as received, or as put together again for egress, in bytes: `Bits(32)`.
    PacketLength,
    /// The cursor of the parser in bits from the start of the packet: `Bits(32)`.
    Cursor,
    /// One operand.
    Unary(UnaryOp, Box<Expr>),
    /// Two operands.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `cond ? then : els`; both of the same type.
    Mux(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Bits `high` down to `low` of a `Bits`.
    Slice(Box<Expr>, u32, u32),
    /// The first operand's bits above the second's.
    Concat(Box<Expr>, Box<Expr>),
    /// A `Bits` cut, or widened with zeros, to that width.
    ZeroExtend(Box<Expr>, u32),
    /// A `Bits` cut, or widened with its sign, to that width.
    SignExtend(Box<Expr>, u32),
    /// A `Bool` as `Bits(1)`.
    BoolToBits(Box<Expr>),
}

/// Operations of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `Bool`.
    Not,
    /// `Bits`: one's complement.
    BitNot,
    /// `Bits`: two's complement.
    Neg,
}

/// Operations of two operands. Unless said otherwise both are `Bits` of one width, and so is the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Wraps.
    Add,
    /// Wraps.
    Sub,
    /// Wraps.
    Mul,
    /// Unsigned; 0 when the divisor is 0.
    Div,
    /// Unsigned; 0 when the divisor is 0.
    Mod,
    /// Unsigned, saturating.
    AddSat,
    /// Unsigned, saturating.
    SubSat,
    /// Two's complement, saturating.
    AddSatSigned,
    /// Two's complement, saturating.
    SubSatSigned,
    /// Bitwise.
    And,
    /// Bitwise.
    Or,
    /// Bitwise.
    Xor,
    /// The second operand is an unsigned `Bits` of any width; 0 when it is at least the width of the first.
    Shl,
    /// As `Shl`, zeros come in.
    Shr,
    /// As `Shl`, copies of the sign come in.
    ShrSigned,
    /// Any two of one type (varbit: same length and bits); gives `Bool`.
    Eq,
    /// As `Eq`.
    Ne,
    /// Unsigned; gives `Bool`.
    Lt,
    /// Unsigned; gives `Bool`.
    Le,
    /// Two's complement; gives `Bool`.
    LtSigned,
    /// Two's complement; gives `Bool`.
    LeSigned,
    /// Both `Bool`, gives `Bool`. (Operands are pure, so it does not matter whether both are evaluated.)
    BoolAnd,
    /// Both `Bool`, gives `Bool`.
    BoolOr,
}

/// Hash and checksum algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HashAlgorithm {
    /// The data itself as a number; of more than 64 bits the first 64 (as bmv2).
    Identity,
    /// CRC-32 (IEEE 802.3): reflected, polynomial 0x04c11db7, initial and final 0xffffffff.
    Crc32,
    /// As `Crc32`, unless a hash of its own ([`crate::OwnHash`]) has other parameters.
    Crc32Custom,
    /// CRC-16/ARC: reflected, polynomial 0x8005, initial and final 0.
    Crc16,
    /// As `Crc16`, unless a hash of its own has other parameters.
    Crc16Custom,
    /// CRC-16/CCITT-FALSE.
    CrcCcitt,
    /// RFC 1071: one's complement of the one's complement sum of 16-bit words; odd data is padded with a zero byte.
    Csum16,
    /// The exclusive or of the 16-bit words.
    Xor16,
    /// The one's complement sum itself, not complemented: for incremental checksums (PSA's InternetChecksum).
    OnesComplementSum,
}
