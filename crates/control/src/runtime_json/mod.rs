//! P4Runtime entries as JSON, as the exercises of the P4 tutorials write them (`s1-runtime.json`).
//!
//! ```json
//! {
//!   "target": "bmv2",
//!   "table_entries": [
//!     { "table": "MyIngress.ipv4_lpm", "match": { "hdr.ipv4.dstAddr": ["10.0.1.1", 32] },
//!       "action_name": "MyIngress.ipv4_forward", "action_params": { "dstAddr": "08:00:00:00:01:11", "port": 1 } },
//!     { "table": "MyIngress.ipv4_lpm", "default_action": true, "action_name": "MyIngress.drop" }
//!   ],
//!   "multicast_group_entries": [
//!     { "multicast_group_id": 1, "replicas": [{ "egress_port": 1, "instance": 1 }] }
//!   ],
//!   "clone_session_entries": [
//!     { "clone_session_id": 100, "replicas": [{ "egress_port": 252, "instance": 1 }] }
//!   ]
//! }
//! ```
//!
//! Values are numbers or texts ([`millrace_commands::value`]). A match is a value (exact, optional), `[value, prefix length]` (lpm),
//! `[value, mask]` (ternary) or `[low, high]` (range); a field that is left out matches anything, unless it is exact. As
//! in P4Runtime, of entries that match at once the largest `priority` wins, and it is positive. Keys that the format
//! does not have (`p4info`, `bmv2_json`, comments) are skipped at the top.

mod locate;
mod node;
mod tables;

use crate::entries::Loaded;
use locate::locate;
use millrace_commands::{MAX_REFUSALS, Refusal, nearest};
use millrace_dataplane::{Replica, Session, Switch};
use millrace_state::Tables;
use node::{Node, Problem};
use serde_json::Value;

/// The keys at the top that have a meaning.
const SECTIONS: [&str; 3] = ["table_entries", "multicast_group_entries", "clone_session_entries"];

/// Writes what the text says into a switch. Not undone when something does not fit: [`crate::entries::load`] does that.
pub(crate) fn load(switch: &mut Switch, tables: &mut Tables, text: &str) -> Result<Loaded, Vec<Refusal>> {
    let text = text.trim_start_matches('\u{feff}');
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let at = byte_of(text, error.line(), error.column());
        vec![Refusal::new(at..at + 1, format!("not JSON: {}", reason(&error)))]
    })?;
    let mut problems = Vec::new();
    let mut loaded = Loaded::default();
    let top = Node::top(&value);
    if let Err(problem) = sections(switch, tables, &top, &mut loaded, &mut problems) {
        problems.push(problem);
    }
    if problems.is_empty() {
        return Ok(loaded);
    }
    let refusal = |problem: Problem| {
        let message = match problem.path.is_empty() {
            true => problem.message,
            false => format!("{}: {}", problem.path_text(), problem.message),
        };
        Refusal::new(locate(text, &problem.path), message).with_help_if(problem.help)
    };
    Err(problems.into_iter().map(refusal).collect())
}

/// Writes one element of a section.
type Writer = fn(&mut Switch, &mut Tables, &Node<'_>) -> Result<(), Problem>;

fn sections(
    switch: &mut Switch,
    tables: &mut Tables,
    top: &Node<'_>,
    loaded: &mut Loaded,
    problems: &mut Vec<Problem>,
) -> Result<(), Problem> {
    for (key, node) in top.members()? {
        if !SECTIONS.contains(&key)
            && !["target", "p4info", "bmv2_json"].contains(&key)
            && let Some(near) = nearest(key, SECTIONS)
        {
            return Err(node
                .problem(format!("there is no `{key}`"))
                .with_help(format!("did you mean `{near}`?")));
        }
    }
    // Groups come first: clone sessions may name them.
    let writers: [(&str, Writer); 3] = [
        ("multicast_group_entries", multicast_group),
        ("clone_session_entries", clone_session),
        ("table_entries", tables::entry),
    ];
    for (section, write) in writers {
        let Some(list) = top.get(section)? else { continue };
        for node in list.elements()? {
            match write(switch, tables, &node) {
                Ok(()) => loaded.commands += 1,
                Err(problem) if problems.len() + 1 >= MAX_REFUSALS => return Err(problem),
                Err(problem) => problems.push(problem),
            }
        }
    }
    Ok(())
}

fn multicast_group(switch: &mut Switch, _: &mut Tables, node: &Node<'_>) -> Result<(), Problem> {
    node.only(&["multicast_group_id", "replicas"])?;
    let id_node = node.need("multicast_group_id")?;
    let id = id_node.u32()?;
    let copies = replicas(node)?;
    let engine = switch.replication_mut();
    engine.create_group(id).map_err(|error| id_node.problem(error.to_string()))?;
    engine.set_copies(id, copies).map_err(|error| node.problem(error.to_string()))
}

fn clone_session(switch: &mut Switch, _: &mut Tables, node: &Node<'_>) -> Result<(), Problem> {
    node.only(&["clone_session_id", "replicas", "class_of_service", "packet_length_bytes"])?;
    let id = node.need("clone_session_id")?.u32()?;
    let class = match node.get("class_of_service")? {
        Some(class) => u8::try_from(class.u32()?).map_err(|_| class.problem("at most 255".into()))?,
        None => 0,
    };
    let truncate = node.get("packet_length_bytes")?.map(|length| length.u32()).transpose()?;
    let session = Session {
        copies: replicas(node)?,
        group: None,
        // P4Runtime: 0 means the whole packet.
        truncate: truncate.filter(|&length| length != 0),
        class_of_service: class,
    };
    switch.replication_mut().set_session(id, session).map_err(|error| node.problem(error.to_string()))
}

fn replicas(node: &Node<'_>) -> Result<Vec<Replica>, Problem> {
    let mut copies = Vec::new();
    for replica in node.need("replicas")?.elements()? {
        replica.only(&["egress_port", "instance"])?;
        let port = replica.need("egress_port")?.u32()?;
        let rid = match replica.get("instance")? {
            Some(instance) => u16::try_from(instance.u32()?)
                .map_err(|_| instance.problem(format!("an instance is at most {}", u16::MAX)))?,
            None => 0,
        };
        copies.push(Replica { port, rid });
    }
    Ok(copies)
}

/// The reason of a JSON error without its place, which is shown otherwise.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// The byte of a line and column, both from 1.
fn byte_of(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (start + column.saturating_sub(1)).min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_json_errors() {
        let text = "{\n  \"a\": 1,\n  x\n}";
        let error = serde_json::from_str::<Value>(text).unwrap_err();
        assert_eq!(&text[byte_of(text, error.line(), error.column())..][..1], "x");
        assert_eq!(reason(&error), "key must be a string");
    }
}
