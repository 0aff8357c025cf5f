//! What a hot swap kept and dropped: a [`Report`], which servers of a switch send to their clients as JSON.
//!
//! It never links a switch: a client that reads it needs neither a data path nor a code generator.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Most bytes of a report: clients take no large metadata.
pub const MAX_REPORT: usize = 4096;

/// What became of what was written to the program that ran before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// What the new program has.
    pub kept: Vec<Item>,
    /// What it has not.
    pub dropped: Vec<Item>,
    /// How many more there are than a message has room for.
    #[serde(default)]
    pub more: usize,
}

/// What an object held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// What the object is: `table`, `counter`, ...
    pub kind: String,
    /// Its name; empty for what belongs to no program.
    pub name: String,
    /// What it held: `entries`, `cells`, ...
    pub what: String,
    /// How many of them.
    pub count: u64,
    /// Why they were dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `12 entries of table Ingress.routes`, and the reason why they were dropped.
impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Item { kind, name, what, count, reason } = self;
        write!(f, "{count} {what} of {kind}")?;
        if !name.is_empty() {
            write!(f, " {name}")?;
        }
        reason.as_ref().map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}

impl Report {
    /// Adds an object: it was dropped if there is a reason for that.
    pub fn add(&mut self, item: Item) {
        let list = if item.reason.is_some() { &mut self.dropped } else { &mut self.kept };
        list.push(item);
    }

    /// The name of something that was dropped.
    pub fn first_dropped(&self) -> Option<&str> {
        self.dropped.first().map(|item| item.name.as_str())
    }

    /// As JSON of at most [`MAX_REPORT`] bytes: what does not fit is only counted, what was kept first.
    pub fn to_json(&self) -> Vec<u8> {
        let mut report = self.clone();
        loop {
            // Strings and numbers always become JSON.
            let text = serde_json::to_vec(&report).unwrap_or_default();
            if text.len() <= MAX_REPORT || report.kept.pop().or_else(|| report.dropped.pop()).is_none() {
                return text;
            }
            report.more += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_report_says_how_much_it_leaves_out() {
        let mut report = Report::default();
        for number in 0..1000 {
            let reason = (number % 2 == 0).then(|| "it is not in the new program".to_owned());
            let name = format!("ingress.table_{number}");
            report.add(Item { kind: "table".into(), name, what: "entries".into(), count: number, reason });
        }
        let text = report.to_json();
        assert!(text.len() <= MAX_REPORT);
        let read: Report = serde_json::from_slice(&text).unwrap();
        assert_eq!(read.kept.len() + read.dropped.len() + read.more, 1000);
        assert_eq!(read.dropped[..], report.dropped[..read.dropped.len()]);
    }
}
