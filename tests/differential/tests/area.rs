//! Estimates of area next to what Yosys makes of stages of the repository's programs.

#[allow(dead_code)]
#[path = "../../../crates/netlist/tests/common/synthesis.rs"]
mod synthesis;
#[allow(dead_code)]
#[path = "../../../crates/netlist/tests/common/tools.rs"]
mod tools;

use millrace_differential::{compile, compile_path};
use millrace_netlist::area::{Area, Fabric, estimate};
use millrace_netlist::{Design, passes};
use millrace_rtl::{AreaReport, Device, DeviceOptions, Hardware, Options, Part, Target};
use std::collections::BTreeMap;
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

/// What a design takes, with no regard to parts of the program.
fn whole(mut design: Design, fabric: Fabric) -> Area {
    passes::optimize(&mut design);
    for module in design.modules.values_mut() {
        module.nodes.values_mut().for_each(|node| node.place = None.into());
        module.registers.values_mut().for_each(|register| register.place = None.into());
        module.places.clear();
    }
    let mut all = Area::default();
    estimate(&design, fabric).expect("a small design").into_values().for_each(|area| all += area);
    all
}

#[test]
fn parts_together_are_the_whole() {
    for path in named("", "l2_switch.p4,router.p4,firewall.p4") {
        let program = compile_path(&path);
        for (target, fabric) in TARGETS {
            let options = Options { target, ..Options::default() };
            let hardware = Hardware::new(program.clone(), options).expect("hardware");
            for (part, design) in hardware.designs() {
                let told = hardware.area(part, &design);
                let name = format!("{} {} {}", program.name, part.name(), target.name());
                assert_eq!(told.total(), whole(design, fabric), "{name}");
                for (of, area) in &told.parts {
                    let is_parser = of.starts_with("parser ");
                    let is_deparser = of.starts_with("deparser ");
                    assert!(!is_parser || part == Part::Ingress, "{name}\n{told}");
                    assert!(!is_deparser || part == Part::Egress, "{name}\n{told}");
                    if is_parser || is_deparser || of.starts_with("control ") || of == "verdict" {
                        // What they compute goes on in registers of no part.
                        assert!(*area == Area { luts: area.luts, ..Area::default() }, "{name}\n{told}");
                    }
                }
            }
            let device = DeviceOptions { ports: 2, ..DeviceOptions::default() };
            let device = Device::new(&hardware, device).expect("a device");
            assert_eq!(
                device.area(&hardware).total(),
                whole(device.design().clone(), fabric),
                "{}",
                program.name
            );
        }
    }
}

/// A program with a parser, a control and a deparser of a few bits each.
const SMALL: &str = r#"
#include <core.p4>
#include <v1model.p4>

header outer_t { bit<48> to; bit<16> type; }
header inner_t { bit<32> count; }
struct headers_t { outer_t outer; inner_t inner; }
struct metadata_t {}

parser Small(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t of_switch) {
    state start {
        packet.extract(hdr.outer);
        transition select(hdr.outer.type, hdr.outer.to) {
            (0x88b5, _): inner;
            default: accept;
        }
    }
    state inner {
        packet.extract(hdr.inner);
        transition accept;
    }
}
control Verify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control Decides(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t of_switch) {
    apply {
        if (hdr.inner.count == 7) {
            of_switch.egress_spec = 1;
        }
    }
}
control Leaves(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t of_switch) { apply {} }
control Compute(inout headers_t hdr, inout metadata_t meta) { apply {} }
control Writes(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.outer);
        packet.emit(hdr.inner);
    }
}
V1Switch(Small(), Verify(), Decides(), Leaves(), Compute(), Writes()) main;
"#;

/// What each part of each stage takes, in cycles that have time for everything.
fn parts_of(text: &str) -> BTreeMap<String, Area> {
    let options = Options { period_ps: 50_000, ..Options::default() };
    let hardware = Hardware::new(compile("small", text), options).expect("hardware");
    let mut all = BTreeMap::new();
    for (part, design) in hardware.designs() {
        let parts = hardware.area(part, &design).parts.into_iter();
        all.extend(parts.map(|(of, area)| (format!("{}: {of}", part.name()), area)));
    }
    all
}

#[test]
fn a_change_moves_the_part_that_it_is_in() {
    let before = parts_of(SMALL);
    let changes = [
        // 48 bits more that have to be what they are for one bit to be 1: each lookup table of six inputs takes five of them.
        ("(0x88b5, _)", "(0x88b5, 0x0200_0000_0001)", "ingress: parser Small", 9..=10),
        // A comparison of two numbers has a lookup table for each of 32 bits, one with a constant one for five of them.
        (
            "hdr.inner.count == 7",
            "hdr.inner.count + 5 < hdr.inner.count",
            "ingress: control Decides",
            24..=26,
        ),
        // Each of the 32 bits of the second header is there or not, and so is its length.
        ("packet.emit(hdr.inner);", "", "egress: deparser Writes", -40..=-32),
    ];
    for (old, new, part, more) in changes {
        assert!(SMALL.contains(old));
        let after = parts_of(&SMALL.replace(old, new));
        let luts = |parts: &BTreeMap<String, Area>| parts.get(part).map_or(0, |area| area.luts as i64);
        let found = luts(&after) - luts(&before);
        assert!(more.contains(&found), "{new}: {found} more lookup tables in {part}");
        let others = |parts: &BTreeMap<String, Area>| {
            let mut parts = parts.clone();
            parts.remove(part);
            parts
        };
        assert_eq!(others(&after), others(&before), "{new}");
    }
}
