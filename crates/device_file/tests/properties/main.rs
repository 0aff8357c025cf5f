//! Random models and random texts: what is printed is read back, no text makes the parser panic, and changes lead from one
//! model to the other with nothing that refers to what is not there.

mod generate;
mod running;

use generate::model;
use millrace_device_file::{DeviceFile, changes};
use proptest::prelude::*;
use running::{Running, normal};

/// A text that has every key.
const EVERY_KEY: &str = include_str!("../files/every_key.toml");

/// Pieces that mean something at some place of a file.
const PIECES: [&str; 36] = [
    "[device]\n",
    "[[switch]]\n",
    "[[switch.port]]\n",
    "[switch.quota]\n",
    "[[port]]\n",
    "[[link]]\n",
    "[[tenant]]\n",
    "[classify]\n",
    "name = ",
    "match = ",
    "bytes = ",
    "between = ",
    "physical = ",
    "number = ",
    "\"p0\"",
    "\"a:1\"",
    "{ vlan = 1 }",
    "{}",
    "[",
    "]",
    "{",
    "}",
    "=",
    ",",
    "\n",
    "\"",
    "'",
    "\\u",
    "0x",
    "-1",
    "1e9",
    "1979-05-27",
    "true",
    ".",
    "device = \"packet:\"",
    "é\u{1b}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_model_is_read_back_from_its_text(choices in prop::collection::vec(any::<u8>(), 0..500)) {
        let model = model(&choices);
        let text = model.to_toml();
        match DeviceFile::parse("a.toml", &text) {
            Ok(read) => prop_assert_eq!(&read, &model),
            Err(problems) => prop_assert!(false, "{}\n{}", problems, text),
        }
    }

    #[test]
    fn changes_lead_from_one_model_to_the_other(
        choices in prop::collection::vec(any::<u8>(), 0..500),
        others in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..30),
    ) {
        let old = model(&choices);
        let mut choices = choices;
        for (place, choice) in others {
            if !choices.is_empty() {
                let place = place.index(choices.len());
                choices[place] = choice;
            }
        }
        let new = model(&choices);
        let made = changes(&old, &new);
        let mut running = Running::new(old.clone());
        for change in &made.list {
            if let Err(why) = running.apply(change) {
                prop_assert!(false, "{}: {}\nof\n{}", change, why, made);
            }
        }
        prop_assert_eq!(normal(running.is), normal(new), "{}", made);
    }

    #[test]
    fn nothing_changes_to_the_same(choices in prop::collection::vec(any::<u8>(), 0..500)) {
        let old = model(&choices);
        let mut new = old.clone();
        new.switches.reverse();
        new.ports.reverse();
        new.links.reverse();
        let made = changes(&old, &new);
        prop_assert_eq!(&made.list, &[]);
        let things = old.switches.len() + old.ports.len() + old.links.len() + old.tenants.len();
        prop_assert_eq!(made.kept.len(), things);
    }

    #[test]
    fn no_pieces_make_the_parser_panic(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..60)) {
        look_at(&pieces.concat());
    }

    #[test]
    fn no_damage_makes_the_parser_panic(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..20usize, prop::sample::select(&PIECES[..])), 1..6),
    ) {
        let mut text: Vec<char> = EVERY_KEY.chars().collect();
        for (place, length, piece) in cuts {
            let start = place.index(text.len());
            let end = (start + length).min(text.len());
            text.splice(start..end, piece.chars());
        }
        look_at(&text.into_iter().collect::<String>());
    }
}

/// Reads a text and shows what is wrong with it; each place is in it.
fn look_at(text: &str) {
    match DeviceFile::parse("a.toml", text) {
        Ok(read) => assert_eq!(DeviceFile::parse("b.toml", &read.to_toml()).as_ref(), Ok(&read)),
        Err(problems) => {
            let lines = text.split('\n').count();
            for problem in &problems.problems {
                assert!((1..=lines).contains(&problem.place.line) && problem.place.column >= 1);
                assert!(text.get(problem.place.bytes.clone()).is_some());
            }
            assert!(!problems.render(true).is_empty() && !problems.to_string().contains('\u{1b}'));
            assert!(problems.json().starts_with('{'));
        }
    }
}
