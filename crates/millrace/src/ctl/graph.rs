//! What is connected with what, as an indented list and for Graphviz.

use millrace_ctl_api::{GraphStatus, LinkStatus};
use millrace_printable::printable_line;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The virtual ports of a switch: the number, what is at the other end, and what is special.
type Ports<'a> = Vec<(u32, String, &'a str)>;

/// An indented list: each virtual port under its switch, with the other end.
pub(super) fn text(graph: &GraphStatus) -> String {
    let mut ports = ports(graph);
    let mut text = String::from("physical ports\n");
    for (name, device) in &graph.physical {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {}: {}", printable_line(name), printable_line(device));
    }
    text.push_str("switches\n");
    for (name, program) in &graph.switches {
        let _ = writeln!(text, "  {}: {}", printable_line(name), printable_line(program));
        list(&mut text, ports.remove(name.as_str()).unwrap_or_default());
    }
    // Those at the other ends that the client may not see.
    for (name, ports) in ports {
        let _ = writeln!(text, "  {}", printable_line(name));
        list(&mut text, ports);
    }
    text
}

fn list(text: &mut String, mut ports: Ports<'_>) {
    ports.sort();
    for (port, other, label) in ports {
        let _ = write!(text, "    port {port} - {}", printable_line(&other));
        match label {
            "" => text.push('\n'),
            label => drop(writeln!(text, ": {}", printable_line(label))),
        }
    }
}

/// By switch. A link between two switches is at both.
fn ports(graph: &GraphStatus) -> BTreeMap<&str, Ports<'_>> {
    let mut ports: BTreeMap<&str, Ports<'_>> = BTreeMap::new();
    for LinkStatus { from: (from, from_port), to: (to, to_port), label } in &graph.links {
        let here = ports.entry(from).or_default();
        match to_port {
            None => here.push((*from_port, format!("physical port {to}"), label)),
            Some(to_port) => {
                here.push((*from_port, format!("{to}:{to_port}"), label));
                ports.entry(to).or_default().push((*to_port, format!("{from}:{from_port}"), label));
            }
        }
    }
    ports
}

/// For Graphviz: physical ports as boxes, switches as ellipses, links as edges with the numbers of their virtual ports.
pub(super) fn dot(device: &str, graph: &GraphStatus) -> String {
    let physical = |name: &str| quoted(&[&format!("port {name}")]);
    let switch = |name: &str| quoted(&[&format!("switch {name}")]);
    let mut text = format!("graph {} {{\n", quoted(&[device]));
    for (name, device) in &graph.physical {
        let _ = writeln!(text, "  {} [shape=box, label={}];", physical(name), quoted(&[name, device]));
    }
    for (name, program) in &graph.switches {
        let _ = writeln!(text, "  {} [label={}];", switch(name), quoted(&[name, program]));
    }
    for LinkStatus { from: (from, port), to: (to, to_port), label } in &graph.links {
        let _ = write!(text, "  {} -- ", switch(from));
        let _ = match to_port {
            None => write!(text, "{} [taillabel=\"{port}\"", physical(to)),
            Some(to_port) => {
                write!(text, "{} [taillabel=\"{port}\", headlabel=\"{to_port}\"", switch(to))
            }
        };
        let _ = match label.as_str() {
            "" => writeln!(text, "];"),
            label => writeln!(text, ", label={}];", quoted(&[label])),
        };
    }
    text.push_str("}\n");
    text
}

/// Lines as one string of Graphviz.
fn quoted(lines: &[&str]) -> String {
    millrace_graphs::quoted(&lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph() -> GraphStatus {
        let pair = |name: &str, what: &str| (name.to_owned(), what.to_owned());
        let link = |from: (&str, u32), to: (&str, Option<u32>), label: &str| LinkStatus {
            from: (from.0.to_owned(), from.1),
            to: (to.0.to_owned(), to.1),
            label: label.to_owned(),
        };
        GraphStatus {
            physical: vec![pair("p0", "packet:veth0")],
            switches: vec![pair("l2", "l2.p4"), pair("idle", "empty.p4")],
            links: vec![
                link(("l2", 10), ("router", Some(1)), "delay 1ms"),
                link(("l2", 9), ("l2", Some(2)), ""),
                link(("l2", 0), ("p0", None), "vlan 100"),
            ],
        }
    }

    #[test]
    fn each_port_stands_under_its_switch() {
        let wanted = "\
physical ports
  p0: packet:veth0
switches
  l2: l2.p4
    port 0 - physical port p0: vlan 100
    port 2 - l2:9
    port 9 - l2:2
    port 10 - router:1: delay 1ms
  idle: empty.p4
  router
    port 1 - l2:10: delay 1ms
";
        assert_eq!(text(&graph()), wanted);
    }

    #[test]
    fn graphviz_gets_nodes_and_edges() {
        let wanted = r#"graph "edge" {
  "port p0" [shape=box, label="p0\npacket:veth0"];
  "switch l2" [label="l2\nl2.p4"];
  "switch idle" [label="idle\nempty.p4"];
  "switch l2" -- "switch router" [taillabel="10", headlabel="1", label="delay 1ms"];
  "switch l2" -- "switch l2" [taillabel="9", headlabel="2"];
  "switch l2" -- "port p0" [taillabel="0", label="vlan 100"];
}
"#;
        assert_eq!(dot("edge", &graph()), wanted);
    }

    /// A name cannot end its string, nor its line.
    #[test]
    fn names_are_quoted() {
        let name = "a\"]; x [label=\"\\".to_owned();
        let graph = GraphStatus {
            switches: vec![(name.clone(), "b\nc\u{1b}".to_owned())],
            links: vec![LinkStatus {
                from: (name, 0),
                to: ("p\\".to_owned(), None),
                label: "\"\n".to_owned(),
            }],
            ..GraphStatus::default()
        };
        let wanted = r#"graph "e\"" {
  "switch a\"]; x [label=\"\\" [label="a\"]; x [label=\"\\\nb\nc "];
  "switch a\"]; x [label=\"\\" -- "port p\\" [taillabel="0", label="\"\n"];
}
"#;
        assert_eq!(dot("e\"", &graph), wanted);
        assert!(text(&graph).contains("b\\u000ac\\u001b"), "{}", text(&graph));
    }
}
