//! Software's side of a program in a design: its tables and objects, and what it has counted.

use super::programs::Part;
use crate::blocks::command;
use millrace_dataplane::{Switch, device_groups, device_sessions};
use millrace_link::Fault;
use millrace_pipeline::Bits;
use millrace_rtl::device::{Counted, OWNER};
use millrace_rtl::map::{RegisterAccess, RegisterDevice};
use millrace_rtl::{Driver, DriverError, Objects, SoftwareAccess};
use millrace_state::Effects;
use std::convert::Infallible;
use std::fmt::Display;

/// A program in a design, by its registers.
pub(super) struct Tables<A> {
    registers: RegisterDevice<A>,
    /// What its tables are to hold, and what they do.
    switch: Switch,
    driver: Driver,
    /// The word that says whose entries they are, and that of the entries of the block.
    owner: (usize, u64),
    of_file: u32,
    /// The words of frames that went nowhere.
    dropped: Vec<(usize, u64)>,
}

impl<A: RegisterAccess<Error: Display>> Tables<A> {
    /// Its tables have the entries of the block then. `was_reset`: its memories are as a reset makes them. One that holds these entries
    /// already goes on with what frames have made of its objects.
    ///
    /// # Errors
    /// There is another program, or it cannot be reached.
    pub(super) fn new(part: &Part, access: A, was_reset: bool) -> Result<Tables<A>, Fault> {
        let map = part.device().register_map().clone();
        let mut registers = RegisterDevice::attach(map, access).map_err(failed)?;
        let find = |name: &str| part.device().register_map().find(name);
        let owner = find(OWNER).ok_or_else(|| failed("the device has no word for its owner"))?;
        let (switch, mut driver) = (part.switch().map_err(failed)?, part.device().driver());
        let groups = switch.replication();
        driver.set_replication(&device_groups(groups), &device_sessions(groups)).map_err(failed)?;
        if !was_reset {
            driver.forget();
        }
        let of_file = part.owner();
        let is_held = registers.read_word(owner.0, owner.1).map_err(failed)? == number(of_file);
        match is_held {
            // What the driver would write, all of it, is there: the bank that frames meet follows from that.
            true => drop(
                driver.update(switch.state(), &mut Nowhere).map_err(|DriverError::Full(why)| failed(why))?,
            ),
            false => {
                // Who stops in between leaves a device that holds no entries of anybody.
                registers.write_word(owner.0, owner.1, &number(0)).map_err(failed)?;
                driver.update(switch.state(), &mut registers).map_err(failed)?;
                registers.write_word(owner.0, owner.1, &number(of_file)).map_err(failed)?;
            }
        }
        let drops = part.device().counted();
        let drops = drops.filter(|(what, _)| matches!(what, Counted::Drops(_) | Counted::ParserErrors(_)));
        let ports = part.device().options();
        let bad = (0..ports.ports).filter_map(|port| find(&format!("port{}.rx_bad", ports.number(port))));
        let dropped = drops.map(|(_, at)| at).chain(bad).collect();
        Ok(Tables { registers, switch, driver, owner, of_file, dropped })
    }

    /// Runs commands on it, all or none; gives what they show. Frames meet its tables as they were, or as they are after all of them.
    ///
    /// # Errors
    /// One is refused, or the device cannot be reached.
    pub(super) fn command(&mut self, text: &str, now_ns: u64) -> Result<String, Fault> {
        // What frames have counted is shown, and stays.
        let mut effects = Effects::default();
        let mut objects = Objects { state: self.switch.state_mut(), now_ns, effects: &mut effects };
        self.driver.read_back(&mut objects, &mut self.registers, &|| now_ns).map_err(failed)?;
        let driver = &mut self.driver;
        let holds = |switch: &Switch| {
            let groups = switch.replication();
            let held = driver.set_replication(&device_groups(groups), &device_sessions(groups));
            held.map_err(|why| why.to_string())
        };
        let said = command(&mut self.switch, text, holds).map_err(failed)?;
        // Who starts again has the entries of the file.
        if self.of_file != 0 {
            self.registers.write_word(self.owner.0, self.owner.1, &number(0)).map_err(failed)?;
            self.of_file = 0;
        }
        self.driver.update(self.switch.state(), &mut self.registers).map_err(failed)?;
        Ok(said)
    }

    /// Frames and copies that went nowhere so far.
    ///
    /// # Errors
    /// It cannot be reached.
    pub(super) fn dropped(&mut self) -> Result<u64, Fault> {
        let mut sum = 0u64;
        for (port, address) in &self.dropped {
            let word = self.registers.read_word(*port, *address).map_err(failed)?;
            sum = sum.wrapping_add(word.to_u64_saturating());
        }
        Ok(sum)
    }
}

/// A device that holds what is written to it already.
struct Nowhere;

impl SoftwareAccess for Nowhere {
    type Error = Infallible;

    fn write(&mut self, _: usize, _: u64, _: &Bits) -> Result<(), Infallible> {
        Ok(())
    }

    fn read(&mut self, words: &[(usize, u64)]) -> Result<Vec<Bits>, Infallible> {
        Ok(words.iter().map(|_| number(0)).collect())
    }

    fn use_bank(&mut self, _: bool) -> Result<(), Infallible> {
        Ok(())
    }
}

fn number(value: u32) -> Bits {
    Bits::new(32, value.into())
}

fn failed(why: impl Display) -> Fault {
    Fault::new(why)
}
