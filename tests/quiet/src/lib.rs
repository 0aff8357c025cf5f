//! A running switch with ports on which nothing happens, for tests of what controls it.

use millrace_compile::{Options, Source, Standard, check};
use millrace_dataplane::{Control, EngineKind, Summary, Switch, SwitchConfig, Worker};
use millrace_drivers::{FarEnd, MemoryPort, Next, QueuePair};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::JoinHandle;

/// The program with every kind of object, from the root of the repository.
const ALL: &str = "../../crates/p4runtime/tests/programs/all.p4";

/// A running switch with ports 1 and 2 and a program with every kind of object. It ends when this is dropped.
#[derive(Debug)]
pub struct Quiet {
    /// Reaches it.
    pub control: Control,
    worker: Option<JoinHandle<Summary>>,
}

/// The environment variable that names what runs the programs of switches in tests of clients.
pub const ENGINE: &str = "MILLRACE_TEST_ENGINE";

/// What runs the programs of switches in tests of clients: as `run --engine` has it in [`ENGINE`], else the fastest.
///
/// # Panics
/// No engine has that name.
pub fn engine() -> EngineKind {
    match std::env::var(ENGINE).as_deref() {
        Err(_) | Ok("" | "auto") => EngineKind::Fastest,
        Ok("interp") => EngineKind::Interp,
        Ok("jit") => EngineKind::Jit,
        Ok("rtl") => EngineKind::Rtl,
        Ok(other) => panic!("{ENGINE}: no engine is called {other}"),
    }
}

impl Quiet {
    /// Starts one.
    ///
    /// # Panics
    /// The program cannot be run.
    #[allow(clippy::new_without_default, reason = "it starts a thread")]
    pub fn start() -> Quiet {
        Quiet::set_up(|_| {})
    }

    /// Starts one that was set up before.
    ///
    /// # Panics
    /// The program cannot be run.
    pub fn set_up(set_up: impl FnOnce(&mut Switch)) -> Quiet {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(ALL);
        let checked = check(Source::Path(&path), Standard::P4_16, &Options::default());
        let config = SwitchConfig { engine: engine(), ..SwitchConfig::default() };
        let mut switch = Switch::new(checked.lower().unwrap(), config).unwrap();
        set_up(&mut switch);
        let worker = Worker::new(switch, [1, 2].map(|number| (number, quiet_port())).into()).unwrap();
        let control = worker.control();
        Quiet { control, worker: Some(std::thread::spawn(move || worker.run())) }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        self.control.stop();
        if let Some(worker) = self.worker.take() {
            // A worker that panicked has said so.
            let _ = worker.join();
        }
    }
}

/// A port on which nothing arrives.
pub fn quiet_port() -> Box<dyn QueuePair> {
    Box::new(MemoryPort::new(Silence::new()))
}

/// An interface on which nothing arrives.
struct Silence {
    here: UnixStream,
    _there: UnixStream,
}

impl Silence {
    fn new() -> Silence {
        let (here, there) = UnixStream::pair().unwrap();
        Silence { here, _there: there }
    }
}

impl FarEnd for Silence {
    fn next(&mut self) -> Next<'_> {
        Next::None
    }

    fn take(&mut self, _: &[u8]) -> bool {
        true
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.here.as_raw_fd())
    }
}
