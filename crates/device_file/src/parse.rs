//! Text to a model, with the tables that it came from.

mod claim;
mod switch;

use crate::keys;
use crate::limits::*;
use crate::model::*;
use millrace_toml_sections::{Finding, Findings, Kind, quoted};
use millrace_toml_sections::{Placed, Table};
use std::ops::Range;
use toml::de::DeTable;

/// What was read, and the tables that it came from, for the places of what does not fit together.
pub(crate) struct Draft<'t> {
    pub(crate) device: Read<'t, Device>,
    pub(crate) tenants: Vec<Read<'t, Tenant>>,
    pub(crate) ports: Vec<Read<'t, Port>>,
    pub(crate) switches: Vec<SwitchDraft<'t>>,
    pub(crate) links: Vec<LinkDraft<'t>>,
    pub(crate) classify: Option<Read<'t, Program>>,
    /// The files that are named to be read.
    pub(crate) files: Vec<NamedFile>,
}

/// A thing and its table.
pub(crate) struct Read<'t, T> {
    pub(crate) is: T,
    pub(crate) table: Table<'t>,
}

/// A switch; its virtual ports have their tables.
pub(crate) struct SwitchDraft<'t> {
    /// Without its virtual ports.
    pub(crate) is: Switch,
    pub(crate) table: Table<'t>,
    pub(crate) ports: Vec<VirtualPortDraft<'t>>,
    pub(crate) quota: Table<'t>,
    /// Files whose place is for its tenant to keep.
    pub(crate) files: Vec<Placed<String>>,
}

/// A virtual port.
pub(crate) struct VirtualPortDraft<'t> {
    /// None if it was not written rightly.
    pub(crate) number: Option<u16>,
    pub(crate) is: VirtualPort,
    /// Whether its claim was written rightly.
    pub(crate) is_claim_read: bool,
    pub(crate) table: Table<'t>,
    /// The places of its physical ports.
    pub(crate) physical: Vec<Range<usize>>,
}

/// A link.
pub(crate) struct LinkDraft<'t> {
    pub(crate) is: Link,
    pub(crate) table: Table<'t>,
    /// The places of its ends, in their order.
    pub(crate) ends: [Range<usize>; 2],
}

/// A file or folder that has to be there.
pub(crate) struct NamedFile {
    pub(crate) path: String,
    pub(crate) at: Range<usize>,
    pub(crate) is_folder: bool,
}

impl Draft<'_> {
    /// The model, of a draft without mistakes.
    pub(crate) fn finish(self) -> DeviceFile {
        let switch = |draft: SwitchDraft<'_>| Switch {
            ports: draft.ports.into_iter().map(|port| port.is).collect(),
            ..draft.is
        };
        DeviceFile {
            device: self.device.is,
            tenants: self.tenants.into_iter().map(|tenant| tenant.is).collect(),
            ports: self.ports.into_iter().map(|port| port.is).collect(),
            switches: self.switches.into_iter().map(switch).collect(),
            links: self.links.into_iter().map(|link| link.is).collect(),
            classify: self.classify.map(|classify| classify.is),
        }
    }
}

/// Reads a document.
pub(crate) fn draft<'t>(document: &'t DeTable<'t>, findings: &mut Findings) -> Draft<'t> {
    let file = Table::new(&keys::FILE, document, 0..0, findings);
    let mut files = Vec::new();
    let device = match file.table("device", &keys::DEVICE, findings) {
        Some(table) => device(table, &mut files, findings),
        None => device(Table::absent(&keys::DEVICE), &mut files, findings),
    };
    let tenants = file.tables("tenant", &keys::TENANT, (MAX_TENANTS, "MAX_TENANTS"), findings);
    let tenants = tenants.into_iter().map(|table| tenant(table, &mut files, findings)).collect();
    let ports = file.tables("port", &keys::PORT, (MAX_PORTS, "MAX_PORTS"), findings);
    let ports = ports.into_iter().map(|table| port(table, findings)).collect();
    let mut switches = Vec::new();
    for table in file.tables("switch", &keys::SWITCH, (MAX_SWITCHES, "MAX_SWITCHES"), findings) {
        switches.push(switch::switch(table, &mut files, findings));
    }
    let mut links = Vec::new();
    for table in file.tables("link", &keys::LINK, (MAX_LINKS, "MAX_LINKS"), findings) {
        links.extend(link(table, findings));
    }
    let classify = file.table("classify", &keys::CLASSIFY, findings).map(|table| {
        let path = table.text("program", findings).unwrap_or_default();
        let is = switch::program(&table, path, &mut files, findings);
        Read { is, table }
    });
    Draft { device, tenants, ports, switches, links, classify, files }
}

fn device<'t>(table: Table<'t>, files: &mut Vec<NamedFile>, findings: &mut Findings) -> Read<'t, Device> {
    let name = table.text("name", findings).unwrap_or_default();
    let processors = processors(&table, findings);
    let workers = table.number("workers", findings);
    let workers = if processors.is_empty() { workers } else { Some(processors.len() as u64) };
    let packets = table.number("packets", findings);
    packets_of_workers(&table, packets, workers, findings);
    let is = Device {
        workers: workers.unwrap_or(1) as u16,
        processors,
        socket: socket(&table, &name, findings),
        socket_mode: socket_mode(&table, findings),
        socket_group: table.text("socket-group", findings),
        grpc: table.text("grpc", findings),
        grpc_cert: name_file(&table, "grpc-cert", false, files, findings),
        grpc_key: name_file(&table, "grpc-key", false, files, findings),
        grpc_client_ca: name_file(&table, "grpc-client-ca", false, files, findings),
        grpc_allow_plaintext: table.flag("grpc-allow-plaintext", findings),
        grpc_ctl: table.flag("grpc-ctl", findings),
        uploads: table.text("uploads", findings),
        operator_certificate: table.text("operator-certificate", findings),
        operator_token_file: name_file(&table, "operator-token-file", false, files, findings),
        http: table.text("http", findings),
        http_allow_remote: table.flag("http-allow-remote", findings),
        http_hosts: table.texts("http-hosts", findings).into_iter().map(|(host, _)| host).collect(),
        captures: table.text("captures", findings),
        audit: table.text("audit", findings),
        hops: table.number("hops", findings).unwrap_or(1) as u16,
        packets: packets.unwrap_or(MAX_PACKETS) as u32,
        name,
    };
    Read { is, table }
}

/// Each worker has the same part of the packet buffers.
fn packets_of_workers(
    table: &Table<'_>,
    packets: Option<u64>,
    workers: Option<u64>,
    findings: &mut Findings,
) {
    let (Some(packets), Some(workers)) = (packets, workers) else { return };
    if !(MIN_PACKETS_OF_WORKER..=MAX_PACKETS_OF_WORKER).contains(&(packets / workers)) {
        let message = format!(
            "`packets` is {packets}, and the number of workers {workers}: {MIN_PACKETS_OF_WORKER} to {MAX_PACKETS_OF_WORKER} for each \
             are expected (MIN_PACKETS_OF_WORKER, MAX_PACKETS_OF_WORKER)"
        );
        findings.push(Finding::new(Kind::Limit, table.at("packets"), message));
    }
}

fn socket(table: &Table<'_>, device: &str, findings: &mut Findings) -> String {
    let Some(path) = table.text("socket", findings) else { return format!("/run/millrace/{device}.sock") };
    if path.len() > MAX_SOCKET {
        let message = format!("`socket` is {}: at most {MAX_SOCKET} bytes (MAX_SOCKET)", quoted(&path));
        findings.push(Finding::new(Kind::Limit, table.at("socket"), message));
    }
    path
}

fn processors(table: &Table<'_>, findings: &mut Findings) -> Vec<u16> {
    let mut read: Vec<Placed<u64>> = Vec::new();
    for (number, at) in table.numbers("processors", findings) {
        match read.iter().find(|(known, _)| *known == number) {
            Some((_, first)) => {
                let finding = Finding::new(Kind::Duplicate, at, format!("processor {number} is there twice"));
                findings.push(finding.also(first.clone(), "first here"));
            }
            None if read.len() as u64 == MAX_WORKERS => {
                let message = format!("more processors than workers: at most {MAX_WORKERS} (MAX_WORKERS)");
                findings.push(Finding::new(Kind::Limit, at, message));
                break;
            }
            None => read.push((number, at)),
        }
    }
    if table.has("processors") && table.has("workers") {
        let finding =
            Finding::new(Kind::Conflict, table.at("workers"), "`processors` says how many workers there are");
        findings.push(finding.also(table.at("processors"), "here").help("leave out one of the two"));
    }
    read.into_iter().map(|(number, _)| number as u16).collect()
}

fn socket_mode(table: &Table<'_>, findings: &mut Findings) -> u16 {
    let Some(text) = table.text("socket-mode", findings) else { return 0 };
    let is_octal = (3..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    match u16::from_str_radix(&text, 8) {
        Ok(mode) if is_octal && mode <= 0o777 => mode,
        _ => {
            let message = format!(
                "`socket-mode` is {}: permissions in octal up to \"0777\" are expected",
                quoted(&text)
            );
            findings.push(Finding::new(Kind::Value, table.at("socket-mode"), message));
            0
        }
    }
}

fn tenant<'t>(table: Table<'t>, files: &mut Vec<NamedFile>, findings: &mut Findings) -> Read<'t, Tenant> {
    let roles = table.texts("roles", findings);
    let mut roles: Vec<Role> = roles
        .iter()
        .filter_map(|(word, _)| Role::ALL.iter().find(|(_, name)| name == word))
        .map(|(role, _)| *role)
        .collect();
    roles.sort();
    if !table.has("roles") {
        roles.push(Role::Read);
    }
    if !table.has("certificate") && !table.has("token-file") {
        let message = "a tenant needs `certificate` or `token-file`: nobody could act as it";
        findings.push(Finding::new(Kind::Missing, table.header(), message));
    }
    let is = Tenant {
        name: table.text("name", findings).unwrap_or_default(),
        certificate: table.text("certificate", findings),
        token_file: name_file(&table, "token-file", false, files, findings),
        roles,
        folder: name_file(&table, "folder", true, files, findings),
    };
    Read { is, table }
}

/// The drivers of `millrace run -i`, which this crate does not link. A test compares them.
pub(crate) const DRIVERS: [&str; 8] = ["dpdk", "es", "null", "packet", "pcap", "stream", "tap", "xdp"];

fn port<'t>(table: Table<'t>, findings: &mut Findings) -> Read<'t, Port> {
    let written = table.text("device", findings);
    let mut device = written.clone().unwrap_or_default();
    if let Some(text) = &written {
        let (driver, args) = text.split_once(':').unwrap_or(("packet", text));
        let at = table.at("device");
        if !DRIVERS.contains(&driver) {
            let help = match millrace_toml_sections::nearest(driver, DRIVERS.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known drivers: {}", DRIVERS.join(", ")),
            };
            let message = format!("there is no port driver {}", quoted(driver));
            findings.push(Finding::new(Kind::UnknownName, at, message).help(help));
        } else if args.is_empty() {
            findings.push(Finding::new(Kind::Value, at, format!("nothing follows `{driver}:`")));
        }
        device = format!("{driver}:{args}");
    }
    let is = Port {
        name: table.text("name", findings).unwrap_or_default(),
        device,
        queues: table.number("queues", findings).unwrap_or(1) as u16,
        rate: table.number("rate", findings),
    };
    Read { is, table }
}

fn link<'t>(table: Table<'t>, findings: &mut Findings) -> Option<LinkDraft<'t>> {
    let ends = ends(&table, findings);
    let delay = table.number("delay", findings).unwrap_or(0);
    let rate = table.number("rate", findings);
    if rate == Some(0) {
        let message = "`rate` is 0: no packet would pass the link";
        findings.push(Finding::new(Kind::Value, table.at("rate"), message));
    }
    let loss = table.number("loss", findings).unwrap_or(0) as u32;
    let waiting = table.number("waiting", findings).unwrap_or(1) as u32;
    let [(a, a_at), (b, b_at)] = ends?;
    let (between, ends) = if a <= b { ([a, b], [a_at, b_at]) } else { ([b, a], [b_at, a_at]) };
    Some(LinkDraft { is: Link { between, delay, rate, loss, waiting }, table, ends })
}

fn ends(table: &Table<'_>, findings: &mut Findings) -> Option<[Placed<End>; 2]> {
    let refusal = |text: &str| {
        format!(
            "{} is no end of a link: SWITCH:PORT with a port up to {MAX_PORT_NUMBER} is expected",
            quoted(text)
        )
    };
    table.pair("between", refusal, findings)
}

/// A key that names a file or folder, which has to be there when files are checked.
fn name_file(
    table: &Table<'_>,
    key: &str,
    is_folder: bool,
    files: &mut Vec<NamedFile>,
    findings: &mut Findings,
) -> Option<String> {
    let path = table.text(key, findings)?;
    files.push(NamedFile { path: path.clone(), at: table.at(key), is_folder });
    Some(path)
}
