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
        self.make(change)?;
        self.check()
    }

    fn switch(&mut self, name: &str) -> Result<&mut Switch, String> {
        let found = self.is.switches.iter_mut().find(|switch| switch.name == name);
        found.ok_or_else(|| format!("no switch {name}"))
    }

    fn link(&mut self, between: &[End; 2]) -> Result<usize, String> {
        let found = self.is.links.iter().position(|link| link.between == *between);
        found.ok_or_else(|| "no such link".to_owned())
    }

    fn make(&mut self, change: &Change) -> Result<(), String> {
        match change {
            Change::Restart { device, .. } => self.is.device = (**device).clone(),
            Change::SetHops(hops) => self.is.device.hops = *hops,
            Change::RemoveLink(between) => {
                let place = self.link(between)?;
                self.is.links.remove(place);
            }
            Change::SetLink(link) => {
                let place = self.link(&link.between)?;
                self.is.links[place] = link.clone();
            }
            Change::AddLink(link) => self.is.links.push(link.clone()),
            Change::Stop(name) => self.switch(name)?.state = State::Stopped,
            Change::Start(name) => self.switch(name)?.state = State::Running,
            Change::DetachPort { switch, number } => {
                let switch = self.switch(switch)?;
                let before = switch.ports.len();
                switch.ports.retain(|port| port.number != *number);
                if switch.ports.len() == before {
                    return Err("no such port".into());
                }
            }
            Change::AttachPort { switch, port } => self.switch(switch)?.ports.push(port.clone()),
            Change::SetPort { switch, port } => {
                let ports = &mut self.switch(switch)?.ports;
                let was = ports.iter_mut().find(|was| was.number == port.number).ok_or("no such port")?;
                if (&was.physical, &was.claim) != (&port.physical, &port.claim) {
                    return Err("the claim is another".into());
                }
                *was = port.clone();
            }
            Change::RemoveSwitch { name, .. } => {
                self.switch(name)?;
                self.is.switches.retain(|switch| switch.name != *name);
            }
            Change::AddSwitch(switch) => self.is.switches.push((**switch).clone()),
            Change::RemovePort { name, .. } => {
                let before = self.is.ports.len();
                self.is.ports.retain(|port| port.name != *name);
                if self.is.ports.len() == before {
                    return Err("no such port".into());
                }
            }
            Change::AddPort(port) => self.is.ports.push(port.clone()),
            Change::SetPortRate { port, rate } => {
                let found = self.is.ports.iter_mut().find(|known| known.name == *port);
                found.ok_or("no such port")?.rate = *rate;
            }
            Change::SetClassify(program) => self.is.classify.clone_from(program),
            Change::AddTenant(tenant) => self.is.tenants.push(tenant.clone()),
            Change::SetTenant(tenant) => {
                let found = self.is.tenants.iter_mut().find(|known| known.name == tenant.name);
                *found.ok_or("no such tenant")? = tenant.clone();
            }
            Change::RemoveTenant(name) => self.is.tenants.retain(|tenant| tenant.name != *name),
            Change::SwapProgram { switch, source, engine } => {
                let switch = self.switch(switch)?;
                (switch.source, switch.engine) = (source.clone(), *engine);
            }
            Change::SetEntries { switch, entries } => self.switch(switch)?.entries.clone_from(entries),
            Change::SetOwner { switch, tenant } => self.switch(switch)?.tenant.clone_from(tenant),
            Change::SetWorker { switch, worker } => self.switch(switch)?.worker = *worker,
            Change::SetThrift { switch, address, allow_remote } => {
                let switch = self.switch(switch)?;
                (switch.thrift, switch.thrift_allow_remote) = (address.clone(), *allow_remote);
            }
            Change::SetQuota { switch, quota } => self.switch(switch)?.quota = (**quota).clone(),
        }
        Ok(())
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
