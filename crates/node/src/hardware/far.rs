//! The far side of a node: its hardware over the host link, as the blocks in software see it.

use super::device::{ASKS, DONE, HardwareDevice};
use super::top::Top;
use crate::interface::Item;
use crate::model::{End, NodeFile};
use millrace_link::{Client, Event, LinkError, Server};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

/// How long an answer may take: a simulation has much to do for a long frame.
const ANSWER_TIME: Duration = Duration::from_secs(60);

/// The hardware of a node.
#[derive(Debug)]
pub(crate) struct Far {
    server: Server,
    /// None while the link is cut.
    client: RefCell<Option<Client>>,
    inputs: Vec<End>,
    outputs: Vec<End>,
    /// Paths that had nothing when they were asked, since anything came.
    empty: BTreeSet<usize>,
}

impl Far {
    /// Serves the simulated hardware of a node, and connects to it.
    pub(crate) fn new(node: &NodeFile, top: &Top) -> Result<Far, String> {
        let device = HardwareDevice::new(node, top)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
        let server = Server::serve(listener, Box::new(device)).map_err(|error| error.to_string())?;
        let client = Client::connect(server.address(), true).map_err(|error| error.to_string())?;
        let (inputs, outputs) = (top.inputs.clone(), top.outputs.clone());
        Ok(Far { server, client: RefCell::new(Some(client)), inputs, outputs, empty: BTreeSet::new() })
    }

    /// A frame for an input; what leaves by itself then, each by its output.
    pub(crate) fn deliver(&mut self, to: End, item: &Item) -> Result<Vec<(End, Item)>, LinkError> {
        self.empty.clear();
        let way = self.inputs.iter().position(|input| *input == to);
        let way = way.unwrap_or_else(|| unreachable!("each connection to hardware has a way")) as u16;
        self.exchange(way, &item.encode())
    }

    /// The next frame of an output that is asked.
    pub(crate) fn ask(&mut self, from: End) -> Result<Option<Item>, LinkError> {
        let Some(way) = self.outputs.iter().position(|output| *output == from) else { return Ok(None) };
        if self.empty.contains(&way) {
            return Ok(None);
        }
        let item = self.exchange(ASKS | way as u16, &[])?.pop().map(|(_, item)| item);
        if item.is_none() {
            self.empty.insert(way);
        }
        Ok(item)
    }

    /// Whether frames of an output go to software.
    pub(crate) fn is_way_out(&self, from: End) -> bool {
        self.outputs.contains(&from)
    }

    pub(crate) fn read(&self, address: u32) -> Result<u32, LinkError> {
        self.with(|client| client.read(address, 1)).map(|words| words.first().copied().unwrap_or(0))
    }

    pub(crate) fn write(&self, address: u32, word: u32) -> Result<(), LinkError> {
        self.with(|client| client.write(&[(address, word)]))
    }

    /// Sends something; what comes until the device is done with it.
    fn exchange(&self, port: u16, bytes: &[u8]) -> Result<Vec<(End, Item)>, LinkError> {
        self.with(|client| {
            client.send(port, bytes)?;
            let mut came = Vec::new();
            loop {
                match client.event(ANSWER_TIME)? {
                    Some(Event::Frame { port: DONE, .. }) => return Ok(came),
                    Some(Event::Frame { port, bytes }) => {
                        let from = self.outputs.get(usize::from(port)).copied();
                        came.extend(from.zip(Item::decode(&bytes).ok()));
                    }
                    Some(Event::Message { .. }) => {}
                    None => return Err(LinkError::Gone(std::io::ErrorKind::TimedOut.into())),
                }
            }
        })
    }

    /// Asks the link; one that is cut is tried again.
    fn with<T>(&self, act: impl FnOnce(&mut Client) -> Result<T, LinkError>) -> Result<T, LinkError> {
        let mut client = self.client.borrow_mut();
        let mut connected = match client.take() {
            Some(client) => client,
            None => Client::connect(self.server.address(), true)?,
        };
        let done = act(&mut connected);
        if matches!(done, Ok(_) | Err(LinkError::Refused(_) | LinkError::Limit(_))) {
            *client = Some(connected);
        }
        done
    }
}
