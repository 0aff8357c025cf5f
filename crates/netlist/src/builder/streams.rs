//! Streams among the ports of a module.

use super::ModuleBuilder;
use crate::{Direction, NodeId, OutputId, Stream, StreamShape};

/// The values of the signals of a beat; those that the stream does not have are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beat {
    /// `tdata`.
    pub data: Option<NodeId>,
    /// `tkeep`.
    pub keep: Option<NodeId>,
    /// `tlast`.
    pub last: Option<NodeId>,
    /// `tuser`.
    pub user: Option<NodeId>,
}

impl Beat {
    /// Makes each signal of a shape from its suffix and width.
    pub(super) fn each(shape: StreamShape, mut make: impl FnMut(&'static str, u32) -> NodeId) -> Beat {
        let mut beat = Beat::default();
        for (suffix, width) in shape.signals() {
            let value = Some(make(suffix, width));
            match suffix {
                "tdata" => beat.data = value,
                "tkeep" => beat.keep = value,
                "tlast" => beat.last = value,
                _ => beat.user = value,
            }
        }
        beat
    }

    /// The signal of a suffix of a port's name.
    pub fn signal(&self, suffix: &str) -> Option<NodeId> {
        match suffix {
            "tdata" => self.data,
            "tkeep" => self.keep,
            "tlast" => self.last,
            "tuser" => self.user,
            _ => None,
        }
    }
}

/// An incoming stream of the module that is built.
#[derive(Clone, Copy, Debug)]
pub struct InStream {
    /// What comes.
    pub beat: Beat,
    /// Whether it is there.
    pub valid: NodeId,
    /// The port that says whether it is taken; [`ModuleBuilder::set_ready`] drives it.
    pub ready: OutputId,
}

/// An outgoing stream of the module that is built.
#[derive(Clone, Debug)]
pub struct OutStream {
    /// Which signals it has.
    pub shape: StreamShape,
    /// Whether the other side takes a beat.
    pub ready: NodeId,
    signals: Vec<(&'static str, OutputId)>,
    valid: OutputId,
}

impl ModuleBuilder {
    /// Adds an incoming stream with its ports. [`ModuleBuilder::set_ready`] must follow.
    pub fn input_stream(&mut self, name: &str, shape: StreamShape) -> InStream {
        let beat = Beat::each(shape, |suffix, width| self.input(&format!("{name}_{suffix}"), width));
        let valid = self.input(&format!("{name}_tvalid"), 1);
        let ready = self.declare_output(&format!("{name}_tready"), 1);
        self.module.streams.push(Stream { name: name.into(), direction: Direction::In, shape });
        InStream { beat, valid, ready }
    }

    /// Whether the module takes a beat of an incoming stream.
    #[track_caller]
    pub fn set_ready(&mut self, stream: &InStream, ready: NodeId) {
        self.drive_output(stream.ready, ready);
    }

    /// Adds an outgoing stream with its ports. [`ModuleBuilder::drive_stream`] must follow.
    pub fn output_stream(&mut self, name: &str, shape: StreamShape) -> OutStream {
        let mut signals = Vec::new();
        for (suffix, width) in shape.signals() {
            signals.push((suffix, self.declare_output(&format!("{name}_{suffix}"), width)));
        }
        let valid = self.declare_output(&format!("{name}_tvalid"), 1);
        let ready = self.input(&format!("{name}_tready"), 1);
        self.module.streams.push(Stream { name: name.into(), direction: Direction::Out, shape });
        OutStream { shape, ready, signals, valid }
    }

    /// What goes out on a stream, and whether it is there.
    ///
    /// # Panics
    /// The beat lacks a signal of the stream.
    #[track_caller]
    pub fn drive_stream(&mut self, stream: &OutStream, beat: &Beat, valid: NodeId) {
        for (suffix, output) in &stream.signals {
            let value = beat.signal(suffix).unwrap_or_else(|| panic!("a beat without {suffix}"));
            self.drive_output(*output, value);
        }
        self.drive_output(stream.valid, valid);
    }

    /// All signals of a beat as one value, `tdata` lowest: what a queue holds.
    ///
    /// # Panics
    /// The beat has no signals.
    pub fn beat_bits(&mut self, beat: &Beat) -> NodeId {
        let signals = [beat.user, beat.last, beat.keep, beat.data];
        let parts: Vec<NodeId> = signals.into_iter().flatten().collect();
        assert!(!parts.is_empty(), "a beat without signals");
        self.concat(&parts)
    }

    /// The signals of a beat that [`ModuleBuilder::beat_bits`] has made one value.
    #[track_caller]
    pub fn bits_beat(&mut self, shape: StreamShape, bits: NodeId) -> Beat {
        let mut low = 0;
        Beat::each(shape, |_, width| {
            let signal = self.slice(bits, low, width);
            low += width;
            signal
        })
    }
}
