//! Parser value sets: membership of a key in a set that the control plane writes.

use crate::entry::EntryIndex;
use crate::error::{SpecError, TableError};
use crate::key::{FieldMatch, KeySchema};
use crate::limits::MAX_ENTRIES;
use crate::store::Store;

/// A set of matches over one key. Members have no order and no action.
#[derive(Clone, Debug)]
pub struct ValueSet {
    schema: KeySchema,
    size: u32,
    members: Store,
    free: Vec<EntryIndex>,
}

impl ValueSet {
    /// An empty set of at most `size` members.
    ///
    /// # Errors
    /// [`SpecError::TooLarge`] above [`MAX_ENTRIES`].
    pub fn new(schema: KeySchema, size: u32) -> Result<ValueSet, SpecError> {
        if size > MAX_ENTRIES {
            return Err(SpecError::TooLarge {
                what: "the size of the value set",
                asked: size.into(),
                limit: MAX_ENTRIES.into(),
            });
        }
        Ok(ValueSet { members: Store::of_set(&schema), schema, size, free: Vec::new() })
    }

    /// The key.
    pub fn schema(&self) -> &KeySchema {
        &self.schema
    }

    /// Most members.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Bytes of memory that the members take.
    pub fn memory_bytes(&self) -> usize {
        self.members.memory_bytes() + self.free.capacity() * size_of::<EntryIndex>()
    }

    /// Whether some member accepts a packed key. A key of the wrong length is in no set.
    pub fn contains(&self, key: &[u8]) -> bool {
        key.len() == self.schema.stride() && self.members.lookup(key).is_hit()
    }

    /// Adds a member.
    ///
    /// # Errors
    /// [`TableError::Duplicate`], [`TableError::Full`], or what is wrong with the matches.
    pub fn insert(&mut self, matches: &[FieldMatch]) -> Result<(), TableError> {
        let matches = self.schema.canonical(matches)?;
        let identity = self.members.identity(&matches, 0);
        if self.members.find(&identity).is_some() {
            return Err(TableError::Duplicate);
        }
        if self.members.len() >= self.size {
            return Err(TableError::Full { limit: self.size });
        }
        let index = self.free.pop().unwrap_or(EntryIndex(self.members.end()));
        let serial = self.members.next_serial();
        self.members.insert(index, &identity, 0, false, serial);
        Ok(())
    }

    /// Replaces all members at once, as P4Runtime writes a value set.
    ///
    /// # Errors
    /// As [`ValueSet::insert`]; the set is then as it was.
    pub fn replace(&mut self, members: &[Vec<FieldMatch>]) -> Result<(), TableError> {
        let mut fresh = ValueSet {
            schema: self.schema.clone(),
            size: self.size,
            members: Store::of_set(&self.schema),
            free: Vec::new(),
        };
        members.iter().try_for_each(|matches| fresh.insert(matches))?;
        *self = fresh;
        Ok(())
    }

    /// Removes a member.
    ///
    /// # Errors
    /// [`TableError::NotFound`], or what is wrong with the matches.
    pub fn remove(&mut self, matches: &[FieldMatch]) -> Result<(), TableError> {
        let matches = self.schema.canonical(matches)?;
        let index = self.members.find(&self.members.identity(&matches, 0)).ok_or(TableError::NotFound)?;
        self.members.remove(index);
        self.free.push(index);
        Ok(())
    }

    /// Removes all members.
    pub fn clear(&mut self) {
        self.members = Store::of_set(&self.schema);
        self.free.clear();
    }

    /// The members in canonical form, in the order in which they were added.
    pub fn members(&self) -> impl Iterator<Item = Vec<FieldMatch>> {
        self.members.in_order().map(|index| self.members.matches(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{KeyField, MatchKind};

    fn set(fields: &[(u32, MatchKind)], size: u32) -> ValueSet {
        let fields = fields.iter().map(|&(width, kind)| KeyField { width, kind }).collect();
        ValueSet::new(KeySchema::new(fields).unwrap(), size).unwrap()
    }

    fn exact(bytes: &[u8]) -> FieldMatch {
        FieldMatch::Exact(bytes.to_vec())
    }

    #[test]
    fn values_are_members_until_removed() {
        let mut set = set(&[(16, MatchKind::Exact)], 2);
        assert!(!set.contains(&[8, 0]));
        set.insert(&[exact(&[8, 0])]).unwrap();
        set.insert(&[exact(&[8, 6])]).unwrap();
        assert!(set.contains(&[8, 0]) && set.contains(&[8, 6]) && !set.contains(&[8, 7]));
        assert!(!set.contains(&[8]) && !set.contains(&[8, 0, 8, 0]));
        assert_eq!(set.insert(&[exact(&[8, 6])]), Err(TableError::Duplicate));
        assert_eq!(set.insert(&[exact(&[8, 7])]), Err(TableError::Full { limit: 2 }));
        set.remove(&[exact(&[8, 0])]).unwrap();
        assert!(!set.contains(&[8, 0]) && set.contains(&[8, 6]));
        assert_eq!(set.remove(&[exact(&[8, 0])]), Err(TableError::NotFound));
        set.clear();
        assert!(!set.contains(&[8, 6]));
    }

    #[test]
    fn masks_ranges_and_prefixes_are_members_too() {
        let mut set = set(&[(8, MatchKind::Ternary), (8, MatchKind::Range), (8, MatchKind::Lpm)], 5);
        let member = |value, mask, low, high, prefix, prefix_len| {
            [
                FieldMatch::Ternary { value: vec![value], mask: vec![mask] },
                FieldMatch::Range { low: vec![low], high: vec![high] },
                FieldMatch::Lpm { value: vec![prefix], prefix_len },
            ]
        };
        set.insert(&member(0x12, 0xf0, 5, 9, 0x80, 1)).unwrap();
        set.insert(&member(0, 0, 5, 5, 0, 8)).unwrap();
        assert_eq!(set.insert(&member(0x1f, 0xf0, 5, 9, 0xff, 1)), Err(TableError::Duplicate));
        assert!(set.contains(&[0x1e, 7, 0xaa]) && set.contains(&[0x77, 5, 0]));
        assert!(
            !set.contains(&[0x2e, 7, 0xaa])
                && !set.contains(&[0x1e, 10, 0xaa])
                && !set.contains(&[0x1e, 7, 0x2a])
        );
        set.remove(&member(0x10, 0xf0, 5, 9, 0x80, 1)).unwrap();
        assert!(!set.contains(&[0x1e, 7, 0xaa]) && set.contains(&[0x77, 5, 0]));
        assert_eq!(set.members().count(), 1);
    }

    #[test]
    fn a_refused_replacement_changes_nothing() {
        let mut set = set(&[(8, MatchKind::Exact)], 2);
        set.replace(&[vec![exact(&[1])], vec![exact(&[2])]]).unwrap();
        assert_eq!(set.replace(&[vec![exact(&[3])], vec![exact(&[3])]]), Err(TableError::Duplicate));
        let three = [1, 2, 3].map(|value| vec![exact(&[value])]);
        assert_eq!(set.replace(&three), Err(TableError::Full { limit: 2 }));
        assert!(set.contains(&[1]) && set.contains(&[2]) && !set.contains(&[3]));
        set.replace(&[]).unwrap();
        assert_eq!(set.members().count(), 0);
    }

    #[test]
    fn sizes_are_limited() {
        let schema = KeySchema::new(vec![]).unwrap();
        assert!(ValueSet::new(schema, MAX_ENTRIES + 1).is_err());
    }
}
