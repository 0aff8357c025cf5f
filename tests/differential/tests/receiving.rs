//! The receiving side of a port with a MAC, by the cycle: a header that finds the one before it without its turn has its frame lost as a
//! whole, also where the frame ends with that header, and no slot is lost with it.

use millrace_differential::compile_path;
use millrace_netlist::{Bits, Design, Simulator};
use millrace_pipeline::arbitrary::Rng;
use millrace_rtl::device::{DeviceOptions, Link};
use millrace_rtl::{Device, Hardware, Options};
use std::collections::VecDeque;
use std::path::Path;

/// Bytes that the headers of the layer-2 switch have, two beats.
const WINDOW: usize = 14;
const LONGEST: usize = 512;

/// The receiving side of a port.
fn receiving_side(link: Link, slots: u32) -> Simulator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/l2_switch.p4");
    let hardware = Hardware::new(compile_path(&path), Options::default()).unwrap();
    let options = DeviceOptions { link, slots, frame: LONGEST as u32, ports: 2, ..DeviceOptions::default() };
    let device = Device::new(&hardware, options).unwrap();
    let module = device.design().module_named("receive").unwrap();
    let mut design = Design::new();
    design.add(device.design().modules[module].clone());
    Simulator::new(&design).unwrap()
}

fn set(sim: &mut Simulator, name: &str, value: u64) {
    let signal = sim.input(name).unwrap_or_else(|| panic!("no input {name}"));
    sim.set_u64(signal, value);
}

fn get(sim: &mut Simulator, name: &str) -> u64 {
    let signal = sim.output(name).unwrap_or_else(|| panic!("no output {name}"));
    sim.get_u64(signal)
}

/// A frame that comes.
#[derive(Clone)]
struct Frame {
    bytes: Vec<u8>,
    is_bad: bool,
}

impl Frame {
    fn arbitrary(rng: &mut Rng) -> Frame {
        let most = [16, 24, 100, 2 * LONGEST][rng.below(4)];
        let length = 1 + rng.below(most);
        Frame { bytes: (0..length).map(|_| rng.next_u64() as u8).collect(), is_bad: rng.one_in(5) }
    }

    /// The first bytes, and zeros after the end.
    fn window(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        bytes.resize(WINDOW, 0);
        bytes
    }
}

/// A frame whose header had its turn, in its slot.
struct Held {
    frame: Frame,
    slot: u64,
    /// Copies that wait, when the frame is told to have been copied.
    copies: u64,
    released: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    frames: u64,
    bad: u64,
    oversize: u64,
    no_buffer: u64,
}

/// What is known of the frames that came.
struct Model {
    whole: bool,
    /// The header that asks, and its frame.
    pending: Option<Frame>,
    held: Vec<Held>,
    counts: Counts,
}

impl Model {
    /// A beat of a frame comes, the one with that number; gives whether the frame is lost with it.
    fn beat(&mut self, frame: &Frame, at: usize, granted: bool) -> bool {
        let beats = frame.bytes.len().div_ceil(8);
        let too_long = at == LONGEST / 8 - 1 && at + 1 < beats;
        let ends = at + 1 == beats || too_long;
        let is_decided = !self.whole && at > WINDOW.div_ceil(8) - 1;
        let decides = !is_decided && (ends || !self.whole && at == WINDOW.div_ceil(8) - 1);
        if decides && self.pending.is_some() && !granted {
            self.counts.no_buffer += 1;
            return true;
        }
        let bad_end = ends && (frame.is_bad && at + 1 == beats || too_long);
        if decides && !bad_end {
            self.pending = Some(frame.clone());
        }
        self.counts.frames += u64::from(ends);
        self.counts.bad += u64::from(bad_end);
        self.counts.oversize += u64::from(too_long);
        too_long
    }
}

/// Runs random frames, whose headers have their turn `often` of eight times that they could.
fn run(link: Link, whole: bool, slots: u32, often: usize, seed: u64) -> Counts {
    let mut sim = receiving_side(link, slots);
    let mut rng = Rng::new(seed);
    set(&mut sim, "whole", u64::from(whole));
    (0..4).for_each(|_| sim.step());
    let mut model = Model { whole, pending: None, held: Vec::new(), counts: Counts::default() };
    let mut coming: VecDeque<Frame> = (0..1500).map(|_| Frame::arbitrary(&mut rng)).collect();
    let (mut at, mut lost, mut gap, mut idle) = (0, false, 0, 0);
    while idle < 200 {
        let asks = get(&mut sim, "request") == 1;
        assert_eq!(asks, model.pending.is_some(), "{link:?}, {whole}: whether a header asks");
        let granted = asks && rng.below(8) < often;
        set(&mut sim, "grant", u64::from(granted));
        if granted {
            let frame = model.pending.take().unwrap();
            let window = sim.get(sim.output("window").unwrap());
            let wanted = frame.window();
            let wanted = wanted.iter().fold(Bits::zero(window.width()), |all, byte| {
                all.shl_by(8).or(&Bits::new(window.width(), u128::from(*byte)))
            });
            assert_eq!(window, wanted, "{link:?}, {whole}: the window");
            let slot = get(&mut sim, "header_slot");
            assert!(model.held.iter().all(|held| held.slot != slot), "slot {slot} is in use");
            model.held.push(Held { frame, slot, copies: 0, released: false });
        }
        let read = leave(&mut sim, &mut model, &mut rng);

        let frame = if gap == 0 { coming.front().cloned() } else { None };
        let there = frame.as_ref().filter(|_| !rng.one_in(16) || at > 0);
        set(&mut sim, "s_tvalid", u64::from(there.is_some()));
        idle = if there.is_none() && coming.is_empty() { idle + 1 } else { 0 };
        gap = u32::saturating_sub(gap, 1);
        if let Some(frame) = there {
            let rest = &frame.bytes[8 * at..];
            let now = &rest[..rest.len().min(8)];
            let mut data = [0; 8];
            data[..now.len()].copy_from_slice(now);
            let last = rest.len() <= 8;
            set(&mut sim, "s_tdata", u64::from_le_bytes(data));
            set(&mut sim, "s_tkeep", 0xff >> (8 - now.len()));
            set(&mut sim, "s_tlast", u64::from(last));
            set(&mut sim, "s_tuser", u64::from(last && frame.is_bad));
            lost = lost || model.beat(frame, at, granted);
            at += 1;
            if last {
                (at, lost, gap) = (0, false, 1 + rng.below(3) as u32);
                coming.pop_front();
            }
        }
        sim.step();
        if let Some((word, mask)) = read {
            assert_eq!(get(&mut sim, "data0") & mask, word, "{link:?}, {whole}: a word of a frame");
        }
    }
    (0..40).for_each(|_| {
        set(&mut sim, "grant", 0);
        leave(&mut sim, &mut model, &mut rng);
        sim.step();
    });
    let [frames, bad, oversize, no_buffer] =
        ["frames", "bad", "oversize", "no_buffer"].map(|name| get(&mut sim, name));
    assert_eq!(Counts { frames, bad, oversize, no_buffer }, model.counts, "{link:?}, {whole}");
    assert_eq!(sim.collisions(), 0);
    // All slots are free but that of the next frame.
    assert!(model.held.is_empty());
    let used: u64 = (0..slots)
        .map(|slot| {
            let name = |what: &str| format!("{what}{slot}");
            let mut of = |what: &str| sim.register(&name(what)).map_or(0, |signal| sim.get_u64(signal));
            u64::from(of("writing") + of("held") + of("refs") > 0)
        })
        .sum();
    assert_eq!(used, 1, "{link:?}, {whole}: slots in use");
    model.counts
}

/// Copies of frames are made, wait and leave, one event in a cycle. Reads a word of such a frame: gives its bytes and which are there.
fn leave(sim: &mut Simulator, model: &mut Model, rng: &mut Rng) -> Option<(u64, u64)> {
    for name in ["release", "keep", "done0", "done1", "read0"] {
        set(sim, name, 0);
    }
    let writing = get(sim, "writing");
    model.held.retain(|held| !held.released || held.copies > 0);
    // A frame leaves when it is there as a whole, as far as this side knows.
    let held = model.held.iter_mut().find(|held| writing >> held.slot & 1 == 0)?;
    let (words, bytes) = (LONGEST / 8, held.frame.bytes.len());
    let last = bytes.div_ceil(8).min(words) - 1;
    let word = rng.below(last + 1);
    set(sim, "read0", 1);
    set(sim, "address0", held.slot * words as u64 + word as u64);
    let is_bad = held.frame.is_bad || bytes > LONGEST;
    let less = bytes.min(LONGEST) - 8 * last - 1;
    let wanted = u64::from(is_bad) << 9 | (last as u64) << 3 | less as u64;
    assert_eq!(get(sim, "last_word0"), wanted, "the end of a frame");
    if !held.released {
        let keeps = rng.one_in(2);
        held.copies = u64::from(keeps);
        held.released = true;
        set(sim, "slot", held.slot);
        set(sim, "release", 1);
        set(sim, "keep", u64::from(keeps));
    } else if rng.one_in(2) {
        held.copies = 0;
        set(sim, "slot0", held.slot);
        set(sim, "done0", 1);
    }
    let there = &held.frame.bytes[8 * word..bytes.min(8 * word + 8)];
    let mut data = [0; 8];
    data[..there.len()].copy_from_slice(there);
    Some((u64::from_le_bytes(data), u64::MAX >> (64 - 8 * there.len())))
}

#[test]
fn headers_that_find_no_room_are_lost_whole() {
    for (link, seed) in [(Link::Xgmii, 1), (Link::Gmii, 2)] {
        for whole in [false, true] {
            for often in [1, 2, 4, 8] {
                let counts = run(link, whole, 64, often, seed);
                assert!(counts.bad > 0 && counts.oversize > 0 && counts.frames > 100, "{counts:?}");
                assert!(often != 1 || counts.no_buffer > 50, "{counts:?}");
            }
        }
    }
}
