//! Linear programs, with bounds that do not depend on how exactly they were solved.
//!
//! A [`Program`] maximises a sum under inequalities, all with whole numbers. It is solved in floating point, of which only the multipliers
//! of the inequalities (the dual solution) are kept, and these need not be right: for *any* multipliers y ≥ 0 and each feasible x,
//! c·x = y·Ax + (c − yA)·x ≤ y·b + Σ max over x_j of (c − yA)_j x_j, the last over the range in which x_j must be anyway. That is
//! calculated in whole numbers of any size, so it is a bound of the program; how good it is shows how well the program was solved
//! (Neumaier and Shcherbina, Safe bounds in linear and mixed-integer linear programming, 2004).

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, SupportedConeT};
use num_bigint::BigInt;

use crate::refusal::Refusal;
use crate::units::{Data, Ps, Rate};

/// The largest number of variables of a linear program.
pub const MAX_VARIABLES: usize = 20_000;
/// The largest number of its inequalities.
pub const MAX_INEQUALITIES: usize = 100_000;
/// The largest number of coefficients in these.
pub const MAX_COEFFICIENTS: usize = 2_000_000;
/// The longest time that solving one may take, in seconds.
pub const MAX_SECONDS: f64 = 8.0;
/// Steps of the solver; it needs twenty or so.
const MAX_STEPS: u32 = 200;

/// What a variable counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Picoseconds.
    Time,
    /// 10⁻¹⁸ bit.
    Data,
}

struct Variable {
    kind: Kind,
    least: i128,
    most: i128,
}

/// Σ coefficient · variable ≤ bound.
struct Inequality {
    kind: Kind,
    terms: Vec<(usize, i128)>,
    bound: i128,
}

/// A linear program over times and data: how large can a sum of times be?
pub(crate) struct Program {
    variables: Vec<Variable>,
    inequalities: Vec<Inequality>,
    objective: Vec<(usize, i128)>,
    /// The largest rate, by which data becomes time as the solver sees it.
    rate: Rate,
}

/// The digits after the point of a multiplier, in bits: a multiplier of data is as small as the inverse of a rate, 2⁻⁶⁴.
const FRACTION: usize = 192;
/// A time unit of the solver, in picoseconds.
const TIME_UNIT: f64 = 1e6;

impl Program {
    pub(crate) fn new(rate: Rate) -> Program {
        Program { variables: Vec::new(), inequalities: Vec::new(), objective: Vec::new(), rate }
    }

    /// A variable that can only be in this range, whatever else.
    pub(crate) fn variable(&mut self, kind: Kind, least: i128, most: i128) -> usize {
        self.variables.push(Variable { kind, least, most });
        self.variables.len() - 1
    }

    /// Says that Σ coefficient · variable ≤ bound. A term without a variable is 0; several terms may have the same variable.
    pub(crate) fn at_most(&mut self, kind: Kind, terms: &[(Option<usize>, i128)], bound: i128) {
        let mut sorted =
            terms.iter().filter_map(|&(variable, by)| variable.map(|it| (it, by))).collect::<Vec<_>>();
        sorted.sort_unstable_by_key(|&(variable, _)| variable);
        let mut merged: Vec<(usize, i128)> = Vec::with_capacity(sorted.len());
        for (variable, by) in sorted {
            match merged.last_mut().filter(|last| last.0 == variable) {
                Some(last) => last.1 += by,
                None => merged.push((variable, by)),
            }
        }
        merged.retain(|&(_, by)| by != 0);
        if !merged.is_empty() {
            self.inequalities.push(Inequality { kind, terms: merged, bound });
        }
    }

    /// What is to be maximised, a time.
    pub(crate) fn maximise(&mut self, terms: &[(usize, i128)]) {
        self.objective = terms.to_vec();
    }

    /// An upper bound of the maximum, in picoseconds.
    pub(crate) fn bound(&self) -> Result<Ps, Refusal> {
        let coefficients = self.inequalities.iter().map(|it| it.terms.len()).sum::<usize>();
        if self.variables.len() > MAX_VARIABLES
            || self.inequalities.len() > MAX_INEQUALITIES
            || coefficients > MAX_COEFFICIENTS
        {
            return Err(Refusal::TooMuch("the linear program is too large"));
        }
        let multipliers = self.solve()?;
        self.certify(&multipliers).ok_or(Refusal::TooMuch("the linear program was not solved well enough"))
    }

    /// The unit of a variable or an inequality for the solver.
    fn unit(&self, kind: Kind) -> f64 {
        match kind {
            Kind::Time => TIME_UNIT,
            Kind::Data => TIME_UNIT * self.rate as f64,
        }
    }

    /// Multipliers for the inequalities in the solver's units.
    fn solve(&self) -> Result<Vec<f64>, Refusal> {
        let (rows, columns) = (self.inequalities.len(), self.variables.len());
        let (mut at_rows, mut at_columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let mut bounds = Vec::with_capacity(rows);
        for (row, it) in self.inequalities.iter().enumerate() {
            let unit = self.unit(it.kind);
            for &(column, by) in &it.terms {
                at_rows.push(row);
                at_columns.push(column);
                values.push(by as f64 * self.unit(self.variables[column].kind) / unit);
            }
            bounds.push(it.bound as f64 / unit);
        }
        let mut costs = vec![0.0; columns];
        for &(column, by) in &self.objective {
            costs[column] -= by as f64;
        }
        let matrix = CscMatrix::new_from_triplets(rows, columns, at_rows, at_columns, values);
        let none = CscMatrix::zeros((columns, columns));
        let settings = DefaultSettingsBuilder::default()
            .verbose(false)
            .max_iter(MAX_STEPS)
            .time_limit(MAX_SECONDS)
            .tol_gap_abs(1e-10)
            .tol_gap_rel(1e-10)
            .tol_feas(1e-10)
            .build()
            .map_err(|_| Refusal::TooMuch("the solver was not set up"))?;
        let cones = [SupportedConeT::NonnegativeConeT(rows)];
        let mut solver = DefaultSolver::new(&none, &costs, &matrix, &bounds, &cones, settings)
            .map_err(|_| Refusal::TooMuch("the solver was not set up"))?;
        solver.solve();
        Ok(solver.solution.z)
    }

    /// What these multipliers prove.
    fn certify(&self, multipliers: &[f64]) -> Option<Ps> {
        let mut left = vec![BigInt::ZERO; self.variables.len()];
        for &(variable, by) in &self.objective {
            left[variable] += BigInt::from(by) << FRACTION;
        }
        let mut bound = BigInt::ZERO;
        for (it, &multiplier) in self.inequalities.iter().zip(multipliers) {
            let multiplier = fixed(multiplier * TIME_UNIT / self.unit(it.kind))?;
            if multiplier == BigInt::ZERO {
                continue;
            }
            bound += &multiplier * it.bound;
            for &(variable, by) in &it.terms {
                left[variable] -= &multiplier * by;
            }
        }
        for (left, variable) in left.iter().zip(&self.variables) {
            bound += (left * variable.least).max(left * variable.most);
        }
        // Up to the next picosecond: −⌊−x⌋.
        Ps::try_from(-((-bound) >> FRACTION)).ok()
    }
}

/// A multiplier with [`FRACTION`] bits after the point, none below 0. None if it is no number.
fn fixed(value: f64) -> Option<BigInt> {
    if !value.is_finite() {
        return None;
    }
    if value <= 0.0 {
        return Some(BigInt::ZERO);
    }
    // Its 53 bits as a whole number, and the power of 2 that goes with it.
    let bits = value.to_bits();
    let exponent = (bits >> 52) as i64 & 0x7ff;
    let fraction = bits & ((1 << 52) - 1);
    let (whole, power) =
        if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    let shift = power + FRACTION as i64;
    let whole = BigInt::from(whole);
    Some(if shift >= 0 { whole << shift as usize } else { whole >> (-shift) as usize })
}

/// Data in a program, as a whole number.
pub(crate) fn clamp(value: Data) -> i128 {
    value.clamp(i128::MIN / 4, i128::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2x + 3y ≤ 14 us, y ≥ 1 us; x and y are 0 to 100 us. The largest x is 5.5 us.
    fn program() -> Program {
        let us = 1_000_000;
        let mut program = Program::new(1);
        let x = program.variable(Kind::Time, 0, 100 * us);
        let y = program.variable(Kind::Time, 0, 100 * us);
        program.at_most(Kind::Time, &[(Some(x), 2), (Some(y), 3)], 14 * us);
        program.at_most(Kind::Time, &[(Some(y), -1)], -us);
        program.maximise(&[(x, 1)]);
        program
    }

    #[test]
    fn a_solved_program_has_its_maximum() {
        let bound = program().bound().unwrap();
        assert!((5_500_000..5_500_010).contains(&bound), "{bound}");
    }

    #[test]
    fn any_multipliers_give_a_bound() {
        // The right ones are 1/2 and 3/2. 1/4 and 0: 14 / 4 + (1 − 2/4) · 100, with y best at 0. None: x alone. Negative ones count as none.
        assert_eq!(program().certify(&[0.5, 1.5]), Some(5_500_000));
        assert_eq!(program().certify(&[0.25, 0.0]), Some(14_000_000 / 4 + 50_000_000));
        assert_eq!(program().certify(&[0.0, 0.0]), Some(100_000_000));
        assert_eq!(program().certify(&[-1.0, -1.0]), Some(100_000_000));
        assert_eq!(program().certify(&[f64::NAN, 0.0]), None);
    }

    #[test]
    fn a_multiplier_keeps_its_value() {
        assert_eq!(fixed(1.0), Some(BigInt::from(1) << FRACTION));
        assert_eq!(fixed(0.75), Some(BigInt::from(3) << (FRACTION - 2)));
        assert_eq!(fixed(f64::MIN_POSITIVE), Some(BigInt::ZERO));
        assert_eq!(fixed(f64::INFINITY), None);
    }
}
