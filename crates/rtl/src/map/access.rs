//! Software's side of the registers.

use super::{Field, RegisterMap};
use crate::driver::SoftwareAccess;
use millrace_pipeline::Bits;
use std::fmt;

/// How software reads and writes registers of 32 bits, by their offsets in bytes: by memory that is mapped, or over a link.
pub trait RegisterAccess {
    /// Why an access failed.
    type Error;

    /// Reads a register.
    ///
    /// # Errors
    /// The device cannot be reached.
    fn read(&mut self, offset: u32) -> Result<u32, Self::Error>;

    /// Writes a register.
    ///
    /// # Errors
    /// The device cannot be reached.
    fn write(&mut self, offset: u32, value: u32) -> Result<(), Self::Error>;

    /// Whether others may write the registers between two requests.
    fn is_shared(&self) -> bool {
        false
    }

    /// How many words of tables and groups an update writes to each bank through registers; it asks to set the others at once.
    fn words_by_registers(&self) -> usize {
        usize::MAX
    }

    /// Sets a word of a table where it is, past the registers, in a bank that no frame meets; says whether it did. Simulations can.
    fn set_at_once(&mut self, _port: usize, _address: u64, _word: &Bits) -> bool {
        false
    }

    /// Reads so many registers from one on; where a request takes long, as one.
    ///
    /// # Errors
    /// The device cannot be reached.
    fn read_many(&mut self, offset: u32, registers: u32) -> Result<Vec<u32>, Self::Error> {
        (0..registers).map(|number| self.read(offset + 4 * number)).collect()
    }

    /// Writes registers in this order; where a request takes long, as one.
    ///
    /// # Errors
    /// The device cannot be reached; some may be written.
    fn write_many(&mut self, writes: &[(u32, u32)]) -> Result<(), Self::Error> {
        writes.iter().try_for_each(|(offset, value)| self.write(*offset, *value))
    }
}

/// Why a device does not do what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapError<E> {
    /// A register cannot be reached.
    Access(E),
    /// It has no such registers: what stands where [`RegisterMap::IDENT`] and [`RegisterMap::VERSION`] should.
    Other(u32, u32),
    /// It is of another program: its cookie.
    OtherProgram(u64),
    /// There is no port of that number, it has no such word, or software cannot do that with it.
    NoPort(usize),
    /// A read does not end, or frames go on to meet the tables before a write.
    Stuck,
}

impl<E: fmt::Display> fmt::Display for MapError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapError::Access(error) => write!(f, "a register of the device cannot be reached: {error}"),
            MapError::Other(ident, version) => write!(
                f,
                "the device has no registers of this kind: ident {ident:#010x}, version {version}, not {:#010x} and {}",
                RegisterMap::IDENT,
                RegisterMap::VERSION
            ),
            MapError::OtherProgram(cookie) => {
                write!(
                    f,
                    "the device is of another program, or has other ports or capacities: cookie {cookie:#018x}"
                )
            }
            MapError::NoPort(number) => write!(f, "port {number} of the device has no such word"),
            MapError::Stuck => f.write_str("the device does not end what it was told to do"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for MapError<E> {}

/// So often a register is read until something has ended; each takes as long as the access.
const POLLS: u32 = 100_000;
/// So many writes of registers are a request of their own; a word has at most [`RegisterMap::MAX_WORDS`] and three more.
const MAX_WRITES: usize = 1024;
/// Most words of queues that are taken at once.
const MAX_TAKEN: usize = 64;

/// A device by its registers.
#[derive(Debug)]
pub struct RegisterDevice<A> {
    map: RegisterMap,
    access: A,
    bank: Option<usize>,
    /// What the registers of port, address and data hold, as far as that is known: what is there already is not written.
    port: Option<usize>,
    address: Option<u64>,
    data: Vec<Option<u32>>,
}

impl<A: RegisterAccess> RegisterDevice<A> {
    /// The device that answers there, if it is of this map.
    ///
    /// # Errors
    /// It is not.
    pub fn attach(map: RegisterMap, access: A) -> Result<RegisterDevice<A>, MapError<A::Error>> {
        let bank = map.ports.iter().position(|port| port.kind == super::PortKind::Bank);
        let data = vec![None; map.words() as usize];
        let mut device = RegisterDevice { map, access, bank, port: None, address: None, data };
        let (ident, version) = (device.get(Field::Ident)?, device.get(Field::Version)?);
        if (ident, version) != (RegisterMap::IDENT, RegisterMap::VERSION) {
            return Err(MapError::Other(ident, version));
        }
        let (low, high) = (device.get(Field::CookieLow)?, device.get(Field::CookieHigh)?);
        let cookie = u64::from(high) << 32 | u64::from(low);
        if cookie != device.map.cookie {
            return Err(MapError::OtherProgram(cookie));
        }
        Ok(device)
    }

    /// The map.
    pub fn map(&self) -> &RegisterMap {
        &self.map
    }

    /// How it is reached.
    pub fn access(&mut self) -> &mut A {
        &mut self.access
    }

    /// How it is reached, of a device that is not used any more.
    pub fn into_access(self) -> A {
        self.access
    }

    /// Reads a word of a port.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn read_word(&mut self, port: usize, address: u64) -> Result<Bits, MapError<A::Error>> {
        let of = self.map.ports.get(port).filter(|of| of.readable && address < of.words);
        let width = of.ok_or(MapError::NoPort(port))?.width;
        let mut writes = self.choose(port, address);
        writes.push((Field::Command.offset(), RegisterMap::READ));
        self.data.fill(None);
        self.put(&writes)?;
        let chosen = [port as u32, address as u32];
        let first = if self.access.is_shared() { Field::Port.offset() } else { Field::Status.offset() };
        let status = ((Field::Status.offset() - first) / 4) as usize;
        let skipped = (RegisterMap::DATA - first) / 4;
        for _ in 0..POLLS {
            // The data are read after the status, so they are those of a read that had ended.
            let read =
                self.access.read_many(first, skipped + width.div_ceil(32)).map_err(MapError::Access)?;
            if status > 0 && !read.starts_with(&chosen) {
                // Another one has chosen another word meanwhile.
                self.put(&writes)?;
            } else if read.get(status).is_some_and(|status| status & 1 == 0) {
                let parts = read[skipped as usize..].iter().map(|value| Bits::new(32, (*value).into()));
                let word = parts.reduce(|low, high| high.concat(&low)).unwrap_or_else(|| Bits::zero(width));
                return Ok(word.zero_extend(width));
            }
        }
        Err(MapError::Stuck)
    }

    /// Writes a word of a port, all of it at once.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn write_word(&mut self, port: usize, address: u64, word: &Bits) -> Result<(), MapError<A::Error>> {
        let writes = self.writes_of(port, address, word)?;
        self.put(&writes)
    }

    /// The writes that write a word.
    fn writes_of(
        &mut self,
        port: usize,
        address: u64,
        word: &Bits,
    ) -> Result<Vec<(u32, u32)>, MapError<A::Error>> {
        let of = self.map.ports.get(port).filter(|of| of.writable && address < of.words);
        let width = of.ok_or(MapError::NoPort(port))?.width;
        let mut writes = self.choose(port, address);
        let limbs = word.limbs().flat_map(|limb| [limb as u32, (limb >> 32) as u32]);
        // What is narrower than the port leaves the rest as it is: nothing reads it.
        for (number, value) in (0..word.width().min(width).div_ceil(32)).zip(limbs) {
            if self.data[number as usize].replace(value) != Some(value) {
                writes.push((RegisterMap::DATA + 4 * number, value));
            }
        }
        writes.push((Field::Command.offset(), RegisterMap::WRITE | RegisterMap::NEXT));
        self.address = Some(address + 1);
        Ok(writes)
    }

    /// Whether a queue has something.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn has_messages(&mut self) -> Result<bool, MapError<A::Error>> {
        Ok(self.get(Field::Pending)? != 0)
    }

    /// What an interrupt asks for: takes the words of queues that have something and may raise it, at most 64, each with the
    /// number of its port. The registers are then as they were, so that others who use them do not notice.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn take_interrupts(&mut self) -> Result<Vec<(usize, Bits)>, MapError<A::Error>> {
        let mut taken = Vec::new();
        let first = Field::Pending.offset();
        let all = self.access.read_many(first, (RegisterMap::DATA - first) / 4 + self.map.words());
        let before = all.map_err(MapError::Access)?;
        let [mut pending, enabled, port, address, ..] = before[..] else { return Ok(taken) };
        if pending & enabled == 0 {
            return Ok(taken);
        }
        let queues = self.map.queues().filter_map(|queue| self.map.port(&queue.object));
        let queues: Vec<usize> = queues.collect();
        while pending & enabled != 0 && taken.len() < MAX_TAKEN {
            let Some(queue) = queues.get((pending & enabled).trailing_zeros() as usize) else { break };
            self.forget();
            let word = self.read_word(*queue, 0)?;
            if word.bit(word.width() - 1) {
                taken.push((*queue, word));
            }
            pending = self.get(Field::Pending)?;
        }
        let data = (before.len() as u32).saturating_sub(self.map.words()) as usize;
        let mut writes = vec![(Field::Port.offset(), port), (Field::Address.offset(), address)];
        writes
            .extend((0..).zip(&before[data..]).map(|(number, word)| (RegisterMap::DATA + 4 * number, *word)));
        self.put(&writes)?;
        self.forget();
        Ok(taken)
    }

    /// The writes that choose a word.
    fn choose(&mut self, port: usize, address: u64) -> Vec<(u32, u32)> {
        let mut writes = Vec::new();
        if self.access.is_shared() {
            self.forget();
        }
        if self.port.replace(port) != Some(port) {
            writes.push((Field::Port.offset(), port as u32));
        }
        if self.address.replace(address) != Some(address) {
            writes.push((Field::Address.offset(), address as u32));
        }
        writes
    }

    /// Nothing is known of what the registers hold.
    fn forget(&mut self) {
        (self.port, self.address) = (None, None);
        self.data.fill(None);
    }

    fn get(&mut self, field: Field) -> Result<u32, MapError<A::Error>> {
        self.access.read(field.offset()).map_err(MapError::Access)
    }

    /// After an error nothing is known of the registers.
    fn put(&mut self, writes: &[(u32, u32)]) -> Result<(), MapError<A::Error>> {
        let written = self.access.write_many(writes).map_err(MapError::Access);
        if written.is_err() {
            self.forget();
        }
        written
    }
}

impl<A: RegisterAccess> SoftwareAccess for RegisterDevice<A> {
    type Error = MapError<A::Error>;

    fn write(&mut self, port: usize, address: u64, word: &Bits) -> Result<(), Self::Error> {
        self.write_word(port, address, word)
    }

    fn write_many(
        &mut self,
        port: usize,
        words: &mut dyn Iterator<Item = (u64, &Bits)>,
    ) -> Result<(), Self::Error> {
        let mut writes = Vec::new();
        for (address, word) in words {
            writes.extend(self.writes_of(port, address, word)?);
            if writes.len() >= MAX_WRITES {
                self.put(&writes)?;
                writes.clear();
            }
        }
        if writes.is_empty() { Ok(()) } else { self.put(&writes) }
    }

    fn words_by_port(&self) -> usize {
        self.access.words_by_registers()
    }

    fn set_at_once(&mut self, port: usize, address: u64, word: &Bits) -> bool {
        self.access.set_at_once(port, address, word)
    }

    fn read(&mut self, words: &[(usize, u64)]) -> Result<Vec<Bits>, Self::Error> {
        words.iter().map(|(port, address)| self.read_word(*port, *address)).collect()
    }

    fn use_bank(&mut self, bank: bool) -> Result<(), Self::Error> {
        let Some(port) = self.bank else { return Ok(()) };
        self.write_word(port, 0, &Bits::new(2, bank.into()))?;
        for _ in 0..POLLS {
            if self.read_word(port, 0)?.to_u64_saturating() == 2 | u64::from(bank) {
                return Ok(());
            }
        }
        Err(MapError::Stuck)
    }
}
