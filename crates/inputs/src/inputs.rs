//! The chains of all ports of a switch.

use crate::chain::{SelectorSpec, StepSpec};
use crate::classes::List;
use crate::error::InputError;
use crate::flows::{AccountSpec, Format, Writer};
use crate::port::{ChainedPort, Step, Steps};
use crate::ports::Plan;
use crate::selector::Selector;
use crate::status::{InputsStatus, Place, ShownStep, StepCounts, StepStatus};
use crate::succession::{Known, ProgramChains, Succession};
use millrace_drivers::{QueuePair, TimeSource};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// Where a chain stands: the port, and whether it is of what that sends.
pub(crate) type At = (u32, bool);

/// The chain of a port and direction, with what its queue pairs share.
pub(crate) struct Opened {
    pub(crate) is_of_program: bool,
    specs: Vec<StepSpec>,
    /// Selectors for the first queue pair; others make theirs.
    ready: Vec<Option<Selector>>,
    counts: Vec<Arc<StepCounts>>,
    /// The number of the file of each step with an account.
    files: Vec<Option<usize>>,
}

impl Opened {
    /// Of a chain whose lists are read, with the numbers of its files.
    pub(crate) fn new(specs: Vec<StepSpec>, is_of_program: bool) -> Result<Opened, InputError> {
        let ready = specs.iter().map(selector_of).collect::<Result<_, _>>()?;
        let counts = specs.iter().map(|_| Arc::default()).collect();
        Ok(Opened { is_of_program, specs, ready, counts, files: Vec::new() })
    }

    /// Gives each account the number of its file.
    pub(crate) fn set_files(
        &mut self,
        mut number: impl FnMut(&AccountSpec) -> Result<usize, InputError>,
    ) -> Result<(), InputError> {
        let of_step = |spec: &StepSpec| spec.account.as_ref().map(&mut number).transpose();
        self.files = self.specs.iter().map(of_step).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// The steps for a queue pair.
    pub(crate) fn steps(
        &mut self,
        at: At,
        writer: Option<&Writer>,
        is_replay: bool,
    ) -> Result<Steps, InputError> {
        let mut ready = std::mem::take(&mut self.ready).into_iter();
        let mut steps = Vec::new();
        for ((spec, counts), file) in self.specs.iter().zip(&self.counts).zip(&self.files) {
            let selector = match ready.next() {
                Some(selector) => selector,
                None => selector_of(spec)?,
            };
            let account = match (&spec.account, writer, file) {
                (Some(account), Some(writer), Some(file)) => {
                    Some(account.open((writer, *file), at, &counts.flows, is_replay)?)
                }
                _ => None,
            };
            steps.push(Step { selector, account, counts: Arc::clone(counts) });
        }
        Ok(Steps::new(steps))
    }

    fn shown(&self, (port, is_output): At) -> impl Iterator<Item = ShownStep> {
        self.specs.iter().zip(&self.counts).enumerate().map(move |(step, (spec, counts))| {
            let place = Place { port, is_output, step: step + 1, plugin: spec.name() };
            let file = spec.account.as_ref().map(|account| account.file.clone());
            ShownStep { place, file, counts: Arc::clone(counts) }
        })
    }
}

/// The counters of all chains.
pub(crate) fn shown(chains: &BTreeMap<At, Opened>) -> impl Iterator<Item = ShownStep> {
    chains.iter().flat_map(|(at, chain)| chain.shown(*at))
}

/// The lists of a chain in place of their files.
pub(crate) fn read_lists(
    specs: &mut [StepSpec],
    mut read: impl FnMut(&List) -> Result<List, InputError>,
) -> Result<(), InputError> {
    for spec in specs {
        if let Some(SelectorSpec::Prefix(_, list, _) | SelectorSpec::Exact(_, list, _)) = &mut spec.selector {
            *list = read(list)?;
        }
    }
    Ok(())
}

/// A file of flows that a switch has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlowFile {
    pub(crate) path: String,
    pub(crate) format: Format,
}

/// The chains of a switch, and the thread that writes their flows. To be ended after the ports: then the files are whole.
pub struct Inputs {
    chains: BTreeMap<At, Opened>,
    /// The number of a file is its place here.
    files: Vec<FlowFile>,
    /// The lists that were read, by path.
    lists: BTreeMap<String, List>,
    /// Files that no thread writes yet.
    made: Vec<(File, Format)>,
    writer: Option<Arc<Writer>>,
    shown: InputsStatus,
    succession: Option<Arc<Succession>>,
}

impl Inputs {
    /// Reads the lists of chains, then makes the files of their flows.
    ///
    /// # Errors
    /// [`InputError`]; no file is made when a list is wrong.
    pub fn open(plan: Plan) -> Result<Inputs, InputError> {
        let (mut chains, mut lists) = (BTreeMap::new(), BTreeMap::new());
        for (at, planned) in plan.0 {
            let mut specs = planned.chain.steps;
            read_lists(&mut specs, |list| {
                let read = list.read()?;
                if let List::Read(path, _) = &read {
                    lists.insert(path.clone(), read.clone());
                }
                Ok(read)
            })?;
            chains.insert(at, Opened::new(specs, planned.is_of_program)?);
        }
        let (files, made) = make_files(&mut chains)?;
        let shown = InputsStatus::of(shown(&chains).collect());
        Ok(Inputs { chains, files, lists, made, writer: None, shown, succession: None })
    }

    /// Starts the thread that writes flows, if there are accounts.
    ///
    /// # Errors
    /// [`InputError::System`].
    pub fn start(&mut self) -> Result<(), InputError> {
        if !self.made.is_empty() {
            let started = Writer::start(std::mem::take(&mut self.made));
            let writer = started.map_err(|error| InputError::system("start a thread", error))?;
            self.writer = Some(Arc::new(writer));
        }
        Ok(())
    }

    /// From now on queue pairs are wrapped such that programs which take over may bring chains of their own, and gives what
    /// prepares these. The chains are started before.
    ///
    /// # Errors
    /// [`InputError::System`]: there is no thread to be had.
    pub fn expect_programs(&mut self) -> Result<ProgramChains, InputError> {
        let fixed: BTreeSet<At> =
            self.chains.iter().filter(|(_, chain)| !chain.is_of_program).map(|(at, _)| *at).collect();
        let files_of = |chain: &Opened| chain.files.iter().flatten().copied().collect::<Vec<_>>();
        let fixed_chains = self.chains.values().filter(|chain| !chain.is_of_program);
        let known = Known {
            taken: fixed_chains.flat_map(files_of).collect(),
            files: self.files.clone(),
            lists: std::mem::take(&mut self.lists),
            shown: shown(&self.chains).filter(|step| fixed.contains(&step.place.at())).collect(),
            fixed,
        };
        let succession = Succession::start(known, self.writer.clone(), self.shown.clone());
        let succession = succession.map_err(|error| InputError::system("start a thread", error))?;
        self.succession = Some(Arc::clone(&succession));
        Ok(ProgramChains(succession))
    }

    /// A queue pair of a port with the port's chains; the pair itself where there are none and none can come.
    ///
    /// # Errors
    /// [`InputError`].
    pub fn wrap(&mut self, port: u32, pair: Box<dyn QueuePair>) -> Result<Box<dyn QueuePair>, InputError> {
        let is_replay = pair.time_source() == TimeSource::Simulated;
        let handover = self.succession.as_ref().map(|succession| succession.handover(port, is_replay));
        let mut steps = |is_output| {
            let at = (port, is_output);
            let chain = self.chains.get_mut(&at);
            chain.map(|chain| chain.steps(at, self.writer.as_deref(), is_replay)).transpose()
        };
        let (input, output) = (steps(false)?, steps(true)?);
        if input.is_none() && output.is_none() && handover.is_none() {
            return Ok(pair);
        }
        Ok(Box::new(ChainedPort::new(pair, input, output, handover)))
    }

    /// The counters of all steps, for another thread.
    pub fn shown(&self) -> InputsStatus {
        self.shown.clone()
    }

    /// Waits until the files of flows are whole, and says what all steps have counted. The ports are to be gone, and whoever
    /// brings programs.
    pub fn end(mut self) -> Vec<StepStatus> {
        let shown = self.shown();
        if let Some(succession) = self.succession.take() {
            succession.end();
        }
        drop(self);
        shown.now()
    }
}

type Made = (Vec<FlowFile>, Vec<(File, Format)>);

fn make_files(chains: &mut BTreeMap<At, Opened>) -> Result<Made, InputError> {
    let (mut known, mut files, mut made) = (Vec::new(), Vec::new(), Vec::new());
    for chain in chains.values_mut() {
        chain.set_files(|account| {
            let path = &account.file;
            let failed = |error| InputError::system(format!("write {path}"), error);
            let file = File::create(path).map_err(failed)?;
            let about = file.metadata().map_err(failed)?;
            let identity = (about.dev(), about.ino());
            if about.is_file() && known.contains(&identity) {
                return Err(InputError::Port(format!("{path} is the file of two accounts")));
            }
            known.push(identity);
            made.push((file, account.format));
            files.push(FlowFile { path: path.clone(), format: account.format });
            Ok(files.len() - 1)
        })?;
    }
    Ok((files, made))
}

fn selector_of(spec: &StepSpec) -> Result<Option<Selector>, InputError> {
    spec.selector.as_ref().map(|selector| Selector::open(selector, spec.account.is_some())).transpose()
}
