//! What is shown: two moments of a switch as lines and lists of words.

use millrace_observe_api::{PortStatus, Status, TableStatus};
use millrace_printable::printable_line;
use std::fmt::Write;

/// In which order lists are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Ports by number, tables as in the program.
    #[default]
    Number,
    /// The busiest first.
    Rate,
}

/// A list with a heading for each column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// What it lists.
    pub title: &'static str,
    /// The headings; the first column is left-aligned, the others right-aligned.
    pub columns: &'static [&'static str],
    /// The words of each row.
    pub rows: Vec<Vec<String>>,
}

/// A port of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownPort {
    /// Its number.
    pub number: u32,
    /// Whether its capture is on.
    pub captured: bool,
}

/// What is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Lines about the switch as a whole.
    pub summary: Vec<String>,
    /// The ports.
    pub ports: List,
    /// The ports of the rows of `ports`.
    pub shown_ports: Vec<ShownPort>,
    /// The tables.
    pub tables: List,
    /// The reasons that have dropped something.
    pub drops: List,
    /// The queues.
    pub queues: List,
}

impl View {
    /// What happened between two moments; without the earlier one, since the switch started.
    pub fn new(before: Option<&Status>, now: &Status, order: Order) -> View {
        let seconds = now.now_ns.saturating_sub(before.map_or(0, |before| before.now_ns)) as f64 / 1e9;
        let rate = move |now: u64, before: u64| match seconds > 0.0 {
            true => now.saturating_sub(before) as f64 / seconds,
            false => 0.0,
        };
        let (ports, shown_ports) = ports(before, now, order, &rate);
        View {
            summary: summary(before, now, &rate)
                .iter()
                .map(|line| printable_line(line).into_owned())
                .collect(),
            ports: ports.printable(),
            shown_ports,
            tables: tables(before, now, order, &rate).printable(),
            drops: drops(before, now, &rate).printable(),
            queues: queues(now),
        }
    }

    /// All of it as text.
    pub fn to_text(&self) -> String {
        let mut text = self.summary.join("\n");
        text.push('\n');
        for list in [&self.ports, &self.tables, &self.drops, &self.queues] {
            text.push('\n');
            list.write(&mut text);
        }
        text
    }
}

impl List {
    /// The width of each column: that of its longest word.
    pub fn widths(&self) -> Vec<usize> {
        let headings = self.columns.iter().enumerate();
        let width = |(at, heading): (usize, &&str)| {
            let words = self.rows.iter().filter_map(|row| row.get(at)).map(|word| word.chars().count());
            words.max().unwrap_or(0).max(heading.len())
        };
        headings.map(width).collect()
    }

    /// With words that a terminal only shows: names come from the program of the switch.
    fn printable(mut self) -> List {
        for word in self.rows.iter_mut().flatten() {
            let shown = printable_line(word).into_owned();
            *word = shown;
        }
        self
    }

    fn write(&self, text: &mut String) {
        if self.rows.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}: none", self.title);
            return;
        }
        let widths = self.widths();
        let headings: Vec<String> = self.columns.iter().map(ToString::to_string).collect();
        for row in std::iter::once(&headings).chain(&self.rows) {
            let mut line = String::new();
            for (at, (word, width)) in row.iter().zip(&widths).enumerate() {
                let _ = match at {
                    0 => write!(line, "{word:<width$}"),
                    _ => write!(line, "  {word:>width$}"),
                };
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
}

type Rate<'a> = &'a dyn Fn(u64, u64) -> f64;

fn summary(before: Option<&Status>, now: &Status, rate: Rate<'_>) -> Vec<String> {
    let bursts = before.map_or_else(|| now.bursts.clone(), |before| now.bursts.since(&before.bursts));
    let latency =
        before.map_or_else(|| now.latency_ns.clone(), |before| now.latency_ns.since(&before.latency_ns));
    let words = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |number| format!("{number:.1}"));
    let time = |part| latency.quantile(part).map_or_else(|| "-".to_owned(), duration);
    let tables: u64 = now.tables.iter().map(|table| table.bytes).sum();
    // A switch of a device has no process of its own.
    let memory = match now.process.resident_bytes {
        0 => "-".to_owned(),
        bytes => format!("{}B", scaled(bytes as f64)),
    };
    let mut lines = vec![
        format!(
            "millrace {}  {} ({})  up {}",
            now.version,
            now.program,
            now.engine,
            uptime(now.now_ns / 1_000_000_000)
        ),
        format!(
            "memory {}, tables {}B  packets a burst {}  latency p50 {} p90 {} p99 {}",
            memory,
            scaled(tables as f64),
            words(bursts.mean()),
            time(0.5),
            time(0.9),
            time(0.99)
        ),
    ];
    if now.workers.len() > 1 {
        let earlier = |number: usize| before.and_then(|before| before.workers.get(number));
        let each = now.workers.iter().enumerate().map(|(number, worker)| {
            let before = earlier(number).map_or(0, |worker| worker.rx_packets);
            let processor =
                worker.processor.map_or_else(|| "-".to_owned(), |processor| processor.to_string());
            format!("{processor}: {} pps", scaled(rate(worker.rx_packets, before)))
        });
        lines.push(format!("workers by processor  {}", each.collect::<Vec<_>>().join("  ")));
    }
    lines
}

fn ports(before: Option<&Status>, now: &Status, order: Order, rate: Rate<'_>) -> (List, Vec<ShownPort>) {
    let mut ports: Vec<(&PortStatus, PortStatus)> = now
        .ports
        .iter()
        .map(|port| {
            let earlier = before.into_iter().flat_map(|before| &before.ports);
            let earlier = earlier.into_iter().find(|earlier| earlier.port == port.port).cloned();
            (port, earlier.unwrap_or_default())
        })
        .collect();
    if order == Order::Rate {
        let moved = |(now, before): &(&PortStatus, PortStatus)| {
            (now.rx_packets + now.tx_packets).saturating_sub(before.rx_packets + before.tx_packets)
        };
        ports.sort_by_key(|port| std::cmp::Reverse(moved(port)));
    }
    let captured = |port: u32| now.captures.iter().any(|capture| capture.port == port);
    let lost = |port: &PortStatus| port.rx_missed + port.rx_errors;
    let rows = ports.iter().map(|(now, before)| {
        let of = |number: fn(&PortStatus) -> u64| rate(number(now), number(before));
        vec![
            now.port.to_string(),
            now.interface.clone().unwrap_or_else(|| "-".to_owned()),
            if now.up { "up" } else { "down" }.to_owned(),
            now.speed_mbps.map_or_else(|| "-".to_owned(), |speed| scaled(f64::from(speed) * 1e6)),
            scaled(of(|port| port.rx_packets)),
            scaled(8.0 * of(|port| port.rx_bytes)),
            scaled(of(|port| port.tx_packets)),
            scaled(8.0 * of(|port| port.tx_bytes)),
            now.rx_packets.to_string(),
            now.tx_packets.to_string(),
            (now.rx_drops + lost(now)).to_string(),
            now.tx_drops.to_string(),
            if captured(now.port) { "on" } else { "" }.to_owned(),
            now.mac.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    });
    let rows = rows.collect();
    let shown = ports.iter().map(|(port, _)| ShownPort { number: port.port, captured: captured(port.port) });
    let list = List {
        title: "ports",
        columns: &[
            "port",
            "interface",
            "link",
            "speed",
            "rx pps",
            "rx bit/s",
            "tx pps",
            "tx bit/s",
            "rx packets",
            "tx packets",
            "rx drops",
            "tx drops",
            "capture",
            "mac",
        ],
        rows,
    };
    (list, shown.collect())
}

fn tables(before: Option<&Status>, now: &Status, order: Order, rate: Rate<'_>) -> List {
    let lookups = |table: &TableStatus| Some(table.hits? + table.misses?);
    // Another program may have come meanwhile.
    let earlier = |name: &str| {
        let same = before.filter(|before| before.program == now.program);
        same.into_iter().flat_map(|before| &before.tables).find(|table| table.table == name)
    };
    let mut rows: Vec<(f64, Vec<String>)> = now
        .tables
        .iter()
        .map(|table| {
            let earlier = earlier(&table.table);
            let since = |number: fn(&TableStatus) -> Option<u64>| {
                Some(rate(number(table)?, earlier.and_then(number).unwrap_or(0)))
            };
            let words = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), scaled);
            let looked_up = since(lookups);
            let row = vec![
                table.table.clone(),
                table.entries.to_string(),
                table.max_entries.to_string(),
                words(looked_up),
                words(since(|table| table.misses)),
                scaled(table.bytes as f64),
            ];
            (looked_up.unwrap_or(0.0), row)
        })
        .collect();
    if order == Order::Rate {
        rows.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    }
    List {
        title: "tables",
        columns: &["table", "entries", "size", "lookups/s", "misses/s", "bytes"],
        rows: rows.into_iter().map(|(_, row)| row).collect(),
    }
}

fn drops(before: Option<&Status>, now: &Status, rate: Rate<'_>) -> List {
    let earlier = |reason: &str| before.and_then(|before| before.drops.get(reason)).copied().unwrap_or(0);
    let some = now.drops.iter().filter(|(_, count)| **count > 0);
    let row = |(reason, count): (&String, &u64)| {
        vec![reason.clone(), scaled(rate(*count, earlier(reason))), count.to_string()]
    };
    let of_program = now.drop_sites.iter().map(|site| {
        let known = before.and_then(|before| before.drop_sites.iter().find(|known| known.is_same(site)));
        let pps = rate(site.packets, known.map_or(0, |known| known.packets));
        let place = if site.place.is_empty() { &site.block } else { &site.place };
        vec![format!("  {} {place}", site.request), scaled(pps), site.packets.to_string()]
    });
    let rows = some.map(row).chain(of_program).collect();
    List { title: "drops", columns: &["dropped", "pps", "packets"], rows }
}

fn queues(now: &Status) -> List {
    let rows = now.queues.iter().map(|queue| {
        vec![
            format!("{}/{}", queue.port, queue.priority),
            queue.packets.to_string(),
            queue.max_packets.to_string(),
            queue.drops.to_string(),
        ]
    });
    // Of queues of a plan the size is what it was at most: their limits are several.
    let planned = now.plans.iter().flat_map(|plan| {
        plan.queues.iter().map(|queue| {
            vec![
                format!("{}/{}", plan.port, queue.handle),
                queue.packets.to_string(),
                format!("<{}", queue.largest_packets),
                queue.drops.values().sum::<u64>().to_string(),
            ]
        })
    });
    let rows = rows.chain(planned).collect();
    List { title: "queues", columns: &["queue", "packets", "size", "drops"], rows }
}

/// A number with at most four digits and a unit prefix: `999`, `1.23k`, `45.6M`.
fn scaled(number: f64) -> String {
    let mut number = number;
    for prefix in ["", "k", "M", "G", "T"] {
        if number < 999.5 {
            return match (prefix, number) {
                ("", number) => format!("{number:.0}"),
                (_, number) if number < 9.995 => format!("{number:.2}{prefix}"),
                (_, number) if number < 99.95 => format!("{number:.1}{prefix}"),
                _ => format!("{number:.0}{prefix}"),
            };
        }
        number /= 1000.0;
    }
    format!("{number:.0}P")
}

/// A power of two of nanoseconds, in words.
fn duration(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

fn uptime(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let clock = format!("{}:{:02}:{:02}", rest / 3600, rest % 3600 / 60, rest % 60);
    if days > 0 { format!("{days} d {clock}") } else { clock }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use millrace_observe_api::{
        CaptureStatus, ConfigurationStatus, Distribution, DropSiteStatus, ModeStatus, Process, QueueStatus,
        WorkerStatus,
    };

    /// A switch with two ports and a table, so many seconds after it started.
    pub(crate) fn status(seconds: u64) -> Status {
        let port = |port, rate: u64| PortStatus {
            port,
            up: port == 0,
            rx_packets: seconds * rate,
            rx_bytes: 100 * seconds * rate,
            tx_packets: 2 * seconds * rate,
            tx_bytes: 50 * seconds * rate,
            tx_drops: 7,
            interface: (port == 0).then(|| "eth0".to_owned()),
            mac: (port == 0).then(|| "02:00:00:00:00:01".to_owned()),
            speed_mbps: (port == 0).then_some(10_000),
            ..PortStatus::default()
        };
        Status {
            version: "1.2.3".into(),
            program: "router".into(),
            engine: "jit".into(),
            now_ns: seconds * 1_000_000_000,
            ports: vec![port(0, 10), port(1, 1_234_567)],
            drops: [("ingress_drop".into(), 3 * seconds), ("assert".into(), 0)].into(),
            drop_sites: vec![DropSiteStatus {
                place: "a.p4:7".into(),
                request: "mark_to_drop".into(),
                packets: 3 * seconds,
                ..Default::default()
            }],
            tables: vec![TableStatus {
                table: "ingress.routes".into(),
                entries: 12,
                max_entries: 1024,
                hits: Some(4000 * seconds),
                misses: Some(500 * seconds),
                bytes: 43_400_000,
            }],
            queues: vec![QueueStatus { port: 1, priority: 2, packets: 5, max_packets: 64, drops: 9 }],
            plans: Vec::new(),
            bursts: Distribution { count: 10 * seconds, sum: 25 * seconds, ranges: vec![0, 10 * seconds] },
            latency_ns: Distribution {
                count: seconds,
                sum: 0,
                ranges: [vec![0; 13], vec![seconds]].concat(),
            },
            lost_notices: 0,
            mode: ModeStatus::default(),
            configuration: ConfigurationStatus::default(),
            afdx: None,
            own_end_system: None,
            workers: Vec::new(),
            inputs: Vec::new(),
            plugins: Vec::new(),
            captures: vec![CaptureStatus {
                port: 1,
                incoming: "eth1_in.pcap".into(),
                outgoing: "eth1_out.pcap".into(),
                packets: 0,
                lost: 0,
                error: None,
            }],
            process: Process { resident_bytes: 120_000_000, ..Default::default() },
        }
    }

    #[test]
    fn the_memory_of_a_device_is_not_that_of_one_switch() {
        let mut now = status(60);
        now.process = Process::default();
        let text = View::new(None, &now, Order::Number).to_text();
        assert!(text.contains("\nmemory -, tables 43.4MB  "), "{text}");
    }

    #[test]
    fn rates_are_differences_over_the_time_of_the_switch() {
        let (before, now) = (status(60), status(62));
        let view = View::new(Some(&before), &now, Order::Number);
        let text = "\
millrace 1.2.3  router (jit)  up 0:01:02
memory 120MB, tables 43.4MB  packets a burst 2.5  latency p50 8.2 us p90 8.2 us p99 8.2 us

port  interface  link  speed  rx pps  rx bit/s  tx pps  tx bit/s  rx packets  tx packets  rx drops  tx drops  capture                mac
0          eth0    up  10.0G      10     8.00k      20     4.00k         620        1240         0         7           02:00:00:00:00:01
1             -  down      -   1.23M      988M   2.47M      494M    76543154   153086308         0         7       on                  -

table           entries  size  lookups/s  misses/s  bytes
ingress.routes       12  1024      4.50k       500  43.4M

dropped                pps  packets
ingress_drop             3      186
  mark_to_drop a.p4:7    3      186

queue  packets  size  drops
1/2          5    64      9
";
        assert_eq!(view.to_text(), text);
        assert_eq!(view.shown_ports[1], ShownPort { number: 1, captured: true });
        let by_rate = View::new(Some(&before), &now, Order::Rate);
        assert_eq!(by_rate.ports.rows[0][0], "1");
        assert_eq!(by_rate.shown_ports[0].number, 1);
    }

    #[test]
    fn several_workers_have_a_line() {
        let worker = |processor, rx_packets| WorkerStatus { processor, rx_packets, queue_pairs: Vec::new() };
        let (mut before, mut now) = (status(60), status(62));
        before.workers = vec![worker(Some(4), 100), worker(None, 0)];
        now.workers = vec![worker(Some(4), 300), worker(None, 5_000)];
        let text = View::new(Some(&before), &now, Order::Number).to_text();
        assert!(text.contains("\nworkers by processor  4: 100 pps  -: 2.50k pps\n"), "{text}");
    }

    #[test]
    fn without_numbers_there_are_no_rates() {
        let mut now = status(0);
        (now.tables[0].hits, now.tables[0].misses) = (None, None);
        now.queues.clear();
        now.drop_sites.clear();
        let text = View::new(None, &now, Order::Number).to_text();
        assert!(text.contains("packets a burst -  latency p50 - p90 - p99 -"), "{text}");
        assert!(text.contains("ingress.routes       12  1024          -         -  43.4M"), "{text}");
        assert!(text.ends_with("drops: none\n\nqueues: none\n"), "{text}");
    }

    #[test]
    fn numbers_stay_short() {
        let cases = [
            (0.0, "0"),
            (999.0, "999"),
            (999.6, "1.00k"),
            (1234.0, "1.23k"),
            (9994.0, "9.99k"),
            (9996.0, "10.0k"),
            (99_960.0, "100k"),
            (999_600.0, "1.00M"),
            (5e15, "5P"),
        ];
        cases.iter().for_each(|(number, words)| assert_eq!(scaled(*number), *words));
        assert_eq!([duration(512), duration(65_536), duration(1 << 24)], ["512 ns", "65.5 us", "16.8 ms"]);
        assert_eq!(uptime(90_061), "1 d 1:01:01");
    }
}
