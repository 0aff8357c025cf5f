//! The port of a switch that its controller is at: a wire of the backplane on one side, P4Runtime on the other.

use millrace_backplane::{Host, NotSent, Wire};
use millrace_p4runtime::{FromSwitch, SendError, ToSwitch};
use std::sync::Arc;

/// Hands packet-outs to a wire.
#[derive(Debug)]
pub(crate) struct PacketOuts(pub(crate) Arc<Wire>);

impl ToSwitch for PacketOuts {
    fn send(&self, frame: Vec<u8>) -> Result<(), SendError> {
        self.0.send_in(&frame).map_err(|error| match error {
            NotSent::Full => SendError::Full,
            NotSent::TooLong => SendError::TooLong,
        })
    }
}

/// Hands what a wire sends to the controller.
#[derive(Debug)]
pub(crate) struct PacketIns(pub(crate) FromSwitch);

impl Host for PacketIns {
    fn take(&mut self, frame: &[u8]) -> bool {
        self.0.take(frame)
    }
}
