//! The command line from outside: exit status, standard output, standard error.

mod check;
mod common;
mod entries;
mod grpc;
mod image;
mod observe;
mod run;
mod stand_in;
mod stf;
mod swap;
mod trace;
