//! Packets in memory that is borrowed while compiled code runs over them: the safe way to run it.

use crate::abi::{HEADROOM, Moved, Outcome, Place, TAILROOM};
use crate::{Compiled, Contexts, Host, MAX_BATCH};

/// Room for what becomes of the packets of a batch, used again for each batch.
#[derive(Debug)]
pub struct Outcomes {
    words: Box<[Outcome; MAX_BATCH]>,
    moved: Box<[Moved; MAX_BATCH]>,
}

// SAFETY: between two batches its pointers are never read.
unsafe impl Send for Outcomes {}

impl Default for Outcomes {
    fn default() -> Outcomes {
        let nowhere = Moved { data: std::ptr::null_mut(), len: 0 };
        Outcomes { words: Box::new([Outcome::default(); MAX_BATCH]), moved: Box::new([nowhere; MAX_BATCH]) }
    }
}

/// Packets that lie in one memory and came in on one port. Two may overlap: the one that runs later meets what the other
/// wrote.
#[derive(Debug)]
pub struct Batch<'m> {
    memory: &'m mut [u8],
    places: &'m [Place],
    port: u32,
    headroom: usize,
    bytes: u64,
}

/// The packets of a batch as compiled code takes them.
pub(crate) struct Packets<'b> {
    pub(crate) memory: *mut u8,
    pub(crate) places: &'b [Place],
    pub(crate) port: u32,
    pub(crate) outcomes: &'b mut Outcomes,
}

impl Packets<'_> {
    /// Behind the outcomes.
    pub(crate) fn outcomes_end(&mut self) -> *mut Outcome {
        let count = self.places.len();
        self.outcomes.words[..count].as_mut_ptr_range().end
    }

    pub(crate) fn moved(&mut self) -> *mut Moved {
        self.outcomes.moved.as_mut_ptr()
    }
}

/// What became of a batch.
#[derive(Debug)]
pub struct Results<'r> {
    outcomes: &'r [Outcome],
    memory: &'r [u8],
    places: &'r [Place],
    /// Where packets are now, when they may have been moved.
    moved: Option<&'r [Moved]>,
}

impl<'m> Batch<'m> {
    /// Packets that came in on `port`, for code that takes at most `headroom` bytes in front of them
    /// ([`Compiled::headroom`]). None when one of them does not lie in the memory with its headroom in front and
    /// [`TAILROOM`] behind, or there are more than [`MAX_BATCH`].
    #[inline]
    pub fn new(memory: &'m mut [u8], places: &'m [Place], port: u32, headroom: usize) -> Option<Batch<'m>> {
        let end = memory.len().checked_sub(TAILROOM)? as u64;
        if places.len() > MAX_BATCH {
            return None;
        }
        let headroom = headroom.min(HEADROOM);
        let bytes = bytes_within(places, headroom as u64, end)?;
        Some(Batch { memory, places, port, headroom, bytes })
    }

    /// The bytes of all packets together.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Runs code over the packets, as many as there are contexts. Packets beyond are left out of the results, as are all
    /// when the code does not [fit](Compiled::fits) the tables.
    #[inline]
    pub fn run<'r>(
        self,
        compiled: &Compiled,
        host: &'r mut Host<'_>,
        contexts: &mut Contexts,
        outcomes: &'r mut Outcomes,
        now_ns: u64,
    ) -> Results<'r>
    where
        'm: 'r,
    {
        let Batch { memory, places, port, headroom, .. } = self;
        let places = &places[..places.len().min(contexts.len())];
        let fits = compiled.headroom() <= headroom;
        let packets = Packets { memory: memory.as_mut_ptr(), places, port, outcomes };
        // SAFETY: each packet lies with its headroom and tailroom in memory that the batch borrows alone, and the code
        // takes no more headroom than that.
        let ran = fits && unsafe { compiled.run(host, contexts, packets, now_ns) };
        let count = if ran { places.len() } else { 0 };
        Results {
            outcomes: &outcomes.words[..count],
            memory,
            places: &places[..count],
            moved: (!compiled.keeps_place()).then(|| &outcomes.moved[..count]),
        }
    }
}

/// The bytes of places, all of which lie between two others; none when one does not.
#[inline]
fn bytes_within(places: &[Place], from: u64, end: u64) -> Option<u64> {
    #[inline(always)]
    fn portable(places: &[Place], from: u64, end: u64) -> Option<u64> {
        let (mut bytes, mut outside) = (0u64, 0u64);
        for [at, len] in places {
            let (at, len) = (u64::from(*at), u64::from(*len));
            // One of the differences is below 0 where it does not.
            outside |= at.wrapping_sub(from) | end.wrapping_sub(at + len);
            bytes += len;
        }
        (outside >> 63 == 0).then_some(bytes)
    }

    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn avx2(places: &[Place], from: u64, end: u64) -> Option<u64> {
            portable(places, from, end)
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the machine has AVX2.
            return unsafe { avx2(places, from, end) };
        }
    }
    portable(places, from, end)
}

impl<'r> Results<'r> {
    /// How many packets there are.
    pub fn len(&self) -> usize {
        self.outcomes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.outcomes.is_empty()
    }

    /// What became of each packet; [`Results::bytes`] has their bytes.
    #[inline]
    pub fn outcomes(&self) -> &'r [Outcome] {
        self.outcomes
    }

    /// Calls `each` with the number, the outcome and the length of each packet, in order, until it answers false; gives the
    /// number of packets for which it answered true.
    #[inline]
    pub fn while_each(&self, mut each: impl FnMut(usize, Outcome, u32) -> bool) -> usize {
        // Two loops: most programs leave packets where they are.
        let mut done = 0;
        match self.moved {
            None => {
                for (outcome, [_, len]) in self.outcomes.iter().zip(self.places) {
                    if !each(done, *outcome, *len) {
                        break;
                    }
                    done += 1;
                }
            }
            Some(moved) => {
                for (outcome, moved) in self.outcomes.iter().zip(moved) {
                    if !each(done, *outcome, moved.len as u32) {
                        break;
                    }
                    done += 1;
                }
            }
        }
        done
    }

    /// A packet as it is now.
    #[inline]
    pub fn bytes(&self, packet: usize) -> &'r [u8] {
        match self.moved {
            // SAFETY: it lies in the memory that the batch borrows, or in memory that the host keeps until its next
            // run; both are borrowed for as long as the bytes.
            Some(moved) => moved
                .get(packet)
                .map_or(&[], |at| unsafe { std::slice::from_raw_parts(at.data, at.len as usize) }),
            None => self.places.get(packet).map_or(&[], |[at, len]| {
                self.memory.get(*at as usize..).and_then(|from| from.get(..*len as usize)).unwrap_or(&[])
            }),
        }
    }
}
