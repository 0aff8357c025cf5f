//! Waking a worker that sleeps.

use std::io::Write;
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// Makes what a worker polls readable.
#[derive(Clone, Debug)]
pub(super) struct Bell(Arc<UnixStream>);

impl Bell {
    /// The worker polls the other end, which must not block.
    pub(super) fn new(end: UnixStream) -> Bell {
        Bell(Arc::new(end))
    }

    pub(super) fn ring(&self) {
        // A full pipe wakes the worker too, and a closed one has no worker.
        let _ = (&*self.0).write(&[1]);
    }
}

/// Wakes a worker for what another thread has put where it looks in each round.
///
/// No wake-up is lost: the worker says that it is asleep, then looks once more, then sleeps; the other thread puts something
/// there, then looks whether the worker is asleep. Fences order both sides, so at least one of them sees the other.
#[derive(Clone)]
pub(super) struct Waker {
    bell: Bell,
    asleep: Arc<AtomicBool>,
    fd: RawFd,
}

impl Waker {
    /// For a worker that polls `fd`, hears that bell, and says when it is asleep.
    pub(super) fn new(bell: Bell, asleep: Arc<AtomicBool>, fd: RawFd) -> Waker {
        Waker { bell, asleep, fd }
    }

    /// What the worker polls: its own signal.
    pub(super) fn fd(&self) -> RawFd {
        self.fd
    }

    /// After something was put where the worker looks.
    #[inline]
    pub(super) fn wake_if_asleep(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            self.bell.ring();
        }
    }
}
