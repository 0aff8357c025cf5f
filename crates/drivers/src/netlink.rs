//! Requests to the kernel over netlink(7): of one interface (rtnetlink(7)), and of a family of generic netlink.

#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const NLMSGERR_ATTR_MSG: u16 = 1;
/// An attribute's type without its two flags.
const NLA_TYPE_MASK: u16 = 0x3fff;
/// A message and an attribute have a header of so many bytes, as have what follows the first: `struct ifinfomsg`, `struct genlmsghdr`.
const MESSAGE_HEADER: usize = 16;
const LINK_HEADER: usize = 16;
const GENERIC_HEADER: usize = 4;
const ATTRIBUTE_HEADER: usize = 4;
/// Room for what the kernel says of one interface.
const ANSWER: usize = 64 * 1024;

/// linux/genetlink.h.
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// The kernel refuses, with its reason if it gives one.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) error: io::Error,
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

/// Makes a request of one interface, and gives the attributes of the answer.
pub(crate) fn ask_link(kind: u16, ifindex: u32, attributes: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut header = [0; LINK_HEADER];
    // struct ifinfomsg: family, padding, type, index, flags, change.
    header[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    let flags = if kind == libc::RTM_GETLINK { 0 } else { libc::NLM_F_ACK };
    let answer = ask(libc::NETLINK_ROUTE, kind, flags, &[&header, attributes].concat())?;
    Ok(answer.get(LINK_HEADER..).unwrap_or_default().to_vec())
}

/// Makes a request of a family of generic netlink, by its name, and gives the attributes of the answer.
pub(crate) fn ask_family(name: &str, command: u8, attributes: &[u8]) -> Result<Vec<u8>, Refusal> {
    let ask = |family, command, attributes: &[u8]| -> Result<Vec<u8>, Refusal> {
        // struct genlmsghdr: command, version, reserved.
        let header = [command, 1, 0, 0];
        let answer = ask(libc::NETLINK_GENERIC, family, 0, &[&header, attributes].concat())?;
        Ok(answer.get(GENERIC_HEADER..).unwrap_or_default().to_vec())
    };
    let mut wanted = Vec::new();
    put_attribute(&mut wanted, CTRL_ATTR_FAMILY_NAME, &[name.as_bytes(), &[0]].concat());
    let known = ask(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, &wanted)?;
    let id = crate::netlink::attributes(&known).find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID);
    let id = id.and_then(|(_, value)| value.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes)));
    ask(id.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?, command, attributes)
}

/// Makes a request, and gives what follows the header of the answer's message.
fn ask(protocol: i32, kind: u16, flags: i32, body: &[u8]) -> Result<Vec<u8>, Refusal> {
    let socket = socket(protocol)?;
    let length = MESSAGE_HEADER + body.len();
    let mut request = Vec::with_capacity(length);
    // struct nlmsghdr: length, type, flags, sequence, port.
    request.extend((length as u32).to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend(((libc::NLM_F_REQUEST | flags) as u16).to_ne_bytes());
    request.extend([0; 8]);
    request.extend(body);
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

/// The number of 32 bits that an attribute has.
pub(crate) fn number(value: &[u8]) -> Option<u32> {
    value.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

/// Adds an attribute.
pub(crate) fn put_attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    // A few words at most.
    to.extend(((ATTRIBUTE_HEADER + value.len()) as u16).to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// The attributes that follow each other, as far as they are whole.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [length, more, kind, kinds] = *bytes.first_chunk::<ATTRIBUTE_HEADER>()?;
        let length = usize::from(u16::from_ne_bytes([length, more]));
        let value = bytes.get(ATTRIBUTE_HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([kind, kinds]) & NLA_TYPE_MASK, value))
    })
}

fn socket(protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let descriptor = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
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
    }
}
