//! The externs of `millrace.p4`: credit accounts, which are the same in every architecture that includes it. In the IR an account takes
//! the place of a meter whose unit is [`ir::Unit::Account`].

use millrace_pipeline::{self as ir, Expr, Inst, Type};
use millrace_sema::hir::{self, Call};

use super::Resource;
use super::objects::{array_size, extern_object, meter, property_object};
use crate::code::Code;
use crate::context::Lowering;
use crate::fail::{Lower, code as kind, fail};
use crate::objects::{ExternObject, ObjectId};
use crate::value::Value;

/// What an account is; none when the object is something else.
pub(super) fn create(cx: &mut Lowering<'_>, object: &ExternObject) -> Lower<Option<Resource>> {
    Ok(match cx.hir.externs[object.ty].name.as_str() {
        "account" => {
            let size = array_size(object, "size")?;
            Some(meter(cx, object, size, ir::Unit::Account))
        }
        "direct_account" => Some(Resource::DirectMeter(ir::Unit::Account, None)),
        _ => None,
    })
}

/// A call of a method of an account; none when the object is something else.
pub(super) fn call_method<'a>(
    code: &mut Code<'_, 'a>,
    object: ObjectId,
    instance: &ExternObject,
    method: &str,
    call: &'a Call,
) -> Lower<Option<Value>> {
    let name = code.cx.hir.externs[instance.ty].name.as_str();
    if !matches!(name, "account" | "direct_account") {
        return Ok(None);
    }
    let resource = extern_object(code, object).and_then(|(_, resource)| resource);
    let args: Vec<Option<&'a hir::Expr>> = call.args.iter().map(|a| a.value.as_ref()).collect();
    let dst = code.temp(Type::Bits(8));
    match (resource, method, args.as_slice()) {
        (Some(Resource::Meter(meter)), "admit", [Some(index), Some(bytes)]) => {
            let index = code.scalar(index)?;
            let index = code.settle_expr(index);
            let length = Some(code.scalar(bytes)?);
            code.push(Inst::Meter { meter, index, color: None, length, dst });
        }
        (Some(Resource::DirectMeter(..)), "admit", [Some(bytes)]) => {
            let Some(table) = code.cx.account_owners.get(&object).copied() else {
                let message = format!(
                    "`{}` belongs to no table here: an account of entries is used in the actions of the table whose property \
                     `account` names it, or after that table is applied",
                    instance.path
                );
                return fail(kind::ARCHITECTURE, call.span, message);
            };
            let length = Some(code.scalar(bytes)?);
            code.push(Inst::MeterDirect { table, color: None, length, dst });
        }
        _ => {
            return fail(kind::ARCHITECTURE, call.span, format!("`{name}` has no method `{method}`"));
        }
    }
    Ok(Some(Value::Scalar(Expr::Read(dst).eq(Expr::bits(8, 0)))))
}

/// The table property `account`.
pub(super) fn table_property<'a>(
    code: &mut Code<'_, 'a>,
    table: &'a hir::Table,
    lowered: &mut ir::Table,
) -> Lower<()> {
    // The table is the next one: nothing in its actions is a table.
    let id = code.cx.ir.program().tables.next_key();
    for property in &table.properties {
        let refuse = |message: &str| fail(kind::ARCHITECTURE, property.span, message);
        let object = property_object(code, property)?;
        let found = object.and_then(|id| Some((id, extern_object(code, id)?.0)));
        let of_entries = found.filter(|(_, made)| code.cx.hir.externs[made.ty].name == "direct_account");
        match (property.name.as_str(), of_entries) {
            ("account", Some((object, made))) => {
                if lowered.direct_meter.is_some() {
                    return refuse("an entry has a direct meter or an account, not both");
                }
                if code.cx.account_owners.insert(object, id).is_some() {
                    return refuse("the `account` of another table");
                }
                let name = made.path.clone();
                lowered.direct_meter = Some(ir::DirectMeter { name, unit: ir::Unit::Account, at_hit: None });
            }
            ("account", None) => return refuse("the `account` of a table is a `direct_account`"),
            (_, Some(_)) => return refuse("a `direct_account` is the `account` of a table"),
            _ => {}
        }
    }
    Ok(())
}
