//! A device in simulation: its registers and ports are those of the netlist, cycle by cycle.

use crate::client::{Client, LinkError};
use crate::device::{Device, Event, Fault, Shape};
use crate::limits::MAX_WORDS;
use millrace_pipeline::Bits;
use millrace_rtl::device::Bench;
use millrace_rtl::map::{MapError, RegisterAccess};

/// Frames that wait at a port for the device to take them.
const MAX_COMING: usize = 256;
/// Words of tables that an update writes to each bank through the bus, some twenty cycles of the device each; the others are set in its memories
/// at once. A table of ranges has 256 words for each digit of a key and 64 entries.
const WORDS_BY_BUS: usize = 64;
/// Cycles that pass at a look at a device in which frames are.
const STEPS: u32 = 200;
/// Most cycles until a device has come to an end.
const MAX_SETTLING: u32 = 4_000_000;

/// A simulated device.
pub struct Simulated {
    bench: Bench,
    shape: Shape,
    /// Bytes of the longest frame.
    longest: usize,
    /// Cycles in which nothing has come or left.
    quiet: u32,
    /// The cycles that a frame takes at most between two signs of it.
    passage: u32,
}

impl std::fmt::Debug for Simulated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulated").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl Simulated {
    /// Of a device after its reset. Its clock for meters is that of its cycles.
    ///
    /// # Errors
    /// It cannot be simulated.
    pub fn new(device: &millrace_rtl::Device) -> Result<Simulated, Fault> {
        let mut bench = Bench::new(device).map_err(Fault::new)?;
        bench.set_clock(device.report().period_ps);
        // Any number: frames come and leave while registers are accessed.
        bench.set_traffic(1);
        let (map, options) = (device.register_map(), device.options());
        let ports = u16::try_from(options.ports).unwrap_or(u16::MAX);
        let shape = Shape { name: map.program.clone(), bytes: map.size(), ports };
        let report = device.report();
        // From its start to its end, to all ports, through the pipelines, and the gaps of random traffic.
        let whole = options.link.cycles(options.frame + options.link.overhead(), options.width);
        let passage = 2 * (report.latency.all() + report.interval) + 4 * whole + 256;
        Ok(Simulated { bench, shape, longest: options.frame as usize, quiet: passage, passage })
    }

    /// Passes a cycle.
    fn step(&mut self, tell: &mut dyn FnMut(Event)) {
        let (left, decided) = self.bench.step(&mut |_| true, &mut |_| true);
        let is_quiet = left.is_empty() && decided.is_empty() && self.bench.waiting() == 0;
        self.quiet = if is_quiet { self.quiet.saturating_add(1) } else { 0 };
        for frame in left.into_iter().filter(|frame| !frame.is_bad) {
            tell(Event::Frame { port: frame.port as u16, bytes: frame.bytes });
        }
    }

    fn take_messages(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), Fault> {
        loop {
            let messages = self.bench.take_interrupts();
            let messages = messages.map_err(|error: MapError<String>| Fault::new(error))?;
            if messages.is_empty() {
                return Ok(());
            }
            for (kind, word) in messages {
                tell(Event::Message { kind: kind as u32, bytes: bytes_of(&word) });
            }
        }
    }
}

impl Device for Simulated {
    fn shape(&self) -> Shape {
        self.shape.clone()
    }

    fn read(&mut self, address: u32) -> Result<u32, Fault> {
        self.bench.registers().read(address).map_err(Fault::new)
    }

    fn write(&mut self, address: u32, word: u32) -> Result<(), Fault> {
        self.bench.registers().write(address, word).map_err(Fault::new)
    }

    fn words_by_registers(&self) -> usize {
        WORDS_BY_BUS
    }

    fn set_at_once(&mut self, port: usize, address: u64, word: &Bits) -> bool {
        self.bench.registers().set_at_once(port, address, word)
    }

    fn send(&mut self, port: u16, frame: &[u8]) -> Result<(), Fault> {
        if port >= self.shape.ports {
            return Err(Fault::new(format_args!("the device has no port {port}")));
        }
        if frame.is_empty() || frame.len() > self.longest {
            let (bytes, longest) = (frame.len(), self.longest);
            return Err(Fault::new(format_args!("a frame of {bytes} bytes, not 1 to {longest}")));
        }
        if self.bench.waiting_at(port.into()) >= MAX_COMING {
            return Err(Fault::new(format_args!("{MAX_COMING} frames wait at port {port} (MAX_COMING)")));
        }
        self.bench.send(port.into(), frame.to_vec(), false);
        self.quiet = 0;
        Ok(())
    }

    fn poll(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), Fault> {
        let steps = if self.is_busy() { STEPS } else { 1 };
        (0..steps).for_each(|_| self.step(tell));
        self.take_messages(tell)
    }

    fn set_time(&mut self, now_ns: u64) {
        self.bench.set_now(now_ns);
    }

    fn settle(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), Fault> {
        for _ in 0..MAX_SETTLING {
            if self.quiet >= self.passage {
                return self.take_messages(tell);
            }
            self.step(tell);
        }
        Err(Fault::new(format_args!("frames are in the device after {MAX_SETTLING} cycles (MAX_SETTLING)")))
    }

    fn is_busy(&self) -> bool {
        self.quiet < self.passage
    }
}

/// The bytes of a word, the highest first.
fn bytes_of(word: &Bits) -> Vec<u8> {
    let mut bytes: Vec<u8> = word.limbs().flat_map(u64::to_le_bytes).collect();
    bytes.truncate(word.width().div_ceil(8) as usize);
    bytes.reverse();
    bytes
}

/// The registers of a device over the link.
impl RegisterAccess for Client {
    type Error = LinkError;

    fn read(&mut self, offset: u32) -> Result<u32, LinkError> {
        self.read_many(offset, 1).map(|words| words.first().copied().unwrap_or_default())
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<(), LinkError> {
        Client::write(self, &[(offset, value)])
    }

    fn read_many(&mut self, offset: u32, registers: u32) -> Result<Vec<u32>, LinkError> {
        Client::read(self, offset, registers as usize)
    }

    fn write_many(&mut self, writes: &[(u32, u32)]) -> Result<(), LinkError> {
        writes.chunks(MAX_WORDS).try_for_each(|writes| Client::write(self, writes))
    }

    /// Other clients use the same registers.
    fn is_shared(&self) -> bool {
        true
    }
}
