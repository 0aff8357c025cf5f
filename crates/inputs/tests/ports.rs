//! Chains on queue pairs: what goes on, what is counted, what is told of flows.

use millrace_drivers::{FarEnd, MemoryPort, Next, QueuePair, Received, wait_readable};
use millrace_frames::{Batch, PacketPool};
use millrace_inputs::{Inputs, Plan, PortChain, ProgramChains};
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Frames that come, and those that have left.
#[derive(Clone, Default)]
struct Wire {
    coming: Vec<Vec<u8>>,
    at: usize,
    left: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl FarEnd for Wire {
    fn next(&mut self) -> Next<'_> {
        self.at += 1;
        self.coming.get(self.at - 1).map_or(Next::End, |frame| Next::Frame(frame))
    }

    fn take(&mut self, frame: &[u8]) -> bool {
        self.left.lock().unwrap().push(frame.to_vec());
        true
    }
}

/// Ethernet, IPv4 from 10.0.0.`host`, UDP to a port; `number` tells frames apart.
fn udp(host: u8, port: u16, number: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, host, 10, 9, 9, 9, 0x80, 0]);
    frame.extend(port.to_be_bytes());
    frame.extend([0, 26, 0, 0, number]);
    frame.resize(60, 0);
    frame
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("millrace-inputs-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(chains: &[(&str, bool)]) -> Inputs {
    let chains = chains.iter().map(|(text, is_output)| PortChain::parse(text, *is_output).unwrap());
    let plan = Plan::new(&[0, 1, 2, 3], &chains.collect::<Vec<_>>(), &[]).unwrap();
    let mut inputs = Inputs::open(plan).unwrap();
    inputs.start().unwrap();
    inputs
}

/// Takes all that comes, in batches of at most `limit`, and sends it again.
fn relay(mut port: Box<dyn QueuePair>, limit: usize) -> Vec<Vec<u8>> {
    let mut pool = PacketPool::new(2 * limit);
    let mut batch = Batch::with_limit(limit);
    let mut received = Vec::new();
    loop {
        let result = port.receive(&mut batch, &mut pool).unwrap();
        received.extend(batch.packets().iter().map(|packet| packet.data().to_vec()));
        port.transmit(&mut batch, &mut pool).unwrap();
        assert!(batch.is_empty() && pool.available() == 2 * limit, "no packet is lost to the pool");
        if result == Received::End {
            return received;
        }
    }
}

#[test]
fn both_directions_pass_their_chains_and_all_is_counted() {
    let frames: Vec<Vec<u8>> = (0..150).map(|number| udp(1, 50 + u16::from(number % 5), number)).collect();
    for limit in [1, 7, 64] {
        let mut inputs = open(&[
            ("3:filter \"udp dst portrange 50-52\" | sample 1/3", false),
            ("3:filter \"not udp port 51\"", true),
        ]);
        let wire = Wire { coming: frames.clone(), ..Wire::default() };
        let left = Arc::clone(&wire.left);
        let port = inputs.wrap(3, Box::new(MemoryPort::new(wire))).unwrap();
        let received = relay(port, limit);
        // Ports 50, 51, 52, 50, ...: every third one is 50 again.
        let selected: Vec<_> = frames.iter().filter(|frame| frame[37] < 53).step_by(3).cloned().collect();
        assert_eq!(received, selected);
        assert!(received.iter().all(|frame| frame[37] == 50));
        assert_eq!(*left.lock().unwrap(), selected);
        let counts: Vec<_> = inputs
            .end()
            .iter()
            .map(|step| (step.place.step, step.place.plugin, step.packets, step.passed, step.dropped))
            .collect();
        assert_eq!(counts, [(1, "filter", 150, 90, 60), (2, "sample", 90, 30, 60), (1, "filter", 30, 30, 0)]);
    }
}

#[test]
fn what_is_not_selected_is_told_as_flows() {
    let folder = Folder::new("flows");
    let (rest, sent) = (folder.path("rest.json"), folder.path("sent.ipfix"));
    let input = format!("0:filter \"udp port 53\" else account {rest} flows=2");
    let output = format!("0:account {sent}");
    let mut inputs = open(&[(&input, false), (&output, true)]);
    // Flows of three hosts to port 80 with 1, 2 and 3 packets, and one to port 53.
    let frames = [
        udp(1, 80, 0),
        udp(2, 80, 1),
        udp(1, 53, 2),
        udp(2, 80, 3),
        udp(3, 80, 4),
        udp(3, 80, 5),
        udp(3, 80, 6),
    ];
    let wire = Wire { coming: frames.to_vec(), ..Wire::default() };
    let port = inputs.wrap(0, Box::new(MemoryPort::new(wire))).unwrap();
    assert_eq!(relay(port, 64), [frames[2].clone()]);
    let status = inputs.end();
    let text = std::fs::read_to_string(&rest).unwrap();
    let told: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = told
        .iter()
        .map(|flow| {
            (
                flow["source"].as_str().unwrap(),
                flow["packets"].as_u64().unwrap(),
                flow["bytes"].as_u64().unwrap(),
                flow["end"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [("10.0.0.1", 1, 60, "evicted"), ("10.0.0.2", 2, 120, "end"), ("10.0.0.3", 3, 180, "end")]
    );
    // A header, the templates (two of 13 elements, one of 11), and a set of one record of 52 bytes.
    let templates = 4 + 2 * (4 + 13 * 4) + 4 + 11 * 4;
    assert_eq!(std::fs::read(&sent).unwrap().len(), 16 + templates + 4 + 52);
    assert_eq!((status[0].packets, status[0].passed, status[0].accounted, status[0].dropped), (7, 1, 6, 0));
    let flows = status[0].flows.as_ref().unwrap();
    assert_eq!((flows.flows, flows.records, flows.lost, &flows.error), (0, 3, 0, &None));
}

/// Nothing comes, and there is no end.
struct Quiet(std::io::PipeReader);

impl FarEnd for Quiet {
    fn next(&mut self) -> Next<'_> {
        Next::None
    }

    fn take(&mut self, _: &[u8]) -> bool {
        true
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.0.as_raw_fd())
    }
}

/// What a worker does that has nothing to do: it waits for the descriptor of its port.
#[test]
fn a_flow_that_ends_while_nothing_comes_is_told() {
    let folder = Folder::new("quiet");
    let file = folder.path("flows.json");
    let mut inputs = open(&[(&format!("0:account {file} inactive=1"), true)]);
    let (reader, _writer) = std::io::pipe().unwrap();
    let mut port = inputs.wrap(0, Box::new(MemoryPort::new(Quiet(reader)))).unwrap();
    let mut pool = PacketPool::new(8);
    let mut batch = Batch::new();
    batch.add(&mut pool).unwrap().set_frame(&udp(1, 80, 0)).unwrap();
    port.transmit(&mut batch, &mut pool).unwrap();
    let start = Instant::now();
    while std::fs::read_to_string(&file).unwrap().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20), "nothing is told");
        wait_readable(&[port.poll_fd().unwrap()], Some(Duration::from_millis(2500))).unwrap();
        assert_eq!(port.receive(&mut batch, &mut pool).unwrap(), Received::Idle);
    }
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert!(std::fs::read_to_string(&file).unwrap().contains("\"idle\""));
}

#[test]
fn a_file_that_cannot_be_written_is_said_and_packets_go_on() {
    if !std::path::Path::new("/dev/full").exists() {
        return;
    }
    let mut inputs = open(&[("0:account /dev/full", false)]);
    let wire = Wire { coming: vec![udp(1, 80, 0)], ..Wire::default() };
    let port = inputs.wrap(0, Box::new(MemoryPort::new(wire))).unwrap();
    assert_eq!(relay(port, 64).len(), 1);
    let flows = inputs.end().remove(0).flows.unwrap();
    assert_eq!((flows.records, flows.lost), (0, 1));
    assert!(flows.error.unwrap().contains("No space left"));
}

#[test]
fn a_port_without_a_chain_is_what_it_was() {
    let mut inputs = open(&[("1:filter \"tcp\"", false)]);
    let wire = Wire { coming: vec![udp(1, 80, 0)], ..Wire::default() };
    let port: Box<dyn QueuePair> = Box::new(MemoryPort::new(wire));
    let address = std::ptr::from_ref(&*port).cast::<u8>();
    let port = inputs.wrap(0, port).unwrap();
    assert_eq!(address, std::ptr::from_ref(&*port).cast::<u8>());
}

#[test]
fn two_accounts_of_one_file_and_two_chains_of_a_port_are_refused() {
    let folder = Folder::new("twice");
    let file = folder.path("flows.json");
    let parse = |text: &str| PortChain::parse(text, false).unwrap();
    let refused = |chains: Vec<PortChain>| match Plan::new(&[0, 1, 4], &chains, &[]).and_then(Inputs::open) {
        Ok(_) => panic!("they are taken"),
        Err(error) => error.to_string(),
    };
    let twice = parse(&format!("0:account {file} | account {file}"));
    assert_eq!(refused(vec![twice]), format!("{file} is the file of two accounts"));
    let chains = vec![parse("4:sample 1/2"), parse("4:sample 1/3")];
    assert_eq!(refused(chains), "port 4 has two chains for its input");
    let never = folder.path("never.json");
    let chains = vec![parse(&format!("0:account {never}")), parse("1:prefix dst \"10.0.0.1/8\"")];
    assert!(refused(chains).contains("bits beyond its prefix"));
    assert!(!std::path::Path::new(&never).exists(), "a file was made though a list is wrong");
}

/// A port whose queue pair may get the chains of other programs, and what prepares these.
struct Succeeded {
    port: Box<dyn QueuePair>,
    chains: ProgramChains,
    inputs: Inputs,
    left: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// Port 0 with frames to come: of the operator it has `given`, of the first program `asked`.
fn succeeded(given: &[(&str, bool)], asked: &[(&str, bool)], coming: Vec<Vec<u8>>) -> Succeeded {
    let parse = |chains: &[(&str, bool)]| -> Vec<PortChain> {
        chains.iter().map(|(text, is_output)| PortChain::parse(text, *is_output).unwrap()).collect()
    };
    let mut inputs = Inputs::open(Plan::new(&[0], &parse(given), &parse(asked)).unwrap()).unwrap();
    inputs.start().unwrap();
    let chains = inputs.expect_programs().unwrap();
    let wire = Wire { coming, ..Wire::default() };
    let left = Arc::clone(&wire.left);
    let port = inputs.wrap(0, Box::new(MemoryPort::new(wire))).unwrap();
    Succeeded { inputs, chains, port, left }
}

impl Succeeded {
    /// The last bytes of the next frames that come in, of so many at most, and sends them again.
    fn relay(&mut self, limit: usize) -> Vec<u8> {
        let mut pool = PacketPool::new(limit);
        let mut batch = Batch::with_limit(limit);
        self.port.receive(&mut batch, &mut pool).unwrap();
        let received = batch.packets().iter().map(|packet| packet.data()[42]).collect();
        self.port.transmit(&mut batch, &mut pool).unwrap();
        received
    }

    fn plugins(&self) -> Vec<(bool, &'static str, u64)> {
        self.inputs
            .shown()
            .now()
            .iter()
            .map(|step| (step.place.is_output, step.place.plugin, step.packets))
            .collect()
    }
}

#[test]
fn the_chains_of_the_next_program_begin_with_the_next_batch_and_the_operators_stay() {
    let frames = (0..12).map(|number| udp(1, 50 + u16::from(number % 3), number)).collect();
    let mut port =
        succeeded(&[("*:filter \"not udp port 52\"", true)], &[("0:filter \"udp port 50\"", false)], frames);
    assert_eq!(port.relay(4), [0, 3]);
    assert_eq!(port.plugins(), [(false, "filter", 4), (true, "filter", 2)]);
    // The next one asks for something in both directions; the output is the operator's.
    let asked = [(false, "0:sample 1/2"), (true, "0:sample 1/2"), (false, "7:sample 1/3")];
    let next = port.chains.prepare(asked.into_iter()).unwrap();
    assert_eq!(port.relay(4), [6], "the first program runs on while the next one is prepared");
    next.start();
    assert_eq!(port.relay(4), [8, 10]);
    assert_eq!(
        port.plugins(),
        [(false, "sample", 4), (true, "filter", 5)],
        "counters of the program's begin again"
    );
    // One that asks for nothing has nothing before it.
    port.chains.prepare(std::iter::empty()).unwrap().start();
    assert_eq!(port.plugins(), [(true, "filter", 5)]);
    let left: Vec<u8> = port.left.lock().unwrap().iter().map(|frame| frame[42]).collect();
    assert_eq!(left, [0, 3, 6, 10], "8 is to port 52");
}

#[test]
fn a_later_program_opens_no_files_but_goes_on_with_those_that_are_open() {
    let folder = Folder::new("later");
    let (flows, list, other) =
        (folder.path("flows.json"), folder.path("list.txt"), folder.path("other.json"));
    std::fs::write(&list, "10.0.0.1/32").unwrap();
    let first = format!("0:prefix src @{list} | account {flows}");
    let frames = vec![udp(1, 80, 0), udp(2, 80, 1), udp(1, 81, 2), udp(2, 81, 3)];
    let mut port = succeeded(&[], &[(&first, false)], frames);
    assert_eq!(port.relay(2), [0]);
    // The list is not read again.
    std::fs::remove_file(&list).unwrap();
    let refused = |text: &str| match port.chains.prepare([(false, text)].into_iter()) {
        Ok(_) => panic!("it is taken"),
        Err(error) => error.to_string(),
    };
    let message =
        "is no file of the chains that the switch started with, and a program that comes later opens none";
    assert_eq!(refused(&format!("0:account {other}")), format!("{other} {message}"));
    assert_eq!(refused(&format!("0:account {flows} format=ipfix")), format!("{flows} {message}"));
    assert_eq!(refused("0:prefix dst @/etc/passwd"), format!("/etc/passwd {message}"));
    assert_eq!(
        refused(&format!("0:account {flows} | account {flows}")),
        format!("{flows} is the file of two accounts")
    );
    assert!(refused("0:filter \"udp prot\"").contains("^^^^"));
    assert!(!std::path::Path::new(&other).exists());
    let next = format!("0:account {flows} | prefix src @{list}");
    port.chains.prepare([(false, next.as_str())].into_iter()).unwrap().start();
    assert_eq!(port.relay(2), [2]);
    let Succeeded { inputs, port, chains, .. } = port;
    drop((port, chains));
    let steps = inputs.end();
    assert_eq!(
        steps.iter().map(|step| (step.place.plugin, step.passed)).collect::<Vec<_>>(),
        [("account", 2), ("prefix", 1)]
    );
    let text = std::fs::read_to_string(&flows).unwrap();
    let mut told: Vec<(String, u64)> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|flow| {
            (format!("{} {}", flow["source"], flow["destination_port"]), flow["packets"].as_u64().unwrap())
        })
        .collect();
    told.sort();
    let wanted = [("\"10.0.0.1\" 80", 1), ("\"10.0.0.1\" 81", 1), ("\"10.0.0.2\" 81", 1)];
    assert_eq!(told, wanted.map(|(flow, packets)| (flow.to_owned(), packets)), "those of both programs");
}

#[test]
fn a_file_of_the_operators_is_not_a_programs() {
    let folder = Folder::new("operators");
    let flows = folder.path("flows.json");
    let given = format!("0:account {flows}");
    let port = succeeded(&[(&given, true)], &[], vec![]);
    let refused = port.chains.prepare([(false, given.as_str())].into_iter()).err().unwrap();
    assert_eq!(refused.to_string(), format!("{flows} is the file of two accounts"));
}
