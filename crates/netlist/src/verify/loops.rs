//! Values that depend on themselves within a cycle.
//!
//! Operands come earlier than what uses them, so within a module only an instance can close a loop: one of its outputs, used to
//! make one of its inputs, when the module has a path from that input to that output. So for each module, after those inside it,
//! the verifier finds its *paths*: which inputs each output depends on within a cycle. With the paths of instances as edges the
//! values of a module are a graph, and a loop of the whole design is a cycle of one of these graphs: take the innermost module
//! that has the whole loop inside; where the loop passes an instance, it enters by an input and leaves by an output between which
//! there is a path.

use crate::*;
use cranelift_entity::{EntityRef, SecondaryMap};

/// Calls a function with each value that a value depends on within a cycle.
type Operands<'a> = dyn Fn(NodeId, &mut dyn FnMut(NodeId)) + 'a;

/// For each output of a module, the inputs that it depends on within a cycle.
pub(super) type Paths = SecondaryMap<OutputId, Vec<InputId>>;

/// The paths of a module, from those of all modules before it.
///
/// # Errors
/// The values of a loop, each an operand of the next.
pub(super) fn paths(module: &Module, known: &[Paths]) -> Result<Paths, Vec<NodeId>> {
    let operands = |node: NodeId, visit: &mut dyn FnMut(NodeId)| match &module.nodes[node].op {
        Op::Read(memory, read) => {
            let port = &module.memories[*memory].reads[*read];
            if port.latency == Latency::Direct {
                port.address.expand().into_iter().for_each(visit);
            }
        }
        Op::Instance(instance, output) => {
            let instance = &module.instances[*instance];
            for input in &known[instance.module.index()][*output] {
                instance.inputs[input.index()].expand().into_iter().for_each(&mut *visit);
            }
        }
        op => op.operands(visit),
    };
    let order = match module.instances.is_empty() {
        true => module.nodes.keys().collect(),
        false => sorted(module.nodes.len(), &operands)?,
    };
    // 64 inputs at a time, each a bit of a word that goes with each value.
    let mut paths = Paths::new();
    let mut reached: SecondaryMap<NodeId, u64> = SecondaryMap::with_capacity(module.nodes.len());
    let inputs: Vec<InputId> = module.inputs.keys().collect();
    for chunk in inputs.chunks(64) {
        for node in &order {
            let mut bits = match module.nodes[*node].op {
                Op::Input(input) if chunk.contains(&input) => 1 << (input.index() - chunk[0].index()),
                _ => 0,
            };
            operands(*node, &mut |operand| bits |= reached[operand]);
            reached[*node] = bits;
        }
        for (output, port) in &module.outputs {
            let bits = port.value.expand().map_or(0, |value| reached[value]);
            let depends = chunk.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
            paths[output].extend(depends.map(|(_, input)| *input));
        }
    }
    Ok(paths)
}

/// All values, operands first.
///
/// # Errors
/// The values of a loop.
fn sorted(count: usize, operands: &Operands<'_>) -> Result<Vec<NodeId>, Vec<NodeId>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        /// Its operands are on the way.
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; count];
    let mut order = Vec::with_capacity(count);
    // A depth-first search without recursion: a value is on the stack, open, until its operands are done.
    let mut stack = Vec::new();
    for root in (0..count).map(NodeId::new) {
        stack.push(root);
        while let Some(node) = stack.last().copied() {
            match marks[node.index()] {
                Mark::Done => {
                    stack.pop();
                }
                Mark::Open => {
                    marks[node.index()] = Mark::Done;
                    order.push(node);
                    stack.pop();
                }
                Mark::New => {
                    marks[node.index()] = Mark::Open;
                    let mut closed = None;
                    operands(node, &mut |operand| match marks[operand.index()] {
                        Mark::Open => closed = Some(operand),
                        Mark::New => stack.push(operand),
                        Mark::Done => (),
                    });
                    if let Some(start) = closed {
                        // The open values from there on are the loop, with others that wait between them.
                        let from = stack.iter().position(|on| *on == start).unwrap_or(0);
                        let open = stack[from..].iter().filter(|on| marks[on.index()] == Mark::Open);
                        let mut cycle: Vec<NodeId> = Vec::new();
                        open.for_each(|on| {
                            if !cycle.contains(on) {
                                cycle.push(*on)
                            }
                        });
                        cycle.reverse();
                        return Err(cycle);
                    }
                }
            }
        }
    }
    Ok(order)
}

/// A value as messages name it: `n12 (fifo.m_tvalid, router.p4:3)`.
pub(super) fn describe(design: &Design, module: &Module, node: NodeId) -> String {
    let mut known = Vec::new();
    let found = module.nodes.get(node);
    if let Some(name) = module.names.get(&node) {
        known.push(name.clone());
    } else if let Some(Op::Instance(instance, output)) = found.map(|node| &node.op)
        && let Some(instance) = module.instances.get(*instance)
    {
        let port = design.modules.get(instance.module).and_then(|inner| inner.outputs.get(*output));
        known.push(format!(
            "{} of {}",
            port.map_or(output.to_string(), |port| port.name.clone()),
            instance.name
        ));
    }
    let line = found.and_then(|node| module.line(node.place));
    known.extend(line.map(|(file, line)| format!("{file}:{line}")));
    if known.is_empty() { node.to_string() } else { format!("{node} ({})", known.join(", ")) }
}
