//! `millrace rtl`.

use crate::capacity::CapacityArgs;
use crate::design_folder::DesignFiles;
use crate::device_args::DeviceArgs;
use crate::findings::{Failure, Findings};
use crate::output::{say, say_line};
use crate::registers;
use crate::source::load_any;
use crate::{cli::ProgramArgs, progress::Progress};
use clap::{Args, ValueEnum};
use millrace_compile::check_port;
use millrace_netlist::Design;
use millrace_netlist::area::Area;
use millrace_netlist::verilog::{self, VerilogFile};
use millrace_pipeline::Program;
use millrace_rtl::backplane::{self, Backplane, BackplaneOptions};
use millrace_rtl::device::Link;
use millrace_rtl::map::Bus;
use millrace_rtl::phy::Phy;
use millrace_rtl::{
    AreaReport, Device, DeviceOptions, Hardware, Options, Part, Target, build_chassis, build_files,
    build_wrapper,
};
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct RtlArgs {
    #[command(flatten)]
    program: ProgramArgs,
    /// Folder to write the SystemVerilog, the report and the register map to
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The length of a cycle that stages are placed for, in picoseconds; that of the link if not given: 8000 with GMII, else 6400
    #[arg(long, value_name = "PS", value_parser = clap::value_parser!(u32).range(1000..=1_000_000))]
    period: Option<u32>,
    /// What the hardware is for: how long operations take, and the tools that constraints and scripts are written for
    #[arg(long, value_enum, default_value_t = TargetKind::Generic)]
    target: TargetKind,
    #[command(flatten)]
    capacity: CapacityArgs,
    /// Frames a second that every stage has to take, if not those of 64 bytes at 64 bits a cycle, or of all ports with GMII
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u64).range(1..))]
    rate: Option<u64>,
    /// Makes the hardware also where an object lets fewer frames a second pass
    #[arg(long)]
    allow_slow: bool,
    /// Makes the hardware also where several stages ask for one counter, meter or register that is larger than a unit may be: its ports
    /// then stay ports of the stages
    #[arg(long)]
    allow_outside: bool,
    /// The whole device: ports, the stages and the traffic manager between them
    #[arg(long)]
    device: bool,
    #[command(flatten)]
    shape: DeviceArgs,
    /// Writes a wrapper too, with the device and what is between its MACs and the pins of a board, and makes it the top of the constraints
    /// and scripts
    #[arg(long, value_enum, value_name = "PHY", requires_all = ["device", "output"], conflicts_with = "backplane")]
    phy: Option<PhyKind>,
    /// Writes a backplane with so many slots too, with the device in each, and the script for slots that are exchanged, or for ecp5 for all as one design
    #[arg(long, value_name = "SLOTS", requires_all = ["device", "output"])]
    backplane: Option<u32>,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is between MACs and pins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PhyKind {
    /// PHYs on GMII, for any target
    Gmii,
    /// PHYs on RGMII that delay the clock of what they send, 1 Gbit/s alone, for ecp5 and xc7
    RgmiiRxid,
    /// PHYs on RGMII that delay both clocks, 1 Gbit/s alone, for ecp5 and xc7
    RgmiiId,
    /// Transceivers for 10GBASE-R by Xilinx' core, for xc7
    XilinxPcsPma,
}

impl PhyKind {
    fn phy(self) -> Phy {
        match self {
            PhyKind::Gmii => Phy::Gmii,
            PhyKind::RgmiiRxid => Phy::RgmiiRxid,
            PhyKind::RgmiiId => Phy::RgmiiId,
            PhyKind::XilinxPcsPma => Phy::XilinxPcsPma,
        }
    }
}

/// What hardware is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TargetKind {
    /// Any FPGA: scripts for Vivado and Quartus
    Generic,
    /// Lattice ECP5, speed grade 8: scripts for Yosys and nextpnr
    Ecp5,
    /// Xilinx 7, speed grade 2: scripts for Vivado
    Xc7,
}

impl TargetKind {
    pub(crate) fn target(self) -> Target {
        match self {
            TargetKind::Generic => Target::Generic,
            TargetKind::Ecp5 => Target::Ecp5,
            TargetKind::Xc7 => Target::Xc7,
        }
    }
}

/// What the device is to be like, whose ports the program has to tell apart.
fn device_options(args: &RtlArgs, program: &Program) -> Result<DeviceOptions, Failure> {
    let options = args.shape.options();
    if args.device {
        (0..options.ports)
            .try_for_each(|port| check_port(program, options.number(port)))
            .map_err(Failure::Failed)?;
    }
    Ok(options)
}

pub(crate) fn rtl(args: &RtlArgs, findings: &mut Findings) -> Result<(), Failure> {
    if let (false, Some(option)) = (args.device, args.shape.given()) {
        return Err(Failure::Usage(format!("{option} is for --device")));
    }
    let program = load_any(&args.program.path, &args.program.source, findings)?.program(findings)?;
    let progress = Progress::start(format!("making hardware of {}", program.name));
    let capacities = args.capacity.of(&program)?;
    let options = device_options(args, &program)?;
    let period = args.period.unwrap_or(options.stages().period_ps);
    let hardware =
        Hardware::new(program, Options { period_ps: period, capacities, target: args.target.target() });
    let hardware = hardware.map_err(|refusal| Failure::Failed(refusal.to_string()))?;
    if !args.allow_slow {
        let rate = args.rate.unwrap_or_else(|| options.line_rate(period));
        hardware.check_rate(rate).map_err(|refusal| Failure::Failed(refusal.to_string()))?;
    }
    if !args.allow_outside {
        hardware.check_shared().map_err(|refusal| Failure::Failed(refusal.to_string()))?;
    }
    let device = match args.device {
        true => {
            Some(Device::new(&hardware, options).map_err(|refusal| Failure::Failed(refusal.to_string()))?)
        }
        false => None,
    };
    let report = hardware.report();
    let stages: Vec<(Part, Design)> = match &device {
        Some(_) => Vec::new(),
        None => hardware.designs().collect(),
    };
    let shared = hardware.shared_design().filter(|_| device.is_none());
    let (designs, areas): (Vec<&Design>, Vec<(String, AreaReport)>) = match &device {
        Some(device) => (vec![device.design()], vec![("device".to_owned(), device.area(&hardware))]),
        None => {
            let area = |(part, design): &(Part, Design)| (part.name(), hardware.area(*part, design));
            let of_shared =
                shared.iter().map(|design| ("shared".to_owned(), hardware.area_of_shared(design)));
            let designs = stages.iter().map(|(_, design)| design).chain(&shared).collect();
            (designs, stages.iter().map(area).chain(of_shared).collect())
        }
    };
    for ((part, _), design) in areas.iter().zip(&designs) {
        hardware.check_design(part, design).map_err(|refusal| Failure::Failed(refusal.to_string()))?;
    }
    let mut text = match &device {
        Some(device) => format!("{}\n{report}", device.report()),
        None => report.to_string(),
    };
    for (name, area) in areas.iter().filter(|(_, area)| !area.parts.is_empty() || area.too_large.is_some()) {
        text.push_str(&format!("\n{name}\n{area}"));
    }
    let files = match &args.output {
        Some(folder) => write_files(folder, args, (&hardware, device.as_ref(), &designs), &text)?,
        None => Vec::new(),
    };
    drop(progress);
    if args.json {
        let stages: Vec<_> = (report.stages.iter())
            .map(|stage| {
                let accesses: Vec<_> = (stage.accesses.iter())
                    .map(|access| {
                        json!({ "kind": access.kind, "object": access.object, "cycle": access.cycle, "latency": access.latency,
                                "asked_bits": access.asked_bits, "answered_bits": access.answered_bits })
                    })
                    .collect();
                json!({ "name": stage.name, "latency": stage.latency, "interval": stage.interval, "window": stage.window,
                        "values": stage.values, "register_bits": stage.registers, "accesses": accesses })
            })
            .collect();
        let objects: Vec<_> = (report.objects.iter())
            .map(|object| {
                json!({ "object": object.object, "stage": object.stage, "kind": object.kind, "words": object.words,
                        "word_bits": object.word_bits, "storage_bits": object.storage_bits, "accesses": object.accesses,
                        "ports": object.ports, "interval": object.interval, "wait": object.wait })
            })
            .collect();
        let tables: Vec<_> = (report.tables.iter())
            .map(|table| {
                json!({ "table": table.table, "kind": table.kind, "key_bits": table.key_bits, "declared": table.declared,
                        "capacity": table.capacity, "storage_bits": table.storage_bits })
            })
            .collect();
        let outside: Vec<_> = (report.outside.iter())
            .map(|object| json!({ "object": object.object, "stages": object.stages, "why": object.why }))
            .collect();
        let whole = device.as_ref().map(|device| {
            let report = device.report();
            json!({ "ports": report.ports, "width": report.width, "window": report.window, "waits_for_end": report.waits_for_end,
                    "latency": report.latency.all(), "headers_per_second": report.headers_per_second() })
        });
        say_line(
            json!({ "ok": true, "program": report.program, "period_ps": period, "target": report.target.name(),
                    "stages": stages, "tables": tables, "objects": objects, "outside": outside, "device": whole,
                    "areas": areas_json(&areas), "files": files }),
        );
    } else {
        say(&text);
    }
    Ok(())
}

/// What stages or a device take, for programs.
fn areas_json(areas: &[(String, AreaReport)]) -> serde_json::Value {
    let of = |name: &str, area: &Area| {
        json!({ "part": name, "luts": area.luts, "ffs": area.ffs, "memory_luts": area.memory_luts, "memory_bits": area.memory_bits,
                "blocks": area.blocks, "multipliers": area.multipliers })
    };
    let all = areas.iter().map(|(name, report)| {
        let parts: Vec<_> = report.parts.iter().map(|(part, area)| of(part, area)).collect();
        let total = report.too_large.is_none().then(|| of("total", &report.total()));
        let no_estimate = report.too_large.map(|why| why.to_string());
        json!({ "of": name, "total": total, "parts": parts, "no_estimate": no_estimate })
    });
    all.collect()
}

/// Writes the design, what tools need of it, the report and the register map; gives the names of the files.
fn write_files(
    folder: &Path,
    args: &RtlArgs,
    (hardware, device, designs): (&Hardware, Option<&Device>, &[&Design]),
    text: &str,
) -> Result<Vec<String>, Failure> {
    let mut files = DesignFiles::default();
    let printed: Vec<Vec<VerilogFile>> = designs.iter().map(|design| verilog::print(design)).collect();
    let backplane = match (device, args.backplane) {
        (Some(device), Some(slots)) => {
            backplane_files(device, &printed[0], slots, (args.target.target(), hardware.period_ps()))?
        }
        _ => Vec::new(),
    };
    let wrapper = match (device, args.phy, printed.first()) {
        (Some(device), Some(phy), Some(printed)) => {
            let wrapper = phy.phy().wrapper(args.target.target(), device, printed);
            Some(wrapper.map_err(|why| Failure::Failed(format!("--phy: {why}")))?)
        }
        _ => None,
    };
    backplane.into_iter().for_each(|(name, text)| files.add(name, text));
    for printed in &printed {
        for file in printed {
            files.add(file.file_name(), file.text.as_str());
        }
        let target = args.target.target();
        let build = match &wrapper {
            Some(wrapper) => {
                for file in &wrapper.files {
                    files.add(file.file_name(), file.text.as_str());
                }
                build_wrapper(target, printed, wrapper)
            }
            None => build_files(target, printed, hardware.period_ps()),
        };
        build.into_iter().for_each(|file| files.add(file.name, file.text));
    }
    files.add("report.txt", text);
    let map = match device {
        Some(device) => device.register_map().clone(),
        None => hardware.register_map(),
    };
    // A device has them in it.
    for bus in [Bus::Axi4Lite, Bus::AvalonMm].into_iter().filter(|_| device.is_none()) {
        for file in verilog::print(&map.design(bus)) {
            files.add(file.file_name(), file.text);
        }
    }
    registers::files(&map).into_iter().for_each(|(name, text)| files.add(name, text));
    files.write(folder)
}

/// The files of a backplane with a device in each slot, without those of the printed device.
fn backplane_files(
    device: &Device,
    printed: &[VerilogFile],
    slots: u32,
    (target, period): (Target, u32),
) -> Result<Vec<(String, String)>, Failure> {
    let DeviceOptions { ports, width, link, .. } = *device.options();
    if link != Link::Stream {
        return Err(Failure::Failed("--backplane: slots have streams, no MACs".to_owned()));
    }
    let backplane = Backplane::new(BackplaneOptions { slots, ports, width })
        .map_err(|why| Failure::Failed(format!("--backplane: {why}")))?;
    let Some(slot) = printed.last() else { return Ok(Vec::new()) };
    let names = |files: &[VerilogFile]| -> Vec<String> { files.iter().map(VerilogFile::file_name).collect() };
    let own = backplane::print(&backplane, device, slot);
    let mut files = vec![("slot_stub.sv".to_owned(), backplane::stub(slot))];
    let build = build_chassis(target, &own, printed, period);
    if build.is_empty() {
        let script = backplane::partial_reconfiguration(&names(&own), &names(printed), slots, period);
        files.push(("chassis_partial.tcl".to_owned(), script));
    }
    files.extend(build.into_iter().map(|file| (file.name, file.text)));
    let own = own.into_iter().filter(|file| printed.iter().all(|other| other.module != file.module));
    files.extend(own.map(|file| (file.file_name(), file.text)));
    Ok(files)
}
