//! The interface of an open port as it changes: up or down, longer or shorter frames, gone.

use crate::addresses::Addresses;
use crate::link::{LinkName, changes};
use crate::offload::VLAN_TAG;
use crate::port::PortError;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// An Ethernet header, which every frame has.
pub(super) const ETHERNET_HEADER: usize = 14;

/// Between two questions whether a link is still down.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// An interface, and what was last heard of it.
#[derive(Debug)]
pub(super) struct Interface {
    name: LinkName,
    index: i32,
    /// Longest frame that the link takes.
    longest: usize,
    /// The link is down, and was when this was asked last.
    down_at: Option<Instant>,
    /// The number of changes of links after which the link was asked.
    changes: u32,
}

impl Interface {
    /// Finds an interface.
    pub(super) fn find(name: &LinkName) -> Result<Interface, PortError> {
        let changes = changes();
        let refused =
            |error: io::Error| PortError::system(format!("find interface {}", name.as_str()), error);
        let name = name.held().map_err(|error| match error.raw_os_error() {
            Some(libc::ENODEV) => {
                PortError::NoInterface { name: name.as_str().to_owned(), known: crate::link::names() }
            }
            _ => refused(error),
        })?;
        let mtu = name.mtu().map_err(refused)?;
        let index = name.index().map_err(refused)?;
        let longest = mtu + ETHERNET_HEADER + VLAN_TAG;
        let mut interface = Interface { name, index, longest, down_at: None, changes };
        interface.look_whether_up();
        Ok(interface)
    }

    /// Its number.
    pub(super) fn index(&self) -> u32 {
        self.index.unsigned_abs()
    }

    /// Has it take frames for these addresses next to its own, or for all (none), for as long as the descriptor is open.
    pub(super) fn hold_addresses(&self, addresses: Option<&Addresses>) -> io::Result<OwnedFd> {
        crate::link::hold_addresses(self.index, addresses)
    }

    /// Longest frame that the link takes.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    pub(super) fn is_down(&self) -> bool {
        self.down_at.is_some()
    }

    /// Asks again after some link of the system has changed, or while this one is down. An interface that is gone is an error.
    #[inline]
    pub(super) fn follow(&mut self) -> Result<(), PortError> {
        if self.changes != changes() {
            return self.follow_change();
        }
        if self.down_at.is_some_and(|asked| asked.elapsed() >= LOOK_AGAIN) {
            self.look_whether_up();
        }
        Ok(())
    }

    #[cold]
    fn follow_change(&mut self) -> Result<(), PortError> {
        // Before the questions: a change meanwhile is asked for again.
        self.changes = changes();
        if let Ok(mtu) = self.name.mtu() {
            self.longest = mtu + ETHERNET_HEADER + VLAN_TAG;
        }
        self.check()
    }

    /// The link went down, which is no error, or away, which is.
    #[cold]
    pub(super) fn check(&mut self) -> Result<(), PortError> {
        self.look_whether_up();
        self.name.index().map(drop).map_err(|error| self.error("use", error))
    }

    #[cold]
    fn look_whether_up(&mut self) {
        // `check` reports an interface that is gone.
        self.down_at = (!self.name.is_running().unwrap_or(false)).then(Instant::now);
    }

    pub(super) fn error(&self, what: &str, error: io::Error) -> PortError {
        PortError::system(format!("{what} interface {}", self.name.as_str()), error)
    }
}
