//! Time stamps of devices: which interfaces stamp what they receive, and what their stamps say by the wall clock.
//!
//! A network card stamps with a clock of its own (a PTP hardware clock, `/dev/ptpN`), which counts from anywhere and drifts. Both
//! clocks are read together now and then ([`DeviceClock`]), and their difference takes a stamp to the wall clock, which is what
//! stamps of all drivers are in ([`millrace_frames::Packet::timestamp_ns`]).

use crate::hardware_clock::HardwareClock;
use crate::link::LinkName;
use crate::port::{PortError, wall_clock_ns};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Which stamps frames are to have: `timestamps=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Those of the device where it stamps all frames already, else the kernel's.
    #[default]
    Auto,
    /// Those of the device, which is told to stamp all frames.
    Hardware,
    /// The kernel's.
    Software,
}

impl Wanted {
    /// Takes `timestamps=` out of the arguments of a driver.
    pub(crate) fn take(driver: &'static str, args: &str) -> Result<(String, Wanted), PortError> {
        let wrong = |reason| PortError::Arguments { driver, reason };
        let (mut wanted, mut kept) = (None, Vec::new());
        for word in args.split(',') {
            let Some(value) = word.strip_prefix("timestamps=") else {
                kept.push(word);
                continue;
            };
            wanted = Some(match value {
                "auto" => Wanted::Auto,
                "hardware" => Wanted::Hardware,
                "software" => Wanted::Software,
                _ => {
                    let reason =
                        format!("`timestamps={value}`: `auto`, `hardware` or `software` is expected");
                    return Err(wrong(reason));
                }
            });
        }
        Ok((kept.join(","), wanted.unwrap_or_default()))
    }
}

/// `ETHTOOL_GET_TS_INFO` of linux/ethtool.h, and `struct ethtool_ts_info`.
const ETHTOOL_GET_TS_INFO: u32 = 0x41;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct TsInfo {
    cmd: u32,
    so_timestamping: u32,
    phc_index: i32,
    tx_types: u32,
    tx_reserved: [u32; 3],
    rx_filters: u32,
    rx_reserved: [u32; 3],
}

/// `struct hwtstamp_config` of linux/net_tstamp.h, and its requests (linux/sockios.h).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Config {
    flags: i32,
    tx_type: i32,
    rx_filter: i32,
}

const SIOCSHWTSTAMP: u32 = 0x89b0;
const SIOCGHWTSTAMP: u32 = 0x89b1;
/// All received frames are stamped.
const HWTSTAMP_FILTER_ALL: i32 = 1;
const SOF_TIMESTAMPING_RX_HARDWARE: u32 = 1 << 2;
const SOF_TIMESTAMPING_RAW_HARDWARE: u32 = 1 << 6;

/// The clock of a device, if it can stamp all frames that it receives.
///
/// # Errors
/// Why it cannot, for people.
fn clock_number(info: &TsInfo) -> Result<u32, String> {
    let stamps = SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;
    if info.so_timestamping & stamps != stamps {
        return Err("it does not stamp received frames".to_owned());
    }
    if info.rx_filters >> HWTSTAMP_FILTER_ALL & 1 == 0 {
        return Err("it stamps only some of the received frames".to_owned());
    }
    u32::try_from(info.phc_index).map_err(|_| "its clock cannot be read".to_owned())
}

/// A device that stamps what it receives, for as long as this is there; afterwards it is as before.
#[derive(Debug)]
pub(crate) struct StampingDevice {
    link: LinkName,
    /// What to set again at the end.
    before: Option<Config>,
    /// The device file of its clock.
    clock: String,
}

impl StampingDevice {
    /// Has an interface stamp what it receives. None: it is not to, or does not by itself.
    ///
    /// # Errors
    /// Why it does not although it is to, for people.
    pub(crate) fn start(link: &LinkName, wanted: Wanted) -> Result<Option<StampingDevice>, String> {
        let is_asked = match wanted {
            Wanted::Software => return Ok(None),
            Wanted::Auto => false,
            Wanted::Hardware => true,
        };
        let started = StampingDevice::set_up(link, is_asked);
        if is_asked { started } else { Ok(started.unwrap_or(None)) }
    }

    fn set_up(link: &LinkName, is_asked: bool) -> Result<Option<StampingDevice>, String> {
        let mut info = TsInfo { cmd: ETHTOOL_GET_TS_INFO, ..TsInfo::default() };
        match link.ask_driver(&mut info) {
            Ok(true) => {}
            Ok(false) => return Err("its driver knows no time stamps".to_owned()),
            Err(error) => return Err(error.to_string()),
        }
        let clock = format!("/dev/ptp{}", clock_number(&info)?);
        DeviceClock::open(&clock).map_err(|error| format!("its clock {clock} cannot be read: {error}"))?;
        let mut config = Config::default();
        let known = link.ask_about(SIOCGHWTSTAMP as libc::Ioctl, &mut config);
        if known.is_ok() && config.rx_filter == HWTSTAMP_FILTER_ALL {
            return Ok(Some(StampingDevice { link: link.clone(), before: None, clock }));
        }
        if !is_asked {
            return Ok(None);
        }
        // Stamps of sent frames stay as somebody else (ptp4l) has asked for them.
        let mut all = Config { rx_filter: HWTSTAMP_FILTER_ALL, ..config };
        link.ask_about(SIOCSHWTSTAMP as libc::Ioctl, &mut all).map_err(|error| error.to_string())?;
        let device = StampingDevice { link: link.clone(), before: Some(config), clock };
        // The driver says what it does in fact.
        match all.rx_filter {
            HWTSTAMP_FILTER_ALL => Ok(Some(device)),
            _ => Err("it stamps only some of the received frames".to_owned()),
        }
    }

    /// The device file of its clock.
    pub(crate) fn clock(&self) -> &str {
        &self.clock
    }
}

impl Drop for StampingDevice {
    fn drop(&mut self) {
        if let Some(mut before) = self.before {
            // An interface that is gone has no settings either.
            let _ = self.link.ask_about(SIOCSHWTSTAMP as libc::Ioctl, &mut before);
        }
    }
}

/// How long a difference of the clocks is good for: they drift by less than a hundred nanoseconds in that time.
const GOOD_FOR: Duration = Duration::from_millis(1);
/// How often both clocks are read, until a reading was not interrupted.
const READINGS: usize = 3;
/// A reading of both clocks that took longer was interrupted, in nanoseconds. A card is asked over its bus.
const SOON_NS: u64 = 5_000;

/// Reads a device's clock, in nanoseconds of its own count.
type Read = Box<dyn FnMut() -> io::Result<i64> + Send>;

/// A device's clock and the wall clock.
pub(crate) struct DeviceClock {
    read: Read,
    /// By how much the wall clock is ahead; none: the device's cannot be read.
    ahead_ns: Option<i128>,
    measured: Option<Instant>,
}

impl DeviceClock {
    /// That of a device file.
    pub(crate) fn open(path: &str) -> io::Result<DeviceClock> {
        let clock = HardwareClock::open(Path::new(path))?;
        Ok(DeviceClock::new(Box::new(move || clock.read_ns())))
    }

    fn new(read: Read) -> DeviceClock {
        DeviceClock { read, ahead_ns: None, measured: None }
    }

    /// Reads both clocks if that was not done lately. To be called before the stamps of a batch are asked for.
    pub(crate) fn keep_up(&mut self) {
        if self.measured.is_none_or(|then| then.elapsed() >= GOOD_FOR) {
            self.ahead_ns = self.measure();
            self.measured = Some(Instant::now());
        }
    }

    /// A stamp of the device, by the wall clock; now, where that is not known.
    pub(crate) fn wall_ns(&self, stamp_ns: u64) -> u64 {
        let time = self.ahead_ns.and_then(|ahead| u64::try_from(i128::from(stamp_ns) + ahead).ok());
        time.unwrap_or_else(wall_clock_ns)
    }

    #[cold]
    fn measure(&mut self) -> Option<i128> {
        let mut best: Option<(u64, i128)> = None;
        for _ in 0..READINGS {
            let before = wall_clock_ns();
            let device = (self.read)().ok()?;
            let took = wall_clock_ns().saturating_sub(before);
            let reading = (took, i128::from(before) + i128::from(took / 2) - i128::from(device));
            best = Some(best.map_or(reading, |best| best.min(reading)));
            if took <= SOON_NS {
                break;
            }
        }
        best.map(|(_, ahead)| ahead)
    }
}

/// The clock of a queue pair whose device stamps, which is kept up and dropped with it.
pub(crate) struct StampedQueue {
    pub(crate) clock: DeviceClock,
    /// Has the device stamp for as long as there is a queue pair.
    pub(crate) device: Arc<StampingDevice>,
}

impl StampedQueue {
    pub(crate) fn new(device: &Arc<StampingDevice>) -> io::Result<StampedQueue> {
        Ok(StampedQueue { clock: DeviceClock::open(device.clock())?, device: Arc::clone(device) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::{in_fresh_namespace, veth_pair};
    use std::sync::atomic::{AtomicI64, Ordering};

    #[test]
    fn which_stamps_are_wanted_is_an_argument() {
        let take = |args: &str| Wanted::take("packet", args).map_err(|error| error.to_string());
        assert_eq!(take("eth0"), Ok(("eth0".to_owned(), Wanted::Auto)));
        assert_eq!(take("eth0,timestamps=hardware,x=1"), Ok(("eth0,x=1".to_owned(), Wanted::Hardware)));
        assert_eq!(take("eth0,timestamps=software"), Ok(("eth0".to_owned(), Wanted::Software)));
        assert!(take("eth0,timestamps=gps").unwrap_err().contains("`auto`, `hardware` or `software`"));
    }

    /// What `ethtool -T` shows of an i210, of a card that stamps PTP alone, and of a veth.
    #[test]
    fn a_device_stamps_all_frames_or_says_why_not() {
        let i210 = TsInfo { so_timestamping: 0x5f, phc_index: 2, rx_filters: 0b11, ..TsInfo::default() };
        assert_eq!(clock_number(&i210), Ok(2));
        let of = |info| clock_number(&info).unwrap_err();
        assert_eq!(
            of(TsInfo { rx_filters: 1 | 1 << 12, ..i210 }),
            "it stamps only some of the received frames"
        );
        assert_eq!(of(TsInfo { phc_index: -1, ..i210 }), "its clock cannot be read");
        let veth = TsInfo { so_timestamping: 0x1a, phc_index: -1, ..TsInfo::default() };
        assert_eq!(of(veth), "it does not stamp received frames");
        assert_eq!(size_of::<TsInfo>(), 44);
    }

    #[test]
    fn a_stamp_becomes_a_time_of_the_wall_clock() {
        // A clock that began 5 s ago and is a second fast for every one.
        let begun = wall_clock_ns();
        let count = move || Ok((5_000_000_000 + 2 * (wall_clock_ns() - begun)) as i64);
        let mut clock = DeviceClock::new(Box::new(count));
        clock.keep_up();
        let now = wall_clock_ns();
        let stamp = 5_000_000_000 + 2 * (now - begun);
        // The measurement was a short while before now; the machine may be busy.
        assert!(clock.wall_ns(stamp).abs_diff(now) < 1_000_000_000, "{} {now}", clock.wall_ns(stamp));
        assert_eq!(clock.wall_ns(stamp + 700) - clock.wall_ns(stamp), 700, "distances are the device's");
        // A stamp from before 1970 by the wall clock says nothing.
        let mut clock = DeviceClock::new(Box::new(|| Ok(i64::MAX)));
        clock.keep_up();
        assert!(clock.wall_ns(0) >= now);
    }

    #[test]
    fn clocks_are_read_again_after_a_while_and_one_that_fails_tells_nothing() {
        let reads = Arc::new(AtomicI64::new(0));
        let counted = Arc::clone(&reads);
        let mut clock = DeviceClock::new(Box::new(move || match counted.fetch_add(1, Ordering::Relaxed) {
            0..READS => Ok(0),
            _ => Err(io::Error::other("gone")),
        }));
        const READS: i64 = READINGS as i64;
        clock.keep_up();
        let first = reads.load(Ordering::Relaxed);
        assert!((1..=READS).contains(&first));
        assert!(clock.wall_ns(0).abs_diff(wall_clock_ns()) < 60_000_000_000, "0 was just now");
        reads.store(READS, Ordering::Relaxed);
        std::thread::sleep(2 * GOOD_FOR);
        clock.keep_up();
        assert_eq!(reads.load(Ordering::Relaxed), READS + 1, "asked once, and refused");
        let before = wall_clock_ns();
        assert!(clock.wall_ns(12) >= before, "now");
    }

    #[test]
    fn an_interface_without_stamps_says_so() {
        in_fresh_namespace("an_interface_without_stamps", || {
            veth_pair("va", "vb");
            let link = LinkName::new("packet", "va").unwrap();
            let refused = StampingDevice::start(&link, Wanted::Hardware).unwrap_err();
            assert_eq!(refused, "it does not stamp received frames");
            assert!(StampingDevice::start(&link, Wanted::Auto).unwrap().is_none());
            assert!(StampingDevice::start(&link, Wanted::Software).unwrap().is_none());
            // What the kernel says to the request itself.
            let mut all = Config { rx_filter: HWTSTAMP_FILTER_ALL, ..Config::default() };
            let refused = link.ask_about(SIOCSHWTSTAMP as libc::Ioctl, &mut all).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::EOPNOTSUPP));
        });
    }
}
