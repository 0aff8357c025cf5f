//! The ports of the machine.

use crate::failure::Failure;
use millrace_backplane::Backplane;
use millrace_device_file::{DeviceFile, Port};
use millrace_drivers::{Driver, InterfaceSpec, QueuePair};
use std::collections::BTreeMap;

/// Ports that are open, and that no device has yet: they may take rights that a device does not keep.
#[derive(Default)]
pub struct OpenPorts(BTreeMap<String, Vec<Box<dyn QueuePair>>>);

impl OpenPorts {
    /// Opens all ports of a file.
    ///
    /// # Errors
    /// Why one of them cannot be opened.
    pub fn open(file: &DeviceFile) -> Result<OpenPorts, Failure> {
        let opened = file.ports.iter().map(|port| Ok((port.name.clone(), open(port, file.ports.len())?)));
        opened.collect::<Result<_, Failure>>().map(OpenPorts)
    }

    /// A port of that name that somebody else has opened.
    pub fn add(&mut self, name: &str, pairs: Vec<Box<dyn QueuePair>>) {
        self.0.insert(name.to_owned(), pairs);
    }

    /// Opens an interface that is to be a port, unless that has to wait until a port that is there gives it back.
    pub(crate) fn open_ahead(&mut self, port: &Port, there: &[Port], ports: usize) -> Result<(), Failure> {
        let interface = |port: &Port| {
            let spec: InterfaceSpec = port.device.parse().ok()?;
            let is_interface = matches!(spec.driver, Driver::Packet | Driver::Tap | Driver::Xdp);
            is_interface.then(|| spec.args.split(',').next().unwrap_or_default().to_owned())
        };
        // Files are another matter: what is written to one goes when it is opened again.
        let Some(name) = interface(port) else { return Ok(()) };
        if !self.0.contains_key(&port.name)
            && !there.iter().any(|there| interface(there).as_ref() == Some(&name))
        {
            self.0.insert(port.name.clone(), open(port, ports)?);
        }
        Ok(())
    }

    /// Takes the queue pairs of a port, which is opened now if it is not open.
    pub(crate) fn take(&mut self, port: &Port, ports: usize) -> Result<Vec<Box<dyn QueuePair>>, Failure> {
        self.0.remove(&port.name).map_or_else(|| open(port, ports), Ok)
    }
}

fn open(port: &Port, ports: usize) -> Result<Vec<Box<dyn QueuePair>>, Failure> {
    let wrong =
        |error: &dyn std::fmt::Display| Failure::failed(format_args!("physical port {}: {error}", port.name));
    let spec: InterfaceSpec = port.device.parse().map_err(|error| wrong(&error))?;
    let device = millrace_drivers::device_among(&spec, ports).map_err(|error| wrong(&error))?;
    device.open(usize::from(port.queues)).map_err(|error| wrong(&error))
}

/// A port of the machine that a device has.
pub(crate) struct Physical {
    /// Its number in the backplane.
    pub(crate) number: u16,
    /// The lanes of its queue pairs.
    pub(crate) lanes: Vec<usize>,
}

impl Physical {
    /// Has lanes of a backplane receive from a port and send to it: a lane for each queue pair.
    pub(crate) fn attach(
        backplane: &Backplane,
        number: u16,
        pairs: Vec<Box<dyn QueuePair>>,
    ) -> Result<Physical, Failure> {
        let mut physical = Physical { number, lanes: Vec::new() };
        for (queue, pair) in pairs.into_iter().enumerate() {
            // Ports with one queue are shared among the lanes.
            let lane = (usize::from(number) + queue) % backplane.lanes();
            backplane.add_physical(lane, number, pair).map_err(Failure::failed)?;
            physical.lanes.push(lane);
        }
        Ok(physical)
    }

    /// Takes it away again, and closes it.
    pub(crate) fn detach(self, backplane: &Backplane) -> Result<(), Failure> {
        self.lanes.iter().try_for_each(|lane| {
            backplane.remove_physical(*lane, self.number).map(drop).map_err(Failure::failed)
        })
    }

    /// The lane on which frames of a switch leave, best that of the switch itself.
    pub(crate) fn exit_lane(&self, of_switch: usize) -> usize {
        let own = self.lanes.iter().find(|lane| **lane == of_switch);
        own.or(self.lanes.get(of_switch % self.lanes.len().max(1))).copied().unwrap_or(0)
    }
}
