//! Whether what a file says fits together.

use super::parse::{BlockDraft, ConnectionDraft, Draft, MemoryDraft, entry_tables, target};
use crate::interface::MANAGER;
use crate::model::*;
use millrace_drivers::InterfaceSpec;
use millrace_toml_sections::{Finding, Findings, Kind as Wrong, Placed, Table, nearest, quoted};
use std::collections::HashMap;
use std::ops::Range;

/// The model of a draft, if nothing is wrong with it.
pub(super) fn check(draft: Draft<'_>, findings: &mut Findings) -> Option<NodeFile> {
    let Draft { name, devices, services, functions, blocks, connections, memories } = draft;
    unique("device", devices.iter().map(|(of, at)| (of.name.as_str(), at.clone())), findings);
    unique("service", services.iter().map(|(name, at)| (name.as_str(), at.clone())), findings);
    unique("function", functions.iter().map(|of| (of.name.as_str(), of.table.at("name"))), findings);
    unique("block", blocks.iter().map(|of| (of.name.as_str(), of.table.at("name"))), findings);
    unique("memory", memories.iter().map(|of| (of.name.as_str(), of.table.at("name"))), findings);
    let named = |list: &[Placed<String>]| list.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let services = named(&services);
    let devices: Vec<DeviceSpec> = devices.into_iter().map(|(of, _)| of).collect();
    let device_names: Vec<String> = devices.iter().map(|of| of.name.clone()).collect();
    let mut checked_functions = Vec::new();
    for of in &functions {
        let service = find("service", &services, &of.service, &of.table, findings);
        let device = find("device", &device_names, &of.device, &of.table, findings);
        checked_functions.push(Function {
            name: of.name.clone(),
            service: service.unwrap_or(0),
            device: device.unwrap_or(0),
            placement: of.placement,
        });
    }
    let specs = memories.iter().map(|of| MemorySpec {
        name: of.name.clone(),
        device: find("device", &device_names, &of.device, &of.table, findings).unwrap_or(0),
        at: of.at,
        words: of.words,
        lease_ms: of.lease_ms,
    });
    let specs: Vec<MemorySpec> = specs.collect();
    let names: Vec<String> = functions.iter().map(|of| of.name.clone()).collect();
    // What is wrong with a block was told: connections of others are looked at all the same.
    let (mut checked_blocks, mut drafts, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for of in &blocks {
        let function = find("function", &names, &of.function, &of.table, findings);
        let (Some(function), Some(mut kind)) = (function, of.kind.clone()) else {
            unknown.push(of.name.as_str());
            continue;
        };
        share(of, &mut kind, &specs, findings);
        let placement = of.placement.unwrap_or(checked_functions[function].placement);
        refuse_place(of, &kind, placement, findings);
        refuse_attachment(of, &kind, findings);
        checked_blocks.push(BlockSpec { name: of.name.clone(), function, placement, kind });
        drafts.push(of);
    }
    let mut node = NodeFile {
        name,
        devices,
        services,
        functions: checked_functions,
        blocks: checked_blocks,
        connections: Vec::new(),
        memories: specs,
    };
    ports_once(&node, &drafts, findings);
    for of in &connections {
        if let Some(connection) = connection(&node, &unknown, of, findings) {
            node.connections.push(connection);
        }
    }
    if !unknown.is_empty() {
        return None;
    }
    shared_by_some(&node, &memories, findings);
    if node.connections.len() == connections.len() {
        fit(&node, &drafts, &connections, findings);
        refuse_rings(&node, &connections, findings);
        refuse_targets(&node, &drafts, findings);
    }
    Some(node)
}

/// Tells names that are there twice.
fn unique<'n>(what: &str, names: impl Iterator<Item = (&'n str, Range<usize>)>, findings: &mut Findings) {
    let mut known: HashMap<&str, Range<usize>> = HashMap::new();
    for (name, at) in names.filter(|(name, _)| !name.is_empty()) {
        match known.get(name) {
            Some(first) => {
                let message = format!("there is more than one {what} {}", quoted(name));
                findings.push(Finding::new(Wrong::Duplicate, at, message).also(first.clone(), "first here"));
            }
            None => drop(known.insert(name, at)),
        }
    }
}

/// The number of what a key names.
fn find(
    key: &str,
    known: &[String],
    name: &str,
    table: &Table<'_>,
    findings: &mut Findings,
) -> Option<usize> {
    // That it is missing was told.
    if name.is_empty() {
        return None;
    }
    let found = known.iter().position(|other| other == name);
    if found.is_none() {
        findings.push(unknown(key, name, known.iter().map(String::as_str), table.at(key)));
    }
    found
}

fn unknown<'n>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'n str> + Clone,
    at: Range<usize>,
) -> Finding {
    let finding = Finding::new(Wrong::UnknownName, at, format!("there is no {what} {}", quoted(name)));
    match nearest(name, known.clone()) {
        Some(near) => finding.help(format!("did you mean `{near}`?")),
        None if known.clone().next().is_none() => finding.help("there is none at all"),
        None => finding.help(format!("known: {}", known.collect::<Vec<_>>().join(", "))),
    }
}

/// Finds the memory that a block shares.
fn share(of: &BlockDraft<'_>, kind: &mut Kind, memories: &[MemorySpec], findings: &mut Findings) {
    let Kind::P4(program) = kind else { return };
    match (&mut program.shared, &of.memory) {
        (Some(shared), Some(name)) => {
            let names: Vec<String> = memories.iter().map(|memory| memory.name.clone()).collect();
            shared.memory = find("memory", &names, name, &of.table, findings).unwrap_or(0);
        }
        (Some(_), None) => {
            let why = "`shared` names registers, and no `memory` is named that they are in";
            findings.push(Finding::new(Wrong::Conflict, of.table.at("shared"), why));
        }
        (None, Some(_)) => {
            let why = "a memory is named, and no registers that are in it (`shared`)";
            findings.push(Finding::new(Wrong::Conflict, of.table.at("memory"), why));
        }
        (None, None) => {}
    }
}

/// A memory that no block shares is a mistake.
fn shared_by_some(node: &NodeFile, drafts: &[MemoryDraft<'_>], findings: &mut Findings) {
    for (number, draft) in drafts.iter().enumerate() {
        if node.sharers(number).next().is_none() {
            let message = format!("no block shares the memory {}", quoted(&draft.name));
            findings.push(Finding::new(Wrong::Missing, draft.table.header(), message));
        }
    }
}

/// What cannot be where it is to be.
fn refuse_place(of: &BlockDraft<'_>, kind: &Kind, placement: Placement, findings: &mut Findings) {
    if let (Kind::P4(ProgramSpec { shared: Some(_), .. }), Placement::Hardware) = (kind, placement) {
        let why = "`shared` is for a program in software, and this one is in hardware";
        findings.push(Finding::new(Wrong::Conflict, of.table.at("shared"), why));
    }
    if let (Kind::P4(program), Placement::Software) = (kind, placement)
        && !program.software.is_empty()
    {
        let why = "`software` is for a program in hardware, and this one is in software as a whole";
        findings.push(Finding::new(Wrong::Conflict, of.table.at("software"), why));
    }
}

/// What a MAC is connected to has to be written as a port of a switch is.
fn refuse_attachment(of: &BlockDraft<'_>, kind: &Kind, findings: &mut Findings) {
    if let Kind::Mac(MacSpec { attach: Some(attach), .. }) = kind
        && let Err(error) = attach.parse::<InterfaceSpec>()
    {
        findings.push(Finding::new(Wrong::Value, of.table.at("attach"), error.to_string()));
    }
}

/// What the entries of a TCAM name has to be an output of the demultiplexer that comes next: frames for others are lost.
fn refuse_targets(node: &NodeFile, drafts: &[&BlockDraft<'_>], findings: &mut Findings) {
    for connection in &node.connections {
        let [tcam, next] = [connection.from, connection.to].map(|end| &node.blocks[end.block]);
        let (Kind::Tcam(_), Kind::Demultiplexer(outputs)) = (&tcam.kind, &next.kind) else { continue };
        let table = &drafts[connection.from.block].table;
        // What else is wrong with them was told.
        let mut told = Findings::default();
        let entries = entry_tables(table, &mut told);
        let to = entries.iter().flat_map(|entry| entry.texts("to", &mut told)).collect::<Vec<_>>();
        for (name, at) in table.texts("miss", &mut told).into_iter().chain(to) {
            if target(&name).is_some_and(|bits| (bits & !MANAGER) >> outputs != 0) {
                let message = format!(
                    "the demultiplexer {} has no {}: it has {outputs} outputs, counted from 0 (`ports`)",
                    quoted(&next.name),
                    quoted(&name)
                );
                findings.push(Finding::new(Wrong::Conflict, at, message));
            }
        }
    }
}

/// Each MAC has a port number of its own.
fn ports_once(node: &NodeFile, drafts: &[&BlockDraft<'_>], findings: &mut Findings) {
    let mut known: HashMap<u16, Range<usize>> = HashMap::new();
    for (block, draft) in node.blocks.iter().zip(drafts) {
        let Kind::Mac(mac) = &block.kind else { continue };
        let at = draft.table.at("port");
        match known.get(&mac.port) {
            Some(first) => {
                let message = format!("there are two MACs with the port {}", mac.port);
                findings.push(Finding::new(Wrong::Duplicate, at, message).also(first.clone(), "first here"));
            }
            None => drop(known.insert(mac.port, at)),
        }
    }
}

/// A connection; none: it is wrong, which was told, or with a block that is `unknown`, of which that was told.
fn connection(
    node: &NodeFile,
    unknown: &[&str],
    of: &ConnectionDraft<'_>,
    findings: &mut Findings,
) -> Option<Connection> {
    let from = end(node, unknown, ("from", &of.from), &of.table, Kind::outputs, findings);
    let to = end(node, unknown, ("to", &of.to), &of.table, Kind::inputs, findings);
    let (from, to) = (from?, to?);
    let function = |end: End| node.blocks[end.block].function;
    let device = |end: End| node.functions[function(end)].device;
    let interface = match (function(from) == function(to), device(from) == device(to)) {
        (true, _) => Interface::Ffi,
        (false, true) => Interface::Fsi,
        (false, false) => Interface::Fdi,
    };
    if let Some(written) = of.interface.filter(|written| *written != interface) {
        let between = match interface {
            Interface::Ffi => "blocks of one function",
            Interface::Fsi => "two functions of one device",
            Interface::Fdi => "two devices",
        };
        let message = format!(
            "this is between {between}, which is the {} and not the {}",
            interface.word(),
            written.word()
        );
        findings.push(Finding::new(Wrong::Conflict, of.table.at("interface"), message));
        return None;
    }
    Some(Connection { from, to, interface })
}

/// `BLOCK.PORT`.
fn end(
    node: &NodeFile,
    unknown_blocks: &[&str],
    (key, text): (&str, &str),
    table: &Table<'_>,
    ports: impl Fn(&Kind) -> Vec<String>,
    findings: &mut Findings,
) -> Option<End> {
    if text.is_empty() {
        return None;
    }
    let at = table.at(key);
    let Some((name, port)) = text.split_once('.') else {
        let message = format!("`{key}` is {}: BLOCK.NAME is expected", quoted(text));
        findings.push(Finding::new(Wrong::Value, at, message));
        return None;
    };
    if unknown_blocks.contains(&name) {
        return None;
    }
    let Some(block) = node.block(name) else {
        findings.push(unknown("block", name, node.blocks.iter().map(|block| block.name.as_str()), at));
        return None;
    };
    let known = ports(&node.blocks[block].kind);
    let found = known.iter().position(|other| other == port);
    if found.is_none() {
        let what = if key == "from" { "output" } else { "input" };
        let what = format!("{what} of the {} {}", node.blocks[block].kind.word(), quoted(name));
        findings.push(unknown(&what, port, known.iter().map(String::as_str), at));
    }
    Some(End { block, port: found? })
}

/// Outputs have one connection; who asks queues asks one; schedulers ask queues.
fn fit(
    node: &NodeFile,
    drafts: &[&BlockDraft<'_>],
    written: &[ConnectionDraft<'_>],
    findings: &mut Findings,
) {
    let mut from: HashMap<End, Range<usize>> = HashMap::new();
    let mut asks: HashMap<End, Range<usize>> = HashMap::new();
    for (connection, draft) in node.connections.iter().zip(written) {
        let (source, target) = (&node.blocks[connection.from.block], &node.blocks[connection.to.block]);
        let at = draft.table.at("from");
        if let Some(first) = from.insert(connection.from, at.clone()) {
            let message =
                format!("{} has two connections: a demultiplexer sends to several", quoted(&draft.from));
            findings.push(Finding::new(Wrong::Duplicate, at.clone(), message).also(first, "first here"));
        }
        let by_scheduler = matches!(target.kind, Kind::Scheduler(_));
        if by_scheduler && !matches!(source.kind, Kind::Queue(_)) {
            let message =
                format!("a scheduler asks queues, and {} is {}", quoted(&source.name), source.kind.word());
            findings.push(Finding::new(Wrong::Conflict, at.clone(), message));
        }
        let may_ask = by_scheduler || matches!(target.kind, Kind::Mac(_));
        if source.kind.is_asked()
            && may_ask
            && let Some(first) = asks.insert(connection.to, at.clone())
        {
            let message = format!("{} asks two queues: a scheduler chooses among several", quoted(&draft.to));
            findings.push(Finding::new(Wrong::Duplicate, at, message).also(first, "first here"));
        }
    }
    for (number, (block, draft)) in node.blocks.iter().zip(drafts).enumerate() {
        if !node
            .connections
            .iter()
            .any(|connection| connection.to.block == number || connection.from.block == number)
        {
            let message = format!("the block {} has no connection", quoted(&block.name));
            findings.push(Finding::new(Wrong::Missing, draft.table.header(), message));
        }
    }
}

/// What waits in a queue has to be able to leave. It cannot where it only meets queues, schedulers and selectors, of which the
/// last leads to the first: such frames would go round for as long as the node runs, which would never be done.
fn refuse_rings(node: &NodeFile, written: &[ConnectionDraft<'_>], findings: &mut Findings) {
    // These have one output, and lose no frame that has room.
    let passes_all = |block: usize| {
        matches!(node.blocks[block].kind, Kind::Queue(_) | Kind::Scheduler(_) | Kind::OctetSelector(_))
    };
    let next = |block: usize| {
        let at = node.connections.iter().position(|connection| connection.from.block == block)?;
        Some((at, node.connections[at].to.block)).filter(|(_, to)| passes_all(*to))
    };
    let mut seen = vec![0; node.blocks.len()];
    for start in (0..node.blocks.len()).filter(|block| passes_all(*block)) {
        let (mut block, round) = (start, start + 1);
        while seen[block] == 0 {
            seen[block] = round;
            let Some((_, to)) = next(block) else { break };
            block = to;
        }
        // The path of this round has met itself: what is on it from here on is a ring, which is told once.
        let Some((first, mut after)) = next(block).filter(|_| seen[block] == round) else { continue };
        let mut finding = Finding::new(
            Wrong::Route,
            written[first].table.at("to"),
            format!(
                "what leaves {} comes back to it and can go nowhere else",
                quoted(&node.blocks[block].name)
            ),
        );
        while after != block {
            let Some((at, to)) = next(after) else { break };
            finding = finding.also(written[at].table.at("to"), "by this");
            after = to;
        }
        findings.push(finding);
    }
}
