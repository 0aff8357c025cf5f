//! Instances of other modules.

use super::{Beat, ModuleBuilder};
use crate::*;
use cranelift_entity::EntityRef;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a module with an instance of another needs to know of that.
#[derive(Clone, Debug, Default)]
pub(super) struct Signature {
    name: String,
    inputs: BTreeMap<String, InputId>,
    outputs: BTreeMap<String, (OutputId, u32)>,
    input_widths: Vec<u32>,
    streams: Vec<Stream>,
}

impl Signature {
    fn of(module: &Module) -> Signature {
        Signature {
            name: module.name.clone(),
            inputs: module.inputs.iter().map(|(id, port)| (port.name.clone(), id)).collect(),
            outputs: module.outputs.iter().map(|(id, port)| (port.name.clone(), (id, port.width))).collect(),
            input_widths: module.inputs.values().map(|port| port.width).collect(),
            streams: module.streams.values().cloned().collect(),
        }
    }

    fn shape(&self, stream: &str, direction: Direction) -> StreamShape {
        let found = self.streams.iter().find(|s| s.name == stream && s.direction == direction);
        found.unwrap_or_else(|| panic!("{} has no stream {stream} that goes {direction:?}", self.name)).shape
    }
}

impl ModuleBuilder {
    /// Adds an instance of a module of the design that this one will be part of. [`ModuleBuilder::connect`] must follow for
    /// each of its inputs.
    pub fn instance(&mut self, design: &Design, module: ModuleId, name: &str) -> InstanceId {
        let signature = self
            .known_signatures
            .entry(module)
            .or_insert_with(|| Arc::new(Signature::of(&design.modules[module])))
            .clone();
        let inputs = vec![None.into(); signature.input_widths.len()];
        let place = self.place;
        let id = self.module.instances.push(Instance { name: name.into(), module, inputs, place });
        self.signatures[id] = signature;
        id
    }

    /// What drives an input of an instance.
    ///
    /// # Panics
    /// The module has no such input.
    #[track_caller]
    pub fn connect(&mut self, instance: InstanceId, port: &str, value: NodeId) {
        let signature = &self.signatures[instance];
        let Some(input) = signature.inputs.get(port) else {
            panic!("{} has no input {port}", signature.name)
        };
        debug_assert_eq!(signature.input_widths[input.index()], self.width(value), "width of {port}");
        self.module.instances[instance].inputs[input.index()] = value.into();
    }

    /// The value of an output of an instance.
    ///
    /// # Panics
    /// The module has no such output.
    #[track_caller]
    pub fn output_of(&mut self, instance: InstanceId, port: &str) -> NodeId {
        let signature = &self.signatures[instance];
        let Some((output, width)) = signature.outputs.get(port).copied() else {
            panic!("{} has no output {port}", signature.name)
        };
        self.node(Op::Instance(instance, output), width)
    }

    /// What comes from an outgoing stream of an instance: beat and `valid`. [`ModuleBuilder::connect_ready`] must follow.
    ///
    /// # Panics
    /// The module has no such stream.
    #[track_caller]
    pub fn stream_from(&mut self, instance: InstanceId, stream: &str) -> (Beat, NodeId) {
        let shape = self.signatures[instance].shape(stream, Direction::Out);
        let beat = Beat::each(shape, |suffix, _| self.output_of(instance, &format!("{stream}_{suffix}")));
        (beat, self.output_of(instance, &format!("{stream}_tvalid")))
    }

    /// Whether this module takes a beat of an outgoing stream of an instance.
    ///
    /// # Panics
    /// The module has no such stream.
    #[track_caller]
    pub fn connect_ready(&mut self, instance: InstanceId, stream: &str, ready: NodeId) {
        self.connect(instance, &format!("{stream}_tready"), ready);
    }

    /// What goes to an incoming stream of an instance. [`ModuleBuilder::ready_of`] says whether it takes that.
    ///
    /// # Panics
    /// The module has no such stream, or the beat lacks a signal of it.
    #[track_caller]
    pub fn connect_stream(&mut self, instance: InstanceId, stream: &str, beat: &Beat, valid: NodeId) {
        let shape = self.signatures[instance].shape(stream, Direction::In);
        for (suffix, _) in shape.signals() {
            let value = beat.signal(suffix).unwrap_or_else(|| panic!("a beat without {suffix}"));
            self.connect(instance, &format!("{stream}_{suffix}"), value);
        }
        self.connect(instance, &format!("{stream}_tvalid"), valid);
    }

    /// An outgoing stream of one instance is an incoming stream of another.
    ///
    /// # Panics
    /// A module has no such stream, or the beat lacks a signal of the other.
    #[track_caller]
    pub fn connect_streams(&mut self, (from, out): (InstanceId, &str), (to, into): (InstanceId, &str)) {
        let (beat, valid) = self.stream_from(from, out);
        self.connect_stream(to, into, &beat, valid);
        let ready = self.ready_of(to, into);
        self.connect_ready(from, out, ready);
    }

    /// Whether an instance takes a beat of an incoming stream.
    ///
    /// # Panics
    /// The module has no such stream.
    #[track_caller]
    pub fn ready_of(&mut self, instance: InstanceId, stream: &str) -> NodeId {
        self.output_of(instance, &format!("{stream}_tready"))
    }
}
