//! The `millrace` command: P4 source in, running switch out.
//!
//! Exit status 0: done, and nothing wrong. 1: the program, the entries or the test is wrong, or something could not be
//! read or opened; the reasons are on standard error. 2: wrong usage. With `--json` one JSON object is on standard output,
//! whatever happened.

mod added_ports;
mod attachment;
mod bench;
mod bounds;
mod capacity;
mod capture;
mod captures;
mod chassis;
mod check;
mod cli;
mod compile;
mod cores;
mod ctl;
mod demo;
mod design_folder;
mod device_args;
mod entries;
mod es;
mod examples;
mod findings;
mod frame;
mod grpc;
mod inputs;
mod link;
mod log_file;
mod logging;
mod mode;
mod nanomsg;
mod network;
mod node;
mod observe;
mod output;
mod p4info;
mod plugins;
mod privileges;
mod progress;
mod registers;
mod rtl;
mod run;
mod running;
mod shell;
mod signals;
mod snmp;
mod source;
mod stand_in;
mod statistics;
mod stf;
mod stories;
mod swap;
mod tc;
mod terminal;
mod thrift;
mod trace;
mod trace_cycles;
mod usage;

use crate::output::say_line;
use cli::{Cli, Command};
use findings::{Failure, Findings};
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(status) = stand_in::by_name(std::env::args_os()) {
        return status;
    }
    execute(std::env::args_os().collect())
}

/// Runs a command line, the name of the program first.
fn execute(args: Vec<OsString>) -> ExitCode {
    let cli = Cli::read(args);
    let json = cli.command.json();
    output::set_manner(cli.color, cli.quiet);
    let mut findings = Findings::new();
    let done = match cli.command {
        Command::Check(args) => check::check(&args, &mut findings),
        Command::P4info(args) => p4info::p4info(&args, &mut findings),
        Command::Compile(args) => compile::compile(&args, &mut findings),
        Command::Stf(args) => stf::stf(&args, &mut findings),
        Command::Run(args) => run::run(&args, &mut findings),
        Command::Swap(args) => swap::swap(&args, &mut findings),
        Command::Shell(args) => shell::shell(&args),
        Command::Trace(args) => trace::trace(&args, &mut findings),
        Command::Bench(args) => bench::bench(&args, &mut findings),
        Command::Bounds(args) => bounds::bounds(&args, &mut findings),
        Command::Rtl(args) => rtl::rtl(&args, &mut findings),
        Command::Calibrate(args) => bounds::calibrate(&args),
        Command::Top(args) => observe::top(&args),
        Command::Capture(args) => observe::capture(&args),
        Command::Log(args) => observe::log(&args),
        Command::Queue(args) => observe::queue(&args),
        Command::Plugin(args) => observe::plugin(&args),
        Command::Tc(args) => tc::tc(&args),
        Command::Mode(args) => mode::mode(&args),
        Command::Link(args) => link::link(&args, &mut findings),
        Command::Node(args) => node::node(&args),
        Command::Chassis(args) => chassis::chassis(&args),
        Command::Ctl(args) => ctl::ctl(&args, &mut findings),
        Command::Network(args) => network::network(&args),
        Command::Es(args) => es::es(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.show();
            if json && !matches!(failure, Failure::Told) {
                say_line(findings.as_json(&failure));
            }
            failure.exit_code()
        }
    }
}
