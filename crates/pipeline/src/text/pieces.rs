//! Printing of parts of a program, for texts of what is made of it.

use super::names::written;
use super::print::Printer;
use crate::*;
use foldhash::{HashMap, HashMapExt};

/// An instruction of a program as [`print()`](super::print()) writes it.
pub fn print_inst(program: &Program, inst: &Inst) -> String {
    printer(program).inst(inst)
}

/// An expression of a program as [`print()`](super::print()) writes it.
pub fn print_expr(program: &Program, expr: &Expr) -> String {
    printer(program).expr(expr)
}

/// A matcher of a `select` as [`print()`](super::print()) writes it.
pub fn print_matcher(program: &Program, matcher: &Matcher) -> String {
    printer(program).matcher(matcher)
}

/// A name, in quotes where it would be read as something else.
pub fn print_name(name: &str) -> String {
    written(name)
}

/// A printer that names no actions.
fn printer(program: &Program) -> Printer<'_> {
    Printer { program, out: String::new(), times: HashMap::new() }
}
