//! Calls that bring another program. As in bmv2, one that is loaded takes all that clients write until it takes over, and
//! starts with that alone, and with the multicast groups and clone sessions that there are; [`Device::swap_program`] is for one that
//! goes on with what there is.

use super::Device;
use super::loaded::{Loaded, Running};
use crate::caller::while_it_waits;
use crate::notify::Swap;
use millrace_chassis::Candidate;
use millrace_dataplane::Switch;
use millrace_describe::image::Image;
use millrace_thrift_api::{CallError, InvalidSwapOperation, Keep, SwapCode};
use std::sync::{Arc, MutexGuard, PoisonError};

type Done<T = ()> = Result<T, CallError<InvalidSwapOperation>>;

/// A program that is loaded and does not run yet.
#[derive(Debug)]
pub(super) struct Waiting {
    candidate: Candidate,
    loaded: Arc<Loaded>,
}

impl Waiting {
    fn new(candidate: Candidate) -> Waiting {
        let loaded =
            Arc::new(Loaded::new(Arc::clone(candidate.switch.program()), description(candidate.config())));
        Waiting { candidate, loaded }
    }

    pub(super) fn running(&self) -> Running {
        let switch = &self.candidate.switch;
        Running { loaded: Arc::clone(&self.loaded), tables: switch.state().handle(), now_ns: switch.now_ns() }
    }

    pub(super) fn switch_mut(&mut self) -> &mut Switch {
        &mut self.candidate.switch
    }
}

/// An image is its own description for clients; the text of a program is none.
fn description(config: &[u8]) -> Option<String> {
    let text = Image::looks_like(config).then(|| String::from_utf8(config.to_vec()).ok());
    text.flatten()
}

impl Device {
    pub(super) fn waiting(&self) -> MutexGuard<'_, Option<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_swap(&self, how: Swap) {
        self.notices.iter().for_each(|notices| notices.swap(how));
    }

    pub(crate) fn bm_load_new_config(&self, config: String) -> Done {
        if self.waiting().is_some() {
            return Err(SwapCode::Ongoing.into());
        }
        let candidate = self.prepare(&config)?;
        let mut waiting = self.waiting();
        if waiting.is_some() {
            return Err(SwapCode::Ongoing.into());
        }
        *waiting = Some(Waiting::new(candidate));
        self.tell_swap(Swap::Loaded);
        Ok(())
    }

    /// Makes a program, for as long as the client waits for it.
    fn prepare(&self, config: &str) -> Result<Candidate, CallError<InvalidSwapOperation>> {
        while_it_waits(|cancel| self.programs.prepare_for(config.as_bytes(), cancel)).map_err(refused)
    }

    pub(crate) fn bm_swap_configs(&self) -> Done {
        // Whoever writes meanwhile waits, and writes to the program that runs then.
        let mut waiting = self.waiting();
        let Waiting { mut candidate, loaded } = waiting.take().ok_or(SwapCode::NotOngoing)?;
        candidate.switch.keep_groups();
        self.programs.start(candidate, None).map_err(refused)?;
        // Handles of its entries stay.
        *self.loaded.lock().unwrap_or_else(PoisonError::into_inner) = Some(loaded);
        self.tell_swap(Swap::Completed);
        Ok(())
    }

    /// Lets a program take over with what the one that runs holds; gives the report on it as JSON.
    pub(crate) fn swap_program(&self, program: String, keep: Keep) -> Done<String> {
        if self.waiting().is_some() {
            return Err(SwapCode::Ongoing.into());
        }
        // Others may write meanwhile.
        let candidate = self.prepare(&program)?;
        let waiting = self.waiting();
        if waiting.is_some() {
            return Err(SwapCode::Ongoing.into());
        }
        let json = description(candidate.config());
        let loaded = Arc::new(Loaded::new(Arc::clone(candidate.switch.program()), json));
        let keep = match keep {
            Keep::Nothing => None,
            Keep::Compatible => Some(millrace_dataplane::Keep::Compatible),
            Keep::Everything => Some(millrace_dataplane::Keep::Everything),
        };
        let report = self.programs.start(candidate, keep).map_err(refused)?;
        *self.loaded.lock().unwrap_or_else(PoisonError::into_inner) = Some(loaded);
        self.tell_swap(Swap::Completed);
        drop(waiting);
        // Strings and numbers always become JSON.
        Ok(serde_json::to_string(&report).unwrap_or_default())
    }
}

/// bmv2 has no code for it.
fn refused(reason: String) -> CallError<InvalidSwapOperation> {
    CallError::Declared(InvalidSwapOperation { code: SwapCode::Disabled, reason: Some(reason) })
}
