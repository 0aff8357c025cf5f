//! What the terminal and the log show of a running switch.

use crate::cli::LogArgs;
use crate::output::{note_line, tell_line};
use crate::stories::Stories;
use millrace_chassis::Listener;
use millrace_dataplane::{DigestMessage, PortId, Trace};
use millrace_pipeline::Program;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::error;

/// Shows what happens, and counts digests.
pub(crate) struct Terminal {
    stories: Mutex<Stories>,
    digests: AtomicU64,
}

impl Terminal {
    pub(crate) fn new(log: &LogArgs) -> Terminal {
        Terminal { stories: Mutex::new(Stories::new(log)), digests: AtomicU64::new(0) }
    }

    /// How many there were.
    pub(crate) fn digests(&self) -> u64 {
        self.digests.load(Ordering::Relaxed)
    }
}

impl Listener for Terminal {
    fn digest(&self, _program: &Arc<Program>, _message: &DigestMessage) {
        self.digests.fetch_add(1, Ordering::Relaxed);
    }

    /// The log has it from whoever watches.
    fn link(&self, _port: PortId, _is_up: bool) {}

    fn port_failed(&self, port: PortId, error: &str) {
        error!(port, error, "port down");
        tell_line(format_args!("port {port} failed: {error}"));
    }

    fn log(&self, line: &str) {
        note_line(format_args!("log: {line}"));
        self.stories.lock().unwrap_or_else(PoisonError::into_inner).says(line);
    }

    fn story(&self, story: &Trace) {
        self.stories.lock().unwrap_or_else(PoisonError::into_inner).tell(story.clone());
    }
}
