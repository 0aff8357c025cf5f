//! The publishing side of nanomsg's PUB/SUB. Subscribers choose among what they get by its first bytes; so a publisher
//! sends all to all.

use crate::sp::{NanomsgListener, PAUSE, PUBLISHER, SUBSCRIBER, Stream};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Most subscribers at a time; more are closed at once.
pub const MAX_SUBSCRIBERS: usize = 64;
/// Most messages that wait for one subscriber; more are lost to it, as nanomsg does.
pub const MAX_WAITING: usize = 256;

/// Sends messages to whoever subscribed. It ends when this is dropped.
#[derive(Debug)]
pub struct Publisher {
    address: String,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    subscribers: Mutex<Vec<SyncSender<Arc<[u8]>>>>,
    stop: AtomicBool,
}

impl Publisher {
    /// For subscribers that connect to a listener.
    ///
    /// # Errors
    /// The operating system refuses a thread.
    pub fn over(listener: NanomsgListener) -> io::Result<Publisher> {
        let shared = Arc::new(Shared::default());
        let (accepting, address) = (Arc::clone(&shared), listener.address().to_owned());
        let thread = std::thread::Builder::new()
            .name("notifications".into())
            .spawn(move || accept(&listener, &accepting))?;
        Ok(Publisher { address, shared, thread: Some(thread) })
    }

    /// Where subscribers reach it.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether anybody would get a message now.
    pub fn has_subscribers(&self) -> bool {
        !self.shared.subscribers().is_empty()
    }

    /// Sends a message to all subscribers. It waits for none of them: who has too much to read loses it.
    pub fn publish(&self, message: &[u8]) {
        let message: Arc<[u8]> = message.into();
        self.shared
            .subscribers()
            .retain(|to| !matches!(to.try_send(Arc::clone(&message)), Err(TrySendError::Disconnected(_))));
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.shared.subscribers().clear();
    }
}

impl Shared {
    fn subscribers(&self) -> MutexGuard<'_, Vec<SyncSender<Arc<[u8]>>>> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept(listener: &NanomsgListener, shared: &Arc<Shared>) {
    // Those that connected, whether or not they said who they are.
    let connected = Arc::new(());
    while !shared.stop.load(Ordering::Acquire) {
        let Ok(stream) = listener.accept() else {
            std::thread::sleep(PAUSE);
            continue;
        };
        if Arc::strong_count(&connected) > MAX_SUBSCRIBERS {
            continue;
        }
        let (shared, place) = (Arc::clone(shared), Arc::clone(&connected));
        let serve = move || {
            // A subscriber that goes is no error.
            let _ = serve(stream, &shared);
            drop(place);
        };
        // Without a thread this subscriber is closed.
        let _ = std::thread::Builder::new().name("subscriber".into()).spawn(serve);
    }
}

/// Greets a subscriber and sends what comes for it, until it goes.
fn serve(mut stream: Stream, shared: &Arc<Shared>) -> io::Result<()> {
    stream.greet(PUBLISHER, SUBSCRIBER)?;
    let (to, messages) = sync_channel(MAX_WAITING);
    shared.subscribers().push(to);
    let own = send_all(stream, &messages);
    drop(messages);
    own
}

fn send_all(mut stream: Stream, messages: &Receiver<Arc<[u8]>>) -> io::Result<()> {
    loop {
        match messages.recv_timeout(PAUSE * 10) {
            Ok(message) => stream.write_message(&[&message])?,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) if stream.has_gone()? => return Ok(()),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::time::{Duration, Instant};

    fn over_file(path: &Path) -> io::Result<Publisher> {
        Publisher::over(NanomsgListener::over_file(path)?)
    }

    fn over_tcp() -> Publisher {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Publisher::over(NanomsgListener::over_tcp(listener).unwrap()).unwrap()
    }

    fn wait_for(mut there: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !there() {
            assert!(Instant::now() < end);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn greet(stream: &mut (impl Read + Write), as_: [u8; 8]) -> [u8; 8] {
        stream.write_all(&as_).unwrap();
        let mut greeting = [0; 8];
        stream.read_exact(&mut greeting).unwrap();
        greeting
    }

    #[test]
    fn subscribers_over_tcp_and_a_file_get_each_message() {
        let path = std::env::temp_dir().join(format!("millrace-sp-{}.ipc", std::process::id()));
        let file = over_file(&path).unwrap();
        let tcp = over_tcp();
        let mut by_file = UnixStream::connect(&path).unwrap();
        let mut by_tcp = TcpStream::connect(tcp.address().strip_prefix("tcp://").unwrap()).unwrap();
        // The bytes of the documents of the protocol.
        assert_eq!(greet(&mut by_file, SUBSCRIBER), [0, b'S', b'P', 0, 0, 32, 0, 0]);
        assert_eq!(greet(&mut by_tcp, SUBSCRIBER), [0, b'S', b'P', 0, 0, 32, 0, 0]);
        wait_for(|| file.has_subscribers() && tcp.has_subscribers());
        [&file, &tcp].iter().for_each(|publisher| publisher.publish(b"abc"));
        let mut message = [0; 12];
        by_file.read_exact(&mut message).unwrap();
        assert_eq!(message, *b"\x01\0\0\0\0\0\0\0\x03abc");
        let mut message = [0; 11];
        by_tcp.read_exact(&mut message).unwrap();
        assert_eq!(message, *b"\0\0\0\0\0\0\0\x03abc");
        drop(by_file);
        wait_for(|| {
            file.publish(b"x");
            !file.has_subscribers()
        });
        assert!(over_file(&path).is_err(), "it is in use");
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn who_is_no_subscriber_is_closed_and_who_does_not_read_loses_messages() {
        let publisher = over_tcp();
        let connect = || TcpStream::connect(publisher.address().strip_prefix("tcp://").unwrap()).unwrap();
        let mut other = connect();
        greet(&mut other, *b"\0SP\0\0\x10\0\0");
        assert_eq!(other.read(&mut [0; 8]).unwrap(), 0);
        let mut lazy = connect();
        greet(&mut lazy, SUBSCRIBER);
        wait_for(|| publisher.has_subscribers());
        let (begun, large) = (Instant::now(), vec![7; 1 << 16]);
        (0..10_000).for_each(|_| publisher.publish(&large));
        assert!(begun.elapsed() < Duration::from_secs(5), "nobody waits");
    }
}
