//! The order in which words are computed, and where they are.
//!
//! A word can be computed when its operands are there. Of all orders in which each word comes after its operands, this one has
//! long *runs* of equal operations: of the operations that some word waits for, it takes the one with the most words that could be
//! computed now, and goes on with that until no word with it is left. The machine then decides once for a run what to do, and its
//! processor sees a loop without branches. Words get places in this order, so a run writes memory in order.

use super::lower::Lowered;
use super::words::{Code, Word};
use std::collections::VecDeque;
use std::ops::Range;

/// Calls a function with each word that a word depends on.
type Operands<'a> = dyn Fn(Word, &mut dyn FnMut(Word)) + 'a;

/// One operation on places of words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) to: u32,
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) c: u32,
}

/// Equal operations, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) code: Code,
    pub(super) steps: Range<usize>,
}

/// What computes all words of a cycle.
#[derive(Default)]
pub(super) struct Schedule {
    pub(super) runs: Vec<Run>,
    pub(super) steps: Vec<Step>,
    /// The place of each word; `u32::MAX` of those that nothing needs.
    pub(super) places: Vec<u32>,
    /// How many places there are. State comes first, by its number, then constants, by theirs.
    pub(super) count: u32,
}

/// Plans the computation of what the roots need. Gives the operations on many words their places, too.
pub(super) fn schedule(lowered: &mut Lowered, roots: &[Word]) -> Schedule {
    let nodes = &lowered.words.nodes;
    let operands = |word: Word, visit: &mut dyn FnMut(Word)| {
        let node = &nodes[word as usize];
        match node.code {
            Code::Wide => {
                let wide = &lowered.wides[node.a as usize];
                wide.a.iter().chain(&wide.b).for_each(|word| visit(*word));
            }
            Code::Part => visit(node.c),
            _ => node.operands(visit),
        }
    };
    let needed = needed(nodes.len(), roots, &operands);
    // For each word, how many operands are missing, and the words that wait for it.
    let mut missing = vec![0u32; nodes.len()];
    let mut starts = vec![0u32; nodes.len() + 1];
    let words = || (0..nodes.len() as Word).filter(|word| needed[*word as usize]);
    words().for_each(|word| operands(word, &mut |operand| starts[operand as usize + 1] += 1));
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut waiting = vec![0; starts[nodes.len()] as usize];
    let mut filled = starts.clone();
    words().for_each(|word| {
        operands(word, &mut |operand| {
            missing[word as usize] += 1;
            waiting[filled[operand as usize] as usize] = word;
            filled[operand as usize] += 1;
        });
    });

    let first = lowered.states + lowered.words.constants.len() as u32;
    let mut schedule =
        Schedule { runs: Vec::new(), steps: Vec::new(), places: vec![u32::MAX; nodes.len()], count: first };
    let mut ready: Vec<(Code, VecDeque<Word>)> = Vec::new();
    words()
        .filter(|word| missing[*word as usize] == 0)
        .for_each(|word| put(&mut ready, nodes[word as usize].code, word));
    while let Some(at) = (0..ready.len()).max_by_key(|at| (ready[*at].1.len(), usize::MAX - at)) {
        let code = ready[at].0;
        let start = schedule.steps.len();
        let Some(mut word) = ready[at].1.pop_front() else { break };
        loop {
            schedule.place(code, word, lowered.states, nodes, &lowered.wides);
            for next in &waiting[starts[word as usize] as usize..starts[word as usize + 1] as usize] {
                missing[*next as usize] -= 1;
                if missing[*next as usize] == 0 {
                    put(&mut ready, nodes[*next as usize].code, *next);
                }
            }
            match ready[at].1.pop_front() {
                Some(next) => word = next,
                None => break,
            }
        }
        if schedule.steps.len() > start {
            schedule.runs.push(Run { code, steps: start..schedule.steps.len() });
        }
    }
    let places = &schedule.places;
    for (word, node) in
        nodes.iter().enumerate().filter(|(word, node)| needed[*word] && node.code == Code::Wide)
    {
        let wide = &mut lowered.wides[node.a as usize];
        wide.to = places[word];
        wide.a.iter_mut().chain(&mut wide.b).for_each(|word| *word = places[*word as usize]);
    }
    schedule
}

fn put(ready: &mut Vec<(Code, VecDeque<Word>)>, code: Code, word: Word) {
    match ready.iter_mut().find(|(known, _)| *known == code) {
        Some((_, words)) => words.push_back(word),
        None => ready.push((code, VecDeque::from([word]))),
    }
}

fn needed(count: usize, roots: &[Word], operands: &Operands<'_>) -> Vec<bool> {
    let mut needed = vec![false; count];
    roots.iter().for_each(|root| needed[*root as usize] = true);
    // Operands come before what uses them.
    for word in (0..count as Word).rev() {
        if needed[word as usize] {
            operands(word, &mut |operand| needed[operand as usize] = true);
        }
    }
    needed
}

impl Schedule {
    /// Gives a word its place, and the machine the step that computes it.
    fn place(
        &mut self,
        code: Code,
        word: Word,
        states: u32,
        nodes: &[super::words::Node],
        wides: &[super::wide::Wide],
    ) {
        let node = nodes[word as usize];
        let place = |word: Word| self.places[word as usize];
        let (a, b, c) = (node.a, node.b, node.c);
        let step = match code {
            Code::State => {
                self.places[word as usize] = a;
                return;
            }
            Code::Constant => {
                self.places[word as usize] = states + a;
                return;
            }
            Code::Part => {
                // It lies where the whole operation puts it.
                self.places[word as usize] = place(c) + b;
                return;
            }
            Code::Wide => [a, 0, 0],
            Code::Not | Code::Repeat | Code::NotZero | Code::Parity | Code::Read => [place(a), b, c],
            Code::AddCarry | Code::Carry | Code::LtOr | Code::Mux => [place(a), place(b), place(c)],
            _ => [place(a), place(b), c],
        };
        let to = self.count;
        self.places[word as usize] = to;
        self.count += if code == Code::Wide { wides[a as usize].a.len() as u32 } else { 1 };
        self.steps.push(Step { to, a: step[0], b: step[1], c: step[2] });
    }
}
