//! `millrace swap`.

use crate::cli::ProgramArgs;
use crate::findings::{Failure, Findings};
use crate::grpc;
use crate::output::say_line;
use crate::source::load_any;
use clap::{Args, ValueEnum};
use millrace_listen::{Address, P4RUNTIME, THRIFT};
use millrace_p4runtime_api::client::{self, Device};
use millrace_swap_report::Report;
use millrace_thrift_api::{CallError, Client, Keep};
use serde_json::json;
use std::path::PathBuf;

/// The switch is reached over P4Runtime, or over Thrift with --thrift.
#[derive(Debug, Args)]
pub(crate) struct SwapArgs {
    #[command(flatten)]
    program: ProgramArgs,
    /// Where the switch serves P4Runtime
    #[arg(long, value_name = "ADDR|PORT", default_value = "127.0.0.1:9559")]
    grpc: Address,
    /// Where the switch serves Thrift, to reach it there
    #[arg(long, value_name = "ADDR|PORT", conflicts_with = "grpc")]
    thrift: Option<Address>,
    /// What has to go on: all that was written, or the change is refused; what has a place in the new program; nothing
    #[arg(long, value_enum, default_value_t = Kept::Everything)]
    keep: Kept,
    /// The device id of P4Runtime
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "thrift")]
    device_id: u64,
    /// The election id of the controller in whose place the program is set, where there is one
    #[arg(long, value_name = "N", conflicts_with = "thrift")]
    election_id: Option<u128>,
    /// The authority that signed the server's certificate, for TLS (PEM)
    #[arg(long, value_name = "FILE", conflicts_with = "thrift")]
    grpc_ca: Option<PathBuf>,
    /// The name in the server's certificate; the address if not given
    #[arg(long, value_name = "NAME", requires = "grpc_ca")]
    grpc_name: Option<String>,
    /// The own certificate, for mutual TLS (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["grpc_ca", "grpc_key"])]
    grpc_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "grpc_cert")]
    grpc_key: Option<PathBuf>,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// What has to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kept {
    Everything,
    Compatible,
    Nothing,
}

impl Kept {
    fn of_thrift(self) -> Keep {
        match self {
            Kept::Everything => Keep::Everything,
            Kept::Compatible => Keep::Compatible,
            Kept::Nothing => Keep::Nothing,
        }
    }
}

pub(crate) fn swap(args: &SwapArgs, findings: &mut Findings) -> Result<(), Failure> {
    let image = load_any(&args.program.path, &args.program.source, findings)?.image(findings)?;
    let name = image.program.name.clone();
    let report = match &args.thrift {
        Some(given) => over_thrift(given, image.to_string(), args.keep)?,
        None => {
            let done =
                client::swap(&device(args)?, image.to_string().into_bytes(), args.keep.of_thrift().name());
            done.map_err(Failure::Failed)?
        }
    };
    if args.json {
        let Report { kept, dropped, more } = &report;
        say_line(json!({ "ok": true, "program": name, "kept": kept, "dropped": dropped, "more": more }));
        return Ok(());
    }
    say_line(format_args!("{name} is running now"));
    for (what, items) in [("kept", &report.kept), ("dropped", &report.dropped)] {
        items.iter().for_each(|item| say_line(format_args!("{what:7}  {item}")));
    }
    if report.more > 0 {
        say_line(format_args!("and {} more that the answer had no room for", report.more));
    }
    Ok(())
}

fn over_thrift(given: &Address, image: String, keep: Kept) -> Result<Report, Failure> {
    if image.len() > millrace_thrift_api::limits::MAX_MESSAGE {
        let (length, limit) = (image.len(), millrace_thrift_api::limits::MAX_MESSAGE);
        return Err(Failure::Failed(format!(
            "the image has {length} bytes, the limit over Thrift is {limit}"
        )));
    }
    let address = grpc::address(given, &THRIFT)?;
    let mut client = Client::connect(address).map_err(|error| {
        let hint = "`millrace run --thrift` starts one; --thrift names another address";
        Failure::Failed(format!("no switch has its Thrift server at {address}: {error} ({hint})"))
    })?;
    let report = client.swap_program(image, keep.of_thrift()).map_err(|error| {
        Failure::Failed(match error {
            CallError::Declared(refused) => refused.reason.unwrap_or_else(|| match refused.code {
                millrace_thrift_api::SwapCode::Ongoing => {
                    "a program was loaded with load_new_config_file and waits for swap_configs".to_owned()
                }
                code => code.name().to_owned(),
            }),
            other => other.to_string(),
        })
    })?;
    serde_json::from_str(&report).map_err(|error| Failure::failed("the report of the switch", error))
}

fn device(args: &SwapArgs) -> Result<Device, Failure> {
    let address = grpc::address(&args.grpc, &P4RUNTIME)?;
    let name = args.grpc_name.clone().unwrap_or_else(|| args.grpc.host());
    let certificate = args.grpc_cert.as_deref().zip(args.grpc_key.as_deref());
    let tls = grpc::client_tls(args.grpc_ca.as_deref(), name, certificate)?;
    Ok(Device { address, device_id: args.device_id, election_id: args.election_id, tls })
}
