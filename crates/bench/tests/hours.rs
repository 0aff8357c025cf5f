//! A switch whose ports lose, change, cut and double frames, for simulated hours: every frame is accounted for, timers are right, the
//! same seed gives the same again with both engines, and memory does not grow.
//!
//!     cargo test --release -p millrace-bench --test hours                          ten minutes
//!     cargo test --release -p millrace-bench --test hours -- --ignored --nocapture   twelve hours

use millrace_compile::{Options, Source, Standard, check};
use millrace_control::commands::Executor;
use millrace_control::entries::load;
use millrace_dataplane::{EngineKind, QueueConfig, Summary, Switch, SwitchConfig, Worker};
use millrace_drivers::null::frame_digest;
use millrace_drivers::{
    Around, FaultInjector, Faults, PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted,
};
use millrace_frames::{Batch, PacketPool};
use std::ops::ControlFlow;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex};

const SECOND: u64 = 1_000_000_000;
/// Frames of a flow that come closer than that are no gap.
const GAP_NS: u64 = 60 * SECOND;
const FLOWS: u64 = 24;
const FAULTS: Faults = Faults { drop: 3, corrupt: 3, truncate: 3, duplicate: 3 };

/// Frames by a clock of their own: about nine a second of [`FLOWS`] flows, of which some pause for minutes.
struct Clockwork {
    port: u64,
    random: u64,
    next_ns: u64,
    end_ns: u64,
    statistics: PortStatistics,
    seen: Arc<Mutex<Seen>>,
}

/// What was seen of both ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Frames made.
    made: u64,
    /// When the first frame came to the switch, and the last of each flow.
    first_ns: Option<u64>,
    last_ns: Vec<Option<u64>>,
    /// How often a flow came after a gap.
    gaps: Vec<u32>,
    /// The sum of the digests of the frames that left, each with its port and time.
    left: u64,
    digest: u64,
}

impl Clockwork {
    fn new(port: u64, seed: u64, seconds: u64, seen: &Arc<Mutex<Seen>>) -> Clockwork {
        let mut clockwork = Clockwork {
            port,
            random: seed.wrapping_add(port),
            next_ns: SECOND,
            end_ns: seconds * SECOND,
            statistics: PortStatistics::default(),
            seen: Arc::clone(seen),
        };
        clockwork.go_on();
        clockwork
    }

    /// xorshift64* of Marsaglia and Vigna.
    fn random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// The next frame comes up to 219 ms later, and no two at one time of both ports.
    fn go_on(&mut self) {
        let wait = self.random() % 109_000_000;
        self.next_ns += 2 * wait + 2;
        self.next_ns = self.next_ns / 2 * 2 + self.port;
    }

    fn frame(&mut self) -> Vec<u8> {
        let length = 60 + (self.random() % 1400) as usize;
        let mut frame = vec![0; length];
        let minute = self.next_ns / GAP_NS;
        let mut flow = self.random() % FLOWS;
        // Flows of a group are silent for two of five minutes.
        if (minute + flow) % 5 < 2 {
            flow = (minute + 3) % FLOWS;
        }
        frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, flow as u8]);
        frame
    }
}

impl QueuePair for Clockwork {
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        if self.next_ns >= self.end_ns {
            return Ok(Received::End);
        }
        let frame = self.frame();
        let Some(packet) = batch.add(pool) else { return Ok(Received::More) };
        packet.set_frame(&frame).expect("a frame has room");
        packet.timestamp_ns = self.next_ns;
        self.statistics.received(&frame);
        self.seen.lock().unwrap().made += 1;
        self.go_on();
        Ok(Received::More)
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let mut seen = self.seen.lock().unwrap();
        for packet in batch.packets() {
            self.statistics.sent(packet.data());
            seen.left += 1;
            let digest = u64::from(frame_digest(self.port as u32, packet.data()));
            seen.digest = seen.digest.wrapping_mul(31).wrapping_add(digest ^ packet.timestamp_ns);
        }
        let sent = batch.len();
        batch.recycle(pool);
        Ok(Transmitted { sent, refused: 0 })
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn poll_fd(&self) -> Option<RawFd> {
        None
    }

    fn time_source(&self) -> TimeSource {
        TimeSource::Simulated
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        (self.next_ns < self.end_ns).then_some(self.next_ns)
    }

    fn statistics(&self) -> PortStatistics {
        self.statistics
    }
}

/// Writes down what comes to the switch, after the faults.
struct Recorder {
    port: FaultInjector<Clockwork>,
    seen: Arc<Mutex<Seen>>,
}

impl Around for Recorder {
    type Inner = FaultInjector<Clockwork>;

    fn inner(&self) -> &Self::Inner {
        &self.port
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        &mut self.port
    }

    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        let before = batch.len();
        let received = QueuePair::receive(&mut self.port, batch, pool);
        let mut seen = self.seen.lock().unwrap();
        for packet in &batch.packets()[before..] {
            let now_ns = packet.timestamp_ns;
            let first_ns = *seen.first_ns.get_or_insert(now_ns);
            if packet.len() < 14 {
                continue;
            }
            let flow = usize::from(packet.data()[11]);
            // Programs count in microseconds since the first frame.
            let now_us = (now_ns - first_ns) / 1000;
            if let Some(last_us) = seen.last_ns[flow].replace(now_us)
                && now_us - last_us > GAP_NS / 1000
            {
                seen.gaps[flow] += 1;
            }
        }
        received
    }
}

fn switch(engine: EngineKind) -> Switch {
    let text = include_str!("hours.p4");
    let checked = check(Source::Text("hours.p4", text), Standard::P4_16, &Options::default());
    assert!(!checked.has_errors(), "{:?}", checked.findings);
    let program = checked.lower().unwrap();
    let queues = QueueConfig { priorities: 4, ..QueueConfig::default() };
    let config = SwitchConfig { engine, queues, ..SwitchConfig::default() };
    let mut switch = Switch::new(program, config).unwrap();
    // Two frames in five seconds of a flow, and bursts of three; queues are slower than the frames that come.
    let set_up = "meter_array_set_rates I.rate 0.0000004:3 0.0000008:6\nset_queue_depth 12\nset_queue_rate 1";
    assert!(load(&mut switch, set_up).is_ok());
    switch
}

/// What a runtime command answers.
fn ask(switch: &mut Switch, command: &str) -> String {
    let mut said = String::new();
    let handle = switch.state().handle();
    let mut tables = handle.lock();
    let mut executor = Executor::new(switch, &mut tables);
    millrace_commands::read(command, |line| {
        said += &line.and_then(|line| executor.run(&line)).unwrap().to_string();
        ControlFlow::Continue(())
    });
    said
}

/// Runs a switch for so long. Gives what was seen, and how it ended.
fn run(engine: EngineKind, seconds: u64) -> (Seen, Summary) {
    let seen = Seen { last_ns: vec![None; 256], gaps: vec![0; 256], ..Seen::default() };
    let seen = Arc::new(Mutex::new(seen));
    let ports = [0u64, 1].map(|port| {
        let clockwork = Clockwork::new(port, 0x5eed, seconds, &seen);
        let faults = FaultInjector::new(clockwork, FAULTS, 77 + port);
        let recorder = Recorder { port: faults, seen: Arc::clone(&seen) };
        (port as u32, Box::new(recorder) as Box<dyn QueuePair>)
    });
    let summary = Worker::new(switch(engine), ports.into()).unwrap().run();
    let seen = seen.lock().unwrap().clone();
    (seen, summary)
}

/// Every frame is accounted for, by the faults, the switch and its queues, and timers have gone off as often as there were gaps.
fn check_balance(seen: &Seen, mut summary: Summary) {
    assert!(summary.failed.is_empty(), "{:?}", summary.failed);
    let counters = summary.switch.counters().clone();
    let sum = |of: fn(&PortStatistics) -> u64| summary.ports.iter().map(|(_, port)| of(port)).sum::<u64>();
    let (received, sent): (u64, u64) =
        counters.ports().fold((0, 0), |(rx, tx), (_, port)| (rx + port.rx_packets, tx + port.tx_packets));
    let drops: Vec<(String, u64)> =
        counters.all_drops().map(|(reason, count)| (reason.label(summary.switch.program()), count)).collect();
    let dropped: u64 = drops.iter().map(|(_, count)| count).sum();
    println!(
        "{} frames made, {} lost, {received} received, {sent} sent, {drops:?}",
        seen.made,
        sum(|port| port.rx_missed)
    );
    assert_eq!(received, sum(|port| port.rx_packets), "the switch has what its ports have handed over");
    assert_eq!((sent, sent), (seen.left, sum(|port| port.tx_packets)));
    // All queues are empty at the end of simulated time.
    assert_eq!(received, sent + dropped, "received = sent + dropped by reason");
    for reason in ["queue_full", "ingress_drop"] {
        let count = drops.iter().find(|(known, _)| known == reason).map_or(0, |(_, count)| *count);
        assert!(count > 0, "{reason} happens: {drops:?}");
    }
    let expired = ask(&mut summary.switch, "register_read I.expired");
    let gaps: Vec<String> = seen.gaps.iter().map(u32::to_string).collect();
    assert!(seen.gaps.iter().sum::<u32>() > 0, "some flow pauses");
    assert!(expired.contains(&gaps.join(", ")), "{expired}\n{}", gaps.join(", "));
}

/// Bytes of memory that this process has in use.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn hours(seconds: u64) {
    // Code and tables are there, and the allocator has what it keeps.
    run(EngineKind::Fastest, 300);
    let before = resident();
    let (seen, summary) = run(EngineKind::Fastest, seconds);
    check_balance(&seen, summary);
    let grown = resident().saturating_sub(before);
    println!("{} KiB more memory", grown >> 10);
    assert!(grown < 2 << 20, "{grown} bytes more memory");
    let (again, summary) = run(EngineKind::Interp, seconds);
    assert_eq!(again, seen, "the interpreter does the same");
    check_balance(&again, summary);
}

#[test]
fn ten_simulated_minutes_balance() {
    hours(600);
}

#[test]
#[ignore = "takes a minute"]
fn twelve_simulated_hours_balance() {
    hours(12 * 3600);
}
