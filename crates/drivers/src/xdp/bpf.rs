//! The few requests to bpf(2) that the driver makes, without a library.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The name of the program and of its map. An attached program of this name is one of this driver.
pub(super) const NAME: &CStr = c"millrace_xdp";

/// Commands, types and flags of linux/bpf.h.
const BPF_MAP_CREATE: u32 = 0;
const BPF_MAP_UPDATE_ELEM: u32 = 2;
const BPF_PROG_LOAD: u32 = 5;
const BPF_PROG_GET_FD_BY_ID: u32 = 13;
const BPF_OBJ_GET_INFO_BY_FD: u32 = 15;
const BPF_LINK_CREATE: u32 = 28;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const BPF_PSEUDO_MAP_FD: u8 = 1;
const BPF_FUNC_REDIRECT_MAP: i32 = 51;
const XDP_PASS: i32 = 2;
/// Where `rx_queue_index` is in `struct xdp_md`.
const RX_QUEUE_INDEX: i16 = 16;

/// Bytes of a name with its zero.
const NAME_BYTES: usize = 16;

/// As much of a name as the kernel keeps, and a zero.
fn padded(name: &CStr) -> [u8; NAME_BYTES] {
    let mut padded = [0; NAME_BYTES];
    padded[..NAME_BYTES - 1].iter_mut().zip(name.to_bytes()).for_each(|(place, byte)| *place = *byte);
    padded
}

/// `union bpf_attr` for `BPF_MAP_CREATE`, up to the name.
#[repr(C)]
#[derive(Default)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    name: [u8; NAME_BYTES],
    ifindex: u32,
}

#[repr(C)]
#[derive(Default)]
struct MapUpdate {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgramLoad {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; NAME_BYTES],
    ifindex: u32,
    expected_attach_type: u32,
}

#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    program: u32,
    ifindex: u32,
    attach_type: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct ById {
    id: u32,
    next_id: u32,
    open_flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct InfoByFd {
    object: u32,
    length: u32,
    info: u64,
}

/// The beginning of `struct bpf_prog_info`, up to the name.
#[repr(C)]
#[derive(Default)]
struct ProgramInfo {
    program_type: u32,
    id: u32,
    tag: [u8; 8],
    jited_length: u32,
    translated_length: u32,
    jited: u64,
    translated: u64,
    load_time: u64,
    created_by_uid: u32,
    map_count: u32,
    map_ids: u64,
    name: [u8; NAME_BYTES],
}

/// `struct bpf_insn`; `registers` has the source in its upper four bits, the destination in the lower.
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// Makes a map of sockets by the number of their queue, below `queues`.
pub(super) fn socket_map(queues: u32) -> io::Result<OwnedFd> {
    let mut attributes = MapCreate {
        map_type: BPF_MAP_TYPE_XSKMAP,
        key_size: 4,
        value_size: 4,
        max_entries: queues,
        name: padded(NAME),
        ..MapCreate::default()
    };
    owned(BPF_MAP_CREATE, &mut attributes)
}

/// Frames of this queue go to this socket from now on.
pub(super) fn put_socket(map: &OwnedFd, queue: u32, socket: RawFd) -> io::Result<()> {
    let value = socket as u32;
    let mut attributes = MapUpdate {
        map: map.as_raw_fd() as u32,
        key: std::ptr::from_ref(&queue) as u64,
        value: std::ptr::from_ref(&value) as u64,
        ..MapUpdate::default()
    };
    call(BPF_MAP_UPDATE_ELEM, &mut attributes).map(drop)
}

/// Loads the program: a frame of a queue that has a socket in the map goes there, another one goes on to the kernel.
pub(super) fn load_program(map: &OwnedFd) -> io::Result<OwnedFd> {
    let instruction = |code, registers, offset, immediate| Instruction { code, registers, offset, immediate };
    // return bpf_redirect_map(map, context->rx_queue_index, XDP_PASS);
    let program = [
        // r2 = *(u32 *)(r1 + RX_QUEUE_INDEX)
        instruction(0x61, 0x12, RX_QUEUE_INDEX, 0),
        // r1 = map, an immediate of 64 bits in two instructions
        instruction(0x18, BPF_PSEUDO_MAP_FD << 4 | 1, 0, map.as_raw_fd()),
        instruction(0, 0, 0, 0),
        // r3 = XDP_PASS: the answer when there is no socket
        instruction(0xb7, 0x03, 0, XDP_PASS),
        instruction(0x85, 0, 0, BPF_FUNC_REDIRECT_MAP),
        // exit
        instruction(0x95, 0, 0, 0),
    ];
    load(&program, NAME)
}

/// Loads a program for XDP.
fn load(program: &[Instruction], name: &CStr) -> io::Result<OwnedFd> {
    let license = c"Apache-2.0";
    let mut attributes = ProgramLoad {
        program_type: BPF_PROG_TYPE_XDP,
        instruction_count: program.len() as u32,
        instructions: program.as_ptr() as u64,
        license: license.as_ptr() as u64,
        name: padded(name),
        expected_attach_type: BPF_XDP,
        ..ProgramLoad::default()
    };
    owned(BPF_PROG_LOAD, &mut attributes)
}

/// Attaches a program to an interface for as long as the descriptor is open. `flags` choose the mode (linux/if_link.h).
pub(super) fn link(program: &OwnedFd, ifindex: u32, flags: u32) -> io::Result<OwnedFd> {
    let program = program.as_raw_fd() as u32;
    owned(BPF_LINK_CREATE, &mut LinkCreate { program, ifindex, attach_type: BPF_XDP, flags })
}

/// A program of the system by its number, which only root may have.
pub(super) fn program_by_id(id: u32) -> io::Result<OwnedFd> {
    owned(BPF_PROG_GET_FD_BY_ID, &mut ById { id, ..ById::default() })
}

/// The name of a program, without its end when it is longer than the kernel keeps.
pub(super) fn program_name(program: &OwnedFd) -> io::Result<String> {
    let mut info = ProgramInfo::default();
    let mut attributes = InfoByFd {
        object: program.as_raw_fd() as u32,
        length: size_of::<ProgramInfo>() as u32,
        info: std::ptr::from_mut(&mut info) as u64,
    };
    call(BPF_OBJ_GET_INFO_BY_FD, &mut attributes)?;
    let name = CStr::from_bytes_until_nul(&info.name).map(CStr::to_string_lossy);
    Ok(name.unwrap_or_default().into_owned())
}

fn owned<T>(command: u32, attributes: &mut T) -> io::Result<OwnedFd> {
    let descriptor = call(command, attributes)?;
    // SAFETY: these commands give a new descriptor, which nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn call<T>(command: u32, attributes: &mut T) -> io::Result<RawFd> {
    // SAFETY: the kernel reads and writes no more than the attributes, which are plain C structures, and what they point to, which
    // lives in the caller until this returns.
    let answer =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>()) };
    RawFd::try_from(answer).ok().filter(|answer| *answer >= 0).ok_or_else(io::Error::last_os_error)
}

/// A program of somebody else, which passes all frames on.
#[cfg(test)]
pub(super) fn load_other(name: &CStr) -> io::Result<OwnedFd> {
    let instruction = |code, immediate| Instruction { code, registers: 0, offset: 0, immediate };
    load(&[instruction(0xb7, XDP_PASS), instruction(0x95, 0)], name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_those_of_the_kernel() {
        // Sums of the members before the end, from linux/bpf.h.
        assert_eq!(size_of::<MapCreate>(), 7 * 4 + 16 + 4);
        assert_eq!(size_of::<MapUpdate>(), 32);
        assert_eq!(std::mem::offset_of!(ProgramLoad, name), 48);
        assert_eq!(size_of::<ProgramLoad>(), 72);
        assert_eq!(size_of::<Instruction>(), 8);
        assert_eq!(std::mem::offset_of!(ProgramInfo, name), 64);
        assert!(NAME.to_bytes().len() < NAME_BYTES);
    }
}
