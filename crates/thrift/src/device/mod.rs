//! The device that clients see: a running switch, with the names, handles and codes of bmv2.

mod codes;
mod entries;
mod handles;
mod learning;
mod loaded;
mod management;
mod notices;
mod ports;
mod profiles;
mod programs;
mod replication;
mod saved;
mod stateful;
mod tables;
mod values;

use crate::answer::Gone;
pub use ports::{PortMaker, PortName};

use crate::guard::Guard;
use crate::notify::Publisher;
use loaded::{Loaded, Running};
use millrace_chassis::Programs;
use millrace_dataplane::{Answered, Moment, ObjectError, ObjectRequest, Reply, Request, answer};
use millrace_pipeline::Program;
use millrace_state::{ObjectWrite, WriteError};
use millrace_thrift_api::CallError;
use notices::Notices;
use ports::Ports;
use programs::Waiting;
use std::sync::{Arc, Mutex, PoisonError};

/// The device that a server shows.
#[derive(Debug)]
pub struct DeviceConfig {
    /// Reaches the worker of the switch, and brings it other programs.
    pub programs: Programs,
    /// Its id.
    pub device_id: u64,
    /// Its ports.
    pub ports: Vec<PortName>,
    /// Opens the ports that clients add; without it there are those above, for good.
    pub maker: Option<Box<dyn PortMaker>>,
    /// A program with the JSON that it was made from, which clients compare with theirs while that program runs; of others they get one
    /// that is made from the program.
    pub made_from: Option<(Arc<Program>, String)>,
    /// Where it tells of digests, idle entries, links and programs.
    pub notifications: Option<Publisher>,
    /// Decides what clients may do; without it they may do everything.
    pub guard: Option<Arc<dyn Guard>>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Device {
    programs: Programs,
    device_id: u64,
    thrift_port: u16,
    pub(crate) ports: Ports,
    /// The program that ran when it was asked for last; at first one whose JSON is known.
    loaded: Mutex<Option<Arc<Loaded>>>,
    /// The program that clients write to until it takes over.
    waiting: Mutex<Option<Waiting>>,
    pub(crate) notices: Option<Notices>,
    pub(crate) guard: Option<Arc<dyn Guard>>,
}

impl Device {
    /// # Errors
    /// The operating system refuses a thread.
    pub(crate) fn new(config: DeviceConfig, thrift_port: u16) -> std::io::Result<Device> {
        let DeviceConfig { programs, device_id, ports, maker, made_from, notifications, guard } = config;
        let notices = notifications.map(|publisher| Notices::start(publisher, device_id)).transpose()?;
        Ok(Device {
            programs,
            device_id,
            thrift_port,
            ports: Ports::new(ports, maker),
            loaded: Mutex::new(made_from.map(|(program, json)| Arc::new(Loaded::new(program, Some(json))))),
            waiting: Mutex::default(),
            notices,
            guard,
        })
    }

    /// The program that clients write to, and its tables: the one that runs now, or the one that waits to take over.
    fn running(&self) -> Result<Running, Gone> {
        if let Some(waiting) = self.waiting().as_ref() {
            return Ok(waiting.running());
        }
        let Moment { program, tables, now_ns, .. } = self.ask(Request::Look)?;
        let mut kept = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = kept.as_ref().filter(|loaded| Arc::ptr_eq(&loaded.program, &program)) {
            return Ok(Running { loaded: Arc::clone(loaded), tables, now_ns });
        }
        let loaded = Arc::new(Loaded::new(program, None));
        *kept = Some(Arc::clone(&loaded));
        Ok(Running { loaded, tables, now_ns })
    }

    /// Asks about objects of a program that clients write to. What an object refuses is an answer too.
    fn objects<T, E>(
        &self,
        running: &Running,
        ask: impl FnOnce(Reply<Answered<T>>) -> ObjectRequest,
    ) -> Result<Result<T, WriteError>, CallError<E>> {
        let (to, answered) = answer();
        self.hand_over(running, ask(to))?;
        match answered.wait().map_err(|_| Gone)? {
            Ok(answer) => Ok(Ok(answer)),
            Err(ObjectError::Refused(error)) => Ok(Err(error)),
            Err(error @ (ObjectError::Replaced | ObjectError::State(_))) => Err(failed(error)),
        }
    }

    /// Hands a request about objects to the program that clients write to.
    fn hand_over(&self, running: &Running, request: ObjectRequest) -> Result<(), Gone> {
        let request = Request::Objects(Arc::clone(&running.loaded.program), request);
        let mut waiting = self.waiting();
        match waiting.as_mut() {
            Some(waiting) => waiting.switch_mut().answer(request),
            None => {
                drop(waiting);
                self.programs.control().take(request).map_err(|_| Gone)?;
            }
        }
        Ok(())
    }

    /// Writes objects of a program that clients write to: all, or none when one is refused.
    fn write<E>(
        &self,
        running: &Running,
        writes: Vec<ObjectWrite>,
    ) -> Result<Result<(), WriteError>, CallError<E>> {
        let written = self.objects(running, |to| ObjectRequest::Write(vec![writes], to))?;
        Ok(written.and_then(|lists| lists.into_iter().try_for_each(|list| list.map(drop))))
    }

    /// Asks the switch, between two rounds of its worker.
    fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, Gone> {
        self.programs.control().ask(request).map_err(|_| Gone)
    }
}

/// A call that is not done, for which the interface has no code.
fn failed<E>(why: impl ToString) -> CallError<E> {
    let kind = thrift::ApplicationErrorKind::InternalError;
    CallError::Failed(thrift::ApplicationError::new(kind, why.to_string()))
}
