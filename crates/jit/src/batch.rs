//! Packets in memory that is borrowed while compiled code runs over them: the safe way to run it.

use crate::abi::{HEADROOM, Packet, TAILROOM, Verdict};
use crate::{Compiled, Contexts, Host, MAX_BATCH};
use std::marker::PhantomData;
use std::mem::offset_of;

/// A list of packets that is used again for each batch.
#[derive(Debug)]
pub struct PacketList(Box<[Packet; MAX_BATCH]>);

// SAFETY: between two batches its pointers are never read.
unsafe impl Send for PacketList {}

impl Default for PacketList {
    fn default() -> PacketList {
        let nowhere = Packet { data: std::ptr::null_mut(), len: 0, port: 0, verdict: 0, out: 0 };
        PacketList(Box::new([nowhere; MAX_BATCH]))
    }
}

/// Packets that lie in one memory. Two may overlap: the one that runs later meets what the other wrote.
#[derive(Debug)]
pub struct Batch<'b, 'm> {
    packets: &'b mut [Packet; MAX_BATCH],
    count: usize,
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
    #[inline]
    pub fn over<'b, 'm>(&'b mut self, memory: &'m mut [u8], headroom: usize) -> Batch<'b, 'm> {
        Batch {
            packets: &mut self.0,
            count: 0,
            start: memory.as_mut_ptr(),
            length: memory.len(),
            headroom: headroom.min(HEADROOM),
            memory: PhantomData,
        }
    }
}

impl Batch<'_, '_> {
    /// Adds packets that came in on `port`; gives their bytes. `place` says of each its first byte in the memory, and its
    /// length. None, and nothing added, when one of them does not lie in the memory with its headroom in front and
    /// [`TAILROOM`] behind, or there would be more than [`MAX_BATCH`].
    #[inline]
    pub fn push_all<T>(&mut self, places: &[T], port: u32, place: impl Fn(&T) -> (u32, u32)) -> Option<u64> {
        let free = self.packets.get_mut(self.count..)?;
        let end = self.length.checked_sub(TAILROOM)? as u64;
        if places.len() > free.len() {
            return None;
        }
        let bytes = bytes_within(places, &place, self.headroom as u64, end)?;
        for (packet, at) in free.iter_mut().zip(places) {
            let (at, len) = place(at);
            packet.data = self.start.wrapping_add(at as usize);
            packet.len = len;
            packet.port = port;
        }
        self.count += places.len();
        Some(bytes)
    }

    /// Adds the packet of `len` bytes at `at`, which came in on `port`. False, and nothing added, where
    /// [`Batch::push_all`] gives none.
    #[inline]
    pub fn push(&mut self, at: usize, len: usize, port: u32) -> bool {
        let (Ok(at), Ok(len)) = (u32::try_from(at), u32::try_from(len)) else { return false };
        self.push_all(&[(at, len)], port, |place| *place).is_some()
    }

    /// Runs code over the packets, as many as there are contexts. Packets beyond are left out of the results, as are all
    /// when the code does not [fit](Compiled::fits) the tables.
    #[inline]
    pub fn run<'r>(
        &'r mut self,
        compiled: &Compiled,
        host: &'r mut Host<'_>,
        contexts: &mut Contexts,
        now_ns: u64,
    ) -> Results<'r> {
        let count = self.count.min(contexts.len());
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

/// The bytes of places, all of which lie between two others; none when one does not.
#[inline]
fn bytes_within<T>(places: &[T], place: &impl Fn(&T) -> (u32, u32), from: u64, end: u64) -> Option<u64> {
    #[inline(always)]
    fn portable<T>(places: &[T], place: &impl Fn(&T) -> (u32, u32), from: u64, end: u64) -> Option<u64> {
        let (mut bytes, mut outside) = (0u64, 0u64);
        for at in places {
            let (at, len) = place(at);
            let (at, len) = (u64::from(at), u64::from(len));
            // One of the differences is below 0 where it does not.
            outside |= at.wrapping_sub(from) | end.wrapping_sub(at + len);
            bytes += len;
        }
        (outside >> 63 == 0).then_some(bytes)
    }

    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn avx2<T>(places: &[T], place: &impl Fn(&T) -> (u32, u32), from: u64, end: u64) -> Option<u64> {
            portable(places, place, from, end)
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the machine has AVX2.
            return unsafe { avx2(places, place, from, end) };
        }
    }
    portable(places, place, from, end)
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

    /// The packets, with what became of them; [`Results::bytes`] has their bytes.
    #[inline]
    pub fn packets(&self) -> &'r [Packet] {
        self.packets
    }

    /// What became of each packet, and the number that goes with it.
    #[inline]
    pub fn verdicts(&self) -> impl ExactSizeIterator<Item = (Verdict, u32)> {
        self.packets.iter().map(|packet| (packet.verdict(), packet.out))
    }

    /// A packet as it is now.
    #[inline]
    pub fn bytes(&self, packet: usize) -> &'r [u8] {
        self.packets.get(packet).map_or(&[], |packet| {
            // SAFETY: it lies in the memory that the batch borrows, or in memory that the host keeps until its next
            // run; both are borrowed for as long as the bytes.
            unsafe { std::slice::from_raw_parts(packet.data, packet.len as usize) }
        })
    }
}

impl Packet {
    /// The port to send it to, of a packet that is to be sent; of others a number above all ports.
    #[inline]
    pub fn port_to_send(&self) -> u64 {
        // Verdict::Forward is 0. Compilers do not make one load of two by themselves here.
        const { assert!(offset_of!(Packet, verdict) == offset_of!(Packet, out) + 4) };
        // SAFETY: two fields that lie behind one another.
        let both = unsafe {
            std::ptr::from_ref(self).cast::<u8>().add(offset_of!(Packet, out)).cast::<u64>().read_unaligned()
        };
        if cfg!(target_endian = "little") { both } else { both.rotate_left(32) }
    }

    /// What became of it.
    #[inline]
    pub fn verdict(&self) -> Verdict {
        // Compiled code writes nothing else.
        Verdict::from_number(self.verdict).unwrap_or(Verdict::StepLimit)
    }
}
