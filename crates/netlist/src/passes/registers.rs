//! Registers that always hold the same value, and registers that always hold what another one does.

use crate::*;
use rustc_hash::FxHashMap;

/// What a register is known to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Constant(Bits),
    /// What another register holds, which is not known.
    Same(RegisterId),
}

/// The registers of a module that are known.
#[derive(Default)]
pub(crate) struct Known {
    values: FxHashMap<RegisterId, Value>,
}

impl Known {
    pub(crate) fn get(&self, register: RegisterId) -> Option<&Value> {
        self.values.get(&register)
    }
}

/// Finds them.
///
/// A register is constant if what it starts with is all that it ever takes: its next value is itself or that constant, or it is
/// never enabled. Two registers are equal if they start with the same value and take the same at the same edges.
pub(super) fn known(module: &Module) -> Known {
    let mut known = Known::default();
    let mut first = FxHashMap::default();
    for (id, register) in &module.registers {
        let start = register.reset.clone().unwrap_or(Bits::zero(register.width));
        let Some(next) = register.next.expand() else { continue };
        let constant = |node: NodeId| match &module.nodes[node].op {
            Op::Constant(value) => Some(&**value),
            _ => None,
        };
        let never = register.enable.expand().and_then(constant).is_some_and(Bits::is_zero);
        let itself = module.nodes[next].op == Op::Register(id);
        if never || itself || constant(next) == Some(&start) {
            known.values.insert(id, Value::Constant(start));
            continue;
        }
        let key = (next, register.enable, register.reset.clone(), register.width);
        let other = *first.entry(key).or_insert(id);
        if other != id {
            known.values.insert(id, Value::Same(other));
        }
    }
    known
}
