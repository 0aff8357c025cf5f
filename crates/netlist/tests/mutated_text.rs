//! The parser, the verifier and all that takes verified designs, on damaged text: no panic, and what does parse prints and parses again.

use millrace_netlist::{Simulator, passes, text, verify, verilog};
use proptest::prelude::*;

const SEEDS: &[&str] = &[
    include_str!("../filetests/text/every_construct.net"),
    include_str!("../filetests/verifier/loops.net"),
    include_str!("../filetests/sim/memory.net"),
    include_str!("../filetests/optimize/dead_state.net"),
];

/// Pieces that mean something in many places.
const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    ",",
    ":",
    "=",
    "@",
    "_",
    "\"",
    "\\",
    ";",
    "\n",
    "é",
    "\0",
    "",
    "8w1",
    "1w1",
    "0w0",
    "16384w1",
    "65537w1",
    "0",
    "1",
    "8",
    "9",
    "64",
    "65",
    "16384",
    "4294967295",
    "99999999999",
    "n0",
    "n1",
    "n2",
    "n5",
    "n40",
    "n4294967294",
    "n4294967295",
    "read0",
    "read9",
    "input",
    "output",
    "register",
    "memory",
    "instance",
    "stream",
    "module",
    "top",
    "inner",
    "not",
    "reduce_xor",
    "add",
    "mul",
    "lt_signed",
    "eq",
    "shl",
    "shr_signed",
    "concat",
    "slice",
    "repeat",
    "mux",
    "from",
    "next",
    "reset",
    "enable",
    "lanes",
    "direct",
    "clocked",
    "initial",
];

#[derive(Clone, Debug)]
enum Mutation {
    Replace(prop::sample::Index, usize),
    Insert(prop::sample::Index, usize),
    Remove(prop::sample::Index, usize),
    Copy(prop::sample::Index, prop::sample::Index, usize),
    Swap(prop::sample::Index, prop::sample::Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        (at(), 0..PIECES.len()).prop_map(|(i, p)| Mutation::Replace(i, p)),
        (at(), 0..PIECES.len()).prop_map(|(i, p)| Mutation::Insert(i, p)),
        (at(), 1usize..12).prop_map(|(i, n)| Mutation::Remove(i, n)),
        (at(), at(), 1usize..12).prop_map(|(i, j, n)| Mutation::Copy(i, j, n)),
        (at(), at()).prop_map(|(i, j)| Mutation::Swap(i, j)),
    ]
}

fn mutate(words: &mut Vec<String>, mutation: &Mutation) {
    let len = words.len();
    match mutation {
        _ if len == 0 => (),
        Mutation::Replace(at, piece) => words[at.index(len)] = format!("{} ", PIECES[*piece]),
        Mutation::Insert(at, piece) => words.insert(at.index(len), format!("{} ", PIECES[*piece])),
        Mutation::Remove(at, count) => drop(words.drain(at.index(len)..(at.index(len) + count).min(len))),
        Mutation::Copy(from, to, count) => {
            let copy = words[from.index(len)..(from.index(len) + count).min(len)].to_vec();
            words.splice(to.index(len)..to.index(len), copy);
        }
        Mutation::Swap(a, b) => words.swap(a.index(len), b.index(len)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn damaged_text(seed in 0..SEEDS.len(), mutations in proptest::collection::vec(mutation(), 1..4)) {
        let mut words: Vec<String> = SEEDS[seed].split_inclusive([' ', '\n', '(', ')', ',']).map(String::from).collect();
        mutations.iter().for_each(|m| mutate(&mut words, m));
        if let Ok(design) = text::parse(&words.concat()) {
            let printed = text::print(&design);
            if verify(&design).is_ok() {
                let again = text::parse(&printed);
                prop_assert_eq!(again.as_ref(), Ok(&design), "{}", printed);
                let mut optimised = design.clone();
                passes::optimize(&mut optimised);
                prop_assert_eq!(verify(&optimised), Ok(()), "{}", printed);
                let _ = verilog::print(&design);
                let mut sim = Simulator::new(&design).unwrap();
                (0..3).for_each(|_| sim.step());
            }
        }
    }

    #[test]
    fn any_text(source in "\\PC{0,60}") {
        let _ = text::parse(&source);
    }
}
