//! The registers of a design at the bus of a processor: a board whose registers are mapped does what software does, and the design is the
//! same in Verilator.

use millrace_link::{Device, Event, Fault, Shape};
use millrace_netlist::{SignalId, Simulator};
use millrace_node::hardware::{HardwareDevice, MappedDevice, Programs, Top};
use millrace_node::{Graph, MacLink, Mapped, NodeFile, map};
use millrace_rtl::device::Link;
use millrace_rtl::device::wire::Wire;
use millrace_rtl::map::{Bus, Master, Pending, Request};
use millrace_rtl::{Effort, Pair};
use std::sync::{Arc, Mutex};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/nodes/board.toml");

/// The switch of the repository that is all hardware: the first octet of a frame says where it goes.
fn file(link: MacLink, placement: &str) -> NodeFile {
    let text = std::fs::read_to_string(FILE).unwrap();
    let text = text.replace("\"gmii\"", &format!("\"{}\"", link.word()));
    let text = text.replace("\"hardware\"", &format!("\"{placement}\""));
    NodeFile::parse("board.toml", &text).unwrap_or_else(|why| panic!("{}", why.render(false)))
}

/// A board: cycles pass while its registers are accessed, and frames come and leave by its links.
struct Board {
    sim: Simulator,
    bus: Master,
    wires: [Wire; 2],
    left: [Vec<Vec<u8>>; 2],
    inputs: Vec<(u32, Option<SignalId>)>,
    /// The inputs of each cycle, in words.
    record: Vec<Vec<u64>>,
    /// The number of the next frame that comes by the first link by itself, each in so many cycles; none do.
    paced: Option<u32>,
}

/// Cycles between two frames that come by themselves: more than a TCAM takes for one of 60 bytes.
const PACE: usize = 29;

impl Board {
    fn new(top: &Top, link: Link) -> Board {
        let sim = Simulator::new(&top.design).unwrap_or_else(|errors| panic!("{errors:?}"));
        let wire = |name: &str| Wire::of(&sim, link, [&format!("{name}.rx"), &format!("{name}.tx")]).unwrap();
        let (wires, bus) = (["p0", "p1"].map(wire), Master::of(&sim, top.bus));
        let inputs = top.design.modules[top.design.top().unwrap()].inputs.values();
        let inputs = inputs.map(|port| (port.width, sim.input(&port.name))).collect();
        Board { sim, bus, wires, left: Default::default(), inputs, record: Vec::new(), paced: None }
    }

    fn cycle(&mut self, request: Option<&mut Pending>) -> Option<u32> {
        if let Some(number) = self.paced.as_mut().filter(|_| self.record.len().is_multiple_of(PACE)) {
            let mut bytes = vec![2; 60];
            bytes[20..24].copy_from_slice(&number.to_be_bytes());
            *number += 1;
            self.wires[0].send(&bytes, false);
        }
        self.wires.iter_mut().for_each(|wire| wire.begin(&mut self.sim));
        let answer = request.and_then(|pending| self.bus.cycle(&mut self.sim, pending));
        for (wire, left) in self.wires.iter_mut().zip(&mut self.left) {
            left.extend(wire.end(&mut self.sim).map(|frame| {
                assert!(!frame.is_bad);
                frame.bytes
            }));
        }
        let mut words = Vec::new();
        for (width, signal) in &self.inputs {
            match signal {
                Some(signal) => words.extend(self.sim.get(*signal).limbs()),
                None => words.extend(std::iter::repeat_n(0, width.div_ceil(64) as usize)),
            }
        }
        self.record.push(words);
        self.sim.step();
        answer
    }

    fn request(&mut self, request: Request) -> Result<u32, Fault> {
        let mut pending = Pending::new(request);
        for _ in 0..100 {
            if let Some(answer) = self.cycle(Some(&mut pending)) {
                self.bus.idle(&mut self.sim);
                return Ok(answer);
            }
        }
        Err(Fault::new("the bus does not answer"))
    }

    /// Sends frames, one after the other; gives what leaves by both links until nothing does any more.
    fn carry(&mut self, frames: &[(usize, Vec<u8>)]) -> [Vec<Vec<u8>>; 2] {
        for (port, frame) in frames {
            self.wires[*port].send(frame, false);
            let mut idle = 0;
            while idle < 100 {
                self.cycle(None);
                idle = if self.wires.iter().all(Wire::is_idle) { idle + 1 } else { 0 };
            }
        }
        std::mem::take(&mut self.left)
    }
}

/// The registers of a board, as the kernel maps them.
#[derive(Clone)]
struct Registers(Arc<Mutex<Board>>);

impl Device for Registers {
    fn shape(&self) -> Shape {
        Shape { name: "board".to_owned(), bytes: 4096, ports: 0 }
    }

    fn read(&mut self, address: u32) -> Result<u32, Fault> {
        self.0.lock().unwrap().request(Request::Read(address))
    }

    fn write(&mut self, address: u32, word: u32) -> Result<(), Fault> {
        self.0.lock().unwrap().request(Request::Write(address, word)).map(|_| ())
    }

    fn send(&mut self, _: u16, _: &[u8]) -> Result<(), Fault> {
        Err(Fault::new("registers carry no frames"))
    }

    fn poll(&mut self, _: &mut dyn FnMut(Event)) -> Result<(), Fault> {
        Ok(())
    }
}

fn frames(from: u8, count: u8) -> Vec<(usize, Vec<u8>)> {
    let frame = |number: u8| {
        let mut bytes = vec![number; 60 + 3 * usize::from(number)];
        bytes[0] = 2 * (number % 4);
        (usize::from(number % 2), bytes)
    };
    (from..from + count).map(frame).collect()
}

/// What leaves a node in software by both ports, the same frames one after the other.
fn carry(graph: &mut Graph, node: &NodeFile, frames: &[(usize, Vec<u8>)]) -> [Vec<Vec<u8>>; 2] {
    let mut left = [Vec::new(), Vec::new()];
    for (port, frame) in frames {
        graph.receive(node.block(&format!("p{port}")).unwrap(), frame, 0);
        while graph.turn(0) {}
        for (port, left) in left.iter_mut().enumerate() {
            left.extend(std::iter::from_fn(|| graph.leave_by(node.block(&format!("p{port}")).unwrap())));
        }
    }
    left
}

/// All registers but those of the node itself, which the hardware does not have.
fn all(map: &[Mapped], mut read: impl FnMut(u32) -> u32) -> Vec<(String, Vec<u32>)> {
    let of_blocks = map.iter().filter(|of| !of.name.starts_with("node."));
    let mut value = |of: &Mapped| (0..of.words).map(|word| read(of.address + 4 * word)).collect();
    of_blocks.map(|of| (of.name.clone(), value(of))).collect()
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
    let board = Arc::new(Mutex::new(Board::new(&top, of_wire)));
    let open =
        || MappedDevice::new(&node, &top, Box::new(Registers(Arc::clone(&board))), Vec::new()).unwrap();
    let mut device = open();
    for part in 0..2 {
        let frames = frames(20 * part, 16);
        let (wanted, found) = (carry(&mut software, &plain, &frames), board.lock().unwrap().carry(&frames));
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
    let (wanted, found) = (carry(&mut software, &plain, &frames), board.lock().unwrap().carry(&frames));
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

/// What the board did, again and in a model of Verilator: every output in every cycle.
#[test]
fn verilator_does_the_same() {
    if std::process::Command::new("verilator").arg("--version").output().is_err() {
        println!("skipped, there is no verilator (Debian: verilator)");
        return;
    }
    let (top, board) = compare(MacLink::Xgmii, Bus::Axi4Lite);
    let mut pair = Pair::new(&top.design, Effort::Quick).unwrap();
    for (cycle, inputs) in board.record.iter().enumerate() {
        let mut words = inputs.iter().copied();
        pair.set_inputs(&mut || words.next().unwrap());
        if let Some((port, ours, theirs)) = pair.difference() {
            panic!("cycle {cycle}: {port} is {ours}, in Verilator {theirs}");
        }
        pair.step();
    }
    assert!(board.record.len() > 10_000, "{} cycles", board.record.len());
}

/// While frames come each of them meets the table as it was, or as it is after a write: none meets a part of it, or is lost.
#[test]
fn frames_meet_a_table_before_or_after_a_write() {
    let node = file(MacLink::Xgmii, "hardware");
    let top = Top::new(&node, &Programs::default(), 0, Bus::Axi4Lite).unwrap().unwrap();
    let board = Arc::new(Mutex::new(Board::new(&top, Link::Xgmii)));
    let open =
        || MappedDevice::new(&node, &top, Box::new(Registers(Arc::clone(&board))), Vec::new()).unwrap();
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
    let board = Arc::new(Mutex::new(Board::new(&top, Link::Xgmii)));
    let mut device =
        MappedDevice::new(&node, &top, Box::new(Registers(Arc::clone(&board))), Vec::new()).unwrap();
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
    let board = Arc::new(Mutex::new(Board::new(&top, Link::Xgmii)));
    let mut device =
        MappedDevice::new(&node, &top, Box::new(Registers(Arc::clone(&board))), Vec::new()).unwrap();
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
    let board = Registers(Arc::new(Mutex::new(Board::new(&other, Link::Xgmii))));
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
    let board = Registers(Arc::new(Mutex::new(Board::new(&top, Link::Xgmii))));
    assert_eq!(
        refused(&top, Box::new(board)),
        "block `p1` and blocks that are not in this hardware send each other frames: mapped registers carry none"
    );
}
