//! Random numbers: xoshiro256** of Blackman and Vigna, started by their splitmix64. The same seed gives the same numbers anywhere.

/// A generator.
#[derive(Clone, Debug)]
pub(crate) struct Random([u64; 4]);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        let mut at = seed;
        Random(std::array::from_fn(|_| {
            at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (at ^ at >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ mixed >> 31
        }))
    }

    pub(crate) fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.0;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let (c, d) = (c ^ a, d ^ b);
        self.0 = [a ^ d, b ^ c, c ^ b << 17, d.rotate_left(45)];
        result
    }

    /// A number below another one that is not 0. Its bias is below 2^-20 for the numbers here, which matters to nobody.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// Whether something of one in so many happens.
    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_published_generator() {
        // The state 1, 2, 3, 4 gives these; known from the reference in C.
        let mut random = Random([1, 2, 3, 4]);
        assert_eq!([random.next(), random.next(), random.next()], [11_520, 0, 1_509_978_240]);
        let mut random = Random::new(7);
        assert!((0..1000).all(|_| random.below(10) < 10));
    }
}
