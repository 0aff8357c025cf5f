//! The graph of a stage, evaluated without time: what the pipeline computes over several cycles, at once.
//!
//! It is the middle between the interpreter and the simulated pipeline. Where these two disagree, it tells whether the
//! if-converter or the scheduler is wrong.

use crate::frame_bits::frame_bits;
use crate::graph::{Node, Wire};
use crate::stage::{Dataflow, Input, Output, crc_parameters};
use crate::units::Objects;
use cranelift_entity::SecondaryMap;
use millrace_pipeline::Bits;

impl Dataflow {
    /// The outputs for a frame.
    pub(crate) fn evaluate(
        &self,
        frame: &[u8],
        input: &dyn Fn(Input, u32) -> Bits,
        objects: &mut Objects<'_>,
    ) -> Vec<(Output, Bits)> {
        let mut values: SecondaryMap<Wire, Option<Bits>> = SecondaryMap::new();
        let mut answers: Vec<Option<Bits>> = vec![None; self.accesses.len()];
        let mut made = 0;
        for wire in self.graph.wires() {
            if let Node::Answer(access, _) = self.graph.node(wire) {
                while made <= *access as usize {
                    answers[made] = self.make(made, &values, objects);
                    made += 1;
                }
            }
            let width = self.graph.width(wire);
            let of =
                |wire: &Wire| values[*wire].clone().unwrap_or_else(|| Bits::zero(self.graph.width(*wire)));
            values[wire] = Some(match self.graph.node(wire) {
                Node::Const(bits) => bits.clone(),
                Node::Frame(offset) => frame_bits(frame, *offset, width),
                Node::Input(number) => match self.inputs[*number as usize].0 {
                    Input::Now => Bits::new(width, u128::from(objects.now_ns)),
                    Input::Parameters(hash) => crc_parameters(objects.state.own_hash(hash).parameters()),
                    other => input(other, width),
                },
                Node::Answer(access, low) => match &answers[*access as usize] {
                    Some(answer) => answer.slice(low + width - 1, *low),
                    None => Bits::zero(width),
                },
                Node::Unary(op, a) => op.evaluate(&of(a)),
                Node::Binary(op, a, b) => op.evaluate(&of(a), &of(b)),
                Node::Concat(a, b) => of(a).concat(&of(b)),
                Node::Slice(a, low) => of(a).slice(low + width - 1, *low),
                Node::Mux(cond, a, b) => of(if of(cond).is_zero() { b } else { a }),
            });
        }
        while made < self.accesses.len() {
            self.make(made, &values, objects);
            made += 1;
        }
        let value = |wire: &Wire| values[*wire].clone().unwrap_or_else(|| Bits::zero(1));
        self.outputs.iter().map(|(output, wire)| (*output, value(wire))).collect()
    }

    fn make(
        &self,
        at: usize,
        values: &SecondaryMap<Wire, Option<Bits>>,
        objects: &mut Objects<'_>,
    ) -> Option<Bits> {
        let access = &self.accesses[at];
        let value = |wire: Wire| values[wire].clone().unwrap_or_else(|| Bits::zero(1));
        if value(access.enable).is_zero() {
            return None;
        }
        let inputs: Vec<_> = access.inputs.iter().map(|(wire, ty)| (value(*wire), *ty)).collect();
        objects.access(&access.unit, &inputs, access.answer)
    }
}
