//! What is going on, on a terminal, when it takes long; silent otherwise.

use crate::output::is_quiet;
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Work shorter than that shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);

/// A line on the terminal that goes when this does.
pub(crate) struct Progress {
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Says what is going on, and for how long.
    pub(crate) fn start(what: String) -> Progress {
        if !std::io::stderr().is_terminal() || is_quiet() {
            return Progress { running: None };
        }
        let (stop, stopped) = channel();
        let started = Instant::now();
        let show = move || {
            let mut shown = false;
            while stopped.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                status(&format!("{what} ({} s)", started.elapsed().as_secs()));
                shown = true;
            }
            if shown {
                status("");
            }
        };
        let thread = std::thread::Builder::new().name("progress".into()).spawn(show);
        // Without a thread there is no progress to see, and nothing else is lost.
        Progress { running: thread.ok().map(|thread| (stop, thread)) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            drop(stop);
            // A thread that only prints has nothing to say that matters now.
            let _ = thread.join();
        }
    }
}

/// Replaces the last line of the terminal.
pub(crate) fn status(text: &str) {
    crate::output::replace_line(text);
}
