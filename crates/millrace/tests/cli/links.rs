//! What is told of ports and of their links, on interfaces of a network namespace.

use crate::common::Folder;
use crate::live::{Live, Namespace, is_root, wait_for};
use millrace_gnmi::proto::g_nmi_client::GNmiClient;
use millrace_gnmi::proto::typed_value::Value as Kind;
use millrace_gnmi::proto::{Encoding, GetRequest, Path, PathElem, Update};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

/// What the switch says of itself, asked for from within the namespace.
fn status(namespace: &Namespace, address: &str) -> Value {
    let said = namespace.millrace(&["top", "--json", address]);
    assert_eq!(said.code, 0, "{}", said.err);
    said.json()["status"].clone()
}

fn metrics(namespace: &Namespace, address: &str) -> String {
    let script = "import sys, urllib.request as u; print(u.urlopen('http://' + sys.argv[1] + '/metrics').read().decode())";
    let done = namespace.command("python3").args(["-c", script, address]).output().unwrap();
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Whether a counter has counted something.
fn has_counted(metrics: &str, counter: &str) -> bool {
    let line = metrics.lines().find(|line| line.starts_with(counter)).expect("a counter of this name");
    !line.ends_with(" 0")
}

/// The answer to commands of bmv2's tool.
fn shell(namespace: &Namespace, port: &str, commands: &str) -> String {
    let script = format!("printf '{commands}' | \"$0\" shell --thrift-port {port}");
    let run = namespace.command("sh").args(["-c", &script, env!("CARGO_BIN_EXE_millrace")]).output().unwrap();
    String::from_utf8_lossy(&run.stdout).into_owned()
}

#[test]
fn all_agree_on_links() {
    if !is_root("all_agree_on_links") {
        return;
    }
    let Some(namespace) = Namespace::new("links") else { return };
    namespace.pair("va0", "vb0");
    namespace.pair("va1", "vb1");
    namespace.ip("link set va0 address 02:00:00:00:00:17");
    // Down when the switch starts.
    namespace.ip("link set va1 down");
    let folder = Folder::new("links");
    let log = folder.path("log");
    let program = ["run", "programs/l2_switch.p4", "--entries", "programs/l2_switch.entries"];
    let ports = ["-i", "0@va0", "-i", "1@va1", "-i", "2@null:-", "--log", &log];
    let args = [&program[..], &ports].concat();
    let mut switch = namespace.start(&[&args[..], &["--metrics", "0", "--thrift", "0"]].concat());
    let address = switch.metrics();
    let thrift = switch.hears("Thrift: 127.0.0.1:").unwrap();
    let all_say = |port: usize, is_up: bool| {
        let word = if is_up { "up" } else { "down" };
        wait_for(&format!("port {port} {word} in /status"), || {
            status(&namespace, &address)["ports"][port]["up"] == is_up
        });
        let gauge = format!("millrace_port_up{{port=\"{port}\"}} {}\n", u8::from(is_up));
        wait_for(&gauge, || metrics(&namespace, &address).contains(&gauge));
        let page = namespace.millrace(&["top", "--once", &address]).out;
        let line = page.lines().find(|line| line.starts_with(&format!("{port} "))).unwrap();
        assert_eq!(line.split_whitespace().nth(2), Some(word), "{page}");
        wait_for(&format!("port {port} {word} over Thrift"), || {
            let shown = shell(&namespace, &thrift, "show_ports\\n");
            let line =
                shown.lines().find(|line| line.trim_start().starts_with(&format!("{port} "))).unwrap_or("");
            line.to_lowercase().contains(word)
        });
    };
    all_say(0, true);
    all_say(1, false);
    let first = &status(&namespace, &address)["ports"][0];
    assert_eq!(
        (&first["interface"], &first["spec"], &first["mac"], &first["speed_mbps"], &first["mtu"]),
        (&json!("va0"), &json!("packet:va0"), &json!("02:00:00:00:00:17"), &json!(10_000), &json!(1500))
    );
    let third = &status(&namespace, &address)["ports"][2];
    assert_eq!(
        (&third["up"], &third["interface"], &third["mac"]),
        (&json!(true), &Value::Null, &Value::Null)
    );
    let text = metrics(&namespace, &address);
    for line in [
        "millrace_port_info{port=\"0\",interface=\"va0\",mac=\"02:00:00:00:00:17\",spec=\"packet:va0\"} 1\n",
        "millrace_port_speed_bytes{port=\"0\"} 1250000000\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    namespace.ip("link set va1 up");
    all_say(1, true);
    namespace.ip("link set vb0 down");
    all_say(0, false);
    // A frame for it is dropped, and says why: a frame to a station that nobody knows is flooded to all other ports.
    assert!(!has_counted(&metrics(&namespace, &address), "millrace_drops_total{reason=\"tx_refused\"}"));
    let script = "import socket; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(('vb1', 0)); \
                  s.send(bytes.fromhex('060000000009060000000001' + '0800' + '00' * 46))";
    assert!(namespace.command("python3").args(["-c", script]).status().unwrap().success());
    wait_for("a drop for the link that is down", || {
        has_counted(&metrics(&namespace, &address), "millrace_drops_total{reason=\"link_down\"}")
    });
    // An interface that is gone is down.
    namespace.ip("link del va1");
    all_say(1, false);
    // The worker hears of it at its next look at the port; then the port has failed.
    wait_for("the failed port", || std::fs::read_to_string(&log).unwrap().contains("port down"));
    switch.signal("TERM");
    let said = switch.ended();
    assert!(said.code == 1 && said.err.contains("port 1 failed"), "{}", said.err);
    let told = std::fs::read_to_string(log).unwrap();
    assert!(told.contains("link port=1 is_up=false"), "{told}");
}

/// What gNMI has below one interface, by the rest of the path.
async fn below(address: &str, name: &str) -> BTreeMap<String, Kind> {
    let elem = |name: &str, key: Option<&str>| PathElem {
        name: name.into(),
        key: key.iter().map(|key| ("name".into(), (*key).into())).collect(),
    };
    let path =
        Path { elem: vec![elem("interfaces", None), elem("interface", Some(name))], ..Path::default() };
    let request = GetRequest { path: vec![path], encoding: Encoding::Proto as i32, ..GetRequest::default() };
    let mut client = GNmiClient::connect(format!("http://{address}")).await.unwrap();
    let answer = client.get(request).await.unwrap().into_inner();
    let updates = answer.notification.into_iter().flat_map(|notification| notification.update);
    let leaf = |update: Update| {
        let names = update.path.unwrap().elem.into_iter().skip(2).map(|elem| elem.name);
        Some((names.collect::<Vec<_>>().join("/"), update.val?.value?))
    };
    updates.filter_map(leaf).collect()
}

/// An address that changes changes no link, so nobody is told: whoever shows it has to look.
#[test]
fn grpc_shows_what_the_status_page_shows() {
    if !is_root("grpc_shows_what_the_status_page_shows") {
        return;
    }
    let name = format!("mg{}", std::process::id() % 100_000);
    let ports = ["-i", &format!("3@tap:{name}"), "-i", "4@null:-"];
    let run = ["run", "programs/l2_switch.p4", "--grpc", "0", "--metrics", "0"];
    let mut switch = Live::start(&[&run[..], &ports[..]].concat());
    let address = switch.hears("P4Runtime: device 1 at ").unwrap();
    let metrics = switch.metrics();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for mac in ["02:00:00:00:00:17", "02:00:00:00:00:18"] {
        let set = Command::new("ip").args(["link", "set", &name, "address", mac]).status().unwrap();
        assert!(set.success());
        // The status page shows a look at the switch that may be a moment old.
        let deadline = Instant::now() + Duration::from_secs(10);
        let port = loop {
            let port =
                crate::common::millrace(&["top", "--json", &metrics]).json()["status"]["ports"][0].clone();
            if port["mac"] == mac || Instant::now() > deadline {
                break port;
            }
        };
        assert_eq!((&port["interface"], &port["mac"]), (&json!(name), &json!(mac)));
        let found = runtime.block_on(below(&address, &name));
        assert_eq!(found["ethernet/state/mac-address"], Kind::StringVal(mac.into()));
        assert_eq!(found["state/id"], Kind::UintVal(3));
        // What the kernel says of a TAP interface; the other names of speeds are those of OpenConfig.
        let speed = port["speed_mbps"].as_u64().map(|mbps| match mbps {
            10 => "SPEED_10MB",
            10_000 => "SPEED_10GB",
            other => panic!("{other}"),
        });
        let shown = found.get("ethernet/state/port-speed").cloned();
        assert_eq!(shown, speed.map(|speed| Kind::StringVal(speed.into())));
        assert!(!runtime.block_on(below(&address, "port4")).contains_key("ethernet/state/mac-address"));
    }
}

#[test]
fn an_interface_is_one_port() {
    if !is_root("an_interface_is_one_port") {
        return;
    }
    let Some(namespace) = Namespace::new("twice") else { return };
    namespace.pair("va0", "vb0");
    namespace.ip("link property add dev va0 altname same");
    for second in ["1@va0", "1@packet:va0", "1@same"] {
        let said = namespace.millrace(&["run", "programs/l2_switch.p4", "-i", "0@va0", "-i", second]);
        assert_eq!(said.code, 1, "{}", said.err);
        assert!(said.err.contains("the interface is port 0 already"), "{}", said.err);
    }
    let mut switch = namespace.start(&["run", "programs/l2_switch.p4", "-i", "0@va0", "--thrift", "0"]);
    let thrift = switch.hears("Thrift: 127.0.0.1:").unwrap();
    shell(&namespace, &thrift, "port_add va0 1\\nport_add vb0 512\\nport_add vb0 511\\n");
    assert_eq!(switch.hears("port 1@va0 is not added: ").unwrap(), "va0 is port 0 already");
    let shown = shell(&namespace, &thrift, "show_ports\\n");
    assert!(shown.contains("511") && !shown.contains("512"), "{shown}");
    let near = namespace.millrace(&["run", "programs/l2_switch.p4", "-i", "0@va", "-i", "1@vb0"]);
    assert!(near.err.contains("there is no interface `va`, did you mean `va0`?"), "{}", near.err);
}

const TWO_PORTS: [&str; 4] = ["-i", "600@null:-", "-i", "1@null:-"];

#[test]
fn a_port_number_fits_in_the_program() {
    let run = |program: &str| crate::common::millrace(&[&["run", program], &TWO_PORTS[..]].concat());
    let said = run("programs/router.p4");
    assert_eq!(said.code, 1, "{}", said.err);
    let message = "port 600 does not fit in the 9 bits that `router` has for the number of a port: 0 to 511";
    assert!(said.err.contains(message), "{}", said.err);
    let cpu = ["run", "programs/router.p4", "-i", "0@null:-", "--grpc", "0", "--cpu-port", "512"];
    let said = crate::common::millrace(&cpu);
    assert!(said.err.contains("port 512 does not fit in the 9 bits"), "{}", said.err);
}

/// A switch without a program takes any port; a program that cannot tell it from others is refused when it comes.
#[test]
fn a_program_that_comes_later_is_refused_for_its_ports() {
    let mut switch = Live::start(&[&["run", "--grpc", "0"], &TWO_PORTS[..]].concat());
    let address = switch.hears("P4Runtime: device 1 at ").unwrap();
    let said = crate::common::millrace(&["swap", "programs/router.p4", "--grpc", &address]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("port 600 does not fit in the 9 bits"), "{}", said.err);
}

/// Over Thrift as over P4Runtime.
#[test]
fn programs_that_are_set_are_logged() {
    let folder = Folder::new("swap-log");
    for server in ["--thrift", "--grpc"] {
        let log = folder.path(&format!("log{server}"));
        let args = ["run", "programs/router.p4", "-i", "0@null:-", server, "0", "--log", &log];
        let mut switch = Live::start(&args);
        let place = if server == "--grpc" { "P4Runtime: device 1 at " } else { "Thrift: " };
        let address = switch.hears(place).unwrap();
        let said = crate::common::millrace(&[
            "swap",
            "programs/l2_switch.p4",
            server,
            &address,
            "--keep",
            "nothing",
        ]);
        assert_eq!(said.code, 0, "{}", said.err);
        wait_for("a line in the log", || {
            std::fs::read_to_string(&log).unwrap().contains("program set program=\"l2_switch\"")
        });
    }
}

#[test]
fn what_is_captured_is_what_a_full_disk_took() {
    if !is_root("what_is_captured_is_what_a_full_disk_took") {
        return;
    }
    // 200 frames of 1000 bytes; a record has 16 more, and the file begins with 24.
    let folder = Folder::new("full-disk");
    let mut pcap: Vec<u8> =
        vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0];
    for number in 0..200u32 {
        for word in [number, 0, 1000, 1000] {
            pcap.extend(word.to_le_bytes());
        }
        pcap.extend([0x5a; 1000]);
    }
    std::fs::write(folder.path("in.pcap"), pcap).unwrap();
    let disk = folder.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let script = "mount -t tmpfs -o size=64k tmpfs $1 || exit 99
        $0 run programs/l2_switch.p4 -i 0@pcap:$2/in.pcap --pcap $1 --log $2/log --log-format json || exit 98
        cp $1/port0_in.pcap $2/captured.pcap";
    let root = folder.path("");
    let args = ["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_millrace"), &disk, &root];
    let run = Command::new("unshare").args(args).current_dir(crate::common::root()).output().unwrap();
    if run.status.code() == Some(99) {
        println!("what_is_captured_is_what_a_full_disk_took: skipped, there is no tmpfs");
        return;
    }
    let errors = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(run.status.code(), Some(0), "{errors}");
    let captured = crate::common::frames(&folder.path("captured.pcap"));
    // Sixteen pages, fewer those of the other file.
    assert!((30..=64).contains(&captured.len()), "{}", captured.len());
    assert!(captured.iter().all(|frame| *frame == [0x5a; 1000]));
    let lost = 200 - captured.len();
    assert!(errors.contains("No space left on device"), "{errors}");
    assert!(errors.contains(&format!("; {} frames are in its files", captured.len())), "{errors}");
    assert!(errors.contains(&format!("port 0: {lost} frames are missing in its capture")), "{errors}");
    let log = std::fs::read_to_string(folder.path("log")).unwrap();
    let off: Value = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|event| event["message"] == "capture off")
        .unwrap();
    assert_eq!((&off["packets"], &off["lost"]), (&json!(captured.len()), &json!(lost)));
}

#[test]
fn an_interface_is_taken_by_xdp_and_given_back() {
    if !is_root("an_interface_is_taken_by_xdp_and_given_back") {
        return;
    }
    let protocols = std::fs::read_to_string("/proc/net/protocols").unwrap_or_default();
    if !protocols.lines().any(|line| line.starts_with("XDP ")) {
        return println!(
            "an_interface_is_taken_by_xdp_and_given_back: skipped, the kernel has no sockets for XDP"
        );
    }
    let Some(namespace) = Namespace::new("xdp") else { return };
    namespace.pair("va0", "vb0");
    let has_program = || {
        let shown = namespace.command("ip").args(["link", "show", "dev", "va0"]).output().unwrap();
        String::from_utf8_lossy(&shown.stdout).contains("prog/xdp")
    };
    let folder = Folder::new("xdp");
    let program = ["run", "programs/l2_switch.p4", "-i", "0@xdp:va0,queue=0", "--thrift", "0"];
    // Once as root and once as a user who may not do anything with programs of the kernel.
    for user in [&[][..], &["--user", "nobody"]] {
        let log = folder.path(&format!("log{}", user.len()));
        let mut switch = namespace.start(&[&program[..], user, &["--log", &log]].concat());
        let thrift = switch.hears("Thrift: 127.0.0.1:").unwrap();
        assert!(has_program());
        let shown = shell(&namespace, &thrift, "port_add va0 1\\n");
        assert!(!shown.is_empty());
        assert_eq!(switch.hears("port 1@va0 is not added: ").unwrap(), "va0 is port 0 already");
        switch.signal("TERM");
        assert_eq!(switch.ended().code, 0);
        assert!(!has_program());
        let told = std::fs::read_to_string(log).unwrap();
        let line = "port open port=\"0@xdp:va0,queue=0\" queue_pair=0 remark=\"taken by XDP in native mode, ";
        assert!(told.contains(line), "{told}");
    }
    // Nothing is left by a switch that is killed, and the next one starts.
    for _ in 0..2 {
        let mut switch = namespace.start(&program);
        switch.hears("Thrift: 127.0.0.1:").unwrap();
        assert!(has_program());
        switch.signal("KILL");
        switch.ended();
        assert!(!has_program());
    }
    let said = namespace.millrace(&["run", "programs/l2_switch.p4", "-i", "0@va0", "-i", "1@xdp:va0"]);
    assert!(said.err.contains("the interface is port 0 already"), "{}", said.err);
    let said = namespace.millrace(&["run", "programs/l2_switch.p4", "-i", "0@xdp:va0,mode=zerocopy"]);
    assert!(
        said.err.contains("0@xdp:va0,mode=zerocopy: xdp: cannot take interface va0: zero copy: "),
        "{}",
        said.err
    );
    assert!(!has_program());
}
