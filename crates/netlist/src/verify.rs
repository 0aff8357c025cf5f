//! The verifier: what makes a design well formed.
//!
//! A design that passes keeps every promise that the documentation of its data types makes: all indices are in range, all
//! widths are what operations ask for, all that must be driven is, nothing depends on itself within a cycle, and all is within
//! [`crate::limits`]. Consumers take verified designs and need not check again. The verifier itself takes any design and
//! never panics. (That each value has one driver needs no check: the data types have room for one.)
//!
//! The rules stand with what they check: `nodes` (operations), `objects` (ports, registers, memories, instances, streams),
//! `loops` (values that depend on themselves through instances).

mod loops;
mod nodes;
mod objects;

use crate::*;
use cranelift_entity::EntityRef;
use cranelift_entity::packed_option::PackedOption;
use loops::Paths;
use std::collections::HashSet;
use std::fmt;

/// One rule broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierError {
    /// Where: `module fifo, n12 (count, fifo.p4:3)`, `module fifo, register head`, `design`.
    pub location: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for VerifierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.message)
    }
}

impl std::error::Error for VerifierError {}

/// What is wrong with a design, in a line: the first of its errors.
pub fn in_words(errors: &[VerifierError]) -> String {
    match errors.first() {
        Some(error) => format!("the design is not well formed: {error}"),
        None => "the design is not well formed".to_owned(),
    }
}

/// The most errors that [`verify()`] returns.
pub const MAX_ERRORS: usize = 100;

/// Checks every rule.
///
/// # Errors
/// The rules broken, module by module; the first [`MAX_ERRORS`] of them.
pub fn verify(design: &Design) -> Result<(), Vec<VerifierError>> {
    let mut errors = Errors::default();
    if design.modules.is_empty() || design.top.expand().is_some_and(|top| !design.modules.is_valid(top)) {
        errors.report("design".into(), "there is no top module");
    }
    let modules = design.modules.len();
    if modules > limits::MAX_MODULES {
        errors.report(
            "design".into(),
            over("modules", modules as u64, "MAX_MODULES", limits::MAX_MODULES as u64),
        );
        return Err(errors.all);
    }
    let mut names = HashSet::new();
    let mut sizes = Vec::with_capacity(modules);
    let mut paths: Vec<Paths> = Vec::with_capacity(modules);
    let mut path_count = 0;
    for (id, module) in &design.modules {
        let before = errors.count;
        let mut verifier = Verifier { design, id, module, errors: &mut errors };
        verifier.name("module", &module.name);
        if !names.insert(module.name.as_str()) {
            verifier.report(None, "another module has this name");
        }
        verifier.counts();
        verifier.objects();
        verifier.nodes();
        verifier.labels();
        sizes.push(verifier.size(&sizes));
        // What depends on what can only be asked when all that is named exists.
        let sound = verifier.errors.count == before;
        let found = if sound { loops::paths(module, &paths) } else { Ok(Paths::default()) };
        paths.push(found.unwrap_or_else(|cycle| {
            let names: Vec<String> =
                cycle.iter().map(|node| loops::describe(design, module, *node)).collect();
            let message = format!("a combinational loop: {}", names.join(" -> "));
            verifier.report(None, message);
            Paths::default()
        }));
        path_count += paths.last().map_or(0, |paths| paths.values().map(Vec::len).sum());
        if path_count > limits::MAX_PATHS {
            let message =
                over("paths between ports", path_count as u64, "MAX_PATHS", limits::MAX_PATHS as u64);
            errors.report(format!("module {}", module.name), message);
            break;
        }
    }
    if errors.all.is_empty() { Ok(()) } else { Err(errors.all) }
}

/// How the verifier says that something exceeds a limit.
fn over(what: &str, found: u64, limit: &str, most: u64) -> String {
    format!("{found} {what} are more than {limit} = {most}")
}

#[derive(Default)]
struct Errors {
    all: Vec<VerifierError>,
    count: usize,
}

impl Errors {
    fn report(&mut self, location: String, message: impl Into<String>) {
        self.count += 1;
        if self.all.len() < MAX_ERRORS {
            self.all.push(VerifierError { location, message: message.into() });
        }
    }
}

/// What a module takes with all that is inside it.
#[derive(Clone, Copy, Default)]
struct Size {
    nodes: u64,
    memory_bits: u64,
    depth: u64,
}

struct Verifier<'a> {
    design: &'a Design,
    id: ModuleId,
    module: &'a Module,
    errors: &'a mut Errors,
}

/// What in a module a rule is about.
#[derive(Clone, Copy)]
enum Location<'a> {
    /// A named object of that kind.
    Object(&'a str, &'a str),
    Node(NodeId),
}

impl<'a> Verifier<'a> {
    fn report<'l>(&mut self, location: impl Into<Option<Location<'l>>>, message: impl Into<String>) {
        let module = &self.module.name;
        let location = match location.into() {
            None => format!("module {module}"),
            Some(Location::Object(kind, name)) => format!("module {module}, {kind} {name}"),
            Some(Location::Node(node)) => {
                format!("module {module}, {}", loops::describe(self.design, self.module, node))
            }
        };
        self.errors.report(location, message);
    }

    fn require(&mut self, holds: bool, location: Location<'_>, message: impl FnOnce() -> String) {
        if !holds {
            self.report(location, message());
        }
    }

    /// A name: not empty, not too long, without characters that no tool shows.
    fn name(&mut self, kind: &str, name: &str) {
        if name.is_empty() {
            self.report(None, format!("a {kind} without a name"));
        } else if name.len() > limits::MAX_NAME {
            let message = over("bytes", name.len() as u64, "MAX_NAME", limits::MAX_NAME as u64);
            self.report(None, format!("the name of a {kind}: {message}"));
        } else if name.chars().any(char::is_control) {
            self.report(None, format!("a {kind} with a control character in its name: {name:?}"));
        }
    }

    fn in_range(&mut self, location: Location<'_>, width: u32) {
        self.require((1..=limits::MAX_WIDTH).contains(&width), location, || {
            format!("a width of {width} bits is not within 1 to MAX_WIDTH = {}", limits::MAX_WIDTH)
        });
    }

    /// A value that drives something of that width.
    fn driver(&mut self, location: Location<'_>, what: &str, value: PackedOption<NodeId>, width: u32) {
        let Some(value) = value.expand() else {
            return self.report(location, format!("nothing drives its {what}"));
        };
        self.value(location, what, value, width);
    }

    fn value(&mut self, location: Location<'_>, what: &str, value: NodeId, width: u32) {
        match self.module.nodes.get(value) {
            None => self.report(location, format!("its {what} {value} does not exist")),
            Some(node) if node.width != width => {
                self.report(location, format!("its {what} {value} has {} bits, not {width}", node.width));
            }
            Some(_) => (),
        }
    }

    fn counts(&mut self) {
        let module = self.module;
        let counts = [
            ("nodes", module.nodes.len(), "MAX_NODES", limits::MAX_NODES - 1),
            ("inputs", module.inputs.len(), "MAX_PORTS", limits::MAX_PORTS),
            ("outputs", module.outputs.len(), "MAX_PORTS", limits::MAX_PORTS),
            ("registers", module.registers.len(), "MAX_REGISTERS", limits::MAX_REGISTERS),
            ("memories", module.memories.len(), "MAX_MEMORIES", limits::MAX_MEMORIES),
            ("instances", module.instances.len(), "MAX_INSTANCES", limits::MAX_INSTANCES),
            ("streams", module.streams.len(), "MAX_STREAMS", limits::MAX_STREAMS),
            ("places", module.places.len(), "MAX_PLACES", limits::MAX_PLACES),
        ];
        for (what, found, limit, most) in counts {
            if found > most {
                self.report(None, over(what, found as u64, limit, most as u64));
            }
        }
    }

    /// Names of values, and places.
    fn labels(&mut self) {
        let module = self.module;
        for (node, name) in &module.names {
            if module.nodes.is_valid(*node) {
                self.name("value", name);
            } else {
                self.report(None, format!("{name} names {node}, which does not exist"));
            }
        }
        for place in module.places.values() {
            // Nothing prints parts, so their names may be any text.
            if let Place::Line { file, .. } = place {
                self.name("source file", file);
            }
        }
        let missing = |place: PackedOption<PlaceId>| place.expand().filter(|p| !module.places.is_valid(*p));
        let places = module.nodes.values().map(|node| node.place);
        let places = places.chain(module.registers.values().map(|register| register.place));
        let places = places.chain(module.memories.values().map(|memory| memory.place));
        let places = places.chain(module.instances.values().map(|instance| instance.place));
        if let Some(place) = places.into_iter().find_map(missing) {
            self.report(None, format!("{place} does not exist"));
        }
    }

    /// What this module takes when it stands as often as it has instances.
    fn size(&mut self, sizes: &[Size]) -> Size {
        let bits = |memory: &Memory| {
            u64::from(memory.width.checked_next_multiple_of(64).unwrap_or(u32::MAX)) * u64::from(memory.depth)
        };
        let module = self.module;
        let mut size = Size {
            // Empty modules take something, too.
            nodes: (1 + module.nodes.len() + module.registers.len() + module.memories.len()) as u64,
            memory_bits: self.module.memories.values().map(bits).fold(0, u64::saturating_add),
            depth: 1,
        };
        for instance in self.module.instances.values() {
            let Some(inner) = sizes.get(instance.module.index()) else { continue };
            size.nodes = size.nodes.saturating_add(inner.nodes);
            size.memory_bits = size.memory_bits.saturating_add(inner.memory_bits);
            size.depth = size.depth.max(inner.depth + 1);
        }
        let limits = [
            ("nodes with all instances", size.nodes, "MAX_FLAT_NODES", limits::MAX_FLAT_NODES as u64),
            (
                "bits of memory with all instances",
                size.memory_bits,
                "MAX_FLAT_MEMORY_BITS",
                limits::MAX_FLAT_MEMORY_BITS,
            ),
            ("modules inside each other", size.depth, "MAX_DEPTH", limits::MAX_DEPTH as u64),
        ];
        for (what, found, limit, most) in limits {
            if found > most {
                self.report(None, over(what, found, limit, most));
            }
        }
        size
    }
}
