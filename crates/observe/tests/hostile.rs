//! Clients that hold connections, say little, or ask for captures where there are pipes.

use millrace_drivers::{Captures, DEFAULT_CAPTURE_FILE, QueuePair, null::NullPort};
use millrace_frames::{Batch, PacketPool};
use millrace_observe::server::{MAX_CONNECTIONS, MAX_REQUEST, REQUEST_TIME};
use millrace_observe::{Listen, Server, Shown};
use millrace_quiet::Quiet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

struct Watched {
    server: Server,
    _quiet: Quiet,
}

impl Watched {
    fn start(folder: Option<&Path>) -> Watched {
        let quiet = Quiet::start();
        let captures = Arc::new(Captures::new(folder, DEFAULT_CAPTURE_FILE).unwrap());
        let interface = "null:-".parse().unwrap();
        let pair: Box<dyn QueuePair> = Box::new(NullPort::open("-").unwrap());
        let mut port = captures.watch(1, &interface, [pair]).remove(0);
        port.receive(&mut Batch::new(), &mut PacketPool::new(1)).unwrap();
        let listen = Listen { address: ([127, 0, 0, 1], 0).into(), allow_remote: false, hosts: Vec::new() };
        let server = Server::start(listen, Shown::new(quiet.control.clone(), captures)).unwrap();
        Watched { server, _quiet: quiet }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.server.address()).unwrap()
    }

    /// The first line of the answer to a request, and how long it took.
    fn ask(&self, request: &str) -> (String, Duration) {
        let begun = Instant::now();
        let mut stream = self.connect();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer.lines().next().unwrap_or_default().to_owned(), begun.elapsed())
    }
}

#[test]
fn connections_that_do_not_ask_give_way_to_those_that_do() {
    let watched = Watched::start(None);
    let held: Vec<TcpStream> = (0..4 * MAX_CONNECTIONS)
        .map(|number| {
            let mut stream = watched.connect();
            let _ = match number % 2 {
                0 => Ok(()),
                _ => stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: "),
            };
            stream
        })
        .collect();
    for _ in 0..5 {
        let (answer, took) = watched.ask("GET /metrics");
        assert_eq!(answer, "HTTP/1.1 200 OK");
        assert!(took < Duration::from_secs(2), "{took:?}");
    }
    drop(held);
}

#[test]
fn a_request_that_trickles_or_has_no_end_is_cut_off() {
    let watched = Watched::start(None);
    let mut slow = watched.connect();
    let begun = Instant::now();
    slow.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    slow.write_all(b"GET /status HTTP/1.1\r\nX: ").unwrap();
    loop {
        assert!(begun.elapsed() < REQUEST_TIME + Duration::from_secs(4), "{:?}", begun.elapsed());
        let written = slow.write_all(b"x");
        let mut answer = [0; 100];
        match slow.read(&mut answer) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && written.is_ok() => {}
            _ => break,
        }
    }
    // More than the system keeps of it when the server has stopped reading.
    const MOST: usize = 4096 * MAX_REQUEST;
    let mut endless = watched.connect();
    endless.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let _ = endless.write_all(b"GET / HTTP/1.1\r\n");
    let line = format!("X: {}\r\n", "y".repeat(1000));
    let mut sent = 0;
    while sent < MOST && endless.write_all(line.as_bytes()).is_ok() {
        sent += line.len();
    }
    assert!(sent < MOST, "{sent} bytes of one request");
    assert_eq!(watched.ask("GET /status").0, "HTTP/1.1 200 OK");
}

#[test]
fn pipes_in_the_folder_of_captures_hold_nobody_up() {
    let folder = std::env::temp_dir().join(format!("millrace-observe-pipes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["port1_in.pcap", "port1_out.pcap"] {
        let _ = std::fs::remove_file(folder.join(name));
        assert!(std::process::Command::new("mkfifo").arg(folder.join(name)).status().unwrap().success());
    }
    let watched = Watched::start(Some(&folder));
    for _ in 0..4 {
        let (answer, took) = watched.ask("PUT /captures/1");
        assert_eq!(answer, "HTTP/1.1 500 Internal Server Error");
        assert!(took < Duration::from_secs(2), "{took:?}");
    }
    assert_eq!(watched.ask("GET /metrics").0, "HTTP/1.1 200 OK");
    assert_eq!(watched.ask("PUT /captures/1?name=other").0, "HTTP/1.1 200 OK");
    let begun = Instant::now();
    drop(watched);
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    std::fs::remove_dir_all(&folder).unwrap();
}
