//! Asking a running switch what it is like.

use crate::chassis::ChassisStatus;
use crate::management::ModeStatus;
use crate::status::{CaptureStatus, IntakeStatus, LogStatus, PlanStatus, PluginStatus, Status, WorkerStatus};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;

/// Longest answer that is taken, in bytes.
const MAX_ANSWER: usize = 64 << 20;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks one switch, a connection for each question.
#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    /// What comes before each path: empty, or `/switches/NAME`.
    under: String,
    token: Option<String>,
}

impl fmt::Debug for Client {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("address", &self.address)
            .field("under", &self.under)
            .finish_non_exhaustive()
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientError {
    /// Nobody answers, or in words that are not ours.
    Connection(SocketAddr, String),
    /// The switch refuses.
    Refused(String),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Connection(address, reason) => {
                write!(
                    f,
                    "no switch answers at {address}: {reason} (`millrace run --metrics` starts one that does, and so does `http` in the file of a device)"
                )
            }
            ClientError::Refused(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for ClientError {}

impl Client {
    /// Of the switch that answers there.
    pub fn new(address: SocketAddr) -> Client {
        Client { address, under: String::new(), token: None }
    }

    /// Of a switch of the device that answers there. A name has letters, digits, `_`, `-` and `.`.
    #[must_use]
    pub fn of_switch(mut self, name: &str) -> Client {
        self.under = format!("/switches/{name}");
        self
    }

    /// Shows a token with each question, as the access list of a device knows it.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Client {
        self.token = Some(token.to_owned());
        self
    }

    /// Where the switch answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the switch is like.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn status(&self) -> Result<Status, ClientError> {
        let body = self.body(Method::GET, "/status", Vec::new())?;
        serde_json::from_slice(&body).map_err(|error| match serde_json::from_slice::<ChassisStatus>(&body) {
            Ok(device) => ClientError::Refused(format!(
                "{} at {} is a device with {} switches: say which (--switch NAME)",
                device.device,
                self.address,
                device.switches.len() + device.silent.len()
            )),
            Err(_) => self.failed(error.to_string()),
        })
    }

    /// What a device with many switches is like.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn device(&self) -> Result<ChassisStatus, ClientError> {
        self.ask(Method::GET, "/status")
    }

    /// The names of the switches of a device that may be read.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn switches(&self) -> Result<Vec<String>, ClientError> {
        self.ask(Method::GET, "/switches")
    }

    /// Switches the capture of a port on, to files of that name if one is given.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn start_capture(&self, port: u32, name: Option<&str>) -> Result<CaptureStatus, ClientError> {
        let query = name.map(|name| format!("?name={name}")).unwrap_or_default();
        self.ask(Method::PUT, &format!("/captures/{port}{query}"))
    }

    /// Switches the capture of a port off.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn stop_capture(&self, port: u32) -> Result<CaptureStatus, ClientError> {
        self.ask(Method::DELETE, &format!("/captures/{port}"))
    }

    /// The workers with the queue pairs that each has, the first one first.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn queues(&self) -> Result<Vec<WorkerStatus>, ClientError> {
        self.ask(Method::GET, "/queues")
    }

    /// Has a worker have a queue pair of a port from now on; gives the workers as they are then.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn move_queue(&self, port: u32, queue: u32, worker: u32) -> Result<Vec<WorkerStatus>, ClientError> {
        self.ask(Method::PUT, &format!("/queues/{port}/{queue}?worker={worker}"))
    }

    /// The ports with a plan of their queues.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn plans(&self) -> Result<Vec<PlanStatus>, ClientError> {
        self.ask(Method::GET, "/tc")
    }

    /// Has each port that these words name serve what leaves by it as they say, and with `whole` all others as it comes; gives the
    /// plans as they are then.
    ///
    /// # Errors
    /// [`ClientError`]; all ports go on as they did.
    pub fn set_plans(&self, words: &str, whole: bool) -> Result<Vec<PlanStatus>, ClientError> {
        let query = if whole { "?whole" } else { "" };
        self.ask_with(Method::PUT, &format!("/tc{query}"), words.as_bytes().to_vec())
    }

    /// Has a port serve what leaves by it as it comes; gives the plans as they are then.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn remove_plan(&self, port: u32) -> Result<Vec<PlanStatus>, ClientError> {
        self.ask(Method::DELETE, &format!("/tc/{port}"))
    }

    /// The ports whose share of their workers was set.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn intakes(&self) -> Result<Vec<IntakeStatus>, ClientError> {
        self.ask(Method::GET, "/ingress")
    }

    /// Sets the share of a port; gives all that were set.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn set_intake(&self, intake: IntakeStatus) -> Result<Vec<IntakeStatus>, ClientError> {
        let IntakeStatus { port, class, quantum } = intake;
        self.ask(Method::PUT, &format!("/ingress/{port}?class={class}&quantum={quantum}"))
    }

    /// Has a port share its workers as others do; gives those whose share was set.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn remove_intake(&self, port: u32) -> Result<Vec<IntakeStatus>, ClientError> {
        self.ask(Method::DELETE, &format!("/ingress/{port}"))
    }

    /// The mode of the switch.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn mode(&self) -> Result<ModeStatus, ClientError> {
        self.ask(Method::GET, "/mode")
    }

    /// Has the switch go on in another mode; gives it as it is then.
    ///
    /// # Errors
    /// [`ClientError`]; the mode stays.
    pub fn set_mode(&self, mode: &str) -> Result<ModeStatus, ClientError> {
        self.ask(Method::PUT, &format!("/mode?set={mode}"))
    }

    /// The plugins.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn plugins(&self) -> Result<Vec<PluginStatus>, ClientError> {
        self.ask(Method::GET, "/plugins")
    }

    /// Loads a module under the name of a plugin, in the place of what was there; gives the plugins as they are then.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn load_plugin(
        &self,
        name: &str,
        settings: &str,
        module: Vec<u8>,
    ) -> Result<Vec<PluginStatus>, ClientError> {
        self.ask_with(Method::PUT, &format!("/plugins/{name}?{settings}"), module)
    }

    /// Switches a plugin off, or on again; gives the plugins as they are then.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn switch_plugin(&self, name: &str, on: bool) -> Result<Vec<PluginStatus>, ClientError> {
        let what = if on { "on" } else { "off" };
        self.ask(Method::PUT, &format!("/plugins/{name}/{what}"))
    }

    /// The level of the log.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn log_level(&self) -> Result<LogStatus, ClientError> {
        self.ask(Method::GET, "/log")
    }

    /// Sets it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn set_log_level(&self, level: &str) -> Result<LogStatus, ClientError> {
        self.ask(Method::PUT, &format!("/log?level={level}"))
    }

    fn ask<T: DeserializeOwned>(&self, method: Method, path: &str) -> Result<T, ClientError> {
        self.ask_with(method, path, Vec::new())
    }

    fn ask_with<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<T, ClientError> {
        let body = self.body(method, path, body)?;
        serde_json::from_slice(&body).map_err(|error| self.failed(error.to_string()))
    }

    fn failed(&self, reason: String) -> ClientError {
        ClientError::Connection(self.address, reason)
    }

    fn body(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Bytes, ClientError> {
        let failed = |reason: String| self.failed(reason);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        let asked = runtime.block_on(async {
            let exchange = self.exchange(method, path, body);
            tokio::time::timeout(PATIENCE, exchange).await.unwrap_or_else(|_| Err("no answer in time".into()))
        });
        let (status, body) = asked.map_err(|error| failed(error.to_string()))?;
        if status != StatusCode::OK {
            return Err(ClientError::Refused(String::from_utf8_lossy(&body).trim().to_owned()));
        }
        Ok(body)
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
        let stream = TcpStream::connect(self.address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let driven = tokio::spawn(connection);
        let path = format!("{}{path}", self.under);
        let mut request =
            Request::builder().method(method).uri(path).header("host", self.address.to_string());
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let answer = sender.send_request(request.body(Full::new(Bytes::from(body)))?).await?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await?.to_bytes();
        driven.abort();
        Ok((status, body))
    }
}
