//! An end system as a port of a switch in the same process: what it sends, the switch receives, and the other way round.
//!
//! `es:FILE,NAME[,KEY=VALUE]...` is the line of end system NAME of the network file to one of the networks. A switch is part of one network,
//! so the other line leads nowhere. In virtual time (`time=virtual`) the port brings its own time, as a capture does: a run is
//! deterministic to the byte and the nanosecond.
//!
//! With `management=on` the end system is the switch's own: it sends nothing but answers to whoever manages the switch.

use crate::management::{Management, Requests};
use crate::node::{Node, Traffic};
use crate::plan::{Plan, Receiving};
use crate::process::WallClock;
use crate::report;
use millrace_afdx::{FAULTS, Misbehaviour, Network};
use millrace_drivers::{
    Device, PortError, PortStatistics, QueuePair, Received, SingleQueue, TimeSource, Transmitted,
};
use millrace_frames::{Batch, PacketPool};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use serde_json::Value;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::str::FromStr;
use std::sync::Arc;

/// Longest time that a port of virtual time runs, in seconds: a day.
pub const MAX_VIRTUAL_SECONDS: u64 = 86_400;

/// Frames that have left the end system and that the switch has not taken.
const MAX_READY: usize = 256;

/// What a port runs by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortTime {
    /// The clock of the machine.
    #[default]
    Real,
    /// Time of its own, from 0.
    Virtual,
}

/// The words after `es:`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortArguments {
    /// The file of the network.
    pub file: String,
    /// The name of the end system.
    pub name: String,
    /// The network of the line; none: that of the end system's only one, else A.
    pub network: Option<Network>,
    /// What it runs by.
    pub time: PortTime,
    /// How long it sends.
    pub seconds: Option<u64>,
    /// What it sends.
    pub traffic: Traffic,
    /// Its faults.
    pub faults: Vec<Misbehaviour>,
    /// What they are chosen by.
    pub seed: u64,
    /// Whether it is the switch's own, and answers.
    pub manages: bool,
    /// Where a report is written at the end.
    pub report: Option<String>,
}

impl FromStr for PortArguments {
    type Err = String;

    fn from_str(text: &str) -> Result<PortArguments, String> {
        let mut words = text.split(',');
        let file = words.next().unwrap_or("").to_owned();
        let name = words.next().unwrap_or("").to_owned();
        if file.is_empty() || name.is_empty() {
            return Err(format!("FILE,NAME is expected, not `{text}`"));
        }
        let mut arguments = PortArguments {
            file,
            name,
            network: None,
            time: PortTime::Real,
            seconds: None,
            traffic: Traffic::default(),
            faults: Vec::new(),
            seed: 0,
            manages: false,
            report: None,
        };
        for word in words.clone() {
            arguments.set(word)?;
        }
        let Traffic { is_silent, period_ns, bytes } = arguments.traffic;
        match arguments.seconds {
            _ if is_silent && (period_ns.is_some() || bytes.is_some()) => {
                Err("`silent=on` sends nothing: `period=` and `bytes=` are of what is sent".to_owned())
            }
            _ if arguments.faults.is_empty() && words.clone().any(|word| word.starts_with("seed=")) => {
                Err("`seed=` is of the frames with faults: it needs a fault, as `number=VL:N`".to_owned())
            }
            _ if arguments.manages && arguments.time == PortTime::Virtual => {
                Err("`management=on` needs `time=real`: who asks and who answers are in no other time"
                    .to_owned())
            }
            None if arguments.time == PortTime::Virtual => {
                Err("`time=virtual` needs `seconds=N`: else it would never end".to_owned())
            }
            Some(seconds) if seconds == 0 || seconds > MAX_VIRTUAL_SECONDS => {
                Err(format!("`seconds={seconds}`: 1 to {MAX_VIRTUAL_SECONDS} is allowed"))
            }
            _ => Ok(arguments),
        }
    }
}

/// The words that there are.
const KEYS: &str = "network=A|B, time=real|virtual, seconds=N, period=MICROSECONDS, bytes=N, silent=on|off, management=on|off, \
seed=N, report=FILE, or a \
fault as `babble=VL:N`";

impl PortArguments {
    fn set(&mut self, word: &str) -> Result<(), String> {
        if let Some(fault) = fault(word) {
            self.faults.push(fault?);
            return Ok(());
        }
        self.set_option(word).ok_or_else(|| format!("`{word}` is not one of {KEYS}"))
    }

    fn set_option(&mut self, word: &str) -> Option<()> {
        let (key, value) = word.split_once('=')?;
        match (key, value) {
            ("network", "A") => self.network = Some(Network::A),
            ("network", "B") => self.network = Some(Network::B),
            ("time", "real") => self.time = PortTime::Real,
            ("time", "virtual") => self.time = PortTime::Virtual,
            ("silent", "on") => self.traffic.is_silent = true,
            ("silent", "off") => self.traffic.is_silent = false,
            ("management", "on") => self.manages = true,
            ("management", "off") => self.manages = false,
            ("seconds", _) => self.seconds = Some(value.parse().ok()?),
            ("period", _) => self.traffic.period_ns = Some(value.parse::<u64>().ok()?.checked_mul(1000)?),
            ("bytes", _) => self.traffic.bytes = Some(value.parse().ok()?),
            ("seed", _) => self.seed = value.parse().ok()?,
            ("report", path) if !path.is_empty() => self.report = Some(path.to_owned()),
            _ => return None,
        }
        Some(())
    }
}

/// A word that is a fault, of a kind that there is. `network` is one with the number of a virtual link, as in `network=5:10`.
fn fault(word: &str) -> Option<Result<Misbehaviour, String>> {
    let (key, value) = word.split_once('=')?;
    let is_fault =
        FAULTS.contains(&key) && (key != "network" || value.starts_with(|c: char| c.is_ascii_digit()));
    is_fault.then(|| word.parse())
}

/// The port.
#[derive(Debug)]
pub struct EndSystemPort {
    node: Node,
    network: Network,
    /// The clock, and what wakes the worker; none in virtual time.
    real: Option<(WallClock, Arc<OwnedFd>)>,
    management: Option<Management>,
    /// Frames that have left, and when.
    ready: VecDeque<(u64, Vec<u8>)>,
    /// In virtual time: the time of the last step.
    now_ns: u64,
    lost: u64,
    report: Option<File>,
    statistics: PortStatistics,
}

impl EndSystemPort {
    /// A device of one queue pair, with the end system of a network that was read already; and what it is asked, if it is the switch's own.
    ///
    /// # Errors
    /// [`PortError`]: there is no such end system, or it cannot be.
    pub fn device(
        network: &millrace_network::Network,
        arguments: &PortArguments,
    ) -> Result<(Box<dyn Device>, Option<Requests>), PortError> {
        let name = format!("es:{},{}", arguments.file, arguments.name);
        let (port, requests) = EndSystemPort::new(network, arguments)?;
        Ok((Box::new(SingleQueue::new(name, port)), requests))
    }

    /// The port itself, and what it is asked, if it is the switch's own.
    ///
    /// # Errors
    /// As [`EndSystemPort::device`].
    pub fn new(
        network: &millrace_network::Network,
        arguments: &PortArguments,
    ) -> Result<(EndSystemPort, Option<Requests>), PortError> {
        let wrong = |reason: String| PortError::Arguments { driver: "es", reason };
        let system = |action: String| move |error| PortError::System { action, error };
        let receiving = Receiving { answers_echo: arguments.manages, ..Receiving::default() };
        let mut plan =
            Plan::of(network, &arguments.name, &receiving).map_err(|error| wrong(error.to_string()))?;
        let real = match arguments.time {
            PortTime::Virtual => None,
            PortTime::Real => {
                let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
                let timer = timerfd_create(TimerfdClockId::Monotonic, flags)
                    .map_err(|error| system("make a timer".to_owned())(error.into()))?;
                Some((WallClock::default(), Arc::new(timer)))
            }
        };
        let from_ns = real.as_ref().map_or(0, |(clock, _)| clock.now_ns());
        let until_ns = arguments
            .seconds
            .map_or(u64::MAX, |seconds| from_ns.saturating_add(seconds.saturating_mul(1_000_000_000)));
        let (management, requests) = match &real {
            Some((_, timer)) if arguments.manages => {
                let made = Management::new(network, &mut plan, Arc::clone(timer));
                let (management, requests) = made.map_err(|error| wrong(error.to_string()))?;
                (Some(management), Some(requests))
            }
            _ => (None, None),
        };
        let is_silent = arguments.traffic.is_silent || arguments.manages;
        let node = Node::new(plan, Traffic { is_silent, ..arguments.traffic }, (from_ns, until_ns));
        let mut node = node.map_err(|error| wrong(error.to_string()))?;
        let faults = node.es.transmitter.misbehave((from_ns, until_ns), arguments.seed, &arguments.faults);
        faults.map_err(|error| wrong(error.to_string()))?;
        let report = match &arguments.report {
            None => None,
            Some(path) => Some(File::create(path).map_err(system(format!("create {path}")))?),
        };
        let port = EndSystemPort {
            node,
            network: arguments.network.unwrap_or_else(|| only_network(network, &arguments.name)),
            real,
            management,
            ready: VecDeque::new(),
            now_ns: 0,
            lost: 0,
            report,
            statistics: PortStatistics::default(),
        };
        Ok((port, requests))
    }

    /// Has leave what leaves at this time.
    fn step(&mut self, now_ns: u64) {
        let EndSystemPort { node, network, ready, lost, .. } = self;
        node.step(now_ns, |out| {
            if out.network != *network {
                return;
            }
            if ready.len() < MAX_READY {
                ready.push_back((out.start_ns, out.frame.to_vec()));
            } else {
                *lost += 1;
            }
        });
    }

    /// In virtual time: goes on until a frame has left, if one will.
    fn go_on(&mut self) {
        while self.ready.is_empty()
            && let Some(next) = self.node.next_ns()
        {
            self.now_ns = self.now_ns.max(next);
            self.step(self.now_ns);
        }
    }

    /// In real time: what is due.
    fn catch_up(&mut self) {
        let Some((clock, _)) = self.real else { return };
        loop {
            let now_ns = clock.now_ns();
            if self.ready.len() >= MAX_READY || self.node.next_ns().is_none_or(|next| next > now_ns) {
                return;
            }
            self.step(now_ns);
        }
    }

    /// In real time: has the worker wake up when something is due.
    fn set_timer(&self) -> Result<(), PortError> {
        let Some((clock, timer)) = &self.real else { return Ok(()) };
        let wait_ns = match self.node.next_ns() {
            // 0 would switch the timer off.
            Some(next) => next.saturating_sub(clock.now_ns()).max(1),
            None => 0,
        };
        let time =
            Timespec { tv_sec: (wait_ns / 1_000_000_000) as i64, tv_nsec: (wait_ns % 1_000_000_000) as _ };
        let setting = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: time };
        timerfd_settime(timer, TimerfdTimerFlags::empty(), &setting)
            .map(drop)
            .map_err(|error| PortError::System { action: "set a timer".to_owned(), error: error.into() })
    }

    /// Sends the answers that are there; whether there were some.
    fn send_answers(&mut self) -> bool {
        let (Some((clock, _)), Some(management)) = (&self.real, &mut self.management) else { return false };
        management.send_answers(clock.now_ns(), &mut self.node.es)
    }

    /// What it tells at the end.
    fn report(&self) -> Value {
        let mut report = report::json(&self.node, &[]);
        if let Some(management) = &self.management {
            report["management"] = report::management(&management.counters());
        }
        report
    }

    /// The end system.
    pub fn node(&self) -> &Node {
        &self.node
    }
}

impl QueuePair for EndSystemPort {
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        match self.real {
            Some(_) => self.catch_up(),
            None => self.go_on(),
        }
        while let Some((at_ns, frame)) = self.ready.front() {
            let Some(packet) = batch.add(pool) else { return Ok(Received::More) };
            packet.timestamp_ns = *at_ns;
            if packet.set_frame(frame).is_err() {
                self.statistics.rx_errors += 1;
                batch.give_last_back(pool);
            } else {
                self.statistics.received(frame);
            }
            self.ready.pop_front();
        }
        match (&self.real, batch.is_empty()) {
            (Some(_), _) => {
                self.set_timer()?;
                // An answer that comes from now on sets the timer itself.
                Ok(if self.send_answers() { Received::More } else { Received::Idle })
            }
            (None, true) => Ok(Received::End),
            (None, false) => Ok(Received::More),
        }
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let now_ns = self.real.as_ref().map(|(clock, _)| clock.now_ns());
        for packet in batch.packets() {
            // In virtual time a frame carries the time when it leaves the switch.
            let at_ns = now_ns.unwrap_or(packet.timestamp_ns);
            let verdict = self.node.receive(at_ns, self.network, packet.data());
            if let Some(management) = &mut self.management {
                management.received(at_ns, &mut self.node.es, verdict);
            }
            self.statistics.sent(packet.data());
        }
        let sent = batch.len();
        batch.recycle(pool);
        if self.management.is_some() {
            // Whoever sleeps next is to wake up for the replies.
            self.set_timer()?;
            while self.send_answers() {
                self.set_timer()?;
            }
        }
        Ok(Transmitted { sent, refused: 0 })
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn poll_fd(&self) -> Option<RawFd> {
        self.real.as_ref().map(|(_, timer)| timer.as_raw_fd())
    }

    fn time_source(&self) -> TimeSource {
        match self.real {
            Some(_) => TimeSource::Wall,
            None => TimeSource::Simulated,
        }
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        if self.real.is_some() {
            return None;
        }
        self.go_on();
        self.ready.front().map(|(at_ns, _)| *at_ns)
    }

    fn statistics(&self) -> PortStatistics {
        PortStatistics { rx_missed: self.lost, ..self.statistics }
    }
}

/// The network that an end system has a line to; A if to both.
fn only_network(network: &millrace_network::Network, name: &str) -> Network {
    let has_a = network.links_at(name).any(|link| link.network == millrace_network::Side::A);
    if has_a { Network::A } else { Network::B }
}

impl Drop for EndSystemPort {
    fn drop(&mut self) {
        if let Some(mut file) = self.report.take() {
            // A switch that ends has nobody to tell: a report that cannot be written is not there.
            let _ = writeln!(file, "{}", self.report());
        }
    }
}
