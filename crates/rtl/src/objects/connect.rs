//! The unit of an object among the stages that ask it: accesses that share a port, and the ports of software.

use super::{Kind, ObjectUnit, message_width, number_width};
use crate::slots::Slot;
use crate::stage::ObjectKey;
use millrace_netlist::{Design, InstanceId, ModuleBuilder, ModuleId, NodeId};
use std::collections::BTreeMap;

/// What a stage asks with, in the cycle of the access.
pub(crate) struct Request {
    pub(crate) enable: NodeId,
    pub(crate) inputs: Vec<NodeId>,
}

/// What a unit says.
pub(crate) struct Connected {
    /// Its answers, as wide as its port is, by the numbers of accesses.
    pub(crate) answers: Vec<(usize, NodeId)>,
    /// The parameters of a hash.
    pub(crate) parameters: Option<NodeId>,
    /// Whether a write of software waits, if any may.
    pub(crate) busy: Option<NodeId>,
}

impl ObjectUnit {
    /// Adds its instance to a module, with the ports of software as ports of that. `requests` are by the numbers of accesses.
    pub(crate) fn connect(
        &self,
        m: &mut ModuleBuilder,
        (design, module): (&Design, ModuleId),
        requests: &BTreeMap<usize, Request>,
    ) -> Connected {
        let instance = m.instance(design, module, &self.name);
        let mut answers = Vec::new();
        for (number, slot) in self.slots.iter().enumerate() {
            self.connect_slot(m, (instance, number), slot, requests);
            if slot.unit.answers() {
                let answer = m.output_of(instance, &format!("slot{number}_answer"));
                answers.extend(slot.accesses.iter().map(|at| (*at, answer)));
            }
        }
        let port = self.port();
        if port.writable {
            let values = port.write_inputs(m);
            for (what, value) in ["write_enable", "write_address", "write_data"].into_iter().zip(values) {
                m.connect(instance, what, value);
            }
        }
        if port.readable {
            let values = port.read_inputs(m);
            for (what, value) in ["read_enable", "read_address"].into_iter().zip(values) {
                m.connect(instance, what, value);
            }
            let data = m.output_of(instance, "read_data");
            port.read_output(m, data);
        }
        if self.key == ObjectKey::Messages {
            let pending = m.output_of(instance, "pending");
            m.output(&port.port("pending"), pending);
        }
        let is_hash = matches!(self.key, ObjectKey::Hash(_));
        Connected {
            answers,
            parameters: is_hash.then(|| m.output_of(instance, "parameters")),
            busy: self.waits().then(|| m.output_of(instance, "busy")),
        }
    }

    /// Connects the accesses that share a port.
    fn connect_slot(
        &self,
        m: &mut ModuleBuilder,
        (instance, number): (InstanceId, usize),
        slot: &Slot,
        requests: &BTreeMap<usize, Request>,
    ) {
        let mut enables = Vec::new();
        let mut inputs: Vec<Vec<(NodeId, NodeId)>> = vec![Vec::new(); self.inputs[number].len()];
        for at in &slot.accesses {
            let Some(Request { enable, inputs: values }) = requests.get(at) else { continue };
            enables.push(*enable);
            let values = match &self.kind {
                Kind::Messages { .. } => vec![self.message(m, *at, values)],
                _ => values.clone(),
            };
            for ((value, width), choices) in values.iter().zip(&self.inputs[number]).zip(&mut inputs) {
                choices.push((*enable, m.resize(*value, *width)));
            }
        }
        let enable = m.any(&enables);
        m.connect(instance, &format!("slot{number}_enable"), enable);
        for (at, (choices, width)) in inputs.iter().zip(&self.inputs[number]).enumerate() {
            let value = match choices.as_slice() {
                [(_, only)] => *only,
                several => m.one_hot(*width, several),
            };
            m.connect(instance, &format!("slot{number}_input{at}"), value);
        }
    }

    /// The word of a message: its number above its values.
    fn message(&self, m: &mut ModuleBuilder, access: usize, values: &[NodeId]) -> NodeId {
        let messages = match &self.kind {
            Kind::Messages { messages, .. } => messages.as_slice(),
            _ => &[],
        };
        let message = messages.iter().position(|message| message.access == access).unwrap_or(0);
        let width = message_width(&self.kind);
        let bits = number_width(messages);
        let payload = (!values.is_empty()).then(|| m.concat(values));
        let mut word = vec![m.number(bits, message as u128)];
        let has = payload.map_or(0, |payload| m.width(payload));
        if width > bits + has {
            word.push(m.number(width - bits - has, 0));
        }
        word.extend(payload);
        m.concat(&word)
    }
}
