//! The master of a bus in a simulation: reads and writes registers, a request at a time.

use super::Bus;
use crate::streams::{get, set};
use millrace_netlist::{SignalId, Simulator};

/// The master of a bus.
#[derive(Debug)]
pub struct Master(Signals);

#[derive(Debug)]
enum Signals {
    Axi { write: [Option<SignalId>; 9], read: [Option<SignalId>; 6] },
    Avalon([Option<SignalId>; 8]),
}

/// A request to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Of the register at an offset.
    Read(u32),
    /// Of a value to the register at an offset.
    Write(u32, u32),
}

/// A request that is under way.
#[derive(Debug)]
pub struct Pending {
    request: Request,
    /// What the slave has not taken yet: the address, the data of a write.
    left: [bool; 2],
}

impl Pending {
    /// One that begins.
    pub fn new(request: Request) -> Pending {
        Pending { request, left: [true, matches!(request, Request::Write(..))] }
    }
}

impl Master {
    /// At the bus of a simulated design, whose ports have the usual names.
    pub fn of(simulator: &Simulator, bus: Bus) -> Master {
        Master::of_part(simulator, bus, "")
    }

    /// At one of several buses: the names of its ports begin with that.
    pub fn of_part(simulator: &Simulator, bus: Bus, prefix: &str) -> Master {
        let input = |name: &str| simulator.input(&format!("{prefix}{name}"));
        let output = |name: &str| simulator.output(&format!("{prefix}{name}"));
        Master(match bus {
            Bus::Axi4Lite => Signals::Axi {
                write: [
                    input("s_axi_awaddr"),
                    input("s_axi_awvalid"),
                    output("s_axi_awready"),
                    input("s_axi_wdata"),
                    input("s_axi_wstrb"),
                    input("s_axi_wvalid"),
                    output("s_axi_wready"),
                    input("s_axi_bready"),
                    output("s_axi_bvalid"),
                ],
                read: [
                    input("s_axi_araddr"),
                    input("s_axi_arvalid"),
                    output("s_axi_arready"),
                    output("s_axi_rdata"),
                    output("s_axi_rvalid"),
                    input("s_axi_rready"),
                ],
            },
            Bus::AvalonMm => Signals::Avalon([
                input("avs_address"),
                input("avs_read"),
                output("avs_readdata"),
                output("avs_readdatavalid"),
                input("avs_write"),
                input("avs_writedata"),
                input("avs_byteenable"),
                output("avs_waitrequest"),
            ]),
        })
    }

    /// Does in this cycle what a request asks for, before its edge; gives the answer when it is there, which ends the request with the edge
    /// of this cycle. Writes have the answer 0.
    pub fn cycle(&self, simulator: &mut Simulator, pending: &mut Pending) -> Option<u32> {
        match &self.0 {
            Signals::Axi { write, read } => match pending.request {
                Request::Write(offset, word) => {
                    let [
                        address,
                        address_valid,
                        address_ready,
                        data,
                        strobe,
                        data_valid,
                        data_ready,
                        ready,
                        there,
                    ] = *write;
                    set(simulator, address, offset.into());
                    set(simulator, data, word.into());
                    set(simulator, strobe, 15);
                    set(simulator, address_valid, u64::from(pending.left[0]));
                    set(simulator, data_valid, u64::from(pending.left[1]));
                    set(simulator, ready, 1);
                    let came = pending.left == [false; 2] && get(simulator, there) != 0;
                    pending.left[0] &= get(simulator, address_ready) == 0;
                    pending.left[1] &= get(simulator, data_ready) == 0;
                    came.then_some(0)
                }
                Request::Read(offset) => {
                    let [address, valid, taken, data, there, ready] = *read;
                    set(simulator, address, offset.into());
                    set(simulator, valid, u64::from(pending.left[0]));
                    set(simulator, ready, 1);
                    let came = !pending.left[0] && get(simulator, there) != 0;
                    let word = get(simulator, data) as u32;
                    pending.left[0] &= get(simulator, taken) == 0;
                    came.then_some(word)
                }
            },
            Signals::Avalon([address, read, data, there, write, word, enable, wait]) => {
                let (offset, writes) = match pending.request {
                    Request::Read(offset) => (offset, None),
                    Request::Write(offset, word) => (offset, Some(word)),
                };
                set(simulator, *address, (offset / 4).into());
                set(simulator, *read, u64::from(writes.is_none() && pending.left[0]));
                set(simulator, *write, u64::from(writes.is_some() && pending.left[0]));
                set(simulator, *word, writes.unwrap_or(0).into());
                set(simulator, *enable, 15);
                let came = !pending.left[0] && get(simulator, *there) != 0;
                let value = get(simulator, *data) as u32;
                pending.left[0] &= get(simulator, *wait) != 0;
                match writes {
                    Some(_) => (!pending.left[0]).then_some(0),
                    None => came.then_some(value),
                }
            }
        }
    }

    /// Asks for nothing.
    pub fn idle(&self, simulator: &mut Simulator) {
        match &self.0 {
            Signals::Axi { write, read } => {
                [write[1], write[5], read[1]].into_iter().for_each(|signal| set(simulator, signal, 0));
            }
            Signals::Avalon([_, read, _, _, write, ..]) => {
                [*read, *write].into_iter().for_each(|signal| set(simulator, signal, 0));
            }
        }
    }
}
