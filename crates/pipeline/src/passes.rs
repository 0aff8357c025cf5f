//! Passes: each keeps a verified program verified, and what it does to every packet.

mod blocks;

pub use blocks::remove_unreachable_blocks;
