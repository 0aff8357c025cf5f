//! The tables of Net2Plan-AFDX: switches with the switches that they lead to, end systems with the switches that they are at, virtual
//! links with the switches of their paths. Each is a CSV file with `;` between fields; the first line names the columns.
//!
//! That tool says nothing of latency; it has 100 µs for a switch and 150 µs for either side of an end system, which are kept. Lengths
//! are of payload: 46 bytes more are a frame (Ethernet 14, IP 20, UDP 8, check sum 4), 38 over TCP as that tool counts it.

use super::decimal::{RATES, Round, TIMES, amount};
use super::{Notes, Source, label, traffic, wrong};
use crate::graph::Searches;
use crate::limits::{MAX_QUEUE, MAX_RATE, MAX_SUB_VLS, MAX_VLS};
use crate::model::*;
use foldhash::{HashMap, HashSet};
use millrace_toml_sections::{Finding, Findings, Kind, Problems, quoted};
use std::cell::RefCell;
use std::ops::Range;

const SWITCH_LATENCY: u64 = 100_000;
const END_SYSTEM_LATENCY: u64 = 150_000;
/// Bytes of a frame over UDP that are no payload, and of what Net2Plan-AFDX counts over TCP.
const HEADERS: (u64, u64) = (46, 38);
/// Most columns of a table.
const MAX_COLUMNS: usize = 64;

/// A table: its columns, and the fields of each line.
struct Table<'s> {
    source: Source<'s>,
    /// The line that names the columns.
    header: Field<'s>,
    columns: Vec<&'s str>,
    lines: Vec<Line<'s>>,
    /// Whether a field of each column was asked for.
    asked: RefCell<Vec<bool>>,
}

#[derive(Clone, Copy)]
struct Line<'s> {
    text: &'s str,
    start: usize,
}

/// A field with its place.
#[derive(Clone, Copy)]
struct Field<'s> {
    text: &'s str,
    start: usize,
}

impl Field<'_> {
    fn at(self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }
}

impl<'s> Line<'s> {
    /// The field in a column; none if it is empty.
    fn field(self, place: usize) -> Option<Field<'s>> {
        let mut start = self.start;
        for (at, field) in self.text.split(';').enumerate() {
            if at == place {
                let text = field.trim();
                let start = start + field.len() - field.trim_start().len();
                return (!text.is_empty()).then_some(Field { text, start });
            }
            start += field.len() + 1;
        }
        None
    }
}

impl<'s> Table<'s> {
    fn of(source: Source<'s>) -> Option<Table<'s>> {
        let text = source.text;
        let mut lines = Vec::new();
        let mut start = 0;
        for line in text.split(['\r', '\n']) {
            // A byte order mark is no part of the first name.
            let shown = line.trim_start_matches('\u{feff}');
            // Spreadsheets write lines without anything as lines of empty fields.
            if !shown.trim_matches(|c: char| c == ';' || c.is_whitespace()).is_empty() {
                lines.push(Line { text: shown, start: start + line.len() - shown.len() });
            }
            start += line.len() + 1;
        }
        let (first, lines) = lines.split_first()?;
        let columns: Vec<&str> = first.text.split(';').map(str::trim).take(MAX_COLUMNS).collect();
        let asked = RefCell::new(vec![false; columns.len()]);
        let header = Field { text: first.text, start: first.start };
        Some(Table { source, header, columns, lines: lines.to_vec(), asked })
    }

    /// Says which columns are there twice, and which lines have fields that belong to none.
    fn check(&self, findings: &mut Findings) {
        for (place, name) in self.columns.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            if self.columns[..place].contains(name) {
                let message = format!("the column {} is there twice", quoted(name));
                findings.push(Finding::new(Kind::Duplicate, self.header.at(), message));
            }
        }
        for line in &self.lines {
            let mut beyond =
                Table::parts(Field { text: line.text, start: line.start }, ';').skip(self.columns.len());
            if let Some(field) = beyond.find(|field| !field.text.is_empty()) {
                let message = format!(
                    "{} is in no column: the first line has {}",
                    quoted(field.text),
                    self.columns.len()
                );
                findings.push(Finding::new(Kind::Value, field.at(), message));
            }
        }
    }

    /// Says which columns have something that nobody has asked for.
    fn tell_unread(&self, what: &str, notes: &mut Notes) {
        let asked = self.asked.borrow();
        let is_unread = |place: &usize| {
            let says_something = |line: &Line<'s>| line.field(*place).is_some();
            !asked[*place] && self.lines.iter().any(says_something)
        };
        for place in (0..self.columns.len()).filter(is_unread) {
            match self.columns[place] {
                "" => {
                    notes.unread(&format!("columns without a name of the {what}"), &(place + 1).to_string())
                }
                name => notes.unread(&format!("columns of the {what}"), name),
            }
        }
    }

    fn has(&self, column: &str) -> bool {
        self.columns.contains(&column)
    }

    /// A field of a line; none if it is empty or there is no such column.
    fn field(&self, line: Line<'s>, column: &str) -> Option<Field<'s>> {
        let place = self.columns.iter().position(|name| *name == column)?;
        self.asked.borrow_mut()[place] = true;
        line.field(place)
    }

    fn needed(&self, line: Line<'s>, column: &str, findings: &mut Findings) -> Option<Field<'s>> {
        let field = self.field(line, column);
        if field.is_none() {
            let message = format!("the column `{column}` is missing or empty");
            findings.push(Finding::new(Kind::Missing, line.start..line.start + line.text.len(), message));
        }
        field
    }

    /// The parts of a field.
    fn parts(field: Field<'s>, between: char) -> impl Iterator<Item = Field<'s>> {
        let mut start = field.start;
        field.text.split(between).map(move |part| {
            let at = start + part.len() - part.trim_start().len();
            start += part.len() + 1;
            Field { text: part.trim(), start: at }
        })
    }
}

/// Reads the three tables, each known by a column that it alone has.
pub(super) fn read(sources: &[Source<'_>], notes: &mut Notes) -> Result<Network, Problems> {
    let mut tables = [None, None, None];
    for source in sources {
        let table = Table::of(*source);
        let place = table
            .as_ref()
            .and_then(|table| ["ports", "link_direction", "bag"].iter().position(|key| table.has(key)));
        match (table, place) {
            (Some(table), Some(place)) if tables[place].is_none() => tables[place] = Some(table),
            (_, Some(_)) => {
                let message = "two files have the columns of one table";
                return Err(wrong(*source, Finding::new(Kind::Duplicate, 0..0, message)));
            }
            _ => {
                let message = "a table with the column `ports`, `link_direction` or `bag` is expected";
                return Err(wrong(*source, Finding::new(Kind::Syntax, 0..0, message)));
            }
        }
    }
    let [Some(switches), Some(end_systems), Some(vls)] = tables else {
        let message = "three tables are a network: switches (`ports`), end systems (`link_direction`), virtual links (`bag`)";
        return Err(wrong(sources[0], Finding::new(Kind::Missing, 0..0, message)));
    };
    let mut network = Network::empty("network".into(), 20);
    let by_id = each(&switches, |findings| read_switches(&switches, &mut network, findings, notes))?;
    each(&end_systems, |findings| read_end_systems(&end_systems, &by_id, &mut network, findings, notes))?;
    super::saihu::number_ports(&mut network);
    each(&vls, |findings| read_vls(&vls, &by_id, &mut network, findings, notes))?;
    for (table, what) in [(&switches, "switches"), (&end_systems, "end systems"), (&vls, "virtual links")] {
        table.tell_unread(what, notes);
    }
    Ok(network)
}

/// What is read of a table, or what is wrong with it.
fn each<T>(table: &Table<'_>, read: impl FnOnce(&mut Findings) -> T) -> Result<T, Problems> {
    let mut findings = Findings::default();
    table.check(&mut findings);
    let made = read(&mut findings);
    match findings.problems(table.source.name, table.source.text) {
        Some(problems) => Err(problems),
        None => Ok(made),
    }
}

fn rate(table: &Table<'_>, line: Line<'_>, findings: &mut Findings) -> u64 {
    let Some(field) = table.needed(line, "link_capacity", findings) else { return 1 };
    match amount(field.text, RATES, "bps", Round::Down) {
        Ok(rate) if (1..=MAX_RATE).contains(&rate) => rate,
        Ok(_) => {
            let message = format!("`link_capacity` is 1 bit/s to {MAX_RATE} (MAX_RATE)");
            findings.push(Finding::new(Kind::Limit, field.at(), message));
            1
        }
        Err(why) => {
            let message = format!("`link_capacity` is {}: {why}", quoted(field.text));
            findings.push(Finding::new(Kind::Value, field.at(), message));
            1
        }
    }
}

fn link(from: &str, to: &str, rate: u64, one_way: bool) -> Link {
    let end = |node: &str| End { node: node.to_owned(), port: 0 };
    Link {
        between: [end(from), end(to)],
        network: Side::A,
        rate,
        service_rate: rate,
        latency: None,
        propagation: 0,
        one_way,
    }
}

/// The name of the node of a line, which no other line of these tables has: by its name a virtual link finds it.
fn node<'s>(
    table: &Table<'s>,
    line: Line<'s>,
    names: &mut HashSet<String>,
    (findings, notes): (&mut Findings, &mut Notes),
) -> Option<String> {
    let field = table.needed(line, "name", findings)?;
    let name = label(field.text, notes);
    if !names.insert(name.clone()) {
        let message = format!("two nodes have the name {}", quoted(&name));
        findings.push(Finding::new(Kind::Duplicate, field.at(), message));
    }
    Some(name)
}

/// Adds a direction; both make one link if they have one rate.
fn add(links: &mut Vec<Link>, known: &mut HashMap<(String, String), usize>, new: Link) {
    let [from, to] = new.between.each_ref().map(|end| end.node.clone());
    if let Some(place) = known.get(&(to.clone(), from.clone())).copied()
        && links[place].rate == new.rate
    {
        links[place].one_way = false;
        return;
    }
    known.insert((from, to), links.len());
    links.push(new);
}

fn read_switches(
    table: &Table<'_>,
    network: &mut Network,
    findings: &mut Findings,
    notes: &mut Notes,
) -> HashMap<String, String> {
    let (mut by_id, mut names) = (HashMap::default(), HashSet::default());
    for line in &table.lines {
        let id = table.needed(*line, "id", findings);
        let name = node(table, *line, &mut names, (findings, notes));
        let (Some(id), Some(name)) = (id, name) else { continue };
        if by_id.insert(id.text.to_owned(), name.clone()).is_some() {
            findings.push(Finding::new(
                Kind::Duplicate,
                id.at(),
                format!("two switches have the id {}", quoted(id.text)),
            ));
        }
        network.switches.push(Switch {
            name,
            network: Side::A,
            latency: SWITCH_LATENCY,
            least_latency: 0,
            scheduler: Scheduler::Fifo,
            priorities: 2,
            buffer: None,
            max_delay: None,
            end_system: None,
        });
    }
    let mut known = HashMap::default();
    for line in &table.lines {
        let (Some(id), Some(to)) = (table.field(*line, "id"), table.field(*line, "links")) else { continue };
        let rate = rate(table, *line, findings);
        for to in Table::parts(to, ',') {
            match (by_id.get(id.text), by_id.get(to.text)) {
                (Some(from), Some(to)) => add(&mut network.links, &mut known, link(from, to, rate, true)),
                _ => findings.push(unknown(to)),
            }
        }
    }
    by_id
}

fn unknown(id: Field<'_>) -> Finding {
    Finding::new(Kind::UnknownName, id.at(), format!("there is no switch with the id {}", quoted(id.text)))
}

fn read_end_systems(
    table: &Table<'_>,
    by_id: &HashMap<String, String>,
    network: &mut Network,
    findings: &mut Findings,
    notes: &mut Notes,
) {
    let mut names: HashSet<String> = network.switches.iter().map(|switch| switch.name.clone()).collect();
    for line in &table.lines {
        let Some(name) = node(table, *line, &mut names, (findings, notes)) else { continue };
        let rate = rate(table, *line, findings);
        if let Some(links) = table.needed(*line, "links", findings) {
            let direction = table.field(*line, "link_direction");
            for id in Table::parts(links, ',') {
                let Some(switch) = by_id.get(id.text) else {
                    findings.push(unknown(id));
                    continue;
                };
                match direction.map_or("b", |field| field.text) {
                    "b" => network.links.push(link(&name, switch, rate, false)),
                    "o" => network.links.push(link(&name, switch, rate, true)),
                    "i" => network.links.push(link(switch, &name, rate, true)),
                    other => {
                        let message = format!("`link_direction` is {}: i, o or b is expected", quoted(other));
                        let at = direction.map_or(id.at(), Field::at);
                        findings.push(Finding::new(Kind::Value, at, message));
                        break;
                    }
                }
            }
        }
        let end_system = super::end_system(name, network.end_systems.len(), END_SYSTEM_LATENCY);
        network.end_systems.push(EndSystem { receive_latency: END_SYSTEM_LATENCY, ..end_system });
    }
    notes.add("latency of 100 us of a switch and of 150 us of either side of an end system, as Net2Plan-AFDX has it", "");
}

fn read_vls(
    table: &Table<'_>,
    by_id: &HashMap<String, String>,
    network: &mut Network,
    findings: &mut Findings,
    notes: &mut Notes,
) {
    let names = network
        .end_systems
        .iter()
        .map(|is| is.name.as_str())
        .chain(network.switches.iter().map(|is| is.name.as_str()));
    let places: HashMap<String, u32> =
        names.enumerate().map(|(place, name)| (name.to_owned(), place as u32)).collect();
    let graph = crate::Graph::new(&network.end_systems, &network.switches, &network.links);
    if table.lines.len() > MAX_VLS {
        let at = table.lines[MAX_VLS].start;
        findings.push(Finding::new(
            Kind::Limit,
            at..at,
            format!("more than {MAX_VLS} virtual links (MAX_VLS)"),
        ));
        return;
    }
    let mut searches = Searches::new(&graph);
    for line in &table.lines {
        let Some(mut vl) = read_vl(table, *line, findings, notes) else { continue };
        let Some(to) = table.needed(*line, "dsts", findings) else { continue };
        let to: Vec<Field<'_>> = Table::parts(to, ',').collect();
        let routes = table.field(*line, "routes").map(|field| Table::parts(field, ':').collect::<Vec<_>>());
        let mut paths = Vec::new();
        match routes {
            Some(routes) if routes.len() == to.len() => {
                for (route, to) in routes.into_iter().zip(&to) {
                    let mut path = Vec::new();
                    for id in Table::parts(route, ',') {
                        match by_id.get(id.text) {
                            Some(switch) => path.push(switch.clone()),
                            None => findings.push(unknown(id)),
                        }
                    }
                    path.push(label(to.text, notes));
                    paths.push(path);
                }
            }
            Some(routes) => {
                let message = format!("{} paths for {} destinations", routes.len(), to.len());
                findings.push(Finding::new(Kind::Conflict, routes[0].at(), message));
            }
            // That tool computes what is not there; so do we.
            None => {
                let source = places.get(vl.source.as_str()).copied();
                for to in &to {
                    let node = places.get(&label(to.text, notes)).copied();
                    let path = match (source, node) {
                        (Some(source), Some(node)) => searches.path(source, node, Side::A),
                        _ => Vec::new(),
                    };
                    if path.is_empty() {
                        let message =
                            format!("no path leads from {} to {}", quoted(&vl.source), quoted(to.text));
                        findings.push(Finding::new(Kind::Route, to.at(), message));
                    }
                    paths.push(path.into_iter().map(|node| graph.name(node).to_owned()).collect());
                }
            }
        }
        vl.routes.push(Route { network: Side::A, paths });
        network.vls.push(vl);
    }
}

fn read_vl(table: &Table<'_>, line: Line<'_>, findings: &mut Findings, notes: &mut Notes) -> Option<Vl> {
    let id = table.needed(line, "id", findings)?;
    let Ok(number) = id.text.parse::<u16>() else {
        findings.push(Finding::new(
            Kind::Value,
            id.at(),
            format!("`id` is {}: 0 to 65535 is expected", quoted(id.text)),
        ));
        return None;
    };
    let name =
        table.field(line, "name").map_or_else(|| format!("VL{number}"), |name| label(name.text, notes));
    let source = label(table.needed(line, "src", findings)?.text, notes);
    let mut read = |field: Field<'_>, units, unit, round| match amount(field.text, units, unit, round) {
        Ok(amount) => Some(amount),
        Err(why) => {
            findings.push(Finding::new(Kind::Value, field.at(), format!("{}: {why}", quoted(field.text))));
            None
        }
    };
    let missing = |column| table.field(line, column);
    let bag = missing("bag").and_then(|field| read(field, TIMES, "ms", Round::Down));
    let skew = missing("skew_max").and_then(|field| read(field, TIMES, "ms", Round::Up));
    let mut whole = |column| {
        let field = missing(column)?;
        let read = field.text.parse::<u64>().ok();
        if read.is_none() {
            let message = format!("`{column}` is {}: a whole number is expected", quoted(field.text));
            findings.push(Finding::new(Kind::Value, field.at(), message));
        }
        read
    };
    let (lmax, lmin) = (whole("l_max"), whole("l_min"));
    let (count, queue) = (whole("sub_vl_number"), whole("regulator_queue_size"));
    let header =
        if missing("protocol").is_some_and(|field| field.text == "1") { HEADERS.1 } else { HEADERS.0 };
    let at = line.start..line.start + line.text.len();
    let (Some(bag), Some(lmax)) = (bag, lmax) else {
        let message = format!("virtual link {number} needs a `bag` in ms and an `l_max` in bytes");
        findings.push(Finding::new(Kind::Missing, at, message));
        return None;
    };
    let lmin = lmin.unwrap_or(0);
    if lmin > lmax {
        let message = format!("virtual link {number}: `l_min` is more than `l_max`");
        findings.push(Finding::new(Kind::Conflict, at, message));
        return None;
    }
    let frame = |payload: u64| payload.saturating_add(header);
    let made = traffic::periodic((frame(lmin), frame(lmax)), bag, 1, 0);
    let made = made.map_err(|why| {
        findings.push(Finding::new(Kind::Value, at, format!("virtual link {number}: {why}")));
    });
    let mut vl = made.ok()?.vl(number, name, source);
    vl.skew_max = skew.unwrap_or(vl.skew_max);
    let (count, queue) = (count.unwrap_or(0), queue.unwrap_or(64));
    let (most, kept) = (MAX_SUB_VLS as u64, queue.clamp(1, MAX_QUEUE));
    if count > 1 {
        if count > most {
            notes.add("more sub virtual links than 4: read as 4", &vl.name);
        }
        if kept != queue {
            notes.add("queues of sub virtual links that hold no frame, or more than 4096: read as the nearest that may be", &vl.name);
        }
        let sub_vl = |at| SubVl { name: format!("sub{at}"), queue: kept as u32 };
        vl.sub_vls = (1..=count.min(most)).map(sub_vl).collect();
    }
    Some(vl)
}
