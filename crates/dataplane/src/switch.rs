//! The switch as a library: packets in, what became of them out.

mod config;
mod passage;
mod ports;

pub use config::{MAX_COPIES, MAX_PORTS, SwitchConfig, SwitchError};
pub use ports::KnownPorts;

use crate::attached::{self, Attached};
use crate::buffers::Buffers;
use crate::burst::{self, Arrivals, Output};
use crate::counters::Counters;
use crate::forwarder::Forwarder;
use crate::ledger::Ledger;
use crate::outcome::Outcome;
use crate::queues::Queues;
use crate::quotas::{self, Quotas};
use crate::replicator::Replicator;
use crate::requests::{self, QueueSetting, QueueWrite, Request};
use crate::trace::Trace;
use crate::traffic::Traffic;
use crate::{Clock, Digests, HardwareConfig, Mode, PortId, QueueError, Replication};
use millrace_engine::{Engine, EngineError, Engines, Sampler, Samples, Settings, Statistics};
use millrace_frames::{Burst, Footprint};
use millrace_pipeline::*;
use millrace_state::{BuildError, Limits, Migration, NotNow, State, Tables, TablesHandle, WriteError};
use millrace_traffic::Plan;
use ports::Ports;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Makes engines over objects.
type MakeEngines<'a> = &'a dyn Fn(&mut State) -> Result<Engines, EngineError>;

/// One running switch. See the crate's documentation.
#[derive(Debug)]
pub struct Switch {
    /// The program, and what runs it.
    pub(crate) forwarder: Forwarder,
    /// Where copies go.
    pub(crate) replicator: Replicator,
    /// Packets under way.
    pub(crate) traffic: Traffic,
    /// What became of packets.
    pub(crate) ledger: Ledger,
    pub(crate) ports: Ports,
    /// The frames of the burst that is worked on as they came in, where they may be needed.
    pub(crate) arrivals: Arrivals,
    /// Memory of frames that are done.
    pub(crate) buffers: Buffers,
    pub(crate) clock: Clock,
    /// The time of the batch.
    pub(crate) now_ns: u64,
    pub(crate) max_passes: u32,
    /// How many links between switches of one device the packets that come in have taken; all of a batch as many.
    pub(crate) hops: u8,
    /// What is done when its program takes over.
    at_exchange: AtExchange,
}

/// See [`Switch::at_exchange`].
#[derive(Default)]
struct AtExchange(Option<Box<dyn FnOnce() + Send>>);

impl std::fmt::Debug for AtExchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "something" } else { "nothing" })
    }
}

impl Switch {
    /// A switch that runs a verified program.
    ///
    /// # Errors
    /// [`SwitchError`].
    pub fn new(program: Arc<Program>, config: SwitchConfig) -> Result<Switch, SwitchError> {
        let state = State::within(program, config.quotas.limits()).map_err(SwitchError::State)?;
        Switch::over(state, config, |make, state| make(state))
    }

    /// A switch that runs a verified program in an engine of the caller; [`SwitchConfig::engine`] says nothing then. The engine
    /// keeps packets as [`Context::interpreted`](millrace_engine::Context::interpreted) makes them.
    ///
    /// # Errors
    /// [`SwitchError`].
    pub fn with_engine(
        program: Arc<Program>,
        config: SwitchConfig,
        engine: Box<dyn Engine>,
    ) -> Result<Switch, SwitchError> {
        let limits = config.quotas.limits();
        let state = State::within(Arc::clone(&program), limits).map_err(SwitchError::State)?;
        Switch::over(state, config, |_, _| Ok(Engines::with(engine, &program)))
    }

    /// As [`Switch::new`], for a program that may take over from the one whose tables these are ([`crate::Control::swap`]):
    /// its code is made for the entries that it will find there.
    ///
    /// # Errors
    /// [`SwitchError`].
    pub fn alongside(
        program: Arc<Program>,
        config: SwitchConfig,
        running: &TablesHandle,
    ) -> Result<Switch, SwitchError> {
        let state = State::alongside(program, running).map_err(SwitchError::State)?;
        Switch::foreseeing(state, config, running)
    }

    /// As [`Switch::alongside`], for a program that is to take over at once and keep what there is: what will move there is not
    /// made before ([`State::successor`]). Only [`crate::Control::swap`] is for it, or [`Switch::make_whole`].
    ///
    /// # Errors
    /// [`SwitchError`].
    pub fn successor(
        program: Arc<Program>,
        config: SwitchConfig,
        running: &TablesHandle,
    ) -> Result<Switch, SwitchError> {
        let state = State::successor(program, running).map_err(SwitchError::State)?;
        Switch::foreseeing(state, config, running)
    }

    fn foreseeing(
        state: State,
        mut config: SwitchConfig,
        running: &TablesHandle,
    ) -> Result<Switch, SwitchError> {
        let Limits { entries, memory } = state.account().limits();
        config.quotas = Quotas { entries, memory, ..config.quotas };
        let migration = Migration::new(running, &state);
        Switch::over(state, config, |make, state| migration.foresee(running, state, make))
    }

    /// A switch with these objects, over which `with` has its engine made.
    fn over(
        mut state: State,
        config: SwitchConfig,
        with: impl FnOnce(MakeEngines<'_>, &mut State) -> Result<Engines, EngineError>,
    ) -> Result<Switch, SwitchError> {
        state.seed(config.seed);
        if let Some(host) = &config.plugins {
            state.set_plugins(host).map_err(SwitchError::State)?;
        }
        let program = Arc::clone(state.program());
        let settings = Settings {
            count_lookups: config.count_lookups,
            by_class: config.queues.priorities > 1,
            cancel: config.cancel.clone(),
            capacities: Arc::clone(&config.hardware.capacities),
        };
        let engines = with(
            &|state| Engines::new(config.engine, &settings, &config.compiler, &program, state),
            &mut state,
        );
        if config.cancel.is_cancelled() {
            return Err(SwitchError::Cancelled);
        }
        let engines = engines.map_err(SwitchError::of_engines)?;
        let HardwareConfig { device, capacities } = &config.hardware;
        let attached =
            device.as_ref().map(|to| Attached::new(&program, &state, to, capacities)).transpose()?;
        let queues = Queues::new(config.queues).map_err(SwitchError::Queues)?;
        let ledger = Ledger { counters: Counters::of(&program), outcome: Outcome::default() };
        let mut switch = Switch {
            forwarder: Forwarder::new(engines, state),
            replicator: Replicator::default(),
            traffic: Traffic::new(queues, config.queues.packet_memory),
            ledger,
            ports: Ports::any(),
            arrivals: Arrivals::default(),
            buffers: Buffers::default(),
            now_ns: config.clock.now_ns(),
            clock: config.clock.clone(),
            max_passes: config.max_passes,
            hops: 0,
            at_exchange: AtExchange::default(),
        };
        switch.forwarder.device = attached.map(Box::new);
        switch.traffic.turns.set_heavy(switch.forwarder.weights.are_heavy());
        if let KnownPorts::Only(ports) = config.ports {
            switch.connect(ports, config.clock)?;
        }
        switch.set_quotas(config.quotas);
        switch.replicator.charge_to(switch.forwarder.state.account());
        Ok(switch)
    }

    /// The switch of one more worker: the same program with the same tables and objects ([`State::share`]), with queues, buffers,
    /// counters and code of its own. What is set up of ports, queues, groups and sessions is as here, and the same for both as long as
    /// each change is made to both.
    ///
    /// # Errors
    /// [`SwitchError`]: there is no memory, or the caller's own engine has one worker.
    pub(crate) fn share(&mut self) -> Result<Switch, SwitchError> {
        if self.has_device() {
            return Err(SwitchError::Engine("a switch with a hardware device has one worker".to_owned()));
        }
        let one_worker = || SwitchError::Engine("an engine of the caller has one worker".to_owned());
        let engines = self.forwarder.engines.share().ok_or_else(one_worker)?;
        let state = self.forwarder.state.share().map_err(SwitchError::State)?;
        let mut counters = Counters::of(&self.forwarder.program);
        let ports = self.ports.share(&mut counters);
        let mut switch = Switch {
            forwarder: Forwarder::new(engines, state),
            replicator: self.replicator.share(),
            traffic: Traffic::new(self.traffic.queues.share(), self.traffic.budget.memory()),
            ledger: Ledger { counters, outcome: Outcome::default() },
            ports,
            arrivals: Arrivals::default(),
            buffers: Buffers::default(),
            clock: self.clock.clone(),
            now_ns: self.now_ns,
            max_passes: self.max_passes,
            hops: 0,
            at_exchange: AtExchange::default(),
        };
        switch.traffic.allowances = self.traffic.allowances.clone();
        switch.traffic.turns.set_heavy(switch.forwarder.weights.are_heavy());
        switch.traffic.turns.take();
        Ok(switch)
    }

    /// The switches of so many more workers: the same program with the same tables and objects, for threads of their own. What is set up
    /// later of ports, queues, groups and sessions is the same for all as long as each change is made to all.
    ///
    /// # Errors
    /// [`SwitchError`]: there is no memory, or the caller's own engine has one worker.
    pub fn share_with(&mut self, others: usize) -> Result<Vec<Switch>, SwitchError> {
        (0..others).map(|_| self.share()).collect()
    }

    /// Sets up what each worker has a copy of as it is in the switch of the leading worker. Nothing waits in its queues.
    pub(crate) fn set_up_as(&mut self, first: &Switch) {
        self.replicator = first.replicator.share();
        self.traffic.allowances = first.traffic.allowances.clone();
        self.traffic.queues = first.traffic.queues.share();
        self.ports = first.ports.share(&mut self.ledger.counters);
        self.forwarder.state.copy_from(&first.forwarder.state);
    }

    /// Adds what was counted by the switch of another worker.
    pub(crate) fn add_counts(&mut self, of: &Switch) {
        self.ledger.counters.add(&of.ledger.counters);
    }

    /// Goes on, in the switch of another worker, with another program after the leading worker's has gone on with it
    /// ([`Switch::succeed`]). All packets of the program until now have left.
    pub(crate) fn succeed_too(&mut self, next: &mut Switch, migration: &Migration) {
        migration.take_part(&mut self.forwarder.state, &mut next.forwarder.state);
        self.exchange(next);
    }

    /// Why the interpreter runs the program although machine code was asked for where there is some; none: there is, or
    /// it was not asked for.
    pub fn without_code(&self) -> Option<&str> {
        self.forwarder.engines.without_code()
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.forwarder.program
    }

    /// The program's objects.
    pub fn state(&self) -> &State {
        &self.forwarder.state
    }

    /// The program's objects, to be written.
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.forwarder.state
    }

    /// Multicast groups and clone sessions.
    pub fn replication(&self) -> &Replication {
        self.replicator.groups()
    }

    /// Multicast groups and clone sessions, to be written.
    pub fn replication_mut(&mut self) -> &mut Replication {
        self.replicator.groups_mut()
    }

    /// Goes on with the program and the objects of another switch, and gives back what ran until now. Ports, clock, queue
    /// settings and counters stay, and groups and sessions if the other switch keeps them ([`Switch::keep_groups`]). Packets
    /// that wait in queues leave at once, as the program until now has it; what that program said in digests and log lines and
    /// nobody has taken yet is lost.
    ///
    /// Quotas stay too, and are not looked at: [`Request::TakeOver`] refuses a switch that holds more than they allow.
    pub fn take_over(&mut self, mut next: Switch) -> Switch {
        self.run_empty();
        self.exchange(&mut next);
        match next.replicator.gives_way() {
            // Whoever has a copy of them looks again.
            true => _ = self.replicator.groups_mut(),
            false => std::mem::swap(&mut self.replicator, &mut next.replicator),
        }
        self.charge_replicators(&mut next);
        next
    }

    /// Multicast groups and clone sessions of the switch that this one takes over from are to go on, in place of its own.
    pub fn keep_groups(&mut self) {
        self.replicator.give_way();
    }

    /// Whether they are to ([`Switch::keep_groups`]).
    pub fn keeps_groups(&self) -> bool {
        self.replicator.gives_way()
    }

    /// Whether quotas have room for what the next switch holds.
    ///
    /// # Errors
    /// [`BuildError::Quota`].
    pub(crate) fn check_room_for(&self, next: &Switch) -> Result<(), SwitchError> {
        let checked = self.state().account().check(next.state().account().held());
        checked.map_err(|error| SwitchError::State(Migration::refusal(next.state(), error)))
    }

    /// What is to be done when this switch's program takes over from one that runs, once: while no worker forwards, before the
    /// first packet meets it. It must not take long.
    pub fn at_exchange(&mut self, act: impl FnOnce() + Send + 'static) {
        self.at_exchange = AtExchange(Some(Box::new(act)));
    }

    pub(crate) fn take_at_exchange(&mut self) -> Option<Box<dyn FnOnce() + Send>> {
        self.at_exchange.0.take()
    }

    /// Has the code be what the tables want now, so that no packet waits until it is made.
    ///
    /// # Errors
    /// The code cannot be made; what there is goes on, and is right.
    pub fn fit_code(&mut self) -> Result<(), SwitchError> {
        self.forwarder.engines.fit(&mut self.forwarder.state).map(drop).map_err(SwitchError::of_engines)
    }

    /// From now on writes to the program's objects, to `tables` (those of this switch) and to multicast groups and clone
    /// sessions note what undoes them.
    pub fn note(&mut self, tables: &mut Tables) {
        self.replicator.note();
        self.forwarder.state.note(tables);
    }

    /// All that was written since [`Switch::note`] stays.
    pub fn keep(&mut self, tables: &mut Tables) {
        self.replicator.keep();
        self.forwarder.state.keep(tables);
    }

    /// Takes back all that was written since [`Switch::note`].
    ///
    /// # Errors
    /// The system has no memory for something; all else is taken back.
    pub fn undo(&mut self, tables: &mut Tables) -> Result<(), WriteError> {
        self.replicator.undo();
        self.forwarder.state.undo(tables)
    }

    /// Does what a request asks for, and answers it. The requests to a switch of a worker are answered by that.
    pub fn answer(&mut self, request: Request) {
        requests::serve(self, request);
    }

    /// Other quotas from now on. What there is already stays, also where it is more than that: then no more comes.
    pub fn set_quotas(&mut self, quotas: Quotas) {
        quotas::set(self, &mut [], quotas);
    }

    /// The quotas.
    pub fn quotas(&self) -> Quotas {
        self.traffic.allowances.quotas()
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.ledger.counters
    }

    /// The clock's time in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Sets how many packets queues hold: of one class of one port, of one port, or of all.
    ///
    /// # Errors
    /// [`QueueError`].
    pub fn set_queue_depth(
        &mut self,
        packets: u32,
        port: Option<PortId>,
        priority: Option<u8>,
    ) -> Result<(), QueueError> {
        self.traffic.queues.set_depth(packets, port, priority)
    }

    /// Sets how many packets a second leave queues: of one class of one port, of one port, or of all; 0: no limit.
    ///
    /// # Errors
    /// [`QueueError`].
    pub fn set_queue_rate(
        &mut self,
        packets_per_second: u64,
        port: Option<PortId>,
        priority: Option<u8>,
    ) -> Result<(), QueueError> {
        self.traffic.queues.set_rate(packets_per_second, port, priority)
    }

    /// Whether all ports have classes of service, by strict priority.
    pub(crate) fn has_priorities(&self) -> bool {
        self.traffic.queues.priorities() > 1
    }

    /// From now on a port serves its packets by a plan; none: as they come. Packets of a program whose egress cannot tell the
    /// difference wait at the port, others here ([`Switch::waits_before_egress`]).
    pub(crate) fn plan(&mut self, port: PortId, plan: Option<Arc<Plan>>) {
        match plan {
            Some(plan) => _ = self.traffic.plans.insert(port, plan),
            None => _ = self.traffic.plans.remove(&port),
        }
        self.serve_plans();
    }

    /// Whether packets for ports with a plan wait here, before egress.
    pub(crate) fn waits_before_egress(&self) -> bool {
        self.forwarder.egress_waits
    }

    /// Serves the plans of ports as the program that runs wants it.
    pub(crate) fn serve_plans(&mut self) {
        let Traffic { queues, plans, .. } = &mut self.traffic;
        let none = BTreeMap::new();
        let here = if self.forwarder.egress_waits { &*plans } else { &none };
        queues.set_plans(here, self.now_ns);
    }

    /// From now on packets carry their class of service to their port, or not.
    pub(crate) fn tell_classes(&mut self, tells: bool) -> Result<(), String> {
        let Forwarder { engines, state, .. } = &mut self.forwarder;
        let made = engines.serve_by_class(tells || self.traffic.queues.priorities() > 1, state);
        made.map_err(|error| error.to_string())
    }

    /// Sets up queues.
    pub(crate) fn write_queues(&mut self, write: QueueWrite) -> Result<(), QueueError> {
        if self.has_device() {
            return Err(QueueError::Device);
        }
        let QueueWrite { port, priority, setting } = write;
        match setting {
            QueueSetting::Depth(packets) => self.set_queue_depth(packets, port, priority),
            QueueSetting::Rate(packets) => self.set_queue_rate(packets, port, priority),
        }
    }

    /// Takes a packet in at a time (a simulated clock moves there, unless it is ahead) and gives what became of it, and
    /// of packets that waited in queues until then.
    pub fn inject(&mut self, port: PortId, bytes: &[u8], time_ns: u64) -> Outcome {
        self.inject_batch([(port, bytes)], time_ns)
    }

    /// As [`Switch::inject`] for several packets at one time. All of them pass ingress before the first passes egress.
    pub fn inject_batch<'a>(
        &mut self,
        packets: impl IntoIterator<Item = (PortId, &'a [u8])>,
        time_ns: u64,
    ) -> Outcome {
        self.inject_each(packets.into_iter().map(|(port, bytes)| (port, bytes, None)), time_ns)
    }

    /// As [`Switch::inject_batch`]; each packet with the time at which it came, none: now.
    pub(crate) fn inject_each<'a>(
        &mut self,
        packets: impl IntoIterator<Item = (PortId, &'a [u8], Option<u64>)>,
        time_ns: u64,
    ) -> Outcome {
        self.switch_each(packets, time_ns);
        self.take_outcome()
    }

    /// As [`Switch::inject_each`]; what became of them is to be taken.
    pub(crate) fn switch_each<'a>(
        &mut self,
        packets: impl IntoIterator<Item = (PortId, &'a [u8], Option<u64>)>,
        time_ns: u64,
    ) {
        self.traffic.turns.begin();
        self.traffic.budget.start_batch();
        self.let_time_pass(time_ns);
        let mut packets = packets.into_iter();
        if attached::send(self, &mut packets) {
            return;
        }
        for (port, bytes, came_ns) in packets {
            self.receive(port, bytes, came_ns);
        }
        self.process();
    }

    /// As [`Switch::inject`], with the story of the packet. A simulated clock moves as far as queues need to run empty.
    pub fn inject_traced(&mut self, port: PortId, bytes: &[u8], time_ns: u64) -> (Outcome, Trace) {
        self.inject_one_traced((port, bytes, None), time_ns)
    }

    /// As [`Switch::inject_traced`]; the packet with the time at which it came, none: now.
    pub(crate) fn inject_one_traced(
        &mut self,
        (port, bytes, came_ns): (PortId, &[u8], Option<u64>),
        time_ns: u64,
    ) -> (Outcome, Trace) {
        self.traffic.turns.begin();
        self.traffic.budget.start_batch();
        self.let_time_pass(time_ns);
        self.forwarder.tracer.start(port, self.now_ns, bytes);
        // Only the interpreter tells its steps; both engines work on the same objects.
        self.forwarder.engines.use_interp(true);
        self.receive(port, bytes, came_ns);
        self.process();
        while let (Some(next), Clock::Simulated(_)) = (self.traffic.queues.next_departure_ns(), &self.clock) {
            self.let_time_pass(next);
        }
        self.forwarder.engines.use_interp(false);
        (self.take_outcome(), self.forwarder.tracer.finish())
    }

    /// Moves a simulated clock and lets packets leave their queues until then, each at its own time. With a real clock:
    /// until now.
    pub fn advance_to(&mut self, time_ns: u64) -> Outcome {
        self.traffic.turns.begin();
        self.let_time_pass(time_ns);
        self.take_outcome()
    }

    /// As [`Switch::advance_to`] where no packet waits for a time and nothing is to be told, which is so before most batches; false, and
    /// nothing done, elsewhere.
    #[inline]
    pub(crate) fn advance_empty(&mut self, time_ns: u64) -> bool {
        let is_empty = self.ledger.outcome.is_empty() && !self.has_messages();
        if !is_empty || self.next_departure_ns().is_some() {
            return false;
        }
        self.traffic.turns.begin();
        self.clock.advance_to(time_ns);
        self.now_ns = self.clock.now_ns();
        true
    }

    /// Has the hardware device be there, and hold what the state has, before packets come. Nothing for a switch without one.
    ///
    /// # Errors
    /// It cannot be reached, or does not hold that.
    pub fn reach_device(&mut self) -> Result<(), SwitchError> {
        attached::reach(self)
    }

    /// Whether a hardware device is in place of engines and traffic manager.
    pub fn has_device(&self) -> bool {
        self.forwarder.device.is_some()
    }

    /// Whether frames go by the switch: not if it has a hardware device of which only registers are reached.
    pub fn has_frames(&self) -> bool {
        self.forwarder.device.as_ref().is_none_or(|device| device.has_frames())
    }

    /// Brings what control has written to the hardware device, and what frames have changed to the state. A worker does so before it
    /// answers a request.
    pub fn settle_device(&mut self) {
        attached::settle(self);
    }

    /// Moves a simulated clock as far as queues need to run empty.
    pub fn drain(&mut self) -> Outcome {
        let mut drained = Outcome::default();
        while let (Some(next), Clock::Simulated(_)) = (self.traffic.queues.next_departure_ns(), &self.clock) {
            self.let_time_pass(next);
            drained.append(self.take_outcome());
        }
        drained
    }

    /// What programs said about packets of bursts since this was asked last: messages to the control plane, and lines of
    /// the log.
    pub fn take_messages(&mut self) -> (Digests, Vec<String>) {
        quotas::take_said(self)
    }

    /// Whether [`Switch::take_messages`] would give any.
    pub fn has_messages(&self) -> bool {
        !self.forwarder.effects.is_silent()
    }

    /// How many messages and lines were lost since this was asked last: the program said too much at once, or more than its quotas let
    /// it say. A [`crate::Worker`] asks, and counts them.
    pub fn take_lost(&mut self) -> u64 {
        self.forwarder.effects.take_lost()
    }

    /// When the next packet may leave its queue; none when nothing waits.
    pub fn next_departure_ns(&self) -> Option<u64> {
        self.traffic.queues.next_departure_ns()
    }

    /// Switches the frames of a burst, which come in on one port, at the time that the clock shows now, and hands on
    /// what leaves, in order; [`Switch::take_messages`] has the rest. Of the burst's memory it changes at most what
    /// [`Switch::footprint`] says.
    #[inline]
    pub fn switch_burst(
        &mut self,
        port: PortId,
        burst: &mut Burst<'_>,
        sent: impl FnMut(PortId, Output<'_>),
    ) {
        burst::pass(self, port, burst, &[], sent);
    }

    /// As [`Switch::switch_burst`], of frames that came at these times of the switch's clock, in nanoseconds: what the program is
    /// told, and what meters and idle timeouts count with. A time after now is now, as is one that is missing.
    #[inline]
    pub fn switch_burst_at(
        &mut self,
        port: PortId,
        burst: &mut Burst<'_>,
        times: &[u64],
        sent: impl FnMut(PortId, Output<'_>),
    ) {
        burst::pass(self, port, burst, times, sent);
    }

    /// Whether the times at which packets came make a difference to the program.
    pub fn reads_time(&self) -> bool {
        self.forwarder.reads_time
    }

    /// What [`Switch::switch_burst`] may change of a frame and its surroundings.
    pub fn footprint(&self) -> Footprint {
        self.forwarder.engines.footprint()
    }

    /// Makes the best code for bursts here and now; else a large program starts with quickly made code, and a program that
    /// proves busy gets better code when another thread has made it.
    ///
    /// # Errors
    /// Why there is no better code; what there is goes on.
    pub fn use_best_code(&mut self) -> Result<(), SwitchError> {
        self.forwarder.engines.use_best(&mut self.forwarder.state).map_err(SwitchError::of_engines)
    }

    /// The name of what runs the program.
    pub fn engine_name(&self) -> &'static str {
        if self.has_device() { "device" } else { self.forwarder.engines.name() }
    }

    /// What compiling took so far, and gave; nothing where there is no compiled code.
    pub fn compile_statistics(&self) -> Statistics {
        self.forwarder.engines.statistics()
    }

    /// Whether the lookups of tables are counted.
    pub fn counts_lookups(&self) -> bool {
        self.has_device() || self.forwarder.engines.counts_lookups()
    }

    /// Starts to sample what the calling thread does, that often.
    ///
    /// # Errors
    /// What the operating system says; [`io::ErrorKind::Unsupported`] where there is no compiled code for bursts, or
    /// sampling is not written for the machine.
    pub fn sample(&self, interval: Duration) -> io::Result<Sampler> {
        self.forwarder.engines.sample(interval)
    }

    /// The samples by part: `parser`, `table NAME`, `action NAME`, `control`, `deparser`, `replication`, `burst` (frames to
    /// and from the code, ports and counters) and `driver`.
    pub fn parts(&self, samples: &Samples) -> BTreeMap<String, u64> {
        self.forwarder.parts(samples)
    }

    /// Has the best code be there when it goes on with the tables of the switch that it was made for, as they are now.
    /// Without this a large program begins with quickly made code, which may be too slow for what arrives.
    ///
    /// # Errors
    /// There is no better code; what there is goes on.
    pub fn prepare_best_code(&mut self, running: &TablesHandle) -> Result<(), SwitchError> {
        let Forwarder { engines, state, .. } = &mut self.forwarder;
        let made = match Migration::is_possible(running, state) {
            true => Migration::new(running, state).foresee(running, state, |state| engines.make_best(state)),
            false => engines.make_best(state),
        };
        made.map_err(SwitchError::of_engines)
    }

    /// Makes what was left out of it ([`Switch::successor`]), so that it can be written to and go on alone.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn make_whole(&mut self) -> Result<(), BuildError> {
        if self.forwarder.state.is_whole() { Ok(()) } else { self.start_over() }
    }

    /// Changes programs with a switch that was prepared for it, which then holds what ran until now.
    pub(crate) fn succeed(&mut self, next: &mut Switch, migration: &Migration) -> Result<(), NotNow> {
        // As the program until now has it, with the objects that it has until now.
        self.run_empty();
        migration.take(&mut self.forwarder.state, &mut next.forwarder.state)?;
        self.exchange(next);
        Ok(())
    }

    /// Takes back all that was written to the program's objects.
    pub(crate) fn start_over(&mut self) -> Result<(), BuildError> {
        let handle = self.forwarder.state.handle();
        self.forwarder.state.reset(&mut handle.lock())
    }

    /// Gives it the ports that it knows from now on, and the clock that they go by.
    pub(crate) fn connect(&mut self, ports: BTreeSet<PortId>, clock: Clock) -> Result<(), SwitchError> {
        if ports.len() > MAX_PORTS {
            return Err(SwitchError::TooManyPorts(ports.len()));
        }
        self.ports.set(ports, &mut self.ledger.counters);
        self.now_ns = clock.now_ns();
        self.clock = clock;
        Ok(())
    }

    /// Knows a port from now on.
    pub(crate) fn add_port(&mut self, port: PortId) {
        self.ports.add(port, &mut self.ledger.counters);
    }

    /// Does not know a port any more: packets from it and to it are dropped. What was counted of it stays.
    pub(crate) fn remove_port(&mut self, port: PortId) {
        self.ports.remove(port, &mut self.ledger.counters);
    }

    /// Switches a port off or on: packets from and to one that is off are dropped, whatever the state of its link. Those that
    /// wait in its queues leave. Says whether there is such a port.
    pub fn enable_port(&mut self, port: PortId, is_enabled: bool) -> bool {
        self.ports.enable(port, is_enabled, &mut self.ledger.counters)
    }

    /// Another mode from now on: what may come in and leave ([`Mode::conduct`]). Packets that wait in queues leave as far as it lets them.
    pub fn set_mode(&mut self, mode: Mode) {
        self.ports.set_mode(mode, &mut self.ledger.counters);
    }

    /// Its mode.
    pub fn mode(&self) -> Mode {
        self.ports.mode()
    }

    /// The ports of those who manage the switch, whose packets come and go in modes in which others do not.
    pub fn set_management_ports(&mut self, ports: impl IntoIterator<Item = PortId>) {
        self.ports.set_management(ports.into_iter().collect());
    }

    /// Has the switch take turns from now on: what is beyond one is put off until [`Switch::go_on`].
    pub(crate) fn take_turns(&mut self) {
        self.traffic.turns.take();
    }
}
