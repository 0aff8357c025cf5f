//! A device in simulation, with frames at its ports.

use super::build::Device;
use super::wire::{Received, Receiver, Sender};
use super::{GROUPS, Link, NODES, Reason};
use crate::driver::{Driver, DriverError};
use crate::pins::{Attached, Pins};
use crate::tables::Full;
use millrace_netlist::{SignalId, SignalKind, Simulator, address_width};
use millrace_pipeline::Bits;
use millrace_state::State;
use std::collections::{BTreeMap, VecDeque};

/// A device in simulation: frames wait at its ports and go in beat by beat; those that leave are put together again.
pub struct Bench {
    simulator: Simulator,
    ports: Vec<Port>,
    /// What writes the tables of each stage, and by which ports.
    tables: Vec<(Driver, Pins<Simulator>)>,
    decided: [SignalId; 2],
    bytes: usize,
    inputs: Vec<(u32, Option<SignalId>)>,
    /// The inputs of each cycle, in the order of the ports of the top.
    record: Option<Vec<Vec<Bits>>>,
}

/// A frame that left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The port that it left by.
    pub port: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// When its start left, and its end: in cycles of the first and the last beat; with MACs in characters of the link, of which eight
    /// are a cycle.
    pub at: (u64, u64),
    /// It is marked as bad.
    pub is_bad: bool,
}

/// A frame that is to come.
struct Coming {
    bytes: Vec<u8>,
    at: usize,
    is_bad: bool,
}

struct Port {
    coming: VecDeque<Coming>,
    link: PortLink,
    /// When frames started to come in, in the unit of [`Left::at`].
    started: Vec<u64>,
}

/// What a port is connected to.
enum PortLink {
    Streams(Box<Streams>),
    Wire(Box<Wire>),
}

struct Streams {
    receive: Stream,
    transmit: Stream,
    leaving: Vec<u8>,
    began: u64,
    /// A beat is offered and has to stay.
    offered: bool,
}

/// XGMII: signals of data and control, and who is at the other end.
struct Wire {
    receive: [Option<SignalId>; 2],
    transmit: [Option<SignalId>; 2],
    sender: Sender,
    receiver: Receiver,
}

impl PortLink {
    fn of(simulator: &mut Simulator, port: u32, link: Link) -> PortLink {
        let (rx, tx) = (format!("rx{port}"), format!("tx{port}"));
        match link {
            Link::Stream => PortLink::Streams(Box::new(Streams {
                receive: Stream::of(simulator, &rx, SignalKind::Input, SignalKind::Output),
                transmit: Stream::of(simulator, &tx, SignalKind::Output, SignalKind::Input),
                leaving: Vec::new(),
                began: 0,
                offered: false,
            })),
            Link::Xgmii => {
                let all = simulator.input(&format!("{rx}_promiscuous"));
                set(simulator, all, 1);
                let names = ["data", "control"];
                PortLink::Wire(Box::new(Wire {
                    receive: names.map(|name| simulator.input(&format!("{rx}_{name}"))),
                    transmit: names.map(|name| simulator.output(&format!("{tx}_{name}"))),
                    sender: Sender::default(),
                    receiver: Receiver::default(),
                }))
            }
        }
    }
}

/// The signals of a stream.
struct Stream {
    data: Option<SignalId>,
    keep: Option<SignalId>,
    last: Option<SignalId>,
    user: Option<SignalId>,
    valid: Option<SignalId>,
    ready: Option<SignalId>,
}

impl Stream {
    fn of(simulator: &Simulator, name: &str, beat: SignalKind, back: SignalKind) -> Stream {
        let signal = |suffix: &str| simulator.signal(beat, &format!("{name}_{suffix}"));
        Stream {
            data: signal("tdata"),
            keep: signal("tkeep"),
            last: signal("tlast"),
            user: signal("tuser"),
            valid: signal("tvalid"),
            ready: simulator.signal(back, &format!("{name}_tready")),
        }
    }
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench").field("cycle", &self.simulator.cycle()).finish_non_exhaustive()
    }
}

impl Bench {
    /// Of a device, all its ports up.
    ///
    /// # Errors
    /// The design is not well formed.
    pub fn new(device: &Device) -> Result<Bench, String> {
        let mut simulator = Simulator::new(&device.design).map_err(|errors| {
            errors.first().map_or_else(|| "the design is not well formed".to_owned(), ToString::to_string)
        })?;
        let mut ports = Vec::new();
        for port in 0..device.options.ports {
            let link = PortLink::of(&mut simulator, port, device.options.link);
            ports.push(Port { coming: VecDeque::new(), link, started: Vec::new() });
        }
        let output = |name: &str| simulator.output(name).ok_or_else(|| format!("there is no output {name}"));
        let decided = [output("decided")?, output("decided_port")?];
        let tables = device.software.iter().map(|of| {
            let pins = Pins::find(&simulator, &format!("{}.", of.stage), &of.ports, of.bank.as_ref())?;
            Ok((Driver::new(of.units.iter().cloned().enumerate()), pins))
        });
        let tables = tables.collect::<Result<_, String>>()?;
        if let Some(up) = simulator.input("ports_up") {
            simulator.set_u64(up, u64::MAX);
        }
        let top = device.design.top().map(|top| &device.design.modules[top]);
        let inputs = top.into_iter().flat_map(|top| top.inputs.values());
        let inputs = inputs.map(|port| (port.width, simulator.input(&port.name))).collect();
        let bytes = device.options.width as usize / 8;
        Ok(Bench { simulator, ports, tables, decided, bytes, inputs, record: None })
    }

    /// From now on the inputs of each cycle are kept.
    pub fn record(&mut self) {
        self.record = Some(Vec::new());
    }

    /// The inputs of each cycle since [`Bench::record`], in the order of the ports of the top module.
    pub fn take_record(&mut self) -> Vec<Vec<Bits>> {
        self.record.take().unwrap_or_default()
    }

    /// Passes the edge of the clock.
    fn edge(&mut self) {
        edge(&mut self.simulator, &self.inputs, &mut self.record);
    }

    /// Writes what has changed in tables, between two frames.
    ///
    /// # Errors
    /// The entries of a table do not fit its unit.
    pub fn write_tables(&mut self, state: &State) -> Result<(), Full> {
        let Bench { simulator, tables, inputs, record, .. } = self;
        for (driver, pins) in tables {
            let pass = &mut |simulator: &mut Simulator| edge(simulator, inputs, record);
            match driver.update(state, &mut Attached { pins, wires: simulator, edge: pass }) {
                Ok(_) => {}
                Err(DriverError::Full(full)) => return Err(full),
                Err(DriverError::Device(never)) => match never {},
            }
        }
        Ok(())
    }

    /// Sets up multicast groups: for each number the ports and replica numbers of its copies.
    ///
    /// # Errors
    /// They are more than the device holds.
    pub fn write_groups(&mut self, groups: &BTreeMap<u32, Vec<(u32, u16)>>) -> Result<(), String> {
        let bits = address_width(NODES);
        let copies: usize = groups.values().map(Vec::len).sum();
        if copies > NODES as usize {
            return Err(format!("{copies} copies in multicast groups, more than {NODES} (limit NODES)"));
        }
        let mut next = 0u32;
        let mut words = Vec::new();
        for (group, members) in groups {
            if *group == 0 || *group >= GROUPS {
                return Err(format!("multicast group {group} is not below {GROUPS} (limit GROUPS)"));
            }
            let word = Bits::new(1, 1)
                .concat(&Bits::new(bits + 1, members.len() as u128))
                .concat(&Bits::new(bits, u128::from(next)));
            for (port, rid) in members {
                let node = Bits::new(16, u128::from(*rid)).concat(&Bits::new(32, u128::from(*port)));
                words.push(("node", next, node));
                next += 1;
            }
            words.push(("group", *group, word));
        }
        for (name, address, word) in words {
            let port = |what: &str| self.simulator.input(&format!("{name}_write_{what}"));
            let (Some(enable), Some(at), Some(data)) = (port("enable"), port("address"), port("data")) else {
                continue;
            };
            self.simulator.set_u64(enable, 1);
            self.simulator.set_u64(at, address.into());
            self.simulator.set(data, &word);
            self.edge();
            self.simulator.set_u64(enable, 0);
        }
        Ok(())
    }

    /// Sets an input that is no part of a stream, such as `tx0_mode`; says whether there is one.
    pub fn set(&mut self, input: &str, value: u64) -> bool {
        let signal = self.simulator.input(input);
        signal.into_iter().for_each(|signal| self.simulator.set_u64(signal, value));
        signal.is_some()
    }

    /// An output that is no part of a stream, such as `drop_queue_full`.
    pub fn get(&mut self, output: &str) -> Option<u64> {
        let signal = self.simulator.output(output)?;
        Some(self.simulator.get_u64(signal))
    }

    /// The drops so far, by reason.
    pub fn drops(&mut self) -> BTreeMap<Reason, u64> {
        let each = Reason::DROPS.into_iter();
        let counted = each.map(|reason| (reason, self.get(&format!("drop_{}", reason.name())).unwrap_or(0)));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    /// The cycle.
    pub fn cycle(&self) -> u64 {
        self.simulator.cycle()
    }

    /// The simulator.
    pub fn simulator(&mut self) -> &mut Simulator {
        &mut self.simulator
    }

    /// A frame waits for its turn at a port. A frame without bytes never comes.
    pub fn send(&mut self, port: u32, bytes: Vec<u8>, is_bad: bool) {
        if let Some(port) = self.ports.get_mut(port as usize).filter(|_| !bytes.is_empty()) {
            port.coming.push_back(Coming { bytes, at: 0, is_bad });
        }
    }

    /// How many frames wait at ports.
    pub fn waiting(&self) -> usize {
        self.ports.iter().map(|port| port.coming.len()).sum()
    }

    /// When the frames that came in at a port since this was asked last started, in the unit of [`Left::at`].
    pub fn take_started(&mut self, port: u32) -> Vec<u64> {
        self.ports.get_mut(port as usize).map(|port| std::mem::take(&mut port.started)).unwrap_or_default()
    }

    /// Passes a cycle. `goes` says whether a port offers a beat that it has (with a MAC, begins a frame), `ready` whether one takes a
    /// beat. Gives the frames whose last beat left, and the port whose header was decided in this cycle.
    pub fn step(
        &mut self,
        goes: &mut dyn FnMut(u32) -> bool,
        ready: &mut dyn FnMut(u32) -> bool,
    ) -> (Vec<Left>, Option<u32>) {
        let cycle = self.simulator.cycle();
        for (number, Port { coming, link, started }) in (0..).zip(&mut self.ports) {
            match link {
                PortLink::Streams(streams) => {
                    streams.offered = !coming.is_empty() && (streams.offered || goes(number));
                    if let (true, Some(frame)) = (streams.offered, coming.front()) {
                        offer(&mut self.simulator, &streams.receive, frame, self.bytes);
                    }
                    set(&mut self.simulator, streams.receive.valid, u64::from(streams.offered));
                    let taken = ready(number);
                    set(&mut self.simulator, streams.transmit.ready, u64::from(taken));
                }
                PortLink::Wire(wire) => {
                    if wire.sender.has_room()
                        && !coming.is_empty()
                        && goes(number)
                        && let Some(frame) = coming.pop_front()
                    {
                        started.push(wire.sender.send(&frame.bytes, frame.is_bad));
                    }
                    let (data, control) = wire.sender.word();
                    set(&mut self.simulator, wire.receive[0], data);
                    set(&mut self.simulator, wire.receive[1], control);
                }
            }
        }
        let mut left = Vec::new();
        for (number, Port { coming, link, started }) in (0..).zip(&mut self.ports) {
            match link {
                PortLink::Streams(streams) => {
                    pass(&mut self.simulator, streams, coming, (cycle, self.bytes), started);
                    left.extend(leave(&mut self.simulator, streams, number, cycle));
                }
                PortLink::Wire(wire) => {
                    let [data, control] = wire.transmit.map(|signal| get(&mut self.simulator, signal));
                    let received = wire.receiver.word(data, control);
                    left.extend(received.map(|Received { bytes, at, is_bad }| Left {
                        port: number,
                        bytes,
                        at,
                        is_bad,
                    }));
                }
            }
        }
        let decided = self.simulator.get_u64(self.decided[0]) != 0;
        let by = decided.then(|| self.simulator.get_u64(self.decided[1]) as u32);
        self.edge();
        (left, by)
    }
}

/// A beat that a stream takes.
fn pass(
    simulator: &mut Simulator,
    streams: &mut Streams,
    coming: &mut VecDeque<Coming>,
    (cycle, bytes): (u64, usize),
    started: &mut Vec<u64>,
) {
    if !streams.offered || get(simulator, streams.receive.ready) == 0 {
        return;
    }
    streams.offered = false;
    let done = coming.front_mut().is_some_and(|frame| {
        if frame.at == 0 {
            started.push(cycle);
        }
        frame.at += bytes;
        frame.at >= frame.bytes.len()
    });
    if done {
        coming.pop_front();
    }
}

/// A beat that leaves, and the frame if that was its last.
fn leave(simulator: &mut Simulator, streams: &mut Streams, port: u32, cycle: u64) -> Option<Left> {
    let Streams { transmit, leaving, began, .. } = streams;
    if get(simulator, transmit.valid) & get(simulator, transmit.ready) == 0 {
        return None;
    }
    if leaving.is_empty() {
        *began = cycle;
    }
    take(simulator, transmit, leaving);
    if get(simulator, transmit.last) == 0 {
        return None;
    }
    let is_bad = get(simulator, transmit.user) != 0;
    Some(Left { port, bytes: std::mem::take(leaving), at: (*began, cycle), is_bad })
}

fn set(simulator: &mut Simulator, signal: Option<SignalId>, value: u64) {
    signal.into_iter().for_each(|signal| simulator.set_u64(signal, value));
}

fn get(simulator: &mut Simulator, signal: Option<SignalId>) -> u64 {
    signal.map_or(0, |signal| simulator.get_u64(signal))
}

/// Puts the next beat of a frame at a stream.
fn offer(simulator: &mut Simulator, stream: &Stream, frame: &Coming, bytes: usize) {
    let rest = &frame.bytes[frame.at..];
    let now = &rest[..rest.len().min(bytes)];
    let mut limbs = vec![0u64; bytes / 8];
    for (at, byte) in now.iter().enumerate() {
        limbs[at / 8] |= u64::from(*byte) << (8 * (at % 8));
    }
    if let Some(data) = stream.data {
        simulator.set_limbs(data, &limbs);
    }
    set(simulator, stream.keep, u64::MAX >> (64 - now.len()));
    let is_last = rest.len() <= bytes;
    set(simulator, stream.last, u64::from(is_last));
    set(simulator, stream.user, u64::from(is_last && frame.is_bad));
}

/// Takes the bytes of a beat.
fn take(simulator: &mut Simulator, stream: &Stream, to: &mut Vec<u8>) {
    let keep = get(simulator, stream.keep);
    let count = (!keep).trailing_zeros() as usize;
    if let Some(data) = stream.data {
        let limbs: Vec<u64> = simulator.limbs(data).collect();
        to.extend(limbs.iter().flat_map(|limb| limb.to_le_bytes()).take(count));
    }
}

/// Passes the edge of the clock; keeps the inputs of the cycle, if they are wanted.
fn edge(simulator: &mut Simulator, inputs: &[(u32, Option<SignalId>)], record: &mut Option<Vec<Vec<Bits>>>) {
    if let Some(record) = record {
        let of = |(width, signal): &(u32, Option<SignalId>)| match signal {
            Some(signal) => simulator.get(*signal),
            None => Bits::zero(*width),
        };
        record.push(inputs.iter().map(of).collect());
    }
    simulator.step();
}
