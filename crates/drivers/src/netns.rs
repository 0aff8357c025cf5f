//! For tests: threads in network namespaces of their own, which end with the thread.

#![allow(unsafe_code)]

use std::process::Command;
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

/// Waits until the kernel has noticed that a link is up; until then it loses what is sent there.
pub(crate) fn wait_until_up(interface: &str) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !ip(&format!("link show dev {interface}")).contains("state UP") {
        assert!(Instant::now() < deadline, "{interface} does not come up");
        std::thread::sleep(Duration::from_millis(5));
    }
}
