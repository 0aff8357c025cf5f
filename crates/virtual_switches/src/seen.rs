//! What is seen of a device: switches, counts, the topology. A client sees the switches that it may read.

use crate::device::{Device, Running};
use crate::failure::Failure;
use crate::installed::engine;
use crate::published::outside;
use millrace_backplane::{Backplane, Counts};
use millrace_ctl_api::{
    GraphStatus, LinkStatus, PhysicalStatus, PortStatus, Stats, SwitchStats, SwitchStatus,
};
use millrace_dataplane::{Control, EngineKind, Pending, PortId, Report, ReportError, Request};
use millrace_device_file::{Link, State, Switch as Model};
use millrace_observe_api::OutsideStatus;
use millrace_p4runtime::Usage;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long all switches that are asked together may take to say what they run or have counted.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// A switch that is asked for what it has counted, without anything of the device that others wait for.
pub(crate) struct ToAsk {
    name: String,
    control: Control,
    counts: Arc<Counts>,
    usage: Usage,
}

impl ToAsk {
    /// What is told of it; of a switch that has not answered why, and what is counted outside of it.
    fn told(self, report: Result<Report, ReportError>) -> SwitchStats {
        let OutsideStatus { used_ns, losses } = outside(&self.counts);
        let without_report = SwitchStats {
            name: self.name,
            used_ns,
            losses,
            requests: self.usage.requests,
            refused_requests: self.usage.refused,
            ..SwitchStats::default()
        };
        let report = match report {
            Ok(report) => report,
            Err(error) => return SwitchStats { silent: Some(error.to_string()), ..without_report },
        };
        let ports = report.ports.iter().map(|port| PortStatus {
            port: port.port,
            rx_packets: port.counters.rx_packets,
            rx_bytes: port.counters.rx_bytes,
            tx_packets: port.counters.tx_packets,
            tx_bytes: port.counters.tx_bytes,
        });
        let drops = report.drops.iter().map(|(reason, count)| (reason.label(&report.program), *count));
        SwitchStats {
            ports: ports.collect(),
            drops: drops.collect(),
            lost_notices: report.workers.iter().map(|worker| worker.lost_notices).sum(),
            ..without_report
        }
    }
}

/// Asks all switches, then takes what each answers within a time: that of all of them together.
pub(crate) fn ask(switches: Vec<ToAsk>, patience: Duration) -> Vec<SwitchStats> {
    let asked = switches.into_iter().map(|switch| (switch.control.ask_report(), switch));
    answers(asked.collect(), patience).map(|(switch, report)| switch.told(report)).collect()
}

/// What came of questions that were all asked before, each with whom it was put to, within a time that is that of all of them together.
fn answers<W, T>(
    asked: Vec<(Result<Pending<T>, ReportError>, W)>,
    patience: Duration,
) -> impl Iterator<Item = (W, Result<T, ReportError>)> {
    let until = Instant::now() + patience;
    asked.into_iter().map(move |(pending, whom)| {
        let left = until.saturating_duration_since(Instant::now());
        (whom, pending.and_then(|pending| pending.wait(left)))
    })
}

/// What is known of switches, with what each runs, as far as it says so within a time.
fn list(switches: Vec<(SwitchStatus, Control, EngineKind)>, patience: Duration) -> Vec<SwitchStatus> {
    let asked = switches
        .into_iter()
        .map(|(status, control, engine)| (control.ask_later(Request::Look), (status, engine)));
    let told = answers(asked.collect(), patience).map(|((status, engine), now)| match now {
        Ok(now) => {
            let engine = match (&now.without_code, engine) {
                (Some(_), _) | (None, EngineKind::Interp) => "interp",
                (None, EngineKind::Rtl | EngineKind::Verilated) => "rtl",
                (None, EngineKind::Jit | EngineKind::Fastest) => "jit",
            };
            SwitchStatus { program: now.program.name.clone(), engine: engine.to_owned(), ..status }
        }
        Err(error) => SwitchStatus { silent: Some(error.to_string()), ..status },
    });
    told.collect()
}

/// What physical ports have counted.
pub(crate) fn physical(
    backplane: &Backplane,
    ports: Vec<(String, String, u16)>,
) -> Result<Vec<PhysicalStatus>, Failure> {
    let report = backplane.statistics().map_err(Failure::failed)?;
    let physical = ports.into_iter().map(|(name, device, number)| {
        let (counted, failure) = report.of(number);
        PhysicalStatus {
            name,
            device,
            rx_packets: counted.rx_packets,
            rx_bytes: counted.rx_bytes,
            tx_packets: counted.tx_packets,
            tx_bytes: counted.tx_bytes,
            tx_refused: counted.tx_refused,
            rx_missed: counted.rx_missed + counted.rx_errors,
            failure,
        }
    });
    Ok(physical.collect())
}

impl Device {
    /// The switches that a client sees. Nobody waits meanwhile who wants something else of the device.
    pub(crate) fn list(&self, is_seen: impl Fn(&Model) -> bool) -> Result<Vec<SwitchStatus>, Failure> {
        let known = {
            let running = self.running();
            let seen = running.file.switches.iter().filter(|model| is_seen(model));
            seen.map(|model| running.status(model, &is_seen)).collect::<Result<Vec<_>, Failure>>()?
        };
        Ok(list(known, PATIENCE))
    }

    /// What the switches have counted that a client sees; with `of_device` also what belongs to no switch. Nobody waits meanwhile who wants
    /// something else of the device.
    pub(crate) fn stats(&self, of_device: bool, is_seen: impl Fn(&Model) -> bool) -> Result<Stats, Failure> {
        let (switches, ports, backplane) = {
            let running = self.running();
            (running.to_ask(is_seen)?, running.physical_ports(), Arc::clone(&running.backplane))
        };
        let switches = ask(switches, PATIENCE);
        Ok(match of_device {
            false => Stats { physical: Vec::new(), unclassified: None, switches },
            true => Stats {
                physical: physical(&backplane, ports)?,
                unclassified: Some(backplane.unclassified()),
                switches,
            },
        })
    }
}

impl Running {
    /// What is known of a switch without asking it: all but its program and what runs it. Of a link to a switch that is not seen it is not said
    /// which switch that is.
    fn status(
        &self,
        model: &Model,
        is_seen: impl Fn(&Model) -> bool,
    ) -> Result<(SwitchStatus, Control, EngineKind), Failure> {
        let installed = self.get(&model.name)?;
        let mut ports: BTreeMap<PortId, String> =
            model.ports.iter().map(|port| (port.number.into(), port.physical.join(" "))).collect();
        ports.extend(model.cpu_port.map(|port| (port.into(), "controller".to_owned())));
        for Link { between, .. } in &self.file.links {
            for (end, other) in [(&between[0], &between[1]), (&between[1], &between[0])] {
                if end.switch == model.name {
                    let is_known = self.file.switch(&other.switch).is_some_and(&is_seen);
                    ports.insert(end.port.into(), if is_known { other.to_string() } else { "link".into() });
                }
            }
        }
        let status = SwitchStatus {
            name: model.name.clone(),
            device_id: model.device_id,
            tenant: model.tenant.clone(),
            program: String::new(),
            engine: String::new(),
            is_running: model.state == State::Running,
            worker: installed.member.lane(),
            ports,
            can_roll_back: installed.before.is_some(),
            has_shadow: installed.shadow.is_some(),
            silent: None,
        };
        Ok((status, installed.member.control.clone(), engine(model.engine, self.making.engine)))
    }

    /// Whom to ask for what switches have counted.
    pub(crate) fn to_ask(&self, is_seen: impl Fn(&Model) -> bool) -> Result<Vec<ToAsk>, Failure> {
        self.file.switches.iter().filter(|model| is_seen(model)).map(|model| self.to_ask_one(model)).collect()
    }

    pub(crate) fn to_ask_one(&self, model: &Model) -> Result<ToAsk, Failure> {
        let installed = self.get(&model.name)?;
        let usage = self.server.as_ref().and_then(|server| server.devices().usage(model.device_id));
        Ok(ToAsk {
            name: model.name.clone(),
            control: installed.member.control.clone(),
            counts: Arc::clone(&installed.member.counts),
            usage: usage.unwrap_or_default(),
        })
    }

    /// The physical ports: name, what they are connected to, number in the backplane.
    pub(crate) fn physical_ports(&self) -> Vec<(String, String, u16)> {
        let ports = self.file.ports.iter().filter_map(|port| {
            Some((port.name.clone(), port.device.clone(), self.physical.get(&port.name)?.number))
        });
        ports.collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_chassis::compile;
    use millrace_dataplane::{Cancel, Switch, SwitchConfig, Worker};
    use std::path::Path;
    use std::thread;

    fn worker() -> Worker {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/steer.p4");
        let pipeline = compile(&std::fs::read(path).unwrap(), &Cancel::default()).unwrap();
        let config = SwitchConfig { engine: EngineKind::Interp, ..SwitchConfig::default() };
        Worker::new(Switch::new(pipeline.program, config).unwrap(), Vec::new()).unwrap()
    }

    fn to_ask(name: &str, control: Control) -> ToAsk {
        ToAsk { name: name.into(), control, counts: Arc::default(), usage: Usage { requests: 3, refused: 1 } }
    }

    /// Three that do not answer, and two that do: all are told of, after the time of one.
    #[test]
    fn who_does_not_answer_holds_nobody_up() {
        let silent = [worker(), worker(), worker()];
        let running: Vec<_> = (0..2).map(|_| worker()).collect();
        let controls: Vec<Control> = running.iter().map(Worker::control).collect();
        let threads: Vec<_> = running.into_iter().map(|worker| thread::spawn(move || worker.run())).collect();
        let gone = worker();
        let of_gone = gone.control();
        drop(gone);
        let mut asked: Vec<ToAsk> = silent.iter().map(|worker| to_ask("silent", worker.control())).collect();
        asked.push(to_ask("gone", of_gone));
        asked.extend(controls.iter().map(|control| to_ask("running", control.clone())));
        let (begun, patience) = (Instant::now(), Duration::from_millis(500));
        let told = ask(asked, patience);
        assert!(begun.elapsed() < 2 * patience, "{:?}", begun.elapsed());
        let said: Vec<(&str, Option<&str>)> =
            told.iter().map(|switch| (switch.name.as_str(), switch.silent.as_deref())).collect();
        let busy = Some("the switch is too busy to answer");
        let expected = [
            ("silent", busy),
            ("silent", busy),
            ("silent", busy),
            ("gone", Some("the switch is not running any more")),
            ("running", None),
            ("running", None),
        ];
        assert_eq!(said, expected);
        assert!(told.iter().all(|switch| (switch.requests, switch.refused_requests) == (3, 1)));
        let known = |name: &str, control: Control| {
            let status = SwitchStatus {
                name: name.to_owned(),
                device_id: 0,
                tenant: None,
                program: String::new(),
                engine: String::new(),
                is_running: true,
                worker: 0,
                ports: BTreeMap::new(),
                can_roll_back: false,
                has_shadow: false,
                silent: None,
            };
            (status, control, EngineKind::Interp)
        };
        let mut asked: Vec<_> = silent.iter().map(|worker| known("silent", worker.control())).collect();
        asked.push(known("running", controls[0].clone()));
        let begun = Instant::now();
        let told = list(asked, patience);
        assert!(begun.elapsed() < 2 * patience, "{:?}", begun.elapsed());
        let said = told.iter().map(|switch| (&*switch.name, &*switch.engine, switch.silent.as_deref()));
        let expected =
            [("silent", "", busy), ("silent", "", busy), ("silent", "", busy), ("running", "interp", None)];
        assert_eq!(said.collect::<Vec<_>>(), expected);
        controls.iter().for_each(Control::stop);
        threads.into_iter().for_each(|thread| drop(thread.join().unwrap()));
    }
}
