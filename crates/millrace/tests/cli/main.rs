//! The command line from outside: exit status, standard output, standard error.

mod check;
mod common;
mod entries;
mod observe;
mod run;
mod stf;
mod trace;
