//! `millrace chassis`: the file of a device with many virtual switches.

use crate::common::{Folder, millrace};
use serde_json::json;

const FILE: &str = r#"[device]
name = "edge"

[[port]]
name = "p0"
device = "packet:veth0"
rate = "10Gbit"

[[switch]]
name = "l2"
program = "l2.p4"

[[switch.port]]
number = 0
physical = "p0"
match = { vlan = 100 }
tag = "strip"
"#;

fn write(folder: &Folder, text: &str) -> String {
    std::fs::write(folder.path("l2.p4"), "").unwrap();
    write_at(folder, text)
}

/// Without the program.
fn write_at(folder: &Folder, text: &str) -> String {
    let path = folder.path("edge.toml");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_file_is_checked_without_a_device() {
    let folder = Folder::new("chassis-check");
    let file = write(&folder, FILE);
    let said = millrace(&["chassis", "check", &file]);
    assert_eq!((said.code, said.out.as_str()), (0, "edge: 1 switch, 1 port, 0 links\n"), "{}", said.err);
    let counted = json!({ "ok": true, "switches": 1, "ports": 1, "links": 0 });
    assert_eq!(millrace(&["chassis", "check", &file, "--json"]).json(), counted);
}

#[test]
fn all_that_is_wrong_is_told_with_its_line() {
    let folder = Folder::new("chassis-wrong");
    let wrong = FILE.replace("vlan = 100", "vlan = 5000").replace("physical = \"p0\"", "physical = \"p1\"");
    let file = write(&folder, &wrong);
    let said = millrace(&["chassis", "check", &file]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    for part in ["edge.toml:15:", "edge.toml:16:", "p1", "5000"] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
    let told = millrace(&["chassis", "check", &file, "--json"]).json();
    assert_eq!(
        (&told["ok"], told["diagnostics"].as_array().map(Vec::len)),
        (&json!(false), Some(2)),
        "{told}"
    );
    let absent = millrace(&["chassis", "check", "no-such.toml"]);
    assert!(absent.code == 1 && absent.err.contains("no-such.toml"), "{}", absent.err);
}

#[test]
fn a_file_that_is_no_text_or_names_a_pipe_is_refused_at_once() {
    let folder = Folder::new("chassis-no-text");
    let file = write(&folder, "");
    let text = b"# \xc3\xa4\nname = \"\xff\"\n";
    for command in [["chassis", "check", &file], ["node", "check", &file], ["network", "check", &file]] {
        std::fs::write(&file, text).unwrap();
        let said = millrace(&command);
        let message = format!("{file}:2:9: it is no text: the byte at 13 is not UTF-8");
        assert!(said.code == 1 && said.err.contains(&message), "{command:?}: {}", said.err);
    }
    let file = write(&folder, FILE);
    std::fs::remove_file(folder.path("l2.p4")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(folder.path("l2.p4")).status().unwrap();
    assert!(made.success());
    let said = millrace(&["chassis", "check", &file]);
    assert!(said.code == 1 && said.err.contains("it is no file"), "{}", said.err);
    for device in ["/dev/null", "/dev/zero"] {
        let file = write_at(&folder, &FILE.replace("l2.p4", device));
        let said = millrace(&["chassis", "check", &file]);
        assert!(said.code == 1 && said.err.contains("it is no file"), "{device}: {}", said.err);
    }
}

/// A worker that is not pinned has no share of a processor to guarantee.
#[test]
fn processors_that_are_not_there_are_refused_before_anything_is_opened() {
    let folder = Folder::new("chassis-processors");
    let file = write(&folder, &FILE.replacen("name = \"edge\"", "name = \"edge\"\nprocessors = [4095]", 1));
    let said = millrace(&["chassis", &file]);
    let why = "`processors`: the device cannot run on processor 4095; it may use ";
    assert!(said.code == 1 && said.err.contains(why), "{}", said.err);
}
