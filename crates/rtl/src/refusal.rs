//! Why a program has no hardware.

use crate::limits;
use crate::place::Place;
use millrace_netlist::limits::MAX_PORTS;
use millrace_pipeline::Program;
use std::fmt;

/// Why hardware cannot be made of a program: what it uses, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What hardware cannot do.
    pub construct: Construct,
    /// The part of the program: a parser, a state of it, a control, a table.
    pub part: String,
    /// The file of the source and the line there, when the program knows them.
    pub place: Option<(String, u32)>,
}

/// What hardware cannot do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Construct {
    /// A parser may read after the last byte of the largest window.
    Window,
    /// A loop goes on after the most repetitions.
    Loop,
    /// More blocks than [`limits::MAX_BLOCKS`], repeated ones counted each time.
    Blocks,
    /// More storage than [`limits::MAX_CELLS`].
    Cells,
    /// More values than [`limits::MAX_NODES`], or more bits of them than [`limits::MAX_BITS`].
    Nodes,
    /// More places of the cursor or the end of headers than [`limits::MAX_CASES`].
    Places,
    /// A value is wider than [`limits::MAX_VALUE`].
    Width(u32),
    /// A product of that width.
    Product(u32),
    /// A quotient or remainder of that width.
    Quotient(u32),
    /// A hash over the payload that cannot be had from what is added up of a frame: where.
    Payload(&'static str),
    /// A hash over data of too many lengths.
    HashLengths,
    /// A hash over the payload whose parameters the control plane sets.
    OwnHash(String),
    /// A plugin is called.
    Plugin(String),
    /// A parser after a deparser in one stage.
    ParserAfterDeparser,
    /// A second deparser in one stage.
    SecondDeparser,
    /// A parser in a stage that starts from headers that are there.
    ParserOfContext,
    /// More accesses to tables and objects than [`limits::MAX_ACCESSES`].
    Accesses,
    /// More inputs or outputs of a stage than [`MAX_PORTS`].
    Ports(usize),
    /// The stage takes more cycles than [`limits::MAX_LATENCY`].
    Latency,
    /// More registers than [`limits::MAX_REGISTERS`].
    Registers,
    /// A body whose steps may reach the most that a body may take.
    Steps,
    /// An operation that hardware does not have.
    Operation(&'static str),
    /// The middle end refuses the program.
    Midend(String),
    /// The hardware IR refuses the design.
    Design(String),
    /// Several stages ask for an object that frames change.
    Shared {
        /// What it is, and its name.
        object: String,
        /// The stages.
        stages: Vec<String>,
    },
    /// An object lets fewer frames a second pass than are asked for.
    Slow {
        /// What it is, and its name.
        object: String,
        /// Cycles from one frame to the next.
        interval: u32,
        /// Frames a second that these allow.
        frames: u64,
        /// Frames a second that are asked for.
        rate: u64,
    },
    /// What no whole device does.
    Device(String),
    /// What is to simulate the hardware is missing, or fails.
    Tool(String),
}

impl fmt::Display for Construct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Construct::Window => {
                let limit = limits::MAX_WINDOW;
                write!(f, "a parser that may read more than {limit} bytes of a frame (limit MAX_WINDOW)")
            }
            Construct::Loop => {
                let limit = limits::MAX_UNROLL;
                write!(f, "a loop that may go round more than {limit} times (limit MAX_UNROLL)")
            }
            Construct::Blocks => {
                write!(f, "more than {} blocks with loops repeated (limit MAX_BLOCKS)", limits::MAX_BLOCKS)
            }
            Construct::Cells => {
                write!(f, "more than {} cells of storage (limit MAX_CELLS)", limits::MAX_CELLS)
            }
            Construct::Nodes => write!(
                f,
                "more than {} values (limit MAX_NODES), or more than {} bits of them (limit MAX_BITS)",
                limits::MAX_NODES,
                limits::MAX_BITS
            ),
            Construct::Places => {
                write!(f, "a header at more than {} places of the frame (limit MAX_CASES)", limits::MAX_CASES)
            }
            Construct::Width(width) => {
                write!(f, "a value of {width} bits, more than {} (limit MAX_VALUE)", limits::MAX_VALUE)
            }
            Construct::Product(width) => {
                write!(f, "a product of {width} bits, more than {} (limit MAX_PRODUCT)", limits::MAX_PRODUCT)
            }
            Construct::Quotient(width) => {
                write!(
                    f,
                    "a division of {width} bits, more than {} (limit MAX_QUOTIENT)",
                    limits::MAX_QUOTIENT
                )
            }
            Construct::Payload(what) => write!(f, "a hash or checksum over the payload {what}"),
            Construct::HashLengths => {
                let limit = limits::MAX_HASH_LENGTHS;
                write!(f, "a hash over data that may have more than {limit} lengths (limit MAX_HASH_LENGTHS)")
            }
            Construct::OwnHash(name) => {
                write!(f, "the hash {name}, whose parameters the control plane sets, over the payload")
            }
            Construct::Plugin(name) => write!(f, "a call of the plugin {name}"),
            Construct::ParserAfterDeparser => write!(f, "a parser after a deparser of the same stage"),
            Construct::SecondDeparser => write!(f, "a second deparser of the same stage"),
            Construct::ParserOfContext => write!(f, "a parser in a stage that starts from parsed headers"),
            Construct::Accesses => {
                write!(
                    f,
                    "more than {} accesses to tables and objects (limit MAX_ACCESSES)",
                    limits::MAX_ACCESSES
                )
            }
            Construct::Ports(ports) => write!(
                f,
                "{ports} inputs or outputs of a stage, for fields that it keeps and for what it asks tables and objects, more than {MAX_PORTS} \
                 (limit MAX_PORTS)"
            ),
            Construct::Latency => {
                write!(f, "more than {} cycles in a stage (limit MAX_LATENCY)", limits::MAX_LATENCY)
            }
            Construct::Registers => {
                let limit = limits::MAX_REGISTERS;
                write!(f, "more than {limit} registers between the cycles of a stage (limit MAX_REGISTERS)")
            }
            Construct::Steps => write!(f, "a loop that may take all steps of a body"),
            Construct::Operation(what) => write!(f, "{what}"),
            Construct::Shared { object, stages } => write!(
                f,
                "one unit for {object}, which {} ask (--allow-outside leaves it outside of them)",
                stages.join(" and ")
            ),
            Construct::Slow { object, interval, frames, rate } => write!(
                f,
                "{rate} frames a second: {object} takes one in {interval} cycles, {frames} a second (--rate FRAMES asks for fewer, \
                 --allow-slow for as many as there are)"
            ),
            Construct::Design(why) => write!(f, "a design that breaks a rule or a limit ({why})"),
            Construct::Midend(why) | Construct::Device(why) | Construct::Tool(why) => f.write_str(why),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Construct::Tool(why) = &self.construct {
            return write!(f, "the hardware of {} cannot be simulated: {why}", self.part);
        }
        write!(f, "hardware cannot have {}, in {}", self.construct, self.part)?;
        match &self.place {
            Some((file, line)) => write!(f, " ({file}:{line})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    /// About a part of a program, by its name.
    pub(crate) fn of(program: &Program, construct: Construct, part: &str) -> Refusal {
        Refusal::at(construct, Place::of_name(program, part))
    }

    /// About what stands at a place.
    pub(crate) fn at(construct: Construct, place: Place) -> Refusal {
        Refusal { construct, part: place.part, place: place.at }
    }

    /// What no device does, and the place that asks for it, if one does.
    pub(crate) fn of_device(why: String, place: Option<Place>) -> Refusal {
        let construct = Construct::Device(why);
        match place {
            Some(Place { part, at }) => Refusal { construct, part: format!("device: {part}"), place: at },
            None => Refusal { construct, part: "device".to_owned(), place: None },
        }
    }
}
