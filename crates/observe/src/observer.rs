//! The status of a running switch for others than the server over HTTP, as an agent of another protocol.

use crate::collect::{Collector, Seen};
use crate::{Modes, Plugins};
use millrace_dataplane::{Control, ReportError};
use millrace_drivers::{Captures, Links};
use millrace_inputs::InputsStatus;
use millrace_observe_api::Status;
use std::sync::{Arc, Mutex, PoisonError};

/// Asks a switch what it is like.
pub struct Observer(Mutex<Collector>);

impl Observer {
    /// Of the switch that is reached like that, with what the worker does not count.
    pub fn new(
        control: Control,
        (captures, links, inputs): (Arc<Captures>, Links, InputsStatus),
        (plugins, modes): (Arc<dyn Plugins>, Arc<dyn Modes>),
    ) -> Observer {
        let seen = Seen { captures, links, inputs, plugins, modes, shows_process: true };
        Observer(Mutex::new(Collector::new(control, seen)))
    }

    /// The status of now, or of a moment ago. Waits for the worker to end its round, and for whoever writes tables.
    ///
    /// # Errors
    /// [`ReportError`].
    pub fn status(&self) -> Result<Arc<Status>, ReportError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).status()
    }
}
