//! Another program for a running switch, by request of somebody other than a P4Runtime client; the server, if there is
//! one, goes on with it.

use crate::Pipeline;
use crate::compile::compile;
use crate::device::Device;
use crate::forwarding::Loaded;
use crate::refusal::Refusal;
use crate::report::Report;
use crate::service::{Kept, install};
use crate::turns::Turns;
use millrace_compile::check_port;
use millrace_dataplane::{
    Cancel, Control, EngineKind, Keep, Moment, PortId, Request, Switch, SwitchConfig, SwitchError,
};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

/// Most programs that wait for the server to take them.
const MAX_ORDERS: usize = 8;

/// How programs that are brought to a running switch are made to run.
#[derive(Clone, Copy, Debug)]
pub struct Making {
    /// What runs them.
    pub engine: EngineKind,
    /// Whether they count the lookups of their tables.
    pub count_lookups: bool,
    /// The port number that means drop to them; none: as their architecture has it.
    pub drop_port: Option<u32>,
}

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

/// A program that the server shall take.
#[derive(Debug)]
pub(crate) struct Order {
    candidate: Candidate,
    kept: Kept,
    answer: oneshot::Sender<Result<Report, String>>,
}

impl Programs {
    /// For a switch without a P4Runtime server; with one, [`Server::programs`] has them.
    ///
    /// [`Server::programs`]: crate::Server::programs
    pub fn new(making: Making, control: Control) -> Programs {
        Programs { making, control, server: None, turns: Turns::default() }
    }

    pub(crate) fn of_server(making: Making, control: Control) -> (Programs, mpsc::Receiver<Order>) {
        let (orders, taken) = mpsc::channel(MAX_ORDERS);
        (Programs { making, control, server: Some(orders), turns: Turns::default() }, taken)
    }

    pub(crate) fn turns(&self) -> Turns {
        self.turns.clone()
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
        let turn = self.turns.take(cancel).map_err(|refusal| refusal.message)?;
        let running = self.control.ask(Request::Look).map_err(|error| error.to_string())?;
        let pipeline = self.making.pipeline(config, None, cancel).map_err(|refusal| refusal.message)?;
        let switch =
            self.making.switch(&pipeline, &running, false, cancel).map_err(|refusal| refusal.message)?;
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
        let gone = |_| millrace_dataplane::RequestError.to_string();
        if let Some(server) = &self.server {
            let (answer, answered) = oneshot::channel();
            let kept = keep.map_or(Kept::Nothing, Kept::Objects);
            server.blocking_send(Order { candidate, kept, answer }).map_err(|_| gone(()))?;
            return answered.blocking_recv().map_err(|_| gone(()))?;
        }
        let name = candidate.pipeline.program.name.clone();
        let mut next = candidate.switch;
        let mut report = Report::default();
        match keep {
            None => {
                // Code that fits less well is right too.
                let _ = next.fit_code();
                drop(self.control.ask(|to| Request::TakeOver(Box::new(next), to)).map_err(|_| gone(()))?);
            }
            Some(keep) => {
                let swapped = self.control.swap(next, keep).map_err(|failed| failed.error.to_string())?;
                report.add(swapped.migration.report());
            }
        }
        info!(program = name, "program set");
        Ok(report)
    }
}

impl Candidate {
    /// The image, or the text, that it was made from.
    pub fn config(&self) -> &[u8] {
        &self.pipeline.device_config
    }
}

impl Making {
    /// The program of a device config, as it runs here.
    pub(crate) fn pipeline(
        &self,
        config: &[u8],
        given: Option<&crate::proto::config::P4Info>,
        cancel: &Cancel,
    ) -> Result<Pipeline, Refusal> {
        let mut pipeline = compile(config, given, cancel)?;
        if let Some(port) = self.drop_port {
            pipeline.set_drop_port(port).map_err(Refusal::invalid)?;
        }
        Ok(pipeline)
    }

    /// A switch that runs it, made to take over from the one with these tables; with `at_once` for that alone, and to keep
    /// what there is.
    pub(crate) fn switch(
        &self,
        pipeline: &Pipeline,
        running: &Moment,
        at_once: bool,
        cancel: &Cancel,
    ) -> Result<Switch, Refusal> {
        if let Some(port) = running.largest_port {
            check_port(&pipeline.program, port).map_err(Refusal::invalid)?;
        }
        let Making { engine, count_lookups, .. } = *self;
        let config =
            SwitchConfig { engine, count_lookups, cancel: cancel.clone(), ..SwitchConfig::default() };
        let make = if at_once { Switch::successor } else { Switch::alongside };
        let switch =
            make(Arc::clone(&pipeline.program), config, &running.tables).map_err(|error| match error {
                SwitchError::Cancelled => Refusal::new(tonic::Code::Cancelled, error.to_string()),
                error => Refusal::invalid(format!("the device config cannot be realized: {error}")),
            })?;
        if let Some(reason) = switch.without_code() {
            warn!(program = pipeline.program.name, reason, "the interpreter runs the program");
        }
        Ok(switch)
    }
}

/// Takes the programs that others bring, as if a client had.
pub(crate) async fn take_orders(device: Arc<Device>, mut orders: mpsc::Receiver<Order>) {
    while let Some(Order { candidate, kept, answer }) = orders.recv().await {
        let Candidate { pipeline, switch } = candidate;
        let loaded = Loaded::waiting(pipeline, None, None, switch);
        let done = install(&device, loaded, kept).await;
        // Whoever asked may have gone.
        let _ =
            answer.send(done.map(Option::unwrap_or_default).map_err(|status| status.message().to_owned()));
    }
}
