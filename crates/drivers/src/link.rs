//! Linux network interfaces by name: the few requests that drivers make of them.

#![allow(unsafe_code)]

use crate::addresses::{Addresses, Mac};
use crate::offload::HEADER_LEN;
use crate::port::PortError;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// How often the kernel has said that some link has changed, while somebody listens.
static CHANGES: AtomicU32 = AtomicU32::new(0);

/// A number that is another one after a change of some link, if somebody watches links ([`crate::LinkWatch`]).
#[inline]
pub(crate) fn changes() -> u32 {
    CHANGES.load(Ordering::Relaxed)
}

/// Some link has changed.
pub(crate) fn note_change() {
    CHANGES.fetch_add(1, Ordering::Relaxed);
}

/// An interface by a name that fits the kernel's structures, or, from when it is [held](LinkName::held), by its number: then it stays
/// the same whatever it and others are called.
#[derive(Clone, Debug)]
pub(crate) struct LinkName {
    name: String,
    index: Option<i32>,
}

impl LinkName {
    /// Checks a name: 1 to 15 bytes, neither space nor slash nor zero byte.
    pub(crate) fn new(driver: &'static str, name: &str) -> Result<LinkName, PortError> {
        let bad = |byte: u8| byte == b'/' || byte == 0 || byte.is_ascii_whitespace();
        if name.is_empty()
            || name.len() >= libc::IFNAMSIZ
            || name == "."
            || name == ".."
            || name.bytes().any(bad)
        {
            let reason =
                format!("`{name}` is not an interface name (1 to 15 characters, no space, no slash)");
            return Err(PortError::Arguments { driver, reason });
        }
        Ok(LinkName { name: name.to_owned(), index: None })
    }

    /// The interface that has this name now. It is gone when it is removed, also if another one is made with its name.
    pub(crate) fn held(&self) -> io::Result<LinkName> {
        Ok(LinkName { name: self.name.clone(), index: Some(self.index()?) })
    }

    /// The interface that has this name now, else the name: with none there, what is asked of the name says that.
    pub(crate) fn held_if_there(&self) -> LinkName {
        self.held().unwrap_or_else(|_| self.clone())
    }

    /// The name that it was given; that of the interface may be another one since.
    pub(crate) fn as_str(&self) -> &str {
        &self.name
    }

    /// The kernel's request structure with the name of the interface, for a request that sets all else that it needs.
    fn request(&self) -> io::Result<libc::ifreq> {
        // SAFETY: ifreq is a plain C structure for which all bytes zero is a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        let Some(index) = self.index else {
            for (place, byte) in request.ifr_name.iter_mut().zip(self.name.bytes()) {
                *place = byte as libc::c_char;
            }
            return Ok(request);
        };
        request.ifr_ifru.ifru_ifindex = index;
        control(control_socket()?.as_raw_fd(), libc::SIOCGIFNAME as libc::Ioctl, &mut request)?;
        Ok(request)
    }

    /// The number of the interface.
    pub(crate) fn index(&self) -> io::Result<i32> {
        let request = self.ask(libc::SIOCGIFINDEX as libc::Ioctl)?;
        // SAFETY: the kernel filled in this member for this request.
        Ok(unsafe { request.ifr_ifru.ifru_ifindex })
    }

    /// The longest payload of a frame in bytes, without the Ethernet header.
    pub(crate) fn mtu(&self) -> io::Result<usize> {
        let request = self.ask(libc::SIOCGIFMTU as libc::Ioctl)?;
        // SAFETY: the kernel filled in this member for this request.
        let mtu = unsafe { request.ifr_ifru.ifru_mtu };
        Ok(usize::try_from(mtu).unwrap_or(0))
    }

    /// Whether the interface is up and has a carrier.
    pub(crate) fn is_running(&self) -> io::Result<bool> {
        let wanted = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        Ok(self.flags()?.1 & wanted == wanted)
    }

    /// The hardware address of an Ethernet interface; none of one that has no such address.
    pub(crate) fn mac(&self) -> io::Result<Option<[u8; 6]>> {
        let request = self.ask(libc::SIOCGIFHWADDR as libc::Ioctl)?;
        // SAFETY: the kernel filled in this member for this request.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr };
        let bytes = address.sa_data.first_chunk::<6>().map(|bytes| bytes.map(|byte| byte as u8));
        Ok(bytes.filter(|bytes| address.sa_family == libc::ARPHRD_ETHER && *bytes != [0; 6]))
    }

    /// The speed of the link in millions of bits per second; none where the driver does not know one, as without a carrier.
    pub(crate) fn speed_mbps(&self) -> io::Result<Option<u32>> {
        let mut command = EthtoolCommand { cmd: ETHTOOL_GSET, ..EthtoolCommand::default() };
        if !self.ask_driver(&mut command)? {
            return Ok(None);
        }
        let speed = u32::from(command.speed_hi) << 16 | u32::from(command.speed);
        // 0 and all ones (of half a word or a whole one) mean that it is not known.
        Ok(Some(speed).filter(|speed| !matches!(*speed, 0 | 0xffff | u32::MAX)))
    }

    /// How many receive queues it has; none where its driver does not say.
    pub(crate) fn receive_queues(&self) -> io::Result<Option<u32>> {
        let mut channels = EthtoolChannels { cmd: ETHTOOL_GCHANNELS, ..EthtoolChannels::default() };
        let of_driver = self.ask_driver(&mut channels)?;
        Ok(of_driver.then(|| channels.rx_count.saturating_add(channels.combined_count).max(1)))
    }

    /// The name of its driver, as in `veth`.
    pub(crate) fn driver_name(&self) -> io::Result<String> {
        let mut info = EthtoolDriverInfo { cmd: ETHTOOL_GDRVINFO, ..EthtoolDriverInfo::default() };
        self.ask_driver(&mut info)?;
        let name = info.driver.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    /// Has the driver of the interface answer in the structure of a request of ethtool; false when it does not know the request.
    pub(crate) fn ask_driver<T>(&self, command: &mut T) -> io::Result<bool> {
        match self.ask_about(libc::SIOCETHTOOL as libc::Ioctl, command) {
            Ok(()) => Ok(true),
            // Not an Ethernet driver, or one without this call.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes a request of the interface whose structure is `data`, into which it may write.
    pub(crate) fn ask_about<T>(&self, what: libc::Ioctl, data: &mut T) -> io::Result<()> {
        let mut request = self.request()?;
        request.ifr_ifru.ifru_data = std::ptr::from_mut(data).cast();
        control(control_socket()?.as_raw_fd(), what, &mut request)
    }

    /// Brings the interface up.
    pub(crate) fn bring_up(&self) -> io::Result<()> {
        let (mut request, flags) = self.flags()?;
        request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
        control(control_socket()?.as_raw_fd(), libc::SIOCSIFFLAGS as libc::Ioctl, &mut request)
    }

    /// Makes the open tun device a tap interface of this name, of whole Ethernet frames, each after an offload header; or one queue
    /// of it, if it has several.
    pub(crate) fn attach_tap(&self, device: &File, has_several: bool) -> io::Result<()> {
        let mut request = self.request()?;
        let queues = if has_several { libc::IFF_MULTI_QUEUE } else { 0 };
        request.ifr_ifru.ifru_flags =
            (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | queues) as libc::c_short;
        control(device.as_raw_fd(), libc::TUNSETIFF, &mut request)?;
        // A persistent interface may have another length from its last user.
        let length = HEADER_LEN as libc::c_int;
        // SAFETY: the kernel reads one int at the pointer, which lives beyond the call.
        answer(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const length) })
    }

    /// Has the senders on a tap interface leave checksums and segmentation to who reads its frames, as far as the kernel can. Not
    /// those of a persistent interface: that would hold for its next user too.
    pub(crate) fn leave_offloads(&self, device: &File) -> io::Result<()> {
        let mut request = self.request()?;
        control(device.as_raw_fd(), libc::TUNGETIFF, &mut request)?;
        // SAFETY: the kernel filled in this member for this request. The flags are those of 16 bits.
        if i32::from(unsafe { request.ifr_ifru.ifru_flags }) & libc::IFF_PERSIST != 0 {
            return Ok(());
        }
        let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        // Older kernels do not know those of UDP, and refuse all then.
        let udp = libc::TUN_F_USO4 | libc::TUN_F_USO6;
        let set = |offloads: libc::c_uint| {
            // SAFETY: this request has a number for its argument.
            answer(unsafe {
                libc::ioctl(device.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offloads))
            })
        };
        set(tcp | udp).or_else(|_| set(tcp))
    }

    /// The flags of the interface, and the request that they are the answer to.
    fn flags(&self) -> io::Result<(libc::ifreq, libc::c_short)> {
        let request = self.ask(libc::SIOCGIFFLAGS as libc::Ioctl)?;
        // SAFETY: the kernel filled in this member for this request.
        Ok((request, unsafe { request.ifr_ifru.ifru_flags }))
    }

    fn ask(&self, what: libc::Ioctl) -> io::Result<libc::ifreq> {
        let mut request = self.request()?;
        control(control_socket()?.as_raw_fd(), what, &mut request)?;
        Ok(request)
    }
}

/// `ETHTOOL_GSET` of linux/ethtool.h, which all drivers that know a speed answer.
const ETHTOOL_GSET: u32 = 1;

/// `ETHTOOL_GDRVINFO` and `ETHTOOL_GCHANNELS` of linux/ethtool.h.
const ETHTOOL_GDRVINFO: u32 = 3;
const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// `struct ethtool_drvinfo` of linux/ethtool.h: the name, and what else the kernel says.
#[repr(C)]
struct EthtoolDriverInfo {
    cmd: u32,
    driver: [u8; 32],
    others: [u8; 160],
}

impl Default for EthtoolDriverInfo {
    fn default() -> EthtoolDriverInfo {
        EthtoolDriverInfo { cmd: 0, driver: [0; 32], others: [0; 160] }
    }
}

/// `struct ethtool_channels` of linux/ethtool.h.
#[repr(C)]
#[derive(Default)]
struct EthtoolChannels {
    cmd: u32,
    max_rx: u32,
    max_tx: u32,
    max_other: u32,
    max_combined: u32,
    rx_count: u32,
    tx_count: u32,
    other_count: u32,
    combined_count: u32,
}

/// `struct ethtool_cmd` of linux/ethtool.h.
#[repr(C)]
#[derive(Default)]
struct EthtoolCommand {
    cmd: u32,
    supported: u32,
    advertising: u32,
    speed: u16,
    duplex: u8,
    port: u8,
    phy_address: u8,
    transceiver: u8,
    autoneg: u8,
    mdio_support: u8,
    maxtxpkt: u32,
    maxrxpkt: u32,
    speed_hi: u16,
    eth_tp_mdix: u8,
    eth_tp_mdix_ctrl: u8,
    lp_advertising: u32,
    reserved: [u32; 2],
}

/// The interfaces of this network namespace by name, in the order of their numbers.
pub(crate) fn names() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    // Two lines of headings.
    let lines = table.lines().skip(2).filter_map(|line| line.split_once(':'));
    lines.map(|(name, _)| name.trim().to_owned()).collect()
}

fn control(descriptor: RawFd, what: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: every request used here reads and writes one ifreq, and SIOCETHTOOL and SIOC[GS]HWTSTAMP the structure that this points to; both live
    // beyond the call.
    answer(unsafe { libc::ioctl(descriptor, what, std::ptr::from_mut(request)) })
}

/// The error of a call that says -1.
fn answer(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Has the interface of a number take the frames for these addresses next to its own, or for all (none), for as long as the
/// descriptor is open.
pub(crate) fn hold_addresses(index: i32, addresses: Option<&Addresses>) -> io::Result<OwnedFd> {
    // Of no protocol: it receives nothing.
    let holder = socket(libc::AF_PACKET, libc::SOCK_RAW)?;
    listen(holder.as_raw_fd(), index, addresses)?;
    Ok(holder)
}

/// The same, for as long as this packet socket is open.
pub(crate) fn listen(socket: RawFd, index: i32, addresses: Option<&Addresses>) -> io::Result<()> {
    let Some(Addresses { allowed, all_groups }) = addresses else {
        return add_membership(socket, index, libc::PACKET_MR_PROMISC, None);
    };
    if *all_groups {
        add_membership(socket, index, libc::PACKET_MR_ALLMULTI, None)?;
    }
    for mac in allowed {
        let kind = if mac[0] & 1 == 1 { libc::PACKET_MR_MULTICAST } else { libc::PACKET_MR_UNICAST };
        add_membership(socket, index, kind, Some(*mac))?;
    }
    Ok(())
}

fn add_membership(socket: RawFd, index: i32, kind: i32, mac: Option<Mac>) -> io::Result<()> {
    let mut request = libc::packet_mreq {
        mr_ifindex: index,
        mr_type: kind as u16,
        mr_alen: mac.map_or(0, |mac| mac.len() as u16),
        mr_address: [0; 8],
    };
    request.mr_address[..6].copy_from_slice(&mac.unwrap_or_default());
    let length = size_of::<libc::packet_mreq>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes at the request, which has as many.
    answer(unsafe {
        libc::setsockopt(
            socket,
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            std::ptr::from_ref(&request).cast(),
            length,
        )
    })
}

/// Some socket: requests on interfaces go through any.
fn control_socket() -> io::Result<OwnedFd> {
    socket(libc::AF_INET, libc::SOCK_DGRAM)
}

fn socket(family: i32, kind: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let descriptor = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for name in ["", "0123456789abcdef", "a b", "a/b", "a\0", ".."] {
            let error = LinkName::new("tap", name).unwrap_err().to_string();
            assert!(error.starts_with("tap: `") && error.contains("is not an interface name"), "{error}");
        }
        assert!(LinkName::new("tap", "0123456789abcde").is_ok());
    }

    #[test]
    fn the_loopback_interface_answers() {
        let name = LinkName::new("packet", "lo").unwrap();
        assert!(name.index().unwrap() > 0);
        assert!(name.mtu().unwrap() >= 1500);
        assert_eq!(name.mac().unwrap(), None);
        assert_eq!(name.speed_mbps().unwrap_or(None), None);
        assert!(names().contains(&"lo".to_owned()));
        // The kernel writes so many bytes.
        assert_eq!(size_of::<EthtoolCommand>(), 44);
        assert_eq!((size_of::<EthtoolDriverInfo>(), size_of::<EthtoolChannels>()), (196, 36));
        let absent = LinkName::new("packet", "no-such-link").unwrap();
        assert_eq!(absent.index().unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
