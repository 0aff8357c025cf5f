//! Packet memory: slots of one size in a region, packets in slots, batches of packets, and bursts that are switched where
//! they lie.
//!
//! It is the only home of how a frame lies in memory: [`HEADROOM`] before it, [`TAILROOM`] after it, at most [`MAX_FRAME`]
//! bytes, [`MAX_BATCH`] packets at once. Drivers fill packets, engines read and write them through a [`Burst`], and neither
//! copies them.
//!
//! It promises that a slot has one owner at any time, and that nothing allocates while packets go from a [`PacketPool`] into
//! batches and back.

mod burst;
mod memory;
mod packet;
mod pool;
mod slots;

pub use burst::{Burst, Footprint, Place, TAILROOM};
pub use memory::{Memory, MemoryError};
pub use packet::{FrameLengthError, HEADROOM, MAX_FRAME, Packet};
pub use pool::{Batch, MAX_BATCH, PacketPool};
