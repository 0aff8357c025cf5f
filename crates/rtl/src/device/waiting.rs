//! Where frames and clones wait between ingress and their copies.

use super::fate::Fate;
use millrace_netlist::{MemoryId, ModuleBuilder, NodeId, RegisterId, address_width};

/// Words that wait in a memory which is read at once, the oldest first.
pub(super) struct Queue {
    memory: MemoryId,
    head: (RegisterId, NodeId),
    tail: (RegisterId, NodeId),
    count: RegisterId,
    /// How many there are.
    pub(super) length: NodeId,
    /// There are some, and the oldest.
    pub(super) some: NodeId,
    pub(super) oldest: NodeId,
}

impl Queue {
    /// Of `depth` words of so many bits, with the names of the memory and of what counts.
    pub(super) fn new(m: &mut ModuleBuilder, (memory, of): (&str, &str), width: u32, depth: u32) -> Queue {
        let memory = m.memory(memory, width, depth, Vec::new());
        let bits = address_width(depth);
        let head = m.register(&format!("{of}_head"), bits, Some(0));
        let tail = m.register(&format!("{of}_tail"), bits, Some(0));
        let (count, length) = m.register(&format!("{of}_count"), bits + 1, Some(0));
        let some = m.reduce_or(length);
        let oldest = m.read(memory, head.1);
        Queue { memory, head, tail, count, length, some, oldest }
    }

    /// A word is put after the others, and the oldest goes.
    pub(super) fn connect(&self, m: &mut ModuleBuilder, (push, word): (NodeId, NodeId), pop: NodeId) {
        m.write(self.memory, push, self.tail.1, word);
        self.move_on(m, push, pop);
    }

    fn move_on(&self, m: &mut ModuleBuilder, push: NodeId, pop: NodeId) {
        for ((register, at), moves) in [(self.head, pop), (self.tail, push)] {
            let next = m.add_number(at, 1);
            m.set_next(register, next);
            m.set_enable(register, moves);
        }
        let one = m.number(m.width(self.length), 1);
        let (more, less) = (m.add(self.length, one), m.sub(self.length, one));
        let next = m.mux(push, more, less);
        m.set_next(self.count, next);
        let changes = m.xor(push, pop);
        m.set_enable(self.count, changes);
    }
}

/// Frames that wait, the oldest first.
pub(super) struct Waiting {
    queue: Queue,
    incoming: Fate,
    /// The parts of a frame that differ, if not all are kept.
    stored: Option<Vec<NodeId>>,
    /// A frame comes, and what is kept of it.
    pub(super) comes: NodeId,
    pub(super) word: NodeId,
    /// There are some, and the oldest.
    pub(super) some: NodeId,
    pub(super) oldest: NodeId,
}

impl Waiting {
    /// Room for so many, which is never used up. What is always the same, or is there twice, does not wait, but if `keeps_all`, where
    /// clones of egress have something else there.
    pub(super) fn new(m: &mut ModuleBuilder, mut incoming: Fate, (depth, keeps_all): (u32, bool)) -> Waiting {
        let values: Vec<NodeId> = incoming.parts().into_iter().map(|part| *part).collect();
        let stored = (!keeps_all).then(|| {
            let mut stored = values.clone();
            stored.retain(|value| m.as_constant(*value).is_none());
            stored.sort_unstable();
            stored.dedup();
            stored
        });
        let word = m.concat(stored.as_ref().unwrap_or(&values));
        let queue = Queue::new(m, ("frames_to_copy", "copy"), m.width(word), depth);
        let (some, oldest, comes) = (queue.some, queue.oldest, incoming.header.valid);
        Waiting { queue, incoming, stored, comes, word, some, oldest }
    }

    /// The frame that a word is of.
    pub(super) fn fate(&self, m: &mut ModuleBuilder, valid: NodeId, word: NodeId) -> Fate {
        let mut incoming = self.incoming.clone();
        let values: Vec<NodeId> = incoming.parts().into_iter().map(|part| *part).collect();
        let mut low = m.width(word);
        let mut part = |value: &NodeId| {
            let width = m.width(*value);
            low -= width;
            m.slice(word, low, width)
        };
        let parts = match &self.stored {
            None => values.iter().map(part).collect(),
            Some(stored) => {
                let parts: Vec<NodeId> = stored.iter().map(&mut part).collect();
                let of = |value: &NodeId| stored.binary_search(value).map_or(*value, |at| parts[at]);
                values.iter().map(of).collect::<Vec<NodeId>>()
            }
        };
        self.incoming.with(valid, &parts)
    }

    /// The bits of the parts of a frame, where all are kept.
    pub(super) fn widths(&self, m: &ModuleBuilder) -> Vec<u32> {
        self.incoming.clone().parts().into_iter().map(|part| m.width(*part)).collect()
    }

    /// The frame that comes waits, and the oldest goes. Its word is written also where it does not wait, as that is known late: there is
    /// room, and what is not counted is written again.
    pub(super) fn connect(self, m: &mut ModuleBuilder, push: NodeId, pop: NodeId) {
        m.write(self.queue.memory, self.comes, self.queue.tail.1, self.word);
        self.queue.move_on(m, push, pop);
    }
}

/// Registers in which a frame stays until the next ones are free.
pub(super) struct Step {
    name: &'static str,
    register: RegisterId,
    pub(super) valid: NodeId,
}

impl Step {
    pub(super) fn new(m: &mut ModuleBuilder, name: &'static str) -> Step {
        let (register, valid) = m.register(&format!("{name}_valid"), 1, Some(0));
        Step { name, register, valid }
    }

    /// Whether there is room for the next, if what is there goes when `leaves` says so.
    pub(super) fn is_free(&self, m: &mut ModuleBuilder, leaves: NodeId) -> NodeId {
        let empty = m.not(self.valid);
        m.or(empty, leaves)
    }

    /// It takes what comes when it is free.
    pub(super) fn connect(&self, m: &mut ModuleBuilder, free: NodeId, comes: NodeId) {
        let next = m.mux(free, comes, self.valid);
        m.set_next(self.register, next);
    }

    /// A part of what it takes.
    pub(super) fn keep(&self, m: &mut ModuleBuilder, part: &str, value: NodeId, free: NodeId) -> NodeId {
        m.kept(&format!("{}_{part}", self.name), value, free, None)
    }
}
