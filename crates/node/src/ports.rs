//! The drivers of a node's MACs.

use crate::graph::{Graph, GraphError};
use millrace_drivers::{InterfaceSpec, QueuePair, Received, TimeSource, device, wall_clock_ns};
use millrace_frames::{Batch, MAX_BATCH, PacketPool};
use std::time::Duration;

/// How long a node that has nothing to do waits.
const IDLE: Duration = Duration::from_micros(200);

/// The ports of a node, open.
pub struct Ports {
    ports: Vec<Port>,
    pool: PacketPool,
    batch: Batch,
}

struct Port {
    block: usize,
    pair: Box<dyn QueuePair>,
    has_ended: bool,
}

/// What a round did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// Something moved.
    Moved,
    /// Nothing did.
    Idle,
    /// Nothing did, and nothing will come any more.
    Ended,
}

impl std::fmt::Debug for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ports").field("ports", &self.ports.len()).finish_non_exhaustive()
    }
}

impl Ports {
    /// Opens what the MACs of a node are connected to.
    ///
    /// # Errors
    /// One cannot be opened.
    pub fn open(graph: &Graph) -> Result<Ports, GraphError> {
        let mut ports = Vec::new();
        for (block, name, attach) in graph.macs() {
            let Some(attach) = attach else { continue };
            let failed = |why: String| GraphError { block: name.to_owned(), why: format!("{attach}: {why}") };
            let interface: InterfaceSpec = attach.parse().map_err(|error| failed(format!("{error}")))?;
            let opened = device(&interface).and_then(|device| device.open(1));
            for pair in opened.map_err(|error| failed(error.to_string()))? {
                ports.push(Port { block, pair, has_ended: false });
            }
        }
        let kept: usize = ports.iter().map(|port| port.pair.max_kept()).sum();
        Ok(Ports { ports, pool: PacketPool::new(2 * MAX_BATCH + kept), batch: Batch::new() })
    }

    /// Has frames come in, blocks work, and frames leave.
    ///
    /// # Errors
    /// A port is broken.
    pub fn round(&mut self, graph: &mut Graph) -> Result<Round, GraphError> {
        let (mut moved, now_ns) = self.receive(graph)?;
        moved |= graph.turn(now_ns);
        moved |= self.send(graph)?;
        Ok(match moved {
            true => Round::Moved,
            false if self.ports.iter().all(|port| port.has_ended) => Round::Ended,
            false => Round::Idle,
        })
    }

    /// Waits a little.
    pub fn rest(&self) {
        std::thread::sleep(IDLE);
    }

    /// Takes frames from ports; where time is that of captures, one from the port whose is the first.
    fn receive(&mut self, graph: &mut Graph) -> Result<(bool, u64), GraphError> {
        let is_simulated = |port: &Port| port.pair.time_source() == TimeSource::Simulated;
        let simulates = !self.ports.is_empty() && self.ports.iter().all(is_simulated);
        let mut now_ns = if simulates { 0 } else { wall_clock_ns() };
        let mut first = None;
        if simulates {
            let times = self.ports.iter_mut().enumerate().filter(|(_, port)| !port.has_ended);
            first = times.filter_map(|(at, port)| Some((port.pair.next_arrival_ns()?, at))).min();
        }
        let mut moved = false;
        for at in 0..self.ports.len() {
            let port = &mut self.ports[at];
            let waits = first.is_some_and(|(_, turn)| turn != at);
            if port.has_ended || waits {
                continue;
            }
            self.batch.set_limit(if simulates { 1 } else { MAX_BATCH });
            match port.pair.receive(&mut self.batch, &mut self.pool) {
                Ok(Received::End) => port.has_ended = true,
                Ok(Received::More | Received::Idle) => {}
                Err(error) => return Err(broken(graph, port.block, &error)),
            }
            moved |= !self.batch.is_empty();
            for packet in self.batch.packets() {
                if simulates {
                    now_ns = packet.timestamp_ns;
                }
                graph.receive(port.block, packet.data(), now_ns);
            }
            self.batch.recycle(&mut self.pool);
        }
        self.batch.set_limit(MAX_BATCH);
        Ok((moved, now_ns))
    }

    fn send(&mut self, graph: &mut Graph) -> Result<bool, GraphError> {
        let mut moved = false;
        for port in &mut self.ports {
            while !self.batch.is_full() {
                let Some(frame) = graph.leave_by(port.block) else { break };
                moved = true;
                let added = self.batch.add(&mut self.pool);
                let is_there = added.is_some_and(|packet| packet.set_frame(&frame).is_ok());
                if !is_there {
                    lose(graph, port.block, 1);
                }
            }
            let sent = port
                .pair
                .transmit(&mut self.batch, &mut self.pool)
                .and_then(|sent| port.pair.flush().map(|()| sent));
            port.pair.complete(&mut self.pool);
            lose(graph, port.block, self.batch.len());
            self.batch.recycle(&mut self.pool);
            sent.map_err(|error| broken(graph, port.block, &error))?;
        }
        Ok(moved)
    }
}

/// Frames that were counted as sent and could not be.
fn lose(graph: &mut Graph, block: usize, frames: usize) {
    (0..frames).for_each(|_| graph.lose(block));
}

fn broken(graph: &Graph, block: usize, error: &dyn std::fmt::Display) -> GraphError {
    let name = graph
        .macs()
        .find(|(number, ..)| *number == block)
        .map_or_else(String::new, |(_, name, _)| name.to_owned());
    GraphError { block: name, why: error.to_string() }
}
