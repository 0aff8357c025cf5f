//! How ports serve what leaves by them, and share their workers.

use super::{Answer, Shared, blocking, json, text};
use crate::guard::may_change;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use millrace_dataplane::{Intake, IntakeError, RequestError, ScheduleError};
use millrace_observe_api::IntakeStatus;
use millrace_traffic::words;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use tracing::info;

/// Sets or takes away plans: `/tc` with words, or `/tc/PORT`.
pub(super) async fn plans(shared: Arc<Shared>, peer: SocketAddr, head: &Parts, body: Incoming) -> Answer {
    if let Err((status, reason)) = may_change(head, peer) {
        return text(status, &reason);
    }
    if let Some(port) = head.uri.path().strip_prefix("/tc/") {
        if head.method != Method::DELETE {
            return text(StatusCode::METHOD_NOT_ALLOWED, "DELETE takes the plan of a port away");
        }
        let Ok(port) = port.parse::<u32>() else {
            return text(StatusCode::BAD_REQUEST, &format!("`{port}` is not the number of a port"));
        };
        return blocking(move || shared.remove_plan(port)).await;
    }
    let is_whole = match head.uri.query() {
        None => false,
        Some("whole") => true,
        Some(_) => return text(StatusCode::BAD_REQUEST, "`whole` or nothing is expected"),
    };
    let Ok(body) = Limited::new(body, words::MAX_TEXT).collect().await else {
        let why = format!("words have at most {} bytes", words::MAX_TEXT);
        return text(StatusCode::PAYLOAD_TOO_LARGE, &why);
    };
    let body = body.to_bytes();
    let Ok(words) = String::from_utf8(body.to_vec()) else {
        return text(StatusCode::BAD_REQUEST, "words are text in UTF-8");
    };
    blocking(move || shared.set_plans(&words, is_whole)).await
}

/// Sets the share of a port, or takes it away: `/ingress/PORT`.
pub(super) async fn ingress(shared: Arc<Shared>, peer: SocketAddr, head: &Parts) -> Answer {
    if let Err((status, reason)) = may_change(head, peer) {
        return text(status, &reason);
    }
    let port = head.uri.path().trim_start_matches("/ingress/");
    let Ok(port) = port.parse::<u32>() else {
        return text(StatusCode::BAD_REQUEST, &format!("`{port}` is not the number of a port"));
    };
    let intake = match head.method {
        Method::DELETE => None,
        Method::PUT => match intake_of(head.uri.query().unwrap_or_default()) {
            Ok(intake) => Some(intake),
            Err(reason) => return text(StatusCode::BAD_REQUEST, &reason),
        },
        _ => {
            return text(
                StatusCode::METHOD_NOT_ALLOWED,
                "PUT sets the share of a port, DELETE takes it away",
            );
        }
    };
    blocking(move || shared.set_intake(port, intake)).await
}

/// `class=CLASS&quantum=BYTES`, each of which may be left out.
fn intake_of(query: &str) -> Result<Intake, String> {
    let mut intake = Intake::default();
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let expected = || format!("`{part}`: `class=CLASS` or `quantum=BYTES` is expected, with a number");
        match part.split_once('=').ok_or_else(expected)? {
            ("class", class) => intake.class = class.parse().map_err(|_| expected())?,
            ("quantum", quantum) => intake.quantum = quantum.parse().map_err(|_| expected())?,
            _ => return Err(expected()),
        }
    }
    Ok(intake)
}

/// The ports whose share was set.
pub(super) fn intakes(shared: &Shared) -> Answer {
    match shared.control.intakes() {
        Ok(intakes) => {
            let status = |(port, Intake { class, quantum })| IntakeStatus { port, class, quantum };
            json(&intakes.into_iter().map(status).collect::<Vec<_>>())
        }
        Err(RequestError) => text(StatusCode::SERVICE_UNAVAILABLE, &RequestError.to_string()),
    }
}

impl Shared {
    fn forget(&self) {
        self.collector.lock().unwrap_or_else(PoisonError::into_inner).forget();
    }

    /// Words are read as a whole before the first port changes; a port that refuses leaves those before it changed.
    fn set_plans(&self, text_of_all: &str, is_whole: bool) -> Answer {
        let plans = match words::parse(text_of_all) {
            Ok(plans) => plans,
            Err(error) => return text(StatusCode::BAD_REQUEST, &error.to_string()),
        };
        let named: BTreeSet<u32> = plans.iter().map(|plan| plan.port).collect();
        let others = match is_whole.then(|| self.control.plans()).transpose() {
            Ok(others) => others.unwrap_or_default().into_iter().filter(|plan| !named.contains(&plan.port)),
            Err(error) => return text(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
        };
        let others = others.map(|other| (other.port, None));
        let all = plans.into_iter().map(|planned| (planned.port, Some(Arc::new(planned.plan)))).chain(others);
        for (port, plan) in all {
            let word = if plan.is_some() { "set" } else { "taken away" };
            if let Err(error) = self.control.schedule(port, plan) {
                self.forget();
                return refused(&error);
            }
            info!(port, "plan {word}");
        }
        self.forget();
        self.status(|status| json(&status.plans))
    }

    fn remove_plan(&self, port: u32) -> Answer {
        if let Err(error) = self.control.schedule(port, None) {
            return refused(&error);
        }
        info!(port, "plan taken away");
        self.forget();
        self.status(|status| json(&status.plans))
    }

    fn set_intake(&self, port: u32, intake: Option<Intake>) -> Answer {
        match self.control.set_intake(port, intake) {
            Ok(()) => {
                info!(port, ?intake, "share of the workers set");
                intakes(self)
            }
            Err(error) => {
                let status = match error {
                    IntakeError::UnknownPort(_) => StatusCode::NOT_FOUND,
                    IntakeError::Class(_) | IntakeError::Quantum(_) => StatusCode::BAD_REQUEST,
                    IntakeError::Simulated => StatusCode::CONFLICT,
                    IntakeError::Ended => StatusCode::SERVICE_UNAVAILABLE,
                };
                text(status, &error.to_string())
            }
        }
    }
}

fn refused(error: &ScheduleError) -> Answer {
    let status = match error {
        ScheduleError::UnknownPort(_) => StatusCode::NOT_FOUND,
        ScheduleError::Priorities | ScheduleError::TooMany { .. } | ScheduleError::Busy(_) => {
            StatusCode::CONFLICT
        }
        ScheduleError::NoMemory | ScheduleError::Code(_) | ScheduleError::Ended => {
            StatusCode::SERVICE_UNAVAILABLE
        }
    };
    text(status, &error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_dataplane::DEFAULT_QUANTUM;

    #[test]
    fn a_share_is_read_from_its_query() {
        assert_eq!(intake_of(""), Ok(Intake { class: 0, quantum: DEFAULT_QUANTUM }));
        assert_eq!(intake_of("class=3&quantum=9000"), Ok(Intake { class: 3, quantum: 9000 }));
        for wrong in ["class", "class=", "class=x", "share=1", "quantum=-1", "class=256"] {
            assert!(intake_of(wrong).unwrap_err().contains("is expected"), "{wrong}");
        }
    }
}
