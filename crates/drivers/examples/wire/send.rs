//! A source of frames that costs little: an XDP program makes them in the kernel, and redirects each to the interface.
//!
//! `BPF_PROG_TEST_RUN` with live frames runs the program over one frame again and again, in pages that come back to it. So it
//! writes all that a forwarder may have changed: addresses, time to live, checksum. Frames go to 256 prefixes of 10.0.0.0/8 in turn;
//! `identification` and source hold the complement of what changes in the destination, so that one header checksum is right for all.
//!
//! With a rate it makes a frame when its time has come and drops the others, so that frames are apart by the same time; each holds
//! when it was made, by `CLOCK_MONOTONIC`.

use crate::bpf::{Code, If, KTIME_GET_NS, Kind, Op, REDIRECT, Size, XDP_DROP, array, read, send_live, write};
use crate::{index, is_over};
use std::io;

/// The mark of a frame of this source, after the UDP header, and after it the time.
pub(crate) const MARK: i32 = 0x6c6c_696d;
pub(crate) const MARK_AT: i16 = 42;
/// The least that a frame has for all this: 64 bytes on a cable, with its check sequence.
const SHORTEST: usize = 60;
const LONGEST: usize = 3000;
/// Frames made by one request to the kernel, and how many it makes before it sends them.
const REQUEST: u32 = 1 << 20;
const BATCH: u32 = 64;
/// A source that is late by more than that makes frames slower instead of all at once.
const MAX_LATE_NS: i32 = 20_000;

/// What the program shares with this side: the one value of a map.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Pace {
    next_ns: u64,
    interval_ns: u64,
    made: u64,
}

/// The frame without what is written each time.
fn frame(bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; bytes];
    frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    frame[16..18].copy_from_slice(&((bytes - 14) as u16).to_be_bytes());
    frame[23] = 17;
    // 198.18.0.0/15 is for measurements (RFC 2544); the ports are those of `discard`.
    frame[26..28].copy_from_slice(&[198, 18]);
    frame[34..42].copy_from_slice(&[0, 9, 0, 9, 0, 0, 0, 0]);
    frame[38..40].copy_from_slice(&((bytes - 34) as u16).to_be_bytes());
    frame
}

/// The header checksum of all frames (RFC 1071): each pair of a byte and its complement adds up to 0xff.
fn checksum(frame: &[u8]) -> u16 {
    let mut header = [0u8; 20];
    header.copy_from_slice(&frame[14..34]);
    (header[4], header[5]) = (0xff, 0xff);
    (header[8], header[10], header[11]) = (64, 0, 0);
    header[14..20].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 9]);
    let mut sum: u32 = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !sum as u16
}

pub(crate) fn run(interface: &str, bytes: usize, rate: Option<u64>) -> io::Result<()> {
    if !(SHORTEST..=LONGEST).contains(&bytes) {
        return Err(io::Error::other(format!("frames have {SHORTEST} to {LONGEST} bytes, not {bytes}")));
    }
    let (pace, frame) = (array(1, size_of::<Pace>() as u32)?, frame(bytes));
    let interval_ns = rate.map_or(0, |rate| 1_000_000_000 / rate.max(1));
    write(&pace, 0, &Pace { interval_ns, ..Pace::default() })?;
    let mut code = Code::default();
    // r6: the context; r7: the frame; r8: the pace; r9: now.
    code.register(Op::Set, 6, 1).map_value(8, &pace);
    if rate.is_some() {
        code.call(KTIME_GET_NS).register(Op::Set, 9, 0);
        code.load(Size::B8, 1, 8, 0).end_if(9, If::Below, 1);
        // next = max(next + interval, now - MAX_LATE_NS)
        code.load(Size::B8, 2, 8, 8).register(Op::Add, 1, 2);
        code.register(Op::Set, 3, 9).value(Op::Sub, 3, MAX_LATE_NS);
        code.skip_if_register(1, 1, If::NotBelow, 3).register(Op::Set, 1, 3).store(Size::B8, 8, 0, 1);
    }
    code.load(Size::B4, 7, 6, 0).load(Size::B4, 2, 6, 4);
    code.register(Op::Set, 3, 7).value(Op::Add, 3, SHORTEST as i32).end_if(3, If::Greater, 2);
    // r4: the number of the frame
    code.load(Size::B8, 4, 8, 16).value(Op::Add, 4, 1).store(Size::B8, 8, 16, 4);
    // 02:00:00:00:00:00 from 06:00:00:00:00:00
    code.store_value(Size::B4, 7, 0, 2).store_value(Size::B4, 7, 4, 0x0006_0000).store_value(
        Size::B4,
        7,
        8,
        0,
    );
    code.store_value(Size::B2, 7, 18, 0xffff).store_value(Size::B1, 7, 22, 64);
    code.store_value(Size::B2, 7, 24, i32::from(checksum(&frame).to_be()));
    code.value(Op::And, 4, 255).register(Op::Set, 5, 4).value(Op::Xor, 5, 255);
    code.store(Size::B1, 7, 28, 5).store_value(Size::B1, 7, 29, 0xff);
    code.store_value(Size::B2, 7, 30, 10).store(Size::B1, 7, 32, 4).store_value(Size::B1, 7, 33, 9);
    code.store_value(Size::B4, 7, MARK_AT, MARK);
    if rate.is_some() {
        code.store(Size::B8, 7, MARK_AT + 4, 9);
    }
    code.value(Op::Set, 1, index(interface)? as i32).value(Op::Set, 2, 0).call(REDIRECT).exit();
    code.end(XDP_DROP);
    let program = code.build(Kind::Xdp)?;
    println!("ready");
    // Frames that wait for others would be late.
    let batch = if rate.is_some() { 1 } else { BATCH };
    while !is_over() {
        match send_live(&program, &frame, REQUEST, batch) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            sent => sent?,
        }
    }
    println!("{}", read::<Pace>(&pace, 0)?.made);
    Ok(())
}
