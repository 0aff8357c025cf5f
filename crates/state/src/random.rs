//! The random numbers of a program: seeded, so that a run can be repeated.

use millrace_pipeline::Bits;

/// A generator of pseudo-random numbers (xoshiro256**, Blackman and Vigna, seeded by splitmix64). Equal seeds give
/// equal numbers on every machine and in every engine.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// From a seed; any is fine.
    pub fn new(seed: u64) -> Random {
        let mut mixer = seed;
        let state = [(); 4].map(|()| {
            mixer = mixer.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = mixer;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        });
        Random { state }
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A uniformly distributed number from `low` to `high`, both included, of the width of `low`; `low` when `high` is
    /// less.
    pub fn between(&mut self, low: &Bits, high: &Bits) -> Bits {
        if high.cmp_unsigned(low).is_lt() {
            return low.clone();
        }
        let span = high.sub(low);
        let significant = (0..span.width()).rev().find(|index| span.bit(*index)).map_or(0, |index| index + 1);
        if significant == 0 {
            return low.clone();
        }
        // Rejection keeps it uniform; each try succeeds with more than one half.
        for _ in 0..MAX_TRIES {
            let offset = self.bits(significant).zero_extend(span.width());
            if offset.cmp_unsigned(&span).is_le() {
                return low.add(&offset);
            }
        }
        low.clone()
    }

    fn bits(&mut self, width: u32) -> Bits {
        let bytes: Vec<u8> = (0..width.div_ceil(64)).flat_map(|_| self.next_u64().to_be_bytes()).collect();
        Bits::from_bytes(width, &bytes)
    }
}

/// A bound for the loop that no run will meet: its chance is below 2 to the power of -128.
const MAX_TRIES: u32 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(value: u128) -> Bits {
        Bits::new(8, value)
    }

    /// The first outputs of the published splitmix64 from seed 0, which seed the generator.
    #[test]
    fn seeded_as_published() {
        let random = Random::new(0);
        assert_eq!(
            random.state,
            [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f, 0xf88b_b8a8_724c_81ec]
        );
    }

    #[test]
    fn stays_between_its_ends_and_reaches_both() {
        let mut random = Random::new(1);
        let drawn: Vec<Bits> = (0..200).map(|_| random.between(&bits(250), &bits(255))).collect();
        for value in 250..=255 {
            assert!(drawn.contains(&bits(value)), "{value}");
        }
        assert!(drawn.iter().all(|value| value.cmp_unsigned(&bits(250)).is_ge()));
    }

    #[test]
    fn an_empty_range_gives_its_low_end() {
        let mut random = Random::new(1);
        assert_eq!(random.between(&bits(9), &bits(8)), bits(9));
        assert_eq!(random.between(&bits(9), &bits(9)), bits(9));
    }

    #[test]
    fn equal_seeds_give_equal_numbers() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [(); 4].map(|()| random.next_u64())
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn wide_numbers_are_drawn_over_their_whole_width() {
        let mut random = Random::new(3);
        let drawn: Vec<Bits> = (0..32).map(|_| random.between(&Bits::zero(200), &Bits::ones(200))).collect();
        assert!(drawn.iter().any(|value| value.bit(199)) && drawn.iter().any(|value| value.bit(0)));
    }
}
