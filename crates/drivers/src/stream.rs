//! The `stream` driver: capture files that may still be growing, such as named pipes, as live ports.
//!
//! Where [`crate::PcapPort`] replays captures in their own time, these frames are switched when they come, in real time.
//! Nothing here waits: a pipe is opened whether or not there is a writer, so any number of them can be opened in any
//! order, and what has not come yet is looked for again later. Frames of several streams go in the order of the times
//! that their writers gave them ([`TimeSource::Stamped`]).

use crate::capture_file::MAX_RECORD;
use crate::pcap::{FILE_HEADER_BYTES, Output, RECORD_HEADER_BYTES};
use crate::port::{PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted, wall_clock_ns};
use crate::wait::is_hung_up;
use millrace_frames::{Batch, MAX_FRAME, PacketPool};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;

/// A port over a capture that is read as it is written.
pub struct StreamPort {
    input: Option<Input>,
    output: Option<Output>,
    statistics: PortStatistics,
}

struct Input {
    path: String,
    file: File,
    /// That a pipe has nothing to read is no end of it.
    is_pipe: bool,
    format: Option<Format>,
    /// What was read and not taken yet starts at `taken`. At most a record and a chunk.
    bytes: Vec<u8>,
    taken: usize,
    packets: u64,
    latest_ns: u64,
    next: Next,
}

/// What the header of a capture says of its records.
#[derive(Clone, Copy)]
struct Format {
    is_big_endian: bool,
    nanoseconds_per_tick: u64,
}

/// What comes next, as far as it has come.
enum Next {
    /// Not known yet.
    Unknown,
    /// A frame of so many bytes at `taken`.
    Frame {
        timestamp_ns: u64,
        length: usize,
        is_cut: bool,
    },
    Damage(PortError),
    End,
}

impl StreamPort {
    /// Opens `IN`, `IN,OUT` or `,OUT`. An output file that exists is replaced.
    ///
    /// # Errors
    /// [`PortError`]: no such file, or the output cannot be made.
    pub fn open(args: &str) -> Result<StreamPort, PortError> {
        let (input, output) = args.split_once(',').unwrap_or((args, ""));
        if output.contains(',') || (input.is_empty() && output.is_empty()) {
            let reason = format!("IN, IN,OUT or ,OUT is expected, not `{args}`");
            return Err(PortError::Arguments { driver: "stream", reason });
        }
        let input = if input.is_empty() { None } else { Some(Input::open(input)?) };
        let output = if output.is_empty() { None } else { Some(Output::create(output, None)?) };
        Ok(StreamPort { input, output, statistics: PortStatistics::default() })
    }
}

impl Input {
    fn open(path: &str) -> Result<Input, PortError> {
        let system = |error| PortError::system(format!("open {path}"), error);
        // Without the flag the open of a pipe waits for its writer.
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(system)?;
        let kind = file.metadata().map_err(system)?.file_type();
        if kind.is_dir() {
            return Err(system(ErrorKind::IsADirectory.into()));
        }
        Ok(Input {
            path: path.to_owned(),
            file,
            is_pipe: kind.is_fifo(),
            format: None,
            bytes: Vec::new(),
            taken: 0,
            packets: 0,
            latest_ns: 0,
            next: Next::Unknown,
        })
    }

    /// Finds what comes next, as far as it has come.
    fn look(&mut self) {
        while matches!(self.next, Next::Unknown) {
            match self.parse() {
                Ok(true) => {}
                Ok(false) if self.read() => {}
                Ok(false) => return,
                Err(reason) => {
                    let (path, packets) = (self.path.clone(), self.packets);
                    self.next = Next::Damage(PortError::Capture { path, packets, reason });
                }
            }
        }
    }

    /// Takes a header from what was read; says whether there was a whole one.
    fn parse(&mut self) -> Result<bool, String> {
        let left = &self.bytes[self.taken..];
        let Some(format) = self.format else {
            let Some(header) = left.get(..FILE_HEADER_BYTES as usize) else { return Ok(false) };
            self.format = Some(Format::of(header)?);
            self.taken += FILE_HEADER_BYTES as usize;
            return Ok(true);
        };
        let Some((header, after)) = left.split_at_checked(RECORD_HEADER_BYTES) else { return Ok(false) };
        let word = |at: usize| format.word(&header[at..at + 4]);
        let (seconds, ticks, length, original) = (word(0), word(4), word(8), word(12));
        let fraction_ns = u64::from(ticks) * format.nanoseconds_per_tick;
        if length > MAX_RECORD {
            return Err(format!("a packet of {length} bytes, the limit is {MAX_RECORD}"));
        }
        if fraction_ns >= 1_000_000_000 {
            return Err(format!("a packet's time has a fraction of {ticks}, more than a second"));
        }
        let length = length as usize;
        if after.len() < length {
            return Ok(false);
        }
        self.taken += RECORD_HEADER_BYTES;
        self.packets += 1;
        // Times of one stream never run backwards.
        self.latest_ns = self.latest_ns.max(u64::from(seconds) * 1_000_000_000 + fraction_ns);
        self.next = Next::Frame { timestamp_ns: self.latest_ns, length, is_cut: original as usize > length };
        Ok(true)
    }

    /// Reads more; says whether there was more now.
    fn read(&mut self) -> bool {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        let held = self.bytes.len();
        self.bytes.resize(held + CHUNK, 0);
        // Before: what a writer writes until it goes is read first.
        let has_end = !self.is_pipe || is_hung_up(self.file.as_raw_fd());
        let read = self.file.read(&mut self.bytes[held..]);
        self.bytes.truncate(held + read.as_ref().map_or(0, |read| *read));
        match read {
            Ok(0) if !has_end => {}
            Ok(0) => {
                self.next = if self.bytes.is_empty() && self.format.is_some() {
                    Next::End
                } else {
                    let reason = "the capture ends within a header or a packet".to_owned();
                    Next::Damage(PortError::Capture {
                        path: self.path.clone(),
                        packets: self.packets,
                        reason,
                    })
                }
            }
            Ok(_) => return true,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => {
                self.next = Next::Damage(PortError::system(format!("read {}", self.path), error));
            }
        }
        false
    }
}

impl Format {
    fn of(header: &[u8]) -> Result<Format, String> {
        let (is_big_endian, nanoseconds_per_tick) = match header[..4] {
            [0xd4, 0xc3, 0xb2, 0xa1] => (false, 1000),
            [0x4d, 0x3c, 0xb2, 0xa1] => (false, 1),
            [0xa1, 0xb2, 0xc3, 0xd4] => (true, 1000),
            [0xa1, 0xb2, 0x3c, 0x4d] => (true, 1),
            [0x0a, 0x0d, 0x0d, 0x0a] => return Err("this is pcapng, pcap is expected".to_owned()),
            _ => return Err("this is not a pcap file: its first four bytes are unknown".to_owned()),
        };
        Ok(Format { is_big_endian, nanoseconds_per_tick })
    }

    fn word(self, bytes: &[u8]) -> u32 {
        let bytes = bytes.try_into().unwrap_or_default();
        if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }
}

impl QueuePair for StreamPort {
    /// Gives the frame that [`QueuePair::next_arrival_ns`] spoke of, and no other: frames of other streams may be earlier.
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        let Some(input) = &mut self.input else { return Ok(Received::End) };
        match std::mem::replace(&mut input.next, Next::Unknown) {
            Next::Unknown => Ok(Received::Idle),
            Next::End => Ok(Received::End),
            Next::Damage(error) => {
                input.next = Next::End;
                Err(error)
            }
            Next::Frame { timestamp_ns, length, is_cut } => {
                let frame = &input.bytes[input.taken..input.taken + length];
                if length > MAX_FRAME {
                    self.statistics.rx_errors += 1;
                } else {
                    let packet = if batch.is_full() { None } else { pool.take() };
                    let Some(mut packet) = packet else {
                        input.next = Next::Frame { timestamp_ns, length, is_cut };
                        return Ok(Received::More);
                    };
                    packet.timestamp_ns = wall_clock_ns();
                    // A slot may have room for less than the longest frame. There is room in the batch.
                    if packet.set_frame(frame).is_err() {
                        self.statistics.rx_errors += 1;
                        pool.put(packet);
                    } else if batch.push(packet).is_ok() {
                        self.statistics.received(frame);
                        self.statistics.rx_truncated += u64::from(is_cut);
                    }
                }
                input.taken += length;
                Ok(Received::More)
            }
        }
    }

    /// Without an output file the frames are counted and go nowhere.
    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let (mut sent, mut result) = (0, Ok(()));
        for packet in batch.packets() {
            if let Some(output) = &mut self.output {
                result = output.write(wall_clock_ns(), packet.data());
                if result.is_err() {
                    break;
                }
            }
            sent += 1;
            self.statistics.sent(packet.data());
        }
        batch.recycle_first(sent, pool);
        result.map(|()| Transmitted { sent, refused: 0 })
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.output.as_mut().map_or(Ok(()), Output::flush)
    }

    fn poll_fd(&self) -> Option<RawFd> {
        self.input.as_ref().map(|input| input.file.as_raw_fd())
    }

    fn time_source(&self) -> TimeSource {
        TimeSource::Stamped
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        let input = self.input.as_mut()?;
        input.look();
        match input.next {
            Next::Frame { timestamp_ns, .. } => Some(timestamp_ns),
            Next::Unknown | Next::Damage(_) | Next::End => None,
        }
    }

    fn statistics(&self) -> PortStatistics {
        self.statistics
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::wait_until;
    use std::io::Write;
    use std::path::PathBuf;
    use std::process::Command;

    /// A folder of one test, removed with it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("millrace-stream-{test}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        fn pipe(&self, name: &str) -> String {
            let path = self.0.join(name).to_str().unwrap().to_owned();
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn header() -> Vec<u8> {
        let words = [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 65_535, 1];
        words.into_iter().flat_map(u32::to_le_bytes).collect()
    }

    fn record(seconds: u32, micros: u32, frame: &[u8]) -> Vec<u8> {
        let length = frame.len() as u32;
        let mut bytes: Vec<u8> =
            [seconds, micros, length, length].into_iter().flat_map(u32::to_le_bytes).collect();
        bytes.extend(frame);
        bytes
    }

    /// What a port gives now.
    fn now(port: &mut StreamPort) -> Result<(Vec<Vec<u8>>, Received), PortError> {
        let (mut pool, mut batch) = (PacketPool::new(8), Batch::new());
        loop {
            let has_come = port.next_arrival_ns().is_some();
            let received = port.receive(&mut batch, &mut pool)?;
            if !has_come {
                return Ok((batch.packets().iter().map(|packet| packet.data().to_vec()).collect(), received));
            }
        }
    }

    #[test]
    fn a_pipe_is_opened_before_its_writer_and_ends_with_it() {
        let folder = Folder::new("pipe");
        let (first, second) = (folder.pipe("a"), folder.pipe("b"));
        let [mut a, mut b] = [&first, &second].map(|path| StreamPort::open(path).unwrap());
        assert_eq!(now(&mut a).unwrap(), (vec![], Received::Idle));
        let mut writer = OpenOptions::new().write(true).open(&first).unwrap();
        assert_eq!(now(&mut a).unwrap(), (vec![], Received::Idle));
        // In pieces, as a pipe may give it.
        let bytes = [header(), record(1, 2, &[1, 2, 3]), record(1, 3, &[4])].concat();
        let (front, after) = bytes.split_at(30);
        writer.write_all(front).unwrap();
        assert_eq!(now(&mut a).unwrap(), (vec![], Received::Idle));
        writer.write_all(after).unwrap();
        assert_eq!(a.next_arrival_ns(), Some(1_000_002_000));
        assert_eq!(now(&mut a).unwrap(), (vec![vec![1, 2, 3], vec![4]], Received::Idle));
        drop(writer);
        // A process that another test starts has the pipe too, until it runs its own program.
        wait_until(&mut || now(&mut a).unwrap().1 == Received::End);
        assert_eq!(now(&mut a).unwrap(), (vec![], Received::End));
        assert_eq!(now(&mut b).unwrap(), (vec![], Received::Idle), "nobody has opened it");
        assert_eq!((a.statistics().rx_packets, a.statistics().rx_bytes), (2, 4));
    }

    #[test]
    fn damage_is_told_after_the_whole_packets() {
        let folder = Folder::new("damage");
        let path = folder.0.join("file").to_str().unwrap().to_owned();
        let cases: [(Vec<u8>, &str); 4] = [
            (b"#!/bin/sh and more than 24 bytes".to_vec(), "this is not a pcap file"),
            ([header(), record(1, 2, &[1; 30])[..20].to_vec()].concat(), "ends within"),
            ([header(), record(1, 1_000_000, &[1])].concat(), "more than a second"),
            ([header(), record(0, 0, &vec![1; MAX_RECORD as usize + 1])].concat(), "the limit is 262144"),
        ];
        for (content, reason) in cases {
            std::fs::write(&path, content).unwrap();
            let mut port = StreamPort::open(&path).unwrap();
            let message = now(&mut port).unwrap_err().to_string();
            assert!(message.contains(reason), "{message}");
            assert_eq!(now(&mut port).unwrap(), (vec![], Received::End), "once");
        }
        for args in ["", ",", "a,b,c"] {
            assert!(StreamPort::open(args).err().unwrap().to_string().contains("is expected"), "{args}");
        }
    }
}
