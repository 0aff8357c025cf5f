//! A device of DPDK: found by its name, opened to queue pairs, taken away with the last of them.

#![allow(unsafe_code)]

use super::queue::{DpdkQueue, Parts};
use super::shim::{self, SPREAD_BY_HASH, SPREAD_BY_RULE, Traits};
use super::{DRIVER, eal, memory};
use crate::addresses::{Addresses, Mac};
use crate::device::{Device, MAX_QUEUES, check_queues};
use crate::offload::VLAN_TAG;
use crate::port::{PortError, QueuePair};
use memory::Piece;
use millrace_frames::{MAX_FRAME, PacketPool};
use std::ffi::{CStr, CString, c_char, c_int, c_uint};
use std::sync::{Arc, Mutex, PoisonError};

pub(super) const ETHERNET_HEADER: usize = 14;

/// Bytes of a frame beyond the MTU.
const AROUND: usize = ETHERNET_HEADER + VLAN_TAG;

/// Drivers whose frames may come from senders of this machine, which leave checksums to a card that is not there.
const LOCAL: [&str; 2] = ["net_af_packet", "net_af_xdp"];

/// The devices that ports have.
static TAKEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A device by its name in DPDK.
pub struct DpdkDevice {
    /// `dpdk:` and the arguments.
    name: String,
    traits: Traits,
    mtu: u16,
    port: Port,
    addresses: Option<Addresses>,
}

/// `NAME[,mtu=BYTES][,ARGUMENT]...`.
#[derive(Debug, PartialEq, Eq)]
struct Arguments {
    name: String,
    /// The name, and what is for the driver of the device.
    device: CString,
    mtu: Option<u16>,
}

/// A device that DPDK has found, until this is dropped.
pub(super) struct Port {
    id: u16,
    name: String,
    /// Queue pairs of the device, when it is started.
    started: u16,
    /// Of queue pairs that are closed.
    returned: Mutex<Vec<(Arc<Piece>, PacketPool)>>,
}

impl Arguments {
    fn parse(args: &str) -> Result<Arguments, PortError> {
        let wrong = |reason| PortError::Arguments { driver: DRIVER, reason };
        let (mut mtu, mut kept) = (None, Vec::new());
        for word in args.split(',') {
            let Some(number) = word.strip_prefix("mtu=") else {
                kept.push(word);
                continue;
            };
            let most = MAX_FRAME - AROUND;
            let parsed = number.parse().ok().filter(|mtu| (68..=most).contains(&usize::from(*mtu)));
            mtu =
                Some(parsed.ok_or_else(|| wrong(format!("`{number}` is not an MTU (68 to {most} bytes)")))?);
        }
        // DPDK takes the name of a bus too.
        let whole = kept.first().copied().unwrap_or_default();
        let name = ["vdev:", "pci:"].iter().find_map(|bus| whole.strip_prefix(bus)).unwrap_or(whole);
        if name.is_empty() {
            return Err(wrong(format!("`{whole}` is not the name of a device")));
        }
        let device = CString::new(kept.join(",")).map_err(|_| wrong("a name has a zero byte".to_owned()))?;
        Ok(Arguments { name: name.to_owned(), device, mtu })
    }
}

impl DpdkDevice {
    /// Starts DPDK, if this is its first device, and finds the device of these arguments.
    ///
    /// # Errors
    /// [`PortError::Arguments`].
    pub fn new(args: &str) -> Result<DpdkDevice, PortError> {
        let arguments = Arguments::parse(args)?;
        eal::start()?;
        let port = Port::probe(&arguments)?;
        let traits = port.traits()?;
        let mtu = arguments.mtu.unwrap_or(traits.mtu).min((MAX_FRAME - AROUND) as u16);
        Ok(DpdkDevice { name: format!("{DRIVER}:{args}"), traits, mtu, port, addresses: None })
    }

    /// The same for frames to these addresses next to its own, or to all (none).
    pub(crate) fn for_addresses(self, addresses: Option<Addresses>) -> DpdkDevice {
        DpdkDevice { addresses, ..self }
    }

    /// The address of the device.
    pub(crate) fn mac(&self) -> Mac {
        let mut mac = Mac::default();
        // SAFETY: six bytes that live beyond the call. Without an answer they stay zero, which is nobody's address.
        let _ = unsafe { shim::millrace_device_mac(self.port.id, &raw mut mac) };
        mac
    }

    /// Opens to so many queue pairs.
    pub(super) fn queues(self, pairs: usize) -> Result<Vec<DpdkQueue>, PortError> {
        check_queues(&self, pairs)?;
        let DpdkDevice { traits, mtu, mut port, addresses, .. } = self;
        let longest = usize::from(mtu) + AROUND;
        let make = |_| Piece::new(longest, traits.socket);
        let pieces = (0..pairs).map(make).collect::<Result<Vec<_>, _>>();
        let pieces = pieces.inspect_err(|_| memory::reap())?;
        let spread = match port.start(&pieces, mtu) {
            Ok(spread) => spread,
            Err(error) => {
                // The device first, which has mbufs of the pieces.
                drop(port);
                memory::close(pieces);
                return Err(error);
            }
        };
        port.listen(addresses.as_ref());
        let remark = remark(&traits, pairs, spread);
        let port = Arc::new(port);
        let queue = |(number, (piece, slots))| {
            DpdkQueue::new(Parts {
                port: Arc::clone(&port),
                number,
                piece,
                slots,
                longest,
                is_local: LOCAL.contains(&traits.driver()),
                remark: remark.clone(),
            })
        };
        Ok((0..).zip(pieces).map(queue).collect())
    }
}

impl Device for DpdkDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn max_queues(&self) -> usize {
        usize::from(self.traits.rx_queues.min(self.traits.tx_queues)).min(MAX_QUEUES)
    }

    fn open(self: Box<Self>, queues: usize) -> Result<Vec<Box<dyn QueuePair>>, PortError> {
        let opened = self.queues(queues)?;
        Ok(opened.into_iter().map(|queue| Box::new(queue) as Box<dyn QueuePair>).collect())
    }
}

/// How the device was opened.
fn remark(traits: &Traits, pairs: usize, spread: c_int) -> String {
    let spread = match (pairs, spread) {
        (1, _) => String::new(),
        (_, SPREAD_BY_HASH) => format!("; frames are spread over {pairs} queues by a hash of their flow"),
        (_, SPREAD_BY_RULE) => format!("; frames are spread over {pairs} queues by a rule for IP packets"),
        _ => format!("; its {pairs} queues have what it puts there, for it cannot tell flows apart"),
    };
    format!("taken by DPDK's {} in poll mode, which uses a processor wholly{spread}", traits.driver())
}

impl Port {
    fn probe(arguments: &Arguments) -> Result<Port, PortError> {
        let Arguments { name, device, .. } = arguments;
        let refused = |reason: String| PortError::Arguments {
            driver: DRIVER,
            reason: format!("cannot take device {name}: {reason}"),
        };
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.contains(name) {
            return Err(refused("another port has it".to_owned()));
        }
        let name_in_c = CString::new(name.as_str()).map_err(|error| refused(error.to_string()))?;
        let mut id = 0;
        let mut find = || {
            // SAFETY: a string and a number that live beyond the call.
            unsafe { shim::rte_eth_dev_get_port_by_name(name_in_c.as_ptr(), &raw mut id) }
        };
        // It may be there from the beginning, where the arguments of the EAL name it.
        if find() != 0 {
            // SAFETY: a string that lives beyond the call. DPDK is started.
            let probed = unsafe { shim::rte_dev_probe(device.as_ptr()) };
            if probed != 0 {
                let error = shim::refusal(probed);
                return Err(refused(format!("{error} (DPDK may say more above)")));
            }
            if find() != 0 {
                return Err(refused("DPDK has no network device of this name then".to_owned()));
            }
        }
        taken.push(name.clone());
        Ok(Port { id, name: name.clone(), started: 0, returned: Mutex::default() })
    }

    fn traits(&self) -> Result<Traits, PortError> {
        let mut traits = std::mem::MaybeUninit::<Traits>::zeroed();
        // SAFETY: a structure that lives beyond the call; it is numbers, for which zeros are right.
        let (result, traits) =
            unsafe { (shim::millrace_device_ask(self.id, traits.as_mut_ptr()), traits.assume_init()) };
        if result == 0 { Ok(traits) } else { Err(self.refused("ask", result)) }
    }

    /// Starts the device with a queue pair for each of the pieces; says how it spreads frames over them.
    fn start(&mut self, pieces: &[(Arc<Piece>, PacketPool)], mtu: u16) -> Result<c_int, PortError> {
        let pools: Vec<_> = pieces.iter().map(|(piece, _)| piece.pool()).collect();
        let (mut step, mut spread): (*const c_char, c_int) = (c"ask".as_ptr(), 0);
        // At most `MAX_QUEUES`.
        let pairs = pools.len() as u16;
        // SAFETY: as many pools as queue pairs, which stay until the device is closed; the rest lives beyond the call.
        let result = unsafe {
            shim::millrace_device_start(self.id, pairs, mtu, pools.as_ptr(), &raw mut step, &raw mut spread)
        };
        if result == 0 {
            self.started = pairs;
            return Ok(spread);
        }
        // SAFETY: it is one of the literals there.
        let step = unsafe { CStr::from_ptr(step) };
        Err(self.refused(&step.to_string_lossy(), result))
    }

    /// Has the started device take frames for these addresses, or for all. What comes nevertheless is left out by whoever asks it.
    fn listen(&self, addresses: Option<&Addresses>) {
        let is_promiscuous = c_int::from(addresses.is_none());
        let all_groups = c_int::from(addresses.is_none_or(|addresses| addresses.all_groups));
        let macs = addresses.map_or(&[][..], |addresses| &addresses.allowed);
        // SAFETY: so many addresses, which live beyond the call. A device that cannot filter gives all frames.
        let _ = unsafe {
            let count = macs.len() as c_uint;
            shim::millrace_device_listen(self.id, is_promiscuous, all_groups, macs.as_ptr(), count)
        };
    }

    fn refused(&self, step: &str, result: c_int) -> PortError {
        PortError::system(format!("{step} the DPDK device {}", self.name), shim::refusal(result))
    }

    pub(super) fn id(&self) -> u16 {
        self.id
    }

    /// Frames that were lost, and frames that were wrong, so far.
    pub(super) fn lost(&self) -> (u64, u64) {
        let mut lost = [0; 3];
        // SAFETY: an array of as many as are written.
        let result = unsafe { shim::millrace_device_lost(self.id, lost.as_mut_ptr()) };
        if result == 0 { (lost[0].saturating_add(lost[2]), lost[1]) } else { (0, 0) }
    }

    pub(super) fn is_up(&self) -> bool {
        // SAFETY: takes no pointers.
        unsafe { shim::millrace_device_is_up(self.id) != 0 }
    }

    /// Takes what a queue pair has left, for the time after the device is closed.
    pub(super) fn give_back(&self, piece: Arc<Piece>, slots: PacketPool) {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner).push((piece, slots));
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // DPDK adds and takes away devices one at a time.
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: takes no pointers. All queue pairs are dropped, so nobody uses the device.
        unsafe { shim::millrace_device_close(self.id, self.started) };
        memory::close(std::mem::take(&mut *self.returned.lock().unwrap_or_else(PoisonError::into_inner)));
        taken.retain(|name| *name != self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_arguments_of_its_own_and_an_mtu() {
        let parsed = |args| {
            let Arguments { name, device, mtu } = Arguments::parse(args).unwrap();
            (name, device.into_string().unwrap(), mtu)
        };
        let of = |name: &str, device: &str, mtu| (name.to_owned(), device.to_owned(), mtu);
        assert_eq!(parsed("net_null0"), of("net_null0", "net_null0", None));
        assert_eq!(parsed("0000:03:00.0,mtu=9000"), of("0000:03:00.0", "0000:03:00.0", Some(9000)));
        let pcap = "net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap";
        assert_eq!(parsed(pcap), of("net_pcap0", pcap, None));
        assert_eq!(
            parsed("vdev:net_tap1,mtu=1500,iface=x"),
            of("net_tap1", "vdev:net_tap1,iface=x", Some(1500))
        );
        for (args, message) in [
            (",mtu=1500", "dpdk: `` is not the name of a device"),
            ("net_null0,mtu=0", "dpdk: `0` is not an MTU (68 to 16366 bytes)"),
            ("net_null0,mtu=16367", "dpdk: `16367` is not an MTU (68 to 16366 bytes)"),
            ("net_null0,mtu=1,mtu=x", "dpdk: `1` is not an MTU (68 to 16366 bytes)"),
        ] {
            assert_eq!(Arguments::parse(args).unwrap_err().to_string(), message);
        }
    }
}
