//! A running device as a model, which refuses a change that refers to what is not there.

use millrace_device_file::*;
use std::collections::HashSet;

/// The device, with what it is at this moment.
pub(super) struct Running {
    pub(super) is: DeviceFile,
}

/// A model with everything in one order.
pub(super) fn normal(mut model: DeviceFile) -> DeviceFile {
    model.tenants.sort_by(|a, b| a.name.cmp(&b.name));
    model.ports.sort_by(|a, b| a.name.cmp(&b.name));
    model.switches.sort_by(|a, b| a.name.cmp(&b.name));
    model.links.sort_by(|a, b| a.between.cmp(&b.between));
    model.switches.iter_mut().for_each(|switch| switch.ports.sort_by_key(|port| port.number));
    model
}

impl Running {
    pub(super) fn new(is: DeviceFile) -> Running {
        Running { is }
    }

    pub(super) fn apply(&mut self, change: &Change) -> Result<(), String> {
        self.is.make(change).map_err(|missing| missing.to_string())?;
        self.check()
    }

    /// Nothing refers to what is not there, and what is there once is.
    fn check(&self) -> Result<(), String> {
        let mut once = HashSet::new();
        let mut first =
            |what: String| if once.insert(what.clone()) { Ok(()) } else { Err(format!("{what} twice")) };
        let tenants: HashSet<&str> = self.is.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
        let ports: HashSet<&str> = self.is.ports.iter().map(|port| port.name.as_str()).collect();
        for name in &tenants {
            first(format!("tenant {name}"))?;
        }
        for port in &self.is.ports {
            first(format!("port {}", port.name))?;
        }
        let refer =
            |is_there: bool, what: &str| if is_there { Ok(()) } else { Err(format!("{what} is not there")) };
        for switch in &self.is.switches {
            let name = &switch.name;
            first(format!("switch {name}"))?;
            first(format!("device id {}", switch.device_id))?;
            if let Some(address) = &switch.thrift {
                first(format!("address {address}"))?;
            }
            if let Some(tenant) = &switch.tenant {
                refer(tenants.contains(tenant.as_str()), tenant)?;
            }
            if let Some(worker) = switch.worker {
                refer(worker < self.is.device.workers, "the worker")?;
            }
            if let Some(number) = switch.cpu_port {
                first(format!("virtual port {name}:{number}"))?;
            }
            for port in &switch.ports {
                first(format!("virtual port {name}:{}", port.number))?;
                let by_id = matches!(port.claim.frames, Frames::Id(_));
                refer(!by_id || self.is.classify.is_some(), "the classify program")?;
                for physical in &port.physical {
                    refer(ports.contains(physical.as_str()), physical)?;
                    first(format!("{:?} of {physical}", port.claim.frames))?;
                }
            }
        }
        for link in &self.is.links {
            for end in &link.between {
                refer(self.is.switches.iter().any(|switch| switch.name == end.switch), &end.switch)?;
                first(format!("virtual port {end}"))?;
            }
        }
        Ok(())
    }
}
