//! Which links are up, for whoever has to do without a port while its link is down.
//!
//! The kernel says that some link has changed; which one, and how it is now, is then asked of each. So a message that is lost
//! costs a second, and no link is ever taken for what it was.

#![allow(unsafe_code)]

use crate::link::LinkName;
use crate::spec::{Driver, PortSpec};
use crate::wait::wait_readable;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// How often links are looked at without a message.
const AGAIN: Duration = Duration::from_secs(1);

/// Watches the links behind ports.
#[derive(Debug)]
pub struct LinkWatch {
    /// Readable when a link of the system has changed.
    changed: OwnedFd,
    links: Vec<Link>,
}

#[derive(Debug)]
struct Link {
    port: u16,
    name: LinkName,
    is_up: bool,
}

impl LinkWatch {
    /// Watches those of the ports that have a link: interfaces. None if no port has. All are taken to be up at first.
    ///
    /// # Errors
    /// What the system says when it is asked for a netlink socket.
    pub fn new(ports: &[PortSpec]) -> io::Result<Option<LinkWatch>> {
        let has_link = |port: &&PortSpec| matches!(port.interface.driver, Driver::Packet | Driver::Tap);
        let link = |port: &PortSpec| {
            let name = LinkName::new(port.interface.driver.name(), &port.interface.args).ok()?;
            Some(Link { port: port.port, name, is_up: true })
        };
        let links: Vec<Link> = ports.iter().filter(has_link).filter_map(link).collect();
        match links.is_empty() {
            true => Ok(None),
            false => Ok(Some(LinkWatch { changed: link_messages()?, links })),
        }
    }

    /// The ports whose links have changed since this was asked last, with whether they are up.
    pub fn changes(&mut self) -> Vec<(u16, bool)> {
        let mut changes = Vec::new();
        for link in &mut self.links {
            // An interface that is gone is down.
            let is_up = link.name.is_running().unwrap_or(false);
            if is_up != link.is_up {
                link.is_up = is_up;
                changes.push((link.port, is_up));
            }
        }
        changes
    }

    /// Waits until a link may have changed, or the descriptor is readable.
    ///
    /// # Errors
    /// What poll(2) says.
    pub fn wait(&self, or: RawFd) -> io::Result<()> {
        wait_readable(&[self.changed.as_raw_fd(), or], Some(AGAIN))?;
        let mut message = [0u8; 4096];
        loop {
            // SAFETY: the buffer is as long as it is said to be, and lives beyond the call.
            let read = unsafe {
                libc::recv(
                    self.changed.as_raw_fd(),
                    message.as_mut_ptr().cast(),
                    message.len(),
                    libc::MSG_DONTWAIT,
                )
            };
            // Nothing more, or messages were lost: either way it is asked what is.
            if read <= 0 {
                return Ok(());
            }
        }
    }
}

/// A socket on which the kernel says that links have changed (rtnetlink(7), RTMGRP_LINK).
fn link_messages() -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let descriptor =
        unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // SAFETY: a plain C structure for which all bytes zero is a value.
    let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
    address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
    address.nl_groups = libc::RTMGRP_LINK as u32;
    // SAFETY: the address is of the type of the socket's family, with its length.
    let bound = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            std::ptr::from_ref(&address).cast(),
            size_of::<libc::sockaddr_nl>() as libc::socklen_t,
        )
    };
    match bound {
        0 => Ok(socket),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::{in_fresh_namespace, ip, veth_pair};
    use std::time::Instant;

    fn ports(interfaces: &[&str]) -> Vec<PortSpec> {
        interfaces.iter().enumerate().map(|(n, of)| format!("{n}@{of}").parse().unwrap()).collect()
    }

    #[test]
    fn ports_without_a_link_need_no_watch() {
        assert!(LinkWatch::new(&ports(&["null:-", "pcap:in,out"])).unwrap().is_none());
        // One that is not there is down.
        let mut watch = LinkWatch::new(&ports(&["null:-", "lo", "no-such-link"])).unwrap().unwrap();
        assert_eq!(watch.changes().iter().find(|(port, _)| *port == 2), Some(&(2, false)));
    }

    #[test]
    fn links_that_go_down_and_come_back_are_told() {
        in_fresh_namespace("links_that_go_down_and_come_back_are_told", || {
            veth_pair("p4rw0", "p4rw1");
            veth_pair("p4rw2", "p4rw3");
            let mut watch = LinkWatch::new(&ports(&["p4rw0", "p4rw2"])).unwrap().unwrap();
            assert_eq!(watch.changes(), []);
            let (stop, _keep) = std::os::unix::net::UnixStream::pair().unwrap();
            let mut told = |wanted| {
                let deadline = Instant::now() + Duration::from_secs(10);
                loop {
                    watch.wait(stop.as_raw_fd()).unwrap();
                    let changes = watch.changes();
                    if !changes.is_empty() {
                        assert_eq!(changes, [wanted]);
                        return;
                    }
                    assert!(Instant::now() < deadline, "{wanted:?} is not told");
                }
            };
            // The other end takes the carrier away.
            ip("link set p4rw3 down");
            told((1, false));
            ip("link set p4rw0 down");
            told((0, false));
            ip("link set p4rw3 up");
            told((1, true));
            ip("link set p4rw0 up");
            told((0, true));
            ip("link del p4rw0");
            told((0, false));
        });
    }
}
