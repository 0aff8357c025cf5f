//! `millrace link`: serves a hardware device or a simulated one over the host link, and reads and writes its registers.

use crate::capacity::CapacityArgs;
use crate::cli::SourceArgs;
use crate::device_args::DeviceArgs;
use crate::findings::{Failure, Findings};
use crate::grpc::{self, warn_of_exposure};
use crate::output::{note_line, say_line};
use crate::progress::Progress;
use crate::source::load_any;
use crate::{registers, signals};
use clap::{Args, Subcommand};
use millrace_link::limits::MAX_WORDS;
use millrace_link::{Client, Device, LinkError, Mapped, Server, Simulated};
use millrace_listen::{Address, Admission, LINK};
use millrace_pipeline::Bits;
use millrace_printable::counted;
use millrace_rtl::map::{MapError, RegisterDevice, RegisterMap};
use millrace_rtl::{Hardware, Options};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct LinkCommand {
    #[command(subcommand)]
    what: What,
    /// One JSON object on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Serves a device, until it is told to end
    Serve {
        /// A device of UIO, as /dev/uio0, or a file whose bytes stand for registers
        #[arg(long, value_name = "PATH", required_unless_present = "simulate", conflicts_with = "simulate")]
        uio: Option<PathBuf>,
        /// Which of its maps
        #[arg(long, value_name = "N", default_value_t = 0, requires = "uio", conflicts_with = "simulate")]
        map: u32,
        /// A device that is simulated: that of a program, as `millrace rtl PROG --device` makes it
        #[arg(long, value_name = "PROG")]
        simulate: Option<PathBuf>,
        #[command(flatten)]
        source: Box<SourceArgs>,
        #[command(flatten)]
        shape: Box<DeviceArgs>,
        #[command(flatten)]
        capacity: Box<CapacityArgs>,
        /// Where to listen
        #[arg(long, value_name = "ADDR|PORT", default_value = "127.0.0.1:9561")]
        listen: Address,
        /// Let other machines reach it
        #[arg(long)]
        link_allow_remote: bool,
    },
    /// Reads registers
    Read {
        /// The address of the first, a multiple of 4; with --map a name, as `ports_up` or `ingress.packets[3]`
        #[arg(value_name = "ADDRESS|NAME")]
        from: String,
        /// How many
        #[arg(value_name = "WORDS", default_value_t = 1)]
        words: usize,
        #[command(flatten)]
        to: To,
    },
    /// Writes registers, in this order and nothing of other clients between them
    Write {
        /// Addresses and words; with --map names and numbers
        #[arg(value_name = "ADDRESS|NAME=WORD", required = true)]
        writes: Vec<String>,
        #[command(flatten)]
        to: To,
    },
    /// Reads all registers; with --map those that have names
    Dump {
        #[command(flatten)]
        to: To,
    },
}

#[derive(Debug, Args)]
struct To {
    /// Where the device is served
    #[arg(long, value_name = "ADDR|PORT", default_value = "127.0.0.1:9561")]
    server: Address,
    /// The registers.json of the design: then words of the device are reached by their names
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
}

/// `16` or `0x10`.
fn number(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("`{}` is no number of 32 bits, as 16 or 0x10", text.escape_debug()))
}

/// `0x10=1`.
fn assignment(text: &str) -> Result<(u32, u32), String> {
    let (address, word) = text.split_once('=').ok_or("a write is ADDRESS=WORD, as 0x10=1")?;
    Ok((number(address)?, number(word)?))
}

/// `millrace link`.
pub(crate) fn link(args: &LinkCommand, findings: &mut Findings) -> Result<(), Failure> {
    match &args.what {
        What::Serve { uio, map, simulate, source, shape, capacity, listen, link_allow_remote } => {
            if let (None, Some(option)) =
                (simulate, shape.given().or(capacity.is_given().then_some("--capacity")).or(source.given()))
            {
                return Err(Failure::Usage(format!("{option} is for --simulate")));
            }
            let device: Box<dyn Device> = match (uio, simulate) {
                (_, Some(program)) => Box::new(simulated(program, source, (shape, capacity), findings)?),
                (Some(uio), None) => Box::new(Mapped::open(uio, *map).map_err(failed)?),
                (None, None) => {
                    return Err(Failure::Usage("--uio or --simulate says which device".to_owned()));
                }
            };
            wait(serve(device, listen, *link_allow_remote)?, args.json)?
        }
        What::Read { from, words, to } => match to.named()? {
            Some(mut device) => {
                let (port, address) = word_named(device.map(), from)?;
                let named = (0..*words as u64).map(|more| (port, address + more));
                show_named(&mut device, named.collect(), args.json)?;
            }
            None => {
                let address = number(from).map_err(Failure::Usage)?;
                show(address, &to.connect()?.read(address, *words)?, args.json);
            }
        },
        What::Write { writes, to } => {
            match to.named()? {
                Some(mut device) => write_named(&mut device, writes)?,
                None => {
                    let writes = writes.iter().map(|write| assignment(write)).collect::<Result<Vec<_>, _>>();
                    to.connect()?.write(&writes.map_err(Failure::Usage)?)?;
                }
            }
            if args.json {
                say_line(json!({ "ok": true, "written": writes.len() }));
            }
        }
        What::Dump { to } if to.map.is_some() => {
            let Some(mut device) = to.named()? else { return Ok(()) };
            let words = device.map().names.iter().map(|word| (word.port, word.address)).collect();
            show_named(&mut device, words, args.json)?;
        }
        What::Dump { to } => {
            let mut client = to.connect()?;
            let bytes = client.shape().bytes;
            let mut words = Vec::with_capacity(bytes as usize / 4);
            for address in (0..bytes).step_by(4 * MAX_WORDS) {
                let left = (bytes - address) as usize / 4;
                words.extend(client.read(address, left.min(MAX_WORDS))?);
            }
            show(0, &words, args.json);
        }
    }
    Ok(())
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Failed(error.to_string())
}

/// The device of a program, simulated.
fn simulated(
    program: &Path,
    source: &SourceArgs,
    (shape, capacity): (&DeviceArgs, &CapacityArgs),
    findings: &mut Findings,
) -> Result<Simulated, Failure> {
    let program = load_any(program, source, findings)?.program(findings)?;
    let progress = Progress::start(format!("making hardware of {}", program.name));
    let options = shape.options();
    let capacities = capacity.of(&program)?;
    let hardware = Hardware::new(program, Options { capacities, ..options.stages() }).map_err(failed)?;
    let device = millrace_rtl::Device::new(&hardware, options).map_err(failed)?;
    let simulated = Simulated::new(&device).map_err(failed)?;
    drop(progress);
    Ok(simulated)
}

/// A device by the names of its words.
type Named = RegisterDevice<Client>;

/// The port and the number of a word.
fn word_named(map: &RegisterMap, name: &str) -> Result<(usize, u64), Failure> {
    let name = name.trim();
    map.find(name)
        .ok_or_else(|| failed(format_args!("{} has no register {}", map.program, name.escape_debug())))
}

/// The name of a word.
fn name_of(map: &RegisterMap, (port, address): (usize, u64)) -> String {
    match map.names.iter().find(|word| (word.port, word.address) == (port, address)) {
        Some(word) => word.name.clone(),
        None => format!("{}[{address}]", map.ports[port].object),
    }
}

/// Words by their names, each with its value as a hexadecimal number, or as JSON.
fn show_named(device: &mut Named, words: Vec<(usize, u64)>, json: bool) -> Result<(), Failure> {
    let mut shown = serde_json::Map::new();
    for word in words {
        let value = device.read_word(word.0, word.1).map_err(failed)?;
        let name = name_of(device.map(), word);
        match json {
            true => drop(shown.insert(name, json!(format!("{:#x}", value.to_biguint())))),
            false => say_line(format_args!("{name}: {:#x}", value.to_biguint())),
        }
    }
    if json {
        say_line(json!({ "ok": true, "words": shown }));
    }
    Ok(())
}

/// Writes words by their names, after all names are known.
fn write_named(device: &mut Named, writes: &[String]) -> Result<(), Failure> {
    let mut words = Vec::new();
    for write in writes {
        let split = write.rsplit_once('=');
        let (name, value) =
            split.ok_or_else(|| Failure::Usage("a write is NAME=WORD, as ports_up=15".to_owned()))?;
        let (port, address) = word_named(device.map(), name)?;
        let of = &device.map().ports[port];
        let value = wide_number(value, of.width).map_err(Failure::Usage)?;
        if !of.writable {
            return Err(failed(format_args!("{name} is not for software to write")));
        }
        words.push((port, address, value));
    }
    let mut write = |(port, address, value): (usize, u64, Bits)| device.write_word(port, address, &value);
    words.into_iter().try_for_each(&mut write).map_err(failed)
}

/// A number of so many bits at most, as 16 or 0x10.
fn wide_number(text: &str, width: u32) -> Result<Bits, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => hexadecimal(digits),
        None => text.parse().ok().map(|value| Bits::new(128, value)),
    };
    let fits = |value: &Bits| value.zero_extend(width).to_biguint() == value.to_biguint();
    parsed
        .filter(fits)
        .map(|value| value.zero_extend(width))
        .ok_or_else(|| format!("`{}` is no number of {width} bits, as 16 or 0x10", text.escape_debug()))
}

/// The most digits of a number.
const MAX_DIGITS: usize = 32 * RegisterMap::MAX_WORDS as usize / 4;

fn hexadecimal(digits: &str) -> Option<Bits> {
    if !(1..=MAX_DIGITS).contains(&digits.len()) {
        return None;
    }
    let digit = |digit: char| digit.to_digit(16).map(|value| Bits::new(4, value.into()));
    let digits: Vec<Bits> = digits.chars().map(digit).collect::<Option<_>>()?;
    digits.into_iter().reduce(|high, low| high.concat(&low))
}

impl From<LinkError> for Failure {
    fn from(error: LinkError) -> Failure {
        Failure::Failed(error.to_string())
    }
}

impl To {
    /// The device by the names of a map, if there is one.
    fn named(&self) -> Result<Option<Named>, Failure> {
        let Some(path) = &self.map else { return Ok(None) };
        let map = registers::read(path)?;
        let attached: Result<Named, MapError<LinkError>> = RegisterDevice::attach(map, self.connect()?);
        attached.map(Some).map_err(failed)
    }

    fn connect(&self) -> Result<Client, Failure> {
        let address = grpc::address(&self.server, &LINK)?;
        Client::connect(address, false)
            .map_err(|error| Failure::failed(format_args!("the device at {address}"), error))
    }
}

/// How long a server that is to end goes on at most.
const LOOK: Duration = Duration::from_millis(100);

/// Serves a device, and says where.
pub(crate) fn serve(
    device: Box<dyn Device>,
    listen: &Address,
    allow_remote: bool,
) -> Result<Server, Failure> {
    let address = grpc::address(listen, &LINK)?;
    let bound = millrace_listen::bind(&LINK, address, Admission::Anybody, allow_remote);
    let listener = bound.map_err(|error| Failure::Failed(error.to_string()))?;
    let server =
        Server::serve(listener, device).map_err(|error| Failure::failed("cannot serve the device", error))?;
    note_line(format_args!("host link: {}", server.address()));
    warn_of_exposure(&LINK, server.address(), Admission::Anybody);
    Ok(server)
}

/// Until a signal ends it, or the device is gone.
pub(crate) fn wait(server: Server, json: bool) -> Result<(), Failure> {
    let ends = signals::ends()?;
    while !ends.load(Ordering::Acquire) && server.fault().is_none() {
        std::thread::sleep(LOOK);
    }
    if let Some(fault) = server.fault() {
        return Err(Failure::failed("the device is gone", fault));
    }
    let counts = server.counts();
    match json {
        true => say_line(
            json!({ "ok": true, "requests": counts.requests, "frames_in": counts.frames_in, "refused": counts.refused,
                                 "frames_out": counts.frames_out, "messages": counts.messages, "lost_frames": counts.lost_frames,
                                 "lost_messages": counts.lost_messages }),
        ),
        false => say_line(counted(counts.requests, "request")),
    }
    Ok(())
}

/// Words, four in a line with the address of the first, or as JSON.
fn show(address: u32, words: &[u32], json: bool) {
    if json {
        return say_line(json!({ "ok": true, "address": address, "words": words }));
    }
    for (line, words) in (0u32..).zip(words.chunks(4)) {
        let words: Vec<String> = words.iter().map(|word| format!("{word:08x}")).collect();
        say_line(format_args!("{:08x}: {}", address + 16 * line, words.join(" ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!((number("16"), number("0x10")), (Ok(16), Ok(16)));
        assert_eq!(assignment("0xffFFffff=4294967295"), Ok((u32::MAX, u32::MAX)));
        for bad in ["", "-1", "4294967296", "0x", "10h"] {
            assert!(number(bad).is_err(), "{bad}");
        }
        assert!(assignment("4").is_err());
    }
}
