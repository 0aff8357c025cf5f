//! Packets on their way from a worker to its ports.

use super::live::{LivePort, LivePorts};
use crate::{DropReason, PortId};
use millrace_drivers::PortError;
use millrace_frames::{Batch, PacketPool, Service};

/// What goes wrong with packets on their way out, until there is time for it.
#[derive(Default)]
pub(super) struct Outgoing {
    /// Packets that a port did not take: its number, their bytes, and why.
    pub(super) refused: Vec<(PortId, usize, DropReason)>,
    /// Ports that broke, by their place.
    pub(super) broken: Vec<(usize, PortError)>,
    /// The places of ports that packets wait for, all of them: a worker may have a thousand ports, and a burst goes to few.
    waiting: Vec<usize>,
    /// The places of ports that something was sent by since they were flushed.
    sent: Vec<usize>,
}

impl Outgoing {
    /// Sends a copy of these bytes.
    pub(super) fn put(
        &mut self,
        ports: &mut LivePorts,
        pool: &mut PacketPool,
        (to, service, hops, bytes): (PortId, Service, u8, &[u8]),
        time_ns: u64,
    ) {
        let packet = if bytes.len() <= pool.layout().longest_frame() { pool.take() } else { None };
        let Some(packet) = packet else { return self.refused.push((to, bytes.len(), DropReason::TxRefused)) };
        let Some(sending) = self.room(ports, pool, to) else { return pool.put(packet) };
        match sending.push(packet) {
            Ok(packet) => {
                // Its length was looked at.
                let _ = packet.set_frame(bytes);
                packet.set_service(service);
                (packet.hops, packet.timestamp_ns) = (hops, time_ns);
            }
            // There was room.
            Err(packet) => pool.put(packet),
        }
    }

    /// The batch of a port, with room for a packet: a full one is sent first. None without the port.
    #[inline]
    pub(super) fn room<'p>(
        &mut self,
        ports: &'p mut LivePorts,
        pool: &mut PacketPool,
        to: PortId,
    ) -> Option<&'p mut Batch> {
        let at = ports.find(to)?;
        let live = &mut ports[at];
        if live.sending.is_empty() {
            self.waiting.push(at);
        } else if live.sending.is_full() {
            self.transmit(live, at, pool);
        }
        Some(&mut live.sending)
    }

    /// Gives a whole batch to a port for which nothing waits; false: it was not given.
    #[inline]
    pub(super) fn put_all(&mut self, live: &mut LivePort, at: usize, batch: &mut Batch) -> bool {
        let is_given = live.sending.take_all(batch);
        if is_given {
            self.waiting.push(at);
        }
        is_given
    }

    /// Transmits what waits for ports.
    pub(super) fn transmit_all(&mut self, ports: &mut LivePorts, pool: &mut PacketPool) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_unstable();
        for at in waiting.drain(..) {
            self.transmit(&mut ports[at], at, pool);
            self.sent.push(at);
        }
        self.waiting = waiting;
    }

    /// All ports were flushed.
    pub(super) fn are_flushed(&mut self) {
        self.sent.clear();
    }

    /// Flushes the ports that something was sent by since that was done last.
    pub(super) fn flush(&mut self, ports: &mut LivePorts) {
        for at in self.sent.drain(..) {
            if let Err(error) = ports[at].port.flush() {
                self.broken.push((at, error));
            }
        }
    }

    /// Transmits what waits for a port; what it refuses is dropped.
    fn transmit(&mut self, live: &mut LivePort, at: usize, pool: &mut PacketPool) {
        if live.sending.is_empty() {
            return;
        }
        let result = live.port.transmit(&mut live.sending, pool);
        let reason = if live.port.is_link_down() { DropReason::LinkDown } else { DropReason::TxRefused };
        self.refused.extend(live.sending.packets().iter().map(|packet| (live.id, packet.len(), reason)));
        live.sending.recycle(pool);
        live.sending.rest();
        if let Err(error) = result {
            self.broken.push((at, error));
        }
    }
}
