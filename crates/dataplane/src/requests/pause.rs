//! A time in which a worker takes no packets.

use std::fmt;

/// A worker takes no packets until this is dropped. It answers requests meanwhile. A batch that packets must see as a whole is
/// written during a pause, whichever threads write it.
pub struct Pause(Option<End>);

/// Tells the worker that the pause is over.
type End = Box<dyn FnOnce() + Send>;

impl Pause {
    /// For a switch without a worker.
    pub(crate) fn of_none() -> Pause {
        Pause(None)
    }

    /// For a worker that waits from now on, until it hears of the end.
    pub(crate) fn until(end: impl FnOnce() + Send + 'static) -> Pause {
        Pause(Some(Box::new(end)))
    }

    /// Nobody wants it: the worker does not wait.
    pub(crate) fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        if let Some(end) = self.0.take() {
            end();
        }
    }
}

impl fmt::Debug for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pause")
    }
}
