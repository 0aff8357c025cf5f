//! Programs for the kernel, written as its instructions (RFC 9669), and the requests to bpf(2) that load and run them.

#[path = "../../src/xdp/requests.rs"]
mod requests;

use requests::{
    BPF_LINK_CREATE, BPF_MAP_CREATE, BPF_MAP_UPDATE_ELEM, BPF_PROG_LOAD, BPF_PSEUDO_MAP_FD, BPF_XDP, Element,
    Instruction, LinkCreate, MapCreate, ProgramLoad, call, owned,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Commands, types and flags of linux/bpf.h, but for those of [`requests`].
const BPF_MAP_LOOKUP_ELEM: u32 = 1;
const BPF_PROG_TEST_RUN: u32 = 10;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 2;
const XDP_FLAGS_DRV_MODE: u32 = 4;
const PSEUDO_MAP_VALUE: u8 = 2;

/// Functions of the kernel that programs call.
pub(crate) const MAP_LOOKUP_ELEMENT: i32 = 1;
pub(crate) const KTIME_GET_NS: i32 = 5;
pub(crate) const REDIRECT: i32 = 23;
pub(crate) const SKB_LOAD_BYTES: i32 = 26;

/// What an XDP program answers.
pub(crate) const XDP_DROP: i32 = 1;

/// What a program is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    SocketFilter = 1,
    Xdp = 6,
}

/// How many bytes a load or a store has.
#[derive(Clone, Copy)]
pub(crate) enum Size {
    B1 = 0x10,
    B2 = 0x08,
    B4 = 0x00,
    B8 = 0x18,
}

/// What an operation of 64 bits does.
#[derive(Clone, Copy)]
pub(crate) enum Op {
    Add = 0x07,
    Sub = 0x17,
    And = 0x57,
    Or = 0x47,
    ShiftLeft = 0x67,
    ShiftRight = 0x77,
    Xor = 0xa7,
    Set = 0xb7,
}

/// When a jump is taken: the comparison is of 64 bits without sign.
#[derive(Clone, Copy)]
pub(crate) enum If {
    Equal = 0x15,
    Greater = 0x25,
    NotBelow = 0x35,
    Different = 0x55,
    Below = 0xa5,
}

/// A program that is written instruction by instruction, over registers 0 to 10.
#[derive(Default)]
pub(crate) struct Code {
    instructions: Vec<Instruction>,
    /// Jumps to the end that are still to be told where it is.
    to_end: Vec<usize>,
}

impl Code {
    fn put(&mut self, code: u8, [to, from]: [u8; 2], offset: i16, immediate: i32) -> &mut Code {
        self.instructions.push(Instruction { code, registers: from << 4 | to, offset, immediate });
        self
    }

    /// `to = *(base + offset)`
    pub(crate) fn load(&mut self, size: Size, to: u8, base: u8, offset: i16) -> &mut Code {
        self.put(0x61 | size as u8, [to, base], offset, 0)
    }

    /// `*(base + offset) = from`
    pub(crate) fn store(&mut self, size: Size, base: u8, offset: i16, from: u8) -> &mut Code {
        self.put(0x63 | size as u8, [base, from], offset, 0)
    }

    /// `*(base + offset) = value`, which has at most 32 bits.
    pub(crate) fn store_value(&mut self, size: Size, base: u8, offset: i16, value: i32) -> &mut Code {
        self.put(0x62 | size as u8, [base, 0], offset, value)
    }

    /// `*(base + offset) += from`, of 64 bits, as one operation.
    pub(crate) fn add_at(&mut self, base: u8, offset: i16, from: u8) -> &mut Code {
        self.put(0xdb, [base, from], offset, 0)
    }

    /// `to = to OP value`
    pub(crate) fn value(&mut self, op: Op, to: u8, value: i32) -> &mut Code {
        self.put(op as u8, [to, 0], 0, value)
    }

    /// `to = to OP from`
    pub(crate) fn register(&mut self, op: Op, to: u8, from: u8) -> &mut Code {
        self.put(op as u8 | 8, [to, from], 0, 0)
    }

    /// Skips the next `count` instructions if a register compares so with a value.
    pub(crate) fn skip_if(&mut self, count: i16, left: u8, how: If, value: i32) -> &mut Code {
        self.put(how as u8, [left, 0], count, value)
    }

    /// The same with another register.
    pub(crate) fn skip_if_register(&mut self, count: i16, left: u8, how: If, right: u8) -> &mut Code {
        self.put(how as u8 | 8, [left, right], count, 0)
    }

    /// Goes to [`Code::end`] if a register compares so with another one.
    pub(crate) fn end_if(&mut self, left: u8, how: If, right: u8) -> &mut Code {
        self.to_end.push(self.instructions.len());
        self.skip_if_register(0, left, how, right)
    }

    /// Goes to [`Code::end`] if a register compares so with a value.
    pub(crate) fn end_if_value(&mut self, left: u8, how: If, value: i32) -> &mut Code {
        self.to_end.push(self.instructions.len());
        self.skip_if(0, left, how, value)
    }

    /// `to` = a map, for functions that want one.
    pub(crate) fn map(&mut self, to: u8, map: &OwnedFd) -> &mut Code {
        self.put(0x18, [to, BPF_PSEUDO_MAP_FD], 0, map.as_raw_fd()).put(0, [0, 0], 0, 0)
    }

    /// `to` = the address of the only value of a map.
    pub(crate) fn map_value(&mut self, to: u8, map: &OwnedFd) -> &mut Code {
        self.put(0x18, [to, PSEUDO_MAP_VALUE], 0, map.as_raw_fd()).put(0, [0, 0], 0, 0)
    }

    /// Calls a function of the kernel: register 0 is its answer, 1 to 5 are lost.
    pub(crate) fn call(&mut self, function: i32) -> &mut Code {
        self.put(0x85, [0, 0], 0, function)
    }

    /// Answers register 0.
    pub(crate) fn exit(&mut self) -> &mut Code {
        self.put(0x95, [0, 0], 0, 0)
    }

    /// Where [`Code::end_if`] goes: answers a value.
    pub(crate) fn end(&mut self, value: i32) -> &mut Code {
        for at in std::mem::take(&mut self.to_end) {
            let distance = self.instructions.len() - at - 1;
            self.instructions[at].offset = i16::try_from(distance).expect("programs here are short");
        }
        self.value(Op::Set, 0, value).exit()
    }

    /// Loads it.
    pub(crate) fn build(&self, kind: Kind) -> io::Result<OwnedFd> {
        let mut log = vec![0u8; 1 << 16];
        let mut attributes = ProgramLoad {
            program_type: kind as u32,
            instruction_count: self.instructions.len() as u32,
            instructions: self.instructions.as_ptr() as u64,
            license: c"Apache-2.0".as_ptr() as u64,
            log_level: 1,
            log_size: log.len() as u32,
            log: log.as_mut_ptr() as u64,
            expected_attach_type: if kind == Kind::Xdp { BPF_XDP } else { 0 },
            ..ProgramLoad::default()
        };
        owned(BPF_PROG_LOAD, &mut attributes).map_err(|error| {
            let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
            io::Error::new(error.kind(), format!("{error}\n{}", String::from_utf8_lossy(&log[..end])))
        })
    }
}

/// An array of values of so many bytes.
pub(crate) fn array(entries: u32, bytes: u32) -> io::Result<OwnedFd> {
    let of = MapCreate {
        map_type: BPF_MAP_TYPE_ARRAY,
        key_size: 4,
        value_size: bytes,
        max_entries: entries,
        ..MapCreate::default()
    };
    owned(BPF_MAP_CREATE, &mut { of })
}

/// Reads the value of a number, which has as many bytes as the map's.
pub(crate) fn read<T: Copy + Default>(map: &OwnedFd, number: u32) -> io::Result<T> {
    let mut value = T::default();
    let (key, at) = (std::ptr::from_ref(&number) as u64, std::ptr::from_mut(&mut value) as u64);
    call(
        BPF_MAP_LOOKUP_ELEM,
        &mut Element { map: map.as_raw_fd() as u32, key, value: at, ..Element::default() },
    )?;
    Ok(value)
}

/// Writes the value of a number.
pub(crate) fn write<T: Copy>(map: &OwnedFd, number: u32, value: &T) -> io::Result<()> {
    let (key, value) = (std::ptr::from_ref(&number) as u64, std::ptr::from_ref(value) as u64);
    let mut element = Element { map: map.as_raw_fd() as u32, key, value, ..Element::default() };
    call(BPF_MAP_UPDATE_ELEM, &mut element).map(drop)
}

/// Has an XDP program run over a frame so many times, and do with each what it answers: frames that it redirects are sent.
pub(crate) fn send_live(program: &OwnedFd, frame: &[u8], times: u32, batch: u32) -> io::Result<()> {
    let mut run = TestRun {
        program: program.as_raw_fd() as u32,
        data_in_size: frame.len() as u32,
        data_in: frame.as_ptr() as u64,
        repeat: times,
        flags: BPF_F_TEST_XDP_LIVE_FRAMES,
        batch,
        ..TestRun::default()
    };
    call(BPF_PROG_TEST_RUN, &mut run).map(drop)
}

/// Attaches an XDP program to an interface, in its driver, for as long as the descriptor is open.
pub(crate) fn attach(program: &OwnedFd, ifindex: u32) -> io::Result<OwnedFd> {
    let program = program.as_raw_fd() as u32;
    owned(
        BPF_LINK_CREATE,
        &mut LinkCreate { program, ifindex, attach_type: BPF_XDP, flags: XDP_FLAGS_DRV_MODE },
    )
}

/// `union bpf_attr` for `BPF_PROG_TEST_RUN`.
#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: u32,
    answer: u32,
    data_in_size: u32,
    data_out_size: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_in_size: u32,
    context_out_size: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    processor: u32,
    batch: u32,
    padding: u32,
}
