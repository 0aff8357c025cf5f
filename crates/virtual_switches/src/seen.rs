//! What is seen of a device: switches, counts, the topology. A client sees the switches that it may read.

use crate::device::Running;
use crate::failure::Failure;
use crate::published::outside;
use millrace_ctl_api::{
    GraphStatus, LinkStatus, PhysicalStatus, PortStatus, Stats, SwitchStats, SwitchStatus,
};
use millrace_dataplane::{PortId, Request};
use millrace_device_file::{Link, State, Switch as Model};
use millrace_observe_api::OutsideStatus;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a switch may take to say what it has counted.
const PATIENCE: Duration = Duration::from_secs(5);

impl Running {
    pub(crate) fn list(&self, is_seen: impl Fn(&Model) -> bool) -> Result<Vec<SwitchStatus>, Failure> {
        self.file.switches.iter().filter(|model| is_seen(model)).map(|model| self.status(model)).collect()
    }

    fn status(&self, model: &Model) -> Result<SwitchStatus, Failure> {
        let installed = self.get(&model.name)?;
        let now = installed.member.control.ask(Request::Look).map_err(Failure::failed)?;
        let engine = match (&now.without_code, model.engine) {
            (Some(_), _) | (None, millrace_device_file::Engine::Interp) => "interp",
            _ => "jit",
        };
        let mut ports: BTreeMap<PortId, String> =
            model.ports.iter().map(|port| (port.number.into(), port.physical.join(" "))).collect();
        ports.extend(model.cpu_port.map(|port| (port.into(), "controller".to_owned())));
        for Link { between, .. } in &self.file.links {
            for (end, other) in [(&between[0], &between[1]), (&between[1], &between[0])] {
                if end.switch == model.name {
                    ports.insert(end.port.into(), other.to_string());
                }
            }
        }
        Ok(SwitchStatus {
            name: model.name.clone(),
            device_id: model.device_id,
            tenant: model.tenant.clone(),
            program: now.program.name.clone(),
            engine: engine.to_owned(),
            is_running: model.state == State::Running,
            worker: installed.member.lane(),
            ports,
            can_roll_back: installed.before.is_some(),
            has_shadow: installed.shadow.is_some(),
        })
    }

    /// With `of_device` also what belongs to no switch.
    pub(crate) fn stats(&self, of_device: bool, is_seen: impl Fn(&Model) -> bool) -> Result<Stats, Failure> {
        let switches =
            self.file.switches.iter().filter(|model| is_seen(model)).map(|model| self.counts(model));
        let switches = switches.collect::<Result<_, _>>()?;
        if !of_device {
            return Ok(Stats { physical: Vec::new(), unclassified: None, switches });
        }
        let report = self.backplane.statistics().map_err(Failure::failed)?;
        let physical = self.file.ports.iter().filter_map(|port| {
            let number = self.physical.get(&port.name)?.number;
            let (counted, failure) = report.of(number);
            Some(PhysicalStatus {
                name: port.name.clone(),
                device: port.device.clone(),
                rx_packets: counted.rx_packets,
                rx_bytes: counted.rx_bytes,
                tx_packets: counted.tx_packets,
                tx_bytes: counted.tx_bytes,
                tx_refused: counted.tx_refused,
                rx_missed: counted.rx_missed + counted.rx_errors,
                failure,
            })
        });
        Ok(Stats {
            physical: physical.collect(),
            unclassified: Some(self.backplane.unclassified()),
            switches,
        })
    }

    pub(crate) fn counts(&self, model: &Model) -> Result<SwitchStats, Failure> {
        let installed = self.get(&model.name)?;
        let report = installed.member.control.report(PATIENCE).map_err(Failure::failed)?;
        let ports = report.ports.iter().map(|port| PortStatus {
            port: port.port,
            rx_packets: port.counters.rx_packets,
            rx_bytes: port.counters.rx_bytes,
            tx_packets: port.counters.tx_packets,
            tx_bytes: port.counters.tx_bytes,
        });
        let drops = report.drops.iter().map(|(reason, count)| (reason.label(&report.program), *count));
        let usage = self.server.as_ref().and_then(|server| server.devices().usage(model.device_id));
        let usage = usage.unwrap_or_default();
        let OutsideStatus { used_ns, losses } = outside(&installed.member.counts);
        Ok(SwitchStats {
            name: model.name.clone(),
            ports: ports.collect(),
            drops: drops.collect(),
            losses,
            used_ns,
            requests: usage.requests,
            refused_requests: usage.refused,
            lost_notices: report.workers.iter().map(|worker| worker.lost_notices).sum(),
        })
    }

    /// A link is seen by whoever sees both ends, a port of the machine by whoever sees a switch at it.
    pub(crate) fn graph(
        &self,
        of_device: bool,
        is_seen: impl Fn(&Model) -> bool,
    ) -> Result<GraphStatus, Failure> {
        let seen: Vec<&Model> = self.file.switches.iter().filter(|model| is_seen(model)).collect();
        let mut links = Vec::new();
        for model in &seen {
            for port in &model.ports {
                links.extend(port.physical.iter().map(|physical| LinkStatus {
                    from: (model.name.clone(), port.number.into()),
                    to: (physical.clone(), None),
                    label: port.claim.to_string(),
                }));
            }
        }
        let is_known = |name: &str| seen.iter().any(|model| model.name == name);
        for Link { between: [a, b], delay, rate, loss, .. } in &self.file.links {
            if is_known(&a.switch) && is_known(&b.switch) {
                let mut label = Vec::new();
                label.extend((*delay > 0).then(|| format!("{delay} ns")));
                label.extend(rate.map(|rate| format!("{rate} bit/s")));
                label.extend((*loss > 0).then(|| format!("loss {loss} ppm")));
                links.push(LinkStatus {
                    from: (a.switch.clone(), a.port.into()),
                    to: (b.switch.clone(), Some(b.port.into())),
                    label: label.join(", "),
                });
            }
        }
        let is_used =
            |name: &str| of_device || links.iter().any(|link| link.to.1.is_none() && link.to.0 == name);
        let physical = self.file.ports.iter().filter(|port| is_used(&port.name));
        let physical = physical
            .map(|port| (port.name.clone(), if of_device { port.device.clone() } else { String::new() }));
        let physical = physical.collect();
        let switches =
            seen.iter().map(|model| Ok((model.name.clone(), self.get(&model.name)?.program.name.clone())));
        Ok(GraphStatus { physical, switches: switches.collect::<Result<_, Failure>>()?, links })
    }
}
