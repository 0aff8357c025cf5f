//! Hardware of a node that is served elsewhere, and nodes of several devices.

use millrace_link::Server;
use millrace_node::hardware::{HardwareDevice, Programs, Top};
use millrace_node::{Graph, NodeFile, map};
use millrace_rtl::map::Bus;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

/// A MAC in software, a queue and a scheduler on one device, and the MAC that they send by on another one; that many KiB in the queue.
fn file(placement: &str, bytes: u32) -> NodeFile {
    let text = format!(
        r#"
        [[device]]
        name = "near"
        [[device]]
        name = "far"
        [[service]]
        name = "service"
        [[function]]
        name = "in"
        service = "service"
        device = "near"
        [[function]]
        name = "wait"
        service = "service"
        device = "near"
        placement = "{placement}"
        [[function]]
        name = "out"
        service = "service"
        device = "far"
        placement = "{placement}"
        [[block]]
        name = "p0"
        function = "in"
        kind = "mac"
        port = 0
        [[block]]
        name = "q"
        function = "wait"
        kind = "queue"
        frames = 8
        bytes = "{bytes}KiB"
        [[block]]
        name = "s"
        function = "wait"
        kind = "scheduler"
        ports = 1
        [[block]]
        name = "p1"
        function = "out"
        kind = "mac"
        port = 1
        [[connection]]
        from = "p0.rx"
        to = "q.in"
        [[connection]]
        from = "q.out"
        to = "s.in0"
        [[connection]]
        from = "s.out"
        to = "p1.tx"
        interface = "FDI"
        [[connection]]
        from = "p1.rx"
        to = "p0.tx"
        "#
    );
    NodeFile::parse("node.toml", &text).unwrap_or_else(|why| panic!("{}", why.render(false)))
}

fn graph(file: &NodeFile) -> Result<Graph, String> {
    Graph::new(file, &mut |_| Err("no file".into())).map_err(|why| why.to_string())
}

/// The hardware of a device, served at an address.
fn serve(file: &NodeFile, device: usize, at: SocketAddr) -> Server {
    let top = Top::new(file, &Programs::default(), device, Bus::Axi4Lite).unwrap().unwrap();
    let device = HardwareDevice::new(file, &top).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        match TcpListener::bind(at) {
            Ok(listener) => return Server::serve(listener, Box::new(device)).unwrap(),
            Err(why) if Instant::now() > until => panic!("{at}: {why}"),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Anywhere on this machine.
fn anywhere() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn frame(number: u8) -> Vec<u8> {
    vec![2 * number; 60 + usize::from(number)]
}

/// What leaves by both MACs when all has moved.
fn left(graph: &mut Graph) -> [Vec<Vec<u8>>; 2] {
    let mut left = [Vec::new(), Vec::new()];
    loop {
        let mut moved = graph.turn(0);
        for (left, mac) in left.iter_mut().zip([0, 3]) {
            let frames: Vec<Vec<u8>> = std::iter::from_fn(|| graph.leave_by(mac)).collect();
            moved |= !frames.is_empty();
            left.extend(frames);
        }
        if !moved {
            return left;
        }
    }
}

fn registers(file: &NodeFile, graph: &Graph) -> Vec<(String, Vec<u32>)> {
    let value = |address: u32, words: u32| (0..words).map(|word| graph.read(address + 4 * word)).collect();
    map(file).iter().map(|of| (of.name.clone(), value(of.address, of.words))).collect()
}

#[test]
fn two_devices_do_what_software_does() {
    let (software, hardware) = (file("software", 4), file("hardware", 4));
    let mut nodes = [&software, &hardware].map(|file| graph(file).unwrap());
    for round in 0..4 {
        // More than the queue holds.
        let said = nodes.each_mut().map(|graph| {
            for number in 0..12 {
                assert!(
                    graph.receive(0, &frame(12 * round + number), 0) && graph.receive(3, &frame(number), 0)
                );
            }
            left(graph)
        });
        assert!(said[0] == said[1], "round {round}");
        assert_eq!(said[0].each_ref().map(Vec::len), [12, 8]);
    }
    assert_eq!(registers(&software, &nodes[0]), registers(&hardware, &nodes[1]));
}

#[test]
fn a_link_that_is_cut_loses_the_frames_on_it() {
    let mut file = file("hardware", 4);
    let server = serve(&file, 1, anywhere());
    file.devices[1].at = Some(server.address());
    let mut graph = graph(&file).unwrap();
    assert!(graph.receive(3, &frame(1), 0) && graph.receive(0, &frame(2), 0));
    assert_eq!(left(&mut graph), [vec![frame(1)], vec![frame(2)]]);
    let at = server.address();
    drop(server);
    assert!(graph.receive(3, &frame(3), 0));
    // The queue is on the other device: it gives a frame, which the link does not take.
    assert!(graph.receive(0, &frame(4), 0));
    assert_eq!(left(&mut graph), [Vec::<Vec<u8>>::new(), Vec::new()]);
    assert_eq!(graph.counts().link_lost, 2);
    // A device that begins again: nothing of what was before is there.
    let _server = serve(&file, 1, at);
    std::thread::sleep(Duration::from_millis(150));
    assert!(graph.receive(3, &frame(5), 0) && graph.receive(0, &frame(6), 0));
    assert_eq!(left(&mut graph), [vec![frame(5)], vec![frame(6)]]);
    assert_eq!(graph.counts().link_lost, 2);
}

#[test]
fn who_had_the_link_before_leaves_nothing_to_who_has_it_next() {
    let mut file = file("hardware", 4);
    let server = serve(&file, 1, anywhere());
    file.devices[1].at = Some(server.address());
    for number in 0..8 {
        let mut client = loop {
            match millrace_link::Client::connect(server.address(), true) {
                Ok(client) => break client,
                // The server has not yet seen that the one before is gone.
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        // A frame by the link of the MAC, whose answer nobody waits for.
        client.send(0x4000, &frame(100)).unwrap();
        drop(client);
        let mut graph = loop {
            match graph(&file) {
                Ok(graph) => break graph,
                Err(why) => assert!(why.contains("another client"), "{why}"),
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        assert!(graph.receive(3, &frame(number), 0));
        let [came, _] = left(&mut graph);
        assert_eq!(came.last(), Some(&frame(number)), "{number}");
        assert!(came.len() <= 2);
    }
}

#[test]
fn hardware_of_another_file_is_refused() {
    let mut near = file("hardware", 4);
    let server = serve(&near, 0, anywhere());
    let mut other = file("hardware", 8);
    other.devices[0].at = Some(server.address());
    let why = graph(&other).unwrap_err();
    assert!(why.contains("the device `near` at 127.0.0.1:") && why.contains("that of another file"), "{why}");
    near.devices[0].at = Some(server.address());
    let made = loop {
        match graph(&near) {
            // The server has not yet seen that the one before is gone.
            Err(why) if why.contains("another client") => std::thread::sleep(Duration::from_millis(10)),
            made => break made.map(drop),
        }
    };
    assert_eq!(made, Ok(()));
}
