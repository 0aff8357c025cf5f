//! A device with many switches, of which each client sees those that it may read.

use super::captures::{Wanted, refused};
use super::{Answer, Ends, Site, blocking, json, text, typed};
use crate::collect::{Collector, Seen, ask_all};
use crate::exposition::{CONTENT_TYPE, metrics, metrics_of_many};
use crate::guard::Refusal as NoAnswer;
use crate::process::{self, Started};
use crate::{NoModes, NoPlugins};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use millrace_access::{Refusal, Right, Token, Who};
use millrace_dataplane::{Control, ReportError};
use millrace_drivers::{CaptureError, Captures, Links};
use millrace_inputs::InputsStatus;
use millrace_observe_api::{ChassisStatus, OutsideStatus, PhysicalStatus, Status};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Most captures of a switch at a time.
pub const MAX_SWITCH_CAPTURES: usize = 8;
/// The numbers of all switches are there after so long; those of switches that take longer are left out.
pub const SCRAPE_TIME: Duration = Duration::from_secs(4);
/// The scheme of `Authorization` that is understood (RFC 6750).
const SCHEME: &[u8] = b"Bearer ";
/// What there is to be asked for.
const PATHS: &str = "/metrics for Prometheus, /status, /switches, /switches/NAME/status, /switches/NAME/metrics and /switches/NAME/captures";

/// A switch of a device, as the server shows it.
pub struct Watched {
    collector: Mutex<Collector>,
    captures: Arc<Captures>,
    outside: Box<dyn Fn() -> OutsideStatus + Send + Sync>,
}

impl Watched {
    /// A switch that is reached like that, with its captures, and what is counted of it outside of it.
    pub fn new(
        control: Control,
        captures: Arc<Captures>,
        outside: impl Fn() -> OutsideStatus + Send + Sync + 'static,
    ) -> Watched {
        let seen = Seen {
            captures: Arc::clone(&captures),
            links: Links::default(),
            inputs: InputsStatus::default(),
            plugins: Arc::new(NoPlugins),
            modes: Arc::new(NoModes),
            shows_process: false,
        };
        Watched { collector: Mutex::new(Collector::new(control, seen)), captures, outside: Box::new(outside) }
    }

    fn status(&self) -> Result<Arc<Status>, ReportError> {
        self.collector.lock().unwrap_or_else(PoisonError::into_inner).status()
    }
}

/// What belongs to no switch of a device.
#[derive(Clone, Debug, Default)]
pub struct Physical {
    /// Its physical ports.
    pub ports: Vec<PhysicalStatus>,
    /// Frames that nobody claims.
    pub unclassified: u64,
}

/// What somebody has changed, or was refused to.
#[derive(Clone, Copy, Debug)]
pub struct Change<'c> {
    /// Who.
    pub who: &'c Who,
    /// Where they are.
    pub from: SocketAddr,
    /// The switch, as they named it.
    pub switch: &'c str,
    /// What they asked for.
    pub what: &'c str,
    /// What came of it.
    pub result: Result<(), &'c str>,
}

/// The switches of a device, which come and go, and who may do what with them.
pub trait Switches: Send + Sync + 'static {
    /// The name of the device.
    fn device(&self) -> String;

    /// Whether somebody may ask anything at all.
    ///
    /// # Errors
    /// [`Refusal::Unknown`].
    fn knows(&self, who: &Who) -> Result<(), Refusal>;

    /// The switches that somebody may read, by name.
    fn readable(&self, who: &Who) -> BTreeMap<String, Arc<Watched>>;

    /// A switch that somebody has a right to.
    ///
    /// # Errors
    /// [`Refusal`]; [`Refusal::Hidden`] also where there is no such switch.
    fn enter(&self, who: &Who, right: Right, name: &str) -> Result<Arc<Watched>, Refusal>;

    /// What belongs to no switch, for those who may read it.
    fn physical(&self, who: &Who) -> Option<Physical>;

    /// Records a change.
    fn record(&self, change: Change<'_>);
}

/// See the module's documentation.
pub(super) struct Many {
    switches: Arc<dyn Switches>,
    started: Started,
    /// Captures are switched one at a time, so that there are no more than may be.
    switching: Mutex<()>,
}

impl Many {
    pub(super) fn new(switches: Arc<dyn Switches>) -> Many {
        Many { switches, started: Started::now(), switching: Mutex::default() }
    }
}

impl Site for Many {
    const HOSTS: &'static str = "`http-hosts` of [device]";
    const THREADS: usize = 4;

    async fn answer(self: Arc<Many>, ends: Ends, head: Parts, _: Incoming) -> Answer {
        let who = who(&head);
        // Threads that wait for switches are few, and the log of changes has an end: whoever is nobody gets neither.
        if let Err(refusal) = self.switches.knows(&who) {
            return no(refusal, "").into_answer();
        }
        let path = head.uri.path().to_owned();
        if let Some((name, port)) = capture_of(&path) {
            let wanted = Wanted::of(&head, ends.peer, port);
            let (name, is_on) = (name.to_owned(), head.method == Method::PUT);
            let asked = match &wanted {
                Ok(wanted) => wanted.to_string(),
                Err(_) => format!("capture {} of port {port}", if is_on { "on" } else { "off" }),
            };
            let is_change = matches!(head.method, Method::PUT | Method::DELETE);
            let work = move || {
                let done = wanted.map_err(No::from).and_then(|wanted| self.switch(&who, &name, &wanted));
                if is_change {
                    let result = done.as_ref().map(drop).map_err(|no| no.reason.as_str());
                    let from = ends.peer;
                    let change = Change { who: &who, from, switch: &name, what: &asked, result };
                    self.switches.record(change);
                }
                done.unwrap_or_else(No::into_answer)
            };
            return blocking(work).await;
        }
        if head.method != Method::GET && head.method != Method::HEAD {
            return text(StatusCode::METHOD_NOT_ALLOWED, "GET is expected");
        }
        blocking(move || self.get(&who, &path).unwrap_or_else(No::into_answer)).await
    }
}

impl Many {
    fn get(&self, who: &Who, path: &str) -> Result<Answer, No> {
        if let Some((name, what)) = path.strip_prefix("/switches/").and_then(|rest| rest.split_once('/')) {
            let show: fn(&Status) -> Answer = match what {
                "status" => |status| json(status),
                "metrics" => |status| typed(CONTENT_TYPE, metrics(status)),
                "captures" => |status| json(&status.captures),
                _ => return Err(nothing()),
            };
            let watched = self.switches.enter(who, Right::Read, name).map_err(|refusal| no(refusal, name))?;
            return match watched.status() {
                Ok(status) => Ok(show(&status)),
                // It has gone since.
                Err(ReportError::Ended) => Err(no(Refusal::Hidden, name)),
                Err(busy) => Err((StatusCode::SERVICE_UNAVAILABLE, busy.to_string()).into()),
            };
        }
        match path {
            "/switches" => Ok(json(&self.switches.readable(who).into_keys().collect::<Vec<_>>())),
            "/metrics" => Ok(typed(CONTENT_TYPE, metrics_of_many(&self.gather(who)))),
            "/status" => Ok(json(&self.gather(who))),
            "/" => Ok(text(StatusCode::OK, &format!("millrace: {PATHS}"))),
            _ => Err(nothing()),
        }
    }

    /// All that somebody may read.
    fn gather(&self, who: &Who) -> ChassisStatus {
        let seen = self.switches.readable(who);
        // In the order of names, as every call does it.
        let collectors: Vec<_> = seen.values().map(|watched| &watched.collector).collect();
        let answers = ask_all(&collectors, SCRAPE_TIME);
        let physical = self.switches.physical(who);
        let mut device = ChassisStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            device: self.switches.device(),
            unclassified: physical.as_ref().map(|physical| physical.unclassified),
            process: physical.as_ref().map(|_| process::now(self.started)),
            physical: physical.map(|physical| physical.ports).unwrap_or_default(),
            ..ChassisStatus::default()
        };
        for ((name, watched), answer) in seen.into_iter().zip(answers) {
            match answer {
                Ok(status) => {
                    device.outside.insert(name.clone(), (watched.outside)());
                    device.switches.insert(name, Status::clone(&status));
                }
                // It has gone since.
                Err(ReportError::Ended) => {}
                Err(ReportError::Busy) => device.silent.push(name),
            }
        }
        device
    }

    /// Switches a capture on or off.
    fn switch(&self, who: &Who, name: &str, wanted: &Wanted) -> Result<Answer, No> {
        let watched = self.switches.enter(who, Right::Capture, name).map_err(|refusal| no(refusal, name))?;
        let _one = self.switching.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted.is_on && watched.captures.status().len() >= MAX_SWITCH_CAPTURES {
            let reason = format!(
                "a switch has at most {MAX_SWITCH_CAPTURES} captures at a time (MAX_SWITCH_CAPTURES)"
            );
            return Err((StatusCode::CONFLICT, reason).into());
        }
        let done = wanted.carry_out(&watched.captures);
        watched.collector.lock().unwrap_or_else(PoisonError::into_inner).forget();
        match done {
            Ok(capture) => Ok(json(&capture)),
            Err(error @ CaptureError::NoFolder) => {
                let reason = "the device has no folder for captures: `captures` of [device] names one";
                Err((refused(&error), reason.to_owned()).into())
            }
            Err(error) => Err((refused(&error), error.to_string()).into()),
        }
    }
}

/// Why a request has no other answer.
struct No {
    status: StatusCode,
    reason: String,
}

impl From<NoAnswer> for No {
    fn from((status, reason): NoAnswer) -> No {
        No { status, reason }
    }
}

impl No {
    fn into_answer(self) -> Answer {
        let mut answer = text(self.status, &self.reason);
        if self.status == StatusCode::UNAUTHORIZED {
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        answer
    }
}

/// A refusal that has to do with a switch of that name.
fn no(refusal: Refusal, name: &str) -> No {
    match refusal {
        Refusal::Unknown => No { status: StatusCode::UNAUTHORIZED, reason: refusal.to_string() },
        Refusal::Forbidden(_) => No { status: StatusCode::FORBIDDEN, reason: refusal.to_string() },
        Refusal::Hidden => No {
            status: StatusCode::NOT_FOUND,
            reason: format!("there is no switch `{}`", name.escape_debug()),
        },
    }
}

fn nothing() -> No {
    No { status: StatusCode::NOT_FOUND, reason: format!("there are {PATHS}") }
}

/// The switch and the port of `/switches/NAME/captures/PORT`.
fn capture_of(path: &str) -> Option<(&str, &str)> {
    let (name, rest) = path.strip_prefix("/switches/")?.split_once('/')?;
    Some((name, rest.strip_prefix("captures/")?))
}

/// Who asks, by the token of a request. What is no token is one that nobody has, and so are several.
fn who(head: &Parts) -> Who {
    let mut given = head.headers.get_all(AUTHORIZATION).iter();
    let first = given.next().map(HeaderValue::as_bytes);
    let secret = |text: &[u8]| {
        let secret =
            text.split_at_checked(SCHEME.len()).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(SCHEME));
        secret.map(|(_, secret)| secret.trim_ascii().to_vec())
    };
    let is_one = given.next().is_none();
    let token = first.map(|text| Token::presented(&secret(text).filter(|_| is_one).unwrap_or_default()));
    Who { certificate: None, token }
}
