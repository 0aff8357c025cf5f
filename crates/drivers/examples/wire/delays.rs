//! How long frames of `send` were on their way: a filter of a packet socket reads the time in each and counts it, where the kernel
//! delivers it. No frame comes as far as the socket.

#![allow(unsafe_code)]

use crate::bpf::{Code, If, KTIME_GET_NS, Kind, MAP_LOOKUP_ELEMENT, Op, SKB_LOAD_BYTES, Size, array, read};
use crate::send::{MARK, MARK_AT};
use crate::{index, is_over};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// Delays are counted in steps of 64 ns; the last of them counts all that are longer (33 ms).
const STEP_BITS: i32 = 6;
const STEPS: u32 = 1 << 19;

pub(crate) fn run(interface: &str, seconds: usize) -> io::Result<()> {
    let counts = array(STEPS, 8)?;
    let mut code = Code::default();
    // skb_load_bytes(frame, MARK_AT, stack, 12): the mark, then the time
    code.value(Op::Set, 2, MARK_AT.into()).register(Op::Set, 3, 10).value(Op::Add, 3, -16);
    code.value(Op::Set, 4, 12).call(SKB_LOAD_BYTES).end_if_value(0, If::Different, 0);
    code.load(Size::B4, 1, 10, -16).end_if_value(1, If::Different, MARK);
    // Two loads: it is not aligned.
    code.call(KTIME_GET_NS).load(Size::B4, 1, 10, -12).load(Size::B4, 2, 10, -8);
    code.put_together(2, 1).register(Op::Sub, 0, 2).value(Op::ShiftRight, 0, STEP_BITS);
    code.skip_if(1, 0, If::Below, STEPS as i32).value(Op::Set, 0, STEPS as i32 - 1);
    code.store(Size::B4, 10, -4, 0).map(1, &counts).register(Op::Set, 2, 10).value(Op::Add, 2, -4);
    code.call(MAP_LOOKUP_ELEMENT).end_if_value(0, If::Equal, 0);
    code.value(Op::Set, 1, 1).add_at(0, 0, 1).end(0);
    let filter = code.build(Kind::SocketFilter)?;
    let socket = open(index(interface)?, &filter)?;
    println!("ready");
    let begun = Instant::now();
    while !is_over() && begun.elapsed() < Duration::from_secs(seconds as u64) {
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(socket);
    let counts: Vec<u64> = (0..STEPS).map(|step| read(&counts, step)).collect::<io::Result<_>>()?;
    let all: u64 = counts.iter().sum();
    let [half, p99, p999, most] = [0.5, 0.99, 0.999, 1.0].map(|part| {
        let (wanted, mut seen) = ((all as f64 * part).ceil() as u64, 0);
        let step = counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        // The middle of the step, in microseconds.
        (step.unwrap_or(0) as f64 + 0.5) * f64::from(1 << STEP_BITS) / 1e3
    });
    println!(
        "{{\"frames\": {all}, \"p50\": {half:.2}, \"p99\": {p99:.2}, \"p99.9\": {p999:.2}, \"most\": {most:.2}}}"
    );
    Ok(())
}

impl Code {
    /// `high = high << 32 | low`, of registers
    fn put_together(&mut self, high: u8, low: u8) -> &mut Code {
        self.value(Op::ShiftLeft, high, 32).register(Op::Or, high, low)
    }
}

fn open(index: u32, filter: &OwnedFd) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let filter: RawFd = filter.as_raw_fd();
    let length = size_of::<RawFd>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes at the descriptor's number.
    let attached = unsafe {
        let option = std::ptr::from_ref(&filter).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_BPF, option, length)
    };
    if attached != 0 {
        return Err(io::Error::last_os_error());
    }
    crate::rings::bind(socket.as_raw_fd(), index)?;
    Ok(socket)
}
