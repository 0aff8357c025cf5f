//! One switch, with all that can be seen and set of it.

mod modes;
mod schedule;

use super::captures::{Wanted, refused};
use super::{Answer, Ends, MAX_PLUGIN, Site, blocking, json, text, typed};
use crate::collect::{Collector, Seen};
use crate::exposition::{CONTENT_TYPE, metrics};
use crate::guard::may_change;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use millrace_dataplane::{Control, MoveError, ReportError};
use millrace_drivers::{Captures, Links};
use millrace_inputs::InputsStatus;
use millrace_observe_api::{LogStatus, PluginStatus, Status};
pub use modes::{Modes, NoModes};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::info;

/// The log of a switch.
pub trait Log: Send + Sync {
    /// The name of its level.
    fn level(&self) -> String;

    /// Logs what is at least that important from now on.
    ///
    /// # Errors
    /// There is no level of the name, or the switch has ended.
    fn set_level(&self, level: &str) -> Result<(), String>;
}

/// The plugins of a switch.
pub trait Plugins: Send + Sync {
    /// All of them.
    fn list(&self) -> Vec<PluginStatus>;

    /// Loads a module under a name, with settings as users write them.
    ///
    /// # Errors
    /// Why not; then nothing has changed.
    fn load(&self, name: &str, settings: &str, module: &[u8]) -> Result<(), String>;

    /// Switches one off, or on again.
    ///
    /// # Errors
    /// Why not; then nothing has changed.
    fn switch(&self, name: &str, on: bool) -> Result<(), String>;
}

/// What a server shows, and lets others change.
pub struct Shown {
    /// Reaches the worker of the switch.
    pub control: Control,
    /// Its captures.
    pub captures: Arc<Captures>,
    /// What its ports are connected to.
    pub links: Links,
    /// The steps of the chains of its ports.
    pub inputs: InputsStatus,
    /// Its log.
    pub log: Box<dyn Log>,
    /// The plugins that its programs may call.
    pub plugins: Arc<dyn Plugins>,
    /// Its modes.
    pub modes: Arc<dyn Modes>,
}

impl Shown {
    /// A switch without interfaces whose links are known, and without a log.
    pub fn new(control: Control, captures: Arc<Captures>) -> Shown {
        let (links, inputs) = (Links::default(), InputsStatus::default());
        let (log, plugins, modes) = (Box::new(NoLog), Arc::new(NoPlugins), Arc::new(NoModes));
        Shown { control, captures, links, inputs, log, plugins, modes }
    }
}

/// The log of a switch that has none.
struct NoLog;

impl Log for NoLog {
    fn level(&self) -> String {
        "off".to_owned()
    }

    fn set_level(&self, _level: &str) -> Result<(), String> {
        Err("the switch has no log".to_owned())
    }
}

/// The plugins of a switch that has none.
pub struct NoPlugins;

impl Plugins for NoPlugins {
    fn list(&self) -> Vec<PluginStatus> {
        Vec::new()
    }

    fn load(&self, _name: &str, _settings: &str, _module: &[u8]) -> Result<(), String> {
        Err("the switch runs no plugins: it was built without them (Cargo feature `plugins`)".to_owned())
    }

    fn switch(&self, name: &str, _on: bool) -> Result<(), String> {
        Err(format!("there is no plugin `{name}`"))
    }
}

pub(super) struct Shared {
    control: Control,
    collector: Mutex<Collector>,
    captures: Arc<Captures>,
    log: Box<dyn Log>,
    plugins: Arc<dyn Plugins>,
    modes: Arc<dyn Modes>,
}

impl Shared {
    pub(super) fn new(shown: Shown) -> Shared {
        let Shown { control, captures, links, inputs, log, plugins, modes } = shown;
        let seen = Seen {
            captures: Arc::clone(&captures),
            links,
            inputs,
            plugins: Arc::clone(&plugins),
            modes: Arc::clone(&modes),
            shows_process: true,
        };
        let collector = Mutex::new(Collector::new(control.clone(), seen));
        Shared { control, collector, captures, log, plugins, modes }
    }
}

impl Site for Shared {
    const HOSTS: &'static str = "--metrics-host";
    const THREADS: usize = 2;

    async fn answer(self: Arc<Shared>, ends: Ends, head: Parts, body: Incoming) -> Answer {
        answer(self, ends, head, body).await
    }
}

async fn answer(shared: Arc<Shared>, ends: Ends, head: Parts, body: Incoming) -> Answer {
    let path = head.uri.path().to_owned();
    if let Some(port) = path.strip_prefix("/captures/") {
        return match Wanted::of(&head, ends.peer, port) {
            Ok(wanted) => blocking(move || shared.switch(&wanted)).await,
            Err((status, reason)) => text(status, &reason),
        };
    }
    if let Some(pair) = path.strip_prefix("/queues/") {
        return put_queue(shared, ends, &head, pair).await;
    }
    if path == "/tc" && head.method == Method::PUT || path.starts_with("/tc/") {
        return schedule::plans(shared, ends.peer, &head, body).await;
    }
    if path.starts_with("/ingress/") {
        return schedule::ingress(shared, ends.peer, &head).await;
    }
    if let Some(plugin) = path.strip_prefix("/plugins/") {
        return put_plugin(shared, ends, &head, plugin, body).await;
    }
    if path == "/mode" && head.method == Method::PUT {
        return modes::set(shared, ends.peer, &head).await;
    }
    if path == "/log" && head.method == Method::PUT {
        if let Err((status, reason)) = may_change(&head, ends.peer) {
            return text(status, &reason);
        }
        let Some(level) = head.uri.query().and_then(|query| query.strip_prefix("level=")).map(str::to_owned)
        else {
            return text(StatusCode::BAD_REQUEST, "`level=LEVEL` is expected");
        };
        return blocking(move || match shared.log.set_level(&level) {
            Ok(()) => json(&LogStatus { level: shared.log.level() }),
            Err(reason) => text(StatusCode::BAD_REQUEST, &reason),
        })
        .await;
    }
    if head.method != Method::GET && head.method != Method::HEAD {
        return text(StatusCode::METHOD_NOT_ALLOWED, "GET is expected");
    }
    match path.as_str() {
        "/metrics" => blocking(move || shared.status(|status| typed(CONTENT_TYPE, metrics(status)))).await,
        "/status" => blocking(move || shared.status(|status| json(&**status))).await,
        "/captures" => blocking(move || shared.status(|status| json(&status.captures))).await,
        "/queues" => blocking(move || shared.status(|status| json(&status.workers))).await,
        "/tc" => blocking(move || shared.status(|status| json(&status.plans))).await,
        "/ingress" => blocking(move || schedule::intakes(&shared)).await,
        "/plugins" => json(&shared.plugins.list()),
        "/mode" => blocking(move || shared.status(|status| json(&status.mode))).await,
        "/log" => json(&LogStatus { level: shared.log.level() }),
        "/" => text(
            StatusCode::OK,
            "millrace: /metrics for Prometheus, /status, /captures, /queues, /tc, /ingress, /plugins, /mode and /log as JSON",
        ),
        _ => text(
            StatusCode::NOT_FOUND,
            "there are /metrics, /status, /captures, /queues, /tc, /ingress, /plugins, /mode and /log",
        ),
    }
}

/// Has another worker have a queue pair: `PORT/QUEUE`, with `?worker=WORKER`.
async fn put_queue(shared: Arc<Shared>, ends: Ends, head: &Parts, pair: &str) -> Answer {
    if head.method != Method::PUT {
        return text(StatusCode::METHOD_NOT_ALLOWED, "PUT moves a queue pair");
    }
    if let Err((status, reason)) = may_change(head, ends.peer) {
        return text(status, &reason);
    }
    let Some((Ok(port), Ok(queue))) = pair.split_once('/').map(|(port, queue)| (port.parse(), queue.parse()))
    else {
        return text(
            StatusCode::BAD_REQUEST,
            &format!("`{pair}` is not the numbers of a port and a queue pair"),
        );
    };
    let worker = head.uri.query().and_then(|query| query.strip_prefix("worker="));
    let Some(worker) = worker.and_then(|worker| worker.parse().ok()) else {
        return text(StatusCode::BAD_REQUEST, "`worker=WORKER` is expected, with the number of a worker");
    };
    blocking(move || shared.move_queue(port, queue, worker)).await
}

/// Loads a plugin, or switches it: `NAME`, `NAME/off`, `NAME/on`.
async fn put_plugin(shared: Arc<Shared>, ends: Ends, head: &Parts, path: &str, body: Incoming) -> Answer {
    if head.method != Method::PUT {
        return text(StatusCode::METHOD_NOT_ALLOWED, "PUT loads a plugin, or switches it");
    }
    if let Err((status, reason)) = may_change(head, ends.peer) {
        return text(status, &reason);
    }
    let (name, on) = match path.split_once('/') {
        None => (path.to_owned(), None),
        Some((name, "on")) => (name.to_owned(), Some(true)),
        Some((name, "off")) => (name.to_owned(), Some(false)),
        Some(_) => return text(StatusCode::NOT_FOUND, "there are NAME, NAME/on and NAME/off"),
    };
    let settings = head.uri.query().unwrap_or_default().to_owned();
    let Ok(body) = Limited::new(body, MAX_PLUGIN).collect().await else {
        let why = format!("a module has at most {MAX_PLUGIN} bytes");
        return text(StatusCode::PAYLOAD_TOO_LARGE, &why);
    };
    let module = body.to_bytes();
    blocking(move || {
        let done = match on {
            None => shared.plugins.load(&name, &settings, &module),
            Some(on) => shared.plugins.switch(&name, on),
        };
        shared.collector.lock().unwrap_or_else(PoisonError::into_inner).forget();
        match done {
            Ok(()) => {
                let what = on.map_or("loaded", |on| if on { "on" } else { "off" });
                info!(plugin = name, "plugin {what}");
                json(&shared.plugins.list())
            }
            Err(reason) => text(StatusCode::BAD_REQUEST, &reason),
        }
    })
    .await
}

impl Shared {
    fn status(&self, show: impl FnOnce(&Arc<Status>) -> Answer) -> Answer {
        let asked = self.collector.lock().unwrap_or_else(PoisonError::into_inner).status();
        match asked {
            Ok(status) => show(&status),
            Err(error @ (ReportError::Busy | ReportError::Ended)) => {
                text(StatusCode::SERVICE_UNAVAILABLE, &error.to_string())
            }
        }
    }

    fn move_queue(&self, port: u32, queue: usize, worker: usize) -> Answer {
        let moved = self.control.move_queue(port, queue, worker);
        self.collector.lock().unwrap_or_else(PoisonError::into_inner).forget();
        match moved {
            Ok(()) => {
                info!(port, queue, worker, "queue pair moved");
                self.status(|status| json(&status.workers))
            }
            Err(error) => {
                let status = match error {
                    MoveError::UnknownPort(_)
                    | MoveError::NoQueuePair { .. }
                    | MoveError::NoWorker { .. } => StatusCode::NOT_FOUND,
                    MoveError::Busy(_) => StatusCode::CONFLICT,
                    MoveError::NoMemory | MoveError::Ended => StatusCode::SERVICE_UNAVAILABLE,
                };
                text(status, &error.to_string())
            }
        }
    }

    fn switch(&self, wanted: &Wanted) -> Answer {
        let done = wanted.carry_out(&self.captures);
        self.collector.lock().unwrap_or_else(PoisonError::into_inner).forget();
        match done {
            Ok(capture) => json(&capture),
            Err(error) => text(refused(&error), &error.to_string()),
        }
    }
}
