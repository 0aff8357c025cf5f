//! The parser and the verifier on damaged text: no panic, and what does parse prints and parses again.

use millrace_pipeline::{text, verify};
use proptest::prelude::*;

const SEEDS: &[&str] =
    &[include_str!("../filetests/text/every_construct.mir"), include_str!("../filetests/text/router.mir")];

/// Pieces that mean something in many places.
const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[3]",
    "[7:4]",
    ",",
    ":",
    "=",
    "=>",
    "..",
    "&&&",
    "/",
    "#1",
    "8w1",
    "0w0",
    "65537w1",
    "9",
    "18446744073709551615",
    "block0",
    "block9",
    "block4294967295",
    "header",
    "table",
    "body",
    "slot",
    "action",
    "\"",
    "\\",
    ";",
    "\n",
    "_",
    "é",
    "\0",
    "bit<8>",
    "bit<0>",
    "bit<4294967295>",
    "entry",
    "default",
    "m8",
    "h",
    "neg(",
    "",
];

#[derive(Clone, Debug)]
enum Mutation {
    Replace(prop::sample::Index, usize),
    Insert(prop::sample::Index, usize),
    Remove(prop::sample::Index, usize),
    Copy(prop::sample::Index, prop::sample::Index, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        (at(), 0..PIECES.len()).prop_map(|(i, p)| Mutation::Replace(i, p)),
        (at(), 0..PIECES.len()).prop_map(|(i, p)| Mutation::Insert(i, p)),
        (at(), 1usize..12).prop_map(|(i, n)| Mutation::Remove(i, n)),
        (at(), at(), 1usize..12).prop_map(|(i, j, n)| Mutation::Copy(i, j, n)),
    ]
}

/// Words with the blanks after them, so that pieces stay whole more often than not.
fn words(text: &str) -> Vec<String> {
    text.split_inclusive([' ', '\n', '(', ')', ',']).map(String::from).collect()
}

fn mutate(words: &mut Vec<String>, mutation: &Mutation) {
    if words.is_empty() {
        return;
    }
    match mutation {
        Mutation::Replace(at, piece) => {
            let at = at.index(words.len());
            words[at] = PIECES[*piece].into();
        }
        Mutation::Insert(at, piece) => words.insert(at.index(words.len()), PIECES[*piece].into()),
        Mutation::Remove(at, count) => {
            let at = at.index(words.len());
            words.drain(at..(at + count).min(words.len()));
        }
        Mutation::Copy(from, to, count) => {
            let (from, to) = (from.index(words.len()), to.index(words.len()));
            let copy: Vec<String> = words[from..(from + count).min(words.len())].to_vec();
            words.splice(to..to, copy);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn damaged_text(seed in 0..SEEDS.len(), mutations in proptest::collection::vec(mutation(), 1..4)) {
        let mut words = words(SEEDS[seed]);
        mutations.iter().for_each(|m| mutate(&mut words, m));
        let source = words.concat();
        if let Ok(program) = text::parse(&source) {
            let _ = verify(&program);
            let printed = text::print(&program);
            let again = text::parse(&printed);
            prop_assert_eq!(again.as_ref(), Ok(&program), "{}", printed);
        }
    }

    #[test]
    fn any_text(source in "\\PC{0,60}") {
        let _ = text::parse(&source);
    }
}
