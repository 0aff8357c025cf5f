//! What a running switch, or a device with many of them, answers over HTTP/1.1.
//!
//! One switch:
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /metrics` | all numbers for Prometheus, in the OpenMetrics text format |
//! | `GET /status` | the same as one JSON object, [`Status`](millrace_observe_api::Status) |
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
//! | `GET /mode` | the mode of the switch, as JSON |
//! | `PUT /mode?set=MODE` | has it go on in that mode, and answers as `GET` does |
//! | `GET /log` | the level of the log, as JSON |
//! | `PUT /log?level=LEVEL` | sets it, and answers as `GET` does |
//!
//! A device with many switches ([`Switches`]), of which each client sees those that it may read:
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /switches` | the names of the switches, as JSON |
//! | `GET /switches/NAME/status`, `/metrics`, `/captures` | what one switch answers, of that switch |
//! | `PUT`, `DELETE /switches/NAME/captures/PORT` | the same |
//! | `GET /metrics` | all numbers of all switches with the label `switch`, and for the operator those of the device |
//! | `GET /status` | the same as one JSON object, [`ChassisStatus`](millrace_observe_api::ChassisStatus) |
//!
//! Whoever is not on the access list gets 401, and what a client may not see is 404, as what is not there.
//!
//! Captures, the log, modes, plugins, plans, shares and queue pairs are switched from this machine only, and not by web pages: a request that
//! says where it comes from
//! (`Origin`) is refused. So is every request for another host than this one (`Host`).

mod captures;
mod many;
mod one;

use crate::guard::Guard;
pub use crate::places::MAX_CONNECTIONS;
use crate::places::{Permit, Places};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE as CONTENT_TYPE_HEADER, HeaderValue};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
pub use many::{Change, MAX_SWITCH_CAPTURES, Physical, SCRAPE_TIME, Switches, Watched};
use millrace_listen::{Admission, ListenError, METRICS, Service};
pub use one::{Log, Modes, NoModes, NoPlugins, Plugins, Shown};
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

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

/// Metrics and captures of a device with many switches, with the words of its file.
pub const DEVICE: Service = Service { option: "http", open_option: "http-allow-remote", ..METRICS };

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
        Server::serve(listen, &METRICS, one::Shared::new(shown))
    }

    /// Starts to answer for the switches of a device, which come and go meanwhile.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start_many(listen: Listen, switches: Arc<dyn Switches>) -> Result<Server, StartError> {
        Server::serve(listen, &DEVICE, many::Many::new(switches))
    }

    fn serve<S: Site>(listen: Listen, service: &'static Service, site: S) -> Result<Server, StartError> {
        let Listen { address, allow_remote, hosts } = listen;
        let listener = millrace_listen::bind(service, address, Admission::Anybody, allow_remote)
            .map_err(StartError::Listen)?;
        let address = listener.local_addr().map_err(StartError::System)?;
        listener.set_nonblocking(true).map_err(StartError::System)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(S::THREADS)
            .build()
            .map_err(StartError::System)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let guarded = (Guard::new(&hosts, S::HOSTS), Arc::new(site));
        let serve = async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            tokio::select! {
                () = accept(listener, guarded) => {}
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

type Answer = Response<Full<Bytes>>;

/// What a server answers for.
trait Site: Send + Sync + 'static {
    /// What names further hosts by which it may be asked for.
    const HOSTS: &'static str;
    /// Threads that wait for workers, and for the disk.
    const THREADS: usize;

    /// The answer to a request that may be answered.
    fn answer(
        self: Arc<Self>,
        ends: Ends,
        head: Parts,
        body: Incoming,
    ) -> impl Future<Output = Answer> + Send;
}

async fn accept<S: Site>(listener: tokio::net::TcpListener, (guard, site): (Guard, Arc<S>)) {
    let guard = Arc::new(guard);
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
        let (site, guard, place) = (Arc::clone(&site), Arc::clone(&guard), Arc::new(place));
        let id = place.id();
        let serving = tokio::spawn(async move {
            let asked = Arc::clone(&place);
            let answer = service_fn(move |request: Request<Incoming>| {
                asked.asked();
                let (head, body) = request.into_parts();
                let admitted = guard.admits(&head, ends.local);
                let site = Arc::clone(&site);
                async move {
                    Ok::<_, Infallible>(match admitted {
                        Ok(()) => site.answer(ends, head, body).await,
                        Err((status, reason)) => text(status, &reason),
                    })
                }
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

/// Does what may take a while on another thread than the one that answers.
async fn blocking(work: impl FnOnce() -> Answer + Send + 'static) -> Answer {
    let failed = |_| text(StatusCode::INTERNAL_SERVER_ERROR, "the request failed");
    tokio::task::spawn_blocking(work).await.unwrap_or_else(failed)
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
