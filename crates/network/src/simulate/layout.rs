//! The network laid out flat for a simulation: hops of all trees in one list, each with what happens there.

use super::product::{Account, AccountConfig, AccountTest, Egress};
use crate::Topology;
use crate::bounds::Bounds;
use crate::export::plan;
use crate::model::{Policing, Scheduler, Side, Switch};
use foldhash::HashMap;
use millrace_traffic::Plan;
use std::sync::Arc;

/// No account, no leaf.
pub(super) const NONE: u32 = u32::MAX;

/// Picoseconds of a second.
const SECOND: u128 = 1_000_000_000_000;

/// A hop of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    /// The output port.
    pub(super) port: u32,
    /// The hops after it are `next[after.0..after.1]`.
    pub(super) after: (u32, u32),
    /// The account of the switch that it leads to.
    pub(super) account: u32,
    /// The leaf that it ends at.
    pub(super) leaf: u32,
    /// The priority of its frames.
    pub(super) class: u8,
}

/// A hop that a frame comes to next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) hop: u32,
    /// From the last bit of the frame, or the regulator, to the queue of the hop's port.
    pub(super) latency: u64,
}

/// An output port: in one cache line what each frame needs of it but its queues. Times are in picoseconds.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Port {
    /// A byte on the link; 0 if that is no whole number.
    byte: u64,
    rate: u64,
    pub(super) propagation: u64,
    /// When the frames that are known to be sent will have left.
    pub(super) busy_until: u64,
    /// Of a port that is first in, first out: when the first frame of its queue leaves it.
    pub(super) next_leaves: u64,
    /// Most bytes of frames that have waited together.
    pub(super) most_waiting: u64,
    /// Whether it is to be asked for the next frame when the present one has left.
    pub(super) is_asked: bool,
    /// Frames leave in the order in which they came, whatever they are.
    pub(super) is_fifo: bool,
}

const _: () = assert!(size_of::<Port>() == 64);

/// The account of a virtual link at a switch, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Policer(pub(super) Account);

/// A frame at a hop. Frames that come at one time come in the order of their hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Frame {
    pub(super) hop: u32,
    /// When its regulator let it go.
    pub(super) released: u64,
    pub(super) length: u16,
    /// It is the frame that a directed search looks at: last of those that come at the same time.
    pub(super) is_observed: bool,
}

/// The end of a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    pub(super) tree: u32,
    pub(super) place: u32,
    /// From the last bit to the application.
    pub(super) latency: u64,
}

/// All of it.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) hops: Vec<Hop>,
    pub(super) next: Vec<Step>,
    pub(super) ports: Vec<Port>,
    /// The queues of each port.
    pub(super) queues: Vec<Egress<Frame>>,
    pub(super) accounts: Vec<Policer>,
    pub(super) leaves: Vec<Leaf>,
    /// Of each tree its first hop here.
    pub(super) first_hops: Vec<u32>,
    /// Of each virtual link the first hops of its trees.
    pub(super) starts: Vec<Vec<Step>>,
    pub(super) overhead: u64,
    /// The mean time from one frame at a port to the next, of all together.
    pub(super) between_hops: u64,
}

impl Port {
    /// How long bits of so many bytes take. What is no whole number of picoseconds is rounded down: a port that is faster by that
    /// keeps every bound.
    #[inline]
    pub(super) fn time_of(&self, bytes: u64) -> u64 {
        match self.byte {
            0 => (u128::from(bytes) * 8 * SECOND / u128::from(self.rate)) as u64,
            byte => bytes * byte,
        }
    }
}

/// Lays out a network.
///
/// # Errors
/// A port cannot be simulated, and why.
pub(super) fn layout(topology: &Topology<'_>, bounds: Option<&Bounds>) -> Result<Layout, String> {
    let network = topology.network;
    let graph = &topology.graph;
    let first_in_first_out = Switch {
        name: String::new(),
        network: Side::A,
        latency: 0,
        least_latency: 0,
        scheduler: Scheduler::Fifo,
        priorities: 1,
        buffer: None,
        max_delay: None,
        end_system: None,
    };
    let mut ports = Vec::with_capacity(graph.ports.len());
    let mut queues = Vec::with_capacity(graph.ports.len());
    // Ports of a switch have one plan, which then is in the caches once.
    let mut plans: HashMap<Option<usize>, Arc<Plan>> = HashMap::default();
    for (id, port) in graph.ports.iter().enumerate() {
        let place = graph.switch(port.node);
        let switch = place.map_or(&first_in_first_out, |place| &network.switches[place]);
        if switch.scheduler == Scheduler::Arbitrary {
            let name = graph.port_name(id as u32);
            return Err(format!(
                "port {name} serves in an order that is not known: it has bounds, and no simulation"
            ));
        }
        let plan = match plans.get(&place) {
            Some(known) => known.clone(),
            None => plans.entry(place).or_insert(Arc::new(plan(switch, None, network.overhead)?)).clone(),
        };
        // What others take of a link is taken all the time.
        let rate = port.service_rate;
        let is_whole = (8 * SECOND).is_multiple_of(rate.into());
        ports.push(Port {
            byte: if is_whole { (8 * SECOND / u128::from(rate)) as u64 } else { 0 },
            rate,
            propagation: port.propagation * 1000,
            busy_until: 0,
            next_leaves: 0,
            most_waiting: 0,
            is_asked: false,
            is_fifo: plan.is_fifo(),
        });
        queues.push(Egress::new(plan, 0));
    }
    let mut made = Layout {
        hops: Vec::new(),
        next: Vec::new(),
        ports,
        queues,
        accounts: Vec::new(),
        leaves: Vec::new(),
        first_hops: Vec::new(),
        starts: vec![Vec::new(); network.vls.len()],
        overhead: network.overhead.into(),
        between_hops: between_hops(topology),
    };
    let mut shared = HashMap::default();
    for (place, tree) in topology.trees.iter().enumerate() {
        let first = made.hops.len() as u32;
        made.first_hops.push(first);
        let step = |hop: u32| {
            let port = tree.hops[(hop - first) as usize].port;
            Step { hop, latency: graph.ports[port as usize].latency * 1000 }
        };
        made.starts[tree.vl].push(step(first));
        let mut after: Vec<Vec<u32>> = vec![Vec::new(); tree.hops.len()];
        for (hop, is) in tree.hops.iter().enumerate() {
            if let Some(before) = is.before {
                after[before as usize].push(first + hop as u32);
            }
        }
        for (hop, (is, after)) in tree.hops.iter().zip(after).enumerate() {
            let start = made.next.len() as u32;
            made.next.extend(after.into_iter().map(step));
            let to = graph.ports[is.port as usize].to;
            let account = match graph.switch(to) {
                Some(_) => account(topology, bounds, (place, hop), to, &mut made.accounts, &mut shared)?,
                None => NONE,
            };
            made.hops.push(Hop {
                port: is.port,
                after: (start, made.next.len() as u32),
                account,
                leaf: NONE,
                class: network.vls[tree.vl].priority,
            });
        }
        for (leaf, is) in tree.leaves.iter().enumerate() {
            made.hops[(first + is.hop) as usize].leaf = made.leaves.len() as u32;
            let latency =
                network.end_systems.get(is.node as usize).map_or(0, |end| end.receive_latency) * 1000;
            made.leaves.push(Leaf { tree: place as u32, place: leaf as u32, latency });
        }
    }
    Ok(made)
}

/// The mean time from one frame at a port to the next, of all ports together, in picoseconds.
fn between_hops(topology: &Topology<'_>) -> u64 {
    let frames = |tree: &crate::Tree| {
        SECOND / 1000 * tree.hops.len() as u128 / u128::from(topology.network.vls[tree.vl].bag)
    };
    let each_second: u128 = topology.trees.iter().map(frames).sum();
    (SECOND / each_second.max(1)) as u64
}

/// The account by which a switch polices a tree that comes by a hop. Without a jitter that is known nothing is policed.
fn account<'n>(
    topology: &Topology<'n>,
    bounds: Option<&Bounds>,
    (tree, hop): (usize, usize),
    switch: u32,
    accounts: &mut Vec<Policer>,
    shared: &mut HashMap<(&'n str, u32), u32>,
) -> Result<u32, String> {
    let network = topology.network;
    let vl = &network.vls[topology.trees[tree].vl];
    let name = vl.shared_account.as_deref();
    if let Some(known) = name.and_then(|name| shared.get(&(name, switch))) {
        return Ok(*known);
    }
    let of_name = name.and_then(|name| network.accounts.iter().find(|account| account.name == name));
    let (bag, jitter, lmax, policing) = match of_name {
        Some(account) => (account.bag, Some(account.jitter), account.lmax, account.policing),
        None => {
            let jitter = vl.jitter.or_else(|| bounds.and_then(|bounds| bounds.jitter_after(tree, hop)));
            (vl.bag, jitter.map(|jitter| jitter.min(crate::MAX_TIME)), vl.lmax, vl.policing)
        }
    };
    let test = match policing {
        Policing::Byte => AccountTest::Bytes,
        Policing::Frame => AccountTest::Frames,
        Policing::Both => AccountTest::Both,
        Policing::None => return Ok(NONE),
    };
    let Some(jitter) = jitter else { return Ok(NONE) };
    let config = AccountConfig::new(bag, jitter, lmax.into(), test).map_err(|error| error.to_string())?;
    let number = accounts.len() as u32;
    accounts.push(Policer(Account::new(config)));
    if let Some(name) = name {
        shared.insert((name, switch), number);
    }
    Ok(number)
}
