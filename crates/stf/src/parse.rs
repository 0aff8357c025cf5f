//! From text to statements.

use crate::ast::{Comparison, Counted, Index, MatchValue, Named, Statement, Test, Word};
use crate::pattern::Pattern;
use millrace_commands::COMMANDS;
use millrace_commands::{MAX_REFUSALS, Refusal, nearest, value};
use std::ops::Range;

/// Most statements of one test.
pub const MAX_STATEMENTS: usize = 1 << 20;

/// The words that begin a statement, besides runtime commands.
pub const STATEMENTS: [&str; 8] =
    ["add", "check_counter", "expect", "no_packet", "packet", "remove", "setdefault", "wait"];

/// Reads a test.
///
/// # Errors
/// Every line that is not understood, at most [`MAX_REFUSALS`] of them.
pub fn parse(text: &str) -> Result<Test, Vec<Refusal>> {
    let mut test = Test::default();
    let mut refused = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let mut cursor = Cursor { text, at: start, end: start + without_comment(line).trim_end().len() };
        start += line.len();
        cursor.blank();
        if cursor.done() {
            continue;
        }
        let at = cursor.at..cursor.end;
        if test.statements.len() >= MAX_STATEMENTS {
            refused.push(Refusal::new(at, format!("a test has at most {MAX_STATEMENTS} statements")));
            break;
        }
        match statement(&mut cursor) {
            Ok(statement) => test.statements.push((statement, at)),
            Err(refusal) => refused.push(refusal),
        }
        if refused.len() >= MAX_REFUSALS {
            break;
        }
    }
    if refused.is_empty() { Ok(test) } else { Err(refused) }
}

/// The line up to its comment; a `#` in quotes begins none.
fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'#' if !quoted => return &line[..at],
            _ => {}
        }
    }
    line
}

fn statement(cursor: &mut Cursor<'_>) -> Result<Statement, Refusal> {
    let start = cursor.at;
    let keyword = cursor.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let statement = match keyword.to_ascii_lowercase().as_str() {
        "packet" => {
            let port = cursor.port()?;
            let (digits, exact) = cursor.digits()?;
            let all: Option<Vec<u8>> = digits.iter().copied().collect();
            let Some(digits) = all.filter(|_| !exact) else {
                return Err(Refusal::new(start..cursor.end, "a packet that comes in has no `*` and no `$`"));
            };
            if digits.is_empty() || digits.len() % 2 != 0 {
                return Err(Refusal::new(
                    start..cursor.end,
                    "a packet is an even number of hexadecimal digits",
                ));
            }
            Statement::Packet { port, bytes: digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect() }
        }
        "expect" => {
            let port = cursor.port()?;
            cursor.blank();
            if cursor.done() {
                Statement::Expect { port, pattern: None }
            } else {
                let (digits, exact) = cursor.digits()?;
                Statement::Expect { port, pattern: Some(Pattern::new(digits, exact)) }
            }
        }
        "no_packet" => Statement::NoPacket,
        "wait" => Statement::Wait,
        "remove" => {
            let all = cursor.name("`all`")?;
            if !all.text.eq_ignore_ascii_case("all") {
                return Err(Refusal::new(all.at, "`remove all` is all that can be removed"));
            }
            Statement::RemoveAll
        }
        "add" => add(cursor)?,
        "setdefault" => {
            let table = cursor.name("a table")?;
            let action = cursor.name("an action")?;
            Statement::SetDefault { table, action, args: cursor.args()? }
        }
        "check_counter" => check_counter(cursor)?,
        command if COMMANDS.binary_search_by(|(name, ..)| (*name).cmp(command)).is_ok() => {
            cursor.at = cursor.end;
            Statement::Command
        }
        unknown => {
            let known = STATEMENTS.into_iter().chain(COMMANDS.iter().map(|(name, ..)| *name));
            let help = nearest(unknown, known).map(|near| format!("did you mean `{near}`?"));
            let at = if keyword.is_empty() { cursor.here() } else { start..cursor.at };
            return Err(Refusal::new(at, "a statement is expected").with_help_if(help));
        }
    };
    cursor.blank();
    if cursor.done() {
        return Ok(statement);
    }
    Err(Refusal::new(cursor.at..cursor.end, format!("nothing is expected after `{keyword}` here")))
}

fn add(cursor: &mut Cursor<'_>) -> Result<Statement, Refusal> {
    let table = cursor.name("a table")?;
    cursor.blank();
    let priority = match cursor.peek() {
        Some(byte) if byte.is_ascii_digit() => {
            let word = cursor.word("a priority")?;
            let number = word.text.parse::<u32>().ok().filter(|number| *number < i32::MAX as u32);
            let number =
                number.ok_or_else(|| Refusal::new(word.at.clone(), "a priority is a decimal number"))?;
            Some((number, word))
        }
        _ => None,
    };
    let mut matches = Vec::new();
    let action = loop {
        let name = cursor.name("a key field or an action")?;
        cursor.blank();
        match cursor.peek() {
            Some(b':') => {
                cursor.at += 1;
                matches.push(Named { name, value: cursor.match_value()? });
            }
            _ => break name,
        }
    };
    let args = cursor.args()?;
    cursor.blank();
    let label = match cursor.peek() {
        Some(b'=') => {
            cursor.at += 1;
            Some(cursor.name("a label")?.text)
        }
        _ => None,
    };
    Ok(Statement::Add { table, priority, matches, action, args, label })
}

fn check_counter(cursor: &mut Cursor<'_>) -> Result<Statement, Refusal> {
    let counter = cursor.name("a counter")?;
    cursor.expect(b'(')?;
    let word = cursor.word("an index or `$label`")?;
    let index = match word.text.strip_prefix('$') {
        Some(label) => Index::Label(label.to_owned()),
        None => Index::Number(
            value::plain(&word.text).map_err(|error| Refusal::new(word.at.clone(), error.to_string()))?,
        ),
    };
    cursor.expect(b')')?;
    cursor.blank();
    if cursor.done() {
        return Ok(Statement::CheckCounter { counter, index: (index, word.at), check: None });
    }
    let unit = cursor.name("`packets` or `bytes`")?;
    let counted = match unit.text.to_ascii_lowercase().as_str() {
        "packets" => Counted::Packets,
        "bytes" => Counted::Bytes,
        _ => return Err(Refusal::new(unit.at, "`packets` or `bytes` is expected")),
    };
    cursor.blank();
    let start = cursor.at;
    let comparison = match cursor.take_while(|byte| matches!(byte, b'=' | b'!' | b'<' | b'>')) {
        "==" => Comparison::Equal,
        "!=" => Comparison::NotEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        _ if start == cursor.at => {
            return Err(Refusal::new(cursor.here(), "a comparison is expected, as `==`"));
        }
        _ => return Err(Refusal::new(start..cursor.at, "a comparison is expected, as `==`")),
    };
    let number = cursor.word("a number")?;
    let wanted = value::plain(&number.text).map_err(|error| Refusal::new(number.at, error.to_string()))?;
    Ok(Statement::CheckCounter {
        counter,
        index: (index, word.at),
        check: Some((counted, comparison, wanted)),
    })
}

/// A place in a line.
struct Cursor<'t> {
    text: &'t str,
    at: usize,
    end: usize,
}

impl<'t> Cursor<'t> {
    fn done(&self) -> bool {
        self.at >= self.end
    }

    fn peek(&self) -> Option<u8> {
        if self.done() { None } else { self.text.as_bytes().get(self.at).copied() }
    }

    fn blank(&mut self) {
        self.take_while(|byte| byte.is_ascii_whitespace());
    }

    /// ASCII bytes only, so that the place stays between characters.
    fn take_while(&mut self, fits: impl Fn(u8) -> bool) -> &'t str {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii() && fits(byte)) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// The place of what is next, for an error: one character, or the end of the line.
    fn here(&self) -> Range<usize> {
        let next = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
        if self.done() { self.at.saturating_sub(1)..self.at } else { self.at..self.at + next }
    }

    fn expect(&mut self, wanted: u8) -> Result<(), Refusal> {
        self.blank();
        if self.peek() == Some(wanted) {
            self.at += 1;
            return Ok(());
        }
        Err(Refusal::new(self.here(), format!("`{}` is expected here", char::from(wanted))))
    }

    /// Letters, digits and what stands in numbers.
    fn word(&mut self, what: &str) -> Result<Word, Refusal> {
        self.blank();
        let start = self.at;
        let text = self.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'*'));
        if text.is_empty() {
            return Err(Refusal::new(self.here(), format!("{what} is expected here")));
        }
        Ok(Word { text: text.to_owned(), at: start..self.at })
    }

    /// A number, or an address as people write it: `10.0.0.1`, `2001:db8::1`, `06:00:00:00:00:01`.
    fn value(&mut self) -> Result<Word, Refusal> {
        self.blank();
        let start = self.at;
        loop {
            self.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'*'));
            let rest = &self.text.as_bytes()[self.at..self.end];
            match rest {
                // Two dots are a range.
                [b'.', next, ..] if next.is_ascii_digit() => self.at += 1,
                [b':', ..] if self.at > start || rest.starts_with(b"::") => self.at += 1,
                _ => break,
            }
        }
        match self.at > start {
            true => Ok(Word { text: self.text[start..self.at].to_owned(), at: start..self.at }),
            false => Err(Refusal::new(self.here(), "a value is expected here")),
        }
    }

    /// `a.b[2].$valid`, with parts in quotes, and `a$2.b` for `a[2].b`.
    fn name(&mut self, what: &str) -> Result<Word, Refusal> {
        self.blank();
        let start = self.at;
        let mut name = String::new();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    let open = self.at;
                    while self.peek().is_some_and(|byte| byte != b'"') {
                        self.at += 1;
                    }
                    if self.done() {
                        return Err(Refusal::new(open - 1..self.end, "the quotes are not closed"));
                    }
                    name.push_str(&self.text[open..self.at]);
                    self.at += 1;
                }
                _ => {
                    let part =
                        self.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'));
                    if part.is_empty() {
                        return Err(Refusal::new(self.here(), format!("{what} is expected here")));
                    }
                    name.push_str(part);
                }
            }
            if self.peek() == Some(b'[') {
                let open = self.at;
                self.at += 1;
                self.take_while(|byte| byte.is_ascii_digit());
                self.expect(b']')?;
                name.push_str(&self.text[open..self.at]);
            }
            // `isValid()` is the only call in a name.
            if name.ends_with("isValid") && self.text[self.at..self.end].starts_with("()") {
                self.at += 2;
                name.push_str("()");
            }
            if self.peek() != Some(b'.') {
                return Ok(Word { text: name, at: start..self.at });
            }
            self.at += 1;
            name.push('.');
        }
    }

    fn args(&mut self) -> Result<Vec<Named<Word>>, Refusal> {
        self.expect(b'(')?;
        let mut args = Vec::new();
        self.blank();
        while self.peek() != Some(b')') {
            if !args.is_empty() {
                self.expect(b',')?;
            }
            let name = self.name("a parameter")?;
            self.expect(b':')?;
            args.push(Named { name, value: self.value()? });
            self.blank();
        }
        self.expect(b')')?;
        Ok(args)
    }

    fn match_value(&mut self) -> Result<MatchValue, Refusal> {
        let value = self.value()?;
        let rest = &self.text[self.at..self.end];
        let (make, length): (fn(Word, Word) -> MatchValue, usize) = match () {
            () if rest.starts_with('/') => (MatchValue::Prefix, 1),
            () if rest.starts_with("&&&") => (MatchValue::Masked, 3),
            () if rest.starts_with("->") || rest.starts_with("..") => (MatchValue::Range, 2),
            () => return Ok(MatchValue::One(value)),
        };
        self.at += length;
        Ok(make(value, self.value()?))
    }

    fn port(&mut self) -> Result<u32, Refusal> {
        let word = self.word("a port")?;
        word.text.parse().map_err(|_| Refusal::new(word.at, "a port is a decimal number"))
    }

    /// The digits of a packet up to the end of the line, and whether a `$` ends them.
    fn digits(&mut self) -> Result<(Vec<Option<u8>>, bool), Refusal> {
        let mut digits = Vec::new();
        loop {
            self.blank();
            match self.peek() {
                None => return Ok((digits, false)),
                Some(b'*') => digits.push(None),
                Some(b'$') => {
                    self.at += 1;
                    self.blank();
                    return match self.done() {
                        true => Ok((digits, true)),
                        false => Err(Refusal::new(self.at..self.end, "nothing may follow the `$`")),
                    };
                }
                Some(byte) => match char::from(byte).to_digit(16) {
                    Some(digit) => digits.push(Some(digit as u8)),
                    None => return Err(Refusal::new(self.here(), "a hexadecimal digit is expected here")),
                },
            }
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Statement {
        let mut statements = parse(text).unwrap().statements;
        assert_eq!(statements.len(), 1, "{text}");
        statements.remove(0).0
    }

    fn refusal(text: &str) -> (String, String) {
        let refused = parse(text).unwrap_err().remove(0);
        (text[refused.at.clone()].to_owned(), refused.to_string())
    }

    #[test]
    fn packets_and_expectations() {
        let bytes = vec![0x00, 0xab, 0x12];
        assert_eq!(one("packet 01 00aB 12 # comment"), Statement::Packet { port: 1, bytes });
        assert_eq!(one("\texpect 5"), Statement::Expect { port: 5, pattern: None });
        let pattern = Pattern::new(vec![Some(0), None, Some(15), Some(15)], true);
        assert_eq!(one("EXPECT 5 0* ff $\r\n"), Statement::Expect { port: 5, pattern: Some(pattern) });
        assert_eq!(parse("# nothing\n\n   \n").unwrap(), Test::default());
    }

    #[test]
    fn entries_in_all_shapes() {
        let text =
            r#"add "a.b".t 503 data.f1:0x****0202 extra$0.h:0b1 "odd name":7/3 c.act(val:7, port:0x3) = A"#;
        let Statement::Add { table, priority, matches, action, args, label } = one(text) else { panic!() };
        assert_eq!((table.text.as_str(), priority.unwrap().0), ("a.b.t", 503));
        let names: Vec<&str> = matches.iter().map(|m| m.name.text.as_str()).collect();
        assert_eq!(names, ["data.f1", "extra$0.h", "odd name"]);
        assert!(matches!(&matches[2].value, MatchValue::Prefix(v, l) if v.text == "7" && l.text == "3"));
        assert_eq!((action.text.as_str(), args.len(), label.as_deref()), ("c.act", 2, Some("A")));
        assert!(
            matches!(one("add t h[1].isValid():1 a()"), Statement::Add { matches, .. } if matches.len() == 1)
        );
        assert!(matches!(one("add t k:1..5 a()"), Statement::Add { .. }));
        assert!(matches!(one("setdefault t a(x:1)"), Statement::SetDefault { .. }));
        assert_eq!(one("mc_node_create 0 6 7"), Statement::Command);
        assert_eq!(one("remove all"), Statement::RemoveAll);
    }

    #[test]
    fn addresses_are_written_as_people_write_them() {
        let text = "add t a:10.1.0.0/16 b:2001:db8::/32 c:06:00:00:00:00:01 d:::1 e:1..5 f:10.0.0.1..10.0.0.9 \
                    g:10.0.0.0&&&255.0.0.0 h:0x0a******/8 act(mac:06:00:00:00:00:02, to:10.0.0.1)";
        let Statement::Add { matches, args, .. } = one(text) else { panic!() };
        let shown: Vec<String> = matches
            .iter()
            .map(|one| match &one.value {
                MatchValue::One(value) => value.text.clone(),
                MatchValue::Prefix(value, length) => format!("{} / {}", value.text, length.text),
                MatchValue::Masked(value, mask) => format!("{} & {}", value.text, mask.text),
                MatchValue::Range(low, high) => format!("{} - {}", low.text, high.text),
            })
            .collect();
        let wanted = [
            "10.1.0.0 / 16",
            "2001:db8:: / 32",
            "06:00:00:00:00:01",
            "::1",
            "1 - 5",
            "10.0.0.1 - 10.0.0.9",
            "10.0.0.0 & 255.0.0.0",
            "0x0a****** / 8",
        ];
        assert_eq!(shown, wanted);
        assert_eq!([&args[0].value.text, &args[1].value.text], ["06:00:00:00:00:02", "10.0.0.1"]);
    }

    #[test]
    fn counters() {
        let Statement::CheckCounter { index, check, .. } = one("check_counter cnt($A) bytes >= 39") else {
            panic!()
        };
        assert_eq!(index.0, Index::Label("A".into()));
        assert_eq!(check, Some((Counted::Bytes, Comparison::GreaterOrEqual, 39)));
        assert!(matches!(one("check_counter c.d(10)"), Statement::CheckCounter { check: None, .. }));
    }

    #[test]
    fn what_is_wrong_has_a_place() {
        assert_eq!(refusal("packet 0 0x12").1, "a hexadecimal digit is expected here");
        assert_eq!(refusal("packet 0 123").1, "a packet is an even number of hexadecimal digits");
        assert_eq!(refusal("packet 0 12*4").1, "a packet that comes in has no `*` and no `$`");
        assert_eq!(refusal("expect 1 12 $ 34"), ("34".into(), "nothing may follow the `$`".into()));
        assert_eq!(refusal("pakcet 0 12").1, "a statement is expected (did you mean `packet`?)");
        assert_eq!(refusal("add t a").1, "`(` is expected here");
        assert_eq!(refusal("add t k:1 a(x 1)"), ("1".into(), "`:` is expected here".into()));
        assert_eq!(refusal("wait 5"), ("5".into(), "nothing is expected after `wait` here".into()));
        assert_eq!(refusal("add \"t a()").1, "the quotes are not closed");
        assert_eq!(refusal("é").1, "a statement is expected");
        assert_eq!(refusal("add té").1, "a key field or an action is expected here");
        assert_eq!(refusal("expect x").1, "a port is a decimal number");
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_odd(text in "(add|packet|expect|check_counter|setdefault|mc_node_create|[ -~])( |[ -~é\n]){0,60}") {
            if let Err(refused) = parse(&text) {
                // Every place can be shown.
                refused.iter().for_each(|refusal| drop(text[refusal.at.clone()].to_owned()));
            }
        }
    }
}
