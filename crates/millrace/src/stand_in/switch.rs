//! `simple_switch` and `simple_switch_grpc`: the switch with the options of bmv2.

use super::options::parse;
use crate::cli::{Cli, Command};
use crate::findings::Findings;
use crate::output::{say_line, tell_line};
use crate::run;
use clap::Parser;
use millrace_dataplane::MAX_PORTS;
use millrace_describe::image::IMAGE_VERSION;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Where bmv2 listens for P4Runtime if it is not told.
const GRPC_ADDRESS: &str = "0.0.0.0:9559";

/// The packets that a queue of simple_switch holds.
const QUEUE_DEPTH: u32 = 64;

/// The bytes of a log file of bmv2.
const LOG_FILE_BYTES: u64 = 5 << 20;

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    SimpleSwitch,
    SimpleSwitchGrpc,
    PsaSwitch,
    PnaNic,
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Target::SimpleSwitch => "simple_switch",
            Target::SimpleSwitchGrpc => "simple_switch_grpc",
            Target::PsaSwitch => "psa_switch",
            Target::PnaNic => "pna_nic",
        }
    }
}

/// Runs a program on ports, with the options of bmv2. Options of the target follow after `--`; see `-- --help`.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true, infer_long_args = true, args_override_self = false)]
struct Args {
    /// The program: an image, as p4c writes it, or P4 source
    #[arg(value_name = "FILE")]
    config: Option<PathBuf>,
    /// A port
    #[arg(short, long, value_name = "PORT@INTERFACE", value_parser = interface)]
    interface: Vec<(u16, String)>,
    /// Captures all ports, to INTERFACE_in.pcap and INTERFACE_out.pcap in that folder
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    pcap: Option<PathBuf>,
    /// Reads and writes files INTERFACE_in.pcap and INTERFACE_out.pcap in place of interfaces, after so many seconds
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    use_files: Option<i64>,
    /// The frames of all ports are messages of one peer of nanomsg (PAIR) there: ipc://FILE or tcp://ADDR:PORT; --interface
    /// is left out
    #[arg(long, value_name = "SOCKET", conflicts_with = "use_files")]
    packet_in: Option<String>,
    /// Where the Thrift server listens
    #[arg(long, value_name = "PORT")]
    thrift_port: Option<u16>,
    /// Where subscribers of nanomsg hear of digests, idle entries and links [default: ipc:///tmp/bmv2-ID-notifications.ipc]
    #[arg(long, value_name = "SOCKET")]
    notifications_addr: Option<String>,
    /// The device id
    #[arg(long, value_name = "N", default_value_t = 0)]
    device_id: u64,
    /// Logs to standard output
    #[arg(long, conflicts_with = "log_file")]
    log_console: bool,
    /// Logs to FILE.txt
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// What to log at least
    #[arg(short = 'L', long, value_name = "LEVEL", value_parser = ["trace", "debug", "info", "warn", "error", "off"])]
    log_level: Option<String>,
    /// Begins another file when the log file has so many bytes
    #[arg(long, value_name = "BYTES", default_value_t = LOG_FILE_BYTES, value_parser = clap::value_parser!(u64).range(1..))]
    log_file_max_size: u64,
    /// How many log files of before are kept
    #[arg(long, value_name = "N", default_value_t = 3)]
    log_file_max_files: usize,
    /// Logs so many bytes of each packet that comes and leaves
    #[arg(long, value_name = "BYTES")]
    dump_packet_data: Option<u64>,
    /// Starts without a program; a controller brings one
    #[arg(long)]
    no_p4: bool,
    /// What `serialize_state` wrote: the switch starts with that
    #[arg(long, value_name = "FILE")]
    restore_state: Option<PathBuf>,
    /// Largest number of ports
    #[arg(long, value_name = "N", default_value_t = 512)]
    max_port_count: usize,
    /// Prints the version
    #[arg(short, long)]
    version: bool,
    /// Prints the version of the format of images
    #[arg(long)]
    json_version: bool,
    #[command(flatten)]
    ignored: Ignored,
}

/// What is taken so that scripts run, and changes nothing.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Without effect")]
struct Ignored {
    /// There is no nanomsg log
    #[arg(long, value_name = "SOCKET")]
    nanolog: Option<String>,
    /// There is no debugger; see `millrace trace`
    #[arg(long)]
    debugger: bool,
    /// There is no debugger; see `millrace trace`
    #[arg(long, value_name = "SOCKET")]
    debugger_addr: Option<String>,
    /// The log is written line by line
    #[arg(long)]
    log_flush: bool,
}

/// The options of simple_switch itself.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true, infer_long_args = true)]
struct TargetArgs {
    /// Where to serve P4Runtime [default: 0.0.0.0:9559]
    #[arg(long, value_name = "ADDR")]
    grpc_server_addr: Option<String>,
    /// Serves P4Runtime over TLS
    #[arg(long)]
    grpc_server_ssl: bool,
    /// The authority of clients' certificates (PEM)
    #[arg(long, value_name = "FILE")]
    grpc_server_cacert: Option<OsString>,
    /// The server's certificate (PEM)
    #[arg(long, value_name = "FILE")]
    grpc_server_cert: Option<OsString>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE")]
    grpc_server_key: Option<OsString>,
    /// Clients must have a certificate
    #[arg(long)]
    grpc_server_with_client_auth: bool,
    /// The port of the controller
    #[arg(long, value_name = "N")]
    cpu_port: Option<u32>,
    /// The port number that means drop [default: 511]
    #[arg(long, value_name = "N")]
    drop_port: Option<u32>,
    /// Egress queues of a port, served strictly by `standard_metadata.priority`
    #[arg(long, value_name = "N")]
    priority_queues: Option<u8>,
    /// Without effect: a program can always be swapped
    #[arg(long)]
    enable_swap: bool,
    /// Without effect: a program can always be swapped
    #[arg(long)]
    disable_swap: bool,
    /// Without effect: there may always be as many as Millrace has room for
    #[arg(long, value_name = "N")]
    max_mc_groups: Option<u32>,
    /// Without effect: there may always be as many as Millrace has room for
    #[arg(long, value_name = "N")]
    max_l1_entries: Option<u32>,
    /// Without effect: there may always be as many as Millrace has room for
    #[arg(long, value_name = "N")]
    max_l2_entries: Option<u32>,
    /// Not available: packets over gRPC
    #[arg(long, value_name = "ADDR")]
    dp_grpc_server_addr: Option<String>,
    /// Not available: libraries to load
    #[arg(long, value_name = "FILES")]
    load_modules: Option<String>,
}

pub(super) fn main(target: Target, args: Vec<OsString>) -> ExitCode {
    match start(target, args) {
        Ok(status) | Err(status) => status,
    }
}

fn start(target: Target, mut args: Vec<OsString>) -> Result<ExitCode, ExitCode> {
    // A shell's jobs and `pkill` know a process by that name, which the kernel cuts to 15 bytes.
    if let Ok(name) = std::ffi::CString::new(target.name()) {
        let _ = rustix::thread::set_name(&name);
    }
    let after = args.iter().position(|arg| arg == "--").map(|at| args.split_off(at).split_off(1));
    let args: Args = parse(target.name(), args, 1)?;
    let own: TargetArgs = parse(target.name(), after.unwrap_or_default(), 1)?;
    if args.version {
        say_line(format_args!("{} (Millrace)", env!("CARGO_PKG_VERSION")));
        return Ok(ExitCode::SUCCESS);
    }
    if args.json_version {
        say_line(IMAGE_VERSION);
        return Ok(ExitCode::SUCCESS);
    }
    let words =
        check(target, &args, &own).and_then(|()| run_options(target, &args, &own)).map_err(|wrong| {
            tell_line(format_args!("Error: {wrong}"));
            ExitCode::FAILURE
        })?;
    without_effect(&args, &own).iter().for_each(say_line);
    if let Some(seconds) = args.use_files.and_then(|seconds| u64::try_from(seconds).ok()) {
        std::thread::sleep(Duration::from_secs(seconds));
    }
    let command = Cli::try_parse_from(words).map(|cli| cli.command);
    let Ok(Command::Run(run)) = command.map_err(tell_line) else {
        return Err(ExitCode::FAILURE);
    };
    let mut findings = Findings::new();
    match run::serve(&run, &mut findings) {
        Ok(_) => Ok(ExitCode::SUCCESS),
        Err(failure) => {
            failure.show();
            Err(ExitCode::FAILURE)
        }
    }
}

/// What cannot be done.
fn check(target: Target, args: &Args, own: &TargetArgs) -> Result<(), String> {
    let missing = [
        ("--dp-grpc-server-addr", own.dp_grpc_server_addr.is_some()),
        ("--load-modules", own.load_modules.is_some()),
    ];
    if let Some((option, _)) = missing.iter().find(|(_, given)| *given) {
        return Err(format!("Millrace has nothing for {option}"));
    }
    if args.config.is_none() && !args.no_p4 {
        return Err("please specify an input JSON configuration file, or --no-p4".into());
    }
    if args.restore_state.is_some() && args.no_p4 {
        return Err("--restore-state needs a program".into());
    }
    if args.interface.len() > args.max_port_count {
        let limit = args.max_port_count;
        return Err(format!("{} ports are more than --max-port-count {limit}", args.interface.len()));
    }
    if args.packet_in.is_some() && !(1..=MAX_PORTS).contains(&args.max_port_count) {
        return Err(format!("with --packet-in, --max-port-count is 1 to {MAX_PORTS}"));
    }
    if let Some(folder) = args.pcap.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(format!("Directory '{}' specified with '--pcap' does not exist.", folder.display()));
    }
    let grpc_only = own.cpu_port.is_some() || own.grpc_server_addr.is_some() || own.grpc_server_ssl;
    if target != Target::SimpleSwitchGrpc && grpc_only {
        return Err("options of P4Runtime are for simple_switch_grpc".into());
    }
    if own.cpu_port == Some(0) {
        return Err("0 is no number for the CPU port".into());
    }
    if let Some(port) = own.cpu_port.filter(|cpu| {
        args.packet_in.is_none() && args.interface.iter().any(|(port, _)| u32::from(*port) == *cpu)
    }) {
        return Err(format!("Cpu port {port} is used as a data port"));
    }
    if own.grpc_server_ssl && (own.grpc_server_cert.is_none() || own.grpc_server_key.is_none()) {
        return Err(
            "When enabling SSL/TLS for gRPC server, --grpc-server-cert and --grpc-server-key are required"
                .into(),
        );
    }
    if own.grpc_server_with_client_auth && own.grpc_server_cacert.is_none() {
        return Err("--grpc-server-with-client-auth needs --grpc-server-cacert".into());
    }
    Ok(())
}

/// The same for `millrace run`.
fn run_options(target: Target, args: &Args, own: &TargetArgs) -> Result<Vec<OsString>, String> {
    let mut words: Vec<OsString> = vec!["millrace".into(), "run".into()];
    let mut option = |name: &str, value: OsString| words.extend([name.into(), value]);
    let interfaces = if args.packet_in.is_some() { &[][..] } else { &args.interface };
    for (port, interface) in interfaces {
        let device = match args.use_files {
            Some(_) => format!("stream:{interface}_in.pcap,{interface}_out.pcap"),
            None => format!("packet:{interface}"),
        };
        option("-i", format!("{port}@{device}").into());
    }
    if let Some(address) = &args.packet_in {
        option("--packet-in", address.into());
        option("--packet-in-ports", args.max_port_count.to_string().into());
    }
    option("--device-id", args.device_id.to_string().into());
    if target == Target::SimpleSwitchGrpc {
        option("--grpc", own.grpc_server_addr.as_deref().unwrap_or(GRPC_ADDRESS).into());
        if let Some(port) = own.cpu_port {
            option("--cpu-port", port.to_string().into());
        }
        if own.grpc_server_ssl {
            let authority = own.grpc_server_cacert.as_ref().filter(|_| own.grpc_server_with_client_auth);
            let files = [
                ("--grpc-cert", own.grpc_server_cert.as_ref()),
                ("--grpc-key", own.grpc_server_key.as_ref()),
                ("--grpc-client-ca", authority),
            ];
            for (name, file) in files {
                file.into_iter().for_each(|file| option(name, file.clone()));
            }
        }
    }
    if let Some(seconds) = args.use_files {
        option("--streams-after", seconds.max(0).to_string().into());
    }
    if let Some(queues) = own.priority_queues {
        option("--priorities", queues.to_string().into());
    }
    if let Some(port) = own.drop_port {
        option("--drop-port", port.to_string().into());
    }
    // With a P4Runtime server, a Thrift server is there only when it is asked for: switches would meet at one port.
    let default = (target != Target::SimpleSwitchGrpc).then_some(millrace_thrift_api::DEFAULT_PORT);
    if let Some(port) = args.thrift_port.or(default) {
        option("--thrift", port.to_string().into());
        match &args.notifications_addr {
            Some(address) => option("--notifications", address.into()),
            // Switches of one device id, of which bmv2 would end all but the first, may run concurrently.
            None => {
                let address = format!("ipc:///tmp/bmv2-{}-notifications.ipc", args.device_id);
                option("--try-notifications", address.into());
            }
        }
    }
    if let Some(state) = &args.restore_state {
        option("--entries", state.into());
    }
    // Files are named after interfaces.
    if let Some(folder) = args.pcap.as_ref().filter(|_| args.packet_in.is_none()) {
        option("--pcap", folder.into());
    }
    if args.log_console || args.log_file.is_some() {
        // bmv2 logs each step of each packet if it is not told.
        let level = args.log_level.as_deref().unwrap_or("trace");
        option("--log-level", level.into());
        option("--log-format", "bmv2".into());
        option("--log-packet-bytes", args.dump_packet_data.unwrap_or(0).to_string().into());
        match &args.log_file {
            None => option("--log", "-".into()),
            Some(file) => {
                let mut file = file.clone();
                file.as_mut_os_string().push(".txt");
                option("--log", file.into());
                option("--log-max-size", args.log_file_max_size.to_string().into());
                option("--log-max-files", args.log_file_max_files.to_string().into());
            }
        }
    }
    option("--queue-depth", QUEUE_DEPTH.to_string().into());
    words.push("--wait-for-links".into());
    // Who names an address of other machines means it.
    if args.packet_in.is_some() {
        words.push("--packet-in-allow-remote".into());
    }
    if args.notifications_addr.as_ref().is_some_and(|address| address.starts_with("tcp://")) {
        words.push("--thrift-allow-remote".into());
    }
    if target == Target::SimpleSwitchGrpc {
        words.push("--grpc-allow-plaintext".into());
    }
    // bmv2 does not look who else may read it.
    if target == Target::SimpleSwitchGrpc && own.grpc_server_ssl && own.grpc_server_key.is_some() {
        words.push("--grpc-key-exposed".into());
    }
    if let Some(config) = args.config.as_ref().filter(|_| !args.no_p4) {
        words.extend(["--".into(), config.into()]);
    }
    Ok(words)
}

/// What was given and changes nothing, a line for each.
fn without_effect(args: &Args, own: &TargetArgs) -> Vec<String> {
    let Ignored { nanolog, debugger, debugger_addr, .. } = &args.ignored;
    let given = [
        ("--nanolog", nanolog.is_some(), "there is no nanomsg log"),
        ("--debugger", *debugger || debugger_addr.is_some(), "`millrace trace` tells what a packet meets"),
        (
            "--max-mc-groups",
            own.max_mc_groups.is_some() || own.max_l1_entries.is_some() || own.max_l2_entries.is_some(),
            "limits of replication are those of Millrace",
        ),
        ("FILE", args.no_p4 && args.config.is_some(), "the program is left out with --no-p4"),
    ];
    let given = given.into_iter().filter(|(_, given, _)| *given);
    given.map(|(option, _, why)| format!("{option} has no effect: {why}")).collect()
}

/// A port with its interface.
fn interface(text: &str) -> Result<(u16, String), String> {
    let (port, interface) = text.split_once('@').ok_or("PORT@INTERFACE is expected")?;
    // bmv2 takes a number with what may be before it in C.
    let port = port.trim_start().trim_start_matches('+');
    let port = port.parse().map_err(|_| format!("`{port}` is no port number (0 to {})", u16::MAX))?;
    if interface.is_empty() { Err("nothing follows the `@`".into()) } else { Ok((port, interface.into())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(target: Target, line: &str) -> Result<String, String> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let (before, after) = match words.iter().position(|word| word == "--") {
            Some(at) => (words[..at].to_vec(), words[at + 1..].to_vec()),
            None => (words, Vec::new()),
        };
        let args: Args = parse(target.name(), before, 1).map_err(|_| "usage")?;
        let own: TargetArgs = parse(target.name(), after, 1).map_err(|_| "usage")?;
        check(target, &args, &own)?;
        let words = run_options(target, &args, &own)?;
        let parsed = Cli::try_parse_from(&words);
        assert!(parsed.is_ok(), "{words:?}: {}", parsed.unwrap_err());
        Ok(words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "))
    }

    /// As Mininet of the P4 tutorials starts it.
    #[test]
    fn a_switch_of_the_tutorials() {
        let line = "-i 1@s1-eth1 -i 2@s1-eth2 --pcap . --nanolog ipc:///tmp/bm-0-log.ipc --device-id 3 \
                    build/basic.json --log-console --thrift-port 9090 -- --grpc-server-addr 0.0.0.0:50051 \
                    --cpu-port 255 --priority-queues 8";
        let run = options(Target::SimpleSwitchGrpc, line).unwrap();
        for part in [
            "-i 1@packet:s1-eth1 -i 2@packet:s1-eth2",
            "--device-id 3 --grpc 0.0.0.0:50051 --cpu-port 255",
            "--priorities 8",
            "--thrift 9090",
            "-- build/basic.json",
        ] {
            assert!(run.contains(part), "{part}: {run}");
        }
    }

    #[test]
    fn a_switch_without_a_program_listens_where_bmv2_does() {
        let run = options(Target::SimpleSwitchGrpc, "--no-p4 -i 0@veth0").unwrap();
        assert!(run.contains("--grpc 0.0.0.0:9559") && run.contains("--device-id 0"), "{run}");
        assert!(!options(Target::SimpleSwitch, "--no-p4").unwrap().contains("--grpc"));
        let tls = "x.json -- --grpc-server-ssl --grpc-server-cert c --grpc-server-key k";
        let run = options(Target::SimpleSwitchGrpc, tls).unwrap();
        assert!(run.contains("--grpc-cert c --grpc-key k") && run.contains(" --grpc-key-exposed"), "{run}");
        let run = options(Target::SimpleSwitch, "--use-files 0 -i 0@a prog.json").unwrap();
        assert!(run.contains("-i 0@stream:a_in.pcap,a_out.pcap"), "{run}");
        let run = options(Target::SimpleSwitch, "--restore-state saved prog.json").unwrap();
        assert!(run.contains("--entries saved"), "{run}");
    }

    /// bmv2 leaves its interfaces out.
    #[test]
    fn a_peer_of_nanomsg_has_all_ports() {
        let line = "--packet-in ipc:///tmp/p.ipc -i 1@veth0 --pcap=. --max-port-count 16 prog.json";
        let run = options(Target::SimpleSwitch, line).unwrap();
        assert!(run.contains("--packet-in ipc:///tmp/p.ipc --packet-in-ports 16"), "{run}");
        assert!(!run.contains("-i 1@") && !run.contains("--pcap"), "{run}");
        let both = options(Target::SimpleSwitch, "--packet-in ipc://p --use-files 0 prog.json");
        assert_eq!(both.unwrap_err(), "usage");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let grpc = |line| options(Target::SimpleSwitchGrpc, line).unwrap_err();
        assert!(grpc("-i 0@veth0").contains("configuration file"));
        assert!(grpc("x.json -- --cpu-port 0").contains("CPU port"));
        assert!(grpc("x.json -i 5@veth0 -- --cpu-port 5").contains("data port"));
        assert!(grpc("x.json -- --grpc-server-ssl").contains("--grpc-server-cert"));
        assert!(grpc("x.json -- --dp-grpc-server-addr 0.0.0.0:1").contains("--dp-grpc-server-addr"));
        assert!(grpc("x.json --packet-in ipc://x --max-port-count 5000").contains("1 to 4096"));
        assert!(grpc("x.json --pcap /nowhere").contains("does not exist"));
        for line in ["x.json -i veth0", "x.json -i 70000@a", "x.json --log-console --log-file a", "--bogus"] {
            assert_eq!(grpc(line), "usage", "{line}");
        }
        assert!(options(Target::SimpleSwitch, "x.json -- --cpu-port 3").is_err());
    }

    #[test]
    fn what_has_no_effect_is_told_once() {
        let words = "x.json --nanolog a --debugger --debugger-addr b".split(' ').map(OsString::from);
        let args: Args = parse("simple_switch", words.collect(), 1).unwrap();
        let own: TargetArgs = parse("simple_switch", Vec::new(), 1).unwrap();
        let told = without_effect(&args, &own);
        assert_eq!(
            told.iter().map(|line| line.split(' ').next().unwrap()).collect::<Vec<_>>(),
            ["--nanolog", "--debugger"]
        );
    }
}
