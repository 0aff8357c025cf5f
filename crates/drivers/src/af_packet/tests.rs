//! The driver on veth pairs, in network namespaces of the tests' own. Skipped without root.

use super::*;
use crate::link::LinkName;
use crate::link_counters::LinkCounters;
use crate::netns::{
    Host, cross_connect, exchange, frames_received, in_fresh_namespace, ip, veth_pair, wait_until_up,
};
use crate::offload::parts;
use crate::port::{PortError, wall_clock_ns};
use crate::testing::{self, frame, receive, send, wait_until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Opens an interface to one queue pair.
pub(super) fn open(name: &str) -> Result<PacketQueue, PortError> {
    open_among(name, 1)
}

fn open_among(name: &str, ports: usize) -> Result<PacketQueue, PortError> {
    Ok(PacketDevice::new(name, ports)?.queues(1)?.remove(0))
}

fn boxed(name: &str) -> Result<Box<dyn QueuePair>, PortError> {
    Ok(Box::new(open(name)?))
}

#[test]
fn frames_pass_both_ways_and_own_ones_are_not_received() {
    in_fresh_namespace("frames_pass_both_ways", || testing::frames_pass_both_ways(&boxed, &boxed, 0));
}

#[test]
fn frames_that_the_link_does_not_take_are_refused() {
    in_fresh_namespace("frames_that_the_link_does_not_take", || {
        testing::frames_that_the_link_does_not_take_are_refused(&boxed);
    });
}

/// A veth has no stamps of its own: what was asked for is told, and frames have the kernel's.
#[test]
fn frames_of_a_device_without_stamps_have_the_kernels() {
    in_fresh_namespace("frames_of_a_device_without_stamps", || {
        veth_pair("va", "vb");
        let (mut a, mut b) = (open("va").unwrap(), open("vb,timestamps=hardware").unwrap());
        wait_until_up("vb");
        let mut pool = PacketPool::new(8);
        let remark = b.remark().unwrap();
        let wanted =
            "; frames have the kernel's stamps, not those of the device: it does not stamp received frames";
        assert!(remark.ends_with(wanted), "{remark}");
        assert!(!a.remark().unwrap().contains("stamps"), "nothing was asked for");
        // The kernel takes the request for stamps too, and frames that have none come with its own.
        b.ring.want_device_stamps().unwrap();
        let before = wall_clock_ns();
        send(&mut a, &mut pool, &[frame(1, 60)]);
        let mut batch = Batch::new();
        wait_until(&mut || {
            b.receive(&mut batch, &mut pool).unwrap();
            !batch.is_empty()
        });
        let stamp = batch.packets()[0].timestamp_ns;
        assert!((before..=wall_clock_ns()).contains(&stamp), "{before} {stamp}");
    });
}

#[test]
fn jumbo_frames_pass() {
    in_fresh_namespace("jumbo_frames_pass", || testing::long_frames_pass(&boxed, 9216));
}

#[test]
fn an_interface_that_goes_away_is_an_error_and_one_that_goes_down_is_not() {
    in_fresh_namespace("an_interface_that_goes_away", || {
        testing::an_interface_goes_down_and_away(&boxed, &boxed);
    });
}

#[test]
fn an_interface_with_another_name_is_the_same() {
    in_fresh_namespace("a_renamed_interface_of_packet", || {
        testing::an_interface_gets_another_name(&boxed);
    });
}

#[test]
fn frames_for_a_link_that_is_down_are_refused() {
    in_fresh_namespace("frames_for_a_link_that_is_down", || {
        testing::frames_for_a_link_that_is_down_are_refused(&boxed);
    });
}

#[test]
fn frames_that_outgrow_their_slot_come_in_order_too() {
    in_fresh_namespace("frames_that_outgrow_their_slot", || {
        veth_pair("va", "vb");
        // Opened for 1500 bytes; the link learns of jumbo frames later.
        let mut b = open("vb").unwrap();
        ip("link set va mtu 9216");
        ip("link set vb mtu 9216");
        let mut a = open("va").unwrap();
        let mut pool = PacketPool::new(200);
        let frames = [frame(1, 60), frame(2, 9000), frame(3, 8000), frame(4, 61)];
        assert_eq!(send(&mut a, &mut pool, &frames).sent, 4);
        assert_eq!(receive(&mut b, &mut pool, 4), frames);
    });
}

#[test]
fn the_mtu_is_followed_while_the_port_is_open() {
    in_fresh_namespace("the_mtu_is_followed", || {
        veth_pair("va", "vb");
        let mut pool = PacketPool::new(200);
        let (mut a, mut b) = (open("va").unwrap(), open("vb").unwrap());
        assert_eq!(send(&mut a, &mut pool, &[frame(0, 1518), frame(1, 1519)]).sent, 1);
        receive(&mut b, &mut pool, 1);
        ip("link set va mtu 9500");
        ip("link set vb mtu 9500");
        // Longer than the sending slots: refused until the port is asked for frames again, and then has larger ones.
        std::thread::sleep(LOOK_AGAIN);
        send(&mut a, &mut pool, &[frame(2, 9500)]);
        assert_eq!(a.receive(&mut Batch::new(), &mut pool).unwrap(), Received::Idle);
        let frames: Vec<Vec<u8>> = (0..60).map(|mark| frame(mark, 9518 - usize::from(mark))).collect();
        assert_eq!(send(&mut a, &mut pool, &frames), Transmitted { sent: 60, refused: 0 });
        assert_eq!(receive(&mut b, &mut pool, 60), frames);
        // The receiving port has followed too: nothing outgrows its slots any more, and nothing came twice.
        assert!(b.next_ring.is_none() && !b.ring.is_small_for(9500));
        assert_eq!(b.statistics().rx_packets, 61);
        assert_eq!(send(&mut a, &mut pool, &frames).sent, 60);
        wait_until(&mut || b.ring.arrival().is_some());
        assert!(!b.ring.arrival().unwrap().is_queued);
        assert_eq!(receive(&mut b, &mut pool, 60), frames);
        // A smaller MTU is followed when the kernel tells of it.
        ip("link set va mtu 1500");
        crate::link::note_change();
        assert_eq!(
            send(&mut a, &mut pool, &[frame(1, 1518), frame(2, 1519)]),
            Transmitted { sent: 1, refused: 1 }
        );
    });
}

#[test]
fn many_ports_share_the_memory_of_rings() {
    in_fresh_namespace("many_ports_share_the_memory_of_rings", || {
        (0..32).for_each(|number| drop(ip(&format!("link add l{number} type veth peer name r{number}"))));
        let before = resident();
        let names = (0..64).map(|number| format!("{}{}", if number < 32 { "l" } else { "r" }, number % 32));
        let ports: Vec<PacketQueue> = names.map(|name| open_among(&name, 64).unwrap()).collect();
        let taken = resident().saturating_sub(before);
        println!("{} MiB for {} ports", taken >> 20, ports.len());
        // 2 MiB each, where one alone has 16; other tests of this process have some at the same time.
        assert!(taken < 300 << 20, "{} MiB for {} ports", taken >> 20, ports.len());
    });
}

/// Bytes of memory that this process has.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

#[test]
fn vlan_tags_are_put_back() {
    in_fresh_namespace("vlan_tags_are_put_back", || {
        veth_pair("va", "vb");
        let (mut a, mut b) = (open("va").unwrap(), open("vb").unwrap());
        let mut pool = PacketPool::new(200);
        let mut plain = frame(1, 60);
        plain[12..18].copy_from_slice(&[0x81, 0x00, 0x61, 0x23, 0x88, 0xb5]);
        let mut double = frame(2, 60);
        double[12..22].copy_from_slice(&[0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x00, 0x08, 0x88, 0xb5]);
        let frames = [plain, double];
        assert_eq!(send(&mut a, &mut pool, &frames).sent, 2);
        let aside = b.ring.arrival().map(|arrival| (arrival.length, arrival.vlan));
        assert_eq!(aside, Some((56, Some((0x8100, 0x6123)))), "the kernel keeps the tag aside");
        assert_eq!(receive(&mut b, &mut pool, 2), frames);
    });
}

#[test]
fn a_port_recovers_when_its_own_link_is_up_again() {
    in_fresh_namespace("a_port_recovers", || {
        veth_pair("va", "vb");
        let mut pool = PacketPool::new(200);
        let mut a = open("va").unwrap();
        // The first frames may still go into the ring: the kernel's answer tells the port of the link.
        ip("link set va down");
        let frames: Vec<Vec<u8>> = (0..64).map(|mark| frame(mark, 60)).collect();
        let refused: usize = (0..200).map(|_| send(&mut a, &mut pool, &frames).refused).sum();
        assert!(refused >= 199 * 64, "{refused}");
        assert_eq!(a.statistics().tx_refused, refused as u64);
        ip("link set va up");
        wait_until_up("va");
        std::thread::sleep(LOOK_AGAIN);
        let deadline = Instant::now() + Duration::from_secs(2);
        while a.unsent && Instant::now() < deadline {
            a.flush().unwrap();
        }
        assert_eq!(send(&mut a, &mut pool, &[frame(1, 60)]).sent, 1);
    });
}

/// Of an interface that was removed and made again with its name, a port has the first one alone: what it took now would go nowhere.
#[test]
fn a_port_takes_nothing_for_another_interface_of_its_name() {
    in_fresh_namespace("a_port_takes_nothing_for_another", || {
        veth_pair("va", "vb");
        let mut pool = PacketPool::new(200);
        let mut a = open("va").unwrap();
        ip("link del va");
        veth_pair("va", "vb");
        crate::link::note_change();
        let mut batch = Batch::default();
        assert!(a.receive(&mut batch, &mut pool).is_err(), "the interface is gone");
        std::thread::sleep(LOOK_AGAIN);
        for mark in [1, 2] {
            batch.add(&mut pool).unwrap().set_frame(&frame(mark, 60)).unwrap();
        }
        // An error again where another test has told of a change meanwhile.
        let sent = a.transmit(&mut batch, &mut pool).map_or(0, |done| done.sent);
        assert_eq!((sent, batch.len()), (0, 2));
        batch.recycle(&mut pool);
        assert!(a.is_link_down());
    });
}

#[test]
fn errors_name_the_interface() {
    let message = |name| match open(name) {
        Ok(_) => panic!("{name} opened"),
        Err(error) => error.to_string(),
    };
    let absent = message("no-such-link");
    assert!(absent.starts_with("there is no interface `no-such-link` (there are: "), "{absent}");
    assert!(absent.contains("lo") && absent.contains("`tap:no-such-link` makes one"), "{absent}");
    let near = message("loo");
    assert!(near.starts_with("there is no interface `loo`, did you mean `lo`?"), "{near}");
    assert!(
        message("much-too-long-a-name")
            .starts_with("packet: `much-too-long-a-name` is not an interface name")
    );
}

#[test]
fn tcp_and_udp_pass_with_all_offloads_on() {
    hosts_talk("tcp_and_udp_pass", 1500);
}

/// The kernel takes a large frame with a VLAN tag as a link does: whoever wants frames of a cable gets the same ones.
#[test]
fn parts_with_a_vlan_tag_leave_as_one_frame() {
    in_fresh_namespace("parts_with_a_vlan_tag_leave_as_one_frame", || {
        for (at, kind) in [(false, false), (false, true), (true, true)].into_iter().enumerate() {
            let [one, other] = ["va", "vb"].map(|name| format!("{name}{at}"));
            veth_pair(&one, &other);
            let (mut from, mut to) = (open(&one).unwrap(), open(&other).unwrap());
            wait_until_up(&other);
            let (mut pool, mut batch) = (PacketPool::new(64), Batch::new());
            let parts = parts(kind, 20_000, 1400);
            parts.iter().for_each(|part| assert!(batch.push(part.clone()).is_ok()));
            assert_eq!(
                from.transmit(&mut batch, &mut pool).unwrap(),
                Transmitted { sent: 15, refused: 0 },
                "{kind:?}"
            );
            from.flush().unwrap();
            let came = receive(&mut to, &mut pool, 15);
            assert!(came.iter().eq(parts.iter().map(Packet::data)), "{kind:?}: {} frames", came.len());
            let counters = LinkCounters::of(&LinkName::new("test", &other).unwrap()).unwrap();
            assert_eq!(counters.rx.packets, 1, "{kind:?}");
        }
    });
}

#[test]
fn tcp_uses_an_mtu_that_was_raised_while_the_ports_were_open() {
    hosts_talk("tcp_uses_an_mtu_that_was_raised", 9500);
}

/// Two hosts with every offload that the kernel switches on by itself, and a wire made of two ports between them, whose
/// links get another MTU after the ports were opened.
fn hosts_talk(test: &str, mtu: usize) {
    in_fresh_namespace(test, move || {
        let (client, server) = (Host::new(), Host::new());
        for (host, port, inside) in [(&client, "p0", "h0"), (&server, "p1", "h1")] {
            veth_pair(port, inside);
            let number = if inside == "h0" { 1 } else { 2 };
            host.adopt(inside, &format!("fd00::{number}/64"));
            let inside = inside.to_owned();
            host.start(move || ip(&format!("addr add 10.8.0.{number}/24 dev {inside}"))).wait();
            wait_until_up(port);
        }
        let stop = Arc::new(AtomicBool::new(false));
        // The wire runs in a thread of this namespace.
        let (opened, are_open) = std::sync::mpsc::channel();
        let wire = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let ports = ["p0", "p1"].map(|name| open(name).unwrap());
                ["p0", "p1"].iter().for_each(|name| drop(ip(&format!("link set {name} mtu {mtu}"))));
                opened.send(()).unwrap();
                cross_connect(ports, mtu + 14, |_| (), &stop)
            }
        });
        are_open.recv().unwrap();
        for (host, inside) in [(&client, "h0"), (&server, "h1")] {
            host.start(move || ip(&format!("link set {inside} mtu {mtu}"))).wait();
        }

        exchange(&client, &server);
        stop.store(true, Ordering::Relaxed);
        let (statistics, longest) = wire.join().unwrap();
        for port in statistics {
            assert_eq!(port.rx_errors, 0, "{statistics:?}");
        }
        assert_eq!(longest, mtu + 14, "TCP fills its segments");
        // What was cut leaves in large frames again.
        let (sent, received) = (statistics[1].tx_packets, frames_received(&server, "h1"));
        assert!(received < sent / 2, "{sent} frames of a cable, {received} of the link");
    });
}
