//! Where the time of a thread goes: its program counter, looked at every so often by a timer.
//!
//! Nothing is added to compiled code, so what is measured is what runs without. A sample is where the thread was in the code,
//! or where the code had called what it was in, or else what the thread had [marked](mark) last.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::time::Duration;

/// What a thread does outside compiled code, as it says itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Mark {
    /// It gets frames, or gets rid of them.
    #[default]
    Driver,
    /// It hands bursts to compiled code, and acts on the verdicts.
    Burst,
    /// It does what the traffic manager does for packets that need it.
    Replication,
}

impl Mark {
    const ALL: [Mark; 3] = [Mark::Driver, Mark::Burst, Mark::Replication];
}

/// Where samples were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// In compiled code, or in what it had called: by the offset in the code.
    pub in_code: BTreeMap<u32, u64>,
    /// Elsewhere.
    pub elsewhere: BTreeMap<Mark, u64>,
}

thread_local! {
    static MARK: std::cell::Cell<Mark> = const { std::cell::Cell::new(Mark::Driver) };
}

/// Says what the calling thread does from now on.
#[inline]
pub fn mark(mark: Mark) {
    MARK.set(mark);
}

/// Samples the thread that made it. One at a time in a process.
#[derive(Debug)]
pub struct Sampler(
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))] linux::Timer,
);

impl Sampler {
    /// Starts, for code that lies at these addresses.
    ///
    /// # Errors
    /// What the operating system says; [`io::ErrorKind::Unsupported`] where sampling is not written for the machine, and
    /// [`io::ErrorKind::ResourceBusy`] while another one runs.
    pub(crate) fn start(code: Range<usize>, interval: Duration) -> io::Result<Sampler> {
        #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
        return Ok(Sampler(linux::Timer::start(code, interval)?));
        #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
        {
            let _ = (code, interval);
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    /// Stops, and tells what was found.
    pub fn stop(self) -> Samples {
        #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
        return self.0.stop();
        #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
        Samples::default()
    }
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux {
    use super::{MARK, Mark, Samples};
    use std::io;
    use std::mem::MaybeUninit;
    use std::ops::Range;
    use std::ptr::null_mut;
    use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
    use std::time::Duration;

    /// Most samples that are kept; later ones are lost.
    const MAX_SAMPLES: usize = 1 << 17;
    /// How far up the stack a call from compiled code is looked for.
    const MAX_WORDS: usize = 4096;
    /// The samples: the offset in the code, or this bit and the mark.
    const ELSEWHERE: u64 = 1 << 32;

    static RUNS: AtomicBool = AtomicBool::new(false);
    static CODE: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
    /// An address of the thread's stack that was in use when sampling started.
    static STACK: AtomicUsize = AtomicUsize::new(0);
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    static SAMPLES: [AtomicU64; MAX_SAMPLES] = [const { AtomicU64::new(0) }; MAX_SAMPLES];

    /// A timer of the calling thread, and what the signal did before.
    pub(super) struct Timer {
        timer: libc::timer_t,
        before: libc::sigaction,
    }

    impl std::fmt::Debug for Timer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_struct("Timer").finish_non_exhaustive()
        }
    }

    impl Timer {
        pub(super) fn start(code: Range<usize>, interval: Duration) -> io::Result<Timer> {
            if RUNS.swap(true, SeqCst) {
                return Err(io::ErrorKind::ResourceBusy.into());
            }
            let here = 0u8;
            STACK.store(std::ptr::from_ref(&here).addr(), SeqCst);
            CODE[0].store(code.start, SeqCst);
            CODE[1].store(code.end, SeqCst);
            COUNT.store(0, SeqCst);
            Timer::arm(interval).inspect_err(|_| RUNS.store(false, SeqCst))
        }

        fn arm(interval: Duration) -> io::Result<Timer> {
            let check = |answer: libc::c_int| match answer {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            };
            let mut before = MaybeUninit::uninit();
            // SAFETY: all structures are plain data for which zeros are right; the handler is a function of the type that
            // SA_SIGINFO asks for, and does only what a handler may: atomics, its own thread's stack and thread-local cell.
            unsafe {
                let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
                action.sa_sigaction = take_sample as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                check(libc::sigaction(libc::SIGPROF, &action, before.as_mut_ptr()))?;
                let before = before.assume_init();
                let mut event: libc::sigevent = MaybeUninit::zeroed().assume_init();
                event.sigev_notify = libc::SIGEV_THREAD_ID;
                event.sigev_signo = libc::SIGPROF;
                event.sigev_notify_thread_id = libc::gettid();
                let mut timer: libc::timer_t = null_mut();
                check(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer))?;
                let timer = Timer { timer, before };
                let every = libc::timespec {
                    tv_sec: interval.as_secs() as libc::time_t,
                    tv_nsec: interval.subsec_nanos() as libc::c_long,
                };
                let spec = libc::itimerspec { it_interval: every, it_value: every };
                check(libc::timer_settime(timer.timer, 0, &spec, null_mut()))?;
                Ok(timer)
            }
        }

        pub(super) fn stop(self) -> Samples {
            drop(self);
            let mut samples = Samples::default();
            for sample in &SAMPLES[..COUNT.load(SeqCst).min(MAX_SAMPLES)] {
                let sample = sample.load(Relaxed);
                match sample & ELSEWHERE {
                    0 => *samples.in_code.entry(sample as u32).or_default() += 1,
                    _ => {
                        let mark = Mark::ALL.get((sample & 0xff) as usize).copied().unwrap_or_default();
                        *samples.elsewhere.entry(mark).or_default() += 1;
                    }
                }
            }
            samples
        }
    }

    impl Drop for Timer {
        fn drop(&mut self) {
            // SAFETY: the timer that was made, once; and the action that was there before.
            unsafe {
                libc::timer_delete(self.timer);
                libc::sigaction(libc::SIGPROF, &self.before, null_mut());
            }
            RUNS.store(false, SeqCst);
        }
    }

    extern "C" fn take_sample(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
        let number = COUNT.fetch_add(1, Relaxed);
        if number >= MAX_SAMPLES || context.is_null() {
            return;
        }
        // SAFETY: the kernel gives a handler with SA_SIGINFO the context that it interrupted.
        let (counter, stack) = unsafe { registers(&*context.cast::<libc::ucontext_t>()) };
        let code = CODE[0].load(Relaxed)..CODE[1].load(Relaxed);
        let found = match code.contains(&counter) {
            true => Some(counter),
            false => caller(stack, STACK.load(Relaxed), &code),
        };
        let sample = match found {
            Some(address) => (address - code.start) as u64 & 0xffff_ffff,
            None => ELSEWHERE | MARK.get() as u64,
        };
        SAMPLES[number].store(sample, Relaxed);
    }

    /// The address nearest to the top of the stack that lies in the code: where the code called.
    fn caller(stack: usize, end: usize, code: &Range<usize>) -> Option<usize> {
        const WORD: usize = size_of::<usize>();
        let from = stack.next_multiple_of(WORD);
        let end = end.min(from.saturating_add(MAX_WORDS * WORD));
        (from..end.saturating_sub(WORD)).step_by(WORD).find_map(|at| {
            // SAFETY: aligned, and between the top of the thread's stack and an address of it that was in use before.
            let word = unsafe { std::ptr::with_exposed_provenance::<usize>(at).read_volatile() };
            // A return address is after its call, so it is not the start of the code.
            (word > code.start && word < code.end).then(|| word - 1)
        })
    }

    /// The program counter and the stack pointer.
    #[cfg(target_arch = "x86_64")]
    fn registers(context: &libc::ucontext_t) -> (usize, usize) {
        let at = |register: libc::c_int| context.uc_mcontext.gregs[register as usize] as usize;
        (at(libc::REG_RIP), at(libc::REG_RSP))
    }

    #[cfg(target_arch = "aarch64")]
    fn registers(context: &libc::ucontext_t) -> (usize, usize) {
        (context.uc_mcontext.pc as usize, context.uc_mcontext.sp as usize)
    }
}

#[cfg(all(test, target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;
    use std::time::Instant;

    #[inline(never)]
    fn work(length: Duration) -> u64 {
        let start = Instant::now();
        let mut sum = 0u64;
        while start.elapsed() < length {
            sum = std::hint::black_box(sum.wrapping_mul(3) ^ 1);
        }
        sum
    }

    #[test]
    fn a_thread_is_found_where_it_said_that_it_is() {
        mark(Mark::Replication);
        let sampler = Sampler::start(0..0, Duration::from_millis(1)).unwrap();
        assert!(Sampler::start(0..0, Duration::from_millis(1)).is_err());
        work(Duration::from_millis(200));
        let samples = sampler.stop();
        mark(Mark::Driver);
        assert!(samples.elsewhere[&Mark::Replication] > 20, "{samples:?}");
        assert!(samples.in_code.is_empty());
    }
}
