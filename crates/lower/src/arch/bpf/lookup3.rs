//! Bob Jenkins' lookup3 (`hashlittle`, initial value 0) over the bytes of the data in the order of the packet.

use millrace_pipeline::{BinaryOp, DataItem, Expr, Type};
use millrace_sema::hir;

use crate::code::Code;
use crate::fail::{Lower, code as kind, fail};

/// The most bytes that one call hashes: the code of the calculation grows with them.
const MAX_BYTES: u32 = 1024;

/// The three words of the state.
type Words = [Expr; 3];

/// A step of mixing: which word changes, by which other, rotated by how much, and which grows then.
const MIX: [(usize, usize, u32, usize); 6] =
    [(0, 2, 4, 2), (1, 0, 6, 0), (2, 1, 8, 1), (0, 2, 16, 2), (1, 0, 19, 0), (2, 1, 4, 1)];
/// A step at the end: which word changes, by which other, rotated by how much.
const FINAL: [(usize, usize, u32); 7] =
    [(2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24)];

/// The hash, 32 bits. Data that do not fill whole bytes get zero bits at their end; a header counts as its fields.
pub(super) fn hash(code: &mut Code<'_, '_>, items: Vec<DataItem>, data: &hir::Expr) -> Lower<Expr> {
    let mut bytes = Vec::new();
    if let Some(joined) = join(code, items, data)? {
        let program = code.cx.ir.program();
        let width = joined.ty(program).bits().unwrap_or(0);
        let missing = width.next_multiple_of(8) - width;
        let whole = if missing == 0 { joined } else { joined.concat(Expr::bits(missing, 0)) };
        let width = width + missing;
        if width / 8 > MAX_BYTES {
            return fail(kind::LIMIT, data.span, format!("`hash` takes at most {MAX_BYTES} bytes"));
        }
        let whole = code.simple(whole);
        let program = code.cx.ir.program();
        bytes.extend((0..width / 8).rev().map(|i| whole.clone().slice(8 * i + 7, 8 * i, program)));
    }
    let start = Expr::bits(32, 0xdead_beef + bytes.len() as u128);
    let mut words: Words = [start.clone(), start.clone(), start];
    if bytes.is_empty() {
        return Ok(words[2].clone());
    }
    let mut rest = bytes.as_slice();
    while rest.len() > 12 {
        let (block, more) = rest.split_at(12);
        absorb(code, &mut words, block);
        for (changed, by, rotation, grows) in MIX {
            let difference = words[changed].clone().sub(words[by].clone());
            words[changed] = mixed(code, difference, &words[by], rotation);
            words[grows] = code.in_temp(words[grows].clone().add(words[other(changed, grows)].clone()));
        }
        rest = more;
    }
    absorb(code, &mut words, rest);
    for (changed, by, rotation) in FINAL {
        let rotated = rotate(code, &words[by], rotation);
        let value = Expr::binary(BinaryOp::Xor, words[changed].clone(), words[by].clone()).sub(rotated);
        words[changed] = code.in_temp(value);
    }
    Ok(words[2].clone())
}

/// The word that is neither of two.
fn other(a: usize, b: usize) -> usize {
    3 - a - b
}

fn join(code: &Code<'_, '_>, items: Vec<DataItem>, data: &hir::Expr) -> Lower<Option<Expr>> {
    let program = code.cx.ir.program();
    let mut joined: Option<Expr> = None;
    for item in items {
        let values = match item {
            DataItem::Value(value) => vec![value],
            DataItem::Header(header) => {
                program.headers[header].fields.iter().copied().map(Expr::Read).collect()
            }
            DataItem::Payload => Vec::new(),
        };
        for value in values {
            let value = match value.ty(program) {
                Type::Bits(_) => value,
                Type::Bool => value.bool_to_bits(),
                Type::Varbit(_) => {
                    return fail(kind::ARCHITECTURE, data.span, "`hash` takes data of fixed size");
                }
            };
            joined = Some(match joined {
                Some(before) => before.concat(value),
                None => value,
            });
        }
    }
    Ok(joined)
}

/// Adds up to 12 bytes to the words, the first byte lowest.
fn absorb(code: &mut Code<'_, '_>, words: &mut Words, bytes: &[Expr]) {
    for (word, bytes) in words.iter_mut().zip(bytes.chunks(4)) {
        let number = bytes.iter().rev().cloned().reduce(Expr::concat);
        if let Some(number) = number {
            let number = number.zext_to(32, code.cx.ir.program());
            *word = code.in_temp(word.clone().add(number));
        }
    }
}

fn rotate(code: &Code<'_, '_>, word: &Expr, by: u32) -> Expr {
    let program = code.cx.ir.program();
    word.clone().slice(31 - by, 0, program).concat(word.clone().slice(31, 32 - by, program))
}

fn mixed(code: &mut Code<'_, '_>, difference: Expr, by: &Expr, rotation: u32) -> Expr {
    let rotated = rotate(code, by, rotation);
    code.in_temp(Expr::binary(BinaryOp::Xor, difference, rotated))
}
