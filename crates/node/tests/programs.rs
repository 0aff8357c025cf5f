//! P4 programs as blocks of a node, and managers that are answered from outside.

use millrace_link::{Client, Event, Server};
use millrace_node::interface::Item;
use millrace_node::{Graph, NodeFile, Shared, map};
use millrace_stf::parse;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/nodes");

fn load(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(Path::new(FOLDER).join(path)).map_err(|why| why.to_string())
}

fn node(text: &str) -> (NodeFile, Graph) {
    let file = NodeFile::parse("node.toml", text).unwrap_or_else(|why| panic!("{}", why.render(false)));
    let graph = Graph::new(&file, &mut load).unwrap_or_else(|why| panic!("{why}"));
    (file, graph)
}

/// What leaves by the MACs of the node when the frames of the program's test come to them.
fn run(text: &str) -> (Vec<(String, Vec<u8>)>, u32) {
    let (file, mut graph) = node(text);
    let test = std::fs::read_to_string(Path::new(FOLDER).join("../nat.stf")).unwrap();
    let test = parse(&test).unwrap();
    let mut left = Vec::new();
    for (port, frame) in test.frames() {
        let Some(mac) = file.block(&format!("p{port}")) else { continue };
        assert!(graph.receive(mac, frame, 0));
        while graph.turn(0) {}
        for name in ["p1", "p2"] {
            let block = file.block(name).unwrap();
            left.extend(std::iter::from_fn(|| graph.leave_by(block)).map(|frame| (name.to_owned(), frame)));
        }
    }
    let tables = map(&file).into_iter().find(|of| of.name == "nat.link.tables").unwrap();
    (left, graph.read(tables.address))
}

#[test]
fn a_program_does_the_same_in_each_placement() {
    let split = std::fs::read_to_string(Path::new(FOLDER).join("nat.toml")).unwrap();
    let tables = "software = [\"binding_in\", \"binding_out\"]\n";
    assert!(split.contains(tables));
    let hardware = split.replace(tables, "");
    let software = hardware.replace("placement = \"hardware\"\n", "");
    let (wanted, none) = run(&software);
    assert!(
        wanted.iter().any(|(name, _)| name == "p1")
            && wanted.iter().any(|(name, _)| name == "p2")
            && none == 0
    );
    assert_eq!(run(&hardware), (wanted.clone(), 0));
    let (found, applied) = run(&split);
    assert!(found == wanted && applied > 0, "{applied} tables were applied in software");
}

/// A node whose program is in hardware or not, and blocks before and after it in software.
fn between_software(placement: &str, program: &str) -> (NodeFile, Graph) {
    node(&format!(
        r#"
        [[device]]
        name = "d"
        [[service]]
        name = "s"
        [[function]]
        name = "f"
        service = "s"
        device = "d"
        [[block]]
        name = "p"
        function = "f"
        kind = "mac"
        port = 300
        [[block]]
        name = "select"
        function = "f"
        kind = "octet_selector"
        octets = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
        [[block]]
        name = "match"
        function = "f"
        kind = "tcam"
        [[block.entry]]
        value = "0x00"
        mask = "0x00"
        to = ["out1", "out9"]
        class = 5
        [[block]]
        name = "program"
        function = "f"
        kind = "p4"
        placement = "{placement}"
        program = "../../crates/node/tests/p4/{program}.p4"
        entries = "../../crates/node/tests/p4/{program}.entries"
        cpu-port = 1
        [[block]]
        name = "ask"
        function = "f"
        kind = "manager"
        [[connection]]
        from = "p.rx"
        to = "select.in"
        [[connection]]
        from = "select.out"
        to = "match.in"
        [[connection]]
        from = "match.out"
        to = "program.in2"
        [[connection]]
        from = "program.manager"
        to = "ask.in"
        [[connection]]
        from = "program.out0"
        to = "ask.in"
        "#
    ))
}

/// Frames leave a program with the facts that they came with and the class that it gave them, the controller's port being an output too.
#[test]
fn a_program_in_hardware_keeps_the_facts_of_frames() {
    let run = |placement: &str| {
        let (file, mut graph) = between_software(placement, "edit");
        let mut left = Vec::new();
        for number in 0..12u8 {
            let frame: Vec<u8> =
                (0..60 + 9 * number).map(|at| if at < 2 { number % (3 + at) } else { at }).collect();
            assert!(graph.receive(file.block("p").unwrap(), &frame, 0));
            left.extend(std::iter::from_fn(|| graph.ask_outside()).map(|(_, item)| item));
        }
        let read = |of: &millrace_node::Mapped| {
            (0..of.words).map(|word| graph.read(of.address + 4 * word)).collect()
        };
        let counted: Vec<(String, Vec<u32>)> =
            map(&file).iter().map(|of| (of.name.clone(), read(of))).collect();
        (left, counted)
    };
    let (software, hardware) = (run("software"), run("hardware"));
    assert_eq!(software, hardware);
    let items = software.0;
    assert!(
        items.len() > 6
            && items.iter().all(|item| item.facts.port == 300 && item.facts.targets == 1 << 1 | 1 << 9)
    );
    assert!(items.iter().all(|item| item.facts.octets[2..] == item.bytes[2..16]));
    let mut classes: Vec<u8> = items.iter().map(|item| item.facts.class).collect();
    classes.sort_unstable();
    classes.dedup();
    // What has class 0 leaves by an output without a connection.
    assert_eq!(classes, [2, 7]);
}

/// More groups than a device holds: neither they nor what was written with them are there.
#[test]
fn commands_that_a_device_does_not_hold_change_nothing() {
    let (file, mut graph) = between_software("hardware", "again");
    let program = file.block("program").unwrap();
    let before = graph.command(program, "mc_dump\n").unwrap();
    let why = graph.command(program, "mc_mgrp_create 63\nmc_mgrp_create 64\n").unwrap_err().to_string();
    assert!(why.contains("multicast group 64 is not from 1 to 63 (limit GROUPS)"), "{why}");
    assert_eq!(graph.command(program, "mc_dump\n").unwrap(), before);
    assert!(graph.command(program, "mc_mgrp_create 63\n").is_ok());
}

/// Commands for a program, also in hardware: tables change while the node runs, what frames have counted is shown, and what is refused
/// leaves all as it was.
#[test]
fn commands_change_the_tables_of_a_program() {
    let run = |placement: &str| {
        let (file, mut graph) = between_software(placement, "edit");
        let (program, mac) = (file.block("program").unwrap(), file.block("p").unwrap());
        let mut said = Vec::new();
        let frame = |graph: &mut Graph, second: u8| {
            let mut frame = vec![0; 60];
            frame[1] = second;
            assert!(graph.receive(mac, &frame, 0));
            std::iter::from_fn(|| graph.ask_outside()).map(|(_, item)| item.facts.class).collect::<Vec<_>>()
        };
        // By the entries of the file: class 2, then what has no entry.
        let first = [frame(&mut graph, 1), frame(&mut graph, 5)];
        let mut command = |graph: &mut Graph, text: &str| {
            said.push(graph.command(program, text).map_err(|why| why.to_string()));
        };
        command(&mut graph, "table_modify outputs send 0 1 6\ntable_add outputs send 0x05 => 0 3\n");
        let second = [frame(&mut graph, 1), frame(&mut graph, 5)];
        command(&mut graph, "table_add outputs send 0x07 => 1 1\ntable_add outputs send 0x05 => 0 1\n");
        command(&mut graph, "table_add nothing send 0x07 => 1 1\n");
        let third = [frame(&mut graph, 7), frame(&mut graph, 1)];
        command(&mut graph, "counter_read In.uses 0\ntable_num_entries outputs\n");
        let none =
            graph.command(file.block("select").unwrap(), "table_clear outputs").unwrap_err().to_string();
        (first, second, third, said, none)
    };
    let software = run("software");
    assert_eq!(software, run("hardware"));
    assert_eq!(software, run("hardware\"\nsoftware = [\"outputs\"] # \""));
    let (first, second, third, said, none) = software;
    assert_eq!((first, second, third), ([vec![2], vec![7]], [vec![6], vec![3]], [vec![7], vec![6]]));
    assert!(said[1].as_ref().is_err_and(|why| why.starts_with("2: ")), "{said:?}");
    assert!(said[2].as_ref().is_err_and(|why| why.contains("nothing")), "{said:?}");
    assert!(said[3].as_ref().is_ok_and(|text| text.contains('3')), "{said:?}");
    assert!(none.contains("runs no program"), "{none}");
}

#[test]
fn a_client_of_the_link_is_the_manager() {
    let text = r#"
[[device]]
name = "board"
[[service]]
name = "s"
[[function]]
name = "f"
service = "s"
device = "board"
[[block]]
name = "p0"
function = "f"
kind = "mac"
port = 5
[[block]]
name = "outside"
function = "f"
kind = "manager"
buffer = 2
[[connection]]
from = "p0.rx"
to = "outside.in"
[[connection]]
from = "outside.out"
to = "p0.tx"
"#;
    let (file, graph) = node(text);
    let (mac, manager) = (file.block("p0").unwrap(), file.block("outside").unwrap());
    let shared = Shared::new(graph);
    let read = |name: &str| {
        let register = map(&file).into_iter().find(|of| of.name == name).unwrap();
        shared.lock().read(register.address)
    };
    // The buffer is bounded while nobody reads it.
    (0..3u8).for_each(|number| assert!(shared.lock().receive(mac, &[number; 60], 0)));
    assert_eq!([read("outside.waiting"), read("outside.lost")], [2, 1]);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let device = shared.device(&file);
    // The client is there before the buffer is looked at.
    let held = shared.lock();
    let server = Server::serve(listener, Box::new(device)).unwrap();
    let address = server.address();
    let client = std::thread::spawn(move || Client::connect(address, true).unwrap());
    std::thread::sleep(Duration::from_millis(200));
    drop(held);
    let mut client = client.join().unwrap();
    // There is room for another frame when the server has taken those that waited.
    let until = Instant::now() + Duration::from_secs(10);
    while read("outside.waiting") > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(shared.lock().receive(mac, &[7; 60], 0));
    let mut last = 0;
    while last != 7 {
        let event = client.event(Duration::from_secs(10)).unwrap().expect("a frame of the buffer");
        let Event::Frame { port, bytes } = event else { panic!("{event:?}") };
        let item = Item::decode(&bytes).unwrap();
        assert_eq!((usize::from(port), item.facts.port), (manager, 5));
        last = item.bytes[0];
        let answer = Item { bytes: vec![last + 100; 64], ..item };
        client.send(port, &answer.encode()).unwrap();
    }
    // A read comes after what was sent before it.
    client.read(0, 1).unwrap();
    let answers: Vec<u8> = std::iter::from_fn(|| shared.lock().leave_by(mac)).map(|frame| frame[0]).collect();
    assert_eq!(answers.last(), Some(&107));
    assert_eq!(read("outside.answers"), answers.len() as u32);
    // What is no answer is refused, and counted.
    client.send(mac as u16, &Item::default().encode()).unwrap();
    client.send(manager as u16, &[1, 2]).unwrap();
    client.read(0, 1).unwrap();
    assert_eq!(server.counts().refused, 2);
}
