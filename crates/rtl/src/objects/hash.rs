//! The parameters of a hash: a register that software writes.

use super::ObjectUnit;
use super::memory::Reads;
use millrace_netlist::{Module, ModuleBuilder};
use millrace_pipeline::Bits;

impl ObjectUnit {
    pub(super) fn hash(&self, name: &str, initial: &Bits) -> Module {
        let mut m = ModuleBuilder::new(name);
        let enable = m.input("write_enable", 1);
        m.input("write_address", self.address());
        let data = m.input("write_data", initial.width());
        let (register, parameters) = m.register_with("parameters", initial.width(), Some(initial.clone()));
        m.set_next(register, data);
        m.set_enable(register, enable);
        m.output("parameters", parameters);
        let reads = Reads::new(&mut m, self.address());
        let read = m.delayed("asked", parameters, None);
        reads.answer(&mut m, read);
        m.finish()
    }
}
