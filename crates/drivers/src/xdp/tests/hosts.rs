//! Hosts that talk through two ports of the driver.

use super::*;
use crate::netns::finish_frames;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Connects two ports, frame for frame, until told to stop. Gives their statistics, the longest frame, and how many frames have a TCP
/// checksum that is not right.
fn cross_connect(mode: &str, stop: &AtomicBool) -> ([PortStatistics; 2], usize, usize) {
    let open =
        |name: &str| XdpDevice::new(&format!("{name},mode={mode}"), 2).unwrap().queues(1).unwrap().remove(0);
    let [mut left, mut right] = ["p0", "p1"].map(open);
    let (mut longest, mut wrong) = (0, 0);
    let mut pool = PacketPool::new(1024);
    let mut batch = Batch::new();
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..2 {
            left.receive(&mut batch, &mut pool).unwrap();
            for packet in batch.packets() {
                longest = longest.max(packet.len());
                wrong += usize::from(!has_right_checksum(packet.data()));
            }
            right.transmit(&mut batch, &mut pool).unwrap();
            right.flush().unwrap();
            right.complete(&mut pool);
            batch.recycle(&mut pool);
            std::mem::swap(&mut left, &mut right);
        }
    }
    ([left.statistics(), right.statistics()], longest, wrong)
}

/// Whether a TCP segment in IPv4 without options has a right checksum (RFC 9293, 3.1); so has any other frame.
fn has_right_checksum(frame: &[u8]) -> bool {
    if frame.len() < 54 || frame[12..15] != [8, 0, 0x45] || frame[23] != 6 {
        return true;
    }
    let total = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
    let segment = &frame[34..(14 + total).min(frame.len())];
    let words = |bytes: &[u8]| {
        bytes
            .chunks(2)
            .map(|word| u64::from(word[0]) << 8 | word.get(1).map_or(0, |low| u64::from(*low)))
            .sum::<u64>()
    };
    let mut sum = words(&frame[26..34]) + 6 + segment.len() as u64 + words(segment);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum == 0xffff
}

#[test]
fn tcp_passes_in_native_mode() {
    hosts_talk("tcp_passes_in_native_mode", "native");
}

#[test]
fn tcp_passes_in_generic_mode() {
    hosts_talk("tcp_passes_in_generic_mode", "generic");
}

/// Two hosts and a wire made of two ports between them. In native mode the hosts keep every offload that the kernel switches on; in
/// generic mode they finish their frames themselves.
fn hosts_talk(test: &str, mode: &'static str) {
    const AMOUNT: usize = 8 << 20;
    with_own_piece(test, move || {
        let (client, server) = (Host::new(), Host::new());
        for (host, port, inside) in [(&client, "p0", "h0"), (&server, "p1", "h1")] {
            veth_pair(port, inside);
            let number = if inside == "h0" { 1 } else { 2 };
            host.adopt(inside, &format!("10.8.0.{number}/24"));
            if mode == "generic" {
                host.start(move || finish_frames(inside)).wait();
            }
            wait_until_up(port);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let wire = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || cross_connect(mode, &stop)
        });
        let (ready, is_ready) = std::sync::mpsc::channel();
        let received = server.start(move || {
            let listener = TcpListener::bind("10.8.0.2:80").unwrap();
            ready.send(()).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut data = Vec::new();
            stream.read_to_end(&mut data).map(|_| data)
        });
        is_ready.recv().unwrap();
        let sent = client.start(move || {
            let data: Vec<u8> = (0..AMOUNT).map(|at| (at / 7) as u8).collect();
            let to = "10.8.0.2:80".parse().unwrap();
            let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(10))?;
            stream.set_write_timeout(Some(Duration::from_secs(20)))?;
            stream.write_all(&data)?;
            std::io::Result::Ok(data)
        });
        let sent = sent.wait().unwrap();
        assert!(received.wait().unwrap() == sent, "the bytes arrive");
        stop.store(true, Ordering::Relaxed);
        let (statistics, longest, wrong) = wire.join().unwrap();
        assert_eq!(wrong, 0, "checksums: {statistics:?}");
        assert!(statistics.iter().all(|port| port.tx_copied == 0 && port.rx_errors == 0), "{statistics:?}");
        assert_eq!(longest, 1514, "TCP fills its segments");
    });
}
