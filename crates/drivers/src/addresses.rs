//! The address filter of a port: which of the frames that its device sees are for it.
//!
//! A port is promiscuous unless its name says `promisc=off`. Then it takes frames to the address of its interface, to the broadcast
//! address and to those of `allow=`. The device is told ([`crate::link::listen`]) and filters where it can; whatever comes
//! nevertheless (a device that cannot, an interface that others have made promiscuous) is left out here, and counted
//! ([`PortStatistics::rx_filtered`]).

use crate::around::Around;
use crate::device::Device;
use crate::kinds::FrameKinds;
use crate::link::{LinkName, changes};
use crate::port::{PortError, PortStatistics, QueuePair, Received};
use millrace_frames::{Batch, PacketPool};

/// Most addresses of `allow=`.
pub const MAX_ADDRESSES: usize = 64;

/// The address of an Ethernet station or group.
pub(crate) type Mac = [u8; 6];

const BROADCAST: Mac = [0xff; 6];

/// The addresses of a port that is not promiscuous, next to its own and broadcast.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Addresses {
    /// Of stations and groups, each once.
    pub(crate) allowed: Vec<Mac>,
    /// Frames to all groups are taken.
    pub(crate) all_groups: bool,
}

impl Addresses {
    /// Takes `promisc=` and `allow=` out of the arguments of a driver. No addresses: the port is promiscuous.
    ///
    /// # Errors
    /// [`PortError::Arguments`].
    pub(crate) fn take(driver: &'static str, args: &str) -> Result<(String, Option<Addresses>), PortError> {
        let wrong = |reason| PortError::Arguments { driver, reason };
        let (mut promiscuous, mut allow, mut kept) = (None, None, Vec::new());
        for word in args.split(',') {
            match word.split_once('=') {
                Some(("promisc", value)) => promiscuous = Some(value),
                Some(("allow", value)) => allow = Some(value),
                _ => kept.push(word),
            }
        }
        let addresses = match (promiscuous, allow) {
            (None | Some("on"), None) => None,
            (Some("off"), allow) => {
                Some(allow.map_or(Ok(Addresses::default()), Addresses::parse).map_err(wrong)?)
            }
            (None | Some("on"), Some(_)) => {
                let reason = "`allow=` needs `promisc=off`: a promiscuous port takes frames to all addresses";
                return Err(wrong(reason.to_owned()));
            }
            (Some(other), _) => return Err(wrong(format!("`promisc={other}`: `on` or `off` is expected"))),
        };
        Ok((kept.join(","), addresses))
    }

    /// Reads `ADDRESS[+ADDRESS]...`.
    fn parse(text: &str) -> Result<Addresses, String> {
        let mut addresses = Addresses::default();
        for word in text.split('+') {
            if word == "multicast" {
                addresses.all_groups = true;
                continue;
            }
            let mac = mac(word).ok_or_else(|| {
                format!("`{word}` is not an address, as in 02:00:00:00:00:01, nor `multicast` for all groups")
            })?;
            if !addresses.allowed.contains(&mac) {
                addresses.allowed.push(mac);
            }
        }
        match addresses.allowed.len() {
            0..=MAX_ADDRESSES => Ok(addresses),
            count => Err(format!("a port has at most {MAX_ADDRESSES} addresses, not {count}")),
        }
    }

    /// Whether a port with this address of its own takes a frame.
    fn has(&self, own: Option<Mac>, frame: &[u8]) -> bool {
        // What has no address is for nobody.
        let Some(to) = frame.first_chunk::<6>() else { return false };
        Some(*to) == own || *to == BROADCAST || self.all_groups && to[0] & 1 == 1 || self.allowed.contains(to)
    }
}

/// Six numbers of two hexadecimal digits, with colons between them.
fn mac(text: &str) -> Option<Mac> {
    let mut mac = Mac::default();
    let mut words = text.split(':');
    for byte in &mut mac {
        let word = words.next().filter(|word| word.len() == 2 && !word.starts_with('+'))?;
        *byte = u8::from_str_radix(word, 16).ok()?;
    }
    words.next().is_none().then_some(mac)
}

/// Where a port's own address is known from.
#[derive(Clone, Debug)]
pub(crate) enum Own {
    /// The interface, whose address may change.
    Link(LinkName),
    /// The device has said it.
    #[cfg_attr(not(feature = "dpdk"), allow(dead_code))]
    Known(Mac),
}

/// A device whose queue pairs take only frames that are for it.
pub(crate) struct FilteredDevice {
    pub(crate) device: Box<dyn Device>,
    /// The name with its options.
    pub(crate) name: String,
    pub(crate) own: Own,
    pub(crate) addresses: Addresses,
}

impl Device for FilteredDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn max_queues(&self) -> usize {
        self.device.max_queues()
    }

    fn open(self: Box<Self>, queues: usize) -> Result<Vec<Box<dyn QueuePair>>, PortError> {
        let FilteredDevice { device, own, addresses, .. } = *self;
        let opened = device.open(queues)?.into_iter();
        let own = match own {
            // Its address is that of the interface that was opened, not of another one with its name.
            Own::Link(link) => Own::Link(link.held_if_there()),
            known @ Own::Known(_) => known,
        };
        Ok(opened
            .map(|port| {
                Box::new(FilteredPort::new(port, own.clone(), addresses.clone())) as Box<dyn QueuePair>
            })
            .collect())
    }
}

/// A queue pair that leaves out what is not for it.
struct FilteredPort {
    port: Box<dyn QueuePair>,
    own: Own,
    own_mac: Option<Mac>,
    addresses: Addresses,
    /// The number of changes of links after which the interface was asked for its address.
    changes: u32,
    left_out: LeftOut,
}

/// What was left out.
#[derive(Default)]
struct LeftOut {
    bytes: u64,
    kinds: FrameKinds,
}

impl FilteredPort {
    fn new(port: Box<dyn QueuePair>, own: Own, addresses: Addresses) -> FilteredPort {
        let changes = changes();
        let mut filtered =
            FilteredPort { port, own, own_mac: None, addresses, changes, left_out: LeftOut::default() };
        filtered.look_for_address();
        filtered
    }

    #[cold]
    fn look_for_address(&mut self) {
        self.changes = changes();
        self.own_mac = match &self.own {
            Own::Known(mac) => Some(*mac),
            // An interface that is gone keeps its address.
            Own::Link(link) => link.mac().unwrap_or(self.own_mac),
        };
    }
}

impl Around for FilteredPort {
    type Inner = dyn QueuePair;

    fn inner(&self) -> &Self::Inner {
        &*self.port
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        &mut *self.port
    }

    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        let before = batch.len();
        let received = self.port.receive(batch, pool);
        if self.changes != changes() {
            self.look_for_address();
        }
        let FilteredPort { own_mac, addresses, left_out, .. } = self;
        let mut at = 0;
        batch.recycle_if(pool, |packet| {
            at += 1;
            let is_left_out = at > before && !addresses.has(*own_mac, packet.data());
            if is_left_out {
                left_out.bytes += packet.len() as u64;
                left_out.kinds.count(packet.data());
            }
            is_left_out
        });
        received
    }

    fn statistics(&self) -> PortStatistics {
        let mut statistics = self.port.statistics();
        let LeftOut { bytes, kinds } = self.left_out;
        statistics.rx_filtered += kinds.frames();
        statistics.rx_packets = statistics.rx_packets.saturating_sub(kinds.frames());
        statistics.rx_bytes = statistics.rx_bytes.saturating_sub(bytes);
        statistics.rx_kinds -= kinds;
        statistics
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::{in_fresh_namespace, ip, veth_pair};
    use crate::open::device;
    use crate::testing::{frame_to, receive, send, wait_until};

    #[test]
    fn options_are_taken_out_of_the_arguments() {
        let taken = |args| Addresses::take("packet", args).unwrap();
        assert_eq!(taken("eth0"), ("eth0".to_owned(), None));
        assert_eq!(taken("eth0,promisc=on,queue=1"), ("eth0,queue=1".to_owned(), None));
        let own = Addresses::default();
        assert_eq!(taken("eth0,promisc=off"), ("eth0".to_owned(), Some(own)));
        let (one, other) = ([2, 0, 0, 0, 0, 0xab], [1, 0, 0x5e, 0, 0, 5]);
        let allowed = Addresses { allowed: vec![one, other], all_groups: false };
        let args = "eth0,mode=copy,allow=02:00:00:00:00:aB+01:00:5e:00:00:05+02:00:00:00:00:ab,promisc=off";
        assert_eq!(taken(args), ("eth0,mode=copy".to_owned(), Some(allowed)));
        let groups = Addresses { allowed: vec![], all_groups: true };
        assert_eq!(taken("eth0,promisc=off,allow=multicast").1, Some(groups));
    }

    #[test]
    fn wrong_options_are_refused() {
        let many: Vec<String> = (0..=64).map(|n| format!("02:00:00:00:00:{n:02x}")).collect();
        let many = format!("eth0,promisc=off,allow={}", many.join("+"));
        for (args, message) in [
            ("eth0,promisc=no", "packet: `promisc=no`: `on` or `off` is expected"),
            ("eth0,allow=02:00:00:00:00:01", "packet: `allow=` needs `promisc=off`"),
            ("eth0,promisc=off,allow=2:0:0:0:0:1", "packet: `2:0:0:0:0:1` is not an address"),
            ("eth0,promisc=off,allow=02:00:00:00:00:01:02", "packet: `02:00:00:00:00:01:02` is not"),
            ("eth0,promisc=off,allow=", "packet: `` is not an address"),
            (&many, "packet: a port has at most 64 addresses, not 65"),
        ] {
            let error = Addresses::take("packet", args).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    /// On a veth, whose device does not filter, and for all drivers the same.
    fn only_frames_for_the_port_pass(test: &str, driver: &'static str) {
        in_fresh_namespace(test, move || {
            veth_pair("va", "vb");
            ip("link set vb address 02:00:00:00:00:0b");
            let mut pool = PacketPool::new(200);
            let spec = format!("{driver}:vb,promisc=off,allow=02:00:00:00:00:0c+01:00:5e:00:00:05");
            let one = device(&spec.parse().unwrap()).unwrap();
            assert_eq!(one.name(), spec);
            let mut b = one.open(1).unwrap().remove(0);
            let mut a = device(&"packet:va".parse().unwrap()).unwrap().open(1).unwrap().remove(0);
            let frames = [
                [2, 0, 0, 0, 0, 0x0b],
                [2, 0, 0, 0, 0, 0x0d],
                [2, 0, 0, 0, 0, 0x0c],
                [1, 0, 0x5e, 0, 0, 5],
                [1, 0, 0x5e, 0, 0, 6],
                [0xff; 6],
            ]
            .map(|to| frame_to(to, 100));
            assert_eq!(send(&mut *a, &mut pool, &frames).sent, 6);
            let [own, _, allowed, group, _, all] = &frames;
            assert_eq!(receive(&mut *b, &mut pool, 4), [own, allowed, group, all].map(Clone::clone));
            let statistics = b.statistics();
            assert_eq!((statistics.rx_packets, statistics.rx_bytes, statistics.rx_filtered), (4, 400, 2));
            let FrameKinds { multicast, broadcast, sizes } = statistics.rx_kinds;
            assert_eq!((multicast, broadcast, sizes), (1, 1, [0, 0, 4, 0, 0, 0, 0, 0]));
        });
    }

    #[test]
    fn packet_takes_only_what_is_for_it() {
        only_frames_for_the_port_pass("packet_takes_only_what_is_for_it", "packet");
    }

    #[test]
    fn xdp_takes_only_what_is_for_it() {
        only_frames_for_the_port_pass("xdp_takes_only_what_is_for_it", "xdp");
    }

    #[test]
    fn the_device_is_told_what_is_wanted() {
        in_fresh_namespace("the_device_is_told_what_is_wanted", || {
            veth_pair("va", "vb");
            let is_promiscuous = || ip("-d link show dev vb").contains("promiscuity 1");
            for driver in ["packet", "xdp"] {
                // A process that another test starts has the descriptors of a closed port too, until it has become another program.
                let open = |options: &str| {
                    let spec = format!("{driver}:vb{options}").parse().unwrap();
                    let mut opened = device(&spec).unwrap().open(1);
                    wait_until(&mut || {
                        if opened.is_err() {
                            opened = device(&spec).unwrap().open(1);
                        }
                        opened.is_ok()
                    });
                    opened.unwrap()
                };
                let usual = open("");
                assert!(is_promiscuous(), "{driver}");
                drop(usual);
                // A device that cannot filter stations, as a veth, is made promiscuous for another one by the kernel.
                let filtered = open(",promisc=off,allow=01:00:5e:00:00:05");
                assert!(!is_promiscuous(), "{driver}");
                let groups = ip("maddr show dev vb");
                assert!(groups.contains("01:00:5e:00:00:05"), "{driver}: {groups}");
                drop(filtered);
                // It is gone with the port. A process that another test starts may have its socket for a moment longer.
                let is_gone = || !ip("maddr show dev vb").contains("01:00:5e:00:00:05");
                wait_until(&mut { is_gone });
                assert!(is_gone(), "{driver}");
            }
        });
    }
}
