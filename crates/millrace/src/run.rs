//! `millrace run`.

use crate::added_ports::AddedPorts;
use crate::cli::RunArgs;
use crate::entries::load_file;
use crate::findings::{Failure, Findings};
use crate::output::{say, say_line, tell_line};
use crate::source::load_any;
use crate::{captures, demo, grpc, logging, observe, progress, statistics, thrift};
use millrace_compile::set_drop_port;
use millrace_control::commands::number_trace;
use millrace_p4runtime::{DeviceConfig, Feed, Making, Programs, Server, empty_program};
use millrace_ports::{LinkWatch, Links};
use millrace_switch::{Control, Notice, QueueConfig, Summary, Switch, SwitchConfig, Worker};
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{IsTerminal, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use tracing::{Level, debug, enabled, error, info, trace};

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
    if args.ports.is_empty() {
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
    logging::start(&args.log)?;
    let listen = grpc::listen(&args.grpc)?;
    let (mut pipeline, mut json) = (None, None);
    let (name, program) = match &args.program {
        Some(path) => {
            let loaded = load_any(path, &args.source, findings)?;
            // Clients of Thrift compare the file that they have with it.
            json = loaded.as_image().filter(|_| args.thrift.is_some()).map(ToString::to_string);
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
    let queues = QueueConfig {
        priorities: args.queues.priorities,
        depth: args.queues.queue_depth,
        wait_for_links: args.queues.wait_for_links,
    };
    let config = SwitchConfig {
        engine: args.running.engine.kind(),
        queues,
        count_lookups: args.metrics.metrics.is_some(),
        ..SwitchConfig::default()
    };
    let mut switch = Switch::new(program, config).map_err(|error| Failure::Failed(error.to_string()))?;
    // Before the ports are opened: a refused file leaves output files alone, and no frame waits for the entries.
    if let Some(entries) = &args.entries {
        load_file(&mut switch, entries, findings)?;
    }
    let (captures, mut ports) = captures::open(&args.captures, &args.ports)?;
    let cpu_port = grpc::cpu_port(&args.grpc, &mut ports)?;
    let numbers = ports.iter().map(|(port, _)| *port).collect();
    let mut worker = Worker::new(switch, ports).map_err(|error| Failure::Failed(error.to_string()))?;
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(|error| Failure::failed("signals", error))?;
    let stopping = signals.handle();
    let control = worker.control();
    let notices = worker.notices();
    if enabled!(Level::TRACE) {
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
    let metrics = observe::serve(&args.metrics, &control, &captures)?;
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
                cpu_port,
                drop_port: making.drop_port,
                pipeline,
            };
            let started = Server::start(&listen, device, control.clone());
            Some(started.map_err(|error| Failure::Failed(error.to_string()))?)
        }
        None => None,
    };
    let links = Links::of(&args.ports);
    let thrift = match &args.thrift {
        Some(address) => {
            let maker = AddedPorts {
                captures: Arc::clone(&captures),
                captures_all: args.captures.pcap.is_some(),
                links: links.clone(),
                p4runtime: server.as_ref().map(Server::feed),
            };
            let of_server = server.as_ref().map(Server::programs);
            let programs = of_server.unwrap_or_else(|| Programs::new(making, control.clone()));
            Some(thrift::start(address, args.grpc.device_id, &args.ports, maker, programs, json)?)
        }
        None => None,
    };
    tell_line(format_args!("{name} is running on {}", specs.join(", ")));
    if let Some(server) = &server {
        tell_line(format_args!("P4Runtime: device {} at {}", args.grpc.device_id, server.address()));
        info!(device = args.grpc.device_id, address = %server.address(), "P4Runtime");
    }
    if let Some(thrift) = &thrift {
        tell_line(format_args!("Thrift: {}", thrift.address()));
        info!(address = %thrift.address(), "Thrift");
    }
    let feeds = (server.as_ref().map(Server::feed), thrift.as_ref().map(millrace_thrift::Server::feed));
    let digests = AtomicU64::new(0);
    // Clients of Thrift may add ports.
    let watch = (!links.is_empty() || thrift.is_some()).then(|| LinkWatch::new(links));
    let watch = watch.transpose().map_err(|error| Failure::failed("links", error))?;
    let (stop_watching, watched) = UnixStream::pair().map_err(|error| Failure::failed("links", error))?;
    watched.set_nonblocking(true).map_err(|error| Failure::failed("links", error))?;
    let summary = std::thread::scope(|scope| {
        let (digests, feeds) = (&digests, &feeds);
        scope.spawn(move || hear(&notices, digests, feeds));
        if let Some(watch) = watch {
            scope.spawn(move || tell_links(watch, &watched, feeds));
        }
        let (ended, end) = channel::<()>();
        if std::io::stderr().is_terminal() {
            let control = control.clone();
            scope.spawn(move || show_status(&control, &end));
        }
        scope.spawn(move || stop_when_told(&mut signals, &control));
        let summary = worker.run();
        drop((ended, stop_watching));
        stopping.close();
        summary
    });
    drop((thrift, server, metrics));
    captures::stop_all(&captures);
    let totals = summary.switch.counters();
    info!(
        rx_packets = totals.ports().map(|(_, port)| port.rx_packets).sum::<u64>(),
        tx_packets = totals.ports().map(|(_, port)| port.tx_packets).sum::<u64>(),
        drops = totals.all_drops().map(|(_, count)| count).sum::<u64>(),
        "end"
    );
    Ok(Ended { summary, digests: digests.into_inner() })
}

/// What tells the servers of the switch.
type Feeds = (Option<Feed>, Option<millrace_thrift::Feed>);

/// Tells of links that come up and go down, until the other end of `stop` is gone.
fn tell_links(mut watch: LinkWatch, stop: &UnixStream, (p4runtime, thrift): &Feeds) {
    loop {
        for (port, is_up) in watch.changes() {
            let port = port.into();
            info!(port, is_up, "link");
            p4runtime.iter().for_each(|feed| feed.link(port, is_up));
            thrift.iter().for_each(|feed| feed.link(port, is_up));
        }
        if let Err(error) = watch.wait(stop.as_raw_fd()) {
            error!(%error, "links are not watched any more");
            return;
        }
        // Nothing is ever written there.
        if matches!((&*stop).read(&mut [0]), Ok(0)) {
            return;
        }
    }
}

/// Shows what the switch tells until it ends.
fn hear(notices: &Receiver<Notice>, digests: &AtomicU64, (p4runtime, thrift): &Feeds) {
    for notice in notices {
        match notice {
            Notice::Digest { program, message } => {
                digests.fetch_add(1, Ordering::Relaxed);
                // What a busy server has no room for is lost, as P4Runtime allows.
                p4runtime.as_ref().map(|feed| feed.digest(program, message));
            }
            Notice::Log(line) => {
                tell_line(format_args!("log: {line}"));
                debug!(line, "the program says");
            }
            Notice::Story(mut story) => {
                number_trace(&mut story);
                story.to_string().lines().for_each(|line| trace!("{line}"));
            }
            Notice::PortFailed { port, error } => {
                error!(port, error, "port down");
                tell_line(format_args!("port {port} failed: {error}"));
                p4runtime.iter().for_each(|feed| feed.port_failed(port));
                thrift.iter().for_each(|feed| feed.port_failed(port));
            }
        }
    }
}

/// The first signal asks the switch to end, a second one does not wait for it.
fn stop_when_told(signals: &mut Signals, control: &Control) {
    for (earlier, _) in signals.forever().enumerate() {
        match earlier {
            0 => {
                info!("asked to end");
                control.stop();
            }
            _ => std::process::exit(1),
        }
    }
}

/// A line on the terminal, once a second, until the switch ends.
fn show_status(control: &Control, end: &Receiver<()>) {
    loop {
        let counted = control.call(|switch| {
            let mut totals = (0, 0);
            for (_, counters) in switch.counters().ports() {
                totals.0 += counters.rx_packets;
                totals.1 += counters.tx_packets;
            }
            (totals, switch.counters().all_drops().map(|(_, count)| count).sum::<u64>())
        });
        let Ok(((received, sent), dropped)) = counted else { return progress::status("") };
        progress::status(&format!("{received} packets in, {sent} out, {dropped} dropped"));
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
