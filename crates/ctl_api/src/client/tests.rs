//! A client with devices that answer what a test has them answer.

use super::*;
use crate::RefusalKind;
use std::io::{BufRead, Write};
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;

/// A device at a socket in a folder of its own, which goes when this does.
struct Device {
    folder: PathBuf,
    /// The lines that it was told, once it has ended.
    thread: Option<JoinHandle<Vec<String>>>,
}

impl Device {
    /// Answers each line with the next one of `answers`, as bytes, then closes the connection.
    fn new(name: &str, answers: &[&str]) -> Device {
        let answers: Vec<String> = answers.iter().map(|&answer| answer.to_owned()).collect();
        Device::serving(name, move |stream| {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut stream = stream;
            let mut told = Vec::new();
            for answer in answers {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                told.push(line);
                // A client may have gone.
                let _ = stream.write_all(answer.as_bytes());
            }
            told
        })
    }

    fn serving(name: &str, serve: impl FnOnce(UnixStream) -> Vec<String> + Send + 'static) -> Device {
        let folder = std::env::temp_dir().join(format!("millrace-ctl-api-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let listener = UnixListener::bind(folder.join("socket")).unwrap();
        let thread = thread::spawn(move || serve(listener.accept().unwrap().0));
        Device { folder, thread: Some(thread) }
    }

    fn connect(&self, token: Option<&str>) -> Result<Client, ClientError> {
        Client::connect(&self.folder.join("socket"), token)
    }

    /// What it was told.
    fn told(mut self) -> Vec<String> {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

const READY: &str = "{\"ready\":{\"device\":\"edge\"}}\n";
/// Of tests that wait for the end of a time.
const SHORT: Times = Times { hello: Duration::from_millis(50), request: Duration::from_millis(50) };

#[test]
fn a_client_says_who_it_is_and_asks() {
    let device = Device::new("asks", &[READY, "{\"switches\":[]}\n", "{\"text\":\"[device]\\n\"}\n"]);
    let mut client = device.connect(Some("secret")).unwrap();
    assert_eq!(client.device(), "edge");
    assert_eq!(client.ask(&Request::List).unwrap(), Answer::Switches(Vec::new()));
    assert_eq!(client.ask(&Request::Show).unwrap(), Answer::Text("[device]\n".to_owned()));
    let told = ["{\"version\":1,\"token\":\"secret\"}\n", "\"list\"\n", "\"show\"\n"];
    assert_eq!(device.told(), told);
    let device = Device::new("no-token", &[READY]);
    device.connect(None).unwrap();
    assert_eq!(device.told(), ["{\"version\":1}\n"]);
}

#[test]
fn a_refusal_is_an_error_and_the_connection_goes_on() {
    let refused = r#"{"refused":{"kind":"not_found","message":"there is no switch `l3`"}}"#.to_owned() + "\n";
    let device = Device::new("refused", &[READY, &refused, "{\"switches\":[]}\n"]);
    let mut client = device.connect(None).unwrap();
    let error = client.ask(&Request::Start { switch: "l3".into() }).unwrap_err();
    assert_eq!(error.to_string(), "there is no switch `l3`");
    assert!(matches!(error, ClientError::Refused(refused) if refused.kind == RefusalKind::NotFound));
    client.ask(&Request::List).unwrap();
}

#[test]
fn a_device_may_refuse_who_asks() {
    let refused = "{\"refused\":{\"kind\":\"unknown\",\"message\":\"nobody knows this token\"}}\n";
    let device = Device::new("unknown", &[refused]);
    let error = device.connect(Some("wrong")).unwrap_err();
    assert_eq!(error.to_string(), "nobody knows this token");
}

/// A device that has too many connections says so and closes this one before it is told anything: then nothing can be sent.
#[test]
fn what_a_device_says_before_it_closes_the_connection_is_heard() {
    let refused = &b"{\"refused\":{\"kind\":\"limit\",\"message\":\"16 connections\"}}\n"[..];
    for (said, message) in [(refused, "16 connections"), (b"", "the device closed the connection")] {
        let (here, mut there) = UnixStream::pair().unwrap();
        there.write_all(said).unwrap();
        drop(there);
        let stream = BufReader::new(Stream::Socket(here));
        let mut client = Client { stream, device: String::new(), times: TIMES };
        let error = client.ask(&Request::List).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn what_is_no_answer_is_an_error() {
    for (name, answer, message) in [
        ("no-json", "welcome\n", "the device answers what is no answer: expected value"),
        ("other-answer", "{\"switches\":[]}\n", "it does not say that it is ready"),
        ("other-kind", "{\"greeting\":{}}\n", "unknown variant `greeting`"),
        ("partial", "{\"ready\":", "the device closed the connection without an answer"),
        ("closed", "", "the device closed the connection without an answer"),
    ] {
        let error = Device::new(name, &[answer]).connect(None).unwrap_err();
        assert!(error.to_string().contains(message), "{name}: {error}");
    }
    let device = Device::new("closed-later", &[READY]);
    let mut client = device.connect(None).unwrap();
    let error = client.ask(&Request::List).unwrap_err();
    assert!(matches!(error, ClientError::Closed), "{error}");
}

#[test]
fn a_silent_device_is_not_waited_for_without_end() {
    let silent = |stream: UnixStream| {
        let mut lines = BufReader::new(stream).lines();
        // Until the client has gone.
        while lines.next().is_some() {}
        Vec::new()
    };
    let device = Device::serving("silent", silent);
    let error = Client::connect_within(&device.folder.join("socket"), None, SHORT).unwrap_err();
    assert_eq!(error.to_string(), "the device does not answer within 0.05 seconds");
    let device = Device::serving("silent-later", move |mut stream| {
        stream.write_all(READY.as_bytes()).unwrap();
        silent(stream)
    });
    let times = Times { hello: TIMES.hello, ..SHORT };
    let mut client = Client::connect_within(&device.folder.join("socket"), None, times).unwrap();
    let error = client.ask(&Request::List).unwrap_err();
    assert!(matches!(error, ClientError::Silent(time) if time == SHORT.request), "{error}");
}

/// A socket at which nobody accepts connections: the system keeps one, and the next client gives up.
#[test]
fn a_device_that_accepts_nobody_is_not_waited_for_without_end() {
    let folder = std::env::temp_dir().join(format!("millrace-ctl-api-{}-backlog", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let _kept = UnixStream::connect(&path).unwrap();
    let error = Client::connect_within(&path, None, SHORT).unwrap_err().to_string();
    assert!(error.contains("the connection is not accepted within 0.05 seconds"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn errors_say_where_no_device_is_and_what_starts_one() {
    let path = std::env::temp_dir().join(format!("millrace-ctl-api-{}-none", std::process::id()));
    let error = Client::connect(&path, None).unwrap_err().to_string();
    let wanted = format!("no device listens at {}: ", path.display());
    assert!(error.starts_with(&wanted) && error.ends_with("(`millrace chassis FILE` starts one)"), "{error}");
    let denied = ClientError::Connect { path, error: ErrorKind::PermissionDenied.into() };
    assert!(denied.to_string().contains("`socket-mode`"), "{denied}");
}

#[test]
fn what_is_too_long_is_not_sent() {
    let device = Device::new("too-long", &[READY]);
    let error = device.connect(Some(&"x".repeat(MAX_HELLO))).unwrap_err();
    let wanted = "the token makes a line of more than 4096 bytes, the most that a device takes (MAX_HELLO)";
    assert_eq!(error.to_string(), wanted);
    assert_eq!(device.told(), [""], "the connection ends without a byte");
    let device = Device::new("request-too-long", &[READY, "{\"switches\":[]}\n"]);
    let mut client = device.connect(None).unwrap();
    let request = Request::Restore { switch: "l2".into(), snapshot: "x".repeat(1000) };
    let error = client.say(&request, 1000, TIMES.request).unwrap_err();
    assert!(error.to_string().starts_with("the request makes a line of more than 1000 bytes"), "{error}");
    client.ask(&Request::List).unwrap();
}
