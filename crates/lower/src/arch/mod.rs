//! Architectures: what their packages, externs and metadata mean.
//!
//! An architecture is one module. It names its package, creates what its extern objects stand for, gives the code of
//! calls to its externs, reads the table properties that it defines, and puts the blocks of the package together. What
//! several of them need stands next to them.

mod accounts;
mod blocks;
mod bpf;
mod carried;
mod fill;
mod hashing;
mod messages;
mod objects;
mod pna;
mod portable;
mod psa;
mod registers;
mod sume;
mod v1model;

pub(crate) use v1model::advice::advice as v1model_advice;
pub use v1model::{check_port, set_drop_port};

use millrace_pipeline as ir;
use millrace_sema::hir::{self, Call, Ty};

use crate::code::Code;
use crate::context::Lowering;
use crate::fail::Lower;
use crate::objects::{CtorValue, ExternObject, ObjectId};
use crate::value::Value;
use portable::Portable;

pub(crate) use pna::learning;

/// Entries of a table that does not say how many.
const DEFAULT_TABLE_SIZE: u64 = 1024;

/// The architecture of a program, with what it keeps while the program is lowered.
pub(crate) enum Architecture {
    /// The architecture of bmv2's simple_switch.
    V1Model(v1model::V1Model),
    /// The Portable Switch Architecture.
    Psa(Portable),
    /// The Portable NIC Architecture.
    Pna(pna::Pna),
    /// A packet filter, the user-space switch, or XDP.
    Bpf(bpf::Bpf),
    /// The architecture of P4->NetFPGA.
    Sume(sume::Sume),
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
    /// A meter in each entry of a table, and the slot that has the colour after a hit where the table meters itself.
    DirectMeter(ir::Unit, Option<ir::SlotId>),
    /// Arrays for the scalars of a register's type, in order; the type.
    Register(Vec<ir::RegisterId>, Ty),
    /// An action profile or selector.
    Profile(ir::ProfileId),
    /// A hash function.
    Hash(portable::Algorithm),
    /// A checksum under construction.
    Checksum(portable::Checksum),
    /// Random numbers of that width between two bounds.
    Random(u32, ir::Bits, ir::Bits),
    /// A kind of digest.
    Digest(ir::DigestId),
    /// An array of counters that a program also adds numbers to, `sparse` when any index is a key.
    CounterCells { register: ir::RegisterId, sparse: bool },
    /// How a table is stored, with that many entries.
    Storage(u64),
}

impl Architecture {
    /// The architecture that declares a package with that name.
    pub(crate) fn of_package(name: &str) -> Option<Architecture> {
        Some(match name {
            "V1Switch" => Architecture::V1Model(v1model::V1Model::default()),
            "PSA_Switch" => Architecture::Psa(Portable::new("PSA", "psa")),
            "PNA_NIC" => Architecture::Pna(pna::Pna::new()),
            "ebpfFilter" | "ubpf" | "xdp" => Architecture::Bpf(bpf::Bpf::of_package(name)),
            "SimpleSumeSwitch" => Architecture::Sume(sume::Sume::default()),
            _ => return None,
        })
    }

    /// The names of all packages that are known.
    pub(crate) const PACKAGES: &str = "`V1Switch` (v1model.p4), `PSA_Switch` (psa.p4), `PNA_NIC` (pna.p4), \
         `SimpleSumeSwitch` (sume_switch.p4), `ebpfFilter` (ebpf_model.p4), `ubpf` (ubpf_model.p4) and `xdp` \
         (xdp_model.p4)";

    /// Its name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Architecture::V1Model(_) => "v1model",
            Architecture::Psa(_) => "psa",
            Architecture::Pna(_) => "pna",
            Architecture::Bpf(model) => model.name(),
            Architecture::Sume(_) => "sume",
        }
    }
}

impl Lowering<'_> {
    /// Lowers all blocks of the package, which got these arguments.
    pub(crate) fn assemble(&mut self, main: &hir::Instance, arguments: &[CtorValue]) -> Lower<()> {
        let blocks = blocks::blocks_of(self, arguments, main)?;
        blocks::declare_errors(self);
        match self.arch {
            Architecture::V1Model(_) => v1model::assemble(self, main, &blocks),
            Architecture::Psa(_) => psa::assemble(self, main, &blocks),
            Architecture::Pna(_) => pna::assemble(self, main, &blocks),
            Architecture::Bpf(_) => bpf::assemble(self, main, &blocks),
            Architecture::Sume(_) => sume::assemble(self, main, &blocks),
        }
    }

    /// Creates what an extern object stands for, if anything.
    pub(crate) fn create_resource(&mut self, object: &ExternObject) -> Lower<Option<Resource>> {
        if let Some(resource) = accounts::create(self, object)? {
            return Ok(Some(resource));
        }
        match self.arch {
            Architecture::V1Model(_) => v1model::create_resource(self, object),
            Architecture::Psa(_) => portable::create_resource(self, object),
            Architecture::Pna(_) => pna::create_resource(self, object),
            Architecture::Bpf(_) => bpf::create_resource(self, object),
            Architecture::Sume(_) => sume::create_resource(self, object),
        }
    }
}

impl<'a> Code<'_, 'a> {
    /// A call of an extern function of the architecture.
    pub(crate) fn arch_function(&mut self, name: &str, call: &'a Call) -> Lower<Value> {
        match self.cx.arch {
            Architecture::V1Model(_) => v1model::call_function(self, name, call),
            Architecture::Psa(_) => psa::call_function(self, name, call),
            Architecture::Pna(_) => pna::call_function(self, name, call),
            Architecture::Bpf(_) => bpf::call_function(self, name, call),
            Architecture::Sume(_) => sume::call_function(self, name, call),
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
        if let Some(value) = accounts::call_method(self, object, instance, method, call)? {
            return Ok(value);
        }
        match self.cx.arch {
            Architecture::V1Model(_) => v1model::call_method(self, object, instance, method, call),
            Architecture::Psa(_) => portable::call_method(self, object, instance, method, call),
            Architecture::Pna(_) => pna::call_method(self, object, instance, method, call),
            Architecture::Bpf(_) => bpf::call_method(self, object, instance, method, call),
            Architecture::Sume(_) => sume::call_method(self, instance, method, call),
        }
    }

    /// The properties of a table that the architecture defines. They are read before the actions of the table.
    pub(crate) fn table_properties(&mut self, table: &'a hir::Table, lowered: &mut ir::Table) -> Lower<()> {
        match self.cx.arch {
            Architecture::V1Model(_) => v1model::table_properties(self, table, lowered),
            Architecture::Psa(_) => portable::table_properties(self, table, lowered),
            Architecture::Pna(_) => pna::table_properties(self, table, lowered),
            Architecture::Bpf(_) => bpf::table_properties(self, table, lowered),
            Architecture::Sume(_) => Ok(()),
        }?;
        accounts::table_property(self, table, lowered)
    }

    /// Whether a table learns entries from packets.
    pub(crate) fn table_learns(&self, table: &hir::Table) -> Lower<bool> {
        match self.cx.arch {
            Architecture::Pna(_) => learning::learns(self, table),
            _ => Ok(false),
        }
    }

    /// Whether the actions of such a table are lowered now.
    pub(crate) fn is_learning(&self) -> bool {
        matches!(&self.cx.arch, Architecture::Pna(model) if model.is_learning())
    }

    /// The size of a table that does not say.
    pub(crate) fn default_table_size(&self) -> u64 {
        DEFAULT_TABLE_SIZE
    }

    /// Emits a header.
    pub(crate) fn emit_header(&mut self, header: ir::HeaderId) -> Lower<()> {
        match self.cx.arch {
            Architecture::Bpf(_) => bpf::emit_header(self, header),
            _ => {
                self.push(ir::Inst::Emit(header));
                Ok(())
            }
        }
    }
}
