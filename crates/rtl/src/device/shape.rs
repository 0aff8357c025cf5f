//! The widths of a device: what all of its modules agree about.

use super::clones::Features;
use super::headers::Headers;
use super::{CLASS_BITS, DeviceOptions, Link, NODES};
use millrace_netlist::blocks::EditorShape;
use millrace_netlist::{ModuleBuilder, NodeId, StreamShape, address_width};

/// The widths of a device.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) ports: u32,
    /// The number by which each port is known.
    pub(super) numbers: Vec<u32>,
    /// Bits of a beat.
    pub(super) width: u32,
    /// Frames that a receiving side holds, and the bytes of each.
    pub(super) slots: u32,
    pub(super) frame: u32,
    /// Queues of a sending side, and the frames of each.
    pub(super) queues: u32,
    pub(super) depth: u32,
    pub(super) headers: Headers,
    pub(super) link: Link,
    /// Bits that go with a frame that starts again; 0: none does.
    pub(super) tag: u32,
    pub(super) features: Features,
    /// Bits that come with a frame and leave with its copies, which then have their class, too.
    pub(super) user: Option<u32>,
}

impl Shape {
    /// Bits of a frame's length.
    pub(super) const LENGTH: u32 = 16;
    /// The most bytes of a frame that is not cut.
    pub(super) const NO_LIMIT: u32 = (1 << Shape::LENGTH) - 1;

    /// Slots of each receiving side where frames start again, at least.
    const SLOTS_AGAIN: u32 = 8;

    pub(super) fn new(options: &DeviceOptions, headers: Headers, (tag, features): (u32, Features)) -> Shape {
        let DeviceOptions { ports, width, link, frame, queues, depth, user, .. } = *options;
        let slots = if tag > 0 { options.slots.max(Shape::SLOTS_AGAIN) } else { options.slots };
        let numbers = (0..ports).map(|port| options.number(port)).collect();
        Shape { ports, numbers, width, slots, frame, queues, depth, headers, link, tag, features, user }
    }

    /// Whether ports are known by numbers that are not from 0 on.
    fn is_numbered(&self) -> bool {
        self.numbers.iter().zip(0..).any(|(number, port)| *number != port)
    }

    /// The number by which a port is known.
    pub(super) fn number_of(&self, m: &mut ModuleBuilder, port: NodeId) -> NodeId {
        if !self.is_numbered() {
            return port;
        }
        let bits = self.numbers.iter().map(|number| number.checked_ilog2().map_or(1, |last| last + 1)).max();
        let number = |number: &u32| m.number(bits.unwrap_or(1), u128::from(*number));
        let numbers: Vec<NodeId> = self.numbers.iter().map(number).collect();
        m.choose(port, &numbers)
    }

    /// The port of a number of 32 bits, and whether there is such a port.
    pub(super) fn port_of(&self, m: &mut ModuleBuilder, number: NodeId) -> (NodeId, NodeId) {
        if !self.is_numbered() {
            let ports = m.number(32, u128::from(self.ports));
            return (m.slice(number, 0, self.port_bits()), m.lt(number, ports));
        }
        let is: Vec<NodeId> = self.numbers.iter().map(|own| m.is(number, u128::from(*own))).collect();
        let ports: Vec<(NodeId, NodeId)> =
            is.iter().zip(0..).map(|(is, port)| (*is, m.number(self.port_bits(), port))).collect();
        (m.one_hot(self.port_bits(), &ports), m.any(&is))
    }

    /// Receiving sides, and sending sides: one for each port, and one for frames that start again.
    pub(super) fn sides(&self) -> u32 {
        self.ports + u32::from(self.tag > 0)
    }

    /// Of the sides for frames that start again.
    pub(super) fn again(&self) -> Shape {
        Shape { queues: 1, depth: self.slots, link: Link::Stream, ..self.clone() }
    }

    /// Frames that wait to start again, at most. With the one that was taken from the queue and the one that is copied they have fewer
    /// slots than there are, and so there is always one that the first of them can be written to, when frames for ports have left.
    pub(super) fn places_again(&self) -> u32 {
        self.slots - 4
    }

    /// Words of a slot.
    pub(super) fn words(&self) -> u32 {
        self.frame * 8 / self.width
    }

    pub(super) fn word_bits(&self) -> u32 {
        address_width(self.words())
    }

    pub(super) fn lane_bits(&self) -> u32 {
        address_width(self.width / 8)
    }

    /// Bits of what is kept of the end of a frame: the bytes of its last word less one, the number of that, whether the frame is bad.
    pub(super) fn last_word_bits(&self) -> u32 {
        self.lane_bits() + self.word_bits() + 1
    }

    pub(super) fn slot_bits(&self) -> u32 {
        address_width(self.slots)
    }

    pub(super) fn port_bits(&self) -> u32 {
        address_width(self.sides())
    }

    /// Bits of the number of a queue.
    pub(super) fn queue_bits(&self) -> u32 {
        address_width(self.queues)
    }

    /// Bits of a class: where it does not leave with the frame, those of the number of a queue.
    pub(super) fn class_bits(&self) -> u32 {
        if self.user.is_some() { CLASS_BITS } else { self.queue_bits() }
    }

    /// The highest class; a frame of a higher one is of this.
    pub(super) fn highest_class(&self) -> u32 {
        if self.user.is_some() { (1 << CLASS_BITS) - 1 } else { self.queues - 1 }
    }

    /// The queue of a class.
    pub(super) fn queue_of(&self, m: &mut ModuleBuilder, class: NodeId) -> NodeId {
        if self.user.is_none() {
            return class;
        }
        let last = m.number(self.class_bits(), u128::from(self.queues - 1));
        let above = m.lt(last, class);
        let queue = m.mux(above, last, class);
        m.slice(queue, 0, self.queue_bits())
    }

    /// Bits of what comes with a frame.
    pub(super) fn user_bits(&self) -> u32 {
        self.user.unwrap_or(0)
    }

    /// The stream of frames that come.
    pub(super) fn comes_in(&self) -> StreamShape {
        StreamShape::frames(self.width, 1 + self.user_bits())
    }

    /// The stream of frames that leave by a port.
    pub(super) fn leaves(&self) -> StreamShape {
        StreamShape::frames(self.width, self.user.map_or(1, |user| 1 + user + CLASS_BITS))
    }

    /// Bits of the number of copies of a frame that wait.
    pub(super) fn refs_bits(&self) -> u32 {
        address_width(if self.headers.has_groups { NODES } else { self.ports } + 1)
    }

    /// Bits of the number of a slot among those of all ports.
    pub(super) fn place_bits(&self) -> u32 {
        address_width(self.ports * self.slots)
    }

    /// Bits of the new headers.
    pub(super) fn emitted_bits(&self) -> u32 {
        self.headers.emitted.max(1) * 8
    }

    /// Bits of the number of frames of a queue.
    pub(super) fn count_bits(&self) -> u32 {
        address_width(self.depth + 1)
    }

    /// Words that the window has to be filled with; at least one.
    pub(super) fn window_words(&self) -> u32 {
        (self.headers.window * 8).div_ceil(self.width).max(1)
    }

    /// Bits of the window, of whole bytes; at least 8.
    pub(super) fn window_bits(&self) -> u32 {
        (self.headers.window * 8).max(8)
    }

    pub(super) fn editor(&self) -> EditorShape {
        let Headers { emitted, moves, .. } = self.headers;
        EditorShape { data: self.width, emitted, word: self.word_bits(), moves }
    }
}
