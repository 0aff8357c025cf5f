//! Another program in place of the one that runs, with what was written (`RECONCILE_AND_COMMIT`, and other commits that ask
//! for it): the switch keeps its objects ([`Control::swap`]), here is what P4Runtime remembers of them.

use crate::forwarding::{Loaded, Target};
use crate::idle::Timers;
use crate::refusal::Refusal;
use crate::shadow::Shadow;
use millrace_chassis::add_carried;
use millrace_dataplane::{Control, Keep, SwapError, Swapped};
use millrace_pipeline::{DigestId, Program};
use millrace_state::{Migration, TablesHandle};
use millrace_swap_report::{Item, Report};
use std::sync::{Arc, PoisonError};
use tonic::{Code, Status};

/// Lets a waiting program forward in place of the active one, with what has a place there. If it may not, the waiting one
/// waits on.
pub(crate) async fn reconcile(
    control: &Control,
    active: &Loaded,
    next: &mut Loaded,
    keep: Keep,
) -> Result<Report, Status> {
    let (old, new) = (Arc::clone(&active.catalog.program), Arc::clone(&next.catalog.program));
    let mut report = Report::default();
    let digests = digests(&active.shadow, &old, &new, &mut report);
    if let Some(name) = report.first_dropped().filter(|_| keep == Keep::Everything) {
        return Err(Refusal::invalid(format!(
            "the new program has no place for the settings of digest `{name}`"
        ))
        .into());
    }
    let swapped = exchange(control, next, keep).await?;
    let migration = &swapped.migration;
    add_carried(&mut report, migration.report());
    add_replication(&mut report, &active.shadow);
    let shadow = {
        let tables = next.target.tables().await?;
        let mut shadow = carry(&active.shadow, migration, &tables);
        shadow.digests = digests;
        shadow.timers = timers(&active.shadow, migration);
        shadow
    };
    next.shadow = shadow;
    next.catalog.take_texts(&active.catalog);
    // Large tables take a while to be freed.
    drop(tokio::task::spawn_blocking(move || drop(swapped)));
    Ok(report)
}

/// Has the switch change programs.
async fn exchange(control: &Control, next: &mut Loaded, keep: Keep) -> Result<Swapped, Status> {
    let running = Target::running(control.clone());
    let switch = match std::mem::replace(&mut next.target, running) {
        Target::Waiting(switch) => switch.into_inner().unwrap_or_else(PoisonError::into_inner),
        Target::Running(..) => return Err(Status::internal("the program runs already")),
    };
    let control = control.clone();
    let made = tokio::task::spawn_blocking(move || control.swap(switch, keep)).await;
    match made.map_err(|_| Status::internal("the change failed"))? {
        Ok(swapped) => Ok(swapped),
        Err(failed) => {
            if let Some(switch) = failed.next {
                next.target = Target::waiting(*switch);
            }
            let code = match &failed.error {
                SwapError::Ended => Code::Unavailable,
                SwapError::Busy => Code::Aborted,
                SwapError::NoPlace(_) => Code::InvalidArgument,
                SwapError::State(_) | SwapError::Switch(_) => Code::ResourceExhausted,
            };
            Err(Status::new(code, failed.error.to_string()))
        }
    }
}

/// The settings of digests that the new program has too.
fn digests(
    shadow: &Shadow,
    old: &Program,
    new: &Program,
    report: &mut Report,
) -> std::collections::HashMap<DigestId, millrace_p4runtime_api::v1::digest_entry::Config> {
    let mut kept = std::collections::HashMap::new();
    for (digest, config) in &shadow.digests {
        let name = &old.digests[*digest].name;
        let place = new.digests.iter().find(|(_, made)| made.name == *name);
        report.add(Item {
            kind: "digest".to_owned(),
            name: name.clone(),
            what: "settings".to_owned(),
            count: 1,
            reason: place.is_none().then(|| "it is not in the new program".to_owned()),
        });
        if let Some((place, _)) = place {
            kept.insert(place, *config);
        }
    }
    kept
}

/// Adds multicast groups and clone sessions, which belong to no program: all are kept.
fn add_replication(report: &mut Report, shadow: &Shadow) {
    for (what, count) in
        [("multicast groups", shadow.multicast.len()), ("clone sessions", shadow.clones.len())]
    {
        if count > 0 {
            report.add(Item {
                kind: "replication".to_owned(),
                name: String::new(),
                what: what.to_owned(),
                count: count as u64,
                reason: None,
            });
        }
    }
}

/// What was remembered of objects that the new program has too.
fn carry(old: &Shadow, migration: &Migration, tables: &TablesHandle) -> Shadow {
    let mut new = Shadow {
        down: old.down.clone(),
        next_one_shot: old.next_one_shot,
        multicast: old.multicast.clone(),
        clones: old.clones.clone(),
        ..Shadow::default()
    };
    let tables = tables.lock();
    for ((table, matches, priority), cookie) in &old.cookies {
        let Some(table) = migration.table(*table) else { continue };
        // Without matches it is the default entry's.
        if matches.is_empty() || tables.find(table, matches, *priority).is_ok() {
            new.cookies.insert((table, matches.clone(), *priority), cookie.clone());
        }
    }
    for ((profile, id), one_shot) in &old.one_shots {
        if let Some(profile) =
            migration.profile(*profile).filter(|profile| tables.group(*profile, *id).is_ok())
        {
            new.one_shots.insert((profile, *id), one_shot.clone());
        }
    }
    for ((profile, id), group) in &old.groups {
        if let Some(profile) =
            migration.profile(*profile).filter(|profile| tables.group(*profile, *id).is_ok())
        {
            new.groups.insert((profile, *id), group.clone());
        }
    }
    new
}

/// Timers for the entries that there still are. All are looked at soon, and again when they are due.
fn timers(old: &Shadow, migration: &Migration) -> Timers {
    let mut timers = Timers::default();
    for (table, index) in old.timers.entries() {
        if let Some((table, index)) = migration.entry(table, index) {
            timers.set(table, index, 0);
        }
    }
    timers
}
