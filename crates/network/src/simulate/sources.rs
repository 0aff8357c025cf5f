//! End systems that send all that their virtual links may, from random offsets or all at once.

use super::engine::Engine;
use super::product::{Bag, Regulator};
use super::queue::{BUCKETS, Queue};
use super::{Offsets, Setting};
use crate::Topology;
use crate::model::Vl;
use crate::random::Random;

/// A pause after one in so many frames, where offsets are random. Without pauses a network whose gaps divide each other repeats the same
/// meeting of frames for ever.
const PAUSE: u64 = 32;
/// How often progress is told, in frames.
const TOLD: u64 = 1 << 20;

/// A virtual link and its regulator. A frame of each sub virtual link waits always.
struct Source {
    regulator: Regulator<u8>,
    bag: u64,
    jitter: u64,
    length: u16,
    /// When the last frame came out, jitter included.
    last: u64,
}

/// Runs until so many frames were released and all have arrived; how many that were.
pub(super) fn run(
    topology: &Topology<'_>,
    engine: &mut Engine,
    setting: &Setting,
    random: &mut Random,
    progress: &mut dyn FnMut(u64),
) -> Result<u64, String> {
    let is_random = setting.offsets == Offsets::Random;
    let mut sources = Vec::new();
    // Times in nanoseconds, with the place of the source. The ring holds the longest gap and a pause.
    let longest = topology.network.vls.iter().map(|vl| vl.bag).max().unwrap_or(0);
    let mut due = Queue::new(2 * longest / BUCKETS + 1);
    for (place, vl) in topology.network.vls.iter().enumerate() {
        let mut regulator = regulator(vl)?;
        for sub_vl in 0..vl.sub_vls.len().max(1) {
            let _ = regulator.offer(sub_vl, sub_vl as u8);
        }
        let first = if is_random { random.below(vl.bag) } else { 0 };
        due.push(first, place as u32);
        sources.push(Source { regulator, bag: vl.bag, jitter: vl.source_jitter, length: vl.lmax, last: 0 });
    }
    let mut frames = 0;
    while frames < setting.frames {
        let Some((time, place)) = due.pop() else { break };
        // All that happens before the release.
        while engine.next_time().is_some_and(|next| next < time * 1000) {
            engine.step();
        }
        let source = &mut sources[place as usize];
        if let Some(sub_vl) = source.regulator.release(time) {
            // There is room for what has just left.
            let _ = source.regulator.offer(sub_vl.into(), sub_vl);
            let late = if source.jitter == 0 { 0 } else { random.below(source.jitter + 1) };
            // Late frames of a virtual link keep their order.
            let out = (time + late).max(source.last);
            source.last = out;
            engine.release(place as usize, out * 1000, source.length, false);
            frames += 1;
            if frames % TOLD == 0 {
                progress(frames);
            }
        }
        let mut next = source.regulator.next_ns().unwrap_or(time + source.bag).max(time);
        if is_random && random.one_in(PAUSE) {
            next += random.below(source.bag);
        }
        due.push(next, place);
    }
    while engine.next_time().is_some() {
        engine.step();
    }
    Ok(frames)
}

/// The regulator of a virtual link.
pub(super) fn regulator(vl: &Vl) -> Result<Regulator<u8>, String> {
    let made = Bag::from_ns(vl.bag).and_then(|bag| Regulator::new(bag, vl.sub_vls.len().max(1), 4));
    made.map_err(|error| format!("virtual link {}: {error}", vl.id))
}
