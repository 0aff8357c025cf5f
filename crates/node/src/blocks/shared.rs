//! Registers of a program that are kept in a memory that programs of other devices have registers in, too ([`crate::lease`]).
//!
//! A frame meets the registers under a lease: the block takes it, brings its registers up to date if somebody has written, handles the
//! frame, writes what the frame has changed, and gives the lease back. So frames of all sharers follow each other, and each sees what those
//! before it have left. Of a frame whose lease ended before that was written nothing is written, and nothing is sent: what it decided
//! may be by registers that were no longer right.

use crate::lease::{LeaseError, Sharer};
use crate::limits::MAX_SHARED_WORDS;
use crate::model::MemorySpec;
use millrace_dataplane::State;
use millrace_pipeline::{Program as Ir, RegisterId};
use millrace_state::Names;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How long a memory that another block has is left alone.
const WAIT_TIME: Duration = Duration::from_micros(200);
/// How long a link that is cut is left alone before it is tried again.
const RETRY_TIME: Duration = Duration::from_millis(100);
/// A memory that others have for so many times of a lease is not waited for any longer.
const PATIENCE: u32 = 2;

/// A memory as the blocks of a node find it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) spec: MemorySpec,
    pub(crate) address: SocketAddr,
}

/// What a block has counted of its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedCounts {
    /// Frames that met registers of the memory.
    pub frames: u64,
    /// Frames that waited for another block's lease.
    pub waits: u64,
    /// Frames that were lost: no lease in time, one that ended too early, or a link that was cut.
    pub lost: u64,
}

/// The registers of a block that it shares.
#[derive(Debug)]
pub(crate) struct SharedRegisters {
    place: Place,
    /// The number by which the memory knows this block.
    who: u32,
    registers: Vec<Kept>,
    /// None while the link is cut.
    sharer: Option<Sharer>,
    /// When it was tried last.
    tried: Option<Instant>,
    /// What the registers hold, as the memory has it.
    words: Vec<u32>,
    /// The version of the memory that these are of.
    version: Option<u32>,
    counts: SharedCounts,
}

/// A register, from a word of the memory on.
#[derive(Clone, Copy, Debug)]
struct Kept {
    id: RegisterId,
    cells: u64,
    /// Words of a cell, the lowest first.
    words: u32,
}

impl SharedRegisters {
    /// Registers of a program, in the order of the file.
    ///
    /// # Errors
    /// There is no such register, they have no room in the memory, or the memory is not there.
    pub(crate) fn new(program: &Ir, names: &[String], place: &Place) -> Result<SharedRegisters, String> {
        let mut registers: Vec<Kept> = Vec::new();
        let mut all = 0u64;
        for name in names {
            let id = Names(program).register(name).map_err(|error| error.to_string())?;
            if registers.iter().any(|kept| kept.id == id) {
                return Err(format!("`shared` has the register `{}` twice", program.registers[id].name));
            }
            let register = &program.registers[id];
            let kept = Kept { id, cells: register.size, words: register.width.div_ceil(32) };
            all = all.saturating_add(kept.cells.saturating_mul(kept.words.into()));
            registers.push(kept);
        }
        if all > place.spec.words.into() {
            return Err(format!(
                "the registers have {all} words, and the memory `{}` {}, at most {MAX_SHARED_WORDS} (MAX_SHARED_WORDS)",
                place.spec.name, place.spec.words
            ));
        }
        // No other sharer may have the same number: of 2^32, random ones of a node full of blocks meet once in millions of nodes.
        let who = (RandomState::new().build_hasher().finish() as u32).max(1);
        let mut shared = SharedRegisters {
            place: place.clone(),
            who,
            registers,
            sharer: None,
            tried: None,
            words: vec![0; all as usize],
            version: None,
            counts: SharedCounts::default(),
        };
        shared.connect().map_err(|error| {
            format!("the memory `{}` at {}: {error}", shared.place.spec.name, shared.place.address)
        })?;
        Ok(shared)
    }

    pub(crate) fn counts(&self) -> SharedCounts {
        self.counts
    }

    fn connect(&mut self) -> Result<(), LeaseError> {
        (self.tried, self.version) = (Some(Instant::now()), None);
        let sharer = Sharer::connect(self.place.address, self.who)?;
        let MemorySpec { name, words, .. } = &self.place.spec;
        if sharer.name() != name || sharer.words() != *words {
            let found =
                format!("it is `{}` with {} words, not `{name}` with {words}", sharer.name(), sharer.words());
            return Err(LeaseError::Refused(found));
        }
        self.sharer = Some(sharer);
        Ok(())
    }

    /// A frame comes: takes the lease, and brings the registers up to date. False: the frame is lost.
    pub(crate) fn begin(&mut self, state: &mut State) -> bool {
        self.counts.frames += 1;
        let begun = self.take().and_then(|()| self.refresh(state));
        self.noted(begun)
    }

    /// A frame was handled: what it has changed is written, and the lease given back. False: the frame is lost.
    pub(crate) fn end(&mut self, state: &State) -> bool {
        let mut changes = Vec::new();
        let words = &mut self.words;
        each_word(&self.registers, state, |at, word| {
            if std::mem::replace(&mut words[at], word) != word {
                changes.push((at as u32, word));
            }
        });
        let Some(sharer) = &mut self.sharer else { unreachable!("it had the lease") };
        let done = sharer.finish(&changes);
        match &done {
            // Nobody else has written since the lease was taken.
            Ok(()) => self.version = Some(sharer.version().wrapping_add(changes.len() as u32)),
            Err(_) => self.version = None,
        }
        self.noted(done)
    }

    /// Counts a frame that is lost, and forgets a link that is cut.
    fn noted(&mut self, done: Result<(), LeaseError>) -> bool {
        let Err(why) = done else { return true };
        self.counts.lost += 1;
        if let LeaseError::Link(_) = why {
            // While it is cut each frame would say so again.
            if self.sharer.take().is_some() {
                tracing::warn!(%why, memory = %self.place.spec.name, "the link to a memory of a node");
            }
        }
        false
    }

    fn take(&mut self) -> Result<(), LeaseError> {
        if self.sharer.is_none() {
            if self.tried.is_some_and(|tried| tried.elapsed() < RETRY_TIME) {
                return Err(LeaseError::Refused("the link is cut".into()));
            }
            self.connect()?;
        }
        let Some(sharer) = &mut self.sharer else { unreachable!("it is connected") };
        let lease = Duration::from_millis(self.place.spec.lease_ms.into());
        let began = Instant::now();
        let mut has_waited = false;
        loop {
            match sharer.take(lease) {
                Err(LeaseError::Refused(_)) if began.elapsed() < PATIENCE * lease => {
                    self.counts.waits += u64::from(!std::mem::replace(&mut has_waited, true));
                    std::thread::sleep(WAIT_TIME);
                }
                taken => return taken.map(drop),
            }
        }
    }

    /// Reads the memory, if somebody else has written since.
    fn refresh(&mut self, state: &mut State) -> Result<(), LeaseError> {
        let Some(sharer) = &mut self.sharer else { unreachable!("it has the lease") };
        if self.version == Some(sharer.version()) {
            return Ok(());
        }
        self.words = sharer.read_held(self.words.len() as u32)?;
        let mut words = self.words.as_slice();
        for kept in &self.registers {
            for cell in 0..kept.cells {
                let (own, rest) = words.split_at(kept.words as usize);
                words = rest;
                let limbs: Vec<u64> = own
                    .chunks(2)
                    .map(|pair| u64::from(pair[0]) | pair.get(1).map_or(0, |high| u64::from(*high) << 32))
                    .collect();
                state.register_write_limbs(kept.id, cell, &limbs);
            }
        }
        Ok(())
    }
}

/// The words that registers hold, each with its place.
fn each_word(registers: &[Kept], state: &State, mut take: impl FnMut(usize, u32)) {
    let mut place = 0;
    for kept in registers {
        let mut limbs = vec![0; (kept.words as usize).div_ceil(2)];
        for cell in 0..kept.cells {
            state.register_read_limbs(kept.id, cell, &mut limbs);
            for word in 0..kept.words as usize {
                take(place, (limbs[word / 2] >> (32 * (word % 2))) as u32);
                place += 1;
            }
        }
    }
}
