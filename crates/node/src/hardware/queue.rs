//! The queue as a module.

use super::modules::{BEAT, COUNT, FACTS, LENGTH, bytes_of, counter, parts, shape};
use crate::limits::MAX_FRAME;
use millrace_netlist::blocks::fifo;
use millrace_netlist::*;

/// What a queue counts.
struct Held {
    depth: u32,
    memory: MemoryId,
    /// Beats in the memory of frames that are there as a whole, and of the one that comes.
    stored: (RegisterId, NodeId),
    coming: (RegisterId, NodeId),
    frames: (RegisterId, NodeId),
    bytes: (RegisterId, NodeId),
}

/// What comes in a cycle.
struct Come {
    /// A frame is there as a whole, or is lost.
    commit: NodeId,
    lost: NodeId,
    /// Its bytes, and its beats with this one.
    bytes: NodeId,
    beats: NodeId,
}

/// What goes in a cycle.
struct Gone {
    /// The last beat of a frame.
    frame: NodeId,
    /// A beat leaves the memory.
    fetch: NodeId,
    /// The bytes of the first frame, and whether there is one.
    bytes: NodeId,
    is_there: NodeId,
}

/// Keeps frames, at most so many and so many bytes; what has no room is lost as a whole. `head` are the bytes of the first frame, 0 if
/// there is none; `arrived` is 1 for a cycle when a frame has come and `head` shows it. A frame is forgotten, and counted as neither, if
/// `forget` is 1 at its last beat. `room` says that a frame of any length would not be lost now. Outputs `frames`, `bytes`, `taken`,
/// `lost`.
pub(super) fn queue(design: &mut Design, frames: u32, bytes: u32) -> ModuleId {
    let name = format!("queue_{frames}_{bytes}");
    if let Some(known) = design.module_named(&name) {
        return known;
    }
    // Each frame may leave a beat half empty, and the one that comes is there before it is known to have no room.
    let depth = bytes / BEAT as u32 + frames + MAX_FRAME as u32 / BEAT as u32 + 1;
    let heads = fifo(design, StreamShape::words(FACTS + LENGTH), frames);
    let mut m = ModuleBuilder::new(&name);
    let input = m.input_stream("s", shape());
    let heads = m.instance(design, heads, "heads");
    let count = 32 - (depth + 1).leading_zeros();
    let memory = m.memory("beats", plain().beat(), depth, Vec::new());
    m.promise_no_collision(memory);
    let held = Held {
        depth,
        memory,
        stored: m.register("stored", count, Some(0)),
        coming: m.register("coming", count, Some(0)),
        frames: m.register("held", COUNT, Some(0)),
        bytes: m.register("held_bytes", 32, Some(0)),
    };
    let come = come(&mut m, &input, &held, (frames, bytes));
    let (_, _, _, user) = parts(&input.beat);
    let new = m.concat(&[user, come.bytes]);
    m.connect_stream(heads, "s", &Beat { data: Some(new), ..Beat::default() }, come.commit);
    let gone = gone(&mut m, heads, &held);
    count_up(&mut m, &held, &come, &gone);
    design.add(m.finish())
}

/// Beats in memory.
fn plain() -> StreamShape {
    StreamShape { user: 0, ..shape() }
}

/// Takes beats; at the last one of a frame it is there, or forgotten.
fn come(m: &mut ModuleBuilder, input: &InStream, held: &Held, (frames, bytes): (u32, u32)) -> Come {
    let (_, keep, last, _) = parts(&input.beat);
    let one = m.number(1, 1);
    m.set_ready(input, one);
    let valid = input.valid;
    let address = address_width(held.depth);
    let (tail_register, tail) = m.register("tail", address, Some(0));
    let (next_register, next) = m.register("next", address, Some(0));
    let (bad_register, bad) = m.register("bad", 1, Some(0));
    let (length_register, length) = m.register("length", LENGTH, Some(0));
    let count = m.width(held.stored.1);

    let none = m.number(LENGTH, 0);
    let more = bytes_of(m, keep);
    let total = m.add(length, more);
    let sum = m.add(held.stored.1, held.coming.1);
    let limit = m.number(count, held.depth.into());
    let fits = m.lt(sum, limit);
    let good = m.not(bad);
    let write = m.all(&[valid, fits, good]);
    let beat = m.beat_bits(&Beat { user: None, ..input.beat });
    m.write(held.memory, write, next, beat);
    let frame_limit = m.number(COUNT, frames.into());
    let has_frame = m.lt(held.frames.1, frame_limit);
    let (wide, own) = (m.resize(held.bytes.1, 33), m.resize(total, 33));
    let all_bytes = m.add(wide, own);
    let byte_limit = m.number(33, bytes.into());
    let has_bytes = m.le(all_bytes, byte_limit);
    // One that is too long to count is lost.
    let is_long = m.bit(length, LENGTH - 1);
    let is_short = m.not(is_long);
    let forget = m.input("forget", 1);
    let keeps = m.not(forget);
    let commit = m.all(&[write, last, has_frame, has_bytes, is_short, keeps]);
    let other = m.not(commit);
    let gone = m.all(&[valid, last, other]);
    let lost = m.and(gone, keeps);
    if let Some(most) = bytes.checked_sub(MAX_FRAME as u32) {
        let most = m.number(32, most.into());
        let has_bytes = m.le(held.bytes.1, most);
        let room = m.and(has_frame, has_bytes);
        m.output("room", room);
    }

    let zero = m.number(1, 0);
    let worse = m.not(write);
    let bad_next = m.or(bad, worse);
    let bad_next = m.mux(last, zero, bad_next);
    m.set_next(bad_register, bad_next);
    m.set_enable(bad_register, valid);
    let length_next = m.mux(is_long, length, total);
    let length_next = m.mux(last, none, length_next);
    m.set_next(length_register, length_next);
    m.set_enable(length_register, valid);
    let after = round(m, next, held.depth);
    let forward = m.mux(write, after, next);
    let next_next = m.mux(gone, tail, forward);
    m.set_next(next_register, next_next);
    m.set_enable(next_register, valid);
    m.set_next(tail_register, after);
    m.set_enable(tail_register, commit);
    let written = m.resize(write, count);
    let beats = m.add(held.coming.1, written);
    let zero = m.number(count, 0);
    let coming_next = m.mux(last, zero, beats);
    m.set_next(held.coming.0, coming_next);
    m.set_enable(held.coming.0, valid);
    Come { commit, lost, bytes: total, beats }
}

/// Reads what is there ahead of the output.
fn gone(m: &mut ModuleBuilder, heads: InstanceId, held: &Held) -> Gone {
    let output = m.output_stream("m", shape());
    let (head_register, head) = m.register("head", address_width(held.depth), Some(0));
    let (valid_register, has_beat) = m.register("valid", 1, Some(0));
    let (first, is_there) = m.stream_from(heads, "m");
    let first = first.data.unwrap_or_else(|| unreachable!("words have data"));
    let valid = m.and(has_beat, is_there);
    let leaves = m.and(valid, output.ready);
    let empty = m.not(has_beat);
    let free = m.or(empty, leaves);
    let some = m.reduce_or(held.stored.1);
    let fetch = m.and(some, free);
    let data = m.read_clocked(held.memory, head, Some(fetch));
    let head_next = round(m, head, held.depth);
    m.set_next(head_register, head_next);
    m.set_enable(head_register, fetch);
    let valid_next = m.mux(free, some, has_beat);
    m.set_next(valid_register, valid_next);
    let beat = m.bits_beat(plain(), data);
    let ends = beat.last.unwrap_or_else(|| unreachable!("beats have a last one"));
    let frame = m.and(leaves, ends);
    m.connect_ready(heads, "m", frame);
    let (facts, bytes) = (m.slice(first, LENGTH, FACTS), m.slice(first, 0, LENGTH));
    m.drive_stream(&output, &Beat { user: Some(facts), ..beat }, valid);
    Gone { frame, fetch, bytes, is_there }
}

/// Counts what is there, and tells it.
fn count_up(m: &mut ModuleBuilder, held: &Held, come: &Come, gone: &Gone) {
    let change =
        |m: &mut ModuleBuilder, (register, value): (RegisterId, NodeId), plus: NodeId, minus: NodeId| {
            let next = m.add(value, plus);
            let next = m.sub(next, minus);
            m.set_next(register, next);
        };
    let width = m.width(come.beats);
    let zero = m.number(width, 0);
    let (plus, minus) = (m.mux(come.commit, come.beats, zero), m.resize(gone.fetch, width));
    change(m, held.stored, plus, minus);
    let (plus, minus) = (m.resize(come.commit, COUNT), m.resize(gone.frame, COUNT));
    change(m, held.frames, plus, minus);
    let (came, left, zero) = (m.resize(come.bytes, 32), m.resize(gone.bytes, 32), m.number(32, 0));
    let (plus, minus) = (m.mux(come.commit, came, zero), m.mux(gone.frame, left, zero));
    change(m, held.bytes, plus, minus);
    let none = m.number(LENGTH, 0);
    let shown = m.mux(gone.is_there, gone.bytes, none);
    m.output("head", shown);
    // Three cycles until the head is there.
    let arrived = (0..3).fold(come.commit, |signal, at| m.delayed(&format!("arrived{at}"), signal, Some(0)));
    m.output("arrived", arrived);
    m.output("frames", held.frames.1);
    m.output("bytes", held.bytes.1);
    counter(m, "taken", come.commit);
    counter(m, "lost", come.lost);
}

/// The address after one, round the end of the memory.
fn round(m: &mut ModuleBuilder, address: NodeId, depth: u32) -> NodeId {
    let next = m.add_number(address, 1);
    let last = m.is(address, (depth - 1).into());
    let zero = m.number(m.width(address), 0);
    m.mux(last, zero, next)
}
