//! Credit accounts: the traffic policing of ARINC 664 part 7 (AFDX), in exact integers.
//!
//! A virtual link (VL) may send a frame each bandwidth allocation gap (BAG), and its frames may be late by a jitter J. Its account
//! starts full with a credit of Smax (1 + J / BAG) bytes and grows by Smax / BAG bytes per nanosecond up to that. A frame passes when
//! the account holds its cost, which is then taken: its length (test by bytes), or Smax for a frame of any length (test by frames).
//! With both tests there are two credits, and a frame passes when both hold its cost; one that is refused takes nothing of either.
//!
//! Nothing is rounded: a credit is kept in units of 1 / BAG byte. In these it grows by exactly Smax per nanosecond, Smax (BAG + J) is full,
//! and n bytes cost n BAG. All of this fits 64 bits: the largest credit is
//! [`MAX_FRAME`] * ([`MAX_BAG_NS`] + [`MAX_JITTER_NS`]) < 2^16 * 2^34 = 2^50, and a cost is compared in 128 bits, so that a frame of any
//! length has one. Growth is only computed for a time that does not fill the account anyway, so an account that was idle for
//! years cannot overflow.
//!
//! ```
//! use millrace_tables::{Account, AccountConfig, AccountTest};
//!
//! // A frame of up to 200 bytes each 2 ms, late by 0.5 ms at most: the account holds 250 bytes.
//! let mut account = Account::new(AccountConfig::new(2_000_000, 500_000, 200, AccountTest::Bytes).unwrap());
//! assert!(account.admit(0, 200));
//! // 50 bytes are left, 1.5 ms bring 150.
//! assert!(!account.admit(1_499_999, 200));
//! assert!(account.admit(1_500_000, 200));
//! ```

use crate::error::AccountError;

/// The shortest BAG, in nanoseconds: 10 us. (ARINC 664 has 1, 2, 4 ... 128 ms; switches are configured from 0.5 ms on.)
pub const MIN_BAG_NS: u64 = 10_000;

/// The longest BAG, in nanoseconds: 1310 ms.
pub const MAX_BAG_NS: u64 = 1_310_000_000;

/// The largest jitter, in nanoseconds: 10 s.
pub const MAX_JITTER_NS: u64 = 10_000_000_000;

/// The largest Smax, in bytes.
pub const MAX_FRAME: u32 = 65_535;

/// What a frame must find in its account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AccountTest {
    /// Its length.
    #[default]
    Bytes = 0,
    /// Smax, however long it is.
    Frames = 1,
    /// Each of the two, in a credit of its own.
    Both = 2,
}

impl AccountTest {
    /// All of them, by number.
    pub const ALL: [AccountTest; 3] = [AccountTest::Bytes, AccountTest::Frames, AccountTest::Both];

    /// Its name in commands.
    pub fn name(self) -> &'static str {
        match self {
            AccountTest::Bytes => "bytes",
            AccountTest::Frames => "frames",
            AccountTest::Both => "both",
        }
    }

    /// The test of a name.
    pub fn named(name: &str) -> Option<AccountTest> {
        AccountTest::ALL.into_iter().find(|test| test.name() == name)
    }
}

/// The parameters of an account, within their limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountConfig {
    bag_ns: u64,
    jitter_ns: u64,
    smax: u32,
    test: AccountTest,
}

impl AccountConfig {
    /// A frame of up to `smax` bytes each `bag_ns` nanoseconds, late by up to `jitter_ns`.
    ///
    /// # Errors
    /// [`AccountError`] names the limit.
    pub fn new(
        bag_ns: u64,
        jitter_ns: u64,
        smax: u32,
        test: AccountTest,
    ) -> Result<AccountConfig, AccountError> {
        if !(MIN_BAG_NS..=MAX_BAG_NS).contains(&bag_ns) {
            return Err(AccountError::Bag(bag_ns));
        }
        if jitter_ns > MAX_JITTER_NS {
            return Err(AccountError::Jitter(jitter_ns));
        }
        if !(1..=MAX_FRAME).contains(&smax) {
            return Err(AccountError::Smax(smax));
        }
        Ok(AccountConfig { bag_ns, jitter_ns, smax, test })
    }

    /// The bandwidth allocation gap, in nanoseconds.
    pub fn bag_ns(&self) -> u64 {
        self.bag_ns
    }

    /// The jitter, in nanoseconds.
    pub fn jitter_ns(&self) -> u64 {
        self.jitter_ns
    }

    /// The longest frame, in bytes.
    pub fn smax(&self) -> u32 {
        self.smax
    }

    /// What a frame must find.
    pub fn test(&self) -> AccountTest {
        self.test
    }

    /// The time that fills an empty account.
    fn window_ns(&self) -> u64 {
        self.bag_ns + self.jitter_ns
    }

    /// A full credit, in units of 1 / BAG byte.
    fn full(&self) -> u64 {
        u64::from(self.smax) * self.window_ns()
    }

    /// What so many bytes cost, in the same units.
    fn cost(&self, bytes: u64) -> u128 {
        u128::from(bytes) * u128::from(self.bag_ns)
    }
}

/// An account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    config: AccountConfig,
    /// Of the test by bytes and of the test by frames, in units of 1 / BAG byte. What is not tested stays full.
    credits: [u64; 2],
    /// The latest time that a frame came at.
    last_ns: u64,
}

impl Account {
    /// A full account.
    pub fn new(config: AccountConfig) -> Account {
        Account { config, credits: [config.full(); 2], last_ns: 0 }
    }

    /// An account with what [`Account::kept`] gave.
    pub(crate) fn with(config: AccountConfig, credits: [u64; 2], last_ns: u64) -> Account {
        Account { config, credits, last_ns }
    }

    /// Its credits, and the time of its last frame.
    pub(crate) fn kept(&self) -> ([u64; 2], u64) {
        (self.credits, self.last_ns)
    }

    /// Its parameters.
    pub fn config(&self) -> AccountConfig {
        self.config
    }

    /// What the tests by bytes and by frames had after the last frame, in whole bytes, rounded down.
    pub fn credit_bytes(&self) -> [u64; 2] {
        self.credits.map(|credit| credit / self.config.bag_ns)
    }

    /// Whether a frame of so many bytes that comes at `now_ns` passes; its cost is then taken. Time that runs backwards counts as
    /// standing still.
    #[inline]
    pub fn admit(&mut self, now_ns: u64, bytes: u64) -> bool {
        let elapsed_ns = now_ns.saturating_sub(self.last_ns);
        self.last_ns = self.last_ns.max(now_ns);
        let full = self.config.full();
        // Whatever an account holds, this time fills it. A shorter one brings less than a full credit, so the sum is below 2^51.
        let gain = match elapsed_ns < self.config.window_ns() {
            true => u64::from(self.config.smax) * elapsed_ns,
            false => full,
        };
        let [bytes_held, frames_held] = self.credits.map(|credit| (credit + gain).min(full));
        let by_bytes = self.config.cost(bytes);
        let by_frames = self.config.cost(self.config.smax.into());
        let (bytes_cost, frames_cost) = match self.config.test {
            AccountTest::Bytes => (by_bytes, 0),
            AccountTest::Frames => (0, by_frames),
            AccountTest::Both => (by_bytes, by_frames),
        };
        let passes = bytes_cost <= u128::from(bytes_held) && frames_cost <= u128::from(frames_held);
        // A cost that passes is at most a credit, which fits 64 bits.
        self.credits = match passes {
            true => [bytes_held - bytes_cost as u64, frames_held - frames_cost as u64],
            false => [bytes_held, frames_held],
        };
        passes
    }
}

#[cfg(test)]
mod tests;
