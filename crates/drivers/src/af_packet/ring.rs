//! A packet socket with its two rings mapped: the only place that touches memory shared with the kernel.
//!
//! Version 2 of the rings (packet(7) and the kernel's packet_mmap document): slots of one size, each handed over by its
//! status word alone. A slot belongs to this side only between seeing its status and writing it back.

#![allow(unsafe_code)]

use crate::addresses::Addresses;
use crate::link::listen;
use crate::offload::HEADER_LEN;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of the rings of all ports of a switch together, as long as none has less than [`MIN_RING`]. The kernel takes the
/// memory of a ring at once, used or not.
const ALL_RINGS: usize = 128 * 1024 * 1024;
/// Bytes of one ring, whatever the size of its slots: at most, and at least.
const MAX_RING: usize = 8 * 1024 * 1024;
const MIN_RING: usize = 256 * 1024;
/// Slots of a sending ring at most. It goes round slot by slot, and what it touches of them is to stay in the processor's caches; at
/// two million frames a second it is a quarter of a millisecond, in which a link gives slots back.
const MAX_SENDING_SLOTS: usize = 512;
/// The kernel allocates a ring in blocks of this many bytes; no slot lies in two.
const BLOCK_BYTES: usize = 64 * 1024;
const MIN_SLOT: usize = 2048;
const MAX_SLOT: usize = 32 * 1024;
/// What a slot holds besides the frame: its header, the address, alignment, and the offload header.
const SLOT_OVERHEAD: usize = 128;
/// Memory for frames that outgrow their slot, and for frames on their way out.
const SOCKET_BUFFER: i32 = 8 * 1024 * 1024;
/// Where the frame (with its offload header) starts in a slot of the sending ring.
const TX_DATA: usize = align16(size_of::<libc::tpacket2_hdr>());

/// So much of a frame is copied into the kernel's packet, all of a usual one. To point to a slot costs more than to copy 1514 bytes:
/// a count of the page's users, one more when it goes, and every reader of a header has to fetch it from there.
const COPIED: usize = 2048;
/// Where the header of an offload says that, in the order of bytes of this machine (`struct virtio_net_hdr`).
const HEADER_BYTES_AT: usize = 2;

const fn align16(length: usize) -> usize {
    (length + 15) & !15
}

/// The slots of a ring: where they are, and how large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slots {
    size: usize,
    in_block: usize,
}

impl Slots {
    /// Slots for frames of `mtu` bytes and their headers.
    fn for_mtu(mtu: usize) -> Slots {
        let needed = mtu.saturating_add(SLOT_OVERHEAD).clamp(MIN_SLOT, MAX_SLOT);
        let in_block = BLOCK_BYTES / needed;
        Slots { size: BLOCK_BYTES / in_block / 16 * 16, in_block }
    }

    /// Where a slot starts.
    #[inline]
    fn offset(self, slot: usize) -> usize {
        // With slots that fill their blocks it is one product.
        if self.size * self.in_block == BLOCK_BYTES {
            return slot * self.size;
        }
        slot / self.in_block * BLOCK_BYTES + slot % self.in_block * self.size
    }

    /// Longest frame that fits one of the sending ring.
    fn max_send(self) -> usize {
        self.size - TX_DATA - HEADER_LEN
    }
}

/// Bytes of a receiving ring, and most of a sending ring, when a switch has so many ports.
pub(super) fn ring_bytes(ports: usize) -> usize {
    let each = ALL_RINGS / (2 * ports.max(1));
    each.clamp(MIN_RING, MAX_RING) / BLOCK_BYTES * BLOCK_BYTES
}

/// What was to be done to an interface, as in `bind to`, and the system's answer.
pub(super) type Refused = (&'static str, io::Error);

/// A socket with its rings.
pub(super) struct RingSocket {
    descriptor: OwnedFd,
    memory: Mapping,
    layout: Slots,
    /// Of the receiving ring; those of the sending ring come after them.
    slots: usize,
    sending_slots: usize,
    rx_at: usize,
    tx_at: usize,
    /// Frames in the sending ring that had not left when this was looked at last.
    unsent: usize,
}

/// The mapped rings, the receiving one first.
struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping is plain memory that belongs to no thread, and RingSocket hands out access by `&mut self` only.
unsafe impl Send for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: start and length are those of the mapping made in `map`, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// What the kernel says of a received frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Bytes of the frame.
    pub(super) length: usize,
    /// Bytes of it in the slot.
    pub(super) captured: usize,
    /// The whole frame waits in the socket's queue ([`RingSocket::receive_large`]).
    pub(super) is_queued: bool,
    /// The VLAN tag kept aside: EtherType and tag control information.
    pub(super) vlan: Option<(u16, u16)>,
    /// Nanoseconds since 1970; of a frame that its device has stamped, of the device's clock.
    pub(super) timestamp_ns: u64,
    pub(super) is_stamped_by_device: bool,
    data_at: usize,
}

impl Arrival {
    /// What the header of a slot says, of which `size` bytes are the slot.
    fn read(status: u32, header: &libc::tpacket2_hdr, size: usize) -> Arrival {
        let tpid = if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 { header.tp_vlan_tpid } else { 0x8100 };
        let data_at = usize::from(header.tp_mac);
        let room = size.saturating_sub(data_at);
        Arrival {
            length: header.tp_len as usize,
            captured: (header.tp_snaplen as usize).min(room),
            is_queued: status & libc::TP_STATUS_COPY != 0,
            vlan: (status & libc::TP_STATUS_VLAN_VALID != 0).then_some((tpid, header.tp_vlan_tci)),
            timestamp_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
            is_stamped_by_device: status & TP_STATUS_TS_RAW_HARDWARE != 0,
            data_at,
        }
    }
}

impl RingSocket {
    /// Opens a socket, with rings of so many bytes and slots for frames of `mtu` bytes and their headers. It receives
    /// nothing yet.
    pub(super) fn prepare(mtu: usize, bytes: usize) -> Result<RingSocket, Refused> {
        let descriptor = open(0)?;
        let socket = descriptor.as_raw_fd();

        let layout = Slots::for_mtu(mtu);
        let slots_of = |bytes: usize| bytes / BLOCK_BYTES * layout.in_block;
        let ring_of = |bytes: usize| libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: (bytes / BLOCK_BYTES) as u32,
            tp_frame_size: layout.size as u32,
            tp_frame_nr: slots_of(bytes) as u32,
        };
        let sending_bytes = bytes.min(MAX_SENDING_SLOTS.div_ceil(layout.in_block) * BLOCK_BYTES);
        let on = 1i32;
        let version = libc::tpacket_versions::TPACKET_V2 as i32;
        let options: [(i32, &i32); 5] = [
            (libc::PACKET_VERSION, &version),
            (libc::PACKET_VNET_HDR, &on),
            // A frame that outgrows its slot is queued whole.
            (PACKET_COPY_THRESH, &on),
            (libc::PACKET_IGNORE_OUTGOING, &on),
            // A frame that the kernel refuses is skipped, instead of stopping the ring.
            (libc::PACKET_LOSS, &on),
        ];
        for (option, value) in options {
            set_option(socket, libc::SOL_PACKET, option, value)
                .map_err(|error| ("set up the socket on", error))?;
        }
        for option in [libc::SO_RCVBUFFORCE, libc::SO_SNDBUFFORCE] {
            enlarge(socket, option);
        }
        for (option, bytes) in [(libc::PACKET_RX_RING, bytes), (libc::PACKET_TX_RING, sending_bytes)] {
            set_option(socket, libc::SOL_PACKET, option, &ring_of(bytes))
                .map_err(|error| ("make a ring for", error))?;
        }
        let memory = map(socket, bytes + sending_bytes).map_err(|error| ("map the rings of", error))?;
        let (slots, sending_slots) = (slots_of(bytes), slots_of(sending_bytes));
        Ok(RingSocket { descriptor, memory, layout, slots, sending_slots, rx_at: 0, tx_at: 0, unsent: 0 })
    }

    /// Receives from now on what comes to the interface of this number, which takes frames for these addresses, or for all (none).
    pub(super) fn bind(&self, index: i32, addresses: Option<&Addresses>) -> Result<(), Refused> {
        let socket = self.descriptor.as_raw_fd();
        bind(socket, index, libc::ETH_P_ALL).map_err(|error| ("bind to", error))?;
        listen(socket, index, addresses).map_err(|error| ("set the address filter of", error))
    }

    /// Whether frames of `mtu` bytes want larger slots.
    pub(super) fn is_small_for(&self, mtu: usize) -> bool {
        self.layout.size < Slots::for_mtu(mtu).size
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Longest frame that fits a slot of the sending ring.
    pub(super) fn max_send(&self) -> usize {
        self.layout.max_send()
    }

    /// The frame at the head of the receiving ring, if there is one. It stays there until [`RingSocket::release`].
    pub(super) fn arrival(&mut self) -> Option<Arrival> {
        let slot = self.rx_slot();
        let status = self.status(slot).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot is ours since the acquiring load saw TP_STATUS_USER, it starts with this header, and slots are
        // aligned to 16 bytes.
        let header = unsafe { *self.slot_bytes(slot).as_ptr().cast::<libc::tpacket2_hdr>() };
        Some(Arrival::read(status, &header, self.layout.size))
    }

    /// From now on frames that their device has stamped come with that stamp.
    pub(super) fn want_device_stamps(&self) -> io::Result<()> {
        set_option(self.descriptor(), libc::SOL_PACKET, PACKET_TIMESTAMP, &SOF_TIMESTAMPING_RAW_HARDWARE)
    }

    /// The offload header and the captured bytes of the frame at the head; `None` when the kernel's numbers are amiss.
    pub(super) fn arrived(&mut self, arrival: &Arrival) -> Option<(&[u8; HEADER_LEN], &[u8])> {
        let slot = self.rx_slot();
        // SAFETY: the slot is ours between `arrival` and `release`; the reference cannot outlive the borrow of self,
        // which both need.
        let bytes = unsafe { self.slot_bytes(slot).as_ref() };
        let (before, rest) = bytes.split_at_checked(arrival.data_at)?;
        Some((before.last_chunk()?, rest.get(..arrival.captured)?))
    }

    /// Takes the oldest frame that outgrew its slot from the socket's queue: its offload header, then the frame. Gives
    /// the number of bytes, which is more than the buffer has when the frame was cut.
    pub(super) fn receive_large(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the kernel writes at most the length of the buffer.
        let received = unsafe {
            libc::recv(
                self.descriptor(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                libc::MSG_DONTWAIT | libc::MSG_TRUNC,
            )
        };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }

    /// Gives the slot at the head of the receiving ring back to the kernel and goes on to the next.
    pub(super) fn release(&mut self) {
        self.status(self.rx_slot()).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.rx_at = after(self.rx_at, self.slots);
    }

    /// Puts a frame of at most [`RingSocket::max_send`] bytes into the sending ring. Returns false when it is full or the
    /// frame too long.
    pub(super) fn enqueue(&mut self, frame: &[u8]) -> bool {
        let slot = self.slots + self.tx_at;
        if frame.len() > self.max_send()
            || self.status(slot).load(Ordering::Acquire) != libc::TP_STATUS_AVAILABLE
        {
            return false;
        }
        // SAFETY: the slot is ours since the acquiring load saw TP_STATUS_AVAILABLE, and the reference ends before the
        // status is stored below.
        let bytes = unsafe { self.slot_bytes(slot).as_mut() };
        let data = &mut bytes[TX_DATA..TX_DATA + HEADER_LEN + frame.len()];
        // Nothing is left to do on the frame. Its headers have so many bytes, which the kernel copies into the packet that it makes;
        // what comes after them it only points to in the slot, and the slot stays with that packet.
        data[..HEADER_LEN].fill(0);
        data[HEADER_BYTES_AT..HEADER_BYTES_AT + 2]
            .copy_from_slice(&(frame.len().min(COPIED) as u16).to_ne_bytes());
        data[HEADER_LEN..].copy_from_slice(frame);
        let length = data.len() as u32;
        // SAFETY: as above; the header is at the start of the slot, which is aligned for it.
        unsafe { (*self.slot_bytes(slot).as_ptr().cast::<libc::tpacket2_hdr>()).tp_len = length };
        self.status(slot).store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.tx_at = after(self.tx_at, self.sending_slots);
        self.unsent = (self.unsent + 1).min(self.sending_slots);
        true
    }

    /// Whether the kernel was handed all frames of the sending ring: the last one that was put in, as it takes them in order.
    pub(super) fn has_handed_over(&self) -> bool {
        let last = (self.tx_at + self.sending_slots - 1) % self.sending_slots + self.slots;
        self.status(last).load(Ordering::Acquire) & libc::TP_STATUS_SEND_REQUEST == 0
    }

    /// Frames in the sending ring that have not left: the kernel keeps the slot of a frame until its link has taken it.
    pub(super) fn unsent(&mut self) -> usize {
        while self.unsent > 0 {
            let oldest = (self.tx_at + self.sending_slots - self.unsent) % self.sending_slots + self.slots;
            if self.status(oldest).load(Ordering::Acquire) != libc::TP_STATUS_AVAILABLE {
                break;
            }
            self.unsent -= 1;
        }
        self.unsent
    }

    /// Asks the kernel to send what is in the sending ring. It does not wait.
    pub(super) fn kick(&mut self) -> io::Result<()> {
        // SAFETY: no buffer is given, the frames are in the ring.
        let sent = unsafe { libc::send(self.descriptor(), std::ptr::null(), 0, libc::MSG_DONTWAIT) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Takes the error that waits on the socket, such as that the interface went down.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        match get_option::<i32>(self.descriptor(), libc::SOL_SOCKET, libc::SO_ERROR) {
            Ok(0) => None,
            Ok(code) => Some(io::Error::from_raw_os_error(code)),
            Err(error) => Some(error),
        }
    }

    /// The number of frames lost for want of a slot since this was last asked.
    pub(super) fn take_missed(&self) -> u64 {
        get_option::<libc::tpacket_stats>(self.descriptor(), libc::SOL_PACKET, libc::PACKET_STATISTICS)
            .map_or(0, |statistics| statistics.tp_drops.into())
    }

    fn rx_slot(&self) -> usize {
        self.rx_at
    }

    /// A slot by its number: those of the receiving ring, then those of the sending ring.
    fn slot_bytes(&self, slot: usize) -> NonNull<[u8]> {
        debug_assert!(slot < self.slots + self.sending_slots);
        // SAFETY: there are so many slots in the mapping, each within its block, and every caller's number is below that.
        let start = unsafe { self.memory.start.add(self.layout.offset(slot)) };
        NonNull::slice_from_raw_parts(start, self.layout.size)
    }

    /// The status word of a slot, which both sides write.
    fn status(&self, slot: usize) -> &AtomicU32 {
        let start = self.slot_bytes(slot).cast::<u32>();
        // SAFETY: the status is the first word of the slot, aligned, mapped as long as self lives, and accessed by
        // atomic operations alone (the copy of the header in `arrival` is made while the kernel leaves the slot alone).
        unsafe { AtomicU32::from_ptr(start.as_ptr()) }
    }
}

/// A socket that sends frames with their offload headers through the interface of a number, and never waits. It receives nothing.
pub(super) fn sender(index: i32) -> Result<OwnedFd, Refused> {
    let descriptor = open(libc::SOCK_NONBLOCK)?;
    let socket = descriptor.as_raw_fd();
    set_option(socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1i32)
        .map_err(|error| ("set up the socket on", error))?;
    enlarge(socket, libc::SO_SNDBUFFORCE);
    bind(socket, index, 0).map_err(|error| ("bind to", error))?;
    Ok(descriptor)
}

/// Opens a packet socket. Its protocol is 0, so it receives nothing until it is bound with another one.
fn open(flags: i32) -> Result<OwnedFd, Refused> {
    // SAFETY: takes no pointers.
    let descriptor = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC | flags, 0) };
    if descriptor < 0 {
        return Err(("open a packet socket for", io::Error::last_os_error()));
    }
    // SAFETY: the descriptor was just opened and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Enlarges a buffer of a socket. Only a root of the whole machine may; the usual buffers do for all but bursts.
fn enlarge(socket: RawFd, option: i32) {
    let _ = set_option(socket, libc::SOL_SOCKET, option, &SOCKET_BUFFER);
}

/// The slot after another one of a ring. A division would take longer than the rest.
#[inline]
fn after(slot: usize, slots: usize) -> usize {
    if slot + 1 == slots { 0 } else { slot + 1 }
}

/// Not in the C library's headers under this name on all targets (linux/if_packet.h).
const PACKET_COPY_THRESH: i32 = 7;
const PACKET_TIMESTAMP: i32 = 17;
const TP_STATUS_TS_RAW_HARDWARE: u32 = 1 << 31;
/// linux/net_tstamp.h.
const SOF_TIMESTAMPING_RAW_HARDWARE: i32 = 1 << 6;

pub(super) fn set_option<T>(socket: RawFd, level: i32, option: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes at the value, which has as many.
    match unsafe { libc::setsockopt(socket, level, option, std::ptr::from_ref(value).cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

pub(super) fn get_option<T>(socket: RawFd, level: i32, option: i32) -> io::Result<T> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: every T used here is of integers, for which all bytes zero is a value; the kernel writes at most `length`
    // bytes.
    unsafe {
        let mut value: T = std::mem::zeroed();
        match libc::getsockopt(socket, level, option, std::ptr::from_mut(&mut value).cast(), &mut length) {
            0 => Ok(value),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn map(socket: RawFd, length: usize) -> io::Result<Mapping> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, socket, 0) };
    match NonNull::new(start.cast::<u8>()) {
        Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Mapping { start, length }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn bind(socket: RawFd, index: i32, protocol: i32) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (protocol as u16).to_be(),
        sll_ifindex: index,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_fit_their_mtu_and_lie_in_one_block() {
        // As many as before for Ethernet's usual MTU; six for jumbo frames of 9500 bytes.
        for (mtu, size, in_block) in [(68, 2048, 32), (1500, 2048, 32), (9000, 9360, 7), (9500, 10_912, 6)] {
            let slots = Slots::for_mtu(mtu);
            assert_eq!(slots, Slots { size, in_block });
            assert!(slots.max_send() >= mtu + 18);
            for slot in 0..100 {
                let (first, last) = (slots.offset(slot), slots.offset(slot) + slots.size - 1);
                assert_eq!((first / BLOCK_BYTES, first % 16), (last / BLOCK_BYTES, 0));
                assert!(slots.offset(slot + 1) > last);
            }
        }
        assert_eq!(Slots::for_mtu(usize::MAX), Slots { size: MAX_SLOT, in_block: 2 });
    }

    /// Slots as the kernel leaves them (packet_mmap, "PACKET_TIMESTAMP"): a frame with the device's stamp, one that the device did
    /// not stamp, and one with a tag.
    #[test]
    fn a_slot_says_who_stamped_its_frame() {
        let header = |tp_status| libc::tpacket2_hdr {
            tp_status,
            tp_len: 60,
            tp_snaplen: 60,
            tp_mac: 82,
            tp_net: 96,
            tp_sec: 4_000_000_000,
            tp_nsec: 999_999_999,
            tp_vlan_tci: 0x2005,
            tp_vlan_tpid: 0x88a8,
            tp_padding: [0; 4],
        };
        let read = |status: u32| Arrival::read(status, &header(status), 2048);
        let device = read(libc::TP_STATUS_USER | 1 << 31);
        assert!(device.is_stamped_by_device && device.vlan.is_none());
        assert_eq!((device.timestamp_ns, device.length, device.data_at), (4_000_000_000_999_999_999, 60, 82));
        // TP_STATUS_TS_SOFTWARE.
        assert!(!read(libc::TP_STATUS_USER | 1 << 29).is_stamped_by_device);
        let tagged =
            read(libc::TP_STATUS_USER | libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID);
        assert_eq!((tagged.vlan, tagged.is_stamped_by_device), (Some((0x88a8, 0x2005)), false));
        assert_eq!(Arrival::read(1, &header(1), 100).captured, 18, "no more than the slot has");
    }

    #[test]
    fn rings_share_their_memory() {
        assert_eq!([1, 8, 64, 4096].map(ring_bytes), [8 << 20, 8 << 20, 1 << 20, 256 << 10]);
        assert!((1..=256).all(|ports| 2 * ports * ring_bytes(ports) <= ALL_RINGS));
    }
}
