//! `Checksum` and `InternetChecksum`: what was added so far lives in slots that start as 0 in each run of the block.
//!
//! A CRC goes on from where it was by a property of these codes: the register has the same effect on the rest as bits
//! of the data in its place. So the CRC so far is added to the first bits of the new data, and their hash is the CRC of
//! everything.

use millrace_pipeline::{BinaryOp, DataItem, Expr, HashAlgorithm, SlotId, Type, UnaryOp};
use millrace_sema::hir::{self, Call};

use super::hash;
use crate::arch::hashing;
use crate::code::Code;
use crate::context::Lowering;
use crate::fail::{Lower, code as kind, fail, internal};
use crate::value::Value;

/// The bits that `IDENTITY` keeps.
const IDENTITY_BITS: u32 = 64;

/// A checksum under construction.
#[derive(Clone, Debug)]
pub(crate) struct Checksum {
    algorithm: HashAlgorithm,
    /// The one's complement sum, the CRC, or the first bits of the data.
    state: SlotId,
    /// How many bits `IDENTITY` has.
    bits: Option<SlotId>,
}

impl Checksum {
    /// A new one, empty.
    pub(super) fn new(cx: &mut Lowering<'_>, path: &str, algorithm: HashAlgorithm) -> Checksum {
        let state = cx.ir.local(&format!("{path}.state"), Type::Bits(algorithm.width()));
        let bits = (algorithm == HashAlgorithm::Identity)
            .then(|| cx.ir.local(&format!("{path}.bits"), Type::Bits(32)));
        Checksum { algorithm, state, bits }
    }

    /// A call of a method.
    pub(super) fn call<'a>(
        &self,
        code: &mut Code<'_, 'a>,
        method: &str,
        args: &[Option<&'a hir::Expr>],
        call: &'a Call,
    ) -> Lower<Value> {
        let width = self.algorithm.width();
        match (method, args) {
            ("clear", []) => {
                code.assign(self.state, Expr::bits(width, 0));
                if let Some(bits) = self.bits {
                    code.assign(bits, Expr::bits(32, 0));
                }
            }
            ("update" | "add", [Some(data)]) => {
                let items = hashing::items_of(code, data)?;
                match self.algorithm {
                    HashAlgorithm::Csum16 => self.add(code, items),
                    _ => self.append(code, items, data)?,
                }
            }
            ("subtract", [Some(data)]) => {
                let items = hashing::items_of(code, data)?;
                self.subtract(code, items);
            }
            ("get", []) => {
                let state = match self.algorithm {
                    HashAlgorithm::Csum16 => Expr::unary(UnaryOp::BitNot, Expr::Read(self.state)),
                    _ => Expr::Read(self.state),
                };
                let result = state.zext_to(code.width(call.ty), code.cx.ir.program());
                return Ok(Value::Scalar(code.in_temp(result)));
            }
            ("get_state", []) => return Ok(Value::Scalar(code.in_temp(Expr::Read(self.state)))),
            ("set_state", [Some(state)]) => {
                let state = code.scalar(state)?;
                code.assign(self.state, state);
            }
            _ => return fail(kind::ARCHITECTURE, call.span, format!("a checksum has no method `{method}`")),
        }
        Ok(Value::Unit)
    }

    /// Adds data to a one's complement sum.
    fn add(&self, code: &mut Code<'_, '_>, items: Vec<DataItem>) {
        let sum = hashing::hash(code, HashAlgorithm::OnesComplementSum, items, 16);
        let sum = ones_complement_add(code, Expr::Read(self.state), sum);
        code.assign(self.state, sum);
    }

    /// Takes data out of a one's complement sum: adds the complement of each word.
    fn subtract(&self, code: &mut Code<'_, '_>, items: Vec<DataItem>) {
        let program = code.cx.ir.program();
        let mut values = Vec::new();
        for item in items {
            match item {
                DataItem::Header(header) => {
                    values.extend(program.headers[header].fields.iter().copied().map(Expr::Read));
                }
                DataItem::Value(value) => values.push(value),
                DataItem::Payload => {}
            }
        }
        let complement = |value: &Expr| match code.type_of(value) {
            Type::Bits(_) => Some(Expr::unary(UnaryOp::BitNot, value.clone())),
            Type::Bool => Some(value.clone().not().bool_to_bits()),
            Type::Varbit(_) => None,
        };
        let complements: Option<Vec<Expr>> = values.iter().map(complement).collect();
        let sum = match complements {
            Some(mut complements) => {
                let bits: u32 = complements.iter().filter_map(|v| code.type_of(v).bits()).sum();
                if !bits.is_multiple_of(16) {
                    complements.push(Expr::Const(millrace_pipeline::Bits::ones(16 - bits % 16)));
                }
                let items = complements.into_iter().map(DataItem::Value).collect();
                hashing::hash(code, HashAlgorithm::OnesComplementSum, items, 16)
            }
            // The complement of the sum is as good: it differs where the sum is 0 only, which has two forms.
            None => {
                let items = values.into_iter().map(DataItem::Value).collect();
                hashing::hash(code, HashAlgorithm::Csum16, items, 16)
            }
        };
        let sum = ones_complement_add(code, Expr::Read(self.state), sum);
        code.assign(self.state, sum);
    }

    /// Appends data to what a CRC or `IDENTITY` has. A header counts when it is valid.
    fn append(&self, code: &mut Code<'_, '_>, items: Vec<DataItem>, data: &hir::Expr) -> Lower<()> {
        let mut items = items.into_iter().peekable();
        while let Some(first) = items.next() {
            if let DataItem::Header(header) = first {
                let (_, join) = code.branch(Expr::IsValid(header));
                let values = hash::values(code, vec![first], data)?;
                self.append_values(code, values, data)?;
                code.continue_at(join);
                continue;
            }
            let mut run = vec![first];
            while let Some(more) = items.next_if(|i| !matches!(i, DataItem::Header(_))) {
                run.push(more);
            }
            let values = hash::values(code, run, data)?;
            self.append_values(code, values, data)?;
        }
        Ok(())
    }

    fn append_values(&self, code: &mut Code<'_, '_>, values: Vec<Expr>, data: &hir::Expr) -> Lower<()> {
        let Some(mut joined) = values.into_iter().reduce(Expr::concat) else { return Ok(()) };
        let width = code.type_of(&joined).bits().unwrap_or(0);
        let missing = width.next_multiple_of(8) - width;
        if missing > 0 {
            joined = joined.concat(Expr::bits(missing, 0));
        }
        let bits = width + missing;
        if bits > millrace_pipeline::limits::MAX_WIDTH {
            return fail(kind::LIMIT, data.span, "these are too many data for one call");
        }
        match (self.algorithm, self.bits) {
            (HashAlgorithm::Identity, Some(count)) => self.append_identity(code, joined, bits, count),
            (HashAlgorithm::Identity, None) => return internal(data.span, "a checksum without a length"),
            _ => self.append_crc(code, joined, bits),
        }
        Ok(())
    }

    fn append_crc(&self, code: &mut Code<'_, '_>, data: Expr, bits: u32) {
        let width = self.algorithm.width();
        let program = code.cx.ir.program();
        let state = || Expr::Read(self.state);
        // These codes are reflected: the low byte of the register meets the first byte of the data.
        let bytes = (0..width / 8).map(|i| state().slice(8 * i + 7, 8 * i, program));
        let swapped = bytes.reduce(Expr::concat).unwrap_or_else(state);
        let (met, rest) = if bits < width {
            let rest = Expr::binary(BinaryOp::Shr, state(), Expr::bits(32, u128::from(bits)));
            (swapped.slice(width - 1, width - bits, program), Some(rest))
        } else if bits > width {
            (swapped.concat(Expr::bits(bits - width, 0)), None)
        } else {
            (swapped, None)
        };
        let data = Expr::binary(BinaryOp::Xor, data, met);
        let hash = hashing::hash(code, self.algorithm, vec![DataItem::Value(data)], width);
        let hash = match rest {
            Some(rest) => Expr::binary(BinaryOp::Xor, hash, rest),
            None => hash,
        };
        code.assign(self.state, hash);
    }

    /// Keeps the first bits of all data, as one number.
    fn append_identity(&self, code: &mut Code<'_, '_>, data: Expr, bits: u32, count: SlotId) {
        let program = code.cx.ir.program();
        let joined = Expr::Read(self.state).concat(data);
        let width = IDENTITY_BITS + bits;
        let wanted = Expr::Read(count).add(Expr::bits(32, u128::from(bits)));
        let full = Expr::bits(32, u128::from(IDENTITY_BITS));
        let excess = Expr::binary(BinaryOp::SubSat, wanted.clone(), full.clone());
        let kept = Expr::binary(BinaryOp::Shr, joined, excess).slice(IDENTITY_BITS - 1, 0, program);
        debug_assert!(width > IDENTITY_BITS);
        code.assign(self.state, kept);
        let count_now = Expr::mux(wanted.clone().lt(full.clone()), wanted, full);
        code.assign(count, count_now);
    }
}

/// The one's complement sum of two numbers of 16 bits.
pub(crate) fn ones_complement_add(code: &mut Code<'_, '_>, x: Expr, y: Expr) -> Expr {
    let program = code.cx.ir.program();
    let sum = x.zext_to(17, program).add(y.zext_to(17, program));
    let sum = code.in_temp(sum);
    let program = code.cx.ir.program();
    let carry = sum.clone().slice(16, 16, program).zext_to(16, program);
    sum.slice(15, 0, program).add(carry)
}
