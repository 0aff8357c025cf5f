//! A forwarder of packet sockets with mapped rings and nothing between them (packet(7), the kernel's packet_mmap document): what
//! rings cost at least, with a program that does nothing. Frames are copied from slot to slot, and one request sends a batch.

#![allow(unsafe_code)]

use crate::{index, is_over};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

const BLOCK: usize = 64 * 1024;
const SLOT: usize = 2048;
const SLOTS: usize = 4096;
/// Frames of a request to send.
const BATCH: usize = 64;
/// Where a frame starts in a slot of the sending ring.
const SENT_AT: usize = (size_of::<libc::tpacket2_hdr>() + 15) & !15;

/// A socket with one mapped ring.
struct Ring {
    socket: OwnedFd,
    start: *mut u8,
    next: usize,
}

impl Ring {
    fn open(interface: &str, option: i32) -> io::Result<Ring> {
        // SAFETY: takes no pointers.
        let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened and nobody else has it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: (SLOT * SLOTS / BLOCK) as u32,
            tp_frame_size: SLOT as u32,
            tp_frame_nr: SLOTS as u32,
        };
        set(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as i32))?;
        set(&socket, libc::PACKET_IGNORE_OUTGOING, &1i32)?;
        set(&socket, option, &request)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), SLOT * SLOTS, access, libc::MAP_SHARED, socket.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        bind(socket.as_raw_fd(), index(interface)?)?;
        Ok(Ring { socket, start: start.cast(), next: 0 })
    }

    /// The slot at the head, which is there until the process ends.
    fn slot(&self) -> *mut u8 {
        // SAFETY: `next` is below the number of slots of the mapping, which is never taken away.
        unsafe { self.start.add(self.next * SLOT) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: each slot starts with its status, aligned, and both sides access it as a whole.
        unsafe { AtomicU32::from_ptr(self.slot().cast()) }
    }

    fn advance(&mut self, status: u32) {
        self.status().store(status, Ordering::Release);
        self.next = (self.next + 1) % SLOTS;
    }
}

pub(crate) fn run(from: &str, to: &str) -> io::Result<()> {
    let (mut from, mut to) = (Ring::open(from, libc::PACKET_RX_RING)?, Ring::open(to, libc::PACKET_TX_RING)?);
    println!("ready");
    while !is_over() {
        let mut taken = 0;
        while taken < BATCH && from.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0 {
            taken += 1;
            if to.status().load(Ordering::Acquire) == libc::TP_STATUS_AVAILABLE {
                // SAFETY: both slots are this side's by their status; they start with their headers, and the frame lies in the one and
                // fits the other, as both have the same size and the kernel leaves more room before it than `SENT_AT`.
                unsafe {
                    let (received, sent) = (from.slot(), to.slot());
                    let header = received.cast::<libc::tpacket2_hdr>().read();
                    let length = (header.tp_snaplen as usize).min(SLOT - SENT_AT);
                    std::ptr::copy_nonoverlapping(
                        received.add(header.tp_mac.into()),
                        sent.add(SENT_AT),
                        length,
                    );
                    (*sent.cast::<libc::tpacket2_hdr>()).tp_len = length as u32;
                }
                to.advance(libc::TP_STATUS_SEND_REQUEST);
            }
            from.advance(libc::TP_STATUS_KERNEL);
        }
        if taken > 0 {
            // SAFETY: no buffer is given, the frames are in the ring. What it cannot send now it sends next time.
            unsafe { libc::send(to.socket.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT) };
        } else {
            let mut polled = libc::pollfd { fd: from.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one structure that lives beyond the call.
            unsafe { libc::poll(&raw mut polled, 1, 20) };
        }
    }
    Ok(())
}

fn set<T>(socket: &OwnedFd, option: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes at the value, which has as many.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            std::ptr::from_ref(value).cast(),
            length,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has a packet socket receive what comes to an interface.
pub(crate) fn bind(socket: RawFd, index: u32) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes at the address, which has as many.
    match unsafe { libc::bind(socket, std::ptr::from_ref(&address).cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
