//! Standard output and standard error. A reader that has gone is no reason to fail, let alone to panic.

use std::fmt::Display;
use std::io::Write;

/// Text on standard output.
pub(crate) fn say(text: impl Display) {
    let mut stdout = std::io::stdout().lock();
    let _ = write!(stdout, "{text}").and_then(|()| stdout.flush());
}

/// A line on standard output.
pub(crate) fn say_line(text: impl Display) {
    say(format_args!("{text}\n"));
}

/// Text on standard error.
pub(crate) fn tell(text: impl Display) {
    let _ = write!(std::io::stderr().lock(), "{text}");
}

/// A line on standard error.
pub(crate) fn tell_line(text: impl Display) {
    tell(format_args!("{text}\n"));
}
