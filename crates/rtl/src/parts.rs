//! Small circuits that units, devices and backplanes have.

use millrace_netlist::{Design, Module, ModuleBuilder, ModuleId, NodeId, RegisterId};

/// A counter of 32 bits at the output of that name.
pub(crate) fn counter(m: &mut ModuleBuilder, name: &str, event: NodeId) {
    let count = counted(m, name, event);
    m.output(name, count);
}

/// How often something happened: 32 bits.
pub(crate) fn counted(m: &mut ModuleBuilder, name: &str, event: NodeId) -> NodeId {
    let (register, count) = m.register(&format!("{name}_count"), 32, Some(0));
    let next = m.add_number(count, 1);
    m.set_next(register, next);
    m.set_enable(register, event);
    count
}

/// A value so many cycles later.
pub(crate) fn later(
    m: &mut ModuleBuilder,
    name: &str,
    value: NodeId,
    cycles: u32,
    reset: Option<u128>,
) -> NodeId {
    (1..=cycles).fold(value, |value, cycle| m.delayed(&format!("{name}_{cycle}"), value, reset))
}

/// A register of cycles that are left of a number, which an event begins with again.
pub(crate) struct Countdown {
    register: RegisterId,
    left: NodeId,
    cycles: u32,
    /// None is left.
    pub(crate) is_over: NodeId,
}

impl Countdown {
    /// Of so many cycles, at least one; none is left at first.
    pub(crate) fn new(m: &mut ModuleBuilder, name: &str, cycles: u32) -> Countdown {
        let (register, left) = m.register(name, 32 - cycles.leading_zeros(), Some(0));
        let is_over = m.is(left, 0);
        Countdown { register, left, cycles, is_over }
    }

    /// In the cycle after an event all are left.
    pub(crate) fn begins_with(self, m: &mut ModuleBuilder, event: NodeId) {
        let width = m.width(self.left);
        let (zero, one) = (m.number(width, 0), m.number(width, 1));
        let less = m.sub(self.left, one);
        let less = m.mux(self.is_over, zero, less);
        let all = m.number(width, self.cycles.into());
        let next = m.mux(event, all, less);
        m.set_next(self.register, next);
    }
}

/// Copies the modules of another design; gives its top. A module that is there already is not copied.
pub(crate) fn import(design: &mut Design, other: &Design) -> ModuleId {
    let mut ids: Vec<ModuleId> = Vec::new();
    for module in other.modules.values() {
        let mut module: Module = module.clone();
        for instance in module.instances.values_mut() {
            instance.module = ids[instance.module.as_u32() as usize];
        }
        let known = design.module_named(&module.name).filter(|id| design.modules[*id] == module);
        let id = known.unwrap_or_else(|| {
            let name = module.name.clone();
            let mut number = 2;
            while design.module_named(&module.name).is_some() {
                module.name = format!("{name}_{number}");
                number += 1;
            }
            design.add(module)
        });
        ids.push(id);
    }
    let top = other.top().map_or(0, |top| top.as_u32() as usize);
    ids[top]
}
