//! Estimates of area next to what Yosys makes of stages of the repository's programs.

#[allow(dead_code)]
#[path = "../../../crates/netlist/tests/common/synthesis.rs"]
mod synthesis;
#[allow(dead_code)]
#[path = "../../../crates/netlist/tests/common/tools.rs"]
mod tools;

use millrace_differential::compile_path;
use millrace_netlist::area::Fabric;
use millrace_netlist::{Design, passes};
use millrace_rtl::{AreaReport, Device, DeviceOptions, Hardware, Options, Target};
use std::path::{Path, PathBuf};

/// What an estimate may differ by in any case.
const FEW: u64 = 20;

/// What of a design is told and found; says so, and what is wrong.
fn compare(name: &str, mut design: Design, told: &AreaReport, fabric: Fabric, wrong: &mut Vec<String>) {
    passes::optimize(&mut design);
    let told = told.total();
    let found = synthesis::synthesised(&design, "area", fabric);
    println!("{name}: {told:?}, found {found:?}");
    if !found.is_near(&told, FEW) {
        wrong.push(format!("{name}: {told:?}, found {found:?}"));
    }
}

const TARGETS: [(Target, Fabric); 2] = [(Target::Xc7, Fabric::Lut6), (Target::Ecp5, Fabric::Lut4)];

/// The programs that a variable names, with commas between: paths, or names of files in `programs/`.
fn named(variable: &str, otherwise: &str) -> Vec<PathBuf> {
    let names = std::env::var(variable).unwrap_or_else(|_| otherwise.to_owned());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
    names.split(',').filter(|name| !name.is_empty()).map(|name| folder.join(name)).collect()
}

/// Stages of some programs; `MILLRACE_AREA_PROGRAMS` names others.
#[test]
#[ignore = "takes minutes"]
fn stages_take_what_is_told() {
    if !tools::has("yosys") {
        return;
    }
    let mut wrong = Vec::new();
    for path in named("MILLRACE_AREA_PROGRAMS", "l2_switch.p4") {
        let program = compile_path(&path);
        for (target, fabric) in TARGETS {
            let capacities = program.tables.values().map(|table| (table.name.clone(), 64)).collect();
            let options = Options { target, capacities, ..Options::default() };
            let hardware = Hardware::new(program.clone(), options).expect("hardware");
            for (part, design) in hardware.designs() {
                let told = hardware.area(part, &design);
                let name = format!("{} {} {}", program.name, part.name(), target.name());
                compare(&name, design, &told, fabric, &mut wrong);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Devices of one port of 256 bits and one queue, of the programs that `MILLRACE_AREA_DEVICES` names: each takes minutes.
#[test]
#[ignore = "takes minutes"]
fn devices_take_what_is_told() {
    if !tools::has("yosys") {
        return;
    }
    let mut wrong = Vec::new();
    for path in named("MILLRACE_AREA_DEVICES", "") {
        let program = compile_path(&path);
        let (target, fabric) = TARGETS[0];
        let hardware = Hardware::new(program.clone(), Options { target, ..Options::default() });
        let hardware = hardware.expect("hardware");
        let options = DeviceOptions { ports: 1, width: 256, queues: 1, ..DeviceOptions::default() };
        let device = Device::new(&hardware, options).expect("a device");
        let told = device.area(&hardware);
        println!("{}{told}", device.report());
        compare(&program.name, device.design().clone(), &told, fabric, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
