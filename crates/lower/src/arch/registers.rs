//! Registers: one array of the IR for each scalar of the type that the cells have.

use millrace_pipeline::{self as ir, Bits, Expr, Inst, SlotId, Type};
use millrace_sema::Constant;
use millrace_sema::hir::{self, Ty};

use super::Resource;
use super::objects::array_size;
use crate::code::Code;
use crate::context::Lowering;
use crate::fail::{Lower, code as kind, fail, internal};
use crate::objects::ExternObject;
use crate::types::{self, Shape};
use crate::value::Value;

/// The arrays of a register with cells of the object's first type argument; `initial` is what each cell starts with.
pub(super) fn create(
    cx: &mut Lowering<'_>,
    object: &ExternObject,
    size: &str,
    initial: Option<&Constant>,
) -> Lower<Resource> {
    let Some(&ty) = object.type_args.first() else {
        return internal(object.span, "a register without a type");
    };
    let size = array_size(object, size)?;
    let mut cells = Vec::new();
    cell_widths(cx, ty, &object.path, &mut cells, object)?;
    let mut values = Vec::new();
    if let Some(initial) = initial {
        initial_bits(cx, initial, ty, &mut values);
    }
    let mut values = values.into_iter();
    let mut registers = Vec::with_capacity(cells.len());
    for (name, width) in cells {
        let name = cx.object_name("register", &name);
        let initial = values.next().filter(|v| v.width() == width);
        let register = ir::Register { name, width, size, initial };
        registers.push(cx.ir.program_mut().registers.push(register));
    }
    Ok(Resource::Register(registers, ty))
}

/// The bits of a cell's scalars in the order of [`cell_widths`].
fn initial_bits(cx: &Lowering<'_>, value: &Constant, ty: Ty, list: &mut Vec<Bits>) {
    match value {
        Constant::Aggregate(members) => {
            if matches!(cx.shape(ty), Shape::Header(_)) {
                list.push(Bits::new(1, 1));
            }
            for (member, (_, ty)) in members.iter().zip(types::members(&cx.hir.types, ty)) {
                initial_bits(cx, member, ty, list);
            }
        }
        _ => list.extend(cx.constant_bits(value, ty)),
    }
}

/// `read(index)`: what the cell holds.
pub(super) fn read(
    code: &mut Code<'_, '_>,
    cells: Vec<ir::RegisterId>,
    ty: Ty,
    index: &Expr,
) -> Lower<Value> {
    read_cells(code, ty, &mut cells.into_iter(), index)
}

/// `write(index, value)`.
pub(super) fn write(
    code: &mut Code<'_, '_>,
    cells: Vec<ir::RegisterId>,
    ty: Ty,
    index: &Expr,
    value: Value,
) -> Lower<()> {
    write_cells(code, ty, value, &mut cells.into_iter(), index)
}

/// The index and the value of a `write`, evaluated left to right.
pub(super) fn write_operands<'a>(
    code: &mut Code<'_, 'a>,
    index: &'a hir::Expr,
    value: &'a hir::Expr,
) -> Lower<(Expr, Value)> {
    let (index_value, value) = code.two(index, value)?;
    let index = code.as_scalar(index_value, index)?;
    Ok((code.simple(index), value))
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
        Shape::Struct | Shape::Header(_) => {
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
        Shape::Struct => {
            let members = types::members(&code.cx.hir.types, ty);
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
