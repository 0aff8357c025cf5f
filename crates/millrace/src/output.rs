//! Standard output and standard error. A reader that has gone is no reason to fail, let alone to panic. What comes from outside
//! cannot control the terminal ([`millrace_printable`]).

use clap::ValueEnum;
use millrace_printable::{printable, printable_coloured};
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

/// When messages have colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// How the command says things.
#[derive(Clone, Copy, Debug, Default)]
struct Manner {
    colour: Colour,
    is_quiet: bool,
}

static MANNER: OnceLock<Manner> = OnceLock::new();

/// How things are said from now on; the first call counts.
pub(crate) fn set_manner(colour: Colour, is_quiet: bool) {
    let _ = MANNER.set(Manner { colour, is_quiet });
}

fn manner() -> Manner {
    MANNER.get().copied().unwrap_or_default()
}

/// Whether only results and errors are said.
pub(crate) fn is_quiet() -> bool {
    manner().is_quiet
}

/// Whether messages on standard error have colours.
pub(crate) fn has_colour() -> bool {
    match manner().colour {
        Colour::Always => true,
        Colour::Never => false,
        // An empty variable is as none (no-color.org).
        Colour::Auto => {
            std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
        }
    }
}

/// Text on standard output.
pub(crate) fn say(text: impl Display) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(printable(&text.to_string()).as_bytes()).and_then(|()| stdout.flush());
}

/// A line on standard output.
pub(crate) fn say_line(text: impl Display) {
    say(format_args!("{text}\n"));
}

/// Text on standard error.
pub(crate) fn tell(text: impl Display) {
    let _ = std::io::stderr().lock().write_all(printable(&text.to_string()).as_bytes());
}

/// Text on standard error that may have colours.
pub(crate) fn tell_coloured(text: impl Display) {
    let _ = std::io::stderr().lock().write_all(printable_coloured(&text.to_string()).as_bytes());
}

/// A line on standard error.
pub(crate) fn tell_line(text: impl Display) {
    tell(format_args!("{text}\n"));
}

/// A line on standard error of what goes as it should, or may not: not with `--quiet`.
pub(crate) fn note_line(text: impl Display) {
    if !is_quiet() {
        tell_line(text);
    }
}

/// Replaces the last line of the terminal.
pub(crate) fn replace_line(text: &str) {
    let _ = write!(std::io::stderr().lock(), "\r\x1b[2K{}", printable(text));
}
