//! v1model, with the behaviour of bmv2's simple_switch (docs/simple_switch.md there).
//!
//! Ingress is parser, checksum verification, ingress control; egress is egress control, checksum computation, deparser.
//! Headers and metadata pass from one to the other as they are. A parser error does not end the packet: ingress sees it
//! in `standard_metadata.parser_error`.

pub(crate) mod advice;
mod checksum;
mod drop_port;
mod field_list;
mod functions;
mod metadata;
mod objects;
mod stale;
mod wishes;

use foldhash::HashMap;
use millrace_pipeline::{self as ir, Home};
use millrace_sema::hir::{self, Ty};

use super::Architecture;
use super::blocks::{BoundBlock, Typed, params};
use crate::context::Lowering;
use crate::fail::{Lower, code, fail};
use crate::objects::{Binding, ObjectId};
use crate::sites::Asks;
use crate::storage::Storage;

pub use drop_port::{check_port, set_drop_port};
pub(crate) use functions::call_function;
pub(crate) use objects::{call_method, create_resource, table_properties};

/// The v1model: what it keeps while a program is lowered.
#[derive(Default)]
pub(crate) struct V1Model {
    /// `standard_metadata`.
    standard: Option<Typed>,
    /// Digests by the type sent and the receiver.
    digests: HashMap<(Ty, u32), ir::DigestId>,
    /// Numbers given to lists of fields that calls name directly.
    lists: u32,
    /// Fields of the metadata that the traffic manager heeds.
    wishes: wishes::Wishes,
}

fn model(arch: &Architecture) -> Option<&V1Model> {
    match arch {
        Architecture::V1Model(model) => Some(model),
        _ => None,
    }
}

fn model_mut(arch: &mut Architecture) -> Option<&mut V1Model> {
    match arch {
        Architecture::V1Model(model) => Some(model),
        _ => None,
    }
}

/// The storage that all blocks share.
struct Shared {
    headers: Typed,
    user: Typed,
    standard: Typed,
}

/// Lowers all blocks of a `V1Switch`.
pub(crate) fn assemble(cx: &mut Lowering<'_>, main: &hir::Instance, blocks: &[ObjectId]) -> Lower<()> {
    let &[parser, verify, ingress, egress, compute, deparser] = blocks else {
        return fail(code::FOREIGN, main.span, "`V1Switch` takes six blocks");
    };
    let shared = share(cx, parser, ingress, main)?;
    field_list::declare(cx, parser, &shared.user.storage)?;
    wishes::declare(cx, parser, &shared.user.storage)?;
    let (headers, user, standard) = (&shared.headers, &shared.user, &shared.standard);
    let all = || vec![headers.binding(), user.binding(), standard.binding()];
    let some = || vec![headers.binding(), user.binding()];
    let of_parser = vec![Binding::PacketIn, headers.binding(), user.binding(), standard.binding()];
    let of_deparser = vec![Binding::PacketOut, headers.binding()];
    let parser = BoundBlock::parser(parser, of_parser).lower(cx, main)?;
    let verify = BoundBlock::control(verify, some()).lower(cx, main)?;
    let ingress =
        BoundBlock::control(ingress, all()).lower_between(cx, main, |_| Ok(()), metadata::leave_ingress)?;
    let egress =
        BoundBlock::control(egress, all()).lower_between(cx, main, |_| Ok(()), metadata::leave_egress)?;
    let compute = BoundBlock::control(compute, some()).lower(cx, main)?;
    let deparser = BoundBlock::deparser(deparser, of_deparser).lower(cx, main)?;
    metadata::fill_at_start(cx, parser, egress);
    let program = cx.ir.program_mut();
    program.ingress = vec![parser, verify, ingress];
    program.egress = vec![egress, compute, deparser];
    program.on_reject = ir::OnReject::Continue;
    program.deparse_at_ingress = false;
    stale::keep(program);
    Ok(())
}

fn share(cx: &mut Lowering<'_>, parser: ObjectId, ingress: ObjectId, main: &hir::Instance) -> Lower<Shared> {
    let hir = cx.hir;
    // Types as the parser has them, names as ingress calls them: that is where most code is.
    let (&[_, headers, user, standard], names) = (params(cx, parser), params(cx, ingress)) else {
        return fail(code::FOREIGN, main.span, "the parser of a `V1Switch` has four parameters");
    };
    let name = |i: usize, fallback: &str| {
        names.get(i).map_or_else(|| fallback.to_owned(), |v| hir.vars[*v].name.clone())
    };
    let (headers_name, user_name, standard_name) =
        (name(0, "headers"), name(1, "meta"), name(2, "standard_metadata"));
    let mut storage = |var: hir::VarId, name: &str| -> Lower<Typed> {
        let declared = &hir.vars[var];
        let storage = cx.allocate(declared.ty, name, Home::Metadata, declared.span)?;
        Ok(Typed { storage, ty: declared.ty })
    };
    let shared = Shared {
        headers: storage(headers, &headers_name)?,
        user: storage(user, &user_name)?,
        standard: storage(standard, &standard_name)?,
    };
    metadata::give_roles(cx, &shared.standard);
    let spec = shared.standard.slot(cx, "egress_spec");
    cx.sites.watch(spec, Asks::With(drop_port::DROP_PORT));
    if let Some(model) = model_mut(&mut cx.arch) {
        model.standard = Some(shared.standard.clone());
    }
    Ok(shared)
}

/// The storage of a field of `standard_metadata`.
fn standard_field(cx: &Lowering<'_>, name: &str) -> Option<Storage> {
    model(&cx.arch)?.standard.as_ref()?.field(cx, name)
}

/// The slot of a field of `standard_metadata`.
fn standard_slot(cx: &Lowering<'_>, name: &str) -> Option<ir::SlotId> {
    model(&cx.arch)?.standard.as_ref()?.slot(cx, name)
}
