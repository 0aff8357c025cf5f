//! For tests: frames, and the checks that every driver of an interface passes.

use crate::kinds::FrameKinds;
use crate::link::note_change;
use crate::netns::{ip, veth_pair, wait_until_up};
use crate::port::{PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted};
use millrace_frames::{Batch, PacketPool};
use std::time::{Duration, Instant};

/// A frame to everyone, from a local address, of an EtherType for experiments (IEEE 802), filled with a mark.
pub(crate) fn frame(mark: u8, length: usize) -> Vec<u8> {
    let mut frame = frame_to([0xff; 6], length);
    frame[11] = mark;
    frame[14..].fill(mark);
    frame
}

/// A frame to an address.
pub(crate) fn frame_to(address: [u8; 6], length: usize) -> Vec<u8> {
    let mut frame = vec![0; length];
    frame[..6].copy_from_slice(&address);
    frame[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 0, 0x88, 0xb5]);
    frame
}

/// Hands frames to a port, and lets go of those that it refuses.
pub(crate) fn send(port: &mut dyn QueuePair, pool: &mut PacketPool, frames: &[Vec<u8>]) -> Transmitted {
    let mut batch = Batch::new();
    for frame in frames {
        batch.add(pool).unwrap().set_frame(frame).unwrap();
    }
    let transmitted = port.transmit(&mut batch, pool).unwrap();
    port.flush().unwrap();
    port.complete(pool);
    assert_eq!(batch.len(), transmitted.refused);
    batch.recycle(pool);
    transmitted
}

/// Receives until so many frames are there, or for a second.
pub(crate) fn receive(port: &mut dyn QueuePair, pool: &mut PacketPool, count: usize) -> Vec<Vec<u8>> {
    let deadline = Instant::now() + Duration::from_secs(1);
    let mut frames = Vec::new();
    let mut batch = Batch::new();
    while frames.len() < count && Instant::now() < deadline {
        if port.receive(&mut batch, pool).unwrap() == Received::Idle && batch.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        frames.extend(batch.packets().iter().map(|packet| packet.data().to_vec()));
        batch.recycle(pool);
    }
    frames
}

/// Waits a second at most.
pub(crate) fn wait_until(done: &mut dyn FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(1);
    while !done() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What opens an interface.
pub(crate) type Open<'o> = &'o dyn Fn(&str) -> Result<Box<dyn QueuePair>, PortError>;

/// Frames of many lengths pass in both directions over a veth pair whose other end `kernel` has, and are counted by kind.
/// `copied`: of those sent, as many as the driver copies.
pub(crate) fn frames_pass_both_ways(open: Open<'_>, kernel: Open<'_>, copied: u64) {
    veth_pair("va", "vb");
    let mut pool = PacketPool::new(200);
    let (mut a, mut b) = (kernel("va").unwrap(), open("vb").unwrap());
    assert_eq!(b.time_source(), TimeSource::Wall);
    assert_eq!(b.receive(&mut Batch::new(), &mut pool).unwrap(), Received::Idle);
    let mut there: Vec<Vec<u8>> = (0..58).map(|mark| frame(mark, 14 + usize::from(mark) * 24)).collect();
    there.push(frame_to([1, 0, 0x5e, 0, 0, 1], 60));
    there.push(frame_to([2, 0, 0, 0, 0, 9], 1514));
    assert_eq!(send(&mut *a, &mut pool, &there), Transmitted { sent: 60, refused: 0 });
    assert_eq!(receive(&mut *b, &mut pool, 60), there);
    assert_eq!(send(&mut *b, &mut pool, &there), Transmitted { sent: 60, refused: 0 });
    assert_eq!(receive(&mut *a, &mut pool, 60), there, "and nothing of what a itself sent");
    let bytes: u64 = there.iter().map(|frame| frame.len() as u64).sum();
    // Lengths are 14 + 24 n with n below 58, 60 and 1514; four bytes more on a cable: 18 and 42; 64; 66, 90 and 114; 138 to 234 by 24;
    // 258 to 498; 522 to 1002; 1026 to 1386 and 1518.
    let kinds = FrameKinds { multicast: 1, broadcast: 58, sizes: [2, 1, 3, 5, 11, 21, 17, 0] };
    assert_eq!(kinds.frames(), 60);
    let expected = PortStatistics {
        rx_packets: 60,
        rx_bytes: bytes,
        rx_kinds: kinds,
        tx_packets: 60,
        tx_bytes: bytes,
        tx_copied: copied,
        tx_kinds: kinds,
        ..PortStatistics::default()
    };
    assert_eq!(b.statistics(), expected);
    wait_until(&mut || b.in_flight() == 0);
    assert_eq!(b.in_flight(), 0);
}

/// Frames longer than the MTU and shorter than a header are refused, the others pass.
pub(crate) fn frames_that_the_link_does_not_take_are_refused(open: Open<'_>) {
    veth_pair("va", "vb");
    let mut pool = PacketPool::new(200);
    let (mut a, mut b) = (open("va").unwrap(), open("vb").unwrap());
    let frames = [frame(1, 1518), vec![0; 13], frame(2, 1519), frame(3, 64)];
    assert_eq!(send(&mut *a, &mut pool, &frames), Transmitted { sent: 2, refused: 2 });
    assert_eq!(receive(&mut *b, &mut pool, 2), [frame(1, 1518), frame(3, 64)]);
    let statistics = a.statistics();
    assert_eq!((statistics.tx_packets, statistics.tx_refused, statistics.tx_kinds.frames()), (2, 2, 2));
    assert_eq!([13, 14, 1518, 1519].map(|length| a.takes_length(length)), [false, true, true, false]);
}

/// The longest frames of an MTU pass.
pub(crate) fn long_frames_pass(open: Open<'_>, mtu: usize) {
    veth_pair("va", "vb");
    ip(&format!("link set va mtu {mtu}"));
    ip(&format!("link set vb mtu {mtu}"));
    let mut pool = PacketPool::new(200);
    let (mut a, mut b) = (open("va").unwrap(), open("vb").unwrap());
    let frames = [frame(1, mtu + 14), frame(2, 60), frame(3, mtu + 18)];
    assert_eq!(send(&mut *a, &mut pool, &frames).sent, 3);
    assert_eq!(receive(&mut *b, &mut pool, 3), frames);
}

/// An interface that goes away is an error, and one that goes down is not.
pub(crate) fn an_interface_goes_down_and_away(open: Open<'_>, kernel: Open<'_>) {
    veth_pair("va", "vb");
    let mut pool = PacketPool::new(200);
    let (mut a, mut b) = (kernel("va").unwrap(), open("vb").unwrap());
    ip("link set vb down");
    assert_eq!(b.receive(&mut Batch::new(), &mut pool).unwrap(), Received::Idle);
    // Nobody watches links here: the answer of the kernel tells the port of it.
    let refused = (0..100).map(|_| send(&mut *b, &mut pool, &[frame(1, 60)]).refused).sum::<usize>();
    assert!(refused >= 98 && b.is_link_down(), "{refused}");
    ip("link set vb up");
    wait_until_up("va");
    wait_until_up("vb");
    std::thread::sleep(Duration::from_millis(20));
    send(&mut *a, &mut pool, &[frame(1, 60)]);
    assert_eq!(receive(&mut *b, &mut pool, 1), [frame(1, 60)]);
    assert_eq!(send(&mut *b, &mut pool, &[frame(2, 60)]).sent, 1);
    // The first ones may have waited in the ring until the link was up.
    wait_until(&mut || receive(&mut *a, &mut pool, 1).pop() == Some(frame(2, 60)));
    ip("link del va");
    // Nobody watches links here either: it is one in so many questions that asks the socket.
    let error = (0..100).find_map(|_| b.receive(&mut Batch::new(), &mut pool).err()).unwrap();
    assert!(error.to_string().starts_with("cannot use interface vb: No such device"), "{error}");
}

/// An interface that gets another name is the same, and another one may have its name then.
pub(crate) fn an_interface_gets_another_name(open: Open<'_>) {
    veth_pair("va", "vb");
    let mut pool = PacketPool::new(200);
    let (mut a, mut b) = (open("va").unwrap(), open("vb").unwrap());
    ip("link set vb down");
    ip("link set vb name vc");
    veth_pair("vb", "vd");
    ip("link set vb down");
    ip("link set vc up");
    wait_until_up("va");
    wait_until_up("vc");
    note_change();
    assert_eq!(b.receive(&mut Batch::new(), &mut pool).unwrap(), Received::Idle);
    assert!(!b.is_link_down());
    assert_eq!(send(&mut *b, &mut pool, &[frame(1, 60)]).sent, 1);
    assert_eq!(receive(&mut *a, &mut pool, 1), [frame(1, 60)]);
    ip("link set vc mtu 1000");
    note_change();
    assert_eq!(b.receive(&mut Batch::new(), &mut pool).unwrap(), Received::Idle);
    assert_eq!(
        send(&mut *b, &mut pool, &[frame(2, 1018), frame(3, 1019)]),
        Transmitted { sent: 1, refused: 1 }
    );
}

/// Frames for a link without a carrier are refused until it has one.
pub(crate) fn frames_for_a_link_that_is_down_are_refused(open: Open<'_>) {
    veth_pair("va", "vb");
    let mut pool = PacketPool::new(200);
    // The peer of `va` goes down: `va` has no carrier then. Nobody watches links here, so the port asks for itself.
    ip("link set vb down");
    let mut a = open("va").unwrap();
    assert!(a.is_link_down());
    assert_eq!(send(&mut *a, &mut pool, &[frame(1, 60)]), Transmitted { sent: 0, refused: 1 });
    ip("link set vb up");
    wait_until_up("va");
    let mut b = open("vb").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(send(&mut *a, &mut pool, &[frame(2, 60)]), Transmitted { sent: 1, refused: 0 });
    assert!(!a.is_link_down());
    assert_eq!(receive(&mut *b, &mut pool, 1), [frame(2, 60)]);
}
