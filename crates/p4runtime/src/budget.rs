//! How many bytes of messages there are at a time, of all connections together.
//!
//! A request counts from its first byte until it has been worked on, also when its client has gone meanwhile. Small ones
//! always have room, so that nobody keeps controllers out with large ones.

use crate::proto::v1::p4_runtime_server::SERVICE_NAME;
use http_body::Frame;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Bytes, Service, http};
use tonic::server::NamedService;

/// Most bytes of large messages at a time.
pub const MAX_IN_FLIGHT: usize = 128 << 20;
/// A message up to this many bytes is not counted.
const SMALL: usize = 64 << 10;
/// What is in front of each message: whether it is compressed, and its length.
const MESSAGE_HEADER: usize = 5;

/// A gRPC service whose messages are counted.
#[derive(Clone, Debug)]
pub(crate) struct Counted<S> {
    service: S,
    in_flight: Arc<AtomicUsize>,
}

impl<S> Counted<S> {
    pub(crate) fn new(service: S) -> Counted<S> {
        Counted { service, in_flight: Arc::default() }
    }
}

impl<S> NamedService for Counted<S> {
    const NAME: &'static str = SERVICE_NAME;
}

impl<S: Service<http::Request<Body>>> Service<http::Request<Body>> for Counted<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> S::Future {
        let (mut parts, body) = request.into_parts();
        let held =
            Held(Arc::new(Share { in_flight: Arc::clone(&self.in_flight), bytes: AtomicUsize::new(0) }));
        parts.extensions.insert(held.clone());
        let is_stream = parts.uri.path().ends_with("/StreamChannel");
        let body = CountedBody { body, held, is_stream, header: [0; MESSAGE_HEADER], known: 0, missing: 0 };
        self.service.call(http::Request::from_parts(parts, Body::new(body)))
    }
}

/// The bytes of a request, in its extensions. They count until the last clone is gone.
#[derive(Clone, Debug)]
pub(crate) struct Held(#[allow(dead_code, reason = "kept for what happens when it goes")] Arc<Share>);

#[derive(Debug)]
struct Share {
    in_flight: Arc<AtomicUsize>,
    bytes: AtomicUsize,
}

/// What a message of so many bytes counts.
fn counted(bytes: usize) -> usize {
    if bytes <= SMALL { 0 } else { bytes }
}

impl Share {
    /// So many bytes more have come.
    fn take(&self, more: usize) -> Result<(), Status> {
        let before = self.bytes.load(Ordering::Relaxed);
        let cost = counted(before + more) - counted(before);
        let taken = self.in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |all| {
            Some(all + cost).filter(|all| cost == 0 || *all <= MAX_IN_FLIGHT)
        });
        taken.map_err(|_| {
            Status::resource_exhausted(format!(
                "messages of all clients have more than {MAX_IN_FLIGHT} bytes: try again, or with smaller ones"
            ))
        })?;
        self.bytes.store(before + more, Ordering::Relaxed);
        Ok(())
    }

    fn give_back(&self) {
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        self.in_flight.fetch_sub(counted(bytes), Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// The body of a request. Of a stream one message is counted at a time: it asks for more when it has done with the last.
struct CountedBody {
    body: Body,
    held: Held,
    is_stream: bool,
    /// Of the message that comes: as much of its header as is known, and how many bytes are missing behind it.
    header: [u8; MESSAGE_HEADER],
    known: usize,
    missing: usize,
}

impl CountedBody {
    fn take(&mut self, mut bytes: &[u8]) -> Result<(), Status> {
        while !bytes.is_empty() {
            if self.missing > 0 {
                let part = self.missing.min(bytes.len());
                self.held.0.take(part)?;
                self.missing -= part;
                bytes = &bytes[part..];
                continue;
            }
            let (part, rest) = bytes.split_at(bytes.len().min(MESSAGE_HEADER - self.known));
            self.header[self.known..self.known + part.len()].copy_from_slice(part);
            self.known += part.len();
            bytes = rest;
            if self.known == MESSAGE_HEADER {
                let [_, length @ ..] = self.header;
                (self.missing, self.known) = (u32::from_be_bytes(length) as usize, 0);
            }
        }
        Ok(())
    }
}

impl http_body::Body for CountedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.is_stream && self.missing == 0 {
            self.held.0.give_back();
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(bytes) = frame.data_ref()
            && let Err(status) = self.take(bytes)
        {
            return Poll::Ready(Some(Err(status)));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(in_flight: &Arc<AtomicUsize>) -> Share {
        Share { in_flight: Arc::clone(in_flight), bytes: AtomicUsize::new(0) }
    }

    #[test]
    fn large_messages_have_one_limit_together_and_small_ones_none() {
        let in_flight = Arc::default();
        let (first, second, small) = (share(&in_flight), share(&in_flight), share(&in_flight));
        first.take(100 << 20).unwrap();
        second.take(28 << 20).unwrap();
        assert_eq!(second.take(1).unwrap_err().code(), tonic::Code::ResourceExhausted);
        small.take(SMALL).unwrap();
        assert_eq!(in_flight.load(Ordering::Relaxed), 128 << 20);
        drop(second);
        // From the first byte when it is not small.
        assert!(small.take(1).is_ok());
        assert_eq!(in_flight.load(Ordering::Relaxed), (100 << 20) + SMALL + 1);
        drop((first, small));
        assert_eq!(in_flight.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn messages_are_counted_without_their_headers_however_they_come() {
        let bytes: Vec<u8> =
            [&[0, 0, 1, 0, 1][..], &[7; 65_537], &[0, 0, 0, 0, 0], &[0, 0, 0, 0, 2, 1, 2]].concat();
        for at_once in [1, 4, 1000, bytes.len()] {
            let held = Held(Arc::new(share(&Arc::default())));
            let body = Body::empty();
            let (header, is_stream) = ([0; MESSAGE_HEADER], false);
            let mut counted = CountedBody { body, held, is_stream, header, known: 0, missing: 0 };
            bytes.chunks(at_once).for_each(|part| counted.take(part).unwrap());
            assert_eq!(counted.held.0.bytes.load(Ordering::Relaxed), 65_539);
            assert_eq!((counted.missing, counted.known), (0, 0));
        }
    }
}
