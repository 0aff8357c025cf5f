//! The runtime command line of bmv2 (`simple_switch_CLI`), for this switch or bmv2, over Thrift.
//!
//! Commands are those of [`millrace_commands`], which also reads them; names and widths come from the description of
//! the program that the switch gives. What is shown is laid out as bmv2's tools do, so that scripts which read it work.
//!
//! ```no_run
//! let mut shell = millrace_shell::Shell::connect("localhost", 9090).unwrap();
//! shell.load(None, &mut std::io::stdout()).unwrap();
//! millrace_shell::script(&mut shell, std::io::stdin().lock(), &mut std::io::stdout()).unwrap();
//! ```
//!
//! It never reaches a switch in another way than its clients do.

mod catalogue;
mod complete;
mod execute;
mod management;
mod multicast;
mod profiles;
mod schema;
mod show;
mod stateful;
mod tables;
mod terminal;
mod trouble;
mod words;

pub use execute::{End, PROMPT, Shell, script};
pub use terminal::terminal;
pub use trouble::Trouble;
