//! A switch of the device, with all that serves it.

use crate::acts_as::{ActsAs, Owner};
use crate::clients::Clients;
use crate::cpu::{PacketIns, PacketOuts};
use crate::entered::next_identity;
use crate::failure::Failure;
use crate::published::outside;
use crate::shadow::Shadow;
use millrace_access::Tenant;
use millrace_backplane::{Backplane, ExitShare, MemberHandle, MemberSetting, TimeShare, Traffic};
use millrace_chassis::{Listener, Making, Pipeline, Programs, tell_of};
use millrace_compile::check_port;
use millrace_control::entries;
use millrace_dataplane::{Clock, DigestMessage, EngineKind, Notice, PortId, Quotas, Switch, SwitchConfig};
use millrace_device_file::{Device, Engine, Quota, Switch as Model, VirtualPort};
use millrace_drivers::{Captures, DEFAULT_CAPTURE_FILE, Links};
use millrace_listen::{Admission, THRIFT_OF_SWITCH};
use millrace_observe::Watched;
use millrace_p4runtime::{CpuLink, DeviceConfig, Feed, Served, Share, SharedServer};
use millrace_pipeline::Program;
use millrace_syntax::read_text;
use millrace_thrift::PortName;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, PoisonError, RwLock};
use tracing::{info, warn};

/// Packets that wait for a port of a switch, if its quota does not say less.
pub(crate) const PLACES: usize = 1024;
/// Largest file of entries, in bytes.
const MAX_ENTRIES_FILE: u64 = 4 << 30;
/// Most refused entries that an error names.
const MAX_TOLD: usize = 20;
/// Memory for the stack of a thread that only hands on what it hears, in bytes.
const SMALL_STACK: usize = 128 << 10;

/// See the module's documentation.
pub(crate) struct Installed {
    pub(crate) member: MemberHandle,
    pub(crate) captures: Arc<Captures>,
    /// How the HTTP server sees it.
    pub(crate) watched: Arc<Watched>,
    pub(crate) programs: Programs,
    feed: Option<Feed>,
    thrift: Option<millrace_thrift::Server>,
    /// As its Thrift server is told.
    owner: Owner,
    listeners: Listeners,
    /// What was set last by the file or over the socket: an image, or the text of a program.
    pub(crate) config: Vec<u8>,
    /// The program of that.
    pub(crate) program: Arc<Program>,
    /// What ran before it, to be rolled back to.
    pub(crate) before: Option<Before>,
    /// A candidate that runs next to it.
    pub(crate) shadow: Option<Shadow>,
    /// Whether the program came over the socket, so that the file names another.
    pub(crate) is_foreign: bool,
    /// What tells it from another one that gets its name ([`crate::entered`]).
    pub(crate) identity: u64,
    /// Counts the programs that were set, so that whoever watches one knows whether it still is that.
    pub(crate) generation: u64,
}

/// A program that ran, with what it held when another took over.
#[derive(Clone)]
pub(crate) struct Before {
    /// Its image, or its text.
    pub(crate) config: Vec<u8>,
    /// Commands that make its entries and state again.
    pub(crate) state: String,
}

/// Who hears of a switch. Threads that tell them and those that add some share it.
type Listeners = Arc<RwLock<Vec<Arc<dyn Listener>>>>;

/// What a switch is made of, which has not been done to anything that runs.
pub(crate) struct Prepared {
    pub(crate) pipeline: Pipeline,
    switch: Switch,
}

impl Prepared {
    /// A switch that has run.
    pub(crate) fn of_running(pipeline: Pipeline, switch: Switch) -> Prepared {
        Prepared { pipeline, switch }
    }
}

/// Makes a switch as the file says, with its entries.
pub(crate) fn prepare(model: &Model, pipeline: Pipeline, of_device: &Making) -> Result<Prepared, Failure> {
    let named = |reason: String| Failure::of_switch(&model.name, reason);
    for port in model.ports.iter().map(|port| port.number).chain(model.cpu_port) {
        check_port(&pipeline.program, port.into()).map_err(named)?;
    }
    let Making { engine, count_lookups, .. } = making(model, of_device);
    let config = SwitchConfig {
        engine,
        count_lookups,
        clock: Clock::real(),
        quotas: quotas(&model.quota),
        ..SwitchConfig::default()
    };
    let made = Switch::new(Arc::clone(&pipeline.program), config);
    let mut switch = made.map_err(|error| named(error.to_string()))?;
    if let Some(reason) = switch.without_code() {
        warn!(switch = model.name, reason, "the interpreter runs the program");
    }
    load_entries(&mut switch, &model.entries).map_err(named)?;
    Ok(Prepared { pipeline, switch })
}

/// Loads files of entries.
pub(crate) fn load_entries(switch: &mut Switch, files: &[String]) -> Result<(), String> {
    for path in files {
        let text =
            read_text(Path::new(path), MAX_ENTRIES_FILE).map_err(|error| format!("{path}: {error}"))?;
        entries::load(switch, &text).map_err(|refused| {
            told(path, &text, refused.iter().map(|refusal| (refusal.at.start, refusal.message.as_str())))
        })?;
    }
    Ok(())
}

/// What is wrong with a text by the bytes where it is, each with its line; `name` is what the text is called.
pub(crate) fn told<'r>(
    name: &str,
    text: &str,
    refused: impl ExactSizeIterator<Item = (usize, &'r str)>,
) -> String {
    let line =
        |at: usize| text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1;
    let more = refused.len().saturating_sub(MAX_TOLD);
    let each = refused.take(MAX_TOLD).map(|(at, message)| format!("{name}:{}: {message}", line(at)));
    let mut told: Vec<String> = each.collect();
    if more > 0 {
        told.push(format!("and {more} more"));
    }
    told.join("\n")
}

/// What runs a program, in the words of the data path; `others` runs those that do not say.
pub(crate) fn engine(engine: Engine, others: EngineKind) -> EngineKind {
    match engine {
        Engine::Auto => others,
        Engine::Jit => EngineKind::Jit,
        Engine::Interp => EngineKind::Interp,
        Engine::Rtl => EngineKind::Rtl,
    }
}

/// How the programs of a switch are made, where those of a device are made like that.
fn making(model: &Model, of_device: &Making) -> Making {
    Making { engine: engine(model.engine, of_device.engine), ..of_device.clone() }
}

/// The share of the time of a worker that a quota gives.
pub(crate) fn time_share(quota: &Quota) -> TimeShare {
    TimeShare { guaranteed: quota.time, largest: quota.largest_time }
}

/// What a switch cannot exceed inside.
pub(crate) fn quotas(quota: &Quota) -> Quotas {
    Quotas {
        clones_per_second: quota.clones_per_second,
        recirculations_per_second: quota.recirculations_per_second,
        copies_per_second: quota.copies_per_second,
        digests_per_second: quota.digests_per_second,
        log_lines_per_second: quota.log_lines_per_second,
        packet_buffers: quota.packet_buffers,
        queue_places: quota.queue_places,
        entries: quota.entries,
        memory: quota.memory,
    }
}

/// What may come in, by a quota.
pub(crate) fn traffic(quota: &Quota) -> Traffic {
    Traffic { packets: quota.packets_per_second, bits: quota.bits_per_second }
}

/// Packets that may wait for a port.
pub(crate) fn places(quota: &Quota) -> usize {
    quota.queue_places.map_or(PLACES, |places| (places as usize).min(PLACES)).max(1)
}

/// What a switch has of the P4Runtime server.
pub(crate) fn server_share(model: &Model) -> Share {
    let per_second = model.quota.requests_per_second;
    // A quota of none at all lets the fewest in that can be said.
    let requests_per_second = per_second
        .map(|count| NonZeroU32::new(u32::try_from(count).unwrap_or(u32::MAX)).unwrap_or(NonZeroU32::MIN));
    Share { tenant: owner(model), requests_per_second }
}

/// The tenant of a switch; its name is right in a file that was read.
pub(crate) fn owner(model: &Model) -> Option<Tenant> {
    model.tenant.as_ref().and_then(|name| name.parse().ok())
}

/// What a virtual port may send by a port of the machine.
pub(crate) fn exit_share(port: &VirtualPort, quota: &Quota) -> ExitShare {
    ExitShare { guaranteed: port.guaranteed, largest: port.largest, places: places(quota) }
}

impl Installed {
    /// Has a lane run a switch, and serves it.
    pub(crate) fn new(
        model: &Model,
        prepared: Prepared,
        (backplane, lane): (&Backplane, usize),
        (server, device, clients): (Option<&SharedServer>, &Device, &Arc<Clients>),
        of_device: &Making,
    ) -> Result<Installed, Failure> {
        let Prepared { pipeline, switch } = prepared;
        let (config, program) = (pipeline.device_config.clone(), Arc::clone(&pipeline.program));
        let numbers = model.ports.iter().map(|port| port.number).chain(model.cpu_port);
        // A name is one part of a path.
        let folder = device.captures.as_ref().map(|folder| Path::new(folder).join(&model.name));
        let captures = Captures::idle(folder.as_deref(), DEFAULT_CAPTURE_FILE).map_err(Failure::failed)?;
        let captures = Arc::new(captures);
        let setting = MemberSetting {
            ports: numbers.map(PortId::from).collect(),
            places: places(&model.quota),
            share: time_share(&model.quota),
            traffic: traffic(&model.quota),
            captures: Some(Arc::clone(&captures)),
        };
        let mut member = backplane.add_member(lane, switch, &setting).map_err(Failure::failed)?;
        backplane.set_stopped(&member, true);
        let notices = member.notices.take();
        let served = serve(model, &member, backplane, server, (pipeline, making(model, of_device)));
        let (programs, feed) = match served {
            Ok(served) => served,
            Err(failure) => {
                let _ = backplane.remove_member(member);
                return Err(failure);
            }
        };
        let listeners: Vec<Arc<dyn Listener>> = [Arc::new(Named(model.name.clone())) as Arc<dyn Listener>]
            .into_iter()
            .chain(feed.clone().map(|feed| Arc::new(feed) as Arc<dyn Listener>))
            .collect();
        let counts = Arc::clone(&member.counts);
        let watched = Watched::new(member.control.clone(), Arc::clone(&captures), move || outside(&counts));
        let mut installed = Installed {
            member,
            captures,
            watched: Arc::new(watched),
            programs,
            feed,
            thrift: None,
            owner: Arc::new(RwLock::new(owner(model))),
            listeners: Arc::new(RwLock::new(listeners)),
            config,
            program,
            before: None,
            shadow: None,
            is_foreign: false,
            identity: next_identity(),
            generation: 0,
        };
        let begun = installed.listen(notices).and_then(|()| installed.serve_thrift(model, clients));
        match begun {
            Ok(()) => Ok(installed),
            Err(failure) => {
                let _ = installed.end(model.device_id, backplane, server);
                Err(failure)
            }
        }
    }

    /// Tells of what happens to packets, until the switch ends.
    fn listen(&self, notices: Option<Receiver<Notice>>) -> Result<(), Failure> {
        let Some(notices) = notices else { return Ok(()) };
        let listeners = Arc::clone(&self.listeners);
        let tell = move || {
            for notice in notices {
                let listeners = listeners.read().unwrap_or_else(PoisonError::into_inner);
                tell_of(&notice, &listeners);
            }
        };
        let thread = std::thread::Builder::new().name("notices".into()).stack_size(SMALL_STACK);
        thread.spawn(tell).map(drop).map_err(Failure::failed)
    }

    /// Has its Thrift server be as the file says.
    pub(crate) fn serve_thrift(&mut self, model: &Model, clients: &Arc<Clients>) -> Result<(), Failure> {
        // The address may be the same, and is free only then.
        if self.thrift.take().is_some() {
            self.listeners
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .truncate(1 + usize::from(self.feed.is_some()));
        }
        let Some(address) = &model.thrift else { return Ok(()) };
        let named = |error: &dyn std::fmt::Display| {
            Failure::failed(format_args!("Thrift of switch {}: {error}", model.name))
        };
        let address: millrace_listen::Address = address.parse().map_err(|error| named(&error))?;
        let address = address.resolve(THRIFT_OF_SWITCH.default_port).map_err(|error| named(&error))?;
        let is_open = model.thrift_allow_remote;
        let bound = millrace_listen::bind(&THRIFT_OF_SWITCH, address, Admission::Anybody, is_open);
        let listener = bound.map_err(|error| named(&error))?;
        let name =
            |port: &VirtualPort| PortName { number: port.number.into(), interface: port.physical.join("+") };
        let device = millrace_thrift::DeviceConfig {
            programs: self.programs.clone(),
            device_id: model.device_id,
            ports: model.ports.iter().map(name).collect(),
            maker: None,
            made_from: None,
            notifications: None,
            guard: Some(Arc::new(ActsAs {
                clients: Arc::clone(clients),
                switch: model.name.clone(),
                device_id: model.device_id,
                name: model.thrift_as.clone(),
                owner: Arc::clone(&self.owner),
            })),
        };
        let server = millrace_thrift::serve(listener, device).map_err(|error| named(&error))?;
        info!(switch = model.name, address = %server.address(), "Thrift");
        self.listeners.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(server.feed()));
        self.thrift = Some(server);
        Ok(())
    }

    /// Another tenant has it.
    pub(crate) fn set_owner(&self, model: &Model) {
        *self.owner.write().unwrap_or_else(PoisonError::into_inner) = owner(model);
    }

    /// Where its Thrift server listens.
    pub(crate) fn thrift(&self) -> Option<SocketAddr> {
        self.thrift.as_ref().map(millrace_thrift::Server::address)
    }

    /// Tells its servers of a port that has come or gone.
    pub(crate) fn tell_port(&self, port: PortId, is_there: bool) {
        if let Some(feed) = &self.feed {
            match is_there {
                true => feed.port_added(port),
                false => feed.port_removed(port),
            }
        }
    }

    /// Takes it from its lane, and from its servers.
    pub(crate) fn end(
        self,
        device_id: u64,
        backplane: &Backplane,
        server: Option<&SharedServer>,
    ) -> Result<Switch, Failure> {
        drop(self.thrift);
        if let Some(server) = server {
            server.devices().remove(device_id);
        }
        Ok(backplane.remove_member(self.member).map_err(Failure::failed)?.switch)
    }
}

/// Has the P4Runtime server show a switch, if there is one.
fn serve(
    model: &Model,
    member: &MemberHandle,
    backplane: &Backplane,
    server: Option<&SharedServer>,
    (pipeline, making): (Pipeline, Making),
) -> Result<(Programs, Option<Feed>), Failure> {
    let control = member.control.clone();
    let Some(server) = server else { return Ok((Programs::new(making, control), None)) };
    let cpu_port = model.cpu_port.map(PortId::from).and_then(|port| {
        let wire = member.wire(port)?;
        let (link, from_switch) = CpuLink::over(Arc::new(PacketOuts(Arc::clone(wire))));
        backplane.connect_host(wire, Box::new(PacketIns(from_switch)));
        Some((port, link))
    });
    let config = DeviceConfig {
        device_id: model.device_id,
        making,
        ports: member.wires.iter().map(|wire| wire.port()).collect(),
        links: Links::default(),
        cpu_port,
        pipeline: Some(pipeline),
    };
    let added = server.devices().add(config, control, server_share(model));
    let Served { feed, programs } = added.map_err(Failure::failed)?;
    Ok((programs, Some(feed)))
}

/// Writes to the log what a switch tells, under its name.
struct Named(String);

impl Listener for Named {
    fn digest(&self, _program: &Arc<Program>, _message: &DigestMessage) {}

    fn link(&self, _port: PortId, _is_up: bool) {}

    fn port_failed(&self, port: PortId, error: &str) {
        warn!(switch = self.0, port, error, "port failed");
    }

    fn log(&self, line: &str) {
        info!(switch = self.0, line, "log of the program");
    }
}
