//! Constraints and scripts by which the tools of a maker of FPGAs make a bitstream of a design.
//!
//! All are complete without pins: the design is then placed and routed on its own, which says what it takes and how fast it is. A file
//! with the pins of a board makes it a bitstream.

use crate::target::Target;
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
    let build = Build { top, design, period_ps };
    match target {
        Target::Ecp5 => build.nextpnr(),
        Target::Xc7 => build.vivado(),
        Target::Generic => build.vivado().into_iter().chain(build.quartus()).collect(),
    }
}

/// Ends the script where the clock is missed.
const SLACK: &str = r#"set slack [get_property SLACK [get_timing_paths -delay_type max]]
if {$slack ne "" && $slack < 0} {
    error "the clock is missed by [expr {-$slack}] ns"
}
"#;

struct Build<'a> {
    top: &'a VerilogFile,
    design: &'a [VerilogFile],
    period_ps: u32,
}

impl Build<'_> {
    fn file(&self, suffix: &str, text: String) -> BuildFile {
        BuildFile { name: format!("{}{suffix}", self.top.module), text }
    }

    /// The names of the files of the design, the top last, with a separator.
    fn sources(&self, separator: &str) -> String {
        let names: Vec<String> = self.design.iter().map(VerilogFile::file_name).collect();
        names.join(separator)
    }

    fn nanoseconds(&self) -> String {
        format!("{}.{:03}", self.period_ps / 1000, self.period_ps % 1000)
    }

    fn megahertz(&self) -> String {
        format!("{:.2}", 1e6 / f64::from(self.period_ps.max(1)))
    }

    /// Yosys, nextpnr and Project Trellis for the ECP5.
    ///
    /// Yosys gives each flip-flop that is reset or enabled by the inverse of a signal an inverter of its own, so each has its own net for
    /// it, which a slice has few of. `opt_merge` makes them one before they become lookup tables.
    fn nextpnr(&self) -> Vec<BuildFile> {
        let (top, megahertz) = (&self.top.module, self.megahertz());
        let mut constraints = String::from("BLOCK RESETPATHS;\nBLOCK ASYNCPATHS;\n");
        if self.top.is_clocked {
            let _ = writeln!(constraints, "FREQUENCY PORT \"clk\" {megahertz} MHZ;");
        }
        let script = format!(
            r#"#!/bin/sh
# Synthesis, placement and routing of {top} for an ECP5, by Yosys and nextpnr.
#
#   PINS=board.lpf   the pins of the board (LOCATE COMP, IOBUF PORT); without it nothing is connected to pins, and no bitstream is made
#   DEVICE=um5g-85k PACKAGE=CABGA756 SPEED=8 SEED=1 YOSYS=yosys NEXTPNR=nextpnr-ecp5 ECPPACK=ecppack
set -eu
cd "$(dirname "$0")"
${{YOSYS:-yosys}} -q -l {top}.yosys.log -p "read_verilog -sv {sources}; hierarchy -check -top {top}; \
    synth_ecp5 -top {top} -run begin:map_luts; opt_merge; synth_ecp5 -top {top} -run map_luts:; \
    check -assert; tee -o {top}.stat stat; write_json {top}.json"
if [ -n "${{PINS:-}}" ]; then
    cat {top}.lpf "$PINS" > {top}.pins.lpf
    set -- --lpf {top}.pins.lpf --textcfg {top}.config
else
    set -- --lpf {top}.lpf --lpf-allow-unconstrained --out-of-context
fi
${{NEXTPNR:-nextpnr-ecp5}} --${{DEVICE:-um5g-85k}} --package "${{PACKAGE:-CABGA756}}" --speed "${{SPEED:-8}}" --seed "${{SEED:-1}}" \
    --freq {megahertz} --json {top}.json --report {top}.timing.json --log {top}.nextpnr.log "$@"
if [ -n "${{PINS:-}}" ]; then
    ${{ECPPACK:-ecppack}} --compress {top}.config {top}.bit
fi
"#,
            sources = self.sources(" ")
        );
        vec![self.file(".lpf", constraints), self.file("_nextpnr.sh", script)]
    }

    /// Vivado, without a project.
    fn vivado(&self) -> Vec<BuildFile> {
        let top = &self.top.module;
        let constraints = self.create_clock("");
        let script = format!(
            r#"# Synthesis, placement and routing of {top} by Vivado:
#   vivado -mode batch -source {top}_vivado.tcl -tclargs PART ?PINS.xdc?
# Without pins the design is made on its own, out of context, and no bitstream is written.
cd [file dirname [file normalize [info script]]]
set part [expr {{[llength $argv] > 0 ? [lindex $argv 0] : "xc7k325tffg900-2"}}]
set pins [expr {{[llength $argv] > 1 ? [lindex $argv 1] : ""}}]
read_verilog -sv [list {sources}]
read_xdc {top}.xdc
if {{$pins ne ""}} {{
    read_xdc $pins
    synth_design -top {top} -part $part
}} else {{
    synth_design -top {top} -part $part -mode out_of_context
}}
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
            sources = self.sources(" "),
            slack = if self.top.is_clocked { SLACK } else { "" },
        );
        vec![self.file(".xdc", constraints), self.file("_vivado.tcl", script)]
    }

    /// Quartus Prime.
    fn quartus(&self) -> Vec<BuildFile> {
        let top = &self.top.module;
        let uncertainty = if self.top.is_clocked { "derive_clock_uncertainty\n" } else { "" };
        let constraints = self.create_clock(uncertainty);
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
            clock = match self.top.is_clocked {
                true => "    set_instance_assignment -name VIRTUAL_PIN OFF -to clk\n",
                false => "",
            }
        );
        vec![self.file(".sdc", constraints), self.file("_quartus.tcl", script)]
    }

    /// The clock, as Synopsys' constraints say it; nothing where there is none.
    fn create_clock(&self, more: &str) -> String {
        match self.top.is_clocked {
            true => {
                format!("create_clock -name clk -period {} [get_ports clk]\n{more}", self.nanoseconds())
            }
            false => "# No register is in it: there is no clock.\n".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
