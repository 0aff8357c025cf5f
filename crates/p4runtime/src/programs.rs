//! Another program for a device: brought by a client, or by others in this process.

use crate::device::{Device, Event};
use crate::forwarding::{self, Forwarding, Loaded, Target};
use crate::p4info::check_compatible;
use crate::reconcile::reconcile;
use crate::refusal::Refusal;
use millrace_chassis::Orders;
use millrace_dataplane::{Cancel, Keep, Request as Ask};
use millrace_p4runtime_api::KEEP_KEY;
use millrace_p4runtime_api::v1::{
    ForwardingPipelineConfig, SetForwardingPipelineConfigRequest,
    set_forwarding_pipeline_config_request::Action,
};
use millrace_swap_report::Report;
use std::sync::Arc;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use tracing::info;

/// What is to go on under a new program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Nothing,
    Objects(Keep),
}

/// What a client asks to be kept, other than the specification has it.
pub(crate) fn keep(metadata: &MetadataMap) -> Result<Option<Kept>, Status> {
    let Some(asked) = metadata.get(KEEP_KEY) else { return Ok(None) };
    match asked.as_bytes() {
        b"everything" => Ok(Some(Kept::Objects(Keep::Everything))),
        b"compatible" => Ok(Some(Kept::Objects(Keep::Compatible))),
        b"nothing" => Ok(Some(Kept::Nothing)),
        _ => Err(Status::invalid_argument(format!("{KEEP_KEY} is `everything`, `compatible` or `nothing`"))),
    }
}

/// Does what a client asks to be done with a program.
pub(crate) async fn set_pipeline(
    device: &Device,
    request: SetForwardingPipelineConfigRequest,
    asked: Option<Kept>,
    cancel: Cancel,
) -> Result<Option<Report>, Status> {
    let action = Action::try_from(request.action).unwrap_or(Action::Unspecified);
    if action == Action::Unspecified {
        return Err(Status::invalid_argument("the action is missing"));
    }
    if action == Action::Commit {
        if request.config.is_some() {
            return Err(Status::invalid_argument("COMMIT takes the config that was saved, not another one"));
        }
        let mut forwarding = device.forwarding.write().await;
        let mut saved =
            forwarding.saved.take().ok_or_else(|| Status::not_found("no config has been saved"))?;
        let committed = match asked.unwrap_or(Kept::Nothing) {
            Kept::Objects(_) if saved.is_written => Err(Status::failed_precondition(
                "the saved config has been written to: it cannot take what was written to the other one",
            )),
            keep => commit(device, &mut forwarding, &mut saved, keep).await,
        };
        match (&committed, &saved.target) {
            (Err(_), Target::Waiting(_)) => forwarding.saved = Some(saved),
            (Err(_), _) => {}
            (Ok(_), _) => forwarding.active = Some(saved),
        }
        return committed;
    }
    let config = request.config.ok_or_else(|| Status::invalid_argument("the config is missing"))?;
    let ForwardingPipelineConfig { p4info, p4_device_config, cookie } = config;
    let keep = asked.unwrap_or(match action {
        Action::ReconcileAndCommit => Kept::Objects(Keep::Everything),
        _ => Kept::Nothing,
    });
    let at_once = keep != Kept::Nothing && !matches!(action, Action::Verify | Action::VerifyAndSave);
    let (making, turns) = (device.making.clone(), device.turns.clone());
    let running = forwarding::request(&device.control, Ask::Look).await?;
    // Compiling takes milliseconds, for which nobody else should wait but those who bring programs.
    let turn = turns.taken(&cancel).await.map_err(Refusal::from)?;
    let place = Arc::clone(&device.making_places).acquire_owned().await;
    let place = place.map_err(|_| Status::unavailable("the server has ended"))?;
    let made = tokio::task::spawn_blocking(move || {
        let _place = place;
        let pipeline = making.pipeline(&p4_device_config, &cancel)?;
        if let Some(given) = &p4info {
            check_compatible(given, &pipeline.p4info)?;
        }
        let mut switch = making.switch(&pipeline, &running, at_once, &cancel)?;
        if action == Action::VerifyAndSave {
            // There is time until it is committed. Code that fits less well is right too.
            let _ = switch.prepare_best_code(&running.tables);
        }
        let loaded = Loaded::waiting(pipeline, p4info, cookie, switch);
        match cancel.settle() {
            true => Ok((loaded, turn)),
            false => Err(Refusal::new(Code::Cancelled, "nobody waits for the program any more")),
        }
    });
    // The next one waits until this one forwards, so that there are few at a time.
    let (mut loaded, _turn) = made.await.map_err(|_| Status::internal("the compiler failed"))??;
    match action {
        Action::Verify => Ok(None),
        Action::VerifyAndSave => {
            let mut forwarding = device.forwarding.write().await;
            loaded.shadow.down.clone_from(&forwarding.down);
            forwarding.saved = Some(loaded);
            Ok(None)
        }
        _ => install(device, loaded, keep).await,
    }
}

/// Lets a new program forward; one that was saved is forgotten.
pub(crate) async fn install(
    device: &Device,
    mut loaded: Loaded,
    keep: Kept,
) -> Result<Option<Report>, Status> {
    let mut forwarding = device.forwarding.write().await;
    loaded.shadow.down.clone_from(&forwarding.down);
    let report = commit(device, &mut forwarding, &mut loaded, keep).await?;
    forwarding.saved = None;
    forwarding.active = Some(loaded);
    Ok(report)
}

/// Lets a program forward.
async fn commit(
    device: &Device,
    forwarding: &mut Forwarding,
    loaded: &mut Loaded,
    keep: Kept,
) -> Result<Option<Report>, Status> {
    let report = match (&forwarding.active, keep) {
        (Some(active), Kept::Objects(keep)) => Some(reconcile(&device.control, active, loaded, keep).await?),
        (active, _) => {
            let kept = active.as_ref().filter(|_| loaded.target.keeps_groups());
            let kept = kept.map(|active| (active.shadow.multicast.clone(), active.shadow.clones.clone()));
            loaded.start(&device.control).await?;
            if let Some(kept) = kept {
                (loaded.shadow.multicast, loaded.shadow.clones) = kept;
            }
            None
        }
    };
    info!(program = loaded.catalog.program.name, "program set");
    device.runs(&loaded.catalog).await;
    let _ = device.events.send(Event::Configure(loaded.shadow.digests.clone())).await;
    Ok(report)
}

/// Takes the programs that others bring, as if a client had.
pub(crate) async fn take_orders(device: Arc<Device>, mut orders: Orders) {
    loop {
        let order = tokio::select! {
            order = orders.recv() => order,
            () = device.closed() => None,
        };
        let Some(order) = order else { return };
        let (candidate, keep, answer) = order.into_parts();
        let (pipeline, switch) = candidate.into_parts();
        let loaded = Loaded::waiting(pipeline, None, None, switch);
        let done = install(&device, loaded, keep.map_or(Kept::Nothing, Kept::Objects)).await;
        answer.give(done.map(Option::unwrap_or_default).map_err(|status| status.message().to_owned()));
    }
}
