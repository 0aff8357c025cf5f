//! The client's side of a connection.

use crate::remote::{self, Call};
use crate::{
    Answer, Hello, LineError, MAX_ANSWER, MAX_HELLO, MAX_REQUEST, RefusalKind, Refused, Request, VERSION,
};
use crate::{read_line, write_line};
use serde::Serialize;
use std::error::Error;
use std::fmt;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tonic::transport::Endpoint;
use tonic::{Code, Status};

/// How long a device may take; a program is compiled before a request is answered.
const TIMES: Times = Times { hello: Duration::from_secs(5), request: Duration::from_secs(600) };

/// A connection to a device.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<Stream>,
    device: String,
    times: Times,
}

/// How a device is reached.
#[derive(Debug)]
enum Stream {
    Socket(UnixStream),
    Grpc(Call),
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Socket(socket) => socket.read(bytes),
            Stream::Grpc(call) => call.from.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Socket(socket) => socket.write(bytes),
            Stream::Grpc(call) => call.to.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream {
    fn set_time(&mut self, time: Duration) -> io::Result<()> {
        match self {
            Stream::Socket(socket) => {
                socket.set_read_timeout(Some(time))?;
                socket.set_write_timeout(Some(time))
            }
            Stream::Grpc(call) => {
                (call.from.time, call.to.time) = (time, time);
                Ok(())
            }
        }
    }

    /// What the server said when it ended the connection.
    fn status(&self) -> Option<&Status> {
        match self {
            Stream::Socket(_) => None,
            Stream::Grpc(call) => call.from.status(),
        }
    }
}

/// How long a device may take.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// To accept a connection, and then to say its name.
    hello: Duration,
    /// To answer a request.
    request: Duration,
}

/// Why a device did not do what it was asked to.
#[derive(Debug)]
pub enum ClientError {
    /// No device can be reached at the path of the socket.
    Connect {
        /// The path.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// No server is reached at an address, or the connection to it fails.
    Unreachable(String),
    /// The device refuses it.
    Refused(Refused),
    /// The request, or the token, has more bytes than a device takes.
    TooLong(usize),
    /// The device has closed the connection in place of an answer.
    Closed,
    /// The device does not answer within that time.
    Silent(Duration),
    /// The connection fails, or the answer is longer than any.
    Line(LineError),
    /// What was said in place of an answer.
    Unexpected(String),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Connect { path, error } => {
                let path = path.display();
                match error.kind() {
                    ErrorKind::PermissionDenied => write!(
                        f,
                        "the device at {path} may not be reached: {error} (`socket-mode` and `socket-group` of its file say who may)"
                    ),
                    _ => {
                        write!(f, "no device listens at {path}: {error} (`millrace chassis FILE` starts one)")
                    }
                }
            }
            ClientError::Unreachable(reason) => f.write_str(reason),
            ClientError::Refused(refused) => f.write_str(&refused.message),
            ClientError::TooLong(max) => {
                let (what, limit) = match *max {
                    MAX_HELLO => ("token", "MAX_HELLO"),
                    _ => ("request", "MAX_REQUEST"),
                };
                write!(
                    f,
                    "the {what} makes a line of more than {max} bytes, the most that a device takes ({limit})"
                )
            }
            ClientError::Closed => {
                f.write_str("the device closed the connection without an answer; its log may say why")
            }
            ClientError::Silent(time) => {
                write!(f, "the device does not answer within {} seconds", time.as_secs_f32())
            }
            ClientError::Line(error) => write!(f, "the connection to the device fails: {error}"),
            ClientError::Unexpected(what) => write!(f, "the device answers what is no answer: {what}"),
        }
    }
}

impl Error for ClientError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ClientError::Connect { error, .. } => Some(error),
            ClientError::Line(error) => Some(error),
            _ => None,
        }
    }
}

impl Client {
    /// Connects to the socket of a device, with the token of a tenant or as the user of the process.
    ///
    /// # Errors
    /// No device is there, does not answer in time, is of another version or does not know who asks.
    pub fn connect(path: &Path, token: Option<&str>) -> Result<Client, ClientError> {
        Client::connect_within(path, token, TIMES)
    }

    /// Connects to the gRPC server of a device on any machine, with a token or with the certificate of the endpoint.
    ///
    /// # Errors
    /// As of [`Client::connect`].
    pub fn connect_grpc(endpoint: Endpoint, token: Option<&str>) -> Result<Client, ClientError> {
        let call = remote::call(endpoint, token, TIMES.hello)?;
        Client::greet(Stream::Grpc(call), None, TIMES)
    }

    fn connect_within(path: &Path, token: Option<&str>, times: Times) -> Result<Client, ClientError> {
        let stream = connected(path.to_owned(), times.hello)
            .map_err(|error| ClientError::Connect { path: path.to_owned(), error })?;
        Client::greet(Stream::Socket(stream), token, times)
    }

    fn greet(stream: Stream, token: Option<&str>, times: Times) -> Result<Client, ClientError> {
        let mut client = Client { stream: BufReader::new(stream), device: String::new(), times };
        client.set_time(times.hello)?;
        let hello = Hello { version: VERSION, token: token.map(str::to_owned) };
        match client.say(&hello, MAX_HELLO, times.hello)? {
            Answer::Ready { device } => client.device = device,
            _ => return Err(ClientError::Unexpected("it does not say that it is ready".to_owned())),
        }
        client.set_time(times.request)?;
        Ok(client)
    }

    /// The name of the device.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Has the device do something, and waits until it has. After an error that is no refusal the connection is of no use.
    ///
    /// # Errors
    /// The device refuses it, or does not answer.
    pub fn ask(&mut self, request: &Request) -> Result<Answer, ClientError> {
        self.say(request, MAX_REQUEST, self.times.request)
    }

    fn set_time(&mut self, time: Duration) -> Result<(), ClientError> {
        let set = self.stream.get_mut().set_time(time);
        set.map_err(|error| ClientError::Line(LineError::Io(error)))
    }

    /// Says a line and reads the one that answers it.
    fn say(&mut self, line: &impl Serialize, max: usize, time: Duration) -> Result<Answer, ClientError> {
        match write_line(self.stream.get_mut(), line, max) {
            Ok(()) => self.answer(time),
            Err(LineError::TooLong(max)) => Err(ClientError::TooLong(max)),
            // A device that takes no more may have said why before it closed the connection.
            Err(LineError::Io(error)) if is_closed(&error) => match self.answer(time) {
                Err(refused @ ClientError::Refused(_)) => Err(refused),
                _ => Err(ClientError::Closed),
            },
            Err(error) => Err(of_line(error, time)),
        }
    }

    fn answer(&mut self, time: Duration) -> Result<Answer, ClientError> {
        let line = read_line(&mut self.stream, MAX_ANSWER);
        if let (Err(_) | Ok(None), Some(status)) = (&line, self.stream.get_ref().status()) {
            return Err(of_status(status));
        }
        let line = line.map_err(|error| of_line(error, time))?.ok_or(ClientError::Closed)?;
        match serde_json::from_slice(&line) {
            Ok(Answer::Refused(refused)) => Err(ClientError::Refused(refused)),
            Ok(answer) => Ok(answer),
            Err(error) => Err(ClientError::Unexpected(error.to_string())),
        }
    }
}

/// What a server says in place of an answer, as the device would.
pub(crate) fn of_status(status: &Status) -> ClientError {
    let kind = match status.code() {
        Code::Unauthenticated => RefusalKind::Unknown,
        Code::PermissionDenied => RefusalKind::Forbidden,
        Code::ResourceExhausted | Code::OutOfRange => RefusalKind::Limit,
        Code::Unimplemented => {
            let reason = "the server does not answer `millrace ctl` (`grpc-ctl` in the file of the device)";
            return ClientError::Unreachable(reason.to_owned());
        }
        _ => return ClientError::Unreachable(format!("the connection fails: {}", status.message())),
    };
    ClientError::Refused(Refused { kind, message: status.message().to_owned(), problems: Vec::new() })
}

fn of_line(error: LineError, time: Duration) -> ClientError {
    match error {
        error if error.is_timeout() => ClientError::Silent(time),
        LineError::Partial => ClientError::Closed,
        LineError::Io(error) if is_closed(&error) => ClientError::Closed,
        error => ClientError::Line(error),
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
}

/// A connection, if there is one in time. The system has a connection to a socket wait for as long as others wait there, so a thread
/// of its own does, which goes when the socket does.
fn connected(path: PathBuf, time: Duration) -> io::Result<UnixStream> {
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().name("connect".to_owned()).spawn(move || {
        // The receiver has gone if it has waited long enough.
        drop(sender.send(UnixStream::connect(path)));
    })?;
    receiver.recv_timeout(time).unwrap_or_else(|_| {
        let seconds = time.as_secs_f32();
        Err(io::Error::new(
            ErrorKind::TimedOut,
            format!("the connection is not accepted within {seconds} seconds"),
        ))
    })
}

#[cfg(test)]
mod tests;
