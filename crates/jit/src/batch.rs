//! Packets in memory that is borrowed while compiled code runs over them: the safe way to run it.

use crate::abi::{HEADROOM, Packet, TAILROOM, Verdict};
use crate::{Compiled, Contexts, Host};
use std::marker::PhantomData;

/// A list of packets that is used again for each batch.
#[derive(Debug, Default)]
pub struct PacketList(Vec<Packet>);

// SAFETY: between two batches the list is empty, and its pointers are never read.
unsafe impl Send for PacketList {}

/// Packets that lie in one memory. Two may overlap: the one that runs later meets what the other wrote.
#[derive(Debug)]
pub struct Batch<'b, 'm> {
    packets: &'b mut Vec<Packet>,
    start: *mut u8,
    length: usize,
    headroom: usize,
    memory: PhantomData<&'m mut [u8]>,
}

/// What became of a batch.
#[derive(Debug)]
pub struct Results<'r> {
    packets: &'r [Packet],
}

impl PacketList {
    /// An empty batch over some memory, for code that takes at most `headroom` bytes in front of packets
    /// ([`Compiled::headroom`]).
    pub fn over<'b, 'm>(&'b mut self, memory: &'m mut [u8], headroom: usize) -> Batch<'b, 'm> {
        self.0.clear();
        Batch {
            packets: &mut self.0,
            start: memory.as_mut_ptr(),
            length: memory.len(),
            headroom: headroom.min(HEADROOM),
            memory: PhantomData,
        }
    }
}

impl Batch<'_, '_> {
    /// Adds the packet of `len` bytes at `at`, which came in on `port`. False, and nothing added, when it does not lie
    /// in the memory with its headroom in front and [`TAILROOM`] behind.
    #[inline]
    pub fn push(&mut self, at: usize, len: usize, port: u32) -> bool {
        let end = at.saturating_add(len).saturating_add(TAILROOM);
        if at < self.headroom || end > self.length || len > u32::MAX as usize {
            return false;
        }
        let data = self.start.wrapping_add(at);
        self.packets.push(Packet { data, len: len as u32, port, verdict: 0, out: 0 });
        true
    }

    /// Runs code over the packets, at most [`crate::MAX_BATCH`] and as many as there are contexts. Packets beyond are
    /// left out of the results, as are all when the code does not [fit](Compiled::fits) the tables.
    #[inline]
    pub fn run<'r>(
        &'r mut self,
        compiled: &Compiled,
        host: &'r mut Host<'_>,
        contexts: &mut Contexts,
        now_ns: u64,
    ) -> Results<'r> {
        let count = self.packets.len().min(crate::MAX_BATCH).min(contexts.len());
        if compiled.headroom() > self.headroom {
            return Results { packets: &[] };
        }
        let packets = &mut self.packets[..count];
        // SAFETY: each packet lies with its headroom and tailroom in memory that the batch borrows alone, and the code
        // takes no more headroom than that.
        let ran = unsafe { compiled.run(host, contexts, packets, now_ns) };
        Results { packets: if ran { packets } else { &[] } }
    }
}

impl<'r> Results<'r> {
    /// How many packets there are.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// What became of each packet, and the number that goes with it.
    #[inline]
    pub fn verdicts(&self) -> impl ExactSizeIterator<Item = (Verdict, u32)> {
        self.packets.iter().map(|packet| {
            // Compiled code writes nothing else.
            (Verdict::from_number(packet.verdict).unwrap_or(Verdict::StepLimit), packet.out)
        })
    }

    /// A packet as it is now.
    pub fn bytes(&self, packet: usize) -> &'r [u8] {
        self.packets.get(packet).map_or(&[], |packet| {
            // SAFETY: it lies in the memory that the batch borrows, or in memory that the host keeps until its next
            // run; both are borrowed for as long as the bytes.
            unsafe { std::slice::from_raw_parts(packet.data, packet.len as usize) }
        })
    }
}
