//! A device in simulation by the cycle: beats or words at its ports, requests at the bus of its registers.

use super::Link;
use super::bench::{Decided, Left};
use super::build::Device;
use super::bus::{Master, Pending, Request};
use super::wire::{Received, Receiver, Sender};
use crate::map::RegisterAccess;
use millrace_netlist::{SignalId, SignalKind, Simulator};
use millrace_pipeline::Bits;
use std::collections::VecDeque;

/// Most cycles of a request at the bus.
const MAX_CYCLES: u32 = 1000;

/// A device whose frames wait at its ports and go in beat by beat; those that leave are put together again.
pub(super) struct Cycles {
    pub(super) simulator: Simulator,
    ports: Vec<Port>,
    bus: Master,
    decided: [SignalId; 3],
    now: Option<SignalId>,
    irq: Option<SignalId>,
    /// The length of a cycle for the time that meters see; 0: it stands still.
    pub(super) period_ps: u32,
    /// What came to an end since that was asked last.
    left: Vec<Left>,
    order: Vec<Decided>,
    /// While registers are read and written frames come and leave, at random by this number; none: those wait that have not begun.
    pub(super) traffic: Option<u64>,
    bytes: usize,
    inputs: Vec<(u32, Option<SignalId>)>,
    /// The inputs of each cycle, in the order of the ports of the top.
    pub(super) record: Option<Vec<Vec<Bits>>>,
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

impl Cycles {
    /// Of a device.
    ///
    /// # Errors
    /// The design is not well formed.
    pub(super) fn new(device: &Device) -> Result<Cycles, String> {
        let mut simulator = Simulator::new(&device.design).map_err(|errors| {
            errors.first().map_or_else(|| "the design is not well formed".to_owned(), ToString::to_string)
        })?;
        let mut ports = Vec::new();
        for port in 0..device.options.ports {
            let link = PortLink::of(&mut simulator, port, device.options.link);
            ports.push(Port { coming: VecDeque::new(), link, started: Vec::new() });
        }
        let output = |name: &str| simulator.output(name).ok_or_else(|| format!("there is no output {name}"));
        let decided = [output("decided")?, output("decided_port")?, output("decided_bank")?];
        let (now, irq) = (simulator.input("now_ns"), simulator.output("irq"));
        let bus = Master::of(&simulator, device.options.bus);
        let top = device.design.top().map(|top| &device.design.modules[top]);
        let inputs = top.into_iter().flat_map(|top| top.inputs.values());
        let inputs = inputs.map(|port| (port.width, simulator.input(&port.name))).collect();
        let bytes = device.options.width as usize / 8;
        let (left, order) = (Vec::new(), Vec::new());
        Ok(Cycles {
            simulator,
            ports,
            bus,
            decided,
            now,
            irq,
            period_ps: 0,
            left,
            order,
            traffic: None,
            bytes,
            inputs,
            record: None,
        })
    }

    pub(super) fn send(&mut self, port: u32, bytes: Vec<u8>, is_bad: bool) {
        if let Some(port) = self.ports.get_mut(port as usize).filter(|_| !bytes.is_empty()) {
            port.coming.push_back(Coming { bytes, at: 0, is_bad });
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.ports.iter().map(|port| port.coming.len()).sum()
    }

    pub(super) fn waiting_at(&self, port: u32) -> usize {
        self.ports.get(port as usize).map_or(0, |port| port.coming.len())
    }

    pub(super) fn take_started(&mut self, port: u32) -> Vec<u64> {
        self.ports.get_mut(port as usize).map(|port| std::mem::take(&mut port.started)).unwrap_or_default()
    }

    /// What left and was decided since this was asked last.
    pub(super) fn take(&mut self) -> (Vec<Left>, Vec<Decided>) {
        (std::mem::take(&mut self.left), std::mem::take(&mut self.order))
    }

    /// Whether the device raises its interrupt.
    pub(super) fn is_raised(&mut self) -> bool {
        get(&mut self.simulator, self.irq) != 0
    }

    /// Sets what comes to ports in this cycle, before its edge.
    pub(super) fn begin(&mut self, goes: &mut dyn FnMut(u32) -> bool, ready: &mut dyn FnMut(u32) -> bool) {
        if self.period_ps > 0 {
            let now = u128::from(self.simulator.cycle()) * u128::from(self.period_ps) / 1000;
            set(&mut self.simulator, self.now, now as u64);
        }
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
    }

    /// Takes what leaves in this cycle, and passes its edge.
    pub(super) fn end(&mut self) {
        let cycle = self.simulator.cycle();
        for (number, Port { coming, link, started }) in (0..).zip(&mut self.ports) {
            match link {
                PortLink::Streams(streams) => {
                    pass(&mut self.simulator, streams, coming, (cycle, self.bytes), started);
                    self.left.extend(leave(&mut self.simulator, streams, number, cycle));
                }
                PortLink::Wire(wire) => {
                    let [data, control] = wire.transmit.map(|signal| get(&mut self.simulator, signal));
                    let received = wire.receiver.word(data, control);
                    self.left.extend(received.map(|Received { bytes, at, is_bad }| Left {
                        port: number,
                        bytes,
                        at,
                        is_bad,
                    }));
                }
            }
        }
        let [decided, port, bank] = self.decided;
        if self.simulator.get_u64(decided) != 0 {
            let (port, bank) = (self.simulator.get_u64(port) as u32, self.simulator.get_u64(bank) != 0);
            self.order.push(Decided { port, bank });
        }
        edge(&mut self.simulator, &self.inputs, &mut self.record);
    }

    /// Does a request at the bus of registers.
    fn request(&mut self, request: Request) -> Result<u32, String> {
        let mut pending = Pending::new(request);
        for _ in 0..MAX_CYCLES {
            // A generator of Marsaglia: good enough for gaps.
            let random = self.traffic.map(|state| {
                let state = state ^ (state << 13);
                let state = state ^ (state >> 7);
                state ^ (state << 17)
            });
            self.traffic = random;
            let often =
                |port: u32, at: u32| random.is_some_and(|bits| (bits >> (at + 3 * (port % 8))) & 7 != 0);
            self.begin(&mut |port| often(port, 0), &mut |port| random.is_none() || often(port, 24));
            let answer = self.bus.cycle(&mut self.simulator, &mut pending);
            self.end();
            if let Some(answer) = answer {
                self.bus.idle(&mut self.simulator);
                return Ok(answer);
            }
        }
        Err("the bus of the device does not answer".to_owned())
    }
}

impl RegisterAccess for Cycles {
    type Error = String;

    fn read(&mut self, offset: u32) -> Result<u32, String> {
        self.request(Request::Read(offset))
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<(), String> {
        self.request(Request::Write(offset, value)).map(|_| ())
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
