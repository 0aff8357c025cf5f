//! The few requests to bpf(2) that the driver makes, without a library.

use super::requests::{
    BPF_LINK_CREATE, BPF_MAP_CREATE, BPF_MAP_UPDATE_ELEM, BPF_PROG_LOAD, BPF_PSEUDO_MAP_FD, BPF_XDP, Element,
    Instruction, LinkCreate, MapCreate, NAME_BYTES, ProgramLoad, call, owned,
};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The name of the program and of its map. An attached program of this name is one of this driver.
pub(super) const NAME: &CStr = c"millrace_xdp";

/// Commands, types and flags of linux/bpf.h, but for those of [`super::requests`].
const BPF_PROG_GET_FD_BY_ID: u32 = 13;
const BPF_OBJ_GET_INFO_BY_FD: u32 = 15;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_FUNC_REDIRECT_MAP: i32 = 51;
const XDP_PASS: i32 = 2;
/// Where `rx_queue_index` is in `struct xdp_md`.
const RX_QUEUE_INDEX: i16 = 16;

/// As much of a name as the kernel keeps, and a zero.
fn padded(name: &CStr) -> [u8; NAME_BYTES] {
    let mut padded = [0; NAME_BYTES];
    padded[..NAME_BYTES - 1].iter_mut().zip(name.to_bytes()).for_each(|(place, byte)| *place = *byte);
    padded
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
    let mut attributes = Element {
        map: map.as_raw_fd() as u32,
        key: std::ptr::from_ref(&queue) as u64,
        value: std::ptr::from_ref(&value) as u64,
        ..Element::default()
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
        assert_eq!(size_of::<Element>(), 32);
        assert_eq!(std::mem::offset_of!(ProgramLoad, name), 48);
        assert_eq!(size_of::<ProgramLoad>(), 72);
        assert_eq!(size_of::<Instruction>(), 8);
        assert_eq!(std::mem::offset_of!(ProgramInfo, name), 64);
        assert!(NAME.to_bytes().len() < NAME_BYTES);
    }
}
