//! MACs between the ports of a device and its receiving and sending sides.

use super::control::Control;
use super::shape::Shape;
use millrace_netlist::blocks::{RECEIVE_COUNTERS, TRANSMIT_COUNTERS, register_slice};
use millrace_netlist::{Beat, Design, InstanceId, ModuleBuilder, NodeId, StreamShape};

/// Connects each port with a MAC, if the link has some. All run with the clock of the device, so a frame comes without pauses as fast as it
/// leaves, and what leaves while it comes never has to wait for its next word.
///
/// The verdict about a frame (check sequence, length) does not reach the slots of the receiving side within the cycle in which it is made, nor,
/// where a link [has slack](super::Link::has_slack), does the ready of the sending half reach the memory of frames. On XGMII the sending half is
/// told of a frame a cycle before its first beat, which makes up for the first.
pub(super) fn connect(
    m: &mut ModuleBuilder,
    design: &mut Design,
    (shape, up, control): (&Shape, NodeId, &mut Control),
    receives: &[InstanceId],
    sends: &[InstanceId],
) {
    // With the check sequence.
    let Some(halves) = shape.link.mac(design, shape.width, shape.frame + 4) else { return };
    let frames = StreamShape::frames(shape.width, 1);
    for (port, (receive, send)) in receives.iter().zip(sends).enumerate() {
        let known = shape.numbers[port];
        let from = m.instance(design, halves.0, &format!("mac{port}_receive"));
        for (name, width) in shape.link.receives() {
            let value = m.input(&format!("rx{port}_{name}"), *width);
            m.connect(from, name, value);
        }
        // Frames for all are taken until software says which are not.
        for (name, width, reset) in [("station", 48, 0), ("promiscuous", 1, 1)] {
            let value = control.setting(m, &format!("port{known}.{name}"), width, reset);
            m.connect(from, name, value);
        }
        let enable = m.bit(up, port as u32);
        m.connect(from, "enable", enable);
        let (beat, valid) = m.stream_from(from, "m");
        let (beat, valid) = later(m, frames, &format!("mac{port}"), (&beat, valid));
        m.connect_stream(*receive, "s", &beat, valid);
        let ready = m.ready_of(*receive, "s");
        m.connect_ready(from, "m", ready);
        for name in RECEIVE_COUNTERS {
            let count = m.output_of(from, name);
            control.shows(&format!("port{known}.rx_mac_{name}"), count);
        }
        let to = m.instance(design, halves.1, &format!("mac{port}_transmit"));
        let mut sends = *send;
        if shape.link.has_slack() {
            let slice = register_slice(design, frames);
            let slice = m.instance(design, slice, &format!("mac{port}_slice"));
            m.connect_streams((sends, "m"), (slice, "s"));
            sends = slice;
        }
        m.connect_streams((sends, "m"), (to, "s"));
        if let Some(told) = shape.link.told_of_frames() {
            let soon = m.output_of(*send, "soon");
            m.connect(to, told, soon);
        }
        for name in shape.link.transmits() {
            let value = m.output_of(to, name);
            m.output(&format!("tx{port}_{name}"), value);
        }
        for name in TRANSMIT_COUNTERS {
            let count = m.output_of(to, name);
            control.shows(&format!("port{known}.tx_mac_{name}"), count);
        }
    }
}

/// A stream that does not wait, a cycle later.
fn later(
    m: &mut ModuleBuilder,
    shape: StreamShape,
    name: &str,
    (beat, valid): (&Beat, NodeId),
) -> (Beat, NodeId) {
    let bits = m.beat_bits(beat);
    let bits = m.delayed(&format!("{name}_beat"), bits, None);
    let valid = m.delayed(&format!("{name}_valid"), valid, Some(0));
    (m.bits_beat(shape, bits), valid)
}
