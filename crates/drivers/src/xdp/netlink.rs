//! The XDP program of an interface as rtnetlink(7) has it: which one is attached, and to attach or take away one. It is older than
//! links of bpf(2), and the only one to say why a driver refuses a program.

pub(super) use crate::netlink::Refusal;

use crate::netlink::{ask_link, attributes, number, put_attribute};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Flags of linux/if_link.h.
pub(super) const XDP_FLAGS_UPDATE_IF_NOEXIST: u32 = 1;
pub(super) const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
pub(super) const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
const XDP_FLAGS_REPLACE: u32 = 1 << 4;

/// Attributes of linux/if_link.h.
const IFLA_XDP: u16 = 43;
const IFLA_XDP_FD: u16 = 1;
const IFLA_XDP_FLAGS: u16 = 3;
const IFLA_XDP_DRV_PROG_ID: u16 = 5;
const IFLA_XDP_SKB_PROG_ID: u16 = 6;
const IFLA_XDP_HW_PROG_ID: u16 = 7;
const IFLA_XDP_EXPECTED_FD: u16 = 8;

/// The numbers of the programs attached to an interface, each with the flag of its mode.
pub(super) fn attached(ifindex: u32) -> Result<Vec<(u32, u32)>, Refusal> {
    let answer = ask_link(libc::RTM_GETLINK, ifindex, &[])?;
    let xdp = attributes(&answer).find(|(kind, _)| *kind == IFLA_XDP).map_or(&[][..], |(_, xdp)| xdp);
    let programs = attributes(xdp).filter_map(|(kind, value)| {
        let flag = match kind {
            IFLA_XDP_DRV_PROG_ID => XDP_FLAGS_DRV_MODE,
            IFLA_XDP_SKB_PROG_ID => XDP_FLAGS_SKB_MODE,
            IFLA_XDP_HW_PROG_ID => XDP_FLAGS_HW_MODE,
            _ => return None,
        };
        Some((number(value)?, flag))
    });
    Ok(programs.collect())
}

/// A program in the network card itself.
const XDP_FLAGS_HW_MODE: u32 = 1 << 3;

/// Attaches a program to an interface that has none, until it is taken away.
pub(super) fn attach(ifindex: u32, program: &OwnedFd, mode: u32) -> Result<(), Refusal> {
    let flags = mode | XDP_FLAGS_UPDATE_IF_NOEXIST;
    set(ifindex, &[(IFLA_XDP_FD, program.as_raw_fd() as u32), (IFLA_XDP_FLAGS, flags)])
}

/// Takes this program away from an interface, and no other.
pub(super) fn detach(ifindex: u32, program: &OwnedFd, mode: u32) -> Result<(), Refusal> {
    let none: RawFd = -1;
    let (flags, expected) = (mode | XDP_FLAGS_REPLACE, program.as_raw_fd() as u32);
    let values = [(IFLA_XDP_FD, none as u32), (IFLA_XDP_FLAGS, flags), (IFLA_XDP_EXPECTED_FD, expected)];
    set(ifindex, &values)
}

fn set(ifindex: u32, values: &[(u16, u32)]) -> Result<(), Refusal> {
    let mut nested = Vec::new();
    for (kind, value) in values {
        put_attribute(&mut nested, *kind, &value.to_ne_bytes());
    }
    let mut attribute = Vec::new();
    put_attribute(&mut attribute, IFLA_XDP | libc::NLA_F_NESTED as u16, &nested);
    ask_link(libc::RTM_SETLINK, ifindex, &attribute).map(drop)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_loopback_interface_has_no_program() {
        assert_eq!(super::attached(1).unwrap(), []);
    }
}
