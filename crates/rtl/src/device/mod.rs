//! The whole device: ports, the stages of a program, and the traffic manager between them.
//!
//! ```text
//!  rx0 -> receive -+ header                                          +-> transmit -> tx0
//!  rx1 -> receive -+-> in turn -> ingress -> copies -> egress -> ... +-> transmit -> tx1
//!            |       one a cycle                                     |      ^
//!            +------------------------- payload ---------------------|------+
//! ```
//!
//! Headers of all ports share one pipeline; the bytes of a frame wait in a slot of the memory of the port where it came in, from
//! where each sending side reads them by itself. So a copy costs an entry of a queue and no memory. A program whose decisions need
//! some first bytes alone is *cut through*: its frames leave while they come. Else a header waits for the end of its frame.
//!
//! Frames that start again leave by a side of their own, whose stream comes in by one (`again`).
//!
//! Egress is passed before a frame waits in its queue, as the software's traffic manager does for programs whose egress cannot tell
//! the difference ([`millrace_midend::order::Order`]); other programs are refused.

mod again;
mod bench;
mod build;
mod check;
mod clones;
mod clones_of_egress;
mod control;
mod copies;
mod counts;
mod cycles;
mod facts;
mod fate;
mod headers;
mod leave;
mod lists;
mod macs;
mod receive;
mod report;
mod shape;
mod stages;
mod transmit;
mod waiting;
pub mod wire;

pub use bench::{Bench, Decided, Left};
pub use build::{Device, OWNER};
pub use counts::Counted;
pub use report::DeviceReport;

pub use crate::groups::{GROUPS, NODES, SESSIONS};
use crate::hardware::Options;
use crate::map::Bus;
use crate::report::{SHORTEST_ON_LINK, line_rate};
use millrace_netlist::blocks::{gmii_receive, gmii_transmit, xgmii_receive, xgmii_transmit};
use millrace_netlist::{Design, ModuleId};
use millrace_printable::counted;

/// What a port of a device is connected to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// AXI4-Streams.
    #[default]
    Stream,
    /// MACs of 10 Gbit/s on XGMII, with streams of 64 bits at 156.25 MHz.
    Xgmii,
    /// MACs of 1 Gbit/s on GMII, full duplex, at 125 MHz.
    Gmii,
}

impl Link {
    /// Bytes that a frame takes of the link besides its own.
    pub fn overhead(self) -> u32 {
        match self {
            Link::Stream => 0,
            // Preamble, check sequence and gap.
            Link::Xgmii | Link::Gmii => 24,
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Link::Stream => "streams",
            Link::Xgmii => "XGMII",
            Link::Gmii => "GMII",
        }
    }

    /// Whether ports have MACs. These wait for nobody: a frame comes whether there is room or not.
    pub fn has_macs(self) -> bool {
        self != Link::Stream
    }

    /// Whether a beat of a port lasts for eight cycles and more. Then the sides of a port have registers more than where a beat comes in each
    /// cycle: the longest paths end in them, and a frame is later by a few cycles of the many that a beat takes.
    pub(super) fn has_slack(self) -> bool {
        self == Link::Gmii
    }

    /// The signals of the link to a MAC, each with its width.
    pub fn receives(self) -> &'static [(&'static str, u32)] {
        match self {
            Link::Stream => &[],
            Link::Xgmii => &[("data", 64), ("control", 8)],
            Link::Gmii => &[("data", 8), ("dv", 1), ("er", 1)],
        }
    }

    /// Those from a MAC.
    pub fn transmits(self) -> &'static [&'static str] {
        match self {
            Link::Stream => &[],
            Link::Xgmii => &["data", "control"],
            Link::Gmii => &["data", "en", "er"],
        }
    }

    /// The input of the sending half of a MAC that says that a frame begins in the next cycle, if it has one.
    pub fn told_of_frames(self) -> Option<&'static str> {
        (self == Link::Xgmii).then_some("s_soon")
    }

    /// The receiving and the sending half of a MAC, with streams of so many bits, and frames of so many bytes at most with their check
    /// sequence.
    pub fn mac(self, design: &mut Design, width: u32, longest: u32) -> Option<(ModuleId, ModuleId)> {
        match self {
            Link::Stream => None,
            Link::Xgmii => Some((xgmii_receive(design, longest), xgmii_transmit(design))),
            Link::Gmii => Some((gmii_receive(design, width, longest), gmii_transmit(design, width))),
        }
    }

    /// The length of a cycle, where the link says it.
    pub fn period_ps(self) -> Option<u32> {
        match self {
            Link::Stream => None,
            Link::Xgmii => Some(6400),
            Link::Gmii => Some(8000),
        }
    }

    /// Cycles in which so many bytes pass, in beats of so many bits.
    pub fn cycles(self, bytes: u32, width: u32) -> u32 {
        match self {
            Link::Stream | Link::Xgmii => bytes.div_ceil(width / 8),
            Link::Gmii => bytes,
        }
    }
}

/// How a device is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceOptions {
    /// Ports: 1 to [`MAX_PORTS`].
    pub ports: u32,
    /// The numbers by which the program, control and software know the ports, as 510 for that of the processor. Empty: from 0 on.
    pub numbers: Vec<u32>,
    /// Bits of a beat: 64, 128, 256 or 512.
    pub width: u32,
    /// What ports are connected to.
    pub link: Link,
    /// Frames that each port holds of those that came in: a power of two from 2 to [`MAX_SLOTS`].
    pub slots: u32,
    /// Bytes of the longest frame: a power of two from 512 to 16384.
    pub frame: u32,
    /// Queues of each port: 1 to [`MAX_QUEUES`].
    pub queues: u32,
    /// Frames of each queue: a power of two from 2 to [`MAX_DEPTH`].
    pub depth: u32,
    /// The bus of its registers.
    pub bus: Bus,
    /// Bits that come with each frame in `tuser` of its last beat, above the mark of a bad one, and leave with each of its copies; above
    /// them there is the class that the program gave it ([`CLASS_BITS`]), and the output `busy` says whether a frame is in the device. Ports
    /// have streams then, and frames wait for their end: no bad one leaves. None: frames are all that passes.
    pub user: Option<u32>,
}

/// Bits of a class at a port.
pub const CLASS_BITS: u32 = 8;
/// The most bits that come with a frame.
pub const MAX_USER: u32 = 256;
/// The most ports of a device.
pub const MAX_PORTS: u32 = 16;
/// The most frames that a port holds.
pub const MAX_SLOTS: u32 = 64;
/// The most queues of a port.
pub const MAX_QUEUES: u32 = 8;
/// The most frames of a queue.
pub const MAX_DEPTH: u32 = 1024;
/// How often a frame may begin ingress, as software has it if nothing else is said.
pub const MAX_PASSES: u32 = 128;

impl Default for DeviceOptions {
    /// Four ports of 64 bits.
    fn default() -> DeviceOptions {
        DeviceOptions {
            ports: 4,
            numbers: Vec::new(),
            width: 64,
            link: Link::Stream,
            slots: 16,
            frame: 2048,
            queues: 4,
            depth: 32,
            bus: Bus::Axi4Lite,
            user: None,
        }
    }
}

impl DeviceOptions {
    /// How the stages of such a device are made if nothing else is said: for the clock of its link.
    pub fn stages(&self) -> Options {
        let usual = Options::default();
        Options { period_ps: self.link.period_ps().unwrap_or(usual.period_ps), ..usual }
    }

    /// Frames of 64 bytes a second that every stage has to take if nothing else is said, with cycles of so many picoseconds: those of all
    /// links of 1 Gbit/s, else one of 64 bits in each cycle.
    pub fn line_rate(&self, period_ps: u32) -> u64 {
        match self.link {
            Link::Stream | Link::Xgmii => line_rate(period_ps),
            Link::Gmii => u64::from(self.ports) * 1_000_000_000 / SHORTEST_ON_LINK,
        }
    }

    /// The number by which a port is known, counted from 0.
    pub fn number(&self, port: u32) -> u32 {
        self.numbers.get(port as usize).copied().unwrap_or(port)
    }

    /// The port of a number, if there is one.
    pub fn port(&self, number: u32) -> Option<u32> {
        (0..self.ports).find(|port| self.number(*port) == number)
    }

    /// What is wrong with them, if anything.
    pub fn check(&self) -> Result<(), String> {
        let power = |name: &str, value: u32, least: u32, most: u32| match value {
            value if value.is_power_of_two() && (least..=most).contains(&value) => Ok(()),
            value => Err(format!("{name} of {value}: a power of two from {least} to {most} is expected")),
        };
        let within = |name: &str, value: u32, most: u32| match (1..=most).contains(&value) {
            true => Ok(()),
            false => Err(format!("{name} of {value}: 1 to {most} is expected")),
        };
        within("a number of ports", self.ports, MAX_PORTS)?;
        let mut distinct = self.numbers.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let numbers = self.numbers.len();
        if distinct.len() != numbers {
            let text: Vec<String> = self.numbers.iter().map(u32::to_string).collect();
            return Err(format!("ports with the numbers {}: each has another one", text.join(":")));
        }
        if numbers > 0 && numbers != self.ports as usize {
            let (numbers, ports) = (counted(numbers, "number"), counted(self.ports, "port"));
            return Err(format!("{numbers} for {ports}: each port has one"));
        }
        within("a number of queues", self.queues, MAX_QUEUES)?;
        power("a width of beats", self.width, 64, 512)?;
        power("a number of slots", self.slots, 2, MAX_SLOTS)?;
        power("a longest frame", self.frame, 512, 1 << 14)?;
        power("a depth of queues", self.depth, 2, MAX_DEPTH)?;
        match self.user {
            None => {}
            Some(_) if self.link.has_macs() => {
                return Err(format!("bits that go with frames, which {} does not carry", self.link.name()));
            }
            Some(user) if user > MAX_USER => {
                return Err(format!("{user} bits that go with a frame: at most {MAX_USER} (MAX_USER)"));
            }
            Some(_) => {}
        }
        match self.link == Link::Xgmii && self.width != 64 {
            true => Err(format!("beats of {} bits at a MAC of 10 Gbit/s, which has beats of 64", self.width)),
            false => Ok(()),
        }
    }
}

/// Why a frame went nowhere, as the device counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It did not: it was sent.
    Sent = 0,
    /// Its parser rejected it.
    ParserError = 1,
    /// The program said so in ingress.
    IngressDrop = 2,
    /// The program said so in egress.
    EgressDrop = 3,
    /// Its multicast group does not exist.
    NoMulticastGroup = 4,
    /// Its multicast group has no copies.
    EmptyMulticastGroup = 5,
    /// Its port does not exist.
    UnknownPort = 6,
    /// Its port is down.
    PortDisabled = 7,
    /// Its queue was full.
    QueueFull = 8,
    /// An assertion did not hold.
    Assert = 9,
    /// A body took too many steps.
    StepLimit = 10,
    /// It would start again once more than it may.
    RecirculationLimit = 11,
    /// It was cloned to a session that does not exist; the frame itself goes on.
    NoCloneSession = 12,
    /// It has no bytes, which no link carries.
    TxRefused = 13,
}

impl Reason {
    /// All but [`Reason::Sent`].
    pub const DROPS: [Reason; 13] = [
        Reason::ParserError,
        Reason::IngressDrop,
        Reason::EgressDrop,
        Reason::NoMulticastGroup,
        Reason::EmptyMulticastGroup,
        Reason::UnknownPort,
        Reason::PortDisabled,
        Reason::QueueFull,
        Reason::Assert,
        Reason::StepLimit,
        Reason::RecirculationLimit,
        Reason::NoCloneSession,
        Reason::TxRefused,
    ];

    /// A word for it: the one of the software's counter.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Sent => "sent",
            Reason::ParserError => "parser_error",
            Reason::IngressDrop => "ingress_drop",
            Reason::EgressDrop => "egress_drop",
            Reason::NoMulticastGroup => "no_multicast_group",
            Reason::EmptyMulticastGroup => "empty_multicast_group",
            Reason::UnknownPort => "unknown_port",
            Reason::PortDisabled => "port_disabled",
            Reason::QueueFull => "queue_full",
            Reason::Assert => "assert",
            Reason::StepLimit => "step_limit",
            Reason::RecirculationLimit => "recirculation_limit",
            Reason::NoCloneSession => "no_clone_session",
            Reason::TxRefused => "tx_refused",
        }
    }
}
