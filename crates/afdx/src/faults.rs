//! What faults on command do to frames that leave.

use crate::address::VlId;
use crate::config::TransmitVl;
use crate::frame::{ETHERNET_HEADER, FCS_BYTES};
use crate::limits::{LimitError, within};
use crate::line::FRAME_LIMITS;
use crate::misbehaviour::{Chance, Fault, MAX_MISBEHAVIOURS, Misbehaviour};
use crate::scheduler::Network;

/// The faults of an end system.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    seed: u64,
    chance: Chance,
    faults: Vec<Misbehaviour>,
    /// Babbling VLs: when the next frame comes, the gap.
    babblers: Vec<(u64, u64, VlId)>,
    /// They babble until then.
    until_ns: u64,
}

impl Default for Faults {
    fn default() -> Faults {
        Faults { seed: 0, chance: Chance::new(0), faults: Vec::new(), babblers: Vec::new(), until_ns: 0 }
    }
}

/// Where the destination UDP port and the checksum of an IP header without options are in a frame.
const UDP_DESTINATION: usize = ETHERNET_HEADER + 22;
const UDP_CHECKSUM: usize = ETHERNET_HEADER + 26;

impl Faults {
    /// From one time to another.
    pub(crate) fn new(
        (from_ns, until_ns): (u64, u64),
        seed: u64,
        faults: &[Misbehaviour],
    ) -> Result<Faults, LimitError> {
        within("the number of faults", faults.len() as u64, (0, MAX_MISBEHAVIOURS as u64), "")?;
        let babbler = |fault: &Misbehaviour| match fault.fault {
            Fault::Babble { gap_ns } => Some((from_ns, gap_ns, fault.vl)),
            _ => None,
        };
        let babblers = faults.iter().filter_map(babbler).collect();
        Ok(Faults { seed, chance: Chance::new(seed), faults: faults.to_vec(), babblers, until_ns })
    }

    pub(crate) fn is_none(&self) -> bool {
        self.faults.is_empty()
    }

    /// When a VL babbles next.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.babblers.iter().map(|(next, ..)| *next).min().filter(|next| *next < self.until_ns)
    }

    /// A VL that babbles now; ask until there is none.
    pub(crate) fn babbles(&mut self, now_ns: u64) -> Option<VlId> {
        let last_ns = now_ns.min(self.until_ns.checked_sub(1)?);
        let (next, gap, vl) = self.babblers.iter_mut().find(|(next, ..)| *next <= last_ns)?;
        *next = now_ns.saturating_add(*gap);
        Some(*vl)
    }

    /// The length of a message that is babbled.
    pub(crate) fn babble_length(&mut self, longest: usize) -> usize {
        self.chance.between(0, longest as u64) as usize
    }

    /// Applies the faults of a VL to its frame of this serial number; the network that it leaves by. Both copies of a frame have the same
    /// faults: what is wrong in an end system is wrong before it makes two of one.
    pub(crate) fn apply(
        &self,
        vl: &TransmitVl,
        serial: u64,
        line: Network,
        frame: &mut Vec<u8>,
        is_own: impl Fn(VlId) -> bool,
    ) -> Network {
        let mut network = line;
        for (place, fault) in self.faults.iter().enumerate().filter(|(_, fault)| fault.vl == vl.id) {
            let mut chance = Chance::new(self.seed ^ (u64::from(vl.id.0) << 48) ^ ((place as u64) << 40));
            chance = Chance::new(chance.next() ^ serial);
            let one_in = match fault.fault {
                Fault::Babble { .. } => continue,
                Fault::Length(one_in)
                | Fault::Number(one_in)
                | Fault::Port(one_in)
                | Fault::Vl(one_in)
                | Fault::Network(one_in) => one_in,
            };
            if !chance.one_in(one_in) {
                continue;
            }
            match fault.fault {
                Fault::Length(_) => wrong_length(vl.lmax, frame, &mut chance),
                Fault::Number(_) => {
                    if let Some(last) = frame.last_mut() {
                        *last = last.wrapping_add(chance.between(3, 253) as u8);
                    }
                }
                Fault::Port(_) => wrong_port(frame, &mut chance),
                Fault::Vl(_) => wrong_vl(vl.id, frame, &mut chance, &is_own),
                Fault::Network(_) => network = line.other(),
                Fault::Babble { .. } => {}
            }
        }
        network
    }
}

/// Longer than Lmax, where a frame can be, or shorter than 64 bytes; the number stays the last byte.
fn wrong_length(lmax: u64, frame: &mut Vec<u8>, chance: &mut Chance) {
    let Some(number) = frame.pop() else { return };
    let fcs = FCS_BYTES as u64;
    let length = if lmax < FRAME_LIMITS.1 && chance.one_in(2) {
        chance.between(lmax + 1, FRAME_LIMITS.1) - fcs
    } else {
        chance.between(ETHERNET_HEADER as u64 + 1, FRAME_LIMITS.0 - 1 - fcs)
    };
    // At most 1514.
    frame.resize(length as usize - 1, 0);
    frame.push(number);
}

/// Another UDP port, with the right checksum, where the frame has a UDP header.
fn wrong_port(frame: &mut [u8], chance: &mut Chance) {
    let word = |frame: &[u8], at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let is_first_fragment = word(frame, ETHERNET_HEADER + 6).is_some_and(|word| word & 0x1fff == 0);
    let (Some(before), Some(sum)) = (word(frame, UDP_DESTINATION), word(frame, UDP_CHECKSUM)) else { return };
    if !is_first_fragment {
        return;
    }
    let after = before.wrapping_add(chance.between(1, 65535) as u16);
    // RFC 1624, equation 3.
    let mut total = u32::from(!sum) + u32::from(!before) + u32::from(after);
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    frame[UDP_DESTINATION..UDP_DESTINATION + 2].copy_from_slice(&after.to_be_bytes());
    let sum = match !(total as u16) {
        0 => 0xffff,
        sum => sum,
    };
    frame[UDP_CHECKSUM..UDP_CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Another VL that this end system does not send; there are more of those than it can send.
fn wrong_vl(vl: VlId, frame: &mut [u8], chance: &mut Chance, is_own: &impl Fn(VlId) -> bool) {
    let mut other = VlId(vl.0.wrapping_add(chance.between(1, 65535) as u16));
    while is_own(other) {
        other = VlId(other.0.wrapping_add(1));
    }
    frame[4..6].copy_from_slice(&other.0.to_be_bytes());
}
