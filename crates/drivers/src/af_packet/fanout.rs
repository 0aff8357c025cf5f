//! Several packet sockets of one interface, each of which receives the frames of its share of the flows.
//!
//! The kernel calls that fanout (packet(7)): it gives a frame to one member of the group, chosen by a hash of addresses and ports
//! that is the same for both directions of a flow. A socket receives all frames between its binding and its joining, so it has a
//! filter that takes nothing for that time.

#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

use super::ring::{Refused, RingSocket, get_option, set_option};
use crate::addresses::Addresses;
use std::io;

/// A group of sockets, by the number that the kernel gave it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group(u16);

impl Group {
    /// Binds a socket to an interface as one of the group, or of a new one. It takes no frames until [`admit`].
    pub(super) fn enter(
        group: Option<Group>,
        ring: &RingSocket,
        (index, addresses): (i32, Option<&Addresses>),
    ) -> Result<Group, Refused> {
        let joining = |error| ("join the queues of", error);
        let nothing = [statement(libc::BPF_RET | libc::BPF_K, 0)];
        attach(ring, &nothing).map_err(joining)?;
        ring.bind(index, addresses)?;
        let (id, unique) = match group {
            Some(Group(id)) => (id, 0),
            None => (0, libc::PACKET_FANOUT_FLAG_UNIQUEID),
        };
        let kind = u32::from(id) | (libc::PACKET_FANOUT_HASH | unique) << 16;
        set_option(ring.descriptor(), libc::SOL_PACKET, libc::PACKET_FANOUT, &kind).map_err(joining)?;
        let given: u32 =
            get_option(ring.descriptor(), libc::SOL_PACKET, libc::PACKET_FANOUT).map_err(joining)?;
        // Above it are kind and flags.
        Ok(Group(given as u16))
    }
}

/// A member of a group takes frames from now on, but none that this machine sends: the option that ignores those on a single
/// socket has no effect on a group.
pub(super) fn admit(ring: &RingSocket) -> Result<(), Refused> {
    let kind_of_frame = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
    let incoming = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, kind_of_frame),
        libc::sock_filter {
            jt: 0,
            jf: 1,
            ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::PACKET_OUTGOING.into())
        },
        statement(libc::BPF_RET | libc::BPF_K, 0),
        statement(libc::BPF_RET | libc::BPF_K, u32::MAX),
    ];
    attach(ring, &incoming).map_err(|error| ("filter the frames of", error))
}

fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Gives a socket a filter in place of the one that it has.
fn attach(ring: &RingSocket, filter: &[libc::sock_filter]) -> io::Result<()> {
    // The kernel copies the statements during the call and changes none.
    let program =
        libc::sock_fprog { len: filter.len() as libc::c_ushort, filter: filter.as_ptr().cast_mut() };
    set_option(ring.descriptor(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}
