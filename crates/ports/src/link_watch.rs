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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often links are looked at without a message.
const AGAIN: Duration = Duration::from_secs(1);

/// Watches the links behind ports.
#[derive(Debug)]
pub struct LinkWatch {
    /// Readable when a link of the system has changed.
    changed: OwnedFd,
    links: Links,
}

/// The links behind ports, which may come and go while they are watched.
#[derive(Clone, Debug, Default)]
pub struct Links(Arc<Mutex<Vec<Link>>>);

#[derive(Debug)]
struct Link {
    port: u16,
    name: LinkName,
    /// As it was told last.
    is_up: Option<bool>,
}

impl Links {
    /// Those of the ports that have a link: interfaces. All are taken to be up at first.
    pub fn of(ports: &[PortSpec]) -> Links {
        let links = ports.iter().filter_map(|port| Link::of(port, Some(true)));
        Links(Arc::new(Mutex::new(links.collect())))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// A port is there from now on. How its link is, is told next, if it has one.
    pub fn add(&self, port: &PortSpec) {
        self.lock().extend(Link::of(port, None));
    }

    /// A port is not there any more.
    pub fn remove(&self, port: u16) {
        self.lock().retain(|link| link.port != port);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Link>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    fn of(port: &PortSpec, is_up: Option<bool>) -> Option<Link> {
        let PortSpec { port, interface } = port;
        let has_link = matches!(interface.driver, Driver::Packet | Driver::Tap);
        let name = has_link.then(|| LinkName::new(interface.driver.name(), &interface.args).ok());
        Some(Link { port: *port, name: name.flatten()?, is_up })
    }
}

impl LinkWatch {
    /// Watches links.
    ///
    /// # Errors
    /// What the system says when it is asked for a netlink socket.
    pub fn new(links: Links) -> io::Result<LinkWatch> {
        Ok(LinkWatch { changed: link_messages()?, links })
    }

    /// The ports whose links have changed since this was asked last, with whether they are up.
    pub fn changes(&mut self) -> Vec<(u16, bool)> {
        let mut changes = Vec::new();
        for link in &mut *self.links.lock() {
            // An interface that is gone is down.
            let is_up = link.name.is_running().unwrap_or(false);
            if link.is_up.replace(is_up) != Some(is_up) {
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
        assert!(Links::of(&ports(&["null:-", "pcap:in,out"])).is_empty());
        // One that is not there is down.
        let links = Links::of(&ports(&["null:-", "lo", "no-such-link"]));
        let mut watch = LinkWatch::new(links.clone()).unwrap();
        assert_eq!(watch.changes().iter().find(|(port, _)| *port == 2), Some(&(2, false)));
        // A port that comes later is told of in any case.
        links.add(&"7@no-such-link".parse().unwrap());
        assert_eq!(watch.changes().iter().find(|(port, _)| *port == 7), Some(&(7, false)));
        [1, 2, 7].iter().for_each(|port| links.remove(*port));
        assert!(links.is_empty() && watch.changes().is_empty());
    }

    #[test]
    fn links_that_go_down_and_come_back_are_told() {
        in_fresh_namespace("links_that_go_down_and_come_back_are_told", || {
            veth_pair("p4rw0", "p4rw1");
            veth_pair("p4rw2", "p4rw3");
            let mut watch = LinkWatch::new(Links::of(&ports(&["p4rw0", "p4rw2"]))).unwrap();
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
