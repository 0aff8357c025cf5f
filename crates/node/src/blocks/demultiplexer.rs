//! Hands frames to outputs.

use super::Out;
use crate::interface::{Item, MANAGER};

/// Sends a frame to each of its targets, the lowest first and the manager last; gives whether it has one.
pub(crate) fn demultiplex(outputs: u32, item: Item, out: &mut Out) -> bool {
    let before = out.len();
    for number in (0..outputs).filter(|number| item.facts.targets >> number & 1 == 1) {
        out.push((number as usize, item.clone()));
    }
    if item.facts.targets & MANAGER != 0 {
        out.push((outputs as usize, item));
    }
    out.len() > before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_goes_to_all_of_its_targets() {
        let mut item = Item { bytes: vec![1], ..Item::default() };
        item.facts.targets = MANAGER | 0b1_0101;
        let mut out = Out::new();
        assert!(demultiplex(4, item.clone(), &mut out));
        assert_eq!(out.iter().map(|(output, _)| *output).collect::<Vec<_>>(), [0, 2, 4]);
        assert!(out.iter().all(|(_, sent)| *sent == item));
        // An output that is not there is no target.
        item.facts.targets = 0b1_0000;
        assert!(!demultiplex(4, item, &mut out));
    }
}
