//! Changes of a running device, each done.

use crate::by_program::ByProgram;
use crate::claims;
use crate::device::Running;
use crate::entered::Entered;
use crate::failure::Failure;
use crate::installed::{
    Before, Installed, Prepared, engine, exit_share, load_entries, places, prepare, quotas, server_share,
    time_share, traffic,
};
use crate::physical::{OpenPorts, Physical};
use crate::programs::bring;
use millrace_backplane::{Classify, Emulation, ExitTo, Route};
use millrace_chassis::{Candidate, Pipeline};
use millrace_dataplane::{Cancel, Keep, PortId};
use millrace_device_file::{Change, End, Link, Quota, Source, State, Switch as Model, VirtualPort};
use std::collections::HashMap;
use std::sync::Arc;
use tracing::warn;

/// What changes need that takes long or can be wrong, made before the first of them is done.
pub(crate) struct Preparing<'p> {
    switches: HashMap<String, Prepared>,
    /// Programs for switches that run, and whether all that runs goes on with them.
    candidates: HashMap<String, (Candidate, bool)>,
    /// What says which switch a frame belongs to, for each lane.
    classify: Vec<ByProgram>,
    ports: &'p mut OpenPorts,
}

impl<'p> Preparing<'p> {
    pub(crate) fn new(
        running: &Running,
        list: &[Change],
        ports: &'p mut OpenPorts,
    ) -> Result<Preparing<'p>, Failure> {
        let (switches, candidates, classify) = Default::default();
        let mut made = Preparing { switches, candidates, classify, ports };
        // Hundreds of switches may have one program.
        let mut known: HashMap<Source, Pipeline> = HashMap::new();
        let mut pipeline = |source: &Source, switch: &str| -> Result<Pipeline, Failure> {
            if let Some(pipeline) = known.get(source) {
                return Ok(pipeline.clone());
            }
            let brought = bring(source).map_err(|error| Failure::of_switch(switch, error))?;
            known.insert(source.clone(), brought.clone());
            Ok(brought)
        };
        for change in list {
            match change {
                Change::AddSwitch(model) => {
                    let pipeline = pipeline(&model.source, &model.name)?;
                    let prepared = prepare(model, pipeline, &running.making)?;
                    made.switches.insert(model.name.clone(), prepared);
                }
                Change::SwapProgram { switch, source, engine: kind } => {
                    let pipeline = pipeline(source, switch)?;
                    let programs = &running.get(switch)?.programs;
                    let kind = engine(*kind, running.making.engine);
                    let candidate = programs.prepare_on(&pipeline.device_config, kind, &Cancel::default());
                    let candidate = candidate.map_err(|error| Failure::of_switch(switch, error))?;
                    made.candidates.insert(switch.clone(), (candidate, true));
                }
                Change::SetClassify(Some(program)) => {
                    let source = Source::Program(program.clone());
                    let pipeline =
                        bring(&source).map_err(|error| Failure::Invalid(format!("[classify]: {error}")))?;
                    let one = || ByProgram::new(&pipeline);
                    made.classify =
                        (0..running.backplane.lanes()).map(|_| one()).collect::<Result<_, _>>()?;
                }
                // Where the program is another too, entries are loaded into that one.
                Change::SetEntries { switch, entries } => {
                    let mut candidate = match made.candidates.remove(switch) {
                        Some((candidate, _)) => candidate,
                        None => {
                            let installed = running.get(switch)?;
                            let made = installed.programs.prepare(&installed.config);
                            made.map_err(|error| Failure::of_switch(switch, error))?
                        }
                    };
                    load_entries(&mut candidate.switch, entries)
                        .map_err(|error| Failure::of_switch(switch, error))?;
                    made.candidates.insert(switch.clone(), (candidate, false));
                }
                _ => {}
            }
        }
        let added = list
            .iter()
            .filter_map(|change| if let Change::AddPort(port) = change { Some(port) } else { None });
        let ports = running.file.ports.len() + added.clone().count();
        for port in added {
            made.ports.open_ahead(port, &running.file.ports, ports)?;
        }
        Ok(made)
    }
}

impl Running {
    pub(crate) fn get(&self, name: &str) -> Result<&Installed, Failure> {
        self.installed.get(name).ok_or_else(|| Failure::no_switch(name))
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Result<&mut Installed, Failure> {
        self.installed.get_mut(name).ok_or_else(|| Failure::no_switch(name))
    }

    fn model(&self, name: &str) -> Result<&Model, Failure> {
        self.file.switch(name).ok_or_else(|| Failure::no_switch(name))
    }

    /// Does one change, and notes it in the model: of what goes before it goes, so that no frame is sent there, of what comes after.
    pub(crate) fn carry_out(
        &mut self,
        change: &Change,
        preparing: &mut Preparing<'_>,
    ) -> Result<(), Failure> {
        match change {
            Change::Restart { .. } => {}
            Change::SetHops(hops) => self.backplane.set_hops(u8::try_from(*hops).unwrap_or(u8::MAX)),
            Change::RemoveLink(between) => {
                self.note(change)?;
                return between.iter().try_for_each(|end| self.remove_end(end));
            }
            Change::DetachPort { switch, number } => {
                self.note(change)?;
                self.set_routes()?;
                return self.remove_port(switch, (*number).into());
            }
            Change::RemoveSwitch { name, .. } => {
                let device_id = self.model(name)?.device_id;
                self.note(change)?;
                self.set_routes()?;
                let installed = self.installed.remove(name).ok_or_else(|| Failure::no_switch(name))?;
                return installed.end(device_id, &self.backplane, self.server.as_ref()).map(drop);
            }
            Change::RemovePort { name, .. } => {
                self.note(change)?;
                self.set_routes()?;
                return match self.physical.remove(name) {
                    Some(physical) => {
                        self.links.remove(physical.number);
                        physical.detach(&self.backplane)
                    }
                    None => Ok(()),
                };
            }
            Change::AddPort(port) => {
                let pairs = preparing.ports.take(port, self.file.ports.len() + 1)?;
                let taken: Vec<u16> = self.physical.values().map(|physical| physical.number).collect();
                let number = (0..).find(|number| !taken.contains(number)).unwrap_or(u16::MAX);
                self.physical.insert(port.name.clone(), Physical::attach(&self.backplane, number, pairs)?);
                self.links.add(number, port);
            }
            Change::AddSwitch(model) => {
                let prepared =
                    preparing.switches.remove(&model.name).ok_or_else(|| Failure::no_switch(&model.name))?;
                self.install(model, prepared, self.lane_of(model))?;
            }
            Change::SwapProgram { switch, .. } | Change::SetEntries { switch, .. } => {
                if let Some((candidate, keeps)) = preparing.candidates.remove(switch) {
                    self.start_program(switch, candidate, keeps.then_some(Keep::Compatible), None)?;
                }
                // The candidate of both has the entries of the file: nothing is left for the second.
                self.get_mut(switch)?.is_foreign = false;
            }
            Change::AttachPort { switch, port } => self.attach_port(switch, port)?,
            Change::SetPort { switch, port } => {
                self.connect_port(switch, port, &self.model(switch)?.quota)?
            }
            Change::AddLink(link) => self.add_link(link)?,
            Change::SetLink(link) => self.connect_link(link)?,
            Change::Start(name) => self.backplane.set_stopped(&self.get(name)?.member, false),
            Change::Stop(name) => self.backplane.set_stopped(&self.get(name)?.member, true),
            Change::SetQuota { .. }
            | Change::SetOwner { .. }
            | Change::SetThrift { .. }
            | Change::SetWorker { .. } => {
                self.note(change)?;
                return self.set(change);
            }
            Change::SetClassify(_) => {
                let mut classify = std::mem::take(&mut preparing.classify).into_iter();
                let next = || classify.next().map(|next| Box::new(next) as Box<dyn Classify>);
                self.backplane.set_classify(next).map_err(Failure::failed)?;
            }
            Change::SetPortRate { .. }
            | Change::AddTenant(_)
            | Change::SetTenant(_)
            | Change::RemoveTenant(_) => {}
        }
        self.note(change)
    }

    fn note(&mut self, change: &Change) -> Result<(), Failure> {
        self.are_routes_old |= matches!(
            change,
            Change::DetachPort { .. }
                | Change::RemoveSwitch { .. }
                | Change::AddSwitch(_)
                | Change::AttachPort { .. }
                | Change::SetPort { .. }
                | Change::SetWorker { .. }
                | Change::RemovePort { .. }
                | Change::AddPort(_)
        );
        self.file.make(change).map_err(Failure::failed)
    }

    /// What is set of a switch that goes on, as the model has it now.
    fn set(&mut self, change: &Change) -> Result<(), Failure> {
        match change {
            Change::SetQuota { switch, .. } => {
                let model = self.model(switch)?.clone();
                let installed = self.get(switch)?;
                self.backplane
                    .set_share(&installed.member, time_share(&model.quota))
                    .map_err(Failure::failed)?;
                self.backplane.set_traffic(&installed.member, traffic(&model.quota));
                installed.member.control.set_quotas(quotas(&model.quota)).map_err(Failure::failed)?;
                self.set_server_share(&model);
                model.ports.iter().try_for_each(|port| self.connect_port(switch, port, &model.quota))
            }
            Change::SetOwner { switch, .. } => {
                let model = self.model(switch)?;
                self.get(switch)?.set_owner(model);
                self.set_server_share(model);
                Ok(())
            }
            Change::SetThrift { switch, .. } => {
                let (model, clients) = (self.model(switch)?.clone(), Arc::clone(&self.clients));
                self.get_mut(switch)?.serve_thrift(&model, &clients)
            }
            Change::SetWorker { switch, .. } => self.move_switch(switch),
            _ => Ok(()),
        }
    }

    fn set_server_share(&self, model: &Model) {
        if let Some(server) = &self.server {
            server.devices().set_share(model.device_id, server_share(model));
        }
    }

    /// Has a lane run a switch, with its ports connected, in the state of its model.
    fn install(&mut self, model: &Model, prepared: Prepared, lane: usize) -> Result<(), Failure> {
        let with = (self.server.as_ref(), &self.file.device, &self.clients);
        let installed = Installed::new(model, prepared, (&self.backplane, lane), with, &self.making)?;
        self.installed.insert(model.name.clone(), installed);
        for port in &model.ports {
            self.connect_port(&model.name, port, &model.quota)?;
        }
        if model.state == State::Running {
            self.backplane.set_stopped(&self.get(&model.name)?.member, false);
        }
        Ok(())
    }

    /// The lane that a switch is to be on.
    fn lane_of(&self, model: &Model) -> usize {
        model.worker.map_or_else(|| self.least_used_lane(), usize::from)
    }

    /// The lane with the fewest switches.
    fn least_used_lane(&self) -> usize {
        let mut switches = vec![0usize; self.backplane.lanes()];
        self.installed.values().for_each(|installed| switches[installed.member.lane()] += 1);
        (0..switches.len()).min_by_key(|lane| switches[*lane]).unwrap_or(0)
    }

    /// Has another lane run a switch. Its state goes with it; its clients connect again.
    fn move_switch(&mut self, name: &str) -> Result<(), Failure> {
        let model = self.model(name)?.clone();
        let lane = self.lane_of(&model);
        if self.get(name)?.member.lane() == lane {
            return Ok(());
        }
        let links: Vec<Link> = self
            .file
            .links
            .iter()
            .filter(|link| link.between.iter().any(|end| end.switch == name))
            .cloned()
            .collect();
        let Some(installed) = self.installed.remove(name) else { return Err(Failure::no_switch(name)) };
        let pipeline = millrace_chassis::compile(&installed.config, &Cancel::default());
        let (is_foreign, before) = (installed.is_foreign, installed.before.clone());
        let (identity, generation) = (installed.identity, installed.generation);
        // Without the switch no frame goes there.
        self.set_routes_now()?;
        let switch = installed.end(model.device_id, &self.backplane, self.server.as_ref())?;
        let pipeline = pipeline.map_err(|error| Failure::failed(error.message))?;
        self.install(&model, Prepared::of_running(pipeline, switch), lane)?;
        let installed = self.get_mut(name)?;
        (installed.is_foreign, installed.before) = (is_foreign, before);
        (installed.identity, installed.generation) = (identity, generation);
        self.are_routes_old = true;
        links.iter().try_for_each(|link| self.add_link(link))
    }

    /// Lets a program forward in place of the one that runs, which can be rolled back to if `before` has it.
    fn start_program(
        &mut self,
        name: &str,
        candidate: Candidate,
        keep: Option<Keep>,
        before: Option<Before>,
    ) -> Result<Vec<String>, Failure> {
        // A candidate is compared with the program that goes.
        self.backplane.set_mirror(&self.get(name)?.member, None);
        let installed = self.get_mut(name)?;
        installed.shadow = None;
        let config = candidate.config().to_vec();
        let program = Arc::clone(candidate.switch.program());
        let report = installed.programs.start(candidate, keep).map_err(|error| {
            Failure::failed(format_args!("switch {name} goes on with its program: {error}"))
        })?;
        (installed.before, installed.config) = (before, config);
        (installed.program, installed.generation) = (program, installed.generation + 1);
        let kept = report.kept.iter().map(|item| format!("kept {item}"));
        Ok(kept.chain(report.dropped.iter().map(|item| format!("dropped {item}"))).collect())
    }

    /// As [`Running::start_program`], of a program that the file does not name, for a switch that a request has entered. Gives its generation, too.
    pub(crate) fn start_foreign(
        &mut self,
        switch: &Entered,
        candidate: Candidate,
        keep: Option<Keep>,
        before: Option<Before>,
    ) -> Result<(Vec<String>, u64), Failure> {
        self.entered(switch)?;
        let lines = self.start_program(&switch.name, candidate, keep, before)?;
        let installed = self.entered_mut(switch)?;
        installed.is_foreign = true;
        Ok((lines, installed.generation))
    }

    fn attach_port(&mut self, switch: &str, port: &VirtualPort) -> Result<(), Failure> {
        let quota = self.model(switch)?.quota.clone();
        self.add_port(switch, port.number.into(), places(&quota))?;
        self.connect_port(switch, port, &quota)
    }

    fn add_port(&mut self, switch: &str, port: PortId, places: usize) -> Result<(), Failure> {
        let Running { backplane, installed, .. } = self;
        let installed = installed.get_mut(switch).ok_or_else(|| Failure::no_switch(switch))?;
        if installed.member.wire(port).is_some() {
            return Ok(());
        }
        let is_known = millrace_compile::check_port(&installed.program, port);
        is_known.map_err(|error| Failure::of_switch(switch, error))?;
        backplane.add_port(&mut installed.member, port, places).map_err(Failure::failed)?;
        installed.tell_port(port, true);
        Ok(())
    }

    fn remove_port(&mut self, switch: &str, port: PortId) -> Result<(), Failure> {
        let Running { backplane, installed, .. } = self;
        let installed = installed.get_mut(switch).ok_or_else(|| Failure::no_switch(switch))?;
        if let Some(wire) = installed.member.wire(port) {
            backplane.disconnect(wire);
            backplane.remove_port(&mut installed.member, port).map_err(Failure::failed)?;
            if let Err(error) = installed.captures.forget(port) {
                warn!(switch, port, %error, "the capture of a port that has gone is not whole");
            }
            installed.tell_port(port, false);
        }
        Ok(())
    }

    /// Has what a virtual port sends leave by its ports of the machine.
    fn connect_port(&self, switch: &str, port: &VirtualPort, quota: &Quota) -> Result<(), Failure> {
        let installed = self.get(switch)?;
        let share = exit_share(port, quota);
        let Some(wire) = installed.member.wire(port.number.into()) else { return Ok(()) };
        let exits = port.physical.iter().filter_map(|name| self.physical.get(name)).map(|physical| ExitTo {
            lane: physical.exit_lane(installed.member.lane()),
            physical: physical.number,
            share,
            tags: claims::tags_out(port),
        });
        self.backplane.connect(wire, &exits.collect::<Vec<_>>()).map_err(Failure::failed)
    }

    fn add_link(&mut self, link: &Link) -> Result<(), Failure> {
        for End { switch, port } in &link.between {
            self.add_port(switch, (*port).into(), link.waiting as usize)?;
        }
        self.connect_link(link)
    }

    fn connect_link(&self, link: &Link) -> Result<(), Failure> {
        let Link { between: [a, b], delay, rate, loss, waiting } = link;
        let wire = |end: &End| {
            let wire = self.get(&end.switch)?.member.wire(end.port.into());
            wire.ok_or_else(|| Failure::NotFound(format!("there is no port {end}")))
        };
        let (one, other) = (wire(a)?, wire(b)?);
        [one, other].into_iter().for_each(|wire| wire.set_places(*waiting as usize));
        self.backplane.link(one, other, Emulation { delay_ns: *delay, rate: *rate, loss: *loss });
        Ok(())
    }

    /// The end of a link that goes: its port has no other use.
    fn remove_end(&mut self, end: &End) -> Result<(), Failure> {
        self.remove_port(&end.switch, end.port.into())
    }

    /// Has frames of the ports of the machine go where the model says, if that has changed.
    pub(crate) fn set_routes(&mut self) -> Result<(), Failure> {
        match self.are_routes_old {
            true => self.set_routes_now(),
            false => Ok(()),
        }
    }

    fn set_routes_now(&mut self) -> Result<(), Failure> {
        let mut routes = Vec::new();
        for (name, physical) in &self.physical {
            let mut claimed = Vec::new();
            for model in &self.file.switches {
                let Some(installed) = self.installed.get(&model.name) else { continue };
                for port in model.ports.iter().filter(|port| port.physical.contains(name)) {
                    if let Some(wire) = installed.member.wire(port.number.into()) {
                        claimed.push((port, Arc::clone(wire)));
                    }
                }
            }
            let claims: Vec<_> = claimed.iter().map(|(port, _)| &port.claim).collect();
            let rules = claims::rules(&claims)
                .map_err(|error| Failure::Invalid(format!("physical port {name}: {error}")))?;
            routes.extend(rules.into_iter().map(|(at, matches)| {
                let (port, wire) = &claimed[at];
                let flood = claims::floods(port, &matches);
                Route {
                    physical: physical.number,
                    matches,
                    tag: claims::tag_in(port),
                    flood,
                    wire: Arc::clone(wire),
                }
            }));
        }
        self.backplane.set_routes(&routes).map_err(Failure::failed)?;
        self.are_routes_old = false;
        Ok(())
    }
}
