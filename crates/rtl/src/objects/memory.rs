//! What units are made of: memories that are read and written in every cycle, and a queue for what software writes.

use crate::software_port::READ_LATENCY;
use millrace_netlist::{MemoryId, ModuleBuilder, NodeId, address_width};
use millrace_pipeline::Bits;

/// A write in some cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    pub(super) enable: NodeId,
    pub(super) address: NodeId,
    pub(super) data: NodeId,
}

impl Write {
    /// This one, or another where this one does not write.
    pub(super) fn or(self, m: &mut ModuleBuilder, other: Write) -> Write {
        Write {
            enable: m.or(self.enable, other.enable),
            address: m.mux(self.enable, self.address, other.address),
            data: m.mux(self.enable, self.data, other.data),
        }
    }

    /// This one where a bit is 1.
    pub(super) fn when(self, m: &mut ModuleBuilder, bit: NodeId) -> Write {
        Write { enable: m.and(self.enable, bit), ..self }
    }
}

/// A memory with one write port. What is read is what was written, also in the cycles in between.
pub(super) struct Store {
    name: String,
    memory: MemoryId,
    write: Option<Write>,
}

impl Store {
    /// Of so many words.
    pub(super) fn new(
        m: &mut ModuleBuilder,
        name: &str,
        width: u32,
        depth: u32,
        initial: Vec<Bits>,
    ) -> Store {
        let memory = m.memory(name, width, depth, initial);
        // Whoever reads a word that is written at the same edge gets it from the write port, and leaves the memory alone.
        m.promise_no_collision(memory);
        Store { name: name.to_owned(), memory, write: None }
    }

    /// Tells what is written; once, before anything is read.
    pub(super) fn written(&mut self, m: &mut ModuleBuilder, write: Write) {
        m.write(self.memory, write.enable, write.address, write.data);
        self.write = Some(write);
    }

    /// What is at an address, one cycle later: with all that was written until then, that cycle included.
    pub(super) fn read(&self, m: &mut ModuleBuilder, port: &str, enable: NodeId, address: NodeId) -> NodeId {
        let Some(write) = self.write else { return m.read_clocked(self.memory, address, Some(enable)) };
        let name = |what: &str| format!("{}_{port}_{what}", self.name);
        let (same, late) = {
            let same = m.eq(write.address, address);
            let same = m.and(same, write.enable);
            (same, m.delayed(&name("late"), write.data, None))
        };
        let other = m.not(same);
        let enable = m.and(enable, other);
        let kept = m.read_clocked(self.memory, address, Some(enable));
        let was_written = m.delayed(&name("was_written"), same, Some(0));
        let address = m.delayed(&name("address"), address, None);
        let same = m.eq(write.address, address);
        let is_written = m.and(same, write.enable);
        m.first(&[(is_written, write.data), (was_written, late)], kept)
    }
}

/// A place in a memory for a number of any width.
pub(super) struct Place {
    /// Whether there is such a word.
    pub(super) inside: NodeId,
    pub(super) address: NodeId,
}

/// Where a number points in a memory of so many words.
pub(super) fn place(m: &mut ModuleBuilder, index: NodeId, depth: u32) -> Place {
    let width = m.width(index);
    let inside = match width < 32 && (1 << width) <= depth {
        true => m.number(1, 1),
        false => {
            let index = m.resize(index, width.max(33));
            let end = m.number(width.max(33), depth.into());
            m.lt(index, end)
        }
    };
    Place { inside, address: m.resize(index, address_width(depth)) }
}

/// The write port of software: writes wait until the pipeline leaves the port of the memory alone.
pub(super) struct Queue {
    /// Whether one waits or comes.
    pub(super) busy: NodeId,
    /// Whether one waits.
    pub(super) waits: NodeId,
    pub(super) address: NodeId,
    pub(super) data: NodeId,
    head: (millrace_netlist::RegisterId, NodeId),
}

impl Queue {
    /// The ports `write_enable`, `write_address` and `write_data`, with room for writes of `wait` cycles that follow each other.
    pub(super) fn new(m: &mut ModuleBuilder, address: u32, data: u32, wait: u32) -> Queue {
        let enable = m.input("write_enable", 1);
        let write_address = m.input("write_address", address);
        let write_data = m.input("write_data", data);
        let depth = (wait + 4).next_power_of_two();
        let bits = address_width(depth);
        let memory = m.memory("waiting", address + data, depth, Vec::new());
        let (tail, tail_value) = m.register("waiting_tail", bits, Some(0));
        let head = m.register("waiting_head", bits, Some(0));
        let word = m.concat(&[write_address, write_data]);
        m.write(memory, enable, tail_value, word);
        let next = m.add_number(tail_value, 1);
        m.set_next(tail, next);
        m.set_enable(tail, enable);
        let waits = m.ne(head.1, tail_value);
        let word = m.read(memory, head.1);
        let (address, data) = (m.slice(word, data, address), m.slice(word, 0, data));
        let busy = m.or(waits, enable);
        Queue { busy, waits, address, data, head }
    }

    /// Takes the one that waits where a bit is 1; gives whether it did.
    pub(super) fn take(&self, m: &mut ModuleBuilder, free: NodeId) -> NodeId {
        let taken = m.and(self.waits, free);
        let next = m.add_number(self.head.1, 1);
        m.set_next(self.head.0, next);
        m.set_enable(self.head.0, taken);
        taken
    }
}

/// The read port of software, `read_enable` and `read_address`, in the cycle in which the memory is asked.
pub(super) struct Reads {
    pub(super) enable: NodeId,
    pub(super) address: NodeId,
}

impl Reads {
    pub(super) fn new(m: &mut ModuleBuilder, address: u32) -> Reads {
        let mut enable = m.input("read_enable", 1);
        let mut address = m.input("read_address", address);
        // Two cycles are for the memory and the register after it.
        for cycle in 3..=READ_LATENCY {
            enable = m.delayed(&format!("read_enable_{cycle}"), enable, Some(0));
            address = m.delayed(&format!("read_address_{cycle}"), address, None);
        }
        Reads { enable, address }
    }

    /// `read_data`, of what was read one cycle after the request.
    pub(super) fn answer(self, m: &mut ModuleBuilder, read: NodeId) {
        let data = m.delayed("read", read, None);
        m.output("read_data", data);
    }
}
