//! Text to what it says, with the tables that it came from.

use super::keys;
use crate::limits::*;
use crate::model::*;
use millrace_toml_sections::{Finding, Findings, Kind as Wrong, Placed, Table, quoted};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;
use toml::de::DeTable;

/// What was read, and the tables that it came from, for the places of what does not fit together.
pub(super) struct Draft<'t> {
    pub(super) name: String,
    pub(super) devices: Vec<Placed<DeviceSpec>>,
    pub(super) services: Vec<Placed<String>>,
    pub(super) functions: Vec<FunctionDraft<'t>>,
    pub(super) blocks: Vec<BlockDraft<'t>>,
    pub(super) connections: Vec<ConnectionDraft<'t>>,
    pub(super) memories: Vec<MemoryDraft<'t>>,
}

pub(super) struct FunctionDraft<'t> {
    pub(super) name: String,
    pub(super) service: String,
    pub(super) device: String,
    pub(super) placement: Placement,
    pub(super) table: Table<'t>,
}

pub(super) struct BlockDraft<'t> {
    pub(super) name: String,
    pub(super) function: String,
    pub(super) placement: Option<Placement>,
    /// None if it was not written rightly.
    pub(super) kind: Option<Kind>,
    /// The memory that it shares.
    pub(super) memory: Option<String>,
    pub(super) table: Table<'t>,
}

pub(super) struct MemoryDraft<'t> {
    pub(super) name: String,
    pub(super) device: String,
    pub(super) at: Option<SocketAddr>,
    pub(super) words: u32,
    pub(super) lease_ms: u32,
    pub(super) table: Table<'t>,
}

pub(super) struct ConnectionDraft<'t> {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) interface: Option<Interface>,
    pub(super) table: Table<'t>,
}

/// Reads a document.
pub(super) fn draft<'t>(document: &'t DeTable<'t>, findings: &mut Findings) -> Draft<'t> {
    let file = Table::new(&keys::FILE, document, 0..0, findings);
    let node = file.table("node", &keys::NODE, findings).unwrap_or_else(|| Table::absent(&keys::NODE));
    let mut all = |name, section, limit| file.tables(name, section, limit, findings);
    let devices = all("device", &keys::DEVICE, (MAX_DEVICES, "MAX_DEVICES"));
    let services = all("service", &keys::SERVICE, (MAX_SERVICES, "MAX_SERVICES"));
    let functions = all("function", &keys::FUNCTION, (MAX_FUNCTIONS, "MAX_FUNCTIONS"));
    let blocks = all("block", &keys::BLOCK, (MAX_BLOCKS, "MAX_BLOCKS"));
    let connections = all("connection", &keys::CONNECTION, (MAX_CONNECTIONS, "MAX_CONNECTIONS"));
    let memories = all("memory", &keys::MEMORY, (MAX_MEMORIES, "MAX_MEMORIES"));
    let mut named = |table: Table<'_>| {
        let at = table.at("name");
        table.text("name", findings).map(|name| (name, at))
    };
    Draft {
        services: services.into_iter().filter_map(&mut named).collect(),
        name: node.text("name", findings).unwrap_or_default(),
        functions: functions.into_iter().map(|table| function(table, findings)).collect(),
        blocks: blocks.into_iter().map(|table| block(table, findings)).collect(),
        connections: connections.into_iter().map(|table| connection(table, findings)).collect(),
        devices: devices.into_iter().filter_map(|table| device(&table, findings)).collect(),
        memories: memories.into_iter().map(|table| memory(table, findings)).collect(),
    }
}

fn device(table: &Table<'_>, findings: &mut Findings) -> Option<Placed<DeviceSpec>> {
    let name = table.text("name", findings)?;
    Some((DeviceSpec { name, at: at(table, findings) }, table.at("name")))
}

fn memory<'t>(table: Table<'t>, findings: &mut Findings) -> MemoryDraft<'t> {
    MemoryDraft {
        name: table.text("name", findings).unwrap_or_default(),
        device: table.text("device", findings).unwrap_or_default(),
        at: at(&table, findings),
        words: table.number("words", findings).unwrap_or_default() as u32,
        lease_ms: table.number("lease", findings).unwrap_or_default() as u32,
        table,
    }
}

/// Where something is served.
fn at(table: &Table<'_>, findings: &mut Findings) -> Option<SocketAddr> {
    let text = table.text("at", findings)?;
    let at = server(&text);
    if at.is_none() {
        let message = format!("{} is no address with a port, as \"127.0.0.1:9561\"", quoted(&text));
        findings.push(Finding::new(Wrong::Value, table.at("at"), message));
    }
    at
}

/// An address, or a port of this machine.
fn server(text: &str) -> Option<SocketAddr> {
    let port = || Some(SocketAddr::from((Ipv4Addr::LOCALHOST, text.parse().ok()?)));
    text.parse().ok().or_else(port)
}

fn function<'t>(table: Table<'t>, findings: &mut Findings) -> FunctionDraft<'t> {
    FunctionDraft {
        name: table.text("name", findings).unwrap_or_default(),
        service: table.text("service", findings).unwrap_or_default(),
        device: table.text("device", findings).unwrap_or_default(),
        placement: placement(&table, findings).unwrap_or(Placement::Software),
        table,
    }
}

fn placement(table: &Table<'_>, findings: &mut Findings) -> Option<Placement> {
    let word = table.text("placement", findings)?;
    [Placement::Software, Placement::Hardware].into_iter().find(|placement| placement.word() == word)
}

fn connection<'t>(table: Table<'t>, findings: &mut Findings) -> ConnectionDraft<'t> {
    let interface = table.text("interface", findings);
    ConnectionDraft {
        from: table.text("from", findings).unwrap_or_default(),
        to: table.text("to", findings).unwrap_or_default(),
        interface: interface.and_then(|word| {
            [Interface::Ffi, Interface::Fsi, Interface::Fdi]
                .into_iter()
                .find(|interface| interface.word() == word)
        }),
        table,
    }
}

fn block<'t>(table: Table<'t>, findings: &mut Findings) -> BlockDraft<'t> {
    let name = table.text("name", findings).unwrap_or_default();
    if name.contains('.') {
        let message =
            format!("{} has a `.`, which stands between a block and its input or output", quoted(&name));
        findings.push(Finding::new(Wrong::Value, table.at("name"), message));
    }
    let kind = table.text("kind", findings).and_then(|word| {
        refuse_others(&table, &word, findings);
        kind(&table, &word, findings)
    });
    BlockDraft {
        name,
        function: table.text("function", findings).unwrap_or_default(),
        placement: placement(&table, findings),
        kind,
        memory: table.text("memory", findings),
        table,
    }
}

/// The keys of each kind, those of all kinds left out.
const KEYS: [(&str, &[&str]); 8] = [
    ("p4", &["program", "entries", "ports", "cpu-port", "software", "memory", "shared", "longest"]),
    ("queue", &["frames", "bytes"]),
    ("scheduler", &["ports", "discipline", "quanta"]),
    ("octet_selector", &["octets"]),
    ("tcam", &["size", "miss", "entry"]),
    ("demultiplexer", &["ports"]),
    ("mac", &["attach", "port", "address", "up", "link"]),
    ("manager", &["program", "entries", "buffer"]),
];

/// Tells the keys that are for other kinds.
fn refuse_others(table: &Table<'_>, word: &str, findings: &mut Findings) {
    let Some((_, own)) = KEYS.iter().find(|(kind, _)| *kind == word) else { return };
    let mut told: Vec<&str> = Vec::new();
    for key in KEYS.iter().flat_map(|(_, keys)| *keys) {
        if table.has(key) && !own.contains(key) && !told.contains(key) {
            told.push(key);
            let kinds: Vec<&str> =
                KEYS.iter().filter(|(_, keys)| keys.contains(key)).map(|(kind, _)| *kind).collect();
            let message = format!("`{key}` is for {}, and this block is {word}", kinds.join(" and "));
            findings.push(Finding::new(Wrong::Conflict, table.at(key), message));
        }
    }
}

/// What the keys of a kind say. All of them are read before one that is wrong ends it, so that each mistake is told.
fn kind(table: &Table<'_>, word: &str, findings: &mut Findings) -> Option<Kind> {
    Some(match word {
        "p4" => {
            if !table.has("program") {
                table.missing("program", findings);
            }
            Kind::P4(program(table, findings)?)
        }
        "queue" => {
            let (frames, bytes) = (table.number("frames", findings), table.number("bytes", findings));
            Kind::Queue(QueueSpec { frames: frames? as u32, bytes: bytes? })
        }
        "scheduler" => Kind::Scheduler(scheduler(table, findings)?),
        "octet_selector" => Kind::OctetSelector(octets(table, findings)?),
        "tcam" => Kind::Tcam(tcam(table, findings)?),
        "demultiplexer" => Kind::Demultiplexer(table.number("ports", findings)? as u32),
        "mac" => {
            let (attach, address) = (table.text("attach", findings), address(table, findings));
            let (port, link) = (table.number("port", findings), mac_link(table, findings));
            let up = table.flag("up", findings);
            Kind::Mac(MacSpec { attach, port: port? as u16, address, up, link: link? })
        }
        _ => {
            let buffer = table.number("buffer", findings);
            // An answer leaves by the port that the program says; its number is that of an output.
            let program =
                program(table, findings).map(|program| ProgramSpec { ports: MAX_PORTS as u32, ..program });
            Kind::Manager(ManagerSpec { buffer: buffer? as u32, program })
        }
    })
}

fn program(table: &Table<'_>, findings: &mut Findings) -> Option<ProgramSpec> {
    let entries = table.text("entries", findings).map(PathBuf::from);
    let Some(program) = table.text("program", findings) else {
        if entries.is_some() {
            let message = "`entries` are for a program, and there is none";
            findings.push(Finding::new(Wrong::Conflict, table.at("entries"), message));
        }
        return None;
    };
    let (ports, longest) = (table.number("ports", findings), table.number("longest", findings));
    let cpu_port = table.number("cpu-port", findings).map(|port| port as u32);
    Some(ProgramSpec {
        program: PathBuf::from(program),
        entries,
        ports: ports? as u32,
        cpu_port,
        software: names(table, "software", findings),
        // Which memory that is, is found when all of them are known.
        shared: table
            .has("shared")
            .then(|| SharedSpec { memory: 0, registers: names(table, "shared", findings) }),
        longest: longest? as u32,
    })
}

fn names(table: &Table<'_>, key: &str, findings: &mut Findings) -> Vec<String> {
    table.texts(key, findings).into_iter().map(|(name, _)| name).collect()
}

fn scheduler(table: &Table<'_>, findings: &mut Findings) -> Option<SchedulerSpec> {
    let (ports, word) = (table.number("ports", findings), table.text("discipline", findings));
    let mut quanta: Vec<u32> =
        table.numbers("quanta", findings).into_iter().map(|(quantum, _)| quantum as u32).collect();
    let (ports, word) = (ports? as usize, word?);
    let (_, discipline) = Discipline::ALL.into_iter().find(|(name, _)| *name == word)?;
    if !table.has("quanta") {
        quanta = vec![1518; ports];
    }
    if quanta.len() != ports {
        let message = format!("there are {} quanta and {ports} inputs (`ports`)", quanta.len());
        findings.push(Finding::new(Wrong::Conflict, table.at("quanta"), message));
        return None;
    }
    Some(SchedulerSpec { discipline, quanta })
}

fn mac_link(table: &Table<'_>, findings: &mut Findings) -> Option<MacLink> {
    let word = table.text("link", findings)?;
    MacLink::ALL.into_iter().find(|link| link.word() == word)
}

fn octets(table: &Table<'_>, findings: &mut Findings) -> Option<Vec<u16>> {
    if !table.has("octets") {
        table.missing("octets", findings);
        return None;
    }
    let octets: Vec<u16> =
        table.numbers("octets", findings).into_iter().map(|(place, _)| place as u16).collect();
    if octets.is_empty() || octets.len() > MAX_OCTETS {
        let message = format!("`octets` has {} places: 1 to {MAX_OCTETS} (MAX_OCTETS)", octets.len());
        findings.push(Finding::new(Wrong::Limit, table.at("octets"), message));
        return None;
    }
    Some(octets)
}

fn tcam(table: &Table<'_>, findings: &mut Findings) -> Option<TcamSpec> {
    let size = table.number("size", findings);
    let targets = targets(table, "miss", findings);
    let tables = entry_tables(table, findings);
    let entries: Vec<Entry> = tables.iter().filter_map(|entry| self::entry(entry, findings)).collect();
    let size = size? as u32;
    if entries.len() > size as usize {
        let message = format!("there are {} entries, and room for {size} (`size`)", entries.len());
        findings.push(Finding::new(Wrong::Limit, table.at("entry"), message));
        return None;
    }
    Some(TcamSpec { size, entries, miss: Outcome { targets, class: 0 } })
}

/// The tables of a TCAM's entries.
pub(super) fn entry_tables<'t>(table: &Table<'t>, findings: &mut Findings) -> Vec<Table<'t>> {
    table.tables("entry", &keys::ENTRY, (MAX_ENTRIES as usize, "MAX_ENTRIES"), findings)
}

fn entry(table: &Table<'_>, findings: &mut Findings) -> Option<Entry> {
    let (priority, class) = (table.number("priority", findings), table.number("class", findings));
    let targets = targets(table, "to", findings);
    let (value, length) = hexadecimal(table, "value", findings)?;
    let mut mask = [0; MAX_OCTETS];
    mask[..length].fill(0xff);
    if table.has("mask") {
        let (written, mask_length) = hexadecimal(table, "mask", findings)?;
        if mask_length != length {
            let message = format!("the mask has {mask_length} octets, and the value {length}");
            findings.push(Finding::new(Wrong::Conflict, table.at("mask"), message));
            return None;
        }
        mask = written;
    }
    if value.iter().zip(&mask).any(|(value, mask)| value & !mask != 0) {
        let message = "the value has bits that the mask leaves out: it can never be";
        findings.push(Finding::new(Wrong::Conflict, table.at("value"), message));
        return None;
    }
    if !table.has("to") {
        table.missing("to", findings);
        return None;
    }
    Some(Entry { value, mask, priority: priority? as u32, outcome: Outcome { targets, class: class? as u8 } })
}

/// `["out0", "manager"]`.
fn targets(table: &Table<'_>, key: &str, findings: &mut Findings) -> u32 {
    let mut targets = 0;
    let names: Vec<(String, Range<usize>)> = table.texts(key, findings);
    for (name, at) in names {
        match target(&name) {
            Some(target) => targets |= target,
            None => {
                let message =
                    format!("{} is no target: `out0` to `out15`, `manager` or `nowhere`", quoted(&name));
                findings.push(Finding::new(Wrong::Value, at, message));
            }
        }
    }
    targets
}

/// The bits of a target.
pub(super) fn target(name: &str) -> Option<u32> {
    match name {
        "manager" => Some(crate::interface::MANAGER),
        "nowhere" => Some(0),
        _ => {
            let number = name.strip_prefix("out").filter(|digits| !digits.starts_with('+'))?;
            number.parse().ok().filter(|number| u64::from(*number) < MAX_PORTS).map(|number: u32| 1 << number)
        }
    }
}

/// Octets, and how many there are.
fn hexadecimal(table: &Table<'_>, key: &str, findings: &mut Findings) -> Option<([u8; MAX_OCTETS], usize)> {
    let Some(value) = table.value(key) else {
        table.missing(key, findings);
        return None;
    };
    let Some(text) = value.get_ref().as_str() else {
        table.wrong_type(key, value, findings);
        return None;
    };
    let read = text.strip_prefix("0x").and_then(octets_of);
    if read.is_none() {
        let message = format!(
            "`{key}` is {}: two hexadecimal digits for each of 1 to {MAX_OCTETS} octets (MAX_OCTETS), such as \"0x0800\"",
            quoted(text)
        );
        findings.push(Finding::new(Wrong::Value, value.span(), message));
    }
    read
}

fn octets_of(digits: &str) -> Option<([u8; MAX_OCTETS], usize)> {
    let length = digits.len() / 2;
    let is_right = digits.len().is_multiple_of(2) && (1..=MAX_OCTETS).contains(&length);
    if !is_right || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut octets = [0; MAX_OCTETS];
    for (at, octet) in octets.iter_mut().take(length).enumerate() {
        *octet = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some((octets, length))
}

fn address(table: &Table<'_>, findings: &mut Findings) -> Option<[u8; 6]> {
    let value = table.value("address")?;
    let Some(text) = value.get_ref().as_str() else {
        table.wrong_type("address", value, findings);
        return None;
    };
    let octets: Vec<Option<u8>> = text
        .split(':')
        .take(7)
        .map(|part| u8::from_str_radix(part, 16).ok().filter(|_| part.len() == 2 && !part.starts_with('+')))
        .collect();
    let read: Option<Vec<u8>> = octets.into_iter().collect();
    let read = read.and_then(|octets| <[u8; 6]>::try_from(octets).ok());
    match read {
        Some(address) if address[0] & 1 == 0 => Some(address),
        _ => {
            let message = format!(
                "`address` is {}: that of one station is expected, such as \"02:00:00:00:00:01\"",
                quoted(text)
            );
            findings.push(Finding::new(Wrong::Value, value.span(), message));
            None
        }
    }
}
