//! The far side of a node: its hardware over the host link, as the blocks in software see it.

use super::device::{ASKS, DONE, HardwareDevice, WIRE};
use super::top::Top;
use crate::interface::Item;
use crate::limits::{MAX_DEPTH, MAX_TO_SEND};
use crate::model::{End, NodeFile};
use millrace_link::{Client, Event, LinkError, Server};
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

/// Most frames that have left by a MAC and were not taken: what a queue may hold, and more than `MAX_TO_SEND`.
const MAX_LEFT: usize = MAX_DEPTH as usize;

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
    /// The MACs, and what has left by each.
    macs: Vec<usize>,
    left: Vec<VecDeque<Vec<u8>>>,
    /// Frames that had no room there.
    lost: u64,
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
        Ok(Far {
            server,
            client: RefCell::new(Some(client)),
            inputs: top.inputs.clone(),
            outputs: top.outputs.clone(),
            left: vec![VecDeque::new(); top.macs.len()],
            lost: 0,
            macs: top.macs.clone(),
            empty: BTreeSet::new(),
        })
    }

    /// A frame for an input; what leaves by itself then, each by its output.
    pub(crate) fn deliver(&mut self, to: End, item: &Item) -> Result<Vec<(End, Item)>, LinkError> {
        self.empty.clear();
        let way = self.inputs.iter().position(|input| *input == to);
        let way = way.unwrap_or_else(|| unreachable!("each connection to hardware has a way")) as u16;
        self.exchange(way, &item.encode())
    }

    /// A frame comes by the link of a MAC; what leaves by itself then, each by its output.
    pub(crate) fn come(&mut self, mac: usize, frame: &[u8]) -> Result<Vec<(End, Item)>, LinkError> {
        self.empty.clear();
        match self.macs.iter().position(|block| *block == mac) {
            Some(wire) => self.exchange(WIRE | wire as u16, frame),
            None => Ok(Vec::new()),
        }
    }

    /// The next frame that has left by the link of a MAC.
    pub(crate) fn leave_by(&mut self, mac: usize) -> Option<Vec<u8>> {
        let wire = self.macs.iter().position(|block| *block == mac)?;
        self.left[wire].pop_front()
    }

    /// Whether a MAC takes another frame before those that have left by it are taken.
    pub(crate) fn has_room(&self, mac: usize) -> bool {
        let wire = self.macs.iter().position(|block| *block == mac);
        wire.is_some_and(|wire| self.left[wire].len() < MAX_TO_SEND)
    }

    /// Frames that have left by MACs and were not taken in time.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// The MACs.
    pub(crate) fn macs(&self) -> &[usize] {
        &self.macs
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
    fn exchange(&mut self, port: u16, bytes: &[u8]) -> Result<Vec<(End, Item)>, LinkError> {
        let (mut left, mut lost) = (std::mem::take(&mut self.left), 0);
        let came = self.with(|client| {
            client.send(port, bytes)?;
            let mut came = Vec::new();
            loop {
                match client.event(ANSWER_TIME)? {
                    Some(Event::Frame { port: DONE, .. }) => return Ok(came),
                    Some(Event::Frame { port, bytes }) if port & WIRE != 0 => {
                        let left = left.get_mut(usize::from(port & !WIRE));
                        match left.filter(|left| left.len() < MAX_LEFT) {
                            Some(left) => left.push_back(bytes),
                            None => lost += 1,
                        }
                    }
                    Some(Event::Frame { port, bytes }) => {
                        let from = self.outputs.get(usize::from(port)).copied();
                        came.extend(from.zip(Item::decode(&bytes).ok()));
                    }
                    Some(Event::Message { .. }) => {}
                    None => return Err(LinkError::Gone(std::io::ErrorKind::TimedOut.into())),
                }
            }
        });
        self.left = left;
        self.lost += lost;
        came
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
