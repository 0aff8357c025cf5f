//! P4Info: what a program shows to its control plane, as P4Runtime describes it.
//!
//! [`describe`] builds the message from the typed program; [`P4Info`] prints as protobuf text (`Display`). Numbers are
//! those of p4c, so a controller that was written against its output works unchanged: the first byte of an id names the
//! kind of resource (P4Runtime specification, section 6.3), the rest is Jenkins' one-at-a-time hash of the name, with
//! linear probing in the order of names; `@id` wins.
//!
//! Only what a packet can meet is described: tables that are applied, the actions of those, instances.

mod annotations;
mod collect;
mod ids;
mod model;
mod objects;
mod text;
mod types;
mod uses;

pub use collect::{Architecture, describe};
pub use model::*;
