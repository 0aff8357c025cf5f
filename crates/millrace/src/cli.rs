//! The command line as it is written.

use crate::attachment::HardwareArgs;
use crate::capacity::CapacityArgs;
use crate::chassis::ChassisCommand;
use crate::cores::WorkerArgs;
use crate::ctl::CtlCommand;
use crate::es::EsArgs;
use crate::examples;
use crate::findings::Failure;
use crate::inputs::InputArgs;
use crate::link::LinkCommand;
use crate::mode::{ModeArgs, ModeCommand};
use crate::nanomsg::PacketInArgs;
use crate::network::NetworkCommand;
use crate::node::NodeCommand;
use crate::observe::{CaptureCommand, LogCommand, MetricsArgs, PluginCommand, QueueCommand, TopArgs};
use crate::output::Colour;
use crate::p4info::Form;
use crate::plugins::PluginArgs;
use crate::rtl::RtlArgs;
use crate::snmp::SnmpArgs;
use crate::swap::SwapArgs;
use crate::tc::TcCommand;
use clap::parser::ValueSource;
use clap::{ArgGroup, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use millrace_dataplane::{
    Attachment, ClockSpec, DEFAULT_PACKET_MEMORY, EngineKind, HardwareConfig, MAX_WORKERS, QueueConfig,
};
use millrace_drivers::{DEFAULT_CAPTURE_FILE, PortSpec};
use millrace_listen::Address;
use millrace_pipeline::Program;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// A P4 switch: P4 source in, running switch out.
#[derive(Debug, Parser)]
#[command(name = "millrace", version, about, arg_required_else_help = true, after_help = examples::MILLRACE)]
pub(crate) struct Cli {
    /// When messages have colours: auto is on a terminal, unless NO_COLOR is set
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        hide_possible_values = true
    )]
    pub(crate) color: Colour,
    /// Says only errors and results: neither warnings nor what goes on
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Parses and type-checks a program
    #[command(after_help = examples::CHECK)]
    Check(CheckArgs),
    /// Prints the P4Info of a program
    #[command(after_help = examples::P4INFO)]
    P4info(P4infoArgs),
    /// Makes an image of a program, which runs without the source; prints what it is compiled to, or how long that takes
    #[command(after_help = examples::COMPILE)]
    Compile(CompileArgs),
    /// Runs STF tests on a program
    #[command(after_help = examples::STF)]
    Stf(StfArgs),
    /// Runs a program on ports; without a program, a demonstration
    #[command(after_help = examples::RUN)]
    Run(Box<RunArgs>),
    /// Has a running switch go on with another program: no packet is lost, and what was written is kept as far as it fits
    #[command(after_help = examples::SWAP)]
    Swap(SwapArgs),
    /// Runs the commands of bmv2's simple_switch_CLI on a running switch
    #[command(after_help = examples::SHELL)]
    Shell(ShellArgs),
    /// Tells what happens to a packet, step by step
    #[command(after_help = examples::TRACE)]
    Trace(TraceArgs),
    /// Measures how fast a program forwards a capture from memory
    #[command(after_help = examples::BENCH)]
    Bench(BenchArgs),
    /// Says what a packet of a program costs at most: instructions, cache lines, memory, and time on a machine that was measured
    #[command(after_help = examples::BOUNDS)]
    Bounds(BoundsArgs),
    /// Makes hardware of a program: a pipeline for each of its stages as SystemVerilog, and a report
    #[command(after_help = examples::RTL)]
    Rtl(RtlArgs),
    /// Measures this machine for the times of `bounds`
    #[command(after_help = examples::CALIBRATE)]
    Calibrate(CalibrateArgs),
    /// Shows what a running switch does, on the terminal
    #[command(after_help = examples::TOP)]
    Top(TopArgs),
    /// Switches the capture of a port of a running switch on or off
    #[command(after_help = examples::CAPTURE)]
    Capture(CaptureCommand),
    /// Says or changes what a running switch logs
    #[command(after_help = examples::LOG)]
    Log(LogCommand),
    /// Says or changes which worker of a running switch has which queue pair
    #[command(after_help = examples::QUEUE)]
    Queue(QueueCommand),
    /// Loads, replaces, switches off or lists the plugins that the program of a running switch calls
    #[command(after_help = examples::PLUGIN)]
    Plugin(PluginCommand),
    /// Says or changes how ports of a running switch queue and schedule what leaves by them, in words as `tc` of Linux has them
    #[command(after_help = examples::TC)]
    Tc(TcCommand),
    /// Says or sets the mode of a running switch: what it forwards, sends and loads
    #[command(after_help = examples::MODE)]
    Mode(ModeCommand),
    /// Serves a hardware device over TCP, and reads and writes its registers
    #[command(after_help = examples::LINK)]
    Link(LinkCommand),
    /// Runs a packet node made of function blocks in software and hardware, as one file describes it
    #[command(after_help = examples::NODE)]
    Node(NodeCommand),
    /// Runs a device with many virtual switches, as one file describes it
    #[command(after_help = examples::CHASSIS)]
    Chassis(ChassisCommand),
    /// Says what a running device with many virtual switches does, and changes it
    #[command(after_help = examples::CTL)]
    Ctl(CtlCommand),
    /// Checks, imports, exports, bounds and simulates an AFDX network (ARINC 664 part 7) that one file describes
    #[command(after_help = examples::NETWORK)]
    Network(NetworkCommand),
    /// Is an end system of an AFDX network, on two interfaces: sends messages that measure, checks and counts what comes
    #[command(after_help = examples::ES)]
    Es(EsArgs),
}

impl Cli {
    /// Reads a command line, the name of the program first. What is wrong with it is told, and ends the program.
    pub(crate) fn read(args: Vec<OsString>) -> Cli {
        let mut command = Cli::command();
        let mut matches = command.try_get_matches_from_mut(args).unwrap_or_else(|error| error.exit());
        let of_run = command.find_subcommand("run").zip(matches.subcommand_matches("run"));
        let given = of_run.map(|(run, found)| {
            let is_given = |arg: &&clap::Arg| {
                found.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
            };
            let name = |arg: &clap::Arg| arg.get_long().map(|long| format!("--{long}"));
            run.get_arguments().filter(is_given).filter_map(name).collect::<Vec<_>>()
        });
        let mut cli =
            Cli::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.format(&mut command).exit());
        if let Command::Run(args) = &mut cli.command {
            args.given = given.unwrap_or_default();
        }
        cli
    }
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
            Command::Bounds(args) => args.json,
            Command::Rtl(args) => args.json,
            Command::Calibrate(args) => args.json,
            Command::P4info(args) => args.json,
            Command::Compile(args) => args.json,
            Command::Top(args) => args.json,
            Command::Capture(args) => args.json,
            Command::Log(args) => args.json,
            Command::Queue(args) => args.json,
            Command::Plugin(args) => args.json,
            Command::Tc(args) => args.json,
            Command::Mode(args) => args.json,
            Command::Link(args) => args.json,
            Command::Node(args) => args.json,
            Command::Chassis(args) => args.json,
            Command::Ctl(args) => args.json(),
            Command::Network(args) => args.json,
            Command::Es(args) => args.json,
            // There it names a file, as in the tool of bmv2.
            Command::Shell(_) => false,
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
    /// Macro not to define, although it is predefined or given by -D
    #[arg(short = 'U', value_name = "NAME")]
    pub(crate) undefines: Vec<String>,
    /// Version of the language; recognised if not given
    #[arg(long, value_enum)]
    pub(crate) std: Option<Standard>,
    /// How findings in the program are shown
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Diagnostics::Full)]
    pub(crate) diagnostics: Diagnostics,
}

/// A form of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Diagnostics {
    /// With the lines of the program and carets
    Full,
    /// As file:line:column: error: message, for editors
    Gcc,
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
    /// What simulates the hardware of `--engine rtl`
    #[arg(long, value_enum, default_value_t = Simulator::InProcess)]
    pub(crate) sim: Simulator,
    #[command(flatten)]
    pub(crate) capacity: CapacityArgs,
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
    /// A simulation of the program's hardware, for one worker
    Rtl,
    /// A whole hardware device, for `run` and `stf`: simulated, or where --device-at says
    Device,
}

/// What simulates hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Simulator {
    /// This program itself
    InProcess,
    /// A model that Verilator makes when the program starts
    Verilator,
}

impl SourceArgs {
    /// An option that says how to read a source, if one was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let all = [
            (!self.include_dirs.is_empty(), "-I"),
            (!self.defines.is_empty(), "-D"),
            (!self.undefines.is_empty(), "-U"),
            (self.std.is_some(), "--std"),
        ];
        all.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
    }
}

impl Engine {
    /// The engine, with a simulator of hardware.
    pub(crate) fn kind(self, sim: Simulator) -> Result<EngineKind, Failure> {
        match (self, sim) {
            (Engine::Interp, Simulator::InProcess) => Ok(EngineKind::Interp),
            (Engine::Jit, Simulator::InProcess) => Ok(EngineKind::Jit),
            (Engine::Auto, Simulator::InProcess) => Ok(EngineKind::Fastest),
            (Engine::Rtl, Simulator::InProcess) => Ok(EngineKind::Rtl),
            (Engine::Rtl, Simulator::Verilator) => Ok(EngineKind::Verilated),
            (Engine::Device, Simulator::InProcess) => {
                Err(Failure::Usage("--engine device is for `run PROG` and `stf`".into()))
            }
            _ => Err(Failure::Usage("--sim is for --engine rtl".into())),
        }
    }
}

impl Engine {
    /// Refuses to say what hardware holds where there is none.
    pub(crate) fn check_capacity(self, capacity: &CapacityArgs) -> Result<(), Failure> {
        match matches!(self, Engine::Rtl | Engine::Device) || !capacity.is_given() {
            true => Ok(()),
            false => Err(Failure::Usage("--capacity is for --engine rtl and --engine device".into())),
        }
    }
}

impl RunningArgs {
    /// The engine of a command that can have a hardware device in its place: with one, the engine that is not asked for anything.
    pub(crate) fn kind_or_device(&self) -> Result<EngineKind, Failure> {
        match (self.engine, self.sim) {
            (Engine::Device, Simulator::InProcess) => Ok(EngineKind::Interp),
            _ => self.kind(),
        }
    }

    pub(crate) fn kind(&self) -> Result<EngineKind, Failure> {
        self.engine.kind(self.sim)
    }

    /// The hardware of this program, or, without one, of any that comes later.
    pub(crate) fn hardware(
        &self,
        program: Option<&Program>,
        device: Option<Attachment>,
    ) -> Result<HardwareConfig, Failure> {
        self.engine.check_capacity(&self.capacity)?;
        let capacities = match program {
            Some(program) => self.capacity.of(program)?,
            None => self.capacity.of_any()?,
        };
        Ok(HardwareConfig { capacities: Arc::new(capacities), device })
    }
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The programs, or images of some; `-` is standard input
    #[arg(value_name = "PROG", required_unless_present = "input")]
    pub(crate) paths: Vec<PathBuf>,
    /// A chain of plugins to check, as `run` has it for --input and --output: filter "udp port 53" | sample 1/100
    #[arg(long, value_name = "CHAIN")]
    pub(crate) input: Vec<String>,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Warns also of what so many workers mean for the programs, as `run --cores` has them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MAX_WORKERS as i64))]
    pub(crate) cores: u32,
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
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Without fields that controllers of an older P4Runtime do not know and refuse
    #[arg(long, value_name = "VERSION", value_enum, default_value_t = P4runtimeVersion::V1_5)]
    pub(crate) p4runtime: P4runtimeVersion,
    /// The form of protobuf: by the ending of FILE (.txtpb, .json, .bin), else text
    #[arg(long, value_enum)]
    pub(crate) format: Option<Form>,
}

/// A version of P4Runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum P4runtimeVersion {
    #[value(name = "1.3")]
    V1_3,
    #[value(name = "1.4")]
    V1_4,
    #[value(name = "1.5")]
    V1_5,
}

#[derive(Debug, Args)]
pub(crate) struct CompileArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    /// Which form: an image if only -o is given
    #[arg(long, value_enum, required_unless_present_any = ["time", "output", "report"])]
    pub(crate) emit: Option<Emit>,
    /// Tells what of the switch the program uses and where, what it does not use, and what in the program no packet meets
    #[arg(long, conflicts_with_all = ["emit", "time"])]
    pub(crate) report: bool,
    /// Tells how long each step from the source to running code takes, in milliseconds
    #[arg(long, conflicts_with = "emit")]
    pub(crate) time: bool,
    /// The processor of `clif` and `asm`: this machine's if not given. Another one needs a build with `--features all-targets`
    #[arg(long, value_enum)]
    pub(crate) target: Option<Target>,
    /// Where to write it; standard output if not given
    #[arg(short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
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
    #[command(flatten)]
    pub(crate) hardware: HardwareArgs,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("server").args(["grpc", "thrift"]).multiple(true))]
#[command(group = ArgGroup::new("capturer").args(["metrics", "thrift"]).multiple(true))]
pub(crate) struct RunArgs {
    /// The options of the command line that have a long name.
    #[arg(skip)]
    pub(crate) given: Vec<String>,
    /// The program, or an image of one; without one and without --grpc a router, entries and packets that are built in
    #[arg(value_name = "PROG")]
    pub(crate) program: Option<PathBuf>,
    /// A port: 0@eth0, 0@packet:eth0, 0@xdp:eth0, 0@tap:mr0, 0@dpdk:DEVICE, 0@pcap:IN,OUT, 0@stream:IN,OUT, 0@null:TRACE, 0@es:FILE,NAME
    #[arg(short = 'i', value_name = "PORT@IFACE")]
    pub(crate) ports: Vec<PortSpec>,
    /// Takes the first frames of streams after so many seconds, and goes on after their end
    #[arg(long, value_name = "SECONDS", hide = true)]
    pub(crate) streams_after: Option<u64>,
    #[command(flatten)]
    pub(crate) packet_in: PacketInArgs,
    /// Entries: runtime commands of bmv2 or P4Runtime JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) entries: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// The port number that means drop to the program, in place of the one of its architecture (v1model: 511)
    #[arg(long, value_name = "N")]
    pub(crate) drop_port: Option<u32>,
    /// What the time is: monotonic (from the start on), system (the wall clock), ptp:/dev/ptp0 (a PTP hardware clock)
    #[arg(long, value_name = "CLOCK", default_value_t)]
    pub(crate) clock: ClockSpec,
    #[command(flatten)]
    pub(crate) workers: WorkerArgs,
    #[command(flatten)]
    pub(crate) queues: QueueArgs,
    #[command(flatten)]
    pub(crate) grpc: GrpcArgs,
    #[command(flatten)]
    pub(crate) thrift: ThriftArgs,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    #[command(flatten)]
    pub(crate) snmp: SnmpArgs,
    #[command(flatten)]
    pub(crate) modes: ModeArgs,
    #[command(flatten)]
    pub(crate) captures: CaptureArgs,
    #[command(flatten)]
    pub(crate) inputs: InputArgs,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// Runs as that user once ports and files are open; started by root, without all but two of its capabilities in any case
    #[arg(long, value_name = "USER[:GROUP]")]
    pub(crate) user: Option<String>,
    #[command(flatten)]
    pub(crate) log: LogArgs,
    #[command(flatten)]
    pub(crate) running: RunningArgs,
    #[command(flatten)]
    pub(crate) hardware: HardwareArgs,
}

impl RunArgs {
    /// Whether somebody can reach the switch who can bring another program.
    pub(crate) fn has_server(&self) -> bool {
        self.grpc.grpc.is_some() || self.thrift.thrift.is_some()
    }
}

/// What is captured of ports.
#[derive(Debug, Args)]
#[command(next_help_heading = "Captures")]
#[command(group = ArgGroup::new("captures").args(["pcap", "pcap_dir"]))]
pub(crate) struct CaptureArgs {
    /// Captures all ports from the start, to IFACE_in.pcap and IFACE_out.pcap in that folder
    #[arg(long, value_name = "DIR")]
    pub(crate) pcap: Option<PathBuf>,
    /// The folder for captures that are switched on later
    #[arg(long, value_name = "DIR", conflicts_with = "pcap", requires = "capturer")]
    pub(crate) pcap_dir: Option<PathBuf>,
    /// Largest file of a capture, in MiB; frames after that are left out
    #[arg(long, value_name = "MIB", default_value_t = DEFAULT_CAPTURE_FILE >> 20, requires = "captures")]
    pub(crate) pcap_max: u64,
}

/// What is told of a run, in lines with a time, a level and fields.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Log")]
pub(crate) struct LogArgs {
    /// Logs what is at least that important [default: info, when there is a file or a format]
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub(crate) log_level: Option<LogLevel>,
    /// Where to log, after what is there; `-` for standard output; standard error if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Begins another file when the log has so many bytes; those of before are FILE with .1, .2, ... before the ending
    #[arg(long, value_name = "BYTES", requires = "log")]
    pub(crate) log_max_size: Option<u64>,
    /// How many files of before are kept
    #[arg(long, value_name = "N", requires = "log_max_size", default_value_t = 3)]
    pub(crate) log_max_files: usize,
    /// Logs so many bytes of each packet that comes and leaves, where packets are logged in the words of bmv2
    #[arg(long, value_name = "N", default_value_t = 0, hide = true)]
    pub(crate) log_packet_bytes: usize,
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
    /// The lines of bmv2, in its words
    Bmv2,
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
    /// How ports queue and schedule what leaves by them, in words as `tc` of Linux has them
    #[arg(long, value_name = "FILE", conflicts_with = "priorities")]
    pub(crate) tc: Option<PathBuf>,
    /// Packets for a link that is busy wait in the queue of its port, where the program sees them; else they are dropped
    #[arg(long)]
    pub(crate) wait_for_links: bool,
    /// MiB that packets may take while they wait in the switch, with all their copies; what is beyond is dropped
    #[arg(long, value_name = "MIB", default_value_t = (DEFAULT_PACKET_MEMORY >> 20) as u32, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) packet_memory: u32,
}

/// How controllers reach the switch.
#[derive(Debug, Args)]
#[command(next_help_heading = "P4Runtime")]
pub(crate) struct GrpcArgs {
    /// Serves P4Runtime there, as 9559 (of this machine); PROG may then be left out, for a controller to bring one
    #[arg(long, value_name = "ADDR|PORT")]
    pub(crate) grpc: Option<Address>,
    /// The device id that controllers use
    #[arg(long, value_name = "N", default_value_t = 1, requires = "server")]
    pub(crate) device_id: u64,
    /// The port of the controller: packet-ins leave there, packet-outs come in there
    #[arg(long, value_name = "N", requires = "grpc")]
    pub(crate) cpu_port: Option<u32>,
    /// The server's certificate, for TLS (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["grpc_key", "grpc"])]
    pub(crate) grpc_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "grpc_cert")]
    pub(crate) grpc_key: Option<PathBuf>,
    /// Takes the key also where others may read its file, and warns of that
    #[arg(long, requires = "grpc_key", hide = true)]
    pub(crate) grpc_key_exposed: bool,
    /// The authority that must have signed the certificates of clients, for mutual TLS (PEM)
    #[arg(long, value_name = "FILE", requires = "grpc_cert")]
    pub(crate) grpc_client_ca: Option<PathBuf>,
    /// Takes plain connections from other machines too
    #[arg(long, requires = "grpc")]
    pub(crate) grpc_allow_plaintext: bool,
}

/// How clients of bmv2 reach the switch.
#[derive(Debug, Args)]
#[command(next_help_heading = "Thrift")]
pub(crate) struct ThriftArgs {
    /// Serves the Thrift interface of bmv2 there, for `millrace shell` and simple_switch_CLI, as 9090 (of this machine)
    #[arg(long, value_name = "ADDR|PORT")]
    pub(crate) thrift: Option<Address>,
    /// Lets other machines write to the switch over Thrift, which asks nobody who they are
    #[arg(long, requires = "thrift")]
    pub(crate) thrift_allow_remote: bool,
    /// Tells subscribers of nanomsg there of digests, idle entries, links and programs, as bmv2 does: ipc://FILE or
    /// tcp://ADDR:PORT
    #[arg(long, value_name = "ADDR", requires = "thrift")]
    pub(crate) notifications: Option<String>,
    /// The same if that is possible
    #[arg(long, value_name = "ADDR", requires = "thrift", conflicts_with = "notifications", hide = true)]
    pub(crate) try_notifications: Option<String>,
}

/// The switch is reached over Thrift: one of `millrace run --thrift`, or bmv2. Commands come from standard input, with
/// completion and history on a terminal.
#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    /// The port of its Thrift server
    #[arg(long, value_name = "N", default_value_t = millrace_thrift_api::DEFAULT_PORT)]
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
    /// The program, or an image of one; with --from that of the switch if not given
    #[arg(value_name = "PROG", required_unless_present = "from")]
    pub(crate) path: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Take what is written in a running switch, from its Thrift server: tables, groups, counters, registers, ...
    #[arg(long, value_name = "ADDR|PORT", conflicts_with = "entries")]
    pub(crate) from: Option<Address>,
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
    #[command(flatten)]
    pub(crate) capacity: CapacityArgs,
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

#[derive(Debug, Args)]
pub(crate) struct BoundsArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    /// Entries: runtime commands of bmv2 or P4Runtime JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) entries: Option<PathBuf>,
    /// Writes a frame that takes the dearest path
    #[arg(long, value_name = "PCAP")]
    pub(crate) packet: Option<PathBuf>,
    /// What `calibrate` has measured on this machine: for times
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// Where to write it
    #[arg(short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
