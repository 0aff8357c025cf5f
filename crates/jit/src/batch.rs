//! Packets of a burst, which is borrowed while compiled code runs over them: the safe way to run it.

use crate::abi::{DroppedCopies, DroppedCopy, Moved, Outcome};
use crate::{Compiled, Contexts, Host};
use millrace_frames::{Ahead, Burst, MAX_BATCH, Place};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Room for what becomes of the packets of a batch, used again for each batch.
#[derive(Debug)]
pub struct Outcomes {
    words: Box<[Outcome; MAX_BATCH]>,
    moved: Box<[Moved; MAX_BATCH]>,
    dropped_copies: Box<DroppedCopies>,
}

// SAFETY: between two batches its pointers are never read.
unsafe impl Send for Outcomes {}

impl Default for Outcomes {
    fn default() -> Outcomes {
        let nowhere = Moved { data: std::ptr::null_mut(), len: 0 };
        Outcomes {
            words: Box::new([Outcome::default(); MAX_BATCH]),
            moved: Box::new([nowhere; MAX_BATCH]),
            dropped_copies: Box::default(),
        }
    }
}

/// A burst of packets that came in on one port.
#[derive(Debug)]
pub struct Batch<'m> {
    burst: Burst<'m>,
    port: u32,
}

/// When the packets of a batch came, and when they are worked on, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Times<'t> {
    /// The time of arrival of each packet: what the program is told, and what meters and idle timeouts count with.
    pub each: &'t [u64],
    /// The time at which all of them meet their queue and egress, not before any of the others.
    pub now_ns: u64,
}

/// The packets of a batch as compiled code takes them.
pub(crate) struct Packets<'b> {
    pub(crate) memory: NonNull<u8>,
    pub(crate) places: &'b [Place],
    /// As many places as there are packets.
    pub(crate) ahead: Ahead<'b>,
    pub(crate) port: u32,
    /// As many as places.
    pub(crate) times: Times<'b>,
    pub(crate) outcomes: &'b mut Outcomes,
}

impl Packets<'_> {
    /// The end of the outcomes.
    pub(crate) fn outcomes_end(&mut self) -> *mut Outcome {
        let count = self.places.len();
        self.outcomes.words[..count].as_mut_ptr_range().end
    }

    pub(crate) fn moved(&mut self) -> *mut Moved {
        self.outcomes.moved.as_mut_ptr()
    }

    /// Room for the copies that are dropped, of which there are none yet.
    pub(crate) fn dropped_copies(&mut self) -> *mut DroppedCopies {
        self.outcomes.dropped_copies.count = 0;
        &raw mut *self.outcomes.dropped_copies
    }
}

/// What became of a batch.
#[derive(Debug)]
pub struct Results<'r> {
    outcomes: &'r [Outcome],
    memory: NonNull<u8>,
    /// Of a burst that is borrowed for as long as this.
    places: &'r [Place],
    lent: PhantomData<&'r [u8]>,
    /// Where packets are now, when they may have been moved.
    moved: Option<&'r [Moved]>,
    dropped_copies: &'r [DroppedCopy],
}

impl<'m> Batch<'m> {
    /// The packets of a burst, which came in on `port`. None when there are more than [`MAX_BATCH`].
    #[inline]
    pub fn new(burst: Burst<'m>, port: u32) -> Option<Batch<'m>> {
        (burst.places().len() <= MAX_BATCH).then_some(Batch { burst, port })
    }

    /// Runs code over the packets, as many as there are contexts and times. Packets beyond are left out of the results, as are all
    /// when the code does not [fit](Compiled::fits) the tables or takes more [headroom](Compiled::headroom) than the burst has.
    #[inline]
    pub fn run<'r>(
        self,
        compiled: &Compiled,
        host: &'r mut Host<'_>,
        contexts: &mut Contexts,
        outcomes: &'r mut Outcomes,
        times: Times<'_>,
    ) -> Results<'r>
    where
        'm: 'r,
    {
        let Batch { burst, port } = self;
        let (memory, places) = (burst.memory(), burst.places());
        let places = &places[..places.len().min(contexts.len()).min(times.each.len())];
        let ahead = Ahead { places: &burst.ahead().places[..places.len()], ..burst.ahead() };
        let times = Times { each: &times.each[..places.len()], ..times };
        let fits = compiled.headroom() <= burst.headroom();
        let packets = Packets { memory, places, ahead, port, times, outcomes };
        // SAFETY: the burst lends each packet with its headroom and tailroom, to the batch alone, and the code takes no more
        // headroom than that.
        let ran = fits && unsafe { compiled.run(host, contexts, packets) };
        let count = if ran { places.len() } else { 0 };
        let dropped = if ran { outcomes.dropped_copies.count as usize } else { 0 };
        Results {
            outcomes: &outcomes.words[..count],
            memory,
            places: &places[..count],
            lent: PhantomData,
            moved: (!compiled.keeps_place()).then(|| &outcomes.moved[..count]),
            dropped_copies: &outcomes.dropped_copies.each[..dropped],
        }
    }
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

    /// The copies of packets that egress has dropped, in order.
    pub fn dropped_copies(&self) -> &'r [DroppedCopy] {
        self.dropped_copies
    }

    /// Calls `each` with the number, the outcome and the length of each packet, in order, until it answers false; gives the
    /// number of packets for which it answered true.
    #[inline]
    pub fn while_each(&self, mut each: impl FnMut(usize, Outcome, u32) -> bool) -> usize {
        // Two loops: most programs leave packets where they are.
        let mut done = 0;
        match self.moved {
            None => {
                for (outcome, Place { len, .. }) in self.outcomes.iter().zip(self.places) {
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
            // SAFETY: it lies in what the burst lends of the packet, or in memory that the host keeps until its next run;
            // both are borrowed for as long as the bytes.
            Some(moved) => moved
                .get(packet)
                .map_or(&[], |at| unsafe { std::slice::from_raw_parts(at.data, at.len as usize) }),
            // SAFETY: the packet is as long as it was, and the burst lends it for as long as the bytes.
            None => self.places.get(packet).map_or(&[], |place| unsafe {
                std::slice::from_raw_parts(self.memory.add(place.at as usize).as_ptr(), place.len as usize)
            }),
        }
    }
}
