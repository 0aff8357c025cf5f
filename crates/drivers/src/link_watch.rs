//! What is behind the ports of a switch: interfaces with their link, speed and address. [`Links`] is the one record that
//! all who tell of ports read; [`LinkWatch`] tells when a link comes up or goes down, for whoever has to do without a port
//! while it is down.
//!
//! The kernel says that some link has changed; which one, and how it is now, is then asked of each. So a message that is lost
//! costs a second, and no link is ever taken for what it was.

#![allow(unsafe_code)]

use crate::link::{LinkName, note_change};
use crate::link_counters::LinkCounters;
use crate::spec::{Driver, InterfaceSpec, PortSpec};
use crate::wait::wait_readable;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often links are looked at without a message.
const AGAIN: Duration = Duration::from_secs(1);

/// Watches the links of ports.
#[derive(Debug)]
pub struct LinkWatch {
    /// Readable when a link of the system has changed.
    changed: OwnedFd,
    links: Links,
}

/// What is behind the ports of a switch, which may come and go. Copies are the same record.
#[derive(Clone, Debug, Default)]
pub struct Links(Arc<Mutex<Vec<Link>>>);

/// What a port is connected to, as the kernel says at the moment when it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortLink {
    /// The number of the port.
    pub port: u16,
    /// The driver with what it was given.
    pub spec: InterfaceSpec,
    /// Its link; none of a port that is no interface (capture files).
    pub link: Option<LinkState>,
}

/// The link of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkState {
    /// The name of the interface.
    pub name: String,
    /// Whether the interface is up and has a carrier. One that is gone is down.
    pub is_up: bool,
    /// Its hardware address.
    pub mac: Option<[u8; 6]>,
    /// Its speed in millions of bits per second.
    pub speed_mbps: Option<u32>,
    /// The longest payload of a frame, in bytes.
    pub mtu: Option<u32>,
    /// What it has counted since the switch has it; none of one that is gone.
    pub counters: Option<LinkCounters>,
}

/// What is new of the link of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkNews {
    /// Whether it is up.
    State(u16, bool),
    /// Its MTU.
    Mtu(u16, usize),
}

#[derive(Debug)]
struct Link {
    port: u16,
    spec: InterfaceSpec,
    /// None: it is no interface. Held, if it was there when the switch took it.
    name: Option<LinkName>,
    /// As it was told last.
    is_up: Option<bool>,
    /// The MTU that it had last; none while it is gone.
    mtu: Option<usize>,
    /// What it had counted when the switch took it.
    before: Option<LinkCounters>,
}

impl Links {
    /// What these ports are connected to. All links are taken to be up at first by whoever is told of changes.
    pub fn of(ports: &[PortSpec]) -> Links {
        Links(Arc::new(Mutex::new(ports.iter().map(|port| Link::of(port, Some(true))).collect())))
    }

    /// How many of them are interfaces.
    pub fn len(&self) -> usize {
        self.lock().iter().filter(|link| link.name.is_some()).count()
    }

    /// Whether none of them is an interface.
    pub fn is_empty(&self) -> bool {
        self.lock().iter().all(|link| link.name.is_none())
    }

    /// A port is there from now on. How its link is, is told next, if it has one.
    pub fn add(&self, port: &PortSpec) {
        self.lock().push(Link::of(port, None));
    }

    /// A port is not there any more.
    pub fn remove(&self, port: u16) {
        self.lock().retain(|link| link.port != port);
    }

    /// All ports as they are now. Asks the kernel a few times for each.
    pub fn now(&self) -> Vec<PortLink> {
        self.lock().iter().map(Link::now).collect()
    }

    /// One port as it is now.
    pub fn of_port(&self, port: u16) -> Option<PortLink> {
        self.lock().iter().find(|link| link.port == port).map(Link::now)
    }

    /// The port that has an interface already, by its name or by another name of the same.
    pub fn user_of(&self, interface: &InterfaceSpec) -> Option<u16> {
        let wanted = Link::name(interface)?;
        let index = wanted.index().ok();
        // Of one that is gone the name is all that is left.
        let is_same = |name: &LinkName| match (name.index().ok(), index) {
            (Some(is), Some(wanted)) => is == wanted,
            _ => name.as_str() == wanted.as_str(),
        };
        // A tap interface is made, or was for the purpose.
        let is_tap = |spec: &InterfaceSpec| spec.driver == Driver::Tap;
        let links = self.lock();
        let user = links
            .iter()
            .find(|link| is_tap(&link.spec) == is_tap(interface) && link.name.as_ref().is_some_and(is_same));
        user.map(|link| link.port)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Link>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    fn of(port: &PortSpec, is_up: Option<bool>) -> Link {
        let PortSpec { port, interface } = port;
        let name = Link::name(interface).map(|name| name.held_if_there());
        let mtu = name.as_ref().and_then(|name| name.mtu().ok());
        let before = name.as_ref().and_then(LinkCounters::of);
        Link { port: *port, spec: interface.clone(), name, is_up, mtu, before }
    }

    /// The name of an interface; none of what is no interface.
    fn name(interface: &InterfaceSpec) -> Option<LinkName> {
        LinkName::new(interface.driver.name(), interface.link()?).ok()
    }

    /// What the interface has counted since the switch has it.
    fn counters(&self, name: &LinkName) -> Option<LinkCounters> {
        let now = LinkCounters::of(name)?;
        let counters = self.before.as_ref().map_or(now, |before| now.since(before));
        Some(if self.spec.driver == Driver::Tap { counters.turned() } else { counters })
    }

    fn now(&self) -> PortLink {
        let link = self.name.as_ref().map(|name| LinkState {
            name: name.as_str().to_owned(),
            is_up: name.is_running().unwrap_or(false),
            mac: name.mac().ok().flatten(),
            speed_mbps: name.speed_mbps().ok().flatten(),
            mtu: name.mtu().ok().and_then(|mtu| u32::try_from(mtu).ok()),
            counters: self.counters(name),
        });
        PortLink { port: self.port, spec: self.spec.clone(), link }
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
            let Some(name) = &link.name else { continue };
            let is_up = name.is_running().unwrap_or(false);
            if link.is_up.replace(is_up) != Some(is_up) {
                changes.push((link.port, is_up));
            }
        }
        changes
    }

    /// The ports whose links have another MTU than when this was asked last, with the new one.
    pub fn new_mtus(&mut self) -> Vec<(u16, usize)> {
        let mut new = Vec::new();
        for link in &mut *self.links.lock() {
            if let Some(Ok(mtu)) = link.name.as_ref().map(LinkName::mtu)
                && link.mtu.replace(mtu) != Some(mtu)
            {
                new.push((link.port, mtu));
            }
        }
        new
    }

    /// Tells of links that change, until the other end of `stopped` is gone. After each change `look` has workers look at their ports, which
    /// those that sleep do not do by themselves; it says whether there still are any.
    ///
    /// # Errors
    /// What poll(2) says: links are not watched any more.
    pub fn follow(
        mut self,
        stopped: &UnixStream,
        mut tell: impl FnMut(LinkNews),
        mut look: impl FnMut() -> bool,
    ) -> io::Result<()> {
        stopped.set_nonblocking(true)?;
        loop {
            self.changes().into_iter().for_each(|(port, is_up)| tell(LinkNews::State(port, is_up)));
            self.new_mtus().into_iter().for_each(|(port, mtu)| tell(LinkNews::Mtu(port, mtu)));
            self.wait(stopped.as_raw_fd())?;
            // Nothing is ever written there.
            if !look() || matches!((&*stopped).read(&mut [0]), Ok(0)) {
                return Ok(());
            }
        }
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
            if read != -1 || io::Error::last_os_error().kind() != io::ErrorKind::WouldBlock {
                note_change();
            }
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
    fn a_record_has_name_address_and_speed() {
        in_fresh_namespace("a_record_has_name_address_and_speed", || {
            veth_pair("p4rx0", "p4rx1");
            ip("link set p4rx0 address 02:00:00:00:00:17 mtu 1400");
            let links = Links::of(&ports(&["p4rx0", "null:-", "gone"]));
            let [interface, file, gone] = links.now().try_into().unwrap();
            let link = interface.link.unwrap();
            assert_eq!((interface.port, link.name.as_str(), link.is_up), (0, "p4rx0", true));
            assert_eq!((link.mac, link.mtu), (Some([2, 0, 0, 0, 0, 0x17]), Some(1400)));
            // What the driver of these interfaces says.
            assert_eq!(link.speed_mbps, Some(10_000));
            assert_eq!((file.port, file.link, file.spec.to_string()), (1, None, "null:-".to_owned()));
            assert_eq!(gone.link, Some(LinkState { name: "gone".into(), ..LinkState::default() }));
            ip("link set p4rx1 down");
            // The kernel takes a moment.
            let deadline = Instant::now() + Duration::from_secs(10);
            while links.of_port(0).unwrap().link.unwrap().is_up {
                assert!(Instant::now() < deadline, "the link is not down");
                std::thread::sleep(Duration::from_millis(10));
            }
            // Another name of the same interface is the same interface.
            ip("link property add dev p4rx0 altname other");
            let spec = |text: &str| text.parse::<InterfaceSpec>().unwrap();
            assert_eq!(links.user_of(&spec("packet:p4rx0")), Some(0));
            assert_eq!(links.user_of(&spec("other")), Some(0));
            assert_eq!(links.user_of(&spec("xdp:p4rx0,queue=1")), Some(0));
            for free in ["p4rx1", "tap:p4rx0", "null:-", "gone2"] {
                assert_eq!(links.user_of(&spec(free)), None, "{free}");
            }
        });
    }

    #[test]
    fn an_interface_that_was_made_again_is_another_one() {
        in_fresh_namespace("an_interface_that_was_made_again_is_another_one", || {
            veth_pair("p4ra0", "p4ra1");
            let links = Links::of(&ports(&["p4ra0"]));
            let mut watch = LinkWatch::new(links.clone()).unwrap();
            assert_eq!(watch.changes(), []);
            ip("link del p4ra0");
            veth_pair("p4ra0", "p4ra1");
            assert_eq!(watch.changes(), [(0, false)]);
            assert!(!links.of_port(0).unwrap().link.unwrap().is_up);
            // A port that is added again has the new one.
            links.remove(0);
            links.add(&"0@p4ra0".parse().unwrap());
            assert_eq!(watch.changes(), [(0, true)]);
        });
    }

    #[test]
    fn an_interface_with_another_name_is_the_same() {
        in_fresh_namespace("an_interface_with_another_name_is_the_same", || {
            veth_pair("p4rb0", "p4rb1");
            let links = Links::of(&ports(&["p4rb0"]));
            let mut watch = LinkWatch::new(links.clone()).unwrap();
            ip("link set p4rb0 down");
            ip("link set p4rb0 name p4rb2");
            assert_eq!(watch.changes(), [(0, false)]);
            ip("link set p4rb2 mtu 1400");
            ip("link set p4rb2 up");
            // The kernel takes a moment.
            let (mut changes, mut mtus) = (Vec::new(), Vec::new());
            let deadline = Instant::now() + Duration::from_secs(10);
            while changes.is_empty() && Instant::now() < deadline {
                changes.extend(watch.changes());
                mtus.extend(watch.new_mtus());
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_eq!((changes, mtus), (vec![(0, true)], vec![(0, 1400)]));
            let link = links.of_port(0).unwrap().link.unwrap();
            assert_eq!((link.name.as_str(), link.is_up, link.mtu), ("p4rb0", true, Some(1400)));
            assert!(link.mac.is_some() && link.counters.is_some());
            // Another one may have the name now.
            veth_pair("p4rb0", "p4rb3");
            let user = |name: &str| links.user_of(&name.parse().unwrap());
            assert_eq!((user("p4rb0"), user("p4rb2")), (None, Some(0)));
        });
    }

    #[test]
    fn a_new_mtu_is_told() {
        in_fresh_namespace("a_new_mtu_is_told", || {
            veth_pair("p4rm0", "p4rm1");
            let mut watch = LinkWatch::new(Links::of(&ports(&["lo", "p4rm0"]))).unwrap();
            let (stop, _keep) = std::os::unix::net::UnixStream::pair().unwrap();
            assert_eq!(watch.new_mtus(), []);
            let before = crate::link::changes();
            ip("link set p4rm0 mtu 9000");
            watch.wait(stop.as_raw_fd()).unwrap();
            assert_eq!(watch.new_mtus(), [(1, 9000)]);
            assert_eq!(watch.new_mtus(), []);
            assert_ne!(crate::link::changes(), before, "ports are told to ask for their MTU");
        });
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
