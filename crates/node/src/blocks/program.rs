//! Runs a P4 program.

use super::Out;
use super::register::half;
use super::shared::{Place, SharedCounts, SharedRegisters};
use crate::interface::Item;
use crate::limits::MAX_FRAME;
use crate::model::ProgramSpec;
use crate::split::{LinkCounts, SplitEngine};
use millrace_compile::{Options, Source, Standard, check};
use millrace_control::entries::load_if;
use millrace_dataplane::{EngineKind, Switch, SwitchConfig};
use millrace_pipeline::Program as Ir;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Reads the text of a file that a block names.
pub type Load<'l> = &'l mut dyn FnMut(&Path) -> Result<String, String>;

/// Why a block has no program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoProgram(pub(crate) String);

impl fmt::Display for NoProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoProgram {}

/// A program with its tables.
#[derive(Debug)]
pub struct Program {
    switch: Switch,
    spec: ProgramSpec,
    /// Of a program in hardware.
    link: Option<Arc<Mutex<LinkCounts>>>,
    /// Of a program that shares a memory.
    shared: Option<SharedRegisters>,
    frames: u64,
    sent: u64,
    dropped: u64,
}

impl Program {
    /// A program in an engine, with its entries.
    ///
    /// # Errors
    /// A file cannot be read, or what is in it is wrong.
    pub fn new(spec: &ProgramSpec, engine: EngineKind, load: Load<'_>) -> Result<Program, NoProgram> {
        let program = compile(&spec.program, load)?;
        let config = SwitchConfig { engine, ..SwitchConfig::default() };
        let switch = Switch::new(program, config);
        let switch = switch.map_err(|error| NoProgram(format!("{}: {error}", spec.program.display())))?;
        Program::with(spec, switch, load)
    }

    /// As [`Program::new`], with the registers of the block that are in a memory.
    ///
    /// # Errors
    /// As there; the registers are not the program's, or the memory is not there.
    pub(crate) fn sharing(
        spec: &ProgramSpec,
        engine: EngineKind,
        place: &Place,
        load: Load<'_>,
    ) -> Result<Program, NoProgram> {
        let program = Program::new(spec, engine, load)?;
        let names = spec.shared.as_ref().map_or(&[][..], |shared| &shared.registers);
        let shared = SharedRegisters::new(program.switch.program(), names, place).map_err(NoProgram)?;
        Ok(Program { shared: Some(shared), ..program })
    }

    /// A program in hardware by itself, which is simulated and served over a host link, with the tables that the block has in software.
    ///
    /// # Errors
    /// A file cannot be read, what is in it is wrong, or it cannot be hardware.
    pub fn in_hardware(spec: &ProgramSpec, load: Load<'_>) -> Result<Program, NoProgram> {
        let program = compile(&spec.program, load)?;
        let failed = |why: String| NoProgram(format!("{}: {why}", spec.program.display()));
        let engine = SplitEngine::new(&program, &spec.software).map_err(|error| failed(error.to_string()))?;
        Program::over(spec, &program, engine, load)
    }

    /// As [`Program::in_hardware`], with an engine of the caller.
    ///
    /// # Errors
    /// As there.
    pub fn over(
        spec: &ProgramSpec,
        program: &Arc<Ir>,
        engine: SplitEngine,
        load: Load<'_>,
    ) -> Result<Program, NoProgram> {
        let (link, capacities) = (engine.counts(), engine.capacities());
        let switch = Switch::with_engine(Arc::clone(program), SwitchConfig::default(), Box::new(engine));
        let switch = switch.map_err(|error| NoProgram(format!("{}: {error}", spec.program.display())))?;
        for (table, entries) in capacities {
            switch.state().tables().set_capacity(table, u32::try_from(entries).unwrap_or(u32::MAX));
        }
        Ok(Program { link: Some(link), ..Program::with(spec, switch, load)? })
    }

    /// A switch with the entries of a block.
    fn with(spec: &ProgramSpec, mut switch: Switch, load_file: Load<'_>) -> Result<Program, NoProgram> {
        if let Some(path) = &spec.entries {
            let text = load_file(path).map_err(|why| NoProgram(format!("{}: {why}", path.display())))?;
            load_entries(&mut switch, path, &text)?;
        }
        Ok(Program { switch, spec: spec.clone(), link: None, shared: None, frames: 0, sent: 0, dropped: 0 })
    }

    /// A frame comes in by a port of the program; what leaves, by output. What leaves by a port that is no output is lost.
    pub(crate) fn pass(&mut self, port: u32, item: Item, now_ns: u64, out: &mut Out) {
        self.frames += 1;
        if let Some(shared) = &mut self.shared
            && !shared.begin(self.switch.state_mut())
        {
            return;
        }
        let outcome = self.switch.inject(port, &item.bytes, now_ns);
        if let Some(shared) = &mut self.shared
            && !shared.end(self.switch.state())
        {
            return;
        }
        self.dropped += outcome.drops.len() as u64;
        for sent in outcome.sent {
            let is_manager = self.spec.cpu_port == Some(sent.port);
            let output = match sent.port {
                _ if is_manager => self.spec.ports as usize,
                port if port < self.spec.ports => port as usize,
                _ => {
                    self.dropped += 1;
                    continue;
                }
            };
            if sent.bytes.len() > MAX_FRAME {
                self.dropped += 1;
                continue;
            }
            self.sent += 1;
            let mut facts = item.facts;
            facts.class = sent.service.class;
            out.push((output, Item { bytes: sent.bytes, facts }));
        }
    }

    /// What was counted of the link of a program in hardware.
    pub fn link_counts(&self) -> LinkCounts {
        self.link
            .as_ref()
            .map_or_else(LinkCounts::default, |link| *link.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was counted of the memory that it shares.
    pub fn shared_counts(&self) -> SharedCounts {
        self.shared.as_ref().map_or_else(SharedCounts::default, SharedRegisters::counts)
    }

    /// Runs commands on it, all or none; gives what they show.
    ///
    /// # Errors
    /// The first that is refused, with its line.
    pub fn command(&mut self, text: &str) -> Result<String, NoProgram> {
        command(&mut self.switch, text, |_| Ok(()))
    }

    /// The switch, for its tables and counters.
    pub fn switch(&self) -> &Switch {
        &self.switch
    }

    /// The switch, to write to its tables.
    pub fn switch_mut(&mut self) -> &mut Switch {
        &mut self.switch
    }

    pub(crate) fn read(&self, word: u32) -> u32 {
        match word {
            0 | 1 => half(self.frames, word),
            2 | 3 => half(self.sent, word),
            4 | 5 => half(self.dropped, word),
            6..12 => {
                let LinkCounts { frames, tables, lost, .. } = self.link_counts();
                half([frames, tables, lost][(word as usize - 6) / 2], word)
            }
            12..18 => {
                let SharedCounts { frames, waits, lost } = self.shared_counts();
                half([frames, waits, lost][(word as usize - 12) / 2], word)
            }
            _ => 0,
        }
    }
}

/// Runs the commands of a block's entries.
///
/// # Errors
/// One is refused.
pub(crate) fn load_entries(switch: &mut Switch, path: &Path, text: &str) -> Result<(), NoProgram> {
    let loaded = command(switch, text, |_| Ok(()));
    loaded.map(|_| ()).map_err(|why| NoProgram(format!("{}:{why}", path.display())))
}

/// Runs commands on the program of a block, all or none; gives what they show. `holds` is asked whether a device has room for its groups.
///
/// # Errors
/// The first that is refused, with its line.
pub(crate) fn command(
    switch: &mut Switch,
    text: &str,
    holds: impl FnOnce(&Switch) -> Result<(), String>,
) -> Result<String, NoProgram> {
    let loaded = load_if(switch, text, holds).map_err(|refused| {
        let first = refused.first();
        NoProgram(first.map_or(String::new(), |first| format!("{}: {}", first.line(text), first.message)))
    })?;
    Ok(loaded.text)
}

/// Compiles the source of a block.
///
/// # Errors
/// It cannot be read, or is wrong.
pub fn compile(path: &Path, load: Load<'_>) -> Result<Arc<Ir>, NoProgram> {
    let name = path.display().to_string();
    let text = load(path).map_err(|why| NoProgram(format!("{name}: {why}")))?;
    let checked = check(Source::Text(&name, &text), Standard::of(path, &text), &Options::default());
    if let Some(first) = checked.findings.iter().find(|finding| finding.is_error()) {
        return Err(NoProgram(checked.render(first)));
    }
    let program = checked.lower();
    program.map_err(|error| NoProgram(format!("{name}: {error}")))
}
