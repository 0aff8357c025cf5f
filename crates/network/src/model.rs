//! What a file says, with units resolved, defaults filled in and every route written out.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// An ARINC 664 part 7 network. It keeps every rule that [`Network::parse`] checks if that made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Network {
    /// Its name.
    pub name: String,
    /// The part number of the configuration.
    pub part_number: Option<String>,
    /// Bytes that the wire adds to a frame: preamble, start delimiter and the gap between frames.
    pub overhead: u32,
    /// Which bandwidth allocation gaps there may be.
    pub bags: Bags,
    /// End systems.
    pub end_systems: Vec<EndSystem>,
    /// Switches.
    pub switches: Vec<Switch>,
    /// Links between them.
    pub links: Vec<Link>,
    /// Accounts that virtual links share.
    pub accounts: Vec<Account>,
    /// Virtual links.
    pub vls: Vec<Vl>,
}

impl Network {
    /// The switch whose own end system that is.
    pub fn switch_of(&self, end_system: &str) -> Option<&Switch> {
        self.switches.iter().find(|switch| switch.end_system.as_deref() == Some(end_system))
    }

    /// The links that end at a node.
    pub fn links_at<'n>(&'n self, node: &'n str) -> impl Iterator<Item = &'n Link> + 'n {
        self.links.iter().filter(move |link| link.between.iter().any(|end| end.node == node))
    }

    /// One of nothing yet, whose wires add so many bytes to a frame.
    pub(crate) fn empty(name: String, overhead: u32) -> Network {
        Network {
            name,
            part_number: None,
            overhead,
            bags: Bags::Standard,
            end_systems: Vec::new(),
            switches: Vec::new(),
            links: Vec::new(),
            accounts: Vec::new(),
            vls: Vec::new(),
        }
    }
}

/// One of the two redundant networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Side {
    /// Network A.
    A,
    /// Network B.
    B,
}

/// Which bandwidth allocation gaps there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bags {
    /// 0.5 to 128 ms, powers of two.
    Standard,
    /// Any from 10 µs to 1310 ms.
    Any,
}

/// An end system. Times are in nanoseconds, here and below.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct EndSystem {
    /// Its name.
    pub name: String,
    /// Its number in MAC and IP addresses.
    pub id: u16,
    /// The longest that a frame takes from its regulator to the queue of the output port.
    pub latency: u64,
    /// The shortest.
    pub least_latency: u64,
    /// The longest from its last bit to the port of an application.
    pub receive_latency: u64,
    /// Jitter of the end system's own making in the standard's formula of output jitter.
    pub technological_jitter: u64,
    /// The largest output jitter that is allowed.
    pub max_jitter: u64,
}

/// A switch, which stores and forwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Switch {
    /// Its name.
    pub name: String,
    /// The network that it belongs to.
    pub network: Side,
    /// The longest from the last bit of a frame to the queue of its output port.
    pub latency: u64,
    /// The shortest.
    pub least_latency: u64,
    /// How its output ports serve what waits.
    pub scheduler: Scheduler,
    /// How many priorities it tells apart.
    pub priorities: u8,
    /// Room of each output port, in bytes of frames.
    pub buffer: Option<u64>,
    /// A frame that has waited longer at an output port is discarded.
    pub max_delay: Option<u64>,
    /// The name of its own end system, which answers those who manage it.
    pub end_system: Option<String>,
}

/// How an output port serves what waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// All in the order of arrival.
    Fifo,
    /// Strict priority without preemption, in the order of arrival within one.
    Priority,
    /// A frame of each priority that has one, in turn.
    RoundRobin,
    /// Not known, but a port is never idle while a frame waits, and frames of a virtual link keep their order.
    Arbitrary,
}

/// A cable between two ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Link {
    /// Its ends.
    pub between: [End; 2],
    /// The network that it belongs to.
    pub network: Side,
    /// In bit/s, in each direction.
    pub rate: u64,
    /// What of the rate these virtual links are sure of; the rest may be used by what the file does not know.
    pub service_rate: u64,
    /// Takes the place of the latency of the node that sends.
    pub latency: Option<u64>,
    /// How long a bit takes from end to end.
    pub propagation: u64,
    /// Frames pass from the first end to the second alone.
    pub one_way: bool,
}

/// An end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct End {
    /// The name of the node.
    pub node: String,
    /// The number of its port.
    pub port: u16,
}

/// An account that virtual links share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Bandwidth allocation gap.
    pub bag: u64,
    /// Longest frame, in bytes with its check sum.
    pub lmax: u16,
    /// Jitter that it tolerates.
    pub jitter: u64,
    /// What it counts.
    pub policing: Policing,
}

/// What an account counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policing {
    /// The bytes of a frame.
    Byte,
    /// A frame as the longest one.
    Frame,
    /// Both tests have to pass.
    Both,
    /// Nothing is policed.
    None,
}

/// A virtual link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Vl {
    /// Its number, the last 16 bits of the destination address.
    pub id: u16,
    /// Its name.
    pub name: String,
    /// The end system that sends.
    pub source: String,
    /// Bandwidth allocation gap: the shortest time from one frame to the next at the regulator.
    pub bag: u64,
    /// Shortest frame, in bytes with its check sum.
    pub lmin: u16,
    /// Longest frame, in bytes with its check sum.
    pub lmax: u16,
    /// Jitter that accounts of switches tolerate; none: at each switch, what the bounds say that frames arrive with.
    pub jitter: Option<u64>,
    /// How much later than due the regulator may release a frame.
    pub source_jitter: u64,
    /// The largest priority is served first.
    pub priority: u8,
    /// What accounts of switches count.
    pub policing: Policing,
    /// The account that it shares, instead of its own.
    pub shared_account: Option<String>,
    /// The largest time between the two copies of a frame.
    pub skew_max: u64,
    /// The largest delay that its user can bear.
    pub deadline: Option<u64>,
    /// Its paths, in each network that it is sent on.
    pub routes: Vec<Route>,
    /// What it carries in turn.
    pub sub_vls: Vec<SubVl>,
}

/// The tree of a virtual link in one network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Route {
    /// The network.
    pub network: Side,
    /// For each destination the nodes after the source; the last one is the destination.
    pub paths: Vec<Vec<String>>,
}

/// A part of a virtual link with a queue of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SubVl {
    /// Its name.
    pub name: String,
    /// Most frames that wait in it.
    pub queue: u32,
}

impl Vl {
    /// The end systems that it leads to, in each of its networks.
    pub fn ends(&self) -> impl Iterator<Item = &str> {
        self.routes.iter().flat_map(Route::ends)
    }
}

impl Route {
    /// The end systems that it leads to.
    pub fn ends(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().filter_map(|path| path.last()).map(String::as_str)
    }
}

impl Side {
    /// Both.
    pub const BOTH: [Side; 2] = [Side::A, Side::B];

    /// As files have it.
    pub fn name(self) -> &'static str {
        match self {
            Side::A => "A",
            Side::B => "B",
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Bags {
    /// All, as files have them.
    pub const ALL: [(Bags, &'static str); 2] = [(Bags::Standard, "standard"), (Bags::Any, "any")];
}

impl Scheduler {
    /// All, as files have them.
    pub const ALL: [(Scheduler, &'static str); 4] = [
        (Scheduler::Fifo, "fifo"),
        (Scheduler::Priority, "priority"),
        (Scheduler::RoundRobin, "round-robin"),
        (Scheduler::Arbitrary, "arbitrary"),
    ];

    /// Whether it looks at priorities.
    pub(crate) fn has_priorities(self) -> bool {
        matches!(self, Scheduler::Priority | Scheduler::RoundRobin)
    }
}

impl Policing {
    /// All, as files have them.
    pub const ALL: [(Policing, &'static str); 4] = [
        (Policing::Byte, "byte"),
        (Policing::Frame, "frame"),
        (Policing::Both, "both"),
        (Policing::None, "none"),
    ];
}

/// The word of a value.
pub(crate) fn word_of<T: PartialEq>(all: &[(T, &'static str)], value: &T) -> &'static str {
    all.iter().find(|(known, _)| known == value).map_or("", |(_, word)| word)
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.node, self.port)
    }
}

impl Serialize for End {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A text is no end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoEnd;

/// The end of a link as it is written: `NODE` or `NODE:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrittenEnd {
    pub(crate) node: String,
    pub(crate) port: Option<u16>,
}

impl FromStr for WrittenEnd {
    type Err = NoEnd;

    fn from_str(text: &str) -> Result<WrittenEnd, NoEnd> {
        let (node, port) = match text.split_once(':') {
            None => (text, None),
            Some((node, number)) => {
                // A plus sign would parse as a number too.
                let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
                let number =
                    number.parse().ok().filter(|number| is_number && usize::from(*number) < crate::MAX_PORTS);
                (node, Some(number.ok_or(NoEnd)?))
            }
        };
        match crate::file::is_label(node) {
            true => Ok(WrittenEnd { node: node.to_owned(), port }),
            false => Err(NoEnd),
        }
    }
}
