//! physical port belongs to; what becomes of its tags; and the tags back on the way out.
//!
//! ```text
//!                    Classifier               TagAction                          TagsOut
//!  physical port --> which rule? --> Hit --> keep, strip, --> virtual switch --> check, put back, --> physical port
//!   frame, id           |                    rewrite a tag    (not known here)   rewrite a tag        by TagMap
//!                       +--> None: the caller drops and counts
//! ```
//!
//! # What rules look at
//!
//! A **tag** is one of 802.1Q (0x8100) or 802.1ad (0x88a8); the kind makes no difference. The **outer** tag follows the two
//! addresses, the **inner** tag follows the outer. A tag whose id is 0 is a **priority tag** and names no VLAN: a frame
//! whose outer tag is one counts as untagged, whatever follows, and a frame whose inner tag is one counts as one with a
//! single tag. An address or a tag of which not all bytes are there is not there. The **VLAN** of a frame is the id of its
//! outer tag. A **group frame** is one to a broadcast or multicast address.
//!
//! # Which rule takes a frame
//!
//! Of the rules of its physical port, the first of this list that matches. The order in which rules are written matters only
//! for bytes.
//!
//! 1. [`Match::Bytes`], as they are written: the frame has all of the bytes.
//! 2. [`Match::Id`]: the operator's program gave this result for the frame.
//! 3. [`Match::VlanMac`]: VLAN and destination address are those of the rule.
//! 4. [`Match::Mac`]: the destination address is that of the rule, whatever the tags.
//! 5. [`Match::QinQ`]: the ids of both tags are those of the rule.
//! 6. If a [`Match::VlanMac`] has the frame's VLAN, that **VLAN is shared by address**. Its rules are these and the
//!    [`Match::Vlan`] of the VLAN, if there is one. A group frame goes to each of their targets that has `flood`, and to
//!    nobody if none has. Any other frame goes to the [`Match::Vlan`], and to nobody if there is none.
//! 7. [`Match::Vlan`]: the VLAN is that of the rule.
//! 8. If the port has a [`Match::Mac`], **the port is shared by address**. Its rules are these and [`Match::Whole`]; what
//!    step 6 says of the VLAN holds for all frames that come here.
//! 9. [`Match::Whole`]: every frame.
//!
//! A target that would get a group frame by several rules gets it once, by the rule that is written first. `flood` means
//! nothing for other rules than those of 6 and 8. The address of a rule is that of one station, never zero or a group.
//! A `Mac` rule takes frames of every VLAN: where a VLAN must be kept apart, `VlanMac` is the rule to write.
//!
//! Two rules of one port that match the same are refused, and so is a rule of bytes that no frame can reach since one
//! before it takes all of them.
//!
//! # Tags
//!
//! On the way in [`TagAction::apply`] keeps, strips or rewrites. On the way out [`Rule::tags_out`] says what undoes that, and
//! [`TagsOut::apply`] does it: a frame leaves with the ids that the rule names, or it is refused, so a switch cannot send
//! into a VLAN that is not its own. The priority of a stripped tag is lost; the tag that is put back has the configured one,
//! which is 0 by default. Its kind is lost too: an outer tag of two is put back as 802.1ad, every other as 802.1Q. A
//! rewritten tag keeps both.
//!
//! # Example
//!
//! Two switches share VLAN 7 of physical port 0 by address.
//!
//! ```
//! use millrace_classifier::{Classifier, Exit, Match, Priority, Rule, TagAction, TagMap, Target, Verdict};
//! use millrace_frames::Packet;
//!
//! let rule = |mac, switch| Rule {
//!     physical: 0,
//!     matches: Match::VlanMac { vid: 7, mac },
//!     target: Target { switch, port: 1 },
//!     tag: TagAction::Strip,
//!     flood: true,
//! };
//! let rules = [rule([2, 0, 0, 0, 0, 1], 10), rule([2, 0, 0, 0, 0, 2], 20)];
//! let classifier = Classifier::new(&rules)?;
//!
//! let mut frame = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 9, 0x81, 0, 0, 7, 0x08, 0];
//! let mut packet = Packet::from_frame(&frame)?;
//! let Verdict::One(hit) = classifier.classify(0, packet.data(), None) else { panic!("it has an owner") };
//! assert_eq!(hit.switch, 20);
//! hit.tag.apply(&mut packet);
//! assert_eq!(packet.data()[12..], [0x08, 0]);
//!
//! // Back out, through the port that its rule is for.
//! let tags = rules[1].tags_out(Priority::default()).expect("the rule names the VLAN");
//! let exits = TagMap::new(&[(hit.target(), Exit { physical: 0, tags })])?;
//! exits.exits(hit.target())[0].tags.apply(&mut packet)?;
//! assert_eq!(packet.data(), frame);
//!
//! // A broadcast goes to both, a frame to nobody's address to none.
//! frame[..6].fill(0xff);
//! let Verdict::All(flood) = classifier.classify(0, &frame, None) else { panic!("both ask for groups") };
//! assert_eq!(classifier.hits(flood).len(), 2);
//! frame[..6].fill(0x0e);
//! assert_eq!(classifier.classify(0, &frame, None), Verdict::None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod classifier;
mod exact;
mod exits;
mod header;
mod making;
mod patterns;
mod rule;
mod tags;

pub use classifier::{Classifier, Flood, Hit, PortRules, Verdict};
pub use exits::{AmbiguousExit, Exit, TagMap};
pub use rule::{
    MAX_BYTES_RULES, MAX_OFFSET, MAX_PORTS, MAX_RULES, MAX_SWITCHES, MAX_VID, MaskedByte, Match, NamedRule,
    Rule, RuleError, TagAction, Target,
};
pub use tags::{Belongs, Priority, Tag, TagChange, TagError, TagsOut};
