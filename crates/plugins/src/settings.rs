//! What bounds a plugin, and how that is written.

use crate::{MAX_FUEL, MAX_MEMORY};
use std::fmt;
use std::str::FromStr;

/// What becomes of packets whose plugin is missing, off, or has failed at them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// They go on; what the plugin would have given is 0.
    Pass,
    /// They are dropped.
    #[default]
    Drop,
}

/// What a program lets a plugin do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Change the payload.
    pub rewrite: bool,
}

/// What bounds a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What becomes of packets that it does not answer for; none: as the program says.
    pub policy: Option<Policy>,
    /// The fuel of a call, about one unit an instruction; at most [`MAX_FUEL`].
    pub fuel: u64,
    /// After so many failures it is switched off; at least 1.
    pub failures: u64,
    /// The most memory of an instance, in bytes; at most [`MAX_MEMORY`].
    pub memory: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { policy: None, fuel: 1_000_000, failures: 10, memory: 16 << 20 }
    }
}

/// What is wrong about settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError(String);

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingsError {}

impl FromStr for Settings {
    type Err = SettingsError;

    /// `policy=drop,fuel=100000,failures=3,memory=4`: each at most once, in any order; memory in MiB.
    fn from_str(text: &str) -> Result<Settings, SettingsError> {
        let fail = |what: String| Err(SettingsError(what));
        let mut settings = Settings::default();
        let mut seen: Vec<&str> = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let Some((name, value)) = part.split_once('=') else {
                return fail(format!("`{part}` is no setting: policy=, fuel=, failures= and memory= are"));
            };
            if seen.contains(&name) {
                return fail(format!("`{name}` is given twice"));
            }
            seen.push(name);
            match name {
                "policy" => settings.policy = Some(value.parse()?),
                "fuel" => settings.fuel = number(name, value, MAX_FUEL)?,
                "failures" => settings.failures = number(name, value, u64::from(u32::MAX))?,
                "memory" => {
                    let mebibytes = number(name, value, (MAX_MEMORY >> 20) as u64)?;
                    settings.memory = (mebibytes as usize) << 20;
                }
                _ => {
                    return fail(format!("`{name}` is no setting: policy, fuel, failures and memory are"));
                }
            }
        }
        Ok(settings)
    }
}

impl FromStr for Policy {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Policy, SettingsError> {
        match text {
            "pass" => Ok(Policy::Pass),
            "drop" => Ok(Policy::Drop),
            _ => Err(SettingsError(format!("`{text}` is no policy: pass and drop are"))),
        }
    }
}

fn number(name: &str, value: &str, most: u64) -> Result<u64, SettingsError> {
    match value.parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(SettingsError(format!("{name} is a number from 1 to {most}, not `{value}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read() {
        let settings: Settings = "policy=pass,fuel=500,failures=1,memory=2".parse().unwrap();
        let wanted = Settings { policy: Some(Policy::Pass), fuel: 500, failures: 1, memory: 2 << 20 };
        assert_eq!(settings, wanted);
        assert_eq!("".parse(), Ok(Settings::default()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, wanted) in [
            ("fuel=0", "fuel is a number from 1 to 4294967296, not `0`"),
            ("memory=257", "memory is a number from 1 to 256, not `257`"),
            ("policy=maybe", "`maybe` is no policy: pass and drop are"),
            ("fuel=1,fuel=2", "`fuel` is given twice"),
            ("slow", "`slow` is no setting: policy=, fuel=, failures= and memory= are"),
            ("x=1", "`x` is no setting: policy, fuel, failures and memory are"),
        ] {
            assert_eq!(text.parse::<Settings>().unwrap_err().to_string(), wanted);
        }
    }
}
