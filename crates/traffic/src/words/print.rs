//! Plans as text.

use super::PortPlan;
use super::quantity::{show_alpha, show_rate, show_share, show_size, show_slope, show_time};
use crate::gates::GateList;
use crate::plan::{
    Among, Asynchronous, Curve, Flows, Handle, Kind, MAX_BYTES, MAX_PACKETS, Node, Port, Queue, Share,
};
use std::fmt;

impl fmt::Display for PortPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (port, usual) = (self.plan.port(), Port::default());
        write!(f, "port {}", self.port)?;
        option(f, "rate", port.rate.map(show_rate))?;
        option(f, "overhead", Some(port.overhead))?;
        option(f, "mtu", Some(port.longest))?;
        option(f, "buffer", Some(show_size(port.bytes)))?;
        option(f, "packets", Some(port.packets))?;
        option(f, "overflow", (port.overflow > 0).then(|| show_size(port.overflow)))?;
        // What is usual depends on what else is there, which lines may change.
        let usual_catch_up = if has_gates(self.plan.root()) { 0 } else { usual.catch_up_ns };
        let catch_up = (port.catch_up_ns != usual_catch_up).then(|| show_time(port.catch_up_ns));
        option(f, "catch-up", catch_up)?;
        option(f, "seed", (port.seed != usual.seed).then_some(port.seed))?;
        writeln!(f)?;
        let place = Place { parent: None, rate: port.rate.unwrap_or(0) };
        place.node(f, self.plan.root())
    }
}

/// Whether there are gates in a tree.
fn has_gates(node: &Node) -> bool {
    match &node.kind {
        Kind::Gates { .. } => true,
        Kind::Queue(_) => false,
        Kind::Priority(nodes) | Kind::RoundRobin(nodes) => nodes.iter().any(has_gates),
        Kind::Deficit(shares) | Kind::Fair(shares) => shares.iter().any(|share| has_gates(&share.node)),
        Kind::Flows(flows) => has_gates(&flows.each),
        Kind::Shaper { node, .. } | Kind::Credit { node, .. } => has_gates(node),
    }
}

/// Where a node is.
#[derive(Clone, Copy)]
struct Place {
    parent: Option<Handle>,
    rate: u64,
}

impl Place {
    /// A node and those under it.
    fn node(self, f: &mut fmt::Formatter<'_>, node: &Node) -> fmt::Result {
        match self.parent {
            None => write!(f, "qdisc add root")?,
            Some(class) => write!(f, "qdisc add parent {class}")?,
        }
        write!(f, " handle {} ", node.handle)?;
        let under = |number: usize| Place { parent: Some(Handle(node.handle.0 | number as u32)), ..self };
        match &node.kind {
            Kind::Queue(words) => line(f, |f| queue(f, words, None)),
            Kind::Priority(nodes) => {
                writeln!(f, "prio bands {}", nodes.len())?;
                nodes.iter().zip(1..).try_for_each(|(node, number)| under(number).node(f, node))
            }
            Kind::RoundRobin(nodes) => {
                writeln!(f, "rr")?;
                nodes.iter().zip(1..).try_for_each(|(node, number)| under(number).node(f, node))
            }
            Kind::Deficit(nodes) => {
                writeln!(f, "drr")?;
                shares(f, node.handle, nodes, |share| format!("drr quantum {}", show_size(share.into())))?;
                nodes.iter().zip(1..).try_for_each(|(share, number)| under(number).node(f, &share.node))
            }
            Kind::Fair(nodes) => {
                writeln!(f, "wfq")?;
                shares(f, node.handle, nodes, |share| format!("wfq weight {share}"))?;
                nodes.iter().zip(1..).try_for_each(|(share, number)| under(number).node(f, &share.node))
            }
            Kind::Flows(flows) => match fair_queues(node.handle, flows) {
                Some((quantum, words)) => line(f, |f| queue(f, words, Some((flows.count, quantum)))),
                None => {
                    write!(f, "flows {} ", flows.count)?;
                    line(f, |f| among(f, &flows.among))?;
                    under(1).node(f, &flows.each)
                }
            },
            Kind::Shaper { rate, burst, node } => {
                writeln!(f, "tbf rate {} burst {}", show_rate(*rate), show_size(*burst))?;
                under(1).node(f, node)
            }
            Kind::Credit { idle_slope, hi_credit, lo_credit, node } => {
                write!(f, "cbs idleslope {}", show_rate(*idle_slope))?;
                write!(f, " sendslope {}", show_slope(*idle_slope as i64 - self.rate as i64))?;
                writeln!(f, " hicredit {} locredit -{}", show_size(*hi_credit), show_size(*lo_credit))?;
                under(1).node(f, node)
            }
            Kind::Gates { list, initial, gated } => {
                gates(f, list, *initial)?;
                gated.iter().try_for_each(|gated| under(usize::from(gated.gate) + 1).node(f, &gated.node))
            }
        }
    }
}

/// The queues of flows that `fq` stands for, with their quantum.
fn fair_queues(handle: Handle, flows: &Flows) -> Option<(u32, &Queue)> {
    match (&flows.among, &flows.each.kind) {
        (Among::Deficit(quanta), Kind::Queue(queue))
            if flows.each.handle == Handle(handle.0 | 1) && quanta.len() == 1 =>
        {
            Some((quanta[0], queue))
        }
        _ => None,
    }
}

/// A word and its value, if there is one.
fn option(f: &mut fmt::Formatter<'_>, word: &str, value: Option<impl fmt::Display>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {word} {value}"))
}

/// Something that ends a line.
fn line(
    f: &mut fmt::Formatter<'_>,
    show: impl FnOnce(&mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    show(f)?;
    writeln!(f)
}

fn shares(
    f: &mut fmt::Formatter<'_>,
    of: Handle,
    shares: &[Share],
    show: impl Fn(u32) -> String,
) -> fmt::Result {
    shares.iter().zip(1..).try_for_each(|(share, number)| {
        writeln!(f, "class add parent {of} classid {} {}", Handle(of.0 | number), show(share.share))
    })
}

fn among(f: &mut fmt::Formatter<'_>, among: &Among) -> fmt::Result {
    let list = |shares: &[u32], show: fn(u32) -> String| {
        shares.iter().map(|share| show(*share)).collect::<Vec<_>>().join(",")
    };
    match among {
        Among::Priority => f.write_str("prio"),
        Among::RoundRobin => f.write_str("rr"),
        Among::Deficit(quanta) => write!(f, "drr quantum {}", list(quanta, |share| show_size(share.into()))),
        Among::Fair(weights) => write!(f, "wfq weight {}", list(weights, |share| share.to_string())),
    }
}

fn gates(f: &mut fmt::Formatter<'_>, list: &GateList, initial: u8) -> fmt::Result {
    let time = |time: u64| (time > 0).then(|| show_time(time));
    f.write_str("taprio")?;
    option(f, "base-time", time(list.base_ns))?;
    option(f, "cycle-time", time(list.cycle_ns))?;
    option(f, "cycle-time-extension", time(list.extension_ns))?;
    option(f, "initial", (initial != 0xff).then(|| format!("{initial:02x}")))?;
    for entry in &list.entries {
        write!(f, " \\\n    sched-entry S {:02x} {}", entry.open, show_time(entry.interval_ns))?;
    }
    writeln!(f)
}

fn queue(f: &mut fmt::Formatter<'_>, words: &Queue, flows: Option<(u32, u32)>) -> fmt::Result {
    let curves = words.red.as_ref().map(|red| red.curves.as_slice());
    let plain = matches!(curves, Some([curve]) if curve.classes == 0xff);
    let (kind, in_packets) = match (flows, curves) {
        (Some(_), _) => ("fq", true),
        (None, Some(_)) if plain => ("red", false),
        (None, Some(_)) => ("wred", false),
        (None, None) if words.packets == MAX_PACKETS => ("bfifo", false),
        (None, None) => ("pfifo", true),
    };
    f.write_str(kind)?;
    if let Some((flows, quantum)) = flows {
        write!(f, " flows {flows} quantum {}", show_size(quantum.into()))?;
    }
    let bytes = (words.bytes != MAX_BYTES).then(|| show_size(words.bytes));
    match in_packets {
        true => {
            write!(f, " limit {}", words.packets)?;
            option(f, "bytes", bytes)?;
        }
        false => {
            option(f, "limit", bytes)?;
            option(f, "packets", (words.packets != MAX_PACKETS).then_some(words.packets))?;
        }
    }
    write!(f, " classes {}", classes(words.classes))?;
    option(f, "reserve", (words.reserved > 0).then(|| show_size(words.reserved)))?;
    option(f, "alpha", words.alpha.map(show_alpha))?;
    option(f, "age", words.age_ns.map(show_time))?;
    option(f, "overflow", (words.overflow > 0).then(|| show_size(words.overflow)))?;
    if let Some(red) = &words.red {
        option(f, "average", (red.average > 0 || red.curves.is_empty()).then_some(red.average))?;
        let named = kind != "red";
        red.curves.iter().try_for_each(|each| curve(f, each, named))?;
    }
    words.asynchronous.as_ref().map_or(Ok(()), |words| asynchronous(f, words))
}

fn curve(f: &mut fmt::Formatter<'_>, curve: &Curve, named: bool) -> fmt::Result {
    option(f, "curve", named.then(|| classes(curve.classes)))?;
    write!(f, " min {} max {}", show_size(curve.min), show_size(curve.max))?;
    write!(f, " probability {}", show_share(curve.probability))?;
    f.write_str(if curve.ecn { " ecn" } else { "" })
}

fn asynchronous(f: &mut fmt::Formatter<'_>, words: &Asynchronous) -> fmt::Result {
    write!(f, " ats rate {} burst {}", show_rate(words.rate), show_size(words.burst))?;
    write!(f, " residence {}", show_time(words.residence_ns))?;
    option(f, "streams", (words.streams != 1).then_some(words.streams))?;
    option(f, "groups", (words.groups != 1).then_some(words.groups))
}

/// Classes of a mask as a list with ranges.
fn classes(mask: u8) -> String {
    let mut parts = Vec::new();
    let mut class = 0;
    while class < 8 {
        let length = (mask >> class).trailing_ones();
        match length {
            0 => {}
            1 => parts.push(format!("{class}")),
            length => parts.push(format!("{class}-{}", class + length - 1)),
        }
        class += length + 1;
    }
    parts.join(",")
}
