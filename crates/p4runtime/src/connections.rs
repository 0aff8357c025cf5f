//! How many connections there are: in all, and from one peer. One more is closed at once, and so is one that says nothing
//! at first, so that nobody keeps controllers out by holding connections.

use crate::greeting::{Greeting, Metadata};
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Sleep;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;
use tracing::warn;

/// Most connections of all clients.
pub const MAX_CONNECTIONS: usize = 256;
/// Most connections from one address.
pub const MAX_CONNECTIONS_OF_PEER: usize = 128;
/// A connection whose client has not begun to speak after this long is closed.
const SILENCE: Duration = Duration::from_secs(10);
/// Between two attempts to accept, when the system refuses.
const PAUSE: Duration = Duration::from_millis(100);

/// The connections that there are, by peer.
#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_peer: HashMap<IpAddr, usize>,
}

/// A connection's place among [`Open`].
#[derive(Debug)]
struct Place {
    open: Arc<Mutex<Open>>,
    peer: IpAddr,
}

impl Place {
    fn take(open: &Arc<Mutex<Open>>, peer: IpAddr) -> Option<Place> {
        let mut counted = open.lock().unwrap_or_else(PoisonError::into_inner);
        let of_peer = counted.by_peer.get(&peer).copied().unwrap_or(0);
        if counted.all >= MAX_CONNECTIONS || of_peer >= MAX_CONNECTIONS_OF_PEER {
            return None;
        }
        counted.all += 1;
        counted.by_peer.insert(peer, of_peer + 1);
        Some(Place { open: Arc::clone(open), peer })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counted = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        counted.all -= 1;
        if let Some(of_peer) = counted.by_peer.get_mut(&self.peer) {
            *of_peer -= 1;
            if *of_peer == 0 {
                counted.by_peer.remove(&self.peer);
            }
        }
    }
}

/// Accepts connections, as many as may be.
pub(crate) fn accept(listener: TcpListener) -> ReceiverStream<io::Result<Connection>> {
    let (accepted, incoming) = mpsc::channel(1);
    tokio::spawn(async move {
        let open = Arc::default();
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
            let Some(place) = Place::take(&open, from.ip()) else {
                warn!(peer = %from, "connection refused: there are too many");
                continue;
            };
            // Small messages are not to wait for larger ones; without it all is as right.
            let _ = stream.set_nodelay(true);
            let silence = Some(Box::pin(tokio::time::sleep(SILENCE)));
            if accepted
                .send(Ok(Connection { stream, silence, greeting: Greeting::new(), _place: place }))
                .await
                .is_err()
            {
                break;
            }
        }
    });
    ReceiverStream::new(incoming)
}

/// A connection that is counted.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    /// Until the client says something.
    silence: Option<Pin<Box<Sleep>>>,
    greeting: Greeting,
    _place: Place,
}

impl Connected for Connection {
    type ConnectInfo = Metadata;

    /// What is known of the client, in the extensions of each of its requests.
    fn connect_info(&self) -> Metadata {
        self.greeting.metadata()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, into) {
            let new = &into.filled()[before..];
            if !new.is_empty() {
                self.silence = None;
                self.greeting.take(new);
            }
            return Poll::Ready(read);
        }
        match &mut self.silence {
            Some(silence) => {
                ready!(silence.as_mut().poll(cx));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            None => Poll::Pending,
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, from)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, from)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
