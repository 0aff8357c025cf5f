//! A node that runs: the switch by octets of the repository, in memory.

use millrace_node::{Graph, Mapped, NodeFile, map};
use std::path::Path;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/nodes");

struct Node {
    graph: Graph,
    map: Vec<Mapped>,
    file: NodeFile,
}

impl Node {
    fn new() -> Node {
        let text = std::fs::read_to_string(Path::new(FOLDER).join("octet_switch.toml")).unwrap();
        let file =
            NodeFile::parse("octet_switch.toml", &text).unwrap_or_else(|why| panic!("{}", why.render(false)));
        let mut load = |path: &Path| {
            std::fs::read_to_string(Path::new(FOLDER).join(path)).map_err(|why| why.to_string())
        };
        Node { graph: Graph::new(&file, &mut load).unwrap(), map: map(&file), file }
    }

    fn address(&self, name: &str) -> u32 {
        self.map.iter().find(|register| register.name == name).unwrap_or_else(|| panic!("{name}")).address
    }

    fn read(&self, name: &str) -> u32 {
        self.graph.read(self.address(name))
    }

    fn write(&mut self, name: &str, word: u32) {
        let address = self.address(name);
        self.graph.write(address, word).unwrap_or_else(|why| panic!("{name}: {why}"));
    }

    fn receive(&mut self, mac: &str, frame: &[u8]) {
        let block = self.file.block(mac).unwrap();
        assert!(self.graph.receive(block, frame, 0));
    }

    /// What leaves by a MAC when all has moved.
    fn sent(&mut self, mac: &str) -> Vec<Vec<u8>> {
        let block = self.file.block(mac).unwrap();
        let mut frames = Vec::new();
        loop {
            let moved = self.graph.turn(0);
            let before = frames.len();
            frames.extend(std::iter::from_fn(|| self.graph.leave_by(block)));
            if !moved && frames.len() == before {
                return frames;
            }
        }
    }
}

/// An IPv4 frame with UDP to a port and a number in its data.
fn udp(port: u16, number: u8, length: usize) -> Vec<u8> {
    let mut frame = vec![0; length];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[23] = 17;
    frame[36..38].copy_from_slice(&port.to_be_bytes());
    frame[42] = number;
    frame
}

fn arp_request() -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    frame[12..22].copy_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    frame[22..28].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    frame[28..32].copy_from_slice(&[10, 0, 0, 9]);
    frame[38..42].copy_from_slice(&[10, 0, 0, 1]);
    frame
}

#[test]
fn frames_go_by_their_octets_and_each_entry_counts() {
    let mut node = Node::new();
    for number in 0..3 {
        node.receive("p0", &udp(53, number, 60));
        node.receive("p0", &udp(80, number, 60));
    }
    node.receive("p0", &[0; 60]);
    assert_eq!(
        [node.read("queue3.frames"), node.read("queue4.frames"), node.read("queue4.bytes")],
        [3, 3, 180]
    );
    assert_eq!(node.sent("p1"), [0, 1, 2].map(|number| udp(53, number, 60)));
    assert_eq!(node.sent("p2"), [0, 1, 2].map(|number| udp(80, number, 60)));
    assert!(node.sent("p0").is_empty());
    let matches: Vec<u32> = (0..4).map(|entry| node.read(&format!("forward.entry{entry}.matches"))).collect();
    assert_eq!((matches, node.read("forward.misses"), node.read("spread.lost")), (vec![3, 3, 0, 0], 1, 1));
    assert_eq!(
        [node.read("node.arrivals"), node.read("p0.rx.frames"), node.read("p1.tx.octets")],
        [7, 7, 192]
    );
}

#[test]
fn the_manager_answers_and_the_question_goes_on() {
    let mut node = Node::new();
    node.receive("p0", &arp_request());
    let answers = node.sent("p0");
    assert_eq!(answers.len(), 1);
    // The reply to 02:00:00:00:00:09, from the address that the responder has for 10.0.0.1 (RFC 826).
    let (reply, own) = (&answers[0], [2, 0, 0, 0, 0, 0]);
    assert_eq!(
        (&reply[..6], &reply[6..12], &reply[20..22]),
        (&[2, 0, 0, 0, 0, 9][..], &own[..], &[0, 2][..])
    );
    assert_eq!(
        (&reply[22..28], &reply[28..32], &reply[38..42]),
        (&own[..], &[10, 0, 0, 1][..], &[10, 0, 0, 9][..])
    );
    // It came by p0, and is for p1 and p2, too.
    assert_eq!((node.sent("p1"), node.sent("p2")), (vec![arp_request()], vec![arp_request()]));
    assert_eq!(
        [node.read("answers.taken"), node.read("answers.answers"), node.read("answers.waiting")],
        [1, 1, 0]
    );
}

#[test]
fn entries_disciplines_and_ports_change_while_it_runs() {
    let mut node = Node::new();
    // UDP to port 53 goes to p2's higher queue from now on; in between frames meet the entry as it was.
    node.write("forward.entry0.targets", 1 << 5);
    node.receive("p0", &udp(53, 0, 60));
    node.write("forward.entry0.valid", 1);
    for number in 1..4 {
        node.receive("p0", &udp(80, number, 60));
        node.receive("p0", &udp(53, number, 60));
    }
    node.write("serve2.discipline", 0);
    assert_eq!(node.sent("p1"), [udp(53, 0, 60)]);
    let order: Vec<u8> = node.sent("p2").iter().map(|frame| frame[37]).collect();
    assert_eq!(order, [53, 53, 53, 80, 80, 80]);
    node.write("serve2.discipline", 1);
    for number in 1..4 {
        node.receive("p0", &udp(80, number, 60));
        node.receive("p0", &udp(53, number, 60));
    }
    let order: Vec<u8> = node.sent("p2").iter().map(|frame| frame[37]).collect();
    assert_eq!(order, [80, 53, 80, 53, 80, 53]);
    node.write("p2.up", 0);
    node.receive("p0", &udp(80, 0, 60));
    assert!(node.sent("p2").is_empty());
    assert_eq!([node.read("p2.tx.down"), node.read("p2.up"), node.read("forward.entry0.matches")], [1, 0, 6]);
    for (name, word) in
        [("serve2.discipline", 3), ("serve2.quantum0", 0), ("select.octet0", 256), ("p0.up", 2)]
    {
        let address = node.address(name);
        assert!(node.graph.write(address, word).is_err(), "{name}");
    }
    let read_only = node.address("queue0.frames");
    assert!(
        node.graph.write(read_only, 0).is_err()
            && node.graph.write(0, 0).is_err()
            && node.graph.write(u32::MAX, 0).is_err()
    );
}

#[test]
fn a_full_queue_loses_frames_and_counts_them() {
    let mut node = Node::new();
    (0..70).for_each(|number| node.receive("p0", &udp(53, number, 60)));
    assert_eq!(
        [node.read("queue3.frames"), node.read("queue3.taken"), node.read("queue3.lost")],
        [64, 64, 6]
    );
    assert_eq!(node.sent("p1"), (0..64).map(|number| udp(53, number, 60)).collect::<Vec<_>>());
}
