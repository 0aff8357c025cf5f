//! The extern objects of v1model, and the table properties that use them.

use millrace_pipeline::{self as ir, Expr, Inst, Type};
use millrace_sema::Constant;
use millrace_sema::hir::{self, Call};

use super::checksum;
use crate::arch::objects::{
    array_size, counter, enum_member, extern_object, meter, profile, property_object, unit, wrong_property,
};
use crate::arch::{Resource, registers};
use crate::code::Code;
use crate::context::Lowering;
use crate::fail::{Lower, code as kind, fail, internal};
use crate::objects::{ExternObject, Object, ObjectId};
use crate::types;
use crate::value::Value;

/// Creates what an extern object stands for.
pub(crate) fn create_resource(cx: &mut Lowering<'_>, object: &ExternObject) -> Lower<Option<Resource>> {
    let extern_name = cx.hir.externs[object.ty].name.as_str();
    Ok(Some(match extern_name {
        "counter" => {
            let (size, unit) = (array_size(object, "size")?, unit(cx, object, "CounterType")?);
            counter(cx, object, size, unit)
        }
        "direct_counter" => Resource::DirectCounter(unit(cx, object, "CounterType")?),
        "meter" => {
            let (size, unit) = (array_size(object, "size")?, unit(cx, object, "MeterType")?);
            meter(cx, object, size, unit)
        }
        "direct_meter" => {
            let unit = unit(cx, object, "MeterType")?;
            let width = object.type_args.first().and_then(|ty| types::bit_width(&cx.hir.types, *ty));
            let color =
                cx.ir.metadata(&format!("{}.color", object.path), Type::Bits(width.unwrap_or(2).max(2)));
            Resource::DirectMeter(unit, Some(color))
        }
        "register" => registers::create(cx, object, "size", None)?,
        "action_profile" => profile(cx, object, None)?,
        "action_selector" => {
            let Some(Constant::EnumMember(member)) = object.constant("algorithm") else {
                return fail(kind::ARCHITECTURE, object.span, "an action selector needs a hash algorithm");
            };
            let name = enum_member(cx, "HashAlgorithm", *member).unwrap_or("");
            // A selector must choose the same member again for the same flow, so `random` cannot be taken at its word.
            let algorithm = checksum::algorithm(name).unwrap_or(ir::HashAlgorithm::Crc32);
            profile(cx, object, Some(algorithm))?
        }
        "Checksum16" | "packet_in" | "packet_out" => return Ok(None),
        name => {
            return fail(kind::FOREIGN, object.span, format!("v1model has no extern object `{name}`"));
        }
    }))
}

/// A call of a method.
pub(crate) fn call_method<'a>(
    code: &mut Code<'_, 'a>,
    object: ObjectId,
    instance: &ExternObject,
    method: &str,
    call: &'a Call,
) -> Lower<Value> {
    let Object::Extern(_, resource) = code.cx.objects.get(object) else {
        return internal(call.span, "a method of what is no extern");
    };
    let resource = resource.clone();
    let args: Vec<Option<&'a hir::Expr>> = call.args.iter().map(|a| a.value.as_ref()).collect();
    match (resource, method, args.as_slice()) {
        (Some(Resource::Counter(counter)), "count", [Some(index)]) => {
            let index = code.scalar(index)?;
            code.push(Inst::Count { counter, index });
        }
        // A direct counter counts at each hit, whether an action asks for it or not.
        (Some(Resource::DirectCounter(_)), "count", []) => {}
        (Some(Resource::Meter(meter)), "execute_meter", [Some(index), Some(result)]) => {
            let index = code.scalar(index)?;
            let index = code.simple(index);
            let target = code.access(result)?;
            let dst = code.temp(Type::Bits(code.width(result.ty)));
            code.push(Inst::Meter { meter, index, color: None, length: None, dst });
            code.store(&target, Value::Scalar(Expr::Read(dst)))?;
        }
        (Some(Resource::DirectMeter(_, Some(color))), "read", [Some(result)]) => {
            let target = code.access(result)?;
            let value = Expr::Read(color).zext_to(code.width(result.ty), code.cx.ir.program());
            code.store(&target, Value::Scalar(value))?;
        }
        (Some(Resource::Register(cells, ty)), "read", [result, Some(index)]) => {
            let target = match result {
                Some(result) => Some(code.access(result)?),
                None => None,
            };
            let index = code.scalar(index)?;
            let index = code.simple(index);
            let value = registers::read(code, cells, ty, &index)?;
            if let Some(target) = target {
                code.store(&target, value)?;
            }
        }
        (Some(Resource::Register(cells, ty)), "write", [Some(index), Some(value)]) => {
            let (index, value) = registers::write_operands(code, index, value)?;
            registers::write(code, cells, ty, &index, value)?;
        }
        (None, "get", [Some(data)]) => return checksum::checksum16(code, data),
        _ => {
            let name = &code.cx.hir.externs[instance.ty].name;
            return fail(
                kind::ARCHITECTURE,
                call.span,
                format!("`{name}` has no method `{method}` in v1model"),
            );
        }
    }
    Ok(Value::Unit)
}

/// The table properties of v1model: `implementation`, `counters`, `meters`, `support_timeout`.
pub(crate) fn table_properties<'a>(
    code: &mut Code<'_, 'a>,
    table: &'a hir::Table,
    lowered: &mut ir::Table,
) -> Lower<()> {
    for property in &table.properties {
        let object = property_object(code, property)?.and_then(|id| extern_object(code, id));
        match (property.name.as_str(), object) {
            ("implementation", Some((_, Some(Resource::Profile(id))))) => lowered.profile = Some(id),
            ("counters", Some((object, Some(Resource::DirectCounter(unit))))) => {
                let name = object.path.clone();
                lowered.direct_counter = Some(ir::DirectCounter { name, unit, at_hit: true });
            }
            ("meters", Some((object, Some(Resource::DirectMeter(unit, color))))) => {
                let name = object.path.clone();
                lowered.direct_meter = Some(ir::DirectMeter { name, unit, at_hit: color });
            }
            ("support_timeout", _) => {
                lowered.idle_timeout =
                    code.cx.must_be_constant(&property.value, code.scope())? == Constant::Bool(true);
            }
            ("implementation" | "counters" | "meters", _) => return wrong_property(property),
            // Properties of other architectures and of tools mean nothing here.
            _ => {}
        }
    }
    Ok(())
}
