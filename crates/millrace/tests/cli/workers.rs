//! `run --cores`: several workers of one switch.

use crate::common::{Folder, millrace};
use crate::live::{Live, Namespace, is_root, wait_for};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The router on frames from memory, at an end of which the test does not wait.
const ROUTER: [&str; 8] =
    ["run", "programs/router.p4", "--entries", "programs/router.entries", "-i", "1@null:-", "-i", "2@null:-"];

/// Whether the tests have the processors 0 and 1.
fn has_two_processors(test: &str) -> bool {
    let said =
        millrace(&["run", "programs/router.p4", "-i", "0@pcap:programs/demo/in0.pcap", "--cores", "0,1"]);
    let has = !said.err.contains("cannot run on processor");
    if !has {
        println!("{test}: skipped, it needs the processors 0 and 1");
    }
    has
}

fn status(address: &str) -> Value {
    millrace(&["top", "--json", address]).json()["status"].clone()
}

fn sum(list: &Value, of: &str) -> u64 {
    list.as_array().unwrap().iter().map(|one| one[of].as_u64().unwrap()).sum()
}

#[test]
fn workers_that_cannot_be_are_refused() {
    let run = |more: &[&str]| {
        let said = millrace(&[&["run", "programs/router.p4", "-i", "0@null:-"], more].concat());
        (said.code, said.err_line())
    };
    for (cores, message) in [
        ("0,0", "processor 0 is given twice: a processor has one worker"),
        ("1-", "`` is no processor: numbers (0 to 1023) and ranges are expected, as in 0,2-3"),
        ("1000", "--cores: the switch cannot run on processor 1000; it may use "),
    ] {
        let (code, said) = run(&["--cores", cores]);
        assert!(code == 2 && said.contains(message), "{cores}: {said}");
    }
    let (code, said) = run(&["--spread", "tunnel"]);
    assert!(code == 2 && said.contains("--cores"), "{said}");
    if has_two_processors("workers_that_cannot_be_are_refused") {
        let said =
            millrace(&["run", "programs/router.p4", "-i", "0@pcap:programs/demo/in0.pcap", "--cores", "0,1"]);
        assert!(
            said.code == 1 && said.err.contains("ports that replay captures have one worker"),
            "{}",
            said.err
        );
    }
}

/// A trace that comes so often, by queue pairs of its own and by one whose frames the first worker spreads: each frame is counted once,
/// and the end says which worker had it.
#[test]
fn every_frame_is_counted_by_one_worker() {
    if !has_two_processors("every_frame_is_counted_by_one_worker") {
        return;
    }
    // It has six frames, which the queue pairs share.
    let passes = 500;
    let port = format!("0@null:programs/demo/in0.pcap,passes={passes}");
    for (spread, shared) in [(None, false), (Some("symmetric"), true), (Some("port"), true)] {
        let spread: Vec<&str> = spread.iter().flat_map(|how| ["--spread", how]).collect();
        let served = ["-i", &port, "--cores", "0,1", "--json", "--metrics", "127.0.0.1:0"];
        let mut switch = Live::start(&[&ROUTER[..], &served, &spread].concat());
        let address = switch.metrics();
        wait_for("all frames have come", || {
            let of_port = status(&address)["ports"][0].clone();
            of_port["rx_packets"].as_u64().unwrap() + of_port["rx_missed"].as_u64().unwrap() == 6 * passes
        });
        switch.signal("INT");
        let ended = switch.ended();
        let end = ended.json();
        let (workers, of_port) = (&end["workers"], &end["ports"][0]);
        assert_eq!(sum(workers, "rx_packets"), of_port["rx_packets"].as_u64().unwrap());
        let of = |worker: usize, what: &str| workers[worker][what].clone();
        assert_eq!((of(0, "processor"), of(1, "processor")), (0.into(), 1.into()));
        let ports = if shared { 0..0 } else { 0..3 };
        let pairs: Value = ports.map(|port| json!({ "port": port, "queue": 1 })).collect();
        assert_eq!(of(1, "queue_pairs"), pairs);
        match spread.last() {
            // Each second frame.
            None => assert_eq!(of(1, "rx_packets"), 3 * passes),
            Some(&"port") => assert_eq!(of(1, "rx_packets"), 0),
            _ => assert!(of(1, "rx_packets").as_u64() > Some(0)),
        }
        assert!(ended.err.contains("2 workers on processors 0-1"), "{}", ended.err);
    }
}

/// Queue pairs change their workers by command while frames pass, and all who ask are told where they are.
#[test]
fn a_queue_pair_goes_to_another_worker() {
    if !has_two_processors("a_queue_pair_goes_to_another_worker") {
        return;
    }
    let port =
        ["-i", "0@null:programs/demo/in0.pcap", "--cores", "0,1", "--json", "--metrics", "127.0.0.1:0"];
    let mut switch = Live::start(&[&ROUTER[..], &port].concat());
    let address = switch.metrics();
    let queue = |words: &[&str]| millrace(&[&["queue", "--metrics", &address], words].concat());
    let said = queue(&[]);
    let all = "worker 0 on processor 0: port 0 queue 0, port 1 queue 0, port 2 queue 0
worker 1 on processor 1: port 0 queue 1, port 1 queue 1, port 2 queue 1
";
    assert_eq!((said.code, said.out.as_str()), (0, all), "{}", said.err);
    let said = queue(&["0", "1", "0"]);
    let moved = "worker 0 on processor 0: port 0 queue 0, port 0 queue 1, port 1 queue 0, port 2 queue 0
worker 1 on processor 1: port 1 queue 1, port 2 queue 1
";
    assert_eq!((said.code, said.out.as_str()), (0, moved), "{}", said.err);
    let packets = |status: &Value, worker: usize| status["workers"][worker]["rx_packets"].as_u64().unwrap();
    let before = status(&address);
    wait_for("the first worker goes on", || packets(&status(&address), 0) > packets(&before, 0) + 1000);
    assert_eq!(packets(&status(&address), 1), packets(&before, 1), "the other one gets no frame of port 0");
    for pair in ["0", "1"] {
        let said = queue(&["0", pair, "1", "--json"]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(said.json()["workers"][1]["queue_pairs"][0], json!({ "port": 0, "queue": 0 }));
    }
    wait_for("the other one has all frames", || packets(&status(&address), 1) > packets(&before, 1) + 1000);
    for (words, message) in [
        (["7", "0", "0"], "there is no port 7"),
        (["0", "2", "0"], "port 0 has no queue pair 2: there are 2, counted from 0"),
        (["0", "0", "2"], "there is no worker 2: there are 2, counted from 0"),
    ] {
        let said = queue(&words);
        assert!(said.code == 1 && said.err.contains(message), "{}", said.err);
    }
    assert_eq!(queue(&["0", "1"]).code, 2, "a queue pair without a worker");
    switch.signal("INT");
    let end = switch.ended().json();
    assert_eq!(sum(&end["workers"], "rx_packets"), sum(&end["ports"], "rx_packets"));
    assert_eq!(sum(&end["ports"], "rx_missed"), 0);
}

/// A program that takes over, a port that comes and goes, a capture: all workers follow.
#[test]
fn controllers_have_all_workers_follow() {
    if !has_two_processors("controllers_have_all_workers_follow")
        || !is_root("controllers_have_all_workers_follow")
    {
        return;
    }
    let folder = Folder::new("workers");
    let Some(namespace) = Namespace::new("workers") else { return };
    namespace.pair("s0", "h0");
    let captures = folder.path("captures");
    let mut switch = namespace.start(
        &[
            &ROUTER[..],
            &["-i", "0@null:programs/demo/in0.pcap", "--cores", "0,1", "--poll", "adaptive", "--json"],
            &[
                "--grpc",
                "127.0.0.1:0",
                "--cpu-port",
                "510",
                "--thrift",
                "127.0.0.1:0",
                "--metrics",
                "127.0.0.1:0",
            ],
            &["--pcap-dir", &captures, "--pcap-max", "1"],
        ]
        .concat(),
    );
    let address = switch.metrics();
    let grpc = switch.hears("P4Runtime: device 1 at ").unwrap();
    let thrift = switch.hears("Thrift: ").unwrap();
    let port = thrift.rsplit(':').next().unwrap();
    let status = || namespace.millrace(&["top", "--json", &address]).json()["status"].clone();
    let moved = || {
        status()["workers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|w| w["rx_packets"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    let all_move = |what: &str| {
        let before = moved();
        assert_eq!(before.len(), 2);
        wait_for(what, || moved().iter().zip(&before).all(|(now, before)| now > before));
    };
    all_move("both workers forward");
    for _ in 0..3 {
        let swapped = namespace.millrace(&["swap", "programs/router.p4", "--grpc", &grpc]);
        assert_eq!(swapped.code, 0, "{}", swapped.err);
        all_move("both workers forward with the next program");
    }
    let before = status()["ports"][1]["tx_packets"].as_u64().unwrap();
    wait_for("the entries are kept", || status()["ports"][1]["tx_packets"].as_u64().unwrap() > before);

    // A port that a client of bmv2 adds: packets of both workers would leave by it.
    let shell = |commands: &str| {
        let script = format!("printf '{commands}' | \"$0\" shell --thrift-port {port}");
        let run =
            namespace.command("sh").args(["-c", &script, env!("CARGO_BIN_EXE_millrace")]).output().unwrap();
        String::from_utf8_lossy(&run.stdout).into_owned()
    };
    let said = shell("port_add s0 5\\nshow_ports\\n");
    assert!(said.contains("s0"), "{said}");
    let numbers =
        || status()["ports"].as_array().unwrap().iter().map(|port| port["port"].clone()).collect::<Vec<_>>();
    // A status is made a few times a second at most.
    wait_for("the port is there", || numbers().contains(&5.into()) && numbers().contains(&510.into()));
    let own = |worker: usize| {
        let pairs = status()["workers"][worker]["queue_pairs"].as_array().unwrap().clone();
        pairs.iter().filter(|pair| pair["port"] == 5).map(|pair| pair["queue"].clone()).collect::<Vec<_>>()
    };
    assert_eq!([own(0), own(1)], [vec![0], vec![1]], "each worker has a queue pair of it");
    let said = shell("port_remove 5\\n");
    assert!(said.contains("RuntimeCmd"), "{said}");
    wait_for("the port is gone", || !numbers().contains(&5.into()));
    all_move("both workers forward after that");

    // What both receive is in one file.
    let on = namespace.millrace(&["capture", "on", "0", "--metrics", &address]);
    assert_eq!(on.code, 0, "{}", on.err);
    all_move("frames are captured");
    let off = namespace.millrace(&["capture", "off", "0", "--metrics", &address]);
    assert_eq!(off.code, 0, "{}", off.err);
    let captured = crate::common::frames(&format!("{captures}/port0_in.pcap"));
    let different: BTreeSet<_> = captured.iter().collect();
    let all: BTreeSet<_> = crate::common::frames("../../programs/demo/in0.pcap").into_iter().collect();
    assert!(different.into_iter().eq(&all), "{} of {} frames", captured.len(), all.len());
    switch.signal("INT");
    let end = switch.ended().json();
    assert_eq!(sum(&end["workers"], "rx_packets"), sum(&end["ports"], "rx_packets"));
}
