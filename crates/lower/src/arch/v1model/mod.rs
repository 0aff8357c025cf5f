//! v1model, with the behaviour of bmv2's simple_switch (docs/simple_switch.md there).
//!
//! Ingress is parser, checksum verification, ingress control; egress is egress control, checksum computation, deparser.
//! Headers and metadata pass from one to the other as they are. A parser error does not end the packet: ingress sees it
//! in `standard_metadata.parser_error`.

mod checksum;
mod field_list;
mod functions;
mod metadata;
mod objects;

use millrace_pipeline::{self as ir, BodyId, BodyKind, Home};
use millrace_sema::hir::{self, Ty};
use std::collections::HashMap;

use crate::code::Code;
use crate::context::Lowering;
use crate::fail::{Lower, code, fail, internal};
use crate::objects::{Binding, BlockType, ObjectId};
use crate::place::Place;

pub(crate) use functions::call_function;
pub(crate) use objects::{call_method, create_resource, table_properties};

/// Entries of a table that does not say how many.
pub(crate) const DEFAULT_TABLE_SIZE: u64 = 1024;
/// `egress_spec` of a packet that is dropped.
const DROP_PORT: u128 = 511;

/// What is kept while a program is lowered.
#[derive(Default)]
pub(crate) struct State {
    /// `standard_metadata`: storage and type.
    standard: Option<(Place, Ty)>,
    /// Digests by the type sent and the receiver.
    digests: HashMap<(Ty, u32), ir::DigestId>,
    /// Numbers given to lists of fields that calls name directly.
    lists: u32,
}

/// The blocks in the order of the package's parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Parser,
    Verify,
    Ingress,
    Egress,
    Compute,
    Deparser,
}

/// The storage that all blocks share.
struct Shared {
    headers: Place,
    user: Place,
    standard: Place,
}

/// Lowers all blocks of a `V1Switch`.
pub(crate) fn assemble(cx: &mut Lowering<'_>, main: &hir::Instance, blocks: &[ObjectId]) -> Lower<()> {
    let &[parser, verify, ingress, egress, compute, deparser] = blocks else {
        return fail(code::ARCHITECTURE, main.span, "`V1Switch` takes six blocks");
    };
    for error in [
        "PacketTooShort",
        "NoMatch",
        "StackOutOfBounds",
        "HeaderTooShort",
        "ParserTimeout",
        "ParserInvalidArgument",
    ] {
        cx.ir.error(error);
    }
    let shared = share(cx, parser, ingress, main)?;
    field_list::declare(cx, parser, &shared.user)?;
    let mut bodies = Vec::new();
    for (role, object) in [
        (Role::Parser, parser),
        (Role::Verify, verify),
        (Role::Ingress, ingress),
        (Role::Egress, egress),
        (Role::Compute, compute),
        (Role::Deparser, deparser),
    ] {
        bodies.push(lower_block(cx, role, object, &shared, main)?);
    }
    metadata::fill_at_start(cx, bodies[0], bodies[3])?;
    let program = cx.ir.program_mut();
    program.ingress = bodies[..3].to_vec();
    program.egress = bodies[3..].to_vec();
    program.on_reject = ir::OnReject::Continue;
    program.deparse_at_ingress = false;
    Ok(())
}

/// The parameters of a parser or control.
fn params<'a>(cx: &Lowering<'a>, object: ObjectId) -> &'a [hir::VarId] {
    match cx.objects.block(object).map(|b| b.ty) {
        Some(BlockType::Parser(id)) => &cx.hir.parsers[id].params,
        Some(BlockType::Control(id)) => &cx.hir.controls[id].params,
        None => &[],
    }
}

fn share(cx: &mut Lowering<'_>, parser: ObjectId, ingress: ObjectId, main: &hir::Instance) -> Lower<Shared> {
    let hir = cx.hir;
    // Types as the parser has them, names as ingress calls them: that is where most code is.
    let (&[_, headers, user, standard], names) = (params(cx, parser), params(cx, ingress)) else {
        return fail(code::ARCHITECTURE, main.span, "the parser of a `V1Switch` has four parameters");
    };
    let name = |i: usize, fallback: &str| {
        names.get(i).map_or_else(|| fallback.to_owned(), |v| hir.vars[*v].name.clone())
    };
    let (headers_name, user_name, standard_name) =
        (name(0, "headers"), name(1, "meta"), name(2, "standard_metadata"));
    let mut storage =
        |var: hir::VarId, name: &str| cx.allocate(hir.vars[var].ty, name, Home::Metadata, hir.vars[var].span);
    let shared = Shared {
        headers: storage(headers, &headers_name)?,
        user: storage(user, &user_name)?,
        standard: storage(standard, &standard_name)?,
    };
    metadata::give_roles(cx, &shared.standard, hir.vars[standard].ty);
    let super::Architecture::V1Model(state) = &mut cx.arch;
    state.standard = Some((shared.standard.clone(), hir.vars[standard].ty));
    Ok(shared)
}

fn lower_block(
    cx: &mut Lowering<'_>,
    role: Role,
    object: ObjectId,
    shared: &Shared,
    main: &hir::Instance,
) -> Lower<BodyId> {
    let Some(block) = cx.objects.block(object) else {
        return internal(main.span, "a block of the package is no parser or control");
    };
    let (ty, path) = (block.ty, block.path.clone());
    let kind = match role {
        Role::Parser => BodyKind::Parser,
        Role::Deparser => BodyKind::Deparser,
        _ => BodyKind::Control,
    };
    let span = match ty {
        BlockType::Parser(id) => cx.hir.parsers[id].span,
        BlockType::Control(id) => cx.hir.controls[id].span,
    };
    let place = |p: &Place| Binding::Place(p.clone());
    let (headers, user, standard) = (place(&shared.headers), place(&shared.user), place(&shared.standard));
    let arguments = match role {
        Role::Parser => vec![Binding::PacketIn, headers, user, standard],
        Role::Verify | Role::Compute => vec![headers, user],
        Role::Ingress | Role::Egress => vec![headers, user, standard],
        Role::Deparser => vec![Binding::PacketOut, headers],
    };
    let params = params(cx, object);
    if params.len() != arguments.len() {
        return fail(
            code::ARCHITECTURE,
            span,
            "the parameters of this block are not those of its role in `V1Switch`",
        );
    }
    let bound = params.iter().copied().zip(arguments).collect();
    let (mut code, end) = Code::new(cx, &path, kind, Some(object), span);
    code.run_block(object, ty, bound)?;
    code.body.goto(end);
    code.body.switch_to(end);
    match role {
        Role::Ingress => metadata::leave_ingress(&mut code)?,
        Role::Egress => metadata::leave_egress(&mut code)?,
        _ => {}
    }
    code.body.end();
    code.finish()
}

/// The storage of a field of `standard_metadata`.
fn standard_field(cx: &Lowering<'_>, name: &str) -> Option<Place> {
    let super::Architecture::V1Model(state) = &cx.arch;
    let (place, ty) = state.standard.as_ref()?;
    field(cx, place, *ty, name)
}

/// The slot of a field of `standard_metadata`.
fn standard_slot(cx: &Lowering<'_>, name: &str) -> Option<ir::SlotId> {
    match standard_field(cx, name)? {
        Place::Scalar(slot) => Some(slot),
        _ => None,
    }
}

fn field(cx: &Lowering<'_>, place: &Place, ty: Ty, name: &str) -> Option<Place> {
    let at = crate::types::members(&cx.hir.types, ty).iter().position(|(n, _)| n == name)?;
    place.member(at).cloned()
}
