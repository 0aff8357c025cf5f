//! `millrace link`: serves a hardware device over the host link, and reads and writes its registers.

use crate::findings::Failure;
use crate::grpc::{self, warn_of_exposure};
use crate::output::{note_line, say_line};
use crate::signals;
use clap::{Args, Subcommand};
use millrace_link::limits::MAX_WORDS;
use millrace_link::{Client, LinkError, Mapped, Server};
use millrace_listen::{Address, Admission, LINK};
use serde_json::json;
use std::path::PathBuf;
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
        #[arg(long, value_name = "PATH")]
        uio: PathBuf,
        /// Which of its maps
        #[arg(long, value_name = "N", default_value_t = 0)]
        map: u32,
        /// Where to listen
        #[arg(long, value_name = "ADDR|PORT", default_value = "127.0.0.1:9561")]
        listen: Address,
        /// Let other machines reach it
        #[arg(long)]
        link_allow_remote: bool,
    },
    /// Reads registers
    Read {
        /// The address of the first, a multiple of 4
        #[arg(value_name = "ADDRESS", value_parser = number)]
        address: u32,
        /// How many
        #[arg(value_name = "WORDS", default_value_t = 1)]
        words: usize,
        #[command(flatten)]
        to: To,
    },
    /// Writes registers, in this order and nothing of other clients between them
    Write {
        /// Addresses and words
        #[arg(value_name = "ADDRESS=WORD", required = true, value_parser = assignment)]
        writes: Vec<(u32, u32)>,
        #[command(flatten)]
        to: To,
    },
    /// Reads all registers
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
pub(crate) fn link(args: &LinkCommand) -> Result<(), Failure> {
    match &args.what {
        What::Serve { uio, map, listen, link_allow_remote } => {
            let device = Mapped::open(uio, *map).map_err(|fault| Failure::Failed(fault.to_string()))?;
            let address = grpc::address(listen, &LINK)?;
            let bound = millrace_listen::bind(&LINK, address, Admission::Anybody, *link_allow_remote);
            let listener = bound.map_err(|error| Failure::Failed(error.to_string()))?;
            let server = Server::serve(listener, Box::new(device));
            serve(server.map_err(|error| Failure::failed("cannot serve the device", error))?, args.json)?
        }
        What::Read { address, words, to } => {
            show(*address, &to.connect()?.read(*address, *words)?, args.json)
        }
        What::Write { writes, to } => {
            to.connect()?.write(writes)?;
            if args.json {
                say_line(json!({ "ok": true, "written": writes.len() }));
            }
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

impl From<LinkError> for Failure {
    fn from(error: LinkError) -> Failure {
        Failure::Failed(error.to_string())
    }
}

impl To {
    fn connect(&self) -> Result<Client, Failure> {
        let address = grpc::address(&self.server, &LINK)?;
        Client::connect(address, false)
            .map_err(|error| Failure::failed(format_args!("the device at {address}"), error))
    }
}

/// How long a server that is to end goes on at most.
const LOOK: Duration = Duration::from_millis(100);

/// Until a signal ends it, or the device is gone.
fn serve(server: Server, json: bool) -> Result<(), Failure> {
    let ends = signals::ends()?;
    note_line(format_args!("host link: {}", server.address()));
    warn_of_exposure(&LINK, server.address(), Admission::Anybody);
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
        false => say_line(format_args!("{} requests", counts.requests)),
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
