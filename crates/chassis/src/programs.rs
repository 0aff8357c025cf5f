//! Another program for a running switch, brought by somebody who is no client of a P4Runtime server; the server, if there
//! is one, goes on with it.

use crate::carried::add_carried;
use crate::making::Making;
use crate::modes::Modes;
use crate::pipeline::Pipeline;
use crate::turns::Turns;
use millrace_compile::check_port;
use millrace_dataplane::{
    Cancel, Control, EngineKind, Keep, PortId, Request, RequestError, Switch, SwitchError,
};
use millrace_swap_report::Report;
use tokio::sync::{mpsc, oneshot};
use tracing::info;

/// Most programs that wait for the server to take them.
pub const MAX_ORDERS: usize = 8;

/// Brings programs to a running switch.
#[derive(Clone, Debug)]
pub struct Programs {
    making: Making,
    control: Control,
    /// The server that has to know of them.
    server: Option<mpsc::Sender<Order>>,
    /// One program is made at a time, those of the server's clients counted.
    turns: Turns,
}

/// A program that may take over, with objects of its own, to which may be written before.
#[derive(Debug)]
pub struct Candidate {
    pipeline: Pipeline,
    /// The switch that runs the program as soon as it has taken over.
    pub switch: Switch,
}

/// A program that a server shall let forward, as if one of its clients had brought it.
#[derive(Debug)]
pub struct Order {
    candidate: Candidate,
    keep: Option<Keep>,
    answer: oneshot::Sender<Result<Report, String>>,
}

/// The programs that others than its clients bring to a server.
pub type Orders = mpsc::Receiver<Order>;

impl Order {
    /// The program, how much of what the one that runs holds goes on under it (none: nothing), and where to say what became
    /// of it.
    pub fn into_parts(self) -> (Candidate, Option<Keep>, OrderAnswer) {
        (self.candidate, self.keep, OrderAnswer(self.answer))
    }
}

/// Where a server says what became of an order.
#[derive(Debug)]
pub struct OrderAnswer(oneshot::Sender<Result<Report, String>>);

impl OrderAnswer {
    /// Says it.
    pub fn give(self, done: Result<Report, String>) {
        // Whoever asked may have gone.
        let _ = self.0.send(done);
    }
}

impl Programs {
    /// For a switch without a server that has to know of its programs.
    pub fn new(making: Making, control: Control) -> Programs {
        Programs { making, control, server: None, turns: Turns::default() }
    }

    /// For a switch whose server takes the orders: it alone lets programs forward.
    pub fn of_server(making: Making, control: Control) -> (Programs, Orders) {
        let (orders, taken) = mpsc::channel(MAX_ORDERS);
        (Programs { making, control, server: Some(orders), turns: Turns::default() }, taken)
    }

    /// The turns of those who make programs for the switch.
    pub fn turns(&self) -> Turns {
        self.turns.clone()
    }

    /// The mode of the switch, if it has modes.
    pub fn modes(&self) -> Option<&Modes> {
        self.making.modes.as_ref()
    }

    /// Reaches the worker of the switch.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Whether the program that runs can tell the port of a number from others.
    ///
    /// # Errors
    /// It cannot, or the switch has ended.
    pub fn check_port(&self, port: PortId) -> Result<(), String> {
        let now = self.control.ask(Request::Look).map_err(|error| error.to_string())?;
        check_port(&now.program, port)
    }

    /// Makes a program from an image, or from the text of a P4_16 program. Packets go on meanwhile. One program is made at a
    /// time; this waits for its turn.
    ///
    /// # Errors
    /// Why it is no program, or none that can run; [`crate::MAX_WAITING_PROGRAMS`] wait already.
    pub fn prepare(&self, config: &[u8]) -> Result<Candidate, String> {
        self.prepare_for(config, &Cancel::default())
    }

    /// As [`Programs::prepare`], for as long as somebody waits for it.
    ///
    /// # Errors
    /// As there; `cancel` says that nobody waits any more.
    pub fn prepare_for(&self, config: &[u8], cancel: &Cancel) -> Result<Candidate, String> {
        self.prepare_on(config, self.making.engine, cancel)
    }

    /// As [`Programs::prepare_for`], for another engine than that of the programs that clients bring.
    ///
    /// # Errors
    /// As there.
    pub fn prepare_on(
        &self,
        config: &[u8],
        engine: EngineKind,
        cancel: &Cancel,
    ) -> Result<Candidate, String> {
        let making = Making { engine, ..self.making.clone() };
        let turn = self.turns.take(cancel).map_err(|error| error.message)?;
        let running = self.control.ask(Request::Look).map_err(|error| error.to_string())?;
        let pipeline = making.pipeline(config, cancel).map_err(|error| error.message)?;
        let switch = making.switch(&pipeline, &running, false, cancel).map_err(|error| error.message)?;
        drop(turn);
        match cancel.settle() {
            true => Ok(Candidate { pipeline, switch }),
            false => Err(SwitchError::Cancelled.to_string()),
        }
    }

    /// Lets a program forward in place of the one that runs, between two batches; without `keep` with what was written to
    /// it alone, else with what the other one holds, if nothing was written to it. Not to be called where tokio runs.
    ///
    /// # Errors
    /// Why the one that runs goes on.
    pub fn start(&self, candidate: Candidate, keep: Option<Keep>) -> Result<Report, String> {
        let gone = |_| RequestError.to_string();
        if let Some(server) = &self.server {
            let (answer, answered) = oneshot::channel();
            server.blocking_send(Order { candidate, keep, answer }).map_err(|_| gone(()))?;
            return answered.blocking_recv().map_err(|_| gone(()))?;
        }
        let name = candidate.pipeline.program.name.clone();
        let mut next = candidate.switch;
        let mut report = Report::default();
        match keep {
            None => {
                // Code that fits less well is right too.
                let _ = next.fit_code();
                let taken = self.control.ask(|to| Request::TakeOver(Box::new(next), to));
                drop(taken.map_err(|_| gone(()))?.map_err(|error| error.to_string())?);
            }
            Some(keep) => {
                let swapped = self.control.swap(next, keep).map_err(|failed| failed.error.to_string())?;
                add_carried(&mut report, swapped.migration.report());
            }
        }
        info!(program = name, "program set");
        Ok(report)
    }
}

impl Candidate {
    /// The program with what controllers are told of it, and the switch that runs it.
    pub fn into_parts(self) -> (Pipeline, Switch) {
        (self.pipeline, self.switch)
    }

    /// The image, or the text, that it was made from.
    pub fn config(&self) -> &[u8] {
        &self.pipeline.device_config
    }
}
