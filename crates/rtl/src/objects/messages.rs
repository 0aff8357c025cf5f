//! Digests and lines of the log: a queue that software reads.
//!
//! A word is a message: its inputs, the first one highest, at the low end; above them the number of the message. Word 0 of the port of
//! software is the first message with a bit above it that says whether there is one, and reading takes it. Word 1 counts the messages
//! that were lost since there was no room.

use super::{Kind, ObjectUnit};
use crate::slots::Slot;
use crate::stage::{Access, Unit, input_width};
use millrace_netlist::{Module, ModuleBuilder, NodeId, address_width};
use millrace_pipeline::Type;

/// A kind of message: what an access of a stage sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// The access that sends it.
    pub(crate) access: usize,
    /// What it is.
    pub(crate) unit: Unit,
    /// The types of its values.
    pub(crate) values: Vec<Type>,
}

impl Message {
    /// The bits of its values.
    pub(crate) fn width(&self) -> u32 {
        self.values.iter().map(|ty| input_width(*ty)).sum()
    }
}

/// The messages of a stage; their places are their numbers.
pub(super) fn of(slots: &[Slot], accesses: &[Access]) -> Vec<Message> {
    let numbers = slots.iter().flat_map(|slot| &slot.accesses);
    let message = |at: &usize| Message {
        access: *at,
        unit: accesses[*at].unit.clone(),
        values: accesses[*at].inputs.iter().map(|(_, ty)| *ty).collect(),
    };
    numbers.map(message).collect()
}

/// The bits of the number of a message.
pub(crate) fn number_width(messages: &[Message]) -> u32 {
    address_width(messages.len() as u32)
}

/// The bits of a message.
pub(crate) fn width(kind: &Kind) -> u32 {
    match kind {
        Kind::Messages { messages, .. } => {
            number_width(messages) + messages.iter().map(Message::width).max().unwrap_or(0)
        }
        _ => 1,
    }
}

impl ObjectUnit {
    pub(super) fn messages(&self, name: &str, depth: u32) -> Module {
        let mut m = ModuleBuilder::new(name);
        let width = width(&self.kind);
        let bits = address_width(depth);
        let mut choices = Vec::new();
        for number in 0..self.slots.len() {
            let enable = m.input(&format!("slot{number}_enable"), 1);
            choices.push((enable, m.input(&format!("slot{number}_input0"), width)));
        }
        let enables: Vec<NodeId> = choices.iter().map(|(enable, _)| *enable).collect();
        let comes = m.any(&enables);
        let message = m.one_hot(width, &choices);
        let super::memory::Reads { enable: read, address } = super::memory::Reads::new(&mut m, 1);

        let memory = m.memory("queue", width, depth, Vec::new());
        // A message is stored from the cycle after its write on, and one that is not stored is not read.
        m.promise_no_collision(memory);
        let (head, first) = m.register("head", bits, Some(0));
        let (tail, end) = m.register("tail", bits, Some(0));
        let (stored, count) = m.register("stored", bits + 1, Some(0));
        let full = m.is(count, depth.into());
        let room = m.not(full);
        let push = m.and(comes, room);
        m.write(memory, push, end, message);
        let next = m.add_number(end, 1);
        m.set_next(tail, next);
        m.set_enable(tail, push);
        let some = m.reduce_or(count);
        m.output("pending", some);
        let is_queue = m.not(address);
        let pop = m.all(&[read, is_queue, some]);
        let taken = m.read_clocked(memory, first, Some(pop));
        let next = m.add_number(first, 1);
        m.set_next(head, next);
        m.set_enable(head, pop);
        let one = m.number(bits + 1, 1);
        let (more, less) = (m.add(count, one), m.sub(count, one));
        let next = m.mux(push, more, less);
        m.set_next(stored, next);
        let changes = m.xor(push, pop);
        m.set_enable(stored, changes);
        let (lost, number) = m.register("lost", 64, Some(0));
        let next = m.add_number(number, 1);
        m.set_next(lost, next);
        let loses = m.and(comes, full);
        m.set_enable(lost, loses);

        let word = self.port().width;
        let there = m.delayed("there", pop, Some(0));
        let is_count = m.delayed("is_count", address, None);
        let number = m.delayed("lost_read", number, None);
        let zeros = word - 1 - width;
        let taken = match zeros {
            0 => m.concat(&[there, taken]),
            _ => {
                let zeros = m.number(zeros, 0);
                m.concat(&[there, zeros, taken])
            }
        };
        let number = m.resize(number, word);
        let data = m.mux(is_count, number, taken);
        let data = m.delayed("read", data, None);
        m.output("read_data", data);
        m.finish()
    }
}
