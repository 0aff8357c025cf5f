//! Where a device is, and how it is reached.

use crate::device::{Device, Fault};
use crate::mapped::Mapped;
use crate::remote::Remote;
use crate::simulated::Simulated;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Simulated in this process.
    Simulated,
    /// Served on the host link by another process.
    Served(SocketAddr),
    /// Registers that the kernel maps: a file of UIO, and which of its maps.
    Mapped(PathBuf, u32),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Simulated => f.write_str("the simulated device"),
            Place::Served(address) => write!(f, "the device at {address}"),
            Place::Mapped(path, map) => write!(f, "the device of {}, map {map}", path.display()),
        }
    }
}

impl Place {
    /// Reaches the device there, which is to be one like this. One that is simulated begins after its reset.
    ///
    /// # Errors
    /// It cannot be reached. Whether it is of this design, its registers say.
    pub fn open(&self, device: &millrace_rtl::Device) -> Result<Box<dyn Device>, Fault> {
        Ok(match self {
            Place::Simulated => Box::new(Simulated::new(device)?),
            Place::Served(address) => Box::new(Remote::connect(*address)?),
            Place::Mapped(path, map) => Box::new(Mapped::open(path, *map)?),
        })
    }

    /// Whether frames go to the device and come from it by [`Device::send`] and [`Device::poll`].
    pub fn has_frames(&self) -> bool {
        !matches!(self, Place::Mapped(..))
    }
}
