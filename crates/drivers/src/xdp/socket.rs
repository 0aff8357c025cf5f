//! A socket of the kernel's AF_XDP with its four rings: one queue of one interface.

#![allow(unsafe_code)]

use super::memory::Piece;
use super::ring::{FromKernel, Offsets, ToKernel};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// `struct xdp_desc` of linux/if_xdp.h: a frame in the memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frame {
    pub(super) address: u64,
    pub(super) length: u32,
    pub(super) options: u32,
}

/// `struct xdp_umem_reg` as the first kernels had it, with the flags.
#[repr(C)]
struct UmemRegistration {
    address: u64,
    length: u64,
    chunk_size: u32,
    headroom: u32,
    flags: u32,
    metadata_length: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RingOffset {
    producer: u64,
    consumer: u64,
    entries: u64,
    flags: u64,
}

/// `struct xdp_mmap_offsets`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RingOffsets {
    receiving: RingOffset,
    sending: RingOffset,
    fill: RingOffset,
    completion: RingOffset,
}

/// `struct xdp_statistics`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Frames without a free slot, or longer than one.
    pub(super) dropped: u64,
    pub(super) invalid: u64,
    pub(super) invalid_to_send: u64,
    /// Frames without a place in the receiving ring.
    pub(super) ring_full: u64,
    pub(super) fill_ring_empty: u64,
    pub(super) sending_ring_empty: u64,
}

/// How many frames the kernel sends for one request, from 6.17 on (linux/if_xdp.h).
const XDP_MAX_TX_SKB_BUDGET: i32 = 9;

/// Whether frames are copied between the memory and the network card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placing {
    ZeroCopy,
    Copy,
}

/// A socket with its rings.
pub(super) struct Socket {
    descriptor: OwnedFd,
    pub(super) rings: Rings,
}

/// The rings of a socket.
pub(super) struct Rings {
    /// Frames that have come.
    pub(super) receiving: FromKernel<Frame>,
    /// Slots for frames to come.
    pub(super) fill: ToKernel<u64>,
    /// Frames to be sent.
    pub(super) sending: ToKernel<Frame>,
    /// Slots of frames that have left.
    pub(super) completion: FromKernel<u64>,
}

impl Socket {
    /// Opens a socket over the memory, with rings of so many entries, a power of two. It does nothing yet.
    pub(super) fn prepare(memory: &Piece, entries: u32) -> io::Result<Socket> {
        // SAFETY: takes no pointers.
        let descriptor = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened and nobody else has it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let socket = descriptor.as_raw_fd();
        let umem = UmemRegistration {
            address: memory.start().as_ptr() as u64,
            length: memory.size() as u64,
            chunk_size: memory.slot_size() as u32,
            // The kernel leaves 256 bytes before each frame, which are the headroom of a slot.
            headroom: 0,
            flags: 0,
            metadata_length: 0,
        };
        set_option(socket, libc::XDP_UMEM_REG, &umem)?;
        for ring in
            [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_RX_RING, libc::XDP_TX_RING]
        {
            set_option(socket, ring, &entries)?;
        }
        // Otherwise a request sends 32 frames, and the next one the next 32.
        let _ = set_option(socket, XDP_MAX_TX_SKB_BUDGET, &entries);
        let rings = Rings::map(socket, entries)?;
        Ok(Socket { descriptor, rings })
    }

    /// Binds the socket to a queue of an interface. Frames come when the interface's program sends them here.
    pub(super) fn bind(&self, ifindex: u32, queue: u32, placing: Placing) -> io::Result<()> {
        let flags = match placing {
            Placing::ZeroCopy => libc::XDP_ZEROCOPY,
            Placing::Copy => libc::XDP_COPY,
        };
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags | libc::XDP_USE_NEED_WAKEUP,
            sxdp_ifindex: ifindex,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        let length = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
        // SAFETY: the kernel reads `length` bytes at the address, which has as many.
        let bound =
            unsafe { libc::bind(self.descriptor.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) };
        if bound == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Asks the kernel to send what is in the sending ring. It does not wait.
    pub(super) fn kick(&self) -> io::Result<()> {
        // SAFETY: no buffer is given, the frames are in the ring.
        let sent = unsafe { libc::send(self.descriptor(), std::ptr::null(), 0, libc::MSG_DONTWAIT) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Tells the driver of the interface that the fill ring has slots again.
    pub(super) fn wake(&self) {
        // SAFETY: no buffer is given. What it answers is known otherwise: from the rings and the waiting error.
        unsafe { libc::recv(self.descriptor(), std::ptr::null_mut(), 0, libc::MSG_DONTWAIT) };
    }

    /// Takes the error that waits on the socket, such as that the interface is gone.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        match get_option::<i32>(self.descriptor(), libc::SOL_SOCKET, libc::SO_ERROR) {
            Ok(0) => None,
            Ok(code) => Some(io::Error::from_raw_os_error(code)),
            Err(error) => Some(error),
        }
    }

    /// What the kernel has counted since the socket was opened.
    pub(super) fn counts(&self) -> Counts {
        get_option(self.descriptor(), libc::SOL_XDP, libc::XDP_STATISTICS).unwrap_or_default()
    }
}

impl Rings {
    fn map(socket: RawFd, entries: u32) -> io::Result<Rings> {
        let offsets: RingOffsets = get_option(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        let of = |ring: RingOffset| Offsets {
            producer: ring.producer as usize,
            consumer: ring.consumer as usize,
            flags: ring.flags as usize,
            entries: ring.entries as usize,
        };
        // Of 64 bits on every processor; the last two do not fit in less, and the second is no negative number.
        let (receiving, sending) = (libc::XDP_PGOFF_RX_RING as libc::off64_t, libc::XDP_PGOFF_TX_RING as u32);
        let (fill, completion) = (libc::XDP_UMEM_PGOFF_FILL_RING, libc::XDP_UMEM_PGOFF_COMPLETION_RING);
        Ok(Rings {
            receiving: FromKernel::map(socket, receiving, of(offsets.receiving), entries)?,
            fill: ToKernel::map(socket, fill as libc::off64_t, of(offsets.fill), entries)?,
            sending: ToKernel::map(socket, sending.into(), of(offsets.sending), entries)?,
            completion: FromKernel::map(
                socket,
                completion as libc::off64_t,
                of(offsets.completion),
                entries,
            )?,
        })
    }
}

fn set_option<T>(socket: RawFd, option: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes at the value, which has as many.
    match unsafe { libc::setsockopt(socket, libc::SOL_XDP, option, std::ptr::from_ref(value).cast(), length) }
    {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn get_option<T: Default>(socket: RawFd, level: i32, option: i32) -> io::Result<T> {
    let mut value = T::default();
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: every T used here is of integers, which may have any bytes; the kernel writes at most `length` of them.
    match unsafe {
        libc::getsockopt(socket, level, option, std::ptr::from_mut(&mut value).cast(), &mut length)
    } {
        0 => Ok(value),
        _ => Err(io::Error::last_os_error()),
    }
}
