//! Numbers whose bits are literals: what a packet's bits make of conditions.
//!
//! A gate is made once for the same inputs, and none where an input is constant. Clauses only define gates, so they hold for all
//! packets; what one way of a packet takes for granted is a list of literals that are assumed. The SAT solver gets the clauses of a gate
//! when a question depends on it: most of what a program computes decides nothing, and the solver would look for values of all of it.

use batsat::{Callbacks, Solver, SolverInterface, SolverOpts, lbool};
use millrace_pipeline::Bits;
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::ops::{BitXor, Not};
use std::time::Instant;

/// Most gates of one analysis. Beyond, results are unknown bits: less is known, and nothing is wrong.
const MAX_GATES: usize = 1 << 21;
/// Most gates and unknown bits of one analysis. Beyond, literals mean nothing: [`Circuit::is_spent`].
const MAX_LITERALS: usize = 1 << 22;
/// After so many of them the clock is looked at.
const LITERALS_A_LOOK: usize = 1 << 14;
/// Steps of the solver for one question.
const MAX_STEPS: u64 = 200_000;
/// Bits of a factor up to which products are made of gates.
const MAX_PRODUCT: usize = 32;

/// A bit, or its opposite: the number of what it is made of, and in the lowest place whether it is the opposite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lit(u32);

impl Lit {
    /// What it is made of.
    fn made(self) -> usize {
        (self.0 >> 1) as usize
    }

    /// Whether it is the opposite of that.
    fn is_opposite(self) -> bool {
        self.0 & 1 != 0
    }
}

impl Not for Lit {
    type Output = Lit;

    fn not(self) -> Lit {
        Lit(self.0 ^ 1)
    }
}

impl BitXor<bool> for Lit {
    type Output = Lit;

    fn bitxor(self, opposite: bool) -> Lit {
        Lit(self.0 ^ u32::from(opposite))
    }
}

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

/// Gates, and the solver that has the clauses of those that questions depend on.
pub(crate) struct Circuit {
    solver: Solver<Patience>,
    made: Vec<Made>,
    /// What the solver knows of them.
    asked: Vec<Option<batsat::Lit>>,
    gates: FxHashMap<(Gate, Lit, Lit), Lit>,
    /// Assumptions that were found to exclude each other, and those that can hold together.
    answers: FxHashMap<Vec<Lit>, Answer>,
    end: Option<Instant>,
    is_spent: bool,
}

/// What a literal is made of.
#[derive(Clone, Copy)]
enum Made {
    /// A bit that is 1.
    One,
    /// A bit of which nothing is known.
    Unknown,
    Gate(Gate, Lit, Lit),
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

/// The literal that always holds.
const YES: Lit = Lit(0);

impl Circuit {
    pub(crate) fn new() -> Circuit {
        let mut solver = Solver::new(SolverOpts::default(), Patience(Cell::new(MAX_STEPS), Cell::new(None)));
        let yes = batsat::Lit::new(solver.new_var_default(), true);
        solver.add_clause_reuse(&mut vec![yes]);
        Circuit {
            solver,
            made: vec![Made::One],
            asked: vec![Some(yes)],
            gates: FxHashMap::default(),
            answers: FxHashMap::default(),
            end: None,
            is_spent: false,
        }
    }

    /// Whether there were to be more literals than there may be, or the time was over: literals made since then mean nothing.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent
    }

    /// No question takes longer than until then, and no literals come after that.
    pub(crate) fn end_at(&mut self, end: Instant) {
        self.end = Some(end);
        self.solver.cb_mut().1.set(Some(end));
    }

    /// How many variables the solver has.
    pub(crate) fn size(&self) -> u32 {
        self.solver.num_vars()
    }

    pub(crate) fn constant(&self, value: bool) -> Lit {
        YES ^ !value
    }

    /// What a literal always is.
    pub(crate) fn known(&self, lit: Lit) -> Option<bool> {
        (lit.made() == YES.made()).then(|| lit == YES)
    }

    fn make(&mut self, made: Made) -> Lit {
        let number = self.made.len();
        if number.is_multiple_of(LITERALS_A_LOOK) {
            self.is_spent |= self.end.is_some_and(|end| Instant::now() > end);
        }
        self.is_spent |= number >= MAX_LITERALS;
        if self.is_spent {
            return YES;
        }
        self.made.push(made);
        self.asked.push(None);
        Lit(2 * number as u32)
    }

    /// A bit of which nothing is known.
    pub(crate) fn fresh(&mut self) -> Lit {
        self.make(Made::Unknown)
    }

    pub(crate) fn fresh_word(&mut self, width: usize) -> Word {
        (0..width).map(|_| self.fresh()).collect()
    }

    /// Of these literals one holds.
    pub(crate) fn require(&mut self, any: &[Lit]) {
        let mut any: Vec<batsat::Lit> = any.iter().map(|lit| self.ask(*lit)).collect();
        self.solver.add_clause_reuse(&mut any);
    }

    /// What the solver knows a literal by: it gets the clauses of all gates that it depends on.
    fn ask(&mut self, lit: Lit) -> batsat::Lit {
        let mut open = vec![lit.made()];
        while let Some(at) = open.pop() {
            if self.asked[at].is_some() {
                continue;
            }
            let Made::Gate(gate, a, b) = self.made[at] else {
                self.asked[at] = Some(batsat::Lit::new(self.solver.new_var_default(), true));
                continue;
            };
            let known = |lit: Lit| Some(self.asked[lit.made()]? ^ lit.is_opposite());
            let (Some(a), Some(b)) = (known(a), known(b)) else {
                open.extend([at, a.made(), b.made()]);
                continue;
            };
            let gate_lit = batsat::Lit::new(self.solver.new_var_default(), true);
            self.asked[at] = Some(gate_lit);
            let clauses: &[&[batsat::Lit]] = match gate {
                Gate::And => &[&[!gate_lit, a], &[!gate_lit, b], &[gate_lit, !a, !b]],
                Gate::Xor => {
                    &[&[!gate_lit, a, b], &[!gate_lit, !a, !b], &[gate_lit, !a, b], &[gate_lit, a, !b]]
                }
            };
            for clause in clauses {
                self.solver.add_clause_reuse(&mut clause.to_vec());
            }
        }
        self.asked[lit.made()].map_or(batsat::Lit::UNDEF, |asked| asked ^ lit.is_opposite())
    }

    /// A gate of two inputs that are not constant.
    fn gate(&mut self, gate: Gate, a: Lit, b: Lit) -> Lit {
        let (a, b) = if a < b { (a, b) } else { (b, a) };
        if let Some(made) = self.gates.get(&(gate, a, b)) {
            return *made;
        }
        if self.gates.len() >= MAX_GATES {
            return self.fresh();
        }
        let made = self.make(Made::Gate(gate, a, b));
        if !self.is_spent {
            self.gates.insert((gate, a, b), made);
        }
        made
    }

    pub(crate) fn and(&mut self, a: Lit, b: Lit) -> Lit {
        match (self.known(a), self.known(b)) {
            (Some(false), _) | (_, Some(false)) => !YES,
            (Some(true), _) => b,
            (_, Some(true)) => a,
            _ if a == b => a,
            _ if a == !b => !YES,
            _ => self.gate(Gate::And, a, b),
        }
    }

    pub(crate) fn or(&mut self, a: Lit, b: Lit) -> Lit {
        !self.and(!a, !b)
    }

    pub(crate) fn xor(&mut self, a: Lit, b: Lit) -> Lit {
        match (self.known(a), self.known(b)) {
            (Some(value), _) => b ^ value,
            (_, Some(value)) => a ^ value,
            _ if a == b => !YES,
            _ if a == !b => YES,
            // The signs go to the result.
            _ => {
                let flip = a.is_opposite() != b.is_opposite();
                self.gate(Gate::Xor, a ^ a.is_opposite(), b ^ b.is_opposite()) ^ flip
            }
        }
    }

    pub(crate) fn choose(&mut self, cond: Lit, then: Lit, els: Lit) -> Lit {
        if then == els {
            return then;
        }
        let (then, els) = (self.and(cond, then), self.and(!cond, els));
        self.or(then, els)
    }

    pub(crate) fn any(&mut self, lits: impl IntoIterator<Item = Lit>) -> Lit {
        lits.into_iter().fold(!YES, |any, lit| self.or(any, lit))
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
        self.add(a, &not, YES)
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
            let mut term = vec![!YES; at];
            for of in &a[..a.len() - at] {
                term.push(self.and(*of, *bit));
            }
            sum = self.add(&sum, &term, !YES).0;
        }
        Some(sum)
    }

    pub(crate) fn equal(&mut self, a: &[Lit], b: &[Lit]) -> Lit {
        let mut all = YES;
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
        // Any of the other bits is a distance of all of the word.
        let (near, far) = by.split_at(by.len().min(width.next_power_of_two().ilog2() as usize));
        let mut word = word.to_vec();
        for (at, bit) in near.iter().enumerate() {
            let distance = 1 << at;
            let moved: Word = (0..width)
                .map(|to| {
                    let from = if left { to.checked_sub(distance) } else { Some(to + distance) };
                    from.and_then(|from| word.get(from)).copied().unwrap_or(fill)
                })
                .collect();
            word = self.choose_word(*bit, &moved, &word);
        }
        let is_far = self.any(far.iter().copied());
        self.choose_word(is_far, &vec![fill; width], &word)
    }

    /// Whether all of these can hold together.
    pub(crate) fn holds(&mut self, all: &[Lit]) -> Answer {
        let mut wanted: Vec<Lit> = all.iter().copied().filter(|lit| *lit != YES).collect();
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.contains(&!YES) {
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
        let all: Vec<batsat::Lit> = all.iter().map(|lit| self.ask(*lit)).collect();
        self.solver.cb_mut().0.set(MAX_STEPS);
        match self.solver.solve_limited(&all) {
            found if found == lbool::TRUE => Answer::Yes,
            found if found == lbool::FALSE => Answer::No,
            _ => Answer::Unknown,
        }
    }

    /// The value of a bit in the latest example; of one that no question depends on, any.
    pub(crate) fn value(&self, lit: Lit) -> bool {
        let asked = self.asked[lit.made()];
        asked.is_some_and(|asked| self.solver.value_lit(asked) == lbool::TRUE) != lit.is_opposite()
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
        for word in [&sum, &difference, &product, &left, &right, &vec![less, signed, equal]] {
            for bit in word {
                let _ = circuit.ask(*bit);
            }
        }
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

    /// What no condition depends on makes no question harder: only the gates of conditions come to the solver.
    #[test]
    fn the_solver_has_the_gates_of_questions_alone() {
        let mut circuit = Circuit::new();
        let (x, y) = (circuit.fresh_word(2048), circuit.fresh_word(2048));
        let mut sum = circuit.add(&x, &y, circuit.constant(false)).0;
        for _ in 0..20 {
            sum = circuit.add(&sum, &x, circuit.constant(false)).0;
        }
        let (small, zero) = (circuit.fresh_word(8), circuit.number(8, 0));
        let same = circuit.equal(&small, &zero);
        assert_eq!(circuit.holds(&[same]), Answer::Yes);
        assert!(circuit.size() < 20, "{} variables", circuit.size());
        let odd = sum[0];
        assert_eq!(circuit.holds(&[same, odd]), Answer::Yes);
        assert!(circuit.value(odd) && circuit.size() < 100, "{} variables", circuit.size());
    }

    /// Literals end at the limit, and what is wider than can be is not begun.
    #[test]
    fn a_circuit_is_spent_at_its_limit() {
        let mut circuit = Circuit::new();
        let x = circuit.fresh_word(1 << 16);
        while !circuit.is_spent() {
            let by = circuit.fresh_word(1 << 16);
            circuit.shift(&x, &by, true, YES);
        }
        assert_eq!(circuit.made.len(), MAX_LITERALS);
        assert!(circuit.gates.len() <= MAX_GATES);
    }
}
