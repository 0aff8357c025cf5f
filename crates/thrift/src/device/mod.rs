//! The device that clients see: a running switch, with the names, handles and codes of bmv2.

mod codes;
mod entries;
mod handles;
mod loaded;
mod management;
mod profiles;
mod programs;
mod replication;
mod stateful;
mod tables;
mod values;

use crate::call::Gone;
use loaded::{Loaded, Running};
use millrace_p4runtime::Programs;
use millrace_switch::{PortId, Switch};
use programs::Waiting;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// A port as clients are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortName {
    /// Its number.
    pub number: PortId,
    /// The interface that it is.
    pub interface: String,
}

/// The device that a server shows.
#[derive(Debug)]
pub struct DeviceConfig {
    /// Reaches the worker of the switch, and brings it other programs.
    pub programs: Programs,
    /// Its id.
    pub device_id: u64,
    /// Its ports.
    pub ports: Vec<PortName>,
    /// The JSON that the program was made from, which clients compare with theirs; without it they get one made from the
    /// program. Another program that takes over later has none.
    pub json: Option<String>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Device {
    programs: Programs,
    device_id: u64,
    thrift_port: u16,
    ports: Vec<PortName>,
    /// Ports that are broken, and those whose link is down.
    failed: Mutex<BTreeSet<PortId>>,
    down: Mutex<BTreeSet<PortId>>,
    /// Until the first program is known.
    json: Mutex<Option<String>>,
    /// The program that ran when it was asked for last.
    loaded: Mutex<Option<Arc<Loaded>>>,
    /// The program that clients write to until it takes over.
    waiting: Mutex<Option<Waiting>>,
}

impl Device {
    pub(crate) fn new(config: DeviceConfig, thrift_port: u16) -> Device {
        let DeviceConfig { programs, device_id, ports, json } = config;
        Device {
            programs,
            device_id,
            thrift_port,
            ports,
            failed: Mutex::default(),
            down: Mutex::default(),
            json: Mutex::new(json),
            loaded: Mutex::default(),
            waiting: Mutex::default(),
        }
    }

    /// A port is broken.
    pub(crate) fn port_failed(&self, port: PortId) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).insert(port);
    }

    /// The link of a port came up or went down.
    pub(crate) fn link(&self, port: PortId, is_up: bool) {
        let mut down = self.down.lock().unwrap_or_else(PoisonError::into_inner);
        match is_up {
            true => down.remove(&port),
            false => down.insert(port),
        };
    }

    /// Whether packets can leave by a port.
    fn is_up(&self, port: PortId) -> bool {
        let is_in = |ports: &Mutex<BTreeSet<PortId>>| {
            ports.lock().unwrap_or_else(PoisonError::into_inner).contains(&port)
        };
        !is_in(&self.failed) && !is_in(&self.down)
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
