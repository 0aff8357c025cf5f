//! The far end of a port of the memory: frames come and go by channels.

use millrace_drivers::{FarEnd, MemoryPort, Next, QueuePair};
use std::sync::mpsc::{Receiver, Sender, channel};

/// What comes, what goes, and the frame that came last.
struct Wire(Receiver<Vec<u8>>, Sender<Vec<u8>>, Vec<u8>);

/// A frame.
type Frame = Vec<u8>;

/// A port, with what sends frames to it and what receives those that it sends.
pub(crate) fn port() -> (Box<dyn QueuePair>, Sender<Frame>, Receiver<Frame>) {
    let ((sender, comes), (goes, receiver)) = (channel(), channel());
    (Box::new(MemoryPort::new(Wire(comes, goes, Vec::new()))), sender, receiver)
}

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
