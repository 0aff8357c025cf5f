//! The receiving side of a port: a frame goes to a slot of the port's memory while its first bytes gather in the window; when they are
//! there the header asks for its turn.
//!
//! A slot belongs to a frame from before its first beat until three things have happened: its last beat is there (`writing` ends),
//! all its copies are made (`held` ends), and all of these have left (`refs` is 0). There is always a slot for the next frame, or
//! `tready` is 0. A frame that is too long for a slot is cut there, marked as bad, and the rest of its beats are taken and forgotten.

use super::shape::Shape;
use millrace_netlist::{Design, ModuleBuilder, ModuleId, NodeId, RegisterId};
use std::collections::VecDeque;

/// What counts a receiving side.
pub(super) const COUNTERS: [&str; 4] = ["frames", "bad", "oversize", "no_buffer"];

/// The module of a receiving side. Inputs: the stream `s`; `whole`, when headers have to wait for the end of the frame; `grant`;
/// `release` and `keep` with `slot`: its copies are made, one more copy waits; where egress clones `more` and `less` with `slot`: a
/// clone waits, all copies of one are made; for each output port `doneN` with `slotN`, and `readN` with `addressN`; a slot is free two
/// cycles after the last `doneN`. Outputs: `request` with `window`, `length`, `header_slot`; `written` and `writing`; `dataN`, and
/// `last_wordN` of the slot in `addressN` that has ended. Where something goes with frames: `userN`, which came with that frame, and
/// `busy`: a frame comes or is in a slot. Where frames start again: with the input `tag` of the frame that comes, the
/// outputs `header_tag`, and `lost`: a header does not ask.
pub(super) fn receive(design: &mut Design, shape: &Shape, starts_again: bool) -> ModuleId {
    let mut m = ModuleBuilder::new(if starts_again { "receive_again" } else { "receive" });
    let (m, words) = (&mut m, shape.words());
    let stream = m.input_stream("s", shape.comes_in());
    let (whole, grant) = (m.input("whole", 1), m.input("grant", 1));
    let slots = Slots::new(m, shape);

    let (count_register, count) = m.register("count", shape.word_bits() + 1, Some(0));
    let (skip_register, skips) = m.register("skipping", 1, Some(0));
    let (decided_register, decided) = m.register("decided", 1, Some(0));
    let (broken_register, broken) = m.register("broken", 1, Some(0));
    let (pending_register, pending) = m.register("pending", 1, Some(0));

    let beat = stream.beat;
    let (data, keep) = (signal(beat.data), signal(beat.keep));
    let (last, user) = (signal(beat.last), signal(beat.user));
    let (marked, bytes) = (m.bit(user, 0), ones(m, keep));
    let at_room = m.is(count, u128::from(words - 1));
    let ends = m.or(last, at_room);
    let unfinished = m.not(last);
    let too_long = m.and(at_room, unfinished);
    let at_window = m.is(count, u128::from(shape.window_words() - 1));
    let early = m.not(whole);
    let cut = m.and(at_window, early);
    let complete = m.or(cut, ends);
    let undecided = m.not(decided);
    let decides = m.and(undecided, complete);

    let waits = m.not(grant);
    let no_room = m.and(pending, waits);
    let blocked = m.and(no_room, decides);
    let open = m.not(blocked);
    // A MAC does not wait: a frame that finds no slot, or whose header finds the one before it still there, is lost as a whole.
    let overrun = shape.link.has_macs().then(|| Overrun::new(m));
    let overran = overrun.as_ref().map_or_else(|| m.number(1, 0), |overrun| overrun.goes_on.1);
    let skipping = m.or(skips, overran);
    let room = if overrun.is_some() { slots.is_there } else { m.and(slots.is_there, open) };
    let always = m.number(1, u128::from(overrun.is_some()));
    let ready = m.any(&[skips, room, always]);
    m.set_ready(&stream, ready);
    let stored = m.not(skipping);
    let comes = m.all(&[stream.valid, room, stored]);
    let no_slot = m.not(slots.is_there);
    let absent = m.all(&[stream.valid, stored, no_slot, always]);

    // A stream with gaps is no stream of frames.
    let gaps = gaps(m, keep, unfinished);
    let now_broken = m.or(broken, gaps);
    let is_bad = m.any(&[marked, now_broken, too_long]);
    let ended = m.and(comes, ends);
    let bad_end = m.and(ended, is_bad);
    let good = m.not(bad_end);
    // What a header asks with is kept also where it does not ask, as its frame is bad: that is known late.
    let keeps = m.all(&[comes, decides, open]);
    let loads = m.and(keeps, good);
    let lost = m.and(bad_end, undecided);
    let (moves, over, finished) = (m.or(comes, overran), m.or(ends, overran), m.or(ended, overran));

    count_words(m, (count_register, count), over, moves);
    let begins_to_skip = m.and(comes, too_long);
    let stops = m.and(stream.valid, last);
    let goes_on = m.not(stops);
    let still = m.and(skipping, goes_on);
    let missed_rest = m.and(absent, unfinished);
    let next_skip = m.any(&[begins_to_skip, missed_rest, still]);
    m.set_next(skip_register, next_skip);
    let not_end = m.not(over);
    keep_flag(m, decided_register, (decided, loads), not_end, comes);
    keep_flag(m, broken_register, (now_broken, now_broken), not_end, moves);

    let still_pending = m.and(pending, waits);
    let next_pending = m.or(loads, still_pending);
    m.set_next(pending_register, next_pending);
    let window = window(m, shape, count, (data, keep), comes);
    let length = length(m, shape, (count, bytes), ends);
    let mut request = vec![("window", window), ("length", length), ("header_slot", slots.current)];
    if starts_again {
        request.push(("header_tag", m.input("tag", shape.tag)));
        m.output("lost", lost);
    }
    hold(m, &request, keeps);
    m.output("request", pending);

    store(m, shape, &slots, (count, comes), (data, bytes, ends, is_bad));
    keep_user(m, shape, &slots, (user, ended));
    let mut lost = Lost { lost, slot: slots.current };
    let mut events = [ended, bad_end, begins_to_skip, absent];
    if let Some(overrun) = overrun {
        let blocked = m.and(comes, blocked);
        overrun.connect(m, (blocked, ends), &mut lost, &mut events);
    }
    let (writing, others) = slots.update(m, shape, finished, lost);
    tell_busy(m, shape, (others, count, pending));
    tell_stored(m, [("written", count), ("writing", writing)]);
    for (name, event) in COUNTERS.iter().zip(events) {
        crate::parts::counter(m, name, event);
    }
    let finished = std::mem::replace(m, ModuleBuilder::new(""));
    design.add(finished.finish())
}

/// A frame that goes no further than its slot.
struct Lost {
    lost: NodeId,
    slot: NodeId,
}

/// A frame of a MAC whose header came in the cycle before, and found the one before it there. Whether that was there is known late, as it may
/// have had its turn in that very cycle: so the beat was taken as any other, and the frame is lost a cycle later.
struct Overrun {
    happened: (RegisterId, NodeId),
    /// It had not ended in that cycle.
    goes_on: (RegisterId, NodeId),
}

impl Overrun {
    fn new(m: &mut ModuleBuilder) -> Overrun {
        let mut register = |name: &str| m.register(name, 1, Some(0));
        Overrun { happened: register("overran"), goes_on: register("overran_goes_on") }
    }

    /// With whether a header is blocked in this cycle, and whether its frame ends in it. Has frames lost a cycle later, and counts a frame as
    /// missed alone.
    fn connect(
        self,
        m: &mut ModuleBuilder,
        (blocked, ends): (NodeId, NodeId),
        lost: &mut Lost,
        events: &mut [NodeId; 4],
    ) {
        let unfinished = m.not(ends);
        let goes_on = m.and(blocked, unfinished);
        m.set_next(self.happened.0, blocked);
        m.set_next(self.goes_on.0, goes_on);
        let before = m.delayed("lost_before", lost.lost, Some(0));
        let slot = m.delayed("lost_slot", lost.slot, None);
        *lost = Lost { lost: m.or(before, self.happened.1), slot };
        let other = m.not(self.happened.1);
        for (event, name) in events.iter_mut().zip(COUNTERS) {
            *event = m.delayed(&format!("{name}_before"), *event, Some(0));
        }
        let [ended, bad, skips, absent] = *events;
        *events =
            [m.and(ended, other), m.and(bad, other), m.and(skips, other), m.or(absent, self.happened.1)];
    }
}

/// Says whether a frame comes, is in a slot, or its header waits, where somebody wants to know.
fn tell_busy(m: &mut ModuleBuilder, shape: &Shape, (others, count, pending): (NodeId, NodeId, NodeId)) {
    if shape.user.is_none() {
        return;
    }
    let begun = m.reduce_or(count);
    let busy = m.any(&[others, begun, pending]);
    m.output("busy", busy);
}

/// Whether bytes are missing before the end, or a beat has none.
fn gaps(m: &mut ModuleBuilder, keep: NodeId, unfinished: NodeId) -> NodeId {
    let full = m.reduce_and(keep);
    let partial = m.not(full);
    let early = m.and(partial, unfinished);
    let some = m.reduce_or(keep);
    let none = m.not(some);
    m.or(early, none)
}

/// Says how much of frames is in memory: they are there a cycle after they have come.
fn tell_stored(m: &mut ModuleBuilder, told: [(&str, NodeId); 2]) {
    for (name, value) in told {
        let value = m.delayed(name, value, Some(0));
        m.output(name, value);
    }
}

/// What the header asks with, until it has its turn.
fn hold(m: &mut ModuleBuilder, request: &[(&str, NodeId)], keeps: NodeId) {
    for (name, value) in request {
        let (register, held) = m.register(&format!("{name}_held"), m.width(*value), None);
        m.set_next(register, *value);
        m.set_enable(register, keeps);
        m.output(name, held);
    }
}

/// Words of the frame that comes.
fn count_words(m: &mut ModuleBuilder, (register, count): (RegisterId, NodeId), over: NodeId, moves: NodeId) {
    let next = m.add_number(count, 1);
    let zero = m.number(m.width(count), 0);
    let next = m.mux(over, zero, next);
    m.set_next(register, next);
    m.set_enable(register, moves);
}

/// A flag that either value sets, until the frame ends.
fn keep_flag(
    m: &mut ModuleBuilder,
    register: RegisterId,
    (one, other): (NodeId, NodeId),
    not_end: NodeId,
    moves: NodeId,
) {
    let next = m.or(one, other);
    let next = m.and(next, not_end);
    m.set_next(register, next);
    m.set_enable(register, moves);
}

fn signal(signal: Option<NodeId>) -> NodeId {
    signal.expect("a stream of frames")
}

/// How many bits are 1. Three bits of one weight become one of it and one of the next, until there is one bit of each: few lookup
/// tables and no carry chain.
fn ones(m: &mut ModuleBuilder, value: NodeId) -> NodeId {
    let mut of_weight: VecDeque<NodeId> = (0..m.width(value)).map(|at| m.bit(value, at)).collect();
    let mut sum = Vec::new();
    for _ in 0..=millrace_netlist::address_width(m.width(value)) {
        let mut next = VecDeque::new();
        while of_weight.len() > 1 {
            let (a, b) = (of_weight.pop_front(), of_weight.pop_front());
            let zero = m.number(1, 0);
            let (a, b) = (a.unwrap_or(zero), b.unwrap_or(zero));
            let c = of_weight.pop_front().unwrap_or(zero);
            let odd = m.xor(a, b);
            let (both, rest) = (m.and(a, b), m.and(odd, c));
            next.push_back(m.or(both, rest));
            of_weight.push_back(m.xor(odd, c));
        }
        sum.push(of_weight.pop_front().unwrap_or_else(|| m.number(1, 0)));
        of_weight = next;
    }
    sum.reverse();
    m.concat(&sum)
}

/// The words of the frame to memory, and what output ports read of them.
fn store(
    m: &mut ModuleBuilder,
    shape: &Shape,
    slots: &Slots,
    (count, comes): (NodeId, NodeId),
    (data, bytes, ends, is_bad): (NodeId, NodeId, NodeId, NodeId),
) {
    let one = m.number(m.width(bytes), 1);
    let less = m.sub(bytes, one);
    let less = m.slice(less, 0, shape.lane_bits());
    let memory = m.memory("payload", shape.width, shape.slots * shape.words(), Vec::new());
    // A word is read once it is counted, a cycle after it was written.
    m.promise_no_collision(memory);
    let low = m.slice(count, 0, shape.word_bits());
    let address = m.concat(&[slots.current, low]);
    // Block memory may be far from where the frame comes.
    let stores = m.delayed("store", comes, Some(0));
    let store_address = m.delayed("store_address", address, None);
    let word = m.delayed("store_word", data, None);
    m.write(memory, stores, store_address, word);
    // The number of the last word of each slot, its bytes less one, and whether the frame is bad: who reads a word knows at once whether it is
    // the last, and block memory has only whole words of data.
    let last_words = m.memory("last_words", shape.last_word_bits(), shape.slots, Vec::new());
    let ended = m.and(comes, ends);
    let ended = m.delayed("store_end", ended, Some(0));
    let less = m.delayed("store_less", less, None);
    let low = m.slice(store_address, 0, shape.word_bits());
    let slot = m.slice(store_address, shape.word_bits(), shape.slot_bits());
    let bad = m.delayed("store_bad", is_bad, None);
    let last_word = m.concat(&[bad, low, less]);
    m.write(last_words, ended, slot, last_word);
    for port in 0..shape.sides() {
        let read = m.input(&format!("read{port}"), 1);
        let address = m.input(&format!("address{port}"), shape.slot_bits() + shape.word_bits());
        let data = m.read_clocked(memory, address, Some(read));
        m.output(&format!("data{port}"), data);
        let slot = m.slice(address, shape.word_bits(), shape.slot_bits());
        let last_word = m.read(last_words, slot);
        m.output(&format!("last_word{port}"), last_word);
    }
}

/// What came with each frame, for who sends it: as the number of its last word, it is there when the frame is.
fn keep_user(m: &mut ModuleBuilder, shape: &Shape, slots: &Slots, (user, ended): (NodeId, NodeId)) {
    let bits = shape.user_bits();
    if bits == 0 {
        return;
    }
    let user = m.slice(user, 1, bits);
    let memory = m.memory("users", bits, shape.slots, Vec::new());
    let ends = m.delayed("user_ends", ended, Some(0));
    let slot = m.delayed("user_slot", slots.current, None);
    let user = m.delayed("user_before", user, None);
    m.write(memory, ends, slot, user);
    for port in 0..shape.sides() {
        let address = m.input(&format!("user_slot{port}"), shape.slot_bits());
        let user = m.read(memory, address);
        m.output(&format!("user{port}"), user);
    }
}

/// The first bytes of the frame, the first one highest; zeros after its end.
fn window(
    m: &mut ModuleBuilder,
    shape: &Shape,
    count: NodeId,
    (data, keep): (NodeId, NodeId),
    comes: NodeId,
) -> NodeId {
    let bytes: Vec<NodeId> = (0..shape.width / 8)
        .map(|at| {
            let (byte, kept) = (m.slice(data, at * 8, 8), m.bit(keep, at));
            let mask = m.repeat(kept, 8);
            m.and(byte, mask)
        })
        .collect();
    let now = m.concat(&bytes);
    let zero = m.number(shape.width, 0);
    let mut words = Vec::new();
    for at in 0..shape.window_words() {
        let here = m.is(count, at.into());
        let number = m.number(m.width(count), at.into());
        let before = m.lt(number, count);
        let (register, gathered) = m.register(&format!("word{at}"), shape.width, None);
        m.set_next(register, now);
        let fills = m.and(comes, here);
        m.set_enable(register, fills);
        let others = m.mux(here, now, zero);
        words.push(m.mux(before, gathered, others));
    }
    let all = m.concat(&words);
    let bits = shape.window_bits();
    m.slice(all, m.width(all) - bits, bits)
}

/// The bytes of a frame that has ended; else the largest number, which is more than any that a program compares with.
fn length(m: &mut ModuleBuilder, shape: &Shape, (count, bytes): (NodeId, NodeId), ends: NodeId) -> NodeId {
    let zeros = m.number(shape.lane_bits(), 0);
    let words = m.concat(&[count, zeros]);
    let words = m.resize(words, Shape::LENGTH);
    let bytes = m.resize(bytes, Shape::LENGTH);
    let all = m.add(words, bytes);
    let unknown = m.constant(millrace_netlist::Bits::ones(Shape::LENGTH));
    m.mux(ends, all, unknown)
}

/// Which slots are in use.
struct Slots {
    /// The slot of the frame that comes, if there is one.
    current: NodeId,
    is_there: NodeId,
    current_register: RegisterId,
    there_register: RegisterId,
    release: NodeId,
    keep: NodeId,
    slot: NodeId,
    /// One more copy waits, and one less, where frames are cloned in egress.
    clones: Option<(NodeId, NodeId)>,
    done: Vec<(NodeId, NodeId)>,
}

impl Slots {
    fn new(m: &mut ModuleBuilder, shape: &Shape) -> Slots {
        let (current_register, current) = m.register("current", shape.slot_bits(), Some(0));
        let (there_register, is_there) = m.register("is_there", 1, Some(0));
        // A cycle later, as it depends on whether a queue is full: a long way to the counts of slots. A copy takes more than a cycle from its
        // queue to its end (`done`, which is told a cycle later too), so it is counted before it has left, and a slot stays in use meanwhile.
        let mut told = |name: &str, width: u32, reset: Option<u128>| {
            let value = m.input(name, width);
            m.delayed(&format!("{name}_before"), value, reset)
        };
        let (release, keep) = (told("release", 1, Some(0)), told("keep", 1, Some(0)));
        let clones =
            shape.features.clones_egress.then(|| (told("more", 1, Some(0)), told("less", 1, Some(0))));
        let slot = told("slot", shape.slot_bits(), None);
        let done = (0..shape.sides())
            .map(|port| {
                let (done, slot) =
                    (m.input(&format!("done{port}"), 1), m.input(&format!("slot{port}"), shape.slot_bits()));
                let done = m.delayed(&format!("done{port}_before"), done, Some(0));
                (done, m.delayed(&format!("slot{port}_before"), slot, None))
            })
            .collect();
        Slots { current, is_there, current_register, there_register, release, keep, slot, clones, done }
    }

    /// Whether each slot is written to, and whether one is in use besides that of the frame that comes.
    fn update(&self, m: &mut ModuleBuilder, shape: &Shape, ended: NodeId, lost: Lost) -> (NodeId, NodeId) {
        let nothing = m.not(self.is_there);
        let wants = m.or(nothing, ended);
        let states: Vec<_> = (0..shape.slots)
            .map(|at| {
                let writing = m.register(&format!("writing{at}"), 1, Some(0));
                let held = m.register(&format!("held{at}"), 1, Some(0));
                (writing, held, m.register(&format!("refs{at}"), shape.refs_bits(), Some(0)))
            })
            .collect();
        let (mut free, mut others) = (Vec::new(), Vec::new());
        let nothing_comes = m.not(self.is_there);
        for (at, ((_, writing), (_, held), (_, refs))) in (0..).zip(&states) {
            let waiting = m.reduce_or(*refs);
            let used = m.any(&[*writing, *held, waiting]);
            free.push(m.not(used));
            let is_current = m.is(self.current, at);
            let is_other = m.not(is_current);
            let is_other = m.or(is_other, nothing_comes);
            others.push(m.and(used, is_other));
        }
        let others = m.any(&others);
        let (next, any) = spare(m, shape, &free, wants);
        m.set_next(self.current_register, next);
        m.set_enable(self.current_register, wants);
        m.set_next(self.there_register, any);
        m.set_enable(self.there_register, wants);
        let mut all = Vec::new();
        for (at, ((writing_register, writing), (held_register, held), (refs_register, refs))) in
            (0..).zip(&states)
        {
            let (is_next, is_current, is_told) =
                (m.is(next, at), m.is(self.current, at), m.is(self.slot, at));
            let taken = m.all(&[is_next, wants, any]);
            let ends = m.and(is_current, ended);
            let goes_on = m.not(ends);
            let still = m.and(*writing, goes_on);
            let next_writing = m.or(taken, still);
            m.set_next(*writing_register, next_writing);
            let is_lost = m.is(lost.slot, at);
            let (released, gone) = (m.and(is_told, self.release), m.and(is_lost, lost.lost));
            let over = m.or(released, gone);
            let stays = m.not(over);
            let still = m.and(*held, stays);
            let next_held = m.or(taken, still);
            m.set_next(*held_register, next_held);
            let kept = m.and(is_told, self.keep);
            let kept = m.resize(kept, shape.refs_bits());
            let mut count = m.add(*refs, kept);
            if let Some((more, less)) = self.clones {
                let (more, less) = (m.and(is_told, more), m.and(is_told, less));
                let (more, less) = (m.resize(more, shape.refs_bits()), m.resize(less, shape.refs_bits()));
                count = m.add(count, more);
                count = m.sub(count, less);
            }
            for (done, slot) in &self.done {
                let same = m.is(*slot, at);
                let left = m.and(same, *done);
                let left = m.resize(left, shape.refs_bits());
                count = m.sub(count, left);
            }
            m.set_next(*refs_register, count);
            all.push(*writing);
        }
        all.reverse();
        (m.concat(&all), others)
    }
}

/// The slot that is taken when one is wanted, and whether there is one: found in a cycle before among those that are free, so that what wants it
/// does not wait for that. A slot that gets free is found a cycle later than it is.
fn spare(m: &mut ModuleBuilder, shape: &Shape, free: &[NodeId], wants: NodeId) -> (NodeId, NodeId) {
    let (register, next) = m.register("spare", shape.slot_bits(), Some(0));
    let (there_register, is_there) = m.register("spare_is_there", 1, Some(0));
    let others: Vec<NodeId> = (0..)
        .zip(free)
        .map(|(at, free)| {
            let same = m.is(next, at);
            let same = m.and(same, is_there);
            let other = m.not(same);
            m.and(*free, other)
        })
        .collect();
    let numbered: Vec<(NodeId, NodeId)> =
        (0..).zip(&others).map(|(at, free)| (*free, m.number(shape.slot_bits(), at))).collect();
    let first = m.number(shape.slot_bits(), 0);
    let (found, finds) = (m.first(&numbered, first), m.any(&others));
    let none = m.not(is_there);
    let moves = m.or(wants, none);
    for (register, value) in [(register, found), (there_register, finds)] {
        m.set_next(register, value);
        m.set_enable(register, moves);
    }
    (next, is_there)
}
