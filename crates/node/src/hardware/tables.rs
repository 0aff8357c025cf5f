//! Software's side of a program in a design: its tables, and what it has counted.

use super::programs::Part;
use millrace_dataplane::{device_groups, device_sessions};
use millrace_link::Fault;
use millrace_pipeline::Bits;
use millrace_rtl::device::{Counted, OWNER};
use millrace_rtl::map::{RegisterAccess, RegisterDevice};
use std::fmt::Display;

/// A program in a design, by its registers.
pub(super) struct Tables<A> {
    registers: RegisterDevice<A>,
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
        let is_held = registers.read_word(owner.0, owner.1).map_err(failed)? == number(part.owner());
        if !is_held {
            // Who stops in between leaves a device that holds no entries of anybody.
            registers.write_word(owner.0, owner.1, &number(0)).map_err(failed)?;
            let switch = part.switch().map_err(failed)?;
            let mut driver = part.device().driver();
            if !was_reset {
                driver.forget();
            }
            let groups = switch.replication();
            driver.set_replication(&device_groups(groups), &device_sessions(groups)).map_err(failed)?;
            driver.update(switch.state(), &mut registers).map_err(failed)?;
            registers.write_word(owner.0, owner.1, &number(part.owner())).map_err(failed)?;
        }
        let drops = part.device().counted();
        let drops = drops.filter(|(what, _)| matches!(what, Counted::Drops(_) | Counted::ParserErrors(_)));
        let ports = part.device().options();
        let bad = (0..ports.ports).filter_map(|port| find(&format!("port{}.rx_bad", ports.number(port))));
        let dropped = drops.map(|(_, at)| at).chain(bad).collect();
        Ok(Tables { registers, dropped })
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

fn number(value: u32) -> Bits {
    Bits::new(32, value.into())
}

fn failed(why: impl Display) -> Fault {
    Fault::new(why)
}
