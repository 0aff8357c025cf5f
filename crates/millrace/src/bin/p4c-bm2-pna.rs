//! `p4c-bm2-pna`: millrace under that name, for scripts that call it so.

#[path = "../launch.rs"]
mod launch;

fn main() -> std::process::ExitCode {
    launch::launch("p4c-bm2-pna")
}
