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
                write!(f, "the device is of another program: cookie {cookie:#018x}")
            }
            MapError::NoPort(number) => write!(f, "port {number} of the device has no such word"),
            MapError::Stuck => f.write_str("the device does not end what it was told to do"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for MapError<E> {}

/// So often a register is read until something has ended; each takes as long as the access.
const POLLS: u32 = 100_000;

/// A device by its registers.
#[derive(Debug)]
pub struct RegisterDevice<A> {
    map: RegisterMap,
    access: A,
    bank: Option<usize>,
    /// What the registers of port and address hold.
    port: Option<usize>,
    address: Option<u64>,
}

impl<A: RegisterAccess> RegisterDevice<A> {
    /// The device that answers there, if it is of this map.
    ///
    /// # Errors
    /// It is not.
    pub fn attach(map: RegisterMap, access: A) -> Result<RegisterDevice<A>, MapError<A::Error>> {
        let bank = map.ports.iter().position(|port| port.kind == super::PortKind::Bank);
        let mut device = RegisterDevice { map, access, bank, port: None, address: None };
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

    /// Reads a word of a port.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn read_word(&mut self, port: usize, address: u64) -> Result<Bits, MapError<A::Error>> {
        let of = self.map.ports.get(port).filter(|of| of.readable && address < of.words);
        let width = of.ok_or(MapError::NoPort(port))?.width;
        self.choose(port, address)?;
        self.put(Field::Command.offset(), RegisterMap::READ)?;
        let mut polls = 0;
        while self.get(Field::Status)? & 1 != 0 {
            polls += 1;
            if polls == POLLS {
                return Err(MapError::Stuck);
            }
        }
        let mut word: Option<Bits> = None;
        for number in 0..width.div_ceil(32) {
            let value = self.access.read(RegisterMap::DATA + 4 * number).map_err(MapError::Access)?;
            let part = Bits::new(32, value.into());
            word = Some(word.map_or(part.clone(), |low| part.concat(&low)));
        }
        Ok(word.map_or_else(|| Bits::zero(width), |word| word.zero_extend(width)))
    }

    /// Writes a word of a port, all of it at once.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn write_word(&mut self, port: usize, address: u64, word: &Bits) -> Result<(), MapError<A::Error>> {
        let of = self.map.ports.get(port).filter(|of| of.writable && address < of.words);
        let width = of.ok_or(MapError::NoPort(port))?.width;
        self.choose(port, address)?;
        let limbs = word.limbs().flat_map(|limb| [limb as u32, (limb >> 32) as u32]);
        // What is narrower than the port leaves the rest as it is: nothing reads it.
        for (number, value) in (0..word.width().min(width).div_ceil(32)).zip(limbs) {
            self.put(RegisterMap::DATA + 4 * number, value)?;
        }
        self.put(Field::Command.offset(), RegisterMap::WRITE | RegisterMap::NEXT)?;
        self.address = Some(address + 1);
        Ok(())
    }

    fn choose(&mut self, port: usize, address: u64) -> Result<(), MapError<A::Error>> {
        if self.port != Some(port) {
            self.put(Field::Port.offset(), port as u32)?;
            self.port = Some(port);
        }
        if self.address != Some(address) {
            self.put(Field::Address.offset(), address as u32)?;
            self.address = Some(address);
        }
        Ok(())
    }

    fn get(&mut self, field: Field) -> Result<u32, MapError<A::Error>> {
        self.access.read(field.offset()).map_err(MapError::Access)
    }

    /// After an error nothing is known of the registers.
    fn put(&mut self, offset: u32, value: u32) -> Result<(), MapError<A::Error>> {
        let written = self.access.write(offset, value).map_err(MapError::Access);
        if written.is_err() {
            (self.port, self.address) = (None, None);
        }
        written
    }
}

impl<A: RegisterAccess> SoftwareAccess for RegisterDevice<A> {
    type Error = MapError<A::Error>;

    fn write(&mut self, port: usize, address: u64, word: &Bits) -> Result<(), Self::Error> {
        self.write_word(port, address, word)
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
