//! Programs that share registers: their frames follow each other as if one program had met them all.

use millrace_link::Server;
use millrace_node::{Graph, Kind, NodeFile, SharedMemory, Sharer, map};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/nodes");
const WORDS: u32 = 2048;

/// Counts frames, and writes into each how many came before it.
const COUNTER: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<96> addresses; bit<32> number; bit<48> wide; }
struct headers_t { h_t h; }
struct meta_t { }
parser P(packet_in p, out headers_t hdr, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t m) { apply { } }
control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) {
    register<bit<32>>(3) count;
    register<bit<48>>(2) wide;
    apply {
        s.egress_spec = s.ingress_port;
        count.read(hdr.h.number, 2);
        count.write(2, hdr.h.number + 1);
        wide.read(hdr.h.wide, 1);
        wide.write(1, hdr.h.wide + 0x100000001);
    }
}
control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t hdr, inout meta_t m) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

const COUNTERS: &str = r#"
[[device]]
name = "board"
[[service]]
name = "s"
[[function]]
name = "f"
service = "s"
device = "board"
[[memory]]
name = "opened"
device = "board"
words = 2048
[[block]]
name = "p0"
function = "f"
kind = "mac"
[[block]]
name = "count"
function = "f"
kind = "p4"
program = "counter"
memory = "opened"
shared = ["wide", "I.count"]
[[connection]]
from = "p0.rx"
to = "count.in0"
[[connection]]
from = "count.out0"
to = "p0.tx"
"#;

fn load(path: &Path) -> Result<String, String> {
    match path.to_str() {
        Some("counter") => Ok(COUNTER.into()),
        _ => std::fs::read_to_string(Path::new(FOLDER).join(path)).map_err(|why| why.to_string()),
    }
}

fn gates() -> String {
    std::fs::read_to_string(Path::new(FOLDER).join("gates.toml")).unwrap()
}

fn parse(text: &str) -> NodeFile {
    NodeFile::parse("node.toml", text).unwrap_or_else(|why| panic!("{}", why.render(false)))
}

/// A node whose memory is in its process, or served somewhere, with leases of so many milliseconds.
fn node(text: &str, at: Option<SocketAddr>, lease_ms: u32) -> (NodeFile, Graph) {
    let mut file = parse(text);
    for memory in &mut file.memories {
        (memory.at, memory.lease_ms) = (at, lease_ms);
    }
    let graph = Graph::new(&file, &mut load).unwrap_or_else(|why| panic!("{why}"));
    (file, graph)
}

fn memory(port: u16) -> Server {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    Server::serve(listener, Box::new(SharedMemory::new("opened", WORDS).unwrap())).unwrap()
}

/// What leaves by each MAC, by its name, when a frame comes to one.
fn pass((file, graph): &mut (NodeFile, Graph), mac: &str, frame: &[u8]) -> Vec<(String, Vec<u8>)> {
    assert!(graph.receive(file.block(mac).unwrap(), frame, 0));
    while graph.turn(0) {}
    let mut left = Vec::new();
    for (number, block) in file.blocks.iter().enumerate() {
        if let Kind::Mac(_) = block.kind {
            let frames = std::iter::from_fn(|| graph.leave_by(number));
            left.extend(frames.map(|frame| (block.name.clone(), frame)));
        }
    }
    left
}

fn register((file, graph): &(NodeFile, Graph), name: &str) -> u32 {
    graph.read(map(file).into_iter().find(|of| of.name == name).unwrap().address)
}

/// A UDP datagram from one address and port to others.
fn datagram(from: (u8, u16), to: (u8, u16)) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, 0, from.0, 10, 0, 0, to.0]);
    frame.extend(from.1.to_be_bytes());
    frame.extend(to.1.to_be_bytes());
    frame.extend([0, 8, 0, 0]);
    frame.resize(60, 0);
    frame
}

#[test]
fn a_flow_that_one_device_has_opened_comes_back_by_the_other() {
    let (out, back) = (datagram((1, 1000), (2, 53)), datagram((2, 53), (1, 1000)));
    let mut shared = node(&gates(), None, 1000);
    assert_eq!(pass(&mut shared, "right_outside", &back), [], "before it is open");
    assert_eq!(pass(&mut shared, "left_inside", &out), [("left_outside".to_owned(), out.clone())]);
    assert_eq!(pass(&mut shared, "right_outside", &back), [("right_inside".to_owned(), back.clone())]);
    assert_eq!(pass(&mut shared, "right_outside", &datagram((3, 53), (1, 1000))), [], "of another host");
    assert_eq!(register(&shared, "right.memory.frames"), 3);
    assert_eq!((register(&shared, "left.memory.lost"), register(&shared, "right.memory.lost")), (0, 0));
    // Without the memory each device knows its own flows alone.
    let own = gates().replace("memory = \"opened\"\nshared = [\"open_first\", \"open_second\"]\n", "");
    let (section, rest) = own.split_once("[[memory]]").unwrap();
    let own = format!("{section}{}", &rest[rest.find("[[function]]").unwrap()..]);
    let mut alone = node(&own, None, 1000);
    pass(&mut alone, "left_inside", &out);
    assert_eq!(pass(&mut alone, "right_outside", &back), []);
    assert_eq!(pass(&mut alone, "left_outside", &back).len(), 1);
}

#[test]
fn sharers_do_what_one_program_would() {
    let server = memory(0);
    let mut one = node(&gates(), None, 1000);
    let mut two = [(), ()].map(|()| node(&gates(), Some(server.address()), 1000));
    // Numbers without order, the same each time.
    let mut number = 1u32;
    let mut next = |below: u32| {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (number >> 16) % below
    };
    let (mut passed, mut dropped) = (0, 0);
    for _ in 0..400 {
        let (inside, outside) = ((next(8) as u8, 1000), (100 + next(4) as u8, 53));
        let frame = if next(3) == 0 { datagram(inside, outside) } else { datagram(outside, inside) };
        let side = if next(2) == 0 { "inside" } else { "outside" };
        // The same gate for all frames of the one program, a gate of one of two nodes for the others.
        let wanted = pass(&mut one, &format!("left_{side}"), &frame);
        let (of, device) = (next(2) as usize, ["left", "right"][next(2) as usize]);
        let found = pass(&mut two[of], &format!("{device}_{side}"), &frame);
        let sides = |left: Vec<(String, Vec<u8>)>| {
            left.into_iter()
                .map(|(mac, frame)| (mac.split_once('_').unwrap().1.to_owned(), frame))
                .collect::<Vec<_>>()
        };
        let (wanted, found) = (sides(wanted), sides(found));
        assert_eq!(found, wanted);
        *if wanted.is_empty() { &mut dropped } else { &mut passed } += 1;
    }
    assert!(passed > 50 && dropped > 50, "{passed} passed, {dropped} were dropped");
}

/// The number and the wide one that a frame was given.
fn numbers(frame: &[u8]) -> (u32, u64) {
    let wide = frame[16..22].iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
    (u32::from_be_bytes(frame[12..16].try_into().unwrap()), wide)
}

#[test]
fn frames_of_nodes_that_run_at_once_follow_each_other() {
    const EACH: usize = 60;
    let server = memory(0);
    let threads = [(), (), ()].map(|()| {
        let address = server.address();
        std::thread::spawn(move || {
            // Long leases: a node that has to wait may do so however slow the machine is.
            let mut counter = node(COUNTERS, Some(address), 5000);
            let mut seen = Vec::new();
            for _ in 0..EACH {
                let left = pass(&mut counter, "p0", &[0; 60]);
                seen.extend(left.iter().map(|(_, frame)| numbers(frame)));
            }
            assert_eq!(register(&counter, "count.memory.lost"), 0);
            assert!(seen.is_sorted());
            seen
        })
    });
    let mut all: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    all.sort_unstable();
    let wanted = (0..3 * EACH as u32).map(|number| (number, u64::from(number) * 0x1_0000_0001));
    assert_eq!(all, wanted.collect::<Vec<_>>());
}

#[test]
fn who_keeps_a_lease_holds_frames_up_until_it_ends_and_they_are_counted() {
    let server = memory(0);
    let mut counter = node(COUNTERS, Some(server.address()), 1000);
    assert_eq!(pass(&mut counter, "p0", &[0; 60]).len(), 1);
    let mut other = Sharer::connect(server.address(), 7).unwrap();
    // Shorter than the patience of the block.
    other.take(Duration::from_millis(900)).unwrap();
    let left = pass(&mut counter, "p0", &[0; 60]);
    assert_eq!(left.iter().map(|(_, frame)| numbers(frame).0).collect::<Vec<_>>(), [1]);
    assert_eq!((register(&counter, "count.memory.waits"), register(&counter, "count.memory.lost")), (1, 0));
    other.take(Duration::from_secs(60)).unwrap();
    assert_eq!(pass(&mut counter, "p0", &[0; 60]), []);
    assert_eq!((register(&counter, "count.memory.waits"), register(&counter, "count.memory.lost")), (2, 1));
    // What the other one has written is what the next frame meets: cells of 48 bits have two words, of 32 bits one.
    other.finish(&[(2, 5), (3, 1), (6, 40)]).unwrap();
    let left = pass(&mut counter, "p0", &[0; 60]);
    assert_eq!(left.iter().map(|(_, frame)| numbers(frame)).collect::<Vec<_>>(), [(40, 0x1_0000_0005)]);
    assert_eq!(other.read(6, 1).unwrap().1, [41]);
}

#[test]
fn a_memory_that_goes_away_loses_frames_until_it_is_back() {
    let server = memory(0);
    let port = server.address().port();
    let mut counter = node(COUNTERS, Some(server.address()), 1000);
    for wanted in 0..3 {
        assert_eq!(numbers(&pass(&mut counter, "p0", &[0; 60])[0].1).0, wanted);
    }
    drop(server);
    for lost in 1..4 {
        assert_eq!(pass(&mut counter, "p0", &[0; 60]), []);
        assert_eq!(register(&counter, "count.memory.lost"), lost);
    }
    // Another one, which knows nothing: what counts is what the memory has.
    let _server = memory(port);
    std::thread::sleep(Duration::from_millis(150));
    let left = pass(&mut counter, "p0", &[0; 60]);
    assert_eq!(left.iter().map(|(_, frame)| numbers(frame)).collect::<Vec<_>>(), [(0, 0)]);
}

fn refused(text: &str, at: Option<SocketAddr>) -> String {
    let mut file = parse(text);
    file.memories[0].at = at;
    Graph::new(&file, &mut load).unwrap_err().to_string()
}

#[test]
fn registers_that_are_not_there_and_memories_of_others_are_refused() {
    let unknown = refused(&COUNTERS.replace("I.count", "I.other"), None);
    assert!(unknown.starts_with("block `count`: ") && unknown.contains("I.other"), "{unknown}");
    let twice = refused(&COUNTERS.replace("\"wide\"", "\"count\""), None);
    assert_eq!(twice, "block `count`: `shared` has the register `I.count` twice");
    let small = refused(&COUNTERS.replace("words = 2048", "words = 6"), None);
    let wanted = "the registers have 7 words, and the memory `opened` 6, at most 65536 (MAX_SHARED_WORDS)";
    assert_eq!(small, format!("block `count`: {wanted}"));
    let server = memory(0);
    let other = refused(&COUNTERS.replace("words = 2048", "words = 100"), Some(server.address()));
    assert!(other.contains("it is `opened` with 2048 words, not `opened` with 100"), "{other}");
    let address = server.address();
    drop(server);
    let nobody = refused(COUNTERS, Some(address));
    assert!(nobody.contains("the memory `opened` at 127.0.0.1:"), "{nobody}");
}
