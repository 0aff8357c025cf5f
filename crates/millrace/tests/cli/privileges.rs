//! What a switch that root has started may still do: what the kernel says of all of its threads.

use crate::common::Folder;
use crate::live::{Live, Namespace, is_root, wait_for};
use std::os::unix::fs::MetadataExt;

/// Bits of capabilities(7).
const NET_BIND_SERVICE: u64 = 1 << 10;
const NET_ADMIN: u64 = 1 << 12;
const NET_RAW: u64 = 1 << 13;

/// A line of /proc/PID/task/TID/status of each thread.
fn of_threads(id: u32, field: &str) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
    let read = |task: std::io::Result<std::fs::DirEntry>| {
        // A thread may end meanwhile.
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(&format!("{field}:\t")));
        Some(line.unwrap_or_else(|| panic!("{field}: {status}")).to_owned())
    };
    tasks.filter_map(read).collect()
}

/// Each thread has these capabilities, in each set, and can gain none.
fn has_no_more_than(id: u32, wanted: u64) {
    for set in ["CapEff", "CapPrm", "CapBnd"] {
        let found = of_threads(id, set);
        assert!(found.len() >= 3, "{found:?}");
        for thread in found {
            let set_now = u64::from_str_radix(&thread, 16).unwrap();
            // The machine of the test may give it less.
            assert_eq!(set_now & !wanted, 0, "{set} {thread}");
        }
    }
    for set in ["CapInh", "CapAmb"] {
        assert!(of_threads(id, set).iter().all(|thread| thread == "0000000000000000"), "{set}");
    }
    assert!(of_threads(id, "NoNewPrivs").iter().all(|thread| thread == "1"));
}

#[test]
fn root_keeps_what_ports_need() {
    if !is_root("root_keeps_what_ports_need") {
        return;
    }
    let folder = Folder::new("privileges");
    let (log, captures) = (folder.path("log"), folder.path("captures"));
    let args = ["run", "programs/router.p4", "--entries", "programs/router.entries", "-i", "0@null:-"];
    let servers = ["--metrics", "0", "--thrift", "0", "--grpc", "0", "--log", &log, "--pcap", &captures];
    let mut switch = Live::start(&[&args[..], &servers].concat());
    let metrics = switch.metrics();
    switch.hears("Thrift: ").unwrap();
    has_no_more_than(switch.id(), NET_ADMIN | NET_RAW);
    // Files can be made all the same.
    assert!(std::fs::metadata(format!("{captures}/port0_in.pcap")).is_ok());
    let off = crate::common::millrace(&["capture", "off", "0", "--metrics", &metrics]);
    assert_eq!(off.code, 0, "{}", off.err);
    let on = crate::common::millrace(&["capture", "on", "0", "--name", "later", "--metrics", &metrics]);
    assert_eq!(on.code, 0, "{}", on.err);
    switch.signal("TERM");
    let said = switch.ended();
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(std::fs::read_to_string(log).unwrap().contains("privileges uid=0"));
}

/// As after `sudo`: the folder of captures belongs to another user, and lets in nobody else.
#[test]
fn root_writes_captures_where_it_was_told_to() {
    if !is_root("root_writes_captures_where_it_was_told_to") {
        return;
    }
    let folder = Folder::new("privileges-sudo");
    let captures = folder.path("captures");
    std::fs::create_dir(&captures).unwrap();
    let given =
        std::process::Command::new("sh").args(["-c", "chmod 700 $0 && chown 65534 $0", &captures]).status();
    assert!(given.unwrap().success());
    let output = format!("0@pcap:programs/demo/in0.pcap,{captures}/out.pcap");
    let said = crate::common::millrace(&["run", "programs/router.p4", "-i", &output, "--pcap", &captures]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(crate::common::frames(&format!("{captures}/port0_in.pcap")).len(), 6);
    assert!(std::fs::metadata(format!("{captures}/out.pcap")).is_ok());
}

#[test]
fn a_user_runs_it_with_interfaces_that_come_later() {
    if !is_root("a_user_runs_it_with_interfaces_that_come_later") {
        return;
    }
    let Some(namespace) = Namespace::new("user") else { return };
    namespace.pair("va0", "vb0");
    namespace.pair("va1", "vb1");
    let folder = Folder::new("privileges-user");
    let captures = folder.path("captures");
    let args = ["run", "programs/l2_switch.p4", "-i", "0@va0", "-i", "2@tap:mrt0", "--user", "65534:65534"];
    let servers = ["--thrift", "127.0.0.1:90", "--metrics", "0", "--pcap-dir", &captures];
    let mut switch = namespace.start(&[&args[..], &servers].concat());
    let metrics = switch.metrics();
    assert_eq!(switch.hears("Thrift: ").as_deref(), Some("127.0.0.1:90"), "{:?}", switch.said);
    has_no_more_than(switch.id(), NET_ADMIN | NET_RAW | NET_BIND_SERVICE);
    for field in ["Uid", "Gid"] {
        let found = of_threads(switch.id(), field);
        assert!(found.iter().all(|ids| ids == "65534\t65534\t65534\t65534"), "{field} {found:?}");
    }
    assert!(of_threads(switch.id(), "Groups").iter().all(|groups| groups.trim() == "65534"));
    // A port that is added later, and a capture of it.
    let commands = folder.file("commands", "port_add va1 1\nshow_ports\n");
    let shell = format!("exec \"$0\" shell --thrift-port 90 < {commands}");
    let added =
        namespace.command("sh").args(["-c", &shell, env!("CARGO_BIN_EXE_millrace")]).output().unwrap();
    let shown = String::from_utf8_lossy(&added.stdout).into_owned();
    assert!(shown.contains("va1") && !shown.contains("Invalid"), "{shown}");
    let on = namespace.millrace(&["capture", "on", "1", "--metrics", &metrics]);
    assert_eq!(on.code, 0, "{}", on.err);
    let file = std::fs::metadata(format!("{captures}/va1_in.pcap")).unwrap();
    assert_eq!((file.uid(), std::fs::metadata(&captures).unwrap().uid()), (65534, 65534));
    // What comes in by it arrives, also after root has gone.
    namespace.ip("address add 10.9.9.1/24 dev vb1");
    wait_for("a frame that comes in by the new port", || {
        let _ = namespace.command("ping").args(["-c", "1", "-W", "1", "10.9.9.2"]).output();
        let (_, text) = namespace_status(&namespace, &metrics);
        text.contains("millrace_port_receive_packets_total{port=\"1\"}")
            && !text.contains("millrace_port_receive_packets_total{port=\"1\"} 0\n")
    });
    switch.signal("TERM");
    let said = switch.ended();
    assert_eq!(said.code, 0, "{}", said.err);
}

/// The metrics, asked for from within the namespace.
fn namespace_status(namespace: &Namespace, address: &str) -> (bool, String) {
    let script = "import sys, urllib.request as u; print(u.urlopen('http://' + sys.argv[1] + '/metrics').read().decode())";
    let done = namespace.command("python3").args(["-c", script, address]).output().unwrap();
    (done.status.success(), String::from_utf8_lossy(&done.stdout).into_owned())
}

#[test]
fn a_user_that_is_not_there_is_refused() {
    let run = ["run", "programs/router.p4", "-i", "0@null:-", "--user"];
    for (user, message) in [("no-such-user", "no user `no-such-user`"), ("0:no-such-group", "no group")] {
        let said = crate::common::millrace(&[&run[..], &[user]].concat());
        assert_eq!(said.code, 2, "{}", said.err);
        assert!(said.err.contains(message), "{}", said.err);
    }
}
