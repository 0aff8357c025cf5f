//! A device before anybody is served: its parts put together, and what brings it the news of its switch.

use crate::cpu_port::CpuLink;
use crate::device::{Device, Event, PortState};
use crate::devices::Share;
use crate::forwarding::{Forwarding, Loaded};
use crate::interfaces::Interfaces;
use crate::programs::take_orders;
use crate::shadow::Shadow;
use crate::tasks;
use crate::write::Ports;
use millrace_chassis::{Listener, Making, Orders, Pipeline, Programs};
use millrace_dataplane::{Control, DigestMessage, PortId};
use millrace_drivers::Links;
use millrace_pipeline::Program;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};

/// Most digests and other news that wait for the server.
const MAX_EVENTS: usize = 4096;

/// A device that a server shows.
#[derive(Debug)]
pub struct DeviceConfig {
    /// Its id.
    pub device_id: u64,
    /// How the programs are made that controllers bring.
    pub making: Making,
    /// The ports of the switch.
    pub ports: BTreeSet<PortId>,
    /// The interfaces of the ports, for gNMI.
    pub links: Links,
    /// The port of the controller.
    pub cpu_port: Option<(PortId, CpuLink)>,
    /// The program that runs; none while a controller has not brought one.
    pub pipeline: Option<Pipeline>,
}

/// Brings the server what the switch tells.
#[derive(Clone)]
pub struct Feed {
    events: mpsc::Sender<Event>,
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Feed")
    }
}

impl Feed {
    /// The switch has a port more. Not to be called where tokio runs.
    pub fn port_added(&self, port: PortId) {
        self.port(port, PortState::Added);
    }

    /// The switch does not have a port any more. Not to be called where tokio runs.
    pub fn port_removed(&self, port: PortId) {
        self.port(port, PortState::Removed);
    }

    fn port(&self, port: PortId, state: PortState) {
        // The server has ended, or hears of it.
        let _ = self.events.blocking_send(Event::Port(port, state));
    }
}

impl Listener for Feed {
    /// What a busy server has no room for is lost, as P4Runtime allows.
    fn digest(&self, program: &Arc<Program>, message: &DigestMessage) {
        let _ = self.events.try_send(Event::Digest(Arc::clone(program), message.clone()));
    }

    /// Not to be called where tokio runs.
    fn port_failed(&self, port: PortId, _error: &str) {
        self.port(port, PortState::Failed);
    }

    /// Not to be called where tokio runs.
    fn link(&self, port: PortId, is_up: bool) {
        self.port(port, if is_up { PortState::Up } else { PortState::Down });
    }
}

/// A device that nobody is served yet.
pub(crate) struct Opened {
    device: Arc<Device>,
    news: mpsc::Receiver<Event>,
    frames: Option<mpsc::Receiver<Vec<u8>>>,
    programs: Programs,
    orders: Orders,
}

impl Opened {
    /// Puts it together; an error says why its program cannot be described to controllers. Programs for it are made with one
    /// of the places of `all`.
    pub(crate) fn new(
        config: DeviceConfig,
        control: Control,
        share: Share,
        all: &Arc<Semaphore>,
    ) -> Result<Opened, String> {
        let DeviceConfig { device_id, making, ports, links, cpu_port, pipeline } = config;
        let active = pipeline
            .map(|pipeline| Loaded::running(pipeline, control.clone(), Shadow::default()))
            .transpose()
            .map_err(|refusal| refusal.message)?;
        let (events, news) = mpsc::channel(MAX_EVENTS);
        let cpu = cpu_port.as_ref().map(|(port, _)| *port);
        let interfaces =
            Arc::new(Interfaces::new(device_id, control.clone(), events.clone(), cpu, &ports, links));
        let ports = Ports::new(ports, cpu);
        let (sender, frames) = cpu_port.map(|(_, link)| (link.sender, link.frames)).unzip();
        let forwarding = Forwarding { active, ..Forwarding::default() };
        let (programs, orders) = Programs::of_server(making.clone(), control.clone());
        let making = (making, programs.turns(), Arc::clone(all));
        let device =
            Device::new((device_id, share), making, ports, interfaces, sender, control, forwarding, events);
        Ok(Opened { device: Arc::new(device), news, frames, programs, orders })
    }

    pub(crate) fn feed(&self) -> Feed {
        Feed { events: self.device.events.clone() }
    }

    pub(crate) fn programs(&self) -> Programs {
        self.programs.clone()
    }

    /// Starts what the device does without being asked, until it is closed.
    pub(crate) fn run(self, runtime: &Handle) -> Arc<Device> {
        let device = || Arc::clone(&self.device);
        let spawn = |task: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>| {
            let device = device();
            runtime.spawn(async move {
                tokio::select! {
                    () = task => {}
                    () = device.closed() => {}
                }
            });
        };
        spawn(Box::pin(tasks::events(device(), self.news)));
        spawn(Box::pin(tasks::idle(device())));
        if let Some(frames) = self.frames {
            spawn(Box::pin(tasks::packet_ins(device(), frames)));
        }
        // A program that has begun to take over does so to the end.
        runtime.spawn(take_orders(device(), self.orders));
        self.device
    }
}
