use super::*;
use crate::backplane::stub;
use millrace_netlist::{Design, ModuleBuilder, verilog};
use std::path::PathBuf;
use std::process::Command;

/// A register in a module of its own, or nothing but a wire.
fn design(is_clocked: bool) -> Vec<VerilogFile> {
    let mut design = Design::new();
    let mut inner = ModuleBuilder::new("inner");
    let value = inner.input("value", 8);
    let value = if is_clocked { inner.delayed("later", value, Some(0)) } else { inner.not(value) };
    inner.output("next", value);
    let inner = design.add(inner.finish());
    let mut m = ModuleBuilder::new("whole");
    let value = m.input("value", 8);
    let part = m.instance(&design, inner, "part");
    m.connect(part, "value", value);
    let next = m.output_of(part, "next");
    m.output("next", next);
    design.add(m.finish());
    verilog::print(&design)
}

fn text(files: &[BuildFile], name: &str) -> String {
    files.iter().find(|file| file.name == name).unwrap_or_else(|| panic!("no {name}")).text.clone()
}

#[test]
fn each_target_has_the_files_of_its_tools() {
    let names = |target| {
        let files = build_files(target, &design(true), 6400);
        files.into_iter().map(|file| file.name).collect::<Vec<_>>()
    };
    assert_eq!(names(Target::Ecp5), ["whole.lpf", "whole_nextpnr.sh"]);
    assert_eq!(names(Target::Xc7), ["whole.xdc", "whole_vivado.tcl"]);
    let generic = ["whole.xdc", "whole_vivado.tcl", "whole.sdc", "whole_quartus.tcl"];
    assert_eq!(names(Target::Generic), generic);
}

#[test]
fn the_clock_has_the_period() {
    let of = |target, period| build_files(target, &design(true), period);
    assert!(text(&of(Target::Ecp5, 6400), "whole.lpf").contains("FREQUENCY PORT \"clk\" 156.25 MHZ;"));
    let generic = of(Target::Generic, 3105);
    for name in ["whole.xdc", "whole.sdc"] {
        let clock = "create_clock -name clk -period 3.105 [get_ports clk]\n";
        assert!(text(&generic, name).starts_with(clock), "{name}");
    }
}

#[test]
fn without_registers_there_is_no_clock() {
    for target in Target::ALL {
        for file in build_files(target, &design(false), 6400) {
            assert!(
                !file.text.contains("get_ports clk") && !file.text.contains("PORT \"clk\""),
                "{}",
                file.name
            );
            assert!(!file.text.contains("SLACK") && !file.text.contains("-to clk"), "{}", file.name);
        }
    }
}

/// Every script reads all modules, those inside others first.
#[test]
fn scripts_read_all_modules() {
    let generic = build_files(Target::Generic, &design(true), 6400);
    assert!(text(&generic, "whole_vivado.tcl").contains("[list inner.sv whole.sv]"));
    let quartus = text(&generic, "whole_quartus.tcl");
    let at = |file: &str| quartus.find(&format!("SYSTEMVERILOG_FILE {file}\n")).unwrap();
    assert!(at("inner.sv") < at("whole.sv"));
    let nextpnr = build_files(Target::Ecp5, &design(true), 6400);
    assert!(text(&nextpnr, "whole_nextpnr.sh").contains("read_verilog -sv inner.sv whole.sv;"));
}

/// Braces, brackets and quotes of a script are in pairs, without which Tcl does not read it to its end.
#[test]
fn scripts_are_whole() {
    for file in Target::ALL.iter().flat_map(|target| build_files(*target, &design(true), 6400)) {
        let count = |one: char| {
            file.text.lines().filter(|line| !line.starts_with('#')).collect::<String>().matches(one).count()
        };
        assert_eq!(count('{'), count('}'), "{}", file.name);
        assert_eq!(count('['), count(']'), "{}", file.name);
        assert_eq!(count('"') % 2, 0, "{}", file.name);
    }
}

/// A folder of a test, gone when the test ends.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The script of a chassis has Yosys make the device once, and put its cells into each slot: no module and no black box is left.
#[test]
fn yosys_puts_a_device_into_each_slot() {
    const SLOTS: u32 = 3;
    if Command::new("yosys").arg("-V").output().is_err() {
        return eprintln!("skipped: yosys is not installed (Debian package yosys)");
    }
    // A chassis whose slots are one after the other, with a register of its own.
    let device = design(true);
    let (slot, mut whole) = (device.last().unwrap(), Design::new());
    let mut m = ModuleBuilder::new("whole");
    let value = m.input("value", 8);
    let next = m.delayed("later", value, Some(0));
    m.output("next", next);
    let part = whole.add(m.finish());
    let mut m = ModuleBuilder::new("chassis");
    let value = m.input("value", 8);
    let mut value = m.delayed("own", value, Some(0));
    for slot in 0..SLOTS {
        let part = m.instance(&whole, part, &format!("slot{slot}"));
        m.connect(part, "value", value);
        value = m.output_of(part, "next");
    }
    m.output("next", value);
    whole.add(m.finish());
    let chassis: Vec<VerilogFile> =
        verilog::print(&whole).into_iter().filter(|file| file.module != slot.module).collect();

    assert!(build_chassis(Target::Xc7, &chassis, &device, 6400).is_empty());
    let files = build_chassis(Target::Ecp5, &chassis, &device, 6400);
    assert!(text(&files, "chassis.lpf").contains("FREQUENCY PORT \"clk\" 156.25 MHZ;"));
    let folder = Folder(std::env::temp_dir().join(format!("millrace-chassis-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.0.join(name), text).unwrap();
    device.iter().chain(&chassis).for_each(|file| write(&file.file_name(), &file.text));
    files.iter().for_each(|file| write(&file.name, &file.text));
    write("slot_stub.sv", &stub(slot));
    // `true` stands for nextpnr, which has nothing to do here.
    let script = folder.0.join("chassis_nextpnr.sh");
    let ran = Command::new("sh").arg(script).env("NEXTPNR", "true").output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let cells = |cell: &str| -> u32 {
        let text = std::fs::read_to_string(folder.0.join("chassis.stat")).unwrap();
        let count = |line: &str| line.trim().strip_prefix(cell)?.trim().parse().ok();
        text.lines().rev().find_map(count).unwrap_or(0)
    };
    assert_eq!((cells("TRELLIS_FF"), cells("whole")), (8 * (SLOTS + 1), 0));
}
