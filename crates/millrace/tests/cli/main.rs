//! The command line from outside: exit status, standard output, standard error.

mod chassis;
mod check;
mod common;
mod ctl;
mod ctl_grpc;
mod entries;
mod exposure;
mod faults;
mod grpc;
mod image;
mod inputs;
mod links;
mod live;
mod log;
mod observe;
mod plugins;
mod privileges;
mod run;
mod stand_in;
mod stand_in_live;
mod stf;
mod swap;
mod tc;
mod trace;
mod usage;
mod workers;
