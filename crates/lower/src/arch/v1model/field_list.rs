//! Lists of metadata fields that clone, resubmit and recirculate keep: `@field_list(n)` on fields of the user's
//! metadata, or the fields that a call names (`clone3(..., { meta.a, meta.b })`).

use millrace_pipeline::{FieldList, Home, SlotId};
use millrace_sema::hir::{self, ExprKind, Ty, TyKind};
use millrace_syntax::ast::{Annotation, AnnotationBody, AnnotationToken, AnnotationTokenKind};
use num_traits::ToPrimitive;
use std::collections::BTreeMap;

use super::model_mut;
use crate::arch::blocks::params;
use crate::code::Code;
use crate::context::Lowering;
use crate::fail::{Lower, code, fail, internal};
use crate::names::is_called;
use crate::objects::ObjectId;
use crate::storage::{LValue, Storage};
use crate::types;

/// Numbers in `@field_list` are `bit<8>`; lists that calls name come after them.
const FIRST_OWN_LIST: u32 = 256;

/// Declares the lists of the user's metadata.
pub(super) fn declare(cx: &mut Lowering<'_>, parser: ObjectId, user: &Storage) -> Lower<()> {
    let Some(var) = params(cx, parser).get(2) else { return Ok(()) };
    let mut lists = BTreeMap::new();
    collect(cx, user, cx.hir.vars[*var].ty, &mut lists)?;
    let lists = lists.into_iter().map(|(id, slots)| FieldList { id, slots });
    cx.ir.program_mut().field_lists = lists.collect();
    Ok(())
}

fn collect(
    cx: &Lowering<'_>,
    storage: &Storage,
    ty: Ty,
    lists: &mut BTreeMap<u32, Vec<SlotId>>,
) -> Lower<()> {
    let TyKind::Struct(id) = cx.hir.types.kind(ty) else { return Ok(()) };
    for (i, field) in cx.hir.types.structs[*id].fields.iter().enumerate() {
        let Some(member) = storage.member(i) else { continue };
        for annotation in field.annotations.iter().filter(|a| is_called(a, "field_list")) {
            for number in numbers(cx.hir, annotation)? {
                let list = lists.entry(number).or_default();
                member.for_each_slot(&mut |slot| {
                    if !list.contains(&slot) {
                        list.push(slot);
                    }
                });
            }
        }
        collect(cx, member, field.ty, lists)?;
    }
    Ok(())
}

/// The numbers in `@field_list(1, Lists.two, THREE)`.
pub(super) fn numbers(program: &hir::Program, annotation: &Annotation) -> Lower<Vec<u32>> {
    let AnnotationBody::Tokens(tokens) = &annotation.body else {
        return fail(code::ARCHITECTURE, annotation.span, "`@field_list` takes numbers in parentheses");
    };
    let parts = tokens.split(|t| &*t.text == ",").filter(|part| !part.is_empty());
    parts
        .map(|part| match number(program, part) {
            Some(n) if n < FIRST_OWN_LIST => Ok(n),
            _ => fail(
                code::ARCHITECTURE,
                part[0].span,
                "a field list has a number from 0 to 255, or is a constant or a member of a serializable enum that has",
            ),
        })
        .collect()
}

fn number(program: &hir::Program, part: &[AnnotationToken]) -> Option<u32> {
    match part {
        [AnnotationToken { kind: AnnotationTokenKind::Int(n), .. }] => n.value.to_u32(),
        [name, dot, member] if &*dot.text == "." => {
            let declared = program.types.enums.values().find(|e| *e.name == *name.text)?;
            let member = declared.members.iter().position(|m| *m.name == *member.text)?;
            match &declared.members[member].value {
                Some(value) => value.to_u32(),
                None => u32::try_from(member).ok(),
            }
        }
        [name] => program.constants.get(&*name.text)?.to_u32(),
        _ => None,
    }
}

/// The number of a list without fields.
pub(super) fn nothing(cx: &Lowering<'_>) -> u32 {
    let taken = cx.ir.program().field_lists.iter().any(|l| l.id == 0);
    if taken { FIRST_OWN_LIST } else { 0 }
}

/// The number of a list of the fields that an argument names. Values that are no metadata are not kept.
pub(super) fn named_by<'a>(code: &mut Code<'_, 'a>, data: &'a hir::Expr) -> Lower<u32> {
    let mut slots = Vec::new();
    name_slots(code, data, &mut slots)?;
    if slots.is_empty() {
        return Ok(nothing(code.cx));
    }
    if let Some(list) =
        code.cx.ir.program().field_lists.iter().find(|l| l.id > FIRST_OWN_LIST && l.slots == slots)
    {
        return Ok(list.id);
    }
    let id = match model_mut(&mut code.cx.arch) {
        Some(model) => {
            model.lists += 1;
            FIRST_OWN_LIST + model.lists
        }
        None => return internal(code.span, "lists of fields are v1model's"),
    };
    code.cx.ir.program_mut().field_lists.push(FieldList { id, slots });
    Ok(id)
}

fn name_slots<'a>(code: &mut Code<'_, 'a>, data: &'a hir::Expr, slots: &mut Vec<SlotId>) -> Lower<()> {
    match &data.kind {
        ExprKind::Aggregate(members) => members.iter().try_for_each(|e| name_slots(code, e, slots)),
        ExprKind::Cast(inner) => name_slots(code, inner, slots),
        _ if code.is_path(data) && types::members(&code.cx.hir.types, data.ty).is_empty()
            || matches!(code.cx.shape(data.ty), types::Shape::Struct) && code.is_path(data) =>
        {
            if let LValue::Storage(storage) = code.access(data)? {
                let program = code.cx.ir.program();
                storage.for_each_slot(&mut |slot| {
                    let kept = !matches!(program.slots[slot].home, Home::Header { .. });
                    if kept && !slots.contains(&slot) {
                        slots.push(slot);
                    }
                });
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
