//! Tags of frames, changed where the frame lies: only the two addresses move.

use crate::header::{ADDRESSES, CUSTOMER, SERVICE, TAG, VID, is_tag, tags};
use crate::rule::{MAX_VID, Match, Rule, TagAction};
use millrace_frames::{FrameLengthError, Packet};
use std::fmt;

/// The priority of a tag: class (PCP) and whether the frame may be dropped first (DEI).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Priority(u16);

/// A tag that is put before a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag {
    vid: u16,
    kind: u16,
    priority: Priority,
}

/// What becomes of the tags of a frame on its way out, and which VLAN it must be of when it leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TagsOut {
    /// What is done.
    pub change: TagChange,
    /// Which VLAN the frame must be of after that.
    pub belongs: Belongs,
}

/// A change of tags on the way out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TagChange {
    /// They stay.
    #[default]
    Keep,
    /// This tag is put before what is there.
    Push(Tag),
    /// Both are put before what is there.
    PushBoth {
        /// The first of the frame.
        outer: Tag,
        /// The second.
        inner: Tag,
    },
    /// The outer tag gets the id of this one and keeps its kind and priority; a frame without tags gets this tag.
    Rewrite(Tag),
}

/// Which VLAN a frame must be of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Belongs {
    /// Any or none.
    #[default]
    Any,
    /// The outer tag has this id.
    Vlan(u16),
    /// Two tags have these ids.
    QinQ {
        /// The id of the outer tag.
        outer: u16,
        /// The id of the inner tag.
        inner: u16,
    },
}

/// Why a frame keeps its tags: it is then as it was, and its caller drops it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagError {
    /// It has no two addresses that a tag could follow, but so many bytes.
    Short(usize),
    /// It would be longer than its slot or than `MAX_FRAME`.
    Long(FrameLengthError),
    /// It would not be of the VLAN that it must be of.
    Foreign,
}

impl Priority {
    /// A priority; none unless `class` is from 0 to 7.
    pub fn new(class: u8, drop_eligible: bool) -> Option<Priority> {
        (class < 8).then_some(Priority(u16::from(class) << 13 | u16::from(drop_eligible) << 12))
    }
}

impl Tag {
    /// The tag of a customer (802.1Q); none unless the id is from 1 to [`MAX_VID`].
    pub fn customer(vid: u16, priority: Priority) -> Option<Tag> {
        (1..=MAX_VID).contains(&vid).then_some(Tag { vid, kind: CUSTOMER, priority })
    }

    /// The tag of a service provider (802.1ad); none unless the id is from 1 to [`MAX_VID`].
    pub fn service(vid: u16, priority: Priority) -> Option<Tag> {
        Tag::customer(vid, priority).map(|tag| Tag { kind: SERVICE, ..tag })
    }

    /// Puts it after the addresses of a frame.
    ///
    /// # Errors
    /// [`TagError`]; the frame is then as it was.
    #[inline]
    pub fn put_on(self, packet: &mut Packet) -> Result<(), TagError> {
        match packet.insert::<ADDRESSES, TAG>(self.bytes()) {
            true => Ok(()),
            false => push(packet, &self.bytes()),
        }
    }

    fn bytes(self) -> [u8; TAG] {
        let ([a, b], [c, d]) = (self.kind.to_be_bytes(), (self.priority.0 | self.vid).to_be_bytes());
        [a, b, c, d]
    }
}

impl TagAction {
    /// Does it to a frame that comes in. A frame that lacks the tag, or is too short for one, stays as it is.
    #[inline]
    pub fn apply(self, packet: &mut Packet) {
        match self {
            TagAction::Keep => {}
            TagAction::Strip => strip(packet),
            TagAction::StripBoth => (0..2).for_each(|_| strip(packet)),
            TagAction::Rewrite(vid) => rewrite(packet.data_mut(), vid),
        }
    }
}

impl TagsOut {
    /// The tag that is put before what a frame has, if it leaves with that as it must: nobody has to look at the frame.
    #[inline]
    pub fn sure_push(self) -> Option<Tag> {
        match self.change {
            TagChange::Push(tag) if self.is_sure() => Some(tag),
            _ => None,
        }
    }

    /// Does it to a frame that goes out.
    ///
    /// # Errors
    /// [`TagError`]; the frame is then as it was.
    #[inline]
    pub fn apply(self, packet: &mut Packet) -> Result<(), TagError> {
        if self == TagsOut::default() {
            return Ok(());
        }
        if !self.is_sure() {
            self.check(packet.data())?;
        }
        match self.change {
            TagChange::Keep => Ok(()),
            TagChange::Push(tag) => tag.put_on(packet),
            TagChange::PushBoth { outer, inner } => {
                let mut bytes = [0; 2 * TAG];
                bytes[..TAG].copy_from_slice(&outer.bytes());
                bytes[TAG..].copy_from_slice(&inner.bytes());
                push(packet, &bytes)
            }
            TagChange::Rewrite(tag) if tags(packet.data()) == 0 => push(packet, &tag.bytes()),
            TagChange::Rewrite(tag) => {
                rewrite(packet.data_mut(), tag.vid);
                Ok(())
            }
        }
    }

    /// Whether any frame will be of the VLAN that it must be of, so that nobody has to look.
    #[inline]
    fn is_sure(self) -> bool {
        match (self.belongs, self.change) {
            (Belongs::Any, _) => true,
            (Belongs::Vlan(vid), TagChange::Push(tag) | TagChange::Rewrite(tag)) => tag.vid == vid,
            (Belongs::QinQ { outer, inner }, TagChange::PushBoth { outer: first, inner: second }) => {
                (first.vid, second.vid) == (outer, inner)
            }
            _ => false,
        }
    }

    /// Whether a frame will be of the VLAN that it must be of.
    fn check(self, frame: &[u8]) -> Result<(), TagError> {
        let id =
            |at: usize| frame.get(at + 2..at + TAG).map_or(0, |id| u16::from_be_bytes([id[0], id[1]]) & VID);
        let first = id(ADDRESSES);
        let (outer, inner) = match tags(frame) {
            0 => (None, None),
            1 => (Some(first), None),
            _ => (Some(first), Some(id(ADDRESSES + TAG))),
        };
        let after = match self.change {
            TagChange::Keep => (outer, inner),
            TagChange::Push(tag) => (Some(tag.vid), outer),
            TagChange::PushBoth { outer, inner } => (Some(outer.vid), Some(inner.vid)),
            TagChange::Rewrite(tag) => (Some(tag.vid), inner),
        };
        let right = match self.belongs {
            Belongs::Any => true,
            Belongs::Vlan(vid) => after.0 == Some(vid),
            Belongs::QinQ { outer, inner } => after == (Some(outer), Some(inner)),
        };
        if right { Ok(()) } else { Err(TagError::Foreign) }
    }
}

impl Rule {
    /// What undoes the rule's [`TagAction`] on the way out: frames of its switch leave with the tags that frames of the rule
    /// come with, and a frame that would leave as one of another VLAN is refused. Tags that are put back have this priority.
    /// None when the rule does not name the ids of the tags that it strips or rewrites: only the caller can say them then.
    pub fn tags_out(&self, priority: Priority) -> Option<TagsOut> {
        let (belongs, outer, inner) = match self.matches {
            Match::Vlan(vid) | Match::VlanMac { vid, .. } => {
                (Belongs::Vlan(vid), Tag::customer(vid, priority), None)
            }
            Match::QinQ { outer, inner } => (
                Belongs::QinQ { outer, inner },
                Tag::service(outer, priority),
                Tag::customer(inner, priority),
            ),
            Match::Whole | Match::Mac(_) | Match::Bytes(_) | Match::Id(_) => (Belongs::Any, None, None),
        };
        let change = match self.tag {
            TagAction::Keep => TagChange::Keep,
            TagAction::Strip => TagChange::Push(outer?),
            TagAction::StripBoth => TagChange::PushBoth { outer: outer?, inner: inner? },
            TagAction::Rewrite(_) => TagChange::Rewrite(outer?),
        };
        Some(TagsOut { change, belongs })
    }
}

/// Removes the outer tag, if there is one.
#[inline]
fn strip(packet: &mut Packet) {
    let kind = packet.data().get(ADDRESSES..ADDRESSES + TAG).map(|tag| u16::from_be_bytes([tag[0], tag[1]]));
    if kind.is_some_and(is_tag) {
        packet.remove::<ADDRESSES, TAG>();
    }
}

/// Gives the outer tag another id, if there is one.
fn rewrite(frame: &mut [u8], vid: u16) {
    if tags(frame) > 0 {
        let id = &mut frame[ADDRESSES + 2..ADDRESSES + TAG];
        let kept = u16::from_be_bytes([id[0], id[1]]) & !VID;
        id.copy_from_slice(&(kept | vid & VID).to_be_bytes());
    }
}

/// Puts tags after the addresses, also where the frame has to move for that.
#[cold]
fn push(packet: &mut Packet, tags: &[u8]) -> Result<(), TagError> {
    if packet.len() < ADDRESSES {
        return Err(TagError::Short(packet.len()));
    }
    packet.push(tags.len()).map_err(TagError::Long)?;
    let frame = packet.data_mut();
    frame.copy_within(tags.len()..tags.len() + ADDRESSES, 0);
    frame[ADDRESSES..ADDRESSES + tags.len()].copy_from_slice(tags);
    Ok(())
}

impl fmt::Display for TagError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TagError::Short(length) => write!(f, "a frame of {length} bytes has no place for a tag"),
            TagError::Long(error) => error.fmt(f),
            TagError::Foreign => f.write_str("the frame is not of the VLAN of its port"),
        }
    }
}

impl std::error::Error for TagError {}
