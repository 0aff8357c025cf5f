//! The driver on devices in memory, on capture files, and on interfaces in network namespaces of the tests' own.

use super::device::DpdkDevice;
use super::memory::{MBUFS, Piece};
use super::queue::DpdkQueue;
use crate::af_packet::{PacketDevice, PacketQueue};
use crate::device::Device;
use crate::kinds::FrameKinds;
use crate::netns::{in_fresh_namespace, ip, veth_pair, wait_until_up};
use crate::port::{PortStatistics, QueuePair, Received};
use millrace_frames::{Batch, MAX_BATCH, Packet, PacketPool};
use pcap_file::pcap::{PcapPacket, PcapReader, PcapWriter};
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

fn device(args: &str) -> DpdkDevice {
    DpdkDevice::new(args).unwrap_or_else(|error| panic!("{args}: {error}"))
}

fn open(args: &str) -> DpdkQueue {
    device(args).queues(1).unwrap_or_else(|error| panic!("{args}: {error}")).remove(0)
}

/// The frame with a number after its header, and a length of its own.
fn numbered(number: u32, length: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..length).map(|at| (at as u32 ^ number) as u8).collect();
    // To everyone, of an EtherType for experiments (IEEE 802).
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&SOURCE);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame[14..18].copy_from_slice(&number.to_be_bytes());
    frame
}

/// Where the frames of the tests come from.
const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 1];

fn length_of(number: u32) -> usize {
    60 + (number as usize * 37) % 1455
}

/// Sends packets until all are taken.
fn send_all(port: &mut dyn QueuePair, pool: &mut PacketPool, batch: &mut Batch) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !batch.is_empty() {
        port.transmit(batch, pool).unwrap();
        port.flush().unwrap();
        assert!(Instant::now() < deadline, "the device takes no frames");
    }
}

fn send(port: &mut dyn QueuePair, pool: &mut PacketPool, frames: &[Vec<u8>]) {
    for frames in frames.chunks(MAX_BATCH) {
        let mut batch = Batch::new();
        frames.iter().for_each(|frame| batch.add(pool).unwrap().set_frame(frame).unwrap());
        send_all(port, pool, &mut batch);
    }
}

/// Receives until so many frames are there, or for two seconds.
fn receive(port: &mut dyn QueuePair, pool: &mut PacketPool, count: usize) -> Vec<Vec<u8>> {
    receive_if(port, pool, count, |_| true)
}

/// As [`receive`], where a kernel says something of its own accord between.
fn receive_numbered(port: &mut dyn QueuePair, pool: &mut PacketPool, count: usize) -> Vec<Vec<u8>> {
    receive_if(port, pool, count, |frame| frame.get(6..12) == Some(&SOURCE[..]))
}

fn receive_if(
    port: &mut dyn QueuePair,
    pool: &mut PacketPool,
    count: usize,
    is_wanted: fn(&[u8]) -> bool,
) -> Vec<Vec<u8>> {
    let deadline = Instant::now() + Duration::from_secs(2);
    let (mut frames, mut batch) = (Vec::new(), Batch::new());
    while frames.len() < count && Instant::now() < deadline {
        if port.receive(&mut batch, pool).unwrap() == Received::Idle && batch.is_empty() {
            std::thread::yield_now();
        }
        let wanted = batch.packets().iter().map(Packet::data).filter(|frame| is_wanted(frame));
        frames.extend(wanted.map(<[u8]>::to_vec));
        batch.recycle(pool);
    }
    frames
}

/// Whether all mbufs of a queue pair are in their pool, once the dropped packets are given to it.
fn assert_all_back(queue: &mut DpdkQueue) {
    queue.refill();
    assert_eq!(queue.piece().available(), MBUFS as usize);
}

fn assert_freed(piece: &Weak<Piece>) {
    // Tests next to this one may be looking at it.
    let deadline = Instant::now() + Duration::from_secs(5);
    while piece.strong_count() > 0 {
        super::memory::reap();
        assert!(Instant::now() < deadline, "the memory of a closed port stays");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_source_without_end_is_sent_where_it_lies_and_nothing_leaks() {
    let mut port = open("net_null1,size=100");
    let (mut pool, mut batch) = (PacketPool::new(200), Batch::new());
    let mut places = Vec::new();
    assert_all_back(&mut port);
    for round in 0..2000 {
        assert_eq!(port.receive(&mut batch, &mut pool).unwrap(), Received::More);
        assert_eq!(batch.len(), MAX_BATCH);
        assert!(batch.burst(&mut places).is_some(), "frames have their headroom");
        if round % 2 == 0 {
            send_all(&mut port, &mut pool, &mut batch);
        }
        batch.recycle(&mut pool);
    }
    let frames = 2000 * MAX_BATCH as u64;
    let expected = PortStatistics {
        rx_packets: frames,
        rx_bytes: frames * 100,
        tx_packets: frames / 2,
        tx_bytes: frames / 2 * 100,
        // 104 bytes on a cable, of zeros.
        rx_kinds: FrameKinds { sizes: [0, 0, frames, 0, 0, 0, 0, 0], ..FrameKinds::default() },
        tx_kinds: FrameKinds { sizes: [0, 0, frames / 2, 0, 0, 0, 0, 0], ..FrameKinds::default() },
        ..PortStatistics::default()
    };
    assert_eq!(port.statistics(), expected);
    assert_all_back(&mut port);
    assert_eq!(pool.available(), 200);
    let piece = Arc::downgrade(port.piece());
    drop(port);
    assert_freed(&piece);
}

#[test]
fn frames_go_round_a_ring_in_order_and_whole() {
    let mut port = open("net_ring1");
    let mut pool = PacketPool::new(200);
    let mut batch = Batch::new();
    let mut next = 0;
    while next < 512 {
        let frames: Vec<_> = (next..next + 64).map(|number| numbered(number, length_of(number))).collect();
        send(&mut port, &mut pool, &frames);
        next += 64;
    }
    assert_eq!(port.statistics().tx_copied, 512);
    // All of them again and again, from where they lie.
    let mut seen = 0;
    while seen < 100_000u32 {
        port.receive(&mut batch, &mut pool).unwrap();
        for packet in batch.packets() {
            let number = seen % 512;
            assert!(packet.data() == numbered(number, length_of(number)), "{seen}");
            seen += 1;
        }
        send_all(&mut port, &mut pool, &mut batch);
    }
    let statistics = port.statistics();
    assert_eq!((statistics.tx_copied, statistics.rx_errors, statistics.rx_missed), (512, 0, 0));
    assert_eq!(port.piece().available(), MBUFS as usize - 512);
    // A ring that is full refuses the rest in order.
    let held: Vec<_> = (0..1100).map(|number| numbered(number, 60)).collect();
    let (mut taken, mut left) = (0, Vec::new());
    for frames in held.chunks(MAX_BATCH) {
        frames.iter().for_each(|frame| batch.add(&mut pool).unwrap().set_frame(frame).unwrap());
        let transmitted = port.transmit(&mut batch, &mut pool).unwrap();
        taken += transmitted.sent;
        assert_eq!(transmitted.refused, batch.len());
        left.extend(batch.packets().iter().map(|packet| packet.data().to_vec()));
        batch.recycle(&mut pool);
    }
    assert!(taken < 600 && left == held[taken..], "{taken} taken");
    assert_eq!(port.statistics().tx_refused, left.len() as u64);
    assert_eq!(receive(&mut port, &mut pool, 512 + taken).split_off(512), held[..taken]);
    assert_all_back(&mut port);
    assert_eq!(pool.available(), 200);
}

#[test]
fn a_full_ring_gives_packets_back_that_lie_in_its_own_memory() {
    let (mut port, mut source) = (open("net_ring2"), open("net_null2,size=64"));
    let (mut pool, mut batch) = (PacketPool::new(100), Batch::new());
    let mut refused = 0;
    for _ in 0..32 {
        source.receive(&mut batch, &mut pool).unwrap();
        batch.packets()[0].data();
        refused += port.transmit(&mut batch, &mut pool).unwrap().refused;
        assert!(batch.packets().iter().all(|packet| packet.len() == 64 && packet.timestamp_ns != 0));
        batch.recycle(&mut pool);
    }
    assert!(refused > 0 && !port.is_link_down());
    let statistics = port.statistics();
    assert_eq!((statistics.tx_copied, statistics.tx_refused), (0, refused as u64));
    source.refill();
    assert_eq!(source.piece().available() as u64, u64::from(MBUFS) - statistics.tx_packets);
    // Its mbufs are in the ring of the other port when the source is closed.
    let piece = Arc::downgrade(source.piece());
    drop(source);
    super::memory::reap();
    assert!(piece.strong_count() > 0, "its memory is in use");
    let frames = receive(&mut port, &mut pool, statistics.tx_packets as usize);
    assert_eq!(frames.len() as u64, statistics.tx_packets);
    assert!(frames.iter().all(|frame| frame.len() == 64));
    assert_all_back(&mut port);
    // A worker that goes on looks again.
    port.receive(&mut batch, &mut pool).unwrap();
    assert_freed(&piece);
}

#[test]
fn headers_are_pushed_before_frames_that_lie_in_mbufs() {
    let mut port = open("net_ring3");
    let mut pool = PacketPool::new(100);
    let mut batch = Batch::new();
    for (header, copied) in [(100, 0), (129, 1)] {
        send(&mut port, &mut pool, &[numbered(1, 200)]);
        let before = port.statistics().tx_copied;
        while batch.is_empty() {
            port.receive(&mut batch, &mut pool).unwrap();
        }
        let mut packet = batch.drain().next().unwrap();
        packet.push(header).unwrap().fill(7);
        let expected = packet.data().to_vec();
        batch.push(packet).unwrap();
        send_all(&mut port, &mut pool, &mut batch);
        assert_eq!(port.statistics().tx_copied - before, copied, "{header}");
        assert_eq!(receive(&mut port, &mut pool, 1), [expected]);
    }
    // Too short and too long for the link.
    for length in [13, 1519] {
        batch.add(&mut pool).unwrap().set_frame(&vec![1; length]).unwrap();
        assert_eq!(port.transmit(&mut batch, &mut pool).unwrap().refused, 1);
        assert!(!port.takes_length(length));
        batch.recycle(&mut pool);
    }
    assert!(port.takes_length(14) && port.takes_length(1518));
    assert_all_back(&mut port);
}

#[test]
fn long_frames_pass_with_a_larger_mtu() {
    let mut port = open("net_ring4,mtu=9000");
    let mut pool = PacketPool::new(100);
    let frames: Vec<_> = [60, 1518, 4096, 9018].map(|length| numbered(3, length)).into();
    for _ in 0..2 {
        send(&mut port, &mut pool, &frames);
        assert_eq!(receive(&mut port, &mut pool, 4), frames);
    }
    assert_all_back(&mut port);
}

#[test]
fn two_queue_pairs_of_a_device_have_two_workers() {
    let device = device("net_ring5");
    if device.max_queues() < 2 {
        println!(
            "two_queue_pairs_of_a_device_have_two_workers: skipped, net_ring has a queue for each processor"
        );
        return;
    }
    let queues = device.queues(2).unwrap();
    let piece = Arc::downgrade(queues[1].piece());
    assert!(queues[0].remark().unwrap().contains("2 queues"));
    let worker = |mut port: DpdkQueue, first: u32| {
        move || {
            let mut pool = PacketPool::new(200);
            for round in 0..500 {
                let base = first + round * 64;
                let frames: Vec<_> =
                    (base..base + 64).map(|number| numbered(number, length_of(number))).collect();
                send(&mut port, &mut pool, &frames);
                assert_eq!(receive(&mut port, &mut pool, 64), frames);
            }
            assert_all_back(&mut port);
            assert_eq!(port.statistics().rx_packets, 32_000);
        }
    };
    let threads =
        queues.into_iter().zip([0, 1 << 20]).map(|(port, first)| std::thread::spawn(worker(port, first)));
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
    assert_freed(&piece);
}

#[test]
fn packets_are_dropped_on_other_threads() {
    let mut port = open("net_null6,size=60");
    let (mut pool, mut batch) = (PacketPool::new(100), Batch::new());
    let (sender, receiver) = std::sync::mpsc::sync_channel::<Packet>(1000);
    let thread = std::thread::spawn(move || receiver.into_iter().count());
    for _ in 0..500 {
        port.receive(&mut batch, &mut pool).unwrap();
        batch.drain().for_each(|packet| sender.send(packet).unwrap());
    }
    let piece = Arc::downgrade(port.piece());
    drop(port);
    drop(sender);
    assert!(thread.join().unwrap() > 400 * MAX_BATCH);
    assert_freed(&piece);
}

/// Writes and reads capture files without the driver of this crate.
fn write_capture(path: &std::path::Path, frames: &[Vec<u8>]) {
    let mut writer = PcapWriter::new(File::create(path).unwrap()).unwrap();
    for frame in frames {
        writer.write_packet(&PcapPacket::new(Duration::from_secs(1), frame.len() as u32, frame)).unwrap();
    }
}

fn read_capture(path: &std::path::Path) -> Vec<Vec<u8>> {
    let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
    std::iter::from_fn(|| Some(reader.next_packet()?.unwrap().data.into_owned())).collect()
}

#[test]
fn a_capture_file_goes_in_and_another_comes_out() {
    let directory = std::env::temp_dir().join(format!("millrace-dpdk-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (from, to) = (directory.join("in.pcap"), directory.join("out.pcap"));
    let mut frames: Vec<_> = (0..5000).map(|number| numbered(number, length_of(number))).collect();
    // Longer than one mbuf: it comes in several, and does not fit the link on its way out.
    frames.push(numbered(5000, 5000));
    write_capture(&from, &frames);
    let mut port = open(&format!("net_pcap1,rx_pcap={},tx_pcap={}", from.display(), to.display()));
    let (mut pool, mut batch) = (PacketPool::new(100), Batch::new());
    let mut received = 0;
    while received < frames.len() {
        port.receive(&mut batch, &mut pool).unwrap();
        for packet in batch.packets() {
            assert!(packet.data() == frames[received], "{received}");
            received += 1;
        }
        let long = batch.packets().iter().filter(|packet| packet.len() > 1518).count();
        assert_eq!(port.transmit(&mut batch, &mut pool).unwrap().refused, long);
        batch.recycle(&mut pool);
    }
    assert_eq!(port.receive(&mut batch, &mut pool).unwrap(), Received::Idle);
    let statistics = port.statistics();
    assert_eq!((statistics.tx_copied, statistics.tx_refused, statistics.rx_errors), (0, 1, 0));
    assert_all_back(&mut port);
    drop(port);
    assert!(read_capture(&to) == frames[..5000]);
    std::fs::remove_dir_all(&directory).unwrap();
}

/// One test at a time has interfaces: DPDK's driver for AF_XDP changes the environment, which commands inherit.
static INTERFACES: Mutex<()> = Mutex::new(());

/// The kernel's side of an interface.
fn packet(name: &str) -> PacketQueue {
    PacketDevice::new(name, 1).unwrap().queues(1).unwrap().remove(0)
}

/// Frames pass between a port and the kernel's side of its interface, in both directions.
fn exchange(port: &mut DpdkQueue, kernel: &mut PacketQueue) {
    let mut pool = PacketPool::new(300);
    let mut frames: Vec<_> = (0..5000).map(|number| numbered(number, length_of(number))).collect();
    // With a VLAN tag.
    frames[7][12..18].copy_from_slice(&[0x81, 0, 0x20, 5, 0x88, 0xb5]);
    for frames in frames.chunks(MAX_BATCH) {
        send(kernel, &mut pool, frames);
        let received = receive_numbered(port, &mut pool, frames.len());
        assert!(received == frames, "{} to the port", received.len());
        send(port, &mut pool, frames);
        let received = receive_numbered(kernel, &mut pool, frames.len());
        assert!(received == frames, "{} from the port", received.len());
    }
    let statistics = port.statistics();
    assert!(statistics.rx_packets >= 5000 && statistics.tx_packets == 5000);
    assert_eq!((statistics.rx_errors, statistics.rx_missed), (0, 0));
}

#[test]
fn frames_pass_over_a_tap_interface() {
    let _alone = INTERFACES.lock().unwrap_or_else(PoisonError::into_inner);
    in_fresh_namespace("frames_pass_over_a_tap_interface", || {
        let mut port = open("net_tap1,iface=mrtap1");
        ip("link set mrtap1 up");
        exchange(&mut port, &mut packet("mrtap1"));
        let piece = Arc::downgrade(port.piece());
        drop(port);
        assert_freed(&piece);
        assert!(!ip("link show").contains("mrtap1"), "the interface goes with the port");
    });
}

#[test]
fn frames_pass_over_a_veth_pair_by_af_packet() {
    let _alone = INTERFACES.lock().unwrap_or_else(PoisonError::into_inner);
    in_fresh_namespace("frames_pass_over_a_veth_pair_by_af_packet", || {
        veth_pair("va", "vb");
        let mut port = open("net_af_packet1,iface=vb,framesz=2048,blocksz=4096");
        exchange(&mut port, &mut packet("va"));
        assert_all_back(&mut port);
    });
}

#[test]
fn frames_pass_over_a_veth_pair_by_af_xdp() {
    let _alone = INTERFACES.lock().unwrap_or_else(PoisonError::into_inner);
    in_fresh_namespace("frames_pass_over_a_veth_pair_by_af_xdp", || {
        veth_pair("va", "vb");
        let device = match DpdkDevice::new("net_af_xdp1,iface=vb") {
            Ok(device) => device,
            Err(error) => return println!("frames_pass_over_a_veth_pair_by_af_xdp: skipped, {error}"),
        };
        let mut port = match device.queues(1) {
            Ok(mut ports) => ports.remove(0),
            Err(error) => return println!("frames_pass_over_a_veth_pair_by_af_xdp: skipped, {error}"),
        };
        wait_until_up("va");
        exchange(&mut port, &mut packet("va"));
    });
}

#[test]
fn a_device_is_refused_that_another_port_has_or_that_is_not_there() {
    let _first = open("net_null7");
    let refused = |args: &str| DpdkDevice::new(args).err().unwrap().to_string();
    assert_eq!(refused("net_null7"), "dpdk: cannot take device net_null7: another port has it");
    let absent = refused("net_absent0");
    assert!(absent.starts_with("dpdk: cannot take device net_absent0: "), "{absent}");
    let error = device("net_null8").queues(129).err().unwrap().to_string();
    assert_eq!(error, "dpdk:net_null8 opens to 1 to 128 queue pairs, not 129");
    drop(open("net_null8"));
    drop(open("net_null8"));
}
