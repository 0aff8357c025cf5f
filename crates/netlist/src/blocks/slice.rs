//! A register slice, which cuts all paths of a stream: what goes forward, and `ready`, which goes back.

use super::{once, shape_name};
use crate::*;

/// A register slice, also called a skid buffer: a beat takes a cycle through it, and one passes in each cycle. Streams `s` in and
/// `m` out.
///
/// `s_tready` comes from a register, so it tells of the other side what was true a cycle ago. When that side stops, one more beat
/// comes, for which there is a second place, the *skid*. While it is full, nothing is taken.
///
/// # Panics
/// The shape has no signals.
pub fn register_slice(design: &mut Design, shape: StreamShape) -> ModuleId {
    once(design, format!("register_slice_{}", shape_name(shape)), |m| {
        let input = m.input_stream("s", shape);
        let output = m.output_stream("m", shape);
        let arriving = m.beat_bits(&input.beat);
        let width = shape.beat();
        let (valid, is_valid) = m.register("valid", 1, Some(0));
        let (beat, beat_bits) = m.register("beat", width, None);
        let (skid_valid, skid_is_valid) = m.register("skid_valid", 1, Some(0));
        let (skid, skid_bits) = m.register("skid", width, None);

        // The output register is free at the next edge if it is empty, or if its beat passes.
        let empty = m.not(is_valid);
        let free = m.or(empty, output.ready);
        let waiting = m.or(skid_is_valid, input.valid);
        let next_valid = m.mux(free, waiting, is_valid);
        m.set_next(valid, next_valid);
        let next_beat = m.mux(skid_is_valid, skid_bits, arriving);
        m.set_next(beat, next_beat);
        m.set_enable(beat, free);

        let busy = m.not(free);
        let next_skid_valid = m.and(busy, waiting);
        m.set_next(skid_valid, next_skid_valid);
        let ready = m.not(skid_is_valid);
        m.set_next(skid, arriving);
        m.set_enable(skid, ready);

        m.set_ready(&input, ready);
        let beat = m.bits_beat(shape, beat_bits);
        m.drive_stream(&output, &beat, is_valid);
    })
}
