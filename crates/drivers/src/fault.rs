//! Faults on purpose: a port whose received frames are lost, changed, cut and doubled by chance, for tests.

use crate::around::Around;
use crate::port::{PortError, PortStatistics, QueuePair, Received, TimeSource};
use millrace_frames::{Batch, MAX_BATCH, Packet, PacketPool};
use std::collections::VecDeque;

/// How often each fault happens to a received frame, in percent; 100 and above is always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// The frame is lost.
    pub drop: u8,
    /// One bit of it is inverted.
    pub corrupt: u8,
    /// Its end is cut off, at any place.
    pub truncate: u8,
    /// It comes a second time.
    pub duplicate: u8,
}

/// A port with faults. The same seed makes the same faults happen to the same frames. A frame that is lost is counted as missed; those
/// received are counted as they are after the faults, the doubles too.
pub struct FaultInjector<P> {
    port: P,
    faults: Faults,
    random: u64,
    scratch: Batch,
    /// Frames that the last batch had no room for: doubles, and what came after them.
    waiting: VecDeque<Packet>,
    /// Frames that were lost, and those that were handed over.
    lost: u64,
    handed: PortStatistics,
}

impl<P: QueuePair> FaultInjector<P> {
    /// Adds faults to a port.
    pub fn new(port: P, faults: Faults, seed: u64) -> FaultInjector<P> {
        let waiting = VecDeque::with_capacity(2 * MAX_BATCH);
        let handed = PortStatistics::default();
        FaultInjector { port, faults, random: seed, scratch: Batch::new(), waiting, lost: 0, handed }
    }

    /// The port without the faults.
    pub fn into_inner(self) -> P {
        self.port
    }

    /// The generator splitmix64 of Steele, Lea and Flood (2014): good enough for chance, and one line of state.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.random() % limit.max(1) as u64) as usize
    }

    fn happens(&mut self, percent: u8) -> bool {
        self.below(100) < percent.into()
    }

    /// Applies the faults to one frame.
    fn pass(&mut self, mut packet: Packet, pool: &mut PacketPool) {
        if self.happens(self.faults.drop) {
            self.lost += 1;
            pool.put(packet);
            return;
        }
        if self.happens(self.faults.corrupt) && !packet.is_empty() {
            let bit = self.below(packet.len() * 8);
            packet.data_mut()[bit / 8] ^= 1 << (bit % 8);
        }
        if self.happens(self.faults.truncate) {
            let length = self.below(packet.len());
            packet.truncate(length);
        }
        let double = if self.happens(self.faults.duplicate) { pool.take() } else { None };
        let double = double.and_then(|mut double| double.copy_from(&packet).is_ok().then_some(double));
        self.waiting.push_back(packet);
        self.waiting.extend(double);
    }

    fn hand_over(&mut self, batch: &mut Batch) {
        while !batch.is_full()
            && let Some(packet) = self.waiting.pop_front()
        {
            match batch.push(packet) {
                Ok(packet) => self.handed.received(packet.data()),
                Err(packet) => {
                    self.waiting.push_front(packet);
                    return;
                }
            }
        }
    }
}

impl<P: QueuePair> Around for FaultInjector<P> {
    type Inner = P;

    fn inner(&self) -> &P {
        &self.port
    }

    fn inner_mut(&mut self) -> &mut P {
        &mut self.port
    }

    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        self.hand_over(batch);
        if batch.is_full() {
            return Ok(Received::More);
        }
        let mut scratch = std::mem::replace(&mut self.scratch, Batch::with_limit(0));
        scratch.want_times(batch.wants_times());
        let received = self.port.receive(&mut scratch, pool);
        for packet in scratch.drain() {
            self.pass(packet, pool);
        }
        self.scratch = scratch;
        self.hand_over(batch);
        match received {
            Ok(_) if !self.waiting.is_empty() => Ok(Received::More),
            other => other,
        }
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        match self.waiting.front() {
            Some(packet) if self.port.time_source() == TimeSource::Simulated => Some(packet.timestamp_ns),
            _ => self.port.next_arrival_ns(),
        }
    }

    fn statistics(&self) -> PortStatistics {
        let PortStatistics { rx_packets, rx_bytes, rx_kinds, .. } = self.handed;
        let inner = self.port.statistics();
        PortStatistics { rx_packets, rx_bytes, rx_kinds, rx_missed: inner.rx_missed + self.lost, ..inner }
    }
}

#[cfg(test)]
mod tests {
    use super::{FaultInjector, Faults};
    use crate::port::{PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted};
    use millrace_frames::{Batch, PacketPool};
    use std::os::fd::RawFd;

    /// Gives so many frames of 100 bytes, numbered by their first two, and takes all.
    struct Numbers {
        left: u16,
    }

    impl QueuePair for Numbers {
        fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
            while self.left > 0 {
                if batch.is_full() {
                    return Ok(Received::More);
                }
                let Some(mut packet) = pool.take() else { return Ok(Received::More) };
                packet.append(&[0; 100]).unwrap();
                packet.data_mut()[..2].copy_from_slice(&self.left.to_be_bytes());
                self.left -= 1;
                batch.push(packet).unwrap();
            }
            Ok(Received::End)
        }

        fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
            let sent = batch.len();
            batch.recycle(pool);
            Ok(Transmitted { sent, refused: 0 })
        }

        fn flush(&mut self) -> Result<(), PortError> {
            Ok(())
        }

        fn poll_fd(&self) -> Option<RawFd> {
            None
        }

        fn time_source(&self) -> TimeSource {
            TimeSource::Simulated
        }

        fn next_arrival_ns(&mut self) -> Option<u64> {
            None
        }

        fn statistics(&self) -> PortStatistics {
            PortStatistics::default()
        }
    }

    fn receive_all(faults: Faults, seed: u64, batch_limit: usize) -> Vec<Vec<u8>> {
        let mut port = FaultInjector::new(Numbers { left: 1000 }, faults, seed);
        let mut pool = PacketPool::new(300);
        let mut batch = Batch::with_limit(batch_limit);
        let mut frames = Vec::new();
        loop {
            let received = port.receive(&mut batch, &mut pool).unwrap();
            frames.extend(batch.packets().iter().map(|packet| packet.data().to_vec()));
            batch.recycle(&mut pool);
            if received == Received::End {
                assert_eq!(pool.available(), 300, "no packet is lost to the pool");
                let counted = port.statistics();
                assert_eq!(counted.rx_packets, frames.len() as u64);
                assert_eq!(counted.rx_bytes, frames.iter().map(|frame| frame.len() as u64).sum());
                let doubled = counted.rx_packets + counted.rx_missed - 1000;
                assert!(doubled == 0 || faults.duplicate > 0, "{counted:?}");
                return frames;
            }
        }
    }

    #[test]
    fn without_faults_all_frames_pass_in_order() {
        for limit in [1, 7, 64] {
            let frames = receive_all(Faults::default(), 1, limit);
            let numbers: Vec<u16> =
                frames.iter().map(|frame| u16::from_be_bytes([frame[0], frame[1]])).collect();
            assert!(numbers.into_iter().eq((1..=1000).rev()));
        }
    }

    #[test]
    fn each_fault_happens_about_as_often_as_asked() {
        let about = |count: usize, expected: usize| count.abs_diff(expected) < 60;
        let dropped = receive_all(Faults { drop: 30, ..Faults::default() }, 2, 64);
        assert!(about(dropped.len(), 700), "{}", dropped.len());
        let doubled = receive_all(Faults { duplicate: 30, ..Faults::default() }, 3, 5);
        assert!(about(doubled.len(), 1300), "{}", doubled.len());
        assert_eq!(doubled.windows(2).filter(|pair| pair[0] == pair[1]).count(), doubled.len() - 1000);
        let cut = receive_all(Faults { truncate: 30, ..Faults::default() }, 4, 64);
        let shorter = cut.iter().filter(|frame| frame.len() < 100).count();
        assert!(cut.len() == 1000 && about(shorter, 300), "{shorter}");
        let changed = receive_all(Faults { corrupt: 100, ..Faults::default() }, 5, 64);
        for (frame, number) in changed.iter().zip((1..=1000u16).rev()) {
            let mut original = [0; 100];
            original[..2].copy_from_slice(&number.to_be_bytes());
            let bits: u32 = frame.iter().zip(original).map(|(byte, was)| (byte ^ was).count_ones()).sum();
            assert_eq!(bits, 1);
        }
        assert_eq!(receive_all(Faults { drop: 100, ..Faults::default() }, 6, 64).len(), 0);
    }

    #[test]
    fn a_seed_repeats_itself_whatever_the_batches() {
        let faults = Faults { drop: 10, corrupt: 10, truncate: 10, duplicate: 10 };
        assert_eq!(receive_all(faults, 7, 64), receive_all(faults, 7, 3));
        assert_ne!(receive_all(faults, 7, 64), receive_all(faults, 8, 64));
    }
}
