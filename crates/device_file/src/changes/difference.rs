//! The difference of two models as changes in steps.
//!
//! The order, by [`Step`]: what uses something goes before it, what is used comes before its users. What gives (a rate, a
//! share of time, an address) comes before what takes it, so that two switches can exchange it.

use super::{Change, Changes, Kept};
use crate::model::*;
use std::collections::{HashMap, HashSet};

/// When a change is done. What is in one step is in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    RestartWithMore,
    RemoveLinks,
    Stop,
    Detach,
    RemoveSwitches,
    RemovePorts,
    Give,
    AddUsed,
    SetSwitches,
    Take,
    AddSwitches,
    Links,
    RemoveUsed,
    Start,
    RestartWithFewer,
}

#[derive(Default)]
struct Steps {
    list: Vec<(Step, Change)>,
    kept: Vec<Kept>,
}

pub(super) fn between(old: &DeviceFile, new: &DeviceFile) -> Changes {
    let mut steps = Steps::default();
    device(&old.device, &new.device, &mut steps);
    tenants(old, new, &mut steps);
    let closed = ports(old, new, &mut steps);
    let removed = switches(old, new, &closed, &mut steps);
    links(old, new, &removed, &mut steps);
    if old.classify != new.classify {
        let step = if new.classify.is_some() { Step::AddUsed } else { Step::RemoveUsed };
        steps.add(step, Change::SetClassify(new.classify.clone()));
    }
    // Within a step the order stays.
    steps.list.sort_by_key(|(step, _)| *step);
    Changes { list: steps.list.into_iter().map(|(_, change)| change).collect(), kept: steps.kept }
}

impl Steps {
    fn add(&mut self, step: Step, change: Change) {
        self.list.push((step, change));
    }
}

fn device(old: &Device, new: &Device, steps: &mut Steps) {
    let pairs: [(&'static str, bool); 21] = [
        ("name", old.name == new.name),
        ("workers", old.workers == new.workers),
        ("processors", old.processors == new.processors),
        ("socket", old.socket == new.socket),
        ("socket-mode", old.socket_mode == new.socket_mode),
        ("socket-group", old.socket_group == new.socket_group),
        ("grpc", old.grpc == new.grpc),
        ("grpc-cert", old.grpc_cert == new.grpc_cert),
        ("grpc-key", old.grpc_key == new.grpc_key),
        ("grpc-client-ca", old.grpc_client_ca == new.grpc_client_ca),
        ("grpc-allow-plaintext", old.grpc_allow_plaintext == new.grpc_allow_plaintext),
        ("grpc-ctl", old.grpc_ctl == new.grpc_ctl),
        ("uploads", old.uploads == new.uploads),
        ("operator-certificate", old.operator_certificate == new.operator_certificate),
        ("operator-token-file", old.operator_token_file == new.operator_token_file),
        ("http", old.http == new.http),
        ("http-allow-remote", old.http_allow_remote == new.http_allow_remote),
        ("http-hosts", old.http_hosts == new.http_hosts),
        ("captures", old.captures == new.captures),
        ("audit", old.audit == new.audit),
        ("packets", old.packets == new.packets),
    ];
    let keys: Vec<&'static str> = pairs.iter().filter(|(_, same)| !same).map(|(key, _)| *key).collect();
    if !keys.is_empty() {
        let step = if new.workers < old.workers { Step::RestartWithFewer } else { Step::RestartWithMore };
        steps.add(step, Change::Restart { keys, device: Box::new(new.clone()) });
    } else if old.hops != new.hops {
        steps.add(Step::Give, Change::SetHops(new.hops));
    }
}

fn tenants(old: &DeviceFile, new: &DeviceFile, steps: &mut Steps) {
    let before: HashMap<&str, &Tenant> =
        old.tenants.iter().map(|tenant| (tenant.name.as_str(), tenant)).collect();
    let after: HashSet<&str> = new.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
    for tenant in &new.tenants {
        let Some(was) = before.get(tenant.name.as_str()) else {
            steps.add(Step::AddUsed, Change::AddTenant(tenant.clone()));
            continue;
        };
        steps.kept.push(Kept::Tenant(tenant.name.clone()));
        if *was != tenant {
            steps.add(Step::AddUsed, Change::SetTenant(tenant.clone()));
        }
    }
    for tenant in old.tenants.iter().filter(|tenant| !after.contains(tenant.name.as_str())) {
        steps.add(Step::RemoveUsed, Change::RemoveTenant(tenant.name.clone()));
    }
}

/// Gives the names of the ports that are closed, for good or to be opened again.
fn ports<'m>(old: &'m DeviceFile, new: &DeviceFile, steps: &mut Steps) -> HashSet<&'m str> {
    let after: HashMap<&str, &Port> = new.ports.iter().map(|port| (port.name.as_str(), port)).collect();
    let mut closed = HashSet::new();
    for was in &old.ports {
        let name = was.name.clone();
        let Some(port) = after.get(was.name.as_str()) else {
            closed.insert(was.name.as_str());
            steps.add(Step::RemovePorts, Change::RemovePort { name, opened_again_for: Vec::new() });
            continue;
        };
        let pairs = [("device", was.device == port.device), ("queues", was.queues == port.queues)];
        let keys: Vec<&'static str> = pairs.iter().filter(|(_, same)| !same).map(|(key, _)| *key).collect();
        if !keys.is_empty() {
            closed.insert(was.name.as_str());
            steps.add(Step::RemovePorts, Change::RemovePort { name, opened_again_for: keys });
            continue;
        }
        if was.rate != port.rate {
            // Without a rate nothing is guaranteed.
            let step = if port.rate > was.rate { Step::Give } else { Step::RemoveUsed };
            steps.add(step, Change::SetPortRate { port: name.clone(), rate: port.rate });
        }
        steps.kept.push(Kept::Port(name));
    }
    let is_there: HashSet<&str> = old.ports.iter().map(|port| port.name.as_str()).collect();
    for port in &new.ports {
        let name = port.name.as_str();
        if !is_there.contains(name) || closed.contains(name) {
            steps.add(Step::AddUsed, Change::AddPort(port.clone()));
        }
    }
    closed
}

/// Gives the names of the switches that go, for good or to be made again.
fn switches<'m>(
    old: &'m DeviceFile,
    new: &DeviceFile,
    closed: &HashSet<&str>,
    steps: &mut Steps,
) -> HashSet<&'m str> {
    let after: HashMap<&str, &Switch> =
        new.switches.iter().map(|switch| (switch.name.as_str(), switch)).collect();
    let mut removed = HashSet::new();
    for was in &old.switches {
        let switch = after.get(was.name.as_str()).copied();
        // What its controllers know a switch by, and what its program was told, stays as long as the switch is there.
        let made_again_for: Vec<&'static str> = switch.map_or(Vec::new(), |switch| {
            let pairs = [
                ("device-id", was.device_id == switch.device_id),
                ("cpu-port", was.cpu_port == switch.cpu_port),
            ];
            pairs.iter().filter(|(_, same)| !same).map(|(key, _)| *key).collect()
        });
        match switch {
            Some(switch) if made_again_for.is_empty() => kept_switch(was, switch, closed, steps),
            _ => {
                removed.insert(was.name.as_str());
                let name = was.name.clone();
                steps.add(Step::RemoveSwitches, Change::RemoveSwitch { name, made_again_for });
            }
        }
    }
    let is_there: HashSet<&str> = old.switches.iter().map(|switch| switch.name.as_str()).collect();
    for switch in &new.switches {
        let name = switch.name.as_str();
        if !is_there.contains(name) || removed.contains(name) {
            steps.add(Step::AddSwitches, Change::AddSwitch(Box::new(switch.clone())));
        }
    }
    removed
}

/// The changes of a switch that stays.
fn kept_switch(was: &Switch, is: &Switch, closed: &HashSet<&str>, steps: &mut Steps) {
    let switch = || is.name.clone();
    let is_swapped = was.source != is.source || was.engine != is.engine;
    steps.kept.push(Kept::Switch { name: switch(), is_swapped });
    if is_swapped {
        let change = Change::SwapProgram { switch: switch(), source: is.source.clone(), engine: is.engine };
        steps.add(Step::SetSwitches, change);
    }
    if was.entries != is.entries {
        let change = Change::SetEntries { switch: switch(), entries: is.entries.clone() };
        steps.add(Step::SetSwitches, change);
    }
    if was.tenant != is.tenant {
        let change = Change::SetOwner { switch: switch(), tenant: is.tenant.clone() };
        steps.add(Step::SetSwitches, change);
    }
    if was.worker != is.worker {
        steps.add(Step::SetSwitches, Change::SetWorker { switch: switch(), worker: is.worker });
    }
    let thrift = |of: &Switch| (of.thrift.clone(), of.thrift_as.clone(), of.thrift_allow_remote);
    if thrift(was) != thrift(is) {
        let (acts_as, allow_remote) = (&is.thrift_as, is.thrift_allow_remote);
        let thrift =
            |address| Change::SetThrift { switch: switch(), address, acts_as: acts_as.clone(), allow_remote };
        if was.thrift.is_some() || is.thrift.is_none() {
            steps.add(Step::Give, thrift(None));
        }
        if is.thrift.is_some() {
            steps.add(Step::Take, thrift(is.thrift.clone()));
        }
    }
    if was.quota != is.quota {
        let step = if is.quota.time <= was.quota.time { Step::Give } else { Step::Take };
        steps.add(step, Change::SetQuota { switch: switch(), quota: Box::new(is.quota.clone()) });
    }
    match (was.state, is.state) {
        (State::Running, State::Stopped) => steps.add(Step::Stop, Change::Stop(switch())),
        (State::Stopped, State::Running) => steps.add(Step::Start, Change::Start(switch())),
        _ => {}
    }
    virtual_ports(was, is, closed, steps);
}

fn virtual_ports(was: &Switch, is: &Switch, closed: &HashSet<&str>, steps: &mut Steps) {
    let before: HashMap<u16, &VirtualPort> = was.ports.iter().map(|port| (port.number, port)).collect();
    let mut stay = HashSet::new();
    for port in &is.ports {
        let stays = before.get(&port.number).filter(|was| {
            let is_open = port.physical.iter().all(|name| !closed.contains(name.as_str()));
            is_open && was.physical == port.physical && was.claim == port.claim
        });
        let switch = is.name.clone();
        let Some(was) = stays else {
            steps.add(Step::Take, Change::AttachPort { switch, port: port.clone() });
            continue;
        };
        stay.insert(port.number);
        if *was != port {
            let step = if port.guaranteed <= was.guaranteed { Step::Give } else { Step::Take };
            steps.add(step, Change::SetPort { switch, port: port.clone() });
        }
    }
    for port in was.ports.iter().filter(|port| !stay.contains(&port.number)) {
        steps.add(Step::Detach, Change::DetachPort { switch: is.name.clone(), number: port.number });
    }
}

fn links(old: &DeviceFile, new: &DeviceFile, removed: &HashSet<&str>, steps: &mut Steps) {
    let after: HashMap<&[End; 2], &Link> = new.links.iter().map(|link| (&link.between, link)).collect();
    let mut stay = HashSet::new();
    for was in &old.links {
        let is_cut = was.between.iter().any(|end| removed.contains(end.switch.as_str()));
        match after.get(&was.between).filter(|_| !is_cut) {
            None => steps.add(Step::RemoveLinks, Change::RemoveLink(was.between.clone())),
            Some(link) => {
                stay.insert(&was.between);
                steps.kept.push(Kept::Link(was.between.clone()));
                if *link != was {
                    steps.add(Step::Links, Change::SetLink((*link).clone()));
                }
            }
        }
    }
    for link in new.links.iter().filter(|link| !stay.contains(&link.between)) {
        steps.add(Step::Links, Change::AddLink(link.clone()));
    }
}
