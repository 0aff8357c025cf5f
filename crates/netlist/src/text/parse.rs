//! Text to a design.

use super::ParseError;
use super::cursor::Cursor;
use crate::*;
use cranelift_entity::packed_option::PackedOption;
use rustc_hash::FxHashMap;
use std::collections::HashMap;

/// The design of a text.
///
/// # Errors
/// Where the text is no design: the first place.
pub fn parse(text: &str) -> Result<Design, ParseError> {
    let mut cursor = Cursor::new(text);
    if text.len() > limits::MAX_TEXT {
        return Err(cursor.error(format!(
            "{} bytes are more than MAX_TEXT = {}",
            text.len(),
            limits::MAX_TEXT
        )));
    }
    let mut design = Design::new();
    let mut modules: HashMap<String, ModuleId> = HashMap::new();
    let mut top = None;
    if cursor.accept("top") {
        let name = cursor.name()?.into_owned();
        top = Some((name.clone(), cursor.error(format!("there is no module {name}"))));
    }
    while !cursor.ends() {
        cursor.expect("module")?;
        let name = cursor.name()?.into_owned();
        cursor.expect("{")?;
        let module = Module { name: name.clone(), ..Module::default() };
        let mut parser =
            Parser { cursor, design: &design, modules: &modules, module, names: Names::default() };
        parser.body()?;
        cursor = parser.cursor;
        parser.module.sort_places();
        let id = design.modules.push(parser.module);
        modules.entry(name).or_insert(id);
    }
    if let Some((name, error)) = top {
        design.top = (*modules.get(&name).ok_or(error)?).into();
    }
    Ok(design)
}

/// Objects by name. Where several have one name, the first: the verifier refuses that.
#[derive(Default)]
struct Names {
    inputs: HashMap<String, InputId>,
    registers: HashMap<String, RegisterId>,
    memories: HashMap<String, MemoryId>,
    instances: HashMap<String, InstanceId>,
    /// Outputs of the modules that have instances.
    outputs: FxHashMap<(ModuleId, String), OutputId>,
    places: HashMap<Place, PlaceId>,
}

struct Parser<'t, 'd> {
    cursor: Cursor<'t>,
    design: &'d Design,
    modules: &'d HashMap<String, ModuleId>,
    module: Module,
    names: Names,
}

impl Parser<'_, '_> {
    fn body(&mut self) -> Result<(), ParseError> {
        while !self.cursor.accept("}") {
            match self.cursor.peek() {
                "input" => self.input()?,
                "output" => self.output()?,
                "stream" => self.stream()?,
                "register" => self.register()?,
                "memory" => self.memory()?,
                "instance" => self.instance()?,
                _ => self.node()?,
            }
        }
        Ok(())
    }

    /// A value, or `_` for none.
    fn value(&mut self) -> Result<PackedOption<NodeId>, ParseError> {
        if self.cursor.accept("_") {
            return Ok(None.into());
        }
        Ok(self.known_value()?.into())
    }

    fn known_value(&mut self) -> Result<NodeId, ParseError> {
        Ok(NodeId::from_u32(self.cursor.id("n")?))
    }

    /// A word and then a value, if the word comes.
    fn optional(&mut self, word: &str) -> Result<PackedOption<NodeId>, ParseError> {
        if self.cursor.accept(word) { self.known_value().map(Into::into) } else { Ok(None.into()) }
    }

    /// `NAME: WIDTH`.
    fn declared(&mut self) -> Result<(String, u32), ParseError> {
        let name = self.cursor.name()?.into_owned();
        self.cursor.expect(":")?;
        Ok((name, self.cursor.number()?))
    }

    fn place(&mut self) -> Result<PackedOption<PlaceId>, ParseError> {
        if !self.cursor.accept("@") {
            return Ok(None.into());
        }
        let file = self.cursor.name()?.as_ref().into();
        self.cursor.expect(":")?;
        let place = Place::Line { file, line: self.cursor.number()? };
        let id = self.names.places.entry(place.clone()).or_insert_with(|| self.module.places.push(place));
        Ok((*id).into())
    }

    fn input(&mut self) -> Result<(), ParseError> {
        self.cursor.expect("input")?;
        let (name, width) = self.declared()?;
        let id = self.module.inputs.push(Input { name: name.clone(), width });
        self.names.inputs.entry(name).or_insert(id);
        Ok(())
    }

    fn output(&mut self) -> Result<(), ParseError> {
        self.cursor.expect("output")?;
        let (name, width) = self.declared()?;
        self.cursor.expect("=")?;
        let value = self.value()?;
        self.module.outputs.push(Output { name, width, value });
        Ok(())
    }

    fn stream(&mut self) -> Result<(), ParseError> {
        self.cursor.expect("stream")?;
        let name = self.cursor.name()?.into_owned();
        let word = self.cursor.word()?;
        let direction =
            Direction::from_name(word).ok_or_else(|| self.cursor.error("`in` or `out` is expected"))?;
        let mut shape = StreamShape::default();
        for (word, width) in [
            ("data", &mut shape.data),
            ("keep", &mut shape.keep),
            ("last", &mut shape.last),
            ("user", &mut shape.user),
        ] {
            self.cursor.expect(word)?;
            *width = self.cursor.number()?;
        }
        self.module.streams.push(Stream { name, direction, shape });
        Ok(())
    }

    fn register(&mut self) -> Result<(), ParseError> {
        self.cursor.expect("register")?;
        let (name, width) = self.declared()?;
        let mut reset = None;
        if self.cursor.accept("reset") {
            reset = self.cursor.bits()?;
            if reset.is_none() {
                return Err(self.cursor.error("a reset value such as 8w0 is expected"));
            }
        }
        self.cursor.expect("next")?;
        let next = self.value()?;
        let enable = self.optional("enable")?;
        let place = self.place()?;
        let register = Register { name: name.clone(), width, reset, next, enable, place };
        let id = self.module.registers.push(register);
        self.names.registers.entry(name).or_insert(id);
        Ok(())
    }

    fn memory(&mut self) -> Result<(), ParseError> {
        self.cursor.expect("memory")?;
        let (name, width) = self.declared()?;
        self.cursor.expect("x")?;
        let depth = self.cursor.number()?;
        let never_collides = self.cursor.accept("never_collides");
        let place = self.place()?;
        let (initial, writes, reads) = (Vec::new(), Vec::new(), Default::default());
        let mut memory =
            Memory { name: name.clone(), width, depth, initial, writes, reads, never_collides, place };
        self.cursor.expect("{")?;
        while !self.cursor.accept("}") {
            if self.cursor.accept("initial") {
                while let Some(word) = self.cursor.bits()? {
                    memory.initial.push(word);
                }
            } else if self.cursor.accept("write") {
                self.cursor.expect("address")?;
                let address = self.known_value()?;
                self.cursor.expect("data")?;
                let data = self.known_value()?;
                self.cursor.expect("enable")?;
                let enable = self.known_value()?;
                let lanes = self.optional("lanes")?;
                memory.writes.push(WritePort { address, data, enable, lanes });
            } else {
                let id = self.cursor.id("read")?;
                if id as usize != memory.reads.len() {
                    return Err(self
                        .cursor
                        .error(format!("the next read port is read{}", memory.reads.len())));
                }
                let clocked = match self.cursor.word()? {
                    "direct" => false,
                    "clocked" => true,
                    _ => return Err(self.cursor.error("`direct` or `clocked` is expected")),
                };
                self.cursor.expect("address")?;
                let address = self.value()?;
                let latency = match clocked {
                    true => Latency::Clocked { enable: self.optional("enable")? },
                    false => Latency::Direct,
                };
                memory.reads.push(ReadPort { address, latency });
            }
        }
        let id = self.module.memories.push(memory);
        self.names.memories.entry(name).or_insert(id);
        Ok(())
    }

    fn instance(&mut self) -> Result<(), ParseError> {
        self.cursor.expect("instance")?;
        let name = self.cursor.name()?.into_owned();
        self.cursor.expect(":")?;
        let of = self.cursor.name()?;
        let Some(module) = self.modules.get(of.as_ref()).copied() else {
            return Err(self.cursor.error(format!("no module {of} comes earlier")));
        };
        self.cursor.expect("(")?;
        let mut inputs = Vec::new();
        while !self.cursor.accept(")") {
            if !inputs.is_empty() {
                self.cursor.expect(",")?;
            }
            inputs.push(self.value()?);
        }
        let place = self.place()?;
        let id = self.module.instances.push(Instance { name: name.clone(), module, inputs, place });
        self.names.instances.entry(name).or_insert(id);
        for (output, port) in &self.design.modules[module].outputs {
            self.names.outputs.entry((module, port.name.clone())).or_insert(output);
        }
        Ok(())
    }

    fn node(&mut self) -> Result<(), ParseError> {
        let id = self.cursor.id("n")?;
        let next = self.module.nodes.len();
        if id as usize != next {
            return Err(self.cursor.error(format!("the next value is n{next}")));
        }
        if next >= limits::MAX_NODES {
            return Err(self.cursor.error(format!("more values than MAX_NODES = {}", limits::MAX_NODES)));
        }
        self.cursor.expect(":")?;
        let width = self.cursor.number()?;
        self.cursor.expect("=")?;
        let op = self.op()?;
        let name = self.cursor.quoted()?;
        let place = self.place()?;
        let id = self.module.nodes.push(Node { op, width, place });
        if let Some(name) = name {
            self.module.names.insert(id, name);
        }
        Ok(())
    }

    fn op(&mut self) -> Result<Op, ParseError> {
        if let Some(value) = self.cursor.bits()? {
            return Ok(Op::Constant(Box::new(value)));
        }
        let word = self.cursor.word()?;
        if let Some(op) = UnaryOp::from_name(word) {
            return Ok(Op::Unary(op, self.known_value()?));
        }
        if let Some(op) = BinaryOp::from_name(word) {
            let a = self.known_value()?;
            self.cursor.expect(",")?;
            return Ok(Op::Binary(op, a, self.known_value()?));
        }
        Ok(match word {
            "input" => Op::Input(self.object("input", |names, name| names.inputs.get(name).copied())?),
            "register" => {
                Op::Register(self.object("register", |names, name| names.registers.get(name).copied())?)
            }
            "read" => {
                let memory = self.object("memory", |names, name| names.memories.get(name).copied())?;
                Op::Read(memory, ReadId::from_u32(self.cursor.id("read")?))
            }
            "output" => {
                let instance = self.object("instance", |names, name| names.instances.get(name).copied())?;
                let module = self.module.instances[instance].module;
                let of = |names: &Names, name: &str| names.outputs.get(&(module, name.to_owned())).copied();
                Op::Instance(instance, self.object("output", of)?)
            }
            "concat" => {
                let mut parts = vec![self.known_value()?];
                while self.cursor.accept(",") {
                    parts.push(self.known_value()?);
                }
                Op::Concat(parts.into())
            }
            "slice" => {
                let value = self.known_value()?;
                self.cursor.expect("from")?;
                Op::Slice(value, self.cursor.number()?)
            }
            "repeat" => Op::Repeat(self.known_value()?),
            "mux" => {
                let select = self.known_value()?;
                self.cursor.expect(",")?;
                let a = self.known_value()?;
                self.cursor.expect(",")?;
                Op::Mux(select, a, self.known_value()?)
            }
            _ => return Err(self.cursor.error(format!("there is no operation {word}"))),
        })
    }

    /// What has a name of its kind.
    fn object<T>(&mut self, kind: &str, find: impl Fn(&Names, &str) -> Option<T>) -> Result<T, ParseError> {
        let name = self.cursor.name()?;
        find(&self.names, &name).ok_or_else(|| self.cursor.error(format!("no {kind} {name} comes earlier")))
    }
}
