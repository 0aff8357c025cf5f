//! Operational modes: what a switch of a network that carries safety-relevant traffic may do at a time, in one table.
//!
//! The data path enforces a mode where packets come in and where they leave ([`crate::switch`]), each drop with the reason
//! [`DropReason::Mode`](crate::DropReason::Mode). A switch that is operational pays nothing for it: in other modes its ports are closed,
//! and closed ports are what the fast path leaves to the slow one anyway.
//!
//! The names are those that public descriptions of switches after ARINC 664 part 7 have; the text of the standard is not public.

use std::fmt;
use std::str::FromStr;

/// A mode of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// It is being set up.
    Init,
    /// It forwards by a valid configuration.
    #[default]
    Operational,
    /// Somebody works on it.
    Maintenance,
    /// It has no valid configuration.
    Passive,
    /// It has a fault.
    Quiet,
}

/// What a switch does in a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conduct {
    /// The mode.
    pub mode: Mode,
    /// Its word.
    pub name: &'static str,
    /// What it is for.
    pub means: &'static str,
    /// Whether packets go from port to port. If not, they are dropped, but those that come from the management port or go there.
    pub forwards: bool,
    /// Whether anything at all leaves by a port, as what the switch itself answers through its management port.
    pub sends: bool,
    /// Whether entries may be written and programs loaded, of a switch whose modes are heeded.
    pub loads: bool,
    /// The modes that may follow.
    pub next: &'static [Mode],
}

/// The table of modes: what each does, and which may follow.
pub const MODES: [Conduct; 5] = [
    Conduct {
        mode: Mode::Init,
        name: "init",
        means: "starts, or checks its configuration again",
        forwards: false,
        sends: false,
        loads: true,
        next: &[Mode::Operational, Mode::Passive, Mode::Quiet],
    },
    Conduct {
        mode: Mode::Operational,
        name: "operational",
        means: "forwards by a valid configuration",
        forwards: true,
        sends: true,
        loads: false,
        next: &[Mode::Init, Mode::Maintenance, Mode::Passive, Mode::Quiet],
    },
    Conduct {
        mode: Mode::Maintenance,
        name: "maintenance",
        means: "loads configurations and programs; forwards what the program lets pass meanwhile",
        forwards: true,
        sends: true,
        loads: true,
        next: &[Mode::Init, Mode::Operational, Mode::Passive, Mode::Quiet],
    },
    Conduct {
        mode: Mode::Passive,
        name: "passive",
        means: "has no valid configuration: forwards nothing, answers management",
        forwards: false,
        sends: true,
        loads: false,
        next: &[Mode::Init, Mode::Maintenance, Mode::Quiet],
    },
    Conduct {
        mode: Mode::Quiet,
        name: "quiet",
        means: "has a fault: sends nothing",
        forwards: false,
        sends: false,
        loads: false,
        next: &[Mode::Init],
    },
];

impl Mode {
    /// What a switch does in it.
    pub const fn conduct(self) -> &'static Conduct {
        // In the order of the modes, which a test looks at.
        &MODES[self as usize]
    }

    /// Its word.
    pub const fn name(self) -> &'static str {
        self.conduct().name
    }

    /// Whether that mode may follow; a mode follows itself.
    pub fn may_become(self, next: Mode) -> bool {
        self == next || self.conduct().next.contains(&next)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Mode, String> {
        let found = MODES.iter().find(|conduct| conduct.name == text);
        found.map(|conduct| conduct.mode).ok_or_else(|| {
            let known = MODES.map(|conduct| conduct.name).join(", ");
            format!("`{}` is no mode, as {known} are", text.escape_debug())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_modes() {
        for (at, conduct) in MODES.iter().enumerate() {
            assert_eq!(conduct.mode as usize, at);
            assert_eq!(conduct.name.parse(), Ok(conduct.mode));
            assert_eq!(conduct.mode.conduct(), conduct);
        }
        assert!("Operational".parse::<Mode>().unwrap_err().contains("init, operational"));
    }

    #[test]
    fn the_rules_between_modes_hold() {
        for conduct in MODES {
            // What forwards sends.
            assert!(!conduct.forwards || conduct.sends);
            assert!(!conduct.next.contains(&conduct.mode));
            // A fault may come up in any mode, and ends with a check of everything only.
            assert!(conduct.mode.may_become(Mode::Quiet));
            assert_eq!(
                Mode::Quiet.may_become(conduct.mode),
                matches!(conduct.mode, Mode::Quiet | Mode::Init)
            );
        }
        // Without a valid configuration a switch becomes operational through a check of one alone.
        assert!(!Mode::Passive.may_become(Mode::Operational));
    }
}
