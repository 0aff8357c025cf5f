//! `simple_switch` as scripts see it run: files and pipes in place of interfaces, its log, what it tells subscribers.

use crate::common::{Folder, Said, frames, root};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Writes where a packet came from into a register, says so, sends it to port 5 unless its first byte is 0xff, and
/// tells the controller of its second byte.
const PROGRAM: &str = r#"#include <core.p4>
#include <v1model.p4>
header a_t { bit<8> what; bit<8> from; }
struct h_t { a_t a; }
struct learn_t { bit<8> from; bit<9> port; }
struct m_t { learn_t learn; }
parser P(packet_in p, out h_t hdr, inout m_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.a); transition accept; }
}
control V(inout h_t hdr, inout m_t m) { apply { } }
control I(inout h_t hdr, inout m_t m, inout standard_metadata_t s) {
    register<bit<16>>(4) seen;
    action forward(bit<9> port) { s.egress_spec = port; }
    action drop() { mark_to_drop(s); }
    table where {
        key = { hdr.a.what: exact; }
        actions = { forward; drop; }
        const default_action = forward(5);
        const entries = { 0xff: drop(); }
    }
    apply {
        seen.write(2, 0x10);
        log_msg("from {}", {hdr.a.from});
        digest<learn_t>(1, {hdr.a.from, s.ingress_port});
        where.apply();
    }
}
control E(inout h_t hdr, inout m_t m, inout standard_metadata_t s) { apply { } }
control C(inout h_t hdr, inout m_t m) { apply { } }
control D(packet_out p, in h_t hdr) { apply { p.emit(hdr.a); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

/// A switch that goes when this does.
struct Running(Child);

impl Running {
    fn start(folder: &Folder, options: &[&str], stdout: Stdio) -> Running {
        Running::of(folder, PROGRAM, (options, &[]), stdout)
    }

    /// With options before the program and after it.
    fn of(folder: &Folder, text: &str, (before, after): (&[&str], &[&str]), stdout: Stdio) -> Running {
        let program = folder.file("program.p4", text);
        let image = folder.path("program.json");
        let mut compiler = Command::new(env!("CARGO_BIN_EXE_p4c-bm2-ss"));
        let said: Said = compiler.args(["-o", &image, &program]).output().unwrap().into();
        assert_eq!(said.code, 0, "{}", said.err);
        // A port that was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(env!("CARGO_BIN_EXE_simple_switch"));
        command
            .current_dir(root())
            .args(["--thrift-port", &port.to_string()])
            .args(before)
            .arg(image)
            .args(after);
        Running(command.stdout(stdout).stderr(Stdio::null()).spawn().unwrap())
    }

    fn end(mut self) {
        assert_eq!(self.0.try_wait().unwrap(), None, "it goes on after the end of its files");
        assert!(Command::new("kill").arg(self.0.id().to_string()).status().unwrap().success());
        assert_eq!(self.0.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !there() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The header of a capture in microseconds.
fn header() -> Vec<u8> {
    [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 65_535, 1].into_iter().flat_map(u32::to_le_bytes).collect()
}

fn record(micros: u32, frame: &[u8]) -> Vec<u8> {
    let length = frame.len() as u32;
    let words = [1, micros, length, length].into_iter().flat_map(u32::to_le_bytes);
    words.chain(frame.iter().copied()).collect()
}

fn pipe(folder: &Folder, name: &str) -> String {
    let path = folder.path(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// As p4c's driver of STF tests has them: opened one after the other, with a blank before the port's number, and the
/// frames of both in the order in which they were written.
#[test]
fn named_pipes_are_ports() {
    let folder = Folder::new("named-pipes");
    let pipes = [0, 1].map(|port| pipe(&folder, &format!("pcap{port}_in.pcap")));
    let ports = [0, 1, 5].map(|port| format!("-i {port}@{}", folder.path(&format!("pcap{port}"))));
    std::fs::write(folder.path("pcap5_in.pcap"), header()).unwrap();
    let options = ["--use-files", "0", &ports[0], &ports[1], &ports[2]];
    let running = Running::start(&folder, &options, Stdio::null());
    // Each open waits until the switch has opened the other end.
    let mut writers: Vec<File> =
        pipes.iter().map(|path| OpenOptions::new().write(true).open(path).unwrap()).collect();
    for writer in &mut writers {
        writer.write_all(&header()).unwrap();
    }
    for number in 0..200_u8 {
        writers[usize::from(number % 2)].write_all(&record(number.into(), &[1, number])).unwrap();
    }
    let sent = folder.path("pcap5_out.pcap");
    wait_for("all frames", || std::fs::metadata(&sent).is_ok_and(|file| file.len() == 24 + 200 * 18));
    drop(writers);
    std::thread::sleep(Duration::from_millis(100));
    running.end();
    let order: Vec<u8> = frames(&sent).iter().map(|frame| frame[1]).collect();
    assert_eq!(order, (0..200).collect::<Vec<u8>>());
}

/// By the formats of the log in bmv2's source, which published scripts look for.
#[test]
fn packets_are_logged_in_the_words_of_bmv2() {
    let folder = Folder::new("bmv2-words");
    let frames = [header(), record(1, &[1, 7]), record(2, &[0xff, 8])].concat();
    std::fs::write(folder.path("p_in.pcap"), frames).unwrap();
    let port = format!("5@{}", folder.path("p"));
    // What a script wrote before into the file that is standard output stays.
    let path = folder.path("log");
    let mut log = File::create(&path).unwrap();
    log.write_all(b"before\n").unwrap();
    let options = ["--log-console", "--dump-packet-data", "1", "--use-files", "0", "-i", &port];
    let running = Running::start(&folder, &options, log.into());
    let read = || std::fs::read_to_string(&path).unwrap();
    wait_for("the last packet", || read().contains("Dropping packet at the end of ingress"));
    running.end();
    let log = read();
    assert!(log.starts_with("before\n["), "{log}");
    for line in [
        "[I] [thread N] Received packet of length 2 on port 5: 01",
        "[D] [thread N] [0.0] [cxt 0] Processing packet received on port 5",
        "[D] [thread N] [0.0] [cxt 0] Parser 'parser': start",
        "[D] [thread N] [0.0] [cxt 0] Parser 'parser' entering state 'start'",
        "[D] [thread N] [0.0] [cxt 0] Extracting header 'a'",
        "[D] [thread N] [0.0] [cxt 0] Parser 'parser': end",
        "[D] [thread N] [0.0] [cxt 0] Pipeline 'ingress': start",
        "[T] [thread N] [0.0] [cxt 0] Wrote register 'I.seen' at index 2 with value 16",
        "[I] [thread N] from 7",
        "[T] [thread N] [0.0] [cxt 0] Applying table 'I.where'",
        "[D] [thread N] [0.0] [cxt 0] Table 'I.where': miss",
        "[D] [thread N] [0.0] [cxt 0] Action entry is I.forward - 5,",
        "[D] [thread N] [0.0] [cxt 0] Egress port is 5",
        "[D] [thread N] [0.0] [cxt 0] Deparser 'deparser': start",
        "[D] [thread N] [0.0] [cxt 0] Transmitting packet of size 2 out of port 5",
        "[I] [thread N] Sending packet of length 2 on port 5: 01",
        "[D] [thread N] [1.0] [cxt 0] Table 'I.where': hit with handle 0",
        "[D] [thread N] [1.0] [cxt 0] Action entry is I.drop - ",
        "[D] [thread N] [1.0] [cxt 0] Dropping packet at the end of ingress",
    ] {
        let (front, after) = line.split_once("N]").unwrap();
        let found = log.lines().any(|logged| {
            let words = logged.get("[00:00:00.000] [bmv2] ".len()..).unwrap_or_default();
            words.starts_with(front) && words.ends_with(after)
        });
        assert!(found, "{line}\n{log}");
    }
    assert_eq!(log.matches("from 7").count(), 1, "once\n{log}");
}

/// bmv2 counts queues from that of the highest priority; both engines do, of which one tells of each packet.
#[test]
fn a_program_sees_the_queue_of_a_packet() {
    for (options, queue) in [(&[][..], 0), (&["--", "--priority-queues", "8"][..], 5)] {
        for log in [&[][..], &["--log-console"][..]] {
            let folder = Folder::new("queue-id");
            std::fs::write(folder.path("p_in.pcap"), [header(), record(1, &[1, 7])].concat()).unwrap();
            let port = format!("5@{}", folder.path("p"));
            let text = PROGRAM
                .replace("where.apply();", "where.apply(); s.priority = 2;")
                .replace("inout standard_metadata_t s) { apply { } }", EGRESS);
            let before = [log, &["--use-files", "0", "-i", &port]].concat();
            let running = Running::of(&folder, &text, (&before, options), Stdio::null());
            let sent = folder.path("p_out.pcap");
            wait_for("the frame", || std::fs::metadata(&sent).is_ok_and(|file| file.len() == 24 + 18));
            running.end();
            assert_eq!(frames(&sent), [vec![1, queue]], "{options:?} {log:?}");
        }
    }
}

/// Writes the number of the queue into the packet.
const EGRESS: &str = "inout standard_metadata_t s) { apply { hdr.a.from = (bit<8>)s.qid; } }";

/// It cannot be opened by a name then.
#[test]
fn standard_output_may_be_a_socket() {
    let folder = Folder::new("socket-log");
    std::fs::write(folder.path("p_in.pcap"), [header(), record(1, &[1, 7])].concat()).unwrap();
    let (mut here, there) = UnixStream::pair().unwrap();
    here.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let port = format!("5@{}", folder.path("p"));
    let stdout = std::os::fd::OwnedFd::from(there).into();
    let running = Running::start(&folder, &["--log-console", "--use-files", "0", "-i", &port], stdout);
    let (mut log, mut bytes) = (String::new(), [0; 4096]);
    while !log.contains("Transmitting packet of size 2 out of port 5") {
        let read = here.read(&mut bytes).unwrap();
        assert!(read > 0, "{log}");
        log += &String::from_utf8_lossy(&bytes[..read]);
    }
    running.end();
}

/// As the controllers of p4-learning unpack it: the device, the list and the message in 32 bytes, then the samples.
#[test]
fn digests_reach_subscribers_of_nanomsg() {
    let folder = Folder::new("nanomsg");
    let input = pipe(&folder, "p_in.pcap");
    let socket = folder.path("n.ipc");
    let (port, address) = (format!("5@{}", folder.path("p")), format!("ipc://{socket}"));
    let options = ["--device-id", "9", "--notifications-addr", &address, "--use-files", "0", "-i", &port];
    let running = Running::start(&folder, &options, Stdio::null());
    let mut writer = OpenOptions::new().write(true).open(input).unwrap();
    wait_for("the socket", || Path::new(&socket).exists());
    let mut subscriber = UnixStream::connect(&socket).unwrap();
    subscriber.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    subscriber.write_all(b"\0SP\0\0\x21\0\0").unwrap();
    let mut greeting = [0; 8];
    subscriber.read_exact(&mut greeting).unwrap();
    assert_eq!(greeting, *b"\0SP\0\0\x20\0\0");
    // Who has just said hello may not be among the subscribers yet; a sample that nobody acknowledged is not told again.
    std::thread::sleep(Duration::from_millis(300));
    writer
        .write_all(&[header(), record(1, &[1, 7]), record(2, &[1, 7]), record(3, &[1, 8])].concat())
        .unwrap();
    let mut message = || {
        let mut bytes = [0; 9 + 32 + 3];
        subscriber.read_exact(&mut bytes).unwrap();
        bytes
    };
    let expected = |buffer: u8, from: u8| {
        let mut bytes = b"\x01\0\0\0\0\0\0\0\x23LEA|\x09\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0".to_vec();
        bytes.extend([buffer, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, from, 0, 5]);
        bytes
    };
    assert_eq!(message().to_vec(), expected(0, 7));
    assert_eq!(message().to_vec(), expected(1, 8));
    running.end();
    assert!(!Path::new(&socket).exists());
}

/// A message to the switch as a peer of nanomsg writes it to a Unix socket: its kind, the port, a length, the frame.
fn to_switch(kind: i32, port: i32, more: i32, frame: &[u8]) -> Vec<u8> {
    let numbers = [kind, port, more].into_iter().flat_map(i32::to_le_bytes);
    let message: Vec<u8> = numbers.chain(frame.iter().copied()).collect();
    [&[1][..], &(message.len() as u64).to_be_bytes(), &message].concat()
}

/// By the structures of bmv2's source, with a peer as its `packet_pipe` is. What is wrong is left out, the rest goes on.
#[test]
fn a_peer_of_nanomsg_is_all_ports() {
    let folder = Folder::new("packet-in");
    let socket = folder.path("p.ipc");
    let address = format!("ipc://{socket}");
    let notified = format!("ipc://{}", folder.path("n.ipc"));
    let options = ["--packet-in", &address, "--notifications-addr", &notified, "-i", "0@nowhere"];
    let running = Running::start(&folder, &options, Stdio::null());
    wait_for("the socket", || Path::new(&socket).exists());
    let mut peer = UnixStream::connect(&socket).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    peer.write_all(b"\0SP\0\0\x10\0\0").unwrap();
    let mut greeting = [0; 8];
    peer.read_exact(&mut greeting).unwrap();
    assert_eq!(greeting, *b"\0SP\0\0\x10\0\0");
    for wrong in [
        to_switch(3, 512, 2, &[1, 0]),
        to_switch(3, -1, 2, &[1, 0]),
        to_switch(3, 1, i32::MAX, &[1, 0]),
        to_switch(3, 1, -2, &[1, 0]),
        to_switch(3, 1, 16_385, &[1; 16_385]),
        to_switch(4, 1, 2, &[1, 0]),
        to_switch(99, i32::MIN, 0, &[]),
        b"\x01\0\0\0\0\0\0\0\x03abc".to_vec(),
    ] {
        peer.write_all(&wrong).unwrap();
    }
    // From any port that 9 bits count; 0xff is dropped.
    for (port, number) in [(0, 1), (510, 2), (7, 3)] {
        peer.write_all(&to_switch(3, port, 2, &[1, number])).unwrap();
        peer.write_all(&to_switch(3, port, 2, &[0xff, number])).unwrap();
    }
    for number in [1, 2, 3] {
        let mut said = [0; 9 + 12 + 2];
        peer.read_exact(&mut said).unwrap();
        let front = b"\x01\0\0\0\0\0\0\0\x0e\x04\0\0\0\x05\0\0\0\x02\0\0\0\x01";
        assert_eq!(said.to_vec(), [&front[..], &[number]].concat());
    }
    // A length that nobody believes closes the connection; another peer goes on.
    peer.write_all(&[1, 0, 0, 0, 0, 0x40, 0, 0, 0]).unwrap();
    assert_eq!(peer.read(&mut [0]).unwrap_or(0), 0);
    wait_for("the place of the peer", || {
        let mut peer = UnixStream::connect(&socket).unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let frame = [&b"\0SP\0\0\x10\0\0"[..], &to_switch(3, 2, 2, &[1, 9])].concat();
        peer.write_all(&frame).is_ok() && peer.read_exact(&mut [0; 8 + 9 + 12 + 2]).is_ok()
    });
    running.end();
    assert!(!Path::new(&socket).exists());
}
