//! Requests to bpf(2), without a library: those that the driver and the forwarders of `examples/wire` both make. The examples are
//! another crate, which includes this file.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Commands, types and flags of linux/bpf.h.
pub(crate) const BPF_MAP_CREATE: u32 = 0;
pub(crate) const BPF_MAP_UPDATE_ELEM: u32 = 2;
pub(crate) const BPF_PROG_LOAD: u32 = 5;
pub(crate) const BPF_LINK_CREATE: u32 = 28;
pub(crate) const BPF_XDP: u32 = 37;
pub(crate) const BPF_PSEUDO_MAP_FD: u8 = 1;

/// Bytes of a name with its zero.
pub(crate) const NAME_BYTES: usize = 16;

/// `union bpf_attr` for `BPF_MAP_CREATE`, up to the name.
#[repr(C)]
#[derive(Default)]
pub(crate) struct MapCreate {
    pub(crate) map_type: u32,
    pub(crate) key_size: u32,
    pub(crate) value_size: u32,
    pub(crate) max_entries: u32,
    pub(crate) map_flags: u32,
    pub(crate) inner_map_fd: u32,
    pub(crate) numa_node: u32,
    pub(crate) name: [u8; NAME_BYTES],
    pub(crate) ifindex: u32,
}

#[repr(C)]
#[derive(Default)]
pub(crate) struct Element {
    pub(crate) map: u32,
    pub(crate) padding: u32,
    pub(crate) key: u64,
    pub(crate) value: u64,
    pub(crate) flags: u64,
}

#[repr(C)]
#[derive(Default)]
pub(crate) struct ProgramLoad {
    pub(crate) program_type: u32,
    pub(crate) instruction_count: u32,
    pub(crate) instructions: u64,
    pub(crate) license: u64,
    pub(crate) log_level: u32,
    pub(crate) log_size: u32,
    pub(crate) log: u64,
    pub(crate) kernel_version: u32,
    pub(crate) flags: u32,
    pub(crate) name: [u8; NAME_BYTES],
    pub(crate) ifindex: u32,
    pub(crate) expected_attach_type: u32,
}

#[repr(C)]
#[derive(Default)]
pub(crate) struct LinkCreate {
    pub(crate) program: u32,
    pub(crate) ifindex: u32,
    pub(crate) attach_type: u32,
    pub(crate) flags: u32,
}

/// `struct bpf_insn`; `registers` has the source in its upper four bits, the destination in the lower.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Instruction {
    pub(crate) code: u8,
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) immediate: i32,
}

/// Makes a request that gives a descriptor.
pub(crate) fn owned<T>(command: u32, attributes: &mut T) -> io::Result<OwnedFd> {
    let descriptor = call(command, attributes)?;
    // SAFETY: these commands give a new descriptor, which nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Makes a request.
pub(crate) fn call<T>(command: u32, attributes: &mut T) -> io::Result<RawFd> {
    // SAFETY: the kernel reads and writes no more than the attributes, which are plain C structures, and what they point to, which
    // lives in the caller until this returns.
    let answer =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>()) };
    RawFd::try_from(answer).ok().filter(|answer| *answer >= 0).ok_or_else(io::Error::last_os_error)
}
