//! What the extern objects of all architectures share: arrays, profiles, and objects that tables refer to.

use millrace_pipeline::{self as ir, Unit};
use millrace_sema::Constant;
use millrace_sema::hir::{ExprKind, Property};
use std::rc::Rc;

use super::Resource;
use crate::code::Code;
use crate::context::Lowering;
use crate::fail::{Lower, code as kind, fail};
use crate::objects::{Binding, ExternObject, Object, ObjectId};

/// An indexed counter.
pub(super) fn counter(cx: &mut Lowering<'_>, object: &ExternObject, size: u64, unit: Unit) -> Resource {
    let name = cx.object_name("counter", &object.path);
    Resource::Counter(cx.ir.program_mut().counters.push(ir::Counter { name, size, unit }))
}

/// An indexed meter.
pub(super) fn meter(cx: &mut Lowering<'_>, object: &ExternObject, size: u64, unit: Unit) -> Resource {
    let name = cx.object_name("meter", &object.path);
    Resource::Meter(cx.ir.program_mut().meters.push(ir::Meter { name, size, unit }))
}

/// An action profile; with an algorithm, a selector whose constructor has the parameter `outputWidth`.
pub(super) fn profile(
    cx: &mut Lowering<'_>,
    object: &ExternObject,
    algorithm: Option<ir::HashAlgorithm>,
) -> Lower<Resource> {
    let selector = match algorithm {
        None => None,
        Some(algorithm) => {
            let width = object.number("outputWidth").and_then(|w| u32::try_from(w).ok());
            let Some(width) = width.filter(|w| (1..=64).contains(w)) else {
                return fail(kind::LIMIT, object.span, "the output width of a selector is 1 to 64 bits");
            };
            Some(ir::Selector { algorithm, width, max_group_size: 0 })
        }
    };
    let limit = ir::limits::MAX_TABLE_SIZE;
    let Some(size) = object.number("size").filter(|s| *s <= limit) else {
        return fail(kind::LIMIT, object.span, format!("the size of an action profile is 0 to {limit}"));
    };
    let name = cx.object_name("profile", &object.path);
    Ok(Resource::Profile(cx.ir.program_mut().profiles.push(ir::Profile { name, size, selector })))
}

/// The number of cells, which the constructor parameter of that name gives.
pub(super) fn array_size(object: &ExternObject, parameter: &str) -> Lower<u64> {
    let limit = ir::limits::MAX_ARRAY_SIZE;
    match object.number(parameter) {
        Some(size) if size <= limit => Ok(size),
        _ => fail(kind::LIMIT, object.span, format!("the size of an array is 0 to {limit}")),
    }
}

/// What a counter or meter measures: the constructor parameter `type`, a member of that enumeration.
pub(super) fn unit(cx: &Lowering<'_>, object: &ExternObject, of: &str) -> Lower<Unit> {
    let member = match object.constant("type") {
        Some(Constant::EnumMember(member)) => enum_member(cx, of, *member),
        _ => None,
    };
    match member {
        Some("packets" | "PACKETS") => Ok(Unit::Packets),
        Some("bytes" | "BYTES") => Ok(Unit::Bytes),
        Some("packets_and_bytes" | "PACKETS_AND_BYTES") => Ok(Unit::PacketsAndBytes),
        _ => fail(kind::ARCHITECTURE, object.span, format!("a member of `{of}` was expected")),
    }
}

/// The name of a member of an enumeration of the architecture.
pub(super) fn enum_member<'a>(cx: &Lowering<'a>, of: &str, member: usize) -> Option<&'a str> {
    let declared = cx.hir.types.enums.values().find(|e| e.name == of)?;
    declared.members.get(member).map(|m| m.name.as_str())
}

/// The number of a member of an enumeration of the architecture.
pub(super) fn enum_number(cx: &Lowering<'_>, of: &str, member: &str) -> Option<u128> {
    let declared = cx.hir.types.enums.values().find(|e| e.name == of)?;
    declared.members.iter().position(|m| m.name == member).map(|i| i as u128)
}

/// The extern object that is the value of a table property.
pub(super) fn property_object(code: &mut Code<'_, '_>, property: &Property) -> Lower<Option<ObjectId>> {
    Ok(match &property.value.kind {
        ExprKind::Instance(instance) => Some(code.object(*instance)?),
        ExprKind::Var(var) => match code.binding(*var) {
            Some(Binding::Object(object)) => Some(*object),
            _ => None,
        },
        _ => None,
    })
}

/// An extern object and what it stands for.
pub(super) fn extern_object(
    code: &Code<'_, '_>,
    id: ObjectId,
) -> Option<(Rc<ExternObject>, Option<Resource>)> {
    match code.cx.objects.get(id) {
        Object::Extern(object, resource) => Some((object.clone(), resource.clone())),
        _ => None,
    }
}

/// Fails: the value of a table property is not what it takes.
pub(super) fn wrong_property<T>(property: &Property) -> Lower<T> {
    let name = &property.name;
    fail(kind::ARCHITECTURE, property.span, format!("this cannot be the `{name}` of a table"))
}
