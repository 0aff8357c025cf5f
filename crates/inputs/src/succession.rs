//! The chains of programs that take over from one that runs.
//!
//! ```text
//!  ProgramChains::prepare(what the program asks for)   any thread, slow: expressions, lists, tables of flows
//!      -> PreparedChains::start                        while no worker forwards: the steps lie ready for each queue pair
//!          -> ChainedPort                              takes them before its next batch, and hands the old ones back
//!              -> a thread                             ends their flows and frees them
//! ```
//!
//! Who brings a program over the network is not to name files: such a chain tells its flows to files that the switch has made
//! when it started, and reads lists that it has read then.

use crate::classes::List;
use crate::error::InputError;
use crate::flows::{END_TIME, Writer};
use crate::inputs::{At, FlowFile, Opened, read_lists, shown};
use crate::port::{LOOK, Steps};
use crate::ports::{Plan, PortChain};
use crate::status::{InputsStatus, ShownStep};
use millrace_drivers::Alarm;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What becomes of a chain of a queue pair.
#[derive(Default)]
pub(crate) enum Change {
    /// It stays: it is the operator's.
    #[default]
    Stays,
    /// It becomes these steps, or none.
    Becomes(Option<Steps>),
}

/// What a queue pair has from the next batch on.
#[derive(Default)]
pub(crate) struct Next {
    pub(crate) input: Change,
    pub(crate) output: Change,
    pub(crate) alarm: Option<Alarm>,
}

/// Where steps lie ready for a queue pair, and where the old ones go.
pub(crate) struct Handover {
    is_there: AtomicBool,
    next: Mutex<Option<Next>>,
    retired: Mutex<Sender<Next>>,
}

impl Handover {
    /// What there is to take, once.
    #[inline]
    pub(crate) fn take(&self) -> Option<Next> {
        // The lock is taken once for each program: it orders what was written before.
        if !self.is_there.load(Ordering::Relaxed) {
            return None;
        }
        let mut next = locked(&self.next);
        self.is_there.store(false, Ordering::Relaxed);
        next.take()
    }

    fn put(&self, next: Next) {
        let mut place = locked(&self.next);
        let before = place.replace(next);
        self.is_there.store(true, Ordering::Relaxed);
        drop(place);
        before.into_iter().for_each(|before| self.retire(before));
    }

    /// Has a thread free what is not needed any more.
    pub(crate) fn retire(&self, old: Next) {
        // Without that thread it is freed here.
        let _ = locked(&self.retired).send(old);
    }
}

/// A queue pair that may get other chains.
struct Pair {
    port: u32,
    is_replay: bool,
    handover: Arc<Handover>,
}

/// What a switch started with.
pub(crate) struct Known {
    /// The files of flows, by number.
    pub(crate) files: Vec<FlowFile>,
    /// The numbers of those that the operator's chains have.
    pub(crate) taken: Vec<usize>,
    /// The lists that were read, by path.
    pub(crate) lists: BTreeMap<String, List>,
    /// Where the operator's chains are, and their counters.
    pub(crate) fixed: BTreeSet<At>,
    pub(crate) shown: Vec<ShownStep>,
}

/// What prepares chains, and the thread that frees old ones.
pub(crate) struct Succession {
    known: Known,
    writer: Mutex<Option<Arc<Writer>>>,
    shown: InputsStatus,
    pairs: Mutex<Vec<Pair>>,
    retired: Mutex<Option<Sender<Next>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Succession {
    pub(crate) fn start(
        known: Known,
        writer: Option<Arc<Writer>>,
        shown: InputsStatus,
    ) -> io::Result<Arc<Succession>> {
        let (retired, old): (Sender<Next>, Receiver<Next>) = channel();
        let thread = std::thread::Builder::new().name("chains".to_owned());
        let thread = thread.spawn(move || old.into_iter().for_each(drop))?;
        Ok(Arc::new(Succession {
            known,
            writer: Mutex::new(writer),
            shown,
            pairs: Mutex::default(),
            retired: Mutex::new(Some(retired)),
            thread: Mutex::new(Some(thread)),
        }))
    }

    /// What a new queue pair of a port looks at.
    pub(crate) fn handover(&self, port: u32, is_replay: bool) -> Arc<Handover> {
        // The sender is there until the ports are gone; one without a receiver frees at once.
        let retired = locked(&self.retired).clone().unwrap_or_else(|| channel().0);
        let handover = Handover {
            is_there: AtomicBool::new(false),
            next: Mutex::default(),
            retired: Mutex::new(retired),
        };
        let handover = Arc::new(handover);
        locked(&self.pairs).push(Pair { port, is_replay, handover: Arc::clone(&handover) });
        handover
    }

    /// Waits until all old steps are freed, at most as long as files are waited for.
    pub(crate) fn end(&self) {
        locked(&self.pairs).clear();
        locked(&self.writer).take();
        locked(&self.retired).take();
        let Some(thread) = locked(&self.thread).take() else { return };
        let begun = Instant::now();
        while !thread.is_finished() && begun.elapsed() < END_TIME {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Prepares the chains of programs that are to take over. It may be cloned.
#[derive(Clone)]
pub struct ProgramChains(pub(crate) Arc<Succession>);

impl std::fmt::Debug for ProgramChains {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProgramChains")
    }
}

/// The chains of a program, ready for all queue pairs.
pub struct PreparedChains {
    status: InputsStatus,
    shown: Arc<[ShownStep]>,
    nexts: Vec<(Arc<Handover>, Next)>,
}

impl ProgramChains {
    /// The chains that a program asks for, each with whether it is of what ports send. Those of the operator stay.
    ///
    /// # Errors
    /// [`InputError`]: a text is wrong, or names a file that the switch did not open when it started.
    pub fn prepare<'t>(
        &self,
        asked: impl Iterator<Item = (bool, &'t str)>,
    ) -> Result<PreparedChains, InputError> {
        let asked: Vec<PortChain> =
            asked.map(|(is_output, text)| PortChain::parse(text, is_output)).collect::<Result<_, _>>()?;
        let Succession { known, writer, shown: status, pairs, .. } = &*self.0;
        let writer = locked(writer).clone();
        let pairs = locked(pairs);
        let ports: BTreeSet<u32> = pairs.iter().map(|pair| pair.port).collect();
        let plan = Plan::new(&ports.into_iter().collect::<Vec<_>>(), &[], &asked)?;
        let mut chains = open(plan, known)?;
        let mut nexts = Vec::with_capacity(pairs.len());
        for Pair { port, is_replay, handover } in pairs.iter() {
            let mut change = |is_output| {
                let at = (*port, is_output);
                if known.fixed.contains(&at) {
                    return Ok(Change::Stays);
                }
                let chain = chains.get_mut(&at);
                let steps = chain.map(|chain| chain.steps(at, writer.as_deref(), *is_replay));
                steps.transpose().map(Change::Becomes)
            };
            let (input, output) = (change(false)?, change(true)?);
            let has_account =
                |change: &Change| matches!(change, Change::Becomes(Some(steps)) if steps.has_account());
            let needs_alarm = !is_replay && (has_account(&input) || has_account(&output));
            // Without an alarm flows are told with the next packet.
            let alarm = needs_alarm.then(|| Alarm::every(LOOK).ok()).flatten();
            nexts.push((Arc::clone(handover), Next { input, output, alarm }));
        }
        let mut steps: Vec<ShownStep> = known.shown.iter().cloned().chain(shown(&chains)).collect();
        steps.sort_by_key(|step| (step.place.at(), step.place.step));
        Ok(PreparedChains { status: status.clone(), shown: steps.into(), nexts })
    }
}

/// Opens the chains that are not where the operator's are.
fn open(plan: Plan, known: &Known) -> Result<BTreeMap<At, Opened>, InputError> {
    let mut used = known.taken.clone();
    let mut chains = BTreeMap::new();
    for (at, planned) in plan.0.into_iter().filter(|(at, _)| !known.fixed.contains(at)) {
        let mut specs = planned.chain.steps;
        read_lists(&mut specs, |list| match list {
            List::File(path) => known.lists.get(path).cloned().ok_or_else(|| foreign_file(path)),
            list => Ok(list.clone()),
        })?;
        let mut opened = Opened::new(specs, true)?;
        opened.set_files(|account| {
            let wanted = FlowFile { path: account.file.clone(), format: account.format };
            let number = known.files.iter().position(|file| *file == wanted);
            let number = number.ok_or_else(|| foreign_file(&account.file))?;
            if used.contains(&number) {
                return Err(InputError::Port(format!("{} is the file of two accounts", account.file)));
            }
            used.push(number);
            Ok(number)
        })?;
        chains.insert(at, opened);
    }
    Ok(chains)
}

impl PreparedChains {
    /// From now on these are the chains: each queue pair takes its own before its next batch. To be called while no worker
    /// forwards, so that no packet meets the chains of one program and another one.
    pub fn start(self) {
        self.status.set(self.shown);
        self.nexts.into_iter().for_each(|(handover, next)| handover.put(next));
    }
}

fn foreign_file(path: &str) -> InputError {
    InputError::Port(format!(
        "{path} is no file of the chains that the switch started with, and a program that comes later opens none"
    ))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
