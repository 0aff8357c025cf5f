//! The far side of a node: its hardware over the host link, as the blocks in software see it.

use super::device::{ASKS, DONE, HardwareDevice, TIME, WIRE, name_of};
use super::top::Top;
use crate::interface::Item;
use crate::limits::{MAX_DEPTH, MAX_TO_SEND};
use crate::model::{End, NodeFile};
use crate::registers::name_in;
use millrace_drivers::wall_clock_ns;
use millrace_link::limits::MAX_WORDS;
use millrace_link::{Client, Event, LinkError, Refused, Server};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Most frames that have left by a MAC and were not taken: what a queue may hold, and more than `MAX_TO_SEND`.
const MAX_LEFT: usize = MAX_DEPTH as usize;

/// How long an answer may take: a simulation has much to do for a long frame.
const ANSWER_TIME: Duration = Duration::from_secs(60);

/// How long a link that is cut is left alone before it is tried again.
const RETRY_TIME: Duration = Duration::from_millis(100);

/// The hardware of a device of a node.
#[derive(Debug)]
pub(crate) struct Far {
    /// The server of what this process simulates; it ends with it.
    _server: Option<Server>,
    link: RefCell<Link>,
    blocks: Vec<usize>,
    inputs: Vec<End>,
    outputs: Vec<End>,
    /// The MACs, and what has left by each.
    macs: Vec<usize>,
    left: Vec<VecDeque<Vec<u8>>>,
    /// The programs, which look at the time.
    programs: Vec<usize>,
    /// Frames that had no room there, or were on the link when it was cut.
    lost: u64,
    /// Paths that had nothing when they were asked, since anything came.
    empty: BTreeSet<usize>,
    /// Registers that are written at the end of a request, and one that was read with the one before it.
    written: Vec<(u32, u32)>,
    held: Cell<Option<(u32, u32)>>,
}

impl Far {
    /// Connects to the hardware of a device: where it is served, or a simulation of its own.
    ///
    /// # Errors
    /// There is none, or it is that of another file.
    pub(crate) fn new(node: &NodeFile, top: &Top) -> Result<Far, String> {
        let (mut server, device) = (None, &node.devices[top.device]);
        let address = match device.at {
            Some(address) => address,
            None => {
                let device = HardwareDevice::new(node, top)?;
                let served = Server::local(Box::new(device)).map_err(|error| error.to_string())?;
                server.insert(served).address()
            }
        };
        let failed =
            |why: &dyn std::fmt::Display| format!("the device `{}` at {address}: {why}", device.name);
        let name = name_of(node, top);
        let mut link = Link { address, name, client: None, tried: None };
        link.connect().map_err(|error| failed(&error))?;
        Ok(Far {
            _server: server,
            link: RefCell::new(link),
            blocks: top.blocks.clone(),
            inputs: top.inputs.clone(),
            outputs: top.outputs.clone(),
            left: vec![VecDeque::new(); top.macs.len()],
            programs: top.programs.iter().map(|part| part.block()).collect(),
            lost: 0,
            macs: top.macs.clone(),
            empty: BTreeSet::new(),
            written: Vec::new(),
            held: Cell::new(None),
        })
    }

    /// Whether a block is a program in it.
    pub(crate) fn runs(&self, block: usize) -> bool {
        self.programs.contains(&block)
    }

    /// Whether a block is in it.
    pub(crate) fn has(&self, block: usize) -> bool {
        self.blocks.contains(&block)
    }

    /// A frame for an input; what leaves by itself then, each by its output.
    pub(crate) fn deliver(&mut self, to: End, item: &Item, now_ns: u64) -> Vec<(End, Item)> {
        self.empty.clear();
        self.tell_time(now_ns);
        let way = self.inputs.iter().position(|input| *input == to);
        let way = way.unwrap_or_else(|| unreachable!("each connection to hardware has a way")) as u16;
        self.exchange(way, &item.encode(), 1)
    }

    /// A frame comes by the link of a MAC; what leaves by itself then, each by its output.
    pub(crate) fn come(&mut self, mac: usize, frame: &[u8], now_ns: u64) -> Vec<(End, Item)> {
        self.empty.clear();
        self.tell_time(now_ns);
        match self.macs.iter().position(|block| *block == mac) {
            Some(wire) => self.exchange(WIRE | wire as u16, frame, 1),
            None => Vec::new(),
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

    /// Frames that have left by MACs and were not taken in time, or were on the link when it was cut.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// The MACs.
    pub(crate) fn macs(&self) -> &[usize] {
        &self.macs
    }

    /// The next frame of an output that is asked.
    pub(crate) fn ask(&mut self, from: End) -> Option<Item> {
        let way = self.outputs.iter().position(|output| *output == from)?;
        if self.empty.contains(&way) {
            return None;
        }
        let item = self.exchange(ASKS | way as u16, &[], 0).pop().map(|(_, item)| item);
        // Where the link is cut nobody knows: it is asked again when the link is back.
        if item.is_none() && self.link.borrow().client.is_some() {
            self.empty.insert(way);
        }
        item
    }

    /// Whether frames of an output go to software.
    pub(crate) fn is_way_out(&self, from: End) -> bool {
        self.outputs.contains(&from)
    }

    /// What is read after this is of another moment than what was read before.
    pub(crate) fn forget(&self) {
        self.held.set(None);
    }

    /// Reads a register. The upper half of a number is of the moment in which its lower half, just before, was read.
    pub(crate) fn read(&self, address: u32) -> Result<u32, LinkError> {
        if let Some((_, word)) = self.held.take().filter(|(held, _)| *held == address) {
            return Ok(word);
        }
        // Numbers of two words begin at even ones.
        let words = if address.is_multiple_of(8) { 2 } else { 1 };
        let words = self.link.borrow_mut().with(|client| client.read(address, words))?;
        self.held.set(words.get(1).map(|word| (address + 4, *word)));
        Ok(words.first().copied().unwrap_or(0))
    }

    /// Has a register written at the [end](Far::end) of a request, together with others: what an entry of a TCAM changes is much.
    pub(crate) fn put(&mut self, address: u32, word: u32) -> Result<(), LinkError> {
        if self.written.len() == MAX_WORDS {
            self.end()?;
        }
        self.written.push((address, word));
        Ok(())
    }

    /// Runs commands on a program.
    pub(crate) fn command(&mut self, block: usize, text: &str) -> Result<String, LinkError> {
        self.link.borrow_mut().with(|client| client.ask(block as u16, text))
    }

    /// A request for registers ends.
    pub(crate) fn end(&mut self) -> Result<(), LinkError> {
        let writes = std::mem::take(&mut self.written);
        match writes.is_empty() {
            true => Ok(()),
            false => self.link.borrow_mut().with(|client| client.write(&writes)),
        }
    }

    /// Says when the frames come that follow. Where the link is cut they are lost, and it is said again with the next one.
    fn tell_time(&mut self, now_ns: u64) {
        if !self.programs.is_empty() {
            let _ = self.link.borrow_mut().with(|client| client.send(TIME, &now_ns.to_be_bytes()));
        }
    }

    /// Sends something, which may be a frame; what comes until the device is done with it. What was on a link that is cut is lost: the frame
    /// here, those that the device has sent are counted by its server.
    fn exchange(&mut self, port: u16, bytes: &[u8], frames: u64) -> Vec<(End, Item)> {
        let mut came = Vec::new();
        let (left, outputs, lost) = (&mut self.left, &self.outputs, &mut self.lost);
        let done = self.link.borrow_mut().with(|client| {
            client.send(port, bytes)?;
            until(client, &[], |port, bytes| {
                if port & WIRE == 0 {
                    let from = outputs.get(usize::from(port)).copied();
                    came.extend(from.zip(Item::decode(&bytes).ok()));
                    return;
                }
                match left.get_mut(usize::from(port & !WIRE)).filter(|left| left.len() < MAX_LEFT) {
                    Some(left) => left.push_back(bytes),
                    None => *lost += 1,
                }
            })
        });
        if done.is_err() {
            self.lost += frames;
        }
        came
    }
}

/// Takes what comes until the device is done with what ends with those bytes.
fn until(client: &mut Client, end: &[u8], mut take: impl FnMut(u16, Vec<u8>)) -> Result<(), LinkError> {
    loop {
        match client.event(ANSWER_TIME)? {
            Some(Event::Frame { port: DONE, bytes }) if bytes == end => return Ok(()),
            Some(Event::Frame { port: DONE, .. } | Event::Message { .. }) => {}
            Some(Event::Frame { port, bytes }) => take(port, bytes),
            None => return Err(LinkError::Gone(std::io::ErrorKind::TimedOut.into())),
        }
    }
}

/// The link to a device.
#[derive(Debug)]
struct Link {
    address: SocketAddr,
    /// What the device calls itself.
    name: String,
    /// None while the link is cut.
    client: Option<Client>,
    /// When it was tried last.
    tried: Option<Instant>,
}

impl Link {
    /// Connects, and has all that was said on an earlier connection come to its end.
    fn connect(&mut self) -> Result<(), LinkError> {
        self.tried = Some(Instant::now());
        let mut client = Client::connect(self.address, true)?;
        if name_in(&client.shape().name) != self.name {
            let why = format!("it is `{}`, not `{}`: that of another file", client.shape().name, self.name);
            return Err(LinkError::Refused(Refused { tag: 0, done: 0, why }));
        }
        // Who had the link before may have left answers on the way: they end with what is said now.
        let token = wall_clock_ns().to_be_bytes();
        client.send(DONE, &token)?;
        until(&mut client, &token, |_, _| {})?;
        self.client = Some(client);
        Ok(())
    }

    /// Asks the link; one that is cut is tried again after a while.
    fn with<T>(&mut self, act: impl FnOnce(&mut Client) -> Result<T, LinkError>) -> Result<T, LinkError> {
        if self.client.is_none() {
            if self.tried.is_some_and(|tried| tried.elapsed() < RETRY_TIME) {
                return Err(LinkError::Gone(std::io::ErrorKind::NotConnected.into()));
            }
            self.connect()?;
        }
        let Some(client) = &mut self.client else { unreachable!("it is connected") };
        let done = act(client);
        match &done {
            Ok(_) => {}
            Err(why @ (LinkError::Refused(_) | LinkError::Limit(_))) => {
                tracing::warn!(%why, address = %self.address, "the device of a node");
            }
            Err(why) => {
                tracing::warn!(%why, address = %self.address, "the link to a device of a node");
                self.client = None;
            }
        }
        done
    }
}
