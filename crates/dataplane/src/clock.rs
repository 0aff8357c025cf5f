//! The one clock of a switch.

use millrace_drivers::{HardwareClock, wall_clock_ns};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

/// Where time comes from, in nanoseconds. It is read once a batch, for when packets pass; when each came is told by its port.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's monotonic clock, from the start of the switch on.
    Real(Instant),
    /// Another clock, which somebody may set, as far as it goes on.
    Followed(Arc<Followed>),
    /// The time that somebody set last: a test, or a port that replays a capture. It never goes back.
    Simulated(u64),
}

impl Clock {
    /// The machine's clock, 0 now.
    pub fn real() -> Clock {
        Clock::Real(Instant::now())
    }

    /// A clock that stands at 0 until it is moved.
    pub fn simulated() -> Clock {
        Clock::Simulated(0)
    }

    /// The clock of this description.
    ///
    /// # Errors
    /// [`ClockError`].
    pub fn open(spec: &ClockSpec) -> Result<Clock, ClockError> {
        let source = match spec {
            ClockSpec::Monotonic => return Ok(Clock::real()),
            ClockSpec::System => Source::System,
            ClockSpec::Ptp(path) => Source::open(path)?,
        };
        Ok(Clock::Followed(Arc::new(Followed::new(source))))
    }

    /// The time now.
    pub fn now_ns(&self) -> u64 {
        match self {
            Clock::Real(start) => u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX),
            Clock::Followed(followed) => followed.now_ns(),
            Clock::Simulated(now) => *now,
        }
    }

    /// Whether it goes on by itself.
    pub(crate) fn is_real(&self) -> bool {
        !matches!(self, Clock::Simulated(_))
    }

    /// Moves a simulated clock forward to that time; an earlier time and a real clock stay as they are.
    pub fn advance_to(&mut self, ns: u64) {
        if let Clock::Simulated(now) = self {
            *now = ns.max(*now);
        }
    }
}

/// A clock by its description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClockSpec {
    /// The machine's monotonic clock; 0 is the start of the switch.
    #[default]
    Monotonic,
    /// The machine's wall clock, in nanoseconds since 1970.
    System,
    /// A PTP hardware clock, in nanoseconds of its own count: its device file.
    Ptp(PathBuf),
}

impl FromStr for ClockSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<ClockSpec, String> {
        match (text, text.strip_prefix("ptp:")) {
            ("monotonic", _) => Ok(ClockSpec::Monotonic),
            ("system", _) => Ok(ClockSpec::System),
            (_, Some(path)) if !path.is_empty() => Ok(ClockSpec::Ptp(path.into())),
            _ => Err("a clock is `monotonic`, `system` or `ptp:DEVICE`, as in `ptp:/dev/ptp0`".to_owned()),
        }
    }
}

impl fmt::Display for ClockSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClockSpec::Monotonic => f.write_str("monotonic"),
            ClockSpec::System => f.write_str("system"),
            ClockSpec::Ptp(path) => write!(f, "ptp:{}", path.display()),
        }
    }
}

/// Why a PTP hardware clock cannot be read.
#[derive(Debug)]
pub struct ClockError {
    path: PathBuf,
    why: io::Error,
    /// The device files of such clocks on this machine.
    known: Vec<String>,
}

impl fmt::Display for ClockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read the PTP hardware clock {}: ", self.path.display())?;
        match self.why.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            Some(rustix::io::Errno::INVAL | rustix::io::Errno::NOTTY) => {
                f.write_str("it is no such clock")?
            }
            _ => self.why.fmt(f)?,
        }
        match self.known.as_slice() {
            [] => f.write_str("; this machine has none"),
            known => write!(f, "; this machine has {}", known.join(", ")),
        }
    }
}

impl std::error::Error for ClockError {}

/// A clock that somebody may set.
#[derive(Debug)]
enum Source {
    System,
    Ptp(HardwareClock),
}

impl Source {
    fn open(path: &Path) -> Result<Source, ClockError> {
        let refused = |why| ClockError { path: path.to_owned(), why, known: ptp_clocks() };
        HardwareClock::open(path).map(Source::Ptp).map_err(refused)
    }

    /// Nanoseconds by its own count.
    fn read(&self) -> io::Result<i64> {
        match self {
            Source::System => Ok(i64::try_from(wall_clock_ns()).unwrap_or(i64::MAX)),
            Source::Ptp(clock) => clock.read_ns(),
        }
    }
}

/// The device files of PTP hardware clocks.
fn ptp_clocks() -> Vec<String> {
    let names = fs::read_dir("/dev").into_iter().flatten().flatten();
    let mut known: Vec<String> = names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.strip_prefix("ptp").is_some_and(|rest| rest.parse::<u32>().is_ok()))
        .map(|name| format!("/dev/{name}"))
        .collect();
    known.sort();
    known
}

/// How often a followed clock is read, in nanoseconds. In between the machine's monotonic clock goes on: reading a PTP hardware clock
/// takes microseconds, and crystals drift by less than a hundred nanoseconds in that time.
const LOOK_EVERY_NS: u64 = 1_000_000;
/// A reading that took longer tells a clock to half of that at best: the system may have run something else in the middle of it.
const NARROW_NS: i64 = 5_000;
/// How often it is read again then.
const READINGS: u32 = 3;

/// A clock that follows another one and never goes back. Where the other one is set back, this one runs at half its speed until
/// they meet; where it is set forward, this one follows at once. All workers of a switch have the same.
#[derive(Debug)]
pub struct Followed {
    source: Source,
    start: Instant,
    /// By how much it is ahead of the monotonic clock since `start`.
    ahead_ns: AtomicI64,
    /// When it is to be read again, since `start`.
    look_ns: AtomicU64,
    /// The latest time that was told.
    told_ns: AtomicU64,
}

impl Followed {
    fn new(source: Source) -> Followed {
        let followed = Followed {
            source,
            start: Instant::now(),
            ahead_ns: AtomicI64::new(0),
            look_ns: AtomicU64::new(LOOK_EVERY_NS),
            told_ns: AtomicU64::new(0),
        };
        if let Some((least, most)) = followed.measure() {
            followed.ahead_ns.store(least + (most - least) / 2, Ordering::Relaxed);
        }
        followed
    }

    fn elapsed_ns(&self) -> i64 {
        i64::try_from(self.start.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    fn now_ns(&self) -> u64 {
        let elapsed = self.elapsed_ns();
        let due = self.look_ns.load(Ordering::Relaxed);
        let next = elapsed.unsigned_abs() + LOOK_EVERY_NS;
        // One of the workers that find it due reads it.
        if elapsed.unsigned_abs() >= due
            && self.look_ns.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            && let Some(between) = self.measure()
        {
            let ahead = self.ahead_ns.load(Ordering::Relaxed);
            self.ahead_ns.store(slewed(ahead, wanted(ahead, between)), Ordering::Relaxed);
        }
        let now = elapsed.saturating_add(self.ahead_ns.load(Ordering::Relaxed));
        let now = u64::try_from(now).unwrap_or(0);
        self.told_ns.fetch_max(now, Ordering::Relaxed).max(now)
    }

    /// By how much the source is ahead at least and at most; none when it cannot be read any more: then time goes on as it did.
    fn measure(&self) -> Option<(i64, i64)> {
        let mut best: Option<(i64, i64)> = None;
        for _ in 0..READINGS {
            let before = self.elapsed_ns();
            let read = self.source.read().ok()?;
            let (least, most) = (read.saturating_sub(self.elapsed_ns()), read.saturating_sub(before));
            if best.is_none_or(|(known_least, known_most)| most - least < known_most - known_least) {
                best = Some((least, most));
            }
            if most - least <= NARROW_NS {
                break;
            }
        }
        best
    }
}

/// By how much to be ahead, from what a reading tells. One that tells little changes nothing that it does not contradict: with the middle
/// of it, frames would leave before their gates open.
fn wanted(ahead_ns: i64, (least, most): (i64, i64)) -> i64 {
    match most - least <= NARROW_NS {
        true => least + (most - least) / 2,
        false => ahead_ns.clamp(least, most),
    }
}

/// How far to be ahead from now on.
fn slewed(ahead_ns: i64, wanted_ns: i64) -> i64 {
    wanted_ns.max(ahead_ns.saturating_sub((LOOK_EVERY_NS / 2) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn clocks_are_written_as_they_are_read() {
        for text in ["monotonic", "system", "ptp:/dev/ptp0"] {
            assert_eq!(text.parse::<ClockSpec>().unwrap().to_string(), text);
        }
        assert_eq!("ptp:/dev/ptp3".parse(), Ok(ClockSpec::Ptp("/dev/ptp3".into())));
        for text in ["", "ptp", "ptp:", "System", "tai"] {
            let error = text.parse::<ClockSpec>().unwrap_err();
            assert!(error.contains("`monotonic`, `system` or `ptp:DEVICE`"), "{text}");
        }
    }

    #[test]
    fn a_clock_that_is_not_there_is_refused_with_the_reason() {
        let refused = |path: &str| Clock::open(&ClockSpec::Ptp(path.into())).unwrap_err().to_string();
        let known = match ptp_clocks() {
            known if known.is_empty() => "this machine has none".to_owned(),
            known => format!("this machine has {}", known.join(", ")),
        };
        let missing = refused("/dev/ptp4294967296");
        assert!(missing.starts_with("cannot read the PTP hardware clock /dev/ptp4294967296: No such file"));
        assert!(missing.ends_with(&known), "{missing}");
        let other = "cannot read the PTP hardware clock /dev/null: it is no such clock; ";
        assert_eq!(refused("/dev/null"), format!("{other}{known}"));
    }

    /// Where the machine has one.
    #[test]
    fn a_ptp_hardware_clock_is_followed() {
        for path in ptp_clocks() {
            let Ok(clock) = Clock::open(&ClockSpec::Ptp(path.into())) else { continue };
            let first = clock.now_ns();
            std::thread::sleep(Duration::from_millis(5));
            assert!(clock.now_ns() - first >= 4_000_000);
        }
    }

    #[test]
    fn the_system_clock_is_followed_and_never_goes_back() {
        let clock = Clock::open(&ClockSpec::System).unwrap();
        let wall = || Source::System.read().unwrap().unsigned_abs();
        assert!(clock.now_ns().abs_diff(wall()) < 100_000_000);
        let Clock::Followed(followed) = &clock else { panic!("{clock:?}") };
        // It was set back by a tenth of a second.
        followed.ahead_ns.fetch_add(100_000_000, Ordering::Relaxed);
        let mut last = clock.now_ns();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(50) {
            let now = clock.now_ns();
            assert!(now >= last);
            last = now;
        }
        let ahead = last.saturating_sub(wall());
        assert!(ahead < 100_000_000 && ahead > 10_000_000, "{ahead}");
    }

    #[test]
    fn it_slows_down_to_wait_and_jumps_to_follow() {
        assert_eq!(slewed(10_000_000, 9_900_000), 9_900_000);
        assert_eq!(slewed(10_000_000, 0), 9_500_000);
        assert_eq!(slewed(10_000_000, 3_600_000_000_000), 3_600_000_000_000);
    }

    /// The system has run something else for 3 ms while the clock was read.
    #[test]
    fn a_reading_that_tells_little_moves_it_no_further_than_it_must() {
        assert_eq!(wanted(7_000, (6_000, 3_006_000)), 7_000);
        assert_eq!(wanted(7_000, (8_000, 3_008_000)), 8_000);
        assert_eq!(wanted(7_000, (-3_000_000, 5_000)), 5_000);
        assert_eq!(wanted(7_000, (9_000, 9_100)), 9_050);
    }

    #[test]
    fn a_simulated_clock_moves_only_forward() {
        let mut clock = Clock::simulated();
        clock.advance_to(50);
        clock.advance_to(20);
        assert_eq!(clock.now_ns(), 50);
    }

    #[test]
    fn a_real_clock_is_not_moved() {
        let mut clock = Clock::real();
        clock.advance_to(u64::MAX);
        assert!(clock.now_ns() < u64::MAX / 2);
    }
}
