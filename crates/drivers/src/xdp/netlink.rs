//! The XDP program of an interface as rtnetlink(7) has it: which one is attached, and to attach or take away one. It is older than
//! links of bpf(2), and the only one to say why a driver refuses a program.

#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

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
const NLMSGERR_ATTR_MSG: u16 = 1;
/// An attribute's type without its two flags.
const NLA_TYPE_MASK: u16 = 0x3fff;
/// A message, `struct ifinfomsg` and an attribute have a header of so many bytes.
const MESSAGE_HEADER: usize = 16;
const LINK_HEADER: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;
/// Room for what the kernel says of one interface.
const ANSWER: usize = 64 * 1024;

/// The kernel refuses, with its reason if it gives one.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) error: io::Error,
    reason: Option<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Some(reason) => write!(f, "{} ({})", reason.trim_end_matches('.'), self.error),
            None => self.error.fmt(f),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal { error, reason: None }
    }
}

/// The numbers of the programs attached to an interface, each with the flag of its mode.
pub(super) fn attached(ifindex: u32) -> Result<Vec<(u32, u32)>, Refusal> {
    let answer = ask(libc::RTM_GETLINK, ifindex, &[])?;
    let body = answer.get(LINK_HEADER..).unwrap_or_default();
    let xdp = attributes(body).find(|(kind, _)| *kind == IFLA_XDP).map_or(&[][..], |(_, xdp)| xdp);
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
    ask(libc::RTM_SETLINK, ifindex, &attribute).map(drop)
}

/// Makes a request of one interface, and gives what follows the header of the answer's message.
fn ask(kind: u16, ifindex: u32, attributes: &[u8]) -> Result<Vec<u8>, Refusal> {
    let socket = socket()?;
    let length = MESSAGE_HEADER + LINK_HEADER + attributes.len();
    let mut request = Vec::with_capacity(length);
    let get = kind == libc::RTM_GETLINK;
    let flags = libc::NLM_F_REQUEST | if get { 0 } else { libc::NLM_F_ACK };
    // struct nlmsghdr: length, type, flags, sequence, port.
    request.extend((length as u32).to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend((flags as u16).to_ne_bytes());
    request.extend([0; 8]);
    // struct ifinfomsg: family, padding, type, index, flags, change.
    request.extend([0; 4]);
    request.extend(ifindex.to_ne_bytes());
    request.extend([0; 8]);
    request.extend(attributes);
    // SAFETY: the buffer is as long as it is said to be, and lives beyond the call.
    let sent = unsafe { libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error().into());
    }
    let mut answer = vec![0u8; ANSWER];
    // SAFETY: as above; the kernel answers at once.
    let read = unsafe { libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) };
    let Ok(read) = usize::try_from(read) else { return Err(io::Error::last_os_error().into()) };
    answer.truncate(read);
    parse(&answer)
}

/// What follows the header of a message that is no error.
fn parse(answer: &[u8]) -> Result<Vec<u8>, Refusal> {
    let amiss = || Refusal::from(io::Error::from(io::ErrorKind::InvalidData));
    let (header, body) = answer.split_at_checked(MESSAGE_HEADER).ok_or_else(amiss)?;
    let kind = u16::from_ne_bytes([header[4], header[5]]);
    if i32::from(kind) != libc::NLMSG_ERROR {
        return Ok(body.to_vec());
    }
    let code = body.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)).ok_or_else(amiss)?;
    if code == 0 {
        return Ok(Vec::new());
    }
    // The header of the request without its body, then attributes (NETLINK_CAP_ACK, NETLINK_EXT_ACK).
    let told = body.get(4 + MESSAGE_HEADER..).unwrap_or_default();
    let reason = attributes(told).find(|(kind, _)| *kind == NLMSGERR_ATTR_MSG);
    let text = |value: &[u8]| String::from_utf8_lossy(value).trim_end_matches('\0').to_owned();
    Err(Refusal { error: io::Error::from_raw_os_error(-code), reason: reason.map(|(_, value)| text(value)) })
}

fn number(value: &[u8]) -> Option<u32> {
    value.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

fn put_attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    // A few words at most.
    to.extend(((ATTRIBUTE_HEADER + value.len()) as u16).to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// The attributes that follow each other, as far as they are whole.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [length, more, kind, kinds] = *bytes.first_chunk::<ATTRIBUTE_HEADER>()?;
        let length = usize::from(u16::from_ne_bytes([length, more]));
        let value = bytes.get(ATTRIBUTE_HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([kind, kinds]) & NLA_TYPE_MASK, value))
    })
}

fn socket() -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let descriptor =
        unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
        let on = 1i32;
        // Without it the kernel gives no reasons. SAFETY: the value is as long as it is said to be.
        let _ = unsafe {
            let length = size_of::<i32>() as libc::socklen_t;
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_NETLINK,
                option,
                std::ptr::from_ref(&on).cast(),
                length,
            )
        };
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_far_as_they_are_whole() {
        let mut bytes = Vec::new();
        put_attribute(&mut bytes, 7, &[1, 2, 3]);
        put_attribute(&mut bytes, 8 | 0x8000, &[4, 5, 6, 7]);
        assert_eq!(bytes, [7, 0, 7, 0, 1, 2, 3, 0, 8, 0, 8, 0x80, 4, 5, 6, 7]);
        let read: Vec<_> = attributes(&bytes).collect();
        assert_eq!(read, [(7, &[1, 2, 3][..]), (8, &[4, 5, 6, 7][..])]);
        assert_eq!(attributes(&bytes[..15]).count(), 1);
        assert_eq!(attributes(&[3, 0, 1, 0]).count(), 0, "shorter than its own header");
    }

    #[test]
    fn a_refusal_has_the_kernels_reason() {
        let mut message = vec![0; 16];
        message[4] = libc::NLMSG_ERROR as u8;
        message.extend((-libc::EBUSY).to_ne_bytes());
        message.extend([0; 16]);
        put_attribute(&mut message, NLMSGERR_ATTR_MSG, b"Not now.\0");
        let refusal = parse(&message).unwrap_err();
        assert_eq!(refusal.to_string(), "Not now (Device or resource busy (os error 16))");
        assert!(parse(&message[..10]).is_err());
        assert_eq!(attached(1).unwrap(), [], "nothing on the loopback interface");
    }
}
