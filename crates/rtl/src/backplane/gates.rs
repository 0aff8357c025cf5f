//! The gates at the boundary of a slot. What is on the side of the slot counts for nothing while they are closed, and while they are open
//! the slot cannot hold up others: a line never waits for it to take a frame, and a frame of it ends.

use super::{HOLD, LONGEST, QUEUE, REFILL};
use millrace_netlist::blocks::register_slice;
use millrace_netlist::{Beat, Design, ModuleBuilder, ModuleId, NodeId, StreamShape, address_width};

/// Frames to a slot: stream `s` in, `m` out to the slot, by way of a queue of [`QUEUE`] beats. It always takes a beat, so that the slot
/// holds up no line; `dropped` is 1 at the end of each frame that did not pass whole. Closed, it drops all and forgets what waits.
///
/// A frame that finds no room is dropped as a whole while nothing of it was offered to the slot. Else it is cut: the beat before is
/// overwritten with one that ends the frame and is marked as bad. That is never the beat at the head, as the queue is full.
pub(super) fn gate_in(design: &mut Design, shape: StreamShape) -> ModuleId {
    let mut m = ModuleBuilder::new("gate_in");
    let closed = m.input("closed", 1);
    let input = m.input_stream("s", shape);
    let output = m.output_stream("m", shape);
    let open = m.not(closed);
    let memory = m.memory("beats", shape.beat(), QUEUE, Vec::new());
    // Numbers of beats, with a bit more than an address: where the next one is read and written, and where the frame begins that comes.
    let address = address_width(QUEUE);
    let (head_register, head) = m.register("head", address + 1, Some(0));
    let (tail_register, tail) = m.register("tail", address + 1, Some(0));
    let (begin_register, begin) = m.register("begin", address + 1, Some(0));
    // Within a frame, and within one that is dropped: that is dropped to its end, also when the gate opens.
    let (within_register, within) = m.register("within", 1, Some(0));
    let (dropping_register, dropping) = m.register("dropping", 1, Some(0));

    let waiting = m.sub(tail, head);
    let is_full = m.bit(waiting, address);
    let drops = m.any(&[closed, dropping, is_full]);
    let passes = m.not(drops);
    let last = input.beat.last.unwrap_or(closed);
    let goes_on = m.not(last);
    m.set_next(within_register, goes_on);
    m.set_enable(within_register, input.valid);
    let dropping_next = m.and(drops, goes_on);
    m.set_next(dropping_register, dropping_next);
    m.set_enable(dropping_register, input.valid);

    // There is no room for the rest of a frame. Its first beat is at the head or has left: cut. Else its place is free again.
    let live = m.not(dropping);
    let overflows = m.all(&[input.valid, within, live, is_full]);
    let (out_register, was_out) = m.register("out", 1, Some(0));
    let is_at_head = m.eq(head, begin);
    let is_out = m.or(was_out, is_at_head);
    let is_inside = m.not(is_out);
    let ends = m.and(input.valid, last);
    let stays = m.not(ends);
    let out_next = m.all(&[is_out, within, stays]);
    m.set_next(out_register, out_next);
    let cuts = m.and(overflows, is_out);
    let forgets = m.and(overflows, is_inside);
    let pushes = m.and(input.valid, passes);
    let one = m.number(address + 1, 1);
    let (before, after) = (m.sub(tail, one), m.add(tail, one));
    let at = m.mux(cuts, before, tail);
    let at = m.slice(at, 0, address);
    let bits = m.beat_bits(&input.beat);
    let bad = bad_end(&mut m, shape);
    let bits = m.mux(cuts, bad, bits);
    let writes = m.or(pushes, cuts);
    m.write(memory, writes, at, bits);

    let none = m.number(address + 1, 0);
    let tail_next = m.mux(forgets, begin, after);
    let tail_next = m.mux(closed, none, tail_next);
    m.set_next(tail_register, tail_next);
    let moves = m.any(&[pushes, forgets, closed]);
    m.set_enable(tail_register, moves);
    // A frame begins after the end of the one before it.
    let ends = m.and(pushes, last);
    let ends = m.any(&[ends, cuts, closed]);
    let begin_next = m.mux(cuts, tail, tail_next);
    let begin_next = m.mux(closed, none, begin_next);
    m.set_next(begin_register, begin_next);
    m.set_enable(begin_register, ends);

    let is_some = m.ne(head, tail);
    let valid = m.and(is_some, open);
    let at = m.slice(head, 0, address);
    let bits = m.read(memory, at);
    let beat = m.bits_beat(shape, bits);
    m.drive_stream(&output, &beat, valid);
    let next = m.add_number(head, 1);
    let next = m.mux(closed, none, next);
    m.set_next(head_register, next);
    let leaves = m.and(valid, output.ready);
    let leaves = m.or(leaves, closed);
    m.set_enable(head_register, leaves);

    let always = m.number(1, 1);
    m.set_ready(&input, always);
    let dropped = m.all(&[input.valid, last, drops]);
    m.output("dropped", dropped);
    design.add(m.finish())
}

/// Frames of a slot: stream `s` in from the slot, `m` out. A frame within which the gate closes, the slot says nothing for longer than
/// [`patience`] has, or that is longer than [`LONGEST`], ends with a beat that is marked as bad; `cut` is 1 then. What the slot says up to
/// the end of that frame is nothing to anybody.
pub(super) fn gate_out(design: &mut Design, shape: StreamShape) -> ModuleId {
    let slice = register_slice(design, shape);
    let mut m = ModuleBuilder::new("gate_out");
    let closed = m.input("closed", 1);
    let slot = m.input_stream("s", shape);
    let output = m.output_stream("m", shape);
    let open = m.not(closed);
    // What the slot is told comes from a register: what is before and after it has the whole cycle. Nothing comes in while the gate is
    // closed, and what is there goes.
    let slice = m.instance(design, slice, "said");
    let says = m.and(slot.valid, open);
    m.connect_stream(slice, "s", &slot.beat, says);
    let ready = m.ready_of(slice, "s");
    m.set_ready(&slot, ready);
    let (said, there) = m.stream_from(slice, "m");
    // Within a frame that passes, and within one that was cut.
    let (within_register, within) = m.register("within", 1, Some(0));
    let (dropping_register, dropping) = m.register("dropping", 1, Some(0));
    let live = m.not(dropping);
    let of_slot = m.all(&[there, open, live]);
    let silent = m.not(there);
    let stalls = m.all(&[within, silent, output.ready]);
    let is_over = patience(&mut m, stalls);
    let gives_up = m.and(is_over, silent);
    let (length_register, length) =
        m.register("length", address_width(LONGEST * 8 / shape.data) + 1, Some(0));
    let is_long = m.bit(length, m.width(length) - 1);
    // The end of a frame whose slot is gone may have to wait till there is another one, of whom it is no frame.
    let (closing_register, closing) = m.register("closing", 1, Some(0));
    let is_gone = m.or(closed, closing);
    let cuts = m.any(&[is_gone, gives_up, is_long]);
    let cuts = m.and(within, cuts);
    let valid = m.or(of_slot, cuts);
    let bits = m.beat_bits(&said);
    let bad = bad_end(&mut m, shape);
    let bits = m.mux(cuts, bad, bits);
    let beat: Beat = m.bits_beat(shape, bits);
    let passes = m.and(valid, output.ready);
    let last = beat.last.unwrap_or(closed);
    let goes_on = m.not(last);
    m.set_next(within_register, goes_on);
    m.set_enable(within_register, passes);
    let blocked = m.not(output.ready);
    let closing = m.all(&[within, is_gone, blocked]);
    m.set_next(closing_register, closing);
    let more = m.add_number(length, 1);
    let none = m.number(m.width(length), 0);
    let more = m.mux(last, none, more);
    m.set_next(length_register, more);
    m.set_enable(length_register, passes);

    // The rest of a frame that was cut is taken, but in the cycle of the cut nothing is.
    let uncut = m.not(cuts);
    let taken = m.and(output.ready, uncut);
    let taken = m.any(&[taken, dropping, closed]);
    m.connect_ready(slice, "m", taken);
    let cut = m.all(&[cuts, passes]);
    let own_end = m.all(&[there, said.last.unwrap_or(closed)]);
    let goes_on = m.not(own_end);
    let stays = m.and(dropping, goes_on);
    let is_there = m.not(is_gone);
    let begins = m.and(cut, is_there);
    let dropping_next = m.or(begins, stays);
    // A slot whose gate closed begins again.
    let dropping_next = m.and(dropping_next, open);
    m.set_next(dropping_register, dropping_next);
    m.drive_stream(&output, &beat, valid);
    m.output("cut", cut);
    design.add(m.finish())
}

/// A beat of one byte that ends a frame and is marked as bad, so that no beat is empty.
fn bad_end(m: &mut ModuleBuilder, shape: StreamShape) -> NodeId {
    // The first signal of a beat is the lowest.
    let signals: Vec<(&str, u32)> = shape.signals().collect();
    let end = signals.iter().rev().map(|(suffix, width)| m.number(*width, u128::from(*suffix != "tdata")));
    let end: Vec<_> = end.collect();
    m.concat(&end)
}

/// Whether a slot has held up others for too long: for [`HOLD`] cycles, of which it gets back one in [`REFILL`] without `stalls`. So in
/// the long run it holds up others for one cycle in [`REFILL`] and one, however it goes about it.
fn patience(m: &mut ModuleBuilder, stalls: NodeId) -> NodeId {
    let width = address_width(HOLD * REFILL) + 1;
    let (register, held) = m.register("held", width, Some(0));
    let is_over = m.bit(held, width - 1);
    let some = m.reduce_or(held);
    let (minus, plus) = (m.repeat(some, width), m.number(width, u128::from(REFILL)));
    let within = m.not(is_over);
    let stalls = m.and(stalls, within);
    let step = m.mux(stalls, plus, minus);
    let next = m.add(held, step);
    m.set_next(register, next);
    is_over
}
