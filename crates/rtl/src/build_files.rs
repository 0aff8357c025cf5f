//! Constraints and scripts by which the tools of a maker of FPGAs make a bitstream of a design.
//!
//! All are complete without pins: the design is then placed and routed on its own, which says what it takes and how fast it is. A file
//! with the pins of a board makes it a bitstream.

use crate::phy::{PinClock, Wrapper};
use crate::target::Target;
use millrace_netlist::Design;
use millrace_netlist::verilog::VerilogFile;
use std::fmt::Write;

/// A file next to the design.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildFile {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// The files for a design as it was printed, its top last, whose cycle has so many picoseconds.
pub fn build_files(target: Target, design: &[VerilogFile], period_ps: u32) -> Vec<BuildFile> {
    let Some(top) = design.last() else { return Vec::new() };
    Build { top, design: design.iter().collect(), period_ps, around: Around::Nothing }.files(target)
}

/// The files for a wrapper around a device as it was printed.
pub fn build_wrapper(target: Target, design: &[VerilogFile], wrapper: &Wrapper) -> Vec<BuildFile> {
    let Some(top) = wrapper.files.last() else { return Vec::new() };
    let period_ps = wrapper.clocks.iter().map(|clock| clock.period_ps).min().unwrap_or_default();
    let design = design.iter().chain(&wrapper.files).collect();
    Build { top, design, period_ps, around: Around::Phys(wrapper) }.files(target)
}

/// The files for a backplane with the same device in each slot as one design, for tools that cannot exchange a slot. `chassis` has the
/// modules of the backplane, `chassis` last, `device` those of the device.
pub fn build_chassis(
    target: Target,
    chassis: &[VerilogFile],
    device: &[VerilogFile],
    period_ps: u32,
) -> Vec<BuildFile> {
    let (Some(top), Target::Ecp5) = (chassis.last(), target) else { return Vec::new() };
    Build { top, design: chassis.iter().collect(), period_ps, around: Around::Slots(device) }.files(target)
}

/// What counts of the cells of an ECP5.
#[derive(Clone, Copy)]
enum Goal {
    /// Their delays.
    Speed,
    /// Their number, where the device is to be filled.
    ///
    /// Sums and comparisons of few bits are lookup tables then: a block of carry chain has two bits and takes the place of two lookup
    /// tables, and a chain needs one more to begin and to end. Lookup tables of more than four inputs are left out, as they take two, four
    /// or eight places next to each other. With both, what is in a slot of a backplane takes a tenth less.
    Area,
}

/// The most bits of sums and comparisons that are lookup tables where their number counts.
const FEW_BITS: u32 = 12;

/// Commands of Yosys for the cells of a module.
fn made(files: &str, top: &str, goal: Goal) -> String {
    let cells = match goal {
        Goal::Speed => format!(
            "synth_ecp5 -top {top} -run begin:map_luts; opt_merge; synth_ecp5 -top {top} -run map_luts:"
        ),
        Goal::Area => format!(
            "synth_ecp5 -nowidelut -top {top} -run begin:map_gates; \
             techmap t:\\$alu r:Y_WIDTH<={FEW_BITS} %i; opt -fast; \\\n    \
             synth_ecp5 -nowidelut -top {top} -run map_gates:map_luts; opt_merge; \
             synth_ecp5 -nowidelut -top {top} -run map_luts:"
        ),
    };
    format!("read_verilog -sv {files}; hierarchy -check -top {top}; \\\n    {cells}; \\\n    check -assert; ")
}

/// Ends the script where the clock is missed.
const SLACK: &str = r#"set slack [get_property SLACK [get_timing_paths -delay_type max]]
if {$slack ne "" && $slack < 0} {
    error "the clock is missed by [expr {-$slack}] ns"
}
"#;

struct Build<'a> {
    top: &'a VerilogFile,
    design: Vec<&'a VerilogFile>,
    period_ps: u32,
    around: Around<'a>,
}

/// Where a device is in the design.
#[derive(Clone, Copy)]
enum Around<'a> {
    /// It is the design, or there is none.
    Nothing,
    /// In a wrapper with PHYs.
    Phys(&'a Wrapper),
    /// In each slot of a backplane: its modules.
    Slots(&'a [VerilogFile]),
}

impl<'a> Build<'a> {
    fn files(&self, target: Target) -> Vec<BuildFile> {
        match target {
            Target::Ecp5 => self.nextpnr(),
            Target::Xc7 => self.vivado(),
            Target::Generic => self.vivado().into_iter().chain(self.quartus()).collect(),
        }
    }

    fn wrapper(&self) -> Option<&'a Wrapper> {
        match self.around {
            Around::Phys(wrapper) => Some(wrapper),
            Around::Nothing | Around::Slots(_) => None,
        }
    }

    /// Clocks at pins, each with its period in picoseconds.
    fn clocks(&self) -> Vec<(&str, u32)> {
        match self.wrapper() {
            Some(wrapper) => {
                wrapper.clocks.iter().map(|clock| (clock.port.as_str(), clock.period_ps)).collect()
            }
            None if self.top.is_clocked => vec![(Design::CLOCK, self.period_ps)],
            None => Vec::new(),
        }
    }

    /// Clocks of PHYs, whose octets cross to that of the device.
    fn crossing(&self) -> Vec<&str> {
        let clocks = self.clocks().into_iter().map(|(port, _)| port);
        match self.top.is_clocked {
            true => clocks.filter(|port| *port != Design::CLOCK).collect(),
            false => Vec::new(),
        }
    }

    /// Whether it has cells that are placed at pins alone.
    fn needs_pins(&self) -> bool {
        self.wrapper().is_some_and(|wrapper| wrapper.needs_pins)
    }

    fn file(&self, suffix: &str, text: String) -> BuildFile {
        BuildFile { name: format!("{}{suffix}", self.top.module), text }
    }

    /// The names of the files of the design, the top last.
    fn sources(&self) -> String {
        names(self.design.iter().copied())
    }

    /// Commands of Yosys from the files to the cells of an ECP5.
    ///
    /// Yosys gives each flip-flop that is reset or enabled by the inverse of a signal an inverter of its own, so each has its own net for
    /// it, which a slice has few of. `opt_merge` makes them one before they become lookup tables.
    ///
    /// What is in the slots of a backplane is made once, and its cells are then put into each slot.
    fn yosys(&self) -> String {
        let (top, sources) = (&self.top.module, self.sources());
        let Around::Slots(device) = self.around else { return made(&sources, top, Goal::Speed) };
        let Some(slot) = device.last() else { return made(&sources, top, Goal::Speed) };
        let slot_name = &slot.module;
        format!(
            "{slot}tee -o slot.stat stat; design -stash slot; \\\n    {chassis}\
             delete ={slot_name}; design -copy-from slot -as {slot_name} {slot_name}; flatten; opt_clean; check -assert; ",
            slot = made(&names(device), slot_name, Goal::Area),
            chassis = made(&format!("slot_stub.sv {sources}"), top, Goal::Area),
        )
    }

    /// Yosys, nextpnr and Project Trellis for the ECP5.
    fn nextpnr(&self) -> Vec<BuildFile> {
        let (top, frequency) = (&self.top.module, megahertz(self.period_ps));
        let mut constraints = String::from("BLOCK RESETPATHS;\nBLOCK ASYNCPATHS;\n");
        for (port, period_ps) in self.clocks() {
            let _ = writeln!(constraints, "FREQUENCY PORT \"{port}\" {} MHZ;", megahertz(period_ps));
        }
        let alone = match self.needs_pins() {
            true => "echo 'cells of pins are placed at pins alone: PINS=board.lpf'\n    exit 0".to_owned(),
            false => format!("set -- --lpf {top}.lpf --lpf-allow-unconstrained --out-of-context"),
        };
        // nextpnr counts its attempts to place a cell up to the square of the number of cells, which 32 bits do not hold from 46341 cells on.
        // With its placer by electrostatics the wires of a device that is mostly full are half as long as with the other one.
        let (placer, large) = match self.around {
            Around::Slots(_) => ("static", " --placer-heap-cell-placement-timeout 0"),
            Around::Nothing | Around::Phys(_) => ("heap", ""),
        };
        let script = format!(
            r#"#!/bin/sh
# Synthesis, placement and routing of {top} for an ECP5, by Yosys and nextpnr.
#
#   PINS=board.lpf   the pins of the board (LOCATE COMP, IOBUF PORT); without it nothing is connected to pins, and no bitstream is made
#   DEVICE=um5g-85k PACKAGE=CABGA756 SPEED=8 SEED=1 PLACER={placer} ROUTER=router1 YOSYS=yosys NEXTPNR=nextpnr-ecp5 ECPPACK=ecppack
set -eu
cd "$(dirname "$0")"
${{YOSYS:-yosys}} -q -l {top}.yosys.log -p "{made}tee -o {top}.stat stat; write_json {top}.json"
if [ -n "${{PINS:-}}" ]; then
    cat {top}.lpf "$PINS" > {top}.pins.lpf
    set -- --lpf {top}.pins.lpf --textcfg {top}.config
else
    {alone}
fi
${{NEXTPNR:-nextpnr-ecp5}} --${{DEVICE:-um5g-85k}} --package "${{PACKAGE:-CABGA756}}" --speed "${{SPEED:-8}}" --seed "${{SEED:-1}}" \
    --placer "${{PLACER:-{placer}}}" --router "${{ROUTER:-router1}}" --freq {frequency}{large} \
    --json {top}.json --report {top}.timing.json --log {top}.nextpnr.log "$@"
if [ -n "${{PINS:-}}" ]; then
    ${{ECPPACK:-ecppack}} --compress {top}.config {top}.bit
fi
"#,
            made = self.yosys()
        );
        vec![self.file(".lpf", constraints), self.file("_nextpnr.sh", script)]
    }

    /// Vivado, without a project.
    fn vivado(&self) -> Vec<BuildFile> {
        let top = &self.top.module;
        let mut constraints = self.create_clocks();
        for port in self.crossing() {
            // Also those that a PLL makes of it.
            let clk = "[get_clocks -include_generated_clocks clk]";
            for (from, to) in
                [(format!("[get_clocks {port}]"), clk), (clk.to_owned(), &format!("[get_clocks {port}]"))]
            {
                let _ = writeln!(
                    constraints,
                    "set_max_delay -datapath_only -from {from} -to {to} {}",
                    nanoseconds(self.period_ps)
                );
            }
        }
        if let Some(wrapper) = self.wrapper() {
            constraints.push_str("set_false_path -from [get_ports rst]\n");
            wrapper.clocks.iter().for_each(|clock| constraints.push_str(&both_edges(clock)));
        }
        let alone = match self.needs_pins() {
            true => {
                "    puts \"cells of pins are placed at pins alone: give PINS.xdc\"\n    report_utilization -hierarchical\n    return\n"
            }
            false => "",
        };
        let script = format!(
            r#"# Synthesis, placement and routing of {top} by Vivado:
#   vivado -mode batch -source {top}_vivado.tcl -tclargs PART ?PINS.xdc?
# Without pins the design is made on its own, out of context, and no bitstream is written.
cd [file dirname [file normalize [info script]]]
set part [expr {{[llength $argv] > 0 ? [lindex $argv 0] : "xc7k325tffg900-2"}}]
set pins [expr {{[llength $argv] > 1 ? [lindex $argv 1] : ""}}]
{cores}read_verilog -sv [list {sources}]
read_xdc {top}.xdc
if {{$pins ne ""}} {{
    read_xdc $pins
    synth_design -top {top} -part $part
}} else {{
    synth_design -top {top} -part $part -mode out_of_context
{alone}}}
opt_design
place_design
phys_opt_design
route_design
report_utilization -hierarchical -file {top}_utilization.txt
report_timing_summary -file {top}_timing.txt
write_checkpoint -force {top}.dcp
{slack}if {{$pins ne ""}} {{
    write_bitstream -force {top}.bit
}}
"#,
            cores = self.wrapper().map_or("", |wrapper| wrapper.cores.as_str()),
            sources = self.sources(),
            slack = if self.clocks().is_empty() { "" } else { SLACK },
        );
        vec![self.file(".xdc", constraints), self.file("_vivado.tcl", script)]
    }

    /// Quartus Prime.
    fn quartus(&self) -> Vec<BuildFile> {
        let top = &self.top.module;
        let mut constraints = self.create_clocks();
        if !self.clocks().is_empty() {
            constraints.push_str("derive_clock_uncertainty\n");
        }
        let crossing = self.crossing();
        if !crossing.is_empty() {
            let groups: String = crossing.iter().map(|port| format!(" -group {port}")).collect();
            let _ = writeln!(constraints, "set_clock_groups -asynchronous -group clk{groups}");
            for (from, to) in [("tail_gray", "tail_seen_0"), ("head_gray", "head_seen_0")] {
                let _ = writeln!(
                    constraints,
                    "set_max_skew -from [get_registers *elastic*{from}*] -to [get_registers *elastic*{to}*] {}",
                    nanoseconds(self.period_ps)
                );
            }
        }
        if self.wrapper().is_some() {
            constraints.push_str("set_false_path -from [get_ports rst]\n");
        }
        let sources: String = (self.design.iter())
            .map(|file| format!("set_global_assignment -name SYSTEMVERILOG_FILE {}\n", file.file_name()))
            .collect();
        let script = format!(
            r#"# Synthesis, placement and routing of {top} by Quartus Prime:
#   quartus_sh -t {top}_quartus.tcl FAMILY DEVICE ?PINS.tcl?
# PINS.tcl has the set_location_assignment and set_instance_assignment lines of the board. Without it all ports are virtual pins.
package require ::quartus::project
package require ::quartus::flow
cd [file dirname [file normalize [info script]]]
set arguments $quartus(args)
if {{[llength $arguments] < 2}} {{
    error "usage: quartus_sh -t {top}_quartus.tcl FAMILY DEVICE ?PINS.tcl?"
}}
project_new -overwrite {top}
set_global_assignment -name FAMILY [lindex $arguments 0]
set_global_assignment -name DEVICE [lindex $arguments 1]
set_global_assignment -name TOP_LEVEL_ENTITY {top}
{sources}set_global_assignment -name SDC_FILE {top}.sdc
if {{[llength $arguments] > 2}} {{
    source [lindex $arguments 2]
}} else {{
    set_instance_assignment -name VIRTUAL_PIN ON -to *
{clock}}}
execute_flow -compile
project_close
"#,
            clock = self
                .clocks()
                .into_iter()
                .map(|(port, _)| format!("    set_instance_assignment -name VIRTUAL_PIN OFF -to {port}\n"))
                .collect::<String>()
        );
        vec![self.file(".sdc", constraints), self.file("_quartus.tcl", script)]
    }

    /// The clocks, as Synopsys' constraints say it; nothing where there is none.
    fn create_clocks(&self) -> String {
        let clocks = self.clocks().into_iter().map(|(port, period_ps)| {
            format!("create_clock -name {port} -period {} [get_ports {port}]\n", nanoseconds(period_ps))
        });
        let clocks: String = clocks.collect();
        match clocks.is_empty() {
            true => "# No register is in it: there is no clock.\n".to_owned(),
            false => clocks,
        }
    }
}

/// When data are there at pins that change at both edges of a clock: from 1 ns before each edge to 1 ns after it, which RGMII promises.
fn both_edges(clock: &PinClock) -> String {
    const AROUND: u32 = 1000;
    if clock.data.is_empty() {
        return String::new();
    }
    let (port, pins) = (&clock.port, clock.data.join(" "));
    let (latest, earliest) = (nanoseconds(clock.period_ps / 2 - AROUND), nanoseconds(AROUND));
    let edge = |more: &str| {
        format!(
            "set_input_delay -clock {port} -max {latest}{more} [get_ports {{{pins}}}]\n\
             set_input_delay -clock {port} -min {earliest}{more} [get_ports {{{pins}}}]\n"
        )
    };
    edge("") + &edge(" -clock_fall -add_delay")
}

/// The names of files, in their order.
fn names<'a>(files: impl IntoIterator<Item = &'a VerilogFile>) -> String {
    let names: Vec<String> = files.into_iter().map(VerilogFile::file_name).collect();
    names.join(" ")
}

fn nanoseconds(period_ps: u32) -> String {
    format!("{}.{:03}", period_ps / 1000, period_ps % 1000)
}

fn megahertz(period_ps: u32) -> String {
    format!("{:.2}", 1e6 / f64::from(period_ps.max(1)))
}

#[cfg(test)]
mod tests;
