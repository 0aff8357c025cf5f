//! Frames at the AXI4-Streams of a simulated design: they go in beat by beat, and those that leave are put together again.

use crate::device::Left;
use millrace_netlist::{SignalId, SignalKind, Simulator};
use std::collections::VecDeque;

/// A frame that is to come.
pub(crate) struct Coming {
    pub(crate) bytes: Vec<u8>,
    /// How many of its bytes have come.
    at: usize,
    pub(crate) is_bad: bool,
}

impl Coming {
    pub(crate) fn new(bytes: Vec<u8>, is_bad: bool) -> Coming {
        Coming { bytes, at: 0, is_bad }
    }
}

/// The signals of a stream.
#[derive(Default)]
pub(crate) struct Stream {
    /// `tdata`, `tkeep`, `tlast`, `tuser`.
    pub(crate) beat: [Option<SignalId>; 4],
    pub(crate) valid: Option<SignalId>,
    pub(crate) ready: Option<SignalId>,
}

impl Stream {
    /// Those of a stream of a design, by its name; `beat` says which way its beats go.
    pub(crate) fn of(simulator: &Simulator, name: &str, beat: SignalKind) -> Stream {
        let back = if beat == SignalKind::Input { SignalKind::Output } else { SignalKind::Input };
        let signal = |kind, suffix: &str| simulator.signal(kind, &format!("{name}_{suffix}"));
        Stream {
            beat: ["tdata", "tkeep", "tlast", "tuser"].map(|suffix| signal(beat, suffix)),
            valid: signal(beat, "tvalid"),
            ready: signal(back, "tready"),
        }
    }

    /// Whether a beat passes at the next edge.
    pub(crate) fn passes(&self, simulator: &mut Simulator) -> bool {
        get(simulator, self.valid) & get(simulator, self.ready) != 0
    }

    /// Its inputs, as one of two designs has them: those of the beat and whether there is one.
    pub(crate) fn of_beat(&self) -> impl Iterator<Item = Option<SignalId>> {
        self.beat.into_iter().chain([self.valid])
    }
}

/// What comes from an outgoing stream of one design goes to an incoming one of the other, and `ready` back.
pub(crate) fn carry((from, out): (&mut Simulator, &Stream), (to, input): (&mut Simulator, &Stream)) {
    for (out, input) in out.of_beat().zip(input.of_beat()) {
        if let (Some(out), Some(input)) = (out, input) {
            let limbs: Vec<u64> = from.limbs(out).collect();
            to.set_limbs(input, &limbs);
        }
    }
    let ready = get(to, input.ready);
    set(from, out.ready, ready);
}

/// The two streams of a port.
pub(crate) struct Streams {
    receive: Stream,
    transmit: Stream,
    leaving: Vec<u8>,
    began: u64,
    /// A beat is offered and has to stay.
    offered: bool,
}

impl Streams {
    /// Those of a port of a design.
    pub(crate) fn of(simulator: &Simulator, port: u32) -> Streams {
        Streams {
            receive: Stream::of(simulator, &format!("rx{port}"), SignalKind::Input),
            transmit: Stream::of(simulator, &format!("tx{port}"), SignalKind::Output),
            leaving: Vec::new(),
            began: 0,
            offered: false,
        }
    }

    /// Sets what comes in this cycle, before its edge: the next beat of the first frame, if `goes` says so or it was offered before; `ready`
    /// says whether a beat that leaves is taken. A beat has so many bytes.
    pub(crate) fn begin(
        &mut self,
        simulator: &mut Simulator,
        coming: &VecDeque<Coming>,
        goes: &mut dyn FnMut() -> bool,
        (ready, bytes): (bool, usize),
    ) {
        self.offered = !coming.is_empty() && (self.offered || goes());
        if let (true, Some(frame)) = (self.offered, coming.front()) {
            offer(simulator, &self.receive, frame, bytes);
        }
        set(simulator, self.receive.valid, u64::from(self.offered));
        set(simulator, self.transmit.ready, u64::from(ready));
    }

    /// Takes the beat that came, and the one that leaves; gives the frame if that was its last. A frame that starts is noted.
    pub(crate) fn end(
        &mut self,
        simulator: &mut Simulator,
        coming: &mut VecDeque<Coming>,
        (port, bytes): (u32, usize),
        started: &mut Vec<u64>,
    ) -> Option<Left> {
        let cycle = simulator.cycle();
        if self.offered && get(simulator, self.receive.ready) != 0 {
            self.offered = false;
            let done = coming.front_mut().is_some_and(|frame| {
                if frame.at == 0 {
                    started.push(cycle);
                }
                frame.at += bytes;
                frame.at >= frame.bytes.len()
            });
            if done {
                coming.pop_front();
            }
        }
        self.leave(simulator, (port, cycle))
    }

    fn leave(&mut self, simulator: &mut Simulator, (port, cycle): (u32, u64)) -> Option<Left> {
        if !self.transmit.passes(simulator) {
            return None;
        }
        let [data, keep, last, user] = self.transmit.beat;
        if self.leaving.is_empty() {
            self.began = cycle;
        }
        let count = (!get(simulator, keep)).trailing_zeros() as usize;
        if let Some(data) = data {
            let limbs: Vec<u64> = simulator.limbs(data).collect();
            self.leaving.extend(limbs.iter().flat_map(|limb| limb.to_le_bytes()).take(count));
        }
        if get(simulator, last) == 0 {
            return None;
        }
        let is_bad = get(simulator, user) != 0;
        Some(Left { port, bytes: std::mem::take(&mut self.leaving), at: (self.began, cycle), is_bad })
    }
}

/// Sets a signal that may not be there, as nothing depends on it.
pub(crate) fn set(simulator: &mut Simulator, signal: Option<SignalId>, value: u64) {
    signal.into_iter().for_each(|signal| simulator.set_u64(signal, value));
}

/// A signal; 0 if it is not there.
pub(crate) fn get(simulator: &mut Simulator, signal: Option<SignalId>) -> u64 {
    signal.map_or(0, |signal| simulator.get_u64(signal))
}

/// Puts the next beat of a frame at a stream.
fn offer(simulator: &mut Simulator, stream: &Stream, frame: &Coming, bytes: usize) {
    let [data, keep, last, user] = stream.beat;
    let rest = &frame.bytes[frame.at..];
    let now = &rest[..rest.len().min(bytes)];
    let mut limbs = vec![0u64; bytes / 8];
    for (at, byte) in now.iter().enumerate() {
        limbs[at / 8] |= u64::from(*byte) << (8 * (at % 8));
    }
    data.into_iter().for_each(|data| simulator.set_limbs(data, &limbs));
    set(simulator, keep, u64::MAX >> (64 - now.len()));
    let is_last = rest.len() <= bytes;
    set(simulator, last, u64::from(is_last));
    set(simulator, user, u64::from(is_last && frame.is_bad));
}
