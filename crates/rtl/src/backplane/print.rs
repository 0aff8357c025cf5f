//! The SystemVerilog of a backplane with a device in each slot, and the script by which Vivado makes slots that are exchanged.
//!
//! The module that puts them together is text, as each slot has a reset of its own, which designs do not have.

use super::build::Backplane;
use crate::device::Device;
use crate::parts::import;
use millrace_netlist::Design;
use millrace_netlist::verilog::{self, VerilogFile, VerilogPort};
use std::fmt::Write;

/// The modules of a backplane, and `chassis`, in whose slots is `slot`, the top of the printed device. Modules that both have are the same
/// files.
pub fn print(backplane: &Backplane, device: &Device, slot: &VerilogFile) -> Vec<VerilogFile> {
    // Modules of both have one name for one text.
    let mut whole = device.design().clone();
    import(&mut whole, &backplane.design);
    let mut files = verilog::print(&whole);
    let top = files.last().map(|shell| chassis(shell, slot, backplane.options.slots));
    files.extend(top);
    files
}

/// The slot of a port of the backplane and the name there: `slot3_rx0_tdata` is `rx0_tdata` of slot 3.
fn of_slot(name: &str) -> Option<(u32, &str)> {
    let (number, rest) = name.strip_prefix("slot")?.split_once('_')?;
    let number = number.parse().ok()?;
    // Counters of a slot are for the outside.
    let is_stream = rest.contains("_t") && (rest.starts_with("rx") || rest.starts_with("tx"));
    is_stream.then_some((number, rest))
}

fn is_global(port: &VerilogPort) -> bool {
    [Design::CLOCK, Design::RESET].contains(&port.name.as_str())
}

fn chassis(shell: &VerilogFile, slot: &VerilogFile, slots: u32) -> VerilogFile {
    let is_stream =
        |port: &VerilogPort| shell.ports.iter().any(|of| of.name == format!("slot0_{}", port.name));
    let mut ports: Vec<VerilogPort> =
        shell.ports.iter().filter(|port| of_slot(&port.name).is_none()).cloned().collect();
    for number in 0..slots {
        let own = slot.ports.iter().filter(|port| !is_global(port) && !is_stream(port));
        ports.extend(
            own.map(|port| VerilogPort { name: format!("slot{number}_{}", port.name), ..port.clone() }),
        );
    }
    let mut text = format!("module chassis (\n    {}\n);\n", VerilogPort::declared(&ports));
    for port in shell.ports.iter().filter(|port| of_slot(&port.name).is_some()) {
        let _ = writeln!(text, "    wire {}{};", port.bits(), port.name);
    }
    let connected = |ports: &[VerilogPort], value: &dyn Fn(&VerilogPort) -> String| -> String {
        ports.iter().map(|port| format!(".{}({})", port.name, value(port))).collect::<Vec<_>>().join(", ")
    };
    let _ = writeln!(
        text,
        "    {} backplane_i ({});",
        shell.module,
        connected(&shell.ports, &|port| port.name.clone())
    );
    for number in 0..slots {
        let value = |port: &VerilogPort| match port.name.as_str() {
            Design::CLOCK => port.name.clone(),
            // From a register of the backplane, which its own reset sets.
            Design::RESET => format!("slot{number}_reset"),
            name => format!("slot{number}_{name}"),
        };
        let _ = writeln!(text, "    {} slot{number} ({});", slot.module, connected(&slot.ports, &value));
    }
    text.push_str("endmodule\n");
    VerilogFile { module: "chassis".to_owned(), text, is_clocked: true, ports }
}

/// A script for Vivado: the backplane once, and each slot as a region of its own. `files` are the names of the files of the backplane,
/// `slot` those of the device, its top last.
pub fn partial_reconfiguration(files: &[String], slot: &[String], slots: u32, period_ps: u32) -> String {
    let (files, slot) = (files.join(" "), slot.join(" "));
    let period = f64::from(period_ps) / 1000.0;
    format!(
        r#"# A backplane with {slots} slots that are exchanged while the others run, by Vivado:
#   vivado -mode batch -source chassis_partial.tcl -tclargs PART REGIONS.tcl ?PINS.xdc?
# REGIONS.tcl sets for each slot the sites of its region, all alike: set region(0) "SLICE_X0Y0:SLICE_X49Y49 RAMB36_X0Y0:RAMB36_X1Y9"
# The first run makes the backplane and chassis_static.dcp; runs after it, for other programs, start from that, so that all fit together.
# A slot's bitstream is chassis_slotN_partial.bit. Close the gate and set the reset of the slot before it is loaded, and open it after.
cd [file dirname [file normalize [info script]]]
set part [lindex $argv 0]
source [lindex $argv 1]
set pins [lindex $argv 2]
set slots {slots}

# The program of a slot on its own.
create_project -in_memory -part $part
read_verilog -sv [list {slot}]
synth_design -mode out_of_context -top device -part $part
write_checkpoint -force slot.dcp
close_project

if {{![file exists chassis_static.dcp]}} {{
    create_project -in_memory -part $part
    read_verilog -sv [list {files}]
    # What is in a slot comes from its own checkpoint.
    read_verilog -sv slot_stub.sv
    if {{$pins ne ""}} {{ read_xdc $pins }}
    synth_design -top chassis -part $part
    create_clock -period {period:.3} [get_ports clk]
    for {{set n 0}} {{$n < $slots}} {{incr n}} {{
        set_property HD.RECONFIGURABLE true [get_cells slot$n]
        read_checkpoint -cell slot$n slot.dcp
        create_pblock slot$n
        add_cells_to_pblock slot$n [get_cells slot$n]
        foreach sites $region($n) {{ resize_pblock slot$n -add $sites }}
        set_property RESET_AFTER_RECONFIG true [get_pblocks slot$n]
        set_property SNAPPING_MODE ON [get_pblocks slot$n]
    }}
}} else {{
    open_checkpoint chassis_static.dcp
    for {{set n 0}} {{$n < $slots}} {{incr n}} {{ read_checkpoint -cell slot$n slot.dcp }}
}}
opt_design
place_design
route_design
report_timing_summary -file chassis_timing.txt
write_checkpoint -force chassis_routed.dcp
write_bitstream -force -no_partial_bitfile chassis.bit
for {{set n 0}} {{$n < $slots}} {{incr n}} {{
    write_bitstream -force -cell slot$n chassis_slot${{n}}_partial.bit
}}
if {{![file exists chassis_static.dcp]}} {{
    for {{set n 0}} {{$n < $slots}} {{incr n}} {{ update_design -cell slot$n -black_box }}
    lock_design -level routing
    write_checkpoint -force chassis_static.dcp
}}
"#
    )
}

/// The module of a slot without what is in it, for the synthesis of the backplane.
pub fn stub(slot: &VerilogFile) -> String {
    format!(
        "(* black_box *) module {} (\n    {}\n);\nendmodule\n",
        slot.module,
        VerilogPort::declared(&slot.ports)
    )
}
