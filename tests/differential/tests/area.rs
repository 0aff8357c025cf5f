//! Estimates of area next to what Yosys makes of stages of the repository's programs.

use millrace_differential::compile_path;
use millrace_netlist::{Design, passes, verilog};
use millrace_rtl::{AreaReport, Device, DeviceOptions, Hardware, Options, Target};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Lookup tables with those that are memory, flip-flops, block memories.
fn counted(said: &str) -> [u64; 3] {
    let mut counted = [0; 3];
    for line in said.lines() {
        let mut words = line.split_whitespace();
        let (Some(cell), Some(count), None) = (words.next(), words.next(), words.next()) else { continue };
        let Ok(count) = count.parse::<u64>() else { continue };
        let (of, weight) = match cell {
            "LUT1" | "LUT2" | "LUT3" | "LUT4" | "LUT5" | "LUT6" | "SRL16E" | "SRLC32E" => (0, 1),
            "CCU2C" | "RAM32X1D" | "RAM64X1D" => (0, 2),
            "RAM32M" | "RAM64M" | "TRELLIS_DPR16X4" => (0, 4),
            "FDRE" | "FDSE" | "TRELLIS_FF" => (1, 1),
            "RAMB18E1" | "DP16KD" => (2, 1),
            "RAMB36E1" => (2, 2),
            _ => continue,
        };
        counted[of] += weight * count;
    }
    counted
}

/// What Yosys makes of a design.
fn synthesised(files: &[verilog::VerilogFile], command: &str) -> [u64; 3] {
    let folder = std::env::temp_dir().join(format!("millrace-area-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("design.sv");
    std::fs::write(&path, files.iter().map(|file| file.text.as_str()).collect::<String>()).unwrap();
    let top = &files.last().unwrap().module;
    let script = format!(
        "read_verilog -sv {}; {command} -top {top}; check -assert; tee -o /dev/stdout stat",
        path.display()
    );
    let ran = Command::new("yosys").args(["-q", "-p", &script]).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    counted(&String::from_utf8_lossy(&ran.stdout))
}

/// Within a fifth, or a few.
fn is_near(told: u64, found: u64) -> bool {
    const FEW: u64 = 20;
    told.abs_diff(found) <= FEW.max(found / 5)
}

/// What of a design is told and found; says so, and what is wrong.
fn compare(name: &str, mut design: Design, told: &AreaReport, command: &str, wrong: &mut Vec<String>) {
    passes::optimize(&mut design);
    let total = told.total();
    let told = [total.luts + total.memory_luts, total.ffs, total.blocks];
    let found = synthesised(&verilog::print(&design), command);
    println!("{name}: {total:?}, found {found:?}");
    if !told.iter().zip(found).all(|(told, found)| is_near(*told, found)) {
        wrong.push(format!("{name}: {told:?}, found {found:?}"));
    }
}

const TARGETS: [(Target, &str); 2] =
    [(Target::Xc7, "synth_xilinx -flatten -noiopad -noclkbuf"), (Target::Ecp5, "synth_ecp5")];

/// The programs that a variable names, with commas between: paths, or names of files in `programs/`.
fn named(variable: &str, otherwise: &str) -> Vec<PathBuf> {
    let names = std::env::var(variable).unwrap_or_else(|_| otherwise.to_owned());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
    names.split(',').filter(|name| !name.is_empty()).map(|name| folder.join(name)).collect()
}

fn has_yosys() -> bool {
    let found = Command::new("yosys").arg("-V").stdout(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("skipped: yosys is not installed (Debian package yosys)");
    }
    found
}

/// Stages of some programs; `MILLRACE_AREA_PROGRAMS` names others.
#[test]
#[ignore = "takes minutes"]
fn stages_take_what_is_told() {
    if !has_yosys() {
        return;
    }
    let mut wrong = Vec::new();
    for path in named("MILLRACE_AREA_PROGRAMS", "l2_switch.p4") {
        let program = compile_path(&path);
        for (target, command) in TARGETS {
            let capacities = program.tables.values().map(|table| (table.name.clone(), 64)).collect();
            let options = Options { target, capacities, ..Options::default() };
            let hardware = Hardware::new(program.clone(), options).expect("hardware");
            for ((part, design), (_, told)) in hardware.designs().zip(hardware.areas()) {
                let name = format!("{} {} {}", program.name, part.name(), target.name());
                compare(&name, design, &told, command, &mut wrong);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Devices of one port of 256 bits and one queue, of the programs that `MILLRACE_AREA_DEVICES` names: each takes minutes.
#[test]
#[ignore = "takes minutes"]
fn devices_take_what_is_told() {
    if !has_yosys() {
        return;
    }
    let mut wrong = Vec::new();
    for path in named("MILLRACE_AREA_DEVICES", "") {
        let program = compile_path(&path);
        let (target, command) = TARGETS[0];
        let hardware = Hardware::new(program.clone(), Options { target, ..Options::default() });
        let hardware = hardware.expect("hardware");
        let options = DeviceOptions { ports: 1, width: 256, queues: 1, ..DeviceOptions::default() };
        let device = Device::new(&hardware, options).expect("a device");
        let told = device.area(&hardware);
        println!("{}{told}", device.report());
        compare(&program.name, device.design().clone(), &told, command, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
