//! The driver on veth pairs, in network namespaces of the tests' own. Skipped without root.

use super::*;
use crate::netns::{Host, in_fresh_namespace, ip, veth_pair, wait_until_up};
use crate::port::PortError;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn frame(mark: u8, length: usize) -> Vec<u8> {
    let mut frame = vec![mark; length];
    // To everyone, from a local address, of an EtherType for experiments (IEEE 802).
    frame[..14].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, mark, 0x88, 0xb5]);
    frame
}

fn send(port: &mut PacketPort, pool: &mut PacketPool, frames: &[Vec<u8>]) -> Transmitted {
    let mut batch = Batch::new();
    for frame in frames {
        let mut packet = pool.take().unwrap();
        packet.set_frame(frame).unwrap();
        batch.push(packet).unwrap();
    }
    let transmitted = port.transmit(&mut batch, pool).unwrap();
    port.flush().unwrap();
    assert_eq!(batch.len(), transmitted.refused);
    batch.recycle(pool);
    transmitted
}

/// Receives until so many frames are there, or for a second.
fn receive(port: &mut PacketPort, pool: &mut PacketPool, count: usize) -> Vec<Vec<u8>> {
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

#[test]
fn frames_pass_both_ways_and_own_ones_are_not_received() {
    in_fresh_namespace("frames_pass_both_ways", || {
        veth_pair("va", "vb");
        let mut pool = PacketPool::new(200);
        let (mut a, mut b) = (PacketPort::open("va").unwrap(), PacketPort::open("vb").unwrap());
        assert_eq!(a.time_source(), TimeSource::Wall);
        assert_eq!(a.receive(&mut Batch::new(), &mut pool).unwrap(), Received::Idle);

        let there: Vec<Vec<u8>> = (0..60).map(|mark| frame(mark, 14 + usize::from(mark) * 24)).collect();
        assert_eq!(send(&mut a, &mut pool, &there), Transmitted { sent: 60, refused: 0 });
        assert_eq!(receive(&mut b, &mut pool, 60), there);
        assert_eq!(send(&mut b, &mut pool, &[frame(99, 60)]), Transmitted { sent: 1, refused: 0 });
        assert_eq!(receive(&mut a, &mut pool, 1), [frame(99, 60)], "and nothing of what a itself sent");

        let bytes: u64 = there.iter().map(|frame| frame.len() as u64).sum();
        let expected = PortStatistics {
            rx_packets: 60,
            rx_bytes: bytes,
            tx_packets: 1,
            tx_bytes: 60,
            ..PortStatistics::default()
        };
        assert_eq!(b.statistics(), expected);
    });
}

#[test]
fn frames_that_the_link_does_not_take_are_refused() {
    in_fresh_namespace("frames_that_the_link_does_not_take", || {
        veth_pair("va", "vb");
        let mut pool = PacketPool::new(200);
        let (mut a, mut b) = (PacketPort::open("va").unwrap(), PacketPort::open("vb").unwrap());
        let frames = [frame(1, 1518), vec![0; 13], frame(2, 1519), frame(3, 64)];
        assert_eq!(send(&mut a, &mut pool, &frames), Transmitted { sent: 2, refused: 2 });
        assert_eq!(receive(&mut b, &mut pool, 2), [frame(1, 1518), frame(3, 64)]);
        assert_eq!((a.statistics().tx_packets, a.statistics().tx_refused), (2, 2));
    });
}

#[test]
fn jumbo_frames_pass() {
    in_fresh_namespace("jumbo_frames_pass", || {
        veth_pair("va", "vb");
        ip("link set va mtu 9216");
        ip("link set vb mtu 9216");
        let mut pool = PacketPool::new(200);
        let (mut a, mut b) = (PacketPort::open("va").unwrap(), PacketPort::open("vb").unwrap());
        let frames = [frame(1, 9216), frame(2, 60), frame(3, 9000)];
        assert_eq!(send(&mut a, &mut pool, &frames).sent, 3);
        assert_eq!(receive(&mut b, &mut pool, 3), frames);
    });
}

#[test]
fn frames_that_outgrow_their_slot_come_in_order_too() {
    in_fresh_namespace("frames_that_outgrow_their_slot", || {
        veth_pair("va", "vb");
        // Opened for 1500 bytes; the link learns of jumbo frames later.
        let mut b = PacketPort::open("vb").unwrap();
        ip("link set va mtu 9216");
        ip("link set vb mtu 9216");
        let mut a = PacketPort::open("va").unwrap();
        let mut pool = PacketPool::new(200);
        let frames = [frame(1, 60), frame(2, 9000), frame(3, 8000), frame(4, 61)];
        assert_eq!(send(&mut a, &mut pool, &frames).sent, 4);
        assert_eq!(receive(&mut b, &mut pool, 4), frames);
    });
}

#[test]
fn vlan_tags_are_put_back() {
    in_fresh_namespace("vlan_tags_are_put_back", || {
        veth_pair("va", "vb");
        let (mut a, mut b) = (PacketPort::open("va").unwrap(), PacketPort::open("vb").unwrap());
        let mut pool = PacketPool::new(200);
        let mut plain = frame(1, 60);
        plain[12..18].copy_from_slice(&[0x81, 0x00, 0x61, 0x23, 0x88, 0xb5]);
        let mut double = frame(2, 60);
        double[12..22].copy_from_slice(&[0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x00, 0x08, 0x88, 0xb5]);
        let frames = [plain, double];
        assert_eq!(send(&mut a, &mut pool, &frames).sent, 2);
        let aside = b.ring.arrival().map(|arrival| (arrival.length, arrival.vlan));
        assert_eq!(aside, Some((56, Some((0x8100, 0x6123)))), "the kernel keeps the tag aside");
        assert_eq!(receive(&mut b, &mut pool, 2), frames);
    });
}

#[test]
fn a_full_ring_refuses_and_recovers() {
    in_fresh_namespace("a_full_ring_refuses", || {
        veth_pair("va", "vb");
        let mut pool = PacketPool::new(200);
        let mut a = PacketPort::open("va").unwrap();
        // Nothing leaves while the link is down, so the ring fills up.
        ip("link set va down");
        let mut refused = 0;
        for _ in 0..200 {
            let frames: Vec<Vec<u8>> = (0..64).map(|mark| frame(mark, 60)).collect();
            refused += send(&mut a, &mut pool, &frames).refused;
        }
        assert!(refused > 0, "12800 frames are more than the ring has slots");
        assert_eq!(a.statistics().tx_refused, refused as u64);
        ip("link set va up");
        let deadline = Instant::now() + Duration::from_secs(2);
        while a.unsent && Instant::now() < deadline {
            a.flush().unwrap();
        }
        assert_eq!(send(&mut a, &mut pool, &[frame(1, 60)]).sent, 1);
    });
}

#[test]
fn an_interface_that_goes_away_is_an_error_and_one_that_goes_down_is_not() {
    in_fresh_namespace("an_interface_that_goes_away", || {
        veth_pair("va", "vb");
        let mut pool = PacketPool::new(200);
        let (mut a, mut b) = (PacketPort::open("va").unwrap(), PacketPort::open("vb").unwrap());
        ip("link set vb down");
        assert_eq!(b.receive(&mut Batch::new(), &mut pool).unwrap(), Received::Idle);
        ip("link set vb up");
        wait_until_up("va");
        send(&mut a, &mut pool, &[frame(1, 60)]);
        assert_eq!(receive(&mut b, &mut pool, 1), [frame(1, 60)]);
        ip("link del va");
        let error = b.receive(&mut Batch::new(), &mut pool).unwrap_err();
        assert!(error.to_string().starts_with("cannot use interface vb: No such device"), "{error}");
    });
}

#[test]
fn errors_name_the_interface() {
    let message = |name| match PacketPort::open(name) {
        Ok(_) => panic!("{name} opened"),
        Err(error) => error.to_string(),
    };
    assert!(message("no-such-link").starts_with("cannot find interface no-such-link: No such device"));
    assert!(
        message("much-too-long-a-name")
            .starts_with("packet: `much-too-long-a-name` is not an interface name")
    );
}

/// Connects two ports, frame for frame, until told to stop. Gives their statistics.
fn cross_connect(names: [&str; 2], stop: &AtomicBool) -> Result<[PortStatistics; 2], PortError> {
    let [mut left, mut right] = [PacketPort::open(names[0])?, PacketPort::open(names[1])?];
    let mut pool = PacketPool::new(1024);
    let mut batch = Batch::new();
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..2 {
            left.receive(&mut batch, &mut pool)?;
            assert!(
                batch.packets().iter().all(|packet| packet.len() <= 1514),
                "no frame longer than the link's"
            );
            right.transmit(&mut batch, &mut pool)?;
            right.flush()?;
            batch.recycle(&mut pool);
            std::mem::swap(&mut left, &mut right);
        }
    }
    Ok([left.statistics(), right.statistics()])
}

/// Two hosts with every offload that the kernel switches on by itself, and a wire made of two ports between them.
#[test]
fn tcp_and_udp_pass_with_all_offloads_on() {
    const AMOUNT: usize = 16 << 20;
    in_fresh_namespace("tcp_and_udp_pass", || {
        let (client, server) = (Host::new(), Host::new());
        for (host, port, inside) in [(&client, "p0", "h0"), (&server, "p1", "h1")] {
            veth_pair(port, inside);
            let number = if inside == "h0" { 1 } else { 2 };
            host.adopt(inside, &format!("fd00::{number}/64"));
            let inside = inside.to_owned();
            host.start(move || ip(&format!("addr add 10.8.0.{number}/24 dev {inside}"))).wait();
            wait_until_up(port);
        }
        let stop = Arc::new(AtomicBool::new(false));
        // The wire runs in a thread of this namespace.
        let wire = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || cross_connect(["p0", "p1"], &stop)
        });

        for (at, to) in [("10.8.0.2:80", "10.8.0.2:80"), ("[fd00::2]:80", "[fd00::2]:80")] {
            let (ready, is_ready) = std::sync::mpsc::channel();
            let received = server.start(move || {
                let listener = TcpListener::bind(at).unwrap();
                ready.send(()).unwrap();
                let (mut stream, _) = listener.accept().unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                let mut data = Vec::new();
                stream.read_to_end(&mut data).map(|_| data)
            });
            is_ready.recv().unwrap();
            let sent = client.start(move || {
                let data: Vec<u8> = (0..AMOUNT).map(|at| (at / 7) as u8).collect();
                let mut stream = TcpStream::connect_timeout(&to.parse().unwrap(), Duration::from_secs(10))?;
                stream.set_write_timeout(Some(Duration::from_secs(20)))?;
                stream.write_all(&data)?;
                std::io::Result::Ok(data)
            });
            let sent = sent.wait().unwrap();
            assert!(received.wait().unwrap() == sent, "the bytes arrive over {at}");
        }

        let (ready, is_ready) = std::sync::mpsc::channel();
        let datagram = server.start(move || {
            let socket = UdpSocket::bind("10.8.0.2:53").unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            ready.send(()).unwrap();
            let mut data = [0; 100];
            socket.recv(&mut data).map(|length| data[..length].to_vec())
        });
        is_ready.recv().unwrap();
        client
            .start(|| UdpSocket::bind("10.8.0.1:0").and_then(|socket| socket.send_to(b"odd", "10.8.0.2:53")))
            .wait()
            .unwrap();
        assert_eq!(datagram.wait().unwrap(), b"odd");

        stop.store(true, Ordering::Relaxed);
        let statistics = wire.join().unwrap().unwrap();
        for port in statistics {
            assert_eq!(port.rx_errors, 0, "{statistics:?}");
        }
    });
}
