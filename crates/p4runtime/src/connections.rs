//! Connections as they are accepted: each has a place ([`crate::peers`]), and its client begins to speak in time.

use crate::greeting::Greeting;
use crate::peers::{Peer, Peers};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Sleep;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;
use tracing::warn;

/// A connection that has not said by now that it speaks HTTP/2, with TLS after a handshake, is closed.
pub const GREETING_TIME: Duration = Duration::from_secs(10);
/// Between two attempts to accept, when the system refuses.
const PAUSE: Duration = Duration::from_millis(100);
/// Between two connections when one gave way for the other: so long at least, and longer the more places there are for
/// newcomers, a client has for its first request.
const GIVE_WAY_PAUSE: Duration = Duration::from_millis(2);
/// How often it is told that there are too many.
const TOLD: Duration = Duration::from_secs(10);

/// Accepts connections, as many as may be.
pub(crate) fn accept(
    listener: TcpListener,
    has_tls: bool,
    peers: Arc<Peers>,
) -> ReceiverStream<io::Result<Connection>> {
    let (accepted, incoming) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut crowd = Crowd::default();
        while !accepted.is_closed() {
            let (stream, from) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // As when there are no descriptors left: others may be closed.
                    warn!(%error, "no connection accepted");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let Some((peer, gave_way)) = peers.admit(from.ip().to_canonical()) else {
                crowd.tell("connections refused: there are too many, and all are of controllers");
                tokio::time::sleep(GIVE_WAY_PAUSE).await;
                continue;
            };
            let place = Permit { peers: Arc::clone(&peers), peer };
            // Small messages are not to wait for larger ones; without it all is as right.
            let _ = stream.set_nodelay(true);
            let greeting = Greeting::new(place.peer.metadata.clone());
            let until = Some(Box::pin(tokio::time::sleep(GREETING_TIME)));
            let is_ready = AtomicBool::new(false);
            let connection = Connection { stream, until, greeting, has_tls, is_ready, place };
            if accepted.send(Ok(connection)).await.is_err() {
                break;
            }
            if gave_way {
                crowd.tell("connections closed that were of no use: there are too many");
                tokio::time::sleep(GIVE_WAY_PAUSE).await;
            }
        }
    });
    ReceiverStream::new(incoming)
}

/// Tells now and then that there are too many connections: whoever brings them does not fill the log.
#[derive(Debug, Default)]
struct Crowd {
    told: Option<Instant>,
    since: u64,
}

impl Crowd {
    fn tell(&mut self, what: &str) {
        self.since += 1;
        if self.told.is_none_or(|told| told.elapsed() >= TOLD) {
            warn!(connections = self.since, "{what}");
            (self.told, self.since) = (Some(Instant::now()), 0);
        }
    }
}

/// The place of a connection, given back when it ends.
#[derive(Debug)]
struct Permit {
    peers: Arc<Peers>,
    peer: Arc<Peer>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.peers.leave(&self.peer);
    }
}

/// A connection that has a place.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    /// Until the client has said what it speaks.
    until: Option<Pin<Box<Sleep>>>,
    greeting: Greeting,
    has_tls: bool,
    /// Whether the handshake of TLS has been done.
    is_ready: AtomicBool,
    place: Permit,
}

impl Connected for Connection {
    type ConnectInfo = Arc<Peer>;

    /// What is known of the client, in the extensions of each of its requests. It is asked for when the connection is ready
    /// for requests: with TLS after the handshake.
    fn connect_info(&self) -> Arc<Peer> {
        self.is_ready.store(true, Ordering::Relaxed);
        Arc::clone(&self.place.peer)
    }
}

impl Connection {
    fn has_greeted(&self) -> bool {
        match self.has_tls {
            true => self.is_ready.load(Ordering::Relaxed),
            false => self.greeting.is_done(),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.place.peer.is_closed(cx.waker()) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let before = into.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, into) {
            self.greeting.take(&into.filled()[before..]);
            return Poll::Ready(read);
        }
        if self.has_greeted() {
            self.until = None;
        }
        match &mut self.until {
            Some(until) => {
                ready!(until.as_mut().poll(cx));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            None => Poll::Pending,
        }
    }
}

impl Connection {
    /// What the socket said to bytes, which the bodies of answers wait for.
    fn wrote(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(bytes)) => self.place.peer.wrote(Some(*bytes)),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.place.peer.wrote(None),
        }
        written
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, from);
        self.wrote(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, from);
        self.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if let Poll::Ready(Ok(())) = flushed {
            self.place.peer.flushed();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
