//! Memory that software blocks of different devices share, under an access protocol with leases.
//!
//! A device owns the memory and is served over the host link. Who wants to write takes a *lease* of the memory, for a bounded time.
//! Each lease has a *token*, which is larger than those of all leases before it. A write names its token and is done only while the lease
//! of that token holds: what a holder writes that was stopped, or cut off, for longer than its lease is refused, whoever holds the
//! memory then. Reads need no lease; the version says whether something was written between two of them.
//!
//! | word | access | is |
//! | --- | --- | --- |
//! | 0 | read | the token of the lease that holds, 0 if none does |
//! | 1 | read | milliseconds that it has left |
//! | 2 | read | the version: how often words were written |
//! | 3 | read | conflicts: leases and writes that were refused |
//! | 4 | read | the number of the holder of the lease; 0 while no lease holds |
//! | 4 | write | takes a lease for the number in word 6, for the written number of milliseconds; refused while the lease of another number holds |
//! | 5 | write | gives the lease of that token back |
//! | 6 | write | the number of the client: any but 0 |
//! | 7 | write | the token of the writes that follow, in the same request; refused unless its lease holds |
//! | 8... | read, write | the memory |
//!
//! All words of a request are written with nothing of other clients between them. So a client takes a lease with words 6 and 4, and
//! writes with word 7 and then the memory. Whether the lease holds is asked with word 7 alone: a request is done as a whole, also if the
//! lease ends in the middle of it. Words 6 and 7 are forgotten with the end of their request, so that nobody writes as another one.

use crate::limits::{MAX_LEASE_MS, MAX_SHARED_WORDS};
use millrace_link::limits::MAX_WORDS;
use millrace_link::{Client, Device, Event, Fault, LinkError, Shape};
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const TOKEN: u32 = 0;
const LEFT: u32 = 1;
const VERSION: u32 = 2;
const CONFLICTS: u32 = 3;
const TAKE: u32 = 4;
const GIVE_BACK: u32 = 5;
const WHO: u32 = 6;
const AS: u32 = 7;
const MEMORY: u32 = 8;

/// A memory that is shared, as a device of the host link.
#[derive(Debug)]
pub struct SharedMemory {
    name: String,
    words: Vec<u32>,
    lease: Option<Lease>,
    /// The token of the latest lease.
    token: u32,
    version: u32,
    conflicts: u32,
    who: u32,
    writes_as: u32,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    who: u32,
    token: u32,
    until: Instant,
}

impl SharedMemory {
    /// A memory of so many words, at most [`MAX_SHARED_WORDS`], all 0.
    ///
    /// # Errors
    /// It would be larger.
    pub fn new(name: &str, words: u32) -> Result<SharedMemory, LeaseError> {
        if !(1..=MAX_SHARED_WORDS).contains(&words) {
            return Err(LeaseError::Limit(format!(
                "{words} words: 1 to {MAX_SHARED_WORDS} (MAX_SHARED_WORDS)"
            )));
        }
        Ok(SharedMemory {
            name: name.to_owned(),
            words: vec![0; words as usize],
            lease: None,
            token: 0,
            version: 0,
            conflicts: 0,
            who: 0,
            writes_as: 0,
        })
    }

    /// The lease that holds.
    fn holds(&mut self) -> Option<Lease> {
        self.lease = self.lease.filter(|lease| Instant::now() < lease.until);
        self.lease
    }

    /// Whether the lease of a token holds.
    fn is_held(&mut self, token: u32) -> bool {
        self.holds().is_some_and(|lease| lease.token == token)
    }

    /// Whether the lease of a token held when the request named it, and nobody else has taken one since.
    fn writes_as(&self, token: u32) -> bool {
        self.writes_as == token && self.lease.is_some_and(|lease| lease.token == token)
    }

    fn conflict(&mut self, why: String) -> Fault {
        self.conflicts = self.conflicts.wrapping_add(1);
        Fault::new(why)
    }

    fn take(&mut self, milliseconds: u32) -> Result<(), Fault> {
        if !(1..=MAX_LEASE_MS).contains(&milliseconds) || self.who == 0 {
            let why = format!("a lease is for somebody and 1 to {MAX_LEASE_MS} ms (MAX_LEASE_MS)");
            return Err(Fault::new(why));
        }
        if let Some(lease) = self.holds().filter(|lease| lease.who != self.who) {
            return Err(self.conflict(format!("{} has the lease {}", lease.who, lease.token)));
        }
        // Who has it gets a new one: what it wrote under the one before that is still on the way is refused.
        let token = self.token.checked_add(1).ok_or_else(|| Fault::new("all tokens were given"))?;
        self.token = token;
        let until = Instant::now() + Duration::from_millis(milliseconds.into());
        self.lease = Some(Lease { who: self.who, token, until });
        Ok(())
    }
}

impl Device for SharedMemory {
    fn shape(&self) -> Shape {
        Shape { name: self.name.clone(), bytes: 4 * (MEMORY + self.words.len() as u32), ports: 0 }
    }

    fn begin(&mut self) {
        (self.who, self.writes_as) = (0, 0);
    }

    fn read(&mut self, address: u32) -> Result<u32, Fault> {
        let lease = self.holds();
        Ok(match address / 4 {
            TOKEN => lease.map_or(0, |lease| lease.token),
            LEFT => lease
                .map_or(0, |lease| lease.until.saturating_duration_since(Instant::now()).as_millis() as u32),
            VERSION => self.version,
            CONFLICTS => self.conflicts,
            TAKE => lease.map_or(0, |lease| lease.who),
            word => self.words.get(word.wrapping_sub(MEMORY) as usize).copied().unwrap_or(0),
        })
    }

    fn write(&mut self, address: u32, word: u32) -> Result<(), Fault> {
        match address / 4 {
            WHO => {
                self.who = word;
                Ok(())
            }
            TAKE => {
                self.writes_as = 0;
                self.take(word)
            }
            GIVE_BACK if self.writes_as(word) || self.is_held(word) => {
                (self.lease, self.writes_as) = (None, 0);
                Ok(())
            }
            GIVE_BACK => Err(self.conflict(format!("the lease {word} does not hold"))),
            AS => {
                self.writes_as = 0;
                if !self.is_held(word) {
                    return Err(self.conflict(format!("the lease {word} does not hold")));
                }
                self.writes_as = word;
                Ok(())
            }
            at if at >= MEMORY => {
                if !self.writes_as(self.writes_as) {
                    return Err(self.conflict("a write names the token of its lease first".into()));
                }
                self.words[(at - MEMORY) as usize] = word;
                self.version = self.version.wrapping_add(1);
                Ok(())
            }
            _ => Err(Fault::new(format_args!("{address:#x} cannot be written"))),
        }
    }

    fn send(&mut self, _: u16, _: &[u8]) -> Result<(), Fault> {
        Err(Fault::new("a memory has no ports"))
    }

    fn poll(&mut self, _: &mut dyn FnMut(Event)) -> Result<(), Fault> {
        Ok(())
    }
}

/// Why a shared memory did not do something.
#[derive(Debug)]
pub enum LeaseError {
    /// Out of a limit.
    Limit(String),
    /// Another one has the lease, or this one holds no longer; nothing, or not all, was written.
    Refused(String),
    /// The link.
    Link(LinkError),
}

impl fmt::Display for LeaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeaseError::Limit(why) | LeaseError::Refused(why) => f.write_str(why),
            LeaseError::Link(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LeaseError {}

impl From<LinkError> for LeaseError {
    fn from(error: LinkError) -> LeaseError {
        match error {
            LinkError::Refused(refused) => LeaseError::Refused(refused.why),
            error => LeaseError::Link(error),
        }
    }
}

/// Whether a word may be there.
fn within(word: u32) -> Result<(), LeaseError> {
    match word < MAX_SHARED_WORDS {
        true => Ok(()),
        false => Err(LeaseError::Limit(format!("word {word}: below {MAX_SHARED_WORDS} (MAX_SHARED_WORDS)"))),
    }
}

/// A block's side of a shared memory.
#[derive(Debug)]
pub struct Sharer {
    client: Client,
    who: u32,
    token: u32,
    version: u32,
}

impl Sharer {
    /// Connects to the device of a memory, as somebody: a number other than 0, which no other sharer of it has.
    ///
    /// # Errors
    /// There is no such device.
    pub fn connect(address: SocketAddr, who: u32) -> Result<Sharer, LeaseError> {
        Ok(Sharer { client: Client::connect(address, false)?, who, token: 0, version: 0 })
    }

    /// The name of the memory.
    pub fn name(&self) -> &str {
        &self.client.shape().name
    }

    /// Its words.
    pub fn words(&self) -> u32 {
        (self.client.shape().bytes / 4).saturating_sub(MEMORY)
    }

    /// Takes a lease, or another one, for a time; gives its token.
    ///
    /// # Errors
    /// Another one has it, or the link is cut.
    pub fn take(&mut self, time: Duration) -> Result<u32, LeaseError> {
        let milliseconds = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        self.token = 0;
        self.client.write(&[(4 * WHO, self.who), (4 * TAKE, milliseconds)])?;
        // In one request: the token is that of whose lease it is.
        let words = self.client.read(4 * TOKEN, (TAKE - TOKEN + 1) as usize)?;
        match words[..] {
            [token, _, version, _, who] if who == self.who => {
                (self.token, self.version) = (token, version);
                Ok(token)
            }
            _ => Err(LeaseError::Refused("the lease was over before its token was here".into())),
        }
    }

    /// The version that the memory had when the lease was taken. While it holds nobody else writes, so each word that this one writes
    /// makes it one more.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The first words of the memory, as they are while this one has the lease.
    ///
    /// # Errors
    /// The link is cut.
    pub fn read_held(&mut self, words: u32) -> Result<Vec<u32>, LeaseError> {
        let mut all = Vec::with_capacity(words as usize);
        while (all.len() as u32) < words {
            let at = all.len() as u32;
            let count = (words - at).min(MAX_WORDS as u32);
            let read = self.client.read(4 * (MEMORY + at), count as usize)?;
            if read.len() as u32 != count {
                return Err(LeaseError::Refused(format!("{} of {count} words came", read.len())));
            }
            all.extend(read);
        }
        Ok(all)
    }

    /// Writes words, each with its place, and gives the lease back. Others see them at once where they fit in one request; who takes a
    /// lease before it reads sees all of them or none, unless this one stops in the middle.
    ///
    /// # Errors
    /// The lease holds no longer, or the link is cut: none of the words of the request that failed was written.
    pub fn finish(&mut self, changes: &[(u32, u32)]) -> Result<(), LeaseError> {
        let token = std::mem::take(&mut self.token);
        let mut chunks = changes.chunks(MAX_WORDS - 2).peekable();
        loop {
            let chunk = chunks.next().unwrap_or(&[]);
            let is_last = chunks.peek().is_none();
            let mut writes = Vec::with_capacity(chunk.len() + 2);
            writes.push((4 * AS, token));
            writes.extend(chunk.iter().map(|(at, word)| (4 * (MEMORY + at), *word)));
            if is_last {
                writes.push((4 * GIVE_BACK, token));
            }
            self.client.write(&writes)?;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Writes words under the lease; with one request nobody sees some of them without the others.
    ///
    /// # Errors
    /// The lease holds no longer, there are too many words for a request, or the link is cut.
    pub fn write(&mut self, from: u32, words: &[u32]) -> Result<(), LeaseError> {
        if words.len() >= MAX_WORDS {
            return Err(LeaseError::Limit(format!("{} words: below {MAX_WORDS} (MAX_WORDS)", words.len())));
        }
        within(from)?;
        let mut writes = vec![(4 * AS, self.token)];
        writes.extend((from..).zip(words).map(|(at, word)| (4 * (MEMORY + at), *word)));
        Ok(self.client.write(&writes)?)
    }

    /// Reads words, with the version that they have.
    ///
    /// # Errors
    /// The link is cut, or others write all the time.
    pub fn read(&mut self, from: u32, words: usize) -> Result<(u32, Vec<u32>), LeaseError> {
        within(from)?;
        for _ in 0..16 {
            let before = self.client.read(4 * VERSION, 1)?;
            let read = self.client.read(4 * (MEMORY + from), words)?;
            let after = self.client.read(4 * VERSION, 1)?;
            if before == after {
                return Ok((after.first().copied().unwrap_or(0), read));
            }
        }
        Err(LeaseError::Refused("others write all the time".into()))
    }

    /// Gives the lease back.
    ///
    /// # Errors
    /// It holds no longer, or the link is cut.
    pub fn give_back(&mut self) -> Result<(), LeaseError> {
        let token = std::mem::take(&mut self.token);
        Ok(self.client.write(&[(4 * GIVE_BACK, token)])?)
    }

    /// Leases and writes that the memory has refused.
    ///
    /// # Errors
    /// The link is cut.
    pub fn conflicts(&mut self) -> Result<u32, LeaseError> {
        Ok(self.client.read(4 * CONFLICTS, 1)?.first().copied().unwrap_or(0))
    }
}
