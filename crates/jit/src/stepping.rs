//! The instructions that compiled code executes, counted one by one: the processor stops after each.
//!
//! It takes about a microsecond for each, so it is for tests and for measuring what helpers cost, never for packets of a
//! running switch. What is counted is one run: it starts with the first instruction of the code and ends when it returns; what it calls
//! counts apart, by the place of the call.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

/// What was executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// How often each instruction of the code was executed, by its offset.
    pub in_code: BTreeMap<u32, u64>,
    /// Instructions of what was called, by the offset of the call.
    pub called: BTreeMap<u32, u64>,
    /// The most instructions that one call took, by the offset of the call.
    pub most_called: BTreeMap<u32, u64>,
    /// Where the code was when it left a block or called: the offsets of all its instructions in order, up to a limit.
    pub trace: Vec<u32>,
}

impl Steps {
    /// All instructions of the code.
    pub fn own(&self) -> u64 {
        self.in_code.values().sum()
    }

    /// All instructions of what it called.
    pub fn outside(&self) -> u64 {
        self.called.values().sum()
    }
}

/// Counts what a run executes of code at these addresses. One at a time in a process.
pub(crate) fn count(code: Range<usize>, run: impl FnOnce()) -> io::Result<Steps> {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    return linux::count(code, run);
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    {
        let _ = (code, run);
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod linux {
    use super::Steps;
    use std::io;
    use std::mem::MaybeUninit;
    use std::ops::Range;
    use std::sync::Mutex;
    use std::sync::PoisonError;
    use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

    /// Most instructions of the code that are noted one by one; a longer run is refused.
    const MAX_EVENTS: usize = 1 << 20;

    static ONE: Mutex<()> = Mutex::new(());
    static CODE: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
    /// Where the code returns to, while it runs; else 0.
    static RETURN: AtomicUsize = AtomicUsize::new(0);
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    /// The offset of each instruction of the code, and how many others came after it.
    static OFFSET: [AtomicU32; MAX_EVENTS] = [const { AtomicU32::new(0) }; MAX_EVENTS];
    static AFTER: [AtomicU32; MAX_EVENTS] = [const { AtomicU32::new(0) }; MAX_EVENTS];

    /// The flag of the processor that has it stop after each instruction.
    const TRAP: u64 = 1 << 8;

    pub(super) fn count(code: Range<usize>, run: impl FnOnce()) -> io::Result<Steps> {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        CODE[0].store(code.start, SeqCst);
        CODE[1].store(code.end, SeqCst);
        RETURN.store(0, SeqCst);
        COUNT.store(0, SeqCst);
        let mut before = MaybeUninit::uninit();
        // SAFETY: zeros are right for the structure; the handler is a function of the type that SA_SIGINFO asks for, and only
        // uses atomics and the context that it is given.
        unsafe {
            let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
            action.sa_sigaction = stepped as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            if libc::sigaction(libc::SIGTRAP, &action, before.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        set_trap(true);
        run();
        set_trap(false);
        // SAFETY: what `sigaction` has written.
        unsafe { libc::sigaction(libc::SIGTRAP, before.as_ptr(), std::ptr::null_mut()) };
        read()
    }

    fn read() -> io::Result<Steps> {
        let count = COUNT.load(SeqCst);
        if count > MAX_EVENTS {
            return Err(io::Error::other("the code executes too many instructions to be counted"));
        }
        let mut steps = Steps::default();
        for (offset, after) in OFFSET[..count].iter().zip(&AFTER) {
            let (offset, after) = (offset.load(Relaxed), u64::from(after.load(Relaxed)));
            *steps.in_code.entry(offset).or_default() += 1;
            steps.trace.push(offset);
            if after > 0 {
                *steps.called.entry(offset).or_default() += after;
                let most = steps.most_called.entry(offset).or_default();
                *most = after.max(*most);
            }
        }
        Ok(steps)
    }

    /// Has the processor stop after each instruction, or not.
    #[inline(never)]
    fn set_trap(stops: bool) {
        // SAFETY: changes one flag of the processor, for which the thread has a handler; the stack is as it was.
        unsafe {
            if stops {
                std::arch::asm!("pushfq", "or qword ptr [rsp], {flag}", "popfq", flag = const TRAP);
            } else {
                std::arch::asm!("pushfq", "and qword ptr [rsp], {flag}", "popfq", flag = const !(TRAP as i32));
            }
        }
    }

    /// Before the instruction at the program counter.
    extern "C" fn stepped(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
        if context.is_null() {
            return;
        }
        // SAFETY: the kernel gives a handler with SA_SIGINFO the context that it interrupted.
        let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        let (counter, stack) =
            (registers[libc::REG_RIP as usize] as usize, registers[libc::REG_RSP as usize] as usize);
        let (start, end) = (CODE[0].load(Relaxed), CODE[1].load(Relaxed));
        if counter == start && RETURN.load(Relaxed) == 0 {
            // SAFETY: the function was just called, so the address that it returns to is on top of the stack.
            RETURN.store(unsafe { *std::ptr::with_exposed_provenance::<usize>(stack) }, Relaxed);
        }
        let returns_to = RETURN.load(Relaxed);
        if returns_to == 0 {
            return;
        }
        if counter == returns_to {
            // One run is counted; what comes after it goes on at full speed.
            RETURN.store(0, Relaxed);
            registers[libc::REG_EFL as usize] &= !(TRAP as i64);
            return;
        }
        if (start..end).contains(&counter) {
            let number = COUNT.fetch_add(1, Relaxed);
            if number < MAX_EVENTS {
                OFFSET[number].store((counter - start) as u32, Relaxed);
                AFTER[number].store(0, Relaxed);
            }
        } else if let Some(last) = COUNT.load(Relaxed).checked_sub(1)
            && last < MAX_EVENTS
        {
            AFTER[last].fetch_add(1, Relaxed);
        }
    }
}
