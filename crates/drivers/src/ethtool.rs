//! Requests to the kernel about the device of an interface, as `ethtool` makes them (linux/ethtool_netlink.h).

use crate::link::LinkName;
use crate::netlink::{Refusal, ask_family, put_attribute};

const HEADER_DEV_INDEX: u16 = 1;
/// A set of bits lists those that are set, and has no mask.
pub(crate) const BITSET_NOMASK: u16 = 1;
/// An attribute holds attributes.
pub(crate) const NESTED: u16 = libc::NLA_F_NESTED as u16;

/// Makes a request of this number, whose header is the attribute of that kind and comes before the others; gives the attributes of the
/// answer.
pub(crate) fn ask(link: &LinkName, command: u8, header: u16, attributes: &[u8]) -> Result<Vec<u8>, Refusal> {
    let (mut device, mut request) = (Vec::new(), Vec::new());
    let index = link.index()?;
    put_attribute(&mut device, HEADER_DEV_INDEX, &index.to_ne_bytes());
    put_attribute(&mut request, header | NESTED, &device);
    request.extend(attributes);
    ask_family("ethtool", command, &request)
}
