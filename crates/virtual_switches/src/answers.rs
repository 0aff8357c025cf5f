//! Requests of clients, answered: whether they may ask, then what comes of it.

use crate::clients::Client;
use crate::device::{Device, Done, Foreign, check_restart};
use crate::entered::Entered;
use crate::failure::{Failure, short};
use crate::probation;
use crate::shadow;
use crate::snapshot;
use crate::uploads;
use millrace_access::{Refusal, Resource, Right};
use millrace_ctl_api::{Answer, Changed, Probation, Problem, RefusalKind, Refused, Request};
use millrace_dataplane::Keep;
use millrace_device_file::{DeviceFile, End, Kept, Kind, Problems, State, Switch as Model, changes};
use millrace_device_file::{MAX_FILE, MAX_SHOWN, MAX_WHOLE};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tracing::warn;

/// Why a request has no other answer.
enum No {
    Refused(RefusalKind, String),
    Failure(Failure),
}

impl From<Failure> for No {
    fn from(failure: Failure) -> No {
        No::Failure(failure)
    }
}

impl Device {
    /// Answers a request. What it changes is in the log of changes.
    pub fn answer(self: &Arc<Device>, client: &Client, request: &Request) -> Answer {
        let what = named(request);
        let answer = self.answer_or_refuse(client, request);
        let device =
            switch_of(request).and_then(|name| self.running().file.switch(name).map(|model| model.device_id));
        if let Some(what) = what {
            let result = answer.as_ref().map(drop).map_err(|no| match no {
                No::Refused(_, reason) => reason.clone(),
                No::Failure(failure) => failure.to_string(),
            });
            self.clients.record(client, device, &what, result.as_ref().copied().map_err(String::as_str));
        }
        answer.unwrap_or_else(|no| Answer::Refused(refused(no)))
    }

    /// Answers a request that changes nothing.
    fn look(&self, client: &Client, request: &Request) -> Result<Answer, No> {
        match request {
            Request::List => {
                self.may_begin(client)?;
                Ok(Answer::Switches(self.list(|model| self.sees(client, model))?))
            }
            Request::Stats { switch: None } => {
                self.may_begin(client)?;
                let of_device = self.may(client, Right::Read, Resource::Chassis).is_ok();
                Ok(Answer::Stats(self.stats(of_device, |model| self.sees(client, model))?))
            }
            Request::Stats { switch: Some(name) } => {
                self.enter(client, name, Right::Read)?;
                Ok(Answer::Stats(self.stats(false, |model| model.name == *name && self.sees(client, model))?))
            }
            Request::Graph => {
                self.may_begin(client)?;
                let of_device = self.may(client, Right::Read, Resource::Chassis).is_ok();
                Ok(Answer::Graph(self.running().graph(of_device, |model| self.sees(client, model))?))
            }
            Request::Show => {
                self.may(client, Right::Read, Resource::Chassis)?;
                Ok(Answer::Text(self.file().to_toml()))
            }
            _ => Err(No::Refused(RefusalKind::Malformed, "the request changes something".into())),
        }
    }

    fn answer_or_refuse(self: &Arc<Device>, client: &Client, request: &Request) -> Result<Answer, No> {
        match request {
            Request::Apply { text, folder, files, dry_run } => {
                self.may(client, Right::LifeCycle, Resource::Chassis)?;
                check_length(text, MAX_SHOWN, "MAX_SHOWN")?;
                let _alone = self.edit_alone();
                self.apply_text(client, text, (folder, files), (Foreign::Go, *dry_run))
            }
            Request::Load { text, folder, files } => {
                self.may(client, Right::LifeCycle, Resource::Chassis)?;
                check_length(text, MAX_FILE, "MAX_FILE")?;
                let _alone = self.edit_alone();
                // What is added comes first, so that the lines of mistakes are its own.
                let whole = format!("{text}\n{}", self.file().to_toml());
                if whole.len() > MAX_WHOLE {
                    let reason = format!(
                        "the device and it have {} bytes: at most {MAX_WHOLE} (MAX_WHOLE)",
                        whole.len()
                    );
                    return Err(Failure::Limit(reason).into());
                }
                let done = self.apply_text(client, &whole, (folder, files), (Foreign::Stay, false));
                done.map_err(|no| of_two(no, text.len() + 1))
            }
            Request::Remove { switch } => {
                self.may(client, Right::LifeCycle, Resource::Chassis)?;
                self.edit(|file| {
                    let before = file.switches.len();
                    file.switches.retain(|model| model.name != *switch);
                    file.links.retain(|link| link.between.iter().all(|end| end.switch != *switch));
                    if file.switches.len() < before { Ok(()) } else { Err(Failure::no_switch(switch)) }
                })
            }
            Request::Start { switch } | Request::Stop { switch } => {
                let entered = self.enter(client, switch, Right::LifeCycle)?;
                let state =
                    if matches!(request, Request::Start { .. }) { State::Running } else { State::Stopped };
                let done = self.edit(|file| {
                    self.running().entered(&entered)?;
                    let model = file.switches.iter_mut().find(|model| model.name == *switch);
                    model.ok_or_else(|| Failure::no_switch(switch))?.state = state;
                    Ok(())
                })?;
                Ok(self.as_seen(client, done))
            }
            Request::Unlink { between } => {
                self.may(client, Right::LifeCycle, Resource::Chassis)?;
                let mut ends = [end(&between[0])?, end(&between[1])?];
                ends.sort();
                self.edit(|file| {
                    let before = file.links.len();
                    file.links.retain(|link| link.between != ends);
                    let [a, b] = &ends;
                    match file.links.len() < before {
                        true => Ok(()),
                        false => Err(Failure::NotFound(format!("there is no link {a} - {b}"))),
                    }
                })
            }
            Request::Swap { switch, program, keep_everything, probation } => {
                let switch = self.enter(client, switch, Right::Swap)?;
                let keep = if *keep_everything { Keep::Everything } else { Keep::Compatible };
                self.swap(&switch, program.as_bytes(), keep, *probation)
            }
            Request::Rollback { switch } => {
                let switch = self.enter(client, switch, Right::Swap)?;
                Ok(changed(self.roll_back(&switch)?, false))
            }
            Request::Snapshot { switch } => {
                self.enter(client, switch, Right::LifeCycle)?;
                let switch = self.enter(client, switch, Right::Read)?;
                Ok(Answer::Text(snapshot::take(self, &switch)?))
            }
            Request::Restore { switch, snapshot } => {
                let switch = self.enter(client, switch, Right::LifeCycle)?;
                Ok(changed(snapshot::restore(self, &switch, snapshot)?, false))
            }
            Request::Shadow { switch, program, end } => {
                self.enter(client, switch, Right::Swap)?;
                // The packets of a switch are in what is told of differences.
                let switch = self.enter(client, switch, Right::Capture)?;
                Ok(Answer::Shadow(match program {
                    Some(program) => shadow::begin(self, &switch, program.as_bytes())?,
                    None if *end => shadow::end(self, &switch)?,
                    None => shadow::status(self, &switch)?,
                }))
            }
            Request::List | Request::Stats { .. } | Request::Graph | Request::Show => {
                self.look(client, request)
            }
        }
    }

    /// Has the device become as a text says, whose files are in a folder of this machine, or are sent with it. By whoever has
    /// [`Device::edit_alone`].
    fn apply_text(
        &self,
        client: &Client,
        text: &str,
        (folder, files): (&str, &BTreeMap<String, String>),
        (foreign, is_dry_run): (Foreign, bool),
    ) -> Result<Answer, No> {
        if !matches!(client, Client::Remote { .. }) {
            if !files.is_empty() {
                let reason =
                    "contents of files are sent over gRPC only: here the device reads the files itself";
                return Err(Failure::Invalid(reason.into()).into());
            }
            let file = read(text, folder)?;
            return Ok(changed(self.apply_alone(&file, foreign, is_dry_run)?, is_dry_run));
        }
        if !folder.is_empty() {
            let reason = "over gRPC no folder of the machine of the device is named";
            return Err(Failure::Invalid(reason.into()).into());
        }
        let file = DeviceFile::parse_whole("the file", text, None)
            .map_err(|problems| Failure::File(Box::new(problems)))?;
        let now = self.file();
        check_restart(&changes(&now, &file).list)?;
        let sent = uploads::settle(file, &now, files)?;
        if !is_dry_run {
            sent.keep(&now)?;
        }
        Ok(changed(self.apply_alone(&sent.file, foreign, is_dry_run)?, is_dry_run))
    }

    /// What was done, without what stays of others: who may not see the device hears of the own switches alone.
    fn as_seen(&self, client: &Client, answer: Answer) -> Answer {
        let Answer::Changed(mut changed) = answer else { return answer };
        if self.may(client, Right::Read, Resource::Chassis).is_err() {
            let file = self.file();
            let own = file.switches.into_iter().filter(|model| self.sees(client, model));
            let own: Vec<String> =
                own.map(|model| Kept::Switch { name: model.name, is_swapped: false }.to_string()).collect();
            changed.kept.retain(|line| own.contains(line));
        }
        Answer::Changed(changed)
    }

    /// Whether somebody may ask anything at all.
    fn may_begin(&self, client: &Client) -> Result<(), No> {
        match self.may(client, Right::Read, Resource::NoDevice) {
            Err(No::Refused(RefusalKind::Unknown, reason)) => Err(No::Refused(RefusalKind::Unknown, reason)),
            _ => Ok(()),
        }
    }

    fn may(&self, client: &Client, right: Right, resource: Resource<'_>) -> Result<(), No> {
        self.clients.may(client, right, resource).map_err(|refusal| {
            let hidden = "only the operator may ask for what is of the whole device";
            no(refusal, No::Refused(RefusalKind::Forbidden, hidden.into()))
        })
    }

    fn sees(&self, client: &Client, model: &Model) -> bool {
        let owner = crate::installed::owner(model);
        self.clients.may(client, Right::Read, Resource::Device(owner.as_ref())).is_ok()
    }

    /// The switch of a request that needs a right on it.
    fn enter(&self, client: &Client, name: &str, right: Right) -> Result<Entered, No> {
        let (model, entered) = {
            let running = self.running();
            (running.file.switch(name).cloned(), running.enter(name))
        };
        let owner = model.as_ref().and_then(crate::installed::owner);
        let resource = model.as_ref().map_or(Resource::NoDevice, |_| Resource::Device(owner.as_ref()));
        let may = self.clients.may(client, right, resource);
        may.map_err(|refusal| no(refusal, Failure::no_switch(name).into()))?;
        model.ok_or_else(|| Failure::no_switch(name))?;
        Ok(entered)
    }

    /// Has the device become as its model with a change is, which has to keep all rules of a file.
    fn edit(&self, change: impl FnOnce(&mut DeviceFile) -> Result<(), Failure>) -> Result<Answer, No> {
        let _alone = self.edit_alone();
        let mut file = self.file();
        change(&mut file)?;
        let file = file.checked().map_err(|problems| Failure::File(Box::new(problems)))?;
        Ok(changed(self.apply_alone(&file, Foreign::Stay, false)?, false))
    }

    fn swap(
        self: &Arc<Device>,
        switch: &Entered,
        program: &[u8],
        keep: Keep,
        probation: Option<Probation>,
    ) -> Result<Answer, No> {
        probation.map_or(Ok(()), probation::check)?;
        let (done, generation) = self.set_program(switch, program, Some(keep))?;
        let mut lines = done;
        if let Some(probation) = probation {
            lines.push(probation::begin(self, switch, generation, probation)?);
        }
        Ok(Answer::Changed(Changed { done: lines, kept: Vec::new(), is_dry_run: false }))
    }

    /// Has a switch run another program, which is made while others do what they want with the device.
    fn set_program(
        &self,
        switch: &Entered,
        program: &[u8],
        keep: Option<Keep>,
    ) -> Result<(Vec<String>, u64), Failure> {
        let name = &*switch.name;
        let programs = self.running().entered(switch)?.programs.clone();
        let candidate = programs.prepare(program).map_err(Failure::Invalid)?;
        // Without it the change is made all the same: it cannot be taken back then.
        let before = snapshot::read(self, switch)
            .inspect_err(|failure| warn!(switch = name, %failure, "no rollback"))
            .ok();
        let program = candidate.switch.program().name.clone();
        let mut lines = vec![format!("{program} is running now on switch {name}")];
        let (done, generation) = self.running().start_foreign(switch, candidate, keep, before)?;
        lines.extend(done);
        Ok((lines, generation))
    }

    pub(crate) fn roll_back(&self, switch: &Entered) -> Result<Done, Failure> {
        let name = &switch.name;
        let before = self.running().entered(switch)?.before.clone();
        let before = before.ok_or_else(|| {
            Failure::Invalid(format!("switch {name} has had no other program that could come back"))
        })?;
        let commands = snapshot::go_on_with(self, switch, (&before.config, &before.state), None)?;
        let done = format!(
            "switch {name} goes on with the program before, and the {commands} commands of its state"
        );
        Ok(Done { done: vec![done], kept: Vec::new() })
    }
}

/// A refusal as an answer; what the client does not see is for the caller to say.
fn no(refusal: Refusal, hidden: No) -> No {
    match refusal {
        Refusal::Unknown => No::Refused(RefusalKind::Unknown, refusal.to_string()),
        Refusal::Forbidden(_) => No::Refused(RefusalKind::Forbidden, refusal.to_string()),
        Refusal::Hidden => hidden,
    }
}

/// Whether a file that is sent is no longer than one may be.
fn check_length(text: &str, most: usize, limit: &str) -> Result<(), No> {
    if text.len() <= most {
        return Ok(());
    }
    let reason = format!("the file has {} bytes: at most {most} ({limit})", text.len());
    Err(Failure::Limit(reason).into())
}

fn read(text: &str, folder: &str) -> Result<DeviceFile, No> {
    let folder = Path::new(folder);
    if !folder.is_absolute() {
        return Err(Failure::Invalid("the folder of a file is named from the root".into()).into());
    }
    let file = DeviceFile::parse_whole("the file", text, Some(folder));
    Ok(file.map_err(|problems| Failure::File(Box::new(problems)))?.rooted_at(folder))
}

/// What is wrong with a text that was put before that of the device as it runs, which starts at a byte.
fn of_two(no: No, from: usize) -> No {
    let No::Failure(Failure::File(mut problems)) = no else { return no };
    for problem in &mut problems.problems {
        // What runs is right by itself.
        if problem.place.bytes.start >= from && problem.kind == Kind::Syntax {
            let help = "the device has this already: `load` adds tenants, ports, switches and links, `apply` has the whole file";
            problem.help = Some(help.to_owned());
        }
    }
    No::Failure(Failure::File(Box::new(problems.with_rest(from, "the device as it runs"))))
}

fn end(text: &str) -> Result<End, No> {
    let no_end = |_| Failure::Invalid(format!("`{}` is no end of a link, as SWITCH:PORT is", short(text)));
    Ok(text.parse().map_err(no_end)?)
}

fn changed(Done { done, kept }: Done, is_dry_run: bool) -> Answer {
    Answer::Changed(Changed { done, kept, is_dry_run })
}

fn refused(no: No) -> Refused {
    match no {
        No::Refused(kind, message) => Refused { kind, message, problems: Vec::new() },
        No::Failure(failure) => {
            let kind = match &failure {
                Failure::File(_) | Failure::Invalid(_) => RefusalKind::Invalid,
                Failure::NotFound(_) => RefusalKind::NotFound,
                Failure::Limit(_) => RefusalKind::Limit,
                Failure::Failed { .. } => RefusalKind::Failed,
            };
            let problems = if let Failure::File(problems) = &failure { shown(problems) } else { Vec::new() };
            Refused { kind, message: failure.to_string(), problems }
        }
    }
}

fn shown(problems: &Problems) -> Vec<Problem> {
    let each = problems.problems.iter().zip(problems.render_each(false));
    let each = each.map(|(problem, shown)| Problem {
        line: problem.place.line,
        column: problem.place.column,
        message: problem.message.clone(),
        shown,
    });
    each.collect()
}

/// What the log of changes calls a request; none of those that change nothing.
fn named(request: &Request) -> Option<String> {
    Some(match request {
        Request::List | Request::Stats { .. } | Request::Graph | Request::Show => return None,
        Request::Apply { dry_run: true, .. } | Request::Shadow { program: None, end: false, .. } => {
            return None;
        }
        Request::Apply { .. } => "apply".to_owned(),
        Request::Load { .. } => "load".to_owned(),
        Request::Remove { switch } => format!("remove {switch}"),
        Request::Start { switch } => format!("start {switch}"),
        Request::Stop { switch } => format!("stop {switch}"),
        Request::Unlink { between: [a, b] } => format!("unlink {a} {b}"),
        Request::Swap { switch, .. } => format!("swap {switch}"),
        Request::Rollback { switch } => format!("rollback {switch}"),
        Request::Snapshot { switch } => format!("snapshot {switch}"),
        Request::Restore { switch, .. } => format!("restore {switch}"),
        Request::Shadow { switch, .. } => format!("shadow {switch}"),
    })
}

/// The switch that a request is of.
fn switch_of(request: &Request) -> Option<&str> {
    match request {
        Request::Start { switch }
        | Request::Stop { switch }
        | Request::Swap { switch, .. }
        | Request::Rollback { switch }
        | Request::Snapshot { switch }
        | Request::Restore { switch, .. }
        | Request::Shadow { switch, .. }
        | Request::Remove { switch } => Some(switch),
        _ => None,
    }
}
