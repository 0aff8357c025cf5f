//! The own end system of a switch: what it answers to whoever manages the switch from inside the network.
//!
//! ```text
//!   frame -> integrity, redundancy, reassembly -> ICMP echo ------------------------- reply \
//!                                              -> SAP port 161 -> request | answer -> SAP    > sub-VL -> regulator -> frame
//!                                                                  another thread
//! ```
//!
//! An answer leaves in the first virtual link of the file that leads from this end system to the one that asked, which its source address
//! names: whoever has no such link is not answered, and counted. Echo replies are made at once. Requests of SNMP go to a thread of their own
//! ([`Requests::serve`]), as an answer needs numbers of the worker that has received the request.
//!
//! Everything that frames can cause has a bound: the end system keeps [`MAX_ECHOES`](millrace_afdx::MAX_ECHOES) echo requests and
//! [`MAX_REQUESTS`] requests, and what leaves keeps to the contract of its virtual link.

use crate::plan::{Plan, PlanError};
use millrace_afdx::{
    Addressing, EndSystem, EndSystemId, MAX_MESSAGE, Partition, PortKind, ReceivePort, TransmitPort, UdpEnd,
    Verdict, VlId, unfragmented,
};
use millrace_network::Network;
use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Most requests that wait for whoever answers them, and most answers that wait to be sent.
pub const MAX_REQUESTS: usize = 64;

/// The UDP port of SNMP.
pub const SNMP_PORT: u16 = 161;

/// An answer may have at least so many bytes, however short the frames of its virtual link are: it is fragments then (RFC 3417 wants an
/// agent to know messages of this length).
const LEAST_LIMIT: usize = 484;

/// How often the thread that answers looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// A way back to an end system.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// The port of the transmitter.
    port: usize,
    /// Bytes of a message that is one frame.
    unfragmented: usize,
}

/// A request on its way to whoever answers it.
struct Request {
    port: usize,
    from: UdpEnd,
    limit: usize,
    data: Vec<u8>,
}

/// An answer on its way back.
struct Answer {
    port: usize,
    to: UdpEnd,
    data: Vec<u8>,
}

/// What happened to those who asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ManagementCounters {
    /// Frames that came to the end system.
    pub frames: u64,
    /// Those of them that it discarded, second copies included.
    pub discarded: u64,
    /// Echo requests with a reply.
    pub echoes: u64,
    /// Requests given to whoever answers them.
    pub requests: u64,
    /// Answers that were sent.
    pub answers: u64,
    /// Echo requests and requests of whom no virtual link leads to.
    pub no_way: u64,
    /// Requests that came while [`MAX_REQUESTS`] waited.
    pub busy: u64,
    /// Replies and answers that the queue of their virtual link had no room for.
    pub refused: u64,
}

/// The counters, as any thread may read them while frames come. Each is written by the worker alone, so one of two that belong together may
/// be read before the other is written.
#[derive(Debug, Default)]
pub struct ManagementCounts([AtomicU64; COUNTERS]);

const COUNTERS: usize = 8;

impl ManagementCounts {
    /// What they are now.
    pub fn now(&self) -> ManagementCounters {
        let [frames, discarded, echoes, requests, answers, no_way, busy, refused] =
            self.0.each_ref().map(|count| count.load(Ordering::Relaxed));
        ManagementCounters { frames, discarded, echoes, requests, answers, no_way, busy, refused }
    }

    fn set(&self, counters: ManagementCounters) {
        let ManagementCounters { frames, discarded, echoes, requests, answers, no_way, busy, refused } =
            counters;
        let now: [u64; COUNTERS] = [frames, discarded, echoes, requests, answers, no_way, busy, refused];
        self.0.iter().zip(now).for_each(|(count, now)| count.store(now, Ordering::Relaxed));
    }
}

/// The end of the end system.
#[derive(Debug)]
pub(crate) struct Management {
    addressing: Addressing,
    paths: HashMap<EndSystemId, Way>,
    requests: SyncSender<Request>,
    answers: Receiver<Answer>,
    counters: ManagementCounters,
    shown: Arc<ManagementCounts>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Request({:?}, {} bytes)", self.from, self.data.len())
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Answer({:?}, {} bytes)", self.to, self.data.len())
    }
}

impl Management {
    /// Adds the ports of management to an end system; `wakes` is a timer that whoever runs the end system waits for.
    pub(crate) fn new(
        network: &Network,
        plan: &mut Plan,
        wakes: Arc<OwnedFd>,
    ) -> Result<(Management, Requests), PlanError> {
        let paths = paths(network, plan)?;
        let received = receive(network, plan)?;
        if paths.is_empty() || received == 0 {
            return Err(PlanError::Unreachable(plan.name.clone()));
        }
        let (requests, to_answer) = sync_channel(MAX_REQUESTS);
        let (answered, answers) = sync_channel(MAX_REQUESTS);
        let addressing = Addressing::default();
        let counters = ManagementCounters::default();
        let shown = Arc::<ManagementCounts>::default();
        let counts = Arc::clone(&shown);
        let management = Management { addressing, paths, requests, answers, counters, shown };
        Ok((management, Requests { requests: to_answer, answers: answered, wakes, counts }))
    }

    /// What happened so far.
    pub(crate) fn counters(&self) -> ManagementCounters {
        self.counters
    }

    /// Goes on with what has come by a frame with this verdict.
    pub(crate) fn received(&mut self, now_ns: u64, es: &mut EndSystem, verdict: Verdict) {
        match verdict {
            Verdict::Echo => self.reply(now_ns, es),
            // The ports of measuring are empty by now.
            Verdict::Delivered(port) => {
                while let Some(message) = es.receiver.take(port) {
                    self.ask(message.source, message.data);
                }
            }
            Verdict::Fragment => {}
            Verdict::Dropped(_) => self.counters.discarded += 1,
        }
        self.counters.frames += 1;
        self.shown.set(self.counters);
    }

    fn reply(&mut self, now_ns: u64, es: &mut EndSystem) {
        while let Some(request) = es.receiver.take_echo() {
            let end = UdpEnd { ip: request.source, port: 0 };
            match self.way_to(end).map(|way| es.transmitter.answer_echo(now_ns, way.port, &request)) {
                Some(Ok(())) => self.counters.echoes += 1,
                Some(Err(_)) => self.counters.refused += 1,
                None => self.counters.no_way += 1,
            }
        }
    }

    fn ask(&mut self, from: UdpEnd, data: Vec<u8>) {
        let Some(way) = self.way_to(from) else {
            self.counters.no_way += 1;
            return;
        };
        let limit = way.unfragmented.max(LEAST_LIMIT);
        match self.requests.try_send(Request { port: way.port, from, limit, data }) {
            Ok(()) => self.counters.requests += 1,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.counters.busy += 1,
        }
    }

    fn way_to(&self, end: UdpEnd) -> Option<Way> {
        let (es, _) = self.addressing.end_system_of(end.ip)?;
        self.paths.get(&es).copied()
    }

    /// Sends the answers that are there; whether there were some.
    pub(crate) fn send_answers(&mut self, now_ns: u64, es: &mut EndSystem) -> bool {
        let mut were_some = false;
        while let Ok(Answer { port, to, data }) = self.answers.try_recv() {
            were_some = true;
            match es.transmitter.send_to(now_ns, port, to, &data) {
                Ok(()) => self.counters.answers += 1,
                Err(_) => self.counters.refused += 1,
            }
        }
        if were_some {
            self.shown.set(self.counters);
        }
        were_some
    }
}

/// A port for each virtual link that is sent; by which to answer each end system.
fn paths(network: &Network, plan: &mut Plan) -> Result<HashMap<EndSystemId, Way>, PlanError> {
    let ids: HashMap<&str, u16> = network.end_systems.iter().map(|es| (es.name.as_str(), es.id)).collect();
    let mut paths = HashMap::new();
    for vl in network.vls.iter().filter(|vl| vl.source == plan.name) {
        let port = plan.es.transmitter.add_port(TransmitPort {
            kind: PortKind::Sap,
            vl: VlId(vl.id),
            sub_vl: 0,
            partition: Partition::default(),
            source_port: SNMP_PORT,
            destination: None,
        })?;
        let way = Way { port, unfragmented: unfragmented(vl.lmax.into()) };
        for name in vl.ends() {
            if let Some(id) = ids.get(name) {
                paths.entry(EndSystemId(*id)).or_insert(way);
            }
        }
    }
    Ok(paths)
}

/// A port for each virtual link that is received, by its multicast address and by the address of the end system; how many links there are.
fn receive(network: &Network, plan: &mut Plan) -> Result<usize, PlanError> {
    let own = network.end_systems.iter().find(|es| es.name == plan.name).map_or(0, |es| es.id);
    let own = Addressing::default().source_ip(EndSystemId(own), Partition::default());
    let links: Vec<VlId> = plan.es.receiver.vls().map(|(vl, _)| vl.id).collect();
    for vl in &links {
        for ip in [None, Some(own)] {
            plan.es.receiver.add_port(ReceivePort {
                kind: PortKind::Sap,
                vl: *vl,
                ip,
                port: SNMP_PORT,
                depth: MAX_REQUESTS,
                max_message: MAX_MESSAGE,
            })?;
        }
    }
    Ok(links.len())
}

/// The requests that come to an end system, for whoever answers them.
#[derive(Debug)]
pub struct Requests {
    requests: Receiver<Request>,
    answers: SyncSender<Answer>,
    wakes: Arc<OwnedFd>,
    counts: Arc<ManagementCounts>,
}

/// What answers. It ends when this is dropped.
#[derive(Debug)]
pub struct Service {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Requests {
    /// What happens to those who ask.
    pub fn counts(&self) -> Arc<ManagementCounts> {
        Arc::clone(&self.counts)
    }

    /// Answers on a thread of its own: `answer` gets a request and the most bytes of an answer, and says nothing if nobody is to hear of it.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn serve(
        self,
        answer: impl Fn(&[u8], usize) -> Option<Vec<u8>> + Send + 'static,
    ) -> io::Result<Service> {
        let ends = Arc::<AtomicBool>::default();
        let until = Arc::clone(&ends);
        let thread = std::thread::Builder::new().name("management".to_owned());
        let thread = thread.spawn(move || {
            while !until.load(Ordering::Acquire) {
                match self.requests.recv_timeout(LOOK) {
                    Ok(request) => self.answer(request, &answer),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        })?;
        Ok(Service { ends, thread: Some(thread) })
    }

    fn answer(&self, request: Request, answer: impl Fn(&[u8], usize) -> Option<Vec<u8>>) {
        let Request { port, from, limit, data } = request;
        let Some(data) = answer(&data, limit) else { return };
        // Requests and answers have the same bound: an answer that has no room is one that an end system does not send any more.
        if self.answers.try_send(Answer { port, to: from, data }).is_ok() {
            // Now, as 0 would switch the timer off. Whoever waits for it asks for answers after it has set the timer.
            let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
            let now = Itimerspec { it_interval: zero, it_value: Timespec { tv_sec: 0, tv_nsec: 1 } };
            let _ = timerfd_settime(&self.wakes, TimerfdTimerFlags::empty(), &now);
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
