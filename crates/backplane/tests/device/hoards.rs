//! A switch that has packets wait wherever it can leaves some for others, which lose nothing.

use super::*;

const PORTS: u16 = 64;
const VID: u16 = 100;

/// A switch of so many ports, each of which gets one of 65 frames, next to one that gets the others.
fn with_many_ports(lanes: usize, share: TimeShare) -> (Device, MemberHandle, MemberHandle) {
    let mut device = Device::with_packets(lanes, 4096);
    let setting =
        MemberSetting { ports: (0..PORTS.into()).collect(), places: 1024, share, ..MemberSetting::default() };
    let mut hoard = device.backplane.add_member(lanes - 1, switch(), &setting).unwrap();
    for number in 0..PORTS {
        device.claim(&mut hoard, number.into(), 0, Match::Vlan(number + 1));
    }
    let mut other = device.add(0, 2, Traffic::default());
    device.claim(&mut other, 0, 0, Match::Vlan(VID));
    (device, hoard, other)
}

/// Sends 100 frames for each port.
fn send(device: &Device) {
    for n in 0..100 {
        device.cables[0].send((0..PORTS).map(|vid| frame([2; 6], Some(vid + 1), n)));
        device.cables[0].send([frame([2; 6], Some(VID), n)]);
    }
}

/// Frames come for all ports for a while.
fn the_other_gets_its_frames(device: &Device, other: &MemberHandle) {
    for round in 0..20 {
        send(device);
        let came = numbers(&device.cables[1].receive(100));
        assert_eq!(came, (0..100).collect::<Vec<u16>>(), "round {round}");
    }
    assert_eq!(other.counts.losses().count(), 0);
}

#[test]
fn who_is_slow_at_many_ports_leaves_packets_for_others() {
    for lanes in [1, 2] {
        let share = TimeShare { guaranteed: 0, largest: WHOLE / 1000 };
        let (mut device, hoard, mut other) = with_many_ports(lanes, share);
        device.claim(&mut other, 1, 1, Match::Vlan(VID));
        the_other_gets_its_frames(&device, &other);
        // It has no more than half of them, and the rest is lost.
        let waiting = || hoard.wires.iter().map(|wire| wire.waiting() as u64).sum::<u64>();
        assert!(waiting() <= 2048, "{}", waiting());
        let passed = || device.cables[0].from.lock().unwrap().len() as u64;
        let lost = || hoard.counts.losses().map(|(_, lost)| lost).sum::<u64>();
        assert!(lost() > 0);
        // With more time it takes what waits, and gets all packets again.
        device.backplane.set_share(&hoard, TimeShare::default()).unwrap();
        wait_for(|| passed() + lost() == 20 * 6400);
        let (before, lost_before) = (passed(), lost());
        device.cables[0].send((0..PORTS).map(|vid| frame([2; 6], Some(vid + 1), 7)));
        wait_for(|| passed() == before + u64::from(PORTS));
        assert_eq!(lost(), lost_before);
    }
}

/// The far end of a port that takes nothing.
struct Stuck;

impl FarEnd for Stuck {
    fn next(&mut self) -> Next<'_> {
        Next::None
    }

    fn take(&mut self, _frame: &[u8]) -> bool {
        false
    }
}

#[test]
fn who_sends_to_a_port_that_is_stuck_leaves_packets_for_others() {
    for lanes in [1, 2] {
        let (mut device, hoard, mut other) = with_many_ports(lanes, TimeShare::default());
        device.backplane.add_physical(0, 2, Box::new(MemoryPort::new(Stuck))).unwrap();
        let to = ExitTo { lane: 0, physical: 2, share: ExitShare::default(), tags: Default::default() };
        hoard.wires.iter().for_each(|wire| device.backplane.connect(wire, &[to]).unwrap());
        device.claim(&mut other, 1, 1, Match::Vlan(VID));
        the_other_gets_its_frames(&device, &other);
        let lost = || hoard.counts.losses().map(|(_, lost)| lost).sum::<u64>();
        wait_for(|| lost() >= 20 * 6400 - 2048 - 64);
        assert!(lost() < 20 * 6400 - 1000);
    }
}
