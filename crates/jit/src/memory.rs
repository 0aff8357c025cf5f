//! Memory for code: written first, then executable, never both; freed with its program.

use std::ffi::c_void;
use std::io;
use std::ptr::NonNull;

/// Executable code.
#[derive(Debug)]
pub(crate) struct CodeMemory {
    start: NonNull<c_void>,
    bytes: usize,
}

// SAFETY: the memory is never written again once it is here, so threads may run it at once.
unsafe impl Send for CodeMemory {}
// SAFETY: as above.
unsafe impl Sync for CodeMemory {}

impl CodeMemory {
    /// Copies code to memory of its own and makes that executable.
    ///
    /// # Errors
    /// What the operating system says when there is no memory.
    pub(crate) fn new(code: &[u8]) -> io::Result<CodeMemory> {
        let bytes = code.len().max(1);
        // SAFETY: a new private mapping, which nothing else knows.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let Some(start) = NonNull::new(start) else { return Err(io::ErrorKind::OutOfMemory.into()) };
        let memory = CodeMemory { start, bytes };
        // SAFETY: the mapping is as long as the code and not yet executable.
        unsafe {
            std::ptr::copy_nonoverlapping(code.as_ptr(), start.as_ptr().cast::<u8>(), code.len());
            if libc::mprotect(start.as_ptr(), bytes, libc::PROT_READ | libc::PROT_EXEC) != 0 {
                return Err(io::Error::last_os_error());
            }
            clear_instruction_cache(start.as_ptr().cast(), bytes);
        }
        Ok(memory)
    }

    /// The first instruction.
    pub(crate) fn start(&self) -> *const c_void {
        self.start.as_ptr()
    }
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made; whoever runs the code borrows this.
        unsafe { libc::munmap(self.start.as_ptr(), self.bytes) };
    }
}

/// Makes new code visible to instruction fetch, of all threads; x86-64 does so by itself.
///
/// # Safety
/// The memory is mapped and readable, and starts at a page.
unsafe fn clear_instruction_cache(start: *const u8, bytes: usize) {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: cache maintenance by address over memory that is mapped, by lines of which CTR_EL0 has the smallest sizes (Arm
    // ARM, B2.4.4). The system call takes no pointers; it has the processors of other threads drop what they had fetched.
    // Linux before 4.16 does not know it, and drops that as well where a thread comes back from the kernel.
    unsafe {
        let lines: usize;
        std::arch::asm!("mrs {0}, ctr_el0", out(reg) lines, options(nomem, nostack, preserves_flags));
        let (data_line, code_line) = (4 << (lines >> 16 & 15), 4 << (lines & 15));
        for at in (0..bytes).step_by(data_line) {
            std::arch::asm!("dc cvau, {0}", in(reg) start.add(at), options(nostack, preserves_flags));
        }
        std::arch::asm!("dsb ish", options(nostack, preserves_flags));
        for at in (0..bytes).step_by(code_line) {
            std::arch::asm!("ic ivau, {0}", in(reg) start.add(at), options(nostack, preserves_flags));
        }
        std::arch::asm!("dsb ish", "isb", options(nostack, preserves_flags));
        // MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE and MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE of linux/membarrier.h.
        for command in [1 << 6, 1 << 5] {
            libc::syscall(libc::SYS_membarrier, command, 0, 0);
        }
    }
    #[cfg(not(target_arch = "aarch64"))]
    let _ = (start, bytes);
}
