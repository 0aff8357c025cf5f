//! The ports of software of a simulated design: what a register map is to a processor, cycle by cycle.

use crate::driver::SoftwareAccess;
use crate::model::{Model, Port};
use crate::software_port::{READ_LATENCY, SoftwarePort};
use millrace_netlist::{SignalId, SignalKind, Simulator};
use millrace_pipeline::Bits;
use std::convert::Infallible;

/// Most looks whether all frames meet a bank: a stage has fewer cycles (`MAX_LATENCY`).
const MAX_LOOKS: u32 = 1 << 14;

/// A simulated design whose ports are set and read by the cycle.
pub(crate) trait Wires {
    /// A port.
    type Pin: Copy;

    /// The port of that name.
    fn pin(&self, kind: SignalKind, name: &str) -> Option<Self::Pin>;
    /// Sets an input.
    fn drive(&mut self, pin: Self::Pin, value: &Bits);
    /// The value of an output in this cycle.
    fn look(&mut self, pin: Self::Pin) -> Bits;
}

impl Wires for Simulator {
    type Pin = SignalId;

    fn pin(&self, kind: SignalKind, name: &str) -> Option<SignalId> {
        self.signal(kind, name)
    }

    fn drive(&mut self, pin: SignalId, value: &Bits) {
        self.set(pin, value);
    }

    fn look(&mut self, pin: SignalId) -> Bits {
        self.get(pin)
    }
}

impl Wires for Model {
    type Pin = Port;

    fn pin(&self, kind: SignalKind, name: &str) -> Option<Port> {
        self.port(kind, name)
    }

    fn drive(&mut self, pin: Port, value: &Bits) {
        self.set(pin, value);
    }

    fn look(&mut self, pin: Port) -> Bits {
        self.get(pin)
    }
}

/// Those of the tables of a stage, and of its bank.
pub(crate) struct Pins<W: Wires> {
    /// Enable, address and data of writes, by port of software, with the bits of the address.
    ports: Vec<([W::Pin; 3], u32)>,
    bank: Option<BankPins<W::Pin>>,
}

#[derive(Clone, Copy)]
struct BankPins<P> {
    write: [P; 3],
    read_enable: P,
    read: P,
}

impl<W: Wires> Pins<W> {
    /// Those of a design, whose names have a beginning.
    ///
    /// # Errors
    /// The design has no such port.
    pub(crate) fn find<'p>(
        wires: &W,
        beginning: &str,
        tables: impl IntoIterator<Item = &'p SoftwarePort>,
        bank: Option<&SoftwarePort>,
    ) -> Result<Pins<W>, String> {
        let port = |of: &SoftwarePort, kind: SignalKind, what: &str| {
            let name = format!("{beginning}{}", of.port(what));
            wires.pin(kind, &name).ok_or_else(|| format!("there is no port {name}"))
        };
        let input = |of: &SoftwarePort, what: &str| port(of, SignalKind::Input, what);
        let write = |of: &SoftwarePort| -> Result<[W::Pin; 3], String> {
            Ok([input(of, "write_enable")?, input(of, "write_address")?, input(of, "write_data")?])
        };
        let ports = tables.into_iter().map(|of| Ok((write(of)?, of.address_width())));
        let ports = ports.collect::<Result<_, String>>()?;
        let bank = bank.map(|of| -> Result<BankPins<W::Pin>, String> {
            let (read_enable, read) = (input(of, "read_enable")?, port(of, SignalKind::Output, "read_data")?);
            Ok(BankPins { write: write(of)?, read_enable, read })
        });
        Ok(Pins { ports, bank: bank.transpose()? })
    }
}

/// The ports with the simulation that they belong to, and what passes an edge of its clock.
pub(crate) struct Attached<'a, W: Wires> {
    pub(crate) pins: &'a Pins<W>,
    pub(crate) wires: &'a mut W,
    pub(crate) edge: &'a mut dyn FnMut(&mut W),
}

impl<W: Wires> Attached<'_, W> {
    fn put(&mut self, [enable, address, data]: [W::Pin; 3], at: &Bits, word: &Bits) {
        self.wires.drive(enable, &Bits::new(1, 1));
        self.wires.drive(address, at);
        self.wires.drive(data, word);
        (self.edge)(self.wires);
        self.wires.drive(enable, &Bits::new(1, 0));
    }
}

impl<W: Wires> SoftwareAccess for Attached<'_, W> {
    type Error = Infallible;

    fn write(&mut self, port: usize, address: u64, word: &Bits) -> Result<(), Infallible> {
        let (pins, width) = self.pins.ports[port];
        self.put(pins, &Bits::new(width, address.into()), word);
        Ok(())
    }

    /// A frame is in a stage for a fixed number of cycles, fewer than the looks take; only a model that has ended never says it.
    fn use_bank(&mut self, bank: bool) -> Result<(), Infallible> {
        let Some(BankPins { write, read_enable, read }) = self.pins.bank else { return Ok(()) };
        self.put(write, &Bits::new(1, 0), &Bits::new(2, bank.into()));
        let wanted = Bits::new(2, 2 | u128::from(bank));
        for _ in 0..MAX_LOOKS {
            self.wires.drive(read_enable, &Bits::new(1, 1));
            (self.edge)(self.wires);
            self.wires.drive(read_enable, &Bits::new(1, 0));
            (1..READ_LATENCY).for_each(|_| (self.edge)(self.wires));
            if self.wires.look(read) == wanted {
                break;
            }
        }
        Ok(())
    }
}
