//! The externs that PSA and PNA have in common. Their enumerations and table properties differ by a prefix only.

mod checksum;
mod hash;

use foldhash::{HashMap, HashMapExt};
use millrace_pipeline::{self as ir, Expr, Inst, Type};
use millrace_sema::Constant;
use millrace_sema::hir::{self, Call};

use super::objects::{
    array_size, counter, enum_member, enum_number, extern_object, meter, profile, property_object, unit,
    wrong_property,
};
use super::{Architecture, Resource, messages, registers};
use crate::code::Code;
use crate::context::Lowering;
use crate::fail::{Lower, code as kind, fail, internal};
use crate::objects::{ExternObject, ObjectId};
use crate::types;
use crate::value::Value;

pub(crate) use checksum::{Checksum, ones_complement_add};
pub(crate) use hash::Algorithm;

/// One of the portable architectures.
pub(crate) struct Portable {
    /// What its types and table properties begin with: `PSA` and `psa`.
    prefix: [&'static str; 2],
    /// The tables that direct counters and meters belong to.
    direct: HashMap<ObjectId, ir::TableId>,
}

impl Portable {
    /// The architecture with these prefixes of types and table properties.
    pub(super) fn new(types: &'static str, properties: &'static str) -> Portable {
        Portable { prefix: [types, properties], direct: HashMap::new() }
    }
}

fn portable<'a>(cx: &'a Lowering<'_>) -> Option<&'a Portable> {
    match &cx.arch {
        Architecture::Psa(portable) => Some(portable),
        Architecture::Pna(model) => Some(&model.portable),
        _ => None,
    }
}

fn portable_mut<'a>(cx: &'a mut Lowering<'_>) -> Option<&'a mut Portable> {
    match &mut cx.arch {
        Architecture::Psa(portable) => Some(portable),
        Architecture::Pna(model) => Some(&mut model.portable),
        _ => None,
    }
}

/// `PSA_` or `PNA_` and the rest of a type's name.
fn type_name(cx: &Lowering<'_>, rest: &str) -> String {
    format!("{}_{rest}", portable(cx).map_or("PSA", |p| p.prefix[0]))
}

/// The member of a hash enumeration that a constructor parameter names.
fn algorithm(cx: &Lowering<'_>, object: &ExternObject, parameter: &str) -> Lower<Algorithm> {
    let name = match object.constant(parameter) {
        Some(Constant::EnumMember(member)) => enum_member(cx, &type_name(cx, "HashAlgorithm_t"), *member),
        _ => None,
    };
    match name.and_then(Algorithm::named) {
        Some(algorithm) => Ok(algorithm),
        None => fail(kind::ARCHITECTURE, object.span, "this hash algorithm is not known"),
    }
}

/// Creates what an extern object stands for.
pub(crate) fn create_resource(cx: &mut Lowering<'_>, object: &ExternObject) -> Lower<Option<Resource>> {
    let (counters, meters) = (type_name(cx, "CounterType_t"), type_name(cx, "MeterType_t"));
    let first_type = object.type_args.first().copied();
    Ok(Some(match cx.hir.externs[object.ty].name.as_str() {
        "Counter" => {
            let (size, unit) = (array_size(object, "n_counters")?, unit(cx, object, &counters)?);
            counter(cx, object, size, unit)
        }
        "DirectCounter" => Resource::DirectCounter(unit(cx, object, &counters)?),
        "Meter" => {
            let (size, unit) = (array_size(object, "n_meters")?, unit(cx, object, &meters)?);
            meter(cx, object, size, unit)
        }
        "DirectMeter" => Resource::DirectMeter(unit(cx, object, &meters)?, None),
        "Register" => registers::create(cx, object, "size", object.constant("initial_value"))?,
        "Hash" => Resource::Hash(algorithm(cx, object, "algo")?),
        "Checksum" => {
            let algorithm = algorithm(cx, object, "hash")?.of_bytes(object.span)?;
            Resource::Checksum(Checksum::new(cx, &object.path, algorithm))
        }
        "InternetChecksum" => Resource::Checksum(Checksum::new(cx, &object.path, ir::HashAlgorithm::Csum16)),
        "Random" => {
            let Some((ty, width)) =
                first_type.and_then(|ty| Some((ty, types::bit_width(&cx.hir.types, ty).filter(|w| *w > 0)?)))
            else {
                return fail(kind::ARCHITECTURE, object.span, "random numbers are of a type `bit<W>`");
            };
            let bound = |name| match object.constant(name) {
                Some(value) => cx.constant_bits(value, ty),
                None => None,
            };
            match (bound("min"), bound("max")) {
                (Some(min), Some(max)) => Resource::Random(width, min, max),
                _ => return internal(object.span, "random numbers without bounds"),
            }
        }
        "ActionProfile" => profile(cx, object, None)?,
        "ActionSelector" => {
            let algorithm = algorithm(cx, object, "algo")?.of_bytes(object.span)?;
            profile(cx, object, Some(algorithm))?
        }
        "Digest" => {
            let Some(ty) = first_type else { return internal(object.span, "a digest without a type") };
            Resource::Digest(messages::digest(cx, &object.path, 0, ty, object.span)?)
        }
        "PacketReplicationEngine" | "BufferingQueueingEngine" | "packet_in" | "packet_out" => {
            return Ok(None);
        }
        name => {
            let arch = cx.arch.name();
            return fail(kind::FOREIGN, object.span, format!("{arch} has no extern object `{name}`"));
        }
    }))
}

/// A call of a method. Where DPDK's edition tells a counter the length of the packet, that is not needed: it is known here. A meter
/// takes what it is told, which may be the length of a part.
pub(crate) fn call_method<'a>(
    code: &mut Code<'_, 'a>,
    object: ObjectId,
    instance: &ExternObject,
    method: &str,
    call: &'a Call,
) -> Lower<Value> {
    let resource = extern_object(code, object).and_then(|(_, resource)| resource);
    let args: Vec<Option<&'a hir::Expr>> = call.args.iter().map(|a| a.value.as_ref()).collect();
    let method = method.strip_prefix("dpdk_").unwrap_or(method);
    match (resource, method, args.as_slice()) {
        (Some(Resource::Counter(counter)), "count", [Some(index), rest @ ..]) => {
            evaluate_unused(code, rest)?;
            let index = code.scalar(index)?;
            code.push(Inst::Count { counter, index });
        }
        (Some(Resource::DirectCounter(_)), "count", rest) => {
            evaluate_unused(code, rest)?;
            let table = owner(code, object, instance, call)?;
            code.push(Inst::CountDirect(table));
        }
        (Some(Resource::Meter(meter)), "execute", [Some(index), rest @ ..]) => {
            let index = code.scalar(index)?;
            let index = code.settle_expr(index);
            let [color, length] = metered_arguments(code, rest)?;
            let dst = code.temp(Type::Bits(8));
            code.push(Inst::Meter { meter, index, color, length, dst });
            return Ok(Value::Scalar(from_color(code, dst)));
        }
        (Some(Resource::DirectMeter(..)), "execute", rest) => {
            let table = owner(code, object, instance, call)?;
            let [color, length] = metered_arguments(code, rest)?;
            let dst = code.temp(Type::Bits(8));
            code.push(Inst::MeterDirect { table, color, length, dst });
            return Ok(Value::Scalar(from_color(code, dst)));
        }
        (Some(Resource::Register(cells, ty)), "read", [Some(index)]) => {
            let index = code.scalar(index)?;
            let index = code.simple(index);
            return registers::read(code, cells, ty, &index);
        }
        (Some(Resource::Register(cells, ty)), "write", [Some(index), Some(value)]) => {
            let (index, value) = registers::write_operands(code, index, value)?;
            registers::write(code, cells, ty, &index, value)?;
        }
        (Some(Resource::Hash(algorithm)), "get_hash", [Some(data)]) => {
            let width = code.width(call.ty);
            return Ok(Value::Scalar(algorithm.hash(code, data, width)?));
        }
        (Some(Resource::Hash(algorithm)), "get_hash", [Some(base), Some(data), Some(max)]) => {
            return hash::hash_within(code, algorithm, base, data, max, call);
        }
        (Some(Resource::Checksum(sum)), method, args) => return sum.call(code, method, args, call),
        (Some(Resource::Random(width, min, max)), "read", []) => {
            let drawn = messages::draw(code, width, Expr::Const(min), Expr::Const(max));
            return Ok(Value::Scalar(drawn));
        }
        (Some(Resource::Digest(digest)), "pack", [Some(data)]) => {
            let value = code.eval(data)?;
            messages::send_digest(code, digest, &value);
        }
        _ => {
            let (name, arch) = (&code.cx.hir.externs[instance.ty].name, code.cx.arch.name());
            return fail(
                kind::ARCHITECTURE,
                call.span,
                format!("`{name}` has no method `{method}` with these arguments in {arch}"),
            );
        }
    }
    Ok(Value::Unit)
}

/// The effects of arguments whose value is known without them.
fn evaluate_unused<'a>(code: &mut Code<'_, 'a>, args: &[Option<&'a hir::Expr>]) -> Lower<()> {
    args.iter().flatten().try_for_each(|arg| code.eval(arg).map(drop))
}

/// The table that a direct counter or meter belongs to. Only actions of that table use it.
fn owner(code: &Code<'_, '_>, object: ObjectId, instance: &ExternObject, call: &Call) -> Lower<ir::TableId> {
    match portable(code.cx).and_then(|p| p.direct.get(&object)) {
        Some(table) => Ok(*table),
        None => {
            let message = format!(
                "`{}` belongs to no table here: a direct counter or meter is used in the actions of the table whose \
                 property names it",
                instance.path
            );
            fail(kind::ARCHITECTURE, call.span, message)
        }
    }
}

/// What a meter is told besides its index: the colour that the packet has already, as the IR numbers it, and the bytes that it counts
/// for. Either may be left out.
fn metered_arguments<'a>(
    code: &mut Code<'_, 'a>,
    args: &[Option<&'a hir::Expr>],
) -> Lower<[Option<Expr>; 2]> {
    let color_type = type_name(code.cx, "MeterColor_t");
    let is_color = |e: &&hir::Expr| matches!(code.cx.hir.types.kind(e.ty), hir::TyKind::Enum(id) if code.cx.hir.types.enums[*id].name == color_type);
    let color = args.first().copied().flatten().filter(is_color);
    let length = args.iter().copied().skip(usize::from(color.is_some())).flatten().next();
    let color = match color {
        Some(color) => {
            let color = code.scalar(color)?;
            let color = code.settle_expr(color);
            let is = |name| match enum_number(code.cx, &color_type, name) {
                Some(number) => color.clone().eq(Expr::bits(types::ENUM_BITS, number)),
                None => Expr::Bool(false),
            };
            let (green, yellow) = (is("GREEN"), is("YELLOW"));
            let other = Expr::mux(yellow, Expr::bits(8, 1), Expr::bits(8, 2));
            Some(Expr::mux(green, Expr::bits(8, 0), other))
        }
        None => None,
    };
    let length = length.map(|length| code.scalar(length)).transpose()?;
    Ok([color, length])
}

/// A colour of the IR as the enumeration numbers it.
fn from_color(code: &Code<'_, '_>, color: ir::SlotId) -> Expr {
    let color_type = type_name(code.cx, "MeterColor_t");
    let number =
        |name| Expr::bits(types::ENUM_BITS, enum_number(code.cx, &color_type, name).unwrap_or_default());
    let is = |value| Expr::Read(color).eq(Expr::bits(8, value));
    Expr::mux(is(0), number("GREEN"), Expr::mux(is(1), number("YELLOW"), number("RED")))
}

/// The table properties `psa_implementation`, `psa_direct_counter`, `psa_direct_meter` and `psa_idle_timeout`; PNA's
/// have a prefix of their own.
pub(crate) fn table_properties<'a>(
    code: &mut Code<'_, 'a>,
    table: &'a hir::Table,
    lowered: &mut ir::Table,
) -> Lower<()> {
    let prefix = format!("{}_", portable(code.cx).map_or("psa", |p| p.prefix[1]));
    // The table is the next one: nothing in its actions is a table.
    let id = code.cx.ir.program().tables.next_key();
    for property in &table.properties {
        let Some(name) = property.name.strip_prefix(&prefix) else { continue };
        let object = property_object(code, property)?;
        let found = object.and_then(|id| extern_object(code, id));
        match (name, found) {
            ("implementation", Some((_, Some(Resource::Profile(profile))))) => {
                lowered.profile = Some(profile);
            }
            ("direct_counter", Some((instance, Some(Resource::DirectCounter(unit))))) => {
                let name = instance.path.clone();
                lowered.direct_counter = Some(ir::DirectCounter { name, unit, at_hit: false });
            }
            ("direct_meter", Some((instance, Some(Resource::DirectMeter(unit, _))))) => {
                let name = instance.path.clone();
                lowered.direct_meter = Some(ir::DirectMeter { name, unit, at_hit: None });
            }
            ("idle_timeout", _) => {
                let Constant::EnumMember(member) = code.cx.must_be_constant(&property.value, code.scope())?
                else {
                    return wrong_property(property);
                };
                let of = type_name(code.cx, "IdleTimeout_t");
                lowered.idle_timeout = enum_member(code.cx, &of, member) != Some("NO_TIMEOUT");
            }
            ("implementation" | "direct_counter" | "direct_meter", _) => {
                return wrong_property(property);
            }
            _ => {}
        }
        if let (Some(object), "direct_counter" | "direct_meter") = (object, name)
            && let Some(portable) = portable_mut(code.cx)
            && portable.direct.insert(object, id).is_some()
        {
            let message = format!("the `{}` of another table", property.name);
            return fail(kind::ARCHITECTURE, property.span, message);
        }
    }
    Ok(())
}
