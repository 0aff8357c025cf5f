//! Interfaces with several queue pairs, in network namespaces of the tests' own. Skipped without root.

use crate::af_packet::tests::open;
use crate::af_packet::{PacketDevice, PacketQueue};
use crate::kinds::FrameKinds;
use crate::link::note_change;
use crate::netns::{in_fresh_namespace, ip, veth_pair};
use crate::port::{PortStatistics, QueuePair, Transmitted};
use crate::testing::{frame, send, wait_until};
use millrace_frames::{Batch, PacketPool};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const FLOWS: u8 = 200;
/// Where [`datagram`] has its flow, and its number in the flow.
const FLOW_AT: usize = 35;
const NUMBER_AT: usize = 42;

/// The datagram of a flow with this number in it: Ethernet, IPv4 and UDP, told apart by the source port.
fn datagram(flow: u8, number: u8, length: usize) -> Vec<u8> {
    let mut frame = vec![0; length];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00]);
    // Version and length; length 28 + 18 of the data; protocol 17. Nobody checks the checksums.
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..40].copy_from_slice(&[0x40, flow, 0, 9, 0, 26]);
    frame[NUMBER_AT] = number;
    frame
}

fn queues(interface: &str, count: usize) -> Vec<PacketQueue> {
    PacketDevice::new(interface, 1).unwrap().queues(count).unwrap()
}

/// Receives at all queue pairs until so many frames are there and no more come: the frames of each, in order.
fn receive_all(queues: &mut [PacketQueue], pool: &mut PacketPool, count: usize) -> Vec<Vec<Vec<u8>>> {
    let mut frames = vec![Vec::new(); queues.len()];
    let mut batch = Batch::new();
    let (mut quiet_since, deadline) = (Instant::now(), Instant::now() + Duration::from_secs(5));
    while Instant::now() < deadline {
        for (queue, frames) in queues.iter_mut().zip(&mut frames) {
            queue.receive(&mut batch, pool).unwrap();
            if !batch.is_empty() {
                quiet_since = Instant::now();
            }
            frames.extend(batch.packets().iter().map(|packet| packet.data().to_vec()));
            batch.recycle(pool);
        }
        let all = frames.iter().map(Vec::len).sum::<usize>() >= count;
        if all && quiet_since.elapsed() > Duration::from_millis(50) {
            break;
        }
    }
    frames
}

/// Checks that each of so many frames of each flow came once, in order, at one queue pair: the queue pair of each flow.
fn queues_of_flows(received: &[Vec<Vec<u8>>], numbers: u8) -> Vec<usize> {
    let queue_of = |flow: u8| {
        let numbers_at = received.iter().map(|frames| {
            let of_flow = frames.iter().filter(|frame| frame[FLOW_AT] == flow);
            of_flow.map(|frame| frame[NUMBER_AT]).collect::<Vec<u8>>()
        });
        let found: Vec<(usize, Vec<u8>)> =
            numbers_at.enumerate().filter(|(_, numbers)| !numbers.is_empty()).collect();
        assert_eq!(found.len(), 1, "flow {flow}: {found:?}");
        assert_eq!(found[0].1, (0..numbers).collect::<Vec<u8>>(), "flow {flow}");
        found[0].0
    };
    (0..FLOWS).map(queue_of).collect()
}

fn send_flows(port: &mut PacketQueue, pool: &mut PacketPool, numbers: u8, length: usize) {
    for number in 0..numbers {
        let all: Vec<Vec<u8>> = (0..FLOWS).map(|flow| datagram(flow, number, length)).collect();
        for frames in all.chunks(50) {
            assert_eq!(send(port, pool, frames).sent, frames.len());
        }
    }
}

#[test]
fn each_frame_comes_once_and_those_of_a_flow_at_one_queue() {
    in_fresh_namespace("each_frame_comes_once", || {
        veth_pair("va", "vb");
        let mut pool = PacketPool::new(500);
        let mut a = open("va").unwrap();
        let mut b = queues("vb", 3);
        send_flows(&mut a, &mut pool, 5, 60);
        let received = receive_all(&mut b, &mut pool, 1000);
        let places = queues_of_flows(&received, 5);
        for queue in 0..3 {
            let flows = places.iter().filter(|place| **place == queue).count();
            assert!(flows > 20, "{flows} of {FLOWS} flows at queue {queue}");
            let statistics = b[queue].statistics();
            assert_eq!(statistics.rx_packets, received[queue].len() as u64);
        }
        let mut sum = PortStatistics::default();
        b.iter().for_each(|queue| sum += queue.statistics());
        let all = FrameKinds { sizes: [0, 1000, 0, 0, 0, 0, 0, 0], ..FrameKinds::default() };
        let expected =
            PortStatistics { rx_packets: 1000, rx_bytes: 60_000, rx_kinds: all, ..PortStatistics::default() };
        assert_eq!(sum, expected);
    });
}

#[test]
fn each_queue_sends_and_none_receives_what_leaves_by_the_interface() {
    in_fresh_namespace("each_queue_sends", || {
        veth_pair("va", "vb");
        let mut pool = PacketPool::new(500);
        let mut a = queues("va", 1);
        let mut b = queues("vb", 3);
        for (queue, mark) in b.iter_mut().zip(1..) {
            assert_eq!(send(queue, &mut pool, &[frame(mark, 60)]), Transmitted { sent: 1, refused: 0 });
        }
        // Another user of the interface on this machine.
        let mut neighbour = open("vb").unwrap();
        send(&mut neighbour, &mut pool, &[frame(4, 60)]);
        let expected: Vec<Vec<u8>> = (1..5).map(|mark| frame(mark, 60)).collect();
        assert_eq!(receive_all(&mut a, &mut pool, 4), [expected]);
        assert_eq!(receive_all(&mut b, &mut pool, 0), vec![Vec::<Vec<u8>>::new(); 3]);
    });
}

#[test]
fn flows_stay_with_their_queues_when_rings_are_changed() {
    in_fresh_namespace("flows_stay_with_their_queues", || {
        veth_pair("va", "vb");
        let mut pool = PacketPool::new(500);
        let mut b = queues("vb", 3);
        let mut a = open("va").unwrap();
        send_flows(&mut a, &mut pool, 1, 60);
        let before = queues_of_flows(&receive_all(&mut b, &mut pool, 200), 1);
        ip("link set va mtu 9216");
        ip("link set vb mtu 9216");
        note_change();
        let mut changed = || {
            receive_all(&mut b, &mut pool, 0);
            b.iter().all(|queue| queue.next_ring.is_none() && !queue.ring.is_small_for(9216))
        };
        wait_until(&mut changed);
        assert!(changed());
        let mut a = open("va").unwrap();
        send_flows(&mut a, &mut pool, 2, 9000);
        let after = receive_all(&mut b, &mut pool, 400);
        assert_eq!(queues_of_flows(&after, 2), before);
    });
}

#[test]
fn no_frame_comes_twice_while_queues_open_and_change_their_rings() {
    in_fresh_namespace("no_frame_comes_twice", || {
        veth_pair("va", "vb");
        let stop = Arc::new(AtomicBool::new(false));
        // Frames that are numbered in four bytes, as fast as they go.
        let sender = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let mut a = open("va").unwrap();
                let mut pool = PacketPool::new(100);
                let mut numbers = 0..u32::MAX;
                while !stop.load(Ordering::Relaxed) {
                    let numbered = numbers.by_ref().take(20).map(|number| {
                        let mut frame = datagram(number as u8 % FLOWS, 0, 60);
                        frame[NUMBER_AT..NUMBER_AT + 4].copy_from_slice(&number.to_be_bytes());
                        frame
                    });
                    send(&mut a, &mut pool, &numbered.collect::<Vec<_>>());
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
        });
        let mut pool = PacketPool::new(500);
        let deadline = Instant::now() + Duration::from_secs(30);
        for _ in 0..5 {
            ip("link set vb mtu 1500");
            let mut seen = HashSet::new();
            let mut b = queues("vb", 3);
            ip("link set vb mtu 9216");
            note_change();
            let mut batch = Batch::new();
            let is_small = |queue: &PacketQueue| queue.ring.is_small_for(9216);
            while b.iter().any(is_small) || seen.len() < 2000 {
                assert!(Instant::now() < deadline, "{} frames", seen.len());
                for queue in &mut b {
                    queue.receive(&mut batch, &mut pool).unwrap();
                    for packet in batch.packets() {
                        let number = &packet.data()[NUMBER_AT..NUMBER_AT + 4];
                        assert!(seen.insert(number.to_vec()), "frame {number:?} came twice");
                    }
                    batch.recycle(&mut pool);
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        sender.join().unwrap();
    });
}

#[test]
fn two_users_of_an_interface_each_receive_all() {
    in_fresh_namespace("two_users_of_an_interface", || {
        veth_pair("va", "vb");
        let mut pool = PacketPool::new(500);
        let mut a = open("va").unwrap();
        let (mut one, mut other) = (queues("vb", 2), queues("vb", 3));
        send_flows(&mut a, &mut pool, 1, 60);
        queues_of_flows(&receive_all(&mut one, &mut pool, 200), 1);
        queues_of_flows(&receive_all(&mut other, &mut pool, 200), 1);
    });
}

#[test]
fn an_interface_that_is_down_opens_and_works_when_it_is_up() {
    in_fresh_namespace("an_interface_that_is_down_opens", || {
        veth_pair("va", "vb");
        ip("link set vb down");
        let mut pool = PacketPool::new(500);
        let mut b = queues("vb", 2);
        ip("link set vb up");
        crate::netns::wait_until_up("va");
        let mut a = open("va").unwrap();
        receive_all(&mut b, &mut pool, 0);
        send_flows(&mut a, &mut pool, 2, 60);
        queues_of_flows(&receive_all(&mut b, &mut pool, 400), 2);
    });
}
