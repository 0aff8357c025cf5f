//! The ports of software of a simulated design: what a register map is to a processor, cycle by cycle.

use crate::driver::SoftwareAccess;
use crate::software_port::{READ_LATENCY, SoftwarePort};
use millrace_netlist::{SignalId, SignalKind, Simulator};
use millrace_pipeline::Bits;
use std::convert::Infallible;

/// Those of the tables of a stage, and of its bank.
pub(crate) struct Pins {
    /// Enable, address and data of writes, by port of software.
    ports: Vec<[SignalId; 3]>,
    bank: Option<BankPins>,
}

#[derive(Clone, Copy)]
struct BankPins {
    write: [SignalId; 3],
    read_enable: SignalId,
    read: SignalId,
}

impl Pins {
    /// Those of a design, whose names have a beginning.
    ///
    /// # Errors
    /// The design has no such port.
    pub(crate) fn find<'p>(
        simulator: &Simulator,
        beginning: &str,
        tables: impl IntoIterator<Item = &'p SoftwarePort>,
        bank: Option<&SoftwarePort>,
    ) -> Result<Pins, String> {
        let port = |of: &SoftwarePort, kind: SignalKind, what: &str| {
            let name = format!("{beginning}{}", of.port(what));
            simulator.signal(kind, &name).ok_or_else(|| format!("there is no port {name}"))
        };
        let input = |of: &SoftwarePort, what: &str| port(of, SignalKind::Input, what);
        let write = |of: &SoftwarePort| -> Result<[SignalId; 3], String> {
            Ok([input(of, "write_enable")?, input(of, "write_address")?, input(of, "write_data")?])
        };
        let ports = tables.into_iter().map(write).collect::<Result<_, String>>()?;
        let bank = bank.map(|of| -> Result<BankPins, String> {
            let (read_enable, read) = (input(of, "read_enable")?, port(of, SignalKind::Output, "read_data")?);
            Ok(BankPins { write: write(of)?, read_enable, read })
        });
        Ok(Pins { ports, bank: bank.transpose()? })
    }
}

/// The ports with the simulation that they belong to, and what passes an edge of its clock.
pub(crate) struct Attached<'a> {
    pub(crate) pins: &'a Pins,
    pub(crate) simulator: &'a mut Simulator,
    pub(crate) edge: &'a mut dyn FnMut(&mut Simulator),
}

impl Attached<'_> {
    fn put(&mut self, [enable, address, data]: [SignalId; 3], at: u64, word: &Bits) {
        self.simulator.set_u64(enable, 1);
        self.simulator.set_u64(address, at);
        self.simulator.set(data, word);
        (self.edge)(self.simulator);
        self.simulator.set_u64(enable, 0);
    }
}

impl SoftwareAccess for Attached<'_> {
    type Error = Infallible;

    fn write(&mut self, port: usize, address: u64, word: &Bits) -> Result<(), Infallible> {
        self.put(self.pins.ports[port], address, word);
        Ok(())
    }

    /// Ends, as a frame is in a stage for a fixed number of cycles.
    fn use_bank(&mut self, bank: bool) -> Result<(), Infallible> {
        let Some(BankPins { write, read_enable, read }) = self.pins.bank else { return Ok(()) };
        self.put(write, 0, &Bits::new(2, bank.into()));
        loop {
            self.simulator.set_u64(read_enable, 1);
            (self.edge)(self.simulator);
            self.simulator.set_u64(read_enable, 0);
            (1..READ_LATENCY).for_each(|_| (self.edge)(self.simulator));
            if self.simulator.get_u64(read) == 2 | u64::from(bank) {
                return Ok(());
            }
        }
    }
}
