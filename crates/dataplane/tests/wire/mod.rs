//! The far end of a port of the memory: frames come and go by channels.

use millrace_drivers::{FarEnd, Next};
use std::sync::mpsc::{Receiver, Sender};

/// What comes, what goes, and the frame that came last.
pub(crate) struct Wire(pub(crate) Receiver<Vec<u8>>, pub(crate) Sender<Vec<u8>>, pub(crate) Vec<u8>);

impl FarEnd for Wire {
    fn next(&mut self) -> Next<'_> {
        let Ok(frame) = self.0.try_recv() else { return Next::None };
        self.2 = frame;
        Next::Frame(&self.2)
    }

    fn take(&mut self, frame: &[u8]) -> bool {
        self.1.send(frame.to_vec()).is_ok()
    }
}
