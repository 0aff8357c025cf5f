//! P4Info: what a program shows to its control plane, as P4Runtime describes it.
//!
//! [`describe`] builds the message from the typed program, once; [`to_text`] writes it as protobuf text, `millrace_messages` in the
//! other forms. Numbers are
//! those of p4c, so a controller that was written against its output works unchanged: the first byte of an id names the
//! kind of resource (P4Runtime specification, section 6.3), the rest is Jenkins' one-at-a-time hash of the name, with
//! linear probing in the order of names; `@id` wins.
//!
//! Only what a packet can meet is described: tables that are applied, the actions of those, instances.

mod annotations;
mod collect;
mod externs;
mod ids;
mod objects;
mod types;
mod uses;
mod version;

pub use collect::{Architecture, describe};
pub use version::{Version, keep_to};

use millrace_messages::config::P4Info;
use millrace_messages::text::{Style, write};
use std::collections::BTreeMap;

/// What a program shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// What controllers see.
    pub info: P4Info,
    /// The widths of the fields of controller headers in the data plane, by the name of the header; a translation makes those that
    /// controllers see others.
    pub controller_headers: BTreeMap<String, Vec<u32>>,
}

/// P4Info as protobuf text.
pub fn to_text(info: &P4Info) -> String {
    let begin = "# proto-file: p4/config/v1/p4info.proto\n# proto-message: p4.config.v1.P4Info\n\n";
    begin.to_owned() + &write(info, Style::Lines)
}
