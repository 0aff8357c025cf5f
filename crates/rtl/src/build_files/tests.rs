use super::*;
use millrace_netlist::{Design, ModuleBuilder, verilog};

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
