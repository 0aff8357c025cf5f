//! `millrace run`.

use crate::added_ports::AddedPorts;
use crate::cli::RunArgs;
use crate::entries::{load_text, read};
use crate::findings::{Failure, Findings};
use crate::logging::{Log, LogOfSwitch};
use crate::output::{is_quiet, note_line, say, say_line, tell_line};
use crate::privileges::{Opener, Privileges};
use crate::source::load_any;
use crate::stories::Stories;
use crate::{captures, demo, grpc, logging, nanomsg, observe, progress, statistics, thrift};
use millrace_compile::{check_port, set_drop_port};
use millrace_dataplane::{Control, Notice, QueueConfig, ReportError, Summary, Switch, SwitchConfig, Worker};
use millrace_drivers::{LinkWatch, Links};
use millrace_listen::{P4RUNTIME, Place};
use millrace_observe::Shown;
use millrace_p4runtime::{DeviceConfig, Feed, Making, Programs, Server, empty_program};
use millrace_pipeline::Program;
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{IsTerminal, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use tracing::{error, info, warn};

pub(crate) fn run(args: &RunArgs, findings: &mut Findings) -> Result<(), Failure> {
    if args.program.is_none() && args.grpc.grpc.is_none() {
        if !args.ports.is_empty() || args.entries.is_some() {
            return Err(Failure::Usage("PROG is missing: ports and entries need a program".into()));
        }
        return demo::run(args, findings);
    }
    if args.program.is_none() && args.entries.is_some() {
        return Err(Failure::Usage("PROG is missing: entries need a program".into()));
    }
    // Who reaches a server can send packets (P4Runtime, to the CPU port) or add ports (Thrift).
    let has_server = args.grpc.grpc.is_some() || args.thrift.thrift.is_some();
    if args.ports.is_empty() && !has_server && args.packet_in.packet_in.is_none() {
        return Err(Failure::Usage("a port is missing: `-i PORT@IFACE`, as in `-i 0@eth0`".into()));
    }
    let ended = serve(args, findings)?;
    finish(args, &ended)
}

/// How a switch ended.
pub(crate) struct Ended {
    summary: Summary,
    digests: u64,
}

/// Runs a switch until it is told to end, also without a program, and without ports.
pub(crate) fn serve(args: &RunArgs, findings: &mut Findings) -> Result<Ended, Failure> {
    let log = logging::start(&args.log)?;
    let listen = grpc::listen(&args.grpc)?;
    let (mut pipeline, mut json) = (None, None);
    let (name, program) = match &args.program {
        Some(path) => {
            let loaded = load_any(path, &args.source, findings)?;
            // Clients of Thrift compare the file that they have with it.
            json = loaded.as_image().filter(|_| args.thrift.thrift.is_some()).map(ToString::to_string);
            let program = match listen {
                Some(_) => {
                    let mut made = grpc::pipeline(loaded.image(findings)?)?;
                    if let Some(port) = args.drop_port {
                        made.set_drop_port(port).map_err(Failure::Failed)?;
                    }
                    let program = Arc::clone(made.program());
                    pipeline = Some(made);
                    program
                }
                None => {
                    let mut program = loaded.program(findings)?;
                    if let Some(port) = args.drop_port {
                        set_drop_port(Arc::make_mut(&mut program), port).map_err(Failure::Failed)?;
                    }
                    program
                }
            };
            (program.name.clone(), program)
        }
        None => ("no program".to_owned(), empty_program().map_err(Failure::Failed)?),
    };
    check_ports(args, &program)?;
    let queues = QueueConfig {
        priorities: args.queues.priorities,
        depth: args.queues.queue_depth,
        wait_for_links: args.queues.wait_for_links,
    };
    let config = SwitchConfig {
        engine: args.running.engine.kind(),
        queues,
        count_lookups: args.metrics.metrics.is_some(),
        packet_memory: (args.queues.packet_memory as usize) << 20,
        ..SwitchConfig::default()
    };
    let privileges = privileges(args)?;
    let opener = Opener::start()?;
    privileges.give_up()?;
    let (packet_in, of_peer) = nanomsg::packet_in(&args.packet_in, &program, args.grpc.cpu_port)?;
    let mut switch = Switch::new(program, config).map_err(|error| Failure::Failed(error.to_string()))?;
    if let Some(reason) = switch.without_code() {
        warn!(program = name, reason, "the interpreter runs the program");
    }
    // Before the ports are opened: a refused file leaves output files alone, and no frame waits for the entries.
    if let Some(entries) = &args.entries {
        let path = entries.clone();
        let text = opener.open(move || read(&path))??;
        load_text(&mut switch, entries, &text, findings)?;
    }
    let (captures, mut ports) = captures::open(&args.captures, &args.ports, &opener)?;
    drop(opener);
    ports.extend(of_peer);
    let cpu_port = grpc::cpu_port(&args.grpc, &mut ports)?;
    let numbers = ports.iter().map(|(port, _)| *port).collect();
    let mut worker = Worker::new(switch, ports).map_err(|error| Failure::Failed(error.to_string()))?;
    if let Some(seconds) = args.streams_after {
        worker.replay_streams_after(Duration::from_secs(seconds));
    }
    let mut signals = signals(&log).map_err(|error| Failure::failed("signals", error))?;
    let stopping = signals.handle();
    let control = worker.control();
    let notices = worker.notices();
    if Stories::are_wanted(&args.log) {
        worker.tell_stories();
    }
    let specs: Vec<String> = args.ports.iter().map(ToString::to_string).collect();
    info!(
        program = name,
        version = env!("CARGO_PKG_VERSION"),
        engine = worker.switch_mut().engine_name(),
        "start"
    );
    specs.iter().for_each(|port| info!(port, "port up"));
    captures::start_all(&args.captures, &captures)?;
    let links = Links::of(&args.ports);
    let metrics = observe::serve(&args.metrics, || Shown {
        control: control.clone(),
        captures: Arc::clone(&captures),
        links: links.clone(),
        log: Box::new(LogOfSwitch { log: log.clone(), control: control.clone(), args: args.log.clone() }),
    })?;
    let making = Making {
        engine: args.running.engine.kind(),
        count_lookups: args.metrics.metrics.is_some(),
        drop_port: args.drop_port,
    };
    let server = match listen {
        Some(listen) => {
            let device = DeviceConfig {
                device_id: args.grpc.device_id,
                engine: making.engine,
                count_lookups: making.count_lookups,
                ports: numbers,
                links: links.clone(),
                cpu_port,
                drop_port: making.drop_port,
                pipeline,
            };
            let started = Server::start(&listen, device, control.clone());
            let started = started.map_err(|error| Failure::Failed(error.to_string()))?;
            grpc::warn_of_exposure(&P4RUNTIME, started.address(), listen.admission());
            Some(started)
        }
        None => None,
    };
    let thrift = match &args.thrift.thrift {
        Some(place) => {
            let maker = AddedPorts {
                captures: Arc::clone(&captures),
                captures_all: args.captures.pcap.is_some(),
                links: links.clone(),
                p4runtime: server.as_ref().map(Server::feed),
            };
            let of_server = server.as_ref().map(Server::programs);
            let programs = of_server.unwrap_or_else(|| Programs::new(making, control.clone()));
            // The ports of a peer are there for good, as those of bmv2.
            let maker = packet_in.is_none().then_some(maker);
            Some(thrift::start(&args.thrift, place, args.grpc.device_id, &args.ports, maker, programs, json)?)
        }
        None => None,
    };
    let feeds = (server.as_ref().map(Server::feed), thrift.as_ref().map(millrace_thrift::Server::feed));
    // Clients of Thrift may add ports.
    let watch = (!links.is_empty() || thrift.is_some()).then(|| LinkWatch::new(links));
    let mut watch = watch.transpose().map_err(|error| Failure::failed("links", error))?;
    if let Some(watch) = &mut watch {
        // Before anybody is told that the switch runs.
        tell_changes(watch, &feeds);
    }
    let on = if specs.is_empty() { "no port".to_owned() } else { specs.join(", ") };
    note_line(format_args!("{name} is running on {on}"));
    if let Some(waiting) = &packet_in {
        note_line(format_args!("packet-in: {}", waiting.address()));
    }
    let packet_in = packet_in.map(|waiting| nanomsg::serve(waiting, feeds.1.clone())).transpose()?;
    if let Some(server) = &server {
        note_line(format_args!("P4Runtime: device {} at {}", args.grpc.device_id, server.address()));
        info!(device = args.grpc.device_id, address = %server.address(), "P4Runtime");
    }
    if let Some(thrift) = &thrift {
        note_line(format_args!("Thrift: {}", thrift.address()));
        info!(address = %thrift.address(), "Thrift");
    }
    let digests = AtomicU64::new(0);
    let (stop_watching, watched) = UnixStream::pair().map_err(|error| Failure::failed("links", error))?;
    watched.set_nonblocking(true).map_err(|error| Failure::failed("links", error))?;
    let summary = std::thread::scope(|scope| {
        let (digests, feeds) = (&digests, &feeds);
        let stories = Stories::new(&args.log);
        scope.spawn(move || hear(&notices, digests, feeds, stories));
        if let Some(watch) = watch {
            let control = control.clone();
            scope.spawn(move || tell_links(watch, &watched, &control, feeds));
        }
        let (ended, end) = channel::<()>();
        if std::io::stderr().is_terminal() && !is_quiet() {
            let control = control.clone();
            scope.spawn(move || show_status(&control, &end));
        }
        scope.spawn(move || stop_when_told(&mut signals, &control, &log));
        let summary = worker.run();
        drop((ended, stop_watching));
        stopping.close();
        summary
    });
    drop((packet_in, thrift, server, metrics));
    captures::stop_all(&captures);
    let totals = summary.switch.counters();
    info!(
        rx_packets = totals.ports().map(|(_, port)| port.rx_packets).sum::<u64>(),
        tx_packets = totals.ports().map(|(_, port)| port.tx_packets).sum::<u64>(),
        drops = totals.all_drops().map(|(_, count)| count).sum::<u64>(),
        lost_at_ports = summary.ports.iter().map(|(_, port)| port.rx_missed + port.rx_errors).sum::<u64>(),
        "end"
    );
    Ok(Ended { summary, digests: digests.into_inner() })
}

/// What the switch has to be able to do when it runs. The folder of its captures is there then.
fn privileges(args: &RunArgs) -> Result<Privileges, Failure> {
    let mut privileges = Privileges::new(args.user.as_deref())?;
    let places = [&args.grpc.grpc, &args.thrift.thrift, &args.metrics.metrics];
    places.into_iter().flatten().filter_map(Place::port).for_each(|port| privileges.serves(port));
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

/// What tells the servers of the switch.
type Feeds = (Option<Feed>, Option<millrace_thrift::Feed>);

/// Tells of links that come up and go down, until the other end of `stop` is gone.
fn tell_links(mut watch: LinkWatch, stop: &UnixStream, control: &Control, feeds: &Feeds) {
    loop {
        tell_changes(&mut watch, feeds);
        for (port, mtu) in watch.new_mtus() {
            info!(port, mtu, "link");
        }
        if let Err(error) = watch.wait(stop.as_raw_fd()) {
            error!(%error, "links are not watched any more");
            return;
        }
        // A worker without traffic sleeps; its drivers find out which ports are gone.
        control.look_at_ports();
        // Nothing is ever written there.
        if matches!((&*stop).read(&mut [0]), Ok(0)) {
            return;
        }
    }
}

/// Tells of links that have come up or gone down.
fn tell_changes(watch: &mut LinkWatch, (p4runtime, thrift): &Feeds) {
    for (port, is_up) in watch.changes() {
        let port = port.into();
        info!(port, is_up, "link");
        p4runtime.iter().for_each(|feed| feed.link(port, is_up));
        thrift.iter().for_each(|feed| feed.link(port, is_up));
    }
}

/// Shows what the switch tells until it ends.
fn hear(notices: &Receiver<Notice>, digests: &AtomicU64, (p4runtime, thrift): &Feeds, mut stories: Stories) {
    for notice in notices {
        match notice {
            Notice::Digest { program, message } => {
                digests.fetch_add(1, Ordering::Relaxed);
                thrift.iter().for_each(|feed| feed.digest(&program, &message));
                // What a busy server has no room for is lost, as P4Runtime allows.
                p4runtime.as_ref().map(|feed| feed.digest(program, message));
            }
            Notice::Log(line) => {
                note_line(format_args!("log: {line}"));
                stories.says(&line);
            }
            Notice::Story(story) => stories.tell(*story),
            Notice::PortFailed { port, error } => {
                error!(port, error, "port down");
                tell_line(format_args!("port {port} failed: {error}"));
                p4runtime.iter().for_each(|feed| feed.port_failed(port));
                thrift.iter().for_each(|feed| feed.port_failed(port));
            }
        }
    }
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
    let Ended { summary, digests } = ended;
    let ok = summary.failed.is_empty();
    if args.running.json {
        let mut object = statistics::json(&summary.switch, &summary.ports);
        let failed =
            summary.failed.iter().map(|(port, error)| json!({ "port": port, "error": error.to_string() }));
        object.insert("ok".into(), ok.into());
        object.insert("digests".into(), (*digests).into());
        object.insert("lost_notices".into(), summary.lost_notices.into());
        object.insert("failed_ports".into(), failed.collect());
        say_line(Value::from(object));
    } else {
        say(statistics::text(&summary.switch, &summary.ports));
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
