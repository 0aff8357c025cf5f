//! Reading capture files: pcap, and pcapng with any number of interfaces and sections.
//!
//! Frames come in the order of the file, whichever interface they are of. Times are in nanoseconds, whatever the file counts
//! in. The blocks of pcapng that hold no frame (names, statistics, secrets) are passed over.

use pcap_file::pcap::{PcapHeader, PcapReader};
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::{ENHANCED_PACKET_BLOCK, PACKET_BLOCK, SIMPLE_PACKET_BLOCK};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};
use std::fmt;
use std::io::{self, BufRead, ErrorKind};

/// Longest record of a capture file in bytes, as the capture tools have it. A longer one is damage.
pub const MAX_RECORD: u32 = 256 * 1024;
/// Most interfaces of one section of a pcapng file.
pub const MAX_INTERFACES: usize = 1 << 16;

/// The first bytes of a pcapng file.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const NANOSECONDS: u64 = 1_000_000_000;

/// A capture file that is read.
pub struct CaptureFile<R: BufRead> {
    format: Format<R>,
    /// The time of the latest frame, in nanoseconds: that of frames which have none.
    latest_ns: u64,
}

enum Format<R: BufRead> {
    Pcap(PcapReader<R>),
    PcapNg { reader: PcapNgReader<R>, link: Option<DataLink> },
}

/// What the file says of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was captured, in nanoseconds since 1970.
    pub timestamp_ns: u64,
    /// The length of the frame on the wire; the file may hold less.
    pub original_length: u32,
}

/// Why a capture file gives no frame.
#[derive(Debug)]
pub enum CaptureFileError {
    /// It cannot be read.
    System(io::Error),
    /// It is no capture file, or damaged; how.
    Damage(String),
}

impl fmt::Display for CaptureFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaptureFileError::System(error) => error.fmt(f),
            CaptureFileError::Damage(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for CaptureFileError {}

fn damage<T>(reason: impl Into<String>) -> Result<T, CaptureFileError> {
    Err(CaptureFileError::Damage(reason.into()))
}

impl<R: BufRead> CaptureFile<R> {
    /// Reads the beginning of a file.
    ///
    /// # Errors
    /// [`CaptureFileError`].
    pub fn new(mut input: R) -> Result<CaptureFile<R>, CaptureFileError> {
        let head = input.fill_buf().map_err(CaptureFileError::System)?;
        if head.is_empty() {
            return damage("the file is empty");
        }
        let format = match head.starts_with(&PCAPNG) {
            true => PcapNgReader::new(input)
                .map(|reader| Format::PcapNg { reader, link: None })
                .map_err(|error| found(error, "the file ends within the header of its first section"))?,
            false => PcapReader::new(input).map(Format::Pcap).map_err(|error| match error {
                PcapError::IoError(_) => found(error, "the file ends within the header of 24 bytes"),
                _ => CaptureFileError::Damage(
                    "this is neither a pcap nor a pcapng file: its first four bytes are unknown".into(),
                ),
            })?,
        };
        Ok(CaptureFile { format, latest_ns: 0 })
    }

    /// The header of a pcap file for frames like these. Of pcapng the link type is known after the first frame.
    pub(crate) fn header(&self) -> PcapHeader {
        match &self.format {
            Format::Pcap(reader) => reader.header(),
            Format::PcapNg { reader, link } => PcapHeader {
                endianness: reader.section().endianness,
                ts_resolution: TsResolution::NanoSecond,
                datalink: link.unwrap_or(DataLink::ETHERNET),
                ..PcapHeader::default()
            },
        }
    }

    /// Puts the next frame in place of what `frame` holds; none at the end of the file.
    ///
    /// # Errors
    /// [`CaptureFileError`]; nothing can be read after that.
    pub fn next(&mut self, frame: &mut Vec<u8>) -> Result<Option<Record>, CaptureFileError> {
        let record = match &mut self.format {
            Format::Pcap(reader) => next_of_pcap(reader, frame)?,
            Format::PcapNg { reader, link } => next_of_pcapng(reader, link, self.latest_ns, frame)?,
        };
        if let Some(record) = &record {
            self.latest_ns = record.timestamp_ns;
        }
        Ok(record)
    }
}

fn found(error: PcapError, at_end: &str) -> CaptureFileError {
    match error {
        PcapError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => {
            CaptureFileError::Damage(at_end.to_owned())
        }
        PcapError::IoError(error) => CaptureFileError::System(error),
        other => CaptureFileError::Damage(other.to_string()),
    }
}

fn next_of_pcap<R: BufRead>(
    reader: &mut PcapReader<R>,
    frame: &mut Vec<u8>,
) -> Result<Option<Record>, CaptureFileError> {
    let tick = match reader.header().ts_resolution {
        TsResolution::MicroSecond => 1000,
        TsResolution::NanoSecond => 1,
    };
    let record = match reader.next_raw_packet() {
        None => return Ok(None),
        Some(Err(error)) => {
            return Err(found(error, "the file ends within a packet, or the packet's length is damaged"));
        }
        Some(Ok(record)) => record,
    };
    too_long(record.incl_len)?;
    let fraction_ns = u64::from(record.ts_frac) * tick;
    if fraction_ns >= NANOSECONDS {
        return damage(format!("a packet's time has a fraction of {}, more than a second", record.ts_frac));
    }
    frame.clear();
    frame.extend_from_slice(&record.data);
    let timestamp_ns = u64::from(record.ts_sec) * NANOSECONDS + fraction_ns;
    Ok(Some(Record { timestamp_ns, original_length: record.orig_len }))
}

fn too_long(length: u32) -> Result<(), CaptureFileError> {
    match length > MAX_RECORD {
        true => damage(format!("a packet of {length} bytes, the limit is {MAX_RECORD}")),
        false => Ok(()),
    }
}

/// What stands before the data of a block with a packet.
struct Packet {
    interface: usize,
    /// None: the block has no time.
    ticks: Option<u64>,
    captured: u32,
    original: u32,
    /// Where the data begins.
    data: usize,
}

fn next_of_pcapng<R: BufRead>(
    reader: &mut PcapNgReader<R>,
    link: &mut Option<DataLink>,
    latest_ns: u64,
    frame: &mut Vec<u8>,
) -> Result<Option<Record>, CaptureFileError> {
    loop {
        let (kind, body) = match reader.next_raw_block() {
            None => return Ok(None),
            Some(Err(error)) => {
                return Err(found(error, "the file ends within a block, or the block's length is damaged"));
            }
            Some(Ok(block)) => (block.type_, block.body),
        };
        frame.clear();
        frame.extend_from_slice(&body);
        drop(body);
        if reader.interfaces().len() > MAX_INTERFACES {
            return damage(format!("a section has more than {MAX_INTERFACES} interfaces"));
        }
        let Some(mut packet) = packet(kind, frame, reader.section().endianness)? else { continue };
        let Some(interface) = reader.interfaces().get(packet.interface) else {
            return damage(format!("a packet is of interface {}, which there is not", packet.interface));
        };
        if *link.get_or_insert(interface.linktype) != interface.linktype {
            let (first, other) =
                (u32::from(link.unwrap_or(DataLink::ETHERNET)), u32::from(interface.linktype));
            return damage(format!("interfaces of several link types ({first} and {other})"));
        }
        if kind == SIMPLE_PACKET_BLOCK && interface.snaplen > 0 {
            packet.captured = packet.captured.min(interface.snaplen);
        }
        too_long(packet.captured)?;
        let end = packet.data + packet.captured as usize;
        if end > frame.len() {
            return damage("a packet is longer than its block");
        }
        frame.truncate(end);
        frame.drain(..packet.data);
        let timestamp_ns = packet.ticks.map_or(latest_ns, |ticks| nanoseconds(interface, ticks));
        return Ok(Some(Record { timestamp_ns, original_length: packet.original }));
    }
}

/// Reads what stands before a packet; none of a block without one.
fn packet(kind: u32, body: &[u8], endianness: Endianness) -> Result<Option<Packet>, CaptureFileError> {
    let bytes = match kind {
        ENHANCED_PACKET_BLOCK | PACKET_BLOCK => 20,
        SIMPLE_PACKET_BLOCK => 4,
        _ => return Ok(None),
    };
    let Some(head) = body.get(..bytes) else { return damage("a block is too short for a packet") };
    let words: Vec<u32> = head
        .as_chunks::<4>()
        .0
        .iter()
        .map(|word| match endianness {
            Endianness::Big => u32::from_be_bytes(*word),
            Endianness::Little => u32::from_le_bytes(*word),
        })
        .collect();
    Ok(Some(match *words.as_slice() {
        [original] => Packet { interface: 0, ticks: None, captured: original, original, data: bytes },
        [interface, high, low, captured, original] => {
            let interface = match (kind, endianness) {
                (ENHANCED_PACKET_BLOCK, _) => interface,
                // The old block has 16 bits for it, and counts losses in the other 16.
                (_, Endianness::Big) => interface >> 16,
                (_, Endianness::Little) => interface & 0xffff,
            };
            let ticks = Some(u64::from(high) << 32 | u64::from(low));
            Packet { interface: interface as usize, ticks, captured, original, data: bytes }
        }
        _ => return Ok(None),
    }))
}

/// The time of a packet that an interface counts in its own ticks from a time of its own.
fn nanoseconds(interface: &InterfaceDescriptionBlock<'_>, ticks: u64) -> u64 {
    let (mut resolution, mut offset) = (6, 0);
    for option in &interface.options {
        match option {
            InterfaceDescriptionOption::IfTsResol(of) => resolution = *of,
            InterfaceDescriptionOption::IfTsOffset(seconds) => offset = *seconds,
            _ => {}
        }
    }
    let exponent = u32::from(resolution & 0x7f);
    let ticks = u128::from(ticks);
    // Of a tick that is shorter than any the number can have, nothing is left.
    let since = match resolution & 0x80 {
        0 => 10u128.checked_pow(exponent).map_or(0, |second| ticks * u128::from(NANOSECONDS) / second),
        _ => (ticks * u128::from(NANOSECONDS)).checked_shr(exponent).unwrap_or(0),
    };
    let since = since + u128::from(offset) * u128::from(NANOSECONDS);
    u64::try_from(since).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
