//! `millrace chassis`: a device with many virtual switches, as one file describes it.

use crate::entries::read;
use crate::findings::Failure;
use crate::output::{has_colour, say_line, tell_coloured};
use clap::{Args, Subcommand};
use millrace_device_file::DeviceFile;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct ChassisCommand {
    #[command(subcommand)]
    what: What,
    /// One JSON object on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Says all that is wrong with the file of a device, without starting it
    Check {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

pub(crate) fn chassis(command: &ChassisCommand) -> Result<(), Failure> {
    let What::Check { file } = &command.what;
    let text = read(file)?;
    let folder = file.parent().unwrap_or(Path::new("."));
    match DeviceFile::parse_with_files(&file.display().to_string(), &text, folder) {
        Ok(device) => {
            let (switches, ports, links) = (device.switches.len(), device.ports.len(), device.links.len());
            say_line(match command.json {
                true => {
                    json!({ "ok": true, "switches": switches, "ports": ports, "links": links }).to_string()
                }
                false => format!("{}: {switches} switches, {ports} ports, {links} links", device.device.name),
            });
            Ok(())
        }
        Err(problems) => {
            match command.json {
                true => say_line(json!({ "ok": false, "diagnostics": problems.problems }).to_string()),
                false => tell_coloured(problems.render(has_colour())),
            }
            Err(Failure::Told)
        }
    }
}
