//! The socket of `millrace ctl`: what clients say there, rightly and wrongly.

mod lab;

use lab::{CROSS_FILE, Folder, Lab, PATIENCE, file, switch, wait_for};
use millrace_ctl_api::{Answer, Client, ClientError, MAX_HELLO, MAX_REQUEST, RefusalKind, Request};
use millrace_virtual_switches::{
    ALLOWANCE, ControlSocket, MAX_CONNECTIONS, MAX_CONNECTIONS_OF_TENANT, MAX_UNDER_WAY, ROOM_TIME,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const TOKEN: &str = "token-of-red-tenant";

fn served() -> (Lab, ControlSocket) {
    let folder = Folder::new();
    folder.write("red.token", TOKEN);
    let tenant = "[[tenant]]\nname = \"red\"\ntoken-file = \"red.token\"\nroles = [\"read\"]\n";
    let switches = [switch("r", 10, &format!("{CROSS_FILE}\ntenant = \"red\"")), switch("o", 20, CROSS_FILE)];
    let lab = Lab::within(folder, &file("", &format!("{tenant}{}", switches.concat())));
    let socket = ControlSocket::serve(&lab.device).unwrap_or_else(|failure| panic!("{failure}"));
    (lab, socket)
}

fn names(client: &mut Client) -> Vec<String> {
    match client.ask(&Request::List).unwrap() {
        Answer::Switches(list) => list.into_iter().map(|switch| switch.name).collect(),
        other => panic!("{other:?}"),
    }
}

/// What the device says to some bytes.
fn say(socket: &ControlSocket, bytes: &[u8]) -> Vec<String> {
    let mut stream = UnixStream::connect(socket.path()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // The device may have closed it before all of it was written.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    BufReader::new(stream).lines().map_while(Result::ok).collect()
}

#[test]
fn clients_are_the_operator_or_have_a_token() {
    let (_lab, socket) = served();
    let mode = std::fs::metadata(socket.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut operator = Client::connect(socket.path(), None).unwrap();
    assert_eq!(operator.device(), "millrace");
    assert_eq!(names(&mut operator), ["r", "o"]);
    let mut red = Client::connect(socket.path(), Some(TOKEN)).unwrap();
    assert_eq!(names(&mut red), ["r"]);
    match Client::connect(socket.path(), Some("token-of-nobody-at-all")) {
        Err(ClientError::Refused(refused)) => assert_eq!(refused.kind, RefusalKind::Unknown),
        other => panic!("{other:?}"),
    }
}

#[test]
fn lines_that_are_no_requests_are_refused() {
    let (_lab, socket) = served();
    let hello = b"{\"version\":1}\n".to_vec();
    let after = |line: &[u8]| say(&socket, &[&hello, line].concat());
    assert_eq!(after(b"").len(), 1);
    for line in
        ["\n", "{}\n", "[]\n", "\"nothing\"\n", "{\"list\":1,\"graph\":2}\n", "{\"stop\":{}}\n", "\u{0}\n"]
    {
        let said = after(line.as_bytes());
        assert!(said.len() == 2 && said[1].contains("malformed"), "{line:?} {said:?}");
    }
    // After a line that is no request the next one counts.
    let said = after(b"{}\n\"list\"\n");
    assert!(said.len() == 3 && said[2].starts_with("{\"switches\""), "{said:?}");
    // A line without its end is none.
    assert!(after(b"\"list\"")[1].contains("malformed"));
    for greeting in [&b"\n"[..], b"{}\n", b"{\"version\":2}\n", b"\xff\n", b"{\"version\":1,\"more\":2}\n"] {
        let said = say(&socket, greeting);
        assert!(said.len() == 1 && said[0].contains("malformed"), "{greeting:?} {said:?}");
    }
    let long = vec![b' '; MAX_HELLO + 1];
    assert!(say(&socket, &long)[0].contains("malformed"));
    assert!(say(&socket, b"").is_empty());
}

#[test]
fn connections_are_few_and_those_that_say_nothing_end() {
    let (_lab, socket) = served();
    let begun = Instant::now();
    let silent: Vec<UnixStream> =
        (0..MAX_CONNECTIONS).map(|_| UnixStream::connect(socket.path()).unwrap()).collect();
    wait_for(|| match Client::connect(socket.path(), None) {
        Err(ClientError::Refused(refused)) => refused.kind == RefusalKind::Limit,
        Ok(_) => begun.elapsed() > Duration::from_secs(3),
        _ => false,
    });
    wait_for(|| Client::connect(socket.path(), None).is_ok());
    assert!(begun.elapsed() < Duration::from_secs(20));
    for mut stream in silent {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).unwrap();
    }
}

#[test]
fn one_device_serves_a_socket_and_one_that_is_left_is_taken() {
    let (lab, socket) = served();
    let path = socket.path().to_owned();
    let refused = ControlSocket::serve(&lab.device).map(drop).unwrap_err().to_string();
    assert!(refused.contains("another device"), "{refused}");
    drop(socket);
    assert!(!path.exists());
    // One that a process has left that was killed.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let again = ControlSocket::serve(&lab.device).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(names(&mut Client::connect(&path, None).unwrap()), ["r", "o"]);
    drop(again);
    // Another file stays.
    std::fs::write(&path, "mine").unwrap();
    assert!(ControlSocket::serve(&lab.device).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn connections_end_with_the_device() {
    let (_lab, socket) = served();
    let mut client = Client::connect(socket.path(), None).unwrap();
    assert_eq!(names(&mut client).len(), 2);
    drop(socket);
    assert!(client.ask(&Request::List).is_err());
}

#[test]
fn a_tenant_does_not_keep_the_operator_out() {
    let (_lab, socket) = served();
    let connect = || Client::connect(socket.path(), Some(TOKEN));
    let mut held: Vec<Client> = (0..MAX_CONNECTIONS_OF_TENANT).map(|_| connect().unwrap()).collect();
    match connect() {
        Err(ClientError::Refused(refused)) => assert_eq!(refused.kind, RefusalKind::Limit),
        other => panic!("{other:?}"),
    }
    assert_eq!(names(&mut Client::connect(socket.path(), None).unwrap()), ["r", "o"]);
    held.pop();
    wait_for(|| connect().is_ok());
}

/// A client that has sent a part of a request, which is not small.
fn half_way(socket: &ControlSocket, token: Option<&str>) -> UnixStream {
    let mut stream = UnixStream::connect(socket.path()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let token = token.map_or(String::new(), |token| format!(",\"token\":\"{token}\""));
    writeln!(stream, "{{\"version\":1{token}}}").unwrap();
    let mut ready = String::new();
    BufReader::new(stream.try_clone().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.contains("ready"), "{ready}");
    stream.write_all(&vec![b' '; ALLOWANCE + 1]).unwrap();
    stream
}

/// What the device answers to a request after so many blanks.
fn answer_to_long(mut stream: UnixStream, blanks: usize) -> String {
    // A device that has no room for it reads no more, and then says why.
    let _ = stream.write_all(&vec![b' '; blanks]).and_then(|()| stream.write_all(b"\"list\"\n"));
    let mut said = String::new();
    BufReader::new(stream).read_line(&mut said).unwrap();
    said
}

#[test]
fn large_requests_have_room_together_and_others_wait_or_are_told() {
    let (_lab, socket) = served();
    let mut held: Vec<UnixStream> =
        (0..MAX_UNDER_WAY / MAX_REQUEST).map(|_| half_way(&socket, None)).collect();
    // They have all been read as far as they go.
    let waits = || Client::connect(socket.path(), None).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let begun = Instant::now();
    let (refused, served) = std::thread::scope(|scope| {
        let late = || answer_to_long(half_way(&socket, None), 4 * ALLOWANCE);
        let refused = scope.spawn(late);
        // What is small has room at all times.
        assert_eq!(names(&mut waits()), ["r", "o"]);
        let refused = refused.join().unwrap();
        let waited = begun.elapsed();
        assert!(waited >= ROOM_TIME, "{waited:?}");
        let served = scope.spawn(late);
        std::thread::sleep(Duration::from_millis(200));
        assert!(!served.is_finished());
        // One that goes leaves its room.
        held.pop();
        (refused, served.join().unwrap())
    });
    assert!(refused.contains("\"limit\"") && refused.contains("MAX_UNDER_WAY"), "{refused}");
    assert!(served.starts_with("{\"switches\""), "{served}");
}

#[test]
fn a_tenant_has_room_for_one_large_request() {
    let (_lab, socket) = served();
    let first = half_way(&socket, Some(TOKEN));
    std::thread::sleep(Duration::from_millis(200));
    let second = std::thread::scope(|scope| {
        let second = scope.spawn(|| answer_to_long(half_way(&socket, Some(TOKEN)), 4 * ALLOWANCE));
        std::thread::sleep(Duration::from_millis(200));
        assert!(!second.is_finished());
        // The operator has room of his own.
        assert!(answer_to_long(half_way(&socket, None), 4 * ALLOWANCE).starts_with("{\"switches\""));
        assert!(answer_to_long(first, 1).starts_with("{\"switches\""));
        second.join().unwrap()
    });
    assert!(second.starts_with("{\"switches\""), "{second}");
}
