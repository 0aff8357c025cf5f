//! Whether the client of a call still waits for its answer.

use millrace_dataplane::Cancel;
use std::cell::RefCell;
use std::io::ErrorKind;
use std::net::{IpAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often it is looked whether the client has gone.
const LOOK: Duration = Duration::from_millis(20);

thread_local! {
    /// The connection that this thread serves.
    static CONNECTION: RefCell<Option<TcpStream>> = const { RefCell::new(None) };
}

/// From now on this thread serves that connection.
pub(crate) fn serve(connection: TcpStream) {
    CONNECTION.with_borrow_mut(|own| *own = Some(connection));
}

/// Where the client is that this thread serves.
pub(crate) fn address() -> Option<IpAddr> {
    CONNECTION.with_borrow(|own| Some(own.as_ref()?.peer_addr().ok()?.ip().to_canonical()))
}

/// Does something that takes long; `cancel` tells it when the client has gone. The connection is not read from meanwhile.
pub(crate) fn while_it_waits<T>(work: impl FnOnce(&Cancel) -> T) -> T {
    let cancel = Cancel::default();
    let connection =
        CONNECTION.with_borrow(|own| own.as_ref().and_then(|connection| connection.try_clone().ok()));
    let Some(connection) = connection else { return work(&cancel) };
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        // Without a thread it is done to its end, which is right too.
        let _ = thread::Builder::new().name("thrift caller".into()).spawn_scoped(scope, || {
            while !done.load(Ordering::Acquire) {
                if has_gone(&connection) {
                    return cancel.cancel();
                }
            }
        });
        let result = work(&cancel);
        done.store(true, Ordering::Release);
        result
    })
}

/// Waits a short time for the end of the connection. (The next read sets the time that it may take itself.)
fn has_gone(connection: &TcpStream) -> bool {
    if connection.set_read_timeout(Some(LOOK)).is_err() {
        return true;
    }
    match connection.peek(&mut [0]) {
        Ok(0) => true,
        Ok(_) => {
            // The next call is there already.
            thread::sleep(LOOK);
            false
        }
        Err(error) => {
            !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::time::Instant;

    #[test]
    fn a_client_that_goes_is_noticed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        serve(listener.accept().unwrap().0);
        assert!(!while_it_waits(|cancel| {
            thread::sleep(3 * LOOK);
            cancel.is_cancelled()
        }));
        let start = Instant::now();
        while_it_waits(|cancel| {
            drop(client);
            while !cancel.is_cancelled() {
                assert!(start.elapsed() < Duration::from_secs(20), "not noticed");
                thread::sleep(Duration::from_millis(1));
            }
        });
    }
}
