//! MACs between the ports of a device and its receiving and sending sides.

use super::Link;
use super::control::Control;
use super::shape::Shape;
use millrace_netlist::blocks::{
    RECEIVE_COUNTERS, TRANSMIT_COUNTERS, gmii_receive, gmii_transmit, xgmii_receive, xgmii_transmit,
};
use millrace_netlist::{Design, InstanceId, ModuleBuilder, ModuleId, NodeId};

/// The two halves of a MAC, and the signals of its link.
struct Mac {
    receive: ModuleId,
    /// Each with its width.
    receives: &'static [(&'static str, u32)],
    transmit: ModuleId,
    transmits: &'static [&'static str],
}

impl Mac {
    /// None: ports are streams.
    fn of(design: &mut Design, shape: &Shape) -> Option<Mac> {
        // With the check sequence.
        let longest = shape.frame + 4;
        match shape.link {
            Link::Stream => None,
            Link::Xgmii => Some(Mac {
                receive: xgmii_receive(design, longest),
                receives: &[("data", 64), ("control", 8)],
                transmit: xgmii_transmit(design),
                transmits: &["data", "control"],
            }),
            Link::Gmii => Some(Mac {
                receive: gmii_receive(design, shape.width, longest),
                receives: &[("data", 8), ("dv", 1), ("er", 1)],
                transmit: gmii_transmit(design, shape.width),
                transmits: &["data", "en", "er"],
            }),
        }
    }
}

/// Connects each port with a MAC, if the link has some. All run with the clock of the device, so a frame comes without pauses as fast as it
/// leaves, and what leaves while it comes never has to wait for its next word.
pub(super) fn connect(
    m: &mut ModuleBuilder,
    design: &mut Design,
    (shape, up, control): (&Shape, NodeId, &mut Control),
    receives: &[InstanceId],
    sends: &[InstanceId],
) {
    let Some(mac) = Mac::of(design, shape) else { return };
    for (port, (receive, send)) in receives.iter().zip(sends).enumerate() {
        let known = shape.numbers[port];
        let from = m.instance(design, mac.receive, &format!("mac{port}_receive"));
        for (name, width) in mac.receives {
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
        m.connect_stream(*receive, "s", &beat, valid);
        let ready = m.ready_of(*receive, "s");
        m.connect_ready(from, "m", ready);
        for name in RECEIVE_COUNTERS {
            let count = m.output_of(from, name);
            control.shows(&format!("port{known}.rx_mac_{name}"), count);
        }
        let to = m.instance(design, mac.transmit, &format!("mac{port}_transmit"));
        let (beat, valid) = m.stream_from(*send, "m");
        m.connect_stream(to, "s", &beat, valid);
        let ready = m.ready_of(to, "s");
        m.connect_ready(*send, "m", ready);
        for name in mac.transmits {
            let value = m.output_of(to, name);
            m.output(&format!("tx{port}_{name}"), value);
        }
        for name in TRANSMIT_COUNTERS {
            let count = m.output_of(to, name);
            control.shows(&format!("port{known}.tx_mac_{name}"), count);
        }
    }
}
