//! The receiving half: from GMII to a stream of frames without their check sequence.

use super::super::checksum::{RESIDUE, after};
use super::super::mac::{End, count_received, filter, longer};
use super::super::{first_lanes, once};
use super::{PREAMBLE, START};
use crate::*;

/// The receiving half of a MAC. Inputs: `data`, `dv` and `er` of GMII; `enable`; `station`, the address of the port, the first byte of it
/// highest, and `promiscuous`, when frames for others are taken too. Output: the stream `m` of so many bits (64 to 512), which does not
/// wait for `tready`; `tuser` says at the last beat that the frame is bad: its check sequence is wrong, it is shorter than 64 bytes or
/// longer than `longest` with it, or `er` was 1 in it. [`RECEIVE_COUNTERS`](super::super::RECEIVE_COUNTERS) are outputs too.
///
/// A frame starts after any number of octets of the preamble, as a PHY may take some of them away; what `er` says between frames
/// (carrier extension, false carrier) is nothing of a frame. The last four bytes are the check sequence, so an octet is given on when the
/// fourth after it is there: a beat of *n* bytes comes *n* + 6 cycles after the octet that starts the frame. What ends before its twelfth
/// octet gives no beat.
///
/// # Panics
/// The width is no power of two from 64 to 512.
pub fn gmii_receive(design: &mut Design, width: u32, longest: u32) -> ModuleId {
    assert!(width.is_power_of_two() && (64..=512).contains(&width), "beats of 64 to 512 bits");
    once(design, format!("gmii_receive_{width}_{longest}"), |m| receive(m, width, longest))
}

/// What comes in this cycle.
struct Octet {
    data: NodeId,
    begins: NodeId,
    /// It belongs to a frame.
    there: NodeId,
    /// The octet before was the last of a frame.
    ended: NodeId,
    error: NodeId,
    /// It makes what comes no frame.
    odd: NodeId,
}

pub(super) fn receive(m: &mut ModuleBuilder, width: u32, longest: u32) {
    let output = m.output_stream("m", StreamShape::frames(width, 1));
    let octet = octet(m);
    let (length_register, length) = m.register("length", 16, None);
    let one = m.number(1, 1);
    let more = longer(m, length, one);
    let zero = m.number(16, 0);
    let next_length = m.mux(octet.begins, zero, more);
    m.set_next(length_register, next_length);
    let changes = m.or(octet.begins, octet.there);
    m.set_enable(length_register, changes);
    let end = end_of(m, &octet, (length, changes), longest);

    // The check sequence is what the line holds at the end.
    let (line_register, line) = m.register("line", 32, None);
    let after_it = m.slice(line, 8, 24);
    let next_line = m.concat(&[octet.data, after_it]);
    m.set_next(line_register, next_line);
    m.set_enable(line_register, octet.there);
    let oldest = m.slice(line, 0, 8);
    let four = m.number(16, 4);
    let line_is_full = m.le(four, length);
    let leaves = m.and(octet.there, line_is_full);

    // Octets gather in lanes; a beat is given when what comes says whether it is the last.
    let lanes = width / 8;
    let bits = address_width(lanes + 1);
    let (bytes_register, bytes) = m.register("bytes", bits, None);
    let full = m.is(bytes, lanes.into());
    let (none, one) = (m.number(bits, 0), m.number(bits, 1));
    let next_bytes = m.add(bytes, one);
    let next_bytes = m.mux(full, one, next_bytes);
    let next_bytes = m.mux(octet.begins, none, next_bytes);
    m.set_next(bytes_register, next_bytes);
    let changes = m.or(octet.begins, leaves);
    m.set_enable(bytes_register, changes);
    let (given_register, given) = m.register("given", 1, Some(0));
    let gathered = lanes_of(m, oldest, (leaves, bytes, full), lanes);
    let full_beat = m.and(full, leaves);
    let fresh = m.not(octet.begins);
    m.set_next(given_register, fresh);
    let changes = m.or(octet.begins, full_beat);
    m.set_enable(given_register, changes);

    let has_address = m.is(bytes, 6);
    let first = m.not(given);
    let known = m.all(&[leaves, first, has_address]);
    let destination = m.slice(gathered, 0, 48);
    let addressed = filter(m, destination, known);
    let seven = m.number(bits, 7);
    let enough = m.lt(seven, bytes);
    let begun = m.or(given, enough);

    let last = m.and(octet.ended, begun);
    let gives = m.or(full_beat, last);
    let valid = m.and(gives, addressed.wanted);
    let keep = first_lanes(m, bytes, lanes);
    let user = m.and(end.bad, octet.ended);
    let beat = Beat { data: Some(gathered), keep: Some(keep), last: Some(octet.ended), user: Some(user) };
    m.drive_stream(&output, &beat, valid);
    count_received(m, &end, &addressed, (octet.ended, begun, octet.odd));
}

/// What comes, and how it stands to frames. After a reset, and after an octet that is no preamble, nothing is a frame until `dv` is 0.
fn octet(m: &mut ModuleBuilder) -> Octet {
    let (data, dv, er) = (m.input("data", 8), m.input("dv", 1), m.input("er", 1));
    let enable = m.input("enable", 1);
    let data = m.delayed("data_now", data, None);
    let dv = m.delayed("dv_now", dv, Some(1));
    let er = m.delayed("er_now", er, None);
    let before = m.delayed("dv_before", dv, Some(0));
    let (ready_register, ready) = m.register("ready", 1, Some(0));
    let (inside_register, inside) = m.register("inside", 1, Some(0));
    let absent = m.not(dv);
    let (is_preamble, is_start) = (m.is(data, PREAMBLE.into()), m.is(data, START.into()));
    let right = m.not(er);
    let seeks = m.all(&[ready, dv]);
    let begins = m.all(&[seeks, is_start, right, enable]);
    let goes_on = m.all(&[ready, is_preamble, right]);
    let next_ready = m.or(absent, goes_on);
    m.set_next(ready_register, next_ready);
    let there = m.and(inside, dv);
    let next_inside = m.or(begins, there);
    m.set_next(inside_register, next_inside);
    let ended = m.and(inside, absent);
    let known = m.or(is_preamble, is_start);
    let known = m.and(known, right);
    let unknown = m.not(known);
    let strange = m.and(seeks, unknown);
    // The preamble alone.
    let empty = m.all(&[ready, before, absent]);
    let odd = m.or(strange, empty);
    let odd = m.and(odd, enable);
    Octet { data, begins, there, ended, error: er, odd }
}

/// Lanes that fill one after the other, the first one lowest.
fn lanes_of(
    m: &mut ModuleBuilder,
    octet: NodeId,
    (leaves, bytes, full): (NodeId, NodeId, NodeId),
    lanes: u32,
) -> NodeId {
    let mut all: Vec<NodeId> = (0..lanes)
        .map(|at| {
            let (register, lane) = m.register(&format!("lane{at}"), 8, None);
            m.set_next(register, octet);
            let mut here = m.is(bytes, at.into());
            if at == 0 {
                here = m.or(here, full);
            }
            let fills = m.and(leaves, here);
            m.set_enable(register, fills);
            lane
        })
        .collect();
    all.reverse();
    m.concat(&all)
}

/// Check sequence, errors and length of the octets so far.
fn end_of(m: &mut ModuleBuilder, octet: &Octet, (length, changes): (NodeId, NodeId), longest: u32) -> End {
    let (crc_register, crc) = m.register("crc", 32, None);
    let next = after(m, crc, octet.data, 1);
    let first = m.number(32, 0xffff_ffff);
    let next = m.mux(octet.begins, first, next);
    m.set_next(crc_register, next);
    m.set_enable(crc_register, changes);
    let right = m.is(crc, RESIDUE.into());
    let wrong = m.not(right);
    let (broken_register, broken) = m.register("broken", 1, None);
    let next = m.or(broken, octet.error);
    let fresh = m.not(octet.begins);
    let next = m.and(next, fresh);
    m.set_next(broken_register, next);
    m.set_enable(broken_register, changes);
    End::new(m, length, (wrong, broken), longest)
}
