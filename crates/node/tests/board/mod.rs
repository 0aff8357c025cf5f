//! A board in simulation: the design of a node with its registers as the kernel maps them, and frames at its links.

use millrace_link::{Device, Event, Fault, Shape};
use millrace_netlist::{SignalId, Simulator};
use millrace_node::hardware::{Part, Top};
use millrace_node::{Graph, Mapped, NodeFile};
use millrace_rtl::device::Link;
use millrace_rtl::device::wire::Wire;
use millrace_rtl::map::{Master, Pending, Request};
use millrace_rtl::{Effort, Pair};
use std::sync::{Arc, Mutex};

/// A board: cycles pass while its registers are accessed, and frames come and leave by its links.
pub(crate) struct Board {
    sim: Simulator,
    /// That of the registers of the node, and those of programs.
    buses: Vec<Master>,
    wires: [Wire; 2],
    left: [Vec<Vec<u8>>; 2],
    inputs: Vec<(u32, Option<SignalId>)>,
    /// The inputs of each cycle, in words.
    pub(crate) record: Vec<Vec<u64>>,
    /// The number of the next frame that comes by the first link by itself, each in so many cycles; none do.
    pub(crate) paced: Option<u32>,
}

/// Most cycles until all frames have left.
const MOST_CYCLES: u32 = 2_000_000;
/// Cycles between two frames that come by themselves: more than a TCAM takes for one of 60 bytes.
const PACE: usize = 29;

impl Board {
    /// With the MACs of these names.
    pub(crate) fn new(node: &NodeFile, top: &Top, link: Link, macs: [&str; 2]) -> Board {
        let sim = Simulator::new(&top.design).unwrap_or_else(|errors| panic!("{errors:?}"));
        let wire = |name: &str| Wire::of(&sim, link, [&format!("{name}.rx"), &format!("{name}.tx")]).unwrap();
        let wires = macs.map(wire);
        let part = |of: &Arc<Part>| {
            let name = &node.blocks[of.block()].name;
            Master::of_part(&sim, of.device().options().bus, &format!("{name}."))
        };
        let buses = std::iter::once(Master::of(&sim, top.bus)).chain(top.programs.iter().map(part)).collect();
        let inputs = top.design.modules[top.design.top().unwrap()].inputs.values();
        let inputs = inputs.map(|port| (port.width, sim.input(&port.name))).collect();
        Board { sim, buses, wires, left: Default::default(), inputs, record: Vec::new(), paced: None }
    }

    pub(crate) fn cycle(&mut self, request: Option<(usize, &mut Pending)>) -> Option<u32> {
        if let Some(number) = self.paced.as_mut().filter(|_| self.record.len().is_multiple_of(PACE)) {
            let mut bytes = vec![2; 60];
            bytes[20..24].copy_from_slice(&number.to_be_bytes());
            *number += 1;
            self.wires[0].send(&bytes, false);
        }
        self.wires.iter_mut().for_each(|wire| wire.begin(&mut self.sim));
        let answer = request.and_then(|(bus, pending)| self.buses[bus].cycle(&mut self.sim, pending));
        for (wire, left) in self.wires.iter_mut().zip(&mut self.left) {
            left.extend(wire.end(&mut self.sim).map(|frame| {
                assert!(!frame.is_bad);
                frame.bytes
            }));
        }
        let mut words = Vec::new();
        for (width, signal) in &self.inputs {
            match signal {
                Some(signal) => words.extend(self.sim.get(*signal).limbs()),
                None => words.extend(std::iter::repeat_n(0, width.div_ceil(64) as usize)),
            }
        }
        self.record.push(words);
        self.sim.step();
        answer
    }

    fn request(&mut self, bus: usize, request: Request) -> Result<u32, Fault> {
        let mut pending = Pending::new(request);
        for _ in 0..100 {
            if let Some(answer) = self.cycle(Some((bus, &mut pending))) {
                self.buses[bus].idle(&mut self.sim);
                return Ok(answer);
            }
        }
        Err(Fault::new("the bus does not answer"))
    }

    /// Sends frames by both links as fast as these carry them; gives what leaves until nothing does any more.
    pub(crate) fn carry_at_once(&mut self, frames: &[(usize, Vec<u8>)]) -> [Vec<Vec<u8>>; 2] {
        for (port, frame) in frames {
            self.wires[*port].send(frame, false);
        }
        let (mut idle, mut cycles) = (0, 0);
        while idle < 10_000 {
            self.cycle(None);
            idle = if self.wires.iter().all(Wire::is_idle) { idle + 1 } else { 0 };
            cycles += 1;
            assert!(cycles < MOST_CYCLES, "frames go on to leave");
        }
        std::mem::take(&mut self.left)
    }

    /// Sends frames, one after the other; gives what leaves by both links until nothing does any more.
    pub(crate) fn carry(&mut self, frames: &[(usize, Vec<u8>)]) -> [Vec<Vec<u8>>; 2] {
        for (port, frame) in frames {
            self.wires[*port].send(frame, false);
            let mut idle = 0;
            while idle < 300 {
                self.cycle(None);
                idle = if self.wires.iter().all(Wire::is_idle) { idle + 1 } else { 0 };
            }
        }
        std::mem::take(&mut self.left)
    }
}

/// The registers of a board, as the kernel maps them.
#[derive(Clone)]
pub(crate) struct Registers(pub(crate) Arc<Mutex<Board>>, pub(crate) usize);

impl Device for Registers {
    fn shape(&self) -> Shape {
        Shape { name: "board".to_owned(), bytes: 1 << 20, ports: 0 }
    }

    fn read(&mut self, address: u32) -> Result<u32, Fault> {
        self.0.lock().unwrap().request(self.1, Request::Read(address))
    }

    fn write(&mut self, address: u32, word: u32) -> Result<(), Fault> {
        self.0.lock().unwrap().request(self.1, Request::Write(address, word)).map(|_| ())
    }

    fn send(&mut self, _: u16, _: &[u8]) -> Result<(), Fault> {
        Err(Fault::new("registers carry no frames"))
    }

    fn poll(&mut self, _: &mut dyn FnMut(Event)) -> Result<(), Fault> {
        Ok(())
    }
}

/// What leaves a node in software by both MACs, the same frames one after the other.
pub(crate) fn carry(
    graph: &mut Graph,
    node: &NodeFile,
    macs: [&str; 2],
    frames: &[(usize, Vec<u8>)],
) -> [Vec<Vec<u8>>; 2] {
    let macs = macs.map(|name| node.block(name).unwrap());
    let mut left = [Vec::new(), Vec::new()];
    for (port, frame) in frames {
        graph.receive(macs[*port], frame, 0);
        while graph.turn(0) {}
        for (mac, left) in macs.iter().zip(&mut left) {
            left.extend(std::iter::from_fn(|| graph.leave_by(*mac)));
        }
    }
    left
}

/// All registers but those of the node itself, which the hardware does not have.
pub(crate) fn all(map: &[Mapped], mut read: impl FnMut(u32) -> u32) -> Vec<(String, Vec<u32>)> {
    let of_blocks = map.iter().filter(|of| !of.name.starts_with("node."));
    let mut value = |of: &Mapped| (0..of.words).map(|word| read(of.address + 4 * word)).collect();
    of_blocks.map(|of| (of.name.clone(), value(of))).collect()
}

/// What the board did, again and in a model of Verilator: every output in every cycle. Without Verilator nothing is compared.
pub(crate) fn verilated(top: &Top, board: &Board) {
    if std::process::Command::new("verilator").arg("--version").output().is_err() {
        println!("skipped, there is no verilator (Debian: verilator)");
        return;
    }
    let mut pair = Pair::new(&top.design, Effort::Quick).unwrap();
    for (cycle, inputs) in board.record.iter().enumerate() {
        let mut words = inputs.iter().copied();
        pair.set_inputs(&mut || words.next().unwrap());
        if let Some((port, ours, theirs)) = pair.difference() {
            panic!("cycle {cycle}: {port} is {ours}, in Verilator {theirs}");
        }
        pair.step();
    }
}
