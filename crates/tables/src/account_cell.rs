//! Accounts of an array: one cache line each, which compiled code works on as it is.
//!
//! A frame that passes touches this line and no other: its account, and how much has passed. Code finds the fields at the offsets
//! of [`AccountCell`]; what it does with them is [`Account::admit`], in 64 bits where its operands fit.

use crate::account::{Account, AccountConfig, AccountTest};
use crate::cell_lock::CellLock;
use crate::counter::CounterValue;
use crate::engines::Cell;
use crate::meter::{Color, Meter, MeterConfig};
use std::cell::UnsafeCell;
use std::mem::offset_of;

/// An account of an array. All zero: no parameters, all frames pass.
#[derive(Default)]
#[repr(C, align(64))]
pub struct AccountCell {
    lock: CellLock,
    kept: UnsafeCell<Kept>,
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Kept {
    /// Bit 0: the test by bytes, bit 1: that by frames. 0: no parameters.
    tests: u16,
    smax: u16,
    bag_ns: u32,
    window_ns: u64,
    credits: [u64; 2],
    last_ns: u64,
    /// That have passed.
    packets: u64,
    bytes: u64,
}

const _: () =
    assert!(size_of::<AccountCell>() == AccountCell::BYTES && crate::account::MAX_FRAME <= u16::MAX as u32);

// SAFETY: integers, valid in every bit pattern; those that are not atomic are reached as `AccountCell::change` says.
unsafe impl Cell for AccountCell {}
// SAFETY: as above.
unsafe impl Sync for AccountCell {}

const KEPT: usize = offset_of!(AccountCell, kept);

impl AccountCell {
    /// Bytes of a cell: cell `n` of an array is `n` times as far from its start.
    pub const BYTES: usize = 64;
    /// Where 16 bits are: bit 0, the account has the test by bytes; bit 1, that by frames; 0, it has no parameters.
    pub const TESTS: usize = KEPT + offset_of!(Kept, tests);
    /// Where the 16 bits of Smax are.
    pub const SMAX: usize = KEPT + offset_of!(Kept, smax);
    /// Where the 32 bits of the BAG are.
    pub const BAG: usize = KEPT + offset_of!(Kept, bag_ns);
    /// Where the 64 bits of the time are that fills an empty account.
    pub const WINDOW: usize = KEPT + offset_of!(Kept, window_ns);
    /// Where the credits by bytes and by frames are, 64 bits each.
    pub const CREDITS: usize = KEPT + offset_of!(Kept, credits);
    /// Where the 64 bits of the time of the latest frame are.
    pub const LAST: usize = KEPT + offset_of!(Kept, last_ns);
    /// Where the frames are counted that have passed, in 64 bits.
    pub const PACKETS: usize = KEPT + offset_of!(Kept, packets);
    /// Where their bytes are counted, in 64 bits.
    pub const COUNTED: usize = KEPT + offset_of!(Kept, bytes);

    /// Asks for a frame, and counts it if it passes. A frame that is red already takes nothing. `is_shared` as in
    /// [`AccountCell::change`].
    ///
    /// # Safety
    /// As of [`AccountCell::change`].
    #[inline]
    pub(crate) unsafe fn execute(&self, is_shared: bool, now_ns: u64, bytes: u64, before: Color) -> Color {
        let execute = |kept: &mut Kept| {
            let passes = match kept.account() {
                None => true,
                Some(_) if before == Color::Red => false,
                Some(mut account) => {
                    let passes = account.admit(now_ns, bytes);
                    (kept.credits, kept.last_ns) = account.kept();
                    passes
                }
            };
            if !passes {
                return Color::Red;
            }
            kept.packets = kept.packets.wrapping_add(1);
            kept.bytes = kept.bytes.wrapping_add(bytes);
            Color::Green
        };
        // SAFETY: the caller promises it.
        unsafe { self.change(is_shared, execute) }
    }

    /// The account as it is now, in the form of a meter.
    pub(crate) fn look(&self) -> Meter {
        let kept = self.read();
        match kept.account() {
            Some(account) => {
                let credits = kept.credits.map(u128::from);
                Meter::with(Some(account.config().into()), credits, kept.last_ns)
            }
            None => Meter::default(),
        }
    }

    /// Becomes what [`AccountCell::look`] gave elsewhere; what was counted stays.
    ///
    /// # Safety
    /// As of [`AccountCell::change`].
    pub(crate) unsafe fn put(&self, is_shared: bool, meter: &Meter) {
        // The page of a cell that was never used stays untouched.
        if meter.config().is_none() && self.read().tests == 0 {
            return;
        }
        let put = |kept: &mut Kept| {
            let counted = (kept.packets, kept.bytes);
            *kept = Kept::of(meter);
            (kept.packets, kept.bytes) = counted;
        };
        // SAFETY: the caller promises it.
        unsafe { self.change(is_shared, put) }
    }

    /// What has passed.
    pub(crate) fn passed(&self) -> CounterValue {
        let Kept { packets, bytes, .. } = self.read();
        CounterValue { packets, bytes }
    }

    /// # Safety
    /// As of [`AccountCell::change`].
    pub(crate) unsafe fn set_passed(&self, is_shared: bool, value: CounterValue) {
        // SAFETY: the caller promises it.
        unsafe { self.change(is_shared, |kept| (kept.packets, kept.bytes) = (value.packets, value.bytes)) }
    }

    fn read(&self) -> Kept {
        let _held = self.lock.hold();
        // SAFETY: the lock is held.
        unsafe { *self.kept.get() }
    }

    /// Changes the account; without the lock where its array was never shared.
    ///
    /// # Safety
    /// The caller has a handle on the array exclusively, and `is_shared` is false only if there was never another handle.
    /// `work` reaches the account by no other path.
    #[inline]
    unsafe fn change<R>(&self, is_shared: bool, work: impl FnOnce(&mut Kept) -> R) -> R {
        let _held = is_shared.then(|| self.lock.hold());
        // SAFETY: the lock is held, or nobody else has a handle and nobody else borrows this one.
        work(unsafe { &mut *self.kept.get() })
    }
}

impl Kept {
    fn of(meter: &Meter) -> Kept {
        let (credits, last_ns) = meter.buckets();
        match meter.config() {
            Some(MeterConfig::Account(config)) => Kept {
                tests: match config.test() {
                    AccountTest::Bytes => 1,
                    AccountTest::Frames => 2,
                    AccountTest::Both => 3,
                },
                // Both are within the limits of accounts, which fit; so are credits.
                smax: config.smax() as u16,
                bag_ns: config.bag_ns() as u32,
                window_ns: config.bag_ns() + config.jitter_ns(),
                credits: credits.map(|credit| credit as u64),
                last_ns,
                ..Kept::default()
            },
            _ => Kept::default(),
        }
    }

    fn account(&self) -> Option<Account> {
        let test = match self.tests {
            1 => AccountTest::Bytes,
            2 => AccountTest::Frames,
            3 => AccountTest::Both,
            _ => return None,
        };
        let bag_ns = u64::from(self.bag_ns);
        let config =
            AccountConfig::new(bag_ns, self.window_ns.saturating_sub(bag_ns), self.smax.into(), test);
        Some(Account::with(config.ok()?, self.credits, self.last_ns))
    }
}
