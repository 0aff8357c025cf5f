//! Functions in C that p4c ships with its BPF back ends for programs to declare as externs. A program that declares
//! one of them by name gets it here without its C source.
//!
//! | declaration | is |
//! | --- | --- |
//! | `bool verify_ipv4_checksum(in H header)` | whether the one's complement sum of the header is right |
//! | `bit<16> incremental_checksum(in bit<16> sum, in bit<32> old, in bit<32> new)` | as `csum_replace4` |
//! | `bit<16> compute_hash(in bit<32> a, in bit<32> b)` | CRC-16/CCITT-FALSE over seven bytes, see [`compute_hash`] |
//! | `bool tcp_conntrack(in H headers)` | a stateful firewall, see [`super::connections`] |

use millrace_pipeline::{DataItem, Expr, HashAlgorithm};
use millrace_sema::hir::{self, Call};

use super::connections;
use crate::arch::hashing;
use crate::code::Code;
use crate::fail::Lower;

/// A call of one of the functions; none when there is no such function.
pub(super) fn call<'a>(
    code: &mut Code<'_, 'a>,
    name: &str,
    args: &[Option<&'a hir::Expr>],
    call: &'a Call,
) -> Lower<Option<Expr>> {
    Ok(Some(match (name, args) {
        ("verify_ipv4_checksum", [Some(header)]) => {
            let items = hashing::items_of(code, header)?;
            hashing::hash(code, HashAlgorithm::Csum16, items, 16).eq(Expr::bits(16, 0))
        }
        ("compute_hash", [Some(a), Some(b)]) => {
            let (a_value, b_value) = code.two(a, b)?;
            let (a, b) = (code.as_scalar(a_value, a)?, code.as_scalar(b_value, b)?);
            compute_hash(code, a, b)
        }
        ("tcp_conntrack", [Some(headers)]) => connections::track(code, headers, call)?,
        _ => return Ok(None),
    }))
}

/// The C function runs over the numbers as a little-endian machine has them in memory, and stops one byte early.
fn compute_hash(code: &mut Code<'_, '_>, a: Expr, b: Expr) -> Expr {
    let program = code.cx.ir.program();
    let byte =
        |e: &Expr, i: u32| DataItem::Value(e.clone().zext_to(32, program).slice(8 * i + 7, 8 * i, program));
    let bytes = (0..4).map(|i| byte(&a, i)).chain((0..3).map(|i| byte(&b, i))).collect();
    hashing::hash(code, HashAlgorithm::CrcCcitt, bytes, 16)
}
