//! Each packet has the time at which it came: what programs are told, and what meters count with, packet by packet also within
//! a burst.

use millrace_dataplane::{Clock, EngineKind, PortId, Replica, Switch, SwitchConfig, Worker};
use millrace_drivers::{
    PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted, wall_clock_ns,
};
use millrace_frames::{Batch, Burst, HEADROOM, PacketPool, Place, TAILROOM};
use millrace_pipeline::{text, verify};
use millrace_state::{MeterRates, MeterRef, Rate};
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Two meters, one in ingress and one in egress; the times of arrival and of egress. The second byte says what becomes of a packet: 0
/// it is forwarded, 1 sent once more around, 2 multicast to group 1.
const PROGRAM: &str = "program arrivals
    architecture test
    errors (NoError, PacketTooShort)
    on_reject drop
    ingress (parse, ingress)
    egress (egress, deparse)
    intrinsic parser_error = error
    intrinsic egress_spec = port
    intrinsic multicast_group = group
    intrinsic recirculate = again
    intrinsic ingress_timestamp = came
    intrinsic egress_timestamp = leaves
    header h: h_t { key: bit<8> op: bit<8> first: bit<8> second: bit<8> came: bit<64> leaves: bit<64> }
    metadata error: bit<16>
    metadata port: bit<32>
    metadata group: bit<32>
    metadata again: bool
    metadata came: bit<64>
    metadata leaves: bit<64>
    meter before size 4 packets
    meter after size 4 packets
    body parser parse { block0 state start: extract h end }
    body control ingress {
    block0:
        port = 32w2
        meter h.first, before, h.key
        h.came = came
        select (h.op) { 8w2 => block1 default => block2 }
    block1: group = 32w1 end
    block2: end }
    body control egress {
    block0:
        meter h.second, after, h.key
        h.leaves = leaves
        select (h.op) { 8w1 => block1 default => block2 }
    block1: h.op = 8w0 again = true end
    block2: end }
    body deparser deparse { block0: emit h end }";

/// The meters have a packet in so many nanoseconds, and buckets of one packet and of two.
fn switch(engine: EngineKind, clock: Clock, packets_per_second: u64) -> Switch {
    let program = text::parse(PROGRAM).unwrap_or_else(|error| panic!("{error}"));
    verify::verify(&program).unwrap();
    let config = SwitchConfig { engine, clock, ..SwitchConfig::default() };
    let mut switch = Switch::new(Arc::new(program), config).unwrap();
    let rate = Rate::per_second(packets_per_second);
    for name in ["before", "after"] {
        let MeterRef::Indexed(meter) = switch.state().meter_named(name).unwrap() else { panic!("{name}") };
        let config = MeterRates { cir: rate, cbs: 1, pir: rate, pbs: 2 }.into();
        switch.state_mut().set_meter(meter, 1, Some(config)).unwrap();
    }
    let copies = [2, 3].map(|port| Replica { port, rid: 0 }).to_vec();
    switch.replication_mut().create_group(1).unwrap();
    switch.replication_mut().set_copies(1, copies).unwrap();
    switch
}

fn packet(op: u8) -> Vec<u8> {
    let mut packet = vec![1, op];
    packet.extend([0; 18]);
    packet
}

/// The colours of a packet in ingress and in egress, when it came, and when it met egress.
fn told(packet: &[u8]) -> (u8, u8, u64, u64) {
    let time = |at: usize| u64::from_be_bytes(packet[at..at + 8].try_into().unwrap());
    (packet[2], packet[3], time(4), time(12))
}

/// What leaves when packets come at these times in one burst.
fn burst(switch: &mut Switch, packets: &[(u64, Vec<u8>)]) -> Vec<(PortId, Vec<u8>)> {
    let stride = HEADROOM + 64;
    let mut memory = vec![0; stride * packets.len() + TAILROOM];
    let mut places = Vec::new();
    for (number, (_, packet)) in packets.iter().enumerate() {
        let at = number * stride + HEADROOM;
        memory[at..at + packet.len()].copy_from_slice(packet);
        places.push(Place { at: at as u32, len: packet.len() as u32 });
    }
    let times: Vec<u64> = packets.iter().map(|(time, _)| *time).collect();
    let mut sent = Vec::new();
    let mut burst = Burst::new(&mut memory, &places, HEADROOM).unwrap();
    switch.switch_burst_at(1, &mut burst, &times, |port, output| sent.push((port, output.bytes.to_vec())));
    sent
}

/// RFC 2698 with a packet a second, committed and peak: at 0.4 s there are 0.4 committed and 1.4 peak tokens, at 0.8 s 0.8 of each,
/// at 1.2 s 1 and 1.2, at 1.6 s 0.4 and 0.6, at 2 s 0.8 and 1.
#[test]
fn packets_of_one_burst_are_policed_as_they_came() {
    const APART: u64 = 400_000_000;
    let now = 9_000_000_000;
    for &engine in EngineKind::HERE {
        let mut switch = switch(engine, Clock::simulated(), 1);
        switch.advance_to(now);
        // More than a batch, of which the rest has come now.
        let times = (0..6).map(|number| 6_000_000_000 + number * APART).chain([now; 80]);
        let sent = burst(&mut switch, &times.map(|time| (time, packet(0))).collect::<Vec<_>>());
        let told: Vec<_> = sent.iter().map(|(_, packet)| told(packet)).collect();
        let wanted = [0, 1, 2, 0, 2, 1].into_iter().enumerate();
        let wanted: Vec<_> = wanted.map(|(at, c)| (c, c, 6_000_000_000 + at as u64 * APART, now)).collect();
        assert_eq!(told[..6], wanted, "{engine:?}");
        // A second later there are 1 committed and 1 peak token.
        assert_eq!(told[6], (0, 0, now, now), "{engine:?}");
        assert!(told[7..].iter().all(|told| *told == (2, 2, now, now)), "{engine:?}");
        assert_eq!(told.len(), 86);
    }
}

#[test]
fn copies_have_the_time_of_their_original_and_a_second_pass_has_its_own() {
    let (came, now) = (1_000_000_000, 3_000_000_000);
    for &engine in EngineKind::HERE {
        let mut switch = switch(engine, Clock::simulated(), 1);
        switch.advance_to(now);
        let sent = burst(&mut switch, &[(came, packet(2)), (came, packet(1)), (now + 1, packet(0))]);
        let times: Vec<_> =
            sent.iter().map(|(port, packet)| (*port, told(packet).2, told(packet).3)).collect();
        // In its second pass a packet comes after those of its burst.
        let wanted = [(2, came, now), (3, came, now), (2, now, now), (2, now, now)];
        assert_eq!(times, wanted, "{engine:?}");
    }
}

/// A port that gives its frames once, in one batch, with these stamps.
struct Stamped {
    ago_ns: Vec<u64>,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl QueuePair for Stamped {
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        // So long that the switch was there when the first one came.
        std::thread::sleep(Duration::from_millis(20));
        let now_ns = wall_clock_ns();
        for ago_ns in self.ago_ns.drain(..) {
            let added = batch.add(pool).unwrap();
            added.set_frame(&packet(0)).unwrap();
            added.timestamp_ns = now_ns - ago_ns;
        }
        Ok(Received::End)
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        self.sent.lock().unwrap().extend(batch.packets().iter().map(|packet| packet.data().to_vec()));
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
        TimeSource::Wall
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        None
    }

    fn statistics(&self) -> PortStatistics {
        PortStatistics::default()
    }
}

/// With 1000 packets a second: stamps are wall-clock times, which the worker makes times of its switch.
#[test]
fn a_worker_polices_by_the_stamps_of_a_port() {
    for &engine in EngineKind::HERE {
        for tells in [false, true] {
            let cases = [
                // Those of one moment: the bucket has two.
                (vec![9_000_000; 4], vec![0, 1, 2, 2]),
                // As many in time as are allowed, and one that is stamped before the one that came before it.
                (vec![9_000_000, 7_000_000, 5_000_000, 6_000_000], vec![0, 0, 0, 1]),
            ];
            for (ago_ns, colors) in cases {
                let sent = Arc::new(Mutex::new(Vec::new()));
                let port = Stamped { ago_ns: ago_ns.clone(), sent: Arc::clone(&sent) };
                let switch = switch(engine, Clock::real(), 1000);
                let mut worker =
                    Worker::new(switch, vec![(2, Box::new(port) as Box<dyn QueuePair>)]).unwrap();
                if tells {
                    worker.tell_stories();
                }
                let summary = worker.run();
                assert!(summary.failed.is_empty());
                let told: Vec<_> = sent.lock().unwrap().iter().map(|packet| told(packet)).collect();
                let found: Vec<u8> = told.iter().map(|told| told.0).collect();
                assert_eq!(found, colors, "{engine:?} {ago_ns:?}");
                let distance = told[1].2 - told[0].2;
                assert_eq!(distance, ago_ns[0] - ago_ns[1], "{engine:?}");
                assert!(told.iter().all(|(.., came, leaves)| came < leaves), "{engine:?} {told:?}");
            }
        }
    }
}
