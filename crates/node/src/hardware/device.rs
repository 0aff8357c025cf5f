//! The hardware of a node as a device of the host link: simulated, or by the registers that are mapped into this machine.
//!
//! | port of a frame | to the device | from the device |
//! | --- | --- | --- |
//! | the number of a way | a frame with its facts comes in by it | one leaves by it |
//! | [`ASKS`] and the number of a way | asks for the next frame that leaves by it | |
//! | [`WIRE`] and the number of a MAC | a frame comes by its link | one leaves by it |
//! | [`TIME`] | the time at which frames come that follow, in nanoseconds: 8 bytes, the highest first | |
//! | [`DONE`] | comes back as it is | empty: all that follows from a frame was sent |

use super::cycles::{AtBus, Cycles};
use super::driver::Driver;
use super::top::Top;
use crate::interface::Item;
use crate::limits::MAX_FRAME;
use crate::model::NodeFile;
use crate::registers::{MAP_BYTES, served_name};
use millrace_drivers::wall_clock_ns;
use millrace_link::{Device, Event, Fault, Shape};
use std::fmt;

/// The port of the end of an answer.
pub(super) const DONE: u16 = 0xffff;
/// The time of frames that follow, which programs look at.
pub(super) const TIME: u16 = 0xfffe;
/// Added to the number of a way: its next frame is asked for.
pub(super) const ASKS: u16 = 0x8000;
/// Added to the number of a MAC: of its link.
pub(super) const WIRE: u16 = 0x4000;

/// The simulated hardware of a node.
pub struct HardwareDevice {
    name: String,
    driver: Driver<AtBus>,
    at: AtBus,
    now_ns: u64,
    answers: Vec<(u16, Vec<u8>)>,
    failed: Option<&'static str>,
}

impl fmt::Debug for HardwareDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HardwareDevice").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What the device of a design calls itself: other designs have other names.
pub(super) fn name_of(node: &NodeFile, top: &Top) -> String {
    format!("{}.{} {:016x}", node.name, node.devices[top.device].name, top.map.cookie)
}

fn shape(name: &str) -> Shape {
    Shape { name: name.to_owned(), bytes: MAP_BYTES, ports: DONE }
}

impl HardwareDevice {
    /// Simulates the design of a node.
    ///
    /// # Errors
    /// The design breaks a rule.
    pub fn new(node: &NodeFile, top: &Top) -> Result<HardwareDevice, String> {
        let mut buses = AtBus::all(Cycles::new(node, top)?);
        let at = buses.next().ok_or("a design without a bus")?;
        let driver = Driver::new(node, top, (at.clone(), buses), true).map_err(|why| why.to_string())?;
        Ok(HardwareDevice {
            name: served_name(&name_of(node, top), node),
            driver,
            at,
            now_ns: 0,
            answers: Vec::new(),
            failed: None,
        })
    }

    fn answer(&mut self) {
        let mut cycles = self.at.cycles();
        self.answers.extend(cycles.left().map(|(way, item)| (way as u16, item.encode())));
        let left = cycles.left_by_links().into_iter();
        self.answers.extend(left.map(|(wire, bytes)| (WIRE | wire as u16, bytes)));
        self.answers.push((DONE, Vec::new()));
    }
}

impl Device for HardwareDevice {
    fn shape(&self) -> Shape {
        shape(&self.name)
    }

    fn begin(&mut self) {
        self.driver.begin();
    }

    fn end(&mut self) -> Result<(), Fault> {
        self.driver.end()
    }

    fn read(&mut self, address: u32) -> Result<u32, Fault> {
        self.driver.read(address)
    }

    fn write(&mut self, address: u32, word: u32) -> Result<(), Fault> {
        self.driver.write(address, word)
    }

    fn send(&mut self, port: u16, frame: &[u8]) -> Result<(), Fault> {
        if port == DONE {
            self.answers.push((DONE, frame.to_vec()));
            return Ok(());
        }
        if port == TIME {
            let now = frame.try_into().map_err(|_| Fault::new("a time has 8 bytes"))?;
            self.now_ns = u64::from_be_bytes(now);
            self.at.cycles().set_now(self.now_ns);
            return Ok(());
        }
        self.driver.end()?;
        let way = usize::from(port & !(ASKS | WIRE));
        let mut cycles = self.at.cycles();
        if port & WIRE != 0 && port < ASKS {
            cycles.come_by(way, frame);
        } else if port >= ASKS {
            if cycles.is_asked(way) {
                cycles.ask(way);
            }
        } else if way < cycles.inputs() {
            let item = Item::decode(frame).map_err(Fault::new)?;
            if item.bytes.is_empty() || item.bytes.len() > MAX_FRAME {
                drop(cycles);
                self.answer();
                return Err(Fault::new(format_args!("a frame of {} bytes", item.bytes.len())));
            }
            if let Err(why) = cycles.feed(way, &item) {
                self.failed = Some(why);
            }
        }
        drop(cycles);
        self.answer();
        Ok(())
    }

    fn ask(&mut self, part: u16, text: &str) -> Result<String, Fault> {
        self.driver.command(part.into(), text, self.now_ns)
    }

    fn poll(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), Fault> {
        for (port, bytes) in self.answers.drain(..) {
            tell(Event::Frame { port, bytes });
        }
        self.failed.map_or(Ok(()), |why| Err(Fault::new(why)))
    }
}

/// The hardware of a node by its registers alone, as on a board: its frames go by its own links.
pub struct MappedDevice {
    name: String,
    driver: Driver<Box<dyn Device>>,
    answers: Vec<Vec<u8>>,
}

impl fmt::Debug for MappedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedDevice").field("name", &self.name).finish_non_exhaustive()
    }
}

impl MappedDevice {
    /// Of a design that is on a board; it is as the file says then. `registers` has its register map ([`Top::map`]), `programs` those of its
    /// programs ([`Top::programs`], in this order).
    ///
    /// # Errors
    /// There is another design, or frames go between its blocks and software: registers carry none.
    pub fn new(
        node: &NodeFile,
        top: &Top,
        registers: Box<dyn Device>,
        programs: Vec<Box<dyn Device>>,
    ) -> Result<MappedDevice, Fault> {
        if let Some(end) = top.inputs.iter().chain(&top.outputs).next() {
            let block = &node.blocks[end.block].name;
            return Err(Fault::new(format_args!(
                "block `{block}` and blocks that are not in this hardware send each other frames: mapped registers carry none"
            )));
        }
        if programs.len() != top.programs.len() {
            let (asked, given) = (top.programs.len(), programs.len());
            return Err(Fault::new(format_args!(
                "{asked} programs have registers of their own, and {given} are given"
            )));
        }
        let driver = Driver::new(node, top, (registers, programs), false)?;
        Ok(MappedDevice { name: served_name(&name_of(node, top), node), driver, answers: Vec::new() })
    }
}

impl Device for MappedDevice {
    fn shape(&self) -> Shape {
        shape(&self.name)
    }

    fn begin(&mut self) {
        self.driver.begin();
    }

    fn end(&mut self) -> Result<(), Fault> {
        self.driver.end()
    }

    fn read(&mut self, address: u32) -> Result<u32, Fault> {
        self.driver.read(address)
    }

    fn write(&mut self, address: u32, word: u32) -> Result<(), Fault> {
        self.driver.write(address, word)
    }

    fn send(&mut self, port: u16, frame: &[u8]) -> Result<(), Fault> {
        if port != DONE {
            return Err(Fault::new("frames of this hardware go by its own links"));
        }
        self.answers.push(frame.to_vec());
        Ok(())
    }

    fn ask(&mut self, part: u16, text: &str) -> Result<String, Fault> {
        self.driver.command(part.into(), text, wall_clock_ns())
    }

    fn poll(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), Fault> {
        self.answers.drain(..).for_each(|bytes| tell(Event::Frame { port: DONE, bytes }));
        Ok(())
    }
}
