//! No input makes the front door panic: token soup, damaged programs, arbitrary text.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use millrace_syntax::{Options, parse_text, render};
use proptest::prelude::*;

/// Parses, renders all findings, and checks that each has a place in the sources.
fn survive(text: &str) {
    let parsed = parse_text("fuzz.p4", text, &Options::default());
    for diagnostic in &parsed.diagnostics {
        assert!(!render(diagnostic, &parsed.sources, false).is_empty());
        assert!(parsed.sources.file(diagnostic.primary.file).is_some());
    }
}

/// The texts of the test programs.
static PROGRAMS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    ["accepted", "refused"]
        .iter()
        .flat_map(|folder| fs::read_dir(tests.join(folder)).unwrap())
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect()
});

const PIECES: &[&str] = &[
    "abstract",
    "action",
    "actions",
    "apply",
    "bit",
    "bool",
    "break",
    "const",
    "continue",
    "control",
    "default",
    "else",
    "entries",
    "enum",
    "error",
    "exit",
    "extern",
    "false",
    "for",
    "header",
    "header_union",
    "if",
    "in",
    "inout",
    "int",
    "key",
    "list",
    "match_kind",
    "out",
    "package",
    "parser",
    "priority",
    "return",
    "select",
    "state",
    "string",
    "struct",
    "switch",
    "table",
    "this",
    "transition",
    "true",
    "tuple",
    "type",
    "typedef",
    "value_set",
    "varbit",
    "void",
    "x",
    "y",
    "T",
    "f",
    "1",
    "8w255",
    "4s7",
    "0x",
    "0b2",
    "\"s\"",
    "\"",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    "{#}",
    "...",
    "..",
    ".",
    ",",
    ";",
    ":",
    "=",
    "==",
    "+",
    "+:",
    "++",
    "|+|",
    "|+|=",
    "-",
    "*",
    "/",
    "%",
    "!",
    "~",
    "&",
    "&&",
    "&&&",
    "|",
    "||",
    "^",
    "<<",
    ">>",
    ">>=",
    "?",
    "@",
    "@pragma",
    "@name",
    "_",
    "#",
    "##",
    "§",
    "'",
    "\\",
    "\n",
    "\n#define x",
    "\n#define f(a, b) a ## b #a\n",
    "\n#if ",
    "\n#else\n",
    "\n#endif\n",
    "\n#elif 1\n",
    "\n#undef x\n",
    "\n#include <core.p4>\n",
    "\n#line 3 \"q\"\n",
    "\n#",
    "defined",
    "/*",
    "*/",
    "//",
    "\\\n",
    "__LINE__",
    "__FILE__",
    "\0",
    "\u{feff}",
    "\r\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn token_soup(pieces in prop::collection::vec((0..PIECES.len(), any::<bool>()), 0..200)) {
        let text: String =
            pieces.iter().flat_map(|(i, space)| [PIECES[*i], if *space { " " } else { "" }]).collect();
        survive(&text);
    }

    #[test]
    fn soup_in_a_control(pieces in prop::collection::vec(0..PIECES.len(), 0..60)) {
        let soup: Vec<_> = pieces.iter().map(|i| PIECES[*i]).collect();
        survive(&format!("control C(inout T x) {{ apply {{ x = {} ; }} }}", soup.join(" ")));
    }

    #[test]
    fn arbitrary_text(text in "\\PC{0,200}") {
        survive(&text);
    }

    #[test]
    fn truncated_programs(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>()) {
        let text = &PROGRAMS[which.index(PROGRAMS.len())];
        let cut = (0..=at.index(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        survive(&text[..cut]);
    }

    #[test]
    fn mutated_programs(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..20usize, 0..PIECES.len()), 1..8),
    ) {
        let mut text = PROGRAMS[which.index(PROGRAMS.len())].clone();
        for (at, remove, insert) in edits {
            let boundary = |i: usize| (0..=i.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
            let start = boundary(at.index(text.len() + 1));
            let end = boundary(start + remove);
            text.replace_range(start..end.max(start), PIECES[insert]);
        }
        survive(&text);
    }
}
