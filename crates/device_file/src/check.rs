//! What has to fit together: names and numbers that are there once, references, guarantees, claims.

mod claims;
mod links;
mod servers;

use crate::files::is_inside;
use crate::limits::*;
use crate::model::*;
use crate::parse::Draft;
use claims::Claimed;
use millrace_toml_sections::Table;
use millrace_toml_sections::{Finding, Findings, Kind, nearest, quoted};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Checks a draft; gives the switches that have no device id theirs.
pub(crate) fn check(draft: &mut Draft<'_>, findings: &mut Findings) {
    unique("tenant", draft.tenants.iter().map(|tenant| (tenant.is.name.as_str(), &tenant.table)), findings);
    unique("port", draft.ports.iter().map(|port| (port.is.name.as_str(), &port.table)), findings);
    unique("switch", draft.switches.iter().map(|switch| (switch.is.name.as_str(), &switch.table)), findings);
    servers::check(draft, findings);
    tenants(draft, findings);
    devices(draft, findings);
    device_ids(draft, findings);
    switches(draft, findings);
    numbers(draft, findings);
    physical(draft, findings);
    time(draft, findings);
    links::check(draft, findings);
}

/// A map from what has to be there once to its place.
pub(crate) struct Once<K>(HashMap<K, Range<usize>>);

impl<K: std::hash::Hash + Eq> Once<K> {
    pub(crate) fn new() -> Once<K> {
        Once(HashMap::new())
    }

    /// Adds one; gives the place of the first if it is there already.
    pub(crate) fn add(&mut self, key: K, at: Range<usize>) -> Option<Range<usize>> {
        match self.0.get(&key) {
            Some(first) => Some(first.clone()),
            None => {
                self.0.insert(key, at);
                None
            }
        }
    }
}

/// Names that are there once. An empty one was not read.
fn unique<'a, 't: 'a>(
    what: &str,
    named: impl Iterator<Item = (&'a str, &'a Table<'t>)>,
    findings: &mut Findings,
) {
    let mut known = Once::new();
    for (name, table) in named.filter(|(name, _)| !name.is_empty()) {
        if let Some(first) = known.add(name, table.at("name")) {
            let message = format!("two have the name {}: each {what} needs its own", quoted(name));
            let finding = Finding::new(Kind::Duplicate, table.at("name"), message);
            findings.push(finding.also(first, "first here"));
        }
    }
}

/// A name that nothing has.
fn unknown<'n>(what: &str, name: &str, at: Range<usize>, known: impl Iterator<Item = &'n str>) -> Finding {
    let finding = Finding::new(Kind::UnknownName, at, format!("there is no {what} {}", quoted(name)));
    match nearest(name, known) {
        Some(near) => finding.help(format!("did you mean `{near}`?")),
        None => finding,
    }
}

fn tenants(draft: &Draft<'_>, findings: &mut Findings) {
    for tenant in draft.tenants.iter().filter(|tenant| tenant.is.name == OPERATOR) {
        let message = format!("`{OPERATOR}` is the operator: no tenant has this name");
        findings.push(Finding::new(Kind::Conflict, tenant.table.at("name"), message));
    }
    for key in ["certificate", "token-file"] {
        let mut known = Once::new();
        for tenant in &draft.tenants {
            let value = if key == "certificate" { &tenant.is.certificate } else { &tenant.is.token_file };
            let Some(value) = value else { continue };
            let at = tenant.table.at(key);
            if let Some(first) = known.add(value.as_str(), at.clone()) {
                let message = format!("two tenants have the `{key}` {}", quoted(value));
                findings.push(Finding::new(Kind::Duplicate, at, message).also(first, "first here"));
            }
        }
    }
    let device = &draft.device;
    let of_operator = device.is.operator_certificate.is_some();
    let certified = draft.tenants.iter().filter(|tenant| tenant.is.certificate.is_some());
    let keys = certified.map(|tenant| (tenant.table.at("certificate"), "certificate"));
    let keys =
        keys.chain(of_operator.then(|| (device.table.at("operator-certificate"), "operator-certificate")));
    for (at, key) in keys.filter(|_| !device.table.has("grpc-client-ca")) {
        let message = format!("`{key}` needs `grpc-client-ca` of the device: no client is asked for one");
        findings.push(Finding::new(Kind::Conflict, at, message));
    }
    // Who is known by one certificate or token is one.
    for (tenant, key) in
        draft.tenants.iter().flat_map(|tenant| [(tenant, "certificate"), (tenant, "token-file")])
    {
        let (its, of_operator, name) = match key {
            "certificate" => {
                (&tenant.is.certificate, &device.is.operator_certificate, "operator-certificate")
            }
            _ => (&tenant.is.token_file, &device.is.operator_token_file, "operator-token-file"),
        };
        if its.is_some() && its == of_operator {
            let message = format!(
                "a tenant and the operator have the `{key}` {}",
                quoted(its.as_deref().unwrap_or_default())
            );
            let finding = Finding::new(Kind::Duplicate, tenant.table.at(key), message);
            findings.push(finding.also(device.table.at(name), "the operator's"));
        }
    }
}

/// A device opens once.
fn devices(draft: &Draft<'_>, findings: &mut Findings) {
    let mut known = Once::new();
    for port in &draft.ports {
        let (driver, args) = port.is.device.split_once(':').unwrap_or_default();
        let opened = match driver {
            "" | "null" => continue,
            // These are interfaces of Linux, whose options follow.
            "packet" | "tap" | "xdp" => ("interface", args.split(',').next().unwrap_or(args)),
            driver => (driver, args),
        };
        let at = port.table.at("device");
        if let Some(first) = known.add(opened, at.clone()) {
            let message = format!("two ports have the device {}", quoted(opened.1));
            findings.push(Finding::new(Kind::Duplicate, at, message).also(first, "first here"));
        }
    }
}

fn device_ids(draft: &mut Draft<'_>, findings: &mut Findings) {
    let mut known = Once::new();
    for switch in draft.switches.iter().filter(|switch| switch.is.device_id != 0) {
        let id = switch.is.device_id;
        let at = switch.table.at("device-id");
        if let Some(first) = known.add(id, at.clone()) {
            let message = format!("two switches have the device id {id}");
            findings.push(Finding::new(Kind::Duplicate, at, message).also(first, "first here"));
        }
    }
    let mut next = 1;
    for switch in draft.switches.iter_mut().filter(|switch| !switch.table.has("device-id")) {
        while known.0.contains_key(&next) {
            next += 1;
        }
        switch.is.device_id = next;
        next += 1;
    }
}

/// What a switch names: its tenant, with the folder for files, its worker, the buffers of the device.
fn switches(draft: &Draft<'_>, findings: &mut Findings) {
    let tenants: HashMap<&str, _> =
        draft.tenants.iter().map(|tenant| (tenant.is.name.as_str(), tenant)).collect();
    let workers = draft.device.is.workers;
    for switch in &draft.switches {
        if let Some(name) = &switch.is.tenant {
            match tenants.get(name.as_str()) {
                None => {
                    let known = tenants.keys().copied();
                    findings.push(unknown("tenant", name, switch.table.at("tenant"), known));
                }
                Some(tenant) => {
                    let Some(folder) = &tenant.is.folder else { continue };
                    for (path, at) in switch.files.iter().filter(|(path, _)| !is_inside(path, folder)) {
                        let message = format!("{} is outside of the folder of tenant `{name}`", quoted(path));
                        let finding = Finding::new(Kind::File, at.clone(), message);
                        findings.push(finding.also(tenant.table.at("folder"), "the folder"));
                    }
                }
            }
        }
        if let Some(worker) = switch.is.worker.filter(|worker| *worker >= workers) {
            let message = format!("there is no worker {worker}: the device has {workers}, from 0");
            findings.push(Finding::new(Kind::UnknownName, switch.table.at("worker"), message));
        }
        let buffers = u64::from(draft.device.is.packets);
        if switch.is.quota.packet_buffers.is_some_and(|most| most > buffers) {
            let message = format!("`packet-buffers` is more than the device has: {buffers} (`packets`)");
            findings.push(Finding::new(Kind::Limit, switch.quota.at("packet-buffers"), message));
        }
    }
}

/// Numbers of virtual ports, each of one thing of a switch.
fn numbers(draft: &Draft<'_>, findings: &mut Findings) {
    let mut count = 0;
    for switch in &draft.switches {
        let mut known = Once::new();
        if let Some(number) = switch.is.cpu_port {
            known.add(number, switch.table.at("cpu-port"));
        }
        for port in &switch.ports {
            count += 1;
            if count == MAX_VIRTUAL_PORTS + 1 {
                let message = format!("at most {MAX_VIRTUAL_PORTS} virtual ports (MAX_VIRTUAL_PORTS)");
                findings.push(Finding::new(Kind::Limit, port.table.header(), message));
            }
            let Some(number) = port.number else { continue };
            let at = port.table.at("number");
            if let Some(first) = known.add(number, at.clone()) {
                let message = format!("virtual port {number} of the switch is used twice");
                findings.push(Finding::new(Kind::Duplicate, at, message).also(first, "first here"));
            }
        }
    }
}

/// What virtual ports want of physical ones: that they are there, guarantees, frames.
fn physical(draft: &Draft<'_>, findings: &mut Findings) {
    let places: HashMap<&str, usize> =
        draft.ports.iter().enumerate().map(|(place, port)| (port.is.name.as_str(), place)).collect();
    let mut claimed: Vec<Vec<Claimed<'_>>> = draft.ports.iter().map(|_| Vec::new()).collect();
    let mut guaranteed: Vec<u64> = vec![0; draft.ports.len()];
    let mut told = HashSet::new();
    for switch in &draft.switches {
        for port in &switch.ports {
            for (name, at) in port.is.physical.iter().zip(&port.physical) {
                let Some(&place) = places.get(name.as_str()) else {
                    findings.push(unknown("port", name, at.clone(), places.keys().copied()));
                    continue;
                };
                if port.is_claim_read {
                    claimed[place].push(Claimed {
                        claim: &port.is.claim,
                        switch: &switch.is.name,
                        number: port.is.number,
                        at: match port.table.has("match") {
                            true => port.table.at("match"),
                            false => at.clone(),
                        },
                    });
                }
                guaranteed[place] = guaranteed[place].saturating_add(port.is.guaranteed);
                let physical = &draft.ports[place];
                let message = match physical.is.rate {
                    _ if port.is.guaranteed == 0 => continue,
                    None => format!("`guaranteed` needs the `rate` of port `{name}`"),
                    // Each port is told of once: at the guarantee that is too much.
                    Some(rate) if guaranteed[place] > rate && told.insert(place) => {
                        format!("port `{name}` has less than what is guaranteed up to here")
                    }
                    Some(_) => continue,
                };
                let finding = Finding::new(Kind::Guarantee, port.table.at("guaranteed"), message);
                findings.push(finding.also(physical.table.at("rate"), "the port"));
            }
            if matches!(port.is.claim.frames, Frames::Id(_)) && draft.classify.is_none() {
                let message = "`id` is the result of the classify program, and there is no [classify]";
                findings.push(Finding::new(Kind::UnknownName, port.table.at("match"), message));
            }
        }
    }
    for (port, claims) in draft.ports.iter().zip(&claimed) {
        claims::check(&port.is.name, claims, findings);
    }
}

/// Guaranteed shares of the time of each worker, and of all.
fn time(draft: &Draft<'_>, findings: &mut Findings) {
    let workers = draft.device.is.workers;
    let mut pinned = vec![0; usize::from(workers)];
    let mut all = 0;
    for switch in &draft.switches {
        let share = u64::from(switch.is.quota.time);
        let at = switch.quota.at("time");
        let before = all;
        all += share;
        if let Some(sum) = switch.is.worker.and_then(|worker| pinned.get_mut(usize::from(worker))) {
            let before = *sum;
            *sum += share;
            if before <= WHOLE && *sum > WHOLE {
                let worker = switch.is.worker.unwrap_or_default();
                let message = format!("more than 100% of worker {worker} is guaranteed up to here");
                findings.push(Finding::new(Kind::Guarantee, at, message));
                continue;
            }
        }
        let most = WHOLE * u64::from(workers);
        if before <= most && all > most {
            let message =
                format!("more than 100% of the workers' time is guaranteed up to here ({workers} in all)");
            findings.push(Finding::new(Kind::Guarantee, switch.quota.at("time"), message));
        }
    }
}
