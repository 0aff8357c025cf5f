//! What a machine takes for an instruction and for a cache line: measured there, and of no use elsewhere.

use crate::cost::Cost;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The version of the file.
const VERSION: u32 = 2;

/// What a machine takes at most, in picoseconds, as it was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The version of this form.
    pub version: u32,
    /// The processor, as the machine names it, with its microcode.
    pub processor: String,
    /// The machine.
    pub machine: String,
    /// An instruction whose data is in the nearest cache.
    pub ps_per_instruction: u64,
    /// A cache line that comes from memory, each asked for when the one before has come.
    pub ps_per_line: u64,
    /// A cache line of several that are asked for at once.
    pub ps_per_line_at_once: u64,
    /// A cache line of code after the one before.
    pub ps_per_line_of_code: u64,
    /// A cache line of code that a jump leads to.
    pub ps_per_jump: u64,
    /// To start and end a batch.
    pub ps_per_batch: u64,
}

/// Why a file is no calibration of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CalibrationError {
    /// It is of another version.
    Version(u64),
    /// It is of another machine.
    Machine {
        /// The one that it is of.
        of: String,
        /// This one.
        this: String,
    },
    /// A time of 0, or beyond a second.
    Time(&'static str),
}

impl fmt::Display for CalibrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CalibrationError::Version(version) => {
                write!(
                    f,
                    "it has version {version}, and only {VERSION} is known: run `millrace calibrate` again"
                )
            }
            CalibrationError::Machine { of, this } => {
                write!(f, "it is of another machine ({of}); this is {this}: run `millrace calibrate` here")
            }
            CalibrationError::Time(what) => write!(f, "`{what}` is not between a picosecond and a second"),
        }
    }
}

impl std::error::Error for CalibrationError {}

/// Picoseconds of a second.
const SECOND: u64 = 1_000_000_000_000;

impl Calibration {
    /// Whether this is the version whose fields it has.
    ///
    /// # Errors
    /// It is another one.
    pub fn check_version(version: u64) -> Result<(), CalibrationError> {
        if version == VERSION.into() { Ok(()) } else { Err(CalibrationError::Version(version)) }
    }

    /// Of a machine with these figures, in the order of the fields.
    pub fn new(
        processor: String,
        machine: String,
        [instruction, line, at_once, of_code, jump, batch]: [u64; 6],
    ) -> Calibration {
        Calibration {
            version: VERSION,
            processor,
            machine,
            ps_per_instruction: instruction,
            ps_per_line: line,
            ps_per_line_at_once: at_once,
            ps_per_line_of_code: of_code,
            ps_per_jump: jump,
            ps_per_batch: batch,
        }
    }

    /// What some code takes at most.
    pub fn ps(&self, cost: Cost) -> u64 {
        let instructions = cost.instructions.saturating_mul(self.ps_per_instruction);
        let waits = cost.waits.data.min(cost.lines);
        let parts = [
            (waits, self.ps_per_line),
            (cost.waits.jumps, self.ps_per_jump),
            (cost.lines - waits, self.ps_per_line_at_once),
            (cost.waits.follows, self.ps_per_line_of_code),
        ];
        parts.iter().fold(instructions, |sum, (count, ps)| sum.saturating_add(count.saturating_mul(*ps)))
    }

    /// Whether it is a calibration of the machine with these names.
    ///
    /// # Errors
    /// Why it is not.
    pub fn check(&self, processor: &str, machine: &str) -> Result<(), CalibrationError> {
        Calibration::check_version(self.version.into())?;
        if (self.processor.as_str(), self.machine.as_str()) != (processor, machine) {
            let of = format!("{}, {}", self.processor, self.machine);
            return Err(CalibrationError::Machine { of, this: format!("{processor}, {machine}") });
        }
        let times = [
            ("ps_per_instruction", self.ps_per_instruction),
            ("ps_per_line", self.ps_per_line),
            ("ps_per_line_at_once", self.ps_per_line_at_once),
            ("ps_per_line_of_code", self.ps_per_line_of_code),
            ("ps_per_jump", self.ps_per_jump),
            ("ps_per_batch", self.ps_per_batch),
        ];
        match times.iter().find(|(_, ps)| *ps == 0 || *ps > SECOND) {
            Some((what, _)) => Err(CalibrationError::Time(what)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_machine_is_refused() {
        let own =
            Calibration::new("cpu".into(), "here".into(), [300, 90_000, 20_000, 30_000, 60_000, 50_000]);
        assert_eq!(own.check("cpu", "here"), Ok(()));
        assert!(matches!(own.check("cpu", "there"), Err(CalibrationError::Machine { .. })));
        assert!(matches!(own.check("other", "here"), Err(CalibrationError::Machine { .. })));
        let old = Calibration { version: 0, ..own.clone() };
        assert_eq!(old.check("cpu", "here"), Err(CalibrationError::Version(0)));
        let none = Calibration { ps_per_line: 0, ..own };
        assert_eq!(none.check("cpu", "here"), Err(CalibrationError::Time("ps_per_line")));
    }
}
