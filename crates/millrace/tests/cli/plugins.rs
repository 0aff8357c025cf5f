//! Plugins that a program calls, as far as every build has them: missing ones meet the policy of the program, and a build without
//! plugins says so. (What plugins do is tested by `tests/plugins/run`.)

use crate::common::{Folder, Said, frames, millrace};
use serde_json::json;

/// Runs a program of `tests/plugins` on the packets of the demonstration.
fn run(folder: &Folder, program: &str, more: &[&str]) -> Said {
    let ports = [0, 1].map(|port| {
        format!("{port}@pcap:programs/demo/in{port}.pcap,{}", folder.path(&format!("out{port}.pcap")))
    });
    let program = format!("tests/plugins/{program}.p4");
    let mut args = vec!["run", &program, "-i", &ports[0], "-i", &ports[1]];
    args.extend(more);
    millrace(&args)
}

#[test]
fn packets_meet_the_policy_of_a_missing_plugin() {
    let folder = Folder::new("plugins-missing");
    let said = run(&folder, "find", &["--json"]);
    assert!(said.err.contains("plugin find is missing: packets that call it go on"), "{}", said.err);
    assert_eq!(said.json()["drops"]["plugin"].as_u64().unwrap_or(0), 0);
    // All nine packets leave by port 1.
    assert_eq!(frames(&folder.path("out1.pcap")).len(), 9);
    let said = run(&folder, "encrypt", &["--json"]);
    assert!(said.err.contains("plugin encrypt is missing: packets that call it are dropped"), "{}", said.err);
}

#[test]
fn a_build_without_plugins_says_so() {
    let folder = Folder::new("plugins-without");
    let module = folder.file("none.wasm", "no module");
    let said = run(&folder, "find", &["--plugin", &format!("find={module}")]);
    assert_eq!(said.code, 1);
    let wanted = match cfg!(feature = "plugins") {
        true => "this is no module for plugins",
        false => "the switch runs no plugins: it was built without them (Cargo feature `plugins`)",
    };
    assert!(said.err.contains(wanted), "{}", said.err);
    let said = run(&folder, "find", &["--plugin", "find"]);
    assert_eq!((said.code, said.err.contains("`find` is no plugin")), (2, true), "{}", said.err);
}

#[test]
fn the_intermediate_representation_has_the_plugins() {
    let said = millrace(&["compile", "tests/plugins/encrypt.p4", "--emit", "ir"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("plugin encrypt rewrites\n"), "{}", said.out);
    let said = millrace(&["check", "tests/plugins/classify.p4", "--json"]);
    assert_eq!(said.json()["ok"], json!(true));
}
