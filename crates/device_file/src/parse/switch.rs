//! A `[[switch]]` with its virtual ports and its quota.

use super::claim::{claim, tag};
use super::{NamedFile, SwitchDraft, VirtualPortDraft, name_file};
use crate::keys;
use crate::limits::*;
use crate::model::*;
use millrace_toml_sections::{Finding, Findings, Kind, quoted};
use millrace_toml_sections::{Placed, Table};

pub(super) fn switch<'t>(
    table: Table<'t>,
    files: &mut Vec<NamedFile>,
    findings: &mut Findings,
) -> SwitchDraft<'t> {
    let before = files.len();
    let source = source(&table, files, findings);
    let entries = name_files(&table, "entries", false, files, findings);
    let own_files = files[before..].iter().map(|file| (file.path.clone(), file.at.clone())).collect();
    let ports = table.tables("port", &keys::VIRTUAL_PORT, (MAX_VIRTUAL_PORTS, "MAX_VIRTUAL_PORTS"), findings);
    let ports = ports.into_iter().map(|table| virtual_port(table, findings)).collect();
    let quota_table =
        table.table("quota", &keys::QUOTA, findings).unwrap_or_else(|| Table::absent(&keys::QUOTA));
    let is = Switch {
        name: table.text("name", findings).unwrap_or_default(),
        source,
        entries,
        tenant: table.text("tenant", findings),
        // Those that are not written get theirs when all are known.
        device_id: table.number("device-id", findings).unwrap_or(0),
        thrift: table.text("thrift", findings),
        thrift_as: table.text("thrift-as", findings),
        thrift_allow_remote: table.flag("thrift-allow-remote", findings),
        engine: match table.text("engine", findings).as_deref() {
            Some("jit") => Engine::Jit,
            Some("interp") => Engine::Interp,
            Some("rtl") => Engine::Rtl,
            _ => Engine::Auto,
        },
        worker: table.number("worker", findings).map(|worker| worker as u16),
        state: match table.text("state", findings).as_deref() {
            Some("stopped") => State::Stopped,
            _ => State::Running,
        },
        cpu_port: table.number("cpu-port", findings).map(|number| number as u16),
        ports: Vec::new(),
        quota: quota(&quota_table, findings),
    };
    SwitchDraft { is, table, ports, quota: quota_table, files: own_files }
}

fn source(table: &Table<'_>, files: &mut Vec<NamedFile>, findings: &mut Findings) -> Source {
    let image = name_file(table, "image", false, files, findings);
    let path = table.text("program", findings);
    match (table.has("image"), table.has("program")) {
        (true, true) => {
            let finding = Finding::new(Kind::Conflict, table.at("program"), "a switch has one program");
            findings
                .push(finding.also(table.at("image"), "`image` is here").help("leave out one of the two"));
        }
        (false, false) => {
            let message = "`image` or `program` is missing in [[switch]]";
            findings.push(Finding::new(Kind::Missing, table.header(), message));
        }
        (true, false) => {
            for key in ["std", "include", "define"] {
                if table.has(key) {
                    let message = format!("`{key}` is for `program`: an image is compiled already");
                    let finding = Finding::new(Kind::Conflict, table.at(key), message);
                    findings.push(finding.also(table.at("image"), "`image` is here"));
                }
            }
        }
        (false, true) => {}
    }
    match path {
        Some(path) => Source::Program(program(table, path, files, findings)),
        None => Source::Image(image.unwrap_or_default()),
    }
}

/// The keys of a program next to its path.
pub(super) fn program(
    table: &Table<'_>,
    path: String,
    files: &mut Vec<NamedFile>,
    findings: &mut Findings,
) -> Program {
    if !path.is_empty() {
        files.push(NamedFile { path: path.clone(), at: table.at("program"), is_folder: false });
    }
    let std = match table.text("std", findings).as_deref() {
        Some("p4-14") => Std::P4_14,
        _ => Std::P4_16,
    };
    let include = name_files(table, "include", true, files, findings);
    let define = table.texts("define", findings);
    for (text, at) in &define {
        let name = text.split_once('=').map_or(text.as_str(), |(name, _)| name);
        let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_word || !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            let message = format!("{} defines no macro: NAME or NAME=VALUE is expected", quoted(text));
            findings.push(Finding::new(Kind::Value, at.clone(), message));
        }
    }
    Program { path, std, include, define: define.into_iter().map(|(text, _)| text).collect() }
}

fn name_files(
    table: &Table<'_>,
    key: &str,
    is_folder: bool,
    files: &mut Vec<NamedFile>,
    findings: &mut Findings,
) -> Vec<String> {
    let named: Vec<Placed<String>> = table.texts(key, findings);
    let file = |(path, at): &Placed<String>| NamedFile { path: path.clone(), at: at.clone(), is_folder };
    files.extend(named.iter().map(file));
    named.into_iter().map(|(path, _)| path).collect()
}

fn virtual_port<'t>(table: Table<'t>, findings: &mut Findings) -> VirtualPortDraft<'t> {
    let number = table.number("number", findings).map(|number| number as u16);
    let physical = table.texts("physical", findings);
    if physical.is_empty() && table.value("physical").is_some_and(|value| is_empty_list(value.get_ref())) {
        let message = "`physical` is empty: a virtual port needs a physical port, or a link in its place";
        findings.push(Finding::new(Kind::Value, table.at("physical"), message));
    }
    let claim = claim(&table, findings);
    let is_claim_read = claim.is_some();
    let tag = tag(&table, claim.as_ref(), findings);
    let guaranteed = table.number("guaranteed", findings).unwrap_or(0);
    let largest = table.number("largest", findings);
    if let Some(largest) = largest
        && largest < guaranteed
    {
        let finding =
            Finding::new(Kind::Guarantee, table.at("largest"), "`largest` is less than `guaranteed`");
        findings.push(finding.also(table.at("guaranteed"), "guaranteed here"));
    }
    let (physical, places): (Vec<String>, Vec<_>) = physical.into_iter().unzip();
    let is = VirtualPort {
        number: number.unwrap_or(0),
        physical,
        claim: claim.unwrap_or(Claim { frames: Frames::All, priority: 0 }),
        tag,
        broadcast: table.flag("broadcast", findings),
        guaranteed,
        largest,
    };
    VirtualPortDraft { number, is, is_claim_read, table, physical: places }
}

fn is_empty_list(value: &toml::de::DeValue<'_>) -> bool {
    value.as_array().is_some_and(|elements| elements.is_empty())
}

fn quota(table: &Table<'_>, findings: &mut Findings) -> Quota {
    let mut number = |key| table.number(key, findings);
    let quota = Quota {
        time: number("time").unwrap_or(0) as u32,
        largest_time: number("largest-time").unwrap_or(WHOLE) as u32,
        packets_per_second: number("packets-per-second"),
        bits_per_second: number("bits-per-second"),
        entries: number("entries"),
        memory: number("memory"),
        packet_buffers: number("packet-buffers"),
        queue_places: number("queue-places"),
        clones_per_second: number("clones-per-second"),
        recirculations_per_second: number("recirculations-per-second"),
        copies_per_second: number("copies-per-second"),
        digests_per_second: number("digests-per-second"),
        log_lines_per_second: number("log-lines-per-second"),
        requests_per_second: number("requests-per-second"),
    };
    if quota.largest_time < quota.time {
        let finding =
            Finding::new(Kind::Guarantee, table.at("largest-time"), "`largest-time` is less than `time`");
        findings.push(finding.also(table.at("time"), "guaranteed here"));
    }
    quota
}
