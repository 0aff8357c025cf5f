//! A device that another process serves, as one of this process.

use crate::client::{Client, LinkError};
use crate::device::{Device, Event, Fault, Shape};
use crate::limits::MAX_WORDS;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::time::Duration;

/// Frames and messages that are taken at a time.
const MAX_TAKEN: usize = 64;

/// A device over the host link, with its frames and messages.
#[derive(Debug)]
pub struct Remote {
    client: Client,
    /// Why nothing more is said to it: the link is cut.
    gone: Option<Fault>,
}

impl Remote {
    /// Connects to the server of a device, to have its frames.
    ///
    /// # Errors
    /// There is no server, it refuses, or another client has the frames.
    pub fn connect(address: SocketAddr) -> Result<Remote, Fault> {
        let client = Client::connect(address, true);
        client.map(|client| Remote { client, gone: None }).map_err(Fault::new)
    }
}

impl Remote {
    /// Does something over a link that is not cut. Once it is, nobody waits for it again.
    fn over<R>(&mut self, what: impl FnOnce(&mut Client) -> Result<R, LinkError>) -> Result<R, Fault> {
        if let Some(gone) = &self.gone {
            return Err(gone.clone());
        }
        what(&mut self.client).map_err(|error| {
            let is_refused = matches!(error, LinkError::Refused(_) | LinkError::Limit(_));
            let fault = Fault::new(error);
            self.gone = (!is_refused).then(|| fault.clone());
            fault
        })
    }
}

impl Device for Remote {
    fn shape(&self) -> Shape {
        self.client.shape().clone()
    }

    fn read(&mut self, address: u32) -> Result<u32, Fault> {
        self.over(|client| Ok(client.read(address, 1)?.first().copied().unwrap_or_default()))
    }

    fn write(&mut self, address: u32, word: u32) -> Result<(), Fault> {
        self.over(|client| client.write(&[(address, word)]))
    }

    fn send(&mut self, port: u16, frame: &[u8]) -> Result<(), Fault> {
        self.over(|client| client.send(port, frame))
    }

    fn ask(&mut self, part: u16, text: &str) -> Result<String, Fault> {
        self.over(|client| client.ask(part, text))
    }

    fn poll(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), Fault> {
        self.over(|client| {
            for _ in 0..MAX_TAKEN {
                match client.has_said() {
                    true => client.event(Duration::ZERO)?.into_iter().for_each(&mut *tell),
                    false => break,
                }
            }
            Ok(())
        })
    }

    fn read_many(&mut self, address: u32, words: u32) -> Result<Vec<u32>, Fault> {
        self.over(|client| client.read(address, words as usize))
    }

    fn write_many(&mut self, writes: &[(u32, u32)]) -> Result<(), Fault> {
        let mut chunks = writes.chunks(MAX_WORDS);
        self.over(|client| chunks.try_for_each(|writes| client.write(writes)))
    }

    fn is_shared(&self) -> bool {
        true
    }

    /// What carries registers alone says nothing by itself: what it has to say waits in its queues.
    fn tells(&self) -> bool {
        self.client.shape().ports > 0
    }

    fn is_busy(&self) -> bool {
        self.client.has_waiting()
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.client.fd())
    }

    fn lost(&self) -> u64 {
        let (frames, messages) = self.client.lost();
        frames.saturating_add(messages)
    }
}
