//! What is measured when no other executable is: the same that `millrace` does with a file.

use millrace_bounds::{Input, Knowledge, analyse};
use millrace_compile::{LowerError, Options, Source, Standard, check};
use millrace_dataplane::{EngineKind, Switch, SwitchConfig, described};
use millrace_describe::image::Image;
use millrace_describe::p4info::{describe, to_text};
use millrace_frames::MAX_FRAME;
use millrace_netlist::verilog;
use millrace_pipeline::Program;
use millrace_rtl::{Device, DeviceOptions, Hardware, Options as HardwareOptions};
use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Checks a program, and makes its P4Info, its image, its hardware, or its machine code with bounds. What was found is rendered and printed.
pub(crate) fn run(action: &str, p4_14: bool, path: &Path) -> ExitCode {
    let standard = if p4_14 { Standard::P4_14 } else { Standard::P4_16 };
    let checked = check(Source::Path(path), standard, &Options::default());
    checked.findings.iter().for_each(|finding| eprint!("{}", checked.render(finding)));
    if checked.has_errors() {
        return ExitCode::FAILURE;
    }
    match action {
        "check" => {}
        "p4info" => drop(black_box(to_text(&describe(&checked.typed).info))),
        _ => match checked.lower() {
            Ok(program) if action == "rtl" || action == "device" => {
                return hardware(program, action == "device");
            }
            Ok(program) if action == "bounds" => return code(program),
            Ok(program) => drop(black_box(Image::new(program, describe(&checked.typed)).to_string())),
            Err(LowerError::Found(found)) => {
                found.iter().for_each(|finding| eprint!("{}", checked.render(finding)));
                return ExitCode::FAILURE;
            }
            // A mistake of the compiler, whatever the program.
            Err(broken @ LowerError::Broken(_)) => {
                eprintln!("{broken}");
                return ExitCode::from(3);
            }
        },
    }
    ExitCode::SUCCESS
}

/// Makes machine code of a program, and the bounds of that code.
fn code(program: Arc<Program>) -> ExitCode {
    let made = || -> Result<(), Box<dyn Error>> {
        let config = SwitchConfig { engine: EngineKind::Interp, ..SwitchConfig::default() };
        let mut switch = Switch::new(Arc::clone(&program), config)?;
        let (compiled, parts) = described(&program, switch.state_mut())?;
        let knowledge = Knowledge::of(switch.state());
        for part in &parts {
            let input =
                Input { program: &compiled, code: &part.code, start: part.start, longest: MAX_FRAME as u64 };
            black_box(analyse(&input, &knowledge, None)?);
        }
        Ok(())
    };
    exit(made())
}

/// Makes stages or a device of a program, the report with the area, and the text.
fn hardware(program: Arc<Program>, is_device: bool) -> ExitCode {
    let made = || -> Result<(), Box<dyn Error>> {
        let hardware = Hardware::new(program, HardwareOptions::default())?;
        black_box(hardware.report().to_string());
        if is_device {
            let device = Device::new(&hardware, DeviceOptions::default())?;
            black_box((device.report().to_string(), device.area(&hardware), verilog::print(device.design())));
            return Ok(());
        }
        for (part, design) in hardware.designs() {
            black_box((hardware.area(part, &design), verilog::print(&design)));
        }
        black_box(hardware.shared_design().map(|design| verilog::print(&design)));
        black_box(hardware.register_map().markdown());
        Ok(())
    };
    exit(made())
}

/// Success, or a refusal that is printed.
fn exit(made: Result<(), Box<dyn Error>>) -> ExitCode {
    match made {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            eprintln!("{refusal}");
            ExitCode::FAILURE
        }
    }
}
