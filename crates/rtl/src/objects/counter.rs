//! Counters: packets and bytes, each modulo 2 to the power of 64.

use super::ObjectUnit;
use super::memory::{Queue, Reads, Store, Write, place};
use millrace_netlist::{Module, ModuleBuilder, NodeId, address_width};

/// Packets lowest, bytes above them.
pub(super) const WORD: u32 = 128;

impl ObjectUnit {
    pub(super) fn counter(&self, name: &str, size: u32) -> Module {
        let mut m = ModuleBuilder::new(name);
        let queue = Queue::new(&mut m, self.address(), WORD, self.wait);
        let mut requests = Vec::new();
        for number in 0..self.slots.len() {
            let enable = m.input(&format!("slot{number}_enable"), 1);
            let index = m.input(&format!("slot{number}_input0"), self.inputs[number][0]);
            let bytes = m.input(&format!("slot{number}_input1"), self.inputs[number][1]);
            let place = place(&mut m, index, size);
            let enable = m.and(enable, place.inside);
            requests.push((enable, place.address, m.resize(bytes, 64)));
        }
        let enables: Vec<NodeId> = requests.iter().map(|request| request.0).collect();
        let enable = m.any(&enables);
        let of = |part: fn(&(NodeId, NodeId, NodeId)) -> NodeId| -> Vec<(NodeId, NodeId)> {
            requests.iter().map(|request| (request.0, part(request))).collect()
        };
        let address = m.one_hot(address_width(size), &of(|request| request.1));
        let bytes = m.one_hot(64, &of(|request| request.2));
        let count = Count { enable, address, bytes };
        let reads = Reads::new(&mut m, self.address());
        let read = counted(&mut m, "counts", size, &count, &queue, (reads.enable, reads.address));
        reads.answer(&mut m, read);
        m.output("busy", queue.busy);
        m.finish()
    }
}

/// A packet to be counted.
pub(super) struct Count {
    pub(super) enable: NodeId,
    pub(super) address: NodeId,
    pub(super) bytes: NodeId,
}

/// Counts in each cycle; gives what software asked for a cycle ago. What software writes waits in a queue of which this takes
/// all.
fn counted(
    m: &mut ModuleBuilder,
    name: &str,
    size: u32,
    count: &Count,
    queue: &Queue,
    read: (NodeId, NodeId),
) -> NodeId {
    let memory = Counts::new(m, name, size);
    let free = memory.free(m);
    let taken = queue.take(m, free);
    let software = Write { enable: taken, address: queue.address, data: queue.data };
    memory.finish(m, count, software, read)
}

/// A memory of counts: a packet is counted two cycles after its request.
pub(super) struct Counts {
    name: String,
    store: Store,
    /// The write: whether, where and what, in registers.
    enable: (millrace_netlist::RegisterId, NodeId),
    address: (millrace_netlist::RegisterId, NodeId),
    data: (millrace_netlist::RegisterId, NodeId),
}

impl Counts {
    pub(super) fn new(m: &mut ModuleBuilder, name: &str, size: u32) -> Counts {
        let store = Store::new(m, name, WORD, size, Vec::new());
        Counts {
            name: name.to_owned(),
            store,
            enable: m.register(&format!("{name}_counts"), 1, Some(0)),
            address: m.register(&format!("{name}_at"), address_width(size), None),
            data: m.register(&format!("{name}_sum"), WORD, None),
        }
    }

    /// Whether software may write in this cycle.
    pub(super) fn free(&self, m: &mut ModuleBuilder) -> NodeId {
        m.not(self.enable.1)
    }

    /// Counts, and writes what software writes in cycles that are free; gives what software asked for a cycle ago.
    pub(super) fn finish(
        mut self,
        m: &mut ModuleBuilder,
        count: &Count,
        software: Write,
        (read_enable, read_address): (NodeId, NodeId),
    ) -> NodeId {
        let own = Write { enable: self.enable.1, address: self.address.1, data: self.data.1 };
        let write = own.or(m, software);
        self.store.written(m, write);
        let kept = self.store.read(m, "count", count.enable, count.address);
        let name = |what: &str| format!("{}_{what}", self.name);
        let enable = m.delayed(&name("request"), count.enable, Some(0));
        let address = m.delayed(&name("request_at"), count.address, None);
        let bytes = m.delayed(&name("request_bytes"), count.bytes, None);
        let (packets, before) = (m.slice(kept, 0, 64), m.slice(kept, 64, 64));
        let packets = m.add_number(packets, 1);
        let bytes = m.add(before, bytes);
        let sum = m.concat(&[bytes, packets]);
        m.set_next(self.enable.0, enable);
        m.set_next(self.address.0, address);
        m.set_next(self.data.0, sum);
        self.store.read(m, "software", read_enable, read_address)
    }
}
