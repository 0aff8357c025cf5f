//! `millrace network` on the network of the gallery.

use crate::common::{Folder, millrace, root};
use serde_json::{Value, json};

const SMALL: &str = "programs/networks/small.toml";

fn ok(args: &[&str]) -> String {
    let said = millrace(&[&["network"], args].concat());
    assert_eq!(said.code, 0, "{args:?}: {}{}", said.out, said.err);
    said.out
}

fn json(args: &[&str]) -> Value {
    let text = ok(&[args, &["--json"]].concat());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn check_says_what_a_network_holds() {
    let said = ok(&["check", SMALL]);
    assert!(
        said.starts_with("small: 6 end systems, 4 switches, 14 links, 12 virtual links, 37 paths; CRC 0x"),
        "{said}"
    );
    assert_eq!(json(&["check", SMALL])["network"]["part-number"], json!("MR-NET-0001"));
}

#[test]
fn bounds_are_sorted_and_summed_up() {
    let said = json(&["bounds", SMALL]);
    assert_eq!((&said["ok"], &said["no-bound"]), (&json!(true), &json!([])));
    let paths = said["paths"].as_array().expect("paths");
    assert_eq!(paths.len(), 37);
    // `thrust1`: the regulator lets 200 bytes go. At the end system come before it, first in, first out, one frame each of thrust2,
    // pages and alerts: 220 + 220 + 1538 + 520 bytes on the wire take 199.84 us. It is delayed by no more than that on its way out, and on
    // an idle network takes 3 times 17.6 us, 2 times 16 us at switches and 0.1 us over the long link.
    let thrust = |network: &str| {
        let is = |path: &&Value| path["id"] == 1 && path["network"] == network;
        paths.iter().find(is).cloned().unwrap_or_default()
    };
    assert_eq!(thrust("A")["delay-ns"], thrust("B")["delay-ns"]);
    let delay = thrust("A")["delay-ns"].as_u64().expect("a delay");
    assert!(delay >= 199_840 + 2 * 17_600 + 2 * 16_000 + 100, "{delay}");
    assert!(delay <= 1_000_000, "within its deadline: {delay}");
    assert_eq!(thrust("A")["least-ns"], json!(3 * (64 + 20) * 80 + 100));
    let text = ok(&["bounds", SMALL, "--vl", "thrust1,50"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].starts_with("50  records") && lines[2].contains("thrust1"), "{text}");
    assert!(text.ends_with(" us\n") && text.contains("3 paths: mean "), "{text}");
    // Every analysis is above the best.
    for analysis in ["affine", "grouping", "staircase"] {
        let other = json(&["bounds", SMALL, "--analysis", analysis]);
        let pairs = other["paths"].as_array().expect("paths").iter().zip(paths);
        for (other, best) in pairs {
            assert!(other["delay-ns"].as_u64() >= best["delay-ns"].as_u64(), "{analysis}: {other} {best}");
        }
    }
}

#[test]
fn a_simulation_stays_below_the_bounds() {
    for offsets in ["random", "synchronous", "directed"] {
        let said = json(&["simulate", SMALL, "--frames", "20000", "--offsets", offsets, "--seed", "3"]);
        assert_eq!((&said["ok"], &said["above"]), (&json!(true), &json!([])), "{offsets}");
        assert_eq!(said["discarded"], json!({ "policed": 0, "no-room": 0, "too-old": 0 }), "{offsets}");
        assert!(said["frames"].as_u64() >= Some(20_000), "{said}");
        let again = json(&["simulate", SMALL, "--frames", "20000", "--offsets", offsets, "--seed", "3"]);
        assert_eq!(said, again, "{offsets}: the same seed gives the same");
    }
    let text = ok(&["simulate", SMALL, "--offsets", "directed", "--frames", "20000", "--vl", "1"]);
    assert!(text.contains("2 paths reached "), "{text}");
}

#[test]
fn wrong_files_are_refused_with_their_places() {
    let folder = Folder::new("network-wrong");
    let text = std::fs::read_to_string(root().join(SMALL)).expect("the file");
    let write = |name: &str, text: &str| {
        let path = folder.path(name);
        std::fs::write(&path, text).expect("a file");
        path
    };
    let wrong = write("wrong.toml", &text.replace("to = [\"engine1\"]", "to = [\"engine3\"]"));
    for command in ["check", "bounds", "simulate"] {
        let said = millrace(&["network", command, &wrong]);
        assert_eq!(said.code, 1);
        assert!(
            said.err.contains("there is no end system `engine3`") && said.err.contains("wrong.toml:"),
            "{}",
            said.err
        );
        assert!(said.err.contains("did you mean `engine1`?"), "{}", said.err);
        let said = millrace(&["network", command, &wrong, "--json"]);
        assert_eq!((said.code, &said.json()["diagnostics"][0]["kind"]), (1, &json!("unknown-name")));
    }
    // A link that is too full is named.
    let full = text
        .replace("bag = \"128ms\"\nlmax = 1518", "bag = \"0.5ms\"\nlmax = 1518")
        .replace("rate = \"100Mbit\"", "rate = \"20Mbit\"");
    let said = millrace(&["network", "bounds", &write("full.toml", &full)]);
    assert!(
        said.code == 1 && said.err.contains("[load]") || said.err.contains("port engine1:0 to aft1"),
        "{}",
        said.err
    );
    // One without an analysis too; the rest of the network keeps its bounds.
    let turns = text.replacen("name = \"aft2\"", "name = \"aft2\"\nscheduler = \"round-robin\"", 1);
    let said = millrace(&["network", "bounds", &write("turns.toml", &turns)]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("no analysis for the scheduler round-robin of port aft2:"), "{}", said.err);
    assert!(said.out.contains("mean "), "{}", said.out);
    // The CRC.
    let sealed = folder.path("sealed.toml");
    ok(&["export", SMALL, "--to", "toml", "-o", &sealed]);
    ok(&["check", &sealed]);
    let changed = std::fs::read_to_string(&sealed).expect("the file").replace("lmax = 200", "lmax = 201");
    let changed = write("changed.toml", &changed);
    let said = millrace(&["network", "entries", &changed, "--switch", "aft1"]);
    assert!(
        said.code == 1 && said.err.contains("[crc]") || said.err.contains("mode PASSIVE"),
        "{}",
        said.err
    );
    ok(&["export", &changed, "--to", "toml", "-o", &sealed]);
    ok(&["check", &sealed]);
}

#[test]
fn other_formats_are_written_and_read() {
    let folder = Folder::new("network-formats");
    let (xml, back) = (folder.path("small.xml"), folder.path("back.toml"));
    let said = millrace(&["network", "export", SMALL, "--to", "wopanets", "--network", "B", "-o", &xml]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("note: left out: sub virtual links"), "{}", said.err);
    ok(&["import", &xml, "-o", &back]);
    let of_b = |paths: &Value| -> Vec<Value> {
        let paths = paths.as_array().cloned().unwrap_or_default();
        paths.into_iter().filter(|path| path["network"] == "B").map(|path| path["delay-ns"].clone()).collect()
    };
    let (bounds, read) = (json(&["bounds", SMALL]), json(&["bounds", &back]));
    let read: Vec<Value> = read["paths"]
        .as_array()
        .cloned()
        .unwrap_or_default()
        .into_iter()
        .map(|path| path["delay-ns"].clone())
        .collect();
    assert_eq!(of_b(&bounds["paths"]), read);
    // What was read is all of network A.
    let none = folder.path("none.xml");
    let said = millrace(&["network", "export", &back, "--to", "wopanets", "--network", "B", "-o", &none]);
    assert!(said.code == 1 && said.err.contains("network B: `--network A`"), "{}", said.err);
    assert!(!std::path::Path::new(&none).exists());
    let said = millrace(&["network", "import", "programs/router.p4"]);
    assert!(said.code == 1 && said.err.contains("none of the formats"), "{}", said.err);
    let script = folder.path("small.py");
    ok(&["export", SMALL, "--to", "mininet", "-o", &script]);
    let run = std::process::Command::new("python3").args([&script, "--check"]).output().expect("python3");
    let out = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success() && out.ends_with("small: 6 end systems, 4 switches, 14 links\n"), "{out}");
    assert!(out.contains("s2 = aft1 of network A: millrace run programs/afdx.p4 --entries ./aft1.entries --tc ./aft1.tc -i 0@packet:s2-eth0"), "{out}");
}

#[test]
fn each_switch_gets_its_entries() {
    let folder = Folder::new("network-entries");
    let out = folder.path("out");
    ok(&["entries", SMALL, "-o", &out]);
    let read = |name: &str| std::fs::read_to_string(std::path::Path::new(&out).join(name)).expect("a file");
    let aft = read("aft1.entries");
    // The air data come over the long link, and go to the displays and both engines.
    let line = aft.lines().find(|line| line.starts_with("table_add vls forward 7 20 ")).expect("the entry");
    assert!(line.ends_with(" 100 400 0x02 0x7 1"), "{line}");
    // Both tuning links have one account.
    let accounts: Vec<&str> = aft
        .lines()
        .filter(|line| line.starts_with("account_set") && line.ends_with("16ms 10ms 600 bytes"))
        .collect();
    assert_eq!(accounts.len(), 1, "{aft}");
    assert!(!read("aft2.entries").contains(" 0 50 "), "records are on network A alone");
    let said = millrace(&["tc", "check", &format!("{out}/aft1.tc")]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(ok(&["entries", SMALL, "--switch", "aft1"]), aft);
    assert_eq!(millrace(&["network", "entries", SMALL, "--switch", "aft"]).code, 1);
    assert_eq!(millrace(&["network", "entries", SMALL]).code, 2);
}

/// The program of the gallery takes the entries: a frame of the air data that comes over the long link leaves by the ports that the network says.
#[test]
fn the_switch_program_runs_with_the_entries() {
    let folder = Folder::new("network-program");
    let out = folder.path("out");
    ok(&["entries", SMALL, "-o", &out]);
    // Without the check sum, which ports take off: 100 to 400 bytes with it.
    let frame = |vl: u16, length: usize| {
        let header = format!("03000000{vl:04x}0200000001200800");
        let rest = "00".repeat(length - 4 - header.len() / 2);
        header + &rest
    };
    let sent = |port: &str, frame: &str| -> Vec<String> {
        let entries = format!("{out}/aft1.entries");
        let said = millrace(&[
            "trace",
            "programs/afdx.p4",
            "--entries",
            &entries,
            "--port",
            port,
            "--packet",
            frame,
        ]);
        assert_eq!(said.code, 0, "{}", said.err);
        let ports =
            said.out.lines().filter_map(|line| line.trim().strip_prefix("sent on port ")?.split(',').next());
        let mut ports: Vec<String> = ports.map(str::to_owned).collect();
        ports.sort();
        ports
    };
    assert_eq!(sent("7", &frame(20, 400)), ["0", "1", "2"]);
    assert!(sent("7", &frame(20, 401)).is_empty(), "longer than Lmax");
    assert!(sent("7", &frame(20, 99)).is_empty(), "shorter than Lmin");
    assert!(sent("0", &frame(20, 400)).is_empty(), "it enters by another port");
    assert!(sent("7", &frame(42, 400)).len() == 1, "radio to displays");
}

/// The commands of the page work as they are written.
#[test]
fn the_page_can_be_followed() {
    let folder = Folder::new("network-page");
    let page = std::fs::read_to_string(root().join("docs/network.md")).expect("the page");
    let commands: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    assert!(commands.len() >= 10, "{commands:?}");
    for line in commands {
        let line = line.replace("/tmp/", &folder.path(""));
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "millrace" => {
                let said = millrace(&words[1..]);
                assert_eq!(said.code, 0, "{line}: {}", said.err);
            }
            program => {
                let done = std::process::Command::new(program).args(&words[1..]).status().expect(program);
                assert!(done.success(), "{line}");
            }
        }
    }
}
