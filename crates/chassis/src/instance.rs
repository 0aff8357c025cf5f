//! A switch that runs, and who hears of what happens there.

use millrace_dataplane::{Control, DigestMessage, Notice, PortId, Summary, Trace, Worker};
use millrace_drivers::{LinkNews, LinkWatch, Links};
use millrace_pipeline::Program;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use tracing::{error, info};

/// Who hears of a running switch. What happens to packets and what happens to links is told by a thread each; neither is a
/// worker's, so whoever takes long delays only those that hear after it.
pub trait Listener: Send + Sync {
    /// A program sent a message to the control plane.
    fn digest(&self, program: &Arc<Program>, message: &DigestMessage);

    /// The link of a port came up or went down.
    fn link(&self, port: PortId, is_up: bool);

    /// A port is broken for good.
    fn port_failed(&self, port: PortId, error: &str);

    /// The program wrote a line to its log.
    fn log(&self, _line: &str) {}

    /// What happened to a packet.
    fn story(&self, _story: &Trace) {}
}

/// A switch with its worker, from the first packet to the last.
pub struct Instance {
    worker: Worker,
    control: Control,
    notices: Receiver<Notice>,
    links: Option<LinkWatch>,
    listeners: Vec<Arc<dyn Listener>>,
}

impl Instance {
    /// Of a worker that does not run yet.
    pub fn new(mut worker: Worker) -> Instance {
        let (control, notices) = (worker.control(), worker.notices());
        Instance { worker, control, notices, links: None, listeners: Vec::new() }
    }

    /// Reaches the worker. Requests wait until it runs.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The worker, to be set up before it runs.
    pub fn worker_mut(&mut self) -> &mut Worker {
        &mut self.worker
    }

    /// Has somebody hear of it. Those who came first hear first.
    pub fn add_listener(&mut self, listener: Arc<dyn Listener>) {
        self.listeners.push(listener);
    }

    /// Watches links from now on, which may become more, and tells at once what they are like.
    ///
    /// # Errors
    /// The kernel does not tell of links.
    pub fn watch(&mut self, links: Links) -> io::Result<()> {
        let mut watch = LinkWatch::new(links)?;
        watch.changes().into_iter().for_each(|(port, is_up)| tell_change(port, is_up, &self.listeners));
        self.links = Some(watch);
        Ok(())
    }

    /// Runs on this thread until it is told to end, or has nothing more to do.
    ///
    /// # Errors
    /// The system has no pair of sockets; then it has not run.
    pub fn run(self) -> io::Result<Summary> {
        let Instance { worker, control, notices, links, listeners } = self;
        let (stop, stopped) = UnixStream::pair()?;
        Ok(std::thread::scope(|scope| {
            let listeners = &listeners[..];
            scope.spawn(move || tell(&notices, listeners));
            if let Some(watch) = links {
                scope.spawn(move || tell_links(watch, &stopped, &control, listeners));
            }
            let summary = worker.run();
            drop(stop);
            summary
        }))
    }
}

/// Tells of what happens to packets until the switch ends.
fn tell(notices: &Receiver<Notice>, listeners: &[Arc<dyn Listener>]) {
    notices.iter().for_each(|notice| tell_of(&notice, listeners));
}

/// Tells of something that happened to a packet or a port.
pub fn tell_of(notice: &Notice, listeners: &[Arc<dyn Listener>]) {
    for listener in listeners {
        match notice {
            Notice::Digest { program, message } => listener.digest(program, message),
            Notice::Log(line) => listener.log(line),
            Notice::Story(story) => listener.story(story),
            Notice::PortFailed { port, error } => listener.port_failed(*port, error),
        }
    }
}

/// Tells of links that come up and go down, until the other end of `stopped` is gone.
fn tell_links(watch: LinkWatch, stopped: &UnixStream, control: &Control, listeners: &[Arc<dyn Listener>]) {
    let tell = |news| match news {
        LinkNews::State(port, is_up) => tell_change(port, is_up, listeners),
        LinkNews::Mtu(port, mtu) => info!(port, mtu, "link"),
    };
    let look = || {
        control.look_at_ports();
        true
    };
    if let Err(error) = watch.follow(stopped, tell, look) {
        error!(%error, "links are not watched any more");
    }
}

fn tell_change(port: u16, is_up: bool, listeners: &[Arc<dyn Listener>]) {
    let port = port.into();
    info!(port, is_up, "link");
    listeners.iter().for_each(|listener| listener.link(port, is_up));
}
