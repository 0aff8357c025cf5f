//! Candidates: a program gets a copy of what a switch gets, and what it sends is compared with what the program that runs sends. Nothing of it
//! leaves.
//!
//! A thread of its own, which others do not wait for, runs both programs packet by packet: the one that runs, and the candidate, each with
//! the entries and the state that the switch had when the candidate came. So both see the same packets in the same order at the same times, and
//! each difference is the candidate's. What control writes later is for neither of them.
//!
//! ```text
//!  packets of the switch --copies, as many as there is room for--> thread: reference --\
//!                                                                          candidate ----> compare what leaves: port and bytes
//! ```

use crate::device::Device;
use crate::entered::Entered;
use crate::failure::Failure;
use crate::installed::Before;
use crate::snapshot;
use millrace_backplane::Mirror;
use millrace_chassis::{Pipeline, compile};
use millrace_control::entries;
use millrace_ctl_api::ShadowStatus;
use millrace_dataplane::{Cancel, Clock, EngineKind, Keep, PortId, Switch, SwitchConfig, swap_at_rest};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Packets that wait for the comparison; more are left out, and counted.
pub const MAX_SHADOW_PACKETS: usize = 1024;
/// Differences that are kept, each with the traces of both.
pub const MAX_DIFFERENCES: usize = 8;
/// Bytes of the text of a difference.
const MAX_DIFFERENCE: usize = 64 << 10;
/// How much nicer the thread is than the others.
const NICE: i32 = 10;

/// A candidate that runs next to a switch. It ends when this is dropped.
pub(crate) struct Shadow {
    compared: Arc<Mutex<ShadowStatus>>,
    left_out: Arc<AtomicU64>,
}

/// A copy of a packet.
struct Copy {
    port: PortId,
    time_ns: u64,
    frame: Vec<u8>,
}

/// Hands copies to the thread.
#[derive(Debug)]
struct Copies {
    to: SyncSender<Copy>,
    clock: Clock,
    left_out: Arc<AtomicU64>,
}

impl std::fmt::Debug for Copy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes for port {}", self.frame.len(), self.port)
    }
}

impl Mirror for Copies {
    fn take(&mut self, port: PortId, frame: &[u8]) {
        let copy = Copy { port, time_ns: self.clock.now_ns(), frame: frame.to_vec() };
        if self.to.try_send(copy).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Shadow {
    pub(crate) fn status(&self) -> ShadowStatus {
        let mut status = self.compared.lock().unwrap_or_else(PoisonError::into_inner).clone();
        status.left_out = self.left_out.load(Ordering::Relaxed);
        status
    }
}

/// Has a candidate run next to a switch, in place of the one before.
pub(crate) fn begin(device: &Device, entered: &Entered, program: &[u8]) -> Result<ShadowStatus, Failure> {
    let before = snapshot::read(device, entered)?;
    let candidate = compile(program, &Cancel::default()).map_err(|error| Failure::Invalid(error.message))?;
    let reference = restored(&before)?;
    // With what is the same of the state, as a hot swap makes it.
    let mut next = restored(&before)?;
    let swapped = swap_at_rest(&mut next, switch(&candidate)?, Keep::Compatible);
    drop(swapped.map_err(|failed| Failure::Invalid(failed.error.to_string()))?);
    let (to, from) = sync_channel(MAX_SHADOW_PACKETS);
    let compared = ShadowStatus { program: candidate.program.name.clone(), ..ShadowStatus::default() };
    let (compared, left_out) = (Arc::new(Mutex::new(compared)), Arc::<AtomicU64>::default());
    let comparing = Arc::clone(&compared);
    let thread = std::thread::Builder::new().name("shadow".into());
    let thread = thread.spawn(move || compare(&from, reference, next, &comparing));
    thread.map_err(Failure::failed)?;
    let shadow = Shadow { compared, left_out: Arc::clone(&left_out) };
    let status = shadow.status();
    let mut running = device.running();
    let mirror = Copies { to, clock: Clock::real(), left_out };
    running.backplane.set_mirror(&running.entered(entered)?.member, Some(Box::new(mirror)));
    running.entered_mut(entered)?.shadow = Some(shadow);
    Ok(status)
}

fn switch(pipeline: &Pipeline) -> Result<Switch, Failure> {
    let config = SwitchConfig { engine: EngineKind::Interp, ..SwitchConfig::default() };
    Switch::new(Arc::clone(&pipeline.program), config).map_err(|error| Failure::Invalid(error.to_string()))
}

/// A switch with the program, the entries and the state of a moment.
fn restored(before: &Before) -> Result<Switch, Failure> {
    let pipeline =
        compile(&before.config, &Cancel::default()).map_err(|error| Failure::failed(error.message))?;
    let mut switch = switch(&pipeline)?;
    entries::load(&mut switch, &before.state).map_err(|refused| {
        Failure::failed(refused.first().map(|one| one.message.clone()).unwrap_or_default())
    })?;
    Ok(switch)
}

/// Runs both until nobody sends copies any more.
fn compare(
    from: &Receiver<Copy>,
    mut reference: Switch,
    mut candidate: Switch,
    compared: &Mutex<ShadowStatus>,
) {
    // Packets come first where there are not enough processors. Without it all is as right.
    let _ = rustix::process::nice(NICE);
    let mut differences = 0;
    for copy in from {
        let traces = differences < MAX_DIFFERENCES;
        let (expected, its_trace) = run(&mut reference, &copy, traces);
        let (got, trace) = run(&mut candidate, &copy, traces);
        let is_same = expected == got;
        let mut status = compared.lock().unwrap_or_else(PoisonError::into_inner);
        status.compared += 1;
        status.same += u64::from(is_same);
        status.different += u64::from(!is_same);
        if !is_same && traces {
            differences += 1;
            status.differences.push(told(&copy, (&expected, &its_trace), (&got, &trace)));
        }
    }
}

/// What leaves by each port, in order.
type Left = BTreeMap<PortId, Vec<Vec<u8>>>;

/// What a switch does with a packet, and its trace if it is wanted.
fn run(switch: &mut Switch, copy: &Copy, traces: bool) -> (Left, String) {
    let (outcome, trace) = match traces {
        true => {
            let (outcome, trace) = switch.inject_traced(copy.port, &copy.frame, copy.time_ns);
            (outcome, trace.to_string())
        }
        false => (switch.inject(copy.port, &copy.frame, copy.time_ns), String::new()),
    };
    let mut left = Left::new();
    // What waits in its queues leaves too.
    let late = switch.drain();
    for sent in outcome.sent.into_iter().chain(late.sent) {
        left.entry(sent.port).or_default().push(sent.bytes);
    }
    (left, trace)
}

fn told(copy: &Copy, (expected, its_trace): (&Left, &str), (got, trace): (&Left, &str)) -> String {
    let mut text = format!("a packet of port {}: {}\n", copy.port, hex(&copy.frame));
    for (who, left, trace) in [("the program that runs", expected, its_trace), ("the candidate", got, trace)]
    {
        let _ = writeln!(text, "{who} sends {}", if left.is_empty() { "nothing" } else { "" });
        for (port, frames) in left {
            frames.iter().for_each(|frame| _ = writeln!(text, "  by port {port}: {}", hex(frame)));
        }
        text += trace;
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    text.truncate(text.floor_char_boundary(MAX_DIFFERENCE));
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// How the candidate of a switch compares.
pub(crate) fn status(device: &Device, entered: &Entered) -> Result<ShadowStatus, Failure> {
    let running = device.running();
    let shadow = running.entered(entered)?.shadow.as_ref();
    shadow.map(Shadow::status).ok_or_else(|| no_candidate(&entered.name))
}

/// The candidate of a switch ends.
pub(crate) fn end(device: &Device, entered: &Entered) -> Result<ShadowStatus, Failure> {
    let mut running = device.running();
    running.backplane.set_mirror(&running.entered(entered)?.member, None);
    let shadow = running.entered_mut(entered)?.shadow.take();
    shadow.map(|shadow| shadow.status()).ok_or_else(|| no_candidate(&entered.name))
}

fn no_candidate(name: &str) -> Failure {
    Failure::Invalid(format!("no candidate runs next to switch {name}"))
}
