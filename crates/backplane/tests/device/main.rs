//! A device with switches that send what comes in by port 0 out by port 1, what comes in by 1 out by 0, and so on in pairs; frames
//! come and go in memory.

mod hoards;
mod links;
mod sources;

use millrace_backplane::{
    ALL_LOST, Backplane, Emulation, ExitShare, ExitTo, Host, Loss, MemberHandle, MemberSetting, Route,
    Setting, SetupError, TimeShare, Traffic, WHOLE, Wire,
};
use millrace_classifier::{Match, Priority, Rule, TagAction, Target};
use millrace_dataplane::{EngineKind, PortId, Switch, SwitchConfig};
use millrace_drivers::{FarEnd, MemoryPort, Next};
use millrace_frames::SlotLayout;
use millrace_pipeline::text;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);
const BROADCAST: [u8; 6] = [0xff; 6];

/// The other end of a port of the machine. Without a descriptor its lane never sleeps.
#[derive(Clone, Default)]
struct Cable {
    to: Arc<Mutex<VecDeque<Vec<u8>>>>,
    from: Arc<Mutex<Vec<Vec<u8>>>>,
}

struct Plug(Cable, Vec<u8>);

impl FarEnd for Plug {
    fn next(&mut self) -> Next<'_> {
        match self.0.to.lock().unwrap().pop_front() {
            Some(frame) => {
                self.1 = frame;
                Next::Frame(&self.1)
            }
            None => Next::None,
        }
    }

    fn take(&mut self, frame: &[u8]) -> bool {
        self.0.from.lock().unwrap().push(frame.to_vec());
        true
    }
}

impl Cable {
    fn send(&self, frames: impl IntoIterator<Item = Vec<u8>>) {
        self.to.lock().unwrap().extend(frames);
    }

    /// What has come, when it is so many frames.
    fn receive(&self, count: usize) -> Vec<Vec<u8>> {
        wait_for(|| self.from.lock().unwrap().len() >= count);
        let mut frames = self.from.lock().unwrap();
        assert_eq!(frames.len(), count);
        std::mem::take(&mut *frames)
    }
}

fn wait_for(mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "nothing happens");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn switch() -> Switch {
    let program = text::parse(
        "program t architecture test errors (NoError)
         ingress (ingress) egress ()
         intrinsic egress_spec = port
         intrinsic ingress_port = from
         metadata port: bit<32>
         metadata from: bit<32>
         body control ingress { block0: port = xor(from, 32w1) end }",
    );
    let config = SwitchConfig { engine: EngineKind::Fastest, ..SwitchConfig::default() };
    Switch::new(Arc::new(program.unwrap()), config).unwrap()
}

/// A device with two ports of the machine, 0 on the first lane and 1 on the last.
struct Device {
    backplane: Backplane,
    cables: [Cable; 2],
    routes: Vec<Route>,
}

impl Device {
    fn new(lanes: usize) -> Device {
        Device::with_packets(lanes, 4096)
    }

    fn with_packets(lanes: usize, packets: usize) -> Device {
        let layout = SlotLayout { size: 2112, ..SlotLayout::DEFAULT };
        let setting = Setting { lanes, processors: Vec::new(), packets, layout, hops: 5 };
        let backplane = Backplane::start(&setting).unwrap();
        let cables = <[Cable; 2]>::default();
        for (number, cable) in (0..).zip(&cables) {
            let lane = usize::from(number) * (lanes - 1);
            let port = MemoryPort::new(Plug(cable.clone(), Vec::new()));
            backplane.add_physical(lane, number, Box::new(port)).unwrap();
        }
        Device { backplane, cables, routes: Vec::new() }
    }

    fn add(&self, lane: usize, ports: u32, traffic: Traffic) -> MemberHandle {
        let setting =
            MemberSetting { ports: (0..ports).collect(), places: 256, traffic, ..MemberSetting::default() };
        self.backplane.add_member(lane, switch(), &setting).unwrap()
    }

    /// A port of a switch has these frames of a port of the machine, without their tag.
    fn claim(&mut self, member: &mut MemberHandle, port: PortId, physical: u16, matches: Match) {
        let tag = if matches == Match::Whole { TagAction::Keep } else { TagAction::Strip };
        let wire = Arc::clone(member.wire(port).unwrap());
        let target = Target { switch: 0, port: 0 };
        let rule = Rule { physical, matches: matches.clone(), target, tag, flood: true };
        let tags = rule.tags_out(Priority::default()).unwrap_or_default();
        let lane = usize::from(physical) * (self.backplane.lanes() - 1);
        let to = ExitTo { lane, physical, share: ExitShare::default(), tags };
        self.backplane.connect(&wire, &[to]).unwrap();
        self.routes.push(Route { physical, matches, tag, flood: true, wire });
        self.backplane.set_routes(&self.routes).unwrap();
    }

    fn forget(&mut self, member: &MemberHandle) {
        self.routes.retain(|route| !member.wires.iter().any(|wire| Arc::ptr_eq(wire, &route.wire)));
        self.backplane.set_routes(&self.routes).unwrap();
    }
}

fn frame(to: [u8; 6], vid: Option<u16>, number: u16) -> Vec<u8> {
    let tag = vid.map(|vid| [&[0x81, 0][..], &vid.to_be_bytes()].concat()).unwrap_or_default();
    [&to[..], &[2, 0, 0, 0, 0, 9], &tag, &[0x88, 0xb5], &number.to_be_bytes(), &[0; 44]].concat()
}

fn numbers(frames: &[Vec<u8>]) -> Vec<u16> {
    frames
        .iter()
        .map(|frame| u16::from_be_bytes([frame[frame.len() - 46], frame[frame.len() - 45]]))
        .collect()
}

fn port(wires: &[Arc<Wire>], port: PortId) -> &Arc<Wire> {
    wires.iter().find(|wire| wire.port() == port).unwrap()
}

#[test]
fn switches_share_ports_by_vlan_and_see_no_tag() {
    for lanes in [1, 2] {
        let mut device = Device::new(lanes);
        let mut members: Vec<MemberHandle> =
            (0..8).map(|number| device.add(number % lanes, 2, Traffic::default())).collect();
        for (vid, member) in (1..).zip(&mut members) {
            device.claim(member, 0, 0, Match::Vlan(vid));
            device.claim(member, 1, 1, Match::Vlan(vid));
        }
        // One of nine VLANs is nobody's.
        let sent: Vec<Vec<u8>> = (0..1800).map(|n| frame([2; 6], Some(n % 9 + 1), n)).collect();
        for some in sent.chunks(90) {
            device.cables[0].send(some.to_vec());
            device.cables[1].send(some.to_vec());
            std::thread::sleep(Duration::from_millis(1));
        }
        for cable in &device.cables {
            let came = cable.receive(1600);
            for vid in 1..9u16 {
                let of_vlan: Vec<Vec<u8>> =
                    came.iter().filter(|frame| frame[14..16] == vid.to_be_bytes()).cloned().collect();
                let expected: Vec<u16> = (0..1800).filter(|n| n % 9 + 1 == vid).collect();
                assert_eq!(numbers(&of_vlan), expected, "VLAN {vid}, {lanes} lanes");
            }
        }
        wait_for(|| device.backplane.unclassified() == 400);
        for member in &members {
            let report = member.control.report(PATIENCE).unwrap();
            let packets =
                report.ports.iter().map(|port| (port.counters.rx_packets, port.counters.tx_packets));
            assert_eq!(packets.collect::<Vec<_>>(), [(200, 200); 2]);
            // 18 bytes of addresses, tag and type would be one tag more.
            assert_eq!(report.ports[0].driver.rx_bytes, 200 * 60);
            assert_eq!(member.counts.losses().count(), 0);
            assert!(member.counts.used_ns() > 0);
        }
    }
}

#[test]
fn a_switch_that_is_stopped_gets_nothing_from_the_machine_either() {
    let mut device = Device::new(1);
    let mut member = device.add(0, 2, Traffic::default());
    device.claim(&mut member, 1, 1, Match::Whole);
    let wire = Arc::clone(port(&member.wires, 0));
    let send = |number: u16| wire.send_in(&frame([2; 6], None, number)).unwrap();
    send(1);
    assert_eq!(numbers(&device.cables[1].receive(1)), [1]);
    device.backplane.set_stopped(&member, true);
    send(2);
    assert_eq!(member.counts.losses().collect::<Vec<_>>(), [("stopped", 1)]);
    device.backplane.set_stopped(&member, false);
    send(3);
    assert_eq!(numbers(&device.cables[1].receive(1)), [3]);
}

#[test]
fn a_broadcast_reaches_each_switch_that_shares_the_vlan_by_address() {
    let mut device = Device::new(1);
    let mut members: Vec<MemberHandle> = (0..3).map(|_| device.add(0, 2, Traffic::default())).collect();
    for (number, member) in (1..).zip(&mut members) {
        device.claim(member, 0, 0, Match::VlanMac { vid: 7, mac: [2, 0, 0, 0, 0, number] });
        device.claim(member, 1, 1, Match::Vlan(number.into()));
    }
    device.cables[0].send([
        frame([2, 0, 0, 0, 0, 2], Some(7), 1),
        frame(BROADCAST, Some(7), 2),
        frame([2, 0, 0, 0, 0, 8], Some(7), 3),
    ]);
    let came = device.cables[1].receive(4);
    let mut seen: Vec<(u8, u16)> = came.iter().map(|frame| frame[15]).zip(numbers(&came)).collect();
    seen.sort_unstable();
    assert_eq!(seen, [(1, 2), (2, 1), (2, 2), (3, 2)]);
    wait_for(|| device.backplane.unclassified() == 1);
}

#[test]
fn a_chain_of_switches_forwards_and_a_circle_ends_with_a_reason() {
    for lanes in [1, 2] {
        let mut device = Device::new(lanes);
        let mut first = device.add(0, 4, Traffic::default());
        let mut second = device.add(lanes - 1, 2, Traffic::default());
        device.claim(&mut first, 0, 0, Match::Whole);
        device.claim(&mut second, 1, 1, Match::Whole);
        let (one, other) = (port(&first.wires, 1), port(&second.wires, 0));
        device.backplane.link(one, other, Emulation::default());
        let sent: Vec<Vec<u8>> = (0..200).map(|n| frame([2; 6], None, n)).collect();
        device.cables[0].send(sent.clone());
        device.cables[1].send(sent.clone());
        assert_eq!(device.cables[1].receive(200), sent);
        assert_eq!(device.cables[0].receive(200), sent);
        // Frames of port 2 leave by 3, which is linked to 2.
        let (two, three) = (port(&first.wires, 2), port(&first.wires, 3));
        device.backplane.link(two, three, Emulation::default());
        device.backplane.link(port(&first.wires, 1), port(&first.wires, 2), Emulation::default());
        device.cables[0].send(sent.clone());
        wait_for(|| first.counts.lost(Loss::Hops) == 200);
        let report = first.control.report(PATIENCE).unwrap();
        let through = report.ports.iter().map(|port| port.counters.rx_packets).sum::<u64>();
        // 200 by port 0 twice and by port 1 once; then five links of 200.
        assert_eq!(through, 600 + 5 * 200);
        // Others go on.
        device.backplane.link(port(&first.wires, 1), port(&second.wires, 0), Emulation::default());
        device.cables[0].send(sent.clone());
        assert_eq!(device.cables[1].receive(200), sent);
    }
}

/// Where each frame takes a millisecond to be sent.
struct Slow(Arc<AtomicU64>);

impl FarEnd for Slow {
    fn next(&mut self) -> Next<'_> {
        Next::None
    }

    fn take(&mut self, _frame: &[u8]) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(1) {}
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// While a port takes its time for the frames of a switch, that is the time of this switch and not that of another one.
#[test]
fn the_time_that_a_port_takes_to_send_is_that_of_the_sender() {
    let mut device = Device::new(1);
    let sent = Arc::<AtomicU64>::default();
    device.backplane.add_physical(0, 2, Box::new(MemoryPort::new(Slow(Arc::clone(&sent))))).unwrap();
    let mut member = device.add(0, 2, Traffic::default());
    // It has a hundredth of the time, the other one the rest.
    let share = TimeShare { guaranteed: 990_000, ..TimeShare::default() };
    let setting = MemberSetting { ports: vec![0], places: 1024, share, ..MemberSetting::default() };
    let other = device.backplane.add_member(0, switch(), &setting).unwrap();
    member.wires.iter().for_each(|wire| wire.set_places(1024));
    let to = ExitTo { lane: 0, physical: 2, share: ExitShare::default(), tags: Default::default() };
    device.backplane.connect(port(&member.wires, 1), &[to]).unwrap();
    device.claim(&mut member, 0, 0, Match::Whole);
    device.cables[0].send((0..600).map(|n| frame([2; 6], None, n)));
    wait_for(|| sent.load(Ordering::Relaxed) == 600);
    // Its own work is some milliseconds; while another thread has the processor, nobody's time passes.
    let used = |member: &MemberHandle| Duration::from_nanos(member.counts.used_ns());
    wait_for(|| used(&member) > Duration::from_millis(150));
    assert!(used(&other) < Duration::from_millis(50), "{:?}", used(&other));
}

/// A lane that collects more at once than a port has places for would lose frames of a switch that keeps up.
#[test]
fn a_long_burst_passes_a_port_with_few_places() {
    for places in [64, 70, 200, 1024] {
        let mut device = Device::new(1);
        let mut member = device.add(0, 2, Traffic::default());
        port(&member.wires, 0).set_places(places);
        device.claim(&mut member, 1, 1, Match::Whole);
        device.claim(&mut member, 0, 0, Match::Whole);
        let sent: Vec<Vec<u8>> = (0..3000).map(|n| frame([2; 6], None, n)).collect();
        device.cables[0].send(sent.clone());
        assert_eq!(device.cables[1].receive(3000), sent, "{places} places");
    }
}

#[test]
fn links_have_delay_rate_and_loss() {
    let mut device = Device::new(1);
    let mut first = device.add(0, 2, Traffic::default());
    let mut second = device.add(0, 2, Traffic::default());
    device.claim(&mut first, 0, 0, Match::Whole);
    device.claim(&mut second, 1, 1, Match::Whole);
    let link = |emulation| device.backplane.link(port(&first.wires, 1), port(&second.wires, 0), emulation);
    let sent: Vec<Vec<u8>> = (0..40).map(|n| frame([2; 6], None, n)).collect();
    // 84 bytes each on the wire: 40 of them take 26.88 ms at a million bits a second.
    for (emulation, least_ms) in [
        (Emulation { delay_ns: 60_000_000, ..Emulation::default() }, 60),
        (Emulation { rate: Some(1_000_000), ..Emulation::default() }, 26),
    ] {
        link(emulation);
        let begun = Instant::now();
        device.cables[0].send(sent.clone());
        assert_eq!(device.cables[1].receive(40), sent);
        assert!(begun.elapsed() >= Duration::from_millis(least_ms), "{emulation:?}");
    }
    link(Emulation { loss: ALL_LOST, ..Emulation::default() });
    device.cables[0].send(sent.clone());
    wait_for(|| first.counts.lost(Loss::LinkLoss) == 40);
    link(Emulation { loss: ALL_LOST / 2, ..Emulation::default() });
    device.cables[0].send((0..250).map(|n| frame([2; 6], None, n)));
    wait_for(|| {
        let lost = first.counts.lost(Loss::LinkLoss) as usize - 40;
        lost + device.cables[1].from.lock().unwrap().len() == 250
    });
    // Nine standard deviations of 250 throws.
    let lost = first.counts.lost(Loss::LinkLoss) - 40;
    assert!((54..196).contains(&lost), "{lost}");
}

#[test]
fn a_lane_whose_packets_are_all_in_use_goes_on() {
    let mut device = Device::with_packets(1, 64);
    let mut first = device.add(0, 2, Traffic::default());
    let mut second = device.add(0, 2, Traffic::default());
    device.claim(&mut first, 0, 0, Match::Whole);
    device.claim(&mut second, 1, 1, Match::Whole);
    let slow = Emulation { delay_ns: 50_000_000, ..Emulation::default() };
    device.backplane.link(port(&first.wires, 1), port(&second.wires, 0), slow);
    let sent: Vec<Vec<u8>> = (0..200).map(|n| frame([2; 6], None, n)).collect();
    device.cables[0].send(sent.clone());
    // All 64 are on the link, and the port has more frames.
    wait_for(|| device.cables[0].to.lock().unwrap().len() == 136);
    assert_eq!(device.backplane.statistics().unwrap().ports.len(), 2);
    assert_eq!(device.cables[1].receive(200), sent);
}

#[test]
fn the_largest_rate_of_an_exit_holds_also_when_it_is_empty_now_and_then() {
    let mut device = Device::new(1);
    let mut member = device.add(0, 2, Traffic::default());
    device.claim(&mut member, 0, 0, Match::Whole);
    let share = ExitShare { largest: Some(8_000_000), ..ExitShare::default() };
    let to = ExitTo { lane: 0, physical: 1, share, tags: Default::default() };
    device.backplane.connect(port(&member.wires, 1), &[to]).unwrap();
    let begun = Instant::now();
    for _ in 0..20 {
        device.cables[0].send((0..200).map(|n| frame([2; 6], None, n)));
        device.cables[1].receive(200);
    }
    // 240,000 bytes at a million a second, of which 32,768 go at once.
    assert!(begun.elapsed() >= Duration::from_millis(200), "{:?}", begun.elapsed());
    assert_eq!(member.counts.losses().count(), 0);
}

#[test]
fn what_is_more_than_a_quota_is_dropped_and_others_lose_nothing() {
    let mut device = Device::new(1);
    let mut limited = device.add(0, 2, Traffic { packets: Some(1), bits: None });
    let mut free = device.add(0, 2, Traffic::default());
    for (vid, member) in [(1, &mut limited), (2, &mut free)] {
        device.claim(member, 0, 0, Match::Vlan(vid));
        device.claim(member, 1, 1, Match::Vlan(vid));
    }
    device.cables[0].send((0..400).map(|n| frame([2; 6], Some(n % 2 + 1), n)));
    // A batch at once; perhaps another one a second later.
    wait_for(|| limited.counts.lost(Loss::PacketQuota) >= 130);
    wait_for(|| {
        device.cables[1].from.lock().unwrap().len() as u64 + limited.counts.lost(Loss::PacketQuota) == 400
    });
    assert_eq!(free.counts.losses().count(), 0);
    device.backplane.set_traffic(&limited, Traffic::default());
    device.cables[1].from.lock().unwrap().clear();
    device.cables[0].send((0..200).map(|n| frame([2; 6], Some(1), n)));
    assert_eq!(numbers(&device.cables[1].receive(200)), (0..200).collect::<Vec<u16>>());
}

#[test]
fn switches_come_and_go_while_others_forward() {
    let mut device = Device::new(1);
    let mut stays = device.add(0, 2, Traffic::default());
    device.claim(&mut stays, 0, 0, Match::Vlan(1));
    device.claim(&mut stays, 1, 1, Match::Vlan(1));
    let mut sent = 0;
    for _ in 0..100 {
        let mut guest = device.add(0, 2, Traffic::default());
        device.claim(&mut guest, 0, 0, Match::Vlan(2));
        device.claim(&mut guest, 1, 1, Match::Vlan(2));
        device.cables[0].send((0..64).map(|n| frame([2; 6], Some(n % 2 + 1), n)));
        sent += 32;
        device.cables[1].receive(64);
        device.forget(&guest);
        let ended = device.backplane.remove_member(guest).unwrap();
        assert_eq!(ended.switch.counters().ports().map(|(_, port)| port.rx_packets).sum::<u64>(), 32);
    }
    assert_eq!((stays.counts.losses().count(), device.backplane.unclassified()), (0, 0));
    let report = stays.control.report(PATIENCE).unwrap();
    assert_eq!(report.ports[0].counters.rx_packets, sent);
}

#[test]
fn guarantees_hold_while_somebody_takes_all_that_there_is() {
    let mut device = Device::new(1);
    // Two greedy ones; the first is guaranteed three quarters, the other has what is left.
    let mut members = [0, 1].map(|_| device.add(0, 4, Traffic::default()));
    for member in &mut members {
        // What comes in by 2 goes out by 3, which is linked to 2, and the other direction: hops end it, so it is filled up again.
        device.backplane.link(port(&member.wires, 2), port(&member.wires, 3), Emulation::default());
    }
    let share = TimeShare { guaranteed: WHOLE / 4 * 3, largest: WHOLE };
    device.backplane.set_share(&members[0], share).unwrap();
    for (vid, member) in (1..).zip(&mut members) {
        device.claim(member, 0, 0, Match::Vlan(vid));
        device.claim(member, 1, 1, Match::Vlan(vid));
        device.backplane.link(port(&member.wires, 1), port(&member.wires, 2), Emulation::default());
    }
    // What each uses meanwhile, and what each loses.
    let flood = |time: Duration| {
        let now = || {
            members.each_ref().map(|member| (member.counts.used_ns(), member.counts.lost(Loss::InboxFull)))
        };
        let (begun, before) = (Instant::now(), now());
        while begun.elapsed() < time {
            if device.cables[0].to.lock().unwrap().len() < 4096 {
                device.cables[0].send((0..4096).map(|n| frame([2; 6], Some(n % 2 + 1), n)));
            }
        }
        let after = now();
        [0, 1].map(|at: usize| (after[at].0 - before[at].0, after[at].1 - before[at].1))
    };
    // Short turns are counted by the clock, and others may take the processor meanwhile. So one quiet round is enough.
    let mut rounds = (0..10).map(|_| flood(Duration::from_millis(300)));
    // They get the same load, so the one with more time loses no more than the other.
    let holds = |[first, second]: [(u64, u64); 2]| 10 * first.0 > 8 * second.0 && first.1 <= second.1 + 512;
    assert!(rounds.any(holds));
    device.backplane.set_share(&members[1], TimeShare { guaranteed: 0, largest: WHOLE / 100 }).unwrap();
    let mut rounds = (0..10).map(|_| flood(Duration::from_millis(500)));
    // A hundredth, and 2 ms at once, and a turn that was not over.
    assert!(rounds.any(|[_, second]| second.0 < 5_000_000 + 4_000_000));
}

/// Takes its time, but not that of the processor.
#[derive(Debug)]
struct Sleeper;

impl Host for Sleeper {
    fn take(&mut self, _: &[u8]) -> bool {
        std::thread::sleep(Duration::from_millis(300));
        true
    }
}

#[test]
fn time_in_which_the_processor_is_not_the_lanes_is_nobodys() {
    let mut device = Device::new(1);
    let mut member = device.add(0, 2, Traffic::default());
    device.claim(&mut member, 0, 0, Match::Whole);
    device.backplane.connect_host(port(&member.wires, 1), Box::new(Sleeper));
    let begun = Instant::now();
    device.cables[0].send([frame([2; 6], None, 1)]);
    let sent = || {
        let report = member.control.report(PATIENCE).unwrap();
        report.ports.iter().map(|port| port.counters.tx_packets).sum::<u64>()
    };
    wait_for(|| sent() == 1);
    assert!(begun.elapsed() >= Duration::from_millis(300));
    let used = member.counts.used_ns();
    assert!(used > 0 && used < 150_000_000, "{used} ns");
}

#[test]
fn what_cannot_be_is_refused() {
    let layout = SlotLayout { size: 2112, ..SlotLayout::DEFAULT };
    let setting = Setting { lanes: 0, processors: Vec::new(), packets: 64, layout, hops: 1 };
    let refused = Backplane::start(&setting).err().unwrap();
    assert_eq!(refused.to_string(), "a device has 1 to 256 workers, not 0");
    let mut device = Device::new(1);
    let mut member = device.add(0, 2, Traffic::default());
    device.claim(&mut member, 0, 0, Match::Vlan(1));
    let route = device.routes[0].clone();
    let twice = [route.clone(), Route { wire: Arc::clone(&member.wires[1]), ..route }];
    assert!(matches!(device.backplane.set_routes(&twice), Err(SetupError::Routes(_))));
    // What was there stays.
    device.claim(&mut member, 1, 1, Match::Vlan(1));
    device.cables[0].send([frame([2; 6], Some(1), 5)]);
    assert_eq!(numbers(&device.cables[1].receive(1)), [5]);
}
