//! Frames of several streams one after the other, in turn.

use millrace_netlist::blocks::round_robin_arbiter;
use millrace_netlist::{Beat, Design, ModuleBuilder, ModuleId, NodeId, StreamShape};

/// Streams `s0` to `s{count - 1}` in, `m` out. A frame of a stream begins only while its bit of `may` is 1, and is passed to its end.
/// `from` has a bit for the stream of the beat.
///
/// The stream that passes, the *owner*, is in a register, so that the arbiter and the choice of the beat are not in one cycle. The next
/// owner is known before the frame of the present one ends, and where no other stream asks, the owner stays: only a frame that comes to
/// an idle merge waits, for a cycle, and none if it is of the stream that was served last.
pub(super) fn merge(design: &mut Design, count: u32, shape: StreamShape) -> ModuleId {
    let name = format!("merge_{count}x{}", shape.data);
    if let Some(known) = design.module_named(&name) {
        return known;
    }
    let arbiter = round_robin_arbiter(design, count);
    let mut m = ModuleBuilder::new(&name);
    let inputs: Vec<_> = (0..count).map(|at| m.input_stream(&format!("s{at}"), shape)).collect();
    let may = m.input("may", count);
    let output = m.output_stream("m", shape);
    let valids: Vec<NodeId> = inputs.iter().rev().map(|input| input.valid).collect();
    let valids = m.concat(&valids);
    let (within_register, within) = m.register("within", 1, Some(0));
    let (owner_register, owner) = m.register("owner", count, Some(1));
    // What may pass of the owner: the rest of its frame, or a frame that begins.
    let all = m.repeat(within, count);
    let open = m.or(all, may);
    let open = m.and(owner, open);
    let there = m.and(open, valids);
    let valid = m.reduce_or(there);
    let passes = m.and(valid, output.ready);
    let mut choices = Vec::new();
    for (at, input) in (0..).zip(&inputs) {
        let here = m.bit(open, at);
        let ready = m.and(here, output.ready);
        m.set_ready(input, ready);
        let bits = m.beat_bits(&input.beat);
        choices.push((m.bit(owner, at), bits));
    }
    let bits = m.one_hot(shape.beat(), &choices);
    let beat: Beat = m.bits_beat(shape, bits);
    let last = beat.last.unwrap_or(valid);
    let goes_on = m.not(last);
    m.set_next(within_register, goes_on);
    m.set_enable(within_register, passes);
    // Another stream is next when the frame ends, or at once if there is none.
    let others = m.not(owner);
    let asks = m.all(&[valids, may, others]);
    let turn = m.instance(design, arbiter, "turn");
    m.connect(turn, "request", asks);
    let next = m.output_of(turn, "grant");
    let ends = m.and(passes, last);
    let is_busy = m.or(within, valid);
    let is_idle = m.not(is_busy);
    let is_free = m.or(ends, is_idle);
    let is_asked = m.reduce_or(asks);
    let changes = m.and(is_free, is_asked);
    m.set_next(owner_register, next);
    m.set_enable(owner_register, changes);
    m.connect(turn, "take", changes);
    m.drive_stream(&output, &beat, valid);
    m.output("from", owner);
    design.add(m.finish())
}
