//! A switch that runs until its test ends it, and what it says meanwhile.

use crate::common::{Said, command};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A running switch.
pub(crate) struct Live {
    child: Child,
    lines: Receiver<String>,
    /// Lines of standard error so far.
    pub(crate) said: Vec<String>,
}

impl Live {
    /// `millrace` with these arguments.
    pub(crate) fn start(args: &[&str]) -> Live {
        let mut command = command();
        command.args(args);
        Live::of(&mut command)
    }

    /// A command that starts one.
    pub(crate) fn of(command: &mut Command) -> Live {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Live { child, lines, said: Vec::new() }
    }

    /// Waits until it says a line that begins like that, and gives the rest of the line; none when it ends first.
    pub(crate) fn hears(&mut self, beginning: &str) -> Option<String> {
        self.hears_within(PATIENCE, beginning)
    }

    /// The same, of what may take that long.
    pub(crate) fn hears_within(&mut self, patience: Duration, beginning: &str) -> Option<String> {
        let until = Instant::now() + patience;
        if let Some(rest) = self.said.iter().find_map(|line| line.strip_prefix(beginning)) {
            return Some(rest.to_owned());
        }
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    let found = line.strip_prefix(beginning).map(str::to_owned);
                    self.said.push(line);
                    if found.is_some() {
                        return found;
                    }
                }
                Err(RecvTimeoutError::Timeout) => panic!("no `{beginning}`: {:?}", self.said),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Where it serves metrics.
    pub(crate) fn metrics(&mut self) -> String {
        let told = self.hears("metrics at http://").unwrap_or_else(|| panic!("{:?}", self.said));
        told.trim_end_matches("/metrics").to_owned()
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, as `HUP`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits until it ends.
    pub(crate) fn ended(mut self) -> Said {
        let mut out = self.child.stdout.take().unwrap();
        let reading = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = out.read_to_string(&mut text);
            text
        });
        let start = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code().unwrap_or(-1);
            }
            assert!(start.elapsed() < PATIENCE, "it does not end: {:?}", self.said);
            std::thread::sleep(Duration::from_millis(10));
        };
        self.said.extend(self.lines.iter());
        Said { code, out: reading.join().unwrap(), err: self.said.join("\n") }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks over HTTP with these lines, by a client that knows nothing of ours: the status, and the body.
pub(crate) fn http(address: &str, lines: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(format!("{lines}\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    (status, answer.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned())
}

/// Waits until something holds.
pub(crate) fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether this process is root; without that a test of it has nothing to test.
pub(crate) fn is_root(test: &str) -> bool {
    let uid = Command::new("id").arg("-u").output().unwrap().stdout;
    let is_root = uid == b"0\n";
    if !is_root {
        println!("{test}: skipped, it needs root");
    }
    is_root
}

/// A network namespace of a test with pairs of interfaces, which goes when this does.
pub(crate) struct Namespace(String);

impl Namespace {
    /// One in which loopback is up; none where the system has none for us.
    pub(crate) fn new(name: &str) -> Option<Namespace> {
        let name = format!("mr{}{name}", std::process::id());
        let made = Command::new("ip").args(["netns", "add", &name]).status().is_ok_and(|made| made.success());
        if !made {
            println!("{name}: skipped, there are no network namespaces");
            return None;
        }
        let namespace = Namespace(name);
        namespace.ip("link set lo up");
        Some(namespace)
    }

    /// Does what `ip` does, in it.
    pub(crate) fn ip(&self, words: &str) {
        let done = Command::new("ip").args(["-n", &self.0]).args(words.split(' ')).output().unwrap();
        assert!(done.status.success(), "ip {words}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// Two interfaces that are connected, both up.
    pub(crate) fn pair(&self, one: &str, other: &str) {
        self.ip(&format!("link add {one} type veth peer name {other}"));
        self.ip(&format!("link set {one} up"));
        self.ip(&format!("link set {other} up"));
    }

    /// A command in it.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.0, program])
            .current_dir(crate::common::root())
            .env("NO_COLOR", "1");
        command
    }

    /// `millrace` in it, to its end.
    pub(crate) fn millrace(&self, args: &[&str]) -> Said {
        self.command(env!("CARGO_BIN_EXE_millrace")).args(args).output().unwrap().into()
    }

    /// `millrace` in it.
    pub(crate) fn start(&self, args: &[&str]) -> Live {
        Live::of(self.command(env!("CARGO_BIN_EXE_millrace")).args(args))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}
