//! Packets in the hands of a device: nothing is left of them but where their frames lie.
//!
//! A device that reads and writes frames by itself (a network card, the kernel) knows places in memory, and gives them back in
//! an order of its own. So a driver lends a packet: its slot has no owner in this program then. Of the place that the device
//! gives back the driver makes the packet again. Neither takes more than a few operations, without a list of what is lent.

#![allow(unsafe_code)]

use crate::burst::Place;
use crate::packet::Packet;
use crate::region::{Region, Slot};

/// Who lends the packets of a region to a device. The region is there for as long as a slot is lent.
#[derive(Debug)]
pub struct Lender {
    region: Region,
}

impl Region {
    /// Lends packets of this region. Any number of lenders may.
    pub fn lender(&self) -> Lender {
        Lender { region: self.again() }
    }
}

impl Lender {
    /// Lends a packet: gives the place of its frame in the region. Whoever does not take it back leaves its slot lent for
    /// ever.
    ///
    /// # Errors
    /// Gives the packet back when it is of another region.
    #[inline]
    pub fn lend(&self, packet: Packet) -> Result<Place, Packet> {
        if !packet.slot.is_of(&self.region) {
            return Err(packet);
        }
        let place = packet.lies();
        packet.slot.forget();
        Ok(place)
    }

    /// How far from the start of its slot a byte of the region lies.
    #[inline]
    pub fn within_slot(&self, at: u32) -> u32 {
        self.region.within_slot(at)
    }

    /// Takes the packet back in whose slot a byte lies. It is empty: [`Packet::take_place`] gives it the frame that the
    /// device has put there. None where the region has no slot.
    ///
    /// # Safety
    /// A lender of the same region has lent the slot, and no lender has taken it back since. The device has given it back:
    /// it does not write there any more, what it wrote happened before, and it will not give it back again.
    #[inline]
    pub unsafe fn take_back(&self, at: u32) -> Option<Packet> {
        // SAFETY: as the caller promises.
        unsafe { Slot::again(&self.region, at) }.map(Packet::within)
    }

    /// Takes so many slots out of use, which a device may still reach although it is closed: nobody has them any more. The
    /// memory stays until all other slots of the region are let go.
    ///
    /// # Safety
    /// Lenders of the region have lent as many slots more than they have taken back, and take none of them back.
    pub unsafe fn retire(&self, slots: usize) {
        // SAFETY: as the caller promises.
        unsafe { self.region.let_go(slots) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Memory, PacketPool, SlotLayout};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    const LAYOUT: SlotLayout = SlotLayout { size: 2048, headroom: 256 };

    /// A driver's memory that tells when it is freed.
    struct Owner {
        _memory: Memory,
        freed: Arc<AtomicBool>,
    }

    impl Drop for Owner {
        fn drop(&mut self) {
            self.freed.store(true, Ordering::SeqCst);
        }
    }

    fn region(slots: usize) -> (Region, Arc<AtomicBool>, std::ptr::NonNull<u8>) {
        let (memory, freed) = (Memory::zeroed(slots * LAYOUT.size).unwrap(), Arc::<AtomicBool>::default());
        let start = memory.start();
        let owner = Box::new(Owner { _memory: memory, freed: Arc::clone(&freed) });
        // SAFETY: the owner has so many slots of memory that nobody else uses.
        (unsafe { Region::over(start, slots, LAYOUT, owner) }.unwrap(), freed, start)
    }

    #[test]
    fn a_device_fills_a_packet_that_is_lent() {
        let (region, freed, memory) = region(3);
        let lender = region.lender();
        let mut pool = PacketPool::over(region);
        let places: Vec<Place> =
            std::iter::from_fn(|| pool.take()).map(|packet| lender.lend(packet).unwrap()).collect();
        let at = |number: u32| number * 2048 + 256;
        assert_eq!(places, [0, 1, 2].map(|number| Place { at: at(number), len: 0 }));
        assert_eq!(pool.available(), 0);
        // The device writes a frame into each, and gives them back in an order of its own.
        for number in [2u32, 0, 1] {
            // SAFETY: the slot is lent, and the frame lies within it.
            unsafe { memory.add(at(number) as usize + 4).write_bytes(number as u8 + 1, 60) };
            // SAFETY: it was lent once, and is taken back once.
            let mut packet = unsafe { lender.take_back(at(number) + 4) }.unwrap();
            assert!(packet.is_empty());
            assert!(packet.take_place(Place { at: at(number) + 4, len: 60 }));
            assert_eq!(packet.data(), [number as u8 + 1; 60]);
            pool.put(packet);
        }
        assert_eq!(pool.available(), 3);
        // SAFETY: there is no such slot.
        assert!(unsafe { lender.take_back(3 * 2048) }.is_none());
        let other = lender.lend(Packet::new()).unwrap_err();
        drop((other, pool));
        assert!(!freed.load(Ordering::SeqCst));
        drop(lender);
        assert!(freed.load(Ordering::SeqCst));
    }

    #[test]
    fn a_region_stays_while_a_slot_is_lent_and_no_longer() {
        for takes_back in [true, false] {
            let (region, freed, _) = region(2);
            let lender = region.lender();
            let mut pool = PacketPool::over(region);
            let mut packet = pool.take().unwrap();
            packet.set_frame(&[7; 100]).unwrap();
            let place = lender.lend(packet).unwrap();
            drop(pool);
            if takes_back {
                // SAFETY: it was lent once, and is taken back once.
                let mut packet = unsafe { lender.take_back(place.at) }.unwrap();
                assert!(packet.take_place(place) && packet.data() == [7; 100]);
                drop(lender);
                assert!(!freed.load(Ordering::SeqCst));
                drop(packet);
            } else {
                // SAFETY: it was lent once.
                unsafe { lender.retire(1) };
                assert!(!freed.load(Ordering::SeqCst));
                drop(lender);
            }
            assert!(freed.load(Ordering::SeqCst));
        }
    }
}
