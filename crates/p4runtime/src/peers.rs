//! Who is connected: how many connections there are, in all and from one address, and which of them gives way when there
//! is no place for another.
//!
//! Whoever can connect may hold connections. So a newcomer always finds a place while there is one that is of less use: one
//! without any request, then one without a call, then one that calls but is no controller. A connection with a stream that
//! took part in an arbitration never gives way, and there are fewer of these than places ([`crate::MAX_STREAMS`]), so that
//! some places are always left for newcomers.

use crate::greeting::Metadata;
use crate::streams::MAX_STREAMS;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::time::Instant;
use tonic::transport::server::TlsConnectInfo;

/// Most connections of all clients.
pub const MAX_CONNECTIONS: usize = 256;
/// Most connections from one address.
pub const MAX_CONNECTIONS_OF_PEER: usize = 128;
/// Most bytes of answers that wait for the socket of one connection; what comes after waits where it is made.
pub(crate) const MAX_UNSENT: usize = 256 << 10;

/// All connections that have a place.
#[derive(Debug)]
pub(crate) struct Peers {
    begun: Instant,
    next: AtomicU64,
    open: Mutex<BTreeMap<u64, Arc<Peer>>>,
    /// Among how many devices places and memory are divided when they are scarce.
    devices: AtomicUsize,
}

/// One connection, as everything that serves it sees it.
#[derive(Debug)]
pub(crate) struct Peer {
    id: u64,
    /// Where it comes from; none of a caller in this process.
    pub(crate) address: Option<IpAddr>,
    pub(crate) metadata: Metadata,
    begun: Instant,
    /// When a call began or ended last, in milliseconds since `begun`.
    last_ms: AtomicU64,
    has_asked: AtomicBool,
    /// Calls that are under way.
    calls: AtomicU32,
    /// Its open streams.
    opened: AtomicU32,
    /// Its streams that took part in an arbitration, and those of them that are primary.
    streams: AtomicU32,
    primaries: AtomicU32,
    /// Bytes of memory that its requests and answers take ([`crate::budget`]).
    pub(crate) held: AtomicUsize,
    /// The device that its place and its memory count for: that of the first of its streams.
    device: Mutex<Option<u64>>,
    common_name: OnceLock<Option<String>>,
    socket: Mutex<Socket>,
}

/// Counts an open stream of a connection.
#[derive(Debug)]
pub(crate) struct OpenStream(Arc<Peer>);

impl OpenStream {
    /// One more, if there are fewer than `most`.
    pub(crate) fn of(peer: &Arc<Peer>, most: usize) -> Option<OpenStream> {
        let more = |opened: u32| ((opened as usize) < most).then_some(opened + 1);
        peer.opened.fetch_update(Relaxed, Relaxed, more).ok().map(|_| OpenStream(Arc::clone(peer)))
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.opened.fetch_sub(1, Relaxed);
    }
}

/// What the connection's socket and the bodies of its answers tell each other.
#[derive(Debug, Default)]
struct Socket {
    is_closed: bool,
    reader: Option<Waker>,
    /// Bytes that were made and are not written yet, and whether the socket takes none.
    unsent: usize,
    is_blocked: bool,
    waiting: Vec<Waker>,
}

/// In which order connections give way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// It has not asked for anything yet.
    Silent,
    /// It has no call.
    Idle,
    /// It calls, without having taken part in an arbitration.
    Calling,
}

impl Peers {
    pub(crate) fn new() -> Peers {
        Peers {
            begun: Instant::now(),
            next: AtomicU64::new(0),
            open: Mutex::default(),
            devices: AtomicUsize::new(0),
        }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Peer>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection; whether another one gave way for it. None when all are of more use.
    pub(crate) fn admit(&self, address: IpAddr) -> Option<(Arc<Peer>, bool)> {
        let mut open = self.open();
        let mut by_address: HashMap<IpAddr, usize> = HashMap::new();
        open.values()
            .filter_map(|peer| peer.address)
            .for_each(|one| *by_address.entry(one).or_default() += 1);
        let of = |peer: &Peer| peer.address.and_then(|one| by_address.get(&one)).copied().unwrap_or(0);
        let is_full = by_address.get(&address).is_some_and(|count| *count >= MAX_CONNECTIONS_OF_PEER);
        let gives_way = is_full || open.len() >= MAX_CONNECTIONS;
        if gives_way {
            let candidates = open.values().filter(|peer| !is_full || peer.address == Some(address));
            let candidates = candidates.filter_map(|peer| Some((peer.usefulness()?, peer)));
            // Of the same use: one of the address that has most, and of these the one that has rested longest.
            let (_, victim) = candidates.min_by_key(|(class, peer)| {
                (*class, std::cmp::Reverse(of(peer)), peer.last_ms.load(Relaxed), peer.id)
            })?;
            let victim = Arc::clone(victim);
            open.remove(&victim.id);
            victim.close();
        }
        let peer = Arc::new(Peer::new(self.next.fetch_add(1, Relaxed), Some(address), self.begun));
        peer.touch();
        open.insert(peer.id, Arc::clone(&peer));
        Some((peer, gives_way))
    }

    /// Divides places and memory among so many devices.
    pub(crate) fn share_among(&self, devices: usize) {
        self.devices.store(devices, Relaxed);
    }

    /// A connection is about to have a stream for a device, after which it does not give way to newcomers. Of several devices
    /// each has its part of the [`MAX_STREAMS`] places for that: when there is none left, a device that has less than its part
    /// takes one of the device that has most.
    pub(crate) fn settle(&self, peer: &Arc<Peer>, device: u64) -> Result<(), String> {
        if peer.streams() > 0 {
            return Ok(());
        }
        let mut open = self.open();
        let devices = self.devices.load(Relaxed);
        let of_device = || open.values().filter_map(|peer| Some((peer.device()?, peer)));
        if devices > 1 && of_device().count() >= MAX_STREAMS {
            let mut counts: HashMap<u64, usize> = HashMap::new();
            of_device().for_each(|(device, _)| *counts.entry(device).or_default() += 1);
            let part = (MAX_STREAMS / devices).max(1);
            let full = || {
                format!(
                    "at most {MAX_STREAMS} connections have streams, {part} of each device when all are taken"
                )
            };
            let has_most = counts.iter().max_by_key(|(device, count)| (**count, **device));
            let Some((most, _)) = has_most
                .filter(|(_, count)| counts.get(&device).copied().unwrap_or(0) < part && **count > part)
            else {
                return Err(full());
            };
            let candidates = of_device().filter(|(device, _)| device == most).map(|(_, peer)| peer);
            let victim =
                candidates.min_by_key(|peer| (peer.is_primary(), peer.last_ms.load(Relaxed), peer.id));
            let victim = Arc::clone(victim.ok_or_else(full)?);
            open.remove(&victim.id);
            victim.close();
        }
        *peer.device.lock().unwrap_or_else(PoisonError::into_inner) = Some(device);
        Ok(())
    }

    /// What devices other than that of a connection may still take of `reserve`, of which each has an equal part. `beyond`
    /// gives what counts of the memory of a connection.
    pub(crate) fn reserved_for_others(
        &self,
        peer: &Peer,
        reserve: usize,
        beyond: impl Fn(usize) -> usize,
    ) -> usize {
        let devices = self.devices.load(Relaxed).max(1);
        let part = reserve / devices;
        let mut taken: HashMap<u64, usize> = HashMap::new();
        for other in self.open().values() {
            if let Some(device) = other.device().filter(|device| Some(*device) != peer.device()) {
                *taken.entry(device).or_default() += beyond(other.held.load(Relaxed));
            }
        }
        let taken: usize = taken.values().map(|bytes| (*bytes).min(part)).sum();
        (part * (devices - 1)).saturating_sub(taken)
    }

    /// A connection has ended.
    pub(crate) fn leave(&self, peer: &Peer) {
        self.open().remove(&peer.id);
    }
}

impl Peer {
    fn new(id: u64, address: Option<IpAddr>, begun: Instant) -> Peer {
        Peer {
            id,
            address,
            metadata: Metadata::default(),
            begun,
            last_ms: AtomicU64::new(0),
            has_asked: AtomicBool::new(false),
            calls: AtomicU32::new(0),
            opened: AtomicU32::new(0),
            streams: AtomicU32::new(0),
            primaries: AtomicU32::new(0),
            held: AtomicUsize::new(0),
            device: Mutex::default(),
            common_name: OnceLock::new(),
            socket: Mutex::default(),
        }
    }

    /// Whoever calls without a connection, in this process.
    pub(crate) fn local() -> Arc<Peer> {
        Arc::new(Peer::new(u64::MAX, None, Instant::now()))
    }

    /// The connection that a request came by, with or without TLS.
    pub(crate) fn of(extensions: &tonic::codegen::http::Extensions) -> Option<Arc<Peer>> {
        let plain = extensions.get::<Arc<Peer>>().cloned();
        plain.or_else(|| Some(Arc::clone(extensions.get::<TlsConnectInfo<Arc<Peer>>>()?.get_ref())))
    }

    fn touch(&self) {
        self.last_ms.store(self.begun.elapsed().as_millis() as u64, Relaxed);
    }

    /// A call begins.
    pub(crate) fn begin(&self) {
        self.touch();
        self.has_asked.store(true, Relaxed);
        self.calls.fetch_add(1, Relaxed);
    }

    /// A call has ended.
    pub(crate) fn end(&self) {
        self.touch();
        self.calls.fetch_sub(1, Relaxed);
    }

    /// One of its streams takes part in an arbitration, or does no more.
    pub(crate) fn count_stream(&self, more: bool) {
        count(&self.streams, more);
    }

    /// One of its streams became primary, or is so no more.
    pub(crate) fn count_primary(&self, more: bool) {
        count(&self.primaries, more);
    }

    /// How many of its streams took part in an arbitration.
    pub(crate) fn streams(&self) -> u32 {
        self.streams.load(Relaxed)
    }

    /// Whether one of its streams is primary.
    pub(crate) fn is_primary(&self) -> bool {
        self.primaries.load(Relaxed) > 0
    }

    /// The device that it counts for, while it has streams.
    fn device(&self) -> Option<u64> {
        let device = *self.device.lock().unwrap_or_else(PoisonError::into_inner);
        device.filter(|_| self.streams() > 0)
    }

    /// The common name of its client's certificate, which is looked for once.
    pub(crate) fn common_name(&self, find: impl FnOnce() -> Option<String>) -> Option<String> {
        self.common_name.get_or_init(find).clone()
    }

    /// Of what use it is; none where it does not give way.
    fn usefulness(&self) -> Option<Use> {
        if self.streams() > 0 {
            return None;
        }
        Some(match (self.has_asked.load(Relaxed), self.calls.load(Relaxed)) {
            (false, _) => Use::Silent,
            (true, 0) => Use::Idle,
            (true, _) => Use::Calling,
        })
    }

    fn socket(&self) -> MutexGuard<'_, Socket> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection has to end.
    fn close(&self) {
        let mut socket = self.socket();
        socket.is_closed = true;
        socket.reader.take().into_iter().chain(socket.waiting.drain(..)).for_each(Waker::wake);
    }

    /// Whether the connection has to end; if not, the waker is told when it has.
    pub(crate) fn is_closed(&self, waker: &Waker) -> bool {
        let mut socket = self.socket();
        if !socket.is_closed && !socket.reader.as_ref().is_some_and(|known| known.will_wake(waker)) {
            socket.reader = Some(waker.clone());
        }
        socket.is_closed
    }

    /// The socket took bytes, or would not.
    pub(crate) fn wrote(&self, bytes: Option<usize>) {
        let mut socket = self.socket();
        socket.is_blocked = bytes.is_none();
        socket.unsent = socket.unsent.saturating_sub(bytes.unwrap_or(0));
        if bytes.is_some() {
            socket.waiting.drain(..).for_each(Waker::wake);
        }
    }

    /// The socket took all there was.
    pub(crate) fn flushed(&self) {
        let mut socket = self.socket();
        (socket.unsent, socket.is_blocked) = (0, false);
        socket.waiting.drain(..).for_each(Waker::wake);
    }

    /// Whether more may be made for the socket; if not, the waker is told when it may.
    pub(crate) fn may_send(&self, waker: &Waker) -> bool {
        let mut socket = self.socket();
        let may = !socket.is_blocked || socket.unsent < MAX_UNSENT || socket.is_closed;
        if !may && !socket.waiting.iter().any(|known| known.will_wake(waker)) {
            socket.waiting.push(waker.clone());
        }
        may
    }

    /// Bytes were made for the socket.
    pub(crate) fn made(&self, bytes: usize) {
        let mut socket = self.socket();
        socket.unsent = socket.unsent.saturating_add(bytes);
    }
}

fn count(counter: &AtomicU32, more: bool) {
    match more {
        true => counter.fetch_add(1, Relaxed),
        false => counter.fetch_sub(1, Relaxed),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn is_closed(peer: &Peer) -> bool {
        peer.is_closed(Waker::noop())
    }

    #[test]
    fn the_least_useful_connection_gives_way_and_controllers_never_do() {
        let peers = Peers::new();
        let open: Vec<Arc<Peer>> =
            (0..MAX_CONNECTIONS_OF_PEER).map(|_| peers.admit(HERE).unwrap().0).collect();
        // All have a stream, but four: one called and rests, one calls, two said nothing.
        open[4..].iter().for_each(|peer| peer.count_stream(true));
        open[0].begin();
        open[0].end();
        open[1].begin();
        for expected in [2, 3, 0, 1] {
            let (peer, gave_way) = peers.admit(HERE).unwrap();
            peer.count_stream(true);
            assert!(gave_way && is_closed(&open[expected]), "{expected}");
        }
        assert!(peers.admit(HERE).is_none(), "all others are controllers");
        assert!(open[4..].iter().all(|peer| !is_closed(peer)));
        // Another address has places of its own.
        assert!(peers.admit([10, 0, 0, 1].into()).is_some_and(|(_, gave_way)| !gave_way));
        peers.leave(&open[9]);
        assert!(peers.admit(HERE).is_some_and(|(_, gave_way)| !gave_way));
    }

    #[test]
    fn with_no_place_at_all_the_address_that_has_most_gives_way() {
        let peers = Peers::new();
        let few: Vec<Arc<Peer>> = (0..20).map(|_| peers.admit([10, 0, 0, 1].into()).unwrap().0).collect();
        let many: Vec<Arc<Peer>> =
            (0..MAX_CONNECTIONS_OF_PEER).map(|_| peers.admit([10, 0, 0, 2].into()).unwrap().0).collect();
        let rest = MAX_CONNECTIONS - few.len() - many.len();
        for number in 0..rest {
            peers.admit([10, 0, 1, number as u8].into()).unwrap();
        }
        let (_, gave_way) = peers.admit([10, 0, 0, 9].into()).unwrap();
        assert!(gave_way && is_closed(&many[0]) && few.iter().all(|peer| !is_closed(peer)));
    }

    /// A connection that has a stream for a device.
    fn settled(peers: &Peers, number: usize, device: u64) -> Result<Arc<Peer>, String> {
        let (peer, _) = peers.admit([10, 0, (number / 100) as u8, 1].into()).unwrap();
        peers.settle(&peer, device).inspect_err(|_| peers.leave(&peer))?;
        peer.count_stream(true);
        Ok(peer)
    }

    #[test]
    fn of_several_devices_each_has_its_part_of_the_places_for_streams() {
        let peers = Peers::new();
        peers.share_among(2);
        let first: Vec<Arc<Peer>> =
            (0..MAX_STREAMS).map(|number| settled(&peers, number, 1).unwrap()).collect();
        first[0].count_primary(true);
        assert!(settled(&peers, 0, 1).is_err(), "it has more than its part");
        // A connection that has a place already may have more streams.
        peers.settle(&first[1], 1).unwrap();
        let part = MAX_STREAMS / 2;
        let second: Vec<Arc<Peer>> =
            (0..part).map(|number| settled(&peers, 300 + number, 2).unwrap()).collect();
        assert!(settled(&peers, 600, 2).is_err(), "it has its part");
        assert_eq!(first.iter().filter(|peer| is_closed(peer)).count(), part);
        assert!(!is_closed(&first[0]), "a primary is the last to go");
        assert!(second.iter().all(|peer| !is_closed(peer)));
        // What one gives up another may have.
        peers.leave(&second[0]);
        settled(&peers, 700, 1).unwrap();
    }

    #[test]
    fn one_device_may_have_all_places() {
        let peers = Peers::new();
        peers.share_among(1);
        for number in 0..=MAX_STREAMS {
            settled(&peers, number, 1).unwrap();
        }
    }

    #[test]
    fn more_is_made_only_while_the_socket_takes_it() {
        let peer = Peer::local();
        peer.made(MAX_UNSENT);
        assert!(peer.may_send(Waker::noop()), "the socket has not refused anything");
        peer.wrote(None);
        assert!(!peer.may_send(Waker::noop()));
        peer.wrote(Some(1));
        peer.wrote(None);
        assert!(peer.may_send(Waker::noop()));
        peer.made(1);
        assert!(!peer.may_send(Waker::noop()));
        peer.flushed();
        assert!(peer.may_send(Waker::noop()));
    }
}
