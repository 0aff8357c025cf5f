//! One module.

use super::expressions::{literal, range};
use super::names::{Names, legal};
use super::pins::{Pins, Taken};
use super::{Interface, Needs};
use crate::passes::{Known, Live};
use crate::*;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, SecondaryMap};
use std::fmt::Write;

/// How many operations an expression has at most before a part of it becomes a wire.
const LARGEST_EXPRESSION: u32 = 12;
/// Words of a memory that are set to 0 in the text. Larger memories are left to the device, which clears block memory when it is
/// configured: a text with so many assignments takes tools minutes.
const MOST_CLEARED_WORDS: u32 = 1 << 6;

/// Which bits of a value others take.
#[derive(Clone, Default)]
enum Used {
    /// Pieces of it, each with first bit and count.
    #[default]
    None,
    Pieces(Vec<(u32, u32)>),
    All,
}

pub(super) struct ModulePrinter<'a> {
    pub(super) module: &'a Module,
    /// What outputs depend on; nothing else is printed.
    live: Live,
    interfaces: &'a SecondaryMap<ModuleId, Interface>,
    pub(super) names: Names,
    pub(super) pins: Pins,
    interface: Interface,
    /// The names of values that have one in the text.
    pub(super) wires: SecondaryMap<NodeId, Option<String>>,
    used: SecondaryMap<NodeId, Used>,
    uses: SecondaryMap<NodeId, u32>,
    out: String,
}

/// `[7:0] ` in declarations; nothing for one bit.
fn bits(width: u32) -> String {
    if width == 1 { String::new() } else { format!("[{}:0] ", width - 1) }
}

impl<'a> ModulePrinter<'a> {
    pub(super) fn new(
        module: &'a Module,
        name: String,
        interfaces: &'a SecondaryMap<ModuleId, Interface>,
    ) -> ModulePrinter<'a> {
        let mut names = Names::new(&[Design::CLOCK, Design::RESET]);
        let inputs = module.inputs.values().map(|port| names.take(&legal(&port.name))).collect();
        let outputs = module.outputs.values().map(|port| names.take(&legal(&port.name))).collect();
        let output_widths = module.outputs.values().map(|port| port.width).collect();
        let inner = module.instances.values().map(|instance| interfaces[instance.module].needs);
        let clocked = |memory: &Memory| {
            !memory.writes.is_empty() || memory.reads.values().any(|port| port.latency != Latency::Direct)
        };
        let needs = Needs {
            clock: inner.clone().any(|needs| needs.clock)
                || !module.registers.is_empty()
                || module.memories.values().any(clocked),
            reset: inner.clone().any(|needs| needs.reset)
                || module.registers.values().any(|register| register.reset.is_some()),
        };
        ModulePrinter {
            module,
            live: Live::of(module, &Known::default()),
            interfaces,
            names,
            pins: Pins::default(),
            interface: Interface {
                module: name,
                inputs,
                outputs,
                output_widths,
                needs,
                names: Names::default(),
            },
            wires: SecondaryMap::new(),
            used: SecondaryMap::new(),
            uses: SecondaryMap::new(),
            out: String::new(),
        }
    }

    pub(super) fn print(mut self) -> (Interface, String) {
        self.find_uses();
        let registers = self.name_state();
        self.header();
        self.registers(&registers);
        let memories = self.declare_memories();
        let instances = self.declare_instances();
        self.values(&memories);
        self.clock_registers(&registers);
        self.clock_memories(&memories);
        self.connect_instances(&instances);
        self.drive_outputs();
        self.sink();
        self.out.push_str("endmodule\n");
        self.interface.names = self.names;
        (self.interface, self.out)
    }

    fn live_nodes(&self) -> impl Iterator<Item = (NodeId, &'a Node)> + use<'a> {
        let live = self.live.nodes.clone();
        self.module.nodes.iter().filter(move |(id, _)| live.contains(*id))
    }

    /// How often each value is used, and which bits of it.
    fn find_uses(&mut self) {
        let module = self.module;
        for (_, node) in self.live_nodes() {
            if let Op::Slice(a, low) = node.op {
                self.uses[a] += 1;
                match &mut self.used[a] {
                    Used::All => (),
                    Used::Pieces(pieces) => pieces.push((low, node.width)),
                    none => *none = Used::Pieces(vec![(low, node.width)]),
                }
            } else {
                node.op.operands(|operand| {
                    self.uses[operand] += 1;
                    self.used[operand] = Used::All;
                });
            }
        }
        let mut used = |node: PackedOption<NodeId>| {
            if let Some(node) = node.expand() {
                self.uses[node] += 1;
                self.used[node] = Used::All;
            }
        };
        module.taken(&mut used);
        module.registers.values().for_each(|register| used(register.next));
    }

    /// Names of what the module has besides values: first registers, memories and instances, so that they keep theirs.
    fn name_state(&mut self) -> Vec<String> {
        let module = self.module;
        let registers: Vec<String> =
            module.registers.values().map(|register| self.names.take(&legal(&register.name))).collect();
        for (id, node) in self.live_nodes() {
            self.wires[id] = match node.op {
                Op::Input(input) => Some(self.interface.inputs[input.index()].clone()),
                Op::Register(register) => Some(registers[register.index()].clone()),
                _ => None,
            };
        }
        registers
    }

    pub(super) fn line(&mut self, text: impl std::fmt::Display) {
        let _ = writeln!(self.out, "    {text}");
    }

    /// A comment with the place of the program.
    fn comment(&self, place: PackedOption<PlaceId>) -> String {
        self.module.line(place).map_or(String::new(), |(file, line)| format!(" // {file}:{line}"))
    }

    fn header(&mut self) {
        let mut ports = Vec::new();
        if self.interface.needs.clock {
            ports.push(format!("input wire {}", Design::CLOCK));
        }
        if self.interface.needs.reset {
            ports.push(format!("input wire {}", Design::RESET));
        }
        for (port, name) in self.module.inputs.values().zip(&self.interface.inputs) {
            ports.push(format!("input wire {}{name}", bits(port.width)));
        }
        for (port, name) in self.module.outputs.values().zip(&self.interface.outputs) {
            ports.push(format!("output wire {}{name}", bits(port.width)));
        }
        let _ = writeln!(self.out, "module {} (\n    {}\n);", self.interface.module, ports.join(",\n    "));
    }

    fn registers(&mut self, names: &[String]) {
        for (register, name) in self.module.registers.values().zip(names) {
            let start = register.reset.clone().unwrap_or(Bits::zero(register.width));
            let comment = self.comment(register.place);
            self.line(format_args!("logic {}{name} = {};{comment}", bits(register.width), literal(&start)));
        }
    }

    /// Declares memories with their contents, and the data of their ports.
    fn declare_memories(&mut self) -> Vec<String> {
        let module = self.module;
        let names: Vec<String> =
            module.memories.values().map(|memory| self.names.take(&legal(&memory.name))).collect();
        for (memory, name) in module.memories.values().zip(&names) {
            // An address has at least one bit, so there are at least two words in the text.
            let last = memory.depth.max(2) - 1;
            let comment = self.comment(memory.place);
            let promise = match (memory.is_block(), memory.never_collides) {
                (true, _) => "(* no_rw_check, ram_style = \"block\" *) ",
                (false, true) => "(* no_rw_check *) ",
                (false, false) => "",
            };
            self.line(format_args!("{promise}logic {}{name} [0:{last}];{comment}", bits(memory.width)));
            self.contents(memory, name, last);
        }
        for (id, node) in self.live_nodes() {
            if let Op::Read(memory, read) = node.op {
                let wanted = match module.names.get(&id) {
                    Some(name) => legal(name),
                    None => format!("{}_data{}", names[memory.index()], read.index()),
                };
                let name = self.names.take(&wanted);
                if module.memories[memory].reads[read].latency != Latency::Direct {
                    let address = module.memories[memory].reads[read].address.expect("a verified port");
                    let zero = literal(&Bits::zero(node.width));
                    let never = self.beyond(&module.memories[memory], address);
                    let start = if never { format!(" = {zero}") } else { String::new() };
                    self.line(format_args!("logic {}{name}{start};", bits(node.width)));
                }
                self.wires[id] = Some(name);
            }
        }
        names
    }

    fn contents(&mut self, memory: &Memory, name: &str, last: u32) {
        let given = memory.initial.len() as u32;
        let cleared = given <= last && last - given < MOST_CLEARED_WORDS;
        if given == 0 && !cleared {
            return;
        }
        self.line("initial begin");
        for (at, word) in memory.initial.iter().enumerate() {
            self.line(format_args!("    {name}[{at}] = {};", literal(word)));
        }
        if cleared {
            let zero = literal(&Bits::zero(memory.width));
            let index = self.names.take("word");
            self.line(format_args!(
                "    for (int {index} = {given}; {index} <= {last}; {index} = {index} + 1) {name}[{index}] = {zero};"
            ));
        }
        self.line("end");
    }

    /// Names instances and declares what comes out of them.
    fn declare_instances(&mut self) -> Vec<(String, Vec<String>)> {
        let module = self.module;
        let mut instances: Vec<(String, Vec<String>)> = Vec::new();
        for instance in module.instances.values() {
            let inner = &self.interfaces[instance.module].names;
            let name = self.names.take_beside(&legal(&instance.name), inner);
            instances.push((name, vec![String::new(); self.interfaces[instance.module].outputs.len()]));
        }
        for (id, node) in self.live_nodes() {
            if let Op::Instance(instance, output) = node.op {
                let (instance_name, outputs) = &mut instances[instance.index()];
                let wanted = match module.names.get(&id) {
                    Some(name) => legal(name),
                    None => {
                        let port =
                            &self.interfaces[module.instances[instance].module].outputs[output.index()];
                        format!("{instance_name}_{port}")
                    }
                };
                let name = self.names.take(&wanted);
                outputs[output.index()] = name.clone();
                self.wires[id] = Some(name.clone());
                self.line(format_args!("wire {}{name};", bits(node.width)));
            }
        }
        // What nobody takes goes to a wire that tools know as unused by its name.
        for (instance, (name, outputs)) in module.instances.values().zip(&mut instances) {
            let interface = &self.interfaces[instance.module];
            for (at, wire) in outputs.iter_mut().enumerate().filter(|(_, wire)| wire.is_empty()) {
                *wire = self.names.take(&format!("unused_{name}_{}", interface.outputs[at]));
                let _ = writeln!(self.out, "    wire {}{wire};", bits(interface.output_widths[at]));
            }
        }
        instances
    }

    /// Values, in their order, those that become wires.
    fn values(&mut self, memories: &[String]) {
        let module = self.module;
        let sizes = self.choose_wires();
        for (id, node) in self.live_nodes() {
            let expression = match node.op {
                Op::Read(memory, read) => {
                    let port = &module.memories[memory].reads[read];
                    if port.latency != Latency::Direct {
                        continue;
                    }
                    let address = port.address.expect("a verified port");
                    if self.beyond(&module.memories[memory], address) {
                        let (bits, name) = (bits(node.width), self.wires[id].clone().unwrap_or_default());
                        self.line(format_args!("wire {bits}{name} = {};", literal(&Bits::zero(node.width))));
                        continue;
                    }
                    let word = format!("{}[{}]", memories[memory.index()], self.operand(address));
                    match self.within(&module.memories[memory], address) {
                        Some(within) => format!("{within} ? {word} : {}", literal(&Bits::zero(node.width))),
                        None => word,
                    }
                }
                Op::Input(_) | Op::Register(_) | Op::Instance(..) => continue,
                _ if !sizes[id] => continue,
                _ => self.expression(id),
            };
            let name = match self.wires[id].clone() {
                Some(name) => name,
                None => {
                    let wanted = module.names.get(&id).map_or(id.to_string(), |name| legal(name));
                    let name = self.names.take(&wanted);
                    self.wires[id] = Some(name.clone());
                    name
                }
            };
            let comment = self.comment(node.place);
            self.line(format_args!("wire {}{name} = {expression};{comment}", bits(node.width)));
        }
    }

    /// Which values become wires: those with a name, used more than once, of which bits are taken, and those whose expression
    /// would grow too large without.
    fn choose_wires(&self) -> SecondaryMap<NodeId, bool> {
        let module = self.module;
        let mut chosen = SecondaryMap::new();
        let mut sizes: SecondaryMap<NodeId, u32> = SecondaryMap::new();
        let mut sliced: SecondaryMap<NodeId, bool> = SecondaryMap::new();
        for (_, node) in self.live_nodes() {
            if let Op::Slice(a, _) = node.op {
                sliced[a] = true;
            }
        }
        for memory in module.memories.values() {
            // Lanes take bits of these.
            for port in memory.writes.iter().filter(|port| port.lanes.is_some()) {
                sliced[port.data] = true;
                port.lanes.expand().into_iter().for_each(|lanes| sliced[lanes] = true);
            }
        }
        for (id, node) in self.live_nodes() {
            let mut size = 1u32;
            node.op.operands(|operand| {
                size = size.saturating_add(if chosen[operand] { 0 } else { sizes[operand] });
            });
            let is_leaf = matches!(node.op, Op::Constant(_) | Op::Input(_) | Op::Register(_));
            // Bits of something with a name are as short as a name of their own.
            let is_short = is_leaf || (matches!(node.op, Op::Slice(..)) && !module.names.contains_key(&id));
            let is_named =
                module.names.contains_key(&id) || matches!(node.op, Op::Read(..) | Op::Instance(..));
            chosen[id] = (is_named || sliced[id]) && !is_leaf
                || !is_short && (self.uses[id] > 1 || size > LARGEST_EXPRESSION);
            sizes[id] = if is_leaf { 0 } else { size };
        }
        chosen
    }

    /// Whether an address always is beyond the end of a memory.
    fn beyond(&self, memory: &Memory, address: NodeId) -> bool {
        matches!(&self.module.nodes[address].op, Op::Constant(value) if value.to_u64_saturating() >= memory.depth.into())
    }

    /// Whether an address is within a memory, if it can be beyond its end.
    fn within(&self, memory: &Memory, address: NodeId) -> Option<String> {
        if matches!(self.module.nodes[address].op, Op::Constant(_)) {
            return None;
        }
        let words = 1u64 << memory.address_width();
        let depth = Bits::new(memory.address_width(), memory.depth.into());
        (u64::from(memory.depth) < words)
            .then(|| format!("({} < {})", self.operand(address), literal(&depth)))
    }

    fn clock_registers(&mut self, names: &[String]) {
        for ((id, register), name) in self.module.registers.iter().zip(names) {
            let taken = self.taken(id);
            self.clock_register(name, register.reset.as_ref().map(literal), &taken);
        }
    }

    /// What a register does at an edge, by its name.
    pub(super) fn clock_register(&mut self, name: &str, reset: Option<String>, taken: &Taken) {
        let Taken { enable, next } = taken;
        self.line(format_args!("always_ff @(posedge {}) begin", Design::CLOCK));
        let enable = enable.as_ref().map_or(String::new(), |enable| format!("if ({enable}) "));
        match reset {
            Some(reset) => {
                self.line(format_args!("    if ({}) {name} <= {reset};", Design::RESET));
                self.line(format_args!("    else {enable}{name} <= {next};"));
            }
            None => self.line(format_args!("    {enable}{name} <= {next};")),
        }
        self.line("end");
    }

    fn clock_memories(&mut self, names: &[String]) {
        let module = self.module;
        let mut data = std::collections::BTreeMap::new();
        for (id, node) in self.live_nodes() {
            if let Op::Read(memory, read) = node.op {
                data.insert((memory, read), id);
            }
        }
        for ((id, memory), name) in module.memories.iter().zip(names) {
            let writes: Vec<&WritePort> =
                memory.writes.iter().filter(|port| !self.beyond(memory, port.address)).collect();
            if !writes.is_empty() {
                // Contents come from an initial block, so this is no `always_ff`.
                self.line(format_args!("always @(posedge {}) begin", Design::CLOCK));
                writes.into_iter().for_each(|port| self.write(memory, name, port));
                self.line("end");
            }
            for (read, port) in &memory.reads {
                let (Latency::Clocked { enable }, Some(node)) = (port.latency, data.get(&(id, read))) else {
                    continue;
                };
                let address = port.address.expect("a verified port");
                if self.beyond(memory, address) {
                    continue;
                }
                let conditions =
                    [enable.expand().map(|enable| self.operand(enable)), self.within(memory, address)];
                let condition = condition(conditions);
                let to = self.wires[*node].clone().expect("data of a port have a name");
                let address = self.bare(address);
                self.line(format_args!("always_ff @(posedge {}) begin", Design::CLOCK));
                self.line(format_args!("    {condition}{to} <= {name}[{address}];"));
                self.line("end");
            }
        }
    }

    fn write(&mut self, memory: &Memory, name: &str, port: &WritePort) {
        let enabled = (!self.is_one(port.enable)).then(|| self.operand(port.enable));
        let within = self.within(memory, port.address);
        let (address, data) = (self.bare(port.address), self.bare(port.data));
        let Some(lanes) = port.lanes.expand() else {
            let condition = condition([enabled, within]);
            return self.line(format_args!("    {condition}{name}[{address}] <= {data};"));
        };
        self.line(format_args!("    {}begin", condition([enabled, within])));
        let count = self.module.width(lanes);
        let lane = memory.width / count;
        for at in 0..count {
            let bits = range(memory.width, at * lane, lane);
            let part = self.part(port.data, at * lane, lane);
            let on = self.part(lanes, at, 1);
            self.line(format_args!("        if ({on}) {name}[{address}]{bits} <= {part};"));
        }
        self.line("    end");
    }

    /// Bits of a value that has a name or is constant.
    fn part(&self, node: NodeId, low: u32, count: u32) -> String {
        match &self.module.nodes[node].op {
            Op::Constant(value) => literal(&value.slice(low + count - 1, low)),
            _ => format!("{}{}", self.operand(node), range(self.module.width(node), low, count)),
        }
    }

    fn is_one(&self, node: NodeId) -> bool {
        matches!(&self.module.nodes[node].op, Op::Constant(value) if value.is_ones())
    }

    fn connect_instances(&mut self, instances: &[(String, Vec<String>)]) {
        for (instance, (name, outputs)) in self.module.instances.values().zip(instances) {
            let interface = &self.interfaces[instance.module];
            let mut ports = Vec::new();
            if interface.needs.clock {
                ports.push(format!(".{0}({0})", Design::CLOCK));
            }
            if interface.needs.reset {
                ports.push(format!(".{0}({0})", Design::RESET));
            }
            for (port, value) in interface.inputs.iter().zip(&instance.inputs) {
                ports.push(format!(".{port}({})", self.bare(value.expect("a verified instance"))));
            }
            for (port, wire) in interface.outputs.iter().zip(outputs) {
                ports.push(format!(".{port}({wire})"));
            }
            let (module, comment) = (interface.module.clone(), self.comment(instance.place));
            self.line(format_args!(
                "{module} {name} ({comment}\n        {}\n    );",
                ports.join(",\n        ")
            ));
        }
    }

    fn drive_outputs(&mut self) {
        for (at, port) in self.module.outputs.values().enumerate() {
            let value = self.bare(port.value.expect("a verified output"));
            let name = self.interface.outputs[at].clone();
            self.line(format_args!("assign {name} = {value};"));
        }
    }

    /// Reads what has a name and bits that nothing reads.
    fn sink(&mut self) {
        let module = self.module;
        let mut unread = Vec::new();
        let mut inputs: Vec<bool> = vec![false; module.inputs.len()];
        for (id, node) in self.live_nodes() {
            if let Op::Input(input) = node.op {
                inputs[input.index()] = true;
            }
            let Some(name) = &self.wires[id] else { continue };
            unread.extend(
                gaps(&self.used[id], node.width)
                    .map(|(low, count)| format!("{name}{}", range(node.width, low, count))),
            );
        }
        let passed = self.pins.passed.iter().filter_map(|node| self.wires[*node].clone());
        unread.extend(passed.collect::<std::collections::BTreeSet<_>>());
        let unused = inputs.iter().zip(&self.interface.inputs).filter(|(used, _)| !**used);
        unread.extend(unused.map(|(_, name)| name.clone()));
        if !unread.is_empty() {
            let name = self.names.take("unused");
            self.line(format_args!("wire {name} = &{{1'b0, {}, 1'b0}};", unread.join(", ")));
        }
    }

    /// A value where nothing around it binds tighter.
    pub(super) fn bare(&self, node: NodeId) -> String {
        if self.wires[node].is_some() { self.operand(node) } else { self.expression(node) }
    }
}

/// `if (A && B) `, of those conditions that there are.
fn condition(conditions: [Option<String>; 2]) -> String {
    let conditions: Vec<String> = conditions.into_iter().flatten().collect();
    if conditions.is_empty() { String::new() } else { format!("if ({}) ", conditions.join(" && ")) }
}

/// The bits of a value that nothing takes: first bit and count of each group.
fn gaps(used: &Used, width: u32) -> impl Iterator<Item = (u32, u32)> {
    let mut gaps = Vec::new();
    let mut pieces = match used {
        Used::None => Vec::new(),
        Used::Pieces(pieces) => pieces.clone(),
        Used::All => vec![(0, width)],
    };
    pieces.sort_unstable();
    let mut at = 0;
    for (low, count) in pieces {
        if low > at {
            gaps.push((at, low - at));
        }
        at = at.max(low + count);
    }
    if at < width {
        gaps.push((at, width - at));
    }
    gaps.into_iter()
}
