//! The words of a unit: what software writes for the entries of a table.

use super::module::hash_mask;
use super::{HASHES, Kind, TableUnit};
use millrace_pipeline::*;
use millrace_state::{EntryIndex, EntryView, State, Target};
use std::fmt;

/// A table has more entries than its unit can hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Full {
    /// The table.
    pub table: String,
    /// How many entries it has.
    pub entries: u64,
    /// How many the unit holds.
    pub capacity: u64,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Full { table, entries, capacity } = self;
        write!(
            f,
            "table {table} has {entries} entries, and its unit holds {capacity}: give it more with --capacity {table}=N"
        )
    }
}

impl std::error::Error for Full {}

/// All words of a unit, by address, for what the table holds now.
///
/// # Errors
/// The entries do not fit.
pub fn words(unit: &TableUnit, state: &State) -> Result<Vec<Bits>, Full> {
    let program = state.program();
    let tables = state.tables();
    let mut entries: Vec<EntryView> = tables.entries(unit.table).collect();
    let full = Full {
        table: program.tables[unit.table].name.clone(),
        entries: entries.len() as u64,
        capacity: unit.capacity(),
    };
    let has_priorities =
        unit.fields.iter().any(|(_, kind)| !matches!(kind, MatchKind::Exact | MatchKind::Lpm));
    // The first that matches wins: of prefixes the longest, else the one of the largest priority, of equal ones that added first.
    match has_priorities {
        true => entries.sort_by_key(|entry| std::cmp::Reverse(entry.priority)),
        false => entries.sort_by_key(|entry| std::cmp::Reverse(prefix(entry))),
    }
    let mut words = vec![Bits::zero(unit.word()); unit.miss() as usize];
    match unit.kind {
        Kind::Direct => {
            for entry in &entries {
                let at = key(unit, entry).map_or(0, |key| key.to_u64_saturating() as usize);
                let Some(word) = words.get_mut(at) else { return Err(full) };
                *word = Bits::new(1, 1).concat(&entry_answer(unit, program, entry));
            }
        }
        Kind::Compare { .. } => {
            for (at, entry) in entries.iter().enumerate() {
                let Some(word) = words.get_mut(at) else { return Err(full) };
                *word = compared(unit, entry).concat(&entry_answer(unit, program, entry));
            }
        }
        Kind::Hash { bits } => place(unit, program, bits, &entries, &mut words).ok_or(full)?,
    }
    let default = tables.default_target(unit.table);
    let miss = answer(unit, program, &default, 0);
    words.push(miss.zero_extend(unit.word()));
    Ok(words)
}

/// What has been written to the units of a table.
pub(crate) struct Contents {
    unit: TableUnit,
    /// What the words were made of: entries, and the default action.
    known: Option<(Vec<Known>, Target)>,
    words: Vec<Bits>,
}

/// What words depend on of an entry.
type Known = (EntryIndex, u32, Vec<EntryMatch>, Target);

impl Contents {
    /// Nothing: all words are 0.
    pub(crate) fn new(unit: TableUnit) -> Contents {
        let words = vec![Bits::zero(unit.word()); unit.miss() as usize + 1];
        Contents { unit, known: None, words }
    }

    /// The words that have to be written, with their addresses.
    ///
    /// # Errors
    /// The entries do not fit; what there is stays.
    pub(crate) fn changes(&mut self, state: &State) -> Result<Vec<(u32, Bits)>, Full> {
        let tables = state.tables();
        let of = |entry: EntryView| (entry.index, entry.priority, entry.matches, entry.target);
        let entries: Vec<Known> = tables.entries(self.unit.table).map(of).collect();
        let known = (entries, tables.default_target(self.unit.table));
        drop(tables);
        if self.known.as_ref() == Some(&known) {
            return Ok(Vec::new());
        }
        let words = words(&self.unit, state)?;
        self.known = Some(known);
        let mut changes = Vec::new();
        for (at, (word, old)) in (0..).zip(words.into_iter().zip(&mut self.words)) {
            if word != *old {
                old.clone_from(&word);
                changes.push((at, word));
            }
        }
        Ok(changes)
    }
}

fn prefix(entry: &EntryView) -> u32 {
    let lengths = entry.matches.iter().map(|field| match field {
        EntryMatch::Lpm(_, length) => *length,
        _ => 0,
    });
    lengths.sum()
}

/// The key of an entry of exact fields; none without fields.
fn key(unit: &TableUnit, entry: &EntryView) -> Option<Bits> {
    let fields = unit.fields.iter().zip(&entry.matches);
    let bits = fields.map(|((width, _), field)| match field {
        EntryMatch::Exact(bits) => bits.zero_extend(*width),
        _ => Bits::zero(*width),
    });
    bits.reduce(|high, low| high.concat(&low))
}

/// Whether there is an entry, its values and its masks.
fn compared(unit: &TableUnit, entry: &EntryView) -> Bits {
    let (mut values, mut masks): (Option<Bits>, Option<Bits>) = (None, None);
    for ((width, _), field) in unit.fields.iter().zip(&entry.matches) {
        let ones = Bits::ones(*width);
        let (value, mask) = match field {
            EntryMatch::Exact(value) => (value.clone(), ones),
            EntryMatch::Lpm(value, length) => {
                let mask = ones.shl_by(u64::from(width.saturating_sub(*length)));
                (value.and(&mask), mask)
            }
            EntryMatch::Ternary(value, mask) => (value.and(mask), mask.clone()),
            EntryMatch::Range(low, high) => (low.clone(), high.clone()),
            EntryMatch::Optional(Some(value)) => (value.clone(), ones),
            EntryMatch::Optional(None) => (Bits::zero(*width), Bits::zero(*width)),
        };
        values = Some(values.map_or(value.clone(), |high| high.concat(&value)));
        masks = Some(masks.map_or(mask.clone(), |high| high.concat(&mask)));
    }
    let there = Bits::new(1, 1);
    match (values, masks) {
        (Some(values), Some(masks)) => there.concat(&values).concat(&masks),
        _ => there,
    }
}

fn entry_answer(unit: &TableUnit, program: &Program, entry: &EntryView) -> Bits {
    answer(unit, program, &entry.target, entry.index.0)
}

/// What the unit answers for an entry, or with entry 0 for a miss.
fn answer(unit: &TableUnit, program: &Program, target: &Target, entry: u32) -> Bits {
    let table = &program.tables[unit.table];
    let call = match target {
        Target::Action(call) => call,
        // Tables with a profile have no unit.
        Target::Member(_) | Target::Group(_) => &table.default,
    };
    let data = call_data(program, table, call, unit.data());
    data.concat(&Bits::new(32, u128::from(entry)))
        .concat(&Bits::new(16, call.action as u128))
        .concat(&Bits::new(1, u128::from(entry != 0)))
}

/// The action data of a call, the first parameter lowest.
pub(crate) fn call_data(program: &Program, table: &Table, call: &ActionCall, width: u32) -> Bits {
    let params = table.actions.get(call.action).map(|listed| &program.actions[listed.action].params);
    let mut data: Option<Bits> = None;
    for (param, value) in params.into_iter().flatten().zip(&call.args) {
        let part = match program.slots[*param].ty {
            Type::Bool => Bits::new(1, u128::from(!value.is_zero())),
            Type::Bits(width) | Type::Varbit(width) => value.zero_extend(width),
        };
        data = Some(data.map_or(part.clone(), |low| part.concat(&low)));
    }
    data.map_or_else(|| Bits::zero(width), |data| data.zero_extend(width))
}

/// Places entries by cuckoo hashing: an entry takes one of its four places; where all are taken, another one moves to one of its own.
/// None: there is no place after so many moves that there is none.
fn place(
    unit: &TableUnit,
    program: &Program,
    bits: u32,
    entries: &[EntryView],
    words: &mut [Bits],
) -> Option<()> {
    /// Moves for one entry.
    const MOVES: u32 = 2000;
    let keys: Vec<Bits> = entries.iter().map(|entry| key(unit, entry)).collect::<Option<_>>()?;
    let masks: Vec<Vec<Bits>> =
        (0..HASHES).map(|way| (0..bits).map(|bit| hash_mask(unit.key(), way, bit)).collect()).collect();
    let hashed = |key: &Bits, way: u32| -> usize {
        let bit =
            |mask: &Bits| key.and(mask).limbs().fold(0, |all, limb| all ^ limb).count_ones() as usize % 2;
        let of = masks[way as usize].iter().enumerate().map(|(at, mask)| bit(mask) << at);
        of.sum::<usize>() | (way as usize) << bits
    };
    let mut at: Vec<Option<usize>> = vec![None; words.len()];
    for first in 0..entries.len() {
        let (mut entry, mut way) = (first, 0);
        for moves in 0..=MOVES {
            if moves == MOVES {
                return None;
            }
            let places: Vec<usize> = (0..HASHES).map(|way| hashed(&keys[entry], way)).collect();
            if let Some(free) = places.iter().find(|place| at[**place].is_none()) {
                at[*free] = Some(entry);
                break;
            }
            // Another way than the one that it came from, in turn.
            way = (way + 1 + moves % 3) % HASHES;
            let moved = at[places[way as usize]].replace(entry);
            entry = moved.unwrap_or(entry);
        }
    }
    for (word, entry) in words.iter_mut().zip(at) {
        if let Some(entry) = entry {
            let answer = entry_answer(unit, program, &entries[entry]);
            *word = Bits::new(1, 1).concat(&keys[entry]).concat(&answer);
        }
    }
    Some(())
}
