//! The hardware IR: synchronous circuits as modules of pure values, registers, memories and instances.
//!
//! Whatever Millrace makes of a program in hardware is a [`Design`] of this crate, library blocks included; whoever wants to
//! run, print or check hardware reads one.
//!
//! # Shape
//! - A [`Module`] has ports, [`Node`]s, registers, memories, instances of other modules, and streams, which say which ports
//!   make a ready/valid interface.
//! - A [`Node`] is a value of a fixed width: an [`Op`] on nodes that come earlier in the module. So a module has no
//!   combinational loop by itself, and the verifier has to look for loops through instances alone.
//! - State is in registers and memories. There is one clock and one synchronous reset, which no module names.
//!
//! # No undefined operation
//! Each operation has a value for all operands (see [`BinaryOp`]), a memory says what an access beyond its end does and what
//! a read gives during a write (see [`Memory`]), and all state has a value at the first cycle. A simulation has no `x`.
//!
//! # What is here
//! - [`ModuleBuilder`] for producers: constants folded, equal nodes shared, simple rules applied;
//! - [`text`]: an exact and readable text form (`.net`), described in docs/dev/netlist.md;
//! - [`passes`]: optimisations that keep the meaning;
//! - [`blocks`]: queues, register slices, arbiters;
//! - [`area`]: what a design takes of an FPGA, as an estimate;
//! - [`verilog`]: SystemVerilog for Verilator, Yosys, Vivado, Quartus;
//! - [`Simulator`]: the design in process, cycle by cycle, with [`Vcd`] for what signals did;
//! - `arbitrary` (with the feature of that name): random verified designs for tests, and what they do;
//! - [`verify()`]: a design that passes keeps every promise of the data types, so consumers need not check again.
//!
//! This crate never knows what a program is: values and objects only carry names and places of its source.

#[cfg(feature = "arbitrary")]
pub mod arbitrary;
pub mod area;
pub mod blocks;
mod builder;
mod design;
mod ids;
pub mod limits;
mod node;
pub mod passes;
pub mod sim;
pub mod text;
pub mod verify;
pub mod verilog;

pub use builder::{Beat, InStream, ModuleBuilder, OutStream};
pub use design::*;
pub use ids::*;
pub use millrace_pipeline::Bits;
pub use node::{BinaryOp, Node, Op, UnaryOp};
pub use sim::{MemoryHandle, SignalId, SignalKind, Simulator, Vcd};
pub use verify::{VerifierError, in_words, verify};

pub use cranelift_entity as entity;
