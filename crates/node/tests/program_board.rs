//! A board whose design has a program in it, with registers of its own: it does what software does, also for a driver that starts again,
//! and the design is the same in Verilator.

#[allow(dead_code)]
mod board;
mod lint;

use board::{Board, Registers, all, carry, verilated};
use millrace_link::Device;
use millrace_node::hardware::{HardwareDevice, MappedDevice, Programs, Top};
use millrace_node::{Graph, NodeFile, map};
use millrace_rtl::Target;
use millrace_rtl::device::Link;
use millrace_rtl::map::Bus;
use millrace_stf::parse;
use std::path::Path;
use std::sync::{Arc, Mutex};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/nodes");

/// The MACs of the board.
const MACS: [&str; 2] = ["inside", "outside"];

fn load(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(Path::new(FOLDER).join(path)).map_err(|why| why.to_string())
}

fn file(placement: &str) -> NodeFile {
    let text = load(Path::new("nat_board.toml")).unwrap();
    let text = text.replace("\"hardware\"", &format!("\"{placement}\"")).replace("\"gmii\"", "\"xgmii\"");
    NodeFile::parse("nat_board.toml", &text).unwrap_or_else(|why| panic!("{}", why.render(false)))
}

fn graph(node: &NodeFile) -> Graph {
    Graph::new(node, &mut load).unwrap_or_else(|why| panic!("{why}"))
}

/// The frames of the program's test for both MACs, as long as a link has them.
fn frames() -> Vec<(usize, Vec<u8>)> {
    let test = parse(&load(Path::new("../nat.stf")).unwrap()).unwrap();
    let of_macs = test.frames().filter_map(|(port, frame)| {
        let mac = [0, 2].iter().position(|of_mac| *of_mac == port)?;
        let mut frame = frame.to_vec();
        frame.resize(frame.len().max(60), 0);
        Some((mac, frame))
    });
    of_macs.collect()
}

fn top(node: &NodeFile, bus: Bus) -> Top {
    let programs = Programs::of(node, (bus, Target::default()), &mut load).unwrap();
    assert_eq!(programs.alone().next(), None);
    Top::new(node, &programs, 0, bus).unwrap().unwrap()
}

fn compare(bus: Bus) -> (Top, Board) {
    let (node, plain) = (file("hardware"), file("software"));
    let (mut software, map, top) = (graph(&plain), map(&node), top(&node, bus));
    let board = Arc::new(Mutex::new(Board::new(&node, &top, Link::Xgmii, MACS)));
    let registers = |bus: usize| -> Box<dyn Device> { Box::new(Registers(Arc::clone(&board), bus)) };
    let open = || MappedDevice::new(&node, &top, registers(0), vec![registers(1)]).unwrap();
    let frames = frames();
    for part in 0..2 {
        // The second driver finds a board whose tables are what they are to be, and writes none.
        let before = board.lock().unwrap().record.len();
        let mut device = open();
        let cycles = board.lock().unwrap().record.len() - before;
        assert!(if part == 0 { cycles > 2000 } else { cycles < 2000 }, "{cycles} cycles");
        let wanted = carry(&mut software, &plain, MACS, &frames);
        let found = board.lock().unwrap().carry(&frames);
        assert!(wanted == found && wanted.iter().all(|left| left.len() > 2), "{bus:?}, part {part}");
        let wanted = all(&map, |address| software.read(address));
        assert_eq!(wanted, all(&map, |address| device.read(address).unwrap()), "{bus:?}, part {part}");
        let value = |name: &str| wanted.iter().find(|(of, _)| of == name).unwrap().1[0];
        assert!(value("nat.frames") > 10 && value("nat.sent") > 5 && value("nat.dropped") > 1);
    }
    let board = Arc::into_inner(board).unwrap().into_inner().unwrap();
    (top, board)
}

#[test]
fn a_board_with_a_program_does_what_software_does() {
    compare(Bus::AvalonMm);
}

#[test]
fn verilator_does_the_same() {
    let (top, board) = compare(Bus::Axi4Lite);
    verilated(&top, &board);
    lint::has_nothing_to_say(&top);
}

/// Commands go to the tables of the board; a driver that starts again has the entries of the file there.
#[test]
fn commands_go_to_a_board_until_its_driver_starts_again() {
    let node = file("hardware");
    let (top, nat) = (top(&node, Bus::Axi4Lite), node.block("nat").unwrap() as u16);
    let board = Arc::new(Mutex::new(Board::new(&node, &top, Link::Xgmii, MACS)));
    let registers = |bus: usize| -> Box<dyn Device> { Box::new(Registers(Arc::clone(&board), bus)) };
    let open = || MappedDevice::new(&node, &top, registers(0), vec![registers(1)]).unwrap();
    let left = || board.lock().unwrap().carry(&frames()).map(|left| left.len());
    let mut device = open();
    let wanted = left();
    assert!(device.ask(nat, "table_clear ipv4_lpm\n").is_ok());
    assert_eq!(left(), [0, 0]);
    assert!(device.ask(nat, "table_clear no_such_table\n").is_err());
    drop(device);
    drop(open());
    // One that finds them there goes on from there.
    let mut device = open();
    assert_eq!(left(), wanted);
    assert!(device.ask(nat, "table_clear ipv4_lpm\n").is_ok());
    assert_eq!(left(), [0, 0]);
    assert!(device.ask(nat + 1, "").is_err());
}

#[test]
fn registers_of_a_program_have_to_be_there() {
    let node = file("hardware");
    let top = top(&node, Bus::Axi4Lite);
    let board = Arc::new(Mutex::new(Board::new(&node, &top, Link::Xgmii, MACS)));
    let registers = |bus: usize| -> Box<dyn Device> { Box::new(Registers(Arc::clone(&board), bus)) };
    let refused = |programs| MappedDevice::new(&node, &top, registers(0), programs).unwrap_err().to_string();
    assert_eq!(refused(Vec::new()), "1 programs have registers of their own, and 0 are given");
    // Those of the node are not those of the program.
    assert!(refused(vec![registers(0)]).contains("of another program"));
    assert!(HardwareDevice::new(&node, &top).is_ok());
}
