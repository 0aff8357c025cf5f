//! The `pcap` driver: frames from a capture file, frames to a capture file.
//!
//! Reads pcap files with times in micro- or nanoseconds and of either byte order, and pcapng. The run is deterministic: the
//! times in the input are the clock ([`TimeSource::Simulated`]), the port ends with its input, and the output is a pcap file
//! with the byte order, the resolution and the link type of the input (of pcapng nanoseconds; little-endian microseconds and
//! Ethernet without one), with each packet's [`millrace_frames::Packet::timestamp_ns`].

use crate::capture_file::{CaptureFile, CaptureFileError, Record};
use crate::port::{PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted};
use millrace_frames::{Batch, MAX_FRAME, PacketPool};
use pcap_file::pcap::PcapHeader;
use pcap_file::{Endianness, PcapError, TsResolution};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::os::fd::RawFd;
use std::os::unix::fs::MetadataExt;

/// What the output says is the longest record.
const OUTPUT_SNAPLEN: u32 = 65_535;

/// Bytes before the records of a file.
pub(crate) const FILE_HEADER_BYTES: u64 = 24;
/// Bytes before each frame.
pub(crate) const RECORD_HEADER_BYTES: usize = 16;

/// A port over capture files.
pub struct PcapPort {
    input: Option<Input>,
    output: Option<Output>,
    statistics: PortStatistics,
}

struct Input {
    path: String,
    reader: CaptureFile<BufReader<File>>,
    /// Whole packets read.
    packets: u64,
    next: Next,
    /// The frame that `next` speaks of. The buffer is used again and again.
    frame: Vec<u8>,
    latest_ns: u64,
}

/// What the input holds next.
enum Next {
    Frame { timestamp_ns: u64, original_length: u32 },
    Damage(PortError),
    End,
}

pub(crate) struct Output {
    path: String,
    writer: BufWriter<File>,
    endianness: Endianness,
    nanoseconds_per_tick: u64,
}

impl PcapPort {
    /// Opens `IN`, `IN,OUT` or `,OUT`. An output file that exists is replaced.
    ///
    /// # Errors
    /// [`PortError`]: no such file, not a capture file, or the output is the input.
    pub fn open(args: &str) -> Result<PcapPort, PortError> {
        let mut paths = args.split(',');
        let (input, output) = (paths.next().unwrap_or(""), paths.next().unwrap_or(""));
        if paths.next().is_some() || (input.is_empty() && output.is_empty()) {
            let reason = format!("IN, IN,OUT or ,OUT is expected, not `{args}`");
            return Err(PortError::Arguments { driver: "pcap", reason });
        }
        let input = if input.is_empty() { None } else { Some(Input::open(input)?) };
        let header = input.as_ref().map(|input| input.reader.header());
        let output = match output {
            "" => None,
            path if input.as_ref().is_some_and(|input| is_same_file(&input.path, path)) => {
                let reason = format!("the output `{path}` is the input");
                return Err(PortError::Arguments { driver: "pcap", reason });
            }
            path => Some(Output::create(path, header)?),
        };
        Ok(PcapPort { input, output, statistics: PortStatistics::default() })
    }
}

fn is_same_file(one: &str, other: &str) -> bool {
    let identity = |path| std::fs::metadata(path).map(|data| (data.dev(), data.ino())).ok();
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

impl Input {
    fn open(path: &str) -> Result<Input, PortError> {
        let file = File::open(path).map_err(|error| PortError::system(format!("open {path}"), error))?;
        let reader = CaptureFile::new(BufReader::new(file)).map_err(|error| port_error(path, 0, error))?;
        let mut input = Input {
            path: path.to_owned(),
            reader,
            packets: 0,
            next: Next::End,
            frame: Vec::new(),
            latest_ns: 0,
        };
        input.read_ahead();
        Ok(input)
    }

    /// Reads the next record. Times never run backwards: an earlier one than the last becomes the last.
    fn read_ahead(&mut self) {
        self.next = match self.reader.next(&mut self.frame) {
            Ok(None) => Next::End,
            Err(error) => Next::Damage(port_error(&self.path, self.packets, error)),
            Ok(Some(Record { timestamp_ns, original_length })) => {
                self.latest_ns = self.latest_ns.max(timestamp_ns);
                self.packets += 1;
                Next::Frame { timestamp_ns: self.latest_ns, original_length }
            }
        };
    }

    fn next_arrival_ns(&self) -> Option<u64> {
        match self.next {
            Next::Frame { timestamp_ns, .. } => Some(timestamp_ns),
            // Damage is met when the port is next asked for frames: at the time of the last one.
            Next::Damage(_) => Some(self.latest_ns),
            Next::End => None,
        }
    }

    fn receive(
        &mut self,
        batch: &mut Batch,
        pool: &mut PacketPool,
        statistics: &mut PortStatistics,
    ) -> Result<Received, PortError> {
        loop {
            let (timestamp_ns, original_length) = match &self.next {
                Next::Frame { timestamp_ns, original_length } => (*timestamp_ns, *original_length),
                Next::End => return Ok(Received::End),
                Next::Damage(_) => match std::mem::replace(&mut self.next, Next::End) {
                    Next::Damage(error) => return Err(error),
                    Next::Frame { .. } | Next::End => return Ok(Received::End),
                },
            };
            if self.frame.len() > MAX_FRAME {
                statistics.rx_errors += 1;
                self.read_ahead();
                continue;
            }
            if batch.is_full() {
                return Ok(Received::More);
            }
            let Some(mut packet) = pool.take() else { return Ok(Received::More) };
            packet.timestamp_ns = timestamp_ns;
            // A slot may have room for less than the longest frame. There is room in the batch.
            if packet.set_frame(&self.frame).is_err() {
                statistics.rx_errors += 1;
                pool.put(packet);
            } else if batch.push(packet).is_ok() {
                statistics.received(&self.frame);
                statistics.rx_truncated += u64::from(original_length as usize > self.frame.len());
            }
            self.read_ahead();
        }
    }
}

fn port_error(path: &str, packets: u64, error: CaptureFileError) -> PortError {
    match error {
        CaptureFileError::System(error) => PortError::system(format!("read {path}"), error),
        CaptureFileError::Damage(reason) => PortError::Capture { path: path.to_owned(), packets, reason },
    }
}

impl Output {
    pub(crate) fn create(path: &str, like: Option<PcapHeader>) -> Result<Output, PortError> {
        let file = File::create(path).map_err(|error| PortError::system(format!("create {path}"), error))?;
        let like = like.unwrap_or(PcapHeader { endianness: Endianness::Little, ..PcapHeader::default() });
        let header = file_header(like);
        let mut writer = BufWriter::new(file);
        write_header(&header, &mut writer)
            .map_err(|error| PortError::system(format!("write {path}"), error))?;
        Ok(Output {
            path: path.to_owned(),
            writer,
            endianness: header.endianness,
            nanoseconds_per_tick: nanoseconds_per_tick(header.ts_resolution),
        })
    }

    pub(crate) fn write(&mut self, timestamp_ns: u64, frame: &[u8]) -> Result<(), PortError> {
        let header = record_header(self.endianness, self.nanoseconds_per_tick, timestamp_ns, frame.len());
        let written = self.writer.write_all(&header).and_then(|()| self.writer.write_all(frame));
        written.map_err(|error| PortError::system(format!("write {}", self.path), error))
    }

    pub(crate) fn flush(&mut self) -> Result<(), PortError> {
        self.writer.flush().map_err(|error| PortError::system(format!("write {}", self.path), error))
    }
}

/// The header of a file that is written now, with the rest like another one.
pub(crate) fn file_header(like: PcapHeader) -> PcapHeader {
    PcapHeader {
        version_major: 2,
        version_minor: 4,
        ts_correction: 0,
        ts_accuracy: 0,
        snaplen: OUTPUT_SNAPLEN,
        ..like
    }
}

/// Writes the header of a file.
pub(crate) fn write_header(header: &PcapHeader, to: &mut impl Write) -> std::io::Result<()> {
    header.write_to(to).map(|_| ()).map_err(|error| match error {
        PcapError::IoError(error) => error,
        other => std::io::Error::other(other.to_string()),
    })
}

/// The header of a frame.
pub(crate) fn record_header(
    endianness: Endianness,
    nanoseconds_per_tick: u64,
    timestamp_ns: u64,
    length: usize,
) -> [u8; RECORD_HEADER_BYTES] {
    // The format has 32 bits for the seconds: times after the year 2106 stay at its end.
    let seconds = u32::try_from(timestamp_ns / 1_000_000_000).unwrap_or(u32::MAX);
    let ticks = (timestamp_ns % 1_000_000_000 / nanoseconds_per_tick) as u32;
    let length = length as u32;
    let mut header = [0; RECORD_HEADER_BYTES];
    for (place, number) in header.chunks_exact_mut(4).zip([seconds, ticks, length, length]) {
        place.copy_from_slice(&match endianness {
            Endianness::Big => number.to_be_bytes(),
            Endianness::Little => number.to_le_bytes(),
        });
    }
    header
}

/// Calls `each` with the frames of a capture file, in order, until it ends or fails.
pub(crate) fn read_frames(
    path: &str,
    mut each: impl FnMut(&[u8]) -> Result<(), PortError>,
) -> Result<(), PortError> {
    let mut input = Input::open(path)?;
    loop {
        match std::mem::replace(&mut input.next, Next::End) {
            Next::Frame { .. } => each(&input.frame)?,
            Next::Damage(error) => return Err(error),
            Next::End => return Ok(()),
        }
        input.read_ahead();
    }
}

fn nanoseconds_per_tick(resolution: TsResolution) -> u64 {
    match resolution {
        TsResolution::MicroSecond => 1000,
        TsResolution::NanoSecond => 1,
    }
}

impl QueuePair for PcapPort {
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        match &mut self.input {
            Some(input) => input.receive(batch, pool, &mut self.statistics),
            None => Ok(Received::End),
        }
    }

    /// Without an output file the frames are counted and go nowhere.
    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let mut sent = 0;
        let mut result = Ok(());
        for packet in batch.packets() {
            if let Some(output) = &mut self.output {
                result = output.write(packet.timestamp_ns, packet.data());
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
        match &mut self.output {
            Some(output) => output.flush(),
            None => Ok(()),
        }
    }

    fn poll_fd(&self) -> Option<RawFd> {
        None
    }

    fn time_source(&self) -> TimeSource {
        TimeSource::Simulated
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        self.input.as_ref().and_then(Input::next_arrival_ns)
    }

    fn statistics(&self) -> PortStatistics {
        self.statistics
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture_file::MAX_RECORD;
    use millrace_frames::Packet;
    use std::path::PathBuf;

    /// A folder of one test, removed with it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("millrace-pcap-{test}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        fn file(&self, name: &str, content: &[u8]) -> String {
            let path = self.path(name);
            std::fs::write(&path, content).unwrap();
            path
        }

        fn path(&self, name: &str) -> String {
            self.0.join(name).to_str().unwrap().to_owned()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Seconds, ticks, captured length, length, data.
    type Record<'a> = (u32, u32, u32, u32, &'a [u8]);

    /// A capture file by the words of its format.
    fn capture(big: bool, magic: u32, link: u32, records: &[Record]) -> Vec<u8> {
        let word = |number: u32| if big { number.to_be_bytes() } else { number.to_le_bytes() };
        let version = if big { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
        let mut file = [word(magic), version, word(0), word(0), word(65_535), word(link)].concat();
        for &(seconds, ticks, captured, length, data) in records {
            file.extend([seconds, ticks, captured, length].into_iter().flat_map(word));
            file.extend(data);
        }
        file
    }

    const MICRO: u32 = 0xa1b2_c3d4;
    const NANO: u32 = 0xa1b2_3c4d;

    fn receive_all(port: &mut PcapPort) -> Result<Vec<(u64, Vec<u8>)>, PortError> {
        let mut pool = PacketPool::new(8);
        let mut batch = Batch::with_limit(2);
        let mut frames = Vec::new();
        loop {
            let received = port.receive(&mut batch, &mut pool)?;
            frames.extend(batch.packets().iter().map(|packet| (packet.timestamp_ns, packet.data().to_vec())));
            batch.recycle(&mut pool);
            match received {
                Received::More => {}
                Received::End => return Ok(frames),
                Received::Idle => panic!("a file is never idle"),
            }
        }
    }

    fn open_error(args: &str) -> String {
        match PcapPort::open(args) {
            Ok(_) => panic!("{args} opened"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_copy_is_equal_to_the_byte_in_every_format() {
        let folder = Folder::new("copy");
        for (big, magic) in [(false, MICRO), (true, MICRO), (false, NANO), (true, NANO)] {
            let records: [Record; 3] =
                [(1, 999_999, 3, 3, &[1, 2, 3]), (2, 0, 1, 1, &[4]), (u32::MAX, 5, 0, 0, &[])];
            let content = capture(big, magic, 101, &records);
            let (from, to) = (folder.file("in.pcap", &content), folder.path("out.pcap"));
            let mut port = PcapPort::open(&format!("{from},{to}")).unwrap();
            let tick = if magic == MICRO { 1000 } else { 1 };
            assert_eq!(port.next_arrival_ns(), Some(1_000_000_000 + 999_999 * tick));

            let mut pool = PacketPool::new(8);
            let mut batch = Batch::new();
            assert_eq!(port.receive(&mut batch, &mut pool).unwrap(), Received::End);
            let times: Vec<u64> = batch.packets().iter().map(|packet| packet.timestamp_ns).collect();
            let last = u64::from(u32::MAX) * 1_000_000_000 + 5 * tick;
            assert_eq!(times, [1_000_000_000 + 999_999 * tick, 2_000_000_000, last]);
            let transmitted = port.transmit(&mut batch, &mut pool).unwrap();
            assert_eq!((transmitted, batch.len()), (Transmitted { sent: 3, refused: 0 }, 0));
            port.flush().unwrap();
            assert_eq!(std::fs::read(&to).unwrap(), content);
            assert_eq!(port.next_arrival_ns(), None);
            let statistics = port.statistics();
            assert_eq!((statistics.rx_packets, statistics.rx_bytes, statistics.tx_bytes), (3, 4, 4));
        }
    }

    #[test]
    fn an_output_alone_is_little_endian_ethernet_in_microseconds() {
        let folder = Folder::new("out");
        let to = folder.path("out.pcap");
        let mut port = PcapPort::open(&format!(",{to}")).unwrap();
        let (mut pool, mut batch) = (PacketPool::new(8), Batch::new());
        assert_eq!(port.receive(&mut batch, &mut pool).unwrap(), Received::End);
        let mut packet = Packet::from_frame(&[9, 8]).unwrap();
        packet.timestamp_ns = 3_000_001_999;
        batch.push(packet).unwrap();
        port.transmit(&mut batch, &mut pool).unwrap();
        drop(port);
        assert_eq!(std::fs::read(&to).unwrap(), capture(false, MICRO, 1, &[(3, 1, 2, 2, &[9, 8])]));
    }

    #[test]
    fn pcapng_comes_in_and_pcap_in_nanoseconds_goes_out() {
        let folder = Folder::new("pcapng");
        let word = |number: u32| number.to_le_bytes();
        let section = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28].map(word).concat();
        let interface = [1, 20, 1, 0, 20].map(word).concat();
        // 2.000003 s in microseconds.
        let packet = [6, 36, 0, 0, 2_000_003, 2, 60].map(word).concat();
        let packet = [packet, vec![1, 2, 0, 0], word(36).to_vec()].concat();
        let (from, to) =
            (folder.file("in.pcapng", &[section, interface, packet].concat()), folder.path("out.pcap"));
        let mut port = PcapPort::open(&format!("{from},{to}")).unwrap();
        assert_eq!(port.next_arrival_ns(), Some(2_000_003_000));
        let (mut pool, mut batch) = (PacketPool::new(8), Batch::new());
        assert_eq!(port.receive(&mut batch, &mut pool).unwrap(), Received::End);
        assert_eq!((port.statistics().rx_packets, port.statistics().rx_truncated), (1, 1));
        port.transmit(&mut batch, &mut pool).unwrap();
        port.flush().unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), capture(false, NANO, 1, &[(2, 3000, 2, 2, &[1, 2])]));
    }

    #[test]
    fn time_never_runs_backwards() {
        let folder = Folder::new("time");
        let content = capture(false, NANO, 1, &[(5, 7, 1, 1, &[1]), (4, 0, 1, 1, &[2]), (5, 8, 1, 1, &[3])]);
        let mut port = PcapPort::open(&folder.file("in.pcap", &content)).unwrap();
        let times: Vec<u64> = receive_all(&mut port).unwrap().iter().map(|(time, _)| *time).collect();
        assert_eq!(times, [5_000_000_007, 5_000_000_007, 5_000_000_008]);
    }

    #[test]
    fn cut_frames_are_counted_and_overlong_ones_dropped() {
        let folder = Folder::new("cut");
        let long = vec![1; MAX_FRAME + 1];
        let content = capture(
            false,
            MICRO,
            1,
            &[
                (0, 0, 2, 1500, &[1, 2]),
                (0, 1, long.len() as u32, long.len() as u32, &long),
                (0, 2, 1, 1, &[3]),
            ],
        );
        let mut port = PcapPort::open(&folder.file("in.pcap", &content)).unwrap();
        assert_eq!(receive_all(&mut port).unwrap(), [(0, vec![1, 2]), (2000, vec![3])]);
        let statistics = port.statistics();
        assert_eq!((statistics.rx_packets, statistics.rx_truncated, statistics.rx_errors), (2, 1, 1));
    }

    #[test]
    fn an_empty_pool_waits() {
        let folder = Folder::new("pool");
        let content = capture(false, MICRO, 1, &[(0, 0, 1, 1, &[1]), (0, 1, 1, 1, &[2])]);
        let mut port = PcapPort::open(&folder.file("in.pcap", &content)).unwrap();
        let (mut pool, mut batch) = (PacketPool::new(1), Batch::new());
        assert_eq!(port.receive(&mut batch, &mut pool).unwrap(), Received::More);
        assert_eq!(batch.len(), 1);
        batch.recycle(&mut pool);
        assert_eq!(port.receive(&mut batch, &mut pool).unwrap(), Received::End);
        assert_eq!(batch.packets()[0].data(), [2]);
    }

    #[test]
    fn files_that_are_no_captures_are_refused_in_words() {
        let folder = Folder::new("bad");
        let cases: [(&[u8], &str); 4] = [
            (&[], "the file is empty"),
            (&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0], "the file ends within the header of 24 bytes"),
            (&[0x0a, 0x0d, 0x0d, 0x0a, 0x1c], "the file ends within the header of its first section"),
            (&[b'x'; 100], "this is neither a pcap nor a pcapng file"),
        ];
        for (content, reason) in cases {
            let path = folder.file("in.pcap", content);
            let message = open_error(&path);
            assert!(message.starts_with(&path) && message.contains(reason), "{message}");
        }
        let absent = open_error(&folder.path("absent.pcap"));
        assert!(absent.starts_with("cannot open ") && absent.contains("No such file"), "{absent}");
    }

    #[test]
    fn a_damaged_file_gives_its_whole_packets_first() {
        let folder = Folder::new("damaged");
        let good: Record = (1, 0, 2, 2, &[1, 2]);
        let cases: [(Record, &str); 4] = [
            ((1, 1, 4, 4, &[1, 2]), "ends within a packet"),
            ((1, 1, u32::MAX, 4, &[1, 2]), "ends within a packet"),
            ((1, 1, MAX_RECORD + 1, 4, &[0; 300_000]), "a packet of 262145 bytes, the limit is 262144"),
            ((1, 1_000_000, 2, 2, &[1, 2]), "more than a second"),
        ];
        for (record, reason) in cases {
            let path = folder.file("in.pcap", &capture(false, MICRO, 1, &[good, record]));
            let mut port = PcapPort::open(&path).unwrap();
            let (mut pool, mut batch) = (PacketPool::new(8), Batch::new());
            let message = port.receive(&mut batch, &mut pool).unwrap_err().to_string();
            assert!(message.contains(reason) && message.ends_with("(after 1 whole packets)"), "{message}");
            assert_eq!(batch.packets()[0].data(), [1, 2]);
            assert_eq!(port.receive(&mut batch, &mut pool).unwrap(), Received::End, "damage is told once");
        }
    }

    #[test]
    fn arguments_are_checked() {
        let folder = Folder::new("args");
        let path = folder.file("in.pcap", &capture(false, MICRO, 1, &[]));
        for args in ["", ",", "a,b,c"] {
            assert!(open_error(args).contains("IN, IN,OUT or ,OUT is expected"), "{args}");
        }
        assert!(open_error(&format!("{path},{path}")).ends_with("is the input"));
        assert!(PcapPort::open(&path).is_ok(), "and the input is still there");
    }
}
