//! Captures that are switched on and off, of one switch or of one of many.

use crate::guard::{Refusal, may_change};
use crate::status;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use millrace_drivers::{CaptureError, Captures};
use millrace_observe_api::CaptureStatus;
use std::fmt;
use std::net::SocketAddr;
use tracing::{info, warn};

/// What is to become of the capture of a port: `/captures/PORT`, with `?name=NAME`.
pub(super) struct Wanted {
    port: u32,
    name: Option<String>,
    pub(super) is_on: bool,
}

impl Wanted {
    /// As a request says it.
    ///
    /// # Errors
    /// It says nothing of that kind, or does not come from a program of this machine.
    pub(super) fn of(head: &Parts, peer: SocketAddr, port: &str) -> Result<Wanted, Refusal> {
        if head.method != Method::PUT && head.method != Method::DELETE {
            let reason = "PUT switches a capture on, DELETE off".to_owned();
            return Err((StatusCode::METHOD_NOT_ALLOWED, reason));
        }
        may_change(head, peer)?;
        let bad = |reason: String| (StatusCode::BAD_REQUEST, reason);
        let number = port.parse::<u32>();
        let port = number.map_err(|_| bad(format!("`{port}` is not the number of a port")))?;
        let name = match head.uri.query() {
            None => None,
            Some(query) => {
                let name = query.strip_prefix("name=");
                Some(name.ok_or_else(|| bad(format!("`{query}` is not `name=NAME`")))?.to_owned())
            }
        };
        Ok(Wanted { port, name, is_on: head.method == Method::PUT })
    }

    /// Does it.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub(super) fn carry_out(&self, captures: &Captures) -> Result<CaptureStatus, CaptureError> {
        let Wanted { port, name, is_on } = self;
        let capture = match is_on {
            true => captures.start(*port, name.as_deref()),
            false => captures.stop(*port),
        }?;
        let file = capture.incoming.display();
        let word = if *is_on { "on" } else { "off" };
        let (packets, lost) = (capture.packets, capture.lost);
        match &capture.error {
            Some(error) => warn!(port, %file, packets, lost, error, "capture {word}"),
            None => info!(port, %file, packets, lost, "capture {word}"),
        }
        Ok(status::capture(capture))
    }
}

/// As the log of changes has it: `capture on of port 3`.
impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "capture {} of port {}", if self.is_on { "on" } else { "off" }, self.port)
    }
}

/// The status of the answer that tells why.
pub(super) fn refused(error: &CaptureError) -> StatusCode {
    match error {
        CaptureError::NoPort(_) => StatusCode::NOT_FOUND,
        CaptureError::Name(_) | CaptureError::MaxFile(_) => StatusCode::BAD_REQUEST,
        CaptureError::NoFolder | CaptureError::On(_) | CaptureError::Off(_) | CaptureError::Taken(_) => {
            StatusCode::CONFLICT
        }
        CaptureError::File(..) | CaptureError::Writer(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
