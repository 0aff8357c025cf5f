//! The driver on veth pairs, in network namespaces of the tests' own. Skipped without root.

mod hosts;

use super::queue::XdpQueue;
use super::*;
use crate::af_packet::{PacketDevice, PacketQueue};
use crate::link::LinkName;
use crate::netns::{Host, in_fresh_namespace, ip, veth_pair, wait_until_up};
use crate::port::{PortError, PortStatistics, QueuePair, Transmitted};
use crate::testing::{self, frame, receive, send};
use millrace_frames::{Batch, PacketPool};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

const MODES: [&str; 2] = ["native", "generic"];

/// All ports of a process take their parts of one piece of memory: a test that asserts that frames lie in one piece runs alone.
static PIECE: RwLock<()> = RwLock::new(());

/// Runs a test in a fresh network namespace, if the kernel has sockets for XDP and lets this process use them.
fn in_namespace(test: &str, body: impl FnOnce() + Send + 'static) {
    let _others = PIECE.read().unwrap_or_else(PoisonError::into_inner);
    run_in_namespace(test, body);
}

/// The same, with a piece of memory of its own.
fn with_own_piece(test: &str, body: impl FnOnce() + Send + 'static) {
    let _alone = PIECE.write().unwrap_or_else(PoisonError::into_inner);
    run_in_namespace(test, body);
}

fn run_in_namespace(test: &str, body: impl FnOnce() + Send + 'static) {
    match bpf::socket_map(1) {
        Ok(_) => in_fresh_namespace(test, body),
        Err(error) => println!("{test}: skipped, XDP: {error}"),
    }
}

fn open(args: &str) -> Result<XdpQueue, PortError> {
    Ok(XdpDevice::new(args, 1)?.queues(1)?.remove(0))
}

/// The kernel's side of an interface.
fn packet(name: &str) -> PacketQueue {
    PacketDevice::new(name, 1).unwrap().queues(1).unwrap().remove(0)
}

/// Opens an interface.
type Opens<'a> = &'a dyn Fn(&str) -> Result<Box<dyn QueuePair>, PortError>;

/// Checks in both modes, each in a namespace of its own.
fn in_both_modes(test: &str, check: fn(Opens<'_>)) {
    for mode in MODES {
        in_namespace(test, move || {
            check(&move |name| {
                let queue = open(&format!("{name},mode={mode}"))?;
                let taken = format!(
                    "taken by XDP in {mode} mode, with one copy of each frame; the kernel's own stack sees no frame of {name}"
                );
                assert!(queue.remark().unwrap().starts_with(&taken), "{:?}", queue.remark());
                Ok(Box::new(queue))
            });
        });
    }
}

/// The kernel's side, as what opens an interface.
fn kernel(name: &str) -> Result<Box<dyn QueuePair>, PortError> {
    Ok(Box::new(packet(name)))
}

#[test]
fn frames_pass_in_native_and_generic_mode() {
    in_both_modes("frames_pass_in_native_and_generic_mode", |open| {
        testing::frames_pass_both_ways(open, &kernel, 60);
    });
}

#[test]
fn frames_that_the_link_does_not_take_are_refused() {
    in_both_modes("frames_that_the_link_does_not_take", |open| {
        testing::frames_that_the_link_does_not_take_are_refused(open);
    });
}

#[test]
fn long_frames_pass() {
    // In native mode the other end of a veth has no longer ones.
    in_both_modes("long_frames_pass", |open| testing::long_frames_pass(open, 3400));
    in_namespace("long_frames_pass", || {
        testing::long_frames_pass(&|name| Ok(Box::new(open(&format!("{name},mode=generic"))?)), LONGEST_MTU);
    });
}

#[test]
fn an_interface_that_goes_away_is_an_error_and_one_that_goes_down_is_not() {
    in_both_modes("an_interface_that_goes_away", |open| {
        testing::an_interface_goes_down_and_away(open, &kernel);
    });
}

#[test]
fn an_interface_with_another_name_is_the_same() {
    in_both_modes("a_renamed_interface_of_xdp", |open| testing::an_interface_gets_another_name(open));
}

#[test]
fn frames_for_a_link_that_is_down_are_refused() {
    in_both_modes("frames_for_a_link_that_is_down", |open| {
        testing::frames_for_a_link_that_is_down_are_refused(open);
    });
}

/// The frame with a number at its end.
fn numbered(number: u32) -> Vec<u8> {
    let mut frame = frame(1, 64);
    frame[60..].copy_from_slice(&number.to_be_bytes());
    frame
}

fn number_of(frame: &[u8]) -> u32 {
    u32::from_be_bytes(*frame.last_chunk().unwrap())
}

/// Which programs an interface has.
fn programs(interface: &str) -> usize {
    let index = LinkName::new(DRIVER, interface).unwrap().index().unwrap();
    netlink::attached(index.unsigned_abs()).unwrap().len()
}

#[test]
fn frames_are_forwarded_in_order_where_they_lie() {
    with_own_piece("frames_are_forwarded_in_order", || {
        const FRAMES: u32 = 20_000;
        for (mode, way) in [("native", 0), ("generic", 1)] {
            let names = ["a", "b", "c", "d"].map(|end| format!("v{way}{end}"));
            veth_pair(&names[0], &names[1]);
            veth_pair(&names[2], &names[3]);
            let mut pool = PacketPool::new(300);
            let open = |name: &str| {
                XdpDevice::new(&format!("{name},mode={mode}"), 4).unwrap().queues(1).unwrap().remove(0)
            };
            let [mut a, mut b, mut c, mut d] = names.each_ref().map(|name| open(name));
            let (mut sent, mut next, mut batch) = (0, 0, Batch::new());
            let mut places = Vec::new();
            let deadline = Instant::now() + Duration::from_secs(20);
            while next < FRAMES && Instant::now() < deadline {
                let more = (FRAMES - sent).min(16).min(200u32.saturating_sub(sent - next));
                let frames: Vec<_> = (sent..sent + more).map(numbered).collect();
                sent += send(&mut a, &mut pool, &frames).sent as u32;
                // A switch: what comes by one port leaves by the other.
                b.receive(&mut batch, &mut pool).unwrap();
                assert!(batch.is_empty() || batch.burst(&mut places).is_some(), "switched where they lie");
                c.transmit(&mut batch, &mut pool).unwrap();
                assert!(batch.is_empty(), "{mode}: none is refused");
                c.flush().unwrap();
                c.complete(&mut pool);
                d.receive(&mut batch, &mut pool).unwrap();
                for packet in batch.packets() {
                    assert_eq!((number_of(packet.data()), packet.len()), (next, 64), "{mode}");
                    next += 1;
                }
                batch.recycle(&mut pool);
            }
            assert_eq!(next, FRAMES, "{mode}: {:?} {:?}", b.statistics(), d.statistics());
            assert_eq!((c.statistics().tx_packets, c.statistics().tx_copied), (FRAMES.into(), 0));
            assert_eq!(b.statistics().rx_missed, 0);
            // Every slot comes back, to the pool of the part that it is of.
            for (queue, sending) in [(&mut b, 0), (&mut c, 0)] {
                assert_eq!(queue.in_flight(), sending);
            }
            let lent = b.channels[0].entries() as usize;
            assert_eq!(b.part.pool.available() + lent, b.part.slots());
        }
    });
}

#[test]
fn a_port_that_closes_gives_the_slots_of_other_ports_back() {
    with_own_piece("a_port_that_closes_gives_slots_back", || {
        for (end, is_gone) in [("1", false), ("2", true)] {
            let names = ["a", "b", "c", "d"].map(|name| format!("{name}{end}"));
            veth_pair(&names[0], &names[1]);
            veth_pair(&names[2], &names[3]);
            let mut pool = PacketPool::new(200);
            let open = |name: &str| XdpDevice::new(name, 2).unwrap().queues(1).unwrap().remove(0);
            let [mut b, mut c] = [&names[1], &names[2]].map(|name| open(name));
            let frames: Vec<_> = (0..60).map(numbered).collect();
            assert_eq!(send(&mut packet(&names[0]), &mut pool, &frames).sent, 60);
            let mut batch = Batch::new();
            while batch.len() < 60 {
                b.receive(&mut batch, &mut pool).unwrap();
            }
            // They wait in the ring of a port that closes, whose interface may be gone.
            assert_eq!(c.transmit(&mut batch, &mut pool).unwrap(), Transmitted { sent: 60, refused: 0 });
            assert_eq!(c.in_flight(), 60);
            if is_gone {
                ip(&format!("link del {}", names[2]));
            }
            drop(c);
            let lent = b.channels[0].entries() as usize;
            assert_eq!(b.part.pool.available() + lent, b.part.slots(), "gone: {is_gone}");
        }
    });
}

#[test]
fn frames_that_nobody_fetches_in_time_are_counted() {
    in_namespace("frames_that_nobody_fetches_are_counted", || {
        const FRAMES: u32 = 5000;
        veth_pair("va", "vb");
        for mode in MODES {
            let mut pool = PacketPool::new(200);
            let mut a = open("va,mode=generic").unwrap();
            let mut b = open(&format!("vb,mode={mode}")).unwrap();
            let mut sent = 0;
            for first in (0..FRAMES).step_by(50) {
                let frames: Vec<_> = (first..first + 50).map(numbered).collect();
                sent += send(&mut a, &mut pool, &frames).sent;
            }
            assert_eq!(sent, FRAMES as usize);
            let settled = Instant::now() + Duration::from_secs(2);
            while a.in_flight() > 0 && Instant::now() < settled {
                a.flush().unwrap();
            }
            let received = receive(&mut b, &mut pool, FRAMES as usize);
            let numbers: Vec<u32> = received.iter().map(|frame| number_of(frame)).collect();
            assert!(numbers.iter().copied().eq(0..received.len() as u32), "the first ones, in order");
            let statistics = b.statistics();
            assert_eq!(received.len(), b.channels[0].entries() as usize, "{mode}");
            assert_eq!(statistics.rx_packets + statistics.rx_missed, FRAMES.into(), "{mode}: {statistics:?}");
            // And all is well again.
            assert_eq!(send(&mut a, &mut pool, &[numbered(7)]).sent, 1);
            assert_eq!(receive(&mut b, &mut pool, 1), [numbered(7)]);
        }
    });
}

/// A pair of connected interfaces with two queues each.
fn veth_pair_of_two_queues(one: &str, other: &str) {
    let queues = "numrxqueues 2 numtxqueues 2";
    ip(&format!("link add {one} {queues} type veth peer name {other} {queues}"));
    for interface in [one, other] {
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"), "1");
        ip(&format!("link set {interface} up"));
    }
    wait_until_up(one);
    wait_until_up(other);
}

#[test]
fn all_queues_are_taken_by_one_pair_or_several() {
    in_namespace("all_queues_are_taken", || {
        veth_pair_of_two_queues("va", "vb");
        let mut pool = PacketPool::new(200);
        let mut senders = XdpDevice::new("va,mode=native", 1).unwrap().queues(2).unwrap();
        let message = |args, pairs| match XdpDevice::new(args, 1).unwrap().queues(pairs) {
            Ok(_) => panic!("{args} opens"),
            Err(error) => error.to_string(),
        };
        assert_eq!(message("vb", 3), "xdp:vb opens to 1 to 2 queue pairs, not 3");
        assert_eq!(message("vb", 0), "xdp:vb opens to 1 to 2 queue pairs, not 0");
        let absent = "xdp: cannot take interface vb: it has no receive queue 2, but 0 to 1";
        assert_eq!(message("vb,queue=1,queue=2", 1), absent);
        for pairs in [1, 2] {
            let mut queues = XdpDevice::new("vb,mode=native", 1).unwrap().queues(pairs).unwrap();
            assert_eq!((queues.len(), programs("vb")), (pairs, 1));
            assert!(ip("-d link show dev vb").contains(" promiscuity 1 "));
            let mut came = vec![Vec::new(); 2];
            for round in 0..20 {
                for (number, sender) in senders.iter_mut().enumerate() {
                    let frames: Vec<_> = (0..30).map(|at| frame(number as u8, 60 + at + round)).collect();
                    assert_eq!(send(sender, &mut pool, &frames).sent, 30);
                    came[number].extend(frames);
                }
                if pairs == 1 {
                    crate::wait_readable(&[queues[0].poll_fd().unwrap()], Some(Duration::from_secs(1)))
                        .unwrap();
                }
                let count = if pairs == 1 { 60 } else { 30 };
                for (pair, queue) in queues.iter_mut().enumerate() {
                    let received = receive(queue, &mut pool, count);
                    assert_eq!(received.len(), count);
                    for frame in received {
                        let number = usize::from(frame[11]);
                        assert!(pairs == 1 || number == pair, "a queue of the interface has one pair");
                        assert_eq!(came[number].remove(0), frame, "in order");
                    }
                }
            }
            assert!(came.iter().all(Vec::is_empty));
        }
        assert_eq!(programs("vb"), 0);
        assert!(ip("-d link show dev vb").contains(" promiscuity 0 "));
    });
}

#[test]
fn frames_of_other_queues_go_on_to_the_kernel() {
    in_namespace("frames_of_other_queues_go_on", || {
        veth_pair_of_two_queues("va", "vb");
        let mut pool = PacketPool::new(200);
        let mut senders = XdpDevice::new("va,mode=native", 1).unwrap().queues(2).unwrap();
        let mut second = open("vb,mode=native,queue=1").unwrap();
        let mut kernel = packet("vb");
        for (number, sender) in senders.iter_mut().enumerate() {
            assert_eq!(send(sender, &mut pool, &[frame(number as u8, 60)]).sent, 1);
        }
        assert_eq!(receive(&mut second, &mut pool, 1), [frame(1, 60)]);
        assert_eq!(receive(&mut kernel, &mut pool, 1), [frame(0, 60)]);
        let mut batch = Batch::new();
        kernel.receive(&mut batch, &mut pool).unwrap();
        assert!(batch.is_empty(), "the kernel does not see what the socket has");
    });
}

/// 4096 bytes less 256 before and 16 after the frame, its header and a tag.
const LONGEST_MTU: usize = 4096 - 256 - 16 - 18;

#[test]
fn slots_have_a_page_at_most() {
    in_namespace("slots_have_a_page_at_most", || {
        veth_pair("va", "vb");
        ip(&format!("link set vb mtu {}", LONGEST_MTU + 1));
        let error = open("vb,mode=generic").err().unwrap().to_string();
        let message =
            "xdp: cannot take interface vb: its MTU is 3807, and frames of more than 3806 do not fit a page";
        assert_eq!(error, message);
    });
}

#[test]
fn a_program_of_somebody_else_is_left_alone() {
    in_namespace("a_program_of_somebody_else", || {
        veth_pair("va", "vb");
        let index = LinkName::new(DRIVER, "vb").unwrap().index().unwrap().unsigned_abs();
        let message = |args| open(args).err().map(|error| error.to_string()).unwrap_or_default();
        // Of another kind, by a link and without one.
        let theirs = bpf::load_other(c"their_filter").unwrap();
        let link = bpf::link(&theirs, index, netlink::XDP_FLAGS_SKB_MODE).unwrap();
        let taken = "xdp: cannot take interface vb: it has the XDP program `their_filter` already (number ";
        for args in ["vb", "vb,mode=generic", "vb,mode=native"] {
            assert!(message(args).starts_with(taken), "{}", message(args));
        }
        drop(link);
        netlink::attach(index, &theirs, netlink::XDP_FLAGS_DRV_MODE).unwrap();
        assert!(message("vb").starts_with(taken), "{}", message("vb"));
        netlink::detach(index, &theirs, netlink::XDP_FLAGS_DRV_MODE).unwrap();
        // Another switch that runs.
        let first = open("vb").unwrap();
        assert_eq!(message("vb"), "xdp: cannot take interface vb: another switch that runs has it already");
        drop(first);
        assert!(open("vb").is_ok());
    });
}

#[test]
fn a_program_that_outlived_its_switch_is_replaced() {
    in_namespace("a_program_that_outlived_its_switch", || {
        veth_pair("va", "vb");
        let index = LinkName::new(DRIVER, "vb").unwrap().index().unwrap().unsigned_abs();
        for mode in [netlink::XDP_FLAGS_DRV_MODE, netlink::XDP_FLAGS_SKB_MODE] {
            // As a kernel without links leaves it.
            let map = bpf::socket_map(1).unwrap();
            netlink::attach(index, &bpf::load_program(&map).unwrap(), mode).unwrap();
            drop(map);
            assert_eq!(programs("vb"), 1);
            let mut b = open("vb").unwrap();
            let (mut a, mut pool) = (packet("va"), PacketPool::new(200));
            send(&mut a, &mut pool, &[frame(1, 60)]);
            assert_eq!(receive(&mut b, &mut pool, 1), [frame(1, 60)]);
            drop(b);
            assert_eq!(programs("vb"), 0);
        }
    });
}

/// What a test runs in a process of its own, which is this program with one test.
const JOB: &str = "MILLRACE_XDP_TEST_JOB";

#[test]
fn a_process_of_another_test() {
    match std::env::var(JOB).as_deref() {
        Ok("hold") => {
            let _b = open("vb").unwrap();
            println!("open");
            std::thread::sleep(Duration::from_secs(60));
        }
        Ok("reopen") => {
            let count = |folder: &str| std::fs::read_dir(folder).unwrap().count();
            let mapped = || std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
            drop(open("vb").unwrap());
            let before = (count("/proc/self/fd"), mapped());
            for round in 0..100 {
                let mode = MODES[round % 2];
                drop(XdpDevice::new(&format!("vb,mode={mode}"), 1).unwrap().queues(1 + round % 2).unwrap());
            }
            let after = (count("/proc/self/fd"), mapped());
            assert_eq!(before.0, after.0, "descriptors");
            // The allocator may map some memory of its own.
            assert!(after.1 <= before.1 + 5, "{before:?} {after:?}");
            println!("open");
        }
        _ => {}
    }
}

fn job(name: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "xdp::tests::a_process_of_another_test", "--nocapture"]).env(JOB, name);
    command
}

#[test]
fn a_switch_that_is_killed_leaves_nothing() {
    use std::io::{BufRead, BufReader};
    in_namespace("a_switch_that_is_killed_leaves_nothing", || {
        veth_pair("va", "vb");
        for _ in 0..3 {
            let mut process = job("hold").stdout(std::process::Stdio::piped()).spawn().unwrap();
            let lines = BufReader::new(process.stdout.take().unwrap()).lines();
            assert!(lines.map_while(Result::ok).any(|line| line.ends_with("open")));
            assert_eq!(programs("vb"), 1);
            // SIGKILL.
            process.kill().unwrap();
            process.wait().unwrap();
            assert_eq!(programs("vb"), 0, "no program is left");
            let (mut b, mut pool) = (open("vb").unwrap(), PacketPool::new(200));
            send(&mut packet("va"), &mut pool, &[frame(1, 60)]);
            assert_eq!(receive(&mut b, &mut pool, 1), [frame(1, 60)]);
        }
    });
}

#[test]
fn a_port_that_is_closed_leaves_no_descriptor_and_no_mapping() {
    in_namespace("a_port_that_is_closed_leaves_no_descriptor", || {
        veth_pair_of_two_queues("va", "vb");
        let done = job("reopen").output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(
            done.status.success() && said.contains("open"),
            "{said}{}",
            String::from_utf8_lossy(&done.stderr)
        );
    });
}
