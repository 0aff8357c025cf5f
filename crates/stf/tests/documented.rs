//! docs/stf.md has every statement and every command that a test may have, and its examples are read.

use millrace_commands::COMMANDS;
use millrace_stf::{STATEMENTS, parse};

const PAGE: &str = include_str!("../../../docs/stf.md");

#[test]
fn every_statement_is_documented() {
    for statement in STATEMENTS {
        let row = PAGE.lines().find(|line| {
            let rest = line.strip_prefix("| `").and_then(|line| line.strip_prefix(statement));
            rest.is_some_and(|rest| rest.starts_with([' ', '`']))
        });
        assert!(row.is_some(), "docs/stf.md does not have `{statement}`");
    }
}

#[test]
fn every_command_is_documented_and_no_other() {
    let (_, table) = PAGE.split_once("## Runtime commands").expect("a section of commands");
    let (table, _) = table.split_once("\n## ").expect("a section after it");
    let rows: Vec<String> = table.lines().filter(|line| line.starts_with("| `")).map(str::to_owned).collect();
    let wanted: Vec<String> = COMMANDS
        .iter()
        .map(|(name, args, does)| {
            let usage = format!("{name} {args}").replace('|', "\\|");
            format!("| `{}` | {does} |", usage.trim_end())
        })
        .collect();
    assert_eq!(rows, wanted);
}

#[test]
fn the_example_is_read() {
    let lines: Vec<&str> = PAGE.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(parse(&lines.join("\n")).unwrap().statements.len(), 4);
}
