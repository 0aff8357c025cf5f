//! Rules and frames of the tests.

use millrace_classifier::{Match, Rule, TagAction, Target};

/// A rule of a physical port, for port 0 of a switch, that keeps tags and does not flood.
pub(crate) fn rule(physical: u16, matches: Match, switch: u16) -> Rule {
    Rule { physical, matches, target: Target { switch, port: 0 }, tag: TagAction::Keep, flood: false }
}

/// The same with `flood`.
pub(crate) fn flooding(physical: u16, matches: Match, switch: u16) -> Rule {
    Rule { flood: true, ..rule(physical, matches, switch) }
}

/// The address of a station.
pub(crate) fn station(last: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, last]
}

/// Everybody.
pub(crate) const BROADCAST: [u8; 6] = [0xff; 6];

/// A frame to an address, with tags (what each is, priority and id) and an IPv4 header that is not there.
pub(crate) fn frame(to: [u8; 6], tags: &[(u16, u16)]) -> Vec<u8> {
    let mut frame = [to, [2, 0, 0, 0, 0, 0xaa]].concat();
    for (kind, rest) in tags {
        frame.extend(kind.to_be_bytes());
        frame.extend(rest.to_be_bytes());
    }
    frame.extend([0x08, 0x00, 0x45, 0, 0, 20]);
    frame
}
