//! What a file says, with units resolved and defaults filled in.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// What the operator is called where a tenant could stand; no tenant has this name.
pub const OPERATOR: &str = "operator";

/// A device with its virtual switches. It keeps every rule that [`DeviceFile::parse`] checks if that made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DeviceFile {
    /// The device itself.
    pub device: Device,
    /// Who may act on switches, next to the operator.
    pub tenants: Vec<Tenant>,
    /// Physical ports.
    pub ports: Vec<Port>,
    /// Virtual switches.
    pub switches: Vec<Switch>,
    /// Links between virtual ports.
    pub links: Vec<Link>,
    /// The program whose result says which switch a frame belongs to.
    pub classify: Option<Program>,
}

/// The device itself: its workers, its servers, what all switches share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Device {
    /// Its name.
    pub name: String,
    /// How many workers run all switches.
    pub workers: u16,
    /// The processor of each worker; empty: the system chooses.
    pub processors: Vec<u16>,
    /// Path of the socket of `millrace ctl`.
    pub socket: String,
    /// Who may use the socket, as permissions of a file.
    pub socket_mode: u16,
    /// The group of the socket.
    pub socket_group: Option<String>,
    /// Where the P4Runtime server listens.
    pub grpc: Option<String>,
    /// The certificate of the P4Runtime server.
    pub grpc_cert: Option<String>,
    /// The key of the certificate.
    pub grpc_key: Option<String>,
    /// The authority that has signed the certificates of clients.
    pub grpc_client_ca: Option<String>,
    /// Whether other machines may reach the P4Runtime server without TLS.
    pub grpc_allow_plaintext: bool,
    /// Whether `millrace ctl` is answered there.
    pub grpc_ctl: bool,
    /// Folder of files whose contents clients of other machines send.
    pub uploads: Option<String>,
    /// Common name of the certificate of the operator's clients.
    pub operator_certificate: Option<String>,
    /// Path of a file that holds the operator's token.
    pub operator_token_file: Option<String>,
    /// Where metrics and captures are served.
    pub http: Option<String>,
    /// Whether other machines may reach them.
    pub http_allow_remote: bool,
    /// Names and addresses by which clients ask for them, beyond those of this machine.
    pub http_hosts: Vec<String>,
    /// Folder of captures, in which each switch has one of its own.
    pub captures: Option<String>,
    /// Path of the audit log.
    pub audit: Option<String>,
    /// Most links inside the device that a packet takes.
    pub hops: u16,
    /// Packet buffers of all switches together.
    pub packets: u32,
}

/// Who may act on the switches that are theirs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// Common name of the certificate of its clients.
    pub certificate: Option<String>,
    /// Path of a file that holds its token.
    pub token_file: Option<String>,
    /// What it may do, each once, in the order of [`Role`].
    pub roles: Vec<Role>,
    /// The folder that the files of its switches are in.
    pub folder: Option<String>,
}

/// What a tenant may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Read entries, counters and state.
    Read,
    /// Write entries.
    Write,
    /// Replace the program.
    Swap,
    /// Capture packets.
    Capture,
    /// Start, stop, take and restore snapshots.
    LifeCycle,
}

/// A physical port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Port {
    /// Its name.
    pub name: String,
    /// What it is connected to, `DRIVER:ARGS`.
    pub device: String,
    /// Its queue pairs.
    pub queues: u16,
    /// The rate of its link, in bit/s.
    pub rate: Option<u64>,
}

/// A virtual switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Switch {
    /// Its name.
    pub name: String,
    /// Its program.
    pub source: Source,
    /// Files of entries, loaded in this order when the switch is made.
    pub entries: Vec<String>,
    /// The tenant that it belongs to; nobody: the operator alone acts on it.
    pub tenant: Option<String>,
    /// Its device id in P4Runtime.
    pub device_id: u64,
    /// Where a Thrift server of this switch alone listens.
    pub thrift: Option<String>,
    /// Whom its clients, who show nothing to be known by, act as: the tenant of the switch, or the [`OPERATOR`]. None where the file has no
    /// clients.
    pub thrift_as: Option<String>,
    /// Whether other machines may reach it.
    pub thrift_allow_remote: bool,
    /// What runs its program.
    pub engine: Engine,
    /// The worker that it is pinned to; none: the device chooses.
    pub worker: Option<u16>,
    /// Whether it takes packets.
    pub state: State,
    /// The virtual port of its controller.
    pub cpu_port: Option<u16>,
    /// Its virtual ports that are connected to physical ports. Those of links are in the links.
    pub ports: Vec<VirtualPort>,
    /// What it cannot exceed.
    pub quota: Quota,
}

/// Where the program of a switch comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Hash)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Path of a program image.
    Image(String),
    /// The source of a program.
    Program(Program),
}

/// The source of a program, with what its compiler is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Hash)]
#[serde(rename_all = "kebab-case")]
pub struct Program {
    /// Path of the source.
    pub path: String,
    /// Its language.
    pub std: Std,
    /// Folders where included files are looked for.
    pub include: Vec<String>,
    /// Macros, `NAME` or `NAME=VALUE`.
    pub define: Vec<String>,
}

/// The language of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Hash)]
pub enum Std {
    /// P4_16.
    #[serde(rename = "p4-16")]
    P4_16,
    /// P4_14.
    #[serde(rename = "p4-14")]
    P4_14,
}

/// What runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// What the device runs programs with that do not say; machine code where there can be some, else the interpreter, if that is not
    /// said either.
    Auto,
    /// Machine code.
    Jit,
    /// The reference interpreter.
    Interp,
    /// A simulation of the program's hardware.
    Rtl,
}

/// Whether a switch takes packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It does.
    Running,
    /// It has its program and entries, and takes none.
    Stopped,
}

/// A virtual port that is connected to physical ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct VirtualPort {
    /// The number that the program sees.
    pub number: u16,
    /// The physical ports that it receives from and sends to.
    pub physical: Vec<String>,
    /// The frames of these that are its own.
    pub claim: Claim,
    /// What becomes of the VLAN tag.
    pub tag: Tag,
    /// Whether it takes the broadcast and multicast frames of the ports and the VLAN that it shares.
    pub broadcast: bool,
    /// The rate that it always gets at each physical port, in bit/s.
    pub guaranteed: u64,
    /// The rate that it never exceeds, in bit/s.
    pub largest: Option<u64>,
}

/// The frames of a physical port that belong to a virtual port: `match` in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Claim {
    /// Which frames.
    pub frames: Frames,
    /// Of two claims to a frame the one with the larger priority has it; with the same, the more specific one.
    pub priority: u16,
}

/// A set of frames.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Frames {
    /// All.
    All,
    /// By the tags and the destination address; at least one of these is given, and `inner` only with `vlan`.
    Header {
        /// The VLAN of the outermost tag.
        vlan: Option<u16>,
        /// The VLAN of the tag after it.
        inner: Option<u16>,
        /// The destination address.
        mac: Option<Mac>,
    },
    /// By bytes of the frame, all of which have to match.
    Bytes(Vec<Bytes>),
    /// By the result of the classify program.
    Id(u32),
}

/// An address of Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mac(pub [u8; 6]);

/// Some bytes of a frame. `value` and `mask` have the same length, and no bit of `value` is outside of `mask`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Bytes {
    /// The place of the first byte in the frame.
    pub at: u8,
    /// What the bytes are, where the mask has ones.
    pub value: Vec<u8>,
    /// The bits that count.
    pub mask: Vec<u8>,
}

/// What becomes of the VLAN tag of a frame on its path into a virtual port. On its path out the tag is put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tag {
    /// The program sees it.
    Keep,
    /// The program does not see it.
    Strip,
    /// The program sees this VLAN in it.
    Rewrite(u16),
}

/// What a switch cannot exceed. Where a limit is none, the switch can have what the device has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Quota {
    /// The share of a worker's time that it always gets, in parts per million.
    pub time: u32,
    /// The share that it never exceeds, in parts per million.
    pub largest_time: u32,
    /// Packets a second.
    pub packets_per_second: Option<u64>,
    /// Bits a second.
    pub bits_per_second: Option<u64>,
    /// Table entries.
    pub entries: Option<u64>,
    /// Memory, in bytes.
    pub memory: Option<u64>,
    /// Packet buffers.
    pub packet_buffers: Option<u64>,
    /// Places in queues.
    pub queue_places: Option<u64>,
    /// Clones a second.
    pub clones_per_second: Option<u64>,
    /// Recirculated packets a second.
    pub recirculations_per_second: Option<u64>,
    /// Multicast copies a second.
    pub copies_per_second: Option<u64>,
    /// Digests a second.
    pub digests_per_second: Option<u64>,
    /// Log lines a second.
    pub log_lines_per_second: Option<u64>,
    /// Requests of control a second.
    pub requests_per_second: Option<u64>,
}

/// A link in memory between two virtual ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Link {
    /// Its ends, the smaller one first.
    pub between: [End; 2],
    /// How long a packet takes, in nanoseconds.
    pub delay: u64,
    /// Its rate in each direction, in bit/s.
    pub rate: Option<u64>,
    /// The share of packets that it loses, in parts per million.
    pub loss: u32,
    /// Most packets that wait in each direction.
    pub waiting: u32,
}

/// An end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct End {
    /// The name of the switch.
    pub switch: String,
    /// The number of the virtual port.
    pub port: u16,
}

impl Role {
    /// All, with their names.
    pub const ALL: [(Role, &'static str); 5] = [
        (Role::Read, "read"),
        (Role::Write, "write"),
        (Role::Swap, "swap"),
        (Role::Capture, "capture"),
        (Role::LifeCycle, "life-cycle"),
    ];
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.switch, self.port)
    }
}

/// A text is no end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoEnd;

impl FromStr for End {
    type Err = NoEnd;

    /// `SWITCH:PORT`.
    fn from_str(text: &str) -> Result<End, NoEnd> {
        let (switch, number) = text.rsplit_once(':').ok_or(NoEnd)?;
        // A plus sign would parse as a number too.
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || !millrace_toml_sections::is_name(switch) || switch.len() > crate::MAX_NAME {
            return Err(NoEnd);
        }
        Ok(End { switch: switch.to_owned(), port: number.parse().map_err(|_| NoEnd)? })
    }
}

impl Serialize for Mac {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for End {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
