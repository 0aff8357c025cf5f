//! What a device refuses: frames that its link never takes, or not now, hold up nobody; what it has no room for waits in its order.

use super::*;
use millrace_drivers::{Around, PortError, QueuePair, Transmitted};
use millrace_frames::{Batch, PacketPool};
use std::sync::atomic::AtomicBool;

/// How the link of a device is.
#[derive(Default)]
struct Link {
    is_down: AtomicBool,
    is_full: AtomicBool,
    is_broken: AtomicBool,
}

const LONGEST: usize = 100;

/// A device with a link that takes frames of 100 bytes at most.
struct Linked(MemoryPort<Plug>, Arc<Link>);

impl Around for Linked {
    type Inner = dyn QueuePair;

    fn inner(&self) -> &dyn QueuePair {
        &self.0
    }

    fn inner_mut(&mut self) -> &mut dyn QueuePair {
        &mut self.0
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        if self.1.is_broken.load(Ordering::Relaxed) {
            let error = std::io::Error::other("the cable is cut");
            return Err(PortError::System { action: "send".into(), error });
        }
        let before = batch.len();
        // The first half of a batch is what it has room for.
        let room = if self.1.is_full.load(Ordering::Relaxed) { before / 2 } else { before };
        let (mut at, inner) = (0, &mut self.0);
        let mut one = Batch::new();
        let mut rest = Batch::new();
        for packet in batch.drain() {
            at += 1;
            if self.1.is_down.load(Ordering::Relaxed) || packet.len() > LONGEST || at > room {
                let _ = rest.push(packet);
                continue;
            }
            let _ = one.push(packet);
            inner.transmit(&mut one, pool)?;
        }
        batch.take_all(&mut rest);
        Ok(Transmitted { sent: before - batch.len(), refused: batch.len() })
    }

    fn is_link_down(&self) -> bool {
        self.1.is_down.load(Ordering::Relaxed)
    }

    fn takes_length(&self, length: usize) -> bool {
        length <= LONGEST
    }
}

fn long(vid: Option<u16>, number: u16) -> Vec<u8> {
    let mut frame = frame([2; 6], vid, number);
    frame.resize(LONGEST + 50, 0);
    frame
}

/// A device whose port 1 has such a link, and its switches: one that has all alone, or two that share it by VLAN.
fn with_link(shared: bool) -> (Device, Vec<MemberHandle>, Arc<Link>) {
    let mut device = Device::new(1);
    device.backplane.remove_physical(0, 1).unwrap();
    let link = Arc::<Link>::default();
    let port = Linked(MemoryPort::new(Plug(device.cables[1].clone(), Vec::new())), Arc::clone(&link));
    device.backplane.add_physical(0, 1, Box::new(port)).unwrap();
    let count = if shared { 2 } else { 1 };
    let mut members: Vec<MemberHandle> = (0..count).map(|_| device.add(0, 2, Traffic::default())).collect();
    for (vid, member) in (1..).zip(&mut members) {
        let matches = if shared { Match::Vlan(vid) } else { Match::Whole };
        device.claim(member, 0, 0, matches.clone());
        device.claim(member, 1, 1, matches);
    }
    (device, members, link)
}

fn lost(members: &[MemberHandle], reason: Loss) -> u64 {
    members.iter().map(|member| member.counts.lost(reason)).sum()
}

#[test]
fn frames_that_a_link_never_takes_hold_up_nobody() {
    for shared in [false, true] {
        let (device, members, _) = with_link(shared);
        let vid = |n: u16| shared.then_some(n % 2 + 1);
        // Each third frame is too long.
        let sent = (0..300).map(|n| if n % 3 == 0 { long(vid(n), n) } else { frame([2; 6], vid(n), n) });
        device.cables[0].send(sent);
        let mut came = numbers(&device.cables[1].receive(200));
        came.sort_unstable();
        assert_eq!(came, (0..300).filter(|n| n % 3 != 0).collect::<Vec<u16>>());
        wait_for(|| lost(&members, Loss::Length) == 100);
        assert!(members.iter().all(|member| member.counts.losses().count() == 1));
    }
}

#[test]
fn frames_for_a_link_that_is_down_are_lost_at_once() {
    for shared in [false, true] {
        let (device, members, link) = with_link(shared);
        let send = |numbers: std::ops::Range<u16>| {
            device.cables[0].send(numbers.map(|n| frame([2; 6], shared.then_some(n % 2 + 1), n)));
        };
        link.is_down.store(true, Ordering::Relaxed);
        send(0..200);
        wait_for(|| lost(&members, Loss::LinkDown) == 200);
        link.is_down.store(false, Ordering::Relaxed);
        send(200..400);
        let mut came = numbers(&device.cables[1].receive(200));
        came.sort_unstable();
        assert_eq!(came, (200..400).collect::<Vec<u16>>());
    }
}

#[test]
fn what_a_device_has_no_room_for_waits_in_its_order() {
    for shared in [false, true] {
        let (device, members, link) = with_link(shared);
        for round in 0..50 {
            link.is_full.store(round % 2 == 0, Ordering::Relaxed);
            device.cables[0].send((0..400).map(|n| frame([2; 6], shared.then_some(n % 2 + 1), n)));
            std::thread::sleep(Duration::from_millis(1));
            link.is_full.store(false, Ordering::Relaxed);
            let came = device.cables[1].receive(400);
            for vid in [1, 2] {
                let is_its = |frame: &&Vec<u8>| !shared || frame[15] == vid;
                let of_switch = numbers(&came.iter().filter(is_its).cloned().collect::<Vec<Vec<u8>>>());
                assert!(of_switch.is_sorted(), "round {round}: {of_switch:?}");
            }
        }
        assert!(members.iter().all(|member| member.counts.losses().count() == 0));
    }
}

#[test]
fn what_is_for_a_device_that_broke_is_lost_with_its_reason() {
    for shared in [false, true] {
        let (device, members, link) = with_link(shared);
        link.is_broken.store(true, Ordering::Relaxed);
        device.cables[0].send((0..200).map(|n| frame([2; 6], shared.then_some(n % 2 + 1), n)));
        wait_for(|| lost(&members, Loss::PortGone) == 200);
        let report = device.backplane.statistics().unwrap();
        let errors: Vec<Option<String>> = [0, 1].map(|number| report.of(number).1).into();
        assert_eq!(errors, [None, Some("cannot send: the cable is cut".into())]);
        // The other direction gives nothing either: the port is broken.
        device.cables[1].send([frame([2; 6], shared.then_some(1), 7)]);
        device.cables[0].send((0..10).map(|n| frame([2; 6], shared.then_some(1), n)));
        wait_for(|| lost(&members, Loss::PortGone) == 210);
        assert_eq!(device.cables[1].to.lock().unwrap().len(), 1);
    }
}
