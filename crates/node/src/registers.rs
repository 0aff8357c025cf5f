//! The register map of a node: names of registers and their addresses, which follow from the file.
//!
//! Each block has a window; the blocks stand in the order of the file. Before them is a window of the node itself.

use crate::blocks::{Register, registers};
use crate::limits::MAX_BLOCKS;
use crate::model::NodeFile;

/// Words of the window of a block.
pub const WINDOW_WORDS: u32 = 8192;
/// Bytes of the registers of a node.
pub const MAP_BYTES: u32 = 4 * WINDOW_WORDS * (MAX_BLOCKS as u32 + 1);

/// What a node counts itself, by the words of its window.
pub(crate) const OWN: [(&str, u32); 4] =
    [("arrivals", 0), ("unconnected", UNCONNECTED), ("passes", 4), ("link_lost", 6)];
/// The word of a counter that hardware has a part of.
pub(crate) const UNCONNECTED: u32 = 2;

/// A register of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// `BLOCK.REGISTER`.
    pub name: String,
    /// Its address, in bytes.
    pub address: u32,
    /// Its words.
    pub words: u32,
    /// Whether it can be written.
    pub writable: bool,
}

/// All registers, in the order of their addresses.
pub fn map(node: &NodeFile) -> Vec<Mapped> {
    let own = OWN.iter().map(|(name, word)| {
        let register = Register { name: (*name).to_owned(), word: *word, words: 2, writable: false };
        mapped("node", 0, &register)
    });
    let blocks = (1..).zip(&node.blocks).flat_map(|(window, block)| {
        let of_block = registers(&block.kind);
        of_block.into_iter().map(move |register| mapped(&block.name, window, &register))
    });
    own.chain(blocks).collect()
}

fn mapped(block: &str, window: u32, register: &Register) -> Mapped {
    Mapped {
        name: format!("{block}.{}", register.name),
        address: 4 * (WINDOW_WORDS * window + register.word),
        words: register.words,
        writable: register.writable,
    }
}

/// The window of an address, and the word within it.
pub(crate) fn place(address: u32) -> (usize, u32) {
    let word = address / 4;
    ((word / WINDOW_WORDS) as usize, word % WINDOW_WORDS)
}
