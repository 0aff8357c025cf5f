//! The gates at the boundary of a slot. What is on the side of the slot counts for nothing while they are closed.

use millrace_netlist::{Beat, Design, ModuleBuilder, ModuleId, StreamShape};

/// Frames to a slot: stream `s` in, `m` out to the slot. Closed, it takes all frames; `dropped` is 1 at the end of each that did not
/// pass whole.
pub(super) fn gate_in(design: &mut Design, shape: StreamShape) -> ModuleId {
    let mut m = ModuleBuilder::new("gate_in");
    let closed = m.input("closed", 1);
    let input = m.input_stream("s", shape);
    let output = m.output_stream("m", shape);
    // Within a frame, and within one that is dropped: a frame whose begin was dropped is dropped to its end, also when the gate opens.
    let (dropping_register, dropping) = m.register("dropping", 1, Some(0));
    let drops = m.or(closed, dropping);
    let passes = m.not(drops);
    let valid = m.and(input.valid, passes);
    let ready = m.or(drops, output.ready);
    let taken = m.and(input.valid, ready);
    let last = input.beat.last.unwrap_or(closed);
    let goes_on = m.not(last);
    let next = m.and(drops, goes_on);
    m.set_next(dropping_register, next);
    m.set_enable(dropping_register, taken);
    let dropped = m.all(&[taken, last, drops]);
    m.set_ready(&input, ready);
    m.drive_stream(&output, &input.beat, valid);
    m.output("dropped", dropped);
    design.add(m.finish())
}

/// Frames of a slot: stream `s` in from the slot, `m` out. When it closes within a frame, that ends with a beat that is marked as bad.
pub(super) fn gate_out(design: &mut Design, shape: StreamShape) -> ModuleId {
    let mut m = ModuleBuilder::new("gate_out");
    let closed = m.input("closed", 1);
    let input = m.input_stream("s", shape);
    let output = m.output_stream("m", shape);
    let (within_register, within) = m.register("within", 1, Some(0));
    let open = m.not(closed);
    let of_slot = m.and(input.valid, open);
    let cuts = m.and(closed, within);
    let valid = m.or(of_slot, cuts);
    let bits = m.beat_bits(&input.beat);
    // One byte, so that no beat is empty; the first signal of a beat is the lowest.
    let signals: Vec<(&str, u32)> = shape.signals().collect();
    let end = signals.iter().rev().map(|(suffix, width)| m.number(*width, u128::from(*suffix != "tdata")));
    let end: Vec<_> = end.collect();
    let end = m.concat(&end);
    let bits = m.mux(closed, end, bits);
    let beat: Beat = m.bits_beat(shape, bits);
    let passes = m.and(valid, output.ready);
    let last = beat.last.unwrap_or(closed);
    let goes_on = m.not(last);
    m.set_next(within_register, goes_on);
    m.set_enable(within_register, passes);
    let ready = m.and(open, output.ready);
    m.set_ready(&input, ready);
    m.drive_stream(&output, &beat, valid);
    design.add(m.finish())
}
