//! What a switch has over nanomsg: listeners at addresses as nanomsg writes them, and ports of a peer.

use crate::captures::OpenPort;
use crate::findings::Failure;
use crate::grpc;
use crate::output::tell_line;
use clap::Args;
use millrace_compile::check_port;
use millrace_dataplane::{MAX_PORTS, PortId};
use millrace_drivers::QueuePair;
use millrace_listen::{Address, Admission, PACKET_IN, Service};
use millrace_pipeline::Program;
use millrace_thrift::{Feed, NanomsgListener, PacketIn, PacketInServer, PortChange};
use std::path::Path;
use tracing::{info, warn};

/// What bmv2 calls the interface of a port that a peer has.
const INTERFACE: &str = "N/A";

/// Ports whose frames one peer sends and gets, for the options of bmv2.
#[derive(Debug, Args)]
pub(crate) struct PacketInArgs {
    /// Where it connects to: ipc://FILE or tcp://ADDR:PORT
    #[arg(long, value_name = "ADDR", conflicts_with = "ports", hide = true)]
    pub(crate) packet_in: Option<String>,
    /// How many ports it has
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=MAX_PORTS as i64))]
    #[arg(requires = "packet_in", conflicts_with = "ports", hide = true)]
    pub(crate) packet_in_ports: u32,
    /// Lets other machines be the peer
    #[arg(long, requires = "packet_in", hide = true)]
    pub(crate) packet_in_allow_remote: bool,
}

/// Listens at an address as nanomsg writes it.
pub(crate) fn listener(
    service: &'static Service,
    address: &str,
    allow_remote: bool,
) -> Result<NanomsgListener, Failure> {
    let name = service.option;
    let failed =
        |error: std::io::Error| Failure::failed(format!("{name}: cannot listen at {address}"), error);
    if let Some(path) = address.strip_prefix("ipc://") {
        return NanomsgListener::over_file(Path::new(path)).map_err(failed);
    }
    let Some(given) = address.strip_prefix("tcp://") else {
        let expected = "ipc://FILE or tcp://ADDRESS:PORT is expected";
        return Err(Failure::Usage(format!("{name} `{address}`: {expected}")));
    };
    let given = given.replacen('*', "0.0.0.0", 1);
    let given = given.parse::<Address>();
    let given = given.map_err(|error| Failure::Usage(format!("{name} {address}: {error}")))?;
    let at = grpc::address(&given, service)?;
    let bound = millrace_listen::bind(service, at, Admission::Anybody, allow_remote);
    let listener = bound.map_err(|error| Failure::Failed(error.to_string()))?;
    let listener = NanomsgListener::over_tcp(listener).map_err(failed)?;
    grpc::warn_of_exposure(service, at, Admission::Anybody);
    Ok(listener)
}

/// The ports that a peer will have: all that the program has numbers for, but for that of the controller.
pub(crate) fn packet_in(
    args: &PacketInArgs,
    program: &Program,
    cpu_port: Option<PortId>,
) -> Result<(Option<PacketIn>, Vec<OpenPort>), Failure> {
    let Some(address) = &args.packet_in else { return Ok((None, Vec::new())) };
    let listener = listener(&PACKET_IN, address, args.packet_in_allow_remote)?;
    let numbers = (0..args.packet_in_ports).take_while(|number| check_port(program, *number).is_ok());
    let numbers = numbers.filter(|number| Some(*number) != cpu_port);
    let (waiting, made) = millrace_thrift::packet_in(listener, numbers)
        .map_err(|error| Failure::failed("--packet-in", error))?;
    let ports = made.into_iter().map(|(number, port)| (number, vec![Box::new(port) as Box<dyn QueuePair>]));
    Ok((Some(waiting), ports.collect()))
}

/// Lets the peer come.
pub(crate) fn serve(waiting: PacketIn, thrift: Option<Feed>) -> Result<PacketInServer, Failure> {
    info!(address = waiting.address(), "packet-in");
    let tell = move |change| match (change, &thrift) {
        (PortChange::Added(port), Some(feed)) => feed.show_port(port, INTERFACE),
        (PortChange::Removed(port), Some(feed)) => feed.hide_port(port),
        (PortChange::Link(port, is_up), Some(feed)) => feed.show_link(port, is_up),
        (PortChange::Refused(refusal), _) => {
            warn!(%refusal, "packet-in");
            tell_line(format_args!("packet-in: {refusal}; such messages are left out"));
        }
        (PortChange::Added(_) | PortChange::Removed(_) | PortChange::Link(..), None) => {}
    };
    waiting.serve(tell).map_err(|error| Failure::failed("--packet-in", error))
}
