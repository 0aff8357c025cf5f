//! Value sets: members in registers, all compared at once.

use super::ObjectUnit;
use millrace_netlist::{Module, ModuleBuilder, NodeId};
use millrace_pipeline::MatchKind;

impl ObjectUnit {
    /// A word is a value, a mask below it, and above both whether there is a member. An answer comes three cycles after its request.
    pub(super) fn values(&self, name: &str, fields: &[(u32, MatchKind)], size: u32) -> Module {
        let mut m = ModuleBuilder::new(name);
        let width: u32 = fields.iter().map(|(width, _)| width).sum();
        let enable = m.input("write_enable", 1);
        let address = m.input("write_address", self.address());
        let data = m.input("write_data", 1 + 2 * width);
        let mut keys = Vec::new();
        for number in 0..self.slots.len() {
            // An answer that nobody asked for harms nobody.
            m.input(&format!("slot{number}_enable"), 1);
            let parts: Vec<NodeId> = (fields.iter().enumerate())
                .map(|(at, (width, _))| {
                    let given = m.input(&format!("slot{number}_input{at}"), self.inputs[number][at]);
                    m.resize(given, *width)
                })
                .collect();
            let key = m.concat(&parts);
            keys.push(m.delayed(&format!("slot{number}_key"), key, None));
        }
        let mut matched: Vec<Vec<NodeId>> = vec![Vec::new(); keys.len()];
        for member in 0..size {
            let here = m.is(address, member.into());
            let here = m.and(enable, here);
            let mut part = |what: &str, low: u32, bits: u32, reset| {
                let (register, value) = m.register(&format!("{what}{member}"), bits, reset);
                let next = m.slice(data, low, bits);
                m.set_next(register, next);
                m.set_enable(register, here);
                value
            };
            let valid = part("valid", 2 * width, 1, Some(0));
            let (value, mask) = (part("value", width, width, None), part("mask", 0, width, None));
            for (key, matched) in keys.iter().zip(&mut matched) {
                let all = compared(&mut m, fields, (*key, value, mask));
                matched.push(m.and(valid, all));
            }
        }
        for (number, matched) in matched.into_iter().enumerate() {
            let registered: Vec<NodeId> = (matched.iter().enumerate())
                .map(|(at, hit)| m.delayed(&format!("slot{number}_matched{at}"), *hit, Some(0)))
                .collect();
            let any = m.any(&registered);
            let answer = m.delayed(&format!("slot{number}_answered"), any, Some(0));
            m.output(&format!("slot{number}_answer"), answer);
        }
        m.finish()
    }
}

/// Whether a key is within a member.
fn compared(
    m: &mut ModuleBuilder,
    fields: &[(u32, MatchKind)],
    (key, value, mask): (NodeId, NodeId, NodeId),
) -> NodeId {
    let mut low = m.width(key);
    let mut all = Vec::new();
    for (width, kind) in fields {
        low -= width;
        let [key, value, mask] = [key, value, mask].map(|of| m.slice(of, low, *width));
        all.push(match kind {
            // From the value to what stands in place of the mask.
            MatchKind::Range => {
                let (from, to) = (m.le(value, key), m.le(key, mask));
                m.and(from, to)
            }
            _ => {
                let differ = m.xor(key, value);
                let counts = m.and(differ, mask);
                let any = m.reduce_or(counts);
                m.not(any)
            }
        });
    }
    m.all(&all)
}
