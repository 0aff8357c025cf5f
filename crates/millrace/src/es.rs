//! `millrace es`: an end system of an AFDX network on two interfaces.

use crate::entries::read_config;
use crate::findings::Failure;
use crate::grpc::{address, warn_of_exposure};
use crate::output::{has_colour, note_line, say, say_line, tell_coloured, tell_line};
use crate::signals;
use clap::Args;
use millrace_afdx::{IntegrityRule, Misbehaviour, Network as Side, Order};
use millrace_dataplane::PortId;
use millrace_drivers::{Device, Driver, InterfaceSpec, PortError, PortSpec, QueuePair};
use millrace_end_system::{
    EndSystemPort, Gateway, GatewaySpec, LINGER, LineReport, MAX_GATEWAYS, Node, Plan, PortArguments,
    Process, Receiving, Requests, Traffic, WallClock, report,
};
use millrace_listen::{Address, Admission, GATEWAY, bind_udp};
use millrace_network::Network;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Longest run in seconds: a year.
const MAX_SECONDS: u64 = 366 * 86_400;
/// Longest margin around it, in seconds.
const MAX_MARGIN: u64 = 3600;

#[derive(Debug, Args)]
pub(crate) struct EsArgs {
    /// The file of the network
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The end system of the file that it is
    #[arg(long, value_name = "NAME")]
    name: String,
    /// The interface to a network: A or B, and what `run` takes for a port
    #[arg(short = 'i', long = "interface", value_name = "NETWORK@[DRIVER:]ARGS", required = true)]
    lines: Vec<LineSpec>,
    /// How long it sends, then half a second more in which it receives; until it is told to end if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_SECONDS))]
    seconds: Option<u64>,
    /// How long it only receives before it sends, and after it has: when all end systems of a network start about now, none misses a message
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=MAX_MARGIN))]
    margin: Option<u64>,
    /// The time from one message of a port to the next; a quarter more than its virtual link needs for one if not given
    #[arg(long, value_name = "MICROSECONDS", conflicts_with = "silent")]
    period: Option<u64>,
    /// How long each message is; as long as one frame has room for if not given
    #[arg(long, value_name = "N", conflicts_with = "silent")]
    bytes: Option<usize>,
    /// Sends nothing
    #[arg(long)]
    silent: bool,
    /// Faults: babble=VL:MICROSECONDS, or length, number, port, vl, network=VL:N for one in N frames
    #[arg(long, value_name = "FAULT", value_delimiter = ',')]
    misbehave: Vec<Misbehaviour>,
    /// What the frames with faults are chosen by
    #[arg(long, value_name = "N", default_value_t = 0, requires = "misbehave")]
    seed: u64,
    /// A UDP socket for programs of this machine: what they send to ADDR goes by a virtual link to that UDP port of end system NAME, and what
    /// comes back goes to them; may be given several times
    #[arg(long, value_name = "ADDR|PORT=NAME:PORT")]
    udp: Vec<UdpSpec>,
    /// Lets other machines send to the sockets of --udp
    #[arg(long, requires = "udp")]
    udp_allow_remote: bool,
    /// Drops frames that come after newer ones
    #[arg(long)]
    keep_order: bool,
    /// Drops frames whose source address is not of an interface to the network that they come by
    #[arg(long)]
    check_interface: bool,
    /// How many numbers after the one before are valid
    #[arg(long, value_name = "N", default_value_t = 2)]
    window: u8,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// `A@eth0`.
#[derive(Clone, Debug)]
struct LineSpec {
    side: Side,
    interface: InterfaceSpec,
}

impl FromStr for LineSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<LineSpec, String> {
        let (side, interface) = match text.split_once('@') {
            Some(("A", interface)) => (Side::A, interface),
            Some(("B", interface)) => (Side::B, interface),
            _ => return Err(format!("`{text}` names no network: A@INTERFACE or B@INTERFACE is expected")),
        };
        let interface = interface.parse().map_err(|error: millrace_drivers::SpecError| error.to_string())?;
        Ok(LineSpec { side, interface })
    }
}

/// `1161=M1:161`.
#[derive(Clone, Debug)]
struct UdpSpec {
    address: Address,
    to: GatewaySpec,
}

impl FromStr for UdpSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<UdpSpec, String> {
        let Some((address, to)) = text.split_once('=') else {
            return Err(format!("`{text}` leads nowhere: ADDR=NAME:PORT is expected, as in 1161=M1:161"));
        };
        let address = address.parse().map_err(|error: millrace_listen::AddressError| error.to_string())?;
        Ok(UdpSpec { address, to: to.parse()? })
    }
}

pub(crate) fn es(args: &EsArgs) -> Result<(), Failure> {
    if let [first, second] = args.lines.as_slice()
        && first.side == second.side
    {
        return Err(Failure::Usage(format!("network {} is given twice", first.side)));
    }
    if args.lines.len() > Side::ALL.len() {
        return Err(Failure::Usage("there are two networks: `-i A@IFACE -i B@IFACE`".into()));
    }
    let network = load(&args.file, args.json)?;
    let window = IntegrityRule::default().with_window(args.window);
    let receiving = Receiving {
        integrity: window.map_err(|error| Failure::Usage(error.to_string()))?,
        order: if args.keep_order { Order::Increasing } else { Order::Any },
        checks_interface: args.check_interface,
        answers_echo: false,
    };
    let failed = |error: &dyn std::fmt::Display| Failure::failed(args.file.display(), error);
    let mut plan = Plan::of(&network, &args.name, &receiving).map_err(|error| failed(&error))?;
    let gateways = gateways(args, &network, &mut plan)?;
    let ends = signals::ends()?;
    let lines = args.lines.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    // The clock starts when all is open: no message is due before it can be sent.
    let clock = WallClock::default();
    let margin_ns = args.margin.map(|seconds| seconds.saturating_mul(1_000_000_000));
    let from_ns = clock.now_ns().saturating_add(margin_ns.unwrap_or(0));
    let length_ns = args.seconds.map_or(u64::MAX, |seconds| seconds.saturating_mul(1_000_000_000));
    let stops_ns = from_ns.saturating_add(length_ns);
    plan.es
        .transmitter
        .misbehave((from_ns, stops_ns), args.seed, &args.misbehave)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let traffic = Traffic {
        is_silent: args.silent,
        period_ns: args.period.map(|microseconds| microseconds.saturating_mul(1000)),
        bytes: args.bytes,
    };
    let node = Node::new(plan, traffic, (from_ns, stops_ns));
    let node = node.map_err(|error| Failure::Usage(error.to_string()))?;
    note_line(format_args!("{} is running", args.name));
    let mut process = Process::new(node, clock, lines, gateways);
    let linger_ns = margin_ns.unwrap_or(u64::try_from(LINGER.as_nanos()).unwrap_or(u64::MAX));
    let mut tell = |side: Side, error: &PortError| tell_line(format_args!("error: network {side}: {error}"));
    process
        .run(stops_ns.saturating_add(linger_ns), &ends, &mut tell)
        .map_err(|error| Failure::Failed(error.to_string()))?;
    show(args, &process);
    // That was told when it happened.
    if process.broken().next().is_some() { Err(Failure::Told) } else { Ok(()) }
}

/// The sockets of --udp, and what they lead to.
fn gateways(args: &EsArgs, network: &Network, plan: &mut Plan) -> Result<Vec<Gateway>, Failure> {
    if args.udp.len() > MAX_GATEWAYS {
        return Err(Failure::Usage(format!("--udp: at most {MAX_GATEWAYS} may be given")));
    }
    let mut gateways = Vec::new();
    for (number, UdpSpec { address: given, to }) in args.udp.iter().enumerate() {
        let at = address(given, &GATEWAY)?;
        let socket = bind_udp(&GATEWAY, at, args.udp_allow_remote);
        let socket = socket.map_err(|error| Failure::Failed(error.to_string()))?;
        let ready = socket.set_nonblocking(true).and_then(|()| socket.local_addr());
        let at = ready.map_err(|error| Failure::failed("--udp", error))?;
        let made = Gateway::new(network, plan, number, to, socket);
        gateways.push(made.map_err(|error| Failure::failed(args.file.display(), error))?);
        warn_of_exposure(&GATEWAY, at, Admission::Anybody);
        note_line(format_args!("udp:{at} leads to {to}"));
    }
    Ok(gateways)
}

/// The port that is the switch's own end system, if there is one.
pub(crate) fn management_port(ports: &[PortSpec]) -> Result<Option<PortId>, Failure> {
    let is_own = |spec: &&PortSpec| {
        let words = spec.interface.args.parse::<PortArguments>();
        spec.interface.driver == Driver::Es && words.is_ok_and(|words| words.manages)
    };
    let mut own = ports.iter().filter(is_own);
    let first = own.next().map(|spec| PortId::from(spec.port));
    match own.next() {
        Some(second) => {
            Err(Failure::Usage(format!("{second}: a switch has one end system of its own (`management=on`)")))
        }
        None => Ok(first),
    }
}

/// An end system as a port of a switch: `es:FILE,NAME`; and what it is asked, if it is the switch's own.
pub(crate) fn port(interface: &InterfaceSpec) -> Result<(Box<dyn Device>, Option<Requests>), Failure> {
    let arguments: PortArguments =
        interface.args.parse().map_err(|error: String| Failure::failed("es", error))?;
    // What is wrong with it was shown; whoever reads JSON is told which file it is.
    let network = load(Path::new(&arguments.file), false)
        .map_err(|failure| if let Failure::Told = failure { wrong_file(&arguments.file) } else { failure })?;
    let device = EndSystemPort::device(&network, &arguments);
    device.map_err(|error| Failure::failed(interface, error))
}

fn wrong_file(file: &str) -> Failure {
    Failure::Failed(format!("{file} describes no network that can be"))
}

fn show(args: &EsArgs, process: &Process) {
    let (node, lines): (&Node, Vec<LineReport>) = process.reports();
    if args.json {
        let mut report = report::json(node, &lines);
        report["gateways"] = report::gateways(process.gateways());
        let broken = process.broken().map(|(side, error)| (side.to_string(), json!(error.to_string())));
        report["broken"] = broken.collect();
        say_line(report.to_string());
        return;
    }
    say(report::text(node, &lines));
    for gateway in process.gateways() {
        let (to, counts) = (gateway.to(), gateway.counters());
        say_line(format_args!(
            "  gateway to {}:{}: {} datagrams sent, {} refused, {} came back, {} lost",
            to.ip, to.port, counts.sent, counts.refused, counts.received, counts.lost
        ));
    }
    for (side, count) in Side::ALL.into_iter().zip(process.unconnected()) {
        if count > 0 {
            say_line(format_args!("  {count} frames were for network {side}, which has no interface"));
        }
    }
}

fn open(line: &LineSpec) -> Result<(Side, Box<dyn QueuePair>), Failure> {
    let opened = millrace_drivers::open_among(&line.interface, Side::ALL.len());
    let opened = opened.map_err(|error| Failure::failed(&line.interface, error))?;
    Ok((line.side, opened))
}

/// The network of a file; what is wrong is shown.
fn load(file: &Path, is_json: bool) -> Result<Network, Failure> {
    let text = read_config(file)?;
    crate::network::parse(file, &text).map_err(|problems| {
        match is_json {
            true => say_line(json!({ "ok": false, "diagnostics": problems.problems }).to_string()),
            false => tell_coloured(problems.render(has_colour())),
        }
        Failure::Told
    })
}
