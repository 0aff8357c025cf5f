//! A device in simulation, with frames at its ports, which software controls by its registers alone.

use super::build::Device;
use super::cycles::Cycles;
use super::{Counted, Reason};
use crate::driver::{Driver, DriverError};
use crate::groups::{Groups, Sessions};
use crate::map::{MapError, RegisterAccess, RegisterDevice};
use crate::units::Objects;
use millrace_netlist::Simulator;
use millrace_pipeline::Bits;
use millrace_state::State;
use std::collections::BTreeMap;

/// A device in simulation: frames wait at its ports and go in beat by beat; those that leave are put together again. Software reaches it
/// by the bus of its registers.
pub struct Bench {
    device: RegisterDevice<Cycles>,
    driver: Driver,
    counted: Vec<(Counted, (usize, u64))>,
}

/// A frame that left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The port that it left by.
    pub port: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// When its start left, and its end: in cycles of the first and the last beat; with MACs in characters of the link, of which eight
    /// are a cycle of XGMII and one is a cycle of GMII.
    pub at: (u64, u64),
    /// It is marked as bad.
    pub is_bad: bool,
}

/// A frame whose header went to ingress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The port that it came in by.
    pub port: u32,
    /// The bank of tables that it meets: another one after each write to tables and groups.
    pub bank: bool,
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench").field("driver", &self.driver).finish_non_exhaustive()
    }
}

impl Bench {
    /// Of a device after its reset.
    ///
    /// # Errors
    /// The design is not well formed, or its registers do not answer.
    pub fn new(device: &Device) -> Result<Bench, String> {
        let cycles = Cycles::new(device)?;
        let registers = RegisterDevice::attach(device.register_map().clone(), cycles);
        let registers = registers.map_err(|error| error.to_string())?;
        Ok(Bench { device: registers, driver: device.driver(), counted: device.counted().collect() })
    }

    /// From now on the inputs of each cycle are kept.
    pub fn record(&mut self) {
        self.device.access().record = Some(Vec::new());
    }

    /// The inputs of each cycle since [`Bench::record`], in the order of the ports of the top module.
    pub fn take_record(&mut self) -> Vec<Vec<Bits>> {
        self.device.access().record.take().unwrap_or_default()
    }

    /// From now on frames come and leave while registers are read and written, at random by this number; 0: those wait that have not
    /// begun.
    pub fn set_traffic(&mut self, seed: u64) {
        self.device.access().traffic = Some(seed).filter(|seed| *seed != 0);
    }

    /// From now on an update writes so many words of tables to each bank through the bus, at least one; it sets the others at once. All go
    /// through the bus if nothing is said.
    pub fn set_words_by_bus(&mut self, words: usize) {
        self.device.access().words_by_bus = words.max(1);
    }

    /// Writes what control has changed in a state and in multicast groups, in tables and groups between two frames. Says whether
    /// anything was written.
    ///
    /// # Errors
    /// The entries of a table do not fit its unit, or the registers do not answer.
    pub fn update(&mut self, state: &State) -> Result<bool, DriverError<MapError<String>>> {
        self.driver.update(state, &mut self.device)
    }

    /// Says which multicast groups there are; the next update writes them.
    ///
    /// # Errors
    /// They are more than the device holds.
    pub fn set_groups(&mut self, groups: &Groups) -> Result<(), String> {
        self.driver.set_groups(groups).map_err(|error| error.to_string())
    }

    /// Says which clone sessions there are; the next update writes them.
    ///
    /// # Errors
    /// They are more than the device holds, or it clones nothing.
    pub fn set_sessions(&mut self, sessions: &Sessions) -> Result<(), String> {
        self.driver.set_sessions(sessions).map_err(|error| error.to_string())
    }

    /// Takes digests and lines that wait.
    ///
    /// # Errors
    /// The registers do not answer.
    pub fn take_messages(&mut self, objects: &mut Objects<'_>) -> Result<(), MapError<String>> {
        self.driver.take_messages(objects, &mut self.device)
    }

    /// Reads what frames have made of counters, meters and registers into the state.
    ///
    /// # Errors
    /// The registers do not answer.
    pub fn read_back(&mut self, objects: &mut Objects<'_>) -> Result<(), MapError<String>> {
        let now_ns = objects.now_ns;
        self.driver.read_back(objects, &mut self.device, &|| now_ns)
    }

    /// Writes a word by its name, such as `port0.discipline`; says whether there is one that can be written.
    pub fn set(&mut self, name: &str, value: u64) -> bool {
        let Some((port, address)) = self.device.map().find(name) else { return false };
        let width = self.device.map().ports[port].width;
        self.device.write_word(port, address, &Bits::new(width, value.into())).is_ok()
    }

    /// Reads a word by its name, such as `drops.queue_full`.
    pub fn get(&mut self, name: &str) -> Option<u64> {
        let (port, address) = self.device.map().find(name)?;
        Some(self.device.read_word(port, address).ok()?.to_u64_saturating())
    }

    /// The drops so far, by reason.
    pub fn drops(&mut self) -> BTreeMap<Reason, u64> {
        let mut drops = BTreeMap::new();
        for (what, count) in self.counted().into_iter().filter(|(_, count)| *count > 0) {
            let reason = match what {
                Counted::Drops(reason) => reason,
                Counted::ParserErrors(_) => Reason::ParserError,
                _ => continue,
            };
            *drops.entry(reason).or_default() += count;
        }
        drops
    }

    /// What was counted so far of lookups and drops.
    pub fn counted(&mut self) -> BTreeMap<Counted, u64> {
        let (device, counted) = (&mut self.device, &self.counted);
        let read = |device: &mut RegisterDevice<Cycles>, (port, word): (usize, u64)| {
            device.read_word(port, word).map_or(0, |word| word.to_u64_saturating())
        };
        counted.iter().map(|(what, at)| (*what, read(device, *at))).collect()
    }

    /// As an interrupt asks for: words of queues that software wants to hear of, each with the number of its port.
    ///
    /// # Errors
    /// The registers do not answer.
    pub fn take_interrupts(&mut self) -> Result<Vec<(usize, Bits)>, MapError<String>> {
        match self.device.access().is_raised() {
            true => self.device.take_interrupts(),
            false => Ok(Vec::new()),
        }
    }

    /// From now on the time that meters see is that of the cycles, each of so many picoseconds.
    pub fn set_clock(&mut self, period_ps: u32) {
        self.device.access().period_ps = period_ps;
    }

    /// From now on the time that meters see is this, in nanoseconds.
    pub fn set_now(&mut self, now_ns: u64) {
        self.device.access().set_now(now_ns);
    }

    /// The cycle.
    pub fn cycle(&mut self) -> u64 {
        self.device.access().simulator.cycle()
    }

    /// The simulator.
    pub fn simulator(&mut self) -> &mut Simulator {
        &mut self.device.access().simulator
    }

    /// Its registers, by their offsets.
    pub fn registers(&mut self) -> &mut impl RegisterAccess<Error = String> {
        self.device.access()
    }

    /// A frame waits for its turn at a port. A frame without bytes never comes.
    pub fn send(&mut self, port: u32, bytes: Vec<u8>, is_bad: bool) {
        self.device.access().send(port, bytes, is_bad);
    }

    /// How many frames wait at ports.
    pub fn waiting(&mut self) -> usize {
        self.device.access().waiting()
    }

    /// How many frames wait at a port.
    pub fn waiting_at(&mut self, port: u32) -> usize {
        self.device.access().waiting_at(port)
    }

    /// When the frames that came in at a port since this was asked last started, in the unit of [`Left::at`].
    pub fn take_started(&mut self, port: u32) -> Vec<u64> {
        self.device.access().take_started(port)
    }

    /// Passes a cycle. `goes` says whether a port offers a beat that it has (with a MAC, begins a frame), `ready` whether one takes a
    /// beat. Gives the frames whose last beat left, and those whose headers were decided, in this cycle and in those since the last call
    /// in which registers were read and written.
    pub fn step(
        &mut self,
        goes: &mut dyn FnMut(u32) -> bool,
        ready: &mut dyn FnMut(u32) -> bool,
    ) -> (Vec<Left>, Vec<Decided>) {
        let cycles = self.device.access();
        cycles.begin(goes, ready);
        cycles.end();
        cycles.take()
    }
}
