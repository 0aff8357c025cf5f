//! The shell: one command after the other.

use crate::catalogue;
use crate::schema::Schema;
use crate::trouble::Trouble;
use millrace_commands::{Command, Topic};

use millrace_syntax::read_text;
use millrace_thrift_api::Client;
use std::io::{self, BufRead, Write};
use std::ops::ControlFlow;
use std::path::Path;

/// Most bytes of a file that describes a program: what the switch takes.
pub(crate) const MAX_JSON_BYTES: u64 = 64 << 20;

/// What stands before each command.
pub const PROMPT: &str = "RuntimeCmd: ";

/// A connection to a switch, and what its program has.
#[derive(Debug)]
pub struct Shell {
    pub(crate) client: Client,
    pub(crate) schema: Schema,
}

/// Whether there is more to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The command was the last one.
    Now,
    /// Others may follow.
    Later,
}

impl Shell {
    /// Connects to a switch.
    ///
    /// # Errors
    /// There is none.
    pub fn connect(host: &str, port: u16) -> io::Result<Shell> {
        Ok(Shell { client: Client::connect((host, port))?, schema: Schema::default() })
    }

    /// Reads the description of the program: a file, which should be that of the switch, or what the switch gives.
    ///
    /// # Errors
    /// It cannot be had, or is none.
    pub fn load(&mut self, json: Option<&Path>, out: &mut dyn Write) -> Result<(), Trouble> {
        let text = match json {
            None => {
                writeln!(out, "Obtaining JSON from switch...")?;
                let text = self.client.bm_get_config()?;
                writeln!(out, "Done")?;
                text
            }
            Some(path) => {
                let text = read_text(path, MAX_JSON_BYTES)
                    .map_err(|error| Trouble::wrong(format!("{}: {error}", path.display())))?;
                self.compare(&text, out)?;
                text
            }
        };
        self.schema = Schema::read(&text)?;
        Ok(())
    }

    /// Runs one line; what it shows goes to `out`.
    ///
    /// # Errors
    /// Why it did nothing.
    pub fn run(&mut self, line: &str, out: &mut dyn Write) -> Result<End, Trouble> {
        let line = line.trim();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if name.is_empty() || name.starts_with('#') {
            return Ok(End::Later);
        }
        if matches!(name, "EOF" | "exit" | "quit") {
            return Ok(End::Now);
        }
        if matches!(name, "help" | "?") {
            catalogue::help(rest.trim(), out)?;
            return Ok(End::Later);
        }
        if !catalogue::is_known(name) {
            let near = millrace_commands::nearest(name, catalogue::names());
            let near = near.map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"));
            return Err(Trouble::Refused(format!("*** Unknown syntax: {line}{near}")));
        }
        if !self.manage(name, rest, out)? {
            let mut done = Ok(());
            millrace_commands::read(line, |read| {
                done = match read {
                    Ok(read) => self.execute(&read.command, out),
                    Err(refusal) => Err(refusal.into()),
                };
                ControlFlow::Break(())
            });
            done?;
        }
        Ok(End::Later)
    }

    fn execute(&mut self, command: &Command<'_, '_>, out: &mut dyn Write) -> Result<(), Trouble> {
        match command.topic() {
            Topic::Tables => self.change_table(command, out),
            Topic::TableViews => self.show_table(command, out),
            Topic::Profiles => self.profile_command(command, out),
            Topic::Replication => self.replication_command(command, out),
            Topic::Cells => self.stateful_command(command, out),
            Topic::Switch => self.switch_command(command, out),
        }
    }
}

/// Runs the lines of a script, until it ends or says so. What a command shows, and why it did nothing, goes to `out` after
/// the prompt, as in bmv2.
///
/// # Errors
/// The switch is lost, or input or output breaks.
pub fn script(shell: &mut Shell, mut from: impl BufRead, out: &mut dyn Write) -> Result<(), Trouble> {
    let mut line = Vec::new();
    loop {
        write!(out, "{PROMPT}")?;
        out.flush()?;
        line.clear();
        if from.read_until(b'\n', &mut line)? == 0 {
            writeln!(out)?;
            return Ok(());
        }
        if one(shell, &String::from_utf8_lossy(&line), out)? == End::Now {
            writeln!(out)?;
            return Ok(());
        }
    }
}

/// Runs a line and says why it did nothing.
pub(crate) fn one(shell: &mut Shell, line: &str, out: &mut dyn Write) -> Result<End, Trouble> {
    match shell.run(line, out) {
        Err(trouble @ (Trouble::Wrong(_) | Trouble::Refused(_))) => {
            writeln!(out, "{trouble}")?;
            Ok(End::Later)
        }
        other => other,
    }
}
