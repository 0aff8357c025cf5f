//! `shim.c`, and the few functions of DPDK that are called directly.

#![allow(unsafe_code)]

use crate::addresses::Mac;
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::io;
use std::ptr::NonNull;

/// An mbuf of DPDK.
#[repr(C)]
pub(super) struct Mbuf {
    _opaque: [u8; 0],
}

/// A pool of mbufs.
#[repr(C)]
pub(super) struct Pool {
    _opaque: [u8; 0],
}

/// `struct millrace_memory`.
#[repr(C)]
pub(super) struct Memory {
    pub(super) pool: *mut Pool,
    pub(super) zone: *const u8,
    pub(super) start: *mut u8,
    pub(super) stride: u64,
}

/// A frame in an mbuf.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) mbuf: *mut Mbuf,
    pub(super) data: *mut u8,
    pub(super) length: u32,
    /// The VLAN tag that was taken out of it, with [`TAG_ASIDE`].
    pub(super) tag: u16,
    pub(super) flags: u16,
}

impl Frame {
    pub(super) const NONE: Frame =
        Frame { mbuf: std::ptr::null_mut(), data: std::ptr::null_mut(), length: 0, tag: 0, flags: 0 };
}

/// The frame is in the mbuf's own room, and nobody else has the mbuf.
pub(super) const WHOLE: u16 = 1;
/// The device has taken the VLAN tag out of the frame.
pub(super) const TAG_ASIDE: u16 = 2;

/// `struct millrace_device`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Traits {
    pub(super) rx_queues: u16,
    pub(super) tx_queues: u16,
    pub(super) mtu: u16,
    pub(super) socket: i16,
    driver: [u8; 32],
}

impl Traits {
    /// The name of its driver in DPDK.
    pub(super) fn driver(&self) -> &str {
        CStr::from_bytes_until_nul(&self.driver).ok().and_then(|name| name.to_str().ok()).unwrap_or("")
    }
}

/// How a device spreads frames over several queues.
pub(super) const SPREAD_BY_HASH: c_int = 1;
pub(super) const SPREAD_BY_RULE: c_int = 2;

unsafe extern "C" {
    fn millrace_errno() -> c_int;
    pub(super) fn millrace_memory_new(
        memory: *mut Memory,
        name: *const c_char,
        count: c_uint,
        cache: c_uint,
        room: u16,
        tail: c_uint,
        socket: c_int,
    ) -> c_int;
    pub(super) fn millrace_memory_free(memory: *mut Memory);
    pub(super) fn millrace_slot_distance() -> c_uint;
    pub(super) fn millrace_memory_take(pool: *mut Pool, mbufs: *mut *mut Mbuf, count: c_uint) -> c_int;
    pub(super) fn millrace_memory_put(pool: *mut Pool, mbufs: *const *mut Mbuf, count: c_uint);
    pub(super) fn millrace_memory_flush(pool: *mut Pool);
    #[cfg(test)]
    pub(super) fn millrace_memory_available(pool: *const Pool) -> c_uint;
    pub(super) fn millrace_receive(port: u16, queue: u16, frames: *mut Frame, count: u16) -> c_uint;
    pub(super) fn millrace_send(port: u16, queue: u16, frames: *const Frame, count: u16) -> c_uint;
    pub(super) fn millrace_copy_in(pool: *mut Pool, data: *const u8, length: u32, frame: *mut Frame)
    -> c_int;
    pub(super) fn millrace_copy_out(mbuf: *const Mbuf, to: *mut u8, room: u32) -> u32;
    pub(super) fn millrace_frame_free(mbuf: *mut Mbuf);
    pub(super) fn millrace_device_ask(port: u16, traits: *mut Traits) -> c_int;
    pub(super) fn millrace_device_start(
        port: u16,
        pairs: u16,
        mtu: u16,
        pools: *const *mut Pool,
        step: *mut *const c_char,
        spread: *mut c_int,
    ) -> c_int;
    pub(super) fn millrace_device_listen(
        port: u16,
        all_stations: c_int,
        all_groups: c_int,
        macs: *const Mac,
        count: c_uint,
    ) -> c_int;
    pub(super) fn millrace_device_mac(port: u16, mac: *mut Mac) -> c_int;
    pub(super) fn millrace_device_close(port: u16, pairs: u16);
    pub(super) fn millrace_device_lost(port: u16, lost: *mut u64) -> c_int;
    pub(super) fn millrace_device_is_up(port: u16) -> c_int;

    pub(super) fn rte_eal_init(count: c_int, arguments: *mut *mut c_char) -> c_int;
    pub(super) fn rte_dev_probe(arguments: *const c_char) -> c_int;
    pub(super) fn rte_eth_dev_get_port_by_name(name: *const c_char, port: *mut u16) -> c_int;
    pub(super) fn rte_thread_register() -> c_int;
    pub(super) fn rte_thread_unregister();
}

/// What a call has refused that gives a negative number of an error.
pub(super) fn refusal(result: c_int) -> io::Error {
    io::Error::from_raw_os_error(result.saturating_neg())
}

/// What a call has refused that leaves the number of an error elsewhere.
pub(super) fn last_refusal() -> io::Error {
    // SAFETY: reads a number of this thread.
    io::Error::from_raw_os_error(unsafe { millrace_errno() })
}

impl Memory {
    /// So many mbufs with so much room each, and bytes after that.
    pub(super) fn new(
        name: &CStr,
        count: u32,
        cache: u32,
        room: u16,
        tail: u32,
        socket: i16,
    ) -> io::Result<Memory> {
        let mut memory = Memory {
            pool: std::ptr::null_mut(),
            zone: std::ptr::null(),
            start: std::ptr::null_mut(),
            stride: 0,
        };
        // SAFETY: the name and the structure live beyond the call.
        let result = unsafe {
            millrace_memory_new(&raw mut memory, name.as_ptr(), count, cache, room, tail, c_int::from(socket))
        };
        if result == 0 { Ok(memory) } else { Err(refusal(result)) }
    }

    pub(super) fn start(&self) -> Option<NonNull<u8>> {
        NonNull::new(self.start)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if !self.pool.is_null() {
            // SAFETY: made by `millrace_memory_new` and freed once; all slots have been let go.
            unsafe { millrace_memory_free(self) };
        }
    }
}
