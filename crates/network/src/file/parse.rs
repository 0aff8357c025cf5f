//! Text to a model, with the tables that it came from.

use super::keys;
use super::report::{self, Reports};
use super::routes::{self, Written};
use crate::limits::*;
use crate::model::*;
use millrace_toml_sections::{Finding, Findings, Kind, Measure, Placed, Table, quantity, quoted};
use std::ops::Range;
use toml::de::DeTable;

/// What was read, and the tables that it came from, for the places of what does not fit together.
pub(super) struct Draft<'t> {
    pub(super) network: NetworkDraft<'t>,
    pub(super) end_systems: Vec<Read<'t, EndSystem>>,
    pub(super) switches: Vec<Read<'t, Switch>>,
    pub(super) links: Vec<LinkDraft<'t>>,
    pub(super) accounts: Vec<Read<'t, Account>>,
    pub(super) vls: Vec<VlDraft<'t>>,
}

/// What holds for the whole network.
pub(super) struct NetworkDraft<'t> {
    pub(super) name: String,
    pub(super) part_number: Option<String>,
    pub(super) crc: Option<u32>,
    pub(super) overhead: u32,
    pub(super) bags: Bags,
    pub(super) table: Table<'t>,
}

/// A thing and its table.
pub(super) struct Read<'t, T> {
    pub(super) is: T,
    pub(super) table: Table<'t>,
}

/// A link; the ports of its ends may not be chosen yet.
pub(super) struct LinkDraft<'t> {
    pub(super) ends: [Placed<WrittenEnd>; 2],
    pub(super) network: Option<Side>,
    pub(super) is: Link,
    pub(super) table: Table<'t>,
}

/// A virtual link; its routes may not be computed yet.
pub(super) struct VlDraft<'t> {
    pub(super) is: Vl,
    /// None if it was not written rightly.
    pub(super) id: Option<u16>,
    pub(super) to: Vec<Placed<String>>,
    pub(super) networks: Vec<Side>,
    pub(super) written: Vec<Written>,
    pub(super) table: Table<'t>,
}

/// Reads a document.
pub(super) fn draft<'t>(
    document: &'t DeTable<'t>,
    reports: Reports<'_>,
    findings: &mut Findings,
) -> Draft<'t> {
    let file = Table::new(&keys::FILE, document, 0..0, findings);
    let table = file.table("network", &keys::NETWORK, findings);
    let table = table.unwrap_or_else(|| Table::absent(&keys::NETWORK));
    // One that was refused leaves links without other mistakes.
    let rate = rate(&table, "rate", findings).unwrap_or(MAX_PORT_RATE);
    let skew_max = table.number("skew-max", findings).unwrap_or(0);
    let network = network(table, findings);
    let mut read_all = |name, section, limit| file.tables(name, section, limit, findings);
    let end_systems = read_all("end-system", &keys::END_SYSTEM, (MAX_END_SYSTEMS, "MAX_END_SYSTEMS"));
    let switches = read_all("switch", &keys::SWITCH, (MAX_SWITCHES, "MAX_SWITCHES"));
    let links = read_all("link", &keys::LINK, (MAX_LINKS, "MAX_LINKS"));
    let accounts = read_all("account", &keys::ACCOUNT, (MAX_ACCOUNTS, "MAX_ACCOUNTS"));
    let vls = read_all("vl", &keys::VL, (MAX_VLS, "MAX_VLS"));
    let bags = network.bags;
    Draft {
        network,
        end_systems: end_systems.into_iter().map(|table| end_system(table, findings)).collect(),
        switches: switches.into_iter().map(|table| switch(table, reports, findings)).collect(),
        links: links.into_iter().filter_map(|table| link(table, rate, findings)).collect(),
        accounts: accounts.into_iter().map(|table| account(table, bags, findings)).collect(),
        vls: vls.into_iter().map(|table| vl(table, bags, skew_max, findings)).collect(),
    }
}

fn network<'t>(table: Table<'t>, findings: &mut Findings) -> NetworkDraft<'t> {
    let crc = table.text("crc", findings).and_then(|text| {
        let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 8);
        let is_hex = |digits: &&str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let crc = digits.filter(is_hex).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        if crc.is_none() {
            let message =
                format!("`crc` is {}: eight digits as in \"0x1b2c3d4e\" are expected", quoted(&text));
            findings.push(Finding::new(Kind::Value, table.at("crc"), message));
        }
        crc
    });
    NetworkDraft {
        name: table.text("name", findings).unwrap_or_default(),
        part_number: table.text("part-number", findings),
        crc,
        overhead: table.number("overhead", findings).unwrap_or(0) as u32,
        bags: word(&table, "bags", &Bags::ALL, findings).unwrap_or(Bags::Any),
        table,
    }
}

fn end_system<'t>(table: Table<'t>, findings: &mut Findings) -> Read<'t, EndSystem> {
    let (latency, least_latency) = latencies(&table, findings);
    let is = EndSystem {
        name: table.text("name", findings).unwrap_or_default(),
        id: table.number("id", findings).unwrap_or(0) as u16,
        latency,
        least_latency,
        receive_latency: table.number("receive-latency", findings).unwrap_or(0),
        technological_jitter: table.number("technological-jitter", findings).unwrap_or(0),
        max_jitter: table.number("max-jitter", findings).unwrap_or(MAX_TIME),
    };
    Read { is, table }
}

/// The longest and the shortest latency of a node.
fn latencies(table: &Table<'_>, findings: &mut Findings) -> (u64, u64) {
    let longest = table.number("latency", findings).unwrap_or(MAX_TIME);
    let shortest = table.number("least-latency", findings).unwrap_or(0);
    if shortest > longest {
        let finding =
            Finding::new(Kind::Conflict, table.at("least-latency"), "`least-latency` is more than `latency`");
        findings.push(finding.also(table.at("latency"), "here"));
    }
    (longest, shortest)
}

fn switch<'t>(table: Table<'t>, reports: Reports<'_>, findings: &mut Findings) -> Read<'t, Switch> {
    let (latency, least_latency) = latencies(&table, findings);
    let latency = latency.saturating_add(reported(&table, reports, findings));
    if latency > MAX_TIME && table.has("latency-report") {
        let message = "`latency` and what the report says are more than 10 s (MAX_TIME)";
        findings.push(Finding::new(Kind::Limit, table.at("latency-report"), message));
    }
    let is = Switch {
        name: table.text("name", findings).unwrap_or_default(),
        network: side(&table, findings).unwrap_or(Side::A),
        latency,
        least_latency,
        scheduler: word(&table, "scheduler", &Scheduler::ALL, findings).unwrap_or(Scheduler::Priority),
        priorities: table.number("priorities", findings).unwrap_or(MAX_PRIORITY + 1) as u8,
        buffer: table.number("buffer", findings),
        max_delay: table.number("max-delay", findings),
        end_system: table.text("end-system", findings),
    };
    Read { is, table }
}

/// The time that a switch takes by the report that it names; 0 without one.
fn reported(table: &Table<'_>, reports: Reports<'_>, findings: &mut Findings) -> u64 {
    let batch = table.number("latency-batch", findings).unwrap_or(MAX_BATCH);
    let machine = table.text("latency-machine", findings);
    let Some(name) = table.text("latency-report", findings) else {
        for key in ["latency-machine", "latency-batch"].into_iter().filter(|key| table.has(key)) {
            let message = format!("`{key}` is of no use without `latency-report`");
            findings.push(Finding::new(Kind::Conflict, table.at(key), message));
        }
        return 0;
    };
    let at = table.at("latency-report");
    let Some(machine) = machine else {
        let message = "`latency-report` needs `latency-machine`: the machine that the switch is";
        findings.push(Finding::new(Kind::Missing, at, message));
        return 0;
    };
    let found = reports(&name).and_then(|text| report::latency(&text, &machine, batch));
    found.unwrap_or_else(|why| {
        findings.push(Finding::new(Kind::File, at, format!("report {}: {why}", quoted(&name))));
        0
    })
}

fn link<'t>(table: Table<'t>, default_rate: u64, findings: &mut Findings) -> Option<LinkDraft<'t>> {
    let ends = ends(&table, findings);
    let rate = match table.has("rate") {
        true => rate(&table, "rate", findings),
        false => Some(default_rate),
    };
    let service_rate = match table.has("service-rate") {
        true => self::rate(&table, "service-rate", findings),
        false => rate,
    };
    if let (Some(rate), Some(service)) = (rate, service_rate)
        && service > rate
    {
        let message = "`service-rate` is more than the rate of the link";
        findings.push(Finding::new(Kind::Conflict, table.at("service-rate"), message));
    }
    let network = side(&table, findings);
    let latency = table.number("latency", findings);
    let propagation = table.number("propagation", findings).unwrap_or(0);
    let one_way = table.flag("one-way", findings);
    let ends = ends?;
    let between = ends.each_ref().map(|(end, _)| End { node: end.node.clone(), port: end.port.unwrap_or(0) });
    let is = Link {
        between,
        network: network.unwrap_or(Side::A),
        rate: rate?,
        service_rate: service_rate?,
        latency,
        propagation,
        one_way,
    };
    Some(LinkDraft { ends, network, is, table })
}

fn ends(table: &Table<'_>, findings: &mut Findings) -> Option<[Placed<WrittenEnd>; 2]> {
    let refusal = |text: &str| {
        format!(
            "{} is no end of a link: NODE or NODE:PORT with a port up to {} is expected",
            quoted(text),
            MAX_PORTS - 1
        )
    };
    table.pair("between", refusal, findings)
}

fn account<'t>(table: Table<'t>, bags: Bags, findings: &mut Findings) -> Read<'t, Account> {
    let is = Account {
        name: table.text("name", findings).unwrap_or_default(),
        bag: bag(&table, bags, findings),
        lmax: table.number("lmax", findings).unwrap_or(LONGEST_FRAME) as u16,
        jitter: table.number("jitter", findings).unwrap_or(0),
        policing: word(&table, "policing", &Policing::ALL, findings).unwrap_or(Policing::Byte),
    };
    Read { is, table }
}

fn vl<'t>(table: Table<'t>, bags: Bags, skew_max: u64, findings: &mut Findings) -> VlDraft<'t> {
    let id = table.number("id", findings).map(|id| id as u16);
    let name = table.text("name", findings);
    let networks = table.texts("networks", findings);
    if table
        .value("networks")
        .and_then(|value| value.get_ref().as_array())
        .is_some_and(|list| list.is_empty())
    {
        let message = "`networks` is empty: a virtual link is sent on A, on B or on both";
        findings.push(Finding::new(Kind::Value, table.at("networks"), message));
    }
    let written = [("route-a", Side::A), ("route-b", Side::B)];
    let written = written.into_iter().filter_map(|(key, side)| routes::written(&table, key, side, findings));
    let written = written.collect();
    let lmin = table.number("lmin", findings).unwrap_or(SHORTEST_FRAME) as u16;
    let lmax = table.number("lmax", findings).unwrap_or(LONGEST_FRAME) as u16;
    if lmin > lmax {
        let finding = Finding::new(Kind::Conflict, table.at("lmin"), "`lmin` is more than `lmax`");
        findings.push(finding.also(table.at("lmax"), "here"));
    }
    let is = Vl {
        id: id.unwrap_or(0),
        name: name.unwrap_or_else(|| format!("VL{}", id.unwrap_or(0))),
        source: table.text("source", findings).unwrap_or_default(),
        bag: bag(&table, bags, findings),
        lmin,
        lmax,
        jitter: table.number("jitter", findings),
        source_jitter: table.number("source-jitter", findings).unwrap_or(0),
        priority: priority(&table, findings),
        policing: word(&table, "policing", &Policing::ALL, findings).unwrap_or(Policing::Byte),
        shared_account: table.text("shared-account", findings),
        skew_max: if table.has("skew-max") {
            table.number("skew-max", findings).unwrap_or(0)
        } else {
            skew_max
        },
        deadline: table.number("deadline", findings),
        routes: Vec::new(),
        sub_vls: sub_vls(&table, findings),
    };
    let networks = networks.iter().map(|(word, _)| if word == "A" { Side::A } else { Side::B }).collect();
    VlDraft { is, id, to: table.texts("to", findings), networks, written, table }
}

fn sub_vls(table: &Table<'_>, findings: &mut Findings) -> Vec<SubVl> {
    let mut sub_vls: Vec<(SubVl, Range<usize>)> = Vec::new();
    for table in table.tables("sub-vl", &keys::SUB_VL, (MAX_SUB_VLS, "MAX_SUB_VLS"), findings) {
        let Some(name) = table.text("name", findings) else { continue };
        let at = table.at("name");
        if let Some((_, first)) = sub_vls.iter().find(|(known, _)| known.name == name) {
            let message = format!("two sub virtual links have the name {}", quoted(&name));
            let finding = Finding::new(Kind::Duplicate, at.clone(), message);
            findings.push(finding.also(first.clone(), "first here"));
        }
        let queue = table.number("queue", findings).unwrap_or(1) as u32;
        sub_vls.push((SubVl { name, queue }, at));
    }
    sub_vls.into_iter().map(|(sub_vl, _)| sub_vl).collect()
}

fn priority(table: &Table<'_>, findings: &mut Findings) -> u8 {
    let Some(value) = table.value("priority") else { return 0 };
    let read = match (value.get_ref().as_integer(), value.get_ref().as_str()) {
        (Some(number), _) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
        (None, Some("low")) => Some(0),
        (None, Some("high")) => Some(1),
        _ => None,
    };
    match read {
        Some(priority) if priority <= MAX_PRIORITY => priority as u8,
        _ => {
            let message = format!(
                "`priority` is a number from 0 to {MAX_PRIORITY} (MAX_PRIORITY), \"low\" or \"high\""
            );
            findings.push(Finding::new(Kind::Value, value.span(), message));
            0
        }
    }
}

/// A rate that lets something pass.
fn rate(table: &Table<'_>, key: &str, findings: &mut Findings) -> Option<u64> {
    let rate = table.number(key, findings)?;
    if rate == 0 {
        let message = format!("`{key}` is 0: nothing would pass");
        findings.push(Finding::new(Kind::Value, table.at(key), message));
        return None;
    }
    Some(rate)
}

fn side(table: &Table<'_>, findings: &mut Findings) -> Option<Side> {
    table.text("network", findings).map(|word| if word == "A" { Side::A } else { Side::B })
}

fn word<T: Copy>(table: &Table<'_>, key: &str, all: &[(T, &str)], findings: &mut Findings) -> Option<T> {
    let text = table.text(key, findings)?;
    all.iter().find(|(_, word)| *word == text).map(|(is, _)| *is)
}

/// A bandwidth allocation gap; 1 if it is not right.
fn bag(table: &Table<'_>, bags: Bags, findings: &mut Findings) -> u64 {
    let Some(text) = table.text("bag", findings) else { return 1 };
    let mut refuse = |kind, why: String| {
        findings.push(Finding::new(kind, table.at("bag"), format!("`bag` is {}: {why}", quoted(&text))));
        1
    };
    let time = match quantity::parse(&text, Measure::Time) {
        Ok(time) => time,
        Err(why) => return refuse(Kind::Value, why),
    };
    let (shortest, longest) = STANDARD_BAG;
    match bags {
        Bags::Standard
            if (shortest..=longest).contains(&time)
                && time.is_multiple_of(shortest)
                && (time / shortest).is_power_of_two() =>
        {
            time
        }
        Bags::Standard => refuse(
            Kind::Limit,
            "0.5, 1, 2, 4, 8, 16, 32, 64 or 128 ms is expected (STANDARD_BAG); `bags = \"any\"` in [network] allows others"
                .into(),
        ),
        Bags::Any if (ANY_BAG.0..=ANY_BAG.1).contains(&time) => time,
        Bags::Any => refuse(Kind::Limit, "10 us to 1310 ms is expected (ANY_BAG)".into()),
    }
}
