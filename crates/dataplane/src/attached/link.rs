//! Whether a device is there, and who looks for one that is not.

use super::Registers;
use millrace_link::{Device, Fault, Place};
use millrace_rtl::map::{RegisterDevice, RegisterMap};
use std::fmt::Display;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

/// Between two attempts to reach a device.
const AGAIN: Duration = Duration::from_millis(200);
/// How long an exchange of programs waits for a device to be reached; one that takes longer is taken up when it is.
const REACHED_WITHIN: Duration = Duration::from_secs(2);

/// What comes of an attempt to reach a device.
type Attempt = Receiver<Result<Box<dyn Device>, Fault>>;

/// A device, or why it is not there.
pub(super) struct Link {
    place: Place,
    state: State,
    /// Frames go over it, not by the device's own ports alone.
    pub(super) has_frames: bool,
}

enum State {
    Up(Box<Registers>),
    /// It is there, and was not taken up.
    Came(Box<dyn Device>),
    Down {
        why: String,
        /// Another thread looks for it: the worker does not wait.
        attempt: Option<Attempt>,
        since: Instant,
    },
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("place", &self.place).field("trouble", &self.trouble()).finish()
    }
}

impl Link {
    /// To the device at a place, which is to be one like this. What is elsewhere is only asked whether it is.
    pub(super) fn to(place: &Place, design: &Arc<millrace_rtl::Device>) -> Result<Link, String> {
        let mut has_frames = place.has_frames();
        let state = match place {
            Place::Simulated => State::Came(open(place, design)?),
            Place::Served(address) => {
                let client = millrace_link::Client::connect(*address, false);
                let client = client.map_err(|error| format!("{place}: {error}"))?;
                has_frames = client.shape().ports > 0;
                check(place, design.register_map(), client)?;
                down(format!("{place} was not asked for its frames yet"))
            }
            Place::Mapped(..) => {
                check(place, design.register_map(), open(place, design)?)?;
                down(format!("{place} was not used yet"))
            }
        };
        Ok(Link { place: place.clone(), state, has_frames })
    }

    /// Why it is not there, if it is not.
    pub(super) fn trouble(&self) -> Option<String> {
        match &self.state {
            State::Up(_) | State::Came(_) => None,
            State::Down { why, .. } => Some(why.clone()),
        }
    }

    pub(super) fn is_simulated(&self) -> bool {
        self.place == Place::Simulated
    }

    /// The registers of one that is there.
    pub(super) fn up(&mut self) -> Option<&mut Registers> {
        match &mut self.state {
            State::Up(registers) => Some(registers),
            State::Came(_) | State::Down { .. } => None,
        }
    }

    /// It is not there any more.
    pub(super) fn cut(&mut self, why: &dyn Display) {
        self.state = down(format!("{}: {why}", self.place));
    }

    /// Takes the device of another link to the same place, whose program does not run any more; one that is simulated ends with it.
    pub(super) fn inherit(&mut self, before: &mut Link) {
        if self.place != before.place || self.is_simulated() {
            return;
        }
        let left = down(format!("{} has another program", self.place));
        self.state = match std::mem::replace(&mut before.state, left) {
            State::Up(registers) => State::Came(registers.into_access()),
            state => state,
        };
    }

    pub(super) fn is_up(&mut self, registers: Registers) {
        self.state = State::Up(Box::new(registers));
    }

    /// Reaches it now, and waits for that.
    pub(super) fn reach(&mut self, design: &Arc<millrace_rtl::Device>) -> Result<(), String> {
        if let State::Down { .. } = self.state {
            self.state = State::Came(open(&self.place, design)?);
        }
        Ok(())
    }

    /// Waits for one that is there, at most [`REACHED_WITHIN`].
    pub(super) fn wait(&mut self, design: &Arc<millrace_rtl::Device>) {
        let State::Down { why, attempt, since } = &mut self.state else { return };
        if attempt.is_none() {
            (*attempt, *since) = (look_for(&self.place, design), Instant::now());
        }
        let Some(hear) = attempt else { return };
        match hear.recv_timeout(REACHED_WITHIN) {
            Ok(Ok(device)) => self.state = State::Came(device),
            Ok(Err(error)) => (*why, *attempt) = (format!("{}: {error}", self.place), None),
            Err(RecvTimeoutError::Disconnected) => *attempt = None,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }

    /// The device, when it is there and was not taken up. One that is not there is looked for.
    pub(super) fn came(&mut self, design: &Arc<millrace_rtl::Device>) -> Option<Box<dyn Device>> {
        let untaken = down(format!("{} does not answer", self.place));
        match &mut self.state {
            State::Up(_) => None,
            State::Came(_) => match std::mem::replace(&mut self.state, untaken) {
                State::Came(device) => Some(device),
                State::Up(_) | State::Down { .. } => None,
            },
            State::Down { why, attempt, since } => {
                let came = attempt.as_ref().map(Receiver::try_recv);
                match came {
                    Some(Ok(Ok(device))) => return Some(device),
                    Some(Ok(Err(error))) => *why = format!("{}: {error}", self.place),
                    Some(Err(TryRecvError::Empty)) => return None,
                    Some(Err(TryRecvError::Disconnected)) | None if since.elapsed() < AGAIN => return None,
                    Some(Err(TryRecvError::Disconnected)) | None => {
                        *attempt = look_for(&self.place, design);
                        *since = Instant::now();
                        return None;
                    }
                }
                *attempt = None;
                None
            }
        }
    }
}

fn down(why: String) -> State {
    State::Down { why, attempt: None, since: Instant::now() }
}

fn open(place: &Place, design: &Arc<millrace_rtl::Device>) -> Result<Box<dyn Device>, String> {
    place.open(design).map_err(|error| format!("{place}: {error}"))
}

/// Whether what answers there is of this design.
fn check<A>(place: &Place, map: &RegisterMap, access: A) -> Result<(), String>
where
    A: millrace_rtl::map::RegisterAccess,
    A::Error: Display,
{
    RegisterDevice::attach(map.clone(), access).map(drop).map_err(|error| format!("{place}: {error}"))
}

/// Has a thread look for a device; none where there can be no thread.
fn look_for(place: &Place, design: &Arc<millrace_rtl::Device>) -> Option<Attempt> {
    let (say, hear) = sync_channel(1);
    let (place, design) = (place.clone(), Arc::clone(design));
    let look = move || _ = say.try_send(place.open(&design));
    std::thread::Builder::new().name("device-link".to_owned()).spawn(look).ok().map(|_| hear)
}
