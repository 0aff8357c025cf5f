//! What a design does, written as the documentation says it: one value after the other, each from its definition. It is slow, and
//! shares nothing with the simulator but [`Bits`].

use crate::*;
use cranelift_entity::EntityRef;
use std::collections::HashMap;

/// A running module with the modules inside it.
pub struct Reference<'d> {
    module: &'d Module,
    inputs: Vec<Bits>,
    registers: Vec<Bits>,
    memories: Vec<Vec<Bits>>,
    /// The data of clocked reads.
    reads: HashMap<(MemoryId, ReadId), Bits>,
    instances: Vec<Reference<'d>>,
}

impl<'d> Reference<'d> {
    /// The top of a verified design in its first cycle, all inputs 0.
    ///
    /// # Panics
    /// The design has no module.
    pub fn new(design: &'d Design) -> Reference<'d> {
        Reference::of(design, design.top().expect("a top module"))
    }

    fn of(design: &'d Design, id: ModuleId) -> Reference<'d> {
        let module = &design.modules[id];
        let start = |register: &Register| register.reset.clone().unwrap_or(Bits::zero(register.width));
        let content = |memory: &Memory| {
            let mut words = memory.initial.clone();
            words.resize(memory.depth as usize, Bits::zero(memory.width));
            words
        };
        let mut reads = HashMap::new();
        for (id, memory) in &module.memories {
            reads.extend(memory.reads.keys().map(|read| ((id, read), Bits::zero(memory.width))));
        }
        Reference {
            module,
            inputs: module.inputs.values().map(|port| Bits::zero(port.width)).collect(),
            registers: module.registers.values().map(start).collect(),
            memories: module.memories.values().map(content).collect(),
            reads,
            instances: module.instances.values().map(|inner| Reference::of(design, inner.module)).collect(),
        }
    }

    /// Sets an input for this cycle.
    pub fn set(&mut self, input: InputId, value: Bits) {
        self.inputs[input.index()] = value;
    }

    /// What an output gives in this cycle.
    ///
    /// # Panics
    /// Nothing drives it.
    pub fn get(&self, output: OutputId) -> Bits {
        Cycle { this: self, above: None, known: HashMap::new() }.output(output)
    }

    /// The rising edge of the clock.
    pub fn step(&mut self, reset: bool) {
        let after = self.after(None, reset);
        self.take(after);
    }

    /// What all state is after the edge.
    fn after(&self, above: Option<&mut dyn FnMut(InputId) -> Bits>, reset: bool) -> After {
        let mut cycle = Cycle { this: self, above, known: HashMap::new() };
        let mut after = After {
            registers: self.registers.clone(),
            memories: self.memories.clone(),
            reads: self.reads.clone(),
            instances: Vec::new(),
        };
        for (id, register) in &self.module.registers {
            let enabled = register.enable.expand().is_none_or(|enable| cycle.is_one(enable));
            let next = &mut after.registers[id.index()];
            match &register.reset {
                Some(value) if reset => *next = value.clone(),
                _ if enabled => *next = cycle.value(register.next.expect("a next value")),
                _ => (),
            }
        }
        for (id, memory) in &self.module.memories {
            for (read, port) in &memory.reads {
                let Latency::Clocked { enable } = port.latency else { continue };
                let address = cycle.value(port.address.expect("an address")).to_u64_saturating();
                let enabled = enable.expand().is_none_or(|enable| cycle.is_one(enable));
                if enabled && address < u64::from(memory.depth) {
                    after.reads.insert((id, read), self.memories[id.index()][address as usize].clone());
                }
            }
            for port in &memory.writes {
                let address = cycle.value(port.address).to_u64_saturating();
                if !cycle.is_one(port.enable) || address >= u64::from(memory.depth) {
                    continue;
                }
                let data = cycle.value(port.data);
                let word = &mut after.memories[id.index()][address as usize];
                let Some(lanes) = port.lanes.expand() else {
                    *word = data;
                    continue;
                };
                let lanes = cycle.value(lanes);
                let lane = memory.width / lanes.width();
                for at in (0..lanes.width()).filter(|at| lanes.bit(*at)) {
                    let (high, low) = (at * lane + lane - 1, at * lane);
                    *word = word.with_slice(high, low, &data.slice(high, low));
                }
            }
        }
        for (id, instance) in &self.module.instances {
            let inner = &self.instances[id.index()];
            let mut input =
                |input: InputId| cycle.value(instance.inputs[input.index()].expect("a connected input"));
            after.instances.push(inner.after(Some(&mut input), reset));
        }
        after
    }

    fn take(&mut self, after: After) {
        (self.registers, self.memories, self.reads) = (after.registers, after.memories, after.reads);
        for (instance, after) in self.instances.iter_mut().zip(after.instances) {
            instance.take(after);
        }
    }
}

/// State after an edge.
struct After {
    registers: Vec<Bits>,
    memories: Vec<Vec<Bits>>,
    reads: HashMap<(MemoryId, ReadId), Bits>,
    instances: Vec<After>,
}

/// The values of a module in one cycle, as far as they have been asked for.
struct Cycle<'r, 'd, 'a> {
    this: &'r Reference<'d>,
    /// What drives the inputs; of the top they are set.
    above: Option<&'a mut dyn FnMut(InputId) -> Bits>,
    known: HashMap<NodeId, Bits>,
}

impl Cycle<'_, '_, '_> {
    fn output(&mut self, output: OutputId) -> Bits {
        let driver = self.this.module.outputs[output].value;
        self.value(driver.expect("a driven output"))
    }

    fn is_one(&mut self, node: NodeId) -> bool {
        !self.value(node).is_zero()
    }

    fn value(&mut self, node: NodeId) -> Bits {
        if let Some(value) = self.known.get(&node) {
            return value.clone();
        }
        let value = self.computed(node);
        self.known.insert(node, value.clone());
        value
    }

    fn computed(&mut self, node: NodeId) -> Bits {
        let this = self.this;
        let Node { op, width, .. } = &this.module.nodes[node];
        match op {
            Op::Constant(value) => (**value).clone(),
            Op::Input(input) => match &mut self.above {
                Some(above) => above(*input),
                None => this.inputs[input.index()].clone(),
            },
            Op::Register(register) => this.registers[register.index()].clone(),
            Op::Read(memory, read) => {
                let port = &this.module.memories[*memory].reads[*read];
                if port.latency != Latency::Direct {
                    return this.reads[&(*memory, *read)].clone();
                }
                let address = self.value(port.address.expect("an address")).to_u64_saturating();
                let words = &this.memories[memory.index()];
                let word = usize::try_from(address).ok().and_then(|address| words.get(address));
                word.cloned().unwrap_or(Bits::zero(*width))
            }
            Op::Instance(instance, output) => {
                let (instance, inner) =
                    (&this.module.instances[*instance], &this.instances[instance.index()]);
                let mut input =
                    |input: InputId| self.value(instance.inputs[input.index()].expect("a connected input"));
                Cycle { this: inner, above: Some(&mut input), known: HashMap::new() }.output(*output)
            }
            Op::Unary(op, a) => op.evaluate(&self.value(*a)),
            Op::Binary(op, a, b) => op.evaluate(&self.value(*a), &self.value(*b)),
            Op::Concat(parts) => {
                let values: Vec<Bits> = parts.iter().map(|part| self.value(*part)).collect();
                values.into_iter().reduce(|high, low| high.concat(&low)).expect("parts")
            }
            Op::Slice(a, low) => self.value(*a).slice(low + width - 1, *low),
            Op::Repeat(a) if self.is_one(*a) => Bits::ones(*width),
            Op::Repeat(_) => Bits::zero(*width),
            Op::Mux(select, a, b) => {
                let chosen = if self.is_one(*select) { a } else { b };
                self.value(*chosen)
            }
        }
    }
}
