//! Links: their ends are switches that are there, and virtual ports that nothing else uses.

use super::{Once, unknown};
use crate::parse::Draft;
use millrace_toml_sections::{Finding, Findings, Kind};
use std::collections::HashMap;

pub(super) fn check(draft: &Draft<'_>, findings: &mut Findings) {
    let switches: HashMap<&str, _> =
        draft.switches.iter().map(|switch| (switch.is.name.as_str(), switch)).collect();
    let mut used = Once::new();
    for switch in &draft.switches {
        let name = switch.is.name.as_str();
        if let Some(number) = switch.is.cpu_port {
            used.add((name, number), switch.table.at("cpu-port"));
        }
        for port in &switch.ports {
            if let Some(number) = port.number {
                used.add((name, number), port.table.at("number"));
            }
        }
    }
    for link in &draft.links {
        let [a, b] = &link.is.between;
        if a == b {
            let message = format!("a link needs two ends: `{a}` cannot be linked with itself");
            findings.push(Finding::new(Kind::Conflict, link.table.at("between"), message));
            continue;
        }
        for (end, at) in link.is.between.iter().zip(&link.ends) {
            if !switches.contains_key(end.switch.as_str()) {
                findings.push(unknown("switch", &end.switch, at.clone(), switches.keys().copied()));
                continue;
            }
            if let Some(first) = used.add((end.switch.as_str(), end.port), at.clone()) {
                let message = format!("virtual port `{end}` is used twice");
                findings.push(Finding::new(Kind::Duplicate, at.clone(), message).also(first, "first here"));
            }
        }
    }
}
