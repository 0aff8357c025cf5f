//! Election ids: numbers of 128 bits, which the messages have in two halves.

use crate::v1::Uint128;

/// The number of an election id.
pub fn number(id: &Uint128) -> u128 {
    u128::from(id.high) << 64 | u128::from(id.low)
}

/// The election id of a number.
pub fn message(id: u128) -> Uint128 {
    Uint128 { high: (id >> 64) as u64, low: id as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_halves_of_an_election_id_are_those_of_its_number() {
        assert_eq!(message(7 << 64 | 9), Uint128 { high: 7, low: 9 });
        assert_eq!(number(&Uint128 { high: u64::MAX, low: 1 }), u128::MAX - u128::from(u64::MAX) + 1);
    }
}
