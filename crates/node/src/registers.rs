//! The register map of a node: names of registers and their addresses, which follow from the file.
//!
//! Each block has a window; the blocks stand in the order of the file. Before them is a window of the node itself.

use crate::blocks::{Register, registers};
use crate::limits::MAX_BLOCKS;
use crate::model::NodeFile;
use millrace_rtl::map::RegisterMap;

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

/// What comes before the number of a register map in the name of what serves it.
const REGISTERS: &str = " registers ";

/// What serves the registers of a node, or of a device of it, calls itself on the host link: a name, and a number by which other register
/// maps are told apart.
pub(crate) fn served_name(name: &str, node: &NodeFile) -> String {
    let blocks: Vec<&str> = node.blocks.iter().map(|block| block.name.as_str()).collect();
    let number = RegisterMap::of(("", &format!("{blocks:?} {:?}", map(node))), Vec::new(), Vec::new()).cookie;
    format!("{name}{REGISTERS}{number:016x}")
}

/// The name in what serves a node calls itself.
pub(crate) fn name_in(served: &str) -> &str {
    served.split_once(REGISTERS).map_or(served, |(name, _)| name)
}

/// Whether what serves registers and calls itself so has those of the node of a file: the node, or a device of it.
///
/// # Errors
/// What the node of the file would call itself: `served` is another one, whose registers may be others.
pub fn check_served(served: &str, node: &NodeFile) -> Result<(), String> {
    let own = served_name(&node.name, node);
    let name = name_in(served);
    // A device of it has the name of the node before its own.
    let is_of_node =
        name.strip_prefix(&node.name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    match is_of_node && served_name(name, node) == served {
        true => Ok(()),
        false => Err(own),
    }
}

/// The window of an address, and the word within it.
pub(crate) fn place(address: u32) -> (usize, u32) {
    let word = address / 4;
    ((word / WINDOW_WORDS) as usize, word % WINDOW_WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Devices of a node have its registers, too; what has another name or other registers is another node.
    #[test]
    fn a_file_describes_what_has_its_name_and_its_registers() {
        let file = |name: &str, blocks: &str| {
            let text = format!(
                "[node]\nname = \"{name}\"\n[[device]]\nname = \"d\"\n[[service]]\nname = \"s\"\n\
                 [[function]]\nname = \"f\"\nservice = \"s\"\ndevice = \"d\"\n{blocks}"
            );
            NodeFile::parse("node.toml", &text).unwrap_or_else(|why| panic!("{}", why.render(false)))
        };
        let mac = |name: &str, port: u32| {
            let block =
                format!("[[block]]\nname = \"{name}\"\nfunction = \"f\"\nkind = \"mac\"\nport = {port}\n");
            format!("{block}[[connection]]\nfrom = \"{name}.rx\"\nto = \"{name}.tx\"\n")
        };
        let node = file("edge", &mac("a", 4));
        let served = served_name("edge", &node);
        assert_eq!((name_in(&served), name_in("edge")), ("edge", "edge"));
        for (name, is_it) in
            [("edge", true), ("edge.d 0123456789abcdef", true), ("edges", false), ("", false)]
        {
            assert_eq!(check_served(&served_name(name, &node), &node).is_ok(), is_it, "{name}");
        }
        assert_eq!(check_served("edge", &node), Err(served.clone()));
        assert_eq!(check_served(&served, &file("edge", &mac("a", 5))), Ok(()));
        for other in [file("edge", &mac("b", 4)), file("edge", &(mac("a", 4) + &mac("b", 6)))] {
            assert_eq!(check_served(&served, &other), Err(served_name("edge", &other)));
        }
    }
}
