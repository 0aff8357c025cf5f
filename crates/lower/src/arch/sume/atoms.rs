//! The extern functions of P4->NetFPGA. A program declares each atom that it uses as a function of its own, and the end
//! of the name says which kind it is: `seq_no_reg_raw` reads, adds to or writes the register array `seq_no`, which has a
//! cell for each value of the index.
//!
//! | name ends with | takes | does |
//! | --- | --- | --- |
//! | `_reg_rw` | index, new value, operation | reads or writes |
//! | `_reg_raw`, `_reg_sub` | index, new value, increment, operation | also adds or subtracts |
//! | `_reg_praw` | the same, value to compare, relation | only if the value compares so to the cell |
//! | `_reg_ifElseRaw` | two of the above, index, value to compare, relation | the second where it compares so to the cell of that index, else the first |
//! | `_lrc` | data | the exclusive or of the words of the data, from their low end |
//! | `_ip_chksum` | the fields of an IPv4 header | its checksum |
//! | `_timestamp` | whether it is wanted | nanoseconds |
//!
//! What the register holds then is the result, and whether it was compared successfully another.

use millrace_pipeline::{
    BinaryOp, DataItem, Expr, HashAlgorithm, Inst, Intrinsic, Register, RegisterId, Type,
};
use millrace_sema::hir::{self, Call, Direction};

use crate::arch::{Architecture, hashing};
use crate::code::Code;
use crate::fail::{Lower, code as kind, fail};
use crate::value::Value;

/// Operations on a cell; any other reads.
const WRITE: u128 = 1;
const ADD: u128 = 2;
const SUB: u128 = 3;
/// Writes, and the result is what was there before.
const READ_WRITE: u128 = 5;

/// Relations between the given value and that of the cell; any other does not hold.
const EQUAL: u128 = 0;
const NOT_EQUAL: u128 = 1;
const GREATER: u128 = 2;
const LESS: u128 = 3;

/// The place of the checksum among the fields of an IPv4 header.
const CHECKSUM_FIELD: usize = 9;

/// A change of one cell.
struct Change<'e> {
    index: &'e Expr,
    value: &'e Expr,
    increment: Option<&'e Expr>,
    operation: &'e Expr,
}

/// A call of an extern function.
pub(crate) fn call_function<'a>(code: &mut Code<'_, 'a>, name: &str, call: &'a Call) -> Lower<Value> {
    let is_out = |arg: &&hir::Arg| arg.direction == Direction::Out;
    let given: Vec<&'a hir::Expr> =
        call.args.iter().filter(|a| !is_out(a)).filter_map(|a| a.value.as_ref()).collect();
    let outs: Vec<&hir::Arg> = call.args.iter().filter(is_out).collect();
    let mut inputs = Vec::with_capacity(given.len());
    for (value, expr) in code.eval_all(given.iter().copied())?.into_iter().zip(&given) {
        let scalar = code.as_scalar(value, expr)?;
        inputs.push(code.simple(scalar));
    }
    let Some(result) = outs.first() else { return unknown(name, call) };
    let width = code.width(result.ty);
    let results = match (kind_of(name), inputs.as_slice()) {
        (Some((array, "reg_rw")), [index, value, operation]) => {
            let change = Change { index, value, increment: None, operation };
            vec![always(code, (array, width), &change, call)?]
        }
        (Some((array, "reg_raw" | "reg_sub")), [index, value, increment, operation]) => {
            let change = Change { index, value, increment: Some(increment), operation };
            vec![always(code, (array, width), &change, call)?]
        }
        (Some((array, "reg_praw")), [index, value, increment, operation, compared, relation]) => {
            let register = register(code, array, index, width, call)?;
            let holds = compare(code, register, index, compared, relation);
            // What does not compare so is read.
            let chosen = Expr::mux(holds.clone(), operation.clone(), Expr::bits(8, 0));
            let chosen = code.in_temp(chosen);
            let change = Change { index, value, increment: Some(increment), operation: &chosen };
            vec![apply(code, register, &change), holds.bool_to_bits()]
        }
        (
            Some((array, "reg_ifElseRaw")),
            [index_2, value_2, inc_2, op_2, index_1, value_1, inc_1, op_1, index, compared, relation],
        ) => {
            let register = register(code, array, index, width, call)?;
            let holds = compare(code, register, index, compared, relation);
            let mut choose = |a: &Expr, b: &Expr| {
                let chosen = Expr::mux(holds.clone(), a.clone(), b.clone());
                code.in_temp(chosen)
            };
            let (index, value) = (choose(index_1, index_2), choose(value_1, value_2));
            let (increment, operation) = (choose(inc_1, inc_2), choose(op_1, op_2));
            let change =
                Change { index: &index, value: &value, increment: Some(&increment), operation: &operation };
            vec![apply(code, register, &change), holds.bool_to_bits()]
        }
        (Some((_, "lrc")), [data]) => vec![longitudinal(code, data, width)],
        (Some((_, "ip_chksum")), fields) => {
            let fields = fields.iter().enumerate().filter(|(i, _)| *i != CHECKSUM_FIELD || fields.len() < 12);
            let items = fields.map(|(_, field)| DataItem::Value(field.clone())).collect();
            vec![hashing::hash(code, HashAlgorithm::Csum16, items, 16)]
        }
        (Some((_, "timestamp")), [_]) => vec![Expr::Read(code.cx.ir.intrinsic(Intrinsic::IngressTimestamp))],
        _ => return unknown(name, call),
    };
    for (out, value) in outs.into_iter().zip(results) {
        let Some(target) = &out.value else { continue };
        let target = code.access(target)?;
        let value = value.zext_to(code.width(out.ty), code.cx.ir.program());
        code.store(&target, Value::Scalar(value))?;
    }
    Ok(Value::Unit)
}

fn unknown(name: &str, call: &Call) -> Lower<Value> {
    let message = format!("SimpleSumeSwitch has no extern function like `{name}` with these parameters");
    fail(kind::ARCHITECTURE, call.span, message)
}

/// The array that a function is about, and its kind.
fn kind_of(name: &str) -> Option<(&str, &str)> {
    ["reg_rw", "reg_raw", "reg_sub", "reg_praw", "reg_ifElseRaw", "lrc", "ip_chksum", "timestamp"]
        .into_iter()
        .find_map(|kind| Some((name.strip_suffix(kind)?.strip_suffix('_')?, kind)))
}

fn register(
    code: &mut Code<'_, '_>,
    array: &str,
    index: &Expr,
    width: u32,
    call: &Call,
) -> Lower<RegisterId> {
    if let Architecture::Sume(model) = &code.cx.arch
        && let Some(known) = model.arrays.get(array)
    {
        return Ok(*known);
    }
    let bits = code.type_of(index).bits().unwrap_or(1);
    let limit = millrace_pipeline::limits::MAX_ARRAY_SIZE;
    let size = 1u64.checked_shl(bits).filter(|size| *size <= limit);
    let Some(size) = size else {
        return fail(kind::LIMIT, call.span, format!("the size of an array is 0 to {limit}"));
    };
    let name = code.cx.object_name("register", array);
    let made = code.cx.ir.program_mut().registers.push(Register { name, width, size, initial: None });
    if let Architecture::Sume(model) = &mut code.cx.arch {
        model.arrays.insert(array.to_owned(), made);
    }
    Ok(made)
}

fn read(code: &mut Code<'_, '_>, register: RegisterId, index: &Expr) -> Expr {
    let dst = code.temp(Type::Bits(code.cx.ir.program().registers[register].width));
    code.push(Inst::RegisterRead { dst, register, index: index.clone() });
    Expr::Read(dst)
}

fn always(
    code: &mut Code<'_, '_>,
    (array, width): (&str, u32),
    change: &Change<'_>,
    call: &Call,
) -> Lower<Expr> {
    let register = register(code, array, change.index, width, call)?;
    Ok(apply(code, register, change))
}

/// Changes a cell; the result.
fn apply(code: &mut Code<'_, '_>, register: RegisterId, change: &Change<'_>) -> Expr {
    let before = read(code, register, change.index);
    let program = code.cx.ir.program();
    let width = program.registers[register].width;
    let is = |operation: u128| {
        let bits = change.operation.ty(program).bits().unwrap_or(8);
        change.operation.clone().eq(Expr::bits(bits, operation))
    };
    let value = change.value.clone().zext_to(width, program);
    let mut after = before.clone();
    if let Some(increment) = change.increment {
        let increment = increment.clone().zext_to(width, program);
        after = Expr::mux(is(SUB), before.clone().sub(increment.clone()), after);
        after = Expr::mux(is(ADD), before.clone().add(increment), after);
    }
    after = Expr::mux(is(WRITE).or(is(READ_WRITE)), value, after);
    let old = is(READ_WRITE);
    let after = code.in_temp(after);
    code.push(Inst::RegisterWrite { register, index: change.index.clone(), value: after.clone() });
    Expr::mux(old, before, after)
}

/// Whether a value compares to a cell as asked.
fn compare(
    code: &mut Code<'_, '_>,
    register: RegisterId,
    index: &Expr,
    compared: &Expr,
    relation: &Expr,
) -> Expr {
    let cell = read(code, register, index);
    let program = code.cx.ir.program();
    let compared = compared.clone().zext_to(program.registers[register].width, program);
    let bits = relation.ty(program).bits().unwrap_or(8);
    let is = |wanted: u128| relation.clone().eq(Expr::bits(bits, wanted));
    let holds = Expr::any([
        is(EQUAL).and(compared.clone().eq(cell.clone())),
        is(NOT_EQUAL).and(compared.clone().ne(cell.clone())),
        is(GREATER).and(cell.clone().lt(compared.clone())),
        is(LESS).and(compared.lt(cell)),
    ]);
    code.in_temp(holds)
}

/// The exclusive or of words of that width.
fn longitudinal(code: &mut Code<'_, '_>, data: &Expr, width: u32) -> Expr {
    let program = code.cx.ir.program();
    let bits = data.ty(program).bits().unwrap_or(1);
    let words: Vec<Expr> = (0..bits.div_ceil(width))
        .map(|i| {
            let high = (width * (i + 1)).min(bits) - 1;
            data.clone().slice(high, width * i, program).zext_to(width, program)
        })
        .collect();
    let mut result = Expr::bits(width, 0);
    for words in words.chunks(crate::limits::EXPR_PIECE) {
        result = words.iter().cloned().fold(result, |a, b| Expr::binary(BinaryOp::Xor, a, b));
        result = code.simple(result);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::kind_of;

    #[test]
    fn names_end_with_their_kind() {
        assert_eq!(kind_of("seq_no_reg_raw"), Some(("seq_no", "reg_raw")));
        assert_eq!(kind_of("seq_no_reg_praw"), Some(("seq_no", "reg_praw")));
        assert_eq!(kind_of("hash_lrc"), Some(("hash", "lrc")));
        assert_eq!(kind_of("reg_raw"), None);
        assert_eq!(kind_of("seq_no_regraw"), None);
    }
}
