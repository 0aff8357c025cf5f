//! Code that another thread makes while a worker forwards.

use crate::processors::Processors;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// What another thread makes. The worker looks whether it is there, and waits for nothing.
pub(crate) struct Beside<T>(Arc<Mutex<Option<T>>>);

/// Holds back a thread that makes code, until it is dropped: what it makes is for later, and a thread that starts may keep
/// others from the processor for milliseconds.
pub(crate) struct Hold(#[expect(dead_code, reason = "it is there to be dropped")] Option<Sender<()>>);

/// One at a time: together they would only be later, and take more from others.
static TURN: Mutex<()> = Mutex::new(());

impl<T: Send + 'static> Beside<T> {
    /// Has a thread make something, unless nobody wants it any more when its turn comes. None: the system has no thread.
    pub(crate) fn start(
        processors: &Processors,
        held: Option<Receiver<()>>,
        make: impl FnOnce() -> T + Send + 'static,
    ) -> Option<Beside<T>> {
        let place = Arc::new(Mutex::new(None));
        let (there, processors) = (Arc::clone(&place), processors.clone());
        let work = move || {
            if let Some(held) = held {
                // Nothing is sent: until nobody can any more.
                let _ = held.recv();
            }
            processors.allow();
            let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
            if Arc::strong_count(&there) > 1 {
                let made = make();
                *there.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
            }
            drop(turn);
        };
        thread::Builder::new().name("compiler".to_owned()).spawn(work).ok().map(|_| Beside(place))
    }

    /// What was made, once it is there.
    pub(crate) fn take(&self) -> Option<T> {
        self.0.try_lock().ok()?.take()
    }
}

impl Hold {
    /// Nothing is held back.
    pub(crate) fn nothing() -> Hold {
        Hold(None)
    }

    /// With what waits for it.
    pub(crate) fn new() -> (Hold, Receiver<()>) {
        let (hold, held) = channel();
        (Hold(Some(hold)), held)
    }
}
