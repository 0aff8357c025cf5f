//! A backplane in simulation, with devices in its slots.

use super::build::Backplane;
use super::{BackplaneOptions, Place, Rule};
use crate::device::{Bench, Device, Left};
use crate::streams::{Coming, Stream, Streams, carry, set};
use millrace_netlist::{SignalKind, Simulator, in_words};
use millrace_pipeline::Bits;
use millrace_state::State;
use std::collections::VecDeque;

/// Cycles for which a slot is reset after it was loaded.
const RESET: u64 = 4;

/// A backplane with devices in its slots, each a simulation of its own.
pub struct Chassis {
    options: BackplaneOptions,
    shell: Simulator,
    slots: Vec<Slot>,
    ports: Vec<Port>,
    /// Frames that have left since a step.
    left: Vec<Left>,
    /// What is on the signals of a slot that is being loaded.
    noise: u64,
}

impl std::fmt::Debug for Chassis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chassis")
            .field("options", &self.options)
            .field("cycle", &self.cycle())
            .finish_non_exhaustive()
    }
}

/// What an exchange of a slot cost, in cycles of the backplane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When the gate closed.
    pub closed: u64,
    /// When it opened again.
    pub opened: u64,
}

impl Outage {
    /// For how many cycles frames of the slot were dropped.
    pub fn cycles(&self) -> u64 {
        self.opened - self.closed
    }
}

struct Slot {
    device: Option<Bench>,
    /// The streams of the shell to it and from it, and its own.
    boundary: Vec<Boundary>,
    /// What is loaded, and the cycle in which it is there.
    loading: Option<(Box<Bench>, u64)>,
    outage: Option<Outage>,
}

/// A port of a slot: its streams at the shell and at the device.
struct Boundary {
    to: Stream,
    from: Stream,
    rx: Stream,
    tx: Stream,
}

struct Port {
    coming: VecDeque<Coming>,
    streams: Streams,
    started: Vec<u64>,
}

impl Chassis {
    /// A backplane with empty slots.
    ///
    /// # Errors
    /// The design is not well formed.
    pub fn new(backplane: &Backplane) -> Result<Chassis, String> {
        let mut design = backplane.design.clone();
        millrace_netlist::passes::optimize(&mut design);
        let shell = Simulator::new(&design).map_err(|errors| in_words(&errors))?;
        let options = backplane.options;
        let port = |number: u32| Port {
            coming: VecDeque::new(),
            streams: Streams::of(&shell, number),
            started: Vec::new(),
        };
        let ports = (0..options.ports).map(port).collect();
        let slot = |slot: u32| Slot {
            device: None,
            boundary: (0..options.ports)
                .map(|port| Boundary {
                    to: Stream::of(&shell, &format!("slot{slot}_rx{port}"), SignalKind::Output),
                    from: Stream::of(&shell, &format!("slot{slot}_tx{port}"), SignalKind::Input),
                    rx: Stream::default(),
                    tx: Stream::default(),
                })
                .collect(),
            loading: None,
            outage: None,
        };
        let slots = (0..options.slots).map(slot).collect();
        Ok(Chassis { options, shell, slots, ports, left: Vec::new(), noise: 1 })
    }

    /// Sets all rules.
    ///
    /// # Errors
    /// They are more than [`super::RULES`], or one names a port that is not there.
    pub fn set_rules(&mut self, rules: &[Rule]) -> Result<(), String> {
        if rules.len() > super::RULES as usize {
            return Err(format!("{} rules, more than {} (limit RULES)", rules.len(), super::RULES));
        }
        for rule in rules {
            rule.from.into_iter().chain([rule.to]).try_for_each(|place| self.check(place))?;
        }
        let nothing = Bits::zero(super::search::rule_bits(&self.options));
        for at in 0..super::RULES {
            let word = rules.get(at as usize).map_or(nothing.clone(), |rule| rule.word(&self.options));
            self.write("rule", at.into(), &word);
        }
        Ok(())
    }

    /// By which line a port of a slot leaves; the link is the last.
    ///
    /// # Errors
    /// There is no such port or line.
    pub fn set_map(&mut self, place: Place, line: u32) -> Result<(), String> {
        self.check(place)?;
        if line >= self.options.lines() {
            return Err(format!("line {line} is not below {}", self.options.lines()));
        }
        let bits = millrace_netlist::address_width(self.options.lines());
        let number = place.slot * self.options.ports + place.port;
        self.write("map", number.into(), &Bits::new(bits, line.into()));
        Ok(())
    }

    /// How many beats a slot may send in [`super::BEAT`] cycles, on average.
    pub fn set_rate(&mut self, slot: u32, rate: u16) {
        self.write("rate", slot.into(), &Bits::new(16, rate.into()));
    }

    fn check(&self, place: Place) -> Result<(), String> {
        match place.slot < self.options.slots && place.port < self.options.ports {
            true => Ok(()),
            false => Err(format!("there is no port {} of slot {}", place.port, place.slot)),
        }
    }

    /// Writes a word of the backplane, which takes effect at the next edge.
    fn write(&mut self, name: &str, address: u64, word: &Bits) {
        let port = |what: &str| self.shell.input(&format!("{name}_write_{what}"));
        let (enable, at, data) = (port("enable"), port("address"), port("data"));
        if let (Some(enable), Some(data)) = (enable, data) {
            self.shell.set_u64(enable, 1);
            // One slot alone has no address.
            at.into_iter().for_each(|at| self.shell.set_u64(at, address));
            self.shell.set(data, word);
            self.edge();
            self.shell.set_u64(enable, 0);
        }
    }

    /// Loads a device into a slot, which is empty till so many cycles from now, with the tables of a state. Frames of the slot are dropped
    /// meanwhile.
    ///
    /// # Errors
    /// The device has other ports than the backplane, or its tables do not hold the entries; the slot goes on as it is.
    pub fn load(&mut self, slot: u32, device: &Device, state: &State, cycles: u64) -> Result<(), String> {
        let of = device.options();
        let fits = of.ports == self.options.ports && of.width == self.options.width;
        if !fits || of.link != crate::device::Link::Stream {
            return Err(format!("a slot has {} streams of {} bits", self.options.ports, self.options.width));
        }
        if slot >= self.options.slots {
            return Err(format!("there is no slot {slot}"));
        }
        let mut bench = Bench::new(device)?;
        bench.update(state).map_err(|error| error.to_string())?;
        self.write("gate", slot.into(), &Bits::new(2, 0b11));
        let (closed, there) = (self.cycle(), self.cycle() + cycles);
        let loaded = &mut self.slots[slot as usize];
        loaded.device = None;
        loaded.loading = Some((Box::new(bench), there));
        loaded.outage = Some(Outage { closed, opened: there });
        Ok(())
    }

    /// Empties a slot.
    pub fn unload(&mut self, slot: u32) {
        self.write("gate", slot.into(), &Bits::new(2, 0b11));
        if let Some(slot) = self.slots.get_mut(slot as usize) {
            (slot.device, slot.loading) = (None, None);
        }
    }

    /// What the last exchange of a slot cost, once it is over.
    pub fn outage(&self, slot: u32) -> Option<Outage> {
        let slot = self.slots.get(slot as usize)?;
        slot.outage.filter(|_| slot.loading.is_none())
    }

    /// A frame waits for its turn at a port. A frame without bytes never comes.
    pub fn send(&mut self, port: u32, bytes: Vec<u8>) {
        if let Some(port) = self.ports.get_mut(port as usize).filter(|_| !bytes.is_empty()) {
            port.coming.push_back(Coming::new(bytes, false));
        }
    }

    /// How many frames wait at ports.
    pub fn waiting(&self) -> usize {
        self.ports.iter().map(|port| port.coming.len()).sum()
    }

    /// When the frames that came in at a port since this was asked last started.
    pub fn take_started(&mut self, port: u32) -> Vec<u64> {
        self.ports.get_mut(port as usize).map(|port| std::mem::take(&mut port.started)).unwrap_or_default()
    }

    /// The cycle.
    pub fn cycle(&self) -> u64 {
        self.shell.cycle()
    }

    /// A counter of the backplane, such as `slot3_rx0_dropped` or `rx0_unknown`.
    pub fn get(&mut self, output: &str) -> Option<u64> {
        let signal = self.shell.output(output)?;
        Some(self.shell.get_u64(signal))
    }

    /// Passes a cycle; gives the frames whose last beat left, also those that left while software wrote.
    pub fn step(&mut self) -> Vec<Left> {
        self.finish_loading();
        self.edge();
        std::mem::take(&mut self.left)
    }

    fn edge(&mut self) {
        let bytes = self.options.width as usize / 8;
        for port in &mut self.ports {
            port.streams.begin(&mut self.shell, &port.coming, &mut || true, (true, bytes));
        }
        // What the backplane says to slots comes from its registers, so it does not depend on what slots say in this cycle.
        for slot in &mut self.slots {
            cross(&mut self.shell, slot, &mut self.noise);
        }
        for (number, port) in (0..).zip(&mut self.ports) {
            let Port { coming, streams, started } = port;
            self.left.extend(streams.end(&mut self.shell, coming, (number, bytes), started));
        }
        self.shell.step();
        for slot in &mut self.slots {
            slot.device.iter_mut().for_each(|device| device.simulator().step());
        }
    }

    /// Puts devices that are loaded into their slots, and opens their gates.
    fn finish_loading(&mut self) {
        let now = self.cycle();
        let due = |slot: &Slot| slot.loading.as_ref().is_some_and(|(_, at)| *at <= now);
        let Some(number) = self.slots.iter().position(due) else { return };
        let slot = &mut self.slots[number];
        if let Some((device, _)) = slot.loading.take() {
            slot.device = Some(*device);
        }
        let Slot { device, boundary, .. } = slot;
        if let Some(device) = device {
            for (port, boundary) in boundary.iter_mut().enumerate() {
                boundary.rx = Stream::of(device.simulator(), &format!("rx{port}"), SignalKind::Input);
                boundary.tx = Stream::of(device.simulator(), &format!("tx{port}"), SignalKind::Output);
            }
        }
        // The device starts as after its reset; what it says counts when the gate is open.
        for word in [0b01u128, 0b00] {
            for _ in 0..RESET / 2 {
                self.write("gate", number as u64, &Bits::new(2, word));
            }
        }
        let opened = self.cycle();
        self.slots[number].outage.iter_mut().for_each(|outage| outage.opened = opened);
    }
}

/// The signals of the boundary of a slot, from one side to the other.
fn cross(shell: &mut Simulator, slot: &mut Slot, noise: &mut u64) {
    for boundary in &slot.boundary {
        match &mut slot.device {
            Some(device) => {
                let device = device.simulator();
                carry((shell, &boundary.to), (device, &boundary.rx));
                carry((device, &boundary.tx), (shell, &boundary.from));
            }
            None => {
                // Signals of a slot that is being loaded are anything.
                for signal in boundary.from.of_beat().chain([boundary.to.ready]) {
                    *noise = noise.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                    set(shell, signal, *noise >> 33);
                }
            }
        }
    }
}
