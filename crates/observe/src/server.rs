//! What a running switch answers over HTTP/1.1.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /metrics` | all numbers for Prometheus, in the OpenMetrics text format |
//! | `GET /status` | the same as one JSON object, [`Status`] |
//! | `GET /captures` | the captures that are on, as JSON |
//! | `PUT /captures/PORT`, with `?name=NAME` | switches the capture of a port on, to files of that name |
//! | `DELETE /captures/PORT` | switches it off, once its files are whole |
//! | `GET /queues` | the workers with the queue pairs that each has, as JSON |
//! | `PUT /queues/PORT/QUEUE?worker=WORKER` | has that worker have a queue pair of a port, and answers as `GET` does |
//! | `GET /tc` | the ports with a plan of their queues, as JSON |
//! | `PUT /tc`, with words as `tc` has them | has each port that they name serve what leaves by it like that, and answers as `GET` does |
//! | `PUT /tc?whole`, the same | the same, and has all other ports serve what leaves by them as it comes |
//! | `DELETE /tc/PORT` | has a port serve what leaves by it as it comes, and answers as `GET` does |
//! | `GET /ingress` | the ports whose share of their workers was set, as JSON |
//! | `PUT /ingress/PORT?class=CLASS&quantum=BYTES` | sets it, and answers as `GET` does |
//! | `DELETE /ingress/PORT` | has a port share its workers as others do, and answers as `GET` does |
//! | `GET /plugins` | the plugins that programs call, as JSON |
//! | `PUT /plugins/NAME?SETTINGS`, with a module | loads it under that name, and answers as `GET` does |
//! | `PUT /plugins/NAME/off`, `.../on` | switches it off, or on again, and answers as `GET` does |
//! | `GET /log` | the level of the log, as JSON |
//! | `PUT /log?level=LEVEL` | sets it, and answers as `GET` does |
//!
//! Captures, the log, plugins, plans, shares and queue pairs are switched from this machine only, and not by web pages: a request that says where it comes from
//! (`Origin`) is refused. So is every request for another host than this one (`Host`).

mod schedule;

use crate::collect::{Collector, Seen};
use crate::exposition::{CONTENT_TYPE, metrics};
use crate::guard::{Guard, may_change};
pub use crate::places::MAX_CONNECTIONS;
use crate::places::{Permit, Places};
use crate::status;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE as CONTENT_TYPE_HEADER, HeaderValue};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use millrace_dataplane::{Control, MoveError, ReportError};
use millrace_drivers::{CaptureError, Captures, Links};
use millrace_inputs::InputsStatus;
use millrace_listen::{Admission, ListenError, METRICS};
use millrace_observe_api::{LogStatus, PluginStatus, Status};
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;
use tracing::{info, warn};

/// Most bytes of a request.
pub const MAX_REQUEST: usize = 16 << 10;
/// Most bytes of the module of a plugin.
pub const MAX_PLUGIN: usize = 4 << 20;
/// Most headers of a request.
pub const MAX_HEADERS: usize = 64;
/// A request is there after so long.
pub const REQUEST_TIME: Duration = Duration::from_secs(5);
/// While all places are taken, somebody is refused and others wait so long.
const CROWDED: Duration = Duration::from_millis(10);
/// The longest time of a connection, which serves one request.
pub const MAX_TIME: Duration = Duration::from_secs(10);

/// How to listen.
#[derive(Clone, Debug)]
pub struct Listen {
    /// Where; port 0 takes a free one.
    pub address: SocketAddr,
    /// Whether other machines may read what can be seen.
    pub allow_remote: bool,
    /// Names and addresses by which it may be asked for, beyond the address of a connection and those of loopback.
    pub hosts: Vec<String>,
}

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
}

impl Shown {
    /// A switch without interfaces whose links are known, and without a log.
    pub fn new(control: Control, captures: Arc<Captures>) -> Shown {
        let (links, inputs) = (Links::default(), InputsStatus::default());
        Shown { control, captures, links, inputs, log: Box::new(NoLog), plugins: Arc::new(NoPlugins) }
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

/// Why the server cannot start.
#[derive(Debug)]
pub enum StartError {
    /// The address cannot be had, or anyone on the network could read.
    Listen(ListenError),
    /// The operating system refused a thread or what it needs.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Listen(error) => error.fmt(f),
            StartError::System(error) => write!(f, "cannot start the metrics server: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// A running server. It ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts to answer for a switch, on a thread of its own.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(listen: Listen, shown: Shown) -> Result<Server, StartError> {
        let Shown { control, captures, links, inputs, log, plugins } = shown;
        let Listen { address, allow_remote, hosts } = listen;
        let listener = millrace_listen::bind(&METRICS, address, Admission::Anybody, allow_remote)
            .map_err(StartError::Listen)?;
        let address = listener.local_addr().map_err(StartError::System)?;
        listener.set_nonblocking(true).map_err(StartError::System)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(2)
            .build()
            .map_err(StartError::System)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let seen = Seen { captures: Arc::clone(&captures), links, inputs, plugins: Arc::clone(&plugins) };
        let collector = Mutex::new(Collector::new(control.clone(), seen));
        let guard = Guard::new(&hosts);
        let shared = Arc::new(Shared { control, collector, captures, log, plugins, guard });
        let serve = async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            tokio::select! {
                () = accept(listener, shared) => {}
                _ = stopped => {}
            }
        };
        let work = move || {
            runtime.block_on(serve);
            // Somebody may still wait for a worker that answers no more.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("metrics".to_owned()).spawn(work);
        let thread = thread.map_err(StartError::System)?;
        Ok(Server { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Shared {
    control: Control,
    collector: Mutex<Collector>,
    captures: Arc<Captures>,
    log: Box<dyn Log>,
    plugins: Arc<dyn Plugins>,
    guard: Guard,
}

type Answer = Response<Full<Bytes>>;

async fn accept(listener: tokio::net::TcpListener, shared: Arc<Shared>) {
    let places = Arc::<Places>::default();
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(connection) => connection,
            // As when all descriptors are taken: some will be free again.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        // A connection that has gone already has no address, and nobody who hears an answer.
        let Ok(local) = stream.local_addr() else { continue };
        let ends = Ends { peer, local };
        let Some(place) = places.admit(peer.ip().to_canonical()) else {
            // All answer: some will be done soon, and so long nobody else is accepted.
            tokio::time::sleep(CROWDED).await;
            continue;
        };
        let (shared, place) = (Arc::clone(&shared), Arc::new(place));
        let id = place.id();
        let serving = tokio::spawn(async move {
            let asked = Arc::clone(&place);
            let answer = service_fn(move |request: Request<Incoming>| {
                asked.asked();
                let shared = Arc::clone(&shared);
                async move { Ok::<_, Infallible>(answer(shared, ends, request).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(REQUEST_TIME)
                .max_buf_size(MAX_REQUEST)
                .max_headers(MAX_HEADERS)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), answer);
            // What a client does wrong is its own loss.
            let _ = tokio::time::timeout(MAX_TIME, connection).await;
            drop(place);
        });
        Permit::served_by(&places, id, serving.abort_handle());
    }
}

/// The addresses of a connection.
#[derive(Clone, Copy)]
struct Ends {
    peer: SocketAddr,
    local: SocketAddr,
}

async fn answer(shared: Arc<Shared>, ends: Ends, request: Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    if let Err((status, reason)) = shared.guard.admits(&head, ends.local) {
        return text(status, &reason);
    }
    let path = head.uri.path().to_owned();
    if let Some(port) = path.strip_prefix("/captures/") {
        if head.method != Method::PUT && head.method != Method::DELETE {
            return text(StatusCode::METHOD_NOT_ALLOWED, "PUT switches a capture on, DELETE off");
        }
        if let Err((status, reason)) = may_change(&head, ends.peer) {
            return text(status, &reason);
        }
        let Ok(port) = port.parse::<u32>() else {
            return text(StatusCode::BAD_REQUEST, &format!("`{port}` is not the number of a port"));
        };
        let name = match head.uri.query() {
            None => None,
            Some(query) => match query.strip_prefix("name=") {
                Some(name) => Some(name.to_owned()),
                None => return text(StatusCode::BAD_REQUEST, &format!("`{query}` is not `name=NAME`")),
            },
        };
        let is_on = head.method == Method::PUT;
        return blocking(move || shared.switch(port, name.as_deref(), is_on)).await;
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
        "/log" => json(&LogStatus { level: shared.log.level() }),
        "/" => text(
            StatusCode::OK,
            "millrace: /metrics for Prometheus, /status, /captures, /queues, /tc, /ingress, /plugins and /log as JSON",
        ),
        _ => text(
            StatusCode::NOT_FOUND,
            "there are /metrics, /status, /captures, /queues, /tc, /ingress, /plugins and /log",
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

/// Does what may take a while on another thread than the one that answers.
async fn blocking(work: impl FnOnce() -> Answer + Send + 'static) -> Answer {
    let failed = |_| text(StatusCode::INTERNAL_SERVER_ERROR, "the request failed");
    tokio::task::spawn_blocking(work).await.unwrap_or_else(failed)
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

    fn switch(&self, port: u32, name: Option<&str>, is_on: bool) -> Answer {
        let done = match is_on {
            true => self.captures.start(port, name),
            false => self.captures.stop(port),
        };
        self.collector.lock().unwrap_or_else(PoisonError::into_inner).forget();
        match done {
            Ok(capture) => {
                let file = capture.incoming.display();
                let word = if is_on { "on" } else { "off" };
                let (packets, lost) = (capture.packets, capture.lost);
                match &capture.error {
                    Some(error) => warn!(port, %file, packets, lost, error, "capture {word}"),
                    None => info!(port, %file, packets, lost, "capture {word}"),
                }
                json(&status::capture(capture))
            }
            Err(error) => text(refused(&error), &error.to_string()),
        }
    }
}

fn refused(error: &CaptureError) -> StatusCode {
    match error {
        CaptureError::NoPort(_) => StatusCode::NOT_FOUND,
        CaptureError::Name(_) | CaptureError::MaxFile(_) => StatusCode::BAD_REQUEST,
        CaptureError::NoFolder | CaptureError::On(_) | CaptureError::Off(_) | CaptureError::Taken(_) => {
            StatusCode::CONFLICT
        }
        CaptureError::File(..) | CaptureError::Writer(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn text(status: StatusCode, line: &str) -> Answer {
    let mut answer = typed("text/plain; charset=utf-8", format!("{line}\n"));
    *answer.status_mut() = status;
    answer
}

fn json(value: &impl serde::Serialize) -> Answer {
    match serde_json::to_string(value) {
        Ok(text) => typed("application/json", text),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

fn typed(kind: &'static str, body: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    answer.headers_mut().insert(CONTENT_TYPE_HEADER, HeaderValue::from_static(kind));
    answer
}
