//! Frames of several streams one after the other, in turn.

use millrace_netlist::blocks::round_robin_arbiter;
use millrace_netlist::{Beat, Design, ModuleBuilder, ModuleId, NodeId, StreamShape};

/// Streams `s0` to `s{count - 1}` in, `m` out. A frame of a stream begins only while its bit of `may` is 1, and is passed to its end.
/// `from` has a bit for the stream of the beat.
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
    let (owner_register, owner) = m.register("owner", count, Some(0));
    let asks = m.and(valids, may);
    let turn = m.instance(design, arbiter, "turn");
    m.connect(turn, "request", asks);
    let grant = m.output_of(turn, "grant");
    let chosen = m.mux(within, owner, grant);
    let there = m.and(chosen, valids);
    let valid = m.reduce_or(there);
    let passes = m.and(valid, output.ready);
    let outside = m.not(within);
    let begins = m.and(passes, outside);
    m.connect(turn, "take", begins);
    let mut choices = Vec::new();
    for (at, input) in (0..).zip(&inputs) {
        let here = m.bit(chosen, at);
        let ready = m.and(here, output.ready);
        m.set_ready(input, ready);
        let bits = m.beat_bits(&input.beat);
        choices.push((here, bits));
    }
    let bits = m.one_hot(shape.beat(), &choices);
    let beat: Beat = m.bits_beat(shape, bits);
    let last = beat.last.unwrap_or(valid);
    let goes_on = m.not(last);
    m.set_next(within_register, goes_on);
    m.set_enable(within_register, passes);
    m.set_next(owner_register, chosen);
    m.set_enable(owner_register, passes);
    m.drive_stream(&output, &beat, valid);
    m.output("from", chosen);
    design.add(m.finish())
}
