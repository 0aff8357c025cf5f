//! The switch as a library: packets in, what became of them out.

mod ports;

pub use ports::KnownPorts;

use crate::counters::Counters;
use crate::engine::{Engine, EngineKind};
use crate::flight::{Arrival, Departure, Kept, Origin};
use crate::outcome::{Dropped, Outcome, Sent};
use crate::queues::Queues;
use crate::trace::{Fate, JourneyId, JourneyKind, Trace};
use crate::tracer::{Tracer, hex};
use crate::{Clock, DigestMessage, DropReason, PortId, QueueConfig, QueueError, Replication};
use millrace_interp::Effects;
use millrace_pipeline::*;
use millrace_ports::MAX_FRAME;
use millrace_state::{BuildError, State, Succession, Tables, TablesHandle, WriteError};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Most ports of a switch.
pub const MAX_PORTS: usize = 4096;

/// Most copies and passes that come of one packet. Each replication divides what is left between the copies, so that
/// no configuration makes a packet explode.
pub const MAX_COPIES: u32 = 1 << 14;

/// How a switch is set up.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// The ports that exist.
    pub ports: KnownPorts,
    /// What queues are like at first.
    pub queues: QueueConfig,
    /// How often a packet may begin ingress or be cloned in egress: one more and it is dropped.
    pub max_passes: u32,
    /// The clock.
    pub clock: Clock,
    /// Where the program's random numbers start.
    pub seed: u64,
    /// What runs the program.
    pub engine: EngineKind,
    /// Whether compiled code counts the lookups of tables. (The interpreter always does.)
    pub count_lookups: bool,
}

impl Default for SwitchConfig {
    /// Any port, one queue each, 128 passes, a simulated clock at 0, seed 0, the reference interpreter; lookups
    /// are not counted.
    fn default() -> SwitchConfig {
        SwitchConfig {
            ports: KnownPorts::Any,
            queues: QueueConfig::default(),
            max_passes: 128,
            clock: Clock::simulated(),
            seed: 0,
            engine: EngineKind::Interp,
            count_lookups: false,
        }
    }
}

/// Why a switch cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchError {
    /// The program has objects that cannot be made.
    State(BuildError),
    /// The engine does not take the program.
    Engine(String),
    /// The queues cannot be like that.
    Queues(QueueError),
    /// More than [`MAX_PORTS`] ports.
    TooManyPorts(usize),
}

impl fmt::Display for SwitchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SwitchError::State(error) => error.fmt(f),
            SwitchError::Engine(reason) => f.write_str(reason),
            SwitchError::Queues(error) => error.fmt(f),
            SwitchError::TooManyPorts(given) => {
                write!(f, "a switch has at most {MAX_PORTS} ports, {given} given")
            }
        }
    }
}

impl std::error::Error for SwitchError {}

/// Makes an engine over objects.
type MakeEngine<'a> = &'a dyn Fn(&mut State) -> Result<Engine, String>;

/// One running switch. See the crate's documentation.
#[derive(Debug)]
pub struct Switch {
    pub(crate) program: Arc<Program>,
    pub(crate) engine: Engine,
    pub(crate) state: State,
    pub(crate) replication: Replication,
    /// Whether writes note what undoes them, and the replication as it was in front of the first one.
    noted: Option<Option<Replication>>,
    pub(crate) queues: Queues,
    pub(crate) counters: Counters,
    pub(crate) tracer: Tracer,
    pub(crate) effects: Effects,
    /// Packets that start again, before others.
    pub(crate) again: VecDeque<Arrival>,
    /// The time of the batch.
    pub(crate) now_ns: u64,
    pub(crate) max_passes: u32,
    input: VecDeque<Arrival>,
    pub(crate) outcome: Outcome,
    ports: KnownPorts,
    pub(crate) clock: Clock,
}

impl Switch {
    /// A switch that runs a verified program.
    ///
    /// # Errors
    /// [`SwitchError`].
    pub fn new(program: Arc<Program>, config: SwitchConfig) -> Result<Switch, SwitchError> {
        let state = State::new(Arc::clone(&program)).map_err(SwitchError::State)?;
        Switch::over(state, config, |make, state| make(state))
    }

    /// As [`Switch::new`], for a program that may take over from the one whose tables these are ([`crate::Control::swap`]):
    /// its code is made for the entries that it will find there.
    ///
    /// # Errors
    /// [`SwitchError`].
    pub fn beside(
        program: Arc<Program>,
        config: SwitchConfig,
        running: &TablesHandle,
    ) -> Result<Switch, SwitchError> {
        let state = State::beside(program, running).map_err(SwitchError::State)?;
        Switch::foreseeing(state, config, running)
    }

    /// As [`Switch::beside`], for a program that is to take over at once and keep what there is: what will move there is not
    /// made before ([`State::succeeding`]). Only [`crate::Control::swap`] is for it, or [`Switch::make_whole`].
    ///
    /// # Errors
    /// [`SwitchError`].
    pub fn succeeding(
        program: Arc<Program>,
        config: SwitchConfig,
        running: &TablesHandle,
    ) -> Result<Switch, SwitchError> {
        let state = State::succeeding(program, running).map_err(SwitchError::State)?;
        Switch::foreseeing(state, config, running)
    }

    fn foreseeing(state: State, config: SwitchConfig, running: &TablesHandle) -> Result<Switch, SwitchError> {
        let succession = Succession::new(running, &state);
        Switch::over(state, config, |make, state| succession.foresee(running, state, make))
    }

    /// A switch with these objects, over which `with` has its engine made.
    fn over(
        mut state: State,
        config: SwitchConfig,
        with: impl FnOnce(MakeEngine<'_>, &mut State) -> Result<Engine, String>,
    ) -> Result<Switch, SwitchError> {
        state.seed(config.seed);
        let program = Arc::clone(state.program());
        let engine =
            with(&|state| Engine::new(config.engine, config.count_lookups, &program, state), &mut state);
        let mut switch = Switch {
            engine: engine.map_err(SwitchError::Engine)?,
            state,
            replication: Replication::default(),
            noted: None,
            queues: Queues::new(config.queues).map_err(SwitchError::Queues)?,
            counters: Counters::default(),
            tracer: Tracer::off(&program),
            effects: Effects::default(),
            again: VecDeque::new(),
            now_ns: config.clock.now_ns(),
            max_passes: config.max_passes,
            input: VecDeque::new(),
            outcome: Outcome::default(),
            ports: KnownPorts::Any,
            clock: config.clock.clone(),
            program,
        };
        if let KnownPorts::Only(ports) = config.ports {
            switch.connect(ports, config.clock)?;
        }
        Ok(switch)
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The program's objects.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The program's objects, to be written.
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// Multicast groups and clone sessions.
    pub fn replication(&self) -> &Replication {
        &self.replication
    }

    /// Multicast groups and clone sessions, to be written.
    pub fn replication_mut(&mut self) -> &mut Replication {
        if let Some(before @ None) = &mut self.noted {
            *before = Some(self.replication.clone());
        }
        &mut self.replication
    }

    /// Goes on with the program and the objects of another switch, and gives back what ran until now. Ports, clock, queue
    /// settings and counters stay. Packets that wait in queues leave at once, as the program until now has it; what that
    /// program said beside packets and nobody has taken yet is lost.
    pub fn take_over(&mut self, mut next: Switch) -> Switch {
        self.run_empty();
        self.exchange(&mut next);
        std::mem::swap(&mut self.replication, &mut next.replication);
        next
    }

    /// Lets all packets leave that wait.
    pub(crate) fn run_empty(&mut self) {
        self.now_ns = self.clock.now_ns();
        self.process();
        while let Some((departure, stay)) = self.queues.pop_any() {
            self.egress(departure, stay);
            self.process();
        }
    }

    /// Exchanges program, code and objects with another switch.
    pub(crate) fn exchange(&mut self, next: &mut Switch) {
        self.effects = Effects::default();
        std::mem::swap(&mut self.program, &mut next.program);
        std::mem::swap(&mut self.engine, &mut next.engine);
        std::mem::swap(&mut self.state, &mut next.state);
        std::mem::swap(&mut self.tracer, &mut next.tracer);
    }

    /// Has the code be what the tables want now, so that no packet waits until it is made.
    ///
    /// # Errors
    /// The code cannot be made; what there is goes on, and is right.
    pub fn fit_code(&mut self) -> Result<(), SwitchError> {
        self.engine.fit(&mut self.state).map(drop).map_err(SwitchError::Engine)
    }

    /// From now on writes to the program's objects, to `tables` (those of this switch) and to multicast groups and clone
    /// sessions note what undoes them.
    pub fn note(&mut self, tables: &mut Tables) {
        self.noted = Some(None);
        self.state.note(tables);
    }

    /// All that was written since [`Switch::note`] stays.
    pub fn keep(&mut self, tables: &mut Tables) {
        self.noted = None;
        self.state.keep(tables);
    }

    /// Takes back all that was written since [`Switch::note`].
    ///
    /// # Errors
    /// The system has no memory for something; all else is taken back.
    pub fn undo(&mut self, tables: &mut Tables) -> Result<(), WriteError> {
        if let Some(before) = self.noted.take().flatten() {
            self.replication = before;
        }
        self.state.undo(tables)
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
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
        self.queues.set_depth(packets, port, priority)
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
        self.queues.set_rate(packets_per_second, port, priority)
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
        self.let_time_pass(time_ns);
        for (port, bytes) in packets {
            self.receive(port, bytes);
        }
        self.process();
        self.take_outcome()
    }

    /// As [`Switch::inject`], with the story of the packet. A simulated clock moves as far as queues need to run empty.
    pub fn inject_traced(&mut self, port: PortId, bytes: &[u8], time_ns: u64) -> (Outcome, Trace) {
        self.let_time_pass(time_ns);
        self.tracer.start(port, self.now_ns, bytes);
        // Only the interpreter tells its steps; both engines work on the same objects.
        self.engine.use_interp(true);
        self.receive(port, bytes);
        self.process();
        while let (Some(next), Clock::Simulated(_)) = (self.queues.next_departure_ns(), &self.clock) {
            self.let_time_pass(next);
        }
        self.engine.use_interp(false);
        (self.take_outcome(), self.tracer.finish())
    }

    /// Moves a simulated clock and lets packets leave their queues until then, each at its own time. With a real clock:
    /// until now.
    pub fn advance_to(&mut self, time_ns: u64) -> Outcome {
        self.let_time_pass(time_ns);
        self.take_outcome()
    }

    /// Moves a simulated clock as far as queues need to run empty.
    pub fn drain(&mut self) -> Outcome {
        let mut drained = Outcome::default();
        while let (Some(next), Clock::Simulated(_)) = (self.queues.next_departure_ns(), &self.clock) {
            self.let_time_pass(next);
            drained.append(self.take_outcome());
        }
        drained
    }

    /// What programs said beside packets of bursts since this was asked last: messages to the control plane, and lines of
    /// the log.
    pub fn take_messages(&mut self) -> (Vec<DigestMessage>, Vec<String>) {
        (std::mem::take(&mut self.effects.digests), std::mem::take(&mut self.effects.log))
    }

    /// Whether [`Switch::take_messages`] would give any.
    pub fn has_messages(&self) -> bool {
        !self.effects.digests.is_empty() || !self.effects.log.is_empty()
    }

    /// When the next packet may leave its queue; none when nothing waits.
    pub fn next_departure_ns(&self) -> Option<u64> {
        self.queues.next_departure_ns()
    }

    pub(crate) fn let_time_pass(&mut self, time_ns: u64) {
        while let Some(next) = self.queues.next_departure_ns() {
            self.clock.advance_to(next.min(time_ns));
            if next > self.clock.now_ns() {
                break;
            }
            self.process();
        }
        self.clock.advance_to(time_ns);
        self.now_ns = self.clock.now_ns();
    }

    /// A packet enters the switch.
    fn receive(&mut self, port: PortId, bytes: &[u8]) {
        let path = PacketPath::Normal;
        let journey = self.tracer.open(JourneyKind::Ingress, None, path, (port, 0));
        let origin = Origin { port, time_ns: self.now_ns, passes: 1, budget: MAX_COPIES, journey };
        if !self.port_exists(port) {
            return self.drop_packet(DropReason::UnknownPort, &origin, None);
        }
        self.counters.received(port, bytes.len());
        if bytes.len() > MAX_FRAME {
            return self.drop_packet(DropReason::Oversize, &origin, None);
        }
        self.input.push_back(Arrival { bytes: bytes.to_vec(), path, origin, kept: Kept::default() });
    }

    /// Works until nothing is left that can go on now.
    pub(crate) fn process(&mut self) {
        self.now_ns = self.clock.now_ns();
        loop {
            if let Some(arrival) = self.again.pop_front().or_else(|| self.input.pop_front()) {
                self.ingress(arrival);
            } else if let Some((departure, stay)) = self.queues.pop(self.now_ns) {
                self.egress(departure, stay);
            } else {
                break;
            }
        }
    }

    pub(crate) fn take_outcome(&mut self) -> Outcome {
        let mut outcome = std::mem::take(&mut self.outcome);
        outcome.digests = std::mem::take(&mut self.effects.digests);
        outcome.log = std::mem::take(&mut self.effects.log);
        outcome
    }

    /// Puts a packet in front of egress, where it has a journey of its own.
    pub(crate) fn enqueue(&mut self, mut departure: Departure, from: Option<JourneyId>) {
        let place = (departure.port, departure.rid);
        let journey = self.tracer.open(JourneyKind::Egress, from, departure.path, place);
        departure.origin.journey = journey;
        if let Some(journey) = journey {
            self.tracer.fate(from, || Fate::Forwarded { port: place.0, rid: place.1, journey });
        }
        if let Err(refused) = self.queues.push(departure, self.now_ns) {
            self.drop_packet(DropReason::QueueFull, &refused.origin, Some(refused.port));
        }
    }

    /// A packet starts again at ingress, unless it did so too often.
    pub(crate) fn start_again(&mut self, mut arrival: Arrival) -> Option<JourneyId> {
        let origin = &mut arrival.origin;
        if origin.passes >= self.max_passes || origin.budget == 0 {
            let origin = *origin;
            self.drop_packet(DropReason::RecirculationLimit, &origin, None);
            return None;
        }
        origin.passes += 1;
        origin.budget -= 1;
        let place = (origin.port, 0);
        origin.journey = self.tracer.open(JourneyKind::Ingress, origin.journey, arrival.path, place);
        let journey = origin.journey;
        self.again.push_back(arrival);
        journey
    }

    /// A packet leaves the switch.
    pub(crate) fn transmit(&mut self, port: PortId, bytes: Vec<u8>, origin: &Origin) {
        if !self.port_exists(port) {
            return self.drop_packet(DropReason::UnknownPort, origin, Some(port));
        }
        self.tracer.fate(origin.journey, || Fate::Sent { port, bytes: hex(&bytes) });
        self.counters.sent(port, bytes.len());
        self.outcome.sent.push(Sent { port, bytes, time_ns: self.now_ns });
    }

    /// A packet goes nowhere.
    pub(crate) fn drop_packet(&mut self, reason: DropReason, origin: &Origin, egress_port: Option<PortId>) {
        self.tracer.dropped(origin.journey, reason);
        self.count_drop(reason, origin, egress_port);
    }

    /// A packet or copy goes nowhere, which the trace tells in its own way.
    pub(crate) fn count_drop(&mut self, reason: DropReason, origin: &Origin, egress_port: Option<PortId>) {
        self.counters.dropped(reason, Some(origin.port), egress_port);
        self.outcome.drops.push(Dropped { reason, ingress_port: origin.port, egress_port });
    }
}
