//! Waiting for frames when there is nothing to do: the only place of this crate that waits.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// Waits until one of the descriptors is readable, the time is over, or a signal comes; `None` waits for ever. Without
/// descriptors it waits for the time alone. The time is one of nanoseconds: frames that leave at a rate, or at a time, end in microseconds.
///
/// # Errors
/// What ppoll(2) says, other than that it was interrupted.
pub fn wait_readable(descriptors: &[RawFd], timeout: Option<Duration>) -> io::Result<()> {
    let mut polled: Vec<libc::pollfd> =
        descriptors.iter().map(|fd| libc::pollfd { fd: *fd, events: libc::POLLIN, revents: 0 }).collect();
    let timeout = timeout.map(|time| libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        // Less than 10^9.
        tv_nsec: time.subsec_nanos() as _,
    });
    let until = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the pointers and the count are those of a vector and a structure that live until the call returns, and there is no mask
    // of signals.
    let ready =
        unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, until, std::ptr::null()) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(())
}

/// One in so many questions is worth a system call: for what is told otherwise too, or may be told late.
///
/// A worker that forwards between two ports asks the one that only sends once a round. A socket with an error polls readable, so
/// that a worker does not sleep over it, but comes back until it is its turn.
#[derive(Debug, Default)]
pub(crate) struct Seldom {
    left: u32,
}

impl Seldom {
    const ONE_IN: u32 = 64;

    /// Whether this question is one of those, as the first one is.
    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        let is_due = self.left == 0;
        self.left = if is_due { Seldom::ONE_IN } else { self.left } - 1;
        is_due
    }
}

/// Whether a descriptor has no writer any more, having had one.
pub(crate) fn is_hung_up(descriptor: RawFd) -> bool {
    let mut polled = libc::pollfd { fd: descriptor, events: 0, revents: 0 };
    // SAFETY: the pointer is to one structure that lives until the call returns.
    let ready = unsafe { libc::poll(&raw mut polled, 1, 0) };
    ready > 0 && polled.revents & libc::POLLHUP != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::time::Instant;

    #[test]
    fn one_question_in_many_is_due() {
        let mut seldom = Seldom::default();
        let due: Vec<u32> = (0..200).filter(|_| seldom.is_due()).collect();
        assert_eq!(due, [0, 64, 128, 192]);
    }

    #[test]
    fn ends_when_something_can_be_read_or_the_time_is_over() {
        let (reader, mut writer) = io::pipe().unwrap();
        let start = Instant::now();
        wait_readable(&[reader.as_raw_fd()], Some(Duration::from_millis(5))).unwrap();
        assert!(start.elapsed() >= Duration::from_millis(5));
        writer.write_all(&[1]).unwrap();
        wait_readable(&[reader.as_raw_fd()], None).unwrap();
    }

    #[test]
    fn a_time_of_microseconds_is_not_rounded_to_milliseconds() {
        let wait = || {
            let start = Instant::now();
            wait_readable(&[], Some(Duration::from_micros(20))).unwrap();
            start.elapsed()
        };
        // Of several, as the system may have something else to do.
        let shortest = (0..200).map(|_| wait()).min().unwrap();
        assert!((20..900).contains(&shortest.as_micros()), "{shortest:?}");
    }
}
