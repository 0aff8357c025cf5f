//! A switch inside a Rust program: `programs/l2_switch.p4` over two or more ports, with its control plane in the same process.
//!
//! It shows the five steps that every program with a switch inside goes through:
//!
//! 1. text to verified program ([`compile`]),
//! 2. program to [`Switch`], with an engine and a configuration,
//! 3. entries, as bmv2's runtime commands,
//! 4. ports and a [`Worker`], which runs on a thread of its own,
//! 5. a control plane: it hears [`Notice`]s, asks through a [`Control`], and writes tables, while packets pass.
//!
//! A program without live ports needs the first three and [`Switch::inject`], which `main` begins with.
//!
//!     cargo run -p millrace-control --example learning_switch

use millrace_compile::{Checked, Options, Source, Standard, check};
use millrace_control::entries;
use millrace_dataplane::{
    Control, EngineKind, Moment, Notice, PortId, Request, Summary, Switch, SwitchConfig, Worker,
};
use millrace_drivers::QueuePair;
use millrace_pipeline::semantics::Value;
use millrace_pipeline::{ActionCall, Bits, EntryMatch, Program, TableId};
use millrace_state::{EntryWrite, ObjectKind, Target, find_named};
use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

/// Most stations that this control plane learns: what hosts may make it remember has an end.
pub const MAX_STATIONS: usize = 4096;

/// Step 1: a verified program, or what is wrong with the text, with lines and carets.
///
/// # Errors
/// What was found.
pub fn compile(path: &Path) -> Result<Arc<Program>, String> {
    let checked = check(Source::Path(path), Standard::P4_16, &Options::default());
    if checked.has_errors() {
        return Err(found(&checked));
    }
    checked.lower().map_err(|error| error.to_string())
}

fn found(checked: &Checked) -> String {
    checked.findings.iter().map(|finding| checked.render(finding)).collect()
}

/// Steps 2 and 3: a switch with machine code where the machine has a code generator, that floods to these ports.
///
/// # Errors
/// The switch cannot be made, or the entries do not fit the program.
pub fn switch(program: Arc<Program>, ports: &[PortId]) -> Result<Switch, Box<dyn Error>> {
    let config = SwitchConfig { engine: EngineKind::Fastest, ..SwitchConfig::default() };
    let mut switch = Switch::new(program, config)?;
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    let flood = format!("mc_mgrp_create 1\nmc_node_create 0 {}\nmc_node_associate 1 0\n", ports.join(" "));
    load(&mut switch, &flood)?;
    Ok(switch)
}

/// Loads entries; all of them or none.
fn load(switch: &mut Switch, commands: &str) -> Result<(), String> {
    let refused = match entries::load(switch, commands) {
        Ok(_) => return Ok(()),
        Err(refused) => refused,
    };
    Err(refused.iter().map(|one| format!("line {}: {}\n", one.line(commands), one.message)).collect())
}

/// Step 4: a switch that runs.
pub struct Running {
    /// A handle for other threads.
    pub control: Control,
    /// What the switch tells.
    pub notices: Receiver<Notice>,
    worker: JoinHandle<Summary>,
}

impl Running {
    /// Starts a worker over these ports.
    ///
    /// # Errors
    /// [`millrace_dataplane::RunError`].
    pub fn start(
        switch: Switch,
        ports: Vec<(PortId, Box<dyn QueuePair>)>,
    ) -> Result<Running, Box<dyn Error>> {
        let mut worker = Worker::new(switch, ports)?;
        let (control, notices) = (worker.control(), worker.notices());
        Ok(Running { control, notices, worker: std::thread::spawn(move || worker.run()) })
    }

    /// Ends the worker after the round that it is in, and gives what it counted and the switch itself.
    pub fn stop(self) -> std::thread::Result<Summary> {
        self.control.stop();
        self.worker.join()
    }
}

/// An entry for the address of a station.
struct Station {
    table: &'static str,
    action: &'static str,
    args: Vec<Bits>,
}

impl Station {
    /// The table, and the entry, unless the program has no such table or action.
    fn entry(self, program: &Program, address: u64) -> Option<(TableId, EntryWrite)> {
        let tables = program.tables.iter().map(|(id, table)| (id, table.name.as_str()));
        let id = find_named(ObjectKind::Table, self.table, tables).ok()?;
        let actions = program.tables[id].actions.iter().enumerate();
        let named = actions.map(|(at, listed)| (at, program.actions[listed.action].name.as_str()));
        let action = find_named(ObjectKind::Action, self.action, named).ok()?;
        let entry = EntryWrite {
            matches: vec![EntryMatch::Exact(Bits::new(48, address.into()))],
            priority: 0,
            target: Target::Action(ActionCall { action, args: self.args }),
            idle_timeout_ns: 0,
        };
        Some((id, entry))
    }
}

/// Step 5: a control plane that learns where stations are.
#[derive(Default)]
pub struct Learning {
    ports: HashMap<u64, PortId>,
}

impl Learning {
    /// Takes what the switch tells. A digest of the program is an address and the port that it was seen on.
    ///
    /// # Errors
    /// The switch has ended, or refuses an entry.
    pub fn hear(&mut self, notice: Notice, control: &Control) -> Result<(), Box<dyn Error>> {
        let Notice::Digest { message, .. } = notice else { return Ok(()) };
        let [Value::Bits(address), Value::Bits(port)] = &message.values[..] else { return Ok(()) };
        let (Some(address), Some(port)) = (address.to_u64(), port.to_u64()) else { return Ok(()) };
        let port = PortId::try_from(port)?;
        // One burst can tell the same address many times before the first entry is there.
        if self.ports.contains_key(&address) || self.ports.len() >= MAX_STATIONS {
            return Ok(());
        }
        let Moment { program, tables, now_ns, .. } = control.ask(Request::Look)?;
        let source = Station { table: "smac", action: "NoAction", args: Vec::new() };
        let port_bits = Bits::new(9, port.into());
        let destination = Station { table: "dmac", action: "forward", args: vec![port_bits] };
        // No packet comes in until it is dropped: the next one finds both entries.
        let _pause = control.ask(Request::Pause)?;
        let mut tables = tables.lock();
        for station in [source, destination] {
            let (table, entry) = station.entry(&program, address).ok_or("no program that learns")?;
            tables.insert(table, &entry, now_ns)?;
        }
        self.ports.insert(address, port);
        Ok(())
    }

    /// The port of a station.
    pub fn port_of(&self, address: u64) -> Option<PortId> {
        self.ports.get(&address).copied()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
    let program = compile(&programs.join("l2_switch.p4"))?;
    let mut switch = switch(program, &[1, 2, 3])?;
    // From station 2 to station 1, which nobody knows yet.
    let mut frame = [0; 60];
    frame[5] = 1;
    frame[11] = 2;
    let outcome = switch.inject(2, &frame, 0);
    println!("it leaves by {:?}", outcome.sent.iter().map(|sent| sent.port).collect::<Vec<_>>());
    println!("the control plane hears {:?}", outcome.digests);
    load(&mut switch, "table_add dmac forward 0x1 => 3\n")?;
    let outcome = switch.inject(2, &frame, 0);
    println!("it leaves by {:?}", outcome.sent.iter().map(|sent| sent.port).collect::<Vec<_>>());
    Ok(())
}
