//! `swap`: another program while frames flow.

use crate::common::{Folder, command, millrace, root};
use crate::live::Live;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Stdio};
use std::time::{Duration, Instant};

/// The router with its entries, on a port that repeats the frames of the demonstration, and one that takes them.
struct Running {
    child: Child,
    errors: BufReader<ChildStderr>,
    grpc: String,
    thrift: String,
    metrics: String,
}

impl Running {
    fn start(folder: &Folder) -> Running {
        Running::start_with(folder, &[])
    }

    /// With more options; `--metrics` among them.
    fn start_with(folder: &Folder, more: &[&str]) -> Running {
        let image = folder.path("router.json");
        assert_eq!(millrace(&["compile", "programs/router.p4", "-o", &image]).code, 0);
        let mut child = command()
            .args(["run", &image, "--entries", "programs/router.entries", "--json"])
            .args(["-i", "0@null:programs/demo/in0.pcap", "-i", "1@null:-"])
            .args(["--grpc", "127.0.0.1:0", "--thrift", "127.0.0.1:0"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut address = |what: &str| {
            let mut line = String::new();
            while !line.starts_with(what) {
                line.clear();
                assert!(errors.read_line(&mut line).unwrap() > 0, "it has ended");
            }
            line.trim_end().rsplit(' ').next().unwrap().to_owned()
        };
        let metrics = more.contains(&"--metrics").then(|| address("metrics at http://"));
        let metrics =
            metrics.map(|url| url.trim_start_matches("http://").trim_end_matches("/metrics").to_owned());
        let (grpc, thrift) = (address("P4Runtime"), address("Thrift"));
        Running { child, errors, grpc, thrift, metrics: metrics.unwrap_or_default() }
    }

    /// Ends it, and gives what it counted.
    fn end(mut self) -> Value {
        let signalled =
            std::process::Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(signalled.unwrap().success());
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        let mut errors = String::new();
        self.errors.read_to_string(&mut errors).unwrap();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{errors}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After `end` there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_packet_is_traced_with_the_tables_of_a_running_switch() {
    let folder = Folder::new("trace-from");
    let switch = Running::start(&folder);
    let packet = "020000000000 060000000000 0800 45000014000000004011 65d6 0a000002 0a000102";
    let traced = |program: &[&str]| {
        let from = ["--from", &switch.thrift, "--port", "0", "--packet", packet];
        millrace(&[&["trace"], program, &from[..]].concat())
    };
    // Its own program with what is written there; the same when the program is given.
    let said = traced(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.contains("action RouterIngress.set_nhop(dmac = 0x060000000001, port = 0x001)"),
        "{}",
        said.out
    );
    assert!(said.out.contains("sent on port 1"), "{}", said.out);
    assert_eq!(traced(&["programs/router.p4"]).out, said.out);
    // What is written fits no other program.
    let other = traced(&["programs/firewall.p4"]);
    assert_eq!(other.code, 1);
    assert!(other.err.contains("the switch at 127.0.0.1:"), "{}", other.err);
    let nobody = millrace(&["trace", "--from", "1", "--port", "0", "--packet", "00"]);
    assert!(nobody.code == 1 && nobody.err.contains("no switch has its Thrift server"), "{}", nobody.err);
    assert_eq!(millrace(&["trace", "--port", "0", "--packet", "00"]).code, 2);
    // The packet was not the switch's.
    let counted = switch.end();
    assert_eq!(counted["ok"], json!(true), "{counted}");
}

/// Its Thrift server has no image to tell of then.
#[test]
fn a_packet_is_traced_by_a_switch_that_has_compiled_its_program() {
    let run = ["run", "programs/router.p4", "-i", "0@null:-", "-i", "1@null:-", "--thrift", "0"];
    let mut switch = Live::start(&[&run[..], &["--entries", "programs/router.entries"]].concat());
    let thrift = switch.hears("Thrift: ").unwrap().to_owned();
    let packet = "020000000000 060000000000 0800 45000014000000004011 65d6 0a000002 0a000102";
    let traced = || millrace(&["trace", "--from", &thrift, "--port", "0", "--packet", packet]);
    let said = traced();
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.contains("RouterIngress.set_nhop") && said.out.contains("sent on port 1"),
        "{}",
        said.out
    );
    let keep = ["--thrift", &thrift, "--keep", "compatible"];
    let swapped = millrace(&[&["swap", "programs/l2_switch.p4"], &keep[..]].concat());
    assert_eq!(swapped.code, 0, "{}", swapped.err);
    assert!(traced().out.contains("SwitchIngress"), "{}", traced().err);
}

#[test]
fn a_program_takes_over_while_frames_flow_and_none_is_lost() {
    let folder = Folder::new("swap");
    let router = std::fs::read_to_string(root().join("programs/router.p4")).unwrap();
    let other = router.replace("ipv6_lpm", "ipv6_routes");
    let other = folder.file("other.p4", &other);
    let switch = Running::start(&folder);
    std::thread::sleep(Duration::from_millis(100));
    let over_grpc = |more: &[&str]| millrace(&[&["swap", &other, "--grpc", &switch.grpc], more].concat());
    let refused = over_grpc(&[]);
    assert_eq!(refused.code, 1);
    let why = "no place for 3 entries of table `RouterIngress.ipv6_lpm` (it is not in the new program)";
    assert!(refused.err.contains(why), "{}", refused.err);
    let said = over_grpc(&["--keep", "compatible"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert_eq!(
        said.out.lines().collect::<Vec<_>>(),
        [
            "other is running now",
            "kept     5 entries of table RouterIngress.ipv4_lpm",
            "kept     3 entries of table RouterEgress.send_frame",
            "dropped  3 entries of table RouterIngress.ipv6_lpm: it is not in the new program",
        ]
    );
    std::thread::sleep(Duration::from_millis(100));
    let back = ["swap", "programs/router.p4", "--thrift", &switch.thrift, "--json"];
    let back = millrace(&back).json();
    assert_eq!(
        (&back["ok"], &back["program"], &back["dropped"]),
        (&json!(true), &json!("router"), &json!([]))
    );
    assert_eq!(back["kept"].as_array().unwrap().len(), 2);
    std::thread::sleep(Duration::from_millis(100));
    let counted = switch.end();
    let ports = &counted["ports"];
    let received = ports[0]["rx_packets"].as_u64().unwrap();
    let sent: u64 = [0, 1].map(|port| ports[port]["tx_packets"].as_u64().unwrap()).iter().sum();
    let dropped = counted["drops"].as_object().unwrap();
    // Whatever came in went out, or the program said why not.
    assert!(received > 6000, "{counted}");
    assert_eq!(dropped.keys().collect::<Vec<_>>(), ["ingress_drop"]);
    assert_eq!(sent + dropped["ingress_drop"].as_u64().unwrap(), received, "{counted}");
}

#[test]
fn bmv2s_commands_bring_a_program_too() {
    let folder = Folder::new("swap-thrift");
    let switch = Running::start(&folder);
    let image = folder.path("router.json");
    let port = switch.thrift.rsplit(':').next().unwrap().to_owned();
    let script = format!(
        "load_new_config_file {image}\ntable_num_entries ipv4_lpm\ntable_add ipv4_lpm set_nhop 10.0.0.0/8 => 1 1\n\
         swap_configs\ntable_num_entries ipv4_lpm\nswap_configs\n"
    );
    let script = folder.file("commands", &script);
    let shell = command()
        .args(["shell", "--thrift-port", &port, "--json", &image])
        .stdin(std::fs::File::open(script).unwrap())
        .output()
        .unwrap();
    let shown = String::from_utf8(shell.stdout).unwrap();
    assert!(!shown.contains("WARNING"), "the file is the switch's: {shown}");
    let shown: Vec<&str> = shown.split("RuntimeCmd: ").skip(1).collect();
    assert_eq!(shown[..2], ["Loading new Json config\n", "0\n"]);
    assert!(shown[2].ends_with("Entry has been added with handle 0\n"), "{}", shown[2]);
    assert_eq!(shown[3..5], ["Swapping configs\n", "1\n"]);
    assert_eq!(shown[5], "Swapping configs\nInvalid swap operation (NO_ONGOING_SWAP)\n");
    switch.end();
}

#[test]
fn what_cannot_be_swapped_is_told() {
    for (args, code, message) in [
        (
            &["swap", "programs/router.p4", "--grpc", "127.0.0.1:1"][..],
            1,
            "no switch has its P4Runtime server",
        ),
        (&["swap", "programs/router.p4", "--thrift", "1"], 1, "no switch has its Thrift server"),
        (&["swap", "programs/nothing.p4"], 1, "nothing.p4"),
        (&["swap", "programs/router.p4", "--grpc", "a", "--thrift", "1"], 2, "cannot be used with"),
        (&["swap", "programs/router.p4", "--thrift", "1", "--election-id", "3"], 2, "cannot be used with"),
        (&["swap"], 2, "PROG"),
    ] {
        let said = millrace(args);
        assert_eq!(said.code, code, "{args:?}: {}", said.err);
        assert!(said.err.contains(message), "{args:?}: {}", said.err);
    }
}

/// The program that takes over asks for a chain, and the operator has one; then a program that asks for nothing, and one that may
/// not have what it asks for.
#[test]
fn the_chains_of_a_program_come_and_go_with_it() {
    let folder = Folder::new("swap-chains");
    let router = std::fs::read_to_string(root().join("programs/router.p4")).unwrap();
    let asking = |name: &str, annotations: &str| {
        let main = router.find("V1Switch(").unwrap();
        folder.file(name, &format!("{}{annotations}\n{}", &router[..main], &router[main..]))
    };
    let switch = Running::start_with(&folder, &["--input", "1:sample 1/3", "--metrics", "127.0.0.1:0"]);
    let swap =
        |program: &str| millrace(&["swap", program, "--thrift", &switch.thrift, "--keep", "compatible"]);
    let steps = || -> Vec<String> {
        let said = millrace(&["top", "--once", "--json", &switch.metrics]);
        let status = said.json();
        let of_step = |step: &Value| format!("{} {}", step["port"], step["plugin"].as_str().unwrap());
        status["status"]["inputs"].as_array().unwrap().iter().map(of_step).collect()
    };
    // What is shown may be a tenth of a second old.
    let shown = |wanted: &[&str], why: &str| {
        let deadline = Instant::now() + Duration::from_secs(5);
        while steps() != wanted && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(steps(), wanted, "{why}");
    };
    shown(&["1 sample"], "at the start");
    let said = swap(&asking("filtering.p4", "@input(\"*:filter 'ip' | sample 1/2\")"));
    assert_eq!(said.code, 0, "{}", said.err);
    shown(&["0 filter", "0 sample", "1 sample"], "the operator's chain of port 1 stays");
    let said = swap(&asking("telling.p4", &format!("@input(\"0:account {}\")", folder.path("flows.json"))));
    assert_ne!(said.code, 0);
    assert!(said.err.contains("is no file of the chains that the switch started with"), "{}", said.err);
    std::thread::sleep(Duration::from_millis(200));
    shown(&["0 filter", "0 sample", "1 sample"], "nothing has changed");
    let said = swap("programs/router.p4");
    assert_eq!(said.code, 0, "{}", said.err);
    shown(&["1 sample"], "the program that asks for nothing has nothing");
    switch.end();
}
