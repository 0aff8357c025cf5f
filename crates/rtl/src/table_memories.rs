//! The memories of a simulated design in which words of tables are, for setting them at once.

use millrace_netlist::MemoryHandle;
use std::ops::Range;

/// A memory in which words of a port are.
#[derive(Clone, Debug)]
pub(crate) struct PortMemory {
    /// The number of the port.
    pub(crate) port: usize,
    /// The addresses of the words, the first one that of word 0.
    pub(crate) addresses: Range<u64>,
    /// Its names in the design: each unit of the table has one.
    pub(crate) names: Vec<String>,
}

/// Those of a design, in the order of ports and addresses.
pub(crate) struct TableMemories(Vec<Words>);

/// Words of a port, and the memories that have them: the same memory of several units.
struct Words {
    port: usize,
    addresses: Range<u64>,
    memories: Vec<MemoryHandle>,
}

impl TableMemories {
    /// Of these in the order of ports and addresses, all of those that are found by their names; the port alone reaches the others.
    pub(crate) fn find(
        memories: &[PortMemory],
        find: impl Fn(&str) -> Option<MemoryHandle>,
    ) -> TableMemories {
        let words = |of: &PortMemory| {
            let memories = of.names.iter().map(|name| find(name)).collect::<Option<_>>()?;
            Some(Words { port: of.port, addresses: of.addresses.clone(), memories })
        };
        TableMemories(memories.iter().filter_map(words).collect())
    }

    /// Where a word is, and its address there; none: only the port reaches it.
    pub(crate) fn place(&self, port: usize, address: u64) -> Option<(&[MemoryHandle], u32)> {
        let before = |words: &Words| (words.port, words.addresses.start) <= (port, address);
        let last = self.0.partition_point(before).checked_sub(1)?;
        let words = self.0.get(last).filter(|words| words.port == port)?;
        let words = Some(words).filter(|words| words.addresses.contains(&address))?;
        Some((&words.memories, (address - words.addresses.start) as u32))
    }

    /// Each memory with how many words it has.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = (MemoryHandle, u32)> + '_ {
        let of = |words: &Words| (words.addresses.end - words.addresses.start) as u32;
        self.0.iter().flat_map(move |words| words.memories.iter().map(move |memory| (*memory, of(words))))
    }
}
