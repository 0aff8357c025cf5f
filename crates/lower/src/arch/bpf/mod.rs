//! The architectures that p4c has for BPF: a packet filter in the kernel (`ebpfFilter`), a switch in user space (`ubpf`)
//! and XDP (`xdp`). All are one pipeline: there is no egress.
//!
//! A packet that such a program lets pass leaves by the port that it came in on, as it does in p4c's tests: there is no
//! host after the switch that could take it.

mod connections;
mod filter;
mod functions;
mod library;
mod lookup3;
mod truncation;
mod ubpf;
mod xdp;

use millrace_pipeline::{self as ir, BinaryOp, Expr, Intrinsic};
use millrace_sema::hir::{self, Call};

use super::blocks::Typed;
use super::objects::{array_size, extern_object, property_object, wrong_property};
use super::{Architecture, Resource, registers};
use crate::code::Code;
use crate::context::Lowering;
use crate::fail::{Lower, code as kind, fail, internal};
use crate::objects::{ExternObject, ObjectId};
use crate::value::Value;

pub(crate) use functions::call_function;
pub(crate) use truncation::emit_header;

/// Which of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Filter,
    UserSpace,
    Xdp,
}

/// The packet filter, the user-space switch or XDP: what it keeps while a program is lowered.
pub(crate) struct Bpf {
    kind: Kind,
    /// The standard metadata of ubpf, from the edition that has it on.
    standard: Option<Typed>,
    /// Whether the packet is cut.
    truncated: Option<ir::SlotId>,
    /// How headers are emitted into a packet that is cut.
    emission: Option<truncation::Emission>,
    /// The connections that `tcp_conntrack` follows.
    connections: Option<connections::Connections>,
    /// The digest of `BPF_PERF_EVENT_OUTPUT`.
    perf_event: Option<ir::DigestId>,
}

impl Bpf {
    /// That of a package.
    pub(super) fn of_package(name: &str) -> Bpf {
        let kind = match name {
            "ubpf" => Kind::UserSpace,
            "xdp" => Kind::Xdp,
            _ => Kind::Filter,
        };
        Bpf { kind, standard: None, truncated: None, emission: None, connections: None, perf_event: None }
    }

    /// The name of the architecture.
    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Filter => "ebpf",
            Kind::UserSpace => "ubpf",
            Kind::Xdp => "xdp",
        }
    }
}

fn model<'a>(cx: &'a Lowering<'_>) -> Option<&'a Bpf> {
    match &cx.arch {
        Architecture::Bpf(model) => Some(model),
        _ => None,
    }
}

fn model_mut<'a>(cx: &'a mut Lowering<'_>) -> Option<&'a mut Bpf> {
    match &mut cx.arch {
        Architecture::Bpf(model) => Some(model),
        _ => None,
    }
}

/// Lowers all blocks of the package.
pub(crate) fn assemble(cx: &mut Lowering<'_>, main: &hir::Instance, blocks: &[ObjectId]) -> Lower<()> {
    match (model(cx).map(|s| s.kind), blocks) {
        (Some(Kind::Filter), &[parser, filter]) => filter::assemble(cx, main, parser, filter),
        (Some(Kind::UserSpace), &[parser, pipeline, deparser]) => {
            ubpf::assemble(cx, main, parser, pipeline, deparser)
        }
        (Some(Kind::Xdp), &[parser, switch, deparser]) => xdp::assemble(cx, main, parser, switch, deparser),
        _ => fail(kind::FOREIGN, main.span, "the package does not have the blocks that it takes"),
    }
}

/// The packet leaves by the port that it came in on.
fn send_back(code: &mut Code<'_, '_>) {
    let port = Expr::Read(code.cx.ir.intrinsic(Intrinsic::IngressPort));
    let slot = code.cx.ir.intrinsic(Intrinsic::EgressSpec);
    code.assign(slot, port);
}

/// Creates what an extern object stands for.
pub(crate) fn create_resource(cx: &mut Lowering<'_>, object: &ExternObject) -> Lower<Option<Resource>> {
    Ok(Some(match cx.hir.externs[object.ty].name.as_str() {
        "CounterArray" => {
            let size = array_size(object, "max_index")?;
            let name = cx.object_name("register", &object.path);
            let register = ir::Register { name, width: 32, size, initial: None };
            let register = cx.ir.program_mut().registers.push(register);
            let sparse = object.constant("sparse") == Some(&millrace_sema::Constant::Bool(true));
            Resource::CounterCells { register, sparse }
        }
        "Register" => registers::create(cx, object, "size", None)?,
        "array_table" | "hash_table" => Resource::Storage(array_size(object, "size")?),
        "packet_in" | "packet_out" => return Ok(None),
        name => {
            let arch = cx.arch.name();
            return fail(kind::FOREIGN, object.span, format!("{arch} has no extern object `{name}`"));
        }
    }))
}

/// A call of a method. Sparse counters and the registers of ubpf are maps, to which any index is a key: here all keys
/// share the cells, by their remainder.
pub(crate) fn call_method<'a>(
    code: &mut Code<'_, 'a>,
    object: ObjectId,
    instance: &ExternObject,
    method: &str,
    call: &'a Call,
) -> Lower<Value> {
    let resource = extern_object(code, object).and_then(|(_, resource)| resource);
    let args: Vec<Option<&'a hir::Expr>> = call.args.iter().map(|a| a.value.as_ref()).collect();
    match (resource, method, args.as_slice()) {
        (Some(Resource::CounterCells { register, sparse }), "increment", [Some(index)]) => {
            let index = code.scalar(index)?;
            count(code, register, sparse, index, Expr::bits(32, 1));
        }
        (Some(Resource::CounterCells { register, sparse }), "add", [Some(index), Some(value)]) => {
            let (index_value, value_value) = code.two(index, value)?;
            let index = code.as_scalar(index_value, index)?;
            let value = code.as_scalar(value_value, value)?;
            count(code, register, sparse, index, value);
        }
        (Some(Resource::Register(cells, ty)), "read", [Some(index)]) => {
            let index = code.scalar(index)?;
            let index = cell(code, cells.first().copied(), index);
            return registers::read(code, cells, ty, &index);
        }
        (Some(Resource::Register(cells, ty)), "write", [Some(index), Some(value)]) => {
            let (index, value) = registers::write_operands(code, index, value)?;
            let index = cell(code, cells.first().copied(), index);
            registers::write(code, cells, ty, &index, value)?;
        }
        _ => {
            let name = &code.cx.hir.externs[instance.ty].name;
            return internal(call.span, format!("`{name}` has no method `{method}`"));
        }
    }
    Ok(Value::Unit)
}

fn count(code: &mut Code<'_, '_>, register: ir::RegisterId, sparse: bool, index: Expr, amount: Expr) {
    let index = if sparse { cell(code, Some(register), index) } else { code.simple(index) };
    let dst = code.temp(ir::Type::Bits(32));
    code.push(ir::Inst::RegisterRead { dst, register, index: index.clone() });
    let value = Expr::Read(dst).add(amount);
    code.push(ir::Inst::RegisterWrite { register, index, value });
}

/// The cell that a key of a map falls on.
fn cell(code: &mut Code<'_, '_>, register: Option<ir::RegisterId>, key: Expr) -> Expr {
    let program = code.cx.ir.program();
    let size = register.map_or(1, |r| program.registers[r].size);
    let width = code.type_of(&key).bits().unwrap_or(1);
    if width < 64 && size >> width != 0 {
        return code.simple(key);
    }
    let key = key.zext_to(width.max(64), program);
    let rest = Expr::binary(BinaryOp::Mod, key, Expr::bits(width.max(64), u128::from(size)));
    code.in_temp(rest)
}

/// The table property `implementation`: how many entries there are. Tables look up the same way however they are stored.
pub(crate) fn table_properties<'a>(
    code: &mut Code<'_, 'a>,
    table: &'a hir::Table,
    lowered: &mut ir::Table,
) -> Lower<()> {
    for property in table.properties.iter().filter(|p| p.name == "implementation") {
        let object = property_object(code, property)?;
        match object.and_then(|id| extern_object(code, id)) {
            Some((_, Some(Resource::Storage(size)))) if size <= ir::limits::MAX_TABLE_SIZE => {
                lowered.size = size.max(lowered.entries.len() as u64);
            }
            _ => return wrong_property(property),
        }
    }
    Ok(())
}
