use super::*;
use crate::port::{PortError, PortStatistics, Received, TimeSource, Transmitted};
use millrace_frames::{Batch, Packet, PacketPool};
use pcap_file::TsResolution;
use pcap_file::pcap::PcapReader;
use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::time::Duration;

/// A folder of one test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("millrace-capture-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A port that has frames, with times, and takes all.
struct Source {
    frames: VecDeque<(u64, Vec<u8>)>,
    time: TimeSource,
}

impl QueuePair for Source {
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        while !batch.is_full() {
            let Some((timestamp_ns, frame)) = self.frames.pop_front() else { return Ok(Received::End) };
            let mut packet = pool.take().unwrap();
            packet.timestamp_ns = timestamp_ns;
            packet.set_frame(&frame).unwrap();
            batch.push(packet).unwrap();
        }
        Ok(Received::More)
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let sent = batch.len();
        batch.recycle(pool);
        Ok(Transmitted { sent, refused: 0 })
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn poll_fd(&self) -> Option<RawFd> {
        None
    }

    fn time_source(&self) -> TimeSource {
        self.time
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        None
    }

    fn statistics(&self) -> PortStatistics {
        PortStatistics::default()
    }
}

fn interface(text: &str) -> InterfaceSpec {
    text.parse().unwrap()
}

fn source(time: TimeSource, frames: &[(u64, &[u8])]) -> Box<dyn QueuePair> {
    let frames = frames.iter().map(|(time_ns, frame)| (*time_ns, frame.to_vec())).collect();
    Box::new(Source { frames, time })
}

/// The frames of a file, which says that its times are in nanoseconds.
fn read(path: &Path) -> Vec<(u64, Vec<u8>)> {
    let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
    assert_eq!(reader.header().ts_resolution, TsResolution::NanoSecond);
    std::iter::from_fn(|| {
        let packet = reader.next_packet()?.unwrap();
        Some((packet.timestamp.as_nanos() as u64, packet.data.into_owned()))
    })
    .collect()
}

/// A port with one queue pair.
fn watch(
    captures: &Captures,
    number: u32,
    interface: &InterfaceSpec,
    pair: Box<dyn QueuePair>,
) -> Box<dyn QueuePair> {
    captures.watch(number, interface, [pair]).pop().unwrap()
}

fn pass(port: &mut dyn QueuePair, limit: usize) {
    let (mut pool, mut batch) = (PacketPool::new(64), Batch::with_limit(limit));
    port.receive(&mut batch, &mut pool).unwrap();
    port.transmit(&mut batch, &mut pool).unwrap();
}

#[test]
fn frames_are_captured_while_the_capture_is_on() {
    let folder = Folder::new("on-off");
    let captures = Captures::new(Some(&folder.0), DEFAULT_CAPTURE_FILE).unwrap();
    let frames: Vec<(u64, Vec<u8>)> =
        (1..=4).map(|number| (1_700_000_000_000_000_000 + number, vec![number as u8; 60])).collect();
    let given: Vec<(u64, &[u8])> = frames.iter().map(|(time, frame)| (*time, frame.as_slice())).collect();
    let mut port = watch(&captures, 3, &interface("veth0"), source(TimeSource::Simulated, &given));
    pass(&mut *port, 1);
    let status = captures.start(3, None).unwrap();
    assert_eq!(status.incoming, folder.0.join("veth0_in.pcap"));
    assert_eq!(status.outgoing, folder.0.join("veth0_out.pcap"));
    assert!(matches!(captures.start(3, Some("again")), Err(CaptureError::On(3))));
    pass(&mut *port, 2);
    assert_eq!(captures.status().len(), 1);
    let ended = captures.stop(3).unwrap();
    assert_eq!((ended.packets, ended.lost), (4, 0));
    pass(&mut *port, 1);
    assert!(matches!(captures.stop(3), Err(CaptureError::Off(3))));
    assert_eq!(read(&status.incoming), frames[1..3]);
    assert_eq!(read(&status.outgoing), frames[1..3]);
    assert!(captures.status().is_empty());
}

#[test]
fn frames_that_go_out_have_the_time_of_now() {
    let folder = Folder::new("now");
    let captures = Captures::new(Some(&folder.0), DEFAULT_CAPTURE_FILE).unwrap();
    let mut port = watch(&captures, 0, &interface("null:-"), source(TimeSource::Wall, &[(5, &[1; 14])]));
    let status = captures.start(0, None).unwrap();
    assert_eq!(status.incoming, folder.0.join("port0_in.pcap"));
    pass(&mut *port, 1);
    drop(captures);
    assert_eq!(read(&status.incoming)[0].0, 5);
    assert!(read(&status.outgoing)[0].0 > 1_700_000_000_000_000_000, "after 2023");
}

#[test]
fn what_the_disk_is_too_slow_for_is_counted() {
    let counts = Arc::new(Counts::default());
    let (bytes, mut written) = rtrb::RingBuffer::new(100);
    let mut lane = Lane::new(bytes, Arc::clone(&counts), &Room::of(DEFAULT_CAPTURE_FILE));
    let packet = Packet::from_frame(&[7; 30]).unwrap();
    let read = |counts: &Counts| (counts.taken.load(Ordering::Relaxed), counts.lost.load(Ordering::Relaxed));
    // A record has 46 bytes: the third finds 8.
    lane.put([&packet; 3].into_iter().map(|packet| (packet, 1)), false);
    assert_eq!(read(&counts), (2, 1));
    let chunk = written.read_chunk(46).unwrap();
    assert_eq!(chunk.as_slices().0[..16], [0, 0, 0, 0, 1, 0, 0, 0, 30, 0, 0, 0, 30, 0, 0, 0]);
    chunk.commit_all();
    lane.put([(&packet, 2)].into_iter(), false);
    assert_eq!(read(&counts), (3, 1));
    // Nobody writes any more: waiting for room would have no end.
    drop(written);
    lane.put([(&packet, 3)].into_iter(), true);
    assert_eq!(read(&counts), (3, 2));
}

#[test]
fn a_replay_waits_for_the_disk() {
    let folder = Folder::new("whole");
    let captures = Captures::new(Some(&folder.0), DEFAULT_CAPTURE_FILE).unwrap();
    let frame = vec![9; 9000];
    let count = 2 * CAPTURE_RING / 9000;
    let frames: Vec<(u64, &[u8])> = (0..count as u64).map(|time| (time, frame.as_slice())).collect();
    let mut port = watch(&captures, 0, &interface("pcap:x"), source(TimeSource::Simulated, &frames));
    let status = captures.start(0, Some("big")).unwrap();
    (0..count.div_ceil(64)).for_each(|_| pass(&mut *port, 64));
    assert_eq!(captures.stop(0).unwrap().lost, 0);
    assert_eq!(read(&status.incoming).len(), count);
}

#[test]
fn files_have_a_largest_size() {
    let folder = Folder::new("size");
    // The header has 24 bytes, a record of this frame 116.
    let captures = Captures::new(Some(&folder.0), 24 + 2 * 116).unwrap();
    let frames: [(u64, &[u8]); 3] = [(1, &[0; 100]); 3];
    let mut port = watch(&captures, 0, &interface("pcap:x"), source(TimeSource::Simulated, &frames));
    let status = captures.start(0, None).unwrap();
    pass(&mut *port, 64);
    let ended = captures.stop(0).unwrap();
    assert_eq!((ended.packets, ended.lost), (4, 2));
    assert_eq!(std::fs::metadata(&status.incoming).unwrap().len(), 24 + 2 * 116);
    let refused = Captures::new(None, MAX_CAPTURE_FILE + 1).unwrap_err().to_string();
    assert_eq!(refused, "a capture file has at most 1099511627776 bytes, not 1099511627777");
}

#[test]
fn names_stay_in_the_folder() {
    let folder = Folder::new("names");
    let captures = Captures::new(Some(&folder.0), DEFAULT_CAPTURE_FILE).unwrap();
    watch(&captures, 0, &interface("veth0"), source(TimeSource::Wall, &[]));
    watch(&captures, 1, &interface("tap:veth0"), source(TimeSource::Wall, &[]));
    let long = "x".repeat(MAX_CAPTURE_NAME + 1);
    for name in ["", "..", ".hidden", "a/b", "/etc/passwd", "../x", "a\0b", "a b", "ä", &long] {
        let error = captures.start(0, Some(name)).unwrap_err();
        assert!(matches!(error, CaptureError::Name(_)), "{name}: {error}");
    }
    assert!(matches!(captures.start(2, None), Err(CaptureError::NoPort(2))));
    captures.start(0, Some("both")).unwrap();
    assert!(matches!(captures.start(1, Some("both")), Err(CaptureError::Taken(_))));
    // The name of the interface is taken, so the second port goes by its number.
    assert!(captures.start(1, None).unwrap().incoming.ends_with("port1_in.pcap"));
    captures.stop(1).unwrap();
    // A link could lead anywhere.
    std::os::unix::fs::symlink("/dev/null", folder.0.join("link_out.pcap")).unwrap();
    assert!(matches!(captures.start(1, Some("link")), Err(CaptureError::File(..))));
    let none = Captures::new(None, DEFAULT_CAPTURE_FILE).unwrap();
    watch(&none, 0, &interface("veth0"), source(TimeSource::Wall, &[]));
    assert!(matches!(none.start(0, None), Err(CaptureError::NoFolder)));
}

#[test]
fn a_port_that_is_gone_leaves_whole_files_and_its_name() {
    let folder = Folder::new("gone");
    let captures = Captures::new(Some(&folder.0), DEFAULT_CAPTURE_FILE).unwrap();
    let frames: [(u64, &[u8]); 1] = [(7, &[3; 14])];
    let mut port = watch(&captures, 0, &interface("veth0"), source(TimeSource::Wall, &frames));
    let status = captures.start(0, None).unwrap();
    pass(&mut *port, 1);
    drop(port);
    let ended = captures.forget(0).unwrap().unwrap();
    assert_eq!((ended.packets, ended.lost), (2, 0));
    assert_eq!(read(&status.incoming), [(7, vec![3; 14])]);
    assert!(captures.ports().is_empty() && captures.status().is_empty());
    assert!(matches!(captures.start(0, None), Err(CaptureError::NoPort(0))));
    assert!(captures.forget(0).unwrap().is_none());
    watch(&captures, 1, &interface("veth0"), source(TimeSource::Wall, &[]));
    assert_eq!(captures.start(1, None).unwrap().incoming, status.incoming);
}

#[test]
fn a_full_disk_is_told() {
    let writer = Writer::start().unwrap();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (bytes, written) = rtrb::RingBuffer::new(1000);
    let counts = Arc::new(Counts::default());
    let id = writer.add(full, vec![written], Arc::clone(&counts)).unwrap();
    writer.finish(id, Instant::now() + CAPTURE_END_TIME).unwrap().unwrap();
    assert!(counts.error.get().unwrap().contains("No space left"), "{counts:?}");
    assert!(bytes.is_abandoned());
}

/// A pipe that nobody reads would keep whoever opens it waiting, and whoever writes to it.
#[test]
fn what_is_no_file_is_not_opened() {
    let folder = Folder::new("pipe");
    let captures = Captures::new(Some(&folder.0), DEFAULT_CAPTURE_FILE).unwrap();
    watch(&captures, 0, &interface("veth0"), source(TimeSource::Wall, &[]));
    let pipe = folder.0.join("veth0_out.pcap");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let begun = Instant::now();
    let refused = captures.start(0, None).unwrap_err().to_string();
    assert!(refused.ends_with("it is there, and no regular file"), "{refused}");
    // Also while somebody reads it.
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(pipe).unwrap()
    });
    let reader = reader.join().unwrap();
    assert!(matches!(captures.start(0, None), Err(CaptureError::File(..))));
    drop(reader);
    std::fs::create_dir(folder.0.join("folder_in.pcap")).unwrap();
    assert!(matches!(captures.start(0, Some("folder")), Err(CaptureError::File(..))));
    // A file that is there is replaced, and a link to one is not.
    std::fs::write(folder.0.join("old_in.pcap"), [7; 1000]).unwrap();
    let status = captures.start(0, Some("old")).unwrap();
    captures.stop(0).unwrap();
    assert_eq!(std::fs::metadata(&status.incoming).unwrap().len(), 24);
    assert!(begun.elapsed() < CAPTURE_END_TIME);
}

#[test]
fn the_end_waits_for_no_writer_longer_than_its_time() {
    let (unread, pipe) = std::io::pipe().unwrap();
    let begun = Instant::now();
    let writer = Writer::start().unwrap();
    let (mut bytes, written) = rtrb::RingBuffer::new(1 << 20);
    let id = writer.add(std::os::fd::OwnedFd::from(pipe).into(), vec![written], Arc::default()).unwrap();
    let frame = (1 << 20) - 16;
    bytes.push_entire_slice(&crate::pcap::record_header(pcap_file::Endianness::Little, 1, 7, frame)).unwrap();
    bytes.push_entire_slice(&vec![7; frame]).unwrap();
    let ended = writer.finish(id, begun + Duration::from_millis(300)).unwrap();
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert!(begun.elapsed() < CAPTURE_END_TIME);
    drop(writer);
    assert!(begun.elapsed() < CAPTURE_END_TIME + Duration::from_secs(2));
    drop(unread);
}

/// Several workers capture into one file: every frame is there, whole, and each queue pair's are in their order.
#[test]
fn all_queue_pairs_of_a_port_are_captured() {
    let folder = Folder::new("pairs");
    let captures = Captures::new(Some(&folder.0), DEFAULT_CAPTURE_FILE).unwrap();
    let count = 2000u64;
    let frames: Vec<Vec<Vec<u8>>> = (0..3u8)
        .map(|pair| {
            (0..count)
                .map(|number| {
                    [&[pair][..], &number.to_le_bytes(), &vec![pair; number as usize % 700]].concat()
                })
                .collect()
        })
        .collect();
    let pairs = frames.iter().map(|frames| {
        let timed: Vec<(u64, &[u8])> = (0..).zip(frames.iter().map(Vec::as_slice)).collect();
        // Those of a replay wait for the disk.
        source(TimeSource::Simulated, &timed)
    });
    let pairs = captures.watch(4, &interface("veth9"), pairs);
    let status = captures.start(4, None).unwrap();
    std::thread::scope(|scope| {
        for mut pair in pairs {
            scope.spawn(move || (0..count.div_ceil(8)).for_each(|_| pass(&mut *pair, 8)));
        }
    });
    let ended = captures.stop(4).unwrap();
    assert_eq!((ended.packets, ended.lost), (2 * 3 * count, 0));
    for path in [&status.incoming, &status.outgoing] {
        let read = read(path);
        for (pair, frames) in (0..).zip(&frames) {
            let mine = read.iter().map(|(_, frame)| frame).filter(|frame| frame[0] == pair);
            assert!(mine.eq(frames), "{pair}");
        }
        assert_eq!(read.len(), 3 * count as usize);
    }
}

#[test]
fn a_port_between_switches_is_captured_with_the_times_of_its_switch() {
    let folder = Folder::new("inner");
    let captures = Captures::idle(Some(&folder.0), DEFAULT_CAPTURE_FILE).unwrap();
    let frames = VecDeque::from([(7, vec![1; 60]), (8, vec![2; 60])]);
    let mut port = captures.watch_inner(3, Source { frames, time: TimeSource::Wall });
    assert!(!folder.0.exists(), "nothing is made before the first capture");
    captures.start(3, None).unwrap();
    let (mut batch, mut pool) = (Batch::new(), PacketPool::new(4));
    port.receive(&mut batch, &mut pool).unwrap();
    port.transmit(&mut batch, &mut pool).unwrap();
    assert_eq!(captures.stop(3).unwrap().packets, 4);
    for way in ["in", "out"] {
        let file = std::fs::read(folder.0.join(format!("port3_{way}.pcap"))).unwrap();
        let mut file = crate::CaptureFile::new(&file[..]).unwrap();
        let mut frame = Vec::new();
        for first in [1, 2] {
            let record = file.next(&mut frame).unwrap().unwrap();
            assert!(record.timestamp_ns > 1_600_000_000_000_000_000, "{way}: {record:?}");
            assert_eq!(frame, [first; 60]);
        }
    }
    assert!(captures.forget(3).unwrap().is_none());
    assert!(matches!(captures.start(3, None), Err(CaptureError::NoPort(3))));
}
