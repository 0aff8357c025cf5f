//! The pipeline IR: one small, typed, fully elaborated form of a whole switch program.
//!
//! Everything that Millrace does with P4 is a producer or a consumer of this crate. A [`Program`] is what is
//! left of a P4 program when every generic is instantiated, every parser, control and function is inlined into
//! the block of the architecture that runs it, and every structure is flattened into scalar [`Slot`]s.
//!
//! # Shape
//! - Storage is flat: a [`Slot`] is one scalar (`bool`, `bit<W>` or `varbit<W>`), either a field of a [`Header`],
//!   metadata that lives as long as the packet, or a local that lives as long as one run of its body.
//! - Code is a [`Body`]: a graph of [`Block`]s, each a list of [`Inst`]s and one [`Terminator`]. Parsers, controls,
//!   deparsers, checksum blocks and actions are all bodies; a parser state is a block with a state name.
//! - [`Expr`]s are pure trees over slots: they read, they never write, they never fail. All effects are instructions.
//! - A table application is a terminator, so that an engine can split a batch of packets there.
//! - What the switch and the program tell each other (ports, drop, clone, time) goes through [`Intrinsic`] slots, so
//!   no consumer knows an architecture.
//!
//! # No undefined operation
//! Where P4 leaves something open the IR says what happens: see the doc of each operation, and docs/semantics.md.
//! In short: all headers start invalid, all slots as 0 or false; a field of an invalid header reads 0 and a write to it
//! is lost; making an invalid header valid gives it all-zero fields; arithmetic wraps at its width; a shift by at least
//! the width gives 0 (or the sign); division by zero gives 0 and the remainder of it is 0; an index outside an array
//! reads 0 and writes nothing.
//!
//! # What is here
//! - the data types, and [`bits`], [`semantics`], [`mod@hash`]: what every pure operation means, for all engines alike;
//! - [`ProgramBuilder`] and [`BodyBuilder`] for producers, with constructors of [`Expr`] that [`mod@fold`] what is plain;
//! - [`verify()`]: a program that passes keeps every promise of the data types, so consumers need not check again;
//! - [`text`]: an exact and readable text form (`.mir`), described in docs/dev/ir.md;
//! - [`passes`]: optimisations that keep the meaning;
//! - `arbitrary` (with the feature of that name): random verified programs for tests.
//!
//! This crate never knows where a program came from or where it goes.

#[cfg(feature = "arbitrary")]
pub mod arbitrary;
pub mod bits;
mod builder;
mod chain_text;
mod code;
mod drop_site;
mod expr;
pub mod fold;
pub mod hash;
mod ids;
mod intrinsic;
pub mod limits;
mod objects;
pub mod passes;
mod program;
pub mod semantics;
mod source_line;
pub mod text;
pub mod verify;
mod visit;
mod work;

pub use bits::Bits;
pub use builder::{BodyBuilder, BuildError, ProgramBuilder};
pub use chain_text::ChainText;
pub use code::*;
pub use drop_site::DropSite;
pub use hash::{Crc, CrcParameters, CrcWidth};
pub use ids::*;
pub use intrinsic::*;
pub use objects::*;
pub use program::*;
pub use source_line::{PAYLOAD, SourceKind, SourceLine};
pub use verify::{VerifierError, verify};
pub use work::Work;

pub use cranelift_entity as entity;
