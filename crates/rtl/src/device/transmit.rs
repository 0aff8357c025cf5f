//! The sending side of a port: queues of what is to be sent, the scheduler over them, and the editor that puts the new headers before
//! the bytes that wait at the port where the frame came in.

use super::clones::cut;
use super::shape::Shape;
use crate::parts::counter;
use crate::report::SHORTEST;
use millrace_netlist::blocks::{editor, scheduler};
use millrace_netlist::{Design, InstanceId, ModuleBuilder, ModuleId, NodeId, OutStream};

/// Whose sending side it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Port,
    /// That of frames that start again: with the tag of each, which is at the output `tag_sent` with its beats.
    Again,
}

/// What is told of a frame that goes to a queue, with the bits of each. New headers that all copies share are read when it is its turn.
pub(super) fn fields(shape: &Shape, side: Side) -> Vec<(&'static str, u32)> {
    let place = shape.editor().place();
    let mut fields = vec![
        ("input", shape.port_bits()),
        ("slot", shape.slot_bits()),
        ("emitted_bytes", place),
        ("moves", shape.editor().moved()),
    ];
    if !shape.headers.are_shared {
        fields.push(("emitted", shape.emitted_bits()));
    }
    if shape.features.cuts {
        fields.push(("most", Shape::LENGTH));
    }
    if shape.user.is_some() && side == Side::Port {
        fields.push(("of_class", shape.class_bits()));
    }
    if side == Side::Again {
        fields.push(("tag", shape.tag));
    }
    fields
}

/// The module of a sending side. Inputs: `enqueue` with `of_queue`, `bytes` and the [`fields`]; `mode` and `quantumN`; of each
/// receiving side `writtenN`, `writingN`, `dataN` and `last_wordN`, and `userN` where something goes with frames. Outputs: `accepted`;
/// `readN` with `address`; `soon`, when a beat is at `m` in the next cycle if none is taken in this one, as far as that is known;
/// `done` with `done_input` and `done_slot`; `countN`; `empty`, a cycle after a frame had no bytes; the stream `m`. Where copies share
/// new headers, `fetch` with `place` (the number of a slot of all ports) asks for those of the frame whose turn it is, and `emitted`
/// is what was asked for last.
pub(super) fn transmit(design: &mut Design, shape: &Shape, side: Side) -> ModuleId {
    let scheduling = scheduler(design, shape.queues, Shape::LENGTH, shape.count_bits());
    let editing = editor(design, shape.editor());
    let mut m = ModuleBuilder::new(if side == Side::Again { "transmit_again" } else { "transmit" });
    let fields = fields(shape, side);
    let (enqueue, class) = (m.input("enqueue", 1), m.input("of_queue", shape.queue_bits()));
    let bytes = m.input("bytes", Shape::LENGTH);
    let entry: Vec<NodeId> = fields.iter().map(|(name, width)| m.input(name, *width)).collect();
    let output = m.output_stream("m", if side == Side::Again { shape.comes_in() } else { shape.leaves() });

    // Whose turn it is.
    let turns = m.instance(design, scheduling, "scheduler");
    let mode = m.input("mode", 2);
    m.connect(turns, "mode", mode);
    let counts: Vec<NodeId> = (0..shape.queues).map(|at| m.output_of(turns, &format!("count{at}"))).collect();
    let most = if side == Side::Again { shape.places_again() } else { shape.depth };
    let enqueue = accept(&mut m, shape, &counts, most, Arriving { comes: enqueue, class, bytes, entry });
    let Arriving { comes: accepted, class, bytes, entry } = enqueue;
    m.connect(turns, "enqueue", accepted);
    m.connect(turns, "class", class);
    let (valid, choice) = (m.output_of(turns, "valid"), m.output_of(turns, "choice"));
    let edits = m.instance(design, editing, "editor");
    let take = m.output_of(edits, "take");
    let (fetch, fetched) = fetches(&mut m, shape, valid, take);
    m.connect(turns, "take", fetch);

    let places = places(&mut m, shape, (accepted, class), (fetch, choice));
    let all = m.concat(&entry);
    let memory = m.memory("entries", m.width(all), shape.queues * shape.depth, Vec::new());
    m.write(memory, accepted, places.write, all);
    let next = match shape.headers.are_shared {
        true => {
            let entry = m.read(memory, places.read);
            m.output("fetch", fetch);
            let place = m.slice(entry, m.width(entry) - source_bits(shape), source_bits(shape));
            let place = m.resize(place, shape.place_bits());
            m.output("place", place);
            let (register, next) = m.register("next", m.width(entry), None);
            m.set_next(register, entry);
            m.set_enable(register, fetch);
            next
        }
        false => {
            m.promise_no_collision(memory);
            m.read_clocked(memory, places.read, Some(fetch))
        }
    };
    let lengths = m.memory("lengths", Shape::LENGTH, shape.queues * shape.depth, Vec::new());
    m.write(lengths, accepted, places.write, bytes);
    for at in 0..shape.queues {
        let quantum = m.input(&format!("quantum{at}"), Shape::LENGTH);
        m.connect(turns, &format!("quantum{at}"), quantum);
        let length = m.read(lengths, places.heads[at as usize]);
        m.connect(turns, &format!("length{at}"), length);
        m.output(&format!("count{at}"), counts[at as usize]);
    }

    // What is sent, and what of it is there.
    let mut low = m.width(next);
    let fetched_fields: Vec<NodeId> = fields
        .iter()
        .map(|(_, width)| {
            low -= width;
            m.slice(next, low, *width)
        })
        .collect();
    m.connect(edits, "start", fetched);
    let emitted = match shape.headers.are_shared {
        true => m.input("emitted", shape.emitted_bits()),
        false => fetched_fields[4],
    };
    let told = [("emitted_bytes", fetched_fields[2]), ("moves", fetched_fields[3]), ("emitted", emitted)];
    for (name, value) in told {
        m.connect(edits, name, value);
    }
    let (input_register, input) = m.register("input_now", shape.port_bits(), None);
    let (slot_register, slot) = m.register("slot_now", shape.slot_bits(), None);
    for (register, value) in [(input_register, fetched_fields[0]), (slot_register, fetched_fields[1])] {
        m.set_next(register, value);
        m.set_enable(register, take);
    }
    let first = m.slice(fetched_fields[3], shape.editor().lane(), shape.word_bits());
    let next = Wanted { input: fetched_fields[0], slot: fetched_fields[1], word: first };
    read(&mut m, shape, (edits, take), (input, slot), &next);
    let user = with_frame(&mut m, shape, edits, input);
    let done = m.output_of(edits, "done");
    for (name, value) in [("done", done), ("done_input", input), ("done_slot", slot)] {
        m.output(name, value);
    }
    tell_empty(&mut m, edits, done);
    send(&mut m, shape, (edits, take, user), (&fields, &fetched_fields), &output);
    design.add(m.finish())
}

/// Says, a cycle later, that a frame had no bytes, so that nothing of it was sent.
fn tell_empty(m: &mut ModuleBuilder, edits: InstanceId, done: NodeId) {
    let emits = m.output_of(edits, "emits");
    let (register, before) = m.register("emitted_some", 1, Some(0));
    let some = m.or(before, emits);
    let goes_on = m.not(done);
    let next = m.and(some, goes_on);
    m.set_next(register, next);
    let none = m.not(some);
    let empty = m.and(done, none);
    let empty = m.delayed("empty", empty, Some(0));
    m.output("empty", empty);
}

/// What comes to the queues.
struct Arriving {
    comes: NodeId,
    class: NodeId,
    bytes: NodeId,
    entry: Vec<NodeId>,
}

/// What of it is queued: what finds room in its queue, which the output `accepted` says. Where the link has slack that is queued a cycle
/// later, so that what says where a copy goes, whether there is room, and the order of turns are not in one cycle.
fn accept(
    m: &mut ModuleBuilder,
    shape: &Shape,
    counts: &[NodeId],
    most: u32,
    arriving: Arriving,
) -> Arriving {
    // Compared before one is chosen: the class is there late.
    let mut are_full: Vec<NodeId> = counts.iter().map(|count| m.is(*count, most.into())).collect();
    let on_its_way = shape.link.has_slack().then(|| {
        let accepted = m.register("accepted_before", 1, Some(0));
        (accepted, m.delayed("class_before", arriving.class, None))
    });
    if let Some(((_, accepted), class)) = on_its_way {
        for (at, (full, count)) in (0..).zip(are_full.iter_mut().zip(counts)) {
            let (own, last_place) = (m.is(class, at), m.is(*count, u128::from(most - 1)));
            let fills = m.all(&[accepted, own, last_place]);
            *full = m.or(*full, fills);
        }
    }
    let full = m.choose(arriving.class, &are_full);
    let room = m.not(full);
    let accepted = m.and(arriving.comes, room);
    m.output("accepted", accepted);
    let refused = m.and(arriving.comes, full);
    counter(m, "full", refused);
    let Some(((register, comes), class)) = on_its_way else {
        return Arriving { comes: accepted, ..arriving };
    };
    m.set_next(register, accepted);
    let bytes = m.delayed("bytes_before", arriving.bytes, None);
    let parts = arriving.entry.iter().enumerate();
    let entry = parts.map(|(at, part)| m.delayed(&format!("entry_before{at}"), *part, None)).collect();
    Arriving { comes, class, bytes, entry }
}

/// Whether the next frame is fetched, while one is sent, and whether it was. When the editor takes it the place is free in the next cycle,
/// so that what the editor waits for and whose turn it is are not in one; where a frame can be one beat, at once.
fn fetches(m: &mut ModuleBuilder, shape: &Shape, valid: NodeId, take: NodeId) -> (NodeId, NodeId) {
    let (register, fetched) = m.register("fetched", 1, Some(0));
    let none = m.not(fetched);
    let free = if shape.width < 8 * SHORTEST { none } else { m.or(none, take) };
    let fetch = m.and(valid, free);
    let stays = m.not(take);
    let stays = m.and(fetched, stays);
    let next = m.or(fetch, stays);
    m.set_next(register, next);
    (fetch, fetched)
}

/// Sends what the editor gives, with what belongs to the frame of the beat at its output.
fn send(
    m: &mut ModuleBuilder,
    shape: &Shape,
    (edits, take, user): (InstanceId, NodeId, Option<NodeId>),
    (fields, fetched): (&[(&'static str, u32)], &[NodeId]),
    output: &OutStream,
) {
    let at_output = |m: &mut ModuleBuilder, name: &str| {
        let at = fields.iter().position(|(field, _)| *field == name)?;
        let (register, now) = m.register(&format!("{name}_now"), fields[at].1, None);
        m.set_next(register, fetched[at]);
        m.set_enable(register, take);
        let (register, out) = m.register(&format!("{name}_out"), fields[at].1, None);
        let emits = m.output_of(edits, "emits");
        m.set_next(register, now);
        m.set_enable(register, emits);
        Some(out)
    };
    if let Some(tag) = at_output(m, "tag") {
        m.output("tag_sent", tag);
    }
    let (mut beat, there) = m.stream_from(edits, "m");
    let more: Vec<NodeId> = at_output(m, "of_class").into_iter().chain(user).chain(beat.user).collect();
    beat.user = Some(m.concat(&more));
    match at_output(m, "most") {
        Some(most) => {
            // Of what is cut nothing may be left.
            let unknown = m.number(1, 0);
            m.output("soon", unknown);
            cut(m, shape, (edits, most), (beat, there), output);
        }
        None => {
            let soon = m.output_of(edits, "soon");
            m.output("soon", soon);
            m.connect_ready(edits, "m", output.ready);
            m.drive_stream(output, &beat, there);
        }
    }
}

/// What came with the frame of the beat at the output, from the side where it came in.
fn with_frame(m: &mut ModuleBuilder, shape: &Shape, edits: InstanceId, input: NodeId) -> Option<NodeId> {
    let bits = shape.user_bits();
    if bits == 0 {
        return None;
    }
    let users: Vec<NodeId> = (0..shape.sides()).map(|port| m.input(&format!("user{port}"), bits)).collect();
    let now = m.choose(input, &users);
    let emits = m.output_of(edits, "emits");
    Some(m.kept("user_out", now, emits, None))
}

/// Bits that say where a frame came in, and its slot there.
fn source_bits(shape: &Shape) -> u32 {
    shape.port_bits() + shape.slot_bits()
}

/// Where a queue's next frame is written and read.
struct Places {
    write: NodeId,
    read: NodeId,
    heads: Vec<NodeId>,
}

fn places(
    m: &mut ModuleBuilder,
    shape: &Shape,
    (accepted, class): (NodeId, NodeId),
    (fetch, choice): (NodeId, NodeId),
) -> Places {
    let bits = millrace_netlist::address_width(shape.depth);
    let mut ends = |name: &str, queue: NodeId, moves: NodeId| -> Vec<NodeId> {
        let each = (0..shape.queues).map(|at| {
            let (register, place) = m.register(&format!("{name}{at}"), bits, Some(0));
            let (next, own) = (m.add_number(place, 1), m.is(queue, at.into()));
            let enable = m.and(own, moves);
            m.set_next(register, next);
            m.set_enable(register, enable);
            let number = m.number(shape.queue_bits(), at.into());
            let all = m.concat(&[number, place]);
            m.resize(all, millrace_netlist::address_width(shape.queues * shape.depth))
        });
        each.collect()
    };
    let heads = ends("head", choice, fetch);
    let tails = ends("tail", class, accepted);
    Places { write: m.choose(class, &tails), read: m.choose(choice, &heads), heads }
}

/// A frame in the memory of the port where it came in, and the word of it that is to be read.
#[derive(Clone, Copy)]
struct Wanted {
    input: NodeId,
    slot: NodeId,
    word: NodeId,
}

/// What is told of the memory of each receiving side.
struct Memories {
    written: Vec<NodeId>,
    writing: Vec<NodeId>,
    last_words: Vec<NodeId>,
}

impl Memories {
    /// Whether the frame is there as a whole.
    fn is_whole(&self, m: &mut ModuleBuilder, shape: &Shape, of: &Wanted) -> NodeId {
        let writing = m.choose(of.input, &self.writing);
        let flags: Vec<NodeId> = (0..shape.slots).map(|at| m.bit(writing, at)).collect();
        let comes = m.choose(of.slot, &flags);
        m.not(comes)
    }

    /// Whether its word is there while the frame comes.
    fn is_written(&self, m: &mut ModuleBuilder, shape: &Shape, of: &Wanted) -> NodeId {
        let written = m.choose(of.input, &self.written);
        let wide = m.resize(of.word, shape.word_bits() + 1);
        m.lt(wide, written)
    }

    /// Whether the frame is there as a whole, and whether its word may be read, by what was told in the cycle before: of the word that would
    /// be wanted if the editor took the next frame, if it went on, if it waited. Which of these it did comes from registers then, so that
    /// neither what it does nor what is told of a word decides in one cycle about the next read.
    fn known_before(
        &self,
        m: &mut ModuleBuilder,
        shape: &Shape,
        (take, moves): (NodeId, NodeId),
        (now, next): (&Wanted, &Wanted),
    ) -> (NodeId, NodeId) {
        let following = Wanted { word: m.add_number(now.word, 1), ..*now };
        let whole = [now, next].map(|of| self.is_whole(m, shape, of));
        let there = [next, &following, now].map(|of| self.is_written(m, shape, of));
        let available = [m.or(there[0], whole[1]), m.or(there[1], whole[0]), m.or(there[2], whole[0])];
        let mut later = |name: &str, value: NodeId| m.delayed(name, value, None);
        let whole = [later("whole_now", whole[0]), later("whole_next", whole[1])];
        let [of_next, of_following, of_same] =
            [("next", available[0]), ("following", available[1]), ("same", available[2])]
                .map(|(name, value)| later(&format!("{name}_available"), value));
        let (took, moved) = (later("took", take), later("moved", moves));
        let available = m.mux(moved, of_following, of_same);
        (m.mux(took, whole[1], whole[0]), m.mux(took, of_next, available))
    }
}

/// Connects the editor with the memory of the port where its frame came in. `next` is the frame that it takes.
fn read(
    m: &mut ModuleBuilder,
    shape: &Shape,
    (edits, take): (InstanceId, NodeId),
    (input, slot): (NodeId, NodeId),
    next: &Wanted,
) {
    let (reads, word) = (m.output_of(edits, "read"), m.output_of(edits, "word"));
    let now = Wanted { input, slot, word };
    let mut data = Vec::new();
    let mut told = Memories { written: Vec::new(), writing: Vec::new(), last_words: Vec::new() };
    for port in 0..shape.sides() {
        told.written.push(m.input(&format!("written{port}"), shape.word_bits() + 1));
        told.writing.push(m.input(&format!("writing{port}"), shape.slots));
        data.push(m.input(&format!("data{port}"), shape.width));
        told.last_words.push(m.input(&format!("last_word{port}"), shape.last_word_bits()));
        let own = m.is(input, port.into());
        let enable = m.and(reads, own);
        m.output(&format!("read{port}"), enable);
    }
    let (whole, available) = match shape.link.has_macs() {
        true => {
            let moves = m.output_of(edits, "moves_on");
            told.known_before(m, shape, (take, moves), (&now, next))
        }
        false => {
            let (whole, there) = (told.is_whole(m, shape, &now), told.is_written(m, shape, &now));
            (whole, m.or(whole, there))
        }
    };
    m.connect(edits, "available", available);
    // A frame that still comes has not ended: its last word can be read when it is whole.
    let last_word = m.choose(input, &told.last_words);
    let less = m.slice(last_word, 0, shape.lane_bits());
    let bad = m.bit(last_word, shape.last_word_bits() - 1);
    let last_word = m.slice(last_word, shape.lane_bits(), shape.word_bits());
    let is_last = m.eq(word, last_word);
    let ends = m.and(whole, is_last);
    m.connect(edits, "ends", ends);
    m.connect(edits, "less", less);
    m.connect(edits, "bad", bad);
    let stored = m.choose(input, &data);
    m.connect(edits, "stored", stored);
    let address = m.concat(&[slot, word]);
    m.output("address", address);
}
