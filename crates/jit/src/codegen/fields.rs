//! Bits in memory: header fields in the packet and values in buffers, in network order.
//!
//! A field is read with one access of 1, 2, 4 or 8 bytes where that covers it, which may read up to 7 bytes after it
//! (see [`millrace_frames::TAILROOM`]). What was read is remembered, so that fields of one word share its load.

use super::packet::PacketAccess;
use super::values::{Form, Num};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use millrace_pipeline::HeaderId;

/// What an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Base {
    /// The start of the packet.
    Packet,
    /// Where a header is.
    Header(HeaderId),
    /// Something else; nothing is remembered.
    Other,
}

/// Of accesses that cannot fault, aligned or not.
pub(super) fn plain() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

/// Of loads from memory that nothing changes while a batch runs: they may be done once, before the loop.
pub(super) fn constant_memory() -> MemFlagsData {
    plain().with_readonly().with_can_move()
}

/// The smallest access that covers so many bytes, at most 8.
fn access(bytes: u32) -> u32 {
    bytes.next_power_of_two()
}

/// Accesses of 8, 4, 2 and 1 bytes that cover those from `at` to `end`: where, and how many.
pub(super) fn words(mut at: u32, end: u32) -> impl Iterator<Item = (u32, u32)> {
    std::iter::from_fn(move || {
        let size = [8, 4, 2, 1].into_iter().find(|size| at + size <= end)?;
        at += size;
        Some((at - size, size))
    })
}

impl PacketAccess<'_> {
    /// Bytes in memory order, the first lowest.
    pub(super) fn load_raw(&mut self, base: Base, address: Value, offset: u32, size: u32) -> Value {
        if base != Base::Other
            && let Some(value) = self.cache.loads.get(&(base, offset, size))
        {
            return *value;
        }
        let at = offset as i32;
        let value = match size {
            1 => self.e.ins().uload8(types::I64, plain(), address, at),
            2 => self.e.ins().uload16(types::I64, plain(), address, at),
            4 => self.e.ins().uload32(plain(), address, at),
            _ => self.e.ins().load(types::I64, plain(), address, at),
        };
        if base != Base::Other {
            self.cache.loads.insert((base, offset, size), value);
        }
        self.e.widths.insert(value, 8 * size);
        value
    }

    pub(super) fn store_raw(&mut self, base: Base, address: Value, offset: u32, size: u32, value: Value) {
        let at = offset as i32;
        match size {
            1 => self.e.ins().istore8(plain(), value, address, at),
            2 => self.e.ins().istore16(plain(), value, address, at),
            4 => self.e.ins().istore32(plain(), value, address, at),
            _ => self.e.ins().store(plain(), value, address, at),
        };
        if base != Base::Other {
            self.cache.stored(&mut self.e, base, offset, size, value);
        }
    }

    /// The number in `width` bits from bit `bit` on.
    pub(super) fn load_bits(&mut self, base: Base, address: Value, bit: u32, width: u32) -> Num {
        if width > 64 {
            let limbs = (0..millrace_midend::limbs(width))
                .map(|at| {
                    let below = 64 * at as u32;
                    let bits = (width - below).min(64);
                    let part = self.load_bits(base, address, bit + width - below - bits, bits);
                    self.e.low(&part)
                })
                .collect();
            return Num::limbs(width, limbs);
        }
        let (first, end) = (bit / 8, bit + width);
        let bytes = end.div_ceil(8) - first;
        if bytes > 8 {
            // The high part has 64 bits less what is before it, the low part the rest.
            let low_bits = end - 8 * (first + 8);
            let high = self.load_bits(base, address, bit, width - low_bits);
            let low = self.load_bits(base, address, 8 * (first + 8), low_bits);
            let (high, low) = (self.e.low(&high), self.e.low(&low));
            let high = self.e.shl(high, low_bits);
            return Num::one(width, self.e.ins().bor(high, low));
        }
        let size = access(bytes);
        let raw = self.load_raw(base, address, first, size);
        if bit.is_multiple_of(8) && width == 8 * size && size > 1 {
            return Num { width, form: Form::Swapped(raw) };
        }
        let value = self.e.swap(raw, 8 * size);
        let shifted = self.e.shr(value, 8 * size - (end - 8 * first));
        let cut = if bit.is_multiple_of(8) { shifted } else { self.e.and(shifted, ones(width)) };
        self.e.widths.insert(cut, width);
        Num::one(width, cut)
    }

    /// Writes a number to the bits from `bit` on.
    pub(super) fn store_bits(&mut self, base: Base, address: Value, bit: u32, num: &Num) {
        let width = num.width;
        if width > 64 {
            let limbs = self.e.limbs(num);
            for (at, limb) in limbs.into_iter().enumerate() {
                let below = 64 * at as u32;
                let bits = (width - below).min(64);
                self.store_bits(base, address, bit + width - below - bits, &Num::one(bits, limb));
            }
            return;
        }
        let (first, end) = (bit / 8, bit + width);
        let bytes = end.div_ceil(8) - first;
        if bit.is_multiple_of(8) && width.is_multiple_of(8) {
            return self.store_bytes(base, address, first, num);
        }
        if bytes > 8 {
            let low_bits = end - 8 * (first + 8);
            let limb = self.e.low(num);
            let high = self.e.shr(limb, low_bits);
            let low = self.e.and(limb, ones(low_bits));
            self.store_bits(base, address, bit, &Num::one(width - low_bits, high));
            self.store_bits(base, address, 8 * (first + 8), &Num::one(low_bits, low));
            return;
        }
        let size = access(bytes);
        let shift = 8 * size - (end - 8 * first);
        let raw = self.load_raw(base, address, first, size);
        let old = self.e.swap(raw, 8 * size);
        let kept = self.e.and(old, !(ones(width) << shift));
        let limb = self.e.low(num);
        let new = self.e.shl(limb, shift);
        let merged = self.e.ins().bor(kept, new);
        let swapped = self.e.swap(merged, 8 * size);
        self.store_raw(base, address, first, size, swapped);
    }

    fn store_bytes(&mut self, base: Base, address: Value, first: u32, num: &Num) {
        let bytes = num.width / 8;
        if let Form::Swapped(raw) = num.form {
            return self.store_reversed(base, address, first, bytes, raw);
        }
        let limb = self.e.low(num);
        let raw = self.e.swap(limb, num.width);
        self.store_reversed(base, address, first, bytes, raw);
    }

    /// Writes bytes that are in the reverse order in a limb.
    fn store_reversed(&mut self, base: Base, address: Value, first: u32, bytes: u32, raw: Value) {
        if bytes.is_power_of_two() {
            self.store_raw(base, address, first, bytes, raw);
            if base != Base::Other {
                self.cache.loads.insert((base, first, bytes), raw);
            }
            return;
        }
        let mut done = 0;
        for size in [4, 2, 1] {
            if bytes & size != 0 {
                let part = self.e.shr(raw, 8 * done);
                self.store_raw(base, address, first + done, size, part);
                done += size;
            }
        }
    }
}

/// So many ones, at most 64.
pub(super) fn ones(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}
