//! What a scheduler at a port costs: how fast workers route frames from memory when the port has a plan, next to none.
//!
//!     cargo bench -p millrace-bench --bench scheduled [-- ROW...]
//!
//! All frames leave by one port, in 4096 flows over all of them; the link takes what comes, so that nothing waits for long and the rate is that of
//! queueing and scheduling. Rates are by the CPU time of the workers' threads. Ratios are medians of rounds that alternate with no plan.

mod lab;

use lab::running::{Running, median};
use lab::{capture, compile, files, switch};
use millrace_dataplane::{PortId, Spread, Worker};
use millrace_drivers::Device;
use millrace_drivers::null::NullDevice;
use millrace_traffic::words;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(200);
const WARM_UP: Duration = Duration::from_millis(100);
const FLOWS: u16 = 4096;
/// Where all frames leave.
const OUT: PortId = 1;

fn main() {
    let allowed = sched_getaffinity(None).expect("the processors of this process");
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).take(2).collect();
    assert!(cores.len() == 2, "two processors are needed");
    let (source, entries, _) = files("router");
    let pipeline = compile(&source);
    let trace = capture(&frames());
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    println!("Mpps of packets sent by CPU time, medians of {ROUNDS} rounds that alternate");
    println!("{:28} {:>9} {:>9} {:>9} {:>9}", "plan", "1 worker", "/ none", "2 workers", "/ 1");
    let run = |plan: &str, cores: &[usize]| {
        let ports = [0, OUT].map(|port| {
            let device = NullDevice::new(if port == 0 { trace.to_str().expect("a path") } else { "-" });
            (port, Box::new(device.expect("a trace")).open(cores.len()).expect("queue pairs"))
        });
        let mut switch = switch(&pipeline, &entries);
        switch.use_best_code().expect("the best code");
        let worker = Worker::with_followers(switch, ports.into(), cores.len(), Spread::Symmetric);
        let mut worker = worker.unwrap_or_else(|error| panic!("{error}"));
        worker.run_on(cores.to_vec());
        for planned in words::parse(plan).unwrap_or_else(|error| panic!("{error}\n{plan}")) {
            worker
                .schedule(planned.port, Some(Arc::new(planned.plan)))
                .unwrap_or_else(|error| panic!("{error}"));
        }
        rate(Running::start(worker, cores.len()))
    };
    for (name, plan) in plans()
        .into_iter()
        .filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str())))
    {
        let mut rates: [Vec<f64>; 3] = Default::default();
        for _ in 0..ROUNDS {
            rates[0].push(run("", &cores[..1]));
            rates[1].push(run(&plan, &cores[..1]));
            rates[2].push(run(&plan, &cores));
        }
        let ratio = |two: usize, one: usize| {
            median(rates[two].iter().zip(&rates[one]).map(|(two, one)| two / one).collect())
        };
        let (of_none, of_one) = (ratio(1, 0), ratio(2, 1));
        let [_, one, two] = rates.map(median);
        println!("{name:28} {one:>9.2} {of_none:>9.3} {two:>9.2} {of_one:>9.2}");
    }
    std::fs::remove_file(Path::new(&trace)).expect("the trace");
}

/// Millions of packets sent in a second of a worker's time.
fn rate(running: Running) -> f64 {
    let sent = |running: &Running| {
        let report = running.control.report(Duration::from_secs(10)).expect("a report");
        let port = report.ports.iter().find(|port| port.port == OUT).expect("the port");
        port.counters.tx_packets
    };
    std::thread::sleep(WARM_UP);
    let (before, sent_before) = (running.now(), sent(&running));
    std::thread::sleep(ROUND);
    let (after, sent_after) = (running.now(), sent(&running));
    running.stop();
    let times = before.iter().zip(&after).map(|(before, after)| (after.1 - before.1).as_secs_f64());
    let mean = times.sum::<f64>() / before.len() as f64;
    (sent_after - sent_before) as f64 / mean / 1e6
}

/// 64-byte frames of UDP over IPv4, each of a flow of its own, all for one port; each eighth has the same class.
fn frames() -> Vec<Vec<u8>> {
    let frame = |flow: u16| {
        let mut frame = vec![2, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 8, 0];
        let tos = (flow % 8) as u8 * 32;
        let mut header =
            [0x45, tos, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 5, 10, 0, 1, (flow % 250) as u8 + 1];
        let words = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum: u32 = words.sum();
        let folded = (sum >> 16) + (sum & 0xffff);
        let checksum = !(((folded >> 16) + folded) as u16);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        frame.extend(header);
        frame.extend([flow.to_be_bytes(), 4000u16.to_be_bytes(), 26u16.to_be_bytes(), [0, 0]].concat());
        frame.resize(60, 0);
        frame
    };
    (0..FLOWS).map(frame).collect()
}

/// Plans of the port, by name.
fn plans() -> Vec<(&'static str, String)> {
    let port = format!("port {OUT} buffer 16mb\n");
    let mut classes = format!("{port}qdisc add root handle 1: prio bands 8\n");
    for band in 1..=8 {
        let _ = writeln!(
            classes,
            "qdisc add parent 1:{band} handle {band}0: pfifo limit 1000 classes {}",
            8 - band
        );
    }
    let flows = |flows: u32| format!("{port}qdisc add root handle 1: fq flows {flows} quantum 1600\n");
    vec![
        ("one queue", format!("{port}qdisc add root handle 1: pfifo limit 1000\n")),
        ("8 classes, one has packets", classes.clone()),
        ("drr over 64 queues", flows(64)),
        ("drr over 4096 queues", flows(4096)),
    ]
}
