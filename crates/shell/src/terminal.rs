//! The shell on a terminal: line editing, history, completion.

use crate::complete::complete;
use crate::execute::{End, PROMPT, Shell, one};
use crate::schema::Schema;
use crate::trouble::Trouble;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::io::Write;

/// Runs commands as they are typed, until the user ends it.
///
/// # Errors
/// The switch is lost, or the terminal breaks.
pub fn terminal(shell: &mut Shell, out: &mut dyn Write) -> Result<(), Trouble> {
    let config = Config::builder().completion_type(CompletionType::List).build();
    let broken = |error: ReadlineError| Trouble::Output(std::io::Error::other(error.to_string()));
    let history = MemHistory::with_config(&config);
    let mut editor: Editor<Names, MemHistory> = Editor::with_history(config, history).map_err(broken)?;
    loop {
        // A program that was loaded has other names.
        editor.set_helper(Some(Names(std::mem::take(&mut shell.schema))));
        let line = editor.readline(PROMPT);
        if let Some(Names(schema)) = editor.helper_mut().map(std::mem::take) {
            shell.schema = schema;
        }
        match line {
            Ok(line) => {
                if !line.trim().is_empty() {
                    // A history that takes nothing more loses the line.
                    let _ = editor.add_history_entry(line.as_str());
                }
                if one(shell, &line, out)? == End::Now {
                    return Ok(());
                }
                out.flush()?;
            }
            // Control-C gives up the line.
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(broken(error)),
        }
    }
}

/// The names to complete.
#[derive(Default)]
struct Names(Schema);

impl Completer for Names {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, found) = complete(&self.0, line.get(..at).unwrap_or(line));
        let follows = line.get(at..).unwrap_or("");
        Ok((start, candidates(found, follows)))
    }
}

/// What can stand at the cursor. A blank follows the only one, as what comes next is another word, unless one follows.
fn candidates(found: Vec<String>, follows: &str) -> Vec<Pair> {
    let is_whole = found.len() == 1 && !follows.starts_with(char::is_whitespace);
    let blank = if is_whole { " " } else { "" };
    found.into_iter().map(|name| Pair { replacement: format!("{name}{blank}"), display: name }).collect()
}

impl Hinter for Names {
    type Hint = String;
}

impl Highlighter for Names {}

impl Validator for Names {}

impl Helper for Names {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_follows_a_word_that_is_whole() {
        let replaced = |found: &[&str], follows: &str| -> Vec<String> {
            let found = found.iter().map(|name| (*name).to_owned()).collect();
            candidates(found, follows).into_iter().map(|pair| pair.replacement).collect()
        };
        assert_eq!(replaced(&["table_add"], ""), ["table_add "]);
        assert_eq!(replaced(&["table_add"], " route"), ["table_add"]);
        assert_eq!(replaced(&["In.a", "In.b"], ""), ["In.a", "In.b"]);
        assert!(replaced(&[], "").is_empty());
        // What is shown in a list has none.
        assert_eq!(candidates(vec!["table_add".into()], "")[0].display, "table_add");
    }
}
