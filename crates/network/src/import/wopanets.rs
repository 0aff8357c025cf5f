//! The XML of WoPANets, which xTFA reads too: stations, switches, links, and flows with the nodes that they pass.
//!
//! Lengths there are of payload. `overhead` of the network is what all headers, the check sum and the wire add; 67 of AFDX are 47 bytes
//! of the frame (Ethernet 14, IP 20, UDP 8, sequence number 1, check sum 4) and 20 of the wire (preamble 8, gap 12). Numbers without a
//! unit are milliseconds (`period`, `jitter`, `deadline`, `service-latency`), microseconds (`tech-latency`), bytes or bit/s.

use super::decimal::{LENGTHS, RATES, Round, TIMES, Units, amount};
use super::traffic::{self, Bucket};
use super::{Notes, Source, label, xml};
use crate::limits::{MAX_PORT_RATE, MAX_RATE, MAX_VLS, SHORTEST_FRAME};
use crate::model::*;
use foldhash::{HashMap, HashSet};
use millrace_toml_sections::{Finding, Findings, Kind, Measure, Problems, quantity, quoted};
use roxmltree::{Attribute, Document, Node, ParsingOptions};
use std::ops::Range;

/// Most elements of a file.
const MAX_ELEMENTS: u32 = 4_000_000;
/// Bytes that the wire adds to a frame of Ethernet.
const WIRE: u64 = 20;

/// Reads a file.
pub(super) fn read(source: Source<'_>, notes: &mut Notes) -> Result<Network, Problems> {
    let mut findings = Findings::default();
    let network = document(source.text, &mut findings, notes);
    match (findings.problems(source.name, source.text), network) {
        (Some(problems), _) => Err(problems),
        (None, Some(network)) => Ok(network),
        (None, None) => unreachable!("a finding was made"),
    }
}

fn document(text: &str, findings: &mut Findings, notes: &mut Notes) -> Option<Network> {
    if let Some((at, message)) = xml::too_much(text) {
        findings.push(Finding::new(Kind::Limit, at..at + 1, message));
        return None;
    }
    // Without a DTD there are no entities to expand.
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_ELEMENTS, ..ParsingOptions::default() };
    let document = match Document::parse_with_options(text, options) {
        Ok(document) => document,
        Err(roxmltree::Error::DtdDetected) => {
            let at = text.find("<!DOCTYPE").unwrap_or(0);
            let message = "a document type is not read: entities of a file could expand without limit";
            findings.push(Finding::new(Kind::Limit, at..at + 9.min(text.len() - at), message));
            return None;
        }
        Err(error) => {
            let place = error.pos();
            let lines = text.split_inclusive('\n').take(place.row.saturating_sub(1) as usize);
            let start: usize = lines.map(str::len).sum();
            let line = &text[start.min(text.len())..];
            let column =
                line.char_indices().nth(place.col.saturating_sub(1) as usize).map_or(0, |(at, _)| at);
            let message = error.to_string();
            let message = message.split(" at ").next().unwrap_or(&message).to_owned();
            findings.push(Finding::new(Kind::Syntax, start + column..start + column, message));
            return None;
        }
    };
    let root = document.root_element();
    let mut reader = Reader { findings, notes, asked: HashSet::default() };
    let whole = reader.whole(root)?;
    let mut network = Network::empty(whole.name.clone(), whole.wire as u32);
    let mut nodes = HashMap::default();
    for element in elements(root, "station") {
        let served = reader.served(element);
        let name = reader.name(element);
        let latency = served.latency.unwrap_or(0);
        network.end_systems.push(super::end_system(name.clone(), network.end_systems.len(), latency));
        nodes.insert(name, served);
    }
    for element in elements(root, "switch") {
        let served = reader.served(element);
        let name = reader.name(element);
        network.switches.push(Switch {
            name: name.clone(),
            network: Side::A,
            latency: served.latency.unwrap_or(0),
            least_latency: 0,
            scheduler: reader.scheduler(element),
            priorities: 2,
            buffer: None,
            max_delay: None,
            end_system: None,
        });
        nodes.insert(name, served);
    }
    let ends =
        elements(root, "link").filter_map(|link| Some((link.attribute("from")?, link.attribute("to")?)));
    let ends = ends.collect();
    let mut links = Links { nodes, ends, made: Vec::new(), places: HashMap::default() };
    for element in elements(root, "link") {
        reader.link(element, &whole, &mut links);
    }
    network.links = links.made;
    reader.ports(&mut network.links);
    for element in elements(root, "flow") {
        let id = network.vls.len();
        if id >= MAX_VLS {
            let message = format!("more than {MAX_VLS} flows (MAX_VLS)");
            reader.findings.push(Finding::new(Kind::Limit, element.range(), message));
            break;
        }
        network.vls.extend(reader.flow(element, &whole, id as u16));
    }
    reader.tell_unread(root);
    let highest = network.vls.iter().map(|vl| vl.priority).max().unwrap_or(0);
    network.switches.iter_mut().for_each(|switch| switch.priorities = switch.priorities.max(highest + 1));
    if network.vls.is_empty() && reader.findings.count() == 0 {
        reader.findings.push(Finding::new(Kind::Missing, tag(root), "there is no flow"));
    }
    (reader.findings.count() == 0).then_some(network)
}

fn elements<'a, 'i: 'a>(root: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    root.children().filter(move |child| child.has_tag_name(name))
}

/// The name of an element where it starts.
fn tag(element: Node<'_, '_>) -> Range<usize> {
    let start = element.range().start;
    start..start + 1 + element.tag_name().name().len()
}

/// What holds for all of a file.
struct Whole {
    name: String,
    rate: Option<u64>,
    /// Bytes of a frame that are no payload.
    header: u64,
    /// Bytes that the wire adds.
    wire: u64,
    longest: Option<u64>,
    shortest: Option<u64>,
}

/// How the output ports of a node serve.
#[derive(Clone, Copy, Default)]
struct Served {
    is_switch: bool,
    latency: Option<u64>,
    rate: Option<u64>,
    capacity: Option<u64>,
}

/// The links of a file, as they are read.
struct Links<'a> {
    nodes: HashMap<String, Served>,
    /// From where to where the links of the file lead.
    ends: HashSet<(&'a str, &'a str)>,
    made: Vec<Link>,
    /// Where in `made` the links of one direction are, by their ends.
    places: HashMap<[String; 2], usize>,
}

impl Links<'_> {
    /// Adds a link of one direction.
    fn add(&mut self, link: Link) {
        let [from, to] = link.between.each_ref().map(|end| end.node.clone());
        let other = self.places.get(&[to.clone(), from.clone()]);
        if let Some(other) = other.and_then(|place| self.made.get_mut(*place))
            && (other.rate, other.service_rate, other.latency, other.propagation)
                == (link.rate, link.service_rate, link.latency, link.propagation)
        {
            other.one_way = false;
            return;
        }
        self.places.insert([from, to], self.made.len());
        self.made.push(link);
    }
}

struct Reader<'r> {
    findings: &'r mut Findings,
    notes: &'r mut Notes,
    /// Elements and attributes of theirs that were asked for.
    asked: HashSet<(&'static str, &'static str)>,
}

/// The elements that are read.
const ELEMENTS: [&str; 7] = ["network", "station", "switch", "link", "flow", "target", "path"];

fn known(element: Node<'_, '_>) -> Option<&'static str> {
    ELEMENTS.into_iter().find(|known| element.has_tag_name(*known))
}

impl Reader<'_> {
    /// An attribute of an element; none if it says nothing.
    fn attribute<'a, 'i>(&mut self, element: Node<'a, 'i>, name: &'static str) -> Option<Attribute<'a, 'i>> {
        if let Some(known) = known(element) {
            self.asked.insert((known, name));
        }
        element.attribute_node(name).filter(|attribute| !attribute.value().trim().is_empty())
    }

    /// Says which elements, and which attributes with a value, nobody has asked for.
    fn tell_unread(&mut self, root: Node<'_, '_>) {
        let asked: &HashSet<(&str, &str)> = &self.asked;
        for element in root.descendants().filter(|element| element.is_element() && *element != root) {
            let Some(known) = known(element) else {
                self.notes.unread("elements", element.tag_name().name());
                continue;
            };
            let unread = |attribute: &Attribute<'_, '_>| {
                !attribute.value().trim().is_empty() && !asked.contains(&(known, attribute.name()))
            };
            for attribute in element.attributes().filter(unread) {
                self.notes.unread(&format!("attributes of `{known}`"), attribute.name());
            }
        }
    }

    fn whole(&mut self, root: Node<'_, '_>) -> Option<Whole> {
        let mut networks = elements(root, "network");
        let (Some(element), None) = (networks.next(), networks.next()) else {
            let message = "one element `network` is expected among those of the file";
            self.findings.push(Finding::new(Kind::Missing, tag(root), message));
            return None;
        };
        let technology = self.attribute(element, "technology").map_or("", |is| is.value());
        let overhead = self.amount(element, "overhead", LENGTHS, "B", Round::Up).map(|bits| bits.div_ceil(8));
        let overhead = overhead.unwrap_or(if technology == "AFDX" { 67 } else { 0 }).min(4096);
        let (header, wire) = if overhead >= WIRE { (overhead - WIRE, WIRE) } else { (overhead, 0) };
        let name = self.attribute(element, "name").map_or("network", |is| is.value());
        Some(Whole {
            name: label(name, self.notes),
            rate: self.amount(element, "transmission-capacity", RATES, "bps", Round::Down),
            header,
            wire,
            longest: self
                .amount(element, "maximum-packet-size", LENGTHS, "B", Round::Up)
                .filter(|bits| *bits > 0),
            shortest: self.amount(element, "minimum-packet-size", LENGTHS, "B", Round::Down),
        })
    }

    /// An attribute in our units; tells if it is wrong.
    fn amount(
        &mut self,
        element: Node<'_, '_>,
        name: &'static str,
        units: Units,
        unit: &str,
        round: Round,
    ) -> Option<u64> {
        let attribute = self.attribute(element, name)?;
        match amount(attribute.value(), units, unit, round) {
            Ok(amount) => Some(amount),
            Err(why) => {
                let message = format!("`{name}` is {}: {why}", quoted(attribute.value()));
                self.findings.push(Finding::new(Kind::Value, attribute.range_value(), message));
                None
            }
        }
    }

    /// As [`Reader::amount`], of an attribute that has to be there.
    fn needed(&mut self, element: Node<'_, '_>, name: &'static str, units: Units, unit: &str) -> Option<u64> {
        if self.attribute(element, name).is_some() {
            return self.amount(element, name, units, unit, Round::Up);
        }
        self.text(element, name);
        None
    }

    /// How many packets of a flow may come at once.
    fn several(&mut self, element: Node<'_, '_>) -> Option<u64> {
        let Some(attribute) = self.attribute(element, "max-simultaneous-packets") else { return Some(1) };
        let read = attribute.value().trim().parse().ok().filter(|several| *several > 0);
        if read.is_none() {
            let value = quoted(attribute.value());
            let message =
                format!("`max-simultaneous-packets` is {value}: a whole number of 1 or more is expected");
            self.findings.push(Finding::new(Kind::Value, attribute.range_value(), message));
        }
        read
    }

    /// An attribute that has to be there.
    fn text<'a>(&mut self, element: Node<'a, '_>, name: &'static str) -> &'a str {
        let Some(attribute) = self.attribute(element, name) else {
            let message = format!("`{name}` is missing in `{}`", element.tag_name().name());
            self.findings.push(Finding::new(Kind::Missing, tag(element), message));
            return "";
        };
        attribute.value()
    }

    fn name(&mut self, element: Node<'_, '_>) -> String {
        let name = self.text(element, "name");
        label(name, self.notes)
    }

    fn served(&mut self, element: Node<'_, '_>) -> Served {
        let latency = self.amount(element, "service-latency", TIMES, "ms", Round::Up);
        let latency = latency.or_else(|| self.amount(element, "tech-latency", TIMES, "us", Round::Up));
        Served {
            is_switch: element.has_tag_name("switch"),
            latency,
            rate: self.amount(element, "service-rate", RATES, "bps", Round::Down),
            capacity: self.amount(element, "transmission-capacity", RATES, "bps", Round::Down),
        }
    }

    fn scheduler(&mut self, element: Node<'_, '_>) -> Scheduler {
        if self.attribute(element, "switching-technique").is_some_and(|is| is.value() == "CUT_THROUGH") {
            let example = element.attribute("name").unwrap_or_default();
            self.notes.add("switches that cut through: read as such that store and forward", example);
        }
        let Some(attribute) = self.attribute(element, "service-policy") else { return Scheduler::Fifo };
        match attribute.value().to_ascii_uppercase().as_str() {
            "FIRST_IN_FIRST_OUT" | "FIFO" => Scheduler::Fifo,
            "FIXED_PRIORITY" | "STATIC_PRIORITY" | "STRICT_PRIORITY" | "PRIORITY" | "FP" | "SP" | "SPQ" => {
                Scheduler::Priority
            }
            "ROUND_ROBIN" | "RR" => Scheduler::RoundRobin,
            other => {
                let message = format!("there is no scheduler for `service-policy` {}", quoted(other));
                let finding = Finding::new(Kind::Value, attribute.range_value(), message);
                self.findings
                    .push(finding.help("FIRST_IN_FIRST_OUT, FIXED_PRIORITY and ROUND_ROBIN are known"));
                Scheduler::Fifo
            }
        }
    }

    /// Reads a link: one in both directions, or one in each if these are served differently. If the file has a link of its own for the
    /// other direction, it is one in its direction; with the other one it is again one in both if these are served alike.
    fn link(&mut self, element: Node<'_, '_>, whole: &Whole, links: &mut Links<'_>) {
        let [from, to] = ["from", "to"].map(|key| self.text(element, key));
        let has_other = links.ends.contains(&(to, from));
        let [from, to] = [from, to].map(|node| label(node, self.notes));
        let own = self.served(element);
        let propagation = self.amount(element, "propagation-delay", TIMES, "us", Round::Up).unwrap_or(0);
        let mut end = |node: &str, key: &'static str| {
            let port = self.attribute(element, key).and_then(|port| port.value().parse::<u16>().ok());
            End { node: node.to_owned(), port: port.unwrap_or(u16::MAX) }
        };
        let between = [end(&from, "fromPort"), end(&to, "toPort")];
        let mut direction = |node: &str| {
            let of_node = links.nodes.get(node).copied().unwrap_or_default();
            let service = own.rate.or(of_node.rate);
            let capacity =
                own.capacity.or(of_node.capacity).or(whole.rate).or(service).unwrap_or(100_000_000);
            let most = if of_node.is_switch { MAX_PORT_RATE } else { MAX_RATE };
            if capacity > most {
                let most = quantity::show(most, Measure::Rate);
                let note = "rates over those of our ports: read as the largest that may be";
                self.notes.add(note, &format!("{most} of {}", quoted(node)));
            }
            let capacity = capacity.clamp(1, most);
            (capacity, service.unwrap_or(capacity).clamp(1, capacity))
        };
        let (forth, back) = (direction(&from), direction(&to));
        let link = |between: [End; 2], (rate, service_rate), one_way| Link {
            between,
            network: Side::A,
            rate,
            service_rate,
            latency: own.latency,
            propagation,
            one_way,
        };
        if has_other {
            links.add(link(between, forth, true));
            return;
        }
        if forth == back {
            links.made.push(link(between, forth, false));
            return;
        }
        let unset = |node: &String| End { node: node.clone(), port: u16::MAX };
        links.made.push(link([unset(&from), unset(&to)], forth, true));
        links.made.push(link([unset(&to), unset(&from)], back, true));
    }

    /// Keeps the ports of a file whose numbers are each used once; else chooses them.
    fn ports(&mut self, links: &mut [Link]) {
        let mut used = HashSet::default();
        let is_right = |end: &End| usize::from(end.port) < crate::MAX_PORTS;
        let ends = links.iter().flat_map(|link| &link.between);
        if ends.clone().all(is_right) && ends.clone().all(|end| used.insert((end.node.as_str(), end.port))) {
            return;
        }
        self.notes.add("ports that are no numbers up to 63, each once: chosen in the order of links", "");
        let mut next: HashMap<String, u16> = HashMap::default();
        for end in links.iter_mut().flat_map(|link| &mut link.between) {
            let next = next.entry(end.node.clone()).or_default();
            end.port = *next;
            *next = next.saturating_add(1);
        }
    }

    fn flow(&mut self, element: Node<'_, '_>, whole: &Whole, place: u16) -> Option<Vl> {
        let name = self.name(element);
        let source = label(self.text(element, "source"), self.notes);
        let traffic = self.traffic(element, whole, &name)?;
        let mut paths = Vec::new();
        for target in elements(element, "target") {
            let mut path = Vec::new();
            for step in elements(target, "path") {
                path.push(label(self.text(step, "node"), self.notes));
            }
            if path.is_empty() {
                let message = "a target needs the nodes of its path";
                self.findings.push(Finding::new(Kind::Missing, tag(target), message));
            }
            paths.push(path);
        }
        if paths.is_empty() {
            self.findings.push(Finding::new(Kind::Missing, tag(element), "a flow needs a target"));
        }
        let mut vl = traffic.vl(place, name, source);
        vl.priority = self.priority(element);
        vl.deadline =
            self.amount(element, "deadline", TIMES, "ms", Round::Down).filter(|deadline| *deadline > 0);
        vl.routes.push(Route { network: Side::A, paths });
        Some(vl)
    }

    fn traffic(&mut self, element: Node<'_, '_>, whole: &Whole, name: &str) -> Option<traffic::Traffic> {
        let bytes = |bits: Option<u64>| bits.map(|bits| bits.div_ceil(8));
        let longest = self.amount(element, "max-payload", LENGTHS, "B", Round::Up);
        let shortest = self.amount(element, "min-payload", LENGTHS, "B", Round::Down);
        if let (Some(longest), Some(shortest)) = (longest, shortest)
            && shortest > longest
        {
            let message =
                format!("flow {} has a `min-payload` that is more than its `max-payload`", quoted(name));
            self.findings.push(Finding::new(Kind::Conflict, tag(element), message));
            return None;
        }
        let whole_longest =
            self.amount(element, "maximum-packet-size", LENGTHS, "B", Round::Up).or(whole.longest);
        let whole_shortest =
            self.amount(element, "minimum-packet-size", LENGTHS, "B", Round::Down).or(whole.shortest);
        let is_bucket =
            self.attribute(element, "arrival-curve").is_some_and(|is| is.value() == "leaky-bucket");
        let made = if is_bucket {
            let burst = self.needed(element, "lb-burst", LENGTHS, "B");
            let rate = self.needed(element, "lb-rate", RATES, "bps");
            let (longest, shortest) = (whole_longest.or(longest), whole_shortest.or(shortest));
            traffic::bucket(Bucket { burst: burst?, rate: rate?, longest, shortest }, 0, self.notes, name)
        } else if self.attribute(element, "period").is_some() {
            let period = self.amount(element, "period", TIMES, "ms", Round::Down)?;
            let jitter = self.amount(element, "jitter", TIMES, "ms", Round::Up).unwrap_or(0);
            let several = self.several(element)?;
            let longest = bytes(longest).unwrap_or(1).saturating_add(whole.header);
            let longest = longest.max(bytes(whole_longest).unwrap_or(0));
            let shortest = bytes(shortest).unwrap_or(0).saturating_add(whole.header);
            let shortest = shortest.max(bytes(whole_shortest).unwrap_or(0));
            if longest < SHORTEST_FRAME {
                self.notes.add("packets shorter than the shortest frame: read as 64 bytes", name);
            }
            traffic::periodic((shortest, longest), period, several, jitter)
        } else {
            Err("it has neither a period nor a leaky bucket".into())
        };
        made.map_err(|why| {
            let message = format!("flow {} is no virtual link: {why}", quoted(name));
            self.findings.push(Finding::new(Kind::Value, tag(element), message));
        })
        .ok()
    }

    fn priority(&mut self, element: Node<'_, '_>) -> u8 {
        let Some(attribute) = self.attribute(element, "priority") else { return 0 };
        let value = attribute.value();
        let known = match value.to_ascii_lowercase().as_str() {
            "low" => Some(0),
            "high" => Some(1),
            number => {
                number.parse::<u8>().ok().filter(|priority| u64::from(*priority) <= crate::MAX_PRIORITY)
            }
        };
        known.unwrap_or_else(|| {
            let message = format!("`priority` is {}: Low, High or 0 to 7 is expected", quoted(value));
            self.findings.push(Finding::new(Kind::Value, attribute.range_value(), message));
            0
        })
    }
}
