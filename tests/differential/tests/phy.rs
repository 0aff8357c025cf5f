//! Wrappers of PHYs: the elastic buffer and RGMII in simulations with several clocks, whole wrappers around a device for Verilator and
//! Yosys. Models of the cells of vendors are in `phy/cells`.

#[allow(dead_code)]
#[path = "../../../crates/netlist/tests/common/tools.rs"]
mod tools;

use millrace_differential::{compile, compile_path};
use millrace_netlist::verilog::{self, VerilogFile};
use millrace_pipeline::Program;
use millrace_rtl::device::{DeviceOptions, Link};
use millrace_rtl::phy::{Phy, Wrapper};
use millrace_rtl::{Device, Hardware, Options, Target, build_wrapper};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

fn own(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/phy").join(path)
}

fn parts(names: &[&str]) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/rtl/src/phy");
    names.iter().map(|name| folder.join(name)).collect()
}

/// Models of all cells of vendors.
fn cells() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(own("cells")).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

/// What a test of SystemVerilog says, run by Icarus Verilog; nothing if that is not there.
fn simulate(top: &str, parameters: &[String], files: &[PathBuf], define: Option<&str>) -> Option<String> {
    if Command::new("iverilog").arg("-V").output().is_err() {
        eprintln!("skipped: iverilog is not installed (Debian package iverilog)");
        return None;
    }
    let folder = tools::Folder::new(&format!("phy-{top}-{}", parameters.join("-").replace(['.', '='], "_")));
    let binary = folder.0.join("test");
    let mut command = Command::new("iverilog");
    command.args(["-g2012", "-s", top, "-o"]).arg(&binary);
    command.args(define.map(|define| format!("-D{define}")));
    command.args(parameters.iter().map(|parameter| format!("-P{top}.{parameter}")));
    tools::run(command.arg(own(&format!("{top}.sv"))).args(files)).unwrap_or_else(|said| panic!("{said}"));
    let said = tools::run(Command::new("vvp").arg("-n").arg(&binary)).unwrap_or_else(|said| panic!("{said}"));
    Some(said.lines().rfind(|line| !line.contains("$finish")).unwrap_or_default().to_owned())
}

/// What is said of so many frames.
fn elastic(frames: u32, halves: (f64, f64), longest: u32, gap: u32) -> Option<String> {
    let parameters = [
        format!("FRAMES={frames}"),
        format!("RX_HALF={:.1}", halves.0),
        format!("HALF={:.1}", halves.1),
        format!("LONGEST={longest}"),
        format!("GAP={gap}"),
    ];
    let files = parts(&["gmii_elastic.sv", "reset_synchroniser.sv"]);
    simulate("elastic_test", &parameters, &files, None)
}

/// Frames of all lengths, also of a few octets, with an error within and without, pass in order and whole, while clocks differ by as much
/// as they may, and by more with shorter frames.
#[test]
fn frames_pass_between_clocks() {
    for (halves, longest, gap) in [
        ((4000.0, 4000.0), 2000, 12),
        ((4000.0, 4000.8), 16388, 12),
        ((4000.8, 4000.0), 16388, 12),
        ((4000.0, 4004.0), 2000, 12),
        ((4004.0, 4000.0), 2000, 12),
        ((4000.0, 4000.8), 2000, 5),
    ] {
        // Each eleventh frame is the longest; simulated octets take the time.
        let frames = if longest > 2000 { 23 } else { 80 };
        let Some(said) = elastic(frames, halves, longest, gap) else { return };
        let wanted = format!("sent {frames} whole {frames} broken 0 missing 0");
        assert_eq!(said, wanted, "{halves:?}, {longest}, {gap}");
    }
}

/// Where clocks differ by far too much, no frame is broken without an error, and short ones are whole.
#[test]
fn frames_that_do_not_pass_have_an_error() {
    for (halves, gap) in [((4000.0, 4040.0), 12), ((4040.0, 4000.0), 12), ((4000.0, 4040.0), 1)] {
        let Some(said) = elastic(40, halves, 9000, gap) else { return };
        let words: Vec<i64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [sent, whole, broken, _] = words[..] else { panic!("{said}") };
        assert!(sent == 40 && whole > 5 && broken > 5, "{said}");
    }
}

/// Pins have the low bits at the rising edge of the clock and `en ^ er` at the falling one, and what comes in is what was sent.
#[test]
fn rgmii_has_the_bits_at_their_edges() {
    let files = [parts(&["rgmii_ecp5.sv", "rgmii_xc7.sv"]), cells()].concat();
    for define in [Some("ECP5"), None] {
        for delays in [0, 1] {
            let Some(said) = simulate("rgmii_test", &[format!("DELAYS={delays}")], &files, define) else {
                return;
            };
            assert_eq!(said, "equal", "{define:?}, {delays}");
        }
    }
}

fn l2_switch() -> Arc<Program> {
    compile_path(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/l2_switch.p4"))
}

/// A small device of a program, and its wrapper.
fn wrapped(
    program: Arc<Program>,
    phy: Phy,
    target: Target,
    ports: u32,
) -> (Vec<VerilogFile>, Result<Wrapper, String>) {
    let options = DeviceOptions {
        ports,
        link: phy.link(),
        slots: 2,
        frame: 512,
        queues: 1,
        depth: 2,
        ..DeviceOptions::default()
    };
    let capacities = program.tables.values().map(|table| (table.name.clone(), 16)).collect();
    let hardware = Hardware::new(program, Options { capacities, ..options.stages() }).unwrap();
    let device = Device::new(&hardware, options).unwrap();
    let printed = verilog::print(device.design());
    let wrapper = phy.wrapper(target, &device, &printed);
    (printed, wrapper)
}

const ALL: [(Phy, Target); 8] = [
    (Phy::Gmii, Target::Generic),
    (Phy::Gmii, Target::Ecp5),
    (Phy::Gmii, Target::Xc7),
    (Phy::RgmiiRxid, Target::Ecp5),
    (Phy::RgmiiId, Target::Ecp5),
    (Phy::RgmiiRxid, Target::Xc7),
    (Phy::RgmiiId, Target::Xc7),
    (Phy::XilinxPcsPma, Target::Xc7),
];

fn write(files: &[VerilogFile], folder: &Path) -> Vec<PathBuf> {
    let each = files.iter().map(|file| {
        let path = folder.join(file.file_name());
        std::fs::write(&path, &file.text).unwrap();
        path
    });
    each.collect()
}

/// Verilator has nothing to say about a wrapper with its device.
#[test]
fn wrappers_are_clean() {
    if !tools::has("verilator") {
        return;
    }
    for (phy, target) in ALL {
        let (printed, wrapper) = wrapped(l2_switch(), phy, target, 2);
        let wrapper = wrapper.unwrap();
        let folder = tools::Folder::new(&format!("phy-lint-{phy:?}-{target:?}"));
        let files = [write(&printed, &folder.0), write(&wrapper.files, &folder.0)].concat();
        let mut command = Command::new("verilator");
        // Models of cells have delays and parameters of vendors; what is said of them is not of the wrapper.
        command.args(["--lint-only", "-Wall", "--no-timing", "--top-module", "device_phy"]).args(&files);
        command.arg("-y").arg(own("cells")).args(["+libext+.sv"]);
        let said = tools::run(&mut command).unwrap_or_else(|said| said);
        let of_wrapper: Vec<&str> = (said.lines())
            .filter(|line| line.starts_with('%') && !line.contains("phy/cells/") && !line.contains("Exiting"))
            .collect();
        assert!(of_wrapper.is_empty(), "{phy:?} {target:?}: {said}");
    }
}

/// A program without tables: the whole synthesis of a device with them takes a minute, and is for `tests/rtl/evaluate`.
const TO_THE_NEXT_PORT: &str = r"
#include <core.p4>
#include <v1model.p4>
struct none {}
parser P(packet_in p, out none h, inout none m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout none h, inout none m) { apply {} }
control I(inout none h, inout none m, inout standard_metadata_t s) { apply { s.egress_spec = s.ingress_port ^ 1; } }
control E(inout none h, inout none m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in none h) { apply {} }
V1Switch(P(), V(), I(), E(), V(), D()) main;
";

/// Yosys makes a wrapper with its device, and its check finds nothing; each cell of a pin is there.
fn synthesised(phy: Phy, target: Target, script: &str, cells: &[(&str, usize)]) {
    if !tools::has("yosys") {
        return;
    }
    let (printed, wrapper) = wrapped(compile("to_the_next_port", TO_THE_NEXT_PORT), phy, target, 1);
    let folder = tools::Folder::new(&format!("phy-yosys-{phy:?}-{target:?}"));
    let files = [write(&printed, &folder.0), write(&wrapper.unwrap().files, &folder.0)].concat();
    let mut commands = String::new();
    files.iter().for_each(|file| commands.push_str(&format!("read_verilog -sv {}\n", file.display())));
    commands.push_str(&format!(
        "{script} -top device_phy\ncheck -assert\nselect -assert-none t:$_DLATCH* t:LD*\n"
    ));
    cells
        .iter()
        .for_each(|(cell, count)| commands.push_str(&format!("select -assert-count {count} t:{cell}\n")));
    let path = folder.0.join("script.ys");
    std::fs::write(&path, commands).unwrap();
    tools::run(Command::new("yosys").args(["-q", "-s"]).arg(path)).unwrap_or_else(|said| panic!("{said}"));
}

#[test]
fn yosys_makes_rgmii_of_an_ecp5() {
    let cells = [("IDDRX1F", 5), ("ODDRX1F", 6), ("DELAYG", 6)];
    synthesised(Phy::RgmiiRxid, Target::Ecp5, "synth_ecp5", &cells);
}

#[test]
fn yosys_makes_rgmii_of_a_xilinx_7() {
    let cells = [("IDDR", 5), ("ODDR", 6), ("IDELAYE2", 5), ("IDELAYCTRL", 1), ("PLLE2_BASE", 1)];
    synthesised(Phy::RgmiiRxid, Target::Xc7, "synth_xilinx", &cells);
}

/// What a wrapper is not for is refused with the reason.
#[test]
fn refusals() {
    for (phy, target, ports, why) in [
        (
            Phy::RgmiiId,
            Target::Generic,
            2,
            "rgmii-id has cells of the pins of an FPGA, so it is for ecp5 or xc7",
        ),
        (
            Phy::XilinxPcsPma,
            Target::Ecp5,
            2,
            "xilinx-pcs-pma is a core of Xilinx, so it is for xc7, not ecp5",
        ),
        (Phy::XilinxPcsPma, Target::Xc7, 5, "xilinx-pcs-pma has 4 ports at most"),
    ] {
        let refused = wrapped(l2_switch(), phy, target, ports).1.unwrap_err();
        assert!(refused.starts_with(why), "{refused}");
    }
}

/// Each clock at a pin has its period, and what crosses between two has a bound, in the files of each tool.
#[test]
fn constraints_name_all_clocks() {
    for (phy, target) in ALL {
        let (printed, wrapper) = wrapped(l2_switch(), phy, target, 2);
        let wrapper = wrapper.unwrap();
        let files = build_wrapper(target, &printed, &wrapper);
        let text = |suffix: &str| {
            let name = format!("device_phy{suffix}");
            files.iter().find(|file| file.name == name).map(|file| file.text.clone())
        };
        let top = &wrapper.files.last().unwrap().text;
        assert!(wrapper.clocks.iter().all(|clock| top.contains(&format!("input wire {}", clock.port))));
        let phys = wrapper.clocks.iter().filter(|clock| !["clk", "refclk_p"].contains(&clock.port.as_str()));
        let phys: Vec<&str> = phys.map(|clock| clock.port.as_str()).collect();
        assert_eq!(phys.len(), if phy.link() == Link::Gmii { 2 } else { 0 }, "{phy:?}");
        for clock in &wrapper.clocks {
            let (port, period) = (&clock.port, f64::from(clock.period_ps) / 1000.0);
            let of_xilinx = format!("create_clock -name {port} -period {period:.3} [get_ports {port}]");
            match target {
                Target::Ecp5 => {
                    let frequency = format!("FREQUENCY PORT \"{port}\" {:.2} MHZ;", 1000.0 / period);
                    assert!(text(".lpf").unwrap().contains(&frequency), "{phy:?}");
                }
                _ => assert!(text(".xdc").unwrap().contains(&of_xilinx), "{phy:?}"),
            }
        }
        let edges = text(".xdc").map_or(0, |text| text.matches("set_input_delay").count());
        let is_rgmii = matches!(phy, Phy::RgmiiId | Phy::RgmiiRxid);
        assert_eq!(edges, if is_rgmii && target == Target::Xc7 { 8 } else { 0 }, "{phy:?}");
        for port in phys {
            if let Some(text) = text(".xdc") {
                assert!(text.contains(&format!("set_max_delay -datapath_only -from [get_clocks {port}]")));
            }
            if let Some(text) = text(".sdc") {
                assert!(text.contains(&format!(" -group {port}")) && text.contains("set_max_skew"));
            }
        }
        let script = text(if target == Target::Ecp5 { "_nextpnr.sh" } else { "_vivado.tcl" }).unwrap();
        let sources = wrapper.files.iter().chain(&printed);
        assert!(sources.map(VerilogFile::file_name).all(|name| script.contains(&name)), "{phy:?}");
        assert_eq!(script.contains("create_ip"), phy == Phy::XilinxPcsPma);
        assert_eq!(script.contains("cells of pins"), phy != Phy::Gmii);
    }
}
