//! The words of a unit: what software writes for the entries of a table.

mod groups;
mod hash;
mod numbers;
mod tcam;
mod tree;

pub(crate) use numbers::Numbers;

use super::{Area, Chosen, Kind, TableUnit};
use millrace_pipeline::*;
use millrace_state::{EntryIndex, EntryView, State, Tables, Target};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;

/// A table has more entries than its unit can hold, or the groups that it names more members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Full {
    /// The table.
    pub table: String,
    /// The action selector, if it is about members of groups.
    pub selector: Option<String>,
    /// How many entries it has, or the weights of the members of its groups, all together.
    pub entries: u64,
    /// How many the unit holds.
    pub capacity: u64,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Full { table, selector, entries, capacity } = self;
        let (what, name) = match selector {
            None => ("entries", table),
            Some(selector) => ("members of groups, counted with their weights,", selector),
        };
        write!(
            f,
            "table {table} has {entries} {what} and its unit holds {capacity}: give it more with --capacity {name}=N"
        )
    }
}

impl std::error::Error for Full {}

/// The words of a unit, for what its table holds, and which of them have changed. What is known of a table is made again only after a
/// write to it.
#[derive(Debug)]
pub struct Contents {
    unit: TableUnit,
    image: Image,
    /// Of the table that the words are of.
    revision: Option<u64>,
    kept: Kept,
    /// Where answers have one and entries change.
    numbers: Option<Numbers>,
}

/// Where software has placed what, of one kind of unit.
#[derive(Debug)]
enum Kept {
    Nothing,
    Hash(Box<hash::Placed>),
    Tree(Box<tree::Placed>),
    Tcam(Box<tcam::Placed>),
}

/// The words of the memories of a unit, all 0 at first.
#[derive(Debug)]
struct Image {
    areas: Vec<Area>,
    words: Vec<Vec<Bits>>,
    changed: BTreeSet<(usize, u32)>,
}

impl Image {
    fn set(&mut self, area: usize, index: u32, word: Bits) {
        let old = &mut self.words[area][index as usize];
        if *old != word {
            *old = word;
            self.changed.insert((area, index));
        }
    }
}

impl Contents {
    /// Nothing: all words are 0.
    pub fn new(unit: TableUnit) -> Contents {
        let areas = unit.areas();
        let words = areas.iter().map(|area| vec![Bits::zero(area.width); area.words as usize]).collect();
        let kept = match unit.kind {
            Kind::Constant | Kind::Direct => Kept::Nothing,
            Kind::Hash { memories, bits, .. } => {
                Kept::Hash(Box::new(hash::Placed::new(&unit, memories, bits)))
            }
            Kind::Tree { entries, keys } => Kept::Tree(Box::new(tree::Placed::new(entries, keys))),
            Kind::Tcam { entries, block } => Kept::Tcam(Box::new(tcam::Placed::new(&unit, entries, block))),
        };
        let numbers = (unit.stored.entry > 0 && unit.kind != Kind::Constant).then(Numbers::default);
        let image = Image { areas, words, changed: BTreeSet::new() };
        Contents { unit, image, revision: None, kept, numbers }
    }

    /// The unit.
    pub fn unit(&self) -> &TableUnit {
        &self.unit
    }

    /// The numbers of its entries; none: they are those of software, or nothing asks for them.
    pub(crate) fn numbers(&self) -> Option<&Numbers> {
        self.numbers.as_ref()
    }

    /// Makes the words those of what a table holds now.
    ///
    /// # Errors
    /// The entries do not fit; the words stay as they are.
    pub fn update(&mut self, program: &Program, tables: &Tables) -> Result<(), Full> {
        let revision = tables.revision(self.unit.table);
        if self.revision == Some(revision) {
            return Ok(());
        }
        self.write(program, tables)?;
        self.revision = Some(revision);
        Ok(())
    }

    fn write(&mut self, program: &Program, tables: &Tables) -> Result<(), Full> {
        let Contents { unit, image, kept, numbers, .. } = self;
        let Some(last) = image.areas.len().checked_sub(1) else { return Ok(()) };
        let groups = groups::Groups::of(unit, program, tables)?;
        if let Some(capacity) = unit.capacity() {
            let count = u64::from(tables.entry_count(unit.table));
            let table = program.tables[unit.table].name.clone();
            let full = || Full { table, selector: None, entries: count, capacity };
            if count > capacity {
                return Err(full());
            }
            let mut entries: Vec<EntryView> = tables.entries(unit.table).collect();
            entries.sort_by_key(|entry| first_wins(&unit.fields, entry.priority, &entry.matches));
            let numbered = numbers.clone().map(|mut numbers| {
                numbers.update(tables.entries(unit.table).map(|entry| entry.index), capacity);
                numbers
            });
            let number = |entry: EntryIndex| numbered.as_ref().map_or(0, |numbers| numbers.number(entry));
            let answer = |entry: &EntryView| {
                unit.stored_target(program, tables, (&entry.target, number(entry.index)), &groups)
            };
            let answers: Vec<Bits> = entries.iter().map(answer).collect();
            match kept {
                Kept::Nothing => direct(unit, &entries, &answers, image),
                Kept::Hash(placed) => placed.write(unit, &entries, &answers, image).ok_or_else(full)?,
                Kept::Tree(placed) => placed.write(unit, &entries, &answers, image).ok_or_else(full)?,
                Kept::Tcam(placed) => placed.write(unit, &entries, &answers, image).ok_or_else(full)?,
            }
            *numbers = numbered;
        }
        let default = tables.default_target(unit.table);
        image.set(last, 0, unit.stored_target(program, tables, (&default, 0), &groups));
        groups.write(unit, program, tables, image);
        Ok(())
    }

    /// As [`Contents::update`], of the tables of a state.
    ///
    /// # Errors
    /// As [`Contents::update`].
    pub fn update_from(&mut self, state: &State) -> Result<(), Full> {
        self.update(state.program(), &state.tables())
    }

    /// All words count as changed.
    pub(crate) fn change_all(&mut self) {
        let Image { areas, changed, .. } = &mut self.image;
        changed.extend(
            areas.iter().enumerate().flat_map(|(at, area)| (0..area.words).map(move |word| (at, word))),
        );
    }

    /// The words that have changed since this was last asked for, with their addresses in bank 0. In bank 1 they are one higher.
    pub fn take_changes(&mut self) -> Vec<(u64, Bits)> {
        let Image { areas, words, changed } = &mut self.image;
        let changed = std::mem::take(changed).into_iter();
        let address = |area: usize, index: u32| 2 * (u64::from(areas[area].base) + u64::from(index));
        changed.map(|(area, index)| (address(area, index), words[area][index as usize].clone())).collect()
    }
}

/// A number for an entry that is least for the one that wins: of prefixes the longest, else that of the largest priority. Of equal ones
/// the one that was added first wins.
pub(super) fn first_wins(fields: &[(u32, MatchKind)], priority: u32, matches: &[EntryMatch]) -> Reverse<u32> {
    let has_priorities = fields.iter().any(|(_, kind)| !matches!(kind, MatchKind::Exact | MatchKind::Lpm));
    let lengths = matches.iter().map(|field| match field {
        EntryMatch::Lpm(_, length) => *length,
        _ => 0,
    });
    Reverse(if has_priorities { priority } else { lengths.sum() })
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

fn direct(unit: &TableUnit, entries: &[EntryView], answers: &[Bits], image: &mut Image) {
    let mut words = vec![Bits::zero(1 + unit.stored.bits()); image.areas[0].words as usize];
    for (entry, answer) in entries.iter().zip(answers) {
        let at = key(unit, entry).map_or(0, |key| key.to_u64_saturating() as usize);
        if let Some(word) = words.get_mut(at) {
            *word = Bits::new(1, 1).concat(answer);
        }
    }
    for (at, word) in (0..).zip(words) {
        image.set(0, at, word);
    }
}

impl TableUnit {
    /// What a target runs: of a member its action, or the default one where that is none of the table's.
    fn call_of(&self, program: &Program, tables: &Tables, target: &Target) -> ActionCall {
        let table = &program.tables[self.table];
        let call = match target {
            Target::Action(call) => Some(call.clone()),
            Target::Member(id) => self.call_of_member(table, tables, *id),
            // One with members is chosen from ([`groups`]).
            Target::Group(_) => table.empty_group.clone(),
        };
        call.unwrap_or_else(|| tables.default_action(self.table))
    }

    /// What a member runs; none if that is no action of the table.
    fn call_of_member(&self, table: &Table, tables: &Tables, id: u32) -> Option<ActionCall> {
        let member = tables.member(table.profile?, id).ok()?;
        let action = table.actions.iter().position(|listed| listed.action == member.action)?;
        Some(ActionCall { action, args: member.args })
    }

    /// The answer of a target, as it is kept.
    fn stored_target(
        &self,
        program: &Program,
        tables: &Tables,
        (target, entry): (&Target, u32),
        groups: &groups::Groups,
    ) -> Bits {
        if let Target::Group(id) = target
            && let Some((chosen, place)) = groups.place(self, *id)
        {
            return self.stored((chosen, place), entry, 0);
        }
        self.stored_call(program, &self.call_of(program, tables, target), entry)
    }

    /// The answer of a call, as it is kept.
    pub(super) fn stored_call(&self, program: &Program, call: &ActionCall, entry: u32) -> Bits {
        let data = call_data(program, &program.tables[self.table], call, self.stored.data);
        self.stored((Chosen::Given, data), entry, call.action)
    }

    fn stored(&self, (chosen, data): (Chosen, Bits), entry: u32, action: usize) -> Bits {
        let data = match self.stored.chosen {
            0 => data,
            bits => Bits::new(bits, chosen as u128).concat(&data),
        };
        let numbers = [(self.stored.entry, u128::from(entry)), (self.stored.action, action as u128)];
        let numbers = numbers.into_iter().filter(|(bits, _)| *bits > 0);
        numbers.fold(data, |high, (bits, value)| high.concat(&Bits::new(bits, value)))
    }
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
