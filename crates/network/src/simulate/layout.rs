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
    /// The hops after it are `children[after.0..after.1]`.
    pub(super) after: (u32, u32),
    /// The account of the switch that it leads to.
    pub(super) account: u32,
    /// The leaf that it ends at.
    pub(super) leaf: u32,
    /// The priority of its frames.
    pub(super) class: u8,
}

/// An output port. Times are in picoseconds.
#[derive(Debug)]
pub(super) struct Port {
    /// A byte on the link; none if that is no whole number.
    byte: Option<u64>,
    rate: u64,
    /// From the last bit of a frame, or the regulator, to the queue.
    pub(super) latency: u64,
    pub(super) propagation: u64,
    /// When the frame that is being sent will have left.
    pub(super) busy_until: u64,
    /// Whether it is to be asked for the next frame then.
    pub(super) is_asked: bool,
    pub(super) egress: Egress<Frame>,
    /// Most bytes of frames that have waited together.
    pub(super) most_waiting: u64,
}

/// A frame at a hop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// When its regulator let it go.
    pub(super) released: u64,
    pub(super) hop: u32,
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
    pub(super) children: Vec<u32>,
    pub(super) ports: Vec<Port>,
    pub(super) accounts: Vec<Account>,
    pub(super) leaves: Vec<Leaf>,
    /// Of each tree its first hop here.
    pub(super) first_hops: Vec<u32>,
    /// Of each virtual link its trees.
    pub(super) trees_of: Vec<Vec<u32>>,
    pub(super) overhead: u64,
}

impl Port {
    /// How long bits of so many bytes take. What is no whole number of picoseconds is rounded down: a port that is faster by that
    /// keeps every bound.
    #[inline]
    pub(super) fn time_of(&self, bytes: u64) -> u64 {
        match self.byte {
            Some(byte) => bytes * byte,
            None => (u128::from(bytes) * 8 * SECOND / u128::from(self.rate)) as u64,
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
        ports.push(Port {
            byte: (8 * SECOND).is_multiple_of(rate.into()).then_some((8 * SECOND / u128::from(rate)) as u64),
            rate,
            latency: port.latency * 1000,
            propagation: port.propagation * 1000,
            busy_until: 0,
            is_asked: false,
            egress: Egress::new(plan, 0),
            most_waiting: 0,
        });
    }
    let mut made = Layout {
        hops: Vec::new(),
        children: Vec::new(),
        ports,
        accounts: Vec::new(),
        leaves: Vec::new(),
        first_hops: Vec::new(),
        trees_of: vec![Vec::new(); network.vls.len()],
        overhead: network.overhead.into(),
    };
    let mut shared = HashMap::default();
    for (place, tree) in topology.trees.iter().enumerate() {
        let first = made.hops.len() as u32;
        made.first_hops.push(first);
        made.trees_of[tree.vl].push(place as u32);
        let mut after: Vec<Vec<u32>> = vec![Vec::new(); tree.hops.len()];
        for (hop, is) in tree.hops.iter().enumerate() {
            if let Some(before) = is.before {
                after[before as usize].push(first + hop as u32);
            }
        }
        for (hop, (is, after)) in tree.hops.iter().zip(after).enumerate() {
            let start = made.children.len() as u32;
            made.children.extend(after);
            let to = graph.ports[is.port as usize].to;
            let account = match graph.switch(to) {
                Some(_) => account(topology, bounds, (place, hop), to, &mut made.accounts, &mut shared)?,
                None => NONE,
            };
            made.hops.push(Hop {
                port: is.port,
                after: (start, made.children.len() as u32),
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

/// The account by which a switch polices a tree that comes by a hop. Without a jitter that is known nothing is policed.
fn account<'n>(
    topology: &Topology<'n>,
    bounds: Option<&Bounds>,
    (tree, hop): (usize, usize),
    switch: u32,
    accounts: &mut Vec<Account>,
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
    accounts.push(Account::new(config));
    if let Some(name) = name {
        shared.insert((name, switch), number);
    }
    Ok(number)
}
