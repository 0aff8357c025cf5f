//! Rules: what they match and where they send a frame.

use std::fmt;

/// Most rules of a classifier.
pub const MAX_RULES: usize = 60_000;

/// Most physical ports that have rules. A port with rules for VLANs takes 8 KiB.
pub const MAX_PORTS: usize = 1024;

/// Most rules of [`Match::Bytes`] on one physical port: a frame is compared with each of them.
pub const MAX_BYTES_RULES: usize = 64;

/// So many bytes from the start of a frame can be compared by [`Match::Bytes`].
pub const MAX_OFFSET: usize = 128;

/// Most virtual switches; their numbers are lower.
pub const MAX_SWITCHES: usize = 4096;

/// The largest number of a VLAN. 0 is no VLAN (a priority tag), 4095 is reserved.
pub const MAX_VID: u16 = 4094;

/// One rule: frames of a physical port that match go to a port of a virtual switch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The physical port whose frames the rule looks at.
    pub physical: u16,
    /// Which of its frames.
    pub matches: Match,
    /// Where they go.
    pub target: Target,
    /// What becomes of their tags on the way in.
    pub tag: TagAction,
    /// Whether the target gets frames to group addresses where it shares a VLAN or a port by address.
    pub flood: bool,
}

/// Which frames of a physical port a rule is for. The crate's page has the precedence.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Match {
    /// Every frame, with whatever tags.
    Whole,
    /// Frames of a VLAN: the id of the outer tag.
    Vlan(u16),
    /// Frames with two tags.
    QinQ {
        /// The id of the outer tag.
        outer: u16,
        /// The id of the inner tag.
        inner: u16,
    },
    /// Frames of a VLAN to a station.
    VlanMac {
        /// The id of the outer tag.
        vid: u16,
        /// The destination address.
        mac: [u8; 6],
    },
    /// Frames to a station, with whatever tags.
    Mac([u8; 6]),
    /// Frames that have all of these bytes.
    Bytes(Vec<MaskedByte>),
    /// Frames of which the operator's classifying program gave this result.
    Id(u32),
}

/// One byte that a frame must have: `frame[offset] & mask == value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MaskedByte {
    /// Where, from the start of the frame; below [`MAX_OFFSET`].
    pub offset: u8,
    /// What the byte is under the mask.
    pub value: u8,
    /// Which bits are compared; not 0.
    pub mask: u8,
}

/// A port of a virtual switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// The number of the switch, below [`MAX_SWITCHES`].
    pub switch: u16,
    /// The number of the port in that switch.
    pub port: u32,
}

/// What becomes of the tags of a frame on its way in. A frame that lacks the tag stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TagAction {
    /// They stay.
    #[default]
    Keep,
    /// The outer tag goes.
    Strip,
    /// Both go; of a frame with one tag, that one.
    StripBoth,
    /// The outer tag gets this id and keeps its priority.
    Rewrite(u16),
}

/// A rule in an error: its place in the list, counted from 1, and its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRule {
    /// Its place, counted from 1.
    pub number: usize,
    /// What it matches and where it sends frames.
    pub text: String,
}

/// Why rules are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// More than [`MAX_RULES`].
    TooManyRules(usize),
    /// This rule is for one physical port more than [`MAX_PORTS`].
    TooManyPorts(NamedRule),
    /// This rule is one more than [`MAX_BYTES_RULES`] of its port.
    TooManyBytesRules(NamedRule),
    /// The switch is not below [`MAX_SWITCHES`].
    Switch(NamedRule),
    /// This id is not from 1 to [`MAX_VID`].
    Vid(NamedRule, u16),
    /// The address is zero or that of a group.
    Address(NamedRule),
    /// The bytes to compare are none, or one of them is past [`MAX_OFFSET`], is there twice, has an empty mask, or a value
    /// with bits outside of its mask.
    Bytes(NamedRule),
    /// Both match the same.
    Duplicate {
        /// The rule that is written first.
        first: NamedRule,
        /// The other.
        second: NamedRule,
    },
    /// No frame can reach the second, since all of its frames match the first.
    Unreachable {
        /// The rule that is written first.
        first: NamedRule,
        /// The other.
        second: NamedRule,
    },
}

impl Rule {
    /// The rule as an error names it, by its index in the list.
    pub(crate) fn named(&self, index: usize) -> NamedRule {
        NamedRule { number: index + 1, text: self.to_string() }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target { switch, port } = self.target;
        write!(f, "port {}, {} to switch {switch} port {port}", self.physical, self.matches)
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Match::Whole => f.write_str("whole"),
            Match::Vlan(vid) => write!(f, "VLAN {vid}"),
            Match::QinQ { outer, inner } => write!(f, "VLAN {outer}.{inner}"),
            Match::VlanMac { vid, mac } => write!(f, "VLAN {vid}, address {}", Address(*mac)),
            Match::Mac(mac) => write!(f, "address {}", Address(*mac)),
            Match::Bytes(bytes) => {
                f.write_str("bytes")?;
                for MaskedByte { offset, value, mask } in bytes {
                    write!(f, " {offset}:{value:#04x}/{mask:#04x}")?;
                }
                Ok(())
            }
            Match::Id(id) => write!(f, "id {id}"),
        }
    }
}

struct Address([u8; 6]);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Display for NamedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} ({})", self.number, self.text)
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleError::TooManyRules(count) => write!(f, "{count} rules are more than {MAX_RULES}"),
            RuleError::TooManyPorts(rule) => {
                write!(f, "{rule}: more than {MAX_PORTS} physical ports have rules")
            }
            RuleError::TooManyBytesRules(rule) => {
                write!(f, "{rule}: its port has more than {MAX_BYTES_RULES} rules that compare bytes")
            }
            RuleError::Switch(rule) => write!(f, "{rule}: the number of a switch is below {MAX_SWITCHES}"),
            RuleError::Vid(rule, vid) => {
                write!(f, "{rule}: the id of a VLAN is from 1 to {MAX_VID}, not {vid}")
            }
            RuleError::Address(rule) => write!(f, "{rule}: the address of a rule is that of one station"),
            RuleError::Bytes(rule) => write!(
                f,
                "{rule}: each byte is below {MAX_OFFSET}, there once, with a mask that is not 0 and has all bits of the value"
            ),
            RuleError::Duplicate { first, second } => write!(f, "{second} matches the same as {first}"),
            RuleError::Unreachable { first, second } => {
                write!(f, "{second} gets no frame, all of its frames match {first}")
            }
        }
    }
}

impl std::error::Error for RuleError {}
