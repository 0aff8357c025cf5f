//! The slots whose values are known at a point: a list in the order of their numbers, which is copied and compared far more
//! often than it grows.

use millrace_pipeline::SlotId;

/// Values by slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Constants(Vec<(SlotId, u64)>);

impl Constants {
    /// The value of a slot, if it is known.
    pub fn get(&self, slot: &SlotId) -> Option<&u64> {
        self.place(*slot).ok().map(|at| &self.0[at].1)
    }

    /// The bytes that it takes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.0.as_slice())
    }

    /// Whether the value of a slot is known.
    pub fn contains_key(&self, slot: &SlotId) -> bool {
        self.place(*slot).is_ok()
    }

    /// A slot has that value.
    pub fn insert(&mut self, slot: SlotId, value: u64) {
        match self.place(slot) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (slot, value)),
        }
    }

    /// The value of a slot is not known any more.
    pub fn remove(&mut self, slot: &SlotId) {
        if let Ok(at) = self.place(*slot) {
            self.0.remove(at);
        }
    }

    /// Forgets the values of other slots.
    pub fn retain(&mut self, mut keep: impl FnMut(SlotId) -> bool) {
        self.0.retain(|(slot, _)| keep(*slot));
    }

    /// Keeps what others know too; says whether something went.
    pub fn keep_common(&mut self, others: &Constants) -> bool {
        let before = self.0.len();
        let mut others = others.0.iter().peekable();
        self.0.retain(|mine| {
            while others.next_if(|other| other.0 < mine.0).is_some() {}
            others.peek() == Some(&mine)
        });
        self.0.len() < before
    }

    /// Whether this is what is left of another when only some slots are kept.
    pub fn is_left_of(&self, other: &Constants, keep: impl Fn(SlotId) -> bool) -> bool {
        self.0.iter().eq(other.0.iter().filter(|(slot, _)| keep(*slot)))
    }

    fn place(&self, slot: SlotId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&slot, |(slot, _)| *slot)
    }
}

impl FromIterator<(SlotId, u64)> for Constants {
    fn from_iter<T: IntoIterator<Item = (SlotId, u64)>>(values: T) -> Constants {
        let mut known = Constants(values.into_iter().collect());
        known.0.sort_unstable_by_key(|(slot, _)| *slot);
        known
    }
}

impl<'a> IntoIterator for &'a Constants {
    type Item = (&'a SlotId, &'a u64);
    type IntoIter = std::iter::Map<std::slice::Iter<'a, (SlotId, u64)>, fn(&'a (SlotId, u64)) -> Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        let parts: fn(&'a (SlotId, u64)) -> Self::Item = |(slot, value)| (slot, value);
        self.0.iter().map(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(values: &[(u32, u64)]) -> Constants {
        values.iter().map(|(slot, value)| (SlotId::from_u32(*slot), *value)).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let slot = SlotId::from_u32;
        let mut some = known(&[(5, 50), (1, 10)]);
        some.insert(slot(3), 30);
        some.insert(slot(5), 51);
        some.remove(&slot(1));
        some.remove(&slot(2));
        assert_eq!(some, known(&[(3, 30), (5, 51)]));
        assert_eq!((some.get(&slot(5)), some.get(&slot(1))), (Some(&51), None));
        assert!(some.contains_key(&slot(3)) && !some.contains_key(&slot(4)));
        let listed: Vec<(u32, u64)> = some.into_iter().map(|(slot, value)| (slot.as_u32(), *value)).collect();
        assert_eq!(listed, [(3, 30), (5, 51)]);
    }

    #[test]
    fn what_is_common_is_kept() {
        let mut some = known(&[(1, 10), (2, 20), (4, 40), (9, 90)]);
        assert!(!some.keep_common(&some.clone()));
        assert!(some.keep_common(&known(&[(0, 0), (1, 10), (2, 21), (3, 30), (9, 90), (10, 0)])));
        assert_eq!(some, known(&[(1, 10), (9, 90)]));
        assert!(some.keep_common(&known(&[])));
        assert_eq!(some, known(&[]));
    }

    #[test]
    fn a_part_is_recognised() {
        let all = known(&[(1, 10), (2, 20), (3, 30)]);
        let odd = |slot: SlotId| slot.as_u32() % 2 == 1;
        assert!(known(&[(1, 10), (3, 30)]).is_left_of(&all, odd));
        assert!(!known(&[(1, 10)]).is_left_of(&all, odd));
        assert!(!known(&[(1, 10), (3, 31)]).is_left_of(&all, odd));
        assert!(!known(&[(1, 10), (3, 30), (5, 50)]).is_left_of(&all, odd));
    }
}
