//! The SNMP agent of `millrace run`: over UDP, and in virtual links of the switch's own end system.

use crate::findings::Failure;
use crate::grpc::{address, warn_of_exposure};
use crate::output::note_line;
use clap::Args;
use millrace_chassis::{Instance, Listener, Modes};
use millrace_dataplane::{DigestMessage, PortId};
use millrace_end_system::{Requests, Service};
use millrace_listen::{Address, Admission, SNMP};
use millrace_observe::Observer;
use millrace_pipeline::Program;
use millrace_snmp::{Feed, Identity, Listen, MAX_COMMUNITY, MAX_TRAP_TARGETS, Server, TrapAddress};
use std::sync::Arc;
use tracing::info;

/// How managers of networks reach the switch.
#[derive(Debug, Args)]
#[command(next_help_heading = "SNMP")]
pub(crate) struct SnmpArgs {
    /// Answers SNMP (versions 1 and 2c, read only) over UDP there, as 1161 (of this machine)
    #[arg(long, value_name = "ADDR|PORT")]
    pub(crate) snmp: Option<Address>,
    /// Lets other machines ask
    #[arg(long, requires = "snmp")]
    snmp_allow_remote: bool,
    /// The community of those who may ask, which traps have too
    #[arg(long, value_name = "WORD", default_value = COMMUNITY, value_parser = community)]
    snmp_community: String,
    /// Tells somebody when the switch starts, when a link comes up or goes down and when its mode changes: ADDR for version 2c,
    /// v1:ADDR for version 1; may be given several times
    #[arg(long, value_name = "[v1:]ADDR")]
    snmp_trap: Vec<TrapAddress>,
    /// The name of the switch (sysName); that of the machine if not given
    #[arg(long, value_name = "NAME")]
    snmp_name: Option<String>,
    /// Where it is (sysLocation)
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    snmp_location: String,
    /// Who looks after it (sysContact)
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    snmp_contact: String,
}

fn community(text: &str) -> Result<String, String> {
    match text.len() {
        1..=MAX_COMMUNITY => Ok(text.to_owned()),
        bytes => Err(format!("a community has 1 to {MAX_COMMUNITY} bytes, not {bytes}")),
    }
}

/// The community of those who may ask, if no other is given.
const COMMUNITY: &str = "public";

/// Where the machine keeps its name.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

impl SnmpArgs {
    fn identity(&self) -> Identity {
        let machine = || std::fs::read_to_string(HOST_NAME).unwrap_or_default().trim().to_owned();
        Identity {
            name: self.snmp_name.clone().unwrap_or_else(machine),
            description: format!("Millrace {}, a P4 switch", env!("CARGO_PKG_VERSION")),
            contact: self.snmp_contact.clone(),
            location: self.snmp_location.clone(),
        }
    }

    /// Whether something is said of an agent.
    fn says_something(&self) -> bool {
        let Identity { contact, location, .. } = self.identity();
        let says_who = self.snmp_name.is_some() || !contact.is_empty() || !location.is_empty();
        says_who || !self.snmp_trap.is_empty() || self.snmp_community != COMMUNITY
    }

    /// How to listen, if at all: over UDP, or in virtual links alone.
    fn listen(&self, is_managed: bool) -> Result<Option<Listen>, Failure> {
        if self.snmp.is_none() && !is_managed {
            return match self.says_something() {
                false => Ok(None),
                true => Err(Failure::Usage(
                    "nobody could ask: --snmp ADDR, or a port `es:FILE,NAME,management=on`, is needed"
                        .to_owned(),
                )),
            };
        }
        if self.snmp_trap.len() > MAX_TRAP_TARGETS {
            return Err(Failure::Usage(format!("--snmp-trap: at most {MAX_TRAP_TARGETS} are told")));
        }
        let resolved = self.snmp_trap.iter().map(|trap| {
            trap.resolve().map_err(|error| Failure::Usage(format!("--snmp-trap {trap}: {error}")))
        });
        Ok(Some(Listen {
            address: self.snmp.as_ref().map(|given| address(given, &SNMP)).transpose()?,
            allow_remote: self.snmp_allow_remote,
            community: self.snmp_community.clone(),
            identity: self.identity(),
            traps: resolved.collect::<Result<_, _>>()?,
        }))
    }
}

/// A running agent. Whoever asks in virtual links is not answered any more before it ends.
pub(crate) struct Agent {
    _in_links: Option<Service>,
    server: Server,
}

/// Starts the agent, if one is wanted: over UDP, and for the requests that come to the switch's own end system.
pub(crate) fn serve(
    args: &SnmpArgs,
    requests: Option<Requests>,
    observer: impl FnOnce() -> Observer,
) -> Result<Option<Agent>, Failure> {
    let Some(listen) = args.listen(requests.is_some())? else { return Ok(None) };
    let observer = observer();
    let status = Box::new(move || observer.status().map_err(|error| error.to_string()));
    let server = Server::start(listen, status).map_err(|error| Failure::Failed(error.to_string()))?;
    if let Some(address) = server.address() {
        warn_of_exposure(&SNMP, address, Admission::Anybody);
        note_line(format_args!("SNMP: udp:{address}"));
        info!(%address, "SNMP");
    }
    let in_links = requests.map(|requests| requests.serve(server.answers())).transpose();
    let in_links = in_links.map_err(|error| Failure::failed("SNMP in virtual links", error))?;
    Ok(Some(Agent { _in_links: in_links, server }))
}

/// Has the agent, if there is one, hear of links, ports and modes, and tell that the switch starts.
pub(crate) fn listen(agent: Option<&Agent>, instance: &mut Instance, modes: &Modes) {
    let Some(agent) = agent else { return };
    let feed = agent.server.feed();
    instance.add_listener(Arc::new(Hears(feed.clone())));
    feed.started();
    modes.add_listener(move |from, to| feed.mode(from.name(), to.name()));
}

/// Tells the agent of links and ports.
struct Hears(Feed);

impl Listener for Hears {
    fn digest(&self, _: &Arc<Program>, _: &DigestMessage) {}

    fn link(&self, port: PortId, is_up: bool) {
        self.0.link(port, is_up);
    }

    fn port_failed(&self, port: PortId, _: &str) {
        self.0.failed(port);
    }
}
