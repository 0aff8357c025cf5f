//! Architectures: what their packages, externs and metadata mean.
//!
//! An architecture is one module. It names its package, creates what its extern objects stand for, gives the code of
//! calls to its externs, reads the table properties that it defines, and puts the blocks of the package together.

mod v1model;

use millrace_pipeline as ir;
use millrace_sema::hir::{self, Call, Ty};

use crate::code::Code;
use crate::context::Lowering;
use crate::fail::Lower;
use crate::objects::{ExternObject, ObjectId};
use crate::value::Value;

/// The architecture of a program, with what it keeps while the program is lowered.
pub(crate) enum Architecture {
    /// The architecture of bmv2's simple_switch.
    V1Model(v1model::State),
}

/// What an extern object stands for.
#[derive(Clone, Debug)]
pub(crate) enum Resource {
    /// An indexed counter.
    Counter(ir::CounterId),
    /// A counter in each entry of a table.
    DirectCounter(ir::Unit),
    /// An indexed meter.
    Meter(ir::MeterId),
    /// A meter in each entry of a table, and the slot that has the colour after a hit.
    DirectMeter(ir::Unit, ir::SlotId),
    /// Arrays for the scalars of a register's type, in order; the type.
    Register(Vec<ir::RegisterId>, Ty),
    /// An action profile or selector.
    Profile(ir::ProfileId),
}

impl Architecture {
    /// The architecture that declares a package with that name.
    pub(crate) fn of_package(name: &str) -> Option<Architecture> {
        match name {
            "V1Switch" => Some(Architecture::V1Model(v1model::State::default())),
            _ => None,
        }
    }

    /// The names of all packages that are known.
    pub(crate) const PACKAGES: &str = "`V1Switch` (v1model.p4)";

    /// Its name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Architecture::V1Model(_) => "v1model",
        }
    }
}

impl Lowering<'_> {
    /// Lowers all blocks of the package.
    pub(crate) fn assemble(&mut self, main: &hir::Instance, blocks: &[ObjectId]) -> Lower<()> {
        match self.arch {
            Architecture::V1Model(_) => v1model::assemble(self, main, blocks),
        }
    }

    /// Creates what an extern object stands for, if anything.
    pub(crate) fn create_resource(&mut self, object: &ExternObject) -> Lower<Option<Resource>> {
        match self.arch {
            Architecture::V1Model(_) => v1model::create_resource(self, object),
        }
    }
}

impl<'a> Code<'_, 'a> {
    /// A call of an extern function of the architecture.
    pub(crate) fn arch_function(&mut self, name: &str, call: &'a Call) -> Lower<Value> {
        match self.cx.arch {
            Architecture::V1Model(_) => v1model::call_function(self, name, call),
        }
    }

    /// A call of a method of an extern object.
    pub(crate) fn call_extern_method(
        &mut self,
        object: ObjectId,
        instance: &ExternObject,
        method: &str,
        call: &'a Call,
    ) -> Lower<Value> {
        match self.cx.arch {
            Architecture::V1Model(_) => v1model::call_method(self, object, instance, method, call),
        }
    }

    /// The properties of a table that the architecture defines.
    pub(crate) fn table_properties(&mut self, table: &'a hir::Table, lowered: &mut ir::Table) -> Lower<()> {
        match self.cx.arch {
            Architecture::V1Model(_) => v1model::table_properties(self, table, lowered),
        }
    }

    /// The size of a table that does not say.
    pub(crate) fn default_table_size(&self) -> u64 {
        match self.cx.arch {
            Architecture::V1Model(_) => v1model::DEFAULT_TABLE_SIZE,
        }
    }
}
