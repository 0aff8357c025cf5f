//! Registers: a memory that frames read and write. The bits of entries that were hit are one that frames set.

use super::ObjectUnit;
use super::memory::{Queue, Reads, Store, Write, place};
use crate::stage::Unit;
use millrace_netlist::{Module, ModuleBuilder, NodeId};
use millrace_pipeline::Bits;

impl ObjectUnit {
    /// An answer comes two cycles after its request, and has all that was written before its cycle.
    pub(super) fn register(
        &self,
        name: &str,
        (width, size): (u32, u32),
        initial: Option<&Bits>,
        one_read: bool,
    ) -> Module {
        let mut m = ModuleBuilder::new(name);
        let initial = initial.map_or_else(Vec::new, |initial| vec![initial.clone(); size as usize]);
        let mut store = Store::new(&mut m, "cells", width, size, initial);
        let queue = Queue::new(&mut m, self.address(), width, self.wait);
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for (number, slot) in self.slots.iter().enumerate() {
            let enable = m.input(&format!("slot{number}_enable"), 1);
            let index = m.input(&format!("slot{number}_input0"), self.inputs[number][0]);
            let place = place(&mut m, index, size);
            let enable = m.and(enable, place.inside);
            if let Unit::RegisterWrite(_) | Unit::Hit(_) = slot.unit {
                let data = match slot.unit {
                    Unit::Hit(_) => m.number(width, 1),
                    _ => {
                        let data = m.input(&format!("slot{number}_input1"), self.inputs[number][1]);
                        m.resize(data, width)
                    }
                };
                writes.push(Write { enable, address: place.address, data });
            } else {
                reads.push((number, enable, place.address));
            }
        }
        let busy: Vec<NodeId> = writes.iter().map(|write| write.enable).collect();
        let busy = m.any(&busy);
        let free = m.not(busy);
        let taken = queue.take(&mut m, free);
        let software = Write { enable: taken, address: queue.address, data: queue.data };
        let write = writes.into_iter().fold(software, |rest, write| write.or(&mut m, rest));
        store.written(&mut m, write);
        let shared = one_read.then(|| {
            let enables: Vec<NodeId> = reads.iter().map(|(_, enable, _)| *enable).collect();
            let enable = m.any(&enables);
            let addresses: Vec<(NodeId, NodeId)> =
                reads.iter().map(|(_, enable, address)| (*enable, *address)).collect();
            let address = m.one_hot(millrace_netlist::address_width(size), &addresses);
            (enable, address)
        });
        let shared = shared
            .filter(|_| !reads.is_empty())
            .map(|(enable, address)| store.read(&mut m, "shared", enable, address));
        for (number, enable, address) in reads {
            let read = match shared {
                Some(read) => read,
                None => store.read(&mut m, &format!("slot{number}"), enable, address),
            };
            let there = m.delayed(&format!("slot{number}_there"), enable, Some(0));
            let mask = m.repeat(there, width);
            let value = m.and(read, mask);
            let answer = m.delayed(&format!("slot{number}_answered"), value, None);
            m.output(&format!("slot{number}_answer"), answer);
        }
        let reads = Reads::new(&mut m, self.address());
        let read = store.read(&mut m, "software", reads.enable, reads.address);
        reads.answer(&mut m, read);
        m.output("busy", queue.busy);
        m.finish()
    }
}
