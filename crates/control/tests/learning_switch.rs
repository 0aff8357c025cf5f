//! The embedded switch of the example learns where stations are, over live ports.

#[path = "../../drivers/examples/datagram_port.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is a program of its own")]
mod datagram_port;
#[path = "../examples/learning_switch.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is a program of its own")]
mod learning_switch;

use datagram_port::DatagramPort;
use learning_switch::{Learning, Running, compile, switch};
use millrace_dataplane::PortId;
use millrace_drivers::QueuePair;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

/// How long a frame or a notice may take on a machine with other work.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long nothing comes where nothing may come. Frames of one round leave together, and the port that must get the frame
/// has got it before.
const SILENCE: Duration = Duration::from_millis(50);

/// A frame between two stations.
fn frame(to: u8, from: u8) -> [u8; 60] {
    let mut frame = [0; 60];
    (frame[5], frame[11]) = (to, from);
    frame
}

fn comes(end: &UnixDatagram, frame: [u8; 60]) {
    let mut bytes = [0; 100];
    end.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(end.recv(&mut bytes).unwrap(), 60);
    assert_eq!(bytes[..60], frame);
}

fn is_silent(end: &UnixDatagram) {
    end.set_read_timeout(Some(SILENCE)).unwrap();
    assert!(end.recv(&mut [0; 100]).is_err());
}

#[test]
fn stations_are_learnt_while_packets_pass() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/l2_switch.p4");
    let (mut ports, mut ends) = (Vec::new(), Vec::new());
    for number in 1..4 {
        let (cable, end) = UnixDatagram::pair().unwrap();
        let port: Box<dyn QueuePair> = Box::new(DatagramPort::new(cable).unwrap());
        ports.push((number as PortId, port));
        ends.push(end);
    }
    let switch = switch(compile(&program).unwrap(), &[1, 2, 3]).unwrap();
    let running = Running::start(switch, ports).unwrap();
    let mut learning = Learning::default();

    // Nobody knows station 7 yet: its frame is flooded to all other ports.
    ends[0].send(&frame(9, 7)).unwrap();
    comes(&ends[1], frame(9, 7));
    comes(&ends[2], frame(9, 7));
    let notice = running.notices.recv_timeout(PATIENCE).unwrap();
    learning.hear(notice, &running.control).unwrap();
    assert_eq!(learning.port_of(7), Some(1));

    // A frame to it goes there alone.
    ends[1].send(&frame(7, 9)).unwrap();
    comes(&ends[0], frame(7, 9));
    is_silent(&ends[2]);

    let summary = running.stop().unwrap();
    let received: u64 = summary.ports.iter().map(|(_, port)| port.rx_packets).sum();
    assert_eq!((received, summary.failed.len(), summary.lost_notices), (2, 0, 0));
}

#[test]
fn a_wrong_program_says_where() {
    let path = std::env::temp_dir().join(format!("millrace-embedding-{}.p4", std::process::id()));
    std::fs::write(&path, "const bit<8> x = 300s;\n").unwrap();
    let said = compile(&path).unwrap_err();
    std::fs::remove_file(&path).unwrap();
    assert!(said.contains(".p4:1"), "{said}");
}
