//! The driver of the example keeps the rules of a port.

#[path = "../examples/datagram_port.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is a program of its own")]
mod datagram_port;

use datagram_port::DatagramPort;
use millrace_drivers::{QueuePair, Received, Transmitted};
use millrace_frames::{Batch, MAX_FRAME, Packet, PacketPool};
use std::os::unix::net::UnixDatagram;

fn port() -> (DatagramPort, UnixDatagram) {
    let (cable, far_end) = UnixDatagram::pair().unwrap();
    (DatagramPort::new(cable).unwrap(), far_end)
}

#[test]
fn frames_come_in_order_and_no_more_than_there_are_packets() {
    let (mut port, far_end) = port();
    let (mut pool, mut batch) = (PacketPool::new(2), Batch::new());
    for number in 0..3 {
        far_end.send(&[number; 60]).unwrap();
    }
    assert_eq!(port.receive(&mut batch, &mut pool).unwrap(), Received::More);
    let first: Vec<u8> = batch.packets().iter().map(|packet| packet.data()[0]).collect();
    assert_eq!(first, [0, 1]);
    batch.recycle(&mut pool);
    assert_eq!(port.receive(&mut batch, &mut pool).unwrap(), Received::Idle);
    assert_eq!(batch.packets()[0].data(), [2; 60]);
    assert_eq!((port.statistics().rx_packets, port.statistics().rx_bytes), (3, 180));
}

#[test]
fn a_frame_that_is_too_long_is_counted() {
    let (mut port, far_end) = port();
    let (mut pool, mut batch) = (PacketPool::new(8), Batch::new());
    far_end.send(&vec![1; MAX_FRAME + 1]).unwrap();
    far_end.send(&vec![2; MAX_FRAME]).unwrap();
    port.receive(&mut batch, &mut pool).unwrap();
    assert_eq!((batch.len(), batch.packets()[0].len()), (1, MAX_FRAME));
    assert_eq!((port.statistics().rx_errors, pool.available()), (1, 7));
}

#[test]
fn frames_that_the_socket_refuses_stay_in_the_batch() {
    let (mut port, far_end) = port();
    let mut pool = PacketPool::new(64);
    let (mut sent, mut refused) = (0, 0);
    // Nobody reads at the far end, so its queue fills up.
    while refused == 0 {
        let mut batch = Batch::new();
        for _ in 0..8 {
            batch.add(&mut pool).unwrap().set_frame(&[7; 60]).unwrap();
        }
        let said = port.transmit(&mut batch, &mut pool).unwrap();
        assert_eq!(said, Transmitted { sent: 8 - batch.len(), refused: batch.len() });
        (sent, refused) = (sent + said.sent, said.refused);
        batch.recycle(&mut pool);
        assert!(sent < 1 << 20, "the queue of a socket has an end");
    }
    assert_eq!((port.statistics().tx_packets, port.statistics().tx_refused), (sent as u64, refused as u64));
    assert_eq!(pool.available(), 64);
    let mut frame = [0; 100];
    assert_eq!(far_end.recv(&mut frame).unwrap(), 60);
}

#[test]
fn a_closed_far_end_ends_the_port_or_refuses() {
    let (mut port, far_end) = port();
    drop(far_end);
    let (mut pool, mut batch) = (PacketPool::new(2), Batch::new());
    batch.push(Packet::from_frame(&[1; 60]).unwrap()).unwrap();
    assert_eq!(port.transmit(&mut batch, &mut pool).unwrap(), Transmitted { sent: 0, refused: 1 });
}
