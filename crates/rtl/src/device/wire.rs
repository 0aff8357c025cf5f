//! Who is at the other end of a MAC in a simulation: frames to what the link has in each cycle, and back.

mod gmii;
mod xgmii;

use super::Link;
use crate::streams::{get, set};
use millrace_netlist::{SignalId, Simulator};

/// The signals of a port with a MAC, and who is at its other end. Times are in characters of the link: of XGMII eight are a cycle, of
/// GMII one.
pub struct Wire {
    receive: Vec<Option<SignalId>>,
    transmit: Vec<Option<SignalId>>,
    partner: Partner,
}

enum Partner {
    Xgmii(xgmii::Sender, xgmii::Receiver),
    Gmii(gmii::Sender, gmii::Receiver),
}

/// A frame from the wire.
#[derive(Debug)]
pub struct Received {
    /// Without preamble and check sequence.
    pub bytes: Vec<u8>,
    /// The characters of its start and its end.
    pub at: (u64, u64),
    /// Its preamble or check sequence is wrong, or the link has marked it.
    pub is_bad: bool,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire").field("is_idle", &self.is_idle()).finish_non_exhaustive()
    }
}

impl Wire {
    /// Of a MAC whose signals have these words before their names, as in `rx0_data` and `tx0_data`; none: the port is a stream.
    pub fn of(simulator: &Simulator, link: Link, [from, to]: [&str; 2]) -> Option<Wire> {
        let partner = match link {
            Link::Stream => return None,
            Link::Xgmii => Partner::Xgmii(xgmii::Sender::default(), xgmii::Receiver::default()),
            Link::Gmii => Partner::Gmii(gmii::Sender::default(), gmii::Receiver::default()),
        };
        let receive =
            link.receives().iter().map(|(name, _)| simulator.input(&format!("{from}_{name}"))).collect();
        let transmit =
            link.transmits().iter().map(|name| simulator.output(&format!("{to}_{name}"))).collect();
        Some(Wire { receive, transmit, partner })
    }

    /// Whether a frame that is given now does not have to wait for longer than its gap.
    pub fn has_room(&self) -> bool {
        match &self.partner {
            Partner::Xgmii(sender, _) => sender.has_room(),
            Partner::Gmii(sender, _) => sender.has_room(),
        }
    }

    /// Whether nothing of a frame is on the wire, in either direction.
    pub fn is_idle(&self) -> bool {
        match &self.partner {
            Partner::Xgmii(sender, receiver) => sender.is_idle() && receiver.is_idle(),
            Partner::Gmii(sender, receiver) => sender.is_idle() && receiver.is_idle(),
        }
    }

    /// Sends a frame as soon as it may start. Gives the character at which it starts.
    pub fn send(&mut self, bytes: &[u8], is_bad: bool) -> u64 {
        match &mut self.partner {
            Partner::Xgmii(sender, _) => sender.send(bytes, is_bad),
            Partner::Gmii(sender, _) => sender.send(bytes, is_bad),
        }
    }

    /// Sets what comes in this cycle.
    pub fn begin(&mut self, simulator: &mut Simulator) {
        let mut values = [0; 3];
        match &mut self.partner {
            Partner::Xgmii(sender, _) => (values[0], values[1]) = sender.word(),
            Partner::Gmii(sender, _) => values = sender.octet(),
        }
        for (signal, value) in self.receive.iter().zip(values) {
            set(simulator, *signal, value);
        }
    }

    /// Takes what leaves in this cycle; gives the frame that ends.
    pub fn end(&mut self, simulator: &mut Simulator) -> Option<Received> {
        let mut values = [0; 3];
        for (signal, value) in self.transmit.iter().zip(&mut values) {
            *value = get(simulator, *signal);
        }
        match &mut self.partner {
            Partner::Xgmii(_, receiver) => receiver.word(values[0], values[1]),
            Partner::Gmii(_, receiver) => receiver.octet(values),
        }
    }
}

/// The check sequence of Ethernet, bit by bit.
fn check(bytes: &[u8]) -> [u8; 4] {
    let mut state = u32::MAX;
    for byte in bytes {
        state ^= u32::from(*byte);
        (0..8).for_each(|_| state = (state >> 1) ^ if state & 1 != 0 { 0xedb8_8320 } else { 0 });
    }
    (!state).to_le_bytes()
}
