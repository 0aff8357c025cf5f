//! For tests: threads in network namespaces of their own, which end with the thread.

#![allow(unsafe_code)]

use crate::link::LinkName;
use crate::link_counters::LinkCounters;
use crate::port::{PortStatistics, QueuePair};
use millrace_frames::{Batch, Packet, PacketPool};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A host of a test: a thread in a fresh network namespace that runs the jobs it is given.
pub(crate) struct Host {
    jobs: mpsc::Sender<Box<dyn FnOnce() + Send>>,
    thread: i32,
}

/// A job under way on a host.
pub(crate) struct Job<T>(mpsc::Receiver<T>);

impl<T> Job<T> {
    /// Waits for the result.
    pub(crate) fn wait(self) -> T {
        self.0.recv().expect("the job panicked, see above")
    }
}

/// Runs a test in a fresh network namespace, or says why not.
pub(crate) fn in_fresh_namespace(test: &str, body: impl FnOnce() + Send + 'static) {
    let (ready, is_ready) = mpsc::channel();
    let thread: JoinHandle<()> = std::thread::spawn(move || {
        let made = enter_fresh_namespace();
        let _ = ready.send(made.is_ok());
        if made.is_ok() {
            body();
        }
    });
    if !is_ready.recv().unwrap_or(false) {
        println!("{test}: skipped, network namespaces need root");
    }
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn enter_fresh_namespace() -> std::io::Result<()> {
    // SAFETY: takes no pointers; it changes the namespace of this thread alone.
    match unsafe { libc::unshare(libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

impl Host {
    /// A host with nothing but a loopback interface that is up.
    pub(crate) fn new() -> Host {
        let (jobs, work) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
        let (ready, is_ready) = mpsc::channel();
        std::thread::spawn(move || {
            enter_fresh_namespace().expect("the test itself runs in such a namespace");
            ip("link set lo up");
            // SAFETY: takes no pointers.
            let _ = ready.send(unsafe { libc::gettid() });
            for job in work {
                job();
            }
        });
        Host { jobs, thread: is_ready.recv().expect("the host starts") }
    }

    /// Starts a job.
    pub(crate) fn start<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Job<T> {
        let (done, result) = mpsc::channel();
        let job = Box::new(move || {
            let _ = done.send(job());
        });
        self.jobs.send(job).expect("the host runs");
        Job(result)
    }

    /// Moves an interface of this thread's namespace to the host and gives it an address there.
    pub(crate) fn adopt(&self, interface: &str, address: &str) {
        ip(&format!("link set {interface} netns {}", self.thread));
        let (interface, address) = (interface.to_owned(), address.to_owned());
        let configured = self.start(move || {
            ip(&format!("addr add {address} dev {interface} nodad"));
            ip(&format!("link set {interface} up"));
        });
        configured.wait();
    }
}

/// Runs an `ip` command in this thread's namespace and gives its output.
pub(crate) fn ip(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("iproute2 is installed");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A pair of connected interfaces, up, in this thread's namespace, that says nothing of its own accord.
pub(crate) fn veth_pair(one: &str, other: &str) {
    ip(&format!("link add {one} type veth peer name {other}"));
    for interface in [one, other] {
        // Absent where the kernel has no IPv6 at all.
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"), "1");
        ip(&format!("link set {interface} up"));
    }
    wait_until_up(one);
    wait_until_up(other);
}

/// Has this end of a veth send frames as a cable carries them, like `ethtool -K INTERFACE tx off txvlan off`.
pub(crate) fn finish_frames(interface: &str) {
    /// `struct ethtool_value` of linux/ethtool.h.
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    const ETHTOOL_STXCSUM: u32 = 0x17;
    const ETHTOOL_GFLAGS: u32 = 0x25;
    const ETHTOOL_SFLAGS: u32 = 0x26;
    const ETH_FLAG_TXVLAN: u32 = 1 << 7;
    let name = crate::link::LinkName::new("test", interface).expect("a name");
    let ask = |command, data| {
        let mut value = Value { command, data };
        assert!(name.ask_driver(&mut value).expect("veth knows it"));
        value.data
    };
    ask(ETHTOOL_STXCSUM, 0);
    let flags = ask(ETHTOOL_GFLAGS, 0);
    ask(ETHTOOL_SFLAGS, flags & !ETH_FLAG_TXVLAN);
}

/// Waits until the kernel has noticed that a link is up; until then it loses what is sent there.
pub(crate) fn wait_until_up(interface: &str) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !ip(&format!("link show dev {interface}")).contains("state UP") {
        assert!(Instant::now() < deadline, "{interface} does not come up");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Connects two ports, frame for frame, until told to stop. Gives their statistics, and the longest frame, which is no longer than
/// `limit`. `seen` sees a port after each burst.
pub(crate) fn cross_connect<Q: QueuePair>(
    [mut left, mut right]: [Q; 2],
    limit: usize,
    mut seen: impl FnMut(&Q),
    stop: &AtomicBool,
) -> ([PortStatistics; 2], usize) {
    let mut longest = 0;
    let mut pool = PacketPool::new(1024);
    let mut batch = Batch::new();
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..2 {
            left.receive(&mut batch, &mut pool).unwrap();
            seen(&left);
            longest = batch.packets().iter().map(Packet::len).fold(longest, usize::max);
            assert!(longest <= limit, "no frame longer than the link's");
            right.transmit(&mut batch, &mut pool).unwrap();
            right.flush().unwrap();
            batch.recycle(&mut pool);
            std::mem::swap(&mut left, &mut right);
        }
    }
    ([left.statistics(), right.statistics()], longest)
}

/// The frames that an interface of a host has received; a large one is one.
pub(crate) fn frames_received(host: &Host, interface: &'static str) -> u64 {
    let counters = host.start(move || LinkCounters::of(&LinkName::new("test", interface).unwrap()));
    counters.wait().expect("the interface counts").rx.packets
}

/// The client, 10.8.0.1 and fd00::1, sends much over TCP and one datagram to the server, which has 2 in its addresses.
pub(crate) fn exchange(client: &Host, server: &Host) {
    const AMOUNT: usize = 16 << 20;
    for (at, to) in [("10.8.0.2:80", "10.8.0.2:80"), ("[fd00::2]:80", "[fd00::2]:80")] {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let received = server.start(move || {
            let listener = TcpListener::bind(at).unwrap();
            ready.send(()).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut data = Vec::new();
            stream.read_to_end(&mut data).map(|_| data)
        });
        is_ready.recv().unwrap();
        let sent = client.start(move || {
            let data: Vec<u8> = (0..AMOUNT).map(|at| (at / 7) as u8).collect();
            let mut stream = TcpStream::connect_timeout(&to.parse().unwrap(), Duration::from_secs(10))?;
            stream.set_write_timeout(Some(Duration::from_secs(20)))?;
            stream.write_all(&data)?;
            std::io::Result::Ok(data)
        });
        let sent = sent.wait().unwrap();
        assert!(received.wait().unwrap() == sent, "the bytes arrive over {at}");
    }

    let (ready, is_ready) = std::sync::mpsc::channel();
    let datagram = server.start(move || {
        let socket = UdpSocket::bind("10.8.0.2:53").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        ready.send(()).unwrap();
        let mut data = [0; 100];
        socket.recv(&mut data).map(|length| data[..length].to_vec())
    });
    is_ready.recv().unwrap();
    client
        .start(|| UdpSocket::bind("10.8.0.1:0").and_then(|socket| socket.send_to(b"odd", "10.8.0.2:53")))
        .wait()
        .unwrap();
    assert_eq!(datagram.wait().unwrap(), b"odd");
}
