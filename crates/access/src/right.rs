//! What a client can be allowed to do.

use std::fmt;
use std::str::FromStr;

/// A kind of thing to do with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Right {
    /// To read entries, counters and the program, and to hear of packets and digests.
    Read,
    /// To write entries and other objects, and to send packets.
    Write,
    /// To set the program.
    Swap,
    /// To have packets captured.
    Capture,
    /// To load, start, stop and remove devices and links.
    LifeCycle,
}

impl Right {
    /// All of them.
    pub const ALL: [Right; 5] = [Right::Read, Right::Write, Right::Swap, Right::Capture, Right::LifeCycle];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Right::Read => "read",
            Right::Write => "write",
            Right::Swap => "swap",
            Right::Capture => "capture",
            Right::LifeCycle => "life-cycle",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Right {
    type Err = String;

    fn from_str(text: &str) -> Result<Right, String> {
        let found = Right::ALL.into_iter().find(|right| right.name() == text);
        found.ok_or_else(|| {
            let known = Right::ALL.map(Right::name).join(", ");
            format!("`{}` is no right, as {known} are", text.escape_debug())
        })
    }
}

/// A set of rights. None is part of another: who may write may not read, unless both are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// All rights.
    pub fn all() -> Rights {
        Right::ALL.into_iter().collect()
    }

    /// Whether a right is in the set.
    pub fn has(self, right: Right) -> bool {
        self.0 & right.bit() != 0
    }
}

impl FromIterator<Right> for Rights {
    fn from_iter<I: IntoIterator<Item = Right>>(rights: I) -> Rights {
        Rights(rights.into_iter().fold(0, |set, right| set | right.bit()))
    }
}

impl FromStr for Rights {
    type Err = String;

    /// Words with commas between them, or `all`.
    fn from_str(text: &str) -> Result<Rights, String> {
        match text {
            "all" => Ok(Rights::all()),
            _ => text.split(',').map(|word| word.trim().parse::<Right>()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_have_words() {
        for right in Right::ALL {
            assert_eq!(right.name().parse::<Right>(), Ok(right));
            let alone: Rights = right.name().parse().unwrap();
            assert!(Right::ALL.into_iter().all(|other| alone.has(other) == (other == right)));
        }
        assert_eq!(
            "read, life-cycle".parse::<Rights>(),
            Ok([Right::Read, Right::LifeCycle].into_iter().collect())
        );
        assert_eq!("all".parse::<Rights>(), Ok(Rights::all()));
        for nonsense in ["", "reads", "read,,write", "Read", "\x1b"] {
            let error = nonsense.parse::<Rights>().unwrap_err();
            assert!(error.contains("life-cycle") && !error.contains('\x1b'), "{error}");
        }
    }
}
