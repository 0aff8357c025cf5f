//! What a program shows to its control plane, and the file that carries it.
//!
//! - [`p4info`] describes a program as P4Runtime does, with the ids of p4c.
//! - [`bmv2`] describes it as bmv2 does, for clients of bmv2.
//! - [`usage`] says what of the switch it uses.
//! - [`image`] is a compiled program with its description as a file.
//!
//! It needs no data path: a compiler, a client or a test links it without an engine.

pub mod bmv2;
pub mod image;
pub mod p4info;
pub mod usage;
