//! A device in simulation by the cycle: beats or words at its ports, requests at the bus of its registers.

use super::Link;
use super::bench::{Decided, Left};
use super::build::Device;
use super::wire::{Received, Wire};
use crate::map::{Master, Pending, RegisterAccess, Request};
use crate::streams::{Coming, Streams, get, set};
use crate::table_memories::TableMemories;
use millrace_netlist::{SignalId, Simulator, in_words};
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
    memories: TableMemories,
    /// Words of tables that an update writes to each bank through the bus.
    pub(super) words_by_bus: usize,
    inputs: Vec<(u32, Option<SignalId>)>,
    /// The inputs of each cycle, in the order of the ports of the top.
    pub(super) record: Option<Vec<Vec<Bits>>>,
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

impl PortLink {
    fn of(simulator: &Simulator, port: u32, link: Link) -> PortLink {
        match Wire::of(simulator, link, [&format!("rx{port}"), &format!("tx{port}")]) {
            Some(wire) => PortLink::Wire(Box::new(wire)),
            None => PortLink::Streams(Box::new(Streams::of(simulator, port))),
        }
    }
}

impl Cycles {
    /// Of a device.
    ///
    /// # Errors
    /// The design is not well formed.
    pub(super) fn new(device: &Device) -> Result<Cycles, String> {
        let simulator = Simulator::new(&device.design).map_err(|errors| in_words(&errors))?;
        let mut ports = Vec::new();
        for port in 0..device.options.ports {
            let link = PortLink::of(&simulator, port, device.options.link);
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
        let memories = TableMemories::find(device.memories(), |name| simulator.memory(name));
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
            memories,
            words_by_bus: usize::MAX,
            inputs,
            record: None,
        })
    }

    pub(super) fn send(&mut self, port: u32, bytes: Vec<u8>, is_bad: bool) {
        if let Some(port) = self.ports.get_mut(port as usize).filter(|_| !bytes.is_empty()) {
            port.coming.push_back(Coming::new(bytes, is_bad));
        }
    }

    /// From now on the time is this.
    pub(super) fn set_now(&mut self, now_ns: u64) {
        self.period_ps = 0;
        set(&mut self.simulator, self.now, now_ns);
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
                    let (ready, bytes) = (ready(number), self.bytes);
                    streams.begin(&mut self.simulator, coming, &mut || goes(number), (ready, bytes));
                }
                PortLink::Wire(wire) => {
                    if wire.has_room()
                        && !coming.is_empty()
                        && goes(number)
                        && let Some(frame) = coming.pop_front()
                    {
                        started.push(wire.send(&frame.bytes, frame.is_bad));
                    }
                    wire.begin(&mut self.simulator);
                }
            }
        }
    }

    /// Takes what leaves in this cycle, and passes its edge.
    pub(super) fn end(&mut self) {
        for (number, Port { coming, link, started }) in (0..).zip(&mut self.ports) {
            match link {
                PortLink::Streams(streams) => {
                    let port = (number, self.bytes);
                    self.left.extend(streams.end(&mut self.simulator, coming, port, started));
                }
                PortLink::Wire(wire) => {
                    let received = wire.end(&mut self.simulator);
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

    fn words_by_registers(&self) -> usize {
        self.words_by_bus
    }

    fn set_at_once(&mut self, port: usize, address: u64, word: &Bits) -> bool {
        let Some((memories, at)) = self.memories.place(port, address) else { return false };
        memories.iter().for_each(|memory| self.simulator.write_memory(*memory, at, word));
        true
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
