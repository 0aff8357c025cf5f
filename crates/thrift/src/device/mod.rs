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

use crate::notify::Publisher;
use loaded::{Loaded, Running};
use millrace_dataplane::Switch;
use millrace_p4runtime::Programs;
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
    /// The JSON that the program was made from, which clients compare with theirs; without it they get one made from the
    /// program. Another program that takes over later has none.
    pub json: Option<String>,
    /// Where it tells of digests, idle entries, links and programs.
    pub notifications: Option<Publisher>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Device {
    programs: Programs,
    device_id: u64,
    thrift_port: u16,
    pub(crate) ports: Ports,
    /// Until the first program is known.
    json: Mutex<Option<String>>,
    /// The program that ran when it was asked for last.
    loaded: Mutex<Option<Arc<Loaded>>>,
    /// The program that clients write to until it takes over.
    waiting: Mutex<Option<Waiting>>,
    pub(crate) notices: Option<Notices>,
}

impl Device {
    /// # Errors
    /// The operating system refuses a thread.
    pub(crate) fn new(config: DeviceConfig, thrift_port: u16) -> std::io::Result<Device> {
        let DeviceConfig { programs, device_id, ports, maker, json, notifications } = config;
        let notices = notifications.map(|publisher| Notices::start(publisher, device_id)).transpose()?;
        Ok(Device {
            programs,
            device_id,
            thrift_port,
            ports: Ports::new(ports, maker),
            json: Mutex::new(json),
            loaded: Mutex::default(),
            waiting: Mutex::default(),
            notices,
        })
    }

    /// The program that clients write to, and its tables: the one that runs now, or the one that waits to take over.
    fn running(&self) -> Result<Running, Gone> {
        if let Some(waiting) = self.waiting().as_ref() {
            return Ok(waiting.running());
        }
        let (program, tables, now_ns) =
            self.switch(|switch| (Arc::clone(switch.program()), switch.state().handle(), switch.now_ns()))?;
        let mut kept = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = kept.as_ref().filter(|loaded| Arc::ptr_eq(&loaded.program, &program)) {
            return Ok(Running { loaded: Arc::clone(loaded), tables, now_ns });
        }
        let json = self.json.lock().unwrap_or_else(PoisonError::into_inner).take();
        let loaded = Arc::new(self.switch(move |switch| Loaded::new(switch.state(), json))?);
        *kept = Some(Arc::clone(&loaded));
        Ok(Running { loaded, tables, now_ns })
    }

    /// Has something done with the objects of the program that clients write to.
    fn program<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Switch) -> R + Send + 'static,
    ) -> Result<R, Gone> {
        match self.waiting().as_mut() {
            Some(waiting) => Ok(work(waiting.switch_mut())),
            None => self.switch(work),
        }
    }

    /// Has something done between two rounds of the switch's worker.
    fn switch<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Switch) -> R + Send + 'static,
    ) -> Result<R, Gone> {
        self.programs.control().call(work).map_err(|_| Gone)
    }
}
