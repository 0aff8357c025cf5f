//! Ports: what they are called, how they are, and calls that add and remove them.

use super::Device;
use millrace_dataplane::PortId;
use millrace_drivers::QueuePair;
use millrace_thrift_api::{CallError, InvalidDevMgrOperation, PortCode, PortInfo};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A port as clients are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortName {
    /// Its number.
    pub number: PortId,
    /// The interface that it is.
    pub interface: String,
}

/// Opens the ports that clients add, and hears what becomes of them. Its calls come one after the other.
pub trait PortMaker: Send + Sync + fmt::Debug {
    /// Opens the interface of a name for the port of a number that no port of the device has, to one queue pair or to one for
    /// each worker. What passes is captured under the name `capture`, unless that is empty.
    ///
    /// # Errors
    /// Why not, in words for whoever asked.
    fn open(&self, number: PortId, interface: &str, capture: &str)
    -> Result<Vec<Box<dyn QueuePair>>, String>;

    /// The port that was opened is one of the switch now.
    fn added(&self, number: PortId, interface: &str);

    /// A port of the switch is closed.
    fn removed(&self, number: PortId);

    /// The port that was opened last is closed, as the switch did not take it.
    fn refused(&self, number: PortId);
}

type Done<T = ()> = Result<T, CallError<InvalidDevMgrOperation>>;

/// The ports of a device.
#[derive(Debug)]
pub(crate) struct Ports {
    maker: Option<Box<dyn PortMaker>>,
    /// Held while ports come and go.
    names: Mutex<BTreeMap<PortId, String>>,
    states: Mutex<BTreeMap<PortId, PortState>>,
}

/// What keeps a port from being of use.
#[derive(Clone, Copy, Debug, Default)]
struct PortState {
    is_failed: bool,
    is_down: bool,
}

impl Ports {
    pub(super) fn new(names: Vec<PortName>, maker: Option<Box<dyn PortMaker>>) -> Ports {
        let names = names.into_iter().map(|port| (port.number, port.interface)).collect();
        Ports { maker, names: Mutex::new(names), states: Mutex::default() }
    }

    /// A port is broken.
    pub(crate) fn failed(&self, port: PortId) {
        self.states().entry(port).or_default().is_failed = true;
    }

    /// The link of a port came up or went down.
    pub(crate) fn link(&self, port: PortId, is_up: bool) {
        self.states().entry(port).or_default().is_down = !is_up;
    }

    /// A port has that name, unless it has one.
    pub(crate) fn show(&self, port: PortId, interface: &str) {
        self.names().entry(port).or_insert_with(|| interface.to_owned());
    }

    /// A port has no name any more.
    pub(crate) fn hide(&self, port: PortId) {
        self.names().remove(&port);
        self.states().remove(&port);
    }

    /// Whether packets can leave by a port.
    fn is_up(&self, port: PortId) -> bool {
        self.states().get(&port).is_none_or(|state| !state.is_failed && !state.is_down)
    }

    fn names(&self) -> MutexGuard<'_, BTreeMap<PortId, String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn states(&self) -> MutexGuard<'_, BTreeMap<PortId, PortState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn maker(&self) -> Done<&dyn PortMaker> {
        self.maker
            .as_deref()
            .ok_or_else(|| refused("the ports of this switch are those that it started with"))
    }
}

impl Device {
    /// `capture` is the name of the files; bmv2 has one file of that name.
    pub(crate) fn bm_dev_mgr_add_port(&self, interface: String, port: i32, capture: String) -> Done {
        let number = u16::try_from(port)
            .map_err(|_| refused(format!("`{port}` is not a port number (0 to {})", u16::MAX)))?;
        let number = PortId::from(number);
        let maker = self.ports.maker()?;
        let mut names = self.ports.names();
        if names.contains_key(&number) {
            return Err(refused(format!("there is a port {number} already")));
        }
        self.programs.check_port(number).map_err(refused)?;
        let opened = maker.open(number, &interface, &capture).map_err(refused)?;
        // What is known is of a port that had the number before.
        self.ports.states().remove(&number);
        if let Err(error) = self.programs.control().add_port(number, opened) {
            maker.refused(number);
            return Err(refused(error));
        }
        maker.added(number, &interface);
        names.insert(number, interface);
        Ok(())
    }

    pub(crate) fn bm_dev_mgr_remove_port(&self, port: i32) -> Done {
        let maker = self.ports.maker()?;
        let mut names = self.ports.names();
        let number = PortId::try_from(port).ok().filter(|number| names.contains_key(number));
        let number = number.ok_or_else(|| refused(format!("there is no port {port}")))?;
        self.programs.control().remove_port(number).map_err(refused)?;
        names.remove(&number);
        maker.removed(number);
        Ok(())
    }

    pub(crate) fn bm_dev_mgr_show_ports(&self) -> Done<Vec<PortInfo>> {
        let names = self.ports.names();
        let shown = names.iter().map(|(number, interface)| PortInfo {
            port_num: i32::try_from(*number).unwrap_or(i32::MAX),
            iface_name: interface.clone(),
            is_up: self.ports.is_up(*number),
            extra: Vec::new(),
        });
        Ok(shown.collect())
    }
}

/// bmv2 has one code for all.
fn refused(reason: impl fmt::Display) -> CallError<InvalidDevMgrOperation> {
    let reason = Some(reason.to_string());
    CallError::Declared(InvalidDevMgrOperation { code: PortCode::Error, reason })
}
