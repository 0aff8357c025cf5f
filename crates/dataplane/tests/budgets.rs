//! What packets may cost: bytes, copies, steps, and the time of everybody else. The expected numbers are by hand.

use millrace_dataplane::{
    DropReason, EngineKind, MIN_PACKET_MEMORY, Outcome, QueueConfig, Replica, Request, Switch, SwitchConfig,
    Worker,
};
use millrace_drivers::{FarEnd, MemoryPort, Next};
use millrace_pipeline::{Program, text, verify};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Operation 3 multicasts to the group of the second byte.
const THROUGH: &str = include_str!("programs/through.mir");

/// Egress weighs 32770 steps: two words for each of a million members of a set, 64 words a step, and one for each block.
const HEAVY: &str = "program heavy
architecture t
errors (NoError)
ingress (i) egress (e)
intrinsic multicast_group = group
intrinsic egress_spec = port
metadata group: bit<32>
metadata port: bit<32>
metadata key: bit<16>
metadata found: bit<1>
value_set vs (key: bit<16> exact) size 1048576
body control i { block0: group = 32w1 end }
body control e {
block0: select (key) { (in vs) => block1 default => block2 }
block1: found = 1w1 end
block2: end
}
";

fn program(source: &str) -> Arc<Program> {
    let program = text::parse(source).unwrap_or_else(|error| panic!("{error}"));
    verify::verify(&program).unwrap();
    Arc::new(program)
}

/// A switch that runs a program, with a group 1 of so many copies to port 0.
fn switch(source: &str, copies: u32, config: SwitchConfig) -> Switch {
    let mut switch = Switch::new(program(source), config).unwrap();
    let groups = switch.replication_mut();
    groups.create_group(1).unwrap();
    groups.set_copies(1, (0..copies).map(|rid| Replica { port: 0, rid: rid as u16 }).collect()).unwrap();
    switch
}

fn dropped(outcome: &Outcome, reason: DropReason) -> usize {
    outcome.drops.iter().filter(|drop| drop.reason == reason).count()
}

#[test]
fn packets_that_wait_share_a_budget_of_bytes() {
    let mut long = vec![0; 9000];
    long[..2].copy_from_slice(&[3, 1]);
    let outcomes = EngineKind::HERE.iter().map(|&engine| {
        let queues = QueueConfig { packet_memory: MIN_PACKET_MEMORY, ..QueueConfig::default() };
        let config = SwitchConfig { engine, queues, ..SwitchConfig::default() };
        let mut switch = switch(THROUGH, 120, config);
        let frames = || (0..64).map(|_| (0, long.as_slice()));
        let outcome = switch.inject_batch(frames(), 0);
        // 64 packets to 120 ports are 69 MB; a mebibyte has room for at most 116 frames.
        let sent = outcome.sent.len();
        assert!((90..=116).contains(&sent), "{sent} sent");
        assert_eq!(sent + dropped(&outcome, DropReason::PacketMemory), 64 * 120);
        // What has left takes no room.
        assert_eq!(switch.inject_batch(frames(), 0), outcome);
        outcome
    });
    let outcomes: Vec<Outcome> = outcomes.collect();
    assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]));
}

#[test]
fn the_copies_of_a_packet_share_its_steps() {
    let outcomes = EngineKind::HERE.iter().map(|&engine| {
        let mut switch = switch(HEAVY, 1000, SwitchConfig { engine, ..SwitchConfig::default() });
        let outcome = switch.inject(0, &[0], 0);
        // 8388608 steps: 255 copies leave some, the next one takes the last of them.
        assert_eq!((outcome.sent.len(), dropped(&outcome, DropReason::JourneyLimit)), (256, 744));
        // Another packet has steps of its own.
        assert_eq!(switch.inject(0, &[0], 0).sent.len(), 256);
        outcome
    });
    let outcomes: Vec<Outcome> = outcomes.collect();
    assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]));
}

/// Gives packets at once, and takes everything.
struct Burst(usize);

impl FarEnd for Burst {
    fn next(&mut self) -> Next<'_> {
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                Next::Frame(&[3, 1])
            }
            None => Next::None,
        }
    }

    fn take(&mut self, _: &[u8]) -> bool {
        true
    }
}

/// Requests are answered between the copies of one batch, and all copies leave.
#[test]
fn a_batch_with_many_copies_keeps_nobody_waiting() {
    const COPIES: u64 = 32 * 2000;
    for &engine in EngineKind::HERE {
        let switch = switch(THROUGH, 2000, SwitchConfig { engine, ..SwitchConfig::default() });
        let worker = Worker::new(switch, vec![(0, Box::new(MemoryPort::new(Burst(32))))]).unwrap();
        let control = worker.control();
        let running = std::thread::spawn(move || worker.run());
        let begun = Instant::now();
        let mut between = 0;
        loop {
            let sent: u64 =
                control.ask(Request::Ports).unwrap().iter().map(|(_, port)| port.tx_packets).sum();
            between += u32::from(sent > 0 && sent < COPIES);
            if sent == COPIES {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "{sent} of {COPIES} copies");
        }
        control.stop();
        running.join().unwrap();
        assert!(between > 3, "{between} answers while the batch was under way");
    }
}
