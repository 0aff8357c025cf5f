//! The `Hash` extern.

use millrace_pipeline::{BinaryOp, DataItem, Expr, HashAlgorithm, Type};
use millrace_sema::hir::{self, Call};
use millrace_syntax::Span;

use crate::arch::hashing;
use crate::code::Code;
use crate::fail::{Lower, code as kind, fail};
use crate::value::Value;

/// The key of the Toeplitz hash that receive side scaling is verified with; network cards use it when nobody gives
/// them another.
const RSS_KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0,
    0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42,
    0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];
/// The most bits that this key hashes.
const TOEPLITZ_BITS: u32 = RSS_KEY.len() as u32 * 8 - 31;
/// Levels of an expression before it goes on in a temporary.
const PIECE: usize = 32;

/// A member of `PSA_HashAlgorithm_t` or `PNA_HashAlgorithm_t`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Algorithm {
    /// One that the IR has.
    Ir(HashAlgorithm),
    /// The exclusive or of the key's windows at the ones of the data.
    Toeplitz,
}

impl Algorithm {
    /// The algorithm with that name.
    pub(super) fn named(name: &str) -> Option<Algorithm> {
        Some(Algorithm::Ir(match name {
            "IDENTITY" => HashAlgorithm::Identity,
            "CRC32" | "TARGET_DEFAULT" => HashAlgorithm::Crc32,
            "CRC32_CUSTOM" => HashAlgorithm::Crc32Custom,
            "CRC16" => HashAlgorithm::Crc16,
            "CRC16_CUSTOM" => HashAlgorithm::Crc16Custom,
            "ONES_COMPLEMENT16" => HashAlgorithm::Csum16,
            "TOEPLITZ" => return Some(Algorithm::Toeplitz),
            _ => return None,
        }))
    }

    /// The algorithm where one that runs over bytes is needed.
    pub(super) fn of_bytes(self, span: Span) -> Lower<HashAlgorithm> {
        match self {
            Algorithm::Ir(algorithm) => Ok(algorithm),
            Algorithm::Toeplitz => fail(kind::ARCHITECTURE, span, "`TOEPLITZ` is for `Hash` only"),
        }
    }

    /// The hash of an argument. Data that do not fill whole bytes get zero bits in front, as in bmv2's psa_switch.
    pub(super) fn hash<'a>(self, code: &mut Code<'_, 'a>, data: &'a hir::Expr, width: u32) -> Lower<Expr> {
        let mut items = hashing::items_of(code, data)?;
        match self {
            Algorithm::Ir(algorithm) => {
                let odd = items.iter().map(|i| fixed_bits(code, i)).sum::<u32>() % 8;
                if odd != 0 {
                    items.insert(0, DataItem::Value(Expr::bits(8 - odd, 0)));
                }
                Ok(hashing::hash(code, algorithm, items, width))
            }
            Algorithm::Toeplitz => {
                let values = values(code, items, data)?;
                let hash = toeplitz(code, values, data)?;
                Ok(hash.zext_to(width, code.cx.ir.program()))
            }
        }
    }
}

/// The bits of an item, as far as they are the same for all packets.
fn fixed_bits(code: &Code<'_, '_>, item: &DataItem) -> u32 {
    match item {
        DataItem::Value(value) => code.type_of(value).bits().unwrap_or(0),
        DataItem::Header(header) => code.cx.ir.program().headers[*header].fixed_bits,
        DataItem::Payload => 0,
    }
}

/// The data as numbers; a header counts as its fields.
pub(super) fn values(code: &Code<'_, '_>, items: Vec<DataItem>, data: &hir::Expr) -> Lower<Vec<Expr>> {
    let mut values = Vec::new();
    for item in items {
        match item {
            DataItem::Value(value) => values.push(value),
            DataItem::Header(header) => {
                values.extend(code.cx.ir.program().headers[header].fields.iter().copied().map(Expr::Read));
            }
            DataItem::Payload => {}
        }
    }
    values
        .into_iter()
        .map(|value| match code.type_of(&value) {
            Type::Bits(_) => Ok(value),
            Type::Bool => Ok(value.bool_to_bits()),
            Type::Varbit(_) => fail(
                kind::ARCHITECTURE,
                data.span,
                "this algorithm is calculated over data of fixed size, so a `varbit` cannot be part of them",
            ),
        })
        .collect()
}

fn toeplitz(code: &mut Code<'_, '_>, values: Vec<Expr>, data: &hir::Expr) -> Lower<Expr> {
    let mut hash = Expr::bits(32, 0);
    let mut at = 0;
    for value in values {
        let value = code.simple(value);
        let width = code.type_of(&value).bits().unwrap_or(0);
        for bit in (0..width).rev() {
            if at >= TOEPLITZ_BITS {
                let message = format!("`TOEPLITZ` has a key for {TOEPLITZ_BITS} bits of data");
                return fail(kind::LIMIT, data.span, message);
            }
            let set = value.clone().slice(bit, bit, code.cx.ir.program()).eq(Expr::bits(1, 1));
            let window = Expr::mux(set, Expr::bits(32, u128::from(window(at))), Expr::bits(32, 0));
            hash = Expr::binary(BinaryOp::Xor, hash, window);
            at += 1;
            if (at as usize).is_multiple_of(PIECE) {
                hash = code.simple(hash);
            }
        }
    }
    Ok(hash)
}

/// 32 bits of the key from that bit on.
fn window(at: u32) -> u32 {
    (0..32).fold(0, |window, i| {
        let bit = at + i;
        let byte = RSS_KEY[(bit / 8) as usize];
        window << 1 | u32::from(byte >> (7 - bit % 8) & 1)
    })
}

/// `get_hash(base, data, max)`.
pub(super) fn hash_within<'a>(
    code: &mut Code<'_, 'a>,
    algorithm: Algorithm,
    base: &'a hir::Expr,
    data: &'a hir::Expr,
    max: &'a hir::Expr,
    call: &'a Call,
) -> Lower<Value> {
    let (base_value, max_value) = code.two(base, max)?;
    let result = code.width(call.ty);
    let width = [result, code.width(base.ty), code.width(max.ty)].into_iter().max().unwrap_or(1);
    let width = width.max(hashing::HASH_WIDTH);
    let base = code.as_scalar(base_value, base)?.zext_to(width, code.cx.ir.program());
    let max = code.as_scalar(max_value, max)?.zext_to(width, code.cx.ir.program());
    let hashed = algorithm.hash(code, data, width)?;
    let within = hashing::within(hashed, base, max);
    Ok(Value::Scalar(within.zext_to(result, code.cx.ir.program())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first verification vector of receive side scaling: 66.9.149.187:2794 to 161.142.100.80:1766.
    #[test]
    fn the_known_toeplitz_hash() {
        let data =
            [66, 9, 149, 187, 161, 142, 100, 80, 2794u16.to_be_bytes()[0], 2794u16.to_be_bytes()[1], 6, 230];
        let bits = data.iter().flat_map(|byte: &u8| (0..8).rev().map(move |i| byte >> i & 1));
        let hash = bits.zip(0..).filter(|(bit, _)| *bit == 1).fold(0, |hash, (_, at)| hash ^ window(at));
        assert_eq!(hash, 0x51cc_c178);
    }
}
