//! The `dpdk` driver: any device of DPDK, by the name that DPDK has for it, in poll mode.
//!
//! The packets of a queue pair are mbufs: `memory.rs` says how the slots of a region of `frames` and the mbufs of a pool of DPDK are
//! the same memory, and who owns a slot when. A frame that one `dpdk` port has received leaves by another where it lies.
//!
//! What DPDK has as inline functions and structures is in `shim.c`, which knows no more than one burst, one piece of memory or one
//! device; what is decided is decided in Rust.

mod device;
mod eal;
mod memory;
mod queue;
mod shim;
#[cfg(test)]
mod tests;

pub use device::DpdkDevice;

const DRIVER: &str = "dpdk";
