//! A design as text.

use super::cursor::{in_quotes, quoted};
use crate::*;
use cranelift_entity::packed_option::PackedOption;
use std::fmt::{Display, Write};

/// The text of a design.
pub fn print(design: &Design) -> String {
    let mut out = String::new();
    if let Some(top) = design.top.expand() {
        // A top that does not exist has no name; the verifier refuses it.
        let name = design.modules.get(top).map_or(String::new(), |module| quoted(&module.name).into());
        let _ = writeln!(out, "top {name}");
    }
    for module in design.modules.values() {
        if !out.is_empty() {
            out.push('\n');
        }
        Printer { design, module, out: &mut out }.module();
    }
    out
}

struct Printer<'a> {
    design: &'a Design,
    module: &'a Module,
    out: &'a mut String,
}

/// A value, or `_` for none.
fn value(value: PackedOption<NodeId>) -> String {
    value.expand().map_or("_".into(), |node| node.to_string())
}

impl Printer<'_> {
    fn line(&mut self, text: impl Display) {
        let _ = writeln!(self.out, "    {text}");
    }

    fn module(&mut self) {
        let module = self.module;
        let _ = writeln!(self.out, "module {} {{", quoted(&module.name));
        for port in module.inputs.values() {
            self.line(format_args!("input {}: {}", quoted(&port.name), port.width));
        }
        for port in module.outputs.values() {
            self.line(format_args!("output {}: {} = {}", quoted(&port.name), port.width, value(port.value)));
        }
        for stream in module.streams.values() {
            self.stream(stream);
        }
        for register in module.registers.values() {
            self.register(register);
        }
        for memory in module.memories.values() {
            self.memory(memory);
        }
        for instance in module.instances.values() {
            self.instance(instance);
        }
        for (id, node) in &module.nodes {
            let op = self.op(&node.op);
            let name = module.names.get(&id).map(|name| format!(" {}", in_quotes(name)));
            let place = self.place(node.place);
            self.line(format_args!("{id}: {} = {op}{}{place}", node.width, name.unwrap_or_default()));
        }
        self.out.push_str("}\n");
    }

    fn place(&self, place: PackedOption<PlaceId>) -> String {
        self.module.line(place).map_or(String::new(), |(file, line)| format!(" @ {}:{line}", quoted(file)))
    }

    fn stream(&mut self, stream: &Stream) {
        let (name, direction) = (quoted(&stream.name).into_owned(), stream.direction.name());
        let StreamShape { data, keep, last, user } = stream.shape;
        self.line(format_args!("stream {name} {direction} data {data} keep {keep} last {last} user {user}"));
    }

    fn register(&mut self, register: &Register) {
        let mut text = format!("register {}: {}", quoted(&register.name), register.width);
        if let Some(reset) = &register.reset {
            let _ = write!(text, " reset {reset}");
        }
        let _ = write!(text, " next {}", value(register.next));
        if let Some(enable) = register.enable.expand() {
            let _ = write!(text, " enable {enable}");
        }
        let place = self.place(register.place);
        self.line(format_args!("{text}{place}"));
    }

    fn memory(&mut self, memory: &Memory) {
        let place = self.place(memory.place);
        let (name, width, depth) = (quoted(&memory.name).into_owned(), memory.width, memory.depth);
        let promise = if memory.never_collides { " never_collides" } else { "" };
        self.line(format_args!("memory {name}: {width} x {depth}{promise}{place} {{"));
        for words in memory.initial.chunks(8) {
            let words: Vec<String> = words.iter().map(Bits::to_string).collect();
            self.line(format_args!("    initial {}", words.join(" ")));
        }
        for port in &memory.writes {
            let WritePort { address, data, enable, .. } = port;
            let mut text = format!("write address {address} data {data} enable {enable}");
            if let Some(lanes) = port.lanes.expand() {
                let _ = write!(text, " lanes {lanes}");
            }
            self.line(format_args!("    {text}"));
        }
        for (id, port) in &memory.reads {
            let mut text = format!("{id} ");
            text += match port.latency {
                Latency::Direct => "direct",
                Latency::Clocked { .. } => "clocked",
            };
            let _ = write!(text, " address {}", value(port.address));
            if let Latency::Clocked { enable } = port.latency
                && let Some(enable) = enable.expand()
            {
                let _ = write!(text, " enable {enable}");
            }
            self.line(format_args!("    {text}"));
        }
        self.line("}");
    }

    fn instance(&mut self, instance: &Instance) {
        let module = self.design.modules.get(instance.module);
        let module = module.map_or(instance.module.to_string(), |module| quoted(&module.name).into());
        let inputs: Vec<String> = instance.inputs.iter().map(|input| value(*input)).collect();
        let place = self.place(instance.place);
        let name = quoted(&instance.name).into_owned();
        self.line(format_args!("instance {name}: {module} ({}){place}", inputs.join(", ")));
    }

    fn op(&self, op: &Op) -> String {
        let module = self.module;
        match op {
            Op::Constant(value) => value.to_string(),
            Op::Input(input) => {
                let port = module.inputs.get(*input);
                format!("input {}", port.map_or(input.to_string().into(), |port| quoted(&port.name)))
            }
            Op::Register(register) => {
                let found = module.registers.get(*register);
                format!("register {}", found.map_or(register.to_string().into(), |found| quoted(&found.name)))
            }
            Op::Read(memory, read) => {
                let found = module.memories.get(*memory);
                let name = found.map_or(memory.to_string().into(), |found| quoted(&found.name));
                format!("read {name} {read}")
            }
            Op::Instance(instance, output) => {
                let found = module.instances.get(*instance);
                let inner = found.and_then(|found| self.design.modules.get(found.module));
                let port = inner.and_then(|inner| inner.outputs.get(*output));
                let name = found.map_or(instance.to_string().into(), |found| quoted(&found.name));
                let port = port.map_or(output.to_string().into(), |port| quoted(&port.name));
                format!("output {name} {port}")
            }
            Op::Unary(op, a) => format!("{} {a}", op.name()),
            Op::Binary(op, a, b) => format!("{} {a}, {b}", op.name()),
            Op::Concat(parts) => {
                let parts: Vec<String> = parts.iter().map(NodeId::to_string).collect();
                format!("concat {}", parts.join(", "))
            }
            Op::Slice(a, low) => format!("slice {a} from {low}"),
            Op::Repeat(a) => format!("repeat {a}"),
            Op::Mux(select, a, b) => format!("mux {select}, {a}, {b}"),
        }
    }
}
