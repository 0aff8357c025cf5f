//! The clock of a network card.

use rustix::time::{DynamicClockId, Timespec, clock_gettime_dynamic};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// A PTP hardware clock by its device file (`/dev/ptpN`), which counts from anywhere and drifts.
#[derive(Debug)]
pub struct HardwareClock(File);

impl HardwareClock {
    /// The clock of a device file, which can be read.
    ///
    /// # Errors
    /// There is no such file, or it is no clock.
    pub fn open(path: &Path) -> io::Result<HardwareClock> {
        let clock = HardwareClock(File::open(path)?);
        clock.read_ns()?;
        Ok(clock)
    }

    /// Nanoseconds of its own count.
    ///
    /// # Errors
    /// The clock is gone.
    pub fn read_ns(&self) -> io::Result<i64> {
        let Timespec { tv_sec, tv_nsec } = clock_gettime_dynamic(DynamicClockId::Dynamic(self.0.as_fd()))?;
        Ok(tv_sec.saturating_mul(1_000_000_000).saturating_add(tv_nsec))
    }
}
