//! Parser value sets: membership of a key in a set that the control plane writes.

use crate::engine::{Engine, Rank};
use crate::entry::EntryIndex;
use crate::error::{SpecError, TableError};
use crate::key::{FieldMatch, KeySchema};
use crate::limits::MAX_ENTRIES;
use crate::packed::PackedMatch;

/// A set of matches over one key. Members have no order and no action.
#[derive(Clone, Debug)]
pub struct ValueSet {
    schema: KeySchema,
    size: u32,
    engine: Engine,
    members: Vec<Vec<FieldMatch>>,
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
        Ok(ValueSet { engine: Engine::for_set(&schema), schema, size, members: Vec::new() })
    }

    /// The key.
    pub fn schema(&self) -> &KeySchema {
        &self.schema
    }

    /// Most members.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Whether some member accepts a packed key. A key of the wrong length is in no set.
    pub fn contains(&self, key: &[u8]) -> bool {
        if key.len() != self.schema.stride() || self.members.is_empty() {
            return false;
        }
        let mut found = [EntryIndex::MISS];
        self.engine.lookup(key.len(), key, &mut found);
        found[0].is_hit()
    }

    /// Adds a member.
    ///
    /// # Errors
    /// [`TableError::Duplicate`], [`TableError::Full`], or what is wrong with the matches.
    pub fn insert(&mut self, matches: &[FieldMatch]) -> Result<(), TableError> {
        let matches = self.schema.canonical(matches)?;
        let key = PackedMatch::new(&self.schema, &matches);
        if self.engine.find(&key, 0).is_some() {
            return Err(TableError::Duplicate);
        }
        if self.members.len() >= self.size as usize {
            return Err(TableError::Full { limit: self.size });
        }
        self.members.push(matches);
        self.engine.insert(key, ANY_RANK, MEMBER);
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
            engine: Engine::for_set(&self.schema),
            members: Vec::new(),
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
        let at = self.members.iter().position(|member| *member == matches).ok_or(TableError::NotFound)?;
        self.members.remove(at);
        self.rebuild();
        Ok(())
    }

    /// Removes all members.
    pub fn clear(&mut self) {
        self.members.clear();
        self.rebuild();
    }

    /// The members in canonical form, in the order in which they were added.
    pub fn members(&self) -> impl Iterator<Item = &[FieldMatch]> {
        self.members.iter().map(Vec::as_slice)
    }

    fn rebuild(&mut self) {
        self.engine = Engine::for_set(&self.schema);
        for matches in &self.members {
            self.engine.insert(PackedMatch::new(&self.schema, matches), ANY_RANK, MEMBER);
        }
    }
}

/// Which member is found does not matter, so all have one rank and one index that is not a miss.
const ANY_RANK: Rank = Rank { priority: 0, serial: 0 };
const MEMBER: EntryIndex = EntryIndex(1);
