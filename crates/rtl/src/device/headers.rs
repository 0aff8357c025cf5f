//! What a device has to know of the headers of its program.

use super::again::Tag;
use super::clones::Features;
use crate::graph::{Node, Wire};
use crate::hardware::Stage;
use crate::stage::{Input, Output};
use millrace_netlist::blocks::EditorShape;
use millrace_pipeline::{Intrinsic, Program};

/// What a device has to know of the headers of its program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headers {
    /// Bytes that a decision needs.
    pub(super) window: u32,
    /// The most bytes of new headers.
    pub(super) emitted: u32,
    /// By how many lanes of a beat the bytes after them may move: bit *n* for *n* lanes.
    pub(super) moves: u64,
    /// All copies of a frame have the same new headers, which are there when ingress has ended.
    pub(super) are_shared: bool,
    /// Frames may have copies by a multicast group or a clone session.
    pub(super) has_groups: bool,
}

impl Headers {
    pub(super) fn new(
        (program, ingress, egress): (&Program, &Stage, &Stage),
        (window, emitted): (u32, u32),
        (again, features): (Option<&Tag>, Features),
        width: u32,
    ) -> Headers {
        // A frame that starts again, or a clone, may have other headers than what the stages say of the frame that came.
        let is_once = again.is_none() && !features.clones();
        Headers {
            window,
            emitted,
            moves: if is_once { moves(ingress, egress, width / 8) } else { EditorShape::all_moves(width) },
            are_shared: is_once && !features.cuts && !egress.may_say(Output::Deparsed),
            has_groups: !is_once || ingress.asks(program, Intrinsic::MulticastGroup),
        }
    }
}

/// The most bytes of new headers that a stage says.
pub(super) fn emitted_bytes(stage: &Stage) -> u32 {
    let emitted = stage.dataflow.output(Output::Emitted);
    emitted.map_or(0, |wire| stage.dataflow.graph.width(wire).div_ceil(8))
}

/// The pairs of lengths that are looked at to find by how much bytes may move.
const MOST_PAIRS: usize = 1 << 12;

/// By how many lanes of a beat the bytes after new headers may move: bit *n* for *n* lanes.
fn moves(ingress: &Stage, egress: &Stage, bytes: u32) -> u64 {
    let stage = if egress.may_say(Output::Deparsed) { egress } else { ingress };
    let mut graph = stage.dataflow.graph.clone();
    let mut said = [Output::EmittedLength, Output::PayloadFrom].map(|output| {
        Some(match stage.dataflow.output(output) {
            None => vec![(0, graph.bool(true))],
            Some(wire) => match cursor_of(ingress, stage, wire) {
                Some(values) => values.into_iter().map(|value| (value, graph.bool(true))).collect(),
                None => graph.cases(wire)?.iter().map(|(value, when)| (*value, *when)).collect(),
            },
        })
    });
    let (Some(lengths), Some(froms)) = (said[0].take(), said[1].take()) else {
        return EditorShape::all_moves(bytes * 8);
    };
    if lengths.len() * froms.len() > MOST_PAIRS {
        return EditorShape::all_moves(bytes * 8);
    }
    // A frame that no deparser has seen goes on as it is.
    let mut moves = 1;
    for (length, when) in &lengths {
        for (from, also) in &froms {
            let both = graph.and(*when, *also);
            if !graph.is_false(both) && !graph.is_never(both) {
                moves |= 1 << ((length / 8).wrapping_sub(from / 8) % u64::from(bytes));
            }
        }
    }
    moves
}

/// The places where the cursor of ingress may have come to, if they are known and an output of egress is the cursor.
fn cursor_of(ingress: &Stage, stage: &Stage, wire: Wire) -> Option<Vec<u64>> {
    let Node::Input(number) = stage.dataflow.graph.node(wire) else { return None };
    if stage.dataflow.inputs[*number as usize].0 != Input::Cursor {
        return None;
    }
    match ingress.dataflow.output(Output::Cursor) {
        None => Some(vec![0]),
        Some(wire) => ingress.dataflow.graph.values(wire).map(<[u64]>::to_vec),
    }
}
