//! What a device is like, in numbers.

use super::Link;
use super::shape::Shape;
use millrace_printable::counted;
use std::fmt;

/// About a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceReport {
    /// The program.
    pub program: String,
    /// The length of a cycle in picoseconds.
    pub period_ps: u32,
    /// Ports.
    pub ports: u32,
    /// What they are connected to.
    pub link: Link,
    /// Bits of a beat.
    pub width: u32,
    /// Bytes of a frame that decisions need.
    pub window: u32,
    /// The most bytes of new headers.
    pub emitted: u32,
    /// The part of the program that needs the end of a frame, with its place; none: the device is cut through.
    pub waits_for_end: Option<String>,
    /// Where a frame spends its time.
    pub latency: PartsLatency,
    /// Cycles between headers.
    pub interval: u32,
    /// Bits of memory for frames; each output port reads a copy of its own of them.
    pub payload_bits: u64,
    /// Frames that may be on their way to start again; 0: none does.
    pub places_again: u32,
}

/// Cycles that a frame to an idle port spends in each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartsLatency {
    /// From the start of a frame (the start character, the first octet of its preamble) to the first beat, and from that to the start on
    /// the other side.
    pub macs: u32,
    /// Until the window is filled, and its turn has come.
    pub window: u32,
    /// Ingress.
    pub ingress: u32,
    /// Copies.
    pub copies: u32,
    /// Egress.
    pub egress: u32,
    /// Queue and editor.
    pub transmit: u32,
}

impl PartsLatency {
    pub(super) fn of(shape: &Shape, ingress: u32, egress: u32) -> PartsLatency {
        let bytes = shape.width / 8;
        let macs = match shape.link {
            Link::Stream => 0,
            // Of what may be cut the other side is not told before it is there.
            Link::Xgmii => 7 + u32::from(shape.features.cuts),
            // Preamble, the bytes of a beat, the check sequence that may be there; two before the preamble of the other side; a register on either
            // side of the MACs.
            Link::Gmii => bytes + 17,
        };
        let window = shape.link.cycles((shape.window_words() - 1) * bytes, shape.width) + 2;
        let transmit = if shape.link.has_slack() { 6 } else { 5 };
        PartsLatency { macs, window, ingress, copies: 1, egress, transmit }
    }

    /// From the first beat of a frame to its first beat at the other side, if the frame is as long as the window.
    pub fn all(self) -> u32 {
        self.macs + self.window + self.ingress + self.copies + self.egress + self.transmit
    }
}

impl DeviceReport {
    /// Headers a second.
    pub fn headers_per_second(&self) -> f64 {
        1e12 / (f64::from(self.period_ps.max(1)) * f64::from(self.interval.max(1)))
    }
}

impl fmt::Display for DeviceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = |cycles: u32| f64::from(cycles) * f64::from(self.period_ps) / 1e3;
        let PartsLatency { macs, window, ingress, copies, egress, transmit } = self.latency;
        let all = self.latency.all();
        writeln!(f, "{}: a device of {} of {} bits", self.program, counted(self.ports, "port"), self.width)?;
        match &self.waits_for_end {
            None => {
                writeln!(f, "  cut-through: a decision needs {} of a frame", counted(self.window, "byte"))?
            }
            Some(who) => writeln!(f, "  store-and-forward: {who} needs the length of the frame")?,
        }
        let between = match self.link {
            Link::Stream => "stream to stream".to_owned(),
            link => format!("{0} to {0}", link.name()),
        };
        writeln!(f, "  latency     {} ({:.1} ns), {between}", counted(all, "cycle"), ns(all))?;
        writeln!(
            f,
            "              MACs {macs}, window {window}, ingress {ingress}, copies {copies}, egress {egress}, queue and editor {transmit}"
        )?;
        writeln!(f, "  headers     {:.1} million a second, of all ports", self.headers_per_second() / 1e6)?;
        writeln!(f, "  new headers {} at most", counted(self.emitted, "byte"))?;
        writeln!(f, "  frames      {} bits of memory", self.payload_bits)?;
        match self.places_again {
            0 => Ok(()),
            places => writeln!(f, "  again       {places} frames at once, {} bits in each cycle", self.width),
        }
    }
}
