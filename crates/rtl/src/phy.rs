//! What stands between a device with MACs and the pins of a board: PHYs, their clocks, resets.
//!
//! A wrapper is text, as it has several clocks and cells of a vendor, which designs do not have. The parts that do not depend on the device
//! are files of their own (`phy/*.sv`).

mod wrapper;

use crate::device::{Device, Link};
use crate::target::Target;
use millrace_netlist::verilog::VerilogFile;

/// What the ports of a device are connected to by a wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phy {
    /// PHYs on GMII, without cells of a vendor.
    Gmii,
    /// PHYs on RGMII that delay the clock of what they send; that of what they get is delayed by the wrapper.
    RgmiiRxid,
    /// PHYs on RGMII that delay both clocks.
    RgmiiId,
    /// Transceivers, by Xilinx' core for 10GBASE-R.
    XilinxPcsPma,
}

/// The most ports with [`Phy::XilinxPcsPma`]: the transceivers that share a clock.
pub const MAX_OF_A_QUAD: u32 = 4;

/// A wrapper: its files, and what tools are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrapper {
    /// Those that it adds to the files of the device, the top last.
    pub files: Vec<VerilogFile>,
    /// Its clocks that are pins, each with its period in picoseconds.
    pub clocks: Vec<PinClock>,
    /// Lines for Vivado that make cores.
    pub cores: String,
    /// It has cells of pins, which are placed at pins alone.
    pub needs_pins: bool,
}

/// A clock at a pin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinClock {
    /// The port of the wrapper.
    pub port: String,
    /// Its period in picoseconds.
    pub period_ps: u32,
    /// Ports whose data it has at both edges.
    pub data: Vec<String>,
}

impl Phy {
    /// All of them.
    pub const ALL: [Phy; 4] = [Phy::Gmii, Phy::RgmiiRxid, Phy::RgmiiId, Phy::XilinxPcsPma];

    /// The word for it in commands.
    pub fn name(self) -> &'static str {
        match self {
            Phy::Gmii => "gmii",
            Phy::RgmiiRxid => "rgmii-rxid",
            Phy::RgmiiId => "rgmii-id",
            Phy::XilinxPcsPma => "xilinx-pcs-pma",
        }
    }

    /// The link of the devices that it is for.
    pub fn link(self) -> Link {
        match self {
            Phy::Gmii | Phy::RgmiiRxid | Phy::RgmiiId => Link::Gmii,
            Phy::XilinxPcsPma => Link::Xgmii,
        }
    }

    fn check(self, target: Target, device: &Device) -> Result<(), String> {
        let name = self.name();
        let options = device.options();
        if options.link != self.link() {
            return Err(format!(
                "{name} is for ports with {}, not {}",
                self.link().name(),
                options.link.name()
            ));
        }
        match self {
            Phy::RgmiiRxid | Phy::RgmiiId if target == Target::Generic => {
                Err(format!("{name} has cells of the pins of an FPGA, so it is for ecp5 or xc7, not generic"))
            }
            Phy::XilinxPcsPma if target != Target::Xc7 => {
                Err(format!("{name} is a core of Xilinx, so it is for xc7, not {}", target.name()))
            }
            Phy::XilinxPcsPma if options.ports > MAX_OF_A_QUAD => Err(format!(
                "{name} has {MAX_OF_A_QUAD} ports at most, the transceivers that share a clock, not {}",
                options.ports
            )),
            _ => Ok(()),
        }
    }

    /// The wrapper of a device as it was printed, its top last.
    ///
    /// # Errors
    /// The target or the device has not what it needs.
    pub fn wrapper(
        self,
        target: Target,
        device: &Device,
        printed: &[VerilogFile],
    ) -> Result<Wrapper, String> {
        self.check(target, device)?;
        let top = printed.last().ok_or("a device without a text")?;
        Ok(wrapper::wrapper(self, target, top, device.options().ports))
    }
}
