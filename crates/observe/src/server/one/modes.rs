//! The mode of a switch, said and set.

use super::{Answer, Shared, blocking, json, text};
use crate::guard::may_change;
use hyper::StatusCode;
use hyper::http::request::Parts;
use millrace_observe_api::{ConfigurationStatus, ModeStatus, OwnEndSystemStatus};
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};

/// The modes of a switch, and who asks for them.
pub trait Modes: Send + Sync {
    /// The mode, and how it came to it.
    fn now(&self) -> ModeStatus;

    /// The configuration that decides about it.
    fn configuration(&self) -> ConfigurationStatus;

    /// Has the switch go on in another mode.
    ///
    /// # Errors
    /// Why not; the mode stays.
    fn set(&self, mode: &str) -> Result<ModeStatus, String>;

    /// What happened to those who manage the switch from inside the network, if its own end system answers them.
    fn own_end_system(&self) -> Option<OwnEndSystemStatus>;
}

/// The modes of a switch that is always in one.
pub struct NoModes;

impl Modes for NoModes {
    fn now(&self) -> ModeStatus {
        ModeStatus::default()
    }

    fn configuration(&self) -> ConfigurationStatus {
        ConfigurationStatus::default()
    }

    fn set(&self, _mode: &str) -> Result<ModeStatus, String> {
        Err("the switch has no modes".to_owned())
    }

    fn own_end_system(&self) -> Option<OwnEndSystemStatus> {
        None
    }
}

/// `PUT /mode?set=MODE`.
pub(super) async fn set(shared: Arc<Shared>, peer: SocketAddr, head: &Parts) -> Answer {
    if let Err((status, reason)) = may_change(head, peer) {
        return text(status, &reason);
    }
    let Some(mode) = head.uri.query().and_then(|query| query.strip_prefix("set=")).map(str::to_owned) else {
        return text(StatusCode::BAD_REQUEST, "`set=MODE` is expected");
    };
    blocking(move || {
        let done = shared.modes.set(&mode);
        shared.collector.lock().unwrap_or_else(PoisonError::into_inner).forget();
        match done {
            Ok(state) => json(&state),
            Err(reason) => text(StatusCode::CONFLICT, &reason),
        }
    })
    .await
}
