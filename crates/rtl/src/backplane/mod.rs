//! The backplane of slots: what several devices in one piece of hardware stand in, and stays when one of them is exchanged.
//!
//! ```text
//!  rx0 -> classify -+                    +-> slot 0 -+                   +-> merge -> tx0
//!  rx1 -> classify -+-> merge -> gate ---+-> slot 1 -+-> gate -> rate ---+-> merge -> tx1
//!  link -> classify +                    +-> ...     |                   +-> merge -> link, back to the left
//! ```
//!
//! Each slot has as many ports as the backplane, each an AXI4-Stream in and out, and a reset of its own: the *boundary*, the same for
//! all slots. *Rules* say which port of which slot a frame goes to, by the line where it comes in, its VLAN and its destination, a
//! *map* by which line a port of a slot leaves. The last line is the link: what leaves by it comes in by it, so slots are connected with
//! each other.
//!
//! A *gate* at the boundary is open or closed. A closed one takes no signal of the slot, gives it nothing, and has it reset; frames for
//! the slot are dropped and counted, so they hold nobody up. A frame that was leaving when the gate closed ends with a bad beat. So a slot
//! can be exchanged while the others run, whatever its signals do meanwhile.
//!
//! An open gate trusts its slot no more. Frames for a slot that takes no beats wait in a queue of their own and are dropped where that is
//! full, a frame that a slot does not continue or end is cut, so the others wait for it for a bounded time only.

mod bench;
mod build;
mod classify;
mod gates;
mod merge;
mod print;
mod search;

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;

pub use bench::{Chassis, Outage};
pub use build::Backplane;
pub use print::{partial_reconfiguration, print, stub};

use millrace_pipeline::Bits;

/// The most slots of a backplane.
pub const MAX_SLOTS: u32 = 32;
/// The most ports of a backplane, the link not counted.
pub const MAX_PORTS: u32 = 8;
/// Rules of a backplane.
pub const RULES: u32 = 64;
/// Beats of frames that wait at a line for their decision.
pub const WAITING: u32 = 32;
/// What a rate of one beat a cycle is.
pub const BEAT: u32 = 1 << 12;
/// Beats that a slot which was idle may send at once.
pub const BURST: u32 = 512;
/// Beats that wait for a port of a slot: the words of the smallest memory in lookup tables.
pub const QUEUE: u32 = 16;
/// Cycles for which a slot may hold up others within a frame that it does not continue.
pub const HOLD: u32 = 32;
/// The cycles after which it may do so for another one.
pub const REFILL: u32 = 8;
/// Bytes of the longest frame that a slot may send, rounded up to beats.
pub const LONGEST: u32 = 16384;

/// How a backplane is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackplaneOptions {
    /// Slots: 1 to [`MAX_SLOTS`].
    pub slots: u32,
    /// Ports of the backplane and of each slot: 1 to [`MAX_PORTS`].
    pub ports: u32,
    /// Bits of a beat: 64, 128, 256 or 512.
    pub width: u32,
}

impl BackplaneOptions {
    /// What is wrong with them, if anything.
    ///
    /// # Errors
    /// In words.
    pub fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: u32, most: u32| match (1..=most).contains(&value) {
            true => Ok(()),
            false => Err(format!("a number of {name} of {value}: 1 to {most} is expected")),
        };
        within("slots", self.slots, MAX_SLOTS)?;
        within("ports", self.ports, MAX_PORTS)?;
        match self.width.is_power_of_two() && (64..=512).contains(&self.width) {
            true => Ok(()),
            false => {
                Err(format!("a width of beats of {}: a power of two from 64 to 512 is expected", self.width))
            }
        }
    }

    /// Lines: the ports, and the link.
    pub fn lines(&self) -> u32 {
        self.ports + 1
    }

    /// Ports of slots: those of slot 0 first.
    pub fn places(&self) -> u32 {
        self.slots * self.ports
    }
}

/// A port of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The slot.
    pub slot: u32,
    /// Its port.
    pub port: u32,
}

/// Which frames go to a port of a slot. The first rule that a frame matches counts; one that matches none is dropped and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// A bit for each line where the frame may come in, the link last.
    pub lines: u32,
    /// The VLAN in its tag.
    pub vlan: Option<u16>,
    /// Its destination.
    pub destination: Option<[u8; 6]>,
    /// On the link: the port of a slot that it left by.
    pub from: Option<Place>,
    /// Where it goes.
    pub to: Place,
}

impl Rule {
    /// The rule as a word of the backplane.
    pub(crate) fn word(&self, options: &BackplaneOptions) -> Bits {
        let place = build::place_bits(options);
        let number = |place: Place| u128::from(place.slot * options.ports + place.port);
        let flag = |is: bool| Bits::new(1, is.into());
        let destination =
            self.destination.map_or(0, |mac| mac.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte)));
        [
            flag(true),
            Bits::new(options.lines(), self.lines.into()),
            flag(self.vlan.is_some()),
            Bits::new(12, self.vlan.unwrap_or(0).into()),
            flag(self.destination.is_some()),
            Bits::new(48, destination),
            flag(self.from.is_some()),
            Bits::new(place, self.from.map_or(0, number)),
            Bits::new(place, number(self.to)),
        ]
        .into_iter()
        .reduce(|high, low| high.concat(&low))
        .unwrap_or(Bits::zero(1))
    }
}
