//! The text of a chain.
//!
//! ```text
//! chain   = step { "|" step }
//! step    = select [ "else" account ] | account
//! select  = "filter" EXPRESSION
//!         | "sample" 1/N [ "flows" | "random" [ "=" SEED ] ]
//!         | "hash" K/N
//!         | "prefix" ( "src" | "dst" ) LIST [ "miss=" CLASS ]
//!         | "exact" FIELD { "+" FIELD } LIST [ "miss=" CLASS ]
//! account = "account" FILE { "format=" ( "json" | "ipfix" ) | "flows=" N | "active=" SECONDS | "inactive=" SECONDS }
//! LIST    = "@" FILE | "ENTRY, ENTRY, ..."
//! CLASS   = "pass" | "drop" | "account"
//! ```

use crate::classes::{Class, KEY_FIELDS, KeyField, List, Side};
use crate::error::{InputError, TextError};
use crate::filter::Filter;
use crate::flows::{
    AccountSpec, DEFAULT_ACTIVE, DEFAULT_FLOWS, DEFAULT_INACTIVE, Format, MAX_FLOWS, MAX_TIMEOUT, Timeouts,
};
use crate::selector::Selector;
use std::ops::Range;
use std::str::FromStr;

/// Longest text of a chain, in bytes.
pub const MAX_CHAIN: usize = 64 << 10;
/// Most steps of a chain.
pub const MAX_STEPS: usize = 16;
/// Largest N of `sample 1/N` and `hash K/N`.
pub const MAX_SHARE: u32 = 1 << 30;

/// A chain as it is written, and what it asks for. Nothing is opened yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    pub(crate) steps: Vec<StepSpec>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StepSpec {
    pub(crate) selector: Option<SelectorSpec>,
    /// Where those go that are not selected; all, without a selector.
    pub(crate) account: Option<AccountSpec>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SelectorSpec {
    Filter(Filter),
    /// One of so many.
    Sample(u32, Sampling),
    /// The flows of one share of so many.
    Hash(u32, u32),
    Prefix(Side, List, Class),
    Exact(Vec<KeyField>, List, Class),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sampling {
    Packets,
    Random(u64),
    Flows,
}

impl Chain {
    /// Reads its lists too, and says what is wrong with them. No file is made.
    ///
    /// # Errors
    /// [`InputError`].
    pub fn check(&self) -> Result<(), InputError> {
        for step in &self.steps {
            if let Some(selector) = &step.selector {
                Selector::open(selector, step.account.is_some())?;
            }
        }
        Ok(())
    }
}

impl StepSpec {
    /// The name of the plugin.
    pub(crate) fn name(&self) -> &'static str {
        match self.selector {
            Some(SelectorSpec::Filter(_)) => "filter",
            Some(SelectorSpec::Sample(..)) => "sample",
            Some(SelectorSpec::Hash(..)) => "hash",
            Some(SelectorSpec::Prefix(..)) => "prefix",
            Some(SelectorSpec::Exact(..)) => "exact",
            None => "account",
        }
    }
}

impl FromStr for Chain {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Chain, TextError> {
        if text.len() > MAX_CHAIN {
            return Err(TextError::new("", 0..0, format!("a chain has at most {MAX_CHAIN} bytes")));
        }
        let mut reader = Reader { text, words: words(text)?, at: 0 };
        let mut steps = vec![reader.step()?];
        while reader.takes("|") {
            if steps.len() == MAX_STEPS {
                return Err(reader.wrong(format!("a chain has at most {MAX_STEPS} plugins")));
            }
            steps.push(reader.step()?);
        }
        match reader.next() {
            None => Ok(Chain { steps }),
            Some(_) => Err(reader.wrong("`|` and another plugin, or the end was expected")),
        }
    }
}

/// A word, or a text in quotes without them.
struct Word {
    at: Range<usize>,
    is_quoted: bool,
}

fn words(text: &str) -> Result<Vec<Word>, TextError> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = match next {
            _ if next.is_whitespace() => {
                at += next.len_utf8();
                continue;
            }
            '|' => 1,
            '"' | '\'' => {
                let Some(end) = rest[1..].find(next) else {
                    return Err(TextError::new(text, at..at + 1, "the text that begins here has no end"));
                };
                words.push(Word { at: at + 1..at + 1 + end, is_quoted: true });
                at += end + 2;
                continue;
            }
            _ => {
                rest.find(|c: char| c.is_whitespace() || matches!(c, '|' | '"' | '\'')).unwrap_or(rest.len())
            }
        };
        words.push(Word { at: at..at + length, is_quoted: false });
        at += length;
    }
    Ok(words)
}

struct Reader<'t> {
    text: &'t str,
    words: Vec<Word>,
    at: usize,
}

type Read<T> = Result<T, TextError>;

impl<'t> Reader<'t> {
    fn next(&self) -> Option<&'t str> {
        self.words.get(self.at).map(|word| &self.text[word.at.clone()])
    }

    fn place(&self) -> Range<usize> {
        let end = self.text.len();
        self.words.get(self.at).map_or(end..end, |word| word.at.clone())
    }

    fn wrong(&self, message: impl Into<String>) -> TextError {
        TextError::new(self.text, self.place(), message)
    }

    /// Takes a word that is written like that.
    fn takes(&mut self, word: &str) -> bool {
        let takes = self.words.get(self.at).is_some_and(|next| !next.is_quoted) && self.next() == Some(word);
        self.at += usize::from(takes);
        takes
    }

    /// The next word, whatever it is, with its place.
    fn word(&mut self, wanted: &str) -> Read<(&'t str, Range<usize>)> {
        let place = self.place();
        let is_bar = self.next() == Some("|") && !self.words[self.at].is_quoted;
        match self.next() {
            Some(word) if !is_bar => {
                self.at += 1;
                Ok((word, place))
            }
            _ => Err(self.wrong(format!("{wanted} was expected"))),
        }
    }

    /// The value of an option `NAME=VALUE`, if it comes next.
    fn option(&mut self, name: &str) -> Option<(&'t str, Range<usize>)> {
        let word = self.words.get(self.at).filter(|word| !word.is_quoted)?;
        let value = self.text[word.at.clone()].strip_prefix(name)?.strip_prefix('=')?;
        let place = word.at.end - value.len()..word.at.end;
        self.at += 1;
        Some((value, place))
    }

    fn refused(&self, place: Range<usize>, message: impl Into<String>) -> TextError {
        TextError::new(self.text, place, message)
    }

    fn step(&mut self) -> Read<StepSpec> {
        let (name, place) = self.word("a plugin: filter, sample, hash, prefix, exact or account")?;
        let selector = match name {
            "account" => return Ok(StepSpec { selector: None, account: Some(self.account()?) }),
            "filter" => self.filter()?,
            "sample" => self.sample()?,
            "hash" => self.hash()?,
            "prefix" | "exact" => return self.classes(name),
            _ => {
                let message =
                    format!("there is no plugin `{name}`: filter, sample, hash, prefix, exact, account");
                return Err(self.refused(place, message));
            }
        };
        Ok(StepSpec { selector: Some(selector), account: self.otherwise()? })
    }

    /// `else account FILE`.
    fn otherwise(&mut self) -> Read<Option<AccountSpec>> {
        if !self.takes("else") {
            return Ok(None);
        }
        if !self.takes("account") {
            return Err(self.wrong("`account` was expected"));
        }
        self.account().map(Some)
    }

    fn filter(&mut self) -> Read<SelectorSpec> {
        let is_quoted = self.words.get(self.at).is_some_and(|word| word.is_quoted);
        let (expression, place) = self.word("an expression in quotes, as in filter \"udp port 53\"")?;
        if !is_quoted {
            return Err(self.refused(place, "an expression stands in quotes, as in filter \"udp port 53\""));
        }
        let compiled = Filter::compile(expression);
        compiled.map(SelectorSpec::Filter).map_err(|error| error.within(self.text, place.start))
    }

    /// Two numbers with a slash.
    fn share(&mut self, wanted: &str) -> Read<(u32, u32, Range<usize>)> {
        let (word, place) = self.word(wanted)?;
        let both = word.split_once('/').and_then(|(one, all)| Some((one.parse().ok()?, all.parse().ok()?)));
        match both {
            Some((one, all)) if (1..=MAX_SHARE).contains(&all) => Ok((one, all, place)),
            Some(_) => Err(self.refused(place, format!("the second number is 1 to {MAX_SHARE}"))),
            None => Err(self.refused(place, format!("{wanted} was expected"))),
        }
    }

    fn sample(&mut self) -> Read<SelectorSpec> {
        let (one, every, place) = self.share("a share, as 1/100,")?;
        if one != 1 {
            return Err(self.refused(place, "a sample is one of so many, as 1/100"));
        }
        if self.takes("flows") {
            return Ok(SelectorSpec::Sample(every, Sampling::Flows));
        }
        if self.takes("random") {
            return Ok(SelectorSpec::Sample(every, Sampling::Random(0)));
        }
        match self.option("random") {
            None => Ok(SelectorSpec::Sample(every, Sampling::Packets)),
            Some((seed, place)) => {
                let seed = seed.parse().map_err(|_| self.refused(place, "the seed is a number"))?;
                Ok(SelectorSpec::Sample(every, Sampling::Random(seed)))
            }
        }
    }

    fn hash(&mut self) -> Read<SelectorSpec> {
        let (share, all, place) = self.share("a share, as 0/4,")?;
        match share < all {
            true => Ok(SelectorSpec::Hash(share, all)),
            false => {
                Err(self
                    .refused(place, "shares are counted from 0, so the first number is less than the second"))
            }
        }
    }

    fn classes(&mut self, name: &str) -> Read<StepSpec> {
        let (of, place) =
            self.word(if name == "prefix" { "`src` or `dst`" } else { "fields, as dst+proto+dport," })?;
        let mut fields = Vec::new();
        let side = match (name, of) {
            ("prefix", "src") => Side::Source,
            ("prefix", "dst") => Side::Destination,
            ("prefix", _) => return Err(self.refused(place, "`src` or `dst` was expected")),
            _ => {
                for word in of.split('+') {
                    let known = KEY_FIELDS.into_iter().find(|(known, _)| *known == word);
                    match known {
                        Some((_, field)) if !fields.contains(&field) => fields.push(field),
                        Some(_) => return Err(self.refused(place, format!("`{word}` is there twice"))),
                        None => {
                            let known = KEY_FIELDS.map(|(known, _)| known).join(", ");
                            return Err(self.refused(place, format!("there is no field `{word}`: {known}")));
                        }
                    }
                }
                Side::Source
            }
        };
        let is_quoted = self.words.get(self.at).is_some_and(|word| word.is_quoted);
        let (list, place) = self.word("a list: entries in quotes, or @FILE")?;
        let list = match list.strip_prefix('@') {
            Some(file) if !file.is_empty() => List::File(file.to_owned()),
            _ if is_quoted => List::Given(list.to_owned()),
            _ => return Err(self.refused(place, "a list is entries in quotes, or @FILE")),
        };
        let miss = match self.option("miss") {
            None => None,
            Some((word, place)) => match Class::named(word) {
                Some(class) => Some((class, place)),
                None => return Err(self.refused(place, "`pass`, `drop` or `account` was expected")),
            },
        };
        let account = self.otherwise()?;
        let class = match miss {
            Some((Class::Account, place)) if account.is_none() => {
                return Err(self.refused(place, "`account` needs `else account FILE` after it"));
            }
            Some((class, _)) => class,
            None if account.is_some() => Class::Account,
            None => Class::Drop,
        };
        let selector = match name {
            "prefix" => SelectorSpec::Prefix(side, list, class),
            _ => SelectorSpec::Exact(fields, list, class),
        };
        Ok(StepSpec { selector: Some(selector), account })
    }

    fn account(&mut self) -> Read<AccountSpec> {
        let (file, _) = self.word("a file")?;
        let ending = file.rsplit_once('.').map(|(_, ending)| ending);
        let mut format = if ending == Some("ipfix") { Format::Ipfix } else { Format::Json };
        let (mut flows, mut active, mut inactive) = (DEFAULT_FLOWS, DEFAULT_ACTIVE, DEFAULT_INACTIVE);
        loop {
            if let Some((name, place)) = self.option("format") {
                format = match name {
                    "json" => Format::Json,
                    "ipfix" => Format::Ipfix,
                    _ => return Err(self.refused(place, "`json` or `ipfix` was expected")),
                };
            } else if let Some(number) = self.option("flows") {
                flows = self.number(number, MAX_FLOWS, "flows")?;
            } else if let Some(number) = self.option("active") {
                active = self.number(number, MAX_TIMEOUT, "seconds")?;
            } else if let Some(number) = self.option("inactive") {
                inactive = self.number(number, MAX_TIMEOUT, "seconds")?;
            } else {
                break;
            }
        }
        let ns = |seconds: u32| u64::from(seconds) * 1_000_000_000;
        let timeouts = Timeouts { active_ns: ns(active), inactive_ns: ns(inactive) };
        Ok(AccountSpec { file: file.to_owned(), format, flows, timeouts })
    }

    fn number(&self, (text, place): (&str, Range<usize>), most: u32, what: &str) -> Read<u32> {
        match text.parse() {
            Ok(number) if (1..=most).contains(&number) => Ok(number),
            _ => Err(self.refused(place, format!("1 to {most} {what} were expected"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        text.parse::<Chain>().unwrap_err().to_string()
    }

    #[test]
    fn a_chain_is_plugins_with_bars() {
        let chain: Chain = "filter \"udp port 53\" else account rest.ipfix flows=10 | sample 1/100 flows|account all.json active=5"
            .parse()
            .unwrap();
        let [filter, sample, account] = &chain.steps[..] else { panic!("{chain:?}") };
        let rest = filter.account.as_ref().unwrap();
        assert_eq!(
            (filter.name(), rest.file.as_str(), rest.format, rest.flows),
            ("filter", "rest.ipfix", Format::Ipfix, 10)
        );
        assert_eq!(sample.selector, Some(SelectorSpec::Sample(100, Sampling::Flows)));
        let all = account.account.as_ref().unwrap();
        assert_eq!(
            (account.name(), all.format, all.timeouts.active_ns),
            ("account", Format::Json, 5_000_000_000)
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, wanted) in [
            ("", "a plugin: filter, sample, hash, prefix, exact or account was expected\n  \n  ^"),
            (
                "filter \"tcp\" |",
                "a plugin: filter, sample, hash, prefix, exact or account was expected\n  filter \"tcp\" |\n                ^",
            ),
            (
                "filtre \"tcp\"",
                "there is no plugin `filtre`: filter, sample, hash, prefix, exact, account\n  filtre \"tcp\"\n  ^^^^^^",
            ),
            (
                "filter \"tcp port\"",
                "the number of a port was expected\n  filter \"tcp port\"\n                  ^",
            ),
            ("filter \"tcp", "the text that begins here has no end\n  filter \"tcp\n         ^"),
            ("sample 2/3", "a sample is one of so many, as 1/100\n  sample 2/3\n         ^^^"),
            ("sample 1/0", "the second number is 1 to 1073741824\n  sample 1/0\n         ^^^"),
            (
                "hash 4/4",
                "shares are counted from 0, so the first number is less than the second\n  hash 4/4\n       ^^^",
            ),
            (
                "exact dst+foo \"1\"",
                "there is no field `foo`: src, dst, proto, sport, dport, vlan, ethertype, ethersrc, etherdst\n  exact dst+foo \"1\"\n        ^^^^^^^",
            ),
            (
                "prefix dst 10.0.0.0/8",
                "a list is entries in quotes, or @FILE\n  prefix dst 10.0.0.0/8\n             ^^^^^^^^^^",
            ),
            (
                "prefix dst @f miss=account",
                "`account` needs `else account FILE` after it\n  prefix dst @f miss=account\n                     ^^^^^^^",
            ),
            (
                "account f flows=0",
                "1 to 1048576 flows were expected\n  account f flows=0\n                  ^",
            ),
        ] {
            assert_eq!(refusal(text), wanted);
        }
        let long = vec!["sample 1/2"; MAX_STEPS + 1].join("|");
        assert!(refusal(&long).starts_with("a chain has at most 16 plugins"));
        assert!(refusal(&" ".repeat(MAX_CHAIN + 1)).starts_with("a chain has at most 65536 bytes"));
    }
}
