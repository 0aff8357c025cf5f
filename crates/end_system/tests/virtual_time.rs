//! End systems of a network file as ports, joined without a switch.

use millrace_drivers::{QueuePair, Received, TimeSource};
use millrace_end_system::{EndSystemPort, Node, Plan, PortArguments, Receiving, Traffic, report};
use millrace_frames::{Batch, PacketPool};
use millrace_network::Network;
use serde_json::Value;

fn network() -> Network {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/afdx/two.toml");
    Network::parse(path, &std::fs::read_to_string(path).unwrap()).unwrap()
}

fn port(words: &str) -> EndSystemPort {
    EndSystemPort::new(&network(), &words.parse().unwrap()).unwrap().0
}

/// Two ports whose frames take so long from one to the other; what each reports at the end.
fn joined(words: [&str; 2], takes_ns: u64) -> [Value; 2] {
    let mut ports = words.map(port);
    let (mut pool, mut batch) = (PacketPool::new(64), Batch::new());
    loop {
        let arrivals =
            ports.iter_mut().enumerate().filter_map(|(at, port)| Some((port.next_arrival_ns()?, at)));
        let Some((_, at)) = arrivals.min() else { break };
        assert_eq!(ports[at].receive(&mut batch, &mut pool).unwrap(), Received::More);
        batch.packets_mut().iter_mut().for_each(|packet| packet.timestamp_ns += takes_ns);
        assert_eq!(ports[1 - at].transmit(&mut batch, &mut pool).unwrap().refused, 0);
    }
    for port in &mut ports {
        assert_eq!(port.receive(&mut batch, &mut pool).unwrap(), Received::End);
        assert_eq!(port.time_source(), TimeSource::Simulated);
    }
    assert_eq!(pool.available(), 64);
    ports.map(|port| report::json(port.node(), &[]))
}

#[test]
fn a_run_in_virtual_time_is_known_before() {
    let words = ["two.toml,ES1,time=virtual,seconds=1", "two.toml,ES2,time=virtual,seconds=1"];
    let reports = joined(words, 25_000);
    assert_eq!(reports, joined(words, 25_000));
    let [first, second] = &reports;
    let sent: Vec<_> = first["sends"].as_array().unwrap().iter().map(|vl| &vl["frames_released"]).collect();
    // A message each 5/4 of BAGs of 4, twice 16 (the sub-VLs) and 2 ms.
    assert_eq!(sent, [200, 100, 400]);
    let received = second["receives"].as_array().unwrap();
    for (vl, messages) in received.iter().zip([vec![200], vec![50, 50], vec![400]]) {
        let ports: Vec<_> = vl["ports"].as_array().unwrap().iter().collect();
        assert_eq!(ports.iter().map(|port| &port["messages"]).collect::<Vec<_>>(), messages);
        assert!(ports.iter().all(|port| port["lost"] == 0 && port["duplicates"] == 0), "{vl}");
        assert_eq!((&vl["A"]["frames"], &vl["B"]["frames"]), (&vl["delivered"], &Value::from(0)));
    }
    // The first frame of VL 1 leaves at once, and takes 25 us; later ones wait for at most the line: 17.6 and 123.04 us.
    let of_vl_1 = &received[0]["ports"][0];
    assert_eq!(of_vl_1["min_ns"], 25_000);
    assert!(of_vl_1["max_ns"].as_u64().unwrap() <= 25_000 + 123_040 + 9_600, "{of_vl_1}");
}

#[test]
fn an_end_system_of_network_b_is_on_line_b() {
    let words = [
        "two.toml,ES1,network=B,time=virtual,seconds=1",
        "two.toml,ES2,network=B,time=virtual,seconds=1,silent=on",
    ];
    let [first, second] = joined(words, 0);
    assert_eq!(second["receives"][0]["B"]["frames"], 200);
    assert_eq!(
        (second["sends"][0]["frames_released"].as_u64(), first["received_frames"][1].as_u64()),
        (Some(0), Some(0))
    );
}

#[test]
fn faults_are_counted_at_the_other_end() {
    let words = [
        "two.toml,ES1,time=virtual,seconds=1,number=1:10,seed=7",
        "two.toml,ES2,time=virtual,seconds=1,silent=on",
    ];
    let [_, second] = joined(words, 0);
    let vl = &second["receives"][0];
    assert!(vl["discards"]["out-of-window"].as_u64().unwrap() > 10, "{vl}");
    assert_eq!(second["receives"][1]["discards"], serde_json::json!({}));
    let given: PortArguments = "two.toml,ES1,network=B,network=1:10,network=2".parse().unwrap();
    let faults: Vec<String> = given.faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        (given.network.map(|network| network.to_string()), faults),
        (Some("B".into()), vec!["network=1:10".into(), "network=2:1".into()])
    );
}

#[test]
fn words_that_make_no_port_are_refused() {
    let error = |words: &str| words.parse::<PortArguments>().unwrap_err();
    assert_eq!(error("two.toml"), "FILE,NAME is expected, not `two.toml`");
    assert!(error("two.toml,ES1,speed=3").starts_with("`speed=3` is not one of network=A|B, time="));
    assert!(error("two.toml,ES1,network=C").starts_with("`network=C` is not one of"));
    assert_eq!(error("two.toml,ES1,network=1:x"), "`network=1:x`: `x` is no number");
    assert!(error("two.toml,ES1,babble=1:0").contains("the gap is 0 us: 1 to 1000000 us is allowed"));
    assert_eq!(
        error("two.toml,ES1,time=virtual"),
        "`time=virtual` needs `seconds=N`: else it would never end"
    );
    assert_eq!(error("two.toml,ES1,seconds=0"), "`seconds=0`: 1 to 86400 is allowed");
    assert!(error("two.toml,ES1,seed=7").starts_with("`seed=` is of the frames with faults"));
    assert!(error("two.toml,ES1,bytes=64,silent=on").starts_with("`silent=on` sends nothing: `period=`"));
    let refused =
        |words: &str| EndSystemPort::new(&network(), &words.parse().unwrap()).unwrap_err().to_string();
    assert_eq!(refused("two.toml,ES3"), "es: there is no end system `ES3` (there are: ES1, ES2)");
    assert_eq!(
        refused("two.toml,ES1,babble=16:5"),
        "es: a fault is of VL 16, which the end system does not send"
    );
    assert_eq!(
        refused("two.toml,ES1,bytes=3"),
        "es: the length of messages is 3 bytes: 20 to 8192 bytes is allowed"
    );
    assert!(refused("two.toml,ES1,report=/nowhere/at/all").starts_with("cannot create /nowhere/at/all: "));
}

/// The refusal names all words; `millrace_drivers` refuses each of them twice.
#[test]
fn each_word_of_a_port_is_there_once() {
    let refusal = "two.toml,ES1,speed=3".parse::<PortArguments>().unwrap_err();
    let words = refusal.split_once(" is not one of ").unwrap().1.split(", ");
    let known = words.filter_map(|word| word.split_once('=')).map(|(key, _)| key);
    let keys: Vec<&str> = known.filter(|key| !key.contains(' ')).collect();
    assert_eq!(keys.len(), 9, "{keys:?}");
    for key in keys {
        // `network=1` is a fault of a virtual link.
        let values = if key == "network" { ["A", "B"] } else { ["1", "2"] };
        let port = format!("es:two.toml,ES1,{key}={},{key}={}", values[0], values[1]);
        let error = port.parse::<millrace_drivers::InterfaceSpec>().unwrap_err().to_string();
        assert_eq!(error, format!("es: `{key}=` is given twice: a port has it once"));
    }
}

#[test]
fn a_network_that_an_end_system_cannot_keep_is_refused() {
    let plan = |change: &dyn Fn(&mut Network)| {
        let mut network = network();
        change(&mut network);
        Plan::of(&network, "ES1", &Receiving::default()).unwrap_err().to_string()
    };
    assert_eq!(
        plan(&|network| network.end_systems[0].max_jitter = 1_000),
        "network A: the output jitter may be 190240 ns: at most 1000 ns is allowed"
    );
    assert_eq!(plan(&|network| network.vls.clear()), "ES1 neither sends nor receives a virtual link");
    assert_eq!(
        plan(&|network| network.vls[3].skew_max = 600_000_000),
        "VL 16: SkewMax is 600000000 ns: 0 to 508000000 ns is allowed"
    );
}

#[test]
fn who_looks_late_finds_an_end() {
    let plan = Plan::of(&network(), "ES2", &Receiving::default()).unwrap();
    let mut node = Node::new(plan, Traffic::default(), (0, 10_000_000)).unwrap();
    // Messages were due at 0 and 5 ms: one is sent, since the first is a period late.
    let mut now = 11_000_000;
    for _ in 0..10 {
        let Some(next) = node.next_ns() else { break };
        now = next.max(now);
        node.step(now, |_| {});
    }
    assert_eq!((node.next_ns(), node.sent().map(|sent| sent.messages).sum::<u64>()), (None, 1));
}
