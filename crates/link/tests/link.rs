//! A device in memory, served to good and bad clients.

use millrace_link::limits::{MAX_CLIENTS, MAX_FRAME, MAX_RECORD, MAX_WAITING, MAX_WORDS, VERSION};
use millrace_link::{Client, Device, Event, Fault, LinkError, Server, Shape};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const REGISTERS: u32 = 64;
/// A register that does not answer.
const BROKEN: u32 = 40;
const SOON: Duration = Duration::from_secs(5);

/// Registers, and two ports that are connected to each other.
struct Board {
    registers: Vec<u32>,
    waiting: Vec<Event>,
    /// Frames and messages that the test has it send.
    says: Arc<Mutex<Vec<Event>>>,
    is_gone: Arc<AtomicBool>,
}

impl Device for Board {
    fn shape(&self) -> Shape {
        Shape { name: "board".to_owned(), bytes: 4 * REGISTERS, ports: 2 }
    }

    fn read(&mut self, address: u32) -> Result<u32, Fault> {
        match address {
            BROKEN => Err(Fault::new("no answer from the bus")),
            _ => Ok(self.registers[address as usize / 4]),
        }
    }

    fn write(&mut self, address: u32, word: u32) -> Result<(), Fault> {
        if address == BROKEN {
            return Err(Fault::new("no answer from the bus"));
        }
        self.registers[address as usize / 4] = word;
        Ok(())
    }

    fn send(&mut self, port: u16, frame: &[u8]) -> Result<(), Fault> {
        if port > 1 {
            return Err(Fault::new("no such port"));
        }
        self.waiting.push(Event::Frame { port: 1 - port, bytes: frame.to_vec() });
        Ok(())
    }

    fn ask(&mut self, part: u16, text: &str) -> Result<String, Fault> {
        match part {
            3 => Ok(text.repeat(3)),
            _ => Err(Fault::new("no such part")),
        }
    }

    fn poll(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), Fault> {
        self.waiting.drain(..).for_each(&mut *tell);
        self.says.lock().unwrap().drain(..).for_each(tell);
        match self.is_gone.load(Ordering::Acquire) {
            true => Err(Fault::new("it was unplugged")),
            false => Ok(()),
        }
    }
}

struct Bench {
    server: Server,
    says: Arc<Mutex<Vec<Event>>>,
    is_gone: Arc<AtomicBool>,
}

impl Bench {
    fn new() -> Bench {
        let (says, is_gone) = (Arc::default(), Arc::default());
        let board = Board {
            registers: (0..REGISTERS).collect(),
            waiting: Vec::new(),
            says: Arc::clone(&says),
            is_gone: Arc::clone(&is_gone),
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Bench { server: Server::serve(listener, Box::new(board)).unwrap(), says, is_gone }
    }

    fn client(&self, frames: bool) -> Client {
        Client::connect(self.server.address(), frames).unwrap()
    }

    /// Waits until something holds.
    fn until(&self, mut holds: impl FnMut(&Server) -> bool) {
        let begun = Instant::now();
        while !holds(&self.server) {
            assert!(begun.elapsed() < SOON, "{:?}", self.server.counts());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn text<T: std::fmt::Debug>(result: Result<T, LinkError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn registers_are_read_and_written() {
    let bench = Bench::new();
    let mut client = bench.client(false);
    assert_eq!((client.shape().name.as_str(), client.shape().bytes, client.shape().ports), ("board", 256, 2));
    assert_eq!(client.read(8, 3).unwrap(), [2, 3, 4]);
    assert_eq!(client.read(252, 1).unwrap(), [63]);
    assert_eq!(client.read(0, 0).unwrap(), [0; 0]);
    client.write(&[(8, 7), (0, u32::MAX), (8, 9)]).unwrap();
    assert_eq!(client.read(0, 3).unwrap(), [u32::MAX, 1, 9]);
    // What is no register leaves all as it was.
    assert!(text(client.write(&[(0, 1), (3, 1)])).contains("0x3 is no register"));
    assert!(text(client.write(&[(0, 1), (256, 1)])).contains("below 0x100"));
    assert!(text(client.read(252, 2)).contains("the registers end at 0x100, and 0x104 is asked"));
    assert!(text(client.read(u32::MAX - 3, 4)).contains("is no register"));
    assert_eq!(client.read(0, 1).unwrap(), [u32::MAX]);
    // A device that does not answer in the middle: what was done is told.
    assert_eq!(text(client.write(&[(0, 5), (BROKEN, 1), (4, 5)])), "no answer from the bus, after 1 write");
    assert_eq!(client.read(0, 2).unwrap(), [5, 1]);
    assert!(text(client.read(0, MAX_WORDS + 1)).contains("(MAX_WORDS)"));
    assert!(text(client.write(&vec![(0, 0); MAX_WORDS + 1])).contains("(MAX_WORDS)"));
    client.write(&vec![(0, 3); MAX_WORDS]).unwrap();
    assert!(text(client.send(0, &vec![0; MAX_FRAME + 1])).contains("more than"));
}

#[test]
fn parts_of_a_device_answer_texts() {
    let bench = Bench::new();
    // The frames are another client's.
    let (_frames, mut client) = (bench.client(true), bench.client(false));
    assert_eq!(client.ask(3, "ab ").unwrap(), "ab ab ab ");
    assert_eq!(text(client.ask(4, "ab")), "no such part");
    let longest = "x".repeat(MAX_FRAME);
    let cut = client.ask(3, &longest).unwrap();
    assert!(
        cut.len() <= MAX_FRAME && cut.ends_with("... and 32832 bytes more (MAX_FRAME)\n"),
        "{}",
        cut.len()
    );
    assert!(text(client.ask(3, &format!("{longest}x"))).contains("more than"));
    assert_eq!(client.read(8, 1).unwrap(), [2]);
}

#[test]
fn one_client_has_the_frames() {
    let bench = Bench::new();
    let mut client = bench.client(true);
    assert_eq!(
        text(Client::connect(bench.server.address(), true)),
        "another client has the frames of the device"
    );
    let mut other = bench.client(false);
    other.send(1, b"to port 0").unwrap();
    let frame = client.event(SOON).unwrap();
    assert_eq!(frame, Some(Event::Frame { port: 0, bytes: b"to port 0".to_vec() }));
    client.send(7, b"nowhere").unwrap();
    bench.says.lock().unwrap().push(Event::Message { kind: 3, bytes: vec![1, 2] });
    assert_eq!(client.event(SOON).unwrap(), Some(Event::Message { kind: 3, bytes: vec![1, 2] }));
    assert_eq!(client.event(Duration::from_millis(20)).unwrap(), None);
    let counts = bench.server.counts();
    assert_eq!((counts.frames_in, counts.refused, counts.frames_out, counts.messages), (2, 1, 1, 1));
    // Events that come before an answer are not lost.
    client.send(0, b"first").unwrap();
    bench.until(|server| server.counts().frames_out == 2);
    assert_eq!(client.read(4, 1).unwrap(), [1]);
    assert_eq!(client.event(SOON).unwrap(), Some(Event::Frame { port: 1, bytes: b"first".to_vec() }));
}

/// The link is cut: the frames on it are lost and counted, everybody else goes on, and another client may have the frames.
#[test]
fn a_cut_link_loses_only_what_is_on_it() {
    let bench = Bench::new();
    let mut other = bench.client(false);
    drop(bench.client(true));
    // Until the server knows, what it sends may go to the connection that is gone.
    bench.until(|server| {
        other.send(0, b"lost").unwrap();
        server.counts().lost_frames > 3
    });
    let counts = bench.server.counts();
    assert_eq!(other.read(4, 1).unwrap(), [1]);
    let mut client = bench.client(true);
    bench.until(|server| {
        let counts = server.counts();
        counts.frames_out + counts.lost_frames == counts.frames_in
    });
    other.send(0, b"there").unwrap();
    assert_eq!(client.event(SOON).unwrap(), Some(Event::Frame { port: 1, bytes: b"there".to_vec() }));
    assert!(bench.server.counts().lost_frames >= counts.lost_frames);
    // The server goes: the client is told.
    drop(bench);
    assert!(text(client.read(0, 1)).contains("the host link is cut"));
    assert!(text(client.event(SOON)).contains("the host link is cut"));
}

/// Who does not read loses frames, has its answers, and is told how many frames it lost.
#[test]
fn a_slow_client_loses_frames_and_no_answers() {
    let bench = Bench::new();
    let mut client = bench.client(true);
    let mut other = bench.client(false);
    let sent = 40 * MAX_WAITING as u64;
    for _ in 0..sent {
        other.send(0, &[7; 9000]).unwrap();
    }
    bench.until(|server| server.counts().frames_in == sent);
    bench.until(|server| server.counts().frames_out + server.counts().lost_frames == sent);
    let counts = bench.server.counts();
    assert!(counts.lost_frames > 0, "{counts:?}");
    // The answer comes after what waited, of which this keeps the newest.
    assert_eq!(client.read(4, 1).unwrap(), [1]);
    other.send(0, b"one more").unwrap();
    let mut heard = 0;
    while let Some(event) = client.event(Duration::from_millis(500)).unwrap() {
        heard += 1;
        assert!(matches!(event, Event::Frame { port: 1, .. }));
    }
    let (frames, messages) = client.lost();
    assert_eq!((heard + frames, messages), (sent + 1, 0), "{:?}", bench.server.counts());
}

#[test]
fn bad_clients_harm_nobody() {
    let bench = Bench::new();
    let mut good = bench.client(false);
    let raw = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(bench.server.address()).unwrap();
        stream.write_all(bytes).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let mut said = Vec::new();
        // It may be reset.
        let _ = stream.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    };
    let hello = |version: u16| [&[0, 0, 0, 4, 1][..], &version.to_be_bytes(), &[0]].concat();
    assert!(raw(&hello(VERSION + 1)).contains("speaks version 2"));
    raw(&u32::MAX.to_be_bytes());
    raw(&[0; 4]);
    raw(b"GET / HTTP/1.1\r\n\r\n");
    let after_hello = |record: &[u8]| raw(&[&hello(VERSION), record].concat());
    assert!(after_hello(&hello(VERSION)).contains("hello before"));
    assert!(after_hello(&[0, 0, 0, 1, 99]).contains("no record of kind 99"));
    let too_long = after_hello(&[&(MAX_RECORD as u32 + 1).to_be_bytes()[..], &[0; 40]].concat());
    assert!(too_long.contains("(MAX_RECORD)"), "{too_long}");
    let too_many =
        after_hello(&[&[0, 0, 0, 11, 2, 0, 0, 0, 9, 0, 0, 0, 0][..], &4097u16.to_be_bytes()].concat());
    assert!(too_many.contains("(MAX_WORDS)"), "{too_many}");
    // A record that does not end, and many that never begin.
    let half = TcpStream::connect(bench.server.address()).unwrap();
    (&half).write_all(&[&hello(VERSION)[..], &[0, 0, 0, 9]].concat()).unwrap();
    let idle: Vec<TcpStream> =
        (0..MAX_CLIENTS).map(|_| TcpStream::connect(bench.server.address()).unwrap()).collect();
    bench.until(|server| {
        Client::connect(server.address(), false)
            .is_err_and(|error| error.to_string().contains("(MAX_CLIENTS)"))
    });
    assert_eq!(good.read(4, 1).unwrap(), [1]);
    drop((half, idle));
    bench.until(|server| Client::connect(server.address(), false).is_ok());
    assert_eq!(good.read(4, 1).unwrap(), [1]);
}

#[test]
fn a_device_that_is_gone_ends_its_server() {
    let bench = Bench::new();
    let mut client = bench.client(true);
    bench.is_gone.store(true, Ordering::Release);
    bench.until(|server| server.fault().is_some());
    assert_eq!(bench.server.fault().unwrap().to_string(), "it was unplugged");
    assert!(text(client.event(SOON)).contains("cut"));
}
