//! Numbers whose bits are literals of a SAT solver: what a packet's bits make of conditions.
//!
//! A gate is made once for the same inputs, and none where an input is constant. Clauses only define gates, so they hold for all
//! packets; what one way of a packet takes for granted is a list of literals that are assumed.

use batsat::{Callbacks, Lit, Solver, SolverInterface, SolverOpts, lbool};
use millrace_pipeline::Bits;
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::time::Instant;

/// Most gates of one analysis. Beyond, results are unknown bits: less is known, and nothing is wrong.
const MAX_GATES: usize = 1 << 21;
/// Most literals of one analysis.
const MAX_LITERALS: u32 = 1 << 22;
/// Steps of the solver for one question.
const MAX_STEPS: u64 = 200_000;
/// Bits of a factor up to which products are made of gates.
const MAX_PRODUCT: usize = 32;

/// A number, the lowest bit first.
pub(crate) type Word = Vec<Lit>;

/// Whether something can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// There is an example, which [`Circuit::value`] tells.
    Yes,
    /// Never.
    No,
    /// It was not found out.
    Unknown,
}

/// Gates, and the solver that has their clauses.
pub(crate) struct Circuit {
    solver: Solver<Patience>,
    yes: Lit,
    gates: FxHashMap<(Gate, Lit, Lit), Lit>,
    /// Assumptions that were found to exclude each other, and those that can hold together.
    answers: FxHashMap<Vec<Lit>, Answer>,
}

/// How long the solver may still look for an answer: steps, and the time when it ends.
struct Patience(Cell<u64>, Cell<Option<Instant>>);

impl Callbacks for Patience {
    fn stop(&self) -> bool {
        self.0.set(self.0.get().saturating_sub(1));
        self.0.get() == 0 || self.1.get().is_some_and(|end| Instant::now() > end)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Gate {
    And,
    Xor,
}

impl Circuit {
    pub(crate) fn new() -> Circuit {
        let mut solver = Solver::new(SolverOpts::default(), Patience(Cell::new(MAX_STEPS), Cell::new(None)));
        let yes = Lit::new(solver.new_var_default(), true);
        solver.add_clause_reuse(&mut vec![yes]);
        Circuit { solver, yes, gates: FxHashMap::default(), answers: FxHashMap::default() }
    }

    /// Whether there are so many literals that no more should come.
    pub(crate) fn is_full(&self) -> bool {
        self.size() > MAX_LITERALS
    }

    /// No question takes longer than until then.
    pub(crate) fn end_at(&mut self, end: Instant) {
        self.solver.cb_mut().1.set(Some(end));
    }

    /// How many variables there are.
    pub(crate) fn size(&self) -> u32 {
        self.solver.num_vars()
    }

    pub(crate) fn constant(&self, value: bool) -> Lit {
        if value { self.yes } else { !self.yes }
    }

    /// What a literal always is.
    pub(crate) fn known(&self, lit: Lit) -> Option<bool> {
        (lit.var() == self.yes.var()).then(|| lit == self.yes)
    }

    /// A bit of which nothing is known.
    pub(crate) fn fresh(&mut self) -> Lit {
        Lit::new(self.solver.new_var_default(), true)
    }

    pub(crate) fn fresh_word(&mut self, width: usize) -> Word {
        (0..width).map(|_| self.fresh()).collect()
    }

    /// Of these literals one holds.
    pub(crate) fn require(&mut self, any: &[Lit]) {
        self.solver.add_clause_reuse(&mut any.to_vec());
    }

    pub(crate) fn and(&mut self, a: Lit, b: Lit) -> Lit {
        match (self.known(a), self.known(b)) {
            (Some(false), _) | (_, Some(false)) => return !self.yes,
            (Some(true), _) => return b,
            (_, Some(true)) => return a,
            _ if a == b => return a,
            _ if a == !b => return !self.yes,
            _ => {}
        }
        let (a, b) = if a < b { (a, b) } else { (b, a) };
        if let Some(gate) = self.gates.get(&(Gate::And, a, b)) {
            return *gate;
        }
        let gate = self.fresh();
        if self.gates.len() < MAX_GATES {
            self.require(&[!gate, a]);
            self.require(&[!gate, b]);
            self.require(&[gate, !a, !b]);
            self.gates.insert((Gate::And, a, b), gate);
        }
        gate
    }

    pub(crate) fn or(&mut self, a: Lit, b: Lit) -> Lit {
        !self.and(!a, !b)
    }

    pub(crate) fn xor(&mut self, a: Lit, b: Lit) -> Lit {
        match (self.known(a), self.known(b)) {
            (Some(value), _) => return b ^ value,
            (_, Some(value)) => return a ^ value,
            _ if a == b => return !self.yes,
            _ if a == !b => return self.yes,
            _ => {}
        }
        // The signs go to the result.
        let flip = a.sign() != b.sign();
        let (a, b) = (Lit::new(a.var(), true), Lit::new(b.var(), true));
        let (a, b) = if a < b { (a, b) } else { (b, a) };
        if let Some(gate) = self.gates.get(&(Gate::Xor, a, b)) {
            return *gate ^ flip;
        }
        let gate = self.fresh();
        if self.gates.len() < MAX_GATES {
            self.require(&[!gate, a, b]);
            self.require(&[!gate, !a, !b]);
            self.require(&[gate, !a, b]);
            self.require(&[gate, a, !b]);
            self.gates.insert((Gate::Xor, a, b), gate);
        }
        gate ^ flip
    }

    pub(crate) fn choose(&mut self, cond: Lit, then: Lit, els: Lit) -> Lit {
        if then == els {
            return then;
        }
        let (then, els) = (self.and(cond, then), self.and(!cond, els));
        self.or(then, els)
    }

    pub(crate) fn any(&mut self, lits: impl IntoIterator<Item = Lit>) -> Lit {
        lits.into_iter().fold(!self.yes, |any, lit| self.or(any, lit))
    }

    pub(crate) fn word(&self, bits: &Bits) -> Word {
        (0..bits.width()).map(|at| self.constant(bits.bit(at))).collect()
    }

    pub(crate) fn number(&self, width: usize, value: u64) -> Word {
        (0..width).map(|at| self.constant(at < 64 && value >> at & 1 != 0)).collect()
    }

    /// The constant that a word is.
    pub(crate) fn known_word(&self, word: &[Lit]) -> Option<u64> {
        let mut value = 0;
        for (at, bit) in word.iter().enumerate() {
            match self.known(*bit)? {
                true if at < 64 => value |= 1 << at,
                true => return None,
                false => {}
            }
        }
        Some(value)
    }

    pub(crate) fn choose_word(&mut self, cond: Lit, then: &[Lit], els: &[Lit]) -> Word {
        then.iter().zip(els).map(|(then, els)| self.choose(cond, *then, *els)).collect()
    }

    /// The sum, cut to the width of `a`; and the carry.
    pub(crate) fn add(&mut self, a: &[Lit], b: &[Lit], carry: Lit) -> (Word, Lit) {
        let mut carry = carry;
        let mut sum = Word::with_capacity(a.len());
        for (a, b) in a.iter().zip(b) {
            let half = self.xor(*a, *b);
            sum.push(self.xor(half, carry));
            let (both, through) = (self.and(*a, *b), self.and(half, carry));
            carry = self.or(both, through);
        }
        (sum, carry)
    }

    /// The difference; and whether it does not borrow, which is `a >= b`.
    pub(crate) fn sub(&mut self, a: &[Lit], b: &[Lit]) -> (Word, Lit) {
        let not: Word = b.iter().map(|bit| !*bit).collect();
        self.add(a, &not, self.yes)
    }

    /// The product, cut to the width; none where it would take too many gates.
    pub(crate) fn mul(&mut self, a: &[Lit], b: &[Lit]) -> Option<Word> {
        let (a, b) = if self.known_word(a).is_some() { (b, a) } else { (a, b) };
        let terms = b.iter().filter(|bit| self.known(**bit) != Some(false)).count();
        if terms > MAX_PRODUCT {
            return None;
        }
        let mut sum = self.number(a.len(), 0);
        for (at, bit) in b.iter().enumerate().filter(|(at, _)| *at < a.len()) {
            if self.known(*bit) == Some(false) {
                continue;
            }
            let mut term = vec![!self.yes; at];
            for of in &a[..a.len() - at] {
                term.push(self.and(*of, *bit));
            }
            sum = self.add(&sum, &term, !self.yes).0;
        }
        Some(sum)
    }

    pub(crate) fn equal(&mut self, a: &[Lit], b: &[Lit]) -> Lit {
        let mut all = self.yes;
        for (a, b) in a.iter().zip(b) {
            let same = !self.xor(*a, *b);
            all = self.and(all, same);
        }
        all
    }

    /// Whether `a < b`, unsigned.
    pub(crate) fn less(&mut self, a: &[Lit], b: &[Lit]) -> Lit {
        !self.sub(a, b).1
    }

    /// Whether `a < b`, two's complement.
    pub(crate) fn less_signed(&mut self, a: &[Lit], b: &[Lit]) -> Lit {
        let flip = |word: &[Lit]| {
            let mut word = word.to_vec();
            if let Some(sign) = word.last_mut() {
                *sign = !*sign;
            }
            word
        };
        self.less(&flip(a), &flip(b))
    }

    /// Shifts by a number of bits; `fill` comes in.
    pub(crate) fn shift(&mut self, word: &[Lit], by: &[Lit], left: bool, fill: Lit) -> Word {
        let width = word.len();
        let mut word = word.to_vec();
        for (at, bit) in by.iter().enumerate() {
            let distance = if at < 31 { (1usize << at).min(width) } else { width };
            let moved: Word = (0..width)
                .map(|to| {
                    let from = if left { to.checked_sub(distance) } else { Some(to + distance) };
                    from.and_then(|from| word.get(from)).copied().unwrap_or(fill)
                })
                .collect();
            word = self.choose_word(*bit, &moved, &word);
        }
        word
    }

    /// Whether all of these can hold together.
    pub(crate) fn holds(&mut self, all: &[Lit]) -> Answer {
        let mut wanted: Vec<Lit> = all.iter().copied().filter(|lit| *lit != self.yes).collect();
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.contains(&!self.yes) {
            return Answer::No;
        }
        if let Some(answer) = self.answers.get(&wanted) {
            return *answer;
        }
        let answer = self.example(&wanted);
        self.answers.insert(wanted, answer);
        answer
    }

    /// As [`Circuit::holds`], and an example is there to be asked for.
    pub(crate) fn example(&mut self, all: &[Lit]) -> Answer {
        self.solver.cb_mut().0.set(MAX_STEPS);
        match self.solver.solve_limited(all) {
            found if found == lbool::TRUE => Answer::Yes,
            found if found == lbool::FALSE => Answer::No,
            _ => Answer::Unknown,
        }
    }

    /// The value of a bit in the latest example.
    pub(crate) fn value(&self, lit: Lit) -> bool {
        self.known(lit).unwrap_or_else(|| self.solver.value_lit(lit) == lbool::TRUE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of a word of constants.
    fn value(circuit: &Circuit, word: &[Lit]) -> u64 {
        circuit.known_word(word).unwrap()
    }

    /// Arithmetic on constants, and the same on unknown bits that are assumed to be these.
    #[test]
    fn arithmetic_is_that_of_numbers() {
        let mut circuit = Circuit::new();
        let (x, y) = (circuit.fresh_word(6), circuit.fresh_word(6));
        let sum = circuit.add(&x, &y, circuit.constant(false)).0;
        let difference = circuit.sub(&x, &y).0;
        let product = circuit.mul(&x, &y).unwrap();
        let (less, signed) = (circuit.less(&x, &y), circuit.less_signed(&x, &y));
        let equal = circuit.equal(&x, &y);
        let no = circuit.constant(false);
        let (left, right) = (circuit.shift(&x, &y, true, no), circuit.shift(&x, &y, false, no));
        for a in (0..64).step_by(5) {
            for b in (0..64).step_by(3) {
                let (p, q) = (circuit.number(6, a), circuit.number(6, b));
                let known = circuit.add(&p, &q, no).0;
                assert_eq!(value(&circuit, &known), (a + b) & 63);
                let (same_x, same_y) = (circuit.equal(&x, &p), circuit.equal(&y, &q));
                assert_eq!(circuit.example(&[same_x, same_y]), Answer::Yes);
                let number = |word: &[Lit]| {
                    word.iter().enumerate().map(|(at, bit)| u64::from(circuit.value(*bit)) << at).sum::<u64>()
                };
                let shifted = |by: u64, left: bool| match by {
                    0..6 if left => a << by & 63,
                    0..6 => a >> by,
                    _ => 0,
                };
                let signed_of = |n: u64| ((n << 58) as i64) >> 58;
                assert_eq!(number(&sum), (a + b) & 63);
                assert_eq!(number(&difference), a.wrapping_sub(b) & 63);
                assert_eq!(number(&product), (a * b) & 63);
                assert_eq!(number(&left), shifted(b, true));
                assert_eq!(number(&right), shifted(b, false));
                assert_eq!(circuit.value(less), a < b);
                assert_eq!(circuit.value(equal), a == b);
                assert_eq!(circuit.value(signed), signed_of(a) < signed_of(b));
            }
        }
        let less_and_equal = [less, equal];
        assert_eq!(circuit.holds(&less_and_equal), Answer::No);
    }
}
