//! Items in order in an array with gaps, such that few of them move when others come between.

use rustc_hash::FxHashMap;
use std::hash::Hash;

/// Makes the items of an array, in order, those that are wanted, and says whether there is room. Those that stay keep their places
/// where new ones fit between them; else as few neighbours as possible are spread again, in the smallest part around that is not too
/// dense. The larger a part, the less dense it may be, down to the density of the whole array: so there are gaps everywhere.
pub(super) fn arrange<T: Clone + Eq + Hash>(slots: &mut [Option<T>], wanted: &[T]) -> bool {
    if wanted.len() > slots.len() {
        return false;
    }
    let rank: FxHashMap<&T, usize> = wanted.iter().zip(0..).collect();
    // Where the item of a rank is. What is not wanted, or not in order any more, leaves.
    let mut places: Vec<Option<usize>> = vec![None; wanted.len()];
    let mut last = None;
    for (at, slot) in slots.iter_mut().enumerate() {
        let stays = slot.as_ref().and_then(|item| rank.get(item)).copied();
        match stays.filter(|rank| last.is_none_or(|last| *rank > last)) {
            Some(rank) => (last, places[rank]) = (Some(rank), Some(at)),
            None => *slot = None,
        }
    }
    let mut next = 0;
    while next < wanted.len() {
        if places[next].is_some() {
            next += 1;
            continue;
        }
        let from = next;
        while next < wanted.len() && places[next].is_none() {
            next += 1;
        }
        insert(slots, wanted, &mut places, from, next);
    }
    true
}

/// Places the items of ranks `from..to`, whose neighbours in rank are placed, if there are any.
fn insert<T: Clone>(
    slots: &mut [Option<T>],
    wanted: &[T],
    places: &mut [Option<usize>],
    from: usize,
    to: usize,
) {
    let all = slots.len();
    let density = wanted.len() as f64 / all as f64;
    // Ranks and slots of the part that is spread.
    let (mut first, mut end) = (from, to);
    let mut start = from.checked_sub(1).and_then(|before| places[before]).map_or(0, |slot| slot + 1);
    let mut stop = places.get(to).copied().flatten().unwrap_or(all);
    let mut size = stop - start;
    while !fits(end - first, size, all, density) {
        // A larger part: its slots, and the ranks in them.
        size = (2 * size).max(8).min(all);
        start = (start + stop).saturating_sub(size) / 2;
        stop = (start + size).min(all);
        start = stop - size;
        while first > 0 && places[first - 1].is_some_and(|slot| slot >= start) {
            first -= 1;
        }
        // Items to be placed may come between those that are there.
        let after = places[end..].iter().zip(end..).filter_map(|(slot, rank)| Some(((*slot)?, rank)));
        let last = after.take_while(|(slot, _)| *slot < stop).last();
        end = last.map_or(end, |(_, rank)| rank + 1);
    }
    slots[start..stop].iter_mut().for_each(|slot| *slot = None);
    let (count, size) = (end - first, stop - start);
    for (number, rank) in (first..end).enumerate() {
        let at = start + (2 * number + 1) * size / (2 * count);
        slots[at] = Some(wanted[rank].clone());
        places[rank] = Some(at);
    }
}

/// Whether so many items may be in a part of that size.
fn fits(items: usize, size: usize, all: usize, density: f64) -> bool {
    if size == all || items == 0 {
        return items <= size;
    }
    let height = (size.max(1) as f64).log2() / (all.max(2) as f64).log2();
    items as f64 <= size as f64 * (1.0 - height * (1.0 - density)) && items <= size
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_pipeline::arbitrary::Rng;

    fn items(slots: &[Option<u32>]) -> Vec<u32> {
        slots.iter().flatten().copied().collect()
    }

    /// Items come and go at random until the array is full; few of those that stay move.
    #[test]
    fn items_stay_in_order_and_few_move() {
        let mut rng = Rng::new(7);
        let mut slots: Vec<Option<u32>> = vec![None; 512];
        let (mut wanted, mut moved): (Vec<u32>, usize) = (Vec::new(), 0);
        for number in 0..512 {
            let at = rng.below(wanted.len() + 1);
            wanted.insert(at, number);
            let before = slots.clone();
            assert!(arrange(&mut slots, &wanted));
            assert_eq!(items(&slots), wanted);
            let change = |(old, new): &(&Option<u32>, &Option<u32>)| old.is_some() && old != new;
            moved += before.iter().zip(&slots).filter(change).count();
        }
        assert!(moved < 512 * 40, "{moved} moves");
        assert!(slots.iter().all(Option::is_some));
        wanted.push(512);
        assert!(!arrange(&mut slots, &wanted));
    }

    /// Several runs of items come between others at once.
    #[test]
    fn many_come_at_once() {
        let mut rng = Rng::new(3);
        for _ in 0..200 {
            let mut slots: Vec<Option<u32>> = vec![None; 1 + rng.below(70)];
            for _ in 0..6 {
                let density = 1 + rng.below(6);
                let wanted: Vec<u32> = (0..300).filter(|_| rng.below(6) < density).collect();
                let wanted = &wanted[..wanted.len().min(slots.len())];
                assert!(arrange(&mut slots, wanted));
                assert_eq!(items(&slots), wanted);
            }
        }
    }

    #[test]
    fn items_at_the_end_and_in_another_order() {
        let mut slots: Vec<Option<u32>> = vec![None; 64];
        let mut wanted = Vec::new();
        for number in 0..64 {
            wanted.push(number);
            assert!(arrange(&mut slots, &wanted));
            assert_eq!(items(&slots), wanted);
        }
        wanted.reverse();
        assert!(arrange(&mut slots, &wanted));
        assert_eq!(items(&slots), wanted);
        assert!(arrange(&mut slots, &[]));
        assert!(slots.iter().all(Option::is_none));
    }
}
