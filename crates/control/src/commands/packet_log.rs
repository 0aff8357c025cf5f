//! What happened to a packet, in the words of bmv2's log, which scripts look for.

use millrace_dataplane::{BlockKind, Fate, Journey, JourneyKind, KeyField, Step, Trace};

/// How important a line of the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Importance {
    /// A step within a table, an action or a parser.
    Trace,
    /// A step of a packet.
    Debug,
    /// What the program itself says, and bytes of packets.
    Info,
    /// What went wrong.
    Error,
}

/// A line of the log; that of a key or an entry has line breaks, as bmv2's has.
pub type LogLine = (Importance, String);

/// The lines of a packet, whose entries were numbered ([`super::number_trace`]). `packet` counts packets from 0; of the
/// packet's bytes, `dumped` are shown where it comes and leaves.
pub fn packet_log(trace: &Trace, packet: u64, dumped: usize) -> Vec<LogLine> {
    let has_ingress_deparser = trace.journeys.iter().any(|journey| {
        journey.kind != JourneyKind::Egress
            && journey.steps.iter().any(|step| is_block(step, BlockKind::Deparser))
    });
    let mut log = Log { lines: Vec::new(), packet, copies: Vec::new(), dumped, has_ingress_deparser };
    if dumped > 0 {
        let shown = shown(&trace.bytes, dumped);
        let length = trace.bytes.len() / 2;
        let line = format!("Received packet of length {length} on port {}: {shown}", trace.port);
        log.lines.push((Importance::Info, line));
    }
    let mut next_copy = 0;
    for journey in &trace.journeys {
        let copy = log.copy_of(journey, trace, &mut next_copy);
        log.copies.push(copy);
        log.journey(journey, copy);
    }
    log.lines
}

struct Log {
    lines: Vec<LogLine>,
    packet: u64,
    /// The number of the copy on each journey so far.
    copies: Vec<u64>,
    dumped: usize,
    /// PSA and PNA have parsers and deparsers on both sides, with other names.
    has_ingress_deparser: bool,
}

impl Log {
    /// A packet that goes on keeps its number, a copy gets the next.
    fn copy_of(&self, journey: &Journey, trace: &Trace, next_copy: &mut u64) -> u64 {
        let Some(parent) = journey.parent.and_then(|parent| trace.journeys.get(parent as usize)) else {
            return 0;
        };
        let goes_on = parent.fates.iter().all(|fate| match fate {
            Fate::Forwarded { journey: to, .. } => *to == journey.id,
            Fate::Resubmitted { .. } | Fate::Recirculated { .. } => true,
            _ => false,
        });
        if goes_on && journey.path == "normal" {
            return self.copies.get(parent.id as usize).copied().unwrap_or(0);
        }
        *next_copy += 1;
        *next_copy
    }

    fn journey(&mut self, journey: &Journey, copy: u64) {
        let is_egress = journey.kind == JourneyKind::Egress;
        if !is_egress {
            self.tell(
                copy,
                Importance::Debug,
                format!("Processing packet received on port {}", journey.port),
            );
        }
        let mut controls_left =
            journey.steps.iter().filter(|step| is_block(step, BlockKind::Control)).count();
        let mut controls_seen = 0;
        let (mut open, mut state, mut parsed) = (None, None::<&str>, 0);
        for step in &journey.steps {
            match step {
                Step::Block { kind, .. } => {
                    self.leave(copy, state.take(), parsed);
                    self.close(copy, open.take());
                    let side = if is_egress { "egress" } else { "ingress" };
                    open = match kind {
                        BlockKind::Parser if is_egress => Some("Parser 'egress_parser'".to_owned()),
                        BlockKind::Parser if self.has_ingress_deparser => {
                            Some("Parser 'ingress_parser'".to_owned())
                        }
                        BlockKind::Parser => Some("Parser 'parser'".to_owned()),
                        BlockKind::Deparser if self.has_ingress_deparser => {
                            Some(format!("Deparser '{side}_deparser'"))
                        }
                        BlockKind::Deparser => Some("Deparser 'deparser'".to_owned()),
                        BlockKind::Control => {
                            controls_left -= 1;
                            controls_seen += 1;
                            // Around the pipeline are the controls of checksums.
                            let is_pipeline = if is_egress { controls_seen == 1 } else { controls_left == 0 };
                            is_pipeline.then(|| format!("Pipeline '{side}'"))
                        }
                    };
                    if let Some(block) = &open {
                        self.tell(copy, Importance::Debug, format!("{block}: start"));
                    }
                }
                Step::State { name, .. } => {
                    self.leave(copy, state.take(), parsed);
                    state = Some(name);
                    let parser = open.as_deref().unwrap_or("Parser 'parser'");
                    self.tell(copy, Importance::Debug, format!("{parser} entering state '{name}'"));
                }
                Step::Select { keys, .. } => {
                    let key: String = keys.iter().map(|key| bytes(key)).collect();
                    let name = state.take().unwrap_or_default();
                    self.tell(copy, Importance::Debug, format!("Parser state '{name}': key is {key}"));
                    self.tell(copy, Importance::Trace, format!("Bytes parsed: {}", parsed / 8));
                }
                Step::Extract { header, bits, .. } => {
                    parsed += bits;
                    self.tell(copy, Importance::Debug, format!("Extracting header '{}'", plain(header)));
                }
                Step::Advance { bits } => {
                    parsed += bits;
                    self.tell(copy, Importance::Debug, format!("Advancing by {} bytes", bits / 8));
                }
                Step::Log { line } => self.lines.push((Importance::Info, line.clone())),
                Step::AssertFailed { text } => {
                    self.lines.push((Importance::Error, format!("Assert error: {text} failed")));
                }
                step => self.step(copy, step),
            }
        }
        self.leave(copy, state, parsed);
        self.close(copy, open);
        for fate in &journey.fates {
            self.fate(copy, is_egress, fate);
        }
    }

    fn step(&mut self, copy: u64, step: &Step) {
        let (importance, text) = match step {
            Step::Table { table, keys, hit, entry, priority, action, args, .. } => {
                self.tell(copy, Importance::Trace, format!("Applying table '{table}'"));
                if !keys.is_empty() {
                    let key: String = keys.iter().map(|key| key_line(key, &bytes(&key.value))).collect();
                    self.tell(copy, Importance::Debug, format!("Looking up key:\n{key}"));
                }
                let args: String = args.iter().map(|arg| format!("{},", number(&arg.value))).collect();
                let action_entry = format!("{action} - {args}");
                match entry.filter(|_| *hit) {
                    Some(handle) => {
                        self.tell(
                            copy,
                            Importance::Debug,
                            format!("Table '{table}': hit with handle {handle}"),
                        );
                        let entry = entry_lines(handle, keys, *priority, &action_entry);
                        self.tell(copy, Importance::Debug, entry);
                    }
                    None => self.tell(copy, Importance::Debug, format!("Table '{table}': miss")),
                }
                self.tell(copy, Importance::Debug, format!("Action entry is {action_entry}"));
                (Importance::Trace, format!("Action {action}"))
            }
            Step::Reject { error } => (Importance::Error, format!("Exception while parsing: {error}")),
            Step::Exit => (Importance::Debug, "Packet is marked for exit, interrupting pipeline".to_owned()),
            Step::Emit { header } => (Importance::Debug, format!("Deparsing header '{}'", plain(header))),
            Step::RegisterRead { register, index, value } => {
                let value = decimal(value);
                (Importance::Trace, format!("Read register '{register}' at index {index} read value {value}"))
            }
            Step::RegisterWrite { register, index, value } => {
                let value = decimal(value);
                (
                    Importance::Trace,
                    format!("Wrote register '{register}' at index {index} with value {value}"),
                )
            }
            Step::Count { counter, index } => {
                (Importance::Trace, format!("Updated counter '{counter}' at index {index}"))
            }
            Step::Meter { meter, color } => {
                let result = ["green", "yellow", "red"].iter().position(|known| known == color).unwrap_or(0);
                (
                    Importance::Trace,
                    format!("Updated meter '{meter}', assigning dest field the color result {result}"),
                )
            }
            Step::Digest { digest, .. } => {
                self.lines.push((Importance::Trace, format!("Learning sample for list {digest}")));
                return;
            }
            Step::Assign { slot, value, .. } => {
                (Importance::Trace, format!("Primitive {} = 0x{}", plain(slot), number(value)))
            }
            _ => return,
        };
        self.tell(copy, importance, text);
    }

    fn fate(&mut self, copy: u64, is_egress: bool, fate: &Fate) {
        let side = if is_egress { "egress" } else { "ingress" };
        let text = match fate {
            Fate::Cloned { .. } | Fate::NotCloned { .. } => format!("Cloning packet at {side}"),
            Fate::Forwarded { port, .. } if is_egress => format!("Cloning packet to egress port {port}"),
            Fate::Forwarded { port, rid, .. } if *rid != 0 => format!("Replicating packet on port {port}"),
            Fate::Forwarded { port, .. } => format!("Egress port is {port}"),
            Fate::Multicast { group, copies } => {
                self.tell(copy, Importance::Debug, "Multicast requested for packet".to_owned());
                let text = format!("number of packets replicated : {copies} for MGID: {group}");
                self.lines.push((Importance::Debug, text));
                return;
            }
            Fate::Resubmitted { .. } => "Resubmitting packet".to_owned(),
            Fate::Recirculated { .. } => "Recirculating packet".to_owned(),
            Fate::Sent { port, bytes } => {
                let length = bytes.len() / 2;
                self.tell(
                    copy,
                    Importance::Debug,
                    format!("Transmitting packet of size {length} out of port {port}"),
                );
                if self.dumped > 0 {
                    let shown = shown(bytes, self.dumped);
                    let line = format!("Sending packet of length {length} on port {port}: {shown}");
                    self.lines.push((Importance::Info, line));
                }
                return;
            }
            Fate::Dropped { reason, .. } if reason == "ingress_drop" || reason == "egress_drop" => {
                format!("Dropping packet at the end of {side}")
            }
            Fate::Dropped { reason, .. } => format!("Dropping packet: {reason}"),
        };
        self.tell(copy, Importance::Debug, text);
    }

    /// A parser state that chose nothing ends.
    fn leave(&mut self, copy: u64, state: Option<&str>, parsed_bits: usize) {
        if let Some(name) = state {
            let line = format!("Parser state '{name}' has no switch, going to default next state");
            self.tell(copy, Importance::Debug, line);
            self.tell(copy, Importance::Trace, format!("Bytes parsed: {}", parsed_bits / 8));
        }
    }

    fn close(&mut self, copy: u64, block: Option<String>) {
        if let Some(block) = block {
            self.tell(copy, Importance::Debug, format!("{block}: end"));
        }
    }

    fn tell(&mut self, copy: u64, importance: Importance, text: String) {
        self.lines.push((importance, format!("[{}.{copy}] [cxt 0] {text}", self.packet)));
    }
}

fn is_block(step: &Step, wanted: BlockKind) -> bool {
    matches!(step, Step::Block { kind, .. } if *kind == wanted)
}

/// The first bytes of a frame.
fn shown(hex: &str, bytes: usize) -> &str {
    hex.get(..bytes.saturating_mul(2)).unwrap_or(hex)
}

/// A header or field as bmv2 names it: without the struct of all headers.
fn plain(name: &str) -> &str {
    name.strip_prefix("hdr.").unwrap_or(name)
}

/// The digits of whole bytes.
fn bytes(value: &str) -> String {
    let digits = match value {
        "true" => "1",
        "false" => "0",
        _ => value.strip_prefix("0x").unwrap_or(value),
    };
    if digits.len() % 2 == 0 { digits.to_owned() } else { format!("0{digits}") }
}

/// A number in hexadecimal, as short as can be.
fn number(value: &str) -> String {
    let digits = value.strip_prefix("0x").unwrap_or(value).trim_start_matches('0');
    if digits.is_empty() { "0".to_owned() } else { digits.to_owned() }
}

/// A number in decimal.
fn decimal(value: &str) -> String {
    let digits = value.strip_prefix("0x").unwrap_or(value);
    num_bigint::BigUint::parse_bytes(digits.as_bytes(), 16)
        .map_or_else(|| value.to_owned(), |number| number.to_string())
}

fn key_line(key: &KeyField, text: &str) -> String {
    format!("* {:<20}: {text}\n", plain(&key.name))
}

/// What an entry matches, and its action.
fn entry_lines(handle: u32, keys: &[KeyField], priority: Option<u32>, action: &str) -> String {
    let keys: String = keys.iter().map(|key| key_line(key, &matched(key))).collect();
    let priority = priority.map_or_else(String::new, |priority| format!("Priority: {priority}\n"));
    format!("Dumping entry {handle}\nMatch key:\n{keys}{priority}Action entry: {action}\n")
}

fn matched(key: &KeyField) -> String {
    let text = key.matched.as_deref().unwrap_or("*");
    if let Some((value, mask)) = text.split_once(" &&& ") {
        format!("{:<10}{} &&& {}", "TERNARY", bytes(value), bytes(mask))
    } else if let Some((low, high)) = text.split_once("..") {
        format!("{:<10}{} -> {}", "RANGE", bytes(low), bytes(high))
    } else if let Some((value, length)) = text.split_once('/') {
        format!("{:<10}{}/{length}", "LPM", bytes(value))
    } else if text == "*" {
        let none: String = bytes(&key.value).chars().map(|_| '0').collect();
        format!("{:<10}{none} &&& {none}", "TERNARY")
    } else {
        format!("{:<10}{}", "EXACT", bytes(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_dataplane::Field;

    fn field(name: &str, value: &str) -> Field {
        Field { name: name.to_owned(), value: value.to_owned() }
    }

    fn journey(
        id: u32,
        parent: Option<u32>,
        kind: JourneyKind,
        steps: Vec<Step>,
        fates: Vec<Fate>,
    ) -> Journey {
        Journey {
            id,
            parent,
            kind,
            path: "normal",
            port: 1,
            rid: 0,
            length: 14,
            steps,
            fates,
            hardware: None,
        }
    }

    fn block(kind: BlockKind) -> Step {
        Step::Block { name: "Any".to_owned(), kind, place: None }
    }

    /// By the formats in the source of bmv2.
    #[test]
    fn a_packet_is_told_in_the_words_of_bmv2() {
        let key = KeyField {
            name: "hdr.ipv4.dstAddr".to_owned(),
            value: "0x0a000001".to_owned(),
            matched: Some("0x0a000000/8".to_owned()),
        };
        let table = Step::Table {
            table: "MyIngress.ipv4_lpm".to_owned(),
            place: None,
            keys: vec![key],
            hit: true,
            entry: Some(3),
            priority: None,
            member: None,
            group: None,
            action: "MyIngress.forward".to_owned(),
            action_place: None,
            args: vec![field("mac", "0x080000000100"), field("port", "0x001")],
        };
        let ingress = vec![
            block(BlockKind::Parser),
            Step::State { name: "start".to_owned(), place: None },
            Step::Extract {
                header: "hdr.ethernet".to_owned(),
                type_name: "ethernet_t".to_owned(),
                bits: 112,
                fields: vec![],
            },
            Step::Select { keys: vec!["0x0800".to_owned()], names: vec![String::new()], case: Some(0) },
            block(BlockKind::Control),
            block(BlockKind::Control),
            table,
            Step::RegisterWrite { register: "MyIngress.r".to_owned(), index: 2, value: "0x0010".to_owned() },
            Step::Log { line: "port 1".to_owned() },
        ];
        let egress = vec![
            block(BlockKind::Control),
            block(BlockKind::Control),
            block(BlockKind::Deparser),
            Step::Emit { header: "hdr.ethernet".to_owned() },
        ];
        let trace = Trace {
            port: 1,
            bytes: "0102030405".to_owned(),
            journeys: vec![
                journey(
                    0,
                    None,
                    JourneyKind::Ingress,
                    ingress,
                    vec![Fate::Forwarded { port: 1, rid: 0, journey: 1 }],
                ),
                journey(
                    1,
                    Some(0),
                    JourneyKind::Egress,
                    egress,
                    vec![Fate::Sent { port: 1, bytes: "0102030405".to_owned() }],
                ),
            ],
            ..Trace::default()
        };
        let lines: Vec<String> = packet_log(&trace, 7, 3).into_iter().map(|(_, line)| line).collect();
        let own = |text: &str| format!("[7.0] [cxt 0] {text}");
        let expected = [
            "Received packet of length 5 on port 1: 010203".to_owned(),
            own("Processing packet received on port 1"),
            own("Parser 'parser': start"),
            own("Parser 'parser' entering state 'start'"),
            own("Extracting header 'ethernet'"),
            own("Parser state 'start': key is 0800"),
            own("Bytes parsed: 14"),
            own("Parser 'parser': end"),
            own("Pipeline 'ingress': start"),
            own("Applying table 'MyIngress.ipv4_lpm'"),
            own("Looking up key:\n* ipv4.dstAddr        : 0a000001\n"),
            own("Table 'MyIngress.ipv4_lpm': hit with handle 3"),
            own("Dumping entry 3\nMatch key:\n* ipv4.dstAddr        : LPM       0a000000/8\n\
                 Action entry: MyIngress.forward - 80000000100,1,\n"),
            own("Action entry is MyIngress.forward - 80000000100,1,"),
            own("Action MyIngress.forward"),
            own("Wrote register 'MyIngress.r' at index 2 with value 16"),
            "port 1".to_owned(),
            own("Pipeline 'ingress': end"),
            own("Egress port is 1"),
            own("Pipeline 'egress': start"),
            own("Pipeline 'egress': end"),
            own("Deparser 'deparser': start"),
            own("Deparsing header 'ethernet'"),
            own("Deparser 'deparser': end"),
            own("Transmitting packet of size 5 out of port 1"),
            "Sending packet of length 5 on port 1: 010203".to_owned(),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn drops_and_copies_are_told() {
        let dropped = Fate::Dropped { reason: "ingress_drop".to_owned(), site: None };
        let cloned = vec![
            Fate::Cloned { session: 5, reparse: None },
            Fate::Forwarded { port: 3, rid: 0, journey: 1 },
            dropped,
        ];
        let mut clone = journey(1, Some(0), JourneyKind::Egress, vec![], vec![]);
        clone.path = "ingress_clone";
        clone.fates = vec![Fate::Dropped { reason: "egress_drop".to_owned(), site: None }];
        let trace = Trace {
            journeys: vec![journey(0, None, JourneyKind::Ingress, vec![], cloned), clone],
            ..Trace::default()
        };
        let lines: Vec<String> = packet_log(&trace, 0, 0).into_iter().map(|(_, line)| line).collect();
        assert_eq!(
            lines,
            [
                "[0.0] [cxt 0] Processing packet received on port 1",
                "[0.0] [cxt 0] Cloning packet at ingress",
                "[0.0] [cxt 0] Egress port is 3",
                "[0.0] [cxt 0] Dropping packet at the end of ingress",
                "[0.1] [cxt 0] Dropping packet at the end of egress",
            ]
        );
    }
}
