//! SystemVerilog of a design: [`print()`].
//!
//! The text uses what Verilator 5.006, Yosys 0.23, Vivado and Quartus all read: modules without parameters, flat ports, `wire` with an
//! expression, `assign`, `always_ff` with non-blocking assignments, memories as unpacked arrays. The clock is `clk`, the reset `rst`;
//! a module has them as ports if something inside it needs them.
//!
//! A module is printed as [`crate::passes::clean`] leaves it: without what no output depends on. Values with a name of the program,
//! values that several others use, and values of which others take bits become wires; the rest stands where it is used. Names are
//! those of the design as far as the language allows (see `names`).
//!
//! `verilator --lint-only -Wall` has nothing to say about the text: all operands have equal widths, and what has bits that nothing
//! reads (an input that must be there, a carry of a sum) is read by a wire `unused`, which tools know by its name and drop.

mod expressions;
mod module;
mod names;
mod pins;
pub mod runtime;

use crate::*;
use cranelift_entity::SecondaryMap;
use module::ModulePrinter;
use names::{Names, legal};

/// A file of SystemVerilog: one module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerilogFile {
    /// The name of the module, and of the file, with `.sv`: what linters ask for.
    pub module: String,
    /// The text.
    pub text: String,
    /// Whether it has the port `clk`.
    pub is_clocked: bool,
    /// Its ports in their order, `clk` and `rst` included.
    pub ports: Vec<VerilogPort>,
}

/// A port of a printed module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerilogPort {
    /// Its name.
    pub name: String,
    /// Its bits.
    pub width: u32,
    /// Which way it goes.
    pub direction: Direction,
}

impl VerilogPort {
    /// Ports as they stand in the head of their module.
    pub fn declared(ports: &[VerilogPort]) -> String {
        let declared = ports.iter().map(|port| {
            let way = if port.direction == Direction::In { "input" } else { "output" };
            format!("{way} wire {}{}", port.bits(), port.name)
        });
        declared.collect::<Vec<_>>().join(",\n    ")
    }

    /// Its bits as they stand before its name; nothing for one.
    pub fn bits(&self) -> String {
        if self.width == 1 { String::new() } else { format!("[{}:0] ", self.width - 1) }
    }
}

impl VerilogFile {
    /// The name of the file.
    pub fn file_name(&self) -> String {
        format!("{}.sv", self.module)
    }
}

/// Which of clock and reset a module needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Needs {
    clock: bool,
    reset: bool,
}

/// What a module that has an instance of another has to know of it.
#[derive(Clone, Default)]
struct Interface {
    module: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    output_widths: Vec<u32>,
    needs: Needs,
    /// All names inside the module.
    names: Names,
}

impl Interface {
    fn ports(&self, module: &Module) -> Vec<VerilogPort> {
        let port =
            |direction, (name, width): (&str, u32)| VerilogPort { name: name.to_owned(), width, direction };
        let clock = self.needs.clock.then_some((Design::CLOCK, 1));
        let reset = self.needs.reset.then_some((Design::RESET, 1));
        let inputs =
            self.inputs.iter().map(String::as_str).zip(module.inputs.values().map(|port| port.width));
        let outputs = self.outputs.iter().map(String::as_str).zip(self.output_widths.iter().copied());
        let inputs = clock.into_iter().chain(reset).chain(inputs).map(|of| port(Direction::In, of));
        inputs.chain(outputs.map(|of| port(Direction::Out, of))).collect()
    }
}

/// The modules of a verified design that the top is made of, each after those inside it; the top comes last.
pub fn print(design: &Design) -> Vec<VerilogFile> {
    let Some(top) = design.top() else { return Vec::new() };
    let mut used = SecondaryMap::<ModuleId, bool>::new();
    used[top] = true;
    for (id, module) in design.modules.iter().rev() {
        if used[id] {
            module.instances.values().for_each(|instance| used[instance.module] = true);
        }
    }
    let mut module_names = Names::new(&[]);
    let mut interfaces = SecondaryMap::<ModuleId, Interface>::new();
    let mut files = Vec::new();
    // The top has its name first.
    let top_name = module_names.take(&legal(&design.modules[top].name));
    for (id, module) in design.modules.iter().filter(|(id, _)| used[*id]) {
        let module = passes::clean(module);
        let name = if id == top { top_name.clone() } else { module_names.take(&legal(&module.name)) };
        let printer = ModulePrinter::new(&module, name, &interfaces);
        let (interface, text) = printer.print();
        let (name, is_clocked) = (interface.module.clone(), interface.needs.clock);
        files.push(VerilogFile { module: name, text, is_clocked, ports: interface.ports(&module) });
        interfaces[id] = interface;
    }
    // An instance of the top would be a module that contains itself, so it is the last one that is used.
    files
}
