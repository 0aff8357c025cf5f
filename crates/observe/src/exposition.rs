//! A status as metrics for Prometheus, in the OpenMetrics text format 1.0.0.

mod families;
mod kinds;
mod many;

use families::{Families, Labels, Samples};
use millrace_dataplane::MODES;
use millrace_observe_api::{
    CaptureStatus, ChassisStatus, DropSiteStatus, FlowStatus, OwnEndSystemStatus, PlanQueueStatus,
    PluginStatus, PortStatus, Process, QueuePairStatus, QueueStatus, Status, StepStatus, TableStatus,
    WorkerStatus,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// The type of what [`metrics`] gives, for HTTP.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of a status.
pub fn metrics(status: &Status) -> String {
    let mut out = Families::default();
    build(&mut out, &status.version);
    switch(&mut out, status);
    // A switch of a device has no process of its own.
    if status.process != Process::default() {
        process(&mut out, &status.process);
    }
    out.into_text()
}

/// The metrics of a device with many switches, those of each with its name as the label `switch`.
pub fn metrics_of_many(device: &ChassisStatus) -> String {
    let mut out = Families::default();
    build(&mut out, &device.version);
    many::device(&mut out, device);
    for (name, status) in &device.switches {
        out.switch = Some(name.clone());
        switch(&mut out, status);
    }
    out.switch = None;
    device.process.iter().for_each(|of_device| process(&mut out, of_device));
    out.into_text()
}

/// The shortest time that has a range of its own: 2^8 nanoseconds.
const SHORTEST: usize = 8;

fn build(out: &mut Families, version: &str) {
    out.info("millrace_build", "The software", &[("version", version)]);
}

/// All that is of a switch alone.
fn switch(out: &mut Families, status: &Status) {
    let program = [("program", status.program.as_str()), ("engine", status.engine.as_str())];
    out.info("millrace_program", "The program that runs", &program);
    modes(out, status);
    own_end_system(out, status);
    ports(out, status);
    let drops = status.drops.iter().map(|(reason, count)| (vec![("reason", reason.clone())], *count));
    out.counters("millrace_drops", "Packets and copies dropped", None, drops.collect());
    drop_sites(out, status);
    tables(out, status);
    queues(out, status);
    workers(out, status);
    out.histogram("millrace_burst_packets", "Packets of each burst", None, &status.bursts, 0..7, 1.0);
    let powers = SHORTEST..status.latency_ns.ranges.len().saturating_sub(1);
    let help = "From the arrival of a packet until it was on its way out, of one burst in 32";
    out.histogram("millrace_latency", help, Some(Unit::Seconds), &status.latency_ns, powers, 1e9);
    let help = "Digests and log lines of the program that came too fast to be taken";
    out.counters("millrace_notices_lost", help, None, vec![(vec![], status.lost_notices)]);
    captures(out, status);
    inputs(out, status);
    plugins(out, status);
}

fn modes(out: &mut Families, status: &Status) {
    let each = MODES.iter().map(|conduct| {
        let is_it = u64::from(conduct.name == status.mode.mode);
        (vec![("mode", conduct.name.to_owned())], is_it)
    });
    out.gauges("millrace_mode", "1 for the mode of the switch, 0 for the others", None, each.collect());
    let help = "Changes of the mode";
    out.counters("millrace_mode_changes", help, None, vec![(vec![], status.mode.changes)]);
}

/// What happened to those who ask the switch's own end system.
fn own_end_system(out: &mut Families, status: &Status) {
    let Some(own) = &status.own_end_system else { return };
    let OwnEndSystemStatus { frames, discarded, echoes, requests, answers, no_way, busy, refused } = *own;
    let each = [
        ("frames", frames),
        ("discarded", discarded),
        ("echoes", echoes),
        ("requests", requests),
        ("answers", answers),
        ("no_way", no_way),
        ("busy", busy),
        ("refused", refused),
    ];
    let samples = each.map(|(what, count)| (vec![("what", what.to_owned())], count));
    let help = "What came to the end system of the switch, and what became of it";
    out.counters("millrace_own_end_system", help, None, samples.into());
}

fn ports(out: &mut Families, status: &Status) {
    let each = |number: fn(&PortStatus) -> u64| -> Samples {
        status.ports.iter().map(|port| (vec![("port", port.port.to_string())], number(port))).collect()
    };
    let up = "1 while packets can come and go: the driver works, the input has not ended, the link is up";
    out.gauges("millrace_port_up", up, None, each(|port| port.up.into()));
    let known = |word: &Option<String>| word.clone().unwrap_or_default();
    let infos = status.ports.iter().map(|port| {
        let labels = vec![
            ("port", port.port.to_string()),
            ("interface", known(&port.interface)),
            ("mac", known(&port.mac)),
            ("spec", known(&port.spec)),
        ];
        (labels, 1)
    });
    out.gauges("millrace_port_info", "What the port is connected to", None, infos.collect());
    let speeds = status.ports.iter().filter_map(|port| {
        Some((vec![("port", port.port.to_string())], u64::from(port.speed_mbps?) * 1_000_000 / 8))
    });
    let help = "The speed of the link a second, where the interface knows one";
    out.gauges("millrace_port_speed", help, Some(Unit::Bytes), speeds.collect());
    let mut counters =
        |name, help, unit, number| out.counters(&format!("millrace_port_{name}"), help, unit, each(number));
    let bytes = Some(Unit::Bytes);
    counters("receive_packets", "Packets taken from the port", None, |port| port.rx_packets);
    counters("receive", "Bytes taken from the port", bytes.clone(), |port| port.rx_bytes);
    let help = "Packets from the port that were dropped before they had a port to leave by";
    counters("receive_drops", help, None, |port| port.rx_drops);
    let help = "Packets that arrived and that nobody fetched in time";
    counters("receive_missed", help, None, |port| port.rx_missed);
    let help = "Packets that arrived and were longer than a frame can be, or damaged";
    counters("receive_errors", help, None, |port| port.rx_errors);
    let help = "Packets that the input holds only the beginning of";
    counters("receive_truncated", help, None, |port| port.rx_truncated);
    counters("transmit_packets", "Packets sent", None, |port| port.tx_packets);
    counters("transmit", "Bytes sent", bytes, |port| port.tx_bytes);
    let help = "Packets and copies for the port that were dropped";
    counters("transmit_drops", help, None, |port| port.tx_drops);
    let help = "Packets that the link did not take, which are among the drops";
    counters("transmit_refused", help, None, |port| port.tx_refused);
    kinds::write(out, status)
}

fn drop_sites(out: &mut Families, status: &Status) {
    let labels = |site: &DropSiteStatus| {
        vec![
            ("place", site.place.clone()),
            ("block", site.block.clone()),
            ("request", site.request.clone()),
            ("called_at", if site.called_at > 0 { site.called_at.to_string() } else { String::new() }),
            ("table", site.tables.join(",")),
        ]
    };
    let each = status.drop_sites.iter().map(|site| (labels(site), site.packets));
    let help = "Packets and copies that this place of the program asked to drop, since the program runs";
    out.counters("millrace_program_drops", help, None, each.collect())
}

fn tables(out: &mut Families, status: &Status) {
    let of = |table: &TableStatus| vec![("table", table.table.clone())];
    let each = |number: fn(&TableStatus) -> u64| -> Samples {
        status.tables.iter().map(|table| (of(table), number(table))).collect()
    };
    out.gauges("millrace_table_entries", "Entries of the table", None, each(|table| table.entries));
    let help = "Entries that the table has room for";
    out.gauges("millrace_table_max_entries", help, None, each(|table| table.max_entries));
    let help = "Memory that the table takes";
    out.gauges("millrace_table_memory", help, Some(Unit::Bytes), each(|table| table.bytes));
    let mut lookups = Samples::new();
    for table in &status.tables {
        for (result, count) in [("hit", table.hits), ("miss", table.misses)] {
            let labels = || [of(table), vec![("result", result.to_owned())]].concat();
            lookups.extend(count.map(|count| (labels(), count)));
        }
    }
    out.counters("millrace_table_lookups", "Lookups of the table by packets", None, lookups)
}

fn queues(out: &mut Families, status: &Status) {
    let each = |number: fn(&QueueStatus) -> u64| -> Samples {
        let labels = |queue: &QueueStatus| {
            vec![("port", queue.port.to_string()), ("priority", queue.priority.to_string())]
        };
        status.queues.iter().map(|queue| (labels(queue), number(queue))).collect()
    };
    let help = "Packets that wait in the queue";
    out.gauges("millrace_queue_packets", help, None, each(|queue| queue.packets.into()));
    let help = "Packets that the queue holds at most";
    out.gauges("millrace_queue_max_packets", help, None, each(|queue| queue.max_packets.into()));
    let help = "Packets that the queue had no room for";
    out.counters("millrace_queue_drops", help, None, each(|queue| queue.drops));
    plans(out, status)
}

/// The queues of ports with a plan.
fn plans(out: &mut Families, status: &Status) {
    let queues = || status.plans.iter().flat_map(|plan| plan.queues.iter().map(|queue| (plan.port, queue)));
    let labels = |port: u32, queue: &PlanQueueStatus| {
        vec![("port", port.to_string()), ("queue", queue.handle.clone())]
    };
    let each = |number: fn(&PlanQueueStatus) -> u64| -> Samples {
        queues().map(|(port, queue)| (labels(port, queue), number(queue))).collect()
    };
    let bytes = || Some(Unit::Bytes);
    out.gauges(
        "millrace_tc_waiting_packets",
        "Packets that wait in the queue",
        None,
        each(|queue| queue.packets),
    );
    out.gauges("millrace_tc_waiting", "Bytes that wait in the queue", bytes(), each(|queue| queue.bytes));
    let help = "Most bytes that have waited in the queue together";
    out.gauges("millrace_tc_largest", help, bytes(), each(|queue| queue.largest_bytes));
    out.counters("millrace_tc_sent_packets", "Packets that left the queue", None, each(|queue| queue.sent));
    out.counters("millrace_tc_sent", "Bytes that left the queue", bytes(), each(|queue| queue.sent_bytes));
    let help = "Packets that the queue marked for congestion";
    out.counters("millrace_tc_marked_packets", help, None, each(|queue| queue.marked));
    let help = "Nanoseconds that packets which left the queue have waited, all together";
    out.counters("millrace_tc_delay_nanoseconds", help, None, each(|queue| queue.delay_ns));
    let help = "The longest of these times, in nanoseconds";
    out.gauges("millrace_tc_largest_delay_nanoseconds", help, None, each(|queue| queue.largest_delay_ns));
    let drops = queues().flat_map(|(port, queue)| {
        queue.drops.iter().map(move |(why, count)| {
            let mut labels = labels(port, queue);
            labels.push(("reason", why.clone()));
            (labels, *count)
        })
    });
    out.counters("millrace_tc_drops", "Packets that the queue dropped, by reason", None, drops.collect())
}

fn workers(out: &mut Families, status: &Status) {
    let labels = |number: usize, worker: &WorkerStatus| {
        let processor = worker.processor.map_or_else(String::new, |processor| processor.to_string());
        vec![("worker", number.to_string()), ("processor", processor)]
    };
    let packets =
        status.workers.iter().enumerate().map(|(number, worker)| (labels(number, worker), worker.rx_packets));
    out.counters(
        "millrace_worker_receive_packets",
        "Packets that the worker has switched",
        None,
        packets.collect(),
    );
    let each = status.workers.iter().enumerate();
    let pairs = each.flat_map(|(number, worker)| worker.queue_pairs.iter().map(move |pair| (number, pair)));
    let one = |(number, pair): (usize, &QueuePairStatus)| {
        let labels = vec![
            ("worker", number.to_string()),
            ("port", pair.port.to_string()),
            ("queue", pair.queue.to_string()),
        ];
        (labels, 1)
    };
    out.gauges(
        "millrace_worker_queue_pair",
        "1: the worker has the queue pair of the port",
        None,
        pairs.map(one).collect(),
    )
}

fn captures(out: &mut Families, status: &Status) {
    let each = |number: fn(&CaptureStatus) -> u64| -> Samples {
        let labels = |port: u32| vec![("port", port.to_string())];
        status.captures.iter().map(|capture| (labels(capture.port), number(capture))).collect()
    };
    let help = "Packets captured since the capture of the port is on";
    out.counters("millrace_capture_packets", help, None, each(|capture| capture.packets));
    let help = "Packets left out of the capture";
    out.counters("millrace_capture_lost", help, None, each(|capture| capture.lost))
}

fn inputs(out: &mut Families, status: &Status) {
    let labels = |step: &StepStatus| {
        vec![
            ("port", step.port.to_string()),
            ("direction", step.direction.clone()),
            ("step", step.step.to_string()),
            ("plugin", step.plugin.clone()),
        ]
    };
    let packets = status.inputs.iter().flat_map(|step| {
        let results = [("passed", step.passed), ("accounted", step.accounted), ("dropped", step.dropped)];
        results.map(|(result, count)| ([labels(step), vec![("result", result.to_owned())]].concat(), count))
    });
    let help = "Packets at this step of the chain of a port; an account lets those go on that it counts";
    out.counters("millrace_input_packets", help, None, packets.collect());
    let of_flows = |number: fn(&FlowStatus) -> u64| -> Samples {
        let each = status.inputs.iter().filter_map(|step| Some((labels(step), number(step.flows.as_ref()?))));
        each.collect()
    };
    out.gauges(
        "millrace_input_flows",
        "Flows that are in the table of the step",
        None,
        of_flows(|flows| flows.flows),
    );
    let help = "Records of flows that are in the file of the step";
    out.counters("millrace_input_flow_records", help, None, of_flows(|flows| flows.records));
    let help = "Records of flows that came too fast, or could not be written";
    out.counters("millrace_input_flow_records_lost", help, None, of_flows(|flows| flows.lost))
}

fn plugins(out: &mut Families, status: &Status) {
    let labels = |plugin: &PluginStatus| vec![("plugin", plugin.name.clone())];
    let each = |number: fn(&PluginStatus) -> u64| -> Samples {
        status.plugins.iter().map(|plugin| (labels(plugin), number(plugin))).collect()
    };
    let help = "Whether the plugin answers: 1, or 0 when it is missing, off, or has failed too often";
    out.gauges("millrace_plugin_on", help, None, each(|plugin| u64::from(plugin.state == "on")));
    let help = "Calls of the plugin";
    out.counters("millrace_plugin_calls", help, None, each(|plugin| plugin.calls));
    let help = "Fuel of the calls of the plugin, about one unit an instruction";
    out.counters("millrace_plugin_fuel", help, None, each(|plugin| plugin.fuel));
    let help = "Time of the calls of the plugin in nanoseconds, from one in 64 of them";
    out.counters("millrace_plugin_nanoseconds", help, None, each(|plugin| plugin.nanoseconds));
    let failures = status.plugins.iter().flat_map(|plugin| {
        let reasons = [("trap", plugin.traps), ("over_budget", plugin.over_budget)];
        reasons.map(|(reason, count)| ([labels(plugin), vec![("reason", reason.to_owned())]].concat(), count))
    });
    let help = "Calls of the plugin that failed";
    out.counters("millrace_plugin_failures", help, None, failures.collect());
    let help = "Packets that came while the plugin was missing or off";
    out.counters("millrace_plugin_unanswered", help, None, each(|plugin| plugin.unanswered));
    let help = "Packets that the plugin, or its policy, had dropped";
    out.counters("millrace_plugin_drops", help, None, each(|plugin| plugin.drops));
    let help = "Payloads that the plugin has changed";
    out.counters("millrace_plugin_rewrites", help, None, each(|plugin| plugin.rewrites));
    let help = "Packets that the plugin has answered with";
    out.counters("millrace_plugin_replies", help, None, each(|plugin| plugin.replies))
}

fn process(out: &mut Families, process: &Process) {
    let one = |number| vec![(vec![], number)];
    let bytes = Some(Unit::Bytes);
    let help = "Memory that the process has in use";
    out.gauges("process_resident_memory", help, bytes.clone(), one(process.resident_bytes));
    let help = "Addresses that the process has";
    out.gauges("process_virtual_memory", help, bytes, one(process.virtual_bytes));
    let help = "When the process started, since 1970";
    out.seconds("process_start_time", help, MetricType::Gauge, vec![(vec![], process.start_seconds)]);
    let help = "Processor time that the process took";
    out.seconds("process_cpu", help, MetricType::Counter, vec![(vec![], process.cpu_seconds)])
}

#[cfg(test)]
mod tests;
