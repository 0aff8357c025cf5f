//! A node as its file describes it, checked.

use crate::limits::MAX_OCTETS;
use millrace_rtl::device::Link;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeFile {
    /// Its name.
    pub name: String,
    /// Its devices.
    pub devices: Vec<DeviceSpec>,
    /// Its services.
    pub services: Vec<String>,
    /// Its functions.
    pub functions: Vec<Function>,
    /// Its blocks.
    pub blocks: Vec<BlockSpec>,
    /// What is connected.
    pub connections: Vec<Connection>,
    /// Memories that blocks share.
    pub memories: Vec<MemorySpec>,
}

/// A memory that programs of different devices share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySpec {
    /// Its name.
    pub name: String,
    /// The number of the device that owns it.
    pub device: usize,
    /// Where it is served; none: the process that runs the node has it.
    pub at: Option<SocketAddr>,
    /// Its words of 32 bits.
    pub words: u32,
    /// How long a block has it at most without giving it back, in milliseconds.
    pub lease_ms: u32,
}

/// Registers of a program that are kept in a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedSpec {
    /// The number of the memory.
    pub memory: usize,
    /// The registers, one after the other.
    pub registers: Vec<String>,
}

/// A forwarding device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSpec {
    /// Its name.
    pub name: String,
    /// Where its hardware is served; none: the process that runs the node simulates it.
    pub at: Option<SocketAddr>,
}

/// Blocks that do one thing together, on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The number of its service.
    pub service: usize,
    /// The number of its device.
    pub device: usize,
    /// Where its blocks are that do not say it themselves.
    pub placement: Placement,
}

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On the processor.
    Software,
    /// In the hardware of its device.
    Hardware,
}

impl Placement {
    /// As the file has it.
    pub fn word(self) -> &'static str {
        match self {
            Placement::Software => "software",
            Placement::Hardware => "hardware",
        }
    }
}

/// What blocks meet over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// Between blocks of a function.
    Ffi,
    /// Between functions of a device.
    Fsi,
    /// Between devices.
    Fdi,
}

impl Interface {
    /// As the file has it.
    pub fn word(self) -> &'static str {
        match self {
            Interface::Ffi => "FFI",
            Interface::Fsi => "FSI",
            Interface::Fdi => "FDI",
        }
    }
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct End {
    /// The number of the block.
    pub block: usize,
    /// The number among its inputs or outputs.
    pub port: usize,
}

/// An output and the input that has what comes from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The output.
    pub from: End,
    /// The input.
    pub to: End,
    /// What kind of interface it is.
    pub interface: Interface,
}

/// A block.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockSpec {
    /// Its name.
    pub name: String,
    /// The number of its function.
    pub function: usize,
    /// Where it is.
    pub placement: Placement,
    /// What it does.
    pub kind: Kind,
}

impl BlockSpec {
    /// Where what leaves it comes from: answers of a manager come from the processor, also if its buffer is in hardware.
    pub fn gives_from(&self) -> Placement {
        match self.kind {
            Kind::Manager(_) => Placement::Software,
            _ => self.placement,
        }
    }
}

/// What a block does.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Runs a P4 program.
    P4(ProgramSpec),
    /// Keeps frames in order.
    Queue(QueueSpec),
    /// Chooses among queues.
    Scheduler(SchedulerSpec),
    /// Selects octets of frames.
    OctetSelector(Vec<u16>),
    /// Finds an entry for the selected octets.
    Tcam(TcamSpec),
    /// Hands frames to outputs.
    Demultiplexer(u32),
    /// A port to the outside.
    Mac(MacSpec),
    /// Answers frames.
    Manager(ManagerSpec),
}

/// A program with what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramSpec {
    /// The source.
    pub program: PathBuf,
    /// Commands for its tables.
    pub entries: Option<PathBuf>,
    /// Inputs and outputs.
    pub ports: u32,
    /// The port of the program that is the output `manager`.
    pub cpu_port: Option<u32>,
    /// Tables that are placed in software, while the block is in hardware.
    pub software: Vec<String>,
    /// Registers that it shares with programs of other devices.
    pub shared: Option<SharedSpec>,
    /// Bytes of its longest frame, in hardware.
    pub longest: u32,
}

/// How much a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSpec {
    /// Frames.
    pub frames: u32,
    /// Bytes.
    pub bytes: u64,
}

/// The order in which a scheduler serves queues: the values of its register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// The queue of the highest number that has a frame.
    Priority = 0,
    /// A frame each, in turn.
    RoundRobin = 1,
    /// A quantum of bytes each, in turn.
    Deficit = 2,
}

impl Discipline {
    /// All of them, with the words of the file.
    pub const ALL: [(&'static str, Discipline); 3] = [
        ("priority", Discipline::Priority),
        ("round-robin", Discipline::RoundRobin),
        ("deficit", Discipline::Deficit),
    ];
}

/// A scheduler at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerSpec {
    /// The order.
    pub discipline: Discipline,
    /// The quantum of each input, in bytes.
    pub quanta: Vec<u32>,
}

/// A TCAM at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcamSpec {
    /// How many entries it has room for.
    pub size: u32,
    /// What is in the first ones.
    pub entries: Vec<Entry>,
    /// What becomes of a frame that no entry matches.
    pub miss: Outcome,
}

/// An entry of a TCAM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// What the octets have to be.
    pub value: [u8; MAX_OCTETS],
    /// In which bits.
    pub mask: [u8; MAX_OCTETS],
    /// Of several that match, the one with the largest priority is it, and of several with the same the first one.
    pub priority: u32,
    /// What becomes of the frame.
    pub outcome: Outcome,
}

/// What a TCAM says of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Outputs of the demultiplexer.
    pub targets: u32,
    /// The class.
    pub class: u8,
}

/// The link of a MAC in hardware.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MacLink {
    /// 10 Gbit/s, eight characters in a cycle at 156.25 MHz.
    #[default]
    Xgmii,
    /// 1 Gbit/s, an octet in a cycle at 125 MHz.
    Gmii,
}

impl MacLink {
    /// Both of them.
    pub const ALL: [MacLink; 2] = [MacLink::Xgmii, MacLink::Gmii];

    /// As the file has it.
    pub fn word(self) -> &'static str {
        match self {
            MacLink::Xgmii => "xgmii",
            MacLink::Gmii => "gmii",
        }
    }

    /// The length of a cycle of its clock, in picoseconds.
    pub fn period_ps(self) -> u32 {
        match self {
            MacLink::Xgmii => 6400,
            MacLink::Gmii => 8000,
        }
    }

    /// As devices have it.
    pub(crate) fn of_devices(self) -> Link {
        match self {
            MacLink::Xgmii => Link::Xgmii,
            MacLink::Gmii => Link::Gmii,
        }
    }
}

/// A port to the outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MacSpec {
    /// What it is connected to, as `--port` of `millrace run` has it; none: whoever has the node in its program.
    pub attach: Option<String>,
    /// The number that frames say they came in by.
    pub port: u16,
    /// Its address; frames to others that are no broadcast or multicast are left out. None: all come in.
    pub address: Option<[u8; 6]>,
    /// Whether it is up at first.
    pub up: bool,
    /// What it is connected to in hardware.
    pub link: MacLink,
}

impl Default for MacSpec {
    /// A port of the program that has the node, which is up and takes all frames.
    fn default() -> MacSpec {
        MacSpec { attach: None, port: 0, address: None, up: true, link: MacLink::default() }
    }
}

/// Who answers frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagerSpec {
    /// Frames that wait for it at most.
    pub buffer: u32,
    /// A program that answers; none: a client of the host link.
    pub program: Option<ProgramSpec>,
}

impl Kind {
    /// The word of the file.
    pub fn word(&self) -> &'static str {
        match self {
            Kind::P4(_) => "p4",
            Kind::Queue(_) => "queue",
            Kind::Scheduler(_) => "scheduler",
            Kind::OctetSelector(_) => "octet_selector",
            Kind::Tcam(_) => "tcam",
            Kind::Demultiplexer(_) => "demultiplexer",
            Kind::Mac(_) => "mac",
            Kind::Manager(_) => "manager",
        }
    }

    /// The names of its inputs.
    pub fn inputs(&self) -> Vec<String> {
        match self {
            Kind::P4(program) => numbered("in", program.ports),
            Kind::Scheduler(scheduler) => numbered("in", scheduler.quanta.len() as u32),
            Kind::Mac(_) => vec!["tx".into()],
            Kind::Queue(_)
            | Kind::OctetSelector(_)
            | Kind::Tcam(_)
            | Kind::Demultiplexer(_)
            | Kind::Manager(_) => {
                vec!["in".into()]
            }
        }
    }

    /// The names of its outputs.
    pub fn outputs(&self) -> Vec<String> {
        let with_manager = |mut names: Vec<String>| {
            names.push("manager".into());
            names
        };
        match self {
            Kind::P4(program) => with_manager(numbered("out", program.ports)),
            Kind::Demultiplexer(outputs) => with_manager(numbered("out", *outputs)),
            Kind::Mac(_) => vec!["rx".into()],
            Kind::Queue(_)
            | Kind::Scheduler(_)
            | Kind::OctetSelector(_)
            | Kind::Tcam(_)
            | Kind::Manager(_) => {
                vec!["out".into()]
            }
        }
    }

    /// Whether its output is asked for frames, and gives none by itself.
    pub fn is_asked(&self) -> bool {
        matches!(self, Kind::Queue(_) | Kind::Scheduler(_))
    }
}

fn numbered(name: &str, count: u32) -> Vec<String> {
    (0..count).map(|number| format!("{name}{number}")).collect()
}

impl NodeFile {
    /// The number of the block of a name.
    pub fn block(&self, name: &str) -> Option<usize> {
        self.blocks.iter().position(|block| block.name == name)
    }

    /// The blocks that share a memory, each with the registers that are in it.
    pub fn sharers(&self, memory: usize) -> impl Iterator<Item = (&BlockSpec, &SharedSpec)> {
        self.blocks.iter().filter_map(move |block| match &block.kind {
            Kind::P4(program) => {
                program.shared.as_ref().filter(|shared| shared.memory == memory).map(|shared| (block, shared))
            }
            _ => None,
        })
    }

    /// The input that has what comes from an output.
    pub fn follows(&self, from: End) -> Option<End> {
        self.connections.iter().find(|connection| connection.from == from).map(|connection| connection.to)
    }
}
