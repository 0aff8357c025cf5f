//! The places of a program that ask for a packet to be dropped.

use std::fmt;

/// One place that asks for packets to be dropped, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DropSite {
    /// The name of the source file, without its folder; empty where no source is known.
    pub file: String,
    /// The line there, from 1; 0 where no source is known.
    pub line: u32,
    /// The action, control or parser state: `ingress.drop`.
    pub block: String,
    /// What is written there: `mark_to_drop`, `ostd.drop`.
    pub request: String,
    /// The line that calls the action or applies the control, where the code of another block does; else 0.
    pub called_at: u32,
    /// The tables that run the action, by name; none for what no table runs.
    pub tables: Vec<String>,
}

impl DropSite {
    /// Whether it says something.
    pub fn is_known(&self) -> bool {
        *self != DropSite::default()
    }
}

/// `mark_to_drop in ingress.drop (router.p4:61), of table ingress.ipv4_lpm`.
impl fmt::Display for DropSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.request)?;
        if !self.block.is_empty() {
            write!(f, " in {}", self.block)?;
        }
        if self.line > 0 {
            write!(f, " ({}:{})", self.file, self.line)?;
        }
        if self.called_at > 0 {
            write!(f, ", called at line {}", self.called_at)?;
        }
        match self.tables.as_slice() {
            [] => Ok(()),
            [table] => write!(f, ", of table {table}"),
            tables => write!(f, ", of one of the tables {}", tables.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_like_a_sentence() {
        let site = |tables: &[&str]| DropSite {
            file: "router.p4".into(),
            line: 61,
            block: "ingress.drop".into(),
            request: "mark_to_drop".into(),
            called_at: 0,
            tables: tables.iter().map(|table| (*table).to_owned()).collect(),
        };
        assert_eq!(site(&[]).to_string(), "mark_to_drop in ingress.drop (router.p4:61)");
        assert_eq!(site(&["t"]).to_string(), "mark_to_drop in ingress.drop (router.p4:61), of table t");
        let two = "mark_to_drop in ingress.drop (router.p4:61), of one of the tables t, u";
        assert_eq!(site(&["t", "u"]).to_string(), two);
        let called = DropSite { called_at: 80, ..site(&[]) };
        assert_eq!(called.to_string(), "mark_to_drop in ingress.drop (router.p4:61), called at line 80");
        assert!(site(&[]).is_known() && !DropSite::default().is_known());
    }
}
