//! A hardware device, as the server has it.

use crate::limits::MAX_TEXT;
use millrace_pipeline::Bits;
use millrace_rtl::map::RegisterAccess;
use std::fmt;
use std::os::fd::RawFd;

/// What a device is like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Its name, at most [`MAX_TEXT`] bytes.
    pub name: String,
    /// How many bytes of registers it has.
    pub bytes: u32,
    /// How many ports frames go to and come from; 0 for a device that carries registers alone.
    pub ports: u16,
}

/// Why a device did not do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(String);

impl Fault {
    /// For a reason.
    pub fn new(reason: impl fmt::Display) -> Fault {
        let mut reason = reason.to_string();
        let mut end = reason.len().min(MAX_TEXT);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        reason.truncate(end);
        Fault(reason)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

/// What comes from a device by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A frame that left by a port.
    Frame {
        /// The port.
        port: u16,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// Something that it has to say.
    Message {
        /// What kind of message, as its register map says.
        kind: u32,
        /// The message.
        bytes: Vec<u8>,
    },
}

/// A hardware device. One thread has it; whoever serves it has checked addresses against its [`Shape`].
pub trait Device: Send {
    /// What it is like.
    fn shape(&self) -> Shape;

    /// A request for registers begins. What is read or written until the next one is of the same client.
    fn begin(&mut self) {}

    /// A request for registers ends: all that it has written is in effect after this. A device may put off until here what costs much.
    ///
    /// # Errors
    /// The device did not answer, or does not take what was written.
    fn end(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// The register at an address.
    ///
    /// # Errors
    /// The device did not answer.
    fn read(&mut self, address: u32) -> Result<u32, Fault>;

    /// Sets the register at an address.
    ///
    /// # Errors
    /// The device did not answer.
    fn write(&mut self, address: u32, word: u32) -> Result<(), Fault>;

    /// Has a frame come in by a port.
    ///
    /// # Errors
    /// The device has no room for it, or no such port: the frame is lost.
    fn send(&mut self, port: u16, frame: &[u8]) -> Result<(), Fault>;

    /// Answers a text for a part of it: commands, whose answer is what they show.
    ///
    /// # Errors
    /// There is no such part, or it does not do that; then nothing has changed.
    fn ask(&mut self, part: u16, _text: &str) -> Result<String, Fault> {
        Err(Fault::new(format_args!("the device has no part {part} that understands texts")))
    }

    /// What it has to say since it was asked last: at most a batch, so that requests do not wait for long. A device that has time of its
    /// own, as a simulation does, lets some of it pass.
    ///
    /// # Errors
    /// The device is gone; the server ends.
    fn poll(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), Fault>;

    /// Reads so many registers from an address on; where a request takes long, as one.
    ///
    /// # Errors
    /// The device did not answer.
    fn read_many(&mut self, address: u32, words: u32) -> Result<Vec<u32>, Fault> {
        (0..words).map(|word| self.read(address + 4 * word)).collect()
    }

    /// Sets registers in this order; where a request takes long, as one.
    ///
    /// # Errors
    /// The device did not answer; some may be set.
    fn write_many(&mut self, writes: &[(u32, u32)]) -> Result<(), Fault> {
        writes.iter().try_for_each(|(address, word)| self.write(*address, *word))
    }

    /// Whether others may use the registers between two requests.
    fn is_shared(&self) -> bool {
        false
    }

    /// How many words of tables and groups an update writes to each bank through registers; it asks to set the others at once.
    fn words_by_registers(&self) -> usize {
        usize::MAX
    }

    /// Sets a word of a table, by the number of its port, where it is, past the registers, in a bank that no frame meets; says whether it
    /// did. Simulations can.
    fn set_at_once(&mut self, _port: usize, _address: u64, _word: &Bits) -> bool {
        false
    }

    /// Whether messages come from [`Device::poll`]; else they wait in the queues of the device until its registers are asked.
    fn tells(&self) -> bool {
        true
    }

    /// The time that a device has from outside, in nanoseconds: of a simulation.
    fn set_time(&mut self, _now_ns: u64) {}

    /// Lets time pass until no frame is in a device that has time of its own; gives what it has to say. Nothing for another one.
    ///
    /// # Errors
    /// The device is gone, or does not come to an end.
    fn settle(&mut self, _tell: &mut dyn FnMut(Event)) -> Result<(), Fault> {
        Ok(())
    }

    /// Whether [`Device::poll`] is to be called again at once: frames are in a device that has time of its own.
    fn is_busy(&self) -> bool {
        false
    }

    /// A descriptor that polls readable when it has something to say.
    fn poll_fd(&self) -> Option<RawFd> {
        None
    }

    /// Frames and messages that it had to say and that were lost on the way.
    fn lost(&self) -> u64 {
        0
    }
}

/// The registers of a device, for its driver.
impl RegisterAccess for Box<dyn Device> {
    type Error = Fault;

    fn read(&mut self, offset: u32) -> Result<u32, Fault> {
        (**self).read(offset)
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<(), Fault> {
        (**self).write(offset, value)
    }

    fn is_shared(&self) -> bool {
        (**self).is_shared()
    }

    fn words_by_registers(&self) -> usize {
        (**self).words_by_registers()
    }

    fn set_at_once(&mut self, port: usize, address: u64, word: &Bits) -> bool {
        (**self).set_at_once(port, address, word)
    }

    fn read_many(&mut self, offset: u32, registers: u32) -> Result<Vec<u32>, Fault> {
        (**self).read_many(offset, registers)
    }

    fn write_many(&mut self, writes: &[(u32, u32)]) -> Result<(), Fault> {
        (**self).write_many(writes)
    }
}

/// What a server has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames that clients sent to the device.
    pub frames_in: u64,
    /// Those of them that it did not take.
    pub refused: u64,
    /// Frames that the device sent to the client that has them.
    pub frames_out: u64,
    /// Messages that it sent.
    pub messages: u64,
    /// Frames that no client had, or that the client did not take in time.
    pub lost_frames: u64,
    /// Messages of which that is so.
    pub lost_messages: u64,
    /// Requests for registers.
    pub requests: u64,
}
