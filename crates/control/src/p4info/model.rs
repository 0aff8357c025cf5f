//! The messages of `p4/config/v1/p4info.proto`, as far as a program can produce them. Names and meaning are those of the
//! P4Runtime specification, section 6; order is the order of the program.

/// Names a resource: one byte for its kind, three for its name.
pub type Id = u32;

/// The whole description.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct P4Info {
    /// About the program; absent without a `main`.
    pub pkg_info: Option<PkgInfo>,
    /// Match-action tables.
    pub tables: Vec<Table>,
    /// Actions of those tables.
    pub actions: Vec<Action>,
    /// Action profiles and selectors.
    pub action_profiles: Vec<ActionProfile>,
    /// Indexed counters.
    pub counters: Vec<Counter>,
    /// Counters of table entries.
    pub direct_counters: Vec<DirectCounter>,
    /// Indexed meters.
    pub meters: Vec<Meter>,
    /// Meters of table entries.
    pub direct_meters: Vec<DirectMeter>,
    /// Headers of packets from and to the controller.
    pub controller_packet_metadata: Vec<ControllerPacketMetadata>,
    /// Parser value sets.
    pub value_sets: Vec<ValueSet>,
    /// Registers.
    pub registers: Vec<Register>,
    /// Digests.
    pub digests: Vec<Digest>,
    /// The user's types that the above name. Absent when nothing above could have named one.
    pub type_info: Option<TypeInfo>,
}

/// What every resource has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preamble {
    /// Its id.
    pub id: Id,
    /// Its name, fully qualified.
    pub name: String,
    /// The shortest suffix of the name that no other resource has.
    pub alias: String,
    /// Annotations that have no field of their own.
    pub notes: Notes,
}

/// Annotations of a thing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notes {
    /// Unstructured ones, as P4 text.
    pub annotations: Vec<String>,
    /// Structured ones (P4_16 specification, section 20.1).
    pub structured: Vec<StructuredAnnotation>,
    /// `@brief`.
    pub brief: Option<String>,
    /// `@description`.
    pub description: Option<String>,
}

/// `@name[...]`.
#[derive(Clone, Debug, PartialEq)]
pub struct StructuredAnnotation {
    /// Its name.
    pub name: String,
    /// What is between the brackets.
    pub body: StructuredBody,
}

/// The body of a structured annotation.
#[derive(Clone, Debug, PartialEq)]
pub enum StructuredBody {
    /// `@name[]`.
    Empty,
    /// `@name[1, "a"]`.
    List(Vec<Literal>),
    /// `@name[k=1, l="a"]`.
    Pairs(Vec<(String, Literal)>),
}

/// A literal of a structured annotation.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// A string.
    String(String),
    /// A number.
    Int(i64),
    /// A truth value.
    Bool(bool),
}

/// About the program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PkgInfo {
    /// `name`, `version`, `organization`, `contact`, `url` of `@pkginfo`, in order of the message.
    pub fields: Vec<(&'static str, String)>,
    /// The architecture: `v1model`, `psa`, ...
    pub arch: String,
    /// `@platform_property`: name and value.
    pub platform_properties: Vec<(&'static str, i32)>,
    /// Other annotations of `main`.
    pub notes: Notes,
}

/// A match-action table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Id and names.
    pub preamble: Preamble,
    /// The key.
    pub match_fields: Vec<MatchField>,
    /// The actions.
    pub action_refs: Vec<ActionRef>,
    /// The default action, if it is const.
    pub const_default_action: Option<Id>,
    /// The default action at the start.
    pub initial_default: Option<DefaultAction>,
    /// The action profile that gives the actions.
    pub implementation: Option<Id>,
    /// Direct counters and meters.
    pub direct_resources: Vec<Id>,
    /// The most entries.
    pub size: u64,
    /// Entries can time out.
    pub idle_timeout: bool,
    /// Its entries are `const entries`.
    pub is_const: bool,
    /// It has entries in the source.
    pub has_initial_entries: bool,
}

/// A default action with its arguments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DefaultAction {
    /// The action.
    pub id: Id,
    /// For each parameter its id and the value in full width.
    pub arguments: Vec<(u32, Vec<u8>)>,
}

/// A field of a key, of a controller header, of a value set, or a parameter of an action.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MatchField {
    /// Its number within its owner.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its annotations.
    pub notes: Notes,
    /// Its width in bits; absent for what has none of its own.
    pub bitwidth: Option<u32>,
    /// Its width in the data plane, where a translation may make it another: only in controller headers.
    pub data_width: Option<u32>,
    /// How it matches; absent for what is not matched.
    pub match_type: Option<MatchType>,
    /// The new type (`type T name`) or plain enum that it has.
    pub type_name: Option<String>,
}

/// How a field matches.
#[derive(Clone, Debug, PartialEq)]
pub enum MatchType {
    /// One that P4Runtime knows: `EXACT`, `LPM`, ...
    Known(&'static str),
    /// One of the architecture's own.
    Other(String),
}

/// An action in a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActionRef {
    /// The action.
    pub id: Id,
    /// Annotations of the reference.
    pub notes: Notes,
    /// `TABLE_ONLY` or `DEFAULT_ONLY`; absent for both.
    pub scope: Option<&'static str>,
}

/// An action.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Action {
    /// Id and names.
    pub preamble: Preamble,
    /// What the control plane gives.
    pub params: Vec<MatchField>,
}

/// An action profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActionProfile {
    /// Id and names.
    pub preamble: Preamble,
    /// The tables that use it.
    pub table_ids: Vec<Id>,
    /// Whether it has groups.
    pub with_selector: bool,
    /// The most members, or the sum of weights.
    pub size: u64,
    /// `@max_group_size`.
    pub max_group_size: Option<u32>,
    /// `@selector_size_semantics`.
    pub semantics: Option<SizeSemantics>,
}

/// What the size of a selector means.
#[derive(Clone, Debug, PartialEq)]
pub enum SizeSemantics {
    /// The sum of the weights of all members.
    SumOfWeights,
    /// The number of members, each of at most that weight.
    SumOfMembers(Option<u32>),
}

/// An indexed counter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counter {
    /// Id and names.
    pub preamble: Preamble,
    /// `PACKETS`, `BYTES`, `BOTH`.
    pub unit: &'static str,
    /// Cells.
    pub size: u64,
    /// The new type of its index.
    pub index_type: Option<String>,
}

/// A counter of table entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectCounter {
    /// Id and names.
    pub preamble: Preamble,
    /// `PACKETS`, `BYTES`, `BOTH`.
    pub unit: &'static str,
    /// The table.
    pub table: Id,
}

/// An indexed meter; its unit is `PACKETS` or `BYTES`.
pub type Meter = Counter;

/// A meter of table entries.
pub type DirectMeter = DirectCounter;

/// The header of packets from or to the controller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ControllerPacketMetadata {
    /// Id and names; the name is the one in `@controller_header`.
    pub preamble: Preamble,
    /// Its fields.
    pub metadata: Vec<MatchField>,
}

/// A parser value set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueSet {
    /// Id and names.
    pub preamble: Preamble,
    /// The fields of a member.
    pub matches: Vec<MatchField>,
    /// The most members.
    pub size: u64,
}

/// A register.
#[derive(Clone, Debug, PartialEq)]
pub struct Register {
    /// Id and names.
    pub preamble: Preamble,
    /// What a cell holds.
    pub type_spec: TypeSpec,
    /// Cells.
    pub size: u64,
    /// The new type of its index.
    pub index_type: Option<String>,
}

/// A digest.
#[derive(Clone, Debug, PartialEq)]
pub struct Digest {
    /// Id and names.
    pub preamble: Preamble,
    /// What a message holds.
    pub type_spec: TypeSpec,
}

/// A type of data (`P4DataTypeSpec`).
#[derive(Clone, Debug, PartialEq)]
pub enum TypeSpec {
    /// `bit<W>`.
    Bit(u32),
    /// `int<W>`.
    Int(u32),
    /// `varbit<W>`.
    Varbit(u32),
    /// `bool`.
    Bool,
    /// `error`.
    Error,
    /// `tuple`.
    Tuple(Vec<TypeSpec>),
    /// A type of [`TypeInfo`]: the field of the message (`struct`, `header`, ...) and the name.
    Named(&'static str, String),
    /// A stack: the field of the message (`header_stack`, ...), the field of its element, the name and the size.
    Stack(&'static str, &'static str, String, u32),
}

/// The user's types, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypeInfo {
    /// Structures: name, members.
    pub structs: Vec<(String, Vec<(String, TypeSpec)>)>,
    /// Headers: name, members, which are bit strings.
    pub headers: Vec<(String, Vec<(String, TypeSpec)>)>,
    /// Header unions: name, members and the names of their headers.
    pub header_unions: Vec<(String, Vec<(String, String)>)>,
    /// Enumerations: name, members.
    pub enums: Vec<(String, Vec<String>)>,
    /// The members of `error`.
    pub error: Option<Vec<String>>,
    /// Serializable enumerations.
    pub serializable_enums: Vec<(String, SerializableEnum)>,
    /// New types: name and what they are.
    pub new_types: Vec<(String, NewType)>,
}

/// A serializable enumeration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SerializableEnum {
    /// The width of its values in bits.
    pub width: u32,
    /// Names with values in full width.
    pub members: Vec<(String, Vec<u8>)>,
}

/// What a new type is to the controller.
#[derive(Clone, Debug, PartialEq)]
pub struct NewType {
    /// The representation.
    pub representation: Representation,
    /// Its annotations.
    pub notes: Notes,
}

/// How values of a new type look to the controller.
#[derive(Clone, Debug, PartialEq)]
pub enum Representation {
    /// As values of the type below it.
    Original(TypeSpec),
    /// `@p4runtime_translation(uri, W)`: as a number of W bits.
    TranslatedBits(String, u32),
    /// `@p4runtime_translation(uri, string)`: as a string.
    TranslatedString(String),
}
