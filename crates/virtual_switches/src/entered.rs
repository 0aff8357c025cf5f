//! Which switch a request is about.
//!
//! Programs are compiled and states are read while the device is not locked, so that others go on. Meanwhile the operator may remove the
//! switch and load another one with its name, perhaps of another tenant. So the switch is looked up at the moment at which the rights on it
//! are checked, and after that it is found by a number that no other one has.

use crate::device::Running;
use crate::failure::Failure;
use crate::installed::Installed;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of the next switch of any device.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A number that no other switch has.
pub(crate) fn next_identity() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A switch that a request may do something with.
#[derive(Clone, Debug)]
pub(crate) struct Entered {
    pub(crate) name: String,
    /// None: there was no such switch, or it does not run.
    identity: Option<u64>,
}

impl Running {
    /// The switch that has that name now.
    pub(crate) fn enter(&self, name: &str) -> Entered {
        Entered { name: name.to_owned(), identity: self.get(name).ok().map(|installed| installed.identity) }
    }

    /// That switch, if it is still there.
    pub(crate) fn entered(&self, switch: &Entered) -> Result<&Installed, Failure> {
        let installed = self.get(&switch.name)?;
        match Some(installed.identity) == switch.identity {
            true => Ok(installed),
            false => Err(Failure::no_switch(&switch.name)),
        }
    }

    /// As [`Running::entered`].
    pub(crate) fn entered_mut(&mut self, switch: &Entered) -> Result<&mut Installed, Failure> {
        self.entered(switch)?;
        self.get_mut(&switch.name)
    }
}
