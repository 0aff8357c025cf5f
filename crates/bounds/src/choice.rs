//! What a lookup of a table can give: which entry, which action, which data.

use crate::circuit::{Circuit, Lit, Word};
use crate::knowledge::{Call, Entry, Knowledge};
use millrace_pipeline::{Bits, EntryMatch, TableId};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The result of a lookup.
pub(crate) struct Choice {
    pub(crate) table: TableId,
    /// Whether an entry matches.
    pub(crate) hit: Lit,
    /// Whether it is one that is not told apart.
    pub(crate) other: Lit,
    /// What may run, and when.
    calls: Vec<(Lit, Call)>,
    /// Whether each action runs, by its index.
    pub(crate) actions: Vec<Lit>,
}

/// The results of lookups so far: one key gives one result.
pub(crate) struct Choices<'a> {
    knowledge: &'a Knowledge,
    made: FxHashMap<(TableId, Vec<Word>), Rc<Choice>>,
}

impl<'a> Choices<'a> {
    pub(crate) fn new(knowledge: &'a Knowledge) -> Choices<'a> {
        Choices { knowledge, made: FxHashMap::default() }
    }

    /// The result of a lookup.
    pub(crate) fn of(&mut self, circuit: &mut Circuit, table: TableId, keys: Vec<Word>) -> Rc<Choice> {
        if let Some(made) = self.made.get(&(table, keys.clone())) {
            return Rc::clone(made);
        }
        let made = Rc::new(self.make(circuit, table, &keys));
        self.made.insert((table, keys), Rc::clone(&made));
        made
    }

    /// What holds where every lookup gives an entry that is told apart, or none.
    pub(crate) fn told_apart(&self) -> impl Iterator<Item = Lit> {
        self.made.values().map(|made| !made.other)
    }

    fn make(&self, circuit: &mut Circuit, id: TableId, keys: &[Word]) -> Choice {
        let table = &self.knowledge.tables[id];
        let matches: Vec<Lit> = table.entries.iter().map(|entry| matches(circuit, entry, keys)).collect();
        // Exactly one of: no entry, each entry, one of the others.
        let none_matches = {
            let any = circuit.any(matches.iter().copied());
            !any
        };
        let other = match table.others {
            Some(_) => circuit.fresh(),
            None => circuit.constant(false),
        };
        let mut calls: Vec<(Lit, Call)> = Vec::new();
        let mut none_so_far = !other;
        let mut order: Vec<usize> = (0..table.entries.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(table.entries[*at].rank));
        let mut at = 0;
        while at < order.len() {
            // Entries of one rank: any that matches may be the one.
            let rank = table.entries[order[at]].rank;
            let equals = order[at..].iter().take_while(|entry| table.entries[**entry].rank == rank).count();
            let group = &order[at..at + equals];
            let wins: Vec<Lit> = group
                .iter()
                .map(|entry| {
                    let wins = if equals == 1 { circuit.constant(true) } else { circuit.fresh() };
                    let wins = circuit.and(wins, matches[*entry]);
                    circuit.and(wins, none_so_far)
                })
                .collect();
            let mut any = circuit.constant(false);
            for (at, win) in wins.iter().enumerate() {
                wins[..at].iter().for_each(|other| circuit.require(&[!*win, !*other]));
                any = circuit.or(any, *win);
            }
            let any_matches = circuit.any(group.iter().map(|entry| matches[*entry]));
            // Where one matches and none is better, one is it.
            circuit.require(&[!none_so_far, !any_matches, any]);
            for (entry, win) in group.iter().zip(&wins) {
                push(circuit, &mut calls, *win, &table.entries[*entry].calls);
            }
            none_so_far = circuit.and(none_so_far, !any_matches);
            at += equals;
        }
        let hit = circuit.or(other, !none_matches);
        push(circuit, &mut calls, !hit, &table.default);
        if let Some(used) = &table.others {
            let used: Vec<usize> = (0..used.len()).filter(|action| used[*action]).collect();
            let choices = one_of(circuit, other, used.len());
            for (action, when) in used.into_iter().zip(choices) {
                calls.push((when, Call { action, args: Vec::new() }));
            }
        }
        let most = calls.iter().map(|(_, call)| call.action + 1).max();
        let actions = (0..most.unwrap_or(0)).map(|action| {
            let runs = calls.iter().filter(|(_, call)| call.action == action);
            let runs: Vec<Lit> = runs.map(|(when, _)| *when).collect();
            circuit.any(runs)
        });
        Choice { table: id, hit, other, actions: actions.collect(), calls }
    }

    /// The data of an action that runs; none: nothing is known of them.
    pub(crate) fn argument(
        &self,
        circuit: &mut Circuit,
        choice: &Choice,
        action: usize,
        param: usize,
    ) -> Option<Word> {
        let mut value: Option<Word> = None;
        for (when, call) in choice.calls.iter().filter(|(_, call)| call.action == action) {
            if circuit.known(*when) == Some(false) {
                continue;
            }
            let own: &Bits = call.args.get(param)?;
            let own = circuit.word(own);
            value = Some(match value {
                // What is there when no other is: the action runs, so one of them is.
                None => own,
                Some(value) => circuit.choose_word(*when, &own, &value),
            });
        }
        value
    }
}

/// What runs when a condition holds: one of these.
fn push(circuit: &mut Circuit, calls: &mut Vec<(Lit, Call)>, when: Lit, any: &[Call]) {
    let choices = one_of(circuit, when, any.len());
    calls.extend(any.iter().zip(choices).map(|(call, when)| (when, call.clone())));
}

/// Literals of which exactly one holds where a condition does, and none else.
fn one_of(circuit: &mut Circuit, when: Lit, count: usize) -> Vec<Lit> {
    let mut rest = when;
    (0..count)
        .map(|at| {
            let wish = if at + 1 == count { circuit.constant(true) } else { circuit.fresh() };
            let one = circuit.and(rest, wish);
            rest = circuit.and(rest, !wish);
            one
        })
        .collect()
}

/// Whether an entry matches.
fn matches(circuit: &mut Circuit, entry: &Entry, keys: &[Word]) -> Lit {
    let mut all = circuit.constant(true);
    for (field, key) in entry.matches.iter().zip(keys) {
        let own = match field {
            EntryMatch::Exact(value) | EntryMatch::Optional(Some(value)) => {
                masked(circuit, key, value, |_| true)
            }
            EntryMatch::Lpm(value, len) => {
                let free = value.width().saturating_sub(*len);
                masked(circuit, key, value, |at| at >= free)
            }
            EntryMatch::Ternary(value, mask) => masked(circuit, key, value, |at| mask.bit(at)),
            EntryMatch::Range(low, high) => {
                let (low, high) = (circuit.word(low), circuit.word(high));
                let (under, over) = (circuit.less(key, &low), circuit.less(&high, key));
                circuit.and(!under, !over)
            }
            EntryMatch::Optional(None) => circuit.constant(true),
        };
        all = circuit.and(all, own);
    }
    all
}

/// Whether a key has the bits of a value where a mask says.
fn masked(circuit: &mut Circuit, key: &[Lit], value: &Bits, counts: impl Fn(u32) -> bool) -> Lit {
    let bits = (0..value.width()).zip(key).filter(|(at, _)| counts(*at));
    let differs: Word = bits.map(|(at, bit)| *bit ^ value.bit(at)).collect();
    !circuit.any(differs)
}
