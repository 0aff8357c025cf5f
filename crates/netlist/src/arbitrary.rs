//! Random verified designs, for tests of everything that reads them (feature `arbitrary`), and [`mod@reference`], which says what a
//! design does.
//!
//! A design has a few modules, later ones with instances of earlier ones whose outputs feed other instances, registers of all
//! kinds, memories with all kinds of ports, streams, and values of 1 to some hundred bits by all operations. Nodes are made
//! raw, as a text could have them, half of the time, so that optimisers have something to find; the builder makes the rest.

pub mod reference;

pub use millrace_pipeline::arbitrary::Rng;

use crate::*;
use cranelift_entity::EntityRef;

/// A random design, about that many nodes a module.
pub fn design(seed: u64, size: usize) -> Design {
    let mut rng = Rng::new(seed);
    let mut design = Design::new();
    let modules = 1 + rng.below(3);
    for at in 0..modules {
        let mut generator = Generator::new(&mut rng, &design, at, size);
        generator.build();
        let module = generator.m.finish();
        design.add(module);
    }
    if rng.one_in(2) {
        design.top = ModuleId::new(modules - 1).into();
    }
    design
}

struct Generator<'a> {
    rng: &'a mut Rng,
    design: &'a Design,
    m: ModuleBuilder,
    size: usize,
    values: Vec<NodeId>,
}

impl<'a> Generator<'a> {
    fn new(rng: &'a mut Rng, design: &'a Design, at: usize, size: usize) -> Generator<'a> {
        // Names that have to be made legal, are words of SystemVerilog, or are alike once they are legal.
        let names = ["block", "module", "hdr.x", "hdr_x", "größe"];
        let name = if rng.one_in(3) { format!("{}{at}", names[rng.below(5)]) } else { format!("m{at}") };
        Generator { rng, design, m: ModuleBuilder::new(&name), size, values: Vec::new() }
    }

    fn width(&mut self) -> u32 {
        match self.rng.below(10) {
            0..4 => 1,
            4..6 => 1 + self.rng.below(8) as u32,
            6..8 => 1 + self.rng.below(66) as u32,
            8 => [31, 32, 33, 63, 64, 65, 127, 128, 129][self.rng.below(9)],
            _ => 1 + self.rng.below(300) as u32,
        }
    }

    /// A value of a width, made of what is there if need be.
    fn value(&mut self, width: u32) -> NodeId {
        let fits: Vec<NodeId> = self.values.iter().copied().filter(|v| self.m.width(*v) == width).collect();
        if !fits.is_empty() && !self.rng.one_in(6) {
            return fits[self.rng.below(fits.len())];
        }
        if self.values.is_empty() || self.rng.one_in(4) {
            let bits = self.rng.bits(width);
            return self.m.constant(bits);
        }
        let any = self.any();
        if self.rng.one_in(2) { self.m.resize(any, width) } else { self.m.resize_signed(any, width) }
    }

    fn any(&mut self) -> NodeId {
        // Young ones more often, so that values build on each other.
        let count = self.values.len();
        let young = self.rng.below(count).max(self.rng.below(count));
        self.values[young]
    }

    fn build(&mut self) {
        for at in 0..1 + self.rng.below(5) {
            let width = self.width();
            let name = if self.rng.one_in(5) { format!("in.put {at}") } else { format!("i{at}") };
            let input = self.m.input(&name, width);
            self.values.push(input);
        }
        let shape = StreamShape { data: 16, keep: 2, last: 1, user: self.rng.below(3) as u32 };
        let streams = self.rng.one_in(3).then(|| {
            let stream = (self.m.input_stream("s_axis", shape), self.m.output_stream("m_axis", shape));
            self.values.extend([stream.0.beat.data, stream.0.beat.keep].into_iter().flatten());
            self.values.extend([stream.0.valid, stream.1.ready]);
            stream
        });
        let mut registers = Vec::new();
        for at in 0..self.rng.below(6) {
            let width = self.width();
            let reset = (!self.rng.one_in(3)).then(|| self.rng.bits(width));
            let name = if self.rng.one_in(6) { format!("reg[{at}].a") } else { format!("r{at}") };
            let (register, value) = self.m.register_with(&name, width, reset);
            registers.push(register);
            self.values.push(value);
        }
        let memories = self.memories();
        let instances = self.instances();
        for at in 0..self.size {
            if self.rng.one_in(12) {
                let place = Place::Line { file: "some file.p4".into(), line: self.rng.below(30) as u32 };
                self.m.set_place((!self.rng.one_in(4)).then_some(place));
            }
            let node = self.operation();
            if self.rng.one_in(6) {
                self.m.name(node, ["sum", "hdr.ipv4.ttl", "wire", "x y"][at % 4]);
            }
            self.values.push(node);
        }
        for register in registers {
            let next = self.value(self.m.module().registers[register].width);
            self.m.set_next(register, next);
            if self.rng.one_in(2) {
                let enable = self.value(1);
                self.m.set_enable(register, enable);
            }
        }
        self.drive_memories(&memories);
        // What is not connected yet gets registers, which close no loop.
        for instance in instances {
            self.connect(instance);
        }
        for at in 0..1 + self.rng.below(5) {
            let value = self.any();
            self.m.output(&format!("o{at}"), value);
        }
        if let Some((input, output)) = streams {
            let beat = Beat {
                data: Some(self.value(16)),
                keep: Some(self.value(2)),
                last: Some(self.value(1)),
                user: (shape.user > 0).then(|| self.value(shape.user)),
            };
            let (valid, ready) = (self.value(1), self.value(1));
            self.m.drive_stream(&output, &beat, valid);
            self.m.set_ready(&input, ready);
        }
    }

    fn memories(&mut self) -> Vec<(MemoryId, Option<ReadId>)> {
        let mut memories = Vec::new();
        for at in 0..self.rng.below(3) {
            let width = if self.rng.one_in(2) { 8 * (1 + self.rng.below(12) as u32) } else { self.width() };
            let depth = [1, 2, 3, 5, 8, 16, 33][self.rng.below(7)];
            let words = self.rng.below(depth as usize + 1);
            let initial = (0..words).map(|_| self.rng.bits(width)).collect();
            let memory = self.m.memory(&format!("mem{at}"), width, depth, initial);
            let read = self.rng.one_in(2).then(|| {
                let (read, data) = self.m.declare_read(memory);
                self.values.push(data);
                read
            });
            if read.is_none() || self.rng.one_in(3) {
                let address = self.value(address_width(depth));
                let data = self.m.read(memory, address);
                self.values.push(data);
            }
            memories.push((memory, read));
        }
        memories
    }

    fn drive_memories(&mut self, memories: &[(MemoryId, Option<ReadId>)]) {
        for (memory, read) in memories {
            let (width, depth) = {
                let memory = &self.m.module().memories[*memory];
                (memory.width, memory.depth)
            };
            for _ in 0..self.rng.below(3) {
                let (enable, data) = (self.value(1), self.value(width));
                let address = self.value(address_width(depth));
                let lanes: Vec<u32> =
                    (2..=width.min(16)).filter(|lanes| width.is_multiple_of(*lanes)).collect();
                if !lanes.is_empty() && self.rng.one_in(2) {
                    let lanes = lanes[self.rng.below(lanes.len())];
                    let lanes = self.value(lanes);
                    self.m.write_lanes(*memory, enable, address, data, lanes);
                } else {
                    self.m.write(*memory, enable, address, data);
                }
            }
            if let Some(read) = read {
                let address = self.value(address_width(depth));
                let enable = self.rng.one_in(2).then(|| self.value(1));
                self.m.drive_read(*memory, *read, address, enable);
            }
        }
    }

    /// Instances whose inputs get what is there now, all or some; outputs become values.
    fn instances(&mut self) -> Vec<InstanceId> {
        let mut instances = Vec::new();
        if self.design.modules.is_empty() {
            return instances;
        }
        for at in 0..self.rng.below(3) {
            let module = ModuleId::new(self.rng.below(self.design.modules.len()));
            let instance = self.m.instance(self.design, module, &format!("u{at}"));
            if self.rng.one_in(2) {
                self.connect(instance);
            }
            let ports = &self.design.modules[module].outputs;
            for port in ports.values() {
                if !self.rng.one_in(5) {
                    let value = self.m.output_of(instance, &port.name);
                    self.values.push(value);
                }
            }
            instances.push(instance);
        }
        instances
    }

    /// Connects inputs that nothing drives yet: to a value if the instance has given none so far, else by a register.
    fn connect(&mut self, instance: InstanceId) {
        let given = self.m.module().instances[instance].clone();
        let module = &self.design.modules[given.module];
        let nodes = &self.m.module().nodes;
        let closes = nodes.values().any(|node| matches!(node.op, Op::Instance(..)));
        for (port, driver) in module.inputs.values().zip(&given.inputs) {
            if driver.is_some() {
                continue;
            }
            let mut value = self.value(port.width);
            if closes {
                value = self.m.delayed(&format!("{}.{}.in", given.name, port.name), value, None);
            }
            self.m.connect(instance, &port.name, value);
        }
    }

    fn operation(&mut self) -> NodeId {
        let a = self.any();
        let width = self.m.width(a);
        let op = match self.rng.below(12) {
            0 => Op::Unary(UnaryOp::ALL[self.rng.below(UnaryOp::ALL.len())], a),
            1..6 => {
                let op = BinaryOp::ALL[self.rng.below(BinaryOp::ALL.len())];
                let width =
                    if op.is_shift() && !self.rng.one_in(4) { 1 + self.rng.below(10) as u32 } else { width };
                Op::Binary(op, a, self.value(width))
            }
            6 => {
                let parts: Vec<NodeId> = (0..1 + self.rng.below(5)).map(|_| self.any()).collect();
                Op::Concat(parts.into())
            }
            7 | 8 => Op::Slice(a, self.rng.below(width as usize) as u32),
            9 => Op::Repeat(self.value(1)),
            _ => Op::Mux(self.value(1), a, self.value(width)),
        };
        let width = match &op {
            Op::Unary(UnaryOp::Not, _) | Op::Mux(..) => width,
            Op::Unary(..) => 1,
            Op::Binary(op, ..) => {
                if op.is_comparison() {
                    1
                } else {
                    width
                }
            }
            Op::Concat(parts) => parts.iter().map(|part| self.m.width(*part)).sum(),
            Op::Slice(_, low) => 1 + self.rng.below((width - low) as usize) as u32,
            _ => self.width(),
        };
        // Values that grow without end would be all that there is.
        if width > 600 {
            return self.m.slice(a, 0, 1);
        }
        if self.rng.one_in(2) { self.m.operation(op, width) } else { self.m.raw(op, width) }
    }
}
