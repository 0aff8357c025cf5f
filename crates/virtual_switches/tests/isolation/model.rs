//! What each instance has to hold and to send, in plain Rust.

use std::collections::BTreeMap;

/// Instances, in the order of [`INSTANCES`].
pub(crate) const COUNT: usize = 3;
/// Their names, each with the tags of its frames.
pub(crate) const INSTANCES: [(&str, Tags); COUNT] =
    [("a", (10, None)), ("b", (20, None)), ("c", (10, Some(7)))];
/// Cells of the register and of the counter.
pub(crate) const CELLS: usize = 8;
/// What has the destination of a frame, its number, and the bytes after it.
const LENGTH: usize = 60;

/// The outer VLAN of a frame, and the inner one.
pub(crate) type Tags = (u16, Option<u16>);

/// The entries and the state of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// By the last byte of the destination: the port and the mark.
    pub(crate) entries: BTreeMap<u8, (u16, u16)>,
    pub(crate) seen: [u32; CELLS],
    /// Packets and bytes.
    pub(crate) counted: [(i64, i64); CELLS],
}

/// What an instance has counted since it was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) received: [u64; 2],
    pub(crate) sent: [u64; 2],
    pub(crate) dropped: u64,
    /// Frames that came while it was stopped.
    pub(crate) stopped: u64,
}

/// An instance that is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Instance {
    pub(crate) is_stopped: bool,
    /// The version of its program.
    pub(crate) version: u8,
    pub(crate) held: Held,
    pub(crate) before: Option<(u8, Held)>,
    pub(crate) counts: Counts,
}

/// All of the device.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) instances: [Option<Instance>; COUNT],
    pub(crate) unclassified: u64,
}

/// What leaves by a port of the machine with these tags, in its order.
pub(crate) type Left = BTreeMap<(usize, Tags), Vec<Vec<u8>>>;

/// The types of a tag: 802.1Q, and 802.1ad for the outer one of two that are put back.
const TAG: u16 = 0x8100;
const OUTER_OF_TWO: u16 = 0x88a8;

fn tag(kind: u16, vid: u16) -> Vec<u8> {
    [kind.to_be_bytes(), vid.to_be_bytes()].concat()
}

fn tagged((outer, inner): Tags, of_two: u16, frame: &[u8]) -> Vec<u8> {
    let outer = tag(inner.map_or(TAG, |_| of_two), outer);
    let inner = inner.map(|inner| tag(TAG, inner)).unwrap_or_default();
    [&frame[..12], &outer, &inner, &frame[12..]].concat()
}

/// A frame with these tags for this destination.
pub(crate) fn frame(tags: Tags, key: u8, number: u16) -> Vec<u8> {
    let mut frame = [&[2, 0, 0, 0, 0, key, 2, 0, 0, 0, 0, 9, 0x88, 0xb5][..], &number.to_be_bytes()].concat();
    frame.resize(LENGTH, 0xee);
    tagged(tags, TAG, &frame)
}

/// The tags of a frame.
pub(crate) fn tags(frame: &[u8]) -> Tags {
    let vid = |at: usize| {
        let kind = u16::from_be_bytes([frame[at], frame[at + 1]]);
        [TAG, OUTER_OF_TWO].contains(&kind).then(|| u16::from_be_bytes([frame[at + 2], frame[at + 3]]))
    };
    (vid(12).unwrap_or(0), vid(16))
}

impl Instance {
    pub(crate) fn new() -> Instance {
        Instance { version: 1, ..Instance::default() }
    }

    /// What the program does with a frame as it sees it: by which port it leaves, and as which bytes.
    fn run(&mut self, frame: &[u8]) -> Option<(usize, Vec<u8>)> {
        let key = frame[5];
        let cell = usize::from(key) % CELLS;
        let Held { entries, seen, counted } = &mut self.held;
        seen[cell] = seen[cell].wrapping_add(1);
        counted[cell].0 += 1;
        counted[cell].1 += frame.len() as i64;
        let (port, mark) = *entries.get(&key)?;
        // A port that is not there.
        let port = usize::from(port);
        if port >= 2 {
            return None;
        }
        let mut out = frame.to_vec();
        out[16..18].copy_from_slice(&mark.to_be_bytes());
        out[18] = self.version;
        out[19..23].copy_from_slice(&seen[cell].to_be_bytes());
        Some((port, out))
    }

    /// Another version of its program, with all that it holds.
    pub(crate) fn swap(&mut self, version: u8) {
        self.before = Some((self.version, self.held.clone()));
        self.version = version;
    }

    /// What ran before the last swap comes back; whether there was anything.
    pub(crate) fn roll_back(&mut self) -> bool {
        let Some(before) = self.before.take() else { return false };
        (self.version, self.held) = before;
        true
    }

    /// It goes on with what another one has.
    pub(crate) fn restore(&mut self, (version, held): (u8, Held)) {
        self.before = Some((self.version, std::mem::replace(&mut self.held, held)));
        self.version = version;
    }
}

impl Model {
    /// Who has the frames with these tags: who claims both before who claims the outer one.
    fn owner(&self, tags: Tags) -> Option<usize> {
        let is_loaded = |at: &usize| self.instances[*at].is_some();
        let claims =
            |wanted: Tags| INSTANCES.iter().position(|(_, claimed)| *claimed == wanted).filter(is_loaded);
        claims(tags).or_else(|| claims((tags.0, None)))
    }

    /// A frame comes by a port of the machine: what leaves.
    pub(crate) fn send(&mut self, cable: usize, tags: Tags, frame: &[u8], left: &mut Left) {
        let Some(at) = self.owner(tags) else {
            self.unclassified += 1;
            return;
        };
        let Some(instance) = &mut self.instances[at] else { return };
        if instance.is_stopped {
            instance.counts.stopped += 1;
            return;
        }
        instance.counts.received[cable] += 1;
        // Those of its claim are stripped, and put back.
        let claimed = INSTANCES[at].1;
        let stripped = if claimed.1.is_some() { 8 } else { 4 };
        let inside = [&frame[..12], &frame[12 + stripped..]].concat();
        match instance.run(&inside) {
            Some((port, out)) => {
                instance.counts.sent[port] += 1;
                let out = tagged(claimed, OUTER_OF_TWO, &out);
                left.entry((port, self::tags(&out))).or_default().push(out);
            }
            None => instance.counts.dropped += 1,
        }
    }
}
