//! The command line as it is written.

use crate::observe::{CaptureCommand, MetricsArgs, TopArgs};
use crate::swap::SwapArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use millrace_ports::{DEFAULT_CAPTURE_FILE, PortSpec};
use millrace_switch::{EngineKind, QueueConfig};
use std::path::PathBuf;

/// A P4 switch: P4 source in, running switch out.
#[derive(Debug, Parser)]
#[command(name = "millrace", version, about, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Parses and type-checks a program
    Check(CheckArgs),
    /// Prints the P4Info of a program as protobuf text
    P4info(P4infoArgs),
    /// Makes an image of a program, which runs without the source; prints what it is compiled to, or how long that takes
    Compile(CompileArgs),
    /// Runs STF tests on a program
    Stf(StfArgs),
    /// Runs a program on ports; without a program, a demonstration
    Run(Box<RunArgs>),
    /// Has a running switch go on with another program: no packet is lost, and what was written is kept as far as it fits
    Swap(SwapArgs),
    /// Runs the commands of bmv2's simple_switch_CLI on a running switch
    Shell(ShellArgs),
    /// Tells what happens to a packet, step by step
    Trace(TraceArgs),
    /// Measures how fast a program forwards a capture from memory
    Bench(BenchArgs),
    /// Shows what a running switch does, on the terminal
    Top(TopArgs),
    /// Switches the capture of a port of a running switch on or off
    Capture(CaptureCommand),
}

impl Command {
    /// Whether one JSON object is wanted on standard output.
    pub(crate) fn json(&self) -> bool {
        match self {
            Command::Check(args) => args.json,
            Command::Stf(args) => args.running.json,
            Command::Run(args) => args.running.json,
            Command::Swap(args) => args.json,
            Command::Trace(args) => args.json,
            Command::Bench(args) => args.running.json,
            Command::P4info(_) | Command::Compile(_) => false,
            Command::Shell(_) | Command::Top(_) | Command::Capture(_) => false,
        }
    }
}

/// How to read a program.
#[derive(Clone, Debug, Args)]
pub(crate) struct SourceArgs {
    /// Folder to look for included files in, before the built-in ones
    #[arg(short = 'I', value_name = "DIR")]
    pub(crate) include_dirs: Vec<PathBuf>,
    /// Macro to define, as 1 or as VALUE
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    pub(crate) defines: Vec<String>,
    /// Version of the language
    #[arg(long, value_enum, default_value_t = Standard::P4_16)]
    pub(crate) std: Standard,
}

/// A program and how to read it.
#[derive(Debug, Args)]
pub(crate) struct ProgramArgs {
    /// The program, or an image of one
    #[arg(value_name = "PROG")]
    pub(crate) path: PathBuf,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

/// What runs a program, and how results are told.
#[derive(Debug, Args)]
pub(crate) struct RunningArgs {
    /// What runs the program
    #[arg(long, value_enum, default_value_t = Engine::Auto)]
    pub(crate) engine: Engine,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// A version of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Standard {
    /// P4_16
    #[value(name = "p4-16")]
    P4_16,
    /// P4_14
    #[value(name = "p4-14")]
    P4_14,
}

impl From<Standard> for millrace_compile::Standard {
    fn from(standard: Standard) -> millrace_compile::Standard {
        match standard {
            Standard::P4_16 => millrace_compile::Standard::P4_16,
            Standard::P4_14 => millrace_compile::Standard::P4_14,
        }
    }
}

/// What runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// The reference interpreter
    Interp,
    /// Machine code
    Jit,
    /// Machine code where there can be some, else the reference interpreter
    Auto,
}

impl Engine {
    pub(crate) fn kind(self) -> EngineKind {
        match self {
            Engine::Interp => EngineKind::Interp,
            Engine::Jit => EngineKind::Jit,
            Engine::Auto => EngineKind::Fastest,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct P4infoArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    /// Where to write it; standard output if not given
    #[arg(short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CompileArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    /// Which form: an image if only -o is given
    #[arg(long, value_enum, required_unless_present_any = ["time", "output"])]
    pub(crate) emit: Option<Emit>,
    /// Tells how long each step from the source to running code takes, in milliseconds
    #[arg(long, conflicts_with = "emit")]
    pub(crate) time: bool,
    /// The processor of `clif` and `asm`: this machine's if not given
    #[arg(long, value_enum)]
    pub(crate) target: Option<Target>,
    /// Where to write it; standard output if not given
    #[arg(short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// A form of a compiled program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// A file that `run` takes in place of the source
    Image,
    /// The text of the pipeline IR
    Ir,
    /// The code generator's IR of the way of a burst
    Clif,
    /// Its machine code
    Asm,
}

/// A processor to generate code for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// 64-bit x86
    #[value(name = "x86-64")]
    X86_64,
    /// 64-bit Arm
    Aarch64,
}

#[derive(Debug, Args)]
pub(crate) struct StfArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    /// The tests
    #[arg(value_name = "TEST", required = true)]
    pub(crate) tests: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The program, or an image of one; without one and without --grpc a router, entries and packets that are built in
    #[arg(value_name = "PROG")]
    pub(crate) program: Option<PathBuf>,
    /// A port: 0@eth0, 0@packet:eth0, 0@tap:mr0, 0@pcap:IN,OUT, 0@null:TRACE
    #[arg(short = 'i', value_name = "PORT@IFACE")]
    pub(crate) ports: Vec<PortSpec>,
    /// Entries: runtime commands of bmv2 or P4Runtime JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) entries: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// The port number that means drop to the program, in place of the one of its architecture (v1model: 511)
    #[arg(long, value_name = "N")]
    pub(crate) drop_port: Option<u32>,
    #[command(flatten)]
    pub(crate) queues: QueueArgs,
    #[command(flatten)]
    pub(crate) grpc: GrpcArgs,
    /// Serves the Thrift interface of bmv2 there, for `millrace shell` and simple_switch_CLI, as 9090 (of this machine only)
    #[arg(long, value_name = "ADDR|PORT")]
    pub(crate) thrift: Option<String>,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    #[command(flatten)]
    pub(crate) captures: CaptureArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

/// What is captured of ports.
#[derive(Debug, Args)]
#[command(next_help_heading = "Captures")]
pub(crate) struct CaptureArgs {
    /// Captures all ports from the start, to IFACE_in.pcap and IFACE_out.pcap in that folder
    #[arg(long, value_name = "DIR")]
    pub(crate) pcap: Option<PathBuf>,
    /// The folder for captures that are switched on later
    #[arg(long, value_name = "DIR", conflicts_with = "pcap")]
    pub(crate) pcap_dir: Option<PathBuf>,
    /// Largest file of a capture, in MiB; frames behind that are left out
    #[arg(long, value_name = "MIB", default_value_t = DEFAULT_CAPTURE_FILE >> 20)]
    pub(crate) pcap_max: u64,
}

/// What is told of a run, in lines with a time, a level and fields.
#[derive(Debug, Args)]
#[command(next_help_heading = "Log")]
pub(crate) struct LogArgs {
    /// Logs what is at least that important [default: info, when there is a file or a format]
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub(crate) log_level: Option<LogLevel>,
    /// Where to log, behind what is there; standard error if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// The form of a line [default: text]
    #[arg(long, value_enum)]
    pub(crate) log_format: Option<LogFormat>,
}

/// How important something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// Nothing
    Off,
    /// What failed
    Error,
    /// What may be wrong
    Warn,
    /// What somebody who runs a switch wants to know: start, programs, ports, controllers, end
    Info,
    /// Also requests that were refused
    Debug,
    /// The way of each packet through the program, which the reference interpreter runs then
    Trace,
}

/// The form of a line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// A JSON object a line
    Json,
}

/// What is between ingress and egress.
#[derive(Debug, Args)]
#[command(next_help_heading = "Queues")]
pub(crate) struct QueueArgs {
    /// Classes of service of each port, served strictly by priority, the highest first
    #[arg(long, value_name = "N", default_value_t = QueueConfig::default().priorities)]
    pub(crate) priorities: u8,
    /// Packets that a queue holds
    #[arg(long, value_name = "N", default_value_t = QueueConfig::default().depth)]
    pub(crate) queue_depth: u32,
    /// Packets for a link that is busy wait in the queue of its port, where the program sees them; else they are dropped
    #[arg(long)]
    pub(crate) wait_for_links: bool,
}

/// How controllers reach the switch.
#[derive(Debug, Args)]
#[command(next_help_heading = "P4Runtime")]
pub(crate) struct GrpcArgs {
    /// Serves P4Runtime there, as 127.0.0.1:9559; PROG may then be left out, for a controller to bring one
    #[arg(long, value_name = "ADDR")]
    pub(crate) grpc: Option<String>,
    /// The device id that controllers use
    #[arg(long, value_name = "N", default_value_t = 1, requires = "grpc")]
    pub(crate) device_id: u64,
    /// The port behind which the controller is: packet-ins leave there, packet-outs come in there
    #[arg(long, value_name = "N", requires = "grpc")]
    pub(crate) cpu_port: Option<u32>,
    /// The server's certificate, for TLS (PEM)
    #[arg(long, value_name = "FILE", requires = "grpc_key")]
    pub(crate) grpc_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "grpc_cert")]
    pub(crate) grpc_key: Option<PathBuf>,
    /// The authority that must have signed the certificates of clients, for mutual TLS (PEM)
    #[arg(long, value_name = "FILE", requires = "grpc_cert")]
    pub(crate) grpc_client_ca: Option<PathBuf>,
    /// Takes plain connections from other machines too
    #[arg(long, requires = "grpc")]
    pub(crate) grpc_allow_plaintext: bool,
}

/// The switch is reached over Thrift: one of `millrace run --thrift`, or bmv2. Commands come from standard input, with
/// completion and history on a terminal.
#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    /// The port of its Thrift server
    #[arg(long, value_name = "N", default_value_t = millrace_thrift::DEFAULT_PORT)]
    pub(crate) thrift_port: u16,
    /// Its address
    #[arg(long, value_name = "ADDR", default_value = "localhost")]
    pub(crate) thrift_ip: String,
    /// The JSON of the program; what the switch has if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Which engine for multicast the switch has: taken as bmv2's tools take it, and without effect
    #[arg(long, value_name = "ENGINE", hide = true)]
    pub(crate) pre: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    /// Entries: runtime commands of bmv2 or P4Runtime JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) entries: Option<PathBuf>,
    /// The port that the packet comes in on
    #[arg(long, value_name = "N")]
    pub(crate) port: u32,
    /// The packet: hexadecimal digits, or a capture file
    #[arg(long, value_name = "HEX|PCAP")]
    pub(crate) packet: String,
    /// What runs the program
    #[arg(long, value_enum, default_value_t = Engine::Interp)]
    pub(crate) engine: Engine,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    /// Entries: runtime commands of bmv2 or P4Runtime JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) entries: Option<PathBuf>,
    /// The frames
    #[arg(long, value_name = "PCAP")]
    pub(crate) trace: PathBuf,
    /// The port that they come in on
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) port: u32,
    /// Fills shorter frames up to that many bytes
    #[arg(long, value_name = "BYTES")]
    pub(crate) frame_size: Option<usize>,
    /// Copies each frame into a buffer first, as a receiver does
    #[arg(long)]
    pub(crate) copy: bool,
    /// Threads that forward
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) cores: usize,
    /// Receive queues that share the frames; one for each core if not given
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) queues: usize,
    /// Rounds, each of which gives a rate
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) rounds: u32,
    /// Milliseconds of each
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub(crate) ms: u64,
    /// Tells also where the time goes: parser, tables, actions, deparser, driver, replication
    #[arg(long)]
    pub(crate) profile: bool,
    /// Measures also while another thread changes so many entries of the largest table in a second, and checks each frame
    #[arg(long, value_name = "RATE")]
    pub(crate) churn: Option<f64>,
    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
