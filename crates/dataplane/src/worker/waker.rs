//! Waking a worker that sleeps.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// What a thread polls that drives workers, and what makes that readable. One thread may drive many workers with one doorbell: each
/// has a mark of its own, so that the thread finds those that were asked for something.
#[derive(Debug)]
pub struct Doorbell {
    awake: UnixStream,
    wake: Arc<UnixStream>,
    rung: Arc<AtomicBool>,
}

impl Doorbell {
    /// One that nobody has rung.
    ///
    /// # Errors
    /// The operating system has no pair of sockets.
    pub fn new() -> io::Result<Doorbell> {
        let (awake, wake) = UnixStream::pair()?;
        awake.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        Ok(Doorbell { awake, wake: Arc::new(wake), rung: Arc::default() })
    }

    /// A descriptor that polls readable when somebody has rung.
    pub fn poll_fd(&self) -> RawFd {
        self.awake.as_raw_fd()
    }

    /// Has the descriptor poll readable only when somebody rings again.
    pub fn look(&self) {
        let mut signals = [0; 64];
        while (&self.awake).read(&mut signals).is_ok_and(|read| read > 0) {}
    }

    /// Whether somebody has rung since this was asked last. Whoever rings marks the worker first.
    #[inline]
    pub fn has_rung(&self) -> bool {
        self.rung.load(Ordering::Relaxed) && self.rung.swap(false, Ordering::AcqRel)
    }

    /// Whether [`Doorbell::has_rung`] would say so.
    #[inline]
    pub fn rings(&self) -> bool {
        self.rung.load(Ordering::Relaxed)
    }

    /// Rings for no worker, from any thread.
    pub fn ringer(&self) -> Ringer {
        Ringer(self.bell())
    }

    /// The bell of one more worker.
    pub(super) fn bell(&self) -> Bell {
        Bell { end: Arc::clone(&self.wake), rung: Arc::clone(&self.rung), called: Arc::default() }
    }
}

/// Rings a [`Doorbell`] from any thread.
#[derive(Clone, Debug)]
pub struct Ringer(Bell);

impl Ringer {
    /// Wakes the thread that polls it.
    pub fn ring(&self) {
        self.0.ring();
    }

    /// The bell of one more worker.
    pub(super) fn bell(&self) -> Bell {
        Bell { called: Arc::default(), ..self.0.clone() }
    }
}

/// Rings the doorbell of the thread that drives a worker.
#[derive(Clone, Debug)]
pub(super) struct Bell {
    end: Arc<UnixStream>,
    rung: Arc<AtomicBool>,
    /// The worker was asked for something.
    called: Arc<AtomicBool>,
}

impl Bell {
    pub(super) fn ring(&self) {
        self.called.store(true, Ordering::Release);
        self.rung.store(true, Ordering::Release);
        // A full pipe wakes the worker too, and a closed one has no worker.
        let _ = (&*self.end).write(&[1]);
    }

    /// Whether it has rung since this was asked last.
    #[inline]
    pub(super) fn was_called(&self) -> bool {
        self.called.load(Ordering::Relaxed) && self.called.swap(false, Ordering::AcqRel)
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
    fd: Option<RawFd>,
}

impl Waker {
    /// For a worker that polls `fd`, hears that bell, and says when it is asleep.
    pub(super) fn new(bell: Bell, asleep: Arc<AtomicBool>, fd: Option<RawFd>) -> Waker {
        Waker { bell, asleep, fd }
    }

    /// What the worker polls: its own signal.
    pub(super) fn fd(&self) -> Option<RawFd> {
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
