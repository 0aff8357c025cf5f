//! A switch that has its lane alone takes frames from the device of a port itself, and sends to devices itself. It is to be seen by nothing but the rate.

use super::*;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

#[test]
fn frames_stay_in_order_while_a_switch_is_alone_and_is_not() {
    let mut device = Device::new(1);
    let mut member = device.add(0, 2, Traffic::default());
    device.claim(&mut member, 0, 0, Match::Whole);
    device.claim(&mut member, 1, 1, Match::Whole);
    let mut next = 0;
    for round in 0..60 {
        let numbered = next..next + 300;
        next += 300;
        let all: Vec<Vec<u8>> = numbered.map(|n| frame([2; 6], None, n)).collect();
        device.cables[0].send(all.clone());
        device.cables[1].send(all.clone());
        // Others come and go meanwhile, and routes change.
        match round % 3 {
            0 => {
                let guest = device.add(0, 2, Traffic::default());
                device.cables[0].send(all.clone());
                device.backplane.remove_member(guest).unwrap();
            }
            1 => device.backplane.set_routes(&device.routes).unwrap(),
            _ => {
                let limited = TimeShare { guaranteed: 0, largest: WHOLE - 1 };
                device.backplane.set_share(&member, limited).unwrap();
                device.cables[0].send(all.clone());
                device.backplane.set_share(&member, TimeShare::default()).unwrap();
            }
        }
        let twice = [&all[..], if round % 3 == 1 { &[] } else { &all[..] }].concat();
        assert_eq!(device.cables[1].receive(twice.len()), twice, "round {round}");
        assert_eq!(device.cables[0].receive(300), all, "round {round}");
    }
    assert_eq!(member.counts.losses().count(), 0);
    // 60 times 300 by each port, and 40 times 300 more.
    let report = member.control.report(PATIENCE).unwrap();
    let counted = report.ports.iter().map(|port| (port.driver.rx_packets, port.driver.tx_packets));
    assert_eq!(counted.collect::<Vec<_>>(), [(30_000, 18_000), (18_000, 30_000)]);
    assert_eq!(report.ports[0].driver.rx_bytes, 30_000 * 60);
    let of_machine = device.backplane.statistics().unwrap();
    assert_eq!((of_machine.of(0).0.rx_packets, of_machine.of(1).0.tx_packets), (30_000, 30_000));
}

#[test]
fn many_frames_of_one_port_have_room_next_to_few_of_another() {
    let mut device = Device::new(1);
    let mut member = device.add(0, 2, Traffic::default());
    // With two switches the lane receives.
    let _guest = device.add(0, 2, Traffic::default());
    device.claim(&mut member, 0, 0, Match::Whole);
    device.claim(&mut member, 1, 1, Match::Whole);
    let [few, many] = [40, 1200].map(|count| (0..count).map(|n| frame([2; 6], None, n)).collect::<Vec<_>>());
    for round in 0..10 {
        {
            // The lane sees both at once.
            let [mut first, mut second] = [0, 1].map(|at| device.cables[at].to.lock().unwrap());
            first.extend(few.iter().cloned());
            second.extend(many.iter().cloned());
        }
        wait_for(|| device.cables.iter().all(|cable| cable.to.lock().unwrap().is_empty()));
        assert_eq!(device.cables[1].receive(few.len()), few, "round {round}");
        assert_eq!(member.counts.losses().collect::<Vec<_>>(), [], "round {round}");
        assert_eq!(device.cables[0].receive(many.len()), many, "round {round}");
    }
}

#[test]
fn what_the_switch_may_not_have_is_counted_as_always() {
    let mut device = Device::new(1);
    let mut member = device.add(0, 2, Traffic { packets: Some(1), bits: None });
    device.claim(&mut member, 0, 0, Match::Whole);
    device.claim(&mut member, 1, 1, Match::Whole);
    device.cables[0].send((0..400).map(|n| frame([2; 6], None, n)));
    // A batch at once; perhaps another one a second later.
    wait_for(|| member.counts.lost(Loss::PacketQuota) >= 270);
    device.backplane.set_traffic(&member, Traffic::default());
    device.backplane.set_stopped(&member, true);
    device.cables[0].send((0..100).map(|n| frame([2; 6], None, n)));
    wait_for(|| member.counts.lost(Loss::Stopped) == 100);
    device.backplane.set_stopped(&member, false);
    let passed = device.cables[1].from.lock().unwrap().len() as u64;
    assert_eq!(passed + member.counts.lost(Loss::PacketQuota), 400);
    // What somebody on the machine sends comes in between what the device has.
    let wire = Arc::clone(port(&member.wires, 0));
    device.cables[1].from.lock().unwrap().clear();
    device.cables[0].send((0..2000).map(|n| frame([2; 6], None, n)));
    (2000..2050).for_each(|n| wire.send_in(&frame([2; 6], None, n)).unwrap());
    let came = numbers(&device.cables[1].receive(2050));
    let of = |range: std::ops::Range<u16>| {
        came.iter().copied().filter(|n| range.contains(n)).collect::<Vec<u16>>()
    };
    assert_eq!(of(0..2000), (0..2000).collect::<Vec<u16>>());
    assert_eq!(of(2000..2050), (2000..2050).collect::<Vec<u16>>());
}

/// Frames of 60 bytes from a socket, for which a lane waits.
struct Socket {
    stream: UnixStream,
    frame: [u8; 60],
    taken: Arc<AtomicU64>,
}

impl FarEnd for Socket {
    fn next(&mut self) -> Next<'_> {
        match self.stream.read_exact(&mut self.frame) {
            Ok(()) => Next::Frame(&self.frame),
            Err(_) => Next::None,
        }
    }

    fn take(&mut self, _frame: &[u8]) -> bool {
        self.taken.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.stream.as_raw_fd())
    }
}

#[test]
fn a_switch_without_packets_lets_its_lane_sleep_and_wakes_with_them() {
    let mut device = Device::new(1);
    let taken = Arc::<AtomicU64>::default();
    let mut ends = [0, 1].map(|number| {
        device.backplane.remove_physical(0, number).unwrap();
        let (end, stream) = UnixStream::pair().unwrap();
        stream.set_nonblocking(true).unwrap();
        let socket = Socket { stream, frame: [0; 60], taken: Arc::clone(&taken) };
        device.backplane.add_physical(0, number, Box::new(MemoryPort::new(socket))).unwrap();
        end
    });
    let mut member = device.add(0, 2, Traffic::default());
    device.claim(&mut member, 0, 0, Match::Whole);
    device.claim(&mut member, 1, 1, Match::Whole);
    for number in 1..=20 {
        ends[usize::from(number % 2)].write_all(&frame([2; 6], None, number)).unwrap();
        wait_for(|| taken.load(Ordering::Relaxed) == u64::from(number));
    }
    // Nothing comes for a while: it does not look for packets all the time.
    let before = member.counts.used_ns();
    std::thread::sleep(Duration::from_millis(300));
    let used = Duration::from_nanos(member.counts.used_ns() - before);
    assert!(used < Duration::from_millis(30), "{used:?}");
}

/// More ports than there are bits by which a lane knows where to look.
#[test]
fn a_switch_of_many_ports_gets_its_frames_too() {
    let mut device = Device::new(1);
    let mut member = device.add(0, 70, Traffic::default());
    device.claim(&mut member, 69, 0, Match::Whole);
    device.claim(&mut member, 68, 1, Match::Whole);
    let sent: Vec<Vec<u8>> = (0..200).map(|n| frame([2; 6], None, n)).collect();
    device.cables[0].send(sent.clone());
    assert_eq!(device.cables[1].receive(200), sent);
}

/// The place of a device that has gone is that of the next one.
#[test]
fn frames_of_a_port_that_came_later_are_nobodys_until_a_route_says_whose() {
    let mut device = Device::new(1);
    let mut member = device.add(0, 2, Traffic::default());
    device.claim(&mut member, 0, 0, Match::Whole);
    device.claim(&mut member, 1, 1, Match::Whole);
    device.cables[0].send([frame([2; 6], None, 1)]);
    assert_eq!(numbers(&device.cables[1].receive(1)), [1]);
    device.backplane.remove_physical(0, 0).unwrap();
    let later = MemoryPort::new(Plug(device.cables[0].clone(), Vec::new()));
    device.backplane.add_physical(0, 7, Box::new(later)).unwrap();
    device.cables[0].send((0..100).map(|n| frame([2; 6], None, n)));
    wait_for(|| device.backplane.unclassified() == 100);
    // A flood of such frames does not keep the switch from those of its other port, and the one that had the place has none of them, although it looks.
    for n in 0..20 {
        device.cables[0].send((0..2000).map(|n| frame([2; 6], None, n)));
        device.backplane.connect(port(&member.wires, 0), &[]).unwrap();
        device.cables[1].send([frame([2; 6], None, n)]);
    }
    let rx = |port: usize| member.control.report(PATIENCE).unwrap().ports[port].counters.rx_packets;
    wait_for(|| rx(1) == 20);
    assert_eq!(rx(0), 1);
    assert!(device.cables[1].from.lock().unwrap().is_empty());
}
