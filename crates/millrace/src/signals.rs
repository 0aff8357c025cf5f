//! The signals that end a command which runs until it is told to end.

use crate::findings::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that is set when one of them has come.
pub(crate) fn ends() -> Result<Arc<AtomicBool>, Failure> {
    let ends = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&ends))
            .map_err(|error| Failure::failed("signals", error))?;
    }
    Ok(ends)
}
