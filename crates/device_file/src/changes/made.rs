//! A change made to a model: what a running device is after it.

use super::Change;
use crate::model::*;
use std::fmt;

/// A change is of something that the device has not: its kind and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(pub &'static str, pub String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Missing(kind, name) = self;
        write!(f, "there is no {kind} {name}")
    }
}

impl std::error::Error for Missing {}

/// The place of a thing, which is there.
fn place<T>(
    list: &[T],
    kind: &'static str,
    name: impl fmt::Display,
    is: impl Fn(&T) -> bool,
) -> Result<usize, Missing> {
    list.iter().position(is).ok_or_else(|| Missing(kind, name.to_string()))
}

impl DeviceFile {
    /// The switch of a name.
    pub fn switch(&self, name: &str) -> Option<&Switch> {
        self.switches.iter().find(|switch| switch.name == name)
    }

    fn switch_mut(&mut self, name: &str) -> Result<&mut Switch, Missing> {
        let at = place(&self.switches, "switch", name, |switch| switch.name == name)?;
        Ok(&mut self.switches[at])
    }

    fn link_place(&self, between: &[End; 2]) -> Result<usize, Missing> {
        let [a, b] = between;
        place(&self.links, "link", format_args!("{a} - {b}"), |link| link.between == *between)
    }

    /// Makes a change.
    ///
    /// # Errors
    /// [`Missing`]; then nothing has changed.
    pub fn make(&mut self, change: &Change) -> Result<(), Missing> {
        match change {
            Change::Restart { device, .. } => self.device = (**device).clone(),
            Change::SetHops(hops) => self.device.hops = *hops,
            Change::RemoveLink(between) => {
                let at = self.link_place(between)?;
                self.links.remove(at);
            }
            Change::SetLink(link) => {
                let at = self.link_place(&link.between)?;
                self.links[at] = link.clone();
            }
            Change::AddLink(link) => self.links.push(link.clone()),
            Change::Stop(name) => self.switch_mut(name)?.state = State::Stopped,
            Change::Start(name) => self.switch_mut(name)?.state = State::Running,
            Change::DetachPort { switch, number } => {
                let ports = &mut self.switch_mut(switch)?.ports;
                let at = place(ports, "port", number, |port| port.number == *number)?;
                ports.remove(at);
            }
            Change::AttachPort { switch, port } => self.switch_mut(switch)?.ports.push(port.clone()),
            Change::SetPort { switch, port } => {
                let ports = &mut self.switch_mut(switch)?.ports;
                let at = place(ports, "port", port.number, |was| was.number == port.number)?;
                ports[at] = port.clone();
            }
            Change::RemoveSwitch { name, .. } => {
                let at = place(&self.switches, "switch", name, |switch| switch.name == *name)?;
                self.switches.remove(at);
            }
            Change::AddSwitch(switch) => self.switches.push((**switch).clone()),
            Change::RemovePort { name, .. } => {
                let at = place(&self.ports, "physical port", name, |port| port.name == *name)?;
                self.ports.remove(at);
            }
            Change::AddPort(port) => self.ports.push(port.clone()),
            Change::SetPortRate { port, rate } => {
                let at = place(&self.ports, "physical port", port, |known| known.name == *port)?;
                self.ports[at].rate = *rate;
            }
            Change::SetClassify(program) => self.classify.clone_from(program),
            Change::AddTenant(tenant) => self.tenants.push(tenant.clone()),
            Change::SetTenant(tenant) => {
                let at = place(&self.tenants, "tenant", &tenant.name, |known| known.name == tenant.name)?;
                self.tenants[at] = tenant.clone();
            }
            Change::RemoveTenant(name) => {
                let at = place(&self.tenants, "tenant", name, |tenant| tenant.name == *name)?;
                self.tenants.remove(at);
            }
            Change::SwapProgram { switch, source, engine } => {
                let switch = self.switch_mut(switch)?;
                (switch.source, switch.engine) = (source.clone(), *engine);
            }
            Change::SetEntries { switch, entries } => self.switch_mut(switch)?.entries.clone_from(entries),
            Change::SetOwner { switch, tenant } => self.switch_mut(switch)?.tenant.clone_from(tenant),
            Change::SetWorker { switch, worker } => self.switch_mut(switch)?.worker = *worker,
            Change::SetThrift { switch, address, acts_as, allow_remote } => {
                let switch = self.switch_mut(switch)?;
                (switch.thrift, switch.thrift_as) = (address.clone(), acts_as.clone());
                switch.thrift_allow_remote = *allow_remote;
            }
            Change::SetQuota { switch, quota } => self.switch_mut(switch)?.quota = (**quota).clone(),
        }
        Ok(())
    }
}
