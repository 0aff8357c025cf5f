//! Lines to plans.

use super::reader::{Line, Place, WordsError};
use super::statement::{
    ClassLine, CreditWords, NodeLine, PortLine, Statement, Words, minor, owner, statement,
};
use super::{MAX_PORTS, PortPlan};
use crate::credit::Credit;
use crate::error::PlanError;
use crate::gates::GATES;
use crate::plan::{Among, Flows, Gated, Handle, Kind, MAX_DEPTH, Node, Plan, Port, Queue, Share};
use std::collections::{HashMap, HashSet};

/// Lines of a port while they come.
struct Section {
    line: PortLine,
    nodes: Vec<NodeLine>,
    classes: Vec<ClassLine>,
}

/// The plans of a text, in the order of its ports.
pub(super) fn assemble(lines: Vec<Line<'_>>) -> Result<Vec<PortPlan>, WordsError> {
    let mut sections: Vec<Section> = Vec::new();
    let mut ports = HashSet::new();
    for mut line in lines {
        match (statement(&mut line)?, sections.last_mut()) {
            (Statement::Port(line), _) => {
                if !ports.insert(line.number) {
                    return Err(line.place.error(format!("port {} is here already", line.number)));
                }
                if ports.len() > MAX_PORTS {
                    return Err(line.place.error(format!("there are more than {MAX_PORTS} ports")));
                }
                sections.push(Section { line, nodes: Vec::new(), classes: Vec::new() });
            }
            (Statement::Node(line), Some(section)) => section.nodes.push(line),
            (Statement::Class(line), Some(section)) => section.classes.push(line),
            (Statement::Node(NodeLine { place, .. }) | Statement::Class(ClassLine { place, .. }), None) => {
                return Err(place.error("a line `port` has to come first: which port is this about?"));
            }
        }
    }
    sections.into_iter().map(Section::plan).collect()
}

impl Section {
    fn plan(mut self) -> Result<PortPlan, WordsError> {
        let mut by_handle: HashMap<Handle, usize> = HashMap::new();
        for (at, line) in self.nodes.iter().enumerate() {
            if by_handle.insert(line.handle, at).is_some() {
                return Err(line.place.error(format!("{} is here already", line.handle)));
            }
        }
        let places: HashMap<Handle, Place> =
            self.nodes.iter().map(|line| (line.handle, line.place)).collect();
        let port_place = self.line.place;
        let classes = self.quanta();
        self.share_out_classes()?;
        let shares = self.shares(&by_handle)?;
        let (root, mut children) = self.children(&by_handle, &shares)?;
        for (line, children) in self.nodes.iter().zip(&mut children) {
            // Of gates, the first in the text comes first.
            if !matches!(line.words, Words::Gates(..)) {
                children.sort_by_key(|(minor, _)| *minor);
            }
        }
        self.check_classes(&children)?;
        let PortLine { number, mut port, says_catch_up, .. } = self.line;
        // A frame that makes up for time would end after its gate has closed.
        if self.nodes.iter().any(|line| matches!(line.words, Words::Gates(..))) {
            if says_catch_up && port.catch_up_ns > 0 {
                let why = "under `taprio` a port makes up for no time, since frames would end after their gates have closed: `catch-up` is 0";
                return Err(port_place.error(why));
            }
            port.catch_up_ns = 0;
        }
        let mut tree = Tree { port, nodes: self.nodes.into_iter().map(Some).collect(), children, shares };
        let root = tree.node(root, 1)?;
        if let Some(line) = tree.nodes.into_iter().flatten().next() {
            return Err(line.parent_place.error(format!("{} is not under the root", line.handle)));
        }
        let plan = Plan::new(tree.port, root).map_err(|error| {
            // The quantum of a class stands on its own line, not on that of what is under it.
            if let PlanError::QuantumShort { at, quantum, longest } = error
                && let Some((class, place)) = classes.get(&(at, quantum))
            {
                return place.error(reason(&PlanError::QuantumShort { at: *class, quantum, longest }));
            }
            let place = about(&error).and_then(|handle| places.get(&owner(handle)));
            place.unwrap_or(&port_place).error(reason(&error))
        })?;
        Ok(PortPlan { port: number, plan })
    }

    /// Classes with their lines, by what is under them and their quantum.
    fn quanta(&self) -> HashMap<(Handle, u32), (Handle, Place)> {
        let classes: HashMap<Handle, &ClassLine> =
            self.classes.iter().map(|line| (line.class, line)).collect();
        let under = |line: &NodeLine| {
            let class = classes.get(&line.parent?)?;
            Some(((line.handle, class.share), (class.class, class.place)))
        };
        self.nodes.iter().filter_map(under).collect()
    }

    /// One queue at most says no classes: the others of the 8 go there.
    fn share_out_classes(&mut self) -> Result<(), WordsError> {
        let (mut said, mut silent) = (0, None);
        for (at, line) in self.nodes.iter().enumerate() {
            let (Words::Queue(queue, says) | Words::FairQueues(_, _, queue, says)) = &line.words else {
                continue;
            };
            if *says {
                said |= queue.classes;
            } else if silent.replace(at).is_some() {
                let wanted = "only one queue may, for all that go nowhere else";
                return Err(line.place.error(format!("{} says no `classes`: {wanted}", line.handle)));
            }
        }
        if let Some(at) = silent
            && let Words::Queue(queue, _) | Words::FairQueues(_, _, queue, _) = &mut self.nodes[at].words
        {
            queue.classes = !said;
        }
        Ok(())
    }

    /// The shares of classes, each of a node that has such.
    fn shares(&self, by_handle: &HashMap<Handle, usize>) -> Result<HashMap<Handle, u32>, WordsError> {
        let mut shares = HashMap::new();
        for ClassLine { place, class, word, share } in &self.classes {
            let of = owner(*class);
            match (by_handle.get(&of).map(|at| &self.nodes[*at].words), *word) {
                (Some(Words::Deficit), "drr") | (Some(Words::Fair), "wfq") => {}
                (Some(Words::Deficit), _) => {
                    return Err(place.error(format!("{of} is drr: its classes have a quantum")));
                }
                (Some(Words::Fair), _) => {
                    return Err(place.error(format!("{of} is wfq: its classes have a weight")));
                }
                (Some(_), _) => {
                    return Err(place.error(format!("{of} has no classes to add: only drr and wfq have")));
                }
                (None, _) => return Err(place.error(format!("there is no {of}"))),
            }
            if shares.insert(*class, *share).is_some() {
                return Err(place.error(format!("{class} is here already")));
            }
        }
        Ok(shares)
    }

    /// The root, and the children of each node with the number of their class, in the order of the text.
    fn children(
        &self,
        by_handle: &HashMap<Handle, usize>,
        shares: &HashMap<Handle, u32>,
    ) -> Result<(usize, Vec<Children>), WordsError> {
        let mut root = None;
        let mut children: Vec<Children> = self.nodes.iter().map(|_| Vec::new()).collect();
        let mut taken = HashSet::new();
        for (at, line) in self.nodes.iter().enumerate() {
            let error = |reason: String| Err(line.parent_place.error(reason));
            let Some(parent) = line.parent else {
                match root.replace(at) {
                    Some(_) => return error("there is a root already".into()),
                    None => continue,
                }
            };
            let of = owner(parent);
            let Some(above) = by_handle.get(&of).copied() else {
                return error(format!("there is no {of}"));
            };
            let (most, single) = match &self.nodes[above].words {
                Words::Queue(..) | Words::FairQueues(..) => {
                    return error(format!("{of} is a queue: nothing is under it"));
                }
                Words::Priority(bands) => (*bands, false),
                Words::Gates(..) => (GATES as u16, false),
                Words::RoundRobin => (u16::MAX, false),
                Words::Deficit | Words::Fair if minor(parent) > 0 && !shares.contains_key(&parent) => {
                    return error(format!(
                        "there is no class {parent}: a line `class add` has to say its share"
                    ));
                }
                Words::Deficit | Words::Fair => (u16::MAX, false),
                Words::Flows(..) | Words::Shaper(..) | Words::Credit(_) => (1, true),
            };
            // `1:` is as good as `1:1` where there is one class.
            let number = if single { minor(parent).max(1) } else { minor(parent) };
            if !(1..=most).contains(&number) {
                let last = Handle(of.0 | u32::from(most));
                return error(format!(
                    "{parent} is none of the classes {} to {last} of {of}",
                    Handle(of.0 | 1)
                ));
            }
            let several = matches!(self.nodes[above].words, Words::Gates(..));
            if !taken.insert(Handle(of.0 | u32::from(number))) && !several {
                return error(format!("{parent} has something under it already"));
            }
            children[above].push((number, at));
        }
        match root {
            Some(root) => Ok((root, children)),
            None => Err(self.line.place.error(format!("port {} has no root", self.line.number))),
        }
    }

    /// Each class has something under it.
    fn check_classes(&self, children: &[Children]) -> Result<(), WordsError> {
        for (line, children) in self.nodes.iter().zip(children) {
            let needed = match line.words {
                Words::Priority(bands) => bands,
                Words::Queue(..) | Words::FairQueues(..) => 0,
                _ => 1,
            };
            if children.len() < usize::from(needed) {
                let lacks = (1..=needed).zip(children).find(|(number, (is, _))| number != is);
                let number = lacks.map_or(children.len() as u16 + 1, |(number, _)| number);
                let class = Handle(line.handle.0 | u32::from(number));
                return Err(line.place.error(format!("nothing is under {class}")));
            }
        }
        let filled: HashSet<Handle> = self.nodes.iter().filter_map(|line| line.parent).collect();
        match self.classes.iter().find(|line| !filled.contains(&line.class)) {
            Some(line) => Err(line.place.error(format!("nothing is under {}", line.class))),
            None => Ok(()),
        }
    }
}

/// Nodes under a node: the numbers of their classes, and which they are.
type Children = Vec<(u16, usize)>;

/// Lines that become nodes.
struct Tree {
    port: Port,
    /// Those that are no nodes yet.
    nodes: Vec<Option<NodeLine>>,
    children: Vec<Children>,
    shares: HashMap<Handle, u32>,
}

impl Tree {
    /// A node, with what is under it. The check of the depth ends also a circle.
    fn node(&mut self, at: usize, depth: usize) -> Result<Node, WordsError> {
        let line = self.nodes[at].take().expect("each line is under one other");
        let handle = line.handle;
        if depth > MAX_DEPTH {
            return Err(line.place.error(reason(&PlanError::TooDeep(handle))));
        }
        let children = std::mem::take(&mut self.children[at]);
        let mut below = Vec::with_capacity(children.len());
        for (number, child) in children {
            below.push((number, self.node(child, depth + 1)?));
        }
        let shares = |below: Vec<(u16, Node)>| {
            let share =
                |number: u16| self.shares.get(&Handle(handle.0 | u32::from(number))).copied().unwrap_or(0);
            below.into_iter().map(|(number, node)| Share { share: share(number), node }).collect()
        };
        let kind = match line.words {
            Words::Queue(queue, _) => Kind::Queue(queue),
            Words::Priority(_) => Kind::Priority(nodes(below)),
            Words::RoundRobin => Kind::RoundRobin(nodes(below)),
            Words::Deficit => Kind::Deficit(shares(below)),
            Words::Fair => Kind::Fair(shares(below)),
            Words::Flows(count, among) => Kind::Flows(Flows { count, among, each: only(below) }),
            Words::FairQueues(count, quantum, queue, _) => fair_queues(handle, count, quantum, queue),
            Words::Shaper(rate, burst) => Kind::Shaper { rate, burst, node: only(below) },
            Words::Credit(words) => self.credit(words, only(below))?,
            Words::Gates(list, initial) => {
                let gated = below.into_iter().map(|(number, node)| Gated { gate: number as u8 - 1, node });
                Kind::Gates { list, initial, gated: gated.collect() }
            }
        };
        Ok(Node { handle, kind })
    }

    /// What is not said of a credit-based shaper is as the standard has it for the highest class.
    fn credit(&self, words: CreditWords, node: Box<Node>) -> Result<Kind, WordsError> {
        let longest = self.port.longest + self.port.overhead;
        let rate = self.port.rate.unwrap_or(0);
        let usual = Credit::of(words.idle_slope, rate, longest, longest, self.port.overhead);
        if let Some((slope, place)) = words.send_slope
            && rate > 0
        {
            usual.check_send_slope(slope).map_err(|error| place.error(error.to_string()))?;
        }
        Ok(Kind::Credit {
            idle_slope: words.idle_slope,
            hi_credit: words.hi_credit.unwrap_or(usual.hi_credit),
            lo_credit: words.lo_credit.unwrap_or(usual.lo_credit),
            node,
        })
    }
}

fn nodes(below: Vec<(u16, Node)>) -> Vec<Node> {
    below.into_iter().map(|(_, node)| node).collect()
}

fn only(below: Vec<(u16, Node)>) -> Box<Node> {
    Box::new(below.into_iter().next().expect("a class has something under it").1)
}

/// Queues of flows that take turns by bytes; the queue has the handle of the node's class.
pub(super) fn fair_queues(handle: Handle, count: u32, quantum: u32, queue: Box<Queue>) -> Kind {
    let each = Box::new(Node { handle: Handle(handle.0 | 1), kind: Kind::Queue(queue) });
    Kind::Flows(Flows { count, among: Among::Deficit(vec![quantum]), each })
}

/// An error as text; a handle that ends with a colon gets no second one.
fn reason(error: &PlanError) -> String {
    let reason = error.to_string();
    match about(error).filter(|at| minor(*at) == 0) {
        Some(at) => reason.replacen(&format!("{at}:"), &at.to_string(), 1),
        None => reason,
    }
}

/// The node that an error is about.
fn about(error: &PlanError) -> Option<Handle> {
    match error {
        PlanError::Port(_)
        | PlanError::TooManyQueues(_)
        | PlanError::TooManyNodes(_)
        | PlanError::ClassNowhere(_)
        | PlanError::ReservedAbove { .. }
        | PlanError::RoomShort { at: None, .. } => None,
        PlanError::Setting(at, _)
        | PlanError::Twice(at)
        | PlanError::TooDeep(at)
        | PlanError::Childless(at)
        | PlanError::Unreached(at)
        | PlanError::ClassTwice(at, _)
        | PlanError::Shares { at, .. }
        | PlanError::QuantumShort { at, .. }
        | PlanError::BurstShort { at, .. }
        | PlanError::RoomShort { at: Some(at), .. }
        | PlanError::RateAbove { at, .. }
        | PlanError::SlopesAbove { at, .. }
        | PlanError::NoRate(at)
        | PlanError::NeverOpens { at, .. }
        | PlanError::WindowShort { at, .. }
        | PlanError::Curve(at) => Some(*at),
    }
}
