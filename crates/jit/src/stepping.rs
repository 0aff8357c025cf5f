//! The instructions that compiled code executes, counted one by one: the processor stops after each.
//!
//! It takes about a microsecond for each, so it is for tests and for measuring what helpers cost, never for packets of a
//! running switch. What is counted is one run: it starts with the first instruction of the code and ends when it returns; what it calls
//! counts apart, by the place of the call.

use std::collections::BTreeMap;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use std::collections::BTreeSet;
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
    /// The most cache lines of code that one call executed, by the offset of the call.
    pub code_called: BTreeMap<u32, CodeLines>,
    /// Where the code was when it left a block or called: the offsets of all its instructions in order, up to a limit.
    pub trace: Vec<u32>,
    /// What the registers of addresses held before each of them, in the order of their numbers in instructions.
    pub registers: Vec<[u64; REGISTERS]>,
}

/// Registers of addresses.
pub const REGISTERS: usize = 16;

/// Cache lines of code, each counted when it is executed for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeLines {
    /// Those after the line that was executed before.
    pub follows: u64,
    /// All others.
    pub jumps: u64,
}

impl CodeLines {
    /// The larger of two, in each regard alone.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn most(self, other: CodeLines) -> CodeLines {
        CodeLines { follows: self.follows.max(other.follows), jumps: self.jumps.max(other.jumps) }
    }

    /// Of what was executed line by line.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn of(executed: &[usize]) -> CodeLines {
        let (mut found, mut seen) = (CodeLines::default(), BTreeSet::new());
        let mut before = None;
        for line in executed.iter().copied() {
            match before {
                _ if !seen.insert(line) => {}
                Some(before) if line == before + 1 => found.follows += 1,
                _ => found.jumps += 1,
            }
            before = Some(line);
        }
        found
    }
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
    use super::{CodeLines, REGISTERS, Steps};
    use std::io;
    use std::mem::MaybeUninit;
    use std::ops::Range;
    use std::sync::Mutex;
    use std::sync::PoisonError;
    use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

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
    /// The registers before each instruction of the code.
    static HELD: [[AtomicU64; REGISTERS]; MAX_EVENTS] =
        [const { [const { AtomicU64::new(0) }; REGISTERS] }; MAX_EVENTS];
    /// Where the kernel keeps each of them.
    const KEPT_AT: [libc::c_int; REGISTERS] = [
        libc::REG_RAX,
        libc::REG_RCX,
        libc::REG_RDX,
        libc::REG_RBX,
        libc::REG_RSP,
        libc::REG_RBP,
        libc::REG_RSI,
        libc::REG_RDI,
        libc::REG_R8,
        libc::REG_R9,
        libc::REG_R10,
        libc::REG_R11,
        libc::REG_R12,
        libc::REG_R13,
        libc::REG_R14,
        libc::REG_R15,
    ];

    /// Most changes of the line of code outside of the code that are noted; a longer run is refused.
    const MAX_LINES: usize = 1 << 20;
    /// Bytes of a cache line, as a shift.
    const LINE_BITS: u32 = 6;

    static LINES: AtomicUsize = AtomicUsize::new(0);
    /// Each line that was come to, and the number of instructions of the code before.
    static LINE: [AtomicUsize; MAX_LINES] = [const { AtomicUsize::new(0) }; MAX_LINES];
    static CALLED_BY: [AtomicU32; MAX_LINES] = [const { AtomicU32::new(0) }; MAX_LINES];

    /// The flag of the processor that has it stop after each instruction.
    const TRAP: u64 = 1 << 8;

    pub(super) fn count(code: Range<usize>, run: impl FnOnce()) -> io::Result<Steps> {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        CODE[0].store(code.start, SeqCst);
        CODE[1].store(code.end, SeqCst);
        RETURN.store(0, SeqCst);
        COUNT.store(0, SeqCst);
        LINES.store(0, SeqCst);
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
        let lines = LINES.load(SeqCst);
        if lines > MAX_LINES {
            return Err(io::Error::other("what the code calls is too long to be counted"));
        }
        let mut steps = Steps::default();
        let noted = CALLED_BY[..lines].iter().zip(&LINE);
        let noted: Vec<(u32, usize)> =
            noted.map(|(by, line)| (by.load(Relaxed), line.load(Relaxed))).collect();
        for call in noted.chunk_by(|one, next| one.0 == next.0) {
            let Some((by, _)) = call.first() else { continue };
            let executed: Vec<usize> = call.iter().map(|(_, line)| *line).collect();
            let offset = OFFSET[*by as usize - 1].load(Relaxed);
            let most = steps.code_called.entry(offset).or_default();
            *most = most.most(CodeLines::of(&executed));
        }
        steps.registers =
            HELD[..count].iter().map(|held| std::array::from_fn(|at| held[at].load(Relaxed))).collect();
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

    /// A line of code outside, unless it is the one of the instruction before.
    fn note_line(by: u32, line: usize) {
        let lines = LINES.load(Relaxed);
        let is_noted = lines
            .checked_sub(1)
            .filter(|last| *last < MAX_LINES)
            .is_some_and(|last| LINE[last].load(Relaxed) == line && CALLED_BY[last].load(Relaxed) == by);
        if is_noted {
            return;
        }
        if lines < MAX_LINES {
            LINE[lines].store(line, Relaxed);
            CALLED_BY[lines].store(by, Relaxed);
        }
        // Beyond, the count alone tells that it was too much.
        LINES.store((lines + 1).min(MAX_LINES + 1), Relaxed);
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
                for (held, at) in HELD[number].iter().zip(KEPT_AT) {
                    held.store(registers[at as usize] as u64, Relaxed);
                }
            }
        } else if let Some(last) = COUNT.load(Relaxed).checked_sub(1)
            && last < MAX_EVENTS
        {
            AFTER[last].fetch_add(1, Relaxed);
            note_line(last as u32 + 1, counter >> LINE_BITS);
        }
    }
}
