//! Verilator has nothing to say about a unit; Yosys finds no latch and no fault, and block memory for what is stored.

use super::*;
use millrace_netlist::{Design, verilog};
use std::path::PathBuf;
use std::process::Command;

/// Units of a size that has to be in block memory; a value set and generators are in registers. Alternately they are synthesised for a Xilinx
/// 7 and an ECP5; the order gives the wide products of meters to the ECP5, for which Yosys takes a third of the time.
fn units() -> Vec<(&'static str, ObjectUnit)> {
    vec![
        ("values", values()),
        ("meter", meter(256, Measure::Bytes)),
        ("register", register(1024, false)),
        ("account", meter(256, Measure::Account)),
        ("counter", counter(1024)),
        ("messages", messages(512)),
        ("random", crate::objects::random::tests::unit(24)),
    ]
}

fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    if !found {
        println!("skipped: there is no {tool} (Debian: {tool})");
    }
    found
}

/// The file of a unit; the folder goes with what is given.
fn written(name: &str, unit: &ObjectUnit) -> (PathBuf, PathBuf) {
    let folder = std::env::temp_dir().join(format!("millrace-unit-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut design = Design::new();
    design.add(unit.module(name));
    let [file] = verilog::print(&design).try_into().unwrap_or_else(|_| panic!("one module"));
    let path = folder.join(file.file_name());
    std::fs::write(&path, file.text).unwrap();
    (folder, path)
}

#[test]
fn verilator_has_nothing_to_say() {
    if !has("verilator") {
        return;
    }
    for (name, unit) in units() {
        let (folder, path) = written(&format!("lint_{name}"), &unit);
        let lint = Command::new("verilator").args(["--lint-only", "-Wall"]).arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&lint.stderr).into_owned();
        std::fs::remove_dir_all(folder).unwrap();
        assert!(lint.status.success() && said.is_empty(), "{name}: {said}");
    }
}

fn is_whole() -> bool {
    std::env::var("MILLRACE_SYNTHESIS").is_ok_and(|what| what == "all")
}

#[test]
fn synthesis_finds_block_memory_and_no_fault() {
    if !has("yosys") {
        return;
    }
    let targets = [("synth_xilinx -flatten", "RAMB"), ("synth_ecp5", "DP16KD")];
    for (turn, (target, memory)) in targets.into_iter().enumerate() {
        // Each unit for one of them, as synthesis takes minutes; for both: MILLRACE_SYNTHESIS=all.
        let units = units().into_iter().enumerate();
        for (_, (name, unit)) in units.filter(|(number, _)| is_whole() || number % 2 == turn) {
            let (folder, path) = written(&format!("{memory}_{name}"), &unit);
            // Lookup tables take minutes; what is checked here is there before they are made.
            let script = format!(
                "read_verilog -sv {}; {target} -top {} -run begin:map_luts; check -assert; select -assert-none t:$_DLATCH*; tee -o /dev/stdout stat",
                path.display(),
                path.file_stem().unwrap().to_str().unwrap()
            );
            let output = Command::new("yosys").args(["-q", "-p", &script]).output().unwrap();
            std::fs::remove_dir_all(folder).unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{target} {name}: {said} {errors}");
            let count = |cell: &str| -> u32 {
                let lines = said.lines().filter(|line| line.trim_start().starts_with(cell));
                lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u32>().ok()).sum()
            };
            let blocks = count(memory);
            let flip_flops =
                count("FDRE") + count("FDSE") + count("TRELLIS_FF") + count("$_DFF") + count("$_SDFF");
            println!("{target} {name}: {blocks} block memories, {flip_flops} flip-flops");
            let is_stored = !matches!(unit.kind, Kind::Values { .. } | Kind::Random { .. });
            assert_eq!(blocks > 0, is_stored, "{target} {name}: {said}");
            // Registers between the cycles of a meter: the widest unit.
            let most = if matches!(unit.kind, Kind::Meter { .. }) { 6500 } else { 1200 };
            assert!(flip_flops < most, "{target} {name}: {flip_flops} flip-flops: {said}");
        }
    }
}
