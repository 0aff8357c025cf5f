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
    let path = folder.path("edge.toml");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_file_is_checked_without_a_device() {
    let folder = Folder::new("chassis-check");
    let file = write(&folder, FILE);
    let said = millrace(&["chassis", "check", &file]);
    assert_eq!((said.code, said.out.as_str()), (0, "edge: 1 switches, 1 ports, 0 links\n"), "{}", said.err);
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
