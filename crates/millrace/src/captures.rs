//! The ports of a run, and what is captured of them.

use crate::cli::CaptureArgs;
use crate::cores::WorkerArgs;
use crate::es;
use crate::findings::Failure;
use crate::output::tell_line;
use crate::privileges::Opener;
use millrace_dataplane::PortId;
use millrace_drivers::{
    CaptureError, CaptureStatus, Captures, Device, Driver, InterfaceSpec, PortSpec, QueuePair,
};
use millrace_end_system::Requests;
use std::path::Path;
use std::sync::Arc;
use tracing::{info, warn};

/// A port with its number, open: one queue pair, or one for each worker.
pub(crate) type OpenPort = (PortId, Vec<Box<dyn QueuePair>>);

/// The folder of captures, if there is one.
pub(crate) fn folder(args: &CaptureArgs) -> Option<&Path> {
    args.pcap.as_deref().or(args.pcap_dir.as_deref())
}

/// What was opened.
pub(crate) struct Opened {
    pub(crate) captures: Arc<Captures>,
    pub(crate) ports: Vec<OpenPort>,
    /// What the switch's own end system is asked, if it has one.
    pub(crate) requests: Option<Requests>,
}

/// Opens ports for these workers, such that they can be captured.
pub(crate) fn open(
    args: &CaptureArgs,
    workers: &WorkerArgs,
    specs: &[PortSpec],
    opener: &Opener,
) -> Result<Opened, Failure> {
    let folder = folder(args);
    let made = Captures::new(folder, args.pcap_max.saturating_mul(1 << 20));
    let captures = made.map_err(|error| Failure::Failed(error.to_string()))?;
    let (mut ports, mut requests) = (Vec::new(), None);
    let among = specs.len();
    for spec in specs {
        let interface = spec.interface.clone();
        let failed = |error| Failure::failed(spec, error);
        let (device, asked) = opener.open(move || device(&interface, among))??;
        requests = requests.or(asked);
        let queues = workers.queue_pairs(device.max_queues());
        let pairs = opener.open(move || device.open(queues))?.map_err(failed)?;
        for (queue_pair, pair) in pairs.iter().enumerate() {
            if let Some(remark) = pair.remark() {
                info!(port = spec.to_string(), queue_pair, remark, "port open");
            }
        }
        let number = PortId::from(spec.port);
        ports.push((number, captures.watch(number, &spec.interface, pairs)));
    }
    Ok(Opened { captures: Arc::new(captures), ports, requests })
}

/// The device of a port, and what it is asked, if it is the switch's own end system.
fn device(interface: &InterfaceSpec, among: usize) -> Result<(Box<dyn Device>, Option<Requests>), Failure> {
    match interface.driver {
        Driver::Es => es::port(interface),
        _ => millrace_drivers::device_among(interface, among)
            .map(|device| (device, None))
            .map_err(|error| Failure::failed(interface, error)),
    }
}

/// Captures all ports, if that is asked for.
pub(crate) fn start_all(args: &CaptureArgs, captures: &Captures) -> Result<(), Failure> {
    if args.pcap.is_some() {
        for port in captures.ports() {
            let started = captures.start(port, None).map_err(|error| Failure::Failed(error.to_string()))?;
            info!(port, file = %started.incoming.display(), "capture on");
        }
    }
    Ok(())
}

/// Brings all captures to their end.
pub(crate) fn stop_all(captures: &Captures) {
    for capture in captures.status() {
        let port = capture.port;
        stopped(port, captures.stop(port));
    }
}

/// Tells how a capture ended.
pub(crate) fn stopped(port: PortId, ended: Result<CaptureStatus, CaptureError>) {
    match ended {
        Ok(ended) => {
            let (packets, lost) = (ended.packets, ended.lost);
            if let Some(error) = &ended.error {
                warn!(port, packets, lost, error, "capture off");
                let whole = format!("{packets} frames are in its files");
                tell_line(format_args!("the capture of port {port} is not whole: {error}; {whole}"));
            } else {
                info!(port, packets, lost, "capture off");
            }
            if ended.lost > 0 {
                tell_line(format_args!("port {port}: {} frames are missing in its capture", ended.lost));
            }
        }
        Err(error) => {
            warn!(port, %error, "capture off");
            tell_line(format_args!("the capture of port {port} is not whole: {error}"));
        }
    }
}
