//! The registers of a design at the bus of a processor: a board whose registers are mapped does what software does, and the design is the
//! same in Verilator.

#[allow(dead_code)]
mod board;

use board::{Board, Registers, all, carry, verilated};
use millrace_link::Device;
use millrace_netlist::Simulator;
use millrace_node::hardware::{HardwareDevice, MappedDevice, Programs, Top};
use millrace_node::{Graph, MacLink, Mapped, NodeFile, map};
use millrace_rtl::device::Link;
use millrace_rtl::map::Bus;
use std::sync::{Arc, Mutex};

/// The MACs of the board.
const MACS: [&str; 2] = ["p0", "p1"];

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/nodes/board.toml");

/// The switch of the repository that is all hardware: the first octet of a frame says where it goes.
fn file(link: MacLink, placement: &str) -> NodeFile {
    let text = std::fs::read_to_string(FILE).unwrap();
    let text = text.replace("\"gmii\"", &format!("\"{}\"", link.word()));
    let text = text.replace("\"hardware\"", &format!("\"{placement}\""));
    NodeFile::parse("board.toml", &text).unwrap_or_else(|why| panic!("{}", why.render(false)))
}

fn frames(from: u8, count: u8) -> Vec<(usize, Vec<u8>)> {
    let frame = |number: u8| {
        let mut bytes = vec![number; 60 + 3 * usize::from(number)];
        bytes[0] = 2 * (number % 4);
        (usize::from(number % 2), bytes)
    };
    (from..from + count).map(frame).collect()
}

fn graph(node: &NodeFile) -> Graph {
    Graph::new(node, &mut |_| Err("no file".into())).unwrap_or_else(|why| panic!("{why}"))
}

/// Another entry, another octet, another discipline.
const CHANGES: [(&str, u32); 8] = [
    ("forward.entry3.value", 0),
    ("forward.entry3.mask", 0xff00_0000),
    ("forward.entry3.priority", 7),
    ("forward.entry3.targets", 2),
    ("forward.entry3.valid", 1),
    ("forward.entry0.valid", 0),
    ("select.octet1", 20),
    ("serve1.discipline", 2),
];

/// A board next to software, through changes and a new driver; gives the board.
fn compare(link: MacLink, bus: Bus) -> (Top, Board) {
    let (node, plain) = (file(link, "hardware"), file(link, "software"));
    let (mut software, map) = (graph(&plain), map(&node));
    let top = Top::new(&node, &Programs::default(), 0, bus).unwrap().unwrap();
    let of_wire = if link == MacLink::Gmii { Link::Gmii } else { Link::Xgmii };
    let board = Arc::new(Mutex::new(Board::new(&node, &top, of_wire, MACS)));
    let open =
        || MappedDevice::new(&node, &top, Box::new(Registers(Arc::clone(&board), 0)), Vec::new()).unwrap();
    let mut device = open();
    for part in 0..2 {
        let frames = frames(20 * part, 16);
        let (wanted, found) =
            (carry(&mut software, &plain, MACS, &frames), board.lock().unwrap().carry(&frames));
        assert!(
            wanted == found && wanted.iter().all(|left| left.len() > 3),
            "{link:?}, {bus:?}, part {part}"
        );
        let wanted = all(&map, |address| software.read(address));
        assert_eq!(
            wanted,
            all(&map, |address| device.read(address).unwrap()),
            "{link:?}, {bus:?}, part {part}"
        );
        for (name, word) in CHANGES {
            let address = map.iter().find(|of| of.name == name).unwrap().address;
            device.write(address, word).unwrap();
            device.end().unwrap();
            software.write(address, word).unwrap();
        }
    }
    // A driver that starts again finds the board as it is, and makes it what the file says: entries count from there on.
    drop(device);
    let mut device = open();
    let (mut software, frames) = (graph(&plain), frames(50, 12));
    let (wanted, found) = (carry(&mut software, &plain, MACS, &frames), board.lock().unwrap().carry(&frames));
    assert!(wanted == found, "{link:?}, {bus:?}: after a new start");
    let of_entries: Vec<Mapped> = map.into_iter().filter(|of| of.name.starts_with("forward.entry")).collect();
    let wanted = all(&of_entries, |address| software.read(address));
    assert_eq!(wanted, all(&of_entries, |address| device.read(address).unwrap()));
    drop(device);
    let board = Arc::into_inner(board).unwrap().into_inner().unwrap();
    (top, board)
}

#[test]
fn a_mapped_board_does_what_software_does() {
    for (link, bus) in
        [(MacLink::Xgmii, Bus::Axi4Lite), (MacLink::Xgmii, Bus::AvalonMm), (MacLink::Gmii, Bus::Axi4Lite)]
    {
        compare(link, bus);
    }
}

#[test]
fn verilator_does_the_same() {
    let (top, board) = compare(MacLink::Xgmii, Bus::Axi4Lite);
    verilated(&top, &board);
    assert!(board.record.len() > 10_000, "{} cycles", board.record.len());
}

/// While frames come each of them meets the table as it was, or as it is after a write: none meets a part of it, or is lost.
#[test]
fn frames_meet_a_table_before_or_after_a_write() {
    let node = file(MacLink::Xgmii, "hardware");
    let top = Top::new(&node, &Programs::default(), 0, Bus::Axi4Lite).unwrap().unwrap();
    let board = Arc::new(Mutex::new(Board::new(&node, &top, Link::Xgmii, MACS)));
    let open =
        || MappedDevice::new(&node, &top, Box::new(Registers(Arc::clone(&board), 0)), Vec::new()).unwrap();
    let (mut device, of) = (open(), map(&node));
    let address = |name: &str| of.iter().find(|of| of.name == name).unwrap().address;
    board.lock().unwrap().paced = Some(0);
    // To the other port and back, and what is there without the entry: to both.
    for (targets, valid) in [(1, 1), (2, 1), (2, 0), (1, 1)] {
        device.write(address("forward.entry0.targets"), targets).unwrap();
        device.write(address("forward.entry0.valid"), valid).unwrap();
        device.end().unwrap();
        for _ in 0..200 {
            board.lock().unwrap().cycle(None);
        }
    }
    // A new driver has the table of the file again.
    drop(device);
    let mut device = open();
    // Another entry changes, which takes what this one does not.
    for number in 0..6 {
        device.write(address("forward.entry3.targets"), 3 - number % 2).unwrap();
        device.write(address("forward.entry3.valid"), 1).unwrap();
        device.end().unwrap();
    }
    let sent = board.lock().unwrap().paced.take().unwrap();
    let left = board.lock().unwrap().carry(&[(0, vec![4; 60])]);
    let matches = device.read(address("forward.entry0.matches")).unwrap();
    let numbers = left.map(|left| {
        let of_entry = left.into_iter().filter(|frame| frame[0] == 2);
        of_entry.map(|frame| u32::from_be_bytes(frame[20..24].try_into().unwrap())).collect::<Vec<_>>()
    });
    assert!(sent > 400 && numbers.iter().all(|left| left.is_sorted()));
    // Which ports each frame left by, and how often that changed.
    let ports = |number: u32| numbers.each_ref().map(|left| left.contains(&number));
    let said: Vec<[bool; 2]> = (0..sent).map(ports).collect();
    assert!(!said.contains(&[false; 2]), "a frame was lost");
    let mut changes = said.clone();
    changes.dedup();
    let (one, other) = ([true, false], [false, true]);
    assert_eq!(changes, [other, one, other, [true, true], one, other]);
    // The entry counts all frames since then.
    assert_eq!(matches as usize, said.iter().rev().take_while(|left| **left == other).count());
    assert_eq!(
        numbers.map(|left| left.len()).iter().sum::<usize>(),
        said.as_flattened().iter().filter(|left| **left).count()
    );
}

/// What a request writes to a table costs one change of the memories, however often it writes; each count that it starts again does.
#[test]
fn a_request_changes_a_table_once() {
    let node = file(MacLink::Xgmii, "hardware");
    let top = Top::new(&node, &Programs::default(), 0, Bus::Axi4Lite).unwrap().unwrap();
    let board = Arc::new(Mutex::new(Board::new(&node, &top, Link::Xgmii, MACS)));
    let mut device =
        MappedDevice::new(&node, &top, Box::new(Registers(Arc::clone(&board), 0)), Vec::new()).unwrap();
    let of = map(&node);
    let address = |name: &str| of.iter().find(|of| of.name == name).unwrap().address;
    let mut cycles = |times: u32| {
        let before = board.lock().unwrap().record.len();
        device.begin();
        for time in 0..times {
            // An entry that all frames meet has a bit in all words.
            device.write(address("forward.entry4.mask"), (time % 2) << 24).unwrap();
            device.write(address("forward.entry4.valid"), 1).unwrap();
        }
        device.end().unwrap();
        board.lock().unwrap().record.len() - before
    };
    let (first, once, often) = (cycles(1), cycles(2), cycles(1001));
    assert!(first > 1000 && once < 2 * first && often < 2 * first, "{first}, {once} and {often} cycles");
}

/// The halves of a number are of one moment, also while it goes on.
#[test]
fn both_halves_of_a_number_are_of_one_moment() {
    let node = file(MacLink::Xgmii, "hardware");
    let top = Top::new(&node, &Programs::default(), 0, Bus::Axi4Lite).unwrap().unwrap();
    let board = Arc::new(Mutex::new(Board::new(&node, &top, Link::Xgmii, MACS)));
    let mut device =
        MappedDevice::new(&node, &top, Box::new(Registers(Arc::clone(&board), 0)), Vec::new()).unwrap();
    let address = map(&node).iter().find(|of| of.name == "p0.rx.frames").unwrap().address;
    device.begin();
    assert_eq!(device.read(address), Ok(0));
    let before = board.lock().unwrap().record.len();
    assert_eq!(device.read(address + 4), Ok(0));
    assert_eq!(board.lock().unwrap().record.len(), before, "the upper half was read from the board");
    device.begin();
    assert_eq!(device.read(address + 4), Ok(0));
    assert!(board.lock().unwrap().record.len() > before);
}

/// A loop that nothing comes into has no registers; one with a way in has.
#[test]
fn loops_are_hardware_where_frames_get_in() {
    let text = std::fs::read_to_string(FILE).unwrap();
    let closed = format!(
        "{text}{}",
        r#"
        [[block]]
        name = "other"
        function = "all"
        kind = "demultiplexer"
        ports = 2
        [[block]]
        name = "third"
        function = "all"
        kind = "tcam"
        size = 2
        [[connection]]
        from = "other.out0"
        to = "third.in"
        [[connection]]
        from = "third.out"
        to = "other.in"
        "#
    );
    let top = |text: &str| {
        let node = NodeFile::parse("node.toml", text).unwrap_or_else(|why| panic!("{}", why.render(false)));
        Top::new(&node, &Programs::default(), 0, Bus::Axi4Lite).map(Option::unwrap)
    };
    let why = top(&closed).unwrap_err().to_string();
    let wanted = "block `other`: what comes in has left by it, without a queue or another way in: no frame ever gets there";
    assert_eq!(why, wanted);
    // What the manager of the switch would get comes there.
    let open = format!("{closed}[[connection]]\nfrom = \"spread.manager\"\nto = \"third.in\"\n");
    assert!(Simulator::new(&top(&open).unwrap().design).is_ok());
}

#[test]
fn other_boards_are_refused() {
    let node = file(MacLink::Xgmii, "hardware");
    let top = Top::new(&node, &Programs::default(), 0, Bus::Axi4Lite).unwrap().unwrap();
    let refused = |top: &Top, board: Box<dyn Device>| {
        MappedDevice::new(&node, top, board, Vec::new()).unwrap_err().to_string()
    };
    // The same registers, but queues of another size.
    let mut other = node.clone();
    for block in &mut other.blocks {
        if let millrace_node::Kind::Queue(queue) = &mut block.kind {
            queue.bytes = 32 << 10;
        }
    }
    let other = Top::new(&other, &Programs::default(), 0, Bus::Axi4Lite).unwrap().unwrap();
    let board = Registers(Arc::new(Mutex::new(Board::new(&node, &other, Link::Xgmii, MACS))), 0);
    assert!(refused(&top, Box::new(board)).contains("of another program"), "the cookie");
    // No registers of this kind.
    let simulated = HardwareDevice::new(&node, &top).unwrap();
    assert!(refused(&top, Box::new(simulated)).contains("no registers of this kind"));
    // Frames go to software.
    let mut split = node.clone();
    for name in ["queue1", "serve1"] {
        let block = split.block(name).unwrap();
        split.blocks[block].placement = millrace_node::Placement::Software;
    }
    let top = Top::new(&split, &Programs::default(), 0, Bus::Axi4Lite).unwrap().unwrap();
    let board = Registers(Arc::new(Mutex::new(Board::new(&node, &top, Link::Xgmii, MACS))), 0);
    assert_eq!(
        refused(&top, Box::new(board)),
        "block `p1` and blocks that are not in this hardware send each other frames: mapped registers carry none"
    );
}
