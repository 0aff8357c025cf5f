//! `millrace run`.

use crate::added_ports::AddedPorts;
use crate::cli::RunArgs;
use crate::entries::read;
use crate::findings::{Failure, Findings};
use crate::inputs::OpenPorts;
use crate::logging::{Log, LogOfSwitch};
use crate::output::{is_quiet, note_line, say, say_line};
use crate::privileges::{Opener, Privileges};
use crate::source::load_any;
use crate::stories::Stories;
use crate::terminal::Terminal;
use crate::{
    attachment, captures, demo, grpc, inputs, logging, mode, nanomsg, observe, plugins, progress, snmp,
    statistics, tc, thrift,
};
use millrace_chassis::{Instance, Listener, Making, Modes, Pipeline, Programs, empty_program};
use millrace_compile::{check_port, set_drop_port};
use millrace_dataplane::{Clock, Control, QueueConfig, ReportError, Summary, Switch, SwitchConfig, Worker};
use millrace_drivers::{Captures, Links};
use millrace_inputs::{ProgramChains, StepStatus};
use millrace_listen::{Address, P4RUNTIME};
use millrace_observe::{Observer, Shown};
use millrace_observe_api::PluginStatus;
use millrace_p4runtime::{DeviceConfig, Listen, Server};
use millrace_pipeline::Program;
use millrace_syntax::read_file;
use millrace_thrift::PacketIn;
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use tracing::{error, info, warn};

pub(crate) fn run(args: &RunArgs, findings: &mut Findings) -> Result<(), Failure> {
    if args.program.is_none() && args.grpc.grpc.is_none() {
        if !args.ports.is_empty() || args.entries.is_some() {
            return Err(Failure::Usage("PROG is missing: ports and entries need a program".into()));
        }
        let of_demo = |option: &str| demo::OPTIONS.contains(&option);
        let other = args.given.iter().map(String::as_str).find(|option| !of_demo(option));
        if let Some(option) = other.or(args.source.given()) {
            return Err(Failure::Usage(format!("PROG is missing: {option} needs a program")));
        }
        return demo::run(args, findings);
    }
    if args.program.is_none() && args.entries.is_some() {
        return Err(Failure::Usage("PROG is missing: entries need a program".into()));
    }
    if let (None, Some(option)) = (&args.program, args.source.given()) {
        return Err(Failure::Usage(format!("PROG is missing: {option} needs a program")));
    }
    // Who reaches a server can send packets (P4Runtime, to the CPU port) or add ports (Thrift).
    if args.ports.is_empty() && !args.has_server() && args.packet_in.packet_in.is_none() {
        return Err(Failure::Usage("a port is missing: `-i PORT@IFACE`, as in `-i 0@eth0`".into()));
    }
    let ended = serve(args, findings)?;
    finish(args, &ended)
}

/// How a switch ended.
pub(crate) struct Ended {
    summary: Summary,
    digests: u64,
    inputs: Vec<StepStatus>,
    plugins: Vec<PluginStatus>,
}

/// Runs a switch until it is told to end, also without a program, and without ports.
pub(crate) fn serve(args: &RunArgs, findings: &mut Findings) -> Result<Ended, Failure> {
    args.workers.check()?;
    let log = logging::start(&args.log)?;
    let listen = grpc::listen(&args.grpc)?;
    let Brought { name, program, pipeline, file } = bring(args, listen.is_some(), findings)?;
    check_ports(args, &program)?;
    let privileges = privileges(args)?;
    let opener = Opener::start()?;
    privileges.give_up()?;
    let plugins = load_plugins(args, &program, &opener)?;
    let (packet_in, of_peer) = nanomsg::packet_in(&args.packet_in, &program, args.grpc.cpu_port)?;
    let config = config(args, &program, clock(args, &opener)?, &plugins)?;
    let mut switch = make_switch(&name, program, config)?;
    let modes = mode::configure(args, &mut switch, &opener, findings)?;
    let OpenPorts { inputs, captures, mut ports, chains, requests } =
        inputs::open_ports(args, switch.program(), &opener)?;
    let (making, plans) = (making(args, chains, modes.clone())?, read_plans(args, &opener)?);
    drop(opener);
    ports.extend(of_peer);
    let cpu_port = grpc::cpu_port(&args.grpc, &mut ports)?;
    let numbers = ports.iter().map(|(port, _)| *port).collect();
    args.workers.tell(&ports);
    let worker = Worker::with_followers(switch, ports, args.workers.count(), args.workers.spread());
    let worker = worker.map_err(|error| Failure::Failed(error.to_string()))?;
    let mut signals = signals(&log).map_err(|error| Failure::failed("signals", error))?;
    let stopping = signals.handle();
    let mut instance = Instance::new(worker);
    set_up(&mut instance, args, &name, plans)?;
    captures::start_all(&args.captures, &captures)?;
    let links = Links::of(&args.ports);
    let control = instance.control().clone();
    let shown_modes = mode::shown(&modes, control.clone(), requests.as_ref());
    let metrics = observe::serve(&args.metrics, || Shown {
        control: control.clone(),
        captures: Arc::clone(&captures),
        links: links.clone(),
        inputs: inputs.shown(),
        log: Box::new(LogOfSwitch { log: log.clone(), control: control.clone(), args: args.log.clone() }),
        plugins: Arc::clone(&plugins.shown),
        modes: Arc::clone(&shown_modes),
    })?;
    let agent = snmp::serve(&args.snmp, requests, || {
        let seen = (Arc::clone(&captures), links.clone(), inputs.shown());
        Observer::new(control.clone(), seen, (Arc::clone(&plugins.shown), Arc::clone(&shown_modes)))
    })?;
    let device = DeviceConfig {
        device_id: args.grpc.device_id,
        making: making.clone(),
        ports: numbers,
        links: links.clone(),
        cpu_port,
        pipeline,
    };
    let server = listen.map(|listen| start_p4runtime(&listen, device, &control)).transpose()?;
    let thrift = match &args.thrift.thrift {
        Some(given) => {
            let maker = added_ports(args, &captures, &links, server.as_ref());
            let of_server = server.as_ref().map(Server::programs);
            let programs = of_server.unwrap_or_else(|| Programs::new(making, control.clone()));
            // The ports of a peer are there for good, as those of bmv2.
            let maker = packet_in.is_none().then_some(maker);
            Some(thrift::start(&args.thrift, given, args.grpc.device_id, &args.ports, maker, programs, file)?)
        }
        None => None,
    };
    let terminal = Arc::new(Terminal::new(&args.log));
    instance.add_listener(Arc::clone(&terminal) as Arc<dyn Listener>);
    if let Some(thrift) = &thrift {
        instance.add_listener(Arc::new(thrift.feed()));
    }
    if let Some(server) = &server {
        instance.add_listener(Arc::new(server.feed()));
    }
    snmp::listen(agent.as_ref(), &mut instance, &modes);
    // Clients of Thrift may add ports. The servers know of links before anybody is told that the switch runs.
    if !links.is_empty() || thrift.is_some() {
        instance.watch(links).map_err(|error| Failure::failed("links", error))?;
    }
    tell_addresses(args, &name, packet_in.as_ref(), server.as_ref(), thrift.as_ref());
    let feed = thrift.as_ref().map(millrace_thrift::Server::feed);
    let packet_in = packet_in.map(|waiting| nanomsg::serve(waiting, feed)).transpose()?;
    let summary = std::thread::scope(|scope| {
        let (ended, end) = channel::<()>();
        if std::io::stderr().is_terminal() && !is_quiet() {
            let control = control.clone();
            scope.spawn(move || show_status(&control, &end));
        }
        scope.spawn(|| stop_when_told(&mut signals, &control, &log));
        let summary = instance.run();
        drop(ended);
        stopping.close();
        summary
    });
    let summary = summary.map_err(|error| Failure::failed("links", error))?;
    drop((packet_in, thrift, server, metrics, agent));
    captures::stop_all(&captures);
    log_end(&summary);
    let (digests, plugins) = (terminal.digests(), plugins.shown.list());
    Ok(Ended { summary, digests, inputs: inputs.end(), plugins })
}

fn log_end(summary: &Summary) {
    let totals = summary.switch.counters();
    info!(
        rx_packets = totals.ports().map(|(_, port)| port.rx_packets).sum::<u64>(),
        tx_packets = totals.ports().map(|(_, port)| port.tx_packets).sum::<u64>(),
        drops = totals.all_drops().map(|(_, count)| count).sum::<u64>(),
        lost_at_ports = summary.ports.iter().map(|(_, port)| port.rx_missed + port.rx_errors).sum::<u64>(),
        "end"
    );
}

/// A switch that runs the program that it begins with.
fn make_switch(name: &str, program: Arc<Program>, config: SwitchConfig) -> Result<Switch, Failure> {
    let switch = Switch::new(program, config).map_err(|error| Failure::Failed(error.to_string()))?;
    if let Some(reason) = switch.without_code() {
        warn!(program = name, reason, "the interpreter runs the program");
    }
    Ok(switch)
}

/// The plugins of the command line.
fn load_plugins(args: &RunArgs, program: &Program, opener: &Opener) -> Result<plugins::Loaded, Failure> {
    plugins::load(&args.plugins, program, |file| {
        let path = file.to_owned();
        let read = opener.open(move || read_file(Path::new(&path), plugins::MAX_MODULE_FILE))?;
        read.map_err(|error| Failure::failed(file, error))
    })
}

/// How ports serve what leaves by them, in the words of the file.
fn read_plans(args: &RunArgs, opener: &Opener) -> Result<Option<String>, Failure> {
    let path = args.queues.tc.clone();
    path.map(|path| opener.open(move || read(&path))?).transpose()
}

/// The program that the switch begins with.
struct Brought {
    name: String,
    program: Arc<Program>,
    /// For controllers.
    pipeline: Option<Pipeline>,
    /// The program with the file that it was made from, which clients of Thrift compare with theirs.
    file: Option<(Arc<Program>, String)>,
}

/// Reads the program of the command line, with what controllers are told of it if there are any.
fn bring(args: &RunArgs, has_controllers: bool, findings: &mut Findings) -> Result<Brought, Failure> {
    let Some(path) = &args.program else {
        let program = empty_program().map_err(Failure::Failed)?;
        return Ok(Brought { name: "no program".to_owned(), program, pipeline: None, file: None });
    };
    let loaded = load_any(path, &args.source, findings)?;
    let json = loaded.as_image().filter(|_| args.thrift.thrift.is_some()).map(ToString::to_string);
    let (program, pipeline) = if has_controllers {
        let mut made = grpc::pipeline(loaded.image(findings)?)?;
        if let Some(port) = args.drop_port {
            made.set_drop_port(port).map_err(Failure::Failed)?;
        }
        (Arc::clone(&made.program), Some(made))
    } else {
        let mut program = loaded.program(findings)?;
        if let Some(port) = args.drop_port {
            set_drop_port(Arc::make_mut(&mut program), port).map_err(Failure::Failed)?;
        }
        (program, None)
    };
    let file = json.map(|json| (Arc::clone(&program), json));
    Ok(Brought { name: program.name.clone(), program, pipeline, file })
}

/// The clock that was asked for.
fn clock(args: &RunArgs, opener: &Opener) -> Result<Clock, Failure> {
    let spec = args.clock.clone();
    let opened = opener.open(move || Clock::open(&spec))?;
    opened.map_err(|error| Failure::Failed(error.to_string()))
}

fn config(
    args: &RunArgs,
    program: &Program,
    clock: Clock,
    plugins: &plugins::Loaded,
) -> Result<SwitchConfig, Failure> {
    // Without a program nothing passes, until a controller brings one.
    let program = args.program.is_some().then_some(program);
    let device = attachment::of_run(args)?.filter(|_| program.is_some());
    let queues = QueueConfig {
        priorities: args.queues.priorities,
        depth: args.queues.queue_depth,
        wait_for_links: args.queues.wait_for_links,
        packet_memory: (args.queues.packet_memory as usize).saturating_mul(1 << 20),
    };
    Ok(SwitchConfig {
        engine: args.running.kind_or_device()?,
        hardware: args.running.hardware(program, device)?,
        queues,
        count_lookups: args.metrics.metrics.is_some(),
        clock,
        plugins: plugins.host.clone(),
        ..SwitchConfig::default()
    })
}

/// How the programs are made that clients bring.
fn making(args: &RunArgs, chains: Option<ProgramChains>, modes: Modes) -> Result<Making, Failure> {
    Ok(Making {
        engine: args.running.kind_or_device()?,
        hardware: args.running.hardware(None, attachment::of_run(args)?)?,
        count_lookups: args.metrics.metrics.is_some(),
        drop_port: args.drop_port,
        chains,
        modes: Some(modes),
    })
}

fn set_up(instance: &mut Instance, args: &RunArgs, name: &str, plans: Option<String>) -> Result<(), Failure> {
    let worker = instance.worker_mut();
    if let (Some(file), Some(plans)) = (&args.queues.tc, plans) {
        tc::load(worker, file, &plans)?;
    }
    worker.run_on(args.workers.processors().to_vec());
    worker.poll(args.workers.polling());
    if let Some(seconds) = args.streams_after {
        worker.replay_streams_after(Duration::from_secs(seconds));
    }
    if Stories::are_wanted(&args.log) {
        worker.tell_stories();
    }
    if !worker.switch_mut().has_frames() && (!args.ports.is_empty() || args.grpc.cpu_port.is_some()) {
        return Err(Failure::Failed(format!("-i and --cpu-port: {}", attachment::FRAMES_GO_ELSEWHERE)));
    }
    let reached = worker.switch_mut().reach_device();
    reached.map_err(|error| Failure::Failed(error.to_string()))?;
    let engine = worker.switch_mut().engine_name();
    info!(program = name, version = env!("CARGO_PKG_VERSION"), engine, "start");
    args.ports.iter().for_each(|port| info!(port = port.to_string(), "port up"));
    Ok(())
}

fn start_p4runtime(listen: &Listen, device: DeviceConfig, control: &Control) -> Result<Server, Failure> {
    let started = Server::start(listen, device, control.clone());
    let started = started.map_err(|error| Failure::Failed(error.to_string()))?;
    grpc::warn_of_exposure(&P4RUNTIME, started.address(), listen.admission());
    Ok(started)
}

/// What makes ports that clients of Thrift add.
fn added_ports(
    args: &RunArgs,
    captures: &Arc<Captures>,
    links: &Links,
    server: Option<&Server>,
) -> AddedPorts {
    AddedPorts {
        captures: Arc::clone(captures),
        captures_all: args.captures.pcap.is_some(),
        links: links.clone(),
        p4runtime: server.map(Server::feed),
        workers: args.workers.clone(),
    }
}

/// Tells the user where the switch is to be reached.
fn tell_addresses(
    args: &RunArgs,
    name: &str,
    packet_in: Option<&PacketIn>,
    server: Option<&Server>,
    thrift: Option<&millrace_thrift::Server>,
) {
    let specs: Vec<String> = args.ports.iter().map(ToString::to_string).collect();
    let on = if specs.is_empty() { "no port".to_owned() } else { specs.join(", ") };
    note_line(format_args!("{name} is running on {on}"));
    if let Some(waiting) = packet_in {
        note_line(format_args!("packet-in: {}", waiting.address()));
    }
    if let Some(server) = server {
        note_line(format_args!("P4Runtime: device {} at {}", args.grpc.device_id, server.address()));
        info!(device = args.grpc.device_id, address = %server.address(), "P4Runtime");
    }
    if let Some(thrift) = thrift {
        note_line(format_args!("Thrift: {}", thrift.address()));
        info!(address = %thrift.address(), "Thrift");
    }
}

/// What the switch has to be able to do when it runs. The folder of its captures is there then.
fn privileges(args: &RunArgs) -> Result<Privileges, Failure> {
    let mut privileges = Privileges::new(args.user.as_deref())?;
    let given = [&args.grpc.grpc, &args.thrift.thrift, &args.metrics.metrics, &args.snmp.snmp];
    given.into_iter().flatten().filter_map(Address::port).for_each(|port| privileges.serves(port));
    if let Some(folder) = captures::folder(&args.captures) {
        if !folder.exists() {
            std::fs::create_dir_all(folder).map_err(|error| Failure::failed(folder.display(), error))?;
            privileges.give(folder)?;
        }
        privileges.writes_in(folder);
    }
    if let Some(folder) = args.log.log.as_deref().and_then(Path::parent) {
        privileges.writes_in(if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    }
    Ok(privileges)
}

/// Each interface is one port, and the program knows all ports by their number.
fn check_ports(args: &RunArgs, program: &Program) -> Result<(), Failure> {
    let numbers = args.ports.iter().map(|spec| u32::from(spec.port)).chain(args.grpc.cpu_port);
    for number in numbers {
        check_port(program, number).map_err(Failure::Failed)?;
    }
    let seen = Links::default();
    for spec in &args.ports {
        if let Some(user) = seen.user_of(&spec.interface) {
            return Err(Failure::Failed(format!("{spec}: the interface is port {user} already")));
        }
        seen.add(spec);
    }
    Ok(())
}

/// The signals that the switch takes. One that hangs up has another meaning with a log in a file, and none when whoever
/// started the switch has it ignored (`nohup`).
fn signals(log: &Log) -> std::io::Result<Signals> {
    let signals = Signals::new([SIGINT, SIGTERM])?;
    if log.has_file() || !is_ignored(SIGHUP) {
        signals.add_signal(SIGHUP)?;
    }
    Ok(signals)
}

/// Whether the process was started with a signal ignored, as proc(5) says.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// The first signal asks the switch to end, a second one does not wait for it. With a log in a file, SIGHUP has it opened
/// again.
fn stop_when_told(signals: &mut Signals, control: &Control, log: &Log) {
    let mut is_ending = false;
    for signal in signals.forever() {
        match signal {
            SIGHUP if log.has_file() => match log.reopen() {
                Ok(()) => info!("log opened again"),
                Err(Failure::Failed(error)) => error!(error, "the log is not opened again"),
                Err(_) => {}
            },
            _ if is_ending => std::process::exit(1),
            _ => {
                info!("asked to end");
                control.stop();
                is_ending = true;
            }
        }
    }
}

/// How long the line on the terminal waits for what it shows.
const STATUS_PATIENCE: Duration = Duration::from_millis(500);

/// A line on the terminal, once a second, until the switch ends.
fn show_status(control: &Control, end: &Receiver<()>) {
    loop {
        match control.report(STATUS_PATIENCE) {
            Ok(report) => {
                let received: u64 = report.ports.iter().map(|port| port.counters.rx_packets).sum();
                let sent: u64 = report.ports.iter().map(|port| port.counters.tx_packets).sum();
                let dropped: u64 = report.drops.iter().map(|(_, count)| count).sum();
                progress::status(&format!("{received} packets in, {sent} out, {dropped} dropped"));
            }
            // The next second has another.
            Err(ReportError::Busy) => {}
            Err(ReportError::Ended) => return progress::status(""),
        }
        if end.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout) {
            return progress::status("");
        }
    }
}

fn finish(args: &RunArgs, ended: &Ended) -> Result<(), Failure> {
    let Ended { summary, digests, inputs, plugins } = ended;
    let ok = summary.failed.is_empty();
    if args.running.json {
        let mut object = statistics::json(&summary.switch, &summary.ports);
        let failed =
            summary.failed.iter().map(|(port, error)| json!({ "port": port, "error": error.to_string() }));
        object.insert("ok".into(), ok.into());
        object.insert("inputs".into(), inputs::json(inputs));
        object.insert("plugins".into(), json!(plugins));
        object.insert("digests".into(), (*digests).into());
        object.insert("lost_notices".into(), summary.lost_notices.into());
        object.insert("failed_ports".into(), failed.collect());
        object.insert("workers".into(), statistics::workers_json(&summary.workers));
        say_line(Value::from(object));
    } else {
        say(statistics::text(&summary.switch, &summary.ports));
        say(statistics::workers_text(&summary.workers));
        say(inputs::text(inputs));
        say(plugins::text(plugins));
        if *digests > 0 {
            say_line(format_args!("{digests} digests"));
        }
        if summary.lost_notices > 0 {
            say_line(format_args!(
                "{} digests, log lines and stories of packets came too fast to be shown",
                summary.lost_notices
            ));
        }
    }
    if ok { Ok(()) } else { Err(Failure::Told) }
}
