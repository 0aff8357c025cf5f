//! The lanes of a device from outside: switches and ports of the machine come and go, wires are connected.

use crate::agenda::Agenda;
use crate::commands::{Command, Ended, Sender, commands, end};
use crate::counts::Counts;
use crate::exit::{Exit, ExitShare};
use crate::lane::Lane;
use crate::link::{Emulation, Link, MAX_HOPS};
use crate::member::{Member, pair};
use crate::quota::{Mirror, TimeShare, Traffic};
use crate::routes::{Classify, Route, Routes};
use crate::signals::Signals;
use crate::wire::{Host, Outlet, Wire};
use crate::{MAX_LANES, MAX_MEMBERS, MemberId, PhysicalReport};
use millrace_classifier::{RuleError, TagsOut};
use millrace_dataplane::{
    Control, Doorbell, Notice, PortId, PortsError, Ringer, RunError, Summary, Switch, prepare_thread,
};
use millrace_drivers::{Captures, PortStatistics, QueuePair};
use millrace_frames::{PacketPool, Region, SlotLayout};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// How a device is made.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its lanes: 1 to [`MAX_LANES`].
    pub lanes: usize,
    /// The processors that they run on, in their order; none: where the system has them run.
    pub processors: Vec<usize>,
    /// Packets of all lanes together.
    pub packets: usize,
    /// How a packet lies in memory, which says how long a frame may be.
    pub layout: SlotLayout,
    /// Most links that a packet takes inside.
    pub hops: u8,
}

/// What a switch of a device has.
#[derive(Clone, Debug, Default)]
pub struct MemberSetting {
    /// The numbers of its ports.
    pub ports: Vec<PortId>,
    /// Packets that may wait for one of them.
    pub places: usize,
    /// Its share of the time of its lane.
    pub share: TimeShare,
    /// What may come in at its ports.
    pub traffic: Traffic,
    /// Who can capture its ports; a port that goes is to be forgotten there.
    pub captures: Option<Arc<Captures>>,
}

/// A port of the machine that a port of a switch sends to.
#[derive(Clone, Copy, Debug)]
pub struct ExitTo {
    /// The lane of the port.
    pub lane: usize,
    /// Its number.
    pub physical: u16,
    /// What may be sent.
    pub share: ExitShare,
    /// The tags of what is sent.
    pub tags: TagsOut,
}

/// Why there is no such device, or no such switch in it.
#[derive(Debug)]
pub enum SetupError {
    /// The number of lanes.
    Lanes(usize),
    /// There is no lane of this number.
    NoLane(usize),
    /// There are [`MAX_MEMBERS`] already.
    TooManyMembers,
    /// Frames cannot be told apart as they should.
    Routes(RuleError),
    /// The system has no memory, or refused something.
    System(io::Error),
    /// The switch cannot have these ports.
    Run(RunError),
    /// The worker of a switch cannot have this port, or be without it.
    Port(PortId, String),
    /// The device has ended.
    Ended,
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetupError::Lanes(given) => write!(f, "a device has 1 to {MAX_LANES} workers, not {given}"),
            SetupError::NoLane(number) => write!(f, "the device has no worker {number}"),
            SetupError::TooManyMembers => write!(f, "a device has at most {MAX_MEMBERS} switches"),
            SetupError::Routes(error) => error.fmt(f),
            SetupError::System(error) => write!(f, "cannot make the device: {error}"),
            SetupError::Run(error) => error.fmt(f),
            SetupError::Port(port, error) => write!(f, "port {port}: {error}"),
            SetupError::Ended => Ended.fmt(f),
        }
    }
}

impl std::error::Error for SetupError {}

impl From<Ended> for SetupError {
    fn from(_: Ended) -> SetupError {
        SetupError::Ended
    }
}

/// See the module's documentation.
pub struct Backplane {
    lanes: Vec<LaneHandle>,
    hops: Arc<AtomicU8>,
    seeds: AtomicU64,
    unclassified: Arc<AtomicU64>,
}

struct LaneHandle {
    commands: Sender,
    ringer: Ringer,
    members_told: Arc<Agenda<MemberId>>,
    exits_told: Arc<Agenda<Arc<Exit>>>,
    thread: Option<JoinHandle<()>>,
    /// Which places of switches are taken.
    places: Mutex<Vec<bool>>,
}

/// A switch that runs on a device.
#[derive(Debug)]
pub struct MemberHandle {
    lane: usize,
    id: MemberId,
    /// Reaches its worker.
    pub control: Control,
    /// What it tells without being asked; taken once.
    pub notices: Option<Receiver<Notice>>,
    /// Its ports.
    pub wires: Vec<Arc<Wire>>,
    /// What is counted of it outside of it.
    pub counts: Arc<Counts>,
    signals: Arc<Signals>,
    captures: Option<Arc<Captures>>,
}

impl MemberHandle {
    /// The lane that runs it.
    pub fn lane(&self) -> usize {
        self.lane
    }

    /// The wire of a port.
    pub fn wire(&self, port: PortId) -> Option<&Arc<Wire>> {
        self.wires.iter().find(|wire| wire.port() == port)
    }
}

impl Backplane {
    /// Starts the lanes, without switches and ports.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn start(setting: &Setting) -> Result<Backplane, SetupError> {
        if !(1..=MAX_LANES).contains(&setting.lanes) {
            return Err(SetupError::Lanes(setting.lanes));
        }
        let lanes = (0..setting.lanes).map(|number| LaneHandle::start(number, setting));
        let lanes = lanes.collect::<io::Result<Vec<_>>>().map_err(SetupError::System)?;
        let seeds = AtomicU64::new(0x9e37_79b9_7f4a_7c15);
        let backplane = Backplane { lanes, hops: Arc::default(), seeds, unclassified: Arc::default() };
        backplane.set_hops(setting.hops);
        Ok(backplane)
    }

    fn lane(&self, number: usize) -> Result<&LaneHandle, SetupError> {
        self.lanes.get(number).ok_or(SetupError::NoLane(number))
    }

    /// How many lanes there are.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// Has a lane run a switch with these ports, none of which is connected.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn add_member(
        &self,
        lane: usize,
        switch: Switch,
        setting: &MemberSetting,
    ) -> Result<MemberHandle, SetupError> {
        let handle = self.lane(lane)?;
        let place = handle.take_place();
        let id = MemberId::try_from(place).ok().filter(|_| place < MAX_MEMBERS);
        let made = id.ok_or(SetupError::TooManyMembers).and_then(|id| {
            let given = (setting.share, setting.traffic);
            let ports = (&*setting.ports, setting.captures.as_deref());
            let member =
                Member::new((id, switch), ports, setting.places, given, &handle.members_told, &handle.ringer);
            member.map(|member| (id, member)).map_err(SetupError::Run)
        });
        let (id, mut member) = made.inspect_err(|_| handle.give_back(place))?;
        let made = MemberHandle {
            lane,
            id,
            control: member.worker.control(),
            notices: Some(member.worker.notices()),
            wires: member.wires().cloned().collect(),
            counts: Arc::clone(&member.counts),
            signals: Arc::clone(&member.signals),
            captures: setting.captures.clone(),
        };
        handle.commands.send(Command::AddMember(id, Box::new(member)))?;
        Ok(made)
    }

    /// Takes a switch from its lane: nothing comes to it any more, and what waits for it is lost, and counted. Links to it are to be
    /// taken away before.
    ///
    /// # Errors
    /// [`Ended`].
    pub fn remove_member(&self, member: MemberHandle) -> Result<Summary, Ended> {
        let lane = &self.lanes[member.lane];
        let taken = lane.commands.ask(|to| Command::RemoveMember(member.id, to))?;
        lane.give_back(usize::from(member.id));
        Ok(end(*taken))
    }

    /// A switch has a port more, which is not connected, and for which so many packets may wait.
    ///
    /// # Errors
    /// [`SetupError`]: its worker cannot have the port, or the device has ended.
    pub fn add_port(&self, member: &mut MemberHandle, port: PortId, places: usize) -> Result<(), SetupError> {
        if member.wire(port).is_some() {
            return Err(SetupError::Port(port, "the switch has it already".into()));
        }
        let MemberHandle { lane, id, .. } = *member;
        let (counts, signals) = (Arc::clone(&member.counts), Arc::clone(&member.signals));
        let wire = Arc::new(Wire::new((id, port), places, counts, signals));
        // The lane looks at all wires of a switch, so it has to know of this one before the worker receives from it.
        let lane = &self.lanes[lane];
        lane.commands.ask(|to| Command::AddWire(id, Arc::clone(&wire), to))?;
        let pair = pair(&wire, member.captures.as_deref());
        if let Err(error) = member.control.add_port(port, vec![pair]) {
            lane.commands.ask(|to| Command::RemoveWire(id, port, to))?;
            if let Some(captures) = &member.captures {
                let _ = captures.forget(port);
            }
            return Err(SetupError::Port(port, error.to_string()));
        }
        member.wires.push(wire);
        Ok(())
    }

    /// A switch has a port less. No route leads there any more; what waits for it is lost, and counted.
    ///
    /// # Errors
    /// [`SetupError`]: it has no such port, or the device has ended.
    pub fn remove_port(&self, member: &mut MemberHandle, port: PortId) -> Result<PortStatistics, SetupError> {
        let failed = |error: PortsError| SetupError::Port(port, error.to_string());
        let statistics = member.control.remove_port(port).map_err(failed)?;
        let id = member.id;
        self.lanes[member.lane].commands.ask(|to| Command::RemoveWire(id, port, to))?;
        member.wires.retain(|wire| wire.port() != port);
        Ok(statistics)
    }

    /// Another share of the time of its lane.
    ///
    /// # Errors
    /// [`Ended`].
    pub fn set_share(&self, member: &MemberHandle, share: TimeShare) -> Result<(), Ended> {
        self.lanes[member.lane].commands.send(Command::SetShare(member.id, share))
    }

    /// A switch takes no packets from now on, or takes them again. What comes meanwhile is lost, and counted.
    pub fn set_stopped(&self, member: &MemberHandle, is_stopped: bool) {
        member.signals.admission.stop(is_stopped);
    }

    /// Somebody gets a copy of what comes for a switch from now on, or nobody.
    pub fn set_mirror(&self, member: &MemberHandle, mirror: Option<Box<dyn Mirror>>) {
        member.signals.admission.mirror(mirror);
    }

    /// Most links that a packet takes inside from now on, at most [`MAX_HOPS`].
    pub fn set_hops(&self, hops: u8) {
        self.hops.store(hops.min(MAX_HOPS), Ordering::Relaxed);
    }

    /// Another limit of what may come in.
    pub fn set_traffic(&self, member: &MemberHandle, traffic: Traffic) {
        member.signals.admission.set(traffic);
    }

    /// Has a lane receive from a port of the machine and send to it.
    ///
    /// # Errors
    /// [`SetupError`]: there is no such lane, or the device has ended.
    pub fn add_physical(&self, lane: usize, number: u16, pair: Box<dyn QueuePair>) -> Result<(), SetupError> {
        Ok(self.lane(lane)?.commands.send(Command::AddPhysical(number, pair))?)
    }

    /// Takes a port of the machine from its lane; what waits for it is lost, and counted.
    ///
    /// # Errors
    /// [`SetupError`]: there is no such lane, or the device has ended.
    pub fn remove_physical(&self, lane: usize, number: u16) -> Result<Box<dyn QueuePair>, SetupError> {
        Ok(self.lane(lane)?.commands.ask(|to| Command::RemovePhysical(number, to))?)
    }

    /// Links of ports of the machine may have changed: all lanes have their devices look.
    pub fn look_at_ports(&self) {
        self.lanes.iter().for_each(|lane| lane.ringer.ring());
    }

    /// From now on what a port of a switch sends goes to ports of the machine. What waits for those to which it went before leaves.
    ///
    /// # Errors
    /// [`SetupError`]: there is no such lane.
    pub fn connect(&self, wire: &Wire, to: &[ExitTo]) -> Result<(), SetupError> {
        let exit = |to: &ExitTo| {
            let agenda = &self.lane(to.lane)?.exits_told;
            Ok((Arc::new(Exit::new((to.physical, to.share), wire, agenda)), to.tags))
        };
        wire.connect(Outlet::Exits(to.iter().map(exit).collect::<Result<_, SetupError>>()?));
        Ok(())
    }

    /// Links two ports of switches, in both directions.
    pub fn link(&self, one: &Arc<Wire>, other: &Arc<Wire>, emulation: Emulation) {
        for (from, to) in [(one, other), (other, one)] {
            let seed = self.seeds.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
            from.connect(Outlet::Link(Box::new(Link::new(Arc::clone(to), &self.hops, emulation, seed))));
        }
    }

    /// From now on what a port of a switch sends goes to somebody on the machine.
    pub fn connect_host(&self, wire: &Wire, host: Box<dyn Host>) {
        wire.connect(Outlet::Host(host));
    }

    /// What a port of a switch sends goes nowhere from now on: its link is down.
    pub fn disconnect(&self, wire: &Wire) {
        wire.connect(Outlet::Nowhere);
    }

    /// From now on frames of ports of the machine go there. Waits until all lanes know.
    ///
    /// # Errors
    /// [`SetupError`]: two of them cannot be told apart, or the device has ended.
    pub fn set_routes(&self, routes: &[Route]) -> Result<(), SetupError> {
        let routes = Routes::new(routes, Arc::clone(&self.unclassified)).map_err(SetupError::Routes)?;
        let routes = Arc::new(routes);
        let tell = |lane: &LaneHandle| lane.commands.ask(|to| Command::SetRoutes(Arc::clone(&routes), to));
        Ok(self.lanes.iter().try_for_each(tell)?)
    }

    /// From now on the first of these says which switch a frame belongs to on the first lane, and so on; none: nobody does. Waits until all
    /// lanes know.
    ///
    /// # Errors
    /// [`Ended`].
    pub fn set_classify(&self, mut next: impl FnMut() -> Option<Box<dyn Classify>>) -> Result<(), Ended> {
        self.lanes.iter().try_for_each(|lane| lane.commands.ask(|to| Command::SetClassify(next(), to)))
    }

    /// Frames of ports of the machine that were nobody's.
    pub fn unclassified(&self) -> u64 {
        self.unclassified.load(Ordering::Relaxed)
    }

    /// What the ports of the machine have counted, summed over the lanes, and those that broke.
    ///
    /// # Errors
    /// [`Ended`].
    pub fn statistics(&self) -> Result<PhysicalReport, Ended> {
        let PhysicalReport { mut ports, mut failures } = PhysicalReport::default();
        for lane in &self.lanes {
            let of_lane = lane.commands.ask(Command::Statistics)?;
            failures.extend(of_lane.failures);
            for (number, statistics) in of_lane.ports {
                match ports.iter_mut().find(|(known, _)| *known == number) {
                    Some((_, sum)) => *sum += statistics,
                    None => ports.push((number, statistics)),
                }
            }
        }
        Ok(PhysicalReport { ports, failures })
    }
}

impl Drop for Backplane {
    fn drop(&mut self) {
        self.lanes.iter().for_each(|lane| _ = lane.commands.send(Command::Stop));
        self.lanes.iter_mut().filter_map(|lane| lane.thread.take()).for_each(|thread| _ = thread.join());
    }
}

impl LaneHandle {
    fn start(number: usize, setting: &Setting) -> io::Result<LaneHandle> {
        let doorbell = Doorbell::new()?;
        let ringer = doorbell.ringer();
        let (sender, waiting) = commands(ringer.clone());
        let region = Region::new(setting.packets / setting.lanes, setting.layout);
        let pool = PacketPool::over(region.map_err(io::Error::other)?);
        let routes = Routes::new(&[], Arc::default()).map_err(io::Error::other)?;
        let lane = Lane::new(doorbell, waiting, pool, Arc::new(routes));
        let (members_told, exits_told) = (Arc::clone(&lane.members_told), Arc::clone(&lane.exits_told));
        let processor = setting.processors.get(number).copied();
        let thread = thread::Builder::new().name(format!("lane {number}")).spawn(move || {
            prepare_thread(processor);
            lane.run();
        })?;
        let places = Mutex::default();
        Ok(LaneHandle { commands: sender, ringer, members_told, exits_told, thread: Some(thread), places })
    }

    /// The place of one more switch.
    fn take_place(&self) -> usize {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let free = places.iter().position(|taken| !taken).unwrap_or(places.len());
        if free == places.len() {
            places.push(false);
        }
        places[free] = true;
        free
    }

    fn give_back(&self, place: usize) {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)[place] = false;
    }
}
