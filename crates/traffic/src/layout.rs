//! A plan laid out flat: every copy of every node, in vectors.
//!
//! Queues are numbered depth first, so the queue of a class and a flow number is found by arithmetic. The children of a node follow each
//! other in one list, so a child is found by its position.

use crate::credit::{Credit, CreditShaper};
use crate::disciplines::deficit::Deficit;
use crate::disciplines::fair::Fair;
use crate::disciplines::gated::GatedNodes;
use crate::disciplines::priority::Priority;
use crate::disciplines::round_robin::RoundRobin;
use crate::disciplines::shaped::{Credited, Shaper};
use crate::disciplines::{Body, Child, Inner, Order};
use crate::gates::Schedule;
use crate::plan::{Among, CLASSES, Flows, Gated, Handle, Kind, MAX_DEPTH, Node, Plan, Port, Queue, Share};
use crate::store::{Fifo, NONE, Origin};
use crate::tokens::{TokenBucket, Tokens};

/// What flow numbers are divided by on the way down to a queue.
#[derive(Clone, Copy, Debug, Default)]
struct Digit {
    count: u32,
    /// Queues of a copy.
    stride: u32,
}

/// How the queue of a class is found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Route {
    first: u32,
    groups: u32,
    digits: [Digit; MAX_DEPTH],
}

impl Route {
    /// The number of the queue.
    #[inline]
    pub(crate) fn queue(&self, mut flow: u32) -> u32 {
        let mut queue = self.first;
        for digit in &self.digits[..self.groups as usize] {
            let (rest, copy) = match digit.count.is_power_of_two() {
                true => (flow >> digit.count.trailing_zeros(), flow & (digit.count - 1)),
                false => (flow / digit.count, flow % digit.count),
            };
            queue += copy * digit.stride;
            flow = rest;
        }
        queue
    }

    /// What is left of the flow number at the queue: it tells the streams of the queue apart.
    pub(crate) fn stream(&self, flow: u32) -> u32 {
        self.digits[..self.groups as usize].iter().fold(flow, |flow, digit| flow / digit.count)
    }
}

/// A place in the tree.
#[derive(Clone, Copy)]
struct Spot {
    parent: u32,
    position: u32,
}

/// The place of the root.
const ROOT: Spot = Spot { parent: NONE, position: 0 };

/// A plan laid out.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) children: Vec<Child>,
    pub(crate) inners: Vec<Inner>,
    pub(crate) fifos: Vec<Fifo>,
    pub(crate) inner_origins: Vec<Origin>,
    pub(crate) queue_origins: Vec<Origin>,
    pub(crate) settings: Vec<Queue>,
    pub(crate) routes: [Route; CLASSES],
}

struct Builder<'p> {
    port: &'p Port,
    layout: Layout,
    /// Setting of each queue of the plan that was seen.
    known: Vec<Handle>,
    digits: Vec<Digit>,
    now_ns: u64,
}

pub(crate) fn layout(plan: &Plan, now_ns: u64) -> Layout {
    let layout = Layout {
        children: Vec::new(),
        inners: Vec::new(),
        fifos: Vec::with_capacity(plan.queues()),
        inner_origins: Vec::new(),
        queue_origins: Vec::with_capacity(plan.queues()),
        settings: Vec::new(),
        routes: [Route::default(); CLASSES],
    };
    let mut builder = Builder { port: plan.port(), layout, known: Vec::new(), digits: Vec::new(), now_ns };
    match &plan.root().kind {
        // A queue alone is the only child of a node.
        Kind::Queue(_) => {
            let root = builder.inner(ROOT, Order::Priority(Priority::new(1)), Handle(0), 0, 1);
            builder.node(plan.root(), Spot { parent: root, position: 0 }, 0);
        }
        _ => builder.node(plan.root(), ROOT, 0),
    }
    builder.layout
}

/// Queues below a node, over all copies.
fn queues(node: &Node) -> u32 {
    match &node.kind {
        Kind::Queue(_) => 1,
        Kind::Priority(nodes) | Kind::RoundRobin(nodes) => nodes.iter().map(queues).sum(),
        Kind::Deficit(shares) | Kind::Fair(shares) => shares.iter().map(|share| queues(&share.node)).sum(),
        Kind::Flows(flows) => flows.count * queues(&flows.each),
        Kind::Shaper { node, .. } | Kind::Credit { node, .. } => queues(node),
        Kind::Gates { gated, .. } => gated.iter().map(|gated| queues(&gated.node)).sum(),
    }
}

fn shares(shares: &[Share]) -> impl Iterator<Item = u32> + Clone {
    shares.iter().map(|share| share.share)
}

/// The numbers of copies, of which there may be one for all.
fn each(numbers: &[u32], count: u32) -> impl Iterator<Item = u32> + Clone {
    (0..count as usize).map(|copy| if numbers.len() == 1 { numbers[0] } else { numbers[copy] })
}

impl Builder<'_> {
    /// Puts a node where its parent looks for it.
    fn put(&mut self, spot: Spot, body: Body) {
        if spot.parent != NONE {
            let first = self.layout.inners[spot.parent as usize].children;
            self.layout.children[(first + spot.position) as usize] = Child::new(body);
        }
    }

    /// Adds an inner node, with places for so many children. Gives its number.
    fn inner(&mut self, spot: Spot, order: Order, handle: Handle, copy: u32, count: usize) -> u32 {
        let number = self.layout.inners.len() as u32;
        self.put(spot, Body::Inner(number));
        let children = self.layout.children.len() as u32;
        self.layout.children.extend((0..count).map(|_| Child::new(Body::Queue(0))));
        let Spot { parent, position } = spot;
        self.layout.inners.push(Inner { order, children, parent, position, ready: false, waits: false });
        self.layout.inner_origins.push(Origin { handle, copy });
        number
    }

    fn node(&mut self, node: &Node, spot: Spot, copy: u32) {
        let handle = node.handle;
        match &node.kind {
            Kind::Queue(queue) => self.queue(handle, queue, spot, copy),
            Kind::Priority(nodes) => {
                let order = Order::Priority(Priority::new(nodes.len()));
                self.several(spot, order, handle, copy, nodes.iter());
            }
            Kind::RoundRobin(nodes) => {
                let order = Order::RoundRobin(RoundRobin::new(nodes.len()));
                self.several(spot, order, handle, copy, nodes.iter());
            }
            Kind::Deficit(children) => {
                let order = Order::Deficit(Deficit::new(shares(children)));
                self.several(spot, order, handle, copy, children.iter().map(|share| &share.node));
            }
            Kind::Fair(children) => {
                let order = Order::Fair(Box::new(Fair::new(shares(children))));
                self.several(spot, order, handle, copy, children.iter().map(|share| &share.node));
            }
            Kind::Flows(flows) => self.flows(flows, spot, handle, copy),
            Kind::Shaper { rate, burst, node } => {
                let order = Order::Shaper(Shaper::new(self.bucket(*rate, *burst)));
                self.several(spot, order, handle, copy, std::iter::once(&**node));
            }
            Kind::Credit { idle_slope, hi_credit, lo_credit, node } => {
                let credit = Credit {
                    idle_slope: *idle_slope,
                    port_rate: self.port.rate.expect("a plan with credit has a rate"),
                    hi_credit: *hi_credit,
                    lo_credit: *lo_credit,
                    overhead: 0,
                };
                let shaper = CreditShaper::new(credit, self.now_ns).expect("the plan was checked");
                let order = Order::Credit(Box::new(Credited::new(shaper)));
                self.several(spot, order, handle, copy, std::iter::once(&**node));
            }
            Kind::Gates { list, initial, gated } => {
                let schedule = Schedule::new((**list).clone()).expect("the plan was checked");
                let rate = self.port.rate.expect("a plan with gates has a rate");
                let numbers = gated.iter().map(|Gated { gate, .. }| *gate).collect();
                let nodes = GatedNodes::new(schedule, rate, *initial, numbers, self.now_ns);
                let order = Order::Gates(Box::new(nodes.expect("the plan was checked")));
                let parent = self.inner(spot, order, handle, copy, gated.len());
                for (position, Gated { gate, node }) in (0..).zip(gated) {
                    let number = self.layout.inners.len();
                    self.node(node, Spot { parent, position }, copy);
                    if let Kind::Credit { .. } = node.kind
                        && let Order::Credit(credit) = &mut self.layout.inners[number].order
                    {
                        credit.gate = Some(*gate);
                    }
                }
            }
        }
    }

    fn bucket(&self, rate: u64, burst: u64) -> TokenBucket {
        TokenBucket::new(Tokens { rate, burst, overhead: 0 }, self.now_ns).expect("the plan was checked")
    }

    fn several<'n>(
        &mut self,
        spot: Spot,
        order: Order,
        handle: Handle,
        copy: u32,
        nodes: impl ExactSizeIterator<Item = &'n Node>,
    ) {
        let parent = self.inner(spot, order, handle, copy, nodes.len());
        for (position, node) in (0..).zip(nodes) {
            self.node(node, Spot { parent, position }, copy);
        }
    }

    fn flows(&mut self, flows: &Flows, spot: Spot, handle: Handle, copy: u32) {
        let count = flows.count;
        let order = match &flows.among {
            Among::Priority => Order::Priority(Priority::new(count as usize)),
            Among::RoundRobin => Order::RoundRobin(RoundRobin::new(count as usize)),
            Among::Deficit(quanta) => Order::Deficit(Deficit::new(each(quanta, count))),
            Among::Fair(weights) => Order::Fair(Box::new(Fair::new(each(weights, count)))),
        };
        let parent = self.inner(spot, order, handle, copy, count as usize);
        self.digits.push(Digit { count, stride: queues(&flows.each) });
        for number in 0..count {
            self.node(&flows.each, Spot { parent, position: number }, copy * count + number);
        }
        self.digits.pop();
    }

    fn queue(&mut self, handle: Handle, queue: &Queue, spot: Spot, copy: u32) {
        let number = self.layout.fifos.len() as u32;
        let setting = match self.known.iter().position(|known| *known == handle) {
            Some(setting) => setting,
            None => {
                self.known.push(handle);
                self.layout.settings.push(queue.clone());
                let mut digits = [Digit::default(); MAX_DEPTH];
                digits[..self.digits.len()].copy_from_slice(&self.digits);
                let route = Route { first: number, groups: self.digits.len() as u32, digits };
                for class in (0..CLASSES).filter(|class| queue.classes >> class & 1 == 1) {
                    self.layout.routes[class] = route;
                }
                self.known.len() - 1
            }
        };
        self.put(spot, Body::Queue(number));
        self.layout.fifos.push(Fifo::new(spot.parent, spot.position, setting as u32));
        self.layout.queue_origins.push(Origin { handle, copy });
    }
}
