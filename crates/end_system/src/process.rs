//! An end system on interfaces of the machine, in real time.
//!
//! There is one clock, the machine's wall clock from its start on, since frames come with stamps of the wall clock and messages carry the
//! time when they were sent to end systems that are other processes. A frame counts as gone when its interface has taken it: whatever the
//! machine did in between, the next frame of its virtual link keeps its distance.

use crate::gateway::Gateway;
use crate::node::Node;
use millrace_afdx::{Network, Verdict, VlId};
use millrace_drivers::{PortError, PortStatistics, QueuePair, Received, wait_readable, wall_clock_ns};
use millrace_frames::{Batch, PacketPool};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long an end system goes on to receive after it has stopped to send.
pub const LINGER: Duration = Duration::from_millis(500);

/// The longest that it waits before it looks whether it is to end.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// Packets for frames on their way.
const PACKETS: usize = 512;

/// The wall clock as it was at the start, and the time since: it never goes back.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    start_ns: u64,
    start: Instant,
}

impl Default for WallClock {
    fn default() -> WallClock {
        WallClock { start_ns: wall_clock_ns(), start: Instant::now() }
    }
}

impl WallClock {
    /// Nanoseconds since 1970.
    pub fn now_ns(&self) -> u64 {
        let since = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.start_ns.saturating_add(since)
    }
}

/// A line of an end system: the interface to a network.
struct Line {
    network: Network,
    port: Box<dyn QueuePair>,
    /// Frames that the interface did not take.
    refused: u64,
    /// Nothing comes any more.
    has_ended: bool,
    /// Why it is broken for good, if it is. Then nothing comes, and frames are refused.
    broken: Option<PortError>,
}

/// What happened at an interface.
#[derive(Clone, Copy, Debug)]
pub struct LineReport {
    /// The network that it is connected to.
    pub network: Network,
    /// Frames that left their multiplexer, and that the interface did not take.
    pub refused: u64,
    /// What the driver counted.
    pub port: PortStatistics,
}

/// An end system on its interfaces.
pub struct Process {
    node: Node,
    clock: WallClock,
    lines: Vec<Line>,
    gateways: Vec<Gateway>,
    pool: PacketPool,
    batch: Batch,
    /// A frame for a network without an interface goes nowhere.
    unconnected: [u64; 2],
}

impl Process {
    /// An end system with these interfaces, at most one for each network, and these gateways, whose sockets do not block.
    pub fn new(
        node: Node,
        clock: WallClock,
        interfaces: Vec<(Network, Box<dyn QueuePair>)>,
        gateways: Vec<Gateway>,
    ) -> Process {
        let line = |(network, port)| Line { network, port, refused: 0, has_ended: false, broken: None };
        Process {
            node,
            clock,
            lines: interfaces.into_iter().map(line).collect(),
            gateways,
            pool: PacketPool::new(PACKETS),
            batch: Batch::new(),
            unconnected: [0; 2],
        }
    }

    /// Runs until this time, or until it is told to end, or no interface is left. It goes on with the other network when the interface to
    /// one is broken for good, and says which.
    ///
    /// # Errors
    /// It cannot wait for frames.
    pub fn run(
        &mut self,
        until_ns: u64,
        ends: &AtomicBool,
        tell: &mut dyn FnMut(Network, &PortError),
    ) -> Result<(), PortError> {
        while !ends.load(Ordering::Relaxed) {
            let mut has_more = self.receive(tell);
            let now_ns = self.clock.now_ns();
            for gateway in &mut self.gateways {
                has_more |= gateway.send(now_ns, &mut self.node.es);
            }
            self.send(tell);
            let now_ns = self.clock.now_ns();
            if now_ns >= until_ns || self.lines.iter().all(|line| line.broken.is_some()) {
                return Ok(());
            }
            if !has_more {
                self.wait(now_ns, until_ns)?;
            }
        }
        Ok(())
    }

    /// Takes what has come; whether there may be more at once.
    fn receive(&mut self, tell: &mut dyn FnMut(Network, &PortError)) -> bool {
        let mut has_more = false;
        for line in self.lines.iter_mut().filter(|line| !line.has_ended) {
            match line.port.receive(&mut self.batch, &mut self.pool) {
                Ok(Received::More) => has_more = true,
                Ok(Received::Idle) => {}
                Ok(Received::End) => line.has_ended = true,
                Err(error) => line.fail(error, tell),
            }
            for packet in self.batch.packets() {
                let verdict = self.node.receive(packet.timestamp_ns, line.network, packet.data());
                if let Verdict::Delivered(port) = verdict {
                    let es = &mut self.node.es;
                    self.gateways.iter_mut().any(|gateway| gateway.received(es, port));
                }
            }
            self.batch.recycle(&mut self.pool);
        }
        has_more
    }

    /// Sends what is due.
    fn send(&mut self, tell: &mut dyn FnMut(Network, &PortError)) {
        loop {
            let now_ns = self.clock.now_ns();
            if self.node.next_ns().is_none_or(|next| next > now_ns) {
                return;
            }
            let Process { node, lines, pool, batch, unconnected, .. } = self;
            let mut gone: [Option<VlId>; 2] = [None; 2];
            node.step(now_ns, |out| {
                let Some(line) = lines.iter_mut().find(|line| line.network == out.network) else {
                    unconnected[out.network.index()] += 1;
                    return;
                };
                gone[out.network.index()] = Some(out.vl);
                if let Err(error) = line.send(out.frame, pool, batch) {
                    line.fail(error, tell);
                }
            });
            let at_ns = self.clock.now_ns();
            for vl in gone.into_iter().flatten() {
                self.node.es.transmitter.departed(vl, at_ns);
            }
        }
    }

    /// Sleeps until a frame comes or something is due.
    fn wait(&self, now_ns: u64, until_ns: u64) -> Result<(), PortError> {
        let next_ns = self.node.next_ns().map_or(until_ns, |next| next.min(until_ns));
        let wait = Duration::from_nanos(next_ns.saturating_sub(now_ns)).min(LONGEST_WAIT);
        let lines = self.lines.iter().filter(|line| !line.has_ended);
        let sockets = self.gateways.iter().map(|gateway| gateway.socket().as_raw_fd());
        let descriptors: Vec<_> = lines.filter_map(|line| line.port.poll_fd()).chain(sockets).collect();
        let waited = wait_readable(&descriptors, Some(wait));
        waited.map_err(|error| PortError::System { action: "wait for frames".to_owned(), error })
    }

    /// The end system, and what happened at its interfaces.
    pub fn reports(&self) -> (&Node, Vec<LineReport>) {
        let report = |line: &Line| LineReport {
            network: line.network,
            refused: line.refused,
            port: line.port.statistics(),
        };
        (&self.node, self.lines.iter().map(report).collect())
    }

    /// The interfaces that are broken for good, and why.
    pub fn broken(&self) -> impl Iterator<Item = (Network, &PortError)> {
        self.lines.iter().filter_map(|line| Some((line.network, line.broken.as_ref()?)))
    }

    /// Its gateways, in the order in which they were given.
    pub fn gateways(&self) -> &[Gateway] {
        &self.gateways
    }

    /// Frames for each network that has no interface.
    pub fn unconnected(&self) -> [u64; 2] {
        self.unconnected
    }
}

impl Line {
    fn fail(&mut self, error: PortError, tell: &mut dyn FnMut(Network, &PortError)) {
        tell(self.network, &error);
        self.has_ended = true;
        self.broken = Some(error);
    }

    fn send(&mut self, frame: &[u8], pool: &mut PacketPool, batch: &mut Batch) -> Result<(), PortError> {
        if self.broken.is_some() {
            self.refused += 1;
            return Ok(());
        }
        self.port.complete(pool);
        let Some(packet) = batch.add(pool) else {
            self.refused += 1;
            return Ok(());
        };
        if packet.set_frame(frame).is_err() {
            self.refused += 1;
            batch.recycle(pool);
            return Ok(());
        }
        let transmitted = self.port.transmit(batch, pool);
        self.refused += batch.len() as u64;
        batch.recycle(pool);
        transmitted?;
        self.port.flush()
    }
}
