//! What compiled code calls: helpers for operations on memory, and the host with the program's objects.

mod helpers;
mod host;
mod lookup;
mod writer;

pub(crate) use helpers::{Helper, WideOp, empty_varbit, hasher_number};
pub use host::Host;
pub(crate) use lookup::lookup_of;

use std::sync::Arc;

/// Where bits are put together: a deparser may hash between its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Writer {
    /// The data of a hash.
    Hash = 0,
    /// The headers of the new packet.
    Packet = 1,
}

/// The texts that code refers to by number: log formats and assertions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    texts: Vec<Arc<str>>,
}

impl Texts {
    /// The number of a text.
    pub(crate) fn add(&mut self, text: &str) -> u64 {
        let at = self.texts.iter().position(|other| **other == *text).unwrap_or_else(|| {
            self.texts.push(text.into());
            self.texts.len() - 1
        });
        at as u64
    }

    pub(crate) fn get(&self, number: u64) -> &str {
        self.texts.get(number as usize).map_or("", |text| text)
    }
}
