//! A queue of beats in block memory.

use super::{once, shape_name};
use crate::*;

/// A queue of beats, first in, first out, of `depth` words of block memory and one place more. Streams `s` in and `m` out; `length`
/// says how many beats are in it. A beat takes two cycles through an empty queue, and one passes in each cycle.
///
/// Block memory gives its data a cycle after the address. So the queue reads ahead: what the memory gives is the beat at the output,
/// and stays there until it is taken. A beat that was written in this cycle counts as stored from the next on, so the memory never
/// reads the word that it writes.
///
/// # Panics
/// The shape has no signals, or `depth` is 0.
pub fn fifo(design: &mut Design, shape: StreamShape, depth: u32) -> ModuleId {
    assert!(depth > 0, "a queue without room");
    once(design, format!("fifo_{depth}x{}", shape_name(shape)), |m| {
        queue(m, shape, depth);
    })
}

/// What is inside a queue, for a monitor of it.
#[cfg_attr(not(test), allow(dead_code))]
struct Queue {
    input: InStream,
    output: OutStream,
    memory: MemoryId,
    /// Where the next beat is read and written.
    head: NodeId,
    tail: NodeId,
    /// Beats in the memory.
    stored: NodeId,
    /// Whether there is a beat at the output.
    valid: NodeId,
    data: NodeId,
    /// Beats in all.
    length: NodeId,
    /// Whether a beat comes, and whether one goes.
    push: NodeId,
    pop: NodeId,
}

fn queue(m: &mut ModuleBuilder, shape: StreamShape, depth: u32) -> Queue {
    let input = m.input_stream("s", shape);
    let output = m.output_stream("m", shape);
    let address = address_width(depth);
    // One more than `depth` beats can be in the queue.
    let count = 32 - (depth + 1).leading_zeros();
    let memory = m.memory("beats", shape.beat(), depth, Vec::new());
    m.promise_no_collision(memory);
    let (head_register, head) = m.register("head", address, Some(0));
    let (tail_register, tail) = m.register("tail", address, Some(0));
    let (stored_register, stored) = m.register("stored", count, Some(0));
    let (valid_register, valid) = m.register("valid", 1, Some(0));

    let full = m.is(stored, depth.into());
    let ready = m.not(full);
    let push = m.and(input.valid, ready);
    let arriving = m.beat_bits(&input.beat);
    m.write(memory, push, tail, arriving);
    let next_tail = after(m, tail, depth);
    m.set_next(tail_register, next_tail);
    m.set_enable(tail_register, push);

    // The output is free at the next edge if nothing is there, or if it is taken.
    let pop = m.and(valid, output.ready);
    let empty = m.not(valid);
    let free = m.or(empty, output.ready);
    let some = m.reduce_or(stored);
    let fetch = m.and(some, free);
    let data = m.read_clocked(memory, head, Some(fetch));
    let next_head = after(m, head, depth);
    m.set_next(head_register, next_head);
    m.set_enable(head_register, fetch);
    let next_valid = m.mux(free, some, valid);
    m.set_next(valid_register, next_valid);

    // One more, one less, or as many: -1 is all ones.
    let one = m.number(count, 1);
    let more = m.add(stored, one);
    let less = m.sub(stored, one);
    let next_stored = m.mux(push, more, less);
    m.set_next(stored_register, next_stored);
    let changes = m.xor(push, fetch);
    m.set_enable(stored_register, changes);

    let valid_count = m.resize(valid, count);
    let length = m.add(stored, valid_count);
    m.set_ready(&input, ready);
    let beat = m.bits_beat(shape, data);
    m.drive_stream(&output, &beat, valid);
    m.output("length", length);
    Queue { input, output, memory, head, tail, stored, valid, data, length, push, pop }
}

/// The address after one, round the end of the memory.
fn after(m: &mut ModuleBuilder, address: NodeId, depth: u32) -> NodeId {
    let next = m.add_number(address, 1);
    if depth.is_power_of_two() && depth > 1 {
        return next;
    }
    let last = m.is(address, (depth - 1).into());
    let zero = m.number(m.width(address), 0);
    m.mux(last, zero, next)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A queue with a monitor of any one beat, whose output `fault` is 1 in a cycle in which the queue is not as it should be.
    ///
    /// Inputs choose when to look: with `pick`, the beat that comes is kept, and the number of beats before it. From then on that
    /// number goes down with each beat that leaves; when it is 0, the beat that leaves has to be the one that was kept. As any beat
    /// can be picked, none is lost, doubled or reordered. That the kept beat is where its number says makes the proof inductive.
    pub(crate) fn monitored() -> Design {
        const DEPTH: u32 = 4;
        let mut m = ModuleBuilder::new("monitored_fifo");
        let pick = m.input("pick", 1);
        let q = queue(&mut m, StreamShape::words(2), DEPTH);
        let count = m.width(q.length);
        let (watching, watches) = m.register("watching", 1, Some(0));
        let (kept, kept_data) = m.register("kept", 2, Some(0));
        let (before, beats_before) = m.register("before", count, Some(0));

        let idle = m.not(watches);
        let starts = m.all(&[pick, q.push, idle]);
        let none_before = m.is(beats_before, 0);
        let ends = m.all(&[watches, q.pop, none_before]);
        let on = m.or(starts, watches);
        let still = m.not(ends);
        let next = m.and(on, still);
        m.set_next(watching, next);
        m.set_next(kept, q.input.beat.data.unwrap());
        m.set_enable(kept, starts);
        let popped = m.resize(q.pop, count);
        let base = m.mux(watches, beats_before, q.length);
        let fewer = m.sub(base, popped);
        m.set_next(before, fewer);

        // Where the kept beat must be: at the output, or that many words after the head.
        let valid = m.resize(q.valid, count);
        let offset = m.sub(beats_before, valid);
        let low = m.resize(offset, 2);
        let place = m.add(q.head, low);
        let word = m.read(q.memory, place);
        let at_output = m.and(q.valid, none_before);
        let found = m.mux(at_output, q.data, word);
        let right = m.eq(found, kept_data);
        let inside = m.lt(beats_before, q.length);
        let (wrong, outside) = (m.not(right), m.not(inside));
        let lost = m.or(wrong, outside);
        let lost = m.and(watches, lost);
        // The memory holds what lies between head and tail.
        let most = m.number(count, DEPTH.into());
        let over = m.lt(most, q.stored);
        let low = m.resize(q.stored, 2);
        let end = m.add(q.head, low);
        let astray = m.ne(end, q.tail);
        let bad = m.any(&[lost, over, astray]);
        m.output("fault", bad);
        let _ = q.output;
        let mut design = Design::new();
        design.add(m.finish());
        design
    }
}
