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

/// The start of a frame, as much as rules look at. An address or a tag that is not whole is not there.
#[derive(Clone, Copy)]
pub(crate) struct Header<'a> {
    head: &'a [u8; HEAD],
}

/// Does something with the header of a frame of any length.
#[inline]
pub(crate) fn with_header<T>(frame: &[u8], read: impl FnOnce(Header) -> T) -> T {
    match Header::of(frame) {
        Some(header) => read(header),
        None => read(Header { head: &short(frame) }),
    }
}

/// The start of a short frame, with zeros for what is not there.
#[cold]
fn short(frame: &[u8]) -> [u8; HEAD] {
    let whole = match frame.len() {
        0..6 => 0,
        6..ADDRESSES => 6,
        length => length / TAG * TAG,
    };
    let mut head = [0; HEAD];
    head[..whole].copy_from_slice(&frame[..whole]);
    head
}

impl<'a> Header<'a> {
    /// That of a frame that is as long as what rules look at.
    #[inline]
    pub(crate) fn of(frame: &'a [u8]) -> Option<Header<'a>> {
        frame.first_chunk().map(|head| Header { head })
    }

    /// The destination address; 0, which no rule has, of a frame without a whole one.
    #[inline]
    pub(crate) fn destination(self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = *self.head;
        u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 16
    }

    /// Whether the destination is a group: broadcast or multicast.
    #[inline]
    pub(crate) fn to_group(self) -> bool {
        self.head[0] & 1 == 1
    }

    /// The id of the outer tag; 0 when there is none or it is a priority tag.
    #[inline]
    pub(crate) fn outer(self) -> u16 {
        let [.., a, b, c, d, _, _, _, _] = *self.head;
        vid([a, b, c, d])
    }

    /// The id of what follows the outer tag, if that is a tag; 0 when it is none or a priority tag.
    #[inline]
    pub(crate) fn inner(self) -> u16 {
        let [.., a, b, c, d] = *self.head;
        vid([a, b, c, d])
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
pub(crate) fn is_tag(kind: u16) -> bool {
    (kind == CUSTOMER) | (kind == SERVICE)
}

/// The id of a tag; 0 of what is no tag.
#[inline]
fn vid(bytes: [u8; TAG]) -> u16 {
    let [a, b, c, d] = bytes;
    // Without a branch: a port has frames with and without tags in any order.
    let mask = if is_tag(u16::from_be_bytes([a, b])) { VID } else { 0 };
    u16::from_be_bytes([c, d]) & mask
}
