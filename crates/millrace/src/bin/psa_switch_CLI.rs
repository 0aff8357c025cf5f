//! `psa_switch_CLI`: millrace under that name, for scripts that call it so.

#![allow(non_snake_case, reason = "the name of bmv2's tool")]

#[path = "../launch.rs"]
mod launch;

fn main() -> std::process::ExitCode {
    launch::launch("psa_switch_CLI")
}
