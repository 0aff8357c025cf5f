use super::*;
use millrace_drivers::{QueuePair, Received};
use millrace_frames::{Batch, PacketPool};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Instant;

struct Here {
    ports: Vec<(PortId, PacketInPort)>,
    told: std::sync::mpsc::Receiver<PortChange>,
    pool: PacketPool,
    _server: PacketInServer,
}

fn start(listener: NanomsgListener, ports: PortId) -> Here {
    let (waiting, ports) = packet_in(listener, 0..ports).unwrap();
    let (tell, told) = channel();
    let server = waiting.serve(move |change| tell.send(change).unwrap()).unwrap();
    Here { ports, told, pool: PacketPool::new(256), _server: server }
}

fn over_file(name: &str) -> (PathBuf, NanomsgListener) {
    let path = std::env::temp_dir().join(format!("millrace-pair-{name}-{}.ipc", std::process::id()));
    let listener = NanomsgListener::over_file(&path).unwrap();
    (path, listener)
}

fn connect(path: &PathBuf) -> UnixStream {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(b"\0SP\0\0\x10\0\0").unwrap();
    let mut greeting = [0; 8];
    stream.read_exact(&mut greeting).unwrap();
    assert_eq!(greeting, *b"\0SP\0\0\x10\0\0");
    stream
}

/// A message as nanomsg writes it to a Unix socket.
fn message(kind: i32, port: i32, more: i32, frame: &[u8]) -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.extend_from_slice(&(12 + frame.len() as u64).to_be_bytes());
    [kind, port, more].into_iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    bytes.extend_from_slice(frame);
    bytes
}

fn frame_in(port: i32, frame: &[u8]) -> Vec<u8> {
    message(3, port, frame.len() as i32, frame)
}

impl Here {
    /// The frames that come, as a worker asks for them, until there are so many.
    fn frames(&mut self, wanted: usize) -> Vec<(PortId, Vec<u8>)> {
        let (mut frames, end) = (Vec::new(), Instant::now() + Duration::from_secs(20));
        while frames.len() < wanted {
            let mut is_busy = false;
            for (id, port) in &mut self.ports {
                let mut batch = Batch::new();
                let received = port.receive(&mut batch, &mut self.pool).unwrap();
                assert_ne!(received, Received::End);
                is_busy |= received == Received::More || !batch.is_empty();
                frames.extend(batch.packets().iter().map(|packet| (*id, packet.data().to_vec())));
                batch.recycle(&mut self.pool);
            }
            // A worker sleeps now: only a signal of a new frame may wake it.
            if !is_busy {
                assert!(Instant::now() < end, "{} of {wanted}", frames.len());
                let fd = self.ports[0].1.poll_fd().unwrap();
                millrace_drivers::wait_readable(&[fd], Some(Duration::from_secs(20))).unwrap();
            }
        }
        frames
    }

    fn send(&mut self, at: usize, frame: &[u8]) -> usize {
        let mut batch = Batch::new();
        let packet = batch.add(&mut self.pool).unwrap();
        packet.set_frame(frame).unwrap();
        let sent = self.ports[at].1.transmit(&mut batch, &mut self.pool).unwrap().sent;
        batch.recycle(&mut self.pool);
        sent
    }
}

/// By the structures of bmv2's source; a peer over TCP has no byte before the length.
#[test]
fn frames_keep_their_order_over_all_ports() {
    let (path, listener) = over_file("order");
    let mut here = start(listener, 8);
    let mut peer = connect(&path);
    for number in 0..200_u8 {
        peer.write_all(&frame_in(i32::from(7 - number % 8), &[number; 60])).unwrap();
    }
    let came = here.frames(200);
    for (number, (port, frame)) in (0..200_u8).zip(&came) {
        assert_eq!((*port, frame.as_slice()), (PortId::from(7 - number % 8), &[number; 60][..]));
    }
    assert_eq!(here.send(5, &[9; 3]), 1);
    let mut said = [0; 24];
    peer.read_exact(&mut said).unwrap();
    assert_eq!(said, *b"\x01\0\0\0\0\0\0\0\x0f\x04\0\0\0\x05\0\0\0\x03\0\0\0\x09\x09\x09");
    peer.write_all(&message(5, 2, 1, &[])).unwrap();
    let mut said = [0; 25];
    peer.read_exact(&mut said).unwrap();
    assert_eq!(said[9..], *b"\x06\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\0\0");
    for (kind, more) in [(0, 0), (2, 0), (2, 1), (1, 0)] {
        peer.write_all(&message(kind, 3, more, &[])).unwrap();
    }
    let told: Vec<_> = here.told.iter().take(4).collect();
    assert_eq!(
        told,
        [PortChange::Added(3), PortChange::Link(3, false), PortChange::Link(3, true), PortChange::Removed(3)]
    );
    // Another one is closed while the peer is there, and is the peer after it.
    let mut second = connect(&path);
    assert_eq!(second.read(&mut [0]).unwrap(), 0);
    drop(peer);
    std::thread::sleep(Duration::from_millis(300));
    let mut third = connect(&path);
    third.write_all(&frame_in(1, &[1; 60])).unwrap();
    assert_eq!(here.frames(1), [(1, vec![1; 60])]);
    drop(here);
    assert!(!path.exists());
}

/// The turn of port 0 comes with the refusal at port 3, after port 0 was asked in the same round.
#[test]
fn a_refused_frame_gives_its_turn_to_any_port() {
    let (path, listener) = over_file("turn");
    let mut here = start(listener, 4);
    let mut peer = connect(&path);
    for number in 0..50 {
        let mut both = frame_in(3, &[1; MAX_FRAME + 1]);
        both.extend(frame_in(0, &[number; 60]));
        peer.write_all(&both).unwrap();
        assert_eq!(here.frames(1), [(0, vec![number; 60])]);
    }
    assert_eq!(here.ports[3].1.statistics().rx_errors, 50);
}

#[test]
fn hostile_messages_are_left_out_or_close_the_connection() {
    let (path, listener) = over_file("hostile");
    let mut here = start(listener, 4);
    let mut peer = connect(&path);
    let bad = [
        (message(3, 4, 60, &[1; 60]), Refusal::Port(4)),
        (message(3, -1, 60, &[1; 60]), Refusal::Port(-1)),
        (message(3, i32::MIN, 60, &[1; 60]), Refusal::Port(i32::MIN)),
        (message(0, i32::MAX, 0, &[]), Refusal::Port(i32::MAX)),
        (message(3, 1, 61, &[1; 60]), Refusal::Length(61)),
        (message(3, 1, -1, &[1; 60]), Refusal::Length(-1)),
        (message(3, 1, i32::MAX, &[]), Refusal::Length(i32::MAX)),
        (message(4, 1, 60, &[1; 60]), Refusal::Kind(4)),
        (message(6, 1, 0, &[]), Refusal::Kind(6)),
        (message(2, 1, 2, &[]), Refusal::Status(2)),
        (b"\x01\0\0\0\0\0\0\0\x05abcde".to_vec(), Refusal::TooShort(5)),
        (b"\x01\0\0\0\0\0\0\0\0".to_vec(), Refusal::TooShort(0)),
    ];
    for (bytes, refusal) in bad {
        // The first of a connection is told; the others are left out as well.
        peer.write_all(&bytes).unwrap();
        peer.write_all(&message(4, 0, 0, &[])).unwrap();
        peer.write_all(&frame_in(1, &[7; 60])).unwrap();
        assert_eq!(here.frames(1), [(1, vec![7; 60])]);
        assert_eq!(here.told.try_iter().collect::<Vec<_>>(), [PortChange::Refused(refusal)]);
        drop(peer);
        std::thread::sleep(Duration::from_millis(150));
        peer = connect(&path);
    }
    // A length in the header that is less than the message: the rest is no frame's, as in bmv2.
    peer.write_all(&message(3, 1, 59, &[7; 60])).unwrap();
    assert_eq!(here.frames(1), [(1, vec![7; 59])]);
    // Longer than any frame, but a message that can be skipped.
    peer.write_all(&frame_in(2, &vec![1; MAX_FRAME + 1])).unwrap();
    peer.write_all(&frame_in(1, &[8; 60])).unwrap();
    assert_eq!(here.frames(1), [(1, vec![8; 60])]);
    assert_eq!(here.ports[2].1.statistics().rx_errors, 1);
    // Lengths that nobody believes, and what is no message at all.
    for bytes in [
        b"\x01\xff\xff\xff\xff\xff\xff\xff\xff".to_vec(),
        b"\x01\0\0\0\0\x40\0\0\0".to_vec(),
        [vec![1], (MAX_MESSAGE as u64 + 1).to_be_bytes().to_vec()].concat(),
        b"\x02\0\0\0\0\0\0\0\x0c".to_vec(),
    ] {
        peer.write_all(&bytes).unwrap();
        // With bytes that nobody read it is a reset.
        assert_eq!(peer.read(&mut [0]).unwrap_or(0), 0);
        std::thread::sleep(Duration::from_millis(150));
        peer = connect(&path);
    }
    peer.write_all(&frame_in(0, &[9; 60])).unwrap();
    assert_eq!(here.frames(1), [(0, vec![9; 60])]);
}

#[test]
fn who_is_no_peer_is_closed_and_a_flood_waits() {
    let listener = NanomsgListener::over_tcp(TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
    let address = listener.address().strip_prefix("tcp://").unwrap().to_owned();
    let mut here = start(listener, 2);
    let mut subscriber = TcpStream::connect(&address).unwrap();
    subscriber.write_all(b"\0SP\0\0\x21\0\0").unwrap();
    let mut said = Vec::new();
    subscriber.read_to_end(&mut said).unwrap();
    assert_eq!(said, b"\0SP\0\0\x10\0\0");
    // Who says nothing has no place of the peer.
    let _silent: Vec<_> = (0..MAX_PEERS - 1).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let mut peer = TcpStream::connect(&address).unwrap();
    peer.write_all(b"\0SP\0\0\x10\0\0").unwrap();
    peer.read_exact(&mut [0; 8]).unwrap();
    let flood = MAX_WAITING_FRAMES * 8;
    let sending = std::thread::spawn(move || {
        for number in 0..flood as u32 {
            let frame = frame_in(1, &[&number.to_be_bytes()[..], &[0; 60]].concat());
            peer.write_all(&frame[1..]).unwrap();
        }
        peer
    });
    std::thread::sleep(Duration::from_millis(300));
    assert!(here.ports[1].1.statistics().rx_packets == 0);
    let frames = here.frames(flood);
    assert!((0..flood as u32).zip(&frames).all(|(number, (_, frame))| frame[..4] == number.to_be_bytes()));
    // It does not read: what the queue and the system have no room for is refused.
    let _peer = sending.join().unwrap();
    let begun = Instant::now();
    let sent: usize = (0..100_000).map(|_| here.send(0, &[1; 1500])).sum();
    assert!((MAX_WAITING_FRAMES..100_000).contains(&sent), "{sent}");
    assert!(begun.elapsed() < Duration::from_secs(10), "nobody waits");
    assert_eq!(here.ports[0].1.statistics().tx_refused, 100_000 - sent as u64);
}
