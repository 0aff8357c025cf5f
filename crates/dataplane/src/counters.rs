//! What a switch counts: packets of each port, drops of each reason.

use crate::drops::Loss;
use crate::{DropReason, PortId};
use millrace_frames::{MAX_BATCH, MAX_FRAME, ask_for_start};
use millrace_pipeline::{DropSite, Program};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Counters of one port as the switch sees it. Bytes are of whole frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Packets taken from the port.
    pub rx_packets: u64,
    /// Bytes taken from the port.
    pub rx_bytes: u64,
    /// Packets given to the port.
    pub tx_packets: u64,
    /// Bytes given to the port.
    pub tx_bytes: u64,
    /// Packets that came from the port and were dropped before they had a port to leave by.
    pub rx_drops: u64,
    /// Packets and copies for the port that were dropped.
    pub tx_drops: u64,
}

impl AddAssign for PortCounters {
    fn add_assign(&mut self, other: PortCounters) {
        self.rx_packets = self.rx_packets.wrapping_add(other.rx_packets);
        self.rx_bytes = self.rx_bytes.wrapping_add(other.rx_bytes);
        self.tx_packets = self.tx_packets.wrapping_add(other.tx_packets);
        self.tx_bytes = self.tx_bytes.wrapping_add(other.tx_bytes);
        self.rx_drops = self.rx_drops.wrapping_add(other.rx_drops);
        self.tx_drops = self.tx_drops.wrapping_add(other.tx_drops);
    }
}

/// All counters of a switch since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    ports: Ports,
    drops: BTreeMap<DropReason, u64>,
    /// Packets that each place of the program wanted dropped, by its number.
    sites: Vec<Sites>,
}

impl Counters {
    /// Those of a switch that runs this program.
    pub(crate) fn of(program: &Program) -> Counters {
        Counters { sites: Sites::of(program), ..Counters::default() }
    }

    /// Counts the places of another program from now on; those of the one before are forgotten.
    pub(crate) fn start_sites(&mut self, program: &Program) {
        self.sites = Sites::of(program);
    }

    /// The places of the program that runs which have dropped something since it started.
    pub fn drop_sites<'a>(&'a self, program: &'a Program) -> impl Iterator<Item = (&'a DropSite, u64)> {
        let known = program.drop_sites.iter().zip(self.sites.iter().flat_map(|sites| sites.0));
        known.filter(|(site, count)| *count > 0 && site.is_known())
    }

    /// The counters of a port; all 0 for one that has seen nothing.
    pub fn port(&self, port: PortId) -> PortCounters {
        self.ports.get(port).unwrap_or_default()
    }

    /// The ports that have seen something, by number.
    pub fn ports(&self) -> impl Iterator<Item = (PortId, PortCounters)> {
        self.ports.iter()
    }

    /// Packets and copies dropped for a reason.
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.drops.get(&reason).copied().unwrap_or(0)
    }

    /// The reasons that have dropped something.
    pub fn all_drops(&self) -> impl Iterator<Item = (DropReason, u64)> {
        self.drops.iter().map(|(reason, count)| (*reason, *count))
    }

    /// Adds what another worker of the same program has counted.
    pub(crate) fn add(&mut self, other: &Counters) {
        for (port, counted) in other.ports() {
            *self.ports.entry(port) += counted;
        }
        for (reason, count) in other.all_drops() {
            *self.drops.entry(reason).or_default() += count;
        }
        let sites = self.sites.iter_mut().flat_map(|sites| &mut sites.0);
        for (site, count) in sites.zip(other.sites.iter().flat_map(|sites| &sites.0)) {
            *site += count;
        }
    }

    /// Makes room for a port, so that its counters show before it sees something; frames can be sent by it.
    pub(crate) fn add_port(&mut self, port: PortId) {
        self.ports.entry(port);
        if let Some(dense) = self.ports.dense.get_mut(port as usize) {
            dense.too_long = Dense::OPEN;
        }
    }

    /// Frames cannot be sent by a port any more; what was counted stays.
    pub(crate) fn close_port(&mut self, port: PortId) {
        if let Some(dense) = self.ports.dense.get_mut(port as usize) {
            dense.too_long = 0;
        }
    }

    /// Has the processor bring the counters of so many ports.
    #[inline]
    pub(crate) fn ask_ahead(&self, ports: usize) {
        self.ports.dense.iter().take(ports).for_each(ask_for_start);
    }

    pub(crate) fn has_port(&self, port: PortId) -> bool {
        self.ports.is_known(port)
    }

    pub(crate) fn port_count(&self) -> usize {
        self.ports.len()
    }

    pub(crate) fn received(&mut self, port: PortId, bytes: usize) {
        let counters = self.ports.entry(port);
        counters.rx_packets += 1;
        counters.rx_bytes += bytes as u64;
    }

    /// As [`Counters::received`] for packets of so many bytes together.
    pub(crate) fn received_many(&mut self, port: PortId, packets: u64, bytes: u64) {
        let counters = self.ports.entry(port);
        counters.rx_packets += packets;
        counters.rx_bytes += bytes;
    }

    /// The ports that are known and have small numbers, to count the frames of one burst.
    pub(crate) fn known(&mut self) -> KnownCounters<'_> {
        self.ports.start_burst();
        KnownCounters { ports: &mut self.ports.dense, sites: &mut self.sites }
    }

    pub(crate) fn sent(&mut self, port: PortId, bytes: usize) {
        let counters = self.ports.entry(port);
        // One that was refused may have been counted here before it was sent: only the sum is not below 0.
        counters.tx_packets = counters.tx_packets.wrapping_add(1);
        counters.tx_bytes = counters.tx_bytes.wrapping_add(bytes as u64);
    }

    /// A packet that the port did not take was not sent after all.
    pub(crate) fn refused(&mut self, port: PortId, bytes: usize, reason: DropReason) {
        let counters = self.ports.entry(port);
        // Those that were sent may be counted elsewhere: only the sum is not below 0.
        counters.tx_packets = counters.tx_packets.wrapping_sub(1);
        counters.tx_bytes = counters.tx_bytes.wrapping_sub(bytes as u64);
        self.dropped(reason.into(), None, Some(port));
    }

    /// As [`Counters::dropped`] for packets of one port that went to none, whose places are counted already.
    pub(crate) fn dropped_many(&mut self, reason: DropReason, from: PortId, packets: u64) {
        if packets > 0 {
            *self.drops.entry(reason).or_default() += packets;
            if let Some(counters) = self.ports.get_mut(from) {
                counters.rx_drops += packets;
            }
        }
    }

    /// Adds drops of a port that is known, whose reasons are counted by [`Counters::dropped_elsewhere`].
    pub(crate) fn port_dropped(&mut self, port: PortId, more: PortCounters) {
        if let Some(counters) = self.ports.get_mut(port) {
            *counters += more;
        }
    }

    /// Counts drops for a reason alone, not for a port.
    pub(crate) fn dropped_elsewhere(&mut self, reason: DropReason, packets: u64) {
        if packets > 0 {
            *self.drops.entry(reason).or_default() += packets;
        }
    }

    /// Counts a drop for the reason, and at the port where it was going, or else where it came from. Ports that do not
    /// exist have no counters.
    pub(crate) fn dropped(&mut self, loss: Loss, from: Option<PortId>, to: Option<PortId>) {
        *self.drops.entry(loss.reason).or_default() += 1;
        if let Some(count) = loss.site.and_then(|site| site_of(&mut self.sites, site)) {
            *count += 1;
        }
        match (to.and_then(|port| self.ports.get_mut(port)), from) {
            (Some(counters), _) => counters.tx_drops += 1,
            (None, Some(from)) => {
                if let Some(counters) = self.ports.get_mut(from) {
                    counters.rx_drops += 1;
                }
            }
            (None, None) => {}
        }
    }
}

/// Ports below that number are found by their number.
const DENSE_PORTS: usize = 1024;

/// The counters of the ports that are known. Their number is bounded by whoever adds them.
#[derive(Clone, Debug, Default)]
struct Ports {
    dense: Vec<Dense>,
    /// Bursts that [`Dense::sent`] has counted.
    bursts: u32,
    others: BTreeMap<PortId, PortCounters>,
    count: usize,
}

/// The place of a port that is found by its number: a cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Dense {
    /// What bursts sent, not yet in `counters`: packets from [`PACKETS`] on, bytes below, so that a frame is one addition.
    sent: u64,
    /// The least length of a frame that the port does not take: 0 while there is no such port.
    too_long: u32,
    /// Whether there is or was such a port.
    is_known: bool,
    counters: PortCounters,
}

/// The lowest bit of the packets in [`Dense::sent`].
const PACKETS: u32 = 40;
/// Bursts after which [`Dense::sent`] goes to the counters: no sooner could one of its halves be full.
const BURSTS: u32 = 1 << 17;
const _: () = assert!((BURSTS as u64) * (MAX_BATCH as u64) < 1 << (64 - PACKETS));
const _: () = assert!((BURSTS as u64) * (MAX_BATCH as u64) * (MAX_FRAME as u64) < 1 << PACKETS);

impl Dense {
    const OPEN: u32 = MAX_FRAME as u32 + 1;

    fn sum(&self) -> PortCounters {
        PortCounters {
            tx_packets: self.counters.tx_packets.wrapping_add(self.sent >> PACKETS),
            tx_bytes: self.counters.tx_bytes.wrapping_add(self.sent & ((1 << PACKETS) - 1)),
            ..self.counters
        }
    }
}

/// Counts of places of the program, in a pair of cache lines of their own: each worker writes its own all the time, and those of
/// another may be next to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(align(128))]
struct Sites([u64; SITES]);

const SITES: usize = 16;

impl Sites {
    /// Zeros for all of a program.
    fn of(program: &Program) -> Vec<Sites> {
        vec![Sites::default(); program.drop_sites.len().div_ceil(SITES)]
    }
}

/// The count of a place; none past the end.
#[inline]
fn site_of(sites: &mut [Sites], site: u16) -> Option<&mut u64> {
    let site = usize::from(site);
    sites.get_mut(site / SITES)?.0.get_mut(site % SITES)
}

/// The counters of ports that are known and have small numbers.
pub(crate) struct KnownCounters<'c> {
    ports: &'c mut [Dense],
    sites: &'c mut [Sites],
}

impl KnownCounters<'_> {
    /// As [`Counters::sent`], for a frame of an allowed length to one of these ports; false, and nothing counted, for
    /// others.
    #[inline]
    pub(crate) fn sent(&mut self, port: u64, bytes: u32) -> bool {
        match self.ports.get_mut(port as usize) {
            // One that there is not has no room for any length.
            Some(dense) if bytes < dense.too_long => {
                dense.sent += (1 << PACKETS) + u64::from(bytes);
                true
            }
            _ => false,
        }
    }

    /// As [`KnownCounters::sent`] for a frame to each port of a set; false, and nothing counted, when one is not among these ports.
    pub(crate) fn sent_to_each(&mut self, ports: u32, bytes: u32) -> bool {
        let has_room = |port: u32| self.ports.get(port as usize).is_some_and(|dense| bytes < dense.too_long);
        if !members(ports).all(has_room) {
            return false;
        }
        members(ports).for_each(|port| _ = self.sent(port.into(), bytes));
        true
    }

    /// That place of the program wanted so many packets dropped.
    #[inline]
    pub(crate) fn dropped_at(&mut self, site: u16, packets: u64) {
        if let Some(count) = site_of(self.sites, site) {
            *count += packets;
        }
    }
}

/// The ports of a set, the lowest first.
pub(crate) fn members(mut ports: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = (ports != 0).then(|| ports.trailing_zeros());
        ports &= ports.wrapping_sub(1);
        lowest
    })
}

impl Ports {
    fn start_burst(&mut self) {
        if self.bursts == BURSTS {
            self.settle();
        }
        self.bursts += 1;
    }

    /// What bursts sent goes to the counters.
    #[cold]
    fn settle(&mut self) {
        for dense in &mut self.dense {
            (dense.counters, dense.sent) = (dense.sum(), 0);
        }
        self.bursts = 0;
    }

    fn get(&self, port: PortId) -> Option<PortCounters> {
        match (port as usize) < DENSE_PORTS {
            true => self.dense.get(port as usize).filter(|dense| dense.is_known).map(Dense::sum),
            false => self.others.get(&port).copied(),
        }
    }

    fn is_known(&self, port: PortId) -> bool {
        match (port as usize) < DENSE_PORTS {
            true => self.dense.get(port as usize).is_some_and(|dense| dense.is_known),
            false => self.others.contains_key(&port),
        }
    }

    fn get_mut(&mut self, port: PortId) -> Option<&mut PortCounters> {
        match (port as usize) < DENSE_PORTS {
            true => {
                let dense = self.dense.get_mut(port as usize).filter(|dense| dense.is_known)?;
                Some(&mut dense.counters)
            }
            false => self.others.get_mut(&port),
        }
    }

    /// The counters of a port, which is known from now on.
    fn entry(&mut self, port: PortId) -> &mut PortCounters {
        let known = self.is_known(port);
        self.count += usize::from(!known);
        let at = port as usize;
        if at >= DENSE_PORTS {
            return self.others.entry(port).or_default();
        }
        if at >= self.dense.len() {
            self.dense.resize(at + 1, Dense::default());
        }
        let dense = &mut self.dense[at];
        // One that was closed stays so until it is added again.
        if !known {
            (dense.too_long, dense.is_known) = (Dense::OPEN, true);
        }
        &mut dense.counters
    }

    fn len(&self) -> usize {
        self.count
    }

    /// All of them, by number.
    fn iter(&self) -> impl Iterator<Item = (PortId, PortCounters)> {
        let dense = self.dense.iter().zip(0..).filter(|(dense, _)| dense.is_known);
        let dense = dense.map(|(dense, port)| (port, dense.sum()));
        dense.chain(self.others.iter().map(|(port, counters)| (*port, *counters)))
    }
}

impl PartialEq for Ports {
    fn eq(&self, other: &Ports) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Ports {}
