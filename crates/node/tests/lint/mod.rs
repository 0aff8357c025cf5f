//! What Verilator has to say about a design.

use millrace_netlist::verilog::print;
use millrace_node::hardware::Top;
use std::process::Command;

/// Nothing; says so if there is no Verilator.
pub(crate) fn has_nothing_to_say(top: &Top) {
    if Command::new("verilator").arg("--version").output().is_err() {
        println!("skipped, there is no verilator (Debian: verilator)");
        return;
    }
    let folder =
        std::env::temp_dir().join(format!("millrace-node-{}-{:x}", std::process::id(), top.map.cookie));
    std::fs::create_dir_all(&folder).unwrap();
    let printed = print(&top.design);
    let mut lint = Command::new("verilator");
    lint.args(["--lint-only", "-Wall", "--top-module", &printed.last().unwrap().module]);
    for file in &printed {
        let path = folder.join(file.file_name());
        std::fs::write(&path, &file.text).unwrap();
        lint.arg(path);
    }
    let said = lint.output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(said.status.success() && said.stderr.is_empty(), "{}", String::from_utf8_lossy(&said.stderr));
}
