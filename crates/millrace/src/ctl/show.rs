//! Answers of a device, for people.

use super::graph;
use super::table::Side::{Left, Right};
use super::table::table;
use millrace_ctl_api::{
    Answer, Changed, PhysicalStatus, PortStatus, ShadowStatus, Stats, SwitchStats, SwitchStatus,
};
use millrace_printable::{counted, printable_line};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Ports that a line of the list of switches has room for; `graph` says all.
const MAX_LISTED_PORTS: usize = 4;

/// What an answer says.
pub(super) fn text(answer: &Answer) -> String {
    match answer {
        Answer::Ready { device } => format!("{} is ready\n", printable_line(device)),
        Answer::Switches(switches) => list(switches),
        Answer::Stats(counted) => stats(counted),
        Answer::Graph(status) => graph::text(status),
        Answer::Text(text) => text.clone(),
        Answer::Changed(what) => changed(what),
        Answer::Shadow(status) => shadow(status),
        Answer::Refused(refused) => format!("{}\n", refused.message),
    }
}

fn list(switches: &[SwitchStatus]) -> String {
    if switches.is_empty() {
        return "no switches\n".to_owned();
    }
    let columns = [
        ("switch", Left),
        ("device id", Right),
        ("tenant", Left),
        ("program", Left),
        ("engine", Left),
        ("worker", Right),
        ("state", Left),
        ("ports", Left),
    ];
    let row = |switch: &SwitchStatus| {
        let state = [
            (true, if switch.is_running { "running" } else { "stopped" }),
            (switch.has_shadow, "shadow"),
            (switch.can_roll_back, "rollback"),
        ];
        let state: Vec<&str> = state.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect();
        [
            switch.name.clone(),
            switch.device_id.to_string(),
            or_dash(switch.tenant.as_deref()),
            or_dash(Some(&switch.program)),
            or_dash(Some(&switch.engine)),
            switch.worker.to_string(),
            match &switch.silent {
                Some(why) => format!("{}: {why}", state.join(", ")),
                None => state.join(", "),
            },
            ports(&switch.ports),
        ]
    };
    table("", columns, switches.iter().map(row))
}

/// A text, or a dash for none.
fn or_dash(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).unwrap_or("-").to_owned()
}

fn ports(ports: &BTreeMap<u32, String>) -> String {
    let mut listed: Vec<String> =
        ports.iter().take(MAX_LISTED_PORTS).map(|(port, to)| format!("{port}@{to}")).collect();
    if ports.len() > MAX_LISTED_PORTS {
        listed.push(format!("and {} more", ports.len() - MAX_LISTED_PORTS));
    }
    listed.join(" ")
}

fn stats(stats: &Stats) -> String {
    let mut text = String::new();
    if !stats.physical.is_empty() {
        text.push_str("physical ports\n");
        physical(&mut text, &stats.physical);
    }
    if let Some(count) = stats.unclassified {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {count} frames belong to no switch");
    }
    for switch in &stats.switches {
        let _ = writeln!(text, "switch {}", printable_line(&switch.name));
        of_switch(&mut text, switch);
    }
    match text.is_empty() {
        true => "no switches\n".to_owned(),
        false => text,
    }
}

fn physical(text: &mut String, ports: &[PhysicalStatus]) {
    let columns = [
        ("port", Left),
        ("device", Left),
        ("rx packets", Right),
        ("rx bytes", Right),
        ("tx packets", Right),
        ("tx bytes", Right),
        ("rx missed", Right),
        ("tx refused", Right),
    ];
    let row = |port: &PhysicalStatus| {
        let [rx, rx_bytes, tx, tx_bytes, missed, refused] =
            [port.rx_packets, port.rx_bytes, port.tx_packets, port.tx_bytes, port.rx_missed, port.tx_refused]
                .map(|count| count.to_string());
        [port.name.clone(), port.device.clone(), rx, rx_bytes, tx, tx_bytes, missed, refused]
    };
    text.push_str(&table("  ", columns, ports.iter().map(row)));
    for (name, why) in ports.iter().filter_map(|port| Some((&port.name, port.failure.as_ref()?))) {
        let _ = writeln!(text, "  port {} is broken: {}", printable_line(name), printable_line(why));
    }
}

fn of_switch(text: &mut String, switch: &SwitchStats) {
    let columns = [
        ("port", Right),
        ("rx packets", Right),
        ("rx bytes", Right),
        ("tx packets", Right),
        ("tx bytes", Right),
    ];
    let row = |port: &PortStatus| {
        [u64::from(port.port), port.rx_packets, port.rx_bytes, port.tx_packets, port.tx_bytes]
            .map(|count| count.to_string())
    };
    if let Some(reason) = &switch.silent {
        let _ = writeln!(text, "  it does not say what it has counted: {}", printable_line(reason));
    }
    if !switch.ports.is_empty() {
        text.push_str(&table("  ", columns, switch.ports.iter().map(row)));
    }
    if switch.silent.is_none() && switch.drops.is_empty() && switch.losses.is_empty() {
        text.push_str("  nothing was dropped\n");
    }
    for (title, reasons) in
        [("dropped", &switch.drops), ("lost on the path to it or from it", &switch.losses)]
    {
        if !reasons.is_empty() {
            let _ = writeln!(text, "  {title}:");
        }
        for (reason, count) in reasons {
            let _ = writeln!(text, "    {count:>8}  {}", printable_line(reason));
        }
    }
    let (ms, us) = (switch.used_ns / 1_000_000, switch.used_ns / 1000 % 1000);
    let _ = writeln!(
        text,
        "  {ms}.{us:03} ms of its worker, {} of P4Runtime and {} refused, {} left out",
        counted(switch.requests, "request"),
        switch.refused_requests,
        counted(switch.lost_notices, "message")
    );
}

fn changed(changed: &Changed) -> String {
    let title = if changed.is_dry_run { "would be done" } else { "done" };
    let mut text = String::new();
    for (title, items) in [(title, &changed.done), ("kept", &changed.kept)] {
        items.iter().for_each(|item| _ = writeln!(text, "{title}: {}", printable_line(item)));
    }
    if changed.done.is_empty() {
        text.push_str(match changed.is_dry_run {
            true => "nothing would change\n",
            false => "nothing has changed\n",
        });
    }
    text
}

fn shadow(shadow: &ShadowStatus) -> String {
    let ShadowStatus { program, compared, same, different, left_out, differences } = shadow;
    let mut text = format!(
        "candidate {}: {compared} packets compared, {same} the same, {different} different, {left_out} left out\n",
        printable_line(program)
    );
    for (at, difference) in differences.iter().enumerate() {
        let _ = writeln!(text, "difference {}:", at + 1);
        difference.lines().for_each(|line| _ = writeln!(text, "  {}", printable_line(line)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(name: &str, tenant: Option<&str>, ports: u32) -> SwitchStatus {
        SwitchStatus {
            name: name.to_owned(),
            device_id: 7,
            tenant: tenant.map(str::to_owned),
            program: format!("{name}.p4"),
            engine: "jit".to_owned(),
            is_running: tenant.is_some(),
            worker: 1,
            ports: (0..ports).map(|port| (port, format!("p{port}"))).collect(),
            can_roll_back: tenant.is_some(),
            has_shadow: tenant.is_some(),
            silent: None,
        }
    }

    #[test]
    fn switches_are_a_table() {
        assert_eq!(list(&[]), "no switches\n");
        let wanted = "\
switch  device id  tenant  program    engine  worker  state                      ports
l2              7  blue    l2.p4      jit          1  running, shadow, rollback  0@p0 1@p1
router          7  -       router.p4  jit          1  stopped                    0@p0 1@p1 2@p2 3@p3 and 2 more
";
        assert_eq!(list(&[switch("l2", Some("blue"), 2), switch("router", None, 6)]), wanted);
        let silent = SwitchStatus {
            program: String::new(),
            engine: String::new(),
            silent: Some("the switch is too busy to answer".to_owned()),
            ..switch("l2", None, 1)
        };
        let wanted = "\
switch  device id  tenant  program  engine  worker  state                                      ports
l2              7  -       -        -            1  stopped: the switch is too busy to answer  0@p0
";
        assert_eq!(list(&[silent]), wanted);
    }

    #[test]
    fn counts_stand_under_their_switch() {
        let counted = Stats {
            physical: vec![PhysicalStatus {
                name: "p0".to_owned(),
                device: "packet:veth0".to_owned(),
                rx_packets: 12_345_678_901,
                tx_refused: 2,
                failure: Some("No such\ndevice".to_owned()),
                ..PhysicalStatus::default()
            }],
            unclassified: Some(3),
            switches: vec![
                SwitchStats {
                    name: "l2".to_owned(),
                    ports: vec![PortStatus {
                        port: 10,
                        rx_packets: 5,
                        rx_bytes: 320,
                        ..PortStatus::default()
                    }],
                    drops: [("parser_error".to_owned(), 4)].into(),
                    losses: [("inbox_full".to_owned(), 1)].into(),
                    used_ns: 1_234_567,
                    requests: 9,
                    refused_requests: 1,
                    lost_notices: 2,
                    silent: None,
                },
                SwitchStats { name: "idle".to_owned(), ..SwitchStats::default() },
                SwitchStats {
                    name: "busy".to_owned(),
                    silent: Some("too\nbusy".to_owned()),
                    ..SwitchStats::default()
                },
            ],
        };
        let wanted = "\
physical ports
  port  device         rx packets  rx bytes  tx packets  tx bytes  rx missed  tx refused
  p0    packet:veth0  12345678901         0           0         0          0           2
  port p0 is broken: No such\\u000adevice
  3 frames belong to no switch
switch l2
  port  rx packets  rx bytes  tx packets  tx bytes
    10           5       320           0         0
  dropped:
           4  parser_error
  lost on the path to it or from it:
           1  inbox_full
  1.234 ms of its worker, 9 requests of P4Runtime and 1 refused, 2 messages left out
switch idle
  nothing was dropped
  0.000 ms of its worker, 0 requests of P4Runtime and 0 refused, 0 messages left out
switch busy
  it does not say what it has counted: too\\u000abusy
  0.000 ms of its worker, 0 requests of P4Runtime and 0 refused, 0 messages left out
";
        assert_eq!(stats(&counted), wanted);
        assert_eq!(stats(&Stats::default()), "no switches\n");
    }

    #[test]
    fn changes_and_comparisons_are_told() {
        let what =
            Changed { done: vec!["l2: swapped".into()], kept: vec!["12 entries".into()], is_dry_run: false };
        assert_eq!(changed(&what), "done: l2: swapped\nkept: 12 entries\n");
        assert_eq!(
            changed(&Changed { is_dry_run: true, ..what }),
            "would be done: l2: swapped\nkept: 12 entries\n"
        );
        assert_eq!(changed(&Changed::default()), "nothing has changed\n");
        assert_eq!(changed(&Changed { is_dry_run: true, ..Changed::default() }), "nothing would change\n");
        let status = ShadowStatus {
            program: "new".to_owned(),
            compared: 9,
            same: 8,
            different: 1,
            left_out: 3,
            differences: vec!["switch: sent to 1\ncandidate: dropped\u{1b}[2J\n".to_owned()],
        };
        let wanted = "\
candidate new: 9 packets compared, 8 the same, 1 different, 3 left out
difference 1:
  switch: sent to 1
  candidate: dropped\\u001b[2J
";
        assert_eq!(shadow(&status), wanted);
    }
}
