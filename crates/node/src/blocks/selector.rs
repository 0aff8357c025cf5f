//! Selects octets of frames.

use super::register::Refusal;
use crate::interface::Item;
use crate::limits::{MAX_OCTETS, MAX_OFFSET};

/// Selects the octets at some places of a frame, in the order of the list; those that the frame does not have are 0.
#[derive(Clone, Debug)]
pub struct Selector {
    places: Vec<u16>,
}

impl Selector {
    /// A selector of these places, at most [`MAX_OCTETS`].
    pub fn new(places: &[u16]) -> Selector {
        Selector { places: places.iter().copied().take(MAX_OCTETS).collect() }
    }

    /// The places.
    pub fn places(&self) -> &[u16] {
        &self.places
    }

    /// Chooses another place for one of the octets; false: there is no such octet.
    pub fn choose(&mut self, octet: usize, place: u16) -> bool {
        self.places.get_mut(octet).map(|known| *known = place).is_some()
    }

    pub(crate) fn read(&self, word: u32) -> u32 {
        self.places.get(word as usize).map_or(0, |place| u32::from(*place))
    }

    pub(crate) fn write(&mut self, at: u32, word: u32) -> Result<(), Refusal> {
        let place = u16::try_from(word).ok().filter(|place| u64::from(*place) <= MAX_OFFSET);
        match place.is_some_and(|place| self.choose(at as usize, place)) {
            true => Ok(()),
            false => Err(Refusal(format!("{word} is no place of an octet: 0 to {MAX_OFFSET} (MAX_OFFSET)"))),
        }
    }

    /// A frame with its octets.
    pub fn pass(&self, mut item: Item) -> Item {
        item.facts.octets = [0; MAX_OCTETS];
        for (octet, place) in item.facts.octets.iter_mut().zip(&self.places) {
            *octet = item.bytes.get(usize::from(*place)).copied().unwrap_or(0);
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_in_the_order_of_the_list() {
        let mut selector = Selector::new(&[2, 0, 9]);
        let item = Item { bytes: vec![7, 8, 9], ..Item::default() };
        assert_eq!(selector.pass(item.clone()).facts.octets[..4], [9, 7, 0, 0]);
        assert!(selector.choose(2, 1) && !selector.choose(3, 1));
        assert_eq!(selector.pass(item).facts.octets[..4], [9, 7, 8, 0]);
    }
}
