//! The switch by octets of the repository, placed in software, in hardware, and split in several places: the same frames in the same order,
//! and the same counters.

mod lint;

use millrace_node::hardware::{Programs, Top};
use millrace_node::{Graph, Mapped, NodeFile, map};
use millrace_rtl::map::Bus;
use std::path::Path;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/nodes");

/// The file with functions and blocks in hardware.
fn file(hardware: &[&str]) -> NodeFile {
    let mut text = std::fs::read_to_string(Path::new(FOLDER).join("octet_switch.toml")).unwrap();
    for name in hardware {
        let header = format!("name = \"{name}\"\n");
        assert!(text.contains(&header), "{name}");
        text = text.replacen(&header, &format!("{header}placement = \"hardware\"\n"), 1);
    }
    NodeFile::parse("octet_switch.toml", &text).unwrap_or_else(|why| panic!("{}", why.render(false)))
}

struct Node {
    graph: Graph,
    map: Vec<Mapped>,
    file: NodeFile,
}

impl Node {
    fn new(hardware: &[&str]) -> Node {
        let file = file(hardware);
        let mut load = |path: &Path| {
            std::fs::read_to_string(Path::new(FOLDER).join(path)).map_err(|why| why.to_string())
        };
        let graph = Graph::new(&file, &mut load).unwrap_or_else(|why| panic!("{why}"));
        Node { graph, map: map(&file), file }
    }

    fn write(&mut self, name: &str, word: u32) {
        let address = self.map.iter().find(|register| register.name == name).unwrap().address;
        self.graph.write(address, word).unwrap_or_else(|why| panic!("{name}: {why}"));
    }

    fn registers(&self) -> Vec<(String, Vec<u32>)> {
        let value = |of: &Mapped| (0..of.words).map(|word| self.graph.read(of.address + 4 * word)).collect();
        self.map.iter().map(|of| (of.name.clone(), value(of))).collect()
    }

    /// What leaves by the three ports when all has moved.
    fn sent(&mut self) -> Vec<Vec<Vec<u8>>> {
        let macs = ["p0", "p1", "p2"].map(|mac| self.file.block(mac).unwrap());
        let mut frames = vec![Vec::new(); 3];
        loop {
            let mut moved = self.graph.turn(0);
            for (frames, mac) in frames.iter_mut().zip(macs) {
                while let Some(frame) = self.graph.leave_by(mac) {
                    moved = true;
                    frames.push(frame);
                }
            }
            if !moved {
                return frames;
            }
        }
    }
}

/// Numbers that repeat from run to run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A frame for one of the entries, or for none.
fn frame(numbers: &mut Numbers, number: usize) -> Vec<u8> {
    let mut frame = vec![0; [60, 61, 67, 128, 590, 1514][numbers.below(6) as usize]];
    match numbers.below(6) {
        0 => frame[12..14].copy_from_slice(&[8, 6]),
        1 => {
            frame[12..14].copy_from_slice(&[8, 0]);
            (frame[23], frame[34]) = (1, 8);
        }
        2 => {}
        kind => {
            frame[12..14].copy_from_slice(&[8, 0]);
            frame[23] = 17;
            frame[36..38].copy_from_slice(&[0, if kind == 3 { 53 } else { 80 }]);
        }
    }
    frame[50..52].copy_from_slice(&(number as u16).to_be_bytes());
    frame
}

/// The frames that have left by each port, and the words of all registers then.
type Said = (Vec<Vec<Vec<u8>>>, Vec<(String, Vec<u32>)>);

/// Everything that leaves, and all registers after each part of the run.
fn run(hardware: &[&str], frames: usize) -> Vec<Said> {
    let mut node = Node::new(hardware);
    let mut numbers = Numbers(1);
    let mut said = Vec::new();
    let changes: [&[(&str, u32)]; 5] = [
        &[],
        &[("serve2.discipline", 1), ("serve1.discipline", 2), ("serve1.quantum0", 600)],
        // Another entry, and another octet.
        &[
            ("forward.entry5.value", 0x0800_1100),
            ("forward.entry5.mask", 0xffff_ff00),
            ("forward.entry5.priority", 9),
            ("forward.entry5.targets", 0b11_1111),
            ("forward.entry5.valid", 1),
        ],
        &[("select.octet5", 51), ("forward.entry0.valid", 0), ("serve2.discipline", 2)],
        &[("forward.entry5.valid", 0), ("serve1.discipline", 0)],
    ];
    for (part, changes) in changes.into_iter().enumerate() {
        changes.iter().for_each(|(name, word)| node.write(name, *word));
        for number in 0..frames {
            let mac = node.file.block(&format!("p{}", numbers.below(3))).unwrap();
            let frame = frame(&mut numbers, 1000 * part + number);
            assert!(node.graph.receive(mac, &frame, 0));
        }
        let waiting = node.registers();
        said.push((Vec::new(), waiting));
        let sent = node.sent();
        said.push((sent, node.registers()));
    }
    said
}

fn same(hardware: &[&[&str]]) {
    // More than a queue holds.
    const FRAMES: usize = 120;
    let wanted = run(&[], FRAMES);
    let lost = |name: &str| {
        wanted.iter().any(|(_, registers)| registers.iter().any(|(of, words)| of == name && words[0] > 0))
    };
    assert!(
        ["queue3.lost", "queue4.lost", "answers.lost"].iter().any(|name| lost(name)),
        "no queue was full"
    );
    for placed in hardware {
        let found = run(placed, FRAMES);
        for (at, ((frames, registers), (found_frames, found_registers))) in
            wanted.iter().zip(&found).enumerate()
        {
            for (register, other) in registers.iter().zip(found_registers) {
                assert_eq!(register, other, "{placed:?}, part {at}");
            }
            assert!(frames == found_frames, "{placed:?}, part {at}: other frames, or another order");
        }
    }
}

#[test]
fn software_and_hardware_do_the_same() {
    same(&[&["decide", "send"]]);
}

#[test]
fn split_switches_do_the_same() {
    same(&[&["decide"], &["send"], &["forward"], &["select", "spread"], &["select", "forward", "send"]]);
}

#[test]
fn managers_and_macs_in_hardware_do_the_same() {
    same(&[
        &["answer"],
        &["ports"],
        &["ports", "decide"],
        &["decide", "answer"],
        &["decide", "send", "answer"],
    ]);
}

/// Where queues and MACs are both hardware, frames leave as soon as the link is free: the order of one frame after the other is that of
/// software.
#[test]
fn a_whole_node_in_hardware_does_the_same() {
    let [mut software, mut hardware] = [&[][..], &["ports", "decide", "send", "answer"]].map(Node::new);
    let mut numbers = Numbers(3);
    let mut left = 0;
    for number in 0..150 {
        let mac = software.file.block(&format!("p{}", numbers.below(3))).unwrap();
        let frame = frame(&mut numbers, number);
        let [wanted, found] = [&mut software, &mut hardware].map(|node| {
            assert!(node.graph.receive(mac, &frame, 0));
            node.sent()
        });
        assert!(wanted == found, "frame {number}");
        left += wanted.iter().map(Vec::len).sum::<usize>();
    }
    assert!(left > 100, "{left} frames");
    assert_eq!(software.registers(), hardware.registers());
}

#[test]
fn what_cannot_be_hardware_is_refused() {
    let why = Top::new(&file(&["queue0"]), &Programs::default(), 0, Bus::Axi4Lite).unwrap_err();
    assert_eq!(why.to_string(), "block `serve0`: a scheduler and its queue `queue0` are in one place");
    let mut mixed = file(&["ports"]);
    for block in &mut mixed.blocks {
        if let millrace_node::Kind::Mac(mac) = &mut block.kind
            && mac.port == 1
        {
            mac.link = millrace_node::MacLink::Gmii;
        }
    }
    let why = Top::new(&mixed, &Programs::default(), 0, Bus::Axi4Lite).unwrap_err();
    assert_eq!(why.to_string(), "block `p1`: its link is gmii, that of `p0` xgmii: a design has one clock");
    let mut large = file(&["send"]);
    for block in &mut large.blocks {
        if let millrace_node::Kind::Queue(queue) = &mut block.kind {
            queue.bytes = 1 << 20;
        }
    }
    assert!(
        Top::new(&large, &Programs::default(), 0, Bus::Axi4Lite)
            .unwrap_err()
            .why
            .contains("MAX_HARDWARE_BYTES")
    );
    assert!(Top::new(&file(&[]), &Programs::default(), 0, Bus::Axi4Lite).unwrap().is_none());
}

#[test]
fn verilator_has_nothing_to_say() {
    let node = file(&["ports", "decide", "send", "answer"]);
    lint::has_nothing_to_say(&Top::new(&node, &Programs::default(), 0, Bus::Axi4Lite).unwrap().unwrap());
}
