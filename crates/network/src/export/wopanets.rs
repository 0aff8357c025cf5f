//! XML of WoPANets: one of the two networks. What is written is read by the importer as the same network.

use super::decimal;
use crate::Topology;
use crate::model::{Link, Network, Policing, Scheduler, Side, Vl};
use foldhash::HashSet;
use std::fmt::Write;

/// Bytes of a frame that are no payload: Ethernet 14, IP 20, UDP 8, sequence number 1, check sum 4.
const HEADER: u32 = 47;

/// The text, and what it does not say of the network.
pub fn wopanets(topology: &Topology<'_>, side: Side) -> (String, Vec<String>) {
    let network = topology.network;
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<elements>\n");
    // Writing to a string cannot fail.
    let _ = write(&mut text, topology, side);
    text.push_str("</elements>\n");
    (text, left_out(network, side))
}

fn write(text: &mut String, topology: &Topology<'_>, side: Side) -> std::fmt::Result {
    let network = topology.network;
    writeln!(
        text,
        "  <network name=\"{}\" overhead=\"{}\" technology=\"AFDX\" transmission-capacity=\"100Mbps\" \
         shortest-path-policy=\"DIJKSTRA\" x-type=\"FULL\"/>",
        escaped(&network.name),
        HEADER + network.overhead
    )?;
    for end_system in &network.end_systems {
        let name = escaped(&end_system.name);
        write!(text, "  <station name=\"{name}\" service-policy=\"FIRST_IN_FIRST_OUT\"")?;
        if end_system.latency > 0 {
            write!(text, " service-latency=\"{}us\"", decimal(end_system.latency, 1000))?;
        }
        text.push_str("/>\n");
    }
    for switch in network.switches.iter().filter(|switch| switch.network == side) {
        let policy = match switch.scheduler {
            Scheduler::Fifo | Scheduler::Arbitrary => "FIRST_IN_FIRST_OUT",
            Scheduler::Priority => "FIXED_PRIORITY",
            Scheduler::RoundRobin => "ROUND_ROBIN",
        };
        let (name, latency) = (escaped(&switch.name), decimal(switch.latency, 1000));
        writeln!(
            text,
            "  <switch name=\"{name}\" service-policy=\"{policy}\" tech-latency=\"{latency}\" \
             switching-technique=\"STORE_AND_FORWARD\"/>"
        )?;
    }
    for (number, link) in network.links.iter().filter(|link| link.network == side).enumerate() {
        let [from, to] = &link.between;
        write!(
            text,
            "  <link name=\"Edge{}\" from=\"{}\" fromPort=\"{}\" to=\"{}\" toPort=\"{}\" transmission-capacity=\"{}\"",
            number + 1,
            escaped(&from.node),
            from.port,
            escaped(&to.node),
            to.port,
            link.rate
        )?;
        if link.service_rate != link.rate {
            write!(text, " service-rate=\"{}\"", link.service_rate)?;
        }
        if let Some(latency) = link.latency {
            write!(text, " service-latency=\"{}us\"", decimal(latency, 1000))?;
        }
        if link.propagation > 0 {
            write!(text, " propagation-delay=\"{}us\"", decimal(link.propagation, 1000))?;
        }
        text.push_str("/>\n");
    }
    network.vls.iter().try_for_each(|vl| {
        let Some(route) = vl.routes.iter().find(|route| route.network == side) else { return Ok(()) };
        let payload = |frame: u16| u32::from(frame) - HEADER;
        write!(
            text,
            "  <flow name=\"{}\" source=\"{}\" max-payload=\"{}\" min-payload=\"{}\" period=\"{}\" jitter=\"{}\" priority=\"{}\"",
            escaped(&vl.name),
            escaped(&vl.source),
            payload(vl.lmax),
            payload(vl.lmin),
            decimal(vl.bag, 1_000_000),
            decimal(vl.source_jitter, 1_000_000),
            match vl.priority {
                0 => "Low".to_owned(),
                1 => "High".to_owned(),
                other => other.to_string(),
            }
        )?;
        if let Some(deadline) = vl.deadline {
            write!(text, " deadline=\"{}\"", decimal(deadline, 1_000_000))?;
        }
        text.push_str(">\n");
        for path in &route.paths {
            writeln!(text, "    <target mode=\"M\" name=\"{}\">", escaped(path.last().map_or("", String::as_str)))?;
            path.iter().try_for_each(|node| writeln!(text, "      <path node=\"{}\"/>", escaped(node)))?;
            text.push_str("    </target>\n");
        }
        text.push_str("  </flow>\n");
        Ok(())
    })
}

fn left_out(network: &Network, side: Side) -> Vec<String> {
    let one_way = |link: &&Link| link.one_way && link.network == side;
    let ends = |link: &Link| link.between.each_ref().map(|end| end.node.clone());
    let led: HashSet<[String; 2]> = network.links.iter().filter(one_way).map(ends).collect();
    let is_alone = |[from, to]: &[String; 2]| !led.contains(&[to.clone(), from.clone()]);
    let on_side = |vl: &&Vl| vl.routes.iter().any(|route| route.network == side);
    let checks = [
        (
            led.iter().any(is_alone),
            "links of one direction, where no link has the other one: written as links of both",
        ),
        (
            network.vls.iter().filter(on_side).enumerate().any(|(place, vl)| usize::from(vl.id) != place),
            "ids of virtual links: who reads it counts them from 0",
        ),
        (
            network.end_systems.iter().enumerate().any(|(place, end)| usize::from(end.id) != place + 1),
            "ids of end systems",
        ),
        (
            network.end_systems.iter().any(|end| end.least_latency > 0)
                || network.switches.iter().any(|switch| switch.least_latency > 0),
            "least latencies",
        ),
        (network.vls.iter().any(|vl| vl.skew_max != 5_000_000), "largest skews other than 5 ms"),
        (
            network.switches.iter().any(|switch| switch.end_system.is_some()),
            "which end system is a switch's own",
        ),
        (
            network.end_systems.iter().any(|end| end.receive_latency > 0),
            "latency of end systems that receive",
        ),
        (
            network.switches.iter().any(|switch| switch.buffer.is_some() || switch.max_delay.is_some()),
            "buffers and largest delays of ports",
        ),
        (
            network.switches.iter().any(|switch| switch.scheduler == Scheduler::Arbitrary),
            "ports that serve in any order: written as first in, first out",
        ),
        (
            network.vls.iter().any(|vl| {
                vl.policing != Policing::Byte || vl.shared_account.is_some() || vl.jitter.is_some()
            }),
            "accounts",
        ),
        (network.vls.iter().any(|vl| !vl.sub_vls.is_empty()), "sub virtual links"),
        (network.part_number.is_some(), "the part number"),
        (
            network.overhead != 20,
            "that the wire adds other than 20 bytes: frames take as much of it, and are of other lengths",
        ),
    ];
    let mut notes: Vec<String> =
        checks.iter().filter(|(is, _)| *is).map(|(_, what)| format!("left out: {what}")).collect();
    if network.vls.iter().any(|vl| vl.routes.iter().any(|route| route.network != side)) {
        notes.push(format!("left out: the other network; this is {side}"));
    }
    notes
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}
