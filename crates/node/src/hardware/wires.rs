//! The links of the MACs of a design in simulation: who is at their other ends sends frames, and takes those that come.

use super::top::Top;
use crate::model::NodeFile;
use millrace_netlist::Simulator;
use millrace_rtl::device::wire::Wire;

/// What a frame has at least on a link, without its check sequence: shorter ones are padded by who sends them.
const SHORTEST: usize = 60;

/// The links, one for each MAC of the design.
#[derive(Debug)]
pub(super) struct Wires {
    wires: Vec<Wire>,
    /// What has left by them, each with the number of its link.
    left: Vec<(usize, Vec<u8>)>,
}

impl Wires {
    pub(super) fn new(node: &NodeFile, top: &Top, sim: &Simulator) -> Wires {
        let wire = |block: &usize| {
            let name = &node.blocks[*block].name;
            Wire::of(sim, top.link.of_devices(), [&format!("{name}.rx"), &format!("{name}.tx")])
        };
        Wires { wires: top.macs.iter().filter_map(wire).collect(), left: Vec::new() }
    }

    pub(super) fn count(&self) -> usize {
        self.wires.len()
    }

    /// Sends a frame by a link.
    pub(super) fn send(&mut self, wire: usize, frame: &[u8]) {
        let mut padded = frame.to_vec();
        padded.resize(frame.len().max(SHORTEST), 0);
        self.wires[wire].send(&padded, false);
    }

    /// Sets what comes in this cycle.
    pub(super) fn begin(&mut self, sim: &mut Simulator) {
        self.wires.iter_mut().for_each(|wire| wire.begin(sim));
    }

    /// Takes what leaves in this cycle.
    pub(super) fn end(&mut self, sim: &mut Simulator) {
        for (number, wire) in self.wires.iter_mut().enumerate() {
            let received = wire.end(sim);
            self.left.extend(received.filter(|frame| !frame.is_bad).map(|frame| (number, frame.bytes)));
        }
    }

    /// Whether nothing is on any of them.
    pub(super) fn are_idle(&self) -> bool {
        self.wires.iter().all(Wire::is_idle)
    }

    /// What has left since it was asked last.
    pub(super) fn take(&mut self) -> Vec<(usize, Vec<u8>)> {
        std::mem::take(&mut self.left)
    }
}
