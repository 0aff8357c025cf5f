//! The chains of all ports of a switch.

use crate::chain::{Chain, SelectorSpec, StepSpec};
use crate::error::{InputError, TextError};
use crate::flows::{Format, Writer};
use crate::port::{ChainedPort, Step, Steps};
use crate::selector::Selector;
use crate::status::{InputsStatus, Place, ShownStep, StepCounts, StepStatus};
use millrace_drivers::{QueuePair, TimeSource};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// A chain and where it stands: `0:filter "tcp"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortChain {
    /// The port.
    pub port: u32,
    /// Whether what the port sends passes it; else what it receives.
    pub is_output: bool,
    /// The chain.
    pub chain: Chain,
}

impl PortChain {
    /// Reads `PORT:CHAIN`.
    ///
    /// # Errors
    /// [`TextError`], with the place.
    pub fn parse(text: &str, is_output: bool) -> Result<PortChain, TextError> {
        let wrong =
            || TextError::new(text, 0..0, "`PORT:CHAIN` was expected, as in 0:filter \"udp port 53\"");
        let (number, chain) = text.split_once(':').ok_or_else(wrong)?;
        // A plus sign would parse as a number too.
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        let port = number.parse().ok().filter(|_| is_number).ok_or_else(wrong)?;
        let chain = chain.parse().map_err(|error: TextError| error.within(text, number.len() + 1))?;
        Ok(PortChain { port, is_output, chain })
    }
}

/// The chain of a port and direction, with all that was opened for it.
struct Opened {
    specs: Vec<StepSpec>,
    /// Selectors for the first queue pair; others make theirs.
    ready: Vec<Option<Selector>>,
    counts: Vec<Arc<StepCounts>>,
    /// The number of the file of each step with an account.
    files: Vec<Option<usize>>,
}

/// The chains of a switch, and the thread that writes their flows. To be dropped after the ports: then the files are whole.
pub struct Inputs {
    chains: BTreeMap<(u32, bool), Opened>,
    files: Vec<(File, Format)>,
    writer: Option<Writer>,
}

impl Inputs {
    /// Reads the lists of chains, then makes the files of their flows.
    ///
    /// # Errors
    /// [`InputError`]; no file is made when a list is wrong.
    pub fn open(chains: Vec<PortChain>) -> Result<Inputs, InputError> {
        let mut opened = BTreeMap::new();
        for PortChain { port, is_output, chain } in chains {
            let mut specs = chain.steps;
            for spec in &mut specs {
                if let Some(SelectorSpec::Prefix(_, list, _) | SelectorSpec::Exact(_, list, _)) =
                    &mut spec.selector
                {
                    *list = list.read()?;
                }
            }
            let ready = specs.iter().map(selector_of).collect::<Result<_, _>>()?;
            let counts = specs.iter().map(|_| Arc::default()).collect();
            let chain = Opened { specs, ready, counts, files: Vec::new() };
            if opened.insert((port, is_output), chain).is_some() {
                let direction = if is_output { "output" } else { "input" };
                return Err(InputError::Port(format!("port {port} has two chains for its {direction}")));
            }
        }
        let mut inputs = Inputs { chains: opened, files: Vec::new(), writer: None };
        inputs.make_files()?;
        Ok(inputs)
    }

    fn make_files(&mut self) -> Result<(), InputError> {
        let mut known = Vec::new();
        for chain in self.chains.values_mut() {
            for spec in &chain.specs {
                let Some(account) = &spec.account else {
                    chain.files.push(None);
                    continue;
                };
                let path = &account.file;
                let failed = |error| InputError::system(format!("write {path}"), error);
                let file = File::create(path).map_err(failed)?;
                let about = file.metadata().map_err(failed)?;
                let identity = (about.dev(), about.ino());
                if about.is_file() && known.contains(&identity) {
                    return Err(InputError::Port(format!("{path} is the file of two accounts")));
                }
                known.push(identity);
                chain.files.push(Some(self.files.len()));
                self.files.push((file, account.format));
            }
        }
        Ok(())
    }

    /// Starts the thread that writes flows, if there are accounts.
    ///
    /// # Errors
    /// [`InputError::System`].
    pub fn start(&mut self) -> Result<(), InputError> {
        if !self.files.is_empty() && self.writer.is_none() {
            let started = Writer::start(std::mem::take(&mut self.files));
            self.writer = Some(started.map_err(|error| InputError::system("start a thread", error))?);
        }
        Ok(())
    }

    /// A queue pair of a port with the port's chains; the pair itself where there are none.
    ///
    /// # Errors
    /// [`InputError`].
    pub fn wrap(&mut self, port: u32, pair: Box<dyn QueuePair>) -> Result<Box<dyn QueuePair>, InputError> {
        let is_replay = pair.time_source() == TimeSource::Simulated;
        let input = self.steps(port, false, is_replay)?;
        let output = self.steps(port, true, is_replay)?;
        if input.is_none() && output.is_none() {
            return Ok(pair);
        }
        Ok(Box::new(ChainedPort::new(pair, input, output)))
    }

    fn steps(&mut self, port: u32, is_output: bool, is_replay: bool) -> Result<Option<Steps>, InputError> {
        let Some(chain) = self.chains.get_mut(&(port, is_output)) else { return Ok(None) };
        let mut ready = std::mem::take(&mut chain.ready).into_iter();
        let mut steps = Vec::new();
        for ((spec, counts), file) in chain.specs.iter().zip(&chain.counts).zip(&chain.files) {
            let selector = match ready.next() {
                Some(selector) => selector,
                None => selector_of(spec)?,
            };
            let account = match (&spec.account, &self.writer, file) {
                (Some(account), Some(writer), Some(file)) => {
                    Some(account.open((writer, *file), (port, is_output), &counts.flows, is_replay)?)
                }
                _ => None,
            };
            steps.push(Step { selector, account, counts: Arc::clone(counts) });
        }
        Ok(Some(Steps::new(steps)))
    }

    /// The counters of all steps, for another thread.
    pub fn shown(&self) -> InputsStatus {
        let of_chain = |((port, is_output), chain): (&(u32, bool), &Opened)| -> Vec<ShownStep> {
            let of_step = |(at, (spec, counts)): (usize, (&StepSpec, &Arc<StepCounts>))| {
                let place = Place { port: *port, is_output: *is_output, step: at + 1, plugin: spec.name() };
                let file = spec.account.as_ref().map(|account| account.file.clone());
                ShownStep { place, file, counts: Arc::clone(counts) }
            };
            chain.specs.iter().zip(&chain.counts).enumerate().map(of_step).collect()
        };
        InputsStatus(self.chains.iter().flat_map(of_chain).collect())
    }

    /// Waits until the files of flows are whole, and says what all steps have counted. The ports are to be gone.
    pub fn end(self) -> Vec<StepStatus> {
        let shown = self.shown();
        drop(self);
        shown.now()
    }
}

fn selector_of(spec: &StepSpec) -> Result<Option<Selector>, InputError> {
    spec.selector.as_ref().map(|selector| Selector::open(selector, spec.account.is_some())).transpose()
}
