//! Finds an entry for the selected octets.

use super::register::{ENTRY_START, ENTRY_WORDS, Refusal, half};
use crate::interface::Item;
use crate::limits::MAX_CLASS;
use crate::model::{Entry, Outcome, TcamSpec};
use std::collections::BTreeMap;

/// A table of values under masks, each entry with a counter of the frames that it matched.
#[derive(Clone, Debug)]
pub struct Tcam {
    entries: Vec<(Option<Entry>, u64)>,
    miss: Outcome,
    misses: u64,
    /// Entries that are written word by word, until they are valid.
    drafts: BTreeMap<usize, Entry>,
}

impl Tcam {
    /// A table as the file has it.
    pub fn new(spec: &TcamSpec) -> Tcam {
        let mut entries: Vec<(Option<Entry>, u64)> =
            spec.entries.iter().map(|entry| (Some(*entry), 0)).collect();
        entries.resize(spec.size as usize, (None, 0));
        Tcam { entries, miss: spec.miss, misses: 0, drafts: BTreeMap::new() }
    }

    /// The number of the entry that a frame with these octets meets: of those that match the one with the largest priority, of several
    /// with the same the first.
    pub fn find(&self, octets: &[u8]) -> Option<usize> {
        let matches = |entry: &Entry| {
            entry
                .mask
                .iter()
                .zip(&entry.value)
                .zip(octets)
                .all(|((mask, value), octet)| octet & mask == *value)
        };
        let mut best: Option<(usize, u32)> = None;
        for (number, (entry, _)) in self.entries.iter().enumerate() {
            let Some(entry) = entry.as_ref().filter(|entry| matches(entry)) else { continue };
            if best.is_none_or(|(_, priority)| entry.priority > priority) {
                best = Some((number, entry.priority));
            }
        }
        best.map(|(number, _)| number)
    }

    /// A frame with what the table says of it.
    pub fn pass(&mut self, mut item: Item) -> Item {
        let outcome = match self.find(&item.facts.octets) {
            Some(number) => {
                let (entry, matches) = &mut self.entries[number];
                *matches = matches.wrapping_add(1);
                entry.map_or(self.miss, |entry| entry.outcome)
            }
            None => {
                self.misses = self.misses.wrapping_add(1);
                self.miss
            }
        };
        item.facts.targets = outcome.targets;
        item.facts.class = outcome.class;
        item
    }

    /// How many entries it has room for.
    pub fn size(&self) -> usize {
        self.entries.len()
    }

    /// An entry, if it is there.
    pub fn entry(&self, number: usize) -> Option<Entry> {
        self.entries.get(number)?.0
    }

    /// Writes an entry, or takes it out, and has its counter start again; false: there is no room of that number.
    pub fn set(&mut self, number: usize, entry: Option<Entry>) -> bool {
        self.entries.get_mut(number).map(|room| *room = (entry, 0)).is_some()
    }

    /// How many frames an entry has matched.
    pub fn matches(&self, number: usize) -> u64 {
        self.entries.get(number).map_or(0, |(_, matches)| *matches)
    }

    /// How many frames no entry matched.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// What becomes of a frame that no entry matches.
    pub fn miss(&self) -> Outcome {
        self.miss
    }

    pub(crate) fn read(&self, word: u32) -> u32 {
        let Some(at) = word.checked_sub(ENTRY_START) else {
            return if word < 2 { half(self.misses, word) } else { 0 };
        };
        let (number, field) = ((at / ENTRY_WORDS) as usize, at % ENTRY_WORDS);
        match field {
            11 => u32::from(self.entry(number).is_some()),
            12 | 13 => half(self.matches(number), field),
            field => {
                let draft = self.drafts.get(&number).copied();
                draft.or(self.entry(number)).unwrap_or_default().word(field)
            }
        }
    }

    /// Writes a word of an entry, which is as it was until `valid` is written: then frames meet the new one whole, or none. Gives the
    /// number of an entry that is another one now.
    pub(crate) fn write(&mut self, word: u32, value: u32) -> Result<Option<usize>, Refusal> {
        let refuse = || Refusal(format!("{value} cannot be written to word {word} of a TCAM"));
        let at = word.checked_sub(ENTRY_START).ok_or_else(refuse)?;
        let (number, field) = ((at / ENTRY_WORDS) as usize, at % ENTRY_WORDS);
        let known = self.drafts.get(&number).copied().or(self.entry(number));
        let mut entry = known.unwrap_or_default();
        let is_possible = entry.value.iter().zip(&entry.mask).all(|(value, mask)| value & !mask == 0);
        match field {
            _ if number >= self.size() => Err(refuse()),
            11 if value == 1 && !is_possible => {
                Err(Refusal("the value has bits that the mask leaves out: it can never be".into()))
            }
            11 if value <= 1 => {
                self.drafts.remove(&number);
                self.set(number, (value == 1).then_some(entry));
                Ok(Some(number))
            }
            0..=10 if field != 10 || u64::from(value) <= MAX_CLASS => {
                entry.set_word(field, value);
                self.drafts.insert(number, entry);
                Ok(None)
            }
            _ => Err(refuse()),
        }
    }
}

impl Entry {
    /// A word of the register map: value, mask, priority, targets, class.
    fn word(&self, field: u32) -> u32 {
        let of = |octets: &[u8], at: u32| {
            octets.iter().skip(4 * at as usize).take(4).fold(0, |word, octet| word << 8 | u32::from(*octet))
        };
        match field {
            0..4 => of(&self.value, field),
            4..8 => of(&self.mask, field - 4),
            8 => self.priority,
            9 => self.outcome.targets,
            10 => u32::from(self.outcome.class),
            _ => 0,
        }
    }

    fn set_word(&mut self, field: u32, word: u32) {
        let octets = word.to_be_bytes();
        match field {
            0..4 => self.value[4 * field as usize..][..4].copy_from_slice(&octets),
            4..8 => self.mask[4 * (field as usize - 4)..][..4].copy_from_slice(&octets),
            8 => self.priority = word,
            9 => self.outcome.targets = word,
            10 => self.outcome.class = word as u8,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(value: u8, mask: u8, priority: u32, targets: u32) -> Entry {
        let (mut of, outcome) = (Entry::default(), Outcome { targets, class: 1 });
        (of.value[0], of.mask[0], of.priority, of.outcome) = (value, mask, priority, outcome);
        of
    }

    fn frame(octet: u8) -> Item {
        let mut item = Item::default();
        item.facts.octets[0] = octet;
        item
    }

    #[test]
    fn the_largest_priority_that_matches_is_it() {
        let entries = vec![entry(0x10, 0xf0, 1, 1), entry(0x12, 0xff, 2, 2), entry(0x10, 0xf0, 1, 4)];
        let mut tcam = Tcam::new(&TcamSpec { size: 4, entries, miss: Outcome { targets: 8, class: 0 } });
        assert_eq!([0x10, 0x12, 0x1f, 0x20].map(|octet| tcam.pass(frame(octet)).facts.targets), [1, 2, 1, 8]);
        assert_eq!((0..4).map(|number| tcam.matches(number)).collect::<Vec<_>>(), [2, 1, 0, 0]);
        assert_eq!(tcam.misses(), 1);
        // While it runs.
        assert!(tcam.set(3, Some(entry(0x20, 0xff, 0, 16))) && tcam.set(1, None) && !tcam.set(4, None));
        assert_eq!([0x12, 0x20].map(|octet| tcam.pass(frame(octet)).facts.targets), [1, 16]);
        assert_eq!((tcam.matches(1), tcam.matches(3), tcam.entry(1)), (0, 1, None));
    }
}
