//! What rules look at in a frame: the destination address and the ids of its tags.

/// Where the tags of a frame start: after its two addresses.
pub(crate) const ADDRESSES: usize = 12;
/// The length of a tag: two bytes that say what it is, two bytes with priority and id.
pub(crate) const TAG: usize = 4;
/// 802.1Q, the tag of a customer.
pub(crate) const CUSTOMER: u16 = 0x8100;
/// 802.1ad, the tag of a service provider.
pub(crate) const SERVICE: u16 = 0x88a8;
/// The bits of a tag that are the id of its VLAN.
pub(crate) const VID: u16 = 0xfff;
/// Up to the end of the second tag.
const HEAD: usize = ADDRESSES + 2 * TAG;

/// What rules look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The destination address; 0, which no rule has, of a frame without a whole one.
    pub(crate) destination: u64,
    /// The id of the outer tag; 0 when there is none or it is a priority tag.
    pub(crate) outer: u16,
    /// The id of the inner tag; 0 when there is none, it is a priority tag, or the outer one is.
    pub(crate) inner: u16,
}

impl Header {
    /// Reads a frame of any length.
    #[inline]
    pub(crate) fn read(frame: &[u8]) -> Header {
        match frame.first_chunk() {
            Some(head) => Header::of(head),
            None => Header::short(frame),
        }
    }

    /// Whether the destination is a group: broadcast or multicast.
    #[inline]
    pub(crate) fn to_group(self) -> bool {
        self.destination >> 40 & 1 == 1
    }

    #[inline]
    fn of(head: &[u8; HEAD]) -> Header {
        let destination = u64::from_be_bytes([0, 0, head[0], head[1], head[2], head[3], head[4], head[5]]);
        let outer = vid([head[12], head[13], head[14], head[15]]);
        let inner = vid([head[16], head[17], head[18], head[19]]);
        Header { destination, outer, inner: if outer == 0 { 0 } else { inner } }
    }

    /// An address or a tag that is not whole is not there.
    #[cold]
    fn short(frame: &[u8]) -> Header {
        let whole = match frame.len() {
            0..6 => 0,
            6..ADDRESSES => 6,
            length => length / TAG * TAG,
        };
        let mut head = [0; HEAD];
        head[..whole].copy_from_slice(&frame[..whole]);
        Header::of(&head)
    }
}

/// Tags at the start of a frame, whatever their ids: 0, 1, or 2 for two and more.
pub(crate) fn tags(frame: &[u8]) -> usize {
    let is_tag =
        |at: usize| frame.get(at..at + TAG).is_some_and(|tag| is_tag(u16::from_be_bytes([tag[0], tag[1]])));
    match (is_tag(ADDRESSES), is_tag(ADDRESSES + TAG)) {
        (true, true) => 2,
        (true, false) => 1,
        (false, _) => 0,
    }
}

#[inline]
fn is_tag(kind: u16) -> bool {
    kind == CUSTOMER || kind == SERVICE
}

/// The id of a tag; 0 of what is no tag.
#[inline]
fn vid(bytes: [u8; TAG]) -> u16 {
    let [a, b, c, d] = bytes;
    if is_tag(u16::from_be_bytes([a, b])) { u16::from_be_bytes([c, d]) & VID } else { 0 }
}
