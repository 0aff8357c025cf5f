//! Packet memory: slots of one size in a region, packets in slots, batches of packets, and bursts that are switched where
//! they lie.
//!
//! It is the only home of how a frame lies in memory: [`HEADROOM`] before it, [`TAILROOM`] after it, at most [`MAX_FRAME`]
//! bytes, [`MAX_BATCH`] packets at once. Drivers fill packets, engines read and write them through a [`Burst`], and neither
//! copies them.
//!
//! A [`Region`] is the memory: its slots have the size that was chosen for it, a driver may supply it, and it outlives the
//! worker and the device for as long as any packet of it is somewhere. A [`Lender`] lends its packets to a device.
//!
//! It promises that a slot has one owner at any time, that a slot let go anywhere finds its region without a lock, and that
//! nothing allocates while packets go from a [`PacketPool`] into batches and back.

mod ahead;
mod burst;
mod layout;
mod lender;
mod memory;
mod packet;
mod pool;
mod region;
mod stock;

pub use ahead::{ask_for, ask_for_start};
pub use burst::{Ahead, Burst, Footprint, Place, TAILROOM};
pub use layout::{MIN_SLOT_FRAME, SlotLayout};
pub use lender::Lender;
pub use memory::{Memory, MemoryError};
pub use packet::{FrameLengthError, HEADROOM, MAX_FRAME, Packet, Service};
pub use pool::{Batch, MAX_BATCH, PacketPool};
pub use region::{MAX_REGION, Region, RegionError};
