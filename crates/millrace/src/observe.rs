//! `millrace top`, `millrace capture`, and the metrics of `millrace run`.

use crate::findings::Failure;
use crate::grpc::resolve;
use crate::output::{say, say_line, tell_line};
use clap::{Args, ValueEnum};
use millrace_observe::{Client, DEFAULT_PORT, Listen, Server, top};
use millrace_ports::Captures;
use millrace_switch::Control;
use std::io::IsTerminal;
use std::sync::Arc;
use tracing::info;

/// What a running switch shows of itself.
#[derive(Debug, Args)]
#[command(next_help_heading = "Metrics")]
pub(crate) struct MetricsArgs {
    /// Serves metrics there, as 127.0.0.1:9560, for Prometheus, `millrace top` and `millrace capture`
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics: Option<String>,
    /// Lets other machines read them
    #[arg(long, requires = "metrics")]
    pub(crate) metrics_allow_remote: bool,
}

/// Which running switch.
#[derive(Debug, Args)]
pub(crate) struct WhichArgs {
    /// Where it serves metrics
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9560")]
    metrics: String,
}

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Where the switch serves metrics
    #[arg(value_name = "ADDR", default_value = "127.0.0.1:9560")]
    address: String,
    /// Prints one page, with the rates of one second; also when standard output is no terminal
    #[arg(long)]
    once: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CaptureCommand {
    /// What to do
    #[arg(value_enum, value_name = "on|off")]
    what: OnOff,
    /// The port
    #[arg(value_name = "PORT")]
    port: u32,
    /// The name of the files, without _in.pcap and _out.pcap: that of the interface if not given
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    which: WhichArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnOff {
    On,
    Off,
}

/// Serves metrics, if they are asked for.
pub(crate) fn serve(
    args: &MetricsArgs,
    control: &Control,
    captures: &Arc<Captures>,
) -> Result<Option<Server>, Failure> {
    let Some(address) = &args.metrics else { return Ok(None) };
    let listen = Listen { address: resolve(address, DEFAULT_PORT)?, allow_remote: args.metrics_allow_remote };
    let started = Server::start(listen, control.clone(), Arc::clone(captures));
    let server = started.map_err(|error| Failure::Failed(error.to_string()))?;
    tell_line(format_args!("metrics at http://{}/metrics", server.address()));
    info!(address = %server.address(), "metrics");
    Ok(Some(server))
}

/// `millrace top`.
pub(crate) fn top(args: &TopArgs) -> Result<(), Failure> {
    let client = Client::new(resolve(&args.address, DEFAULT_PORT)?);
    if args.once || !std::io::stdout().is_terminal() {
        say(top::once(&client).map_err(|error| Failure::Failed(error.to_string()))?);
        return Ok(());
    }
    top::run(&client).map_err(|error| Failure::Failed(error.to_string()))
}

/// `millrace capture`.
pub(crate) fn capture(args: &CaptureCommand) -> Result<(), Failure> {
    let client = Client::new(resolve(&args.which.metrics, DEFAULT_PORT)?);
    let done = match args.what {
        OnOff::On => client.start_capture(args.port, args.name.as_deref()),
        OnOff::Off => client.stop_capture(args.port),
    };
    let capture = done.map_err(|error| Failure::Failed(error.to_string()))?;
    match args.what {
        OnOff::On => say_line(format_args!("{}\n{}", capture.incoming, capture.outgoing)),
        OnOff::Off => say_line(format_args!("{} packets, {} left out", capture.packets, capture.lost)),
    }
    Ok(())
}
