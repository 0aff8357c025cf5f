//! Accounts next to an oracle in exact fractions, and cases by hand.

use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn config(bag_ns: u64, jitter_ns: u64, smax: u32, test: AccountTest) -> AccountConfig {
    AccountConfig::new(bag_ns, jitter_ns, smax, test).unwrap()
}

/// A fraction in lowest terms, exact: nothing here comes near 2^127.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fraction {
    over: i128,
    under: i128,
}

impl Fraction {
    fn new(over: i128, under: i128) -> Fraction {
        let (mut a, mut b) = (over.unsigned_abs(), under.unsigned_abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let common = (a as i128).max(1);
        Fraction { over: over / common, under: under / common }
    }

    fn of(value: u64) -> Fraction {
        Fraction::new(value.into(), 1)
    }

    fn plus(self, other: Fraction) -> Fraction {
        Fraction::new(self.over * other.under + other.over * self.under, self.under * other.under)
    }

    fn minus(self, other: Fraction) -> Fraction {
        self.plus(Fraction { over: -other.over, ..other })
    }

    fn times(self, other: Fraction) -> Fraction {
        Fraction::new(self.over * other.over, self.under * other.under)
    }

    fn divided_by(self, other: Fraction) -> Fraction {
        Fraction::new(self.over * other.under, self.under * other.over)
    }

    fn is_at_least(self, other: Fraction) -> bool {
        self.over * other.under >= other.over * self.under
    }
}

/// The definition, word for word, with bytes as fractions.
struct Oracle {
    rate: Fraction,
    full: Fraction,
    smax: Fraction,
    test: AccountTest,
    credits: [Fraction; 2],
    last_ns: u64,
}

impl Oracle {
    fn new(config: AccountConfig) -> Oracle {
        let [smax, bag, jitter] =
            [config.smax().into(), config.bag_ns(), config.jitter_ns()].map(Fraction::of);
        let full = smax.times(Fraction::of(1).plus(jitter.divided_by(bag)));
        Oracle { rate: smax.divided_by(bag), full, smax, test: config.test(), credits: [full; 2], last_ns: 0 }
    }

    fn admit(&mut self, now_ns: u64, bytes: u64) -> bool {
        if now_ns > self.last_ns {
            let gain = self.rate.times(Fraction::of(now_ns - self.last_ns));
            for credit in &mut self.credits {
                *credit = credit.plus(gain);
                if credit.is_at_least(self.full) {
                    *credit = self.full;
                }
            }
            self.last_ns = now_ns;
        }
        let (none, bytes) = (Fraction::of(0), Fraction::of(bytes));
        let costs = match self.test {
            AccountTest::Bytes => [bytes, none],
            AccountTest::Frames => [none, self.smax],
            AccountTest::Both => [bytes, self.smax],
        };
        let passes = (0..2).all(|at| self.credits[at].is_at_least(costs[at]));
        if passes {
            self.credits = [0, 1].map(|at| self.credits[at].minus(costs[at]));
        }
        passes
    }
}

/// SplitMix64.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// 200 VLs of any parameters, together a million frames: each is decided as the oracle does.
#[test]
fn a_million_frames_are_decided_as_by_exact_fractions() {
    let frames = if cfg!(miri) { 500 } else { 1_000_000 };
    let mut numbers = Numbers(664);
    let vl = |numbers: &mut Numbers| {
        // BAGs that divide nothing, too: 10 us to 1310 ms, each magnitude alike.
        let scale = 1 << numbers.below(17);
        let bag_ns = (MIN_BAG_NS + numbers.below(10_000)).saturating_mul(scale).min(MAX_BAG_NS);
        let jitter_ns = numbers.below(2 * bag_ns);
        let smax = 64 + numbers.below(1455) as u32;
        let test = AccountTest::ALL[numbers.below(3) as usize];
        config(bag_ns, jitter_ns, smax, test)
    };
    let configs: Vec<AccountConfig> = (0..200).map(|_| vl(&mut numbers)).collect();
    let mut accounts: Vec<Account> = configs.iter().copied().map(Account::new).collect();
    let mut oracles: Vec<Oracle> = configs.iter().copied().map(Oracle::new).collect();
    let mut times = vec![0u64; 200];
    let mut passed = 0u64;
    for frame in 0..frames {
        let vl = numbers.below(200) as usize;
        let config = configs[vl];
        // On the average somewhat faster than allowed; now and then a long pause, the past, or a frame of another length.
        let step = match numbers.below(50) {
            0 => 3 * (config.bag_ns() + config.jitter_ns()),
            1 => 0,
            _ => numbers.below(2 * config.bag_ns()),
        };
        times[vl] += step;
        let now_ns = if numbers.below(100) == 0 { times[vl].saturating_sub(1000) } else { times[vl] };
        let bytes = match numbers.below(10) {
            0 => numbers.below(3000),
            _ => u64::from(config.smax()) - numbers.below(u64::from(config.smax()) / 2),
        };
        let expected = oracles[vl].admit(now_ns, bytes);
        assert_eq!(
            accounts[vl].admit(now_ns, bytes),
            expected,
            "frame {frame}, {config:?}, {bytes} bytes at {now_ns}"
        );
        passed += u64::from(expected);
    }
    assert!(passed > frames / 10 && passed < frames - frames / 10, "{passed} of {frames} passed");
}

/// Full frames of a VL, the n-th between n BAG and n BAG + J: however late each of them is, all pass.
#[test]
fn legal_traffic_at_full_jitter_loses_nothing_and_a_byte_above_is_refused() {
    let mut numbers = Numbers(7);
    for test in AccountTest::ALL {
        for _ in 0..50 {
            let (bag_ns, smax) = (MIN_BAG_NS + numbers.below(20 * MS), 64 + numbers.below(1455) as u32);
            let config = config(bag_ns, numbers.below(4 * bag_ns), smax, test);
            let mut account = Account::new(config);
            let mut last_ns = 0;
            for n in 0..1000u64 {
                // Frames of a VL stay in order. Half of them have the whole jitter, or none.
                let late_ns = match numbers.below(4) {
                    0 => 0,
                    1 => config.jitter_ns(),
                    _ => numbers.below(config.jitter_ns() + 1),
                };
                last_ns = last_ns.max(n * bag_ns + late_ns);
                assert!(account.admit(last_ns, smax.into()), "{config:?}, frame {n}");
            }
        }
    }
    // The first frame late by all of the jitter, the others as early as they may: the last frame of the burst empties the account.
    let bytes = |last| {
        let mut account = Account::new(config(MS, 3 * MS, 500, AccountTest::Bytes));
        assert!([0; 3].iter().all(|_| account.admit(3 * MS, 500)));
        account.admit(3 * MS, last)
    };
    assert_eq!([bytes(500), bytes(501)], [true, false]);
}

/// Smax 200, BAG 2 ms, J 0.5 ms: 250 bytes at most, 100 bytes in a millisecond.
#[test]
fn by_hand() {
    let account = |test| Account::new(config(2 * MS, MS / 2, 200, test));
    let mut by_bytes = account(AccountTest::Bytes);
    assert!(by_bytes.admit(0, 100)); // 150
    assert!(by_bytes.admit(0, 150)); // 0
    assert!(!by_bytes.admit(MS - 1, 100)); // 99.9999
    assert!(by_bytes.admit(MS, 100)); // 0
    assert!(!by_bytes.admit(MS, 1));
    assert!(by_bytes.admit(MS, 0), "nothing costs nothing");
    assert!(!by_bytes.admit(100 * MS, 251));
    assert!(by_bytes.admit(100 * MS, 250)); // 0
    assert_eq!(by_bytes.credit_bytes()[0], 0);

    let mut by_frames = account(AccountTest::Frames);
    assert!(by_frames.admit(0, 64)); // 50
    assert!(!by_frames.admit(3 * MS / 2 - 1, 64)); // 199.9999
    assert!(by_frames.admit(3 * MS / 2, 64)); // 0
    assert!(by_frames.admit(7 * MS / 2, 1500), "its length does not count"); // 0

    // By bytes it could have two of 100 at once, by frames one.
    let mut both = account(AccountTest::Both);
    assert!(both.admit(0, 100)); // 150, 50
    assert!(!both.admit(MS, 100)); // 250, 150
    assert!(!both.admit(2 * MS, 251)); // 250, 250
    assert!(both.admit(2 * MS, 250)); // 0, 50
    assert_eq!(both.credit_bytes(), [0, 50]);
}

#[test]
fn time_that_runs_backwards_stands_still_and_years_do_not_overflow() {
    let largest = config(MAX_BAG_NS, MAX_JITTER_NS, MAX_FRAME, AccountTest::Both);
    let mut account = Account::new(largest);
    assert!(account.admit(u64::MAX, MAX_FRAME.into()));
    assert!(!account.admit(u64::MAX, u64::MAX));
    let mut account = Account::new(config(MIN_BAG_NS, 0, 64, AccountTest::Bytes));
    assert!(account.admit(u64::MAX - MIN_BAG_NS, 64));
    assert!(!account.admit(0, 64));
    assert!(!account.admit(u64::MAX - 1, 64));
    assert!(account.admit(u64::MAX, 64));
}

#[test]
fn limits_are_named() {
    let refused = |bag_ns, jitter_ns, smax| {
        AccountConfig::new(bag_ns, jitter_ns, smax, AccountTest::Bytes).unwrap_err().to_string()
    };
    assert_eq!(refused(9_999, 0, 64), "a BAG of 9999 ns is outside of the limits, 10000 to 1310000000 ns");
    assert!(refused(MAX_BAG_NS + 1, 0, 64).contains("1310000001 ns"));
    assert_eq!(
        refused(MS, MAX_JITTER_NS + 1, 64),
        "a jitter of 10000000001 ns is above the limit, 10000000000 ns"
    );
    assert_eq!(refused(MS, 0, 0), "an Smax of 0 bytes is outside of the limits, 1 to 65535 bytes");
    assert_eq!(refused(MS, 0, 65_536), "an Smax of 65536 bytes is outside of the limits, 1 to 65535 bytes");
    assert!(
        [MIN_BAG_NS, MAX_BAG_NS].iter().all(|bag| AccountConfig::new(*bag, 0, 64, AccountTest::Both).is_ok())
    );
    for test in AccountTest::ALL {
        assert_eq!(AccountTest::named(test.name()), Some(test));
    }
    assert_eq!(AccountTest::named("byte"), None);
}

proptest! {
    #[test]
    fn any_frames_are_decided_as_by_exact_fractions(
        bag_ns in MIN_BAG_NS..=MAX_BAG_NS,
        jitter_ns in 0..=MAX_JITTER_NS,
        smax in 1..=MAX_FRAME,
        test in 0..3usize,
        frames in prop::collection::vec((any::<u64>(), any::<bool>(), 0..70_000u64), 1..60),
    ) {
        let config = config(bag_ns, jitter_ns, smax, AccountTest::ALL[test]);
        let (mut account, mut oracle) = (Account::new(config), Oracle::new(config));
        let mut now_ns = 0u64;
        for (step, is_near, bytes) in frames {
            now_ns = if is_near { now_ns.saturating_add(step % (2 * bag_ns)) } else { step };
            prop_assert_eq!(account.admit(now_ns, bytes), oracle.admit(now_ns, bytes));
        }
    }
}
