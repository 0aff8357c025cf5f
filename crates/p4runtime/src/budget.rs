//! How much memory the messages of clients take at a time: of all connections together, and of each.
//!
//! Bytes count when they arrive, not when they are announced: a message is held back here until it is whole, and only
//! then the decoder hears of it. A request counts from its first byte until its answer has gone, with what it takes
//! decoded ([`crate::weight`]); an answer counts where it waits for its client.
//!
//! Each connection has an allowance of its own, so that small requests always have room. What it may have beyond that
//! depends on what is left, as a switch shares its packet memory among queues: no more than is free, so that one connection
//! may have half of all, and two a third each. The connection of a primary may go further, into a part that is kept for
//! primaries, in equal parts for those of each device.

use crate::peers::{Peer, Peers};
use crate::weight::weight;
use http_body::{Body as _, Frame};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Sleep;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Bytes, Service, http};
use tonic::server::NamedService;

/// Most bytes of memory that messages of all clients take at a time, beyond what each connection is allowed.
pub const MAX_IN_FLIGHT: usize = 256 << 20;
/// Bytes of memory that the messages of each connection may take in any case.
pub const ALLOWANCE: usize = 256 << 10;
/// What connections of primaries may take when that is used up.
pub const RESERVED_FOR_PRIMARIES: usize = 128 << 20;
/// Largest message of a client, in bytes: a program's text with its P4Info, or a batch.
pub const MAX_MESSAGE: usize = 32 << 20;
/// Largest message on a stream, in bytes: no server has less (specification, "gRPC Server Maximum Receive Message Size").
pub const MAX_STREAM_MESSAGE: usize = 4 << 20;
/// Largest other message, in bytes, as a request to read.
pub const MAX_REQUEST: usize = 4 << 20;
/// A message that has begun is there after so long.
pub const MESSAGE_TIME: Duration = Duration::from_secs(30);

/// A message up to this many bytes is not weighed: it is not decoded before it is answered.
const SMALL: usize = 64 << 10;
/// What is before each message: whether it is compressed, and its length.
const MESSAGE_HEADER: usize = 5;
/// Most bytes that an answer gives to the transport at a time.
const PART: usize = 16 << 10;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Budget {
    peers: Arc<Peers>,
    /// Bytes beyond the allowances. What connections have changes under this lock.
    used: Mutex<usize>,
}

impl Budget {
    pub(crate) fn new(peers: &Arc<Peers>) -> Arc<Budget> {
        Arc::new(Budget { peers: Arc::clone(peers), used: Mutex::default() })
    }

    fn used(&self) -> MutexGuard<'_, usize> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory of one request or answer, given back when the last clone is gone.
#[derive(Clone, Debug)]
pub(crate) struct Held(Arc<Share>);

#[derive(Debug)]
struct Share {
    budget: Arc<Budget>,
    peer: Arc<Peer>,
    bytes: AtomicUsize,
}

impl Held {
    fn new(budget: &Arc<Budget>, peer: &Arc<Peer>) -> Held {
        let (budget, peer) = (Arc::clone(budget), Arc::clone(peer));
        Held(Arc::new(Share { budget, peer, bytes: AtomicUsize::new(0) }))
    }

    /// Something else of the same client, which counts by itself.
    pub(crate) fn another(&self) -> Held {
        Held::new(&self.0.budget, &self.0.peer)
    }

    /// Takes so many bytes more.
    pub(crate) fn take(&self, more: usize) -> Result<(), Status> {
        let Share { budget, peer, bytes } = &*self.0;
        let mut used = budget.used();
        let before = peer.held.load(Relaxed);
        let own = beyond(before.saturating_add(more));
        let all = *used - beyond(before) + own;
        let fits = match peer.is_primary() {
            // Of what is reserved each device has its part.
            true => {
                all <= MAX_IN_FLIGHT || {
                    let others = budget.peers.reserved_for_others(peer, RESERVED_FOR_PRIMARIES, beyond);
                    all <= MAX_IN_FLIGHT + RESERVED_FOR_PRIMARIES - others
                }
            }
            false => own <= MAX_IN_FLIGHT.saturating_sub(all),
        };
        if own > 0 && !fits {
            return Err(Status::resource_exhausted(format!(
                "messages of all clients take {MAX_IN_FLIGHT} bytes of memory at most, and those of one connection no \
                 more than is free: try again, or with smaller ones"
            )));
        }
        *used = all;
        peer.held.fetch_add(more, Relaxed);
        bytes.fetch_add(more, Relaxed);
        Ok(())
    }

    /// Gives back so much of it.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.0.give_back(bytes);
    }

    fn give_all_back(&self) {
        self.0.give_back(self.0.bytes.load(Relaxed));
    }

    /// Whose it is.
    pub(crate) fn peer(&self) -> &Arc<Peer> {
        &self.0.peer
    }
}

impl Share {
    fn give_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Relaxed);
        let mut used = self.budget.used();
        let before = self.peer.held.fetch_sub(bytes, Relaxed);
        *used -= beyond(before) - beyond(before - bytes);
    }
}

/// What counts of the memory of a connection.
fn beyond(own: usize) -> usize {
    own.saturating_sub(ALLOWANCE)
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back(self.bytes.load(Relaxed));
    }
}

/// A gRPC service whose messages are counted.
#[derive(Clone, Debug)]
pub(crate) struct Counted<S> {
    service: S,
    budget: Arc<Budget>,
}

impl<S> Counted<S> {
    pub(crate) fn new(service: S, budget: &Arc<Budget>) -> Counted<S> {
        Counted { service, budget: Arc::clone(budget) }
    }
}

impl<S: NamedService> NamedService for Counted<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for Counted<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let (mut parts, body) = request.into_parts();
        let peer = Peer::of(&parts.extensions).unwrap_or_else(Peer::local);
        let call = Call::begin(&peer);
        let held = Held::new(&self.budget, &peer);
        parts.extensions.insert(held.clone());
        let body = Incoming::new(body, held.clone(), Kind::of(parts.uri.path()));
        let answered = self.service.call(http::Request::from_parts(parts, Body::new(body)));
        Box::pin(async move {
            let answer = answered.await?;
            Ok(answer.map(|body| Body::new(Outgoing { body, part: Bytes::new(), held, _call: call })))
        })
    }
}

/// A call that is under way.
struct Call(Arc<Peer>);

impl Call {
    fn begin(peer: &Arc<Peer>) -> Call {
        peer.begin();
        Call(Arc::clone(peer))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// What is known of the messages of a call by its name.
#[derive(Clone, Copy, Debug)]
struct Kind {
    limit: usize,
    /// Whether messages are taken one by one; else there is one, which is taken when nothing follows any more.
    is_stream: bool,
    /// The name of the message.
    message: Option<&'static str>,
}

impl Kind {
    fn of(path: &str) -> Kind {
        let one = |limit, message| Kind { limit, is_stream: false, message: Some(message) };
        match path.strip_prefix("/p4.v1.P4Runtime/") {
            Some("Write") => one(MAX_MESSAGE, "WriteRequest"),
            Some("SetForwardingPipelineConfig") => one(MAX_MESSAGE, "SetForwardingPipelineConfigRequest"),
            Some("Read") => one(MAX_REQUEST, "ReadRequest"),
            Some("StreamChannel") => {
                Kind { limit: MAX_STREAM_MESSAGE, is_stream: true, message: Some("StreamMessageRequest") }
            }
            Some(_) => Kind { limit: MAX_REQUEST, is_stream: false, message: None },
            None => Kind { limit: MAX_REQUEST, is_stream: true, message: None },
        }
    }
}

/// The body of a request. Of a stream one message is counted at a time: it asks for more when it has done with the last.
struct Incoming {
    body: Body,
    held: Held,
    kind: Kind,
    /// What has come and was not given on; up to `whole` these are whole messages.
    buffer: Vec<u8>,
    whole: usize,
    is_over: bool,
    /// When the message must be there; none: it has not begun.
    until: Option<Pin<Box<Sleep>>>,
}

impl Incoming {
    fn new(body: Body, held: Held, kind: Kind) -> Incoming {
        Incoming { body, held, kind, buffer: Vec::new(), whole: 0, is_over: false, until: None }
    }

    /// Bytes have come. Gives them if they are whole messages that may be given on at once.
    fn take(&mut self, bytes: Bytes) -> Result<Option<Bytes>, Status> {
        self.held.take(bytes.len())?;
        let at_once = self.buffer.is_empty() && (self.kind.is_stream || self.body.is_end_stream());
        if at_once && self.whole_messages(&bytes, 0)? == bytes.len() {
            return Ok(Some(bytes));
        }
        self.buffer.try_reserve(bytes.len()).map_err(|_| {
            Status::resource_exhausted(format!("there is no memory for a message of {} bytes", bytes.len()))
        })?;
        self.buffer.extend_from_slice(&bytes);
        if !self.kind.is_stream && self.buffer.len() > self.kind.limit + MESSAGE_HEADER {
            return Err(self.too_long());
        }
        self.whole = self.whole_messages(&self.buffer, self.whole)?;
        Ok(None)
    }

    /// Where the last whole message ends, if one begins there.
    fn whole_messages(&self, bytes: &[u8], mut from: usize) -> Result<usize, Status> {
        while let Some((&[_, a, b, c, d], rest)) = bytes[from..].split_first_chunk::<MESSAGE_HEADER>() {
            let length = u32::from_be_bytes([a, b, c, d]) as usize;
            if length > self.kind.limit {
                return Err(self.too_long());
            }
            let Some(message) = rest.get(..length) else { break };
            if let Some(name) = self.kind.message
                && length > SMALL
            {
                // More than can be had is too much in any case.
                self.held.take(weight(name, message, MAX_IN_FLIGHT + RESERVED_FOR_PRIMARIES))?;
            }
            from += MESSAGE_HEADER + length;
        }
        Ok(from)
    }

    fn too_long(&self) -> Status {
        // What gRPC's own servers answer.
        Status::resource_exhausted(format!("a message of this call has at most {} bytes", self.kind.limit))
    }

    /// The whole messages that may be given on.
    fn release(&mut self) -> Option<Bytes> {
        if self.whole == 0 || !(self.kind.is_stream || self.is_over) {
            return None;
        }
        let rest = self.buffer.split_off(self.whole);
        self.whole = 0;
        self.until = None;
        Some(std::mem::replace(&mut self.buffer, rest).into())
    }

    /// Whether a message has begun that is not there.
    fn is_waiting(&self) -> bool {
        !self.kind.is_stream || !self.buffer.is_empty()
    }
}

impl http_body::Body for Incoming {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.kind.is_stream && self.buffer.is_empty() {
            self.held.give_all_back();
        }
        loop {
            if let Some(messages) = self.release() {
                return Poll::Ready(Some(Ok(Frame::data(messages))));
            }
            if self.is_over {
                let is_cut = !std::mem::take(&mut self.buffer).is_empty();
                let cut = || Err(Status::internal("the request ends in the middle of a message"));
                return Poll::Ready(is_cut.then(cut));
            }
            let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
                if self.is_waiting() {
                    let until = self.until.get_or_insert_with(|| Box::pin(tokio::time::sleep(MESSAGE_TIME)));
                    ready!(until.as_mut().poll(cx));
                    return Poll::Ready(Some(Err(Status::deadline_exceeded(format!(
                        "a message is there {} seconds after its beginning",
                        MESSAGE_TIME.as_secs()
                    )))));
                }
                return Poll::Pending;
            };
            match frame.transpose()?.map(Frame::into_data) {
                Some(Ok(bytes)) => {
                    if let Some(messages) = self.take(bytes)? {
                        return Poll::Ready(Some(Ok(Frame::data(messages))));
                    }
                }
                // Clients send no trailers that anybody reads.
                Some(Err(_)) | None => self.is_over = true,
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.buffer.is_empty() && (self.is_over || self.body.is_end_stream())
    }
}

/// The body of an answer. It goes to the transport in parts, so that what the client does not take stays here, where it is
/// counted, and only while the socket takes it.
struct Outgoing {
    body: Body,
    /// What was made and has not gone.
    part: Bytes,
    /// What the call has, which is given back when the answer has gone.
    held: Held,
    _call: Call,
}

impl http_body::Body for Outgoing {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if !self.held.peer().may_send(cx.waker()) {
            return Poll::Pending;
        }
        if self.part.is_empty() {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            match frame.transpose()?.map(Frame::into_data) {
                Some(Ok(bytes)) => self.part = bytes,
                Some(Err(other)) => return Poll::Ready(Some(Ok(other))),
                None => return Poll::Ready(None),
            }
        }
        let part = self.part.len().min(PART);
        let part = self.part.split_to(part);
        self.held.peer().made(part.len());
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.part.is_empty() && self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_may_have_what_is_free_and_a_primary_more() {
        let budget = Budget::new(&Arc::new(Peers::new()));
        let held = || Held::new(&budget, &Peer::local());
        let (first, second, third) = (held(), held(), held());
        for held in [&first, &second, &third] {
            held.take(ALLOWANCE).unwrap();
        }
        assert_eq!(*budget.used(), 0);
        assert!(first.take(MAX_IN_FLIGHT / 2 + 1).is_err(), "no more than half");
        first.take(MAX_IN_FLIGHT / 2).unwrap();
        assert!(second.take(MAX_IN_FLIGHT / 4 + 1).is_err());
        second.take(MAX_IN_FLIGHT / 4).unwrap();
        assert_eq!(first.take(1).unwrap_err().code(), tonic::Code::ResourceExhausted);
        third.take(MAX_IN_FLIGHT / 8).unwrap();
        third.peer().count_primary(true);
        third.take(MAX_IN_FLIGHT / 8 + RESERVED_FOR_PRIMARIES).unwrap();
        assert!(third.take(1).is_err());
        second.give_back(MAX_IN_FLIGHT / 4 - 1);
        drop((first, second, third));
        assert_eq!(*budget.used(), 0);
    }

    #[test]
    fn primaries_of_each_device_have_their_part_of_what_is_reserved() {
        let peers = Arc::new(Peers::new());
        let budget = Budget::new(&peers);
        let primary = |device| {
            let (peer, _) = peers.admit([10, 0, 0, device as u8].into()).unwrap();
            peers.settle(&peer, device).unwrap();
            peer.count_stream(true);
            peer.count_primary(true);
            let held = Held::new(&budget, &peer);
            held.take(ALLOWANCE).unwrap();
            held
        };
        peers.share_among(4);
        let part = RESERVED_FOR_PRIMARIES / 4;
        let (first, again, second, third) = (primary(1), primary(1), primary(2), primary(3));
        first.take(MAX_IN_FLIGHT).unwrap();
        assert!(again.take(part + 1).is_err(), "the others have theirs");
        again.take(part).unwrap();
        assert!(first.take(1).is_err() && again.take(1).is_err());
        second.take(part).unwrap();
        assert!(second.take(1).is_err());
        third.take(part / 2).unwrap();
        // What a device that went had is divided again.
        peers.share_among(3);
        third.take(part / 2).unwrap();
        drop((first, again, second, third));
        assert_eq!(*budget.used(), 0);
    }

    #[test]
    fn whatever_many_connections_take_there_is_room_for_a_small_request() {
        let budget = Budget::new(&Arc::new(Peers::new()));
        let held = || Held::new(&budget, &Peer::local());
        let greedy: Vec<Held> = (0..crate::MAX_CONNECTIONS).map(|_| held()).collect();
        while greedy.iter().any(|held| held.take(16 << 10).is_ok()) {}
        assert!(held().take(ALLOWANCE + (1 << 20)).is_err());
        held().take(ALLOWANCE).unwrap();
        assert!(*budget.used() <= MAX_IN_FLIGHT);
    }

    fn message(length: usize) -> Vec<u8> {
        [&[0][..], &(length as u32).to_be_bytes(), &vec![7; length]].concat()
    }

    fn incoming(budget: &Arc<Budget>, path: &str) -> Incoming {
        Incoming::new(Body::empty(), Held::new(budget, &Peer::local()), Kind::of(path))
    }

    #[test]
    fn announced_bytes_take_nothing_until_they_come() {
        let budget = Budget::new(&Arc::new(Peers::new()));
        let mut body = incoming(&budget, "/p4.v1.P4Runtime/Write");
        assert_eq!(body.take(Bytes::from_static(&[0, 1, 0xff, 0xff, 0xff, 1])).unwrap(), None);
        assert_eq!((body.held.0.bytes.load(Relaxed), body.release()), (6, None));
        assert!(body.buffer.capacity() < 1024);
        let mut longest = incoming(&budget, "/p4.v1.P4Runtime/Write");
        let status = longest.take(Bytes::from_static(&[0, 2, 0, 0, 1])).unwrap_err();
        assert_eq!(status.code(), tonic::Code::ResourceExhausted);
        for other in ["StreamChannel", "Read"] {
            let mut body = incoming(&budget, &format!("/p4.v1.P4Runtime/{other}"));
            assert!(body.take(Bytes::from_static(&[0, 0, 0x40, 0, 0])).is_ok(), "{other}: as gRPC has it");
            let mut body = incoming(&budget, &format!("/p4.v1.P4Runtime/{other}"));
            assert!(
                body.take(Bytes::from_static(&[0, 0, 0x40, 0, 1])).is_err(),
                "{other}: less than a batch"
            );
        }
    }

    #[test]
    fn messages_of_a_stream_are_given_on_when_they_are_whole_however_they_come() {
        let bytes = [message(70_000), message(0), message(2)].concat();
        for at_once in [1, 4, 1000, 70_006, bytes.len()] {
            let budget = Budget::new(&Arc::new(Peers::new()));
            let mut body = incoming(&budget, "/p4.v1.P4Runtime/StreamChannel");
            let mut given = Vec::new();
            for part in bytes.chunks(at_once) {
                let direct = body.take(Bytes::copy_from_slice(part)).unwrap();
                given.extend(direct.into_iter().chain(body.release()).flatten());
                assert!([0, 70_005, 70_010, bytes.len()].contains(&given.len()), "{}", given.len());
            }
            assert_eq!(given, bytes);
            assert!(!body.is_waiting() && body.is_end_stream());
        }
    }

    #[test]
    fn the_message_of_a_call_is_given_on_when_nothing_follows() {
        let budget = Budget::new(&Arc::new(Peers::new()));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut body = incoming(&budget, "/p4.v1.P4Runtime/Write");
        body.buffer = message(9);
        body.whole = body.buffer.len();
        assert_eq!(body.release(), None);
        let given = Pin::new(&mut body).poll_frame(&mut cx);
        let Poll::Ready(Some(Ok(frame))) = given else { panic!("it ends") };
        assert_eq!(frame.into_data().unwrap(), message(9));
        // One that is cut off is not given on: its length would be believed.
        let mut cut = incoming(&budget, "/p4.v1.P4Runtime/Write");
        cut.buffer = message(9)[..8].to_vec();
        assert!(matches!(Pin::new(&mut cut).poll_frame(&mut cx), Poll::Ready(Some(Err(_)))));
        let mut twice = incoming(&budget, "/p4.v1.P4Runtime/Read");
        let whole = Bytes::from(message(MAX_REQUEST));
        assert!(twice.take(whole.slice(..10)).is_ok() && twice.take(whole.slice(10..)).is_ok());
        assert!(twice.take(message(MAX_REQUEST).into()).is_err(), "more than one message can have");
    }
}
