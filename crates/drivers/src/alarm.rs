//! A descriptor that also becomes readable from time to time, for ports that have something to do while no frames come.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Rings at intervals, so that a worker that waits for a port looks at it then.
#[derive(Debug)]
pub struct Alarm {
    epoll: OwnedFd,
    timer: OwnedFd,
    /// The descriptor of the port that `epoll` has.
    watched: Cell<RawFd>,
}

impl Alarm {
    /// Rings after each such time, at least a millisecond.
    ///
    /// # Errors
    /// What the system says.
    pub fn every(interval: Duration) -> io::Result<Alarm> {
        let interval = interval.max(Duration::from_millis(1));
        // SAFETY: takes no pointers.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: takes no pointers.
        let timer = owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
        let time = libc::timespec {
            tv_sec: libc::time_t::try_from(interval.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: interval.subsec_nanos() as libc::c_long,
        };
        let setting = libc::itimerspec { it_interval: time, it_value: time };
        // SAFETY: the first pointer is to a structure that lives until the call returns, the second may be null.
        let set =
            unsafe { libc::timerfd_settime(timer.as_raw_fd(), 0, &raw const setting, std::ptr::null_mut()) };
        if set < 0 {
            return Err(io::Error::last_os_error());
        }
        let alarm = Alarm { epoll, timer, watched: Cell::new(-1) };
        alarm.control(libc::EPOLL_CTL_ADD, alarm.timer.as_raw_fd())?;
        Ok(alarm)
    }

    /// A descriptor that polls readable when this one of a port does, or when it rings; this one alone where it cannot be
    /// watched. A port may have another descriptor each time.
    pub fn with(&self, port: RawFd) -> RawFd {
        let before = self.watched.replace(port);
        if before != port && before >= 0 {
            // One that was closed is not there any more.
            let _ = self.control(libc::EPOLL_CTL_DEL, before);
        }
        match self.control(libc::EPOLL_CTL_ADD, port) {
            Ok(()) => self.epoll.as_raw_fd(),
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => self.epoll.as_raw_fd(),
            Err(_) => port,
        }
    }

    /// Whether it has rung since this was asked.
    pub fn has_rung(&self) -> bool {
        let mut times = [0u8; 8];
        // SAFETY: the pointer and the length are those of an array that lives until the call returns.
        let read = unsafe { libc::read(self.timer.as_raw_fd(), times.as_mut_ptr().cast(), times.len()) };
        read == times.len() as isize
    }

    fn control(&self, operation: libc::c_int, descriptor: RawFd) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: the pointer is to a structure that lives until the call returns.
        let done = unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, descriptor, &raw mut event) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

fn owned(descriptor: RawFd) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system has just given it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::wait_readable;
    use std::io::Write;
    use std::time::Instant;

    #[test]
    fn it_rings_and_lets_the_port_be_heard() {
        let (quiet, _writer) = io::pipe().unwrap();
        let alarm = Alarm::every(Duration::from_millis(20)).unwrap();
        let start = Instant::now();
        wait_readable(&[alarm.with(quiet.as_raw_fd())], None).unwrap();
        assert!(start.elapsed() >= Duration::from_millis(15) && alarm.has_rung());
        let slow = Alarm::every(Duration::from_secs(3600)).unwrap();
        let (loud, mut writer) = io::pipe().unwrap();
        slow.with(quiet.as_raw_fd());
        writer.write_all(&[1]).unwrap();
        // Of another port now, and again of the same.
        wait_readable(&[slow.with(loud.as_raw_fd())], None).unwrap();
        wait_readable(&[slow.with(loud.as_raw_fd())], None).unwrap();
        assert!(!slow.has_rung());
    }
}
