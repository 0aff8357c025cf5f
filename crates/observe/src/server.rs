//! What a running switch answers over HTTP/1.1.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /metrics` | all numbers for Prometheus, in the OpenMetrics text format |
//! | `GET /status` | the same as one JSON object, [`Status`] |
//! | `GET /captures` | the captures that are on, as JSON |
//! | `PUT /captures/PORT`, with `?name=NAME` | switches the capture of a port on, to files of that name |
//! | `DELETE /captures/PORT` | switches it off, once its files are whole |
//!
//! Captures are switched from this machine only, and not by web pages: a request that says where it comes from
//! (`Origin`) is refused.

use crate::collect::Collector;
use crate::exposition::{CONTENT_TYPE, metrics};
use crate::status::{CaptureStatus, Status};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE as CONTENT_TYPE_HEADER, HeaderValue, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use millrace_ports::{CaptureError, Captures};
use millrace_switch::{Control, ReportError};
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};
use tracing::info;

/// Most connections at a time; others wait.
pub const MAX_CONNECTIONS: usize = 16;
/// Most bytes of a request.
pub const MAX_REQUEST: usize = 16 << 10;
/// Most headers of a request.
pub const MAX_HEADERS: usize = 64;
/// The longest time of a connection, which serves one request.
pub const MAX_TIME: Duration = Duration::from_secs(10);

/// How to listen.
#[derive(Clone, Copy, Debug)]
pub struct Listen {
    /// Where; port 0 takes a free one.
    pub address: SocketAddr,
    /// Whether other machines may read what can be seen.
    pub allow_remote: bool,
}

/// Why the server cannot start.
#[derive(Debug)]
pub enum StartError {
    /// Anyone on the network could read.
    Remote(SocketAddr),
    /// The address cannot be had.
    Listen(SocketAddr, io::Error),
    /// The operating system refused a thread or what it needs.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Remote(address) => {
                write!(f, "{address} is reached from other machines, and anyone there could read the metrics")
            }
            StartError::Listen(address, error) => write!(f, "cannot listen on {address}: {error}"),
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
    pub fn start(listen: Listen, control: Control, captures: Arc<Captures>) -> Result<Server, StartError> {
        let Listen { address, allow_remote } = listen;
        if !allow_remote && !address.ip().is_loopback() {
            return Err(StartError::Remote(address));
        }
        let refused = |error| StartError::Listen(address, error);
        let listener = TcpListener::bind(address).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(2)
            .build()
            .map_err(StartError::System)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let collector = Mutex::new(Collector::new(control, Arc::clone(&captures)));
        let shared = Arc::new(Shared { collector, captures });
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
    collector: Mutex<Collector>,
    captures: Arc<Captures>,
}

type Answer = Response<Full<Bytes>>;

async fn accept(listener: tokio::net::TcpListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let (stream, peer) = match listener.accept().await {
            Ok(connection) => connection,
            // As when all descriptors are taken: some will be free again.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let answer = service_fn(move |request: Request<Incoming>| {
                let shared = Arc::clone(&shared);
                async move { Ok::<_, Infallible>(answer(shared, peer, request).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(MAX_TIME)
                .max_buf_size(MAX_REQUEST)
                .max_headers(MAX_HEADERS)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), answer);
            // What a client does wrong is its own loss.
            let _ = tokio::time::timeout(MAX_TIME, connection).await;
            drop(place);
        });
    }
}

async fn answer(shared: Arc<Shared>, peer: SocketAddr, request: Request<Incoming>) -> Answer {
    let (head, _) = request.into_parts();
    let path = head.uri.path().to_owned();
    if let Some(port) = path.strip_prefix("/captures/") {
        if head.method != Method::PUT && head.method != Method::DELETE {
            return text(StatusCode::METHOD_NOT_ALLOWED, "PUT switches a capture on, DELETE off");
        }
        if !peer.ip().to_canonical().is_loopback() || head.headers.contains_key(ORIGIN) {
            return text(StatusCode::FORBIDDEN, "captures are switched by programs of this machine");
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
    if head.method != Method::GET && head.method != Method::HEAD {
        return text(StatusCode::METHOD_NOT_ALLOWED, "GET is expected");
    }
    match path.as_str() {
        "/metrics" => blocking(move || shared.status(|status| typed(CONTENT_TYPE, metrics(status)))).await,
        "/status" => blocking(move || shared.status(|status| json(&**status))).await,
        "/captures" => blocking(move || shared.status(|status| json(&status.captures))).await,
        "/" => text(StatusCode::OK, "millrace: /metrics for Prometheus, /status and /captures as JSON"),
        _ => text(StatusCode::NOT_FOUND, "there are /metrics, /status and /captures"),
    }
}

/// Does what may take a while beside the thread that answers.
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
                info!(port, %file, packets = capture.packets, lost = capture.lost, "capture {word}");
                json(&CaptureStatus::from(capture))
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
