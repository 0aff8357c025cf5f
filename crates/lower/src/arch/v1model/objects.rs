//! The extern objects of v1model, and the table properties that use them.

use millrace_pipeline::{self as ir, Expr, Inst, SlotId, Type, Unit};
use millrace_sema::Constant;
use millrace_sema::hir::{self, Call, ExprKind, Ty};

use super::checksum;
use crate::arch::Resource;
use crate::code::Code;
use crate::context::Lowering;
use crate::fail::{Lower, code as kind, fail, internal};
use crate::objects::{ExternObject, Object, ObjectId};
use crate::types::{self, Shape};
use crate::value::Value;

/// Creates what an extern object stands for.
pub(crate) fn create_resource(cx: &mut Lowering<'_>, object: &ExternObject) -> Lower<Option<Resource>> {
    let extern_name = cx.hir.externs[object.ty].name.as_str();
    Ok(Some(match extern_name {
        "counter" => {
            let (size, unit) = (array_size(object)?, unit(cx, object, "CounterType")?);
            let name = cx.object_name("counter", &object.path);
            Resource::Counter(cx.ir.program_mut().counters.push(ir::Counter { name, size, unit }))
        }
        "direct_counter" => Resource::DirectCounter(unit(cx, object, "CounterType")?),
        "meter" => {
            let (size, unit) = (array_size(object)?, unit(cx, object, "MeterType")?);
            let name = cx.object_name("meter", &object.path);
            Resource::Meter(cx.ir.program_mut().meters.push(ir::Meter { name, size, unit }))
        }
        "direct_meter" => {
            let unit = unit(cx, object, "MeterType")?;
            let width = object.type_args.first().and_then(|ty| types::bit_width(&cx.hir.types, *ty));
            let color =
                cx.ir.metadata(&format!("{}.color", object.path), Type::Bits(width.unwrap_or(2).max(2)));
            Resource::DirectMeter(unit, color)
        }
        "register" => {
            let Some(&ty) = object.type_args.first() else {
                return internal(object.span, "a register without a type");
            };
            let size = array_size(object)?;
            let mut cells = Vec::new();
            cell_widths(cx, ty, &object.path, &mut cells, object)?;
            let mut registers = Vec::with_capacity(cells.len());
            for (name, width) in cells {
                let name = cx.object_name("register", &name);
                let register = ir::Register { name, width, size, initial: None };
                registers.push(cx.ir.program_mut().registers.push(register));
            }
            Resource::Register(registers, ty)
        }
        "action_profile" => profile(cx, object, None)?,
        "action_selector" => {
            let Some(Constant::EnumMember(member)) = object.constant("algorithm") else {
                return fail(kind::ARCHITECTURE, object.span, "an action selector needs a hash algorithm");
            };
            let name = enum_member(cx, "HashAlgorithm", *member).unwrap_or("");
            // A selector must choose the same member again for the same flow, so `random` cannot be taken at its word.
            let algorithm = checksum::algorithm(name).unwrap_or(ir::HashAlgorithm::Crc32);
            let width = object.number("outputWidth").and_then(|w| u32::try_from(w).ok());
            let Some(width) = width.filter(|w| (1..=64).contains(w)) else {
                return fail(kind::LIMIT, object.span, "the output width of a selector is 1 to 64 bits");
            };
            profile(cx, object, Some(ir::Selector { algorithm, width, max_group_size: 0 }))?
        }
        "Checksum16" | "packet_in" | "packet_out" => return Ok(None),
        name => {
            return fail(kind::ARCHITECTURE, object.span, format!("v1model has no extern object `{name}`"));
        }
    }))
}

fn profile(cx: &mut Lowering<'_>, object: &ExternObject, selector: Option<ir::Selector>) -> Lower<Resource> {
    let limit = ir::limits::MAX_TABLE_SIZE;
    let Some(size) = object.number("size").filter(|s| *s <= limit) else {
        return fail(kind::LIMIT, object.span, format!("the size of an action profile is 0 to {limit}"));
    };
    let name = cx.object_name("profile", &object.path);
    Ok(Resource::Profile(cx.ir.program_mut().profiles.push(ir::Profile { name, size, selector })))
}

fn array_size(object: &ExternObject) -> Lower<u64> {
    let limit = ir::limits::MAX_ARRAY_SIZE;
    match object.number("size") {
        Some(size) if size <= limit => Ok(size),
        _ => fail(kind::LIMIT, object.span, format!("the size of an array is 0 to {limit}")),
    }
}

fn unit(cx: &Lowering<'_>, object: &ExternObject, of: &str) -> Lower<Unit> {
    let member = match object.constant("type") {
        Some(Constant::EnumMember(member)) => enum_member(cx, of, *member),
        _ => None,
    };
    match member {
        Some("packets") => Ok(Unit::Packets),
        Some("bytes") => Ok(Unit::Bytes),
        Some("packets_and_bytes") => Ok(Unit::PacketsAndBytes),
        _ => fail(kind::ARCHITECTURE, object.span, format!("a member of `{of}` was expected")),
    }
}

/// The name of a member of an enumeration of the architecture.
pub(super) fn enum_member<'a>(cx: &Lowering<'a>, of: &str, member: usize) -> Option<&'a str> {
    let declared = cx.hir.types.enums.values().find(|e| e.name == of)?;
    declared.members.get(member).map(|m| m.name.as_str())
}

/// The scalars of a register's cell: name and width. The validity of a header is a bit too.
fn cell_widths(
    cx: &Lowering<'_>,
    ty: Ty,
    name: &str,
    list: &mut Vec<(String, u32)>,
    object: &ExternObject,
) -> Lower<()> {
    match cx.shape(ty) {
        Shape::Unit => {}
        Shape::Scalar(Type::Bool) => list.push((name.into(), 1)),
        Shape::Scalar(Type::Bits(w)) => list.push((name.into(), w)),
        Shape::Struct(_) | Shape::Header(_) => {
            if matches!(cx.shape(ty), Shape::Header(_)) {
                list.push((format!("{name}.$valid$"), 1));
            }
            for (member, ty) in types::members(&cx.hir.types, ty) {
                cell_widths(cx, ty, &format!("{name}.{member}"), list, object)?;
            }
        }
        _ => {
            return fail(
                kind::ARCHITECTURE,
                object.span,
                "a register holds numbers, truth values, and structures of them",
            );
        }
    }
    Ok(())
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
            code.push(Inst::Meter { meter, index, color: None, dst });
            code.store(&target, Value::Scalar(Expr::Read(dst)))?;
        }
        (Some(Resource::DirectMeter(_, color)), "read", [Some(result)]) => {
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
            let mut cells = cells.into_iter();
            let value = read_cells(code, ty, &mut cells, &index)?;
            if let Some(target) = target {
                code.store(&target, value)?;
            }
        }
        (Some(Resource::Register(cells, ty)), "write", [Some(index), Some(value)]) => {
            let (index_value, value) = code.two(index, value)?;
            let index = code.as_scalar(index_value, index)?;
            let index = code.simple(index);
            let mut cells = cells.into_iter();
            write_cells(code, ty, value, &mut cells, &index)?;
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

type Cells = std::vec::IntoIter<ir::RegisterId>;

fn read_cell(code: &mut Code<'_, '_>, width: u32, cells: &mut Cells, index: &Expr) -> Lower<SlotId> {
    let Some(register) = cells.next() else { return internal(code.span, "a register with too few cells") };
    let dst = code.temp(Type::Bits(width));
    code.push(Inst::RegisterRead { dst, register, index: index.clone() });
    Ok(dst)
}

fn read_cells(code: &mut Code<'_, '_>, ty: Ty, cells: &mut Cells, index: &Expr) -> Lower<Value> {
    Ok(match code.cx.shape(ty) {
        Shape::Scalar(Type::Bool) => {
            Value::Scalar(Expr::Read(read_cell(code, 1, cells, index)?).eq(Expr::bits(1, 1)))
        }
        Shape::Scalar(Type::Bits(w)) => Value::Scalar(Expr::Read(read_cell(code, w, cells, index)?)),
        Shape::Struct(members) => {
            let mut values = Vec::new();
            for (_, ty) in members {
                values.push(read_cells(code, ty, cells, index)?);
            }
            Value::Tuple(values)
        }
        Shape::Header(_) => {
            let valid = Expr::Read(read_cell(code, 1, cells, index)?).eq(Expr::bits(1, 1));
            let mut values = Vec::new();
            for (_, ty) in types::members(&code.cx.hir.types, ty) {
                values.push(read_cells(code, ty, cells, index)?);
            }
            Value::header(valid, values)
        }
        _ => Value::Unit,
    })
}

fn write_cells(code: &mut Code<'_, '_>, ty: Ty, value: Value, cells: &mut Cells, index: &Expr) -> Lower<()> {
    let write = |code: &mut Code<'_, '_>, value: Expr, cells: &mut Cells| {
        let Some(register) = cells.next() else {
            return internal(code.span, "a register with too few cells");
        };
        let value = if code.type_of(&value) == Type::Bool { value.bool_to_bits() } else { value };
        code.push(Inst::RegisterWrite { register, index: index.clone(), value });
        Ok(())
    };
    let member_types: Vec<Ty> =
        types::members(&code.cx.hir.types, ty).into_iter().map(|(_, ty)| ty).collect();
    match value {
        Value::Scalar(value) => write(code, value, cells),
        Value::Int(number) => {
            let width = code.width(ty);
            write(code, Expr::Const(ir::Bits::from_bigint(width, &number)), cells)
        }
        Value::Tuple(values) => values
            .into_iter()
            .zip(member_types)
            .try_for_each(|(v, ty)| write_cells(code, ty, v, cells, index)),
        Value::Header(header) => {
            write(code, header.valid, cells)?;
            let fields = header.fields.into_iter();
            fields.zip(member_types).try_for_each(|(v, ty)| write_cells(code, ty, v, cells, index))
        }
        _ => Ok(()),
    }
}

/// The table properties of v1model: `implementation`, `counters`, `meters`, `support_timeout`.
pub(crate) fn table_properties<'a>(
    code: &mut Code<'_, 'a>,
    table: &'a hir::Table,
    lowered: &mut ir::Table,
) -> Lower<()> {
    for property in &table.properties {
        let resource = match &property.value.kind {
            ExprKind::Instance(instance) => {
                let object = code.object(*instance)?;
                match code.cx.objects.get(object) {
                    Object::Extern(instance, Some(resource)) => {
                        Some((instance.path.clone(), resource.clone()))
                    }
                    _ => None,
                }
            }
            ExprKind::Var(var) => match code.binding(*var) {
                Some(crate::objects::Binding::Object(object)) => match code.cx.objects.get(*object) {
                    Object::Extern(instance, Some(resource)) => {
                        Some((instance.path.clone(), resource.clone()))
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        match (property.name.as_str(), resource) {
            ("implementation", Some((_, Resource::Profile(id)))) => lowered.profile = Some(id),
            ("counters", Some((name, Resource::DirectCounter(unit)))) => {
                lowered.direct_counter = Some(ir::DirectCounter { name, unit, at_hit: true });
            }
            ("meters", Some((name, Resource::DirectMeter(unit, color)))) => {
                lowered.direct_meter = Some(ir::DirectMeter { name, unit, at_hit: Some(color) });
            }
            ("support_timeout", _) => {
                lowered.idle_timeout =
                    code.cx.must_be_constant(&property.value, code.scope())? == Constant::Bool(true);
            }
            ("implementation" | "counters" | "meters", _) => {
                let name = &property.name;
                return fail(
                    kind::ARCHITECTURE,
                    property.span,
                    format!("this cannot be the `{name}` of a table"),
                );
            }
            // Properties of other architectures and of tools mean nothing here.
            _ => {}
        }
    }
    Ok(())
}
