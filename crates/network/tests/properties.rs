//! Whatever a file holds, it is refused or read, in a bounded time, and never ends the program.

use millrace_network::bounds::bounds;
use millrace_network::import::{Format, Source, import};
use millrace_network::{Network, Topology};
use proptest::collection::vec;
use proptest::prelude::*;

const SMALL: &str = include_str!("../../../programs/networks/small.toml");
const FILES: [(Format, &str); 4] = [
    (Format::Wopanets, include_str!("import/afdx.xml")),
    (Format::Wopanets, include_str!("import/xtfa.xml")),
    (Format::Saihu, include_str!("import/ports.json")),
    (Format::Net2plan, include_str!("import/plan.vls.csv")),
];

/// Pieces that are right somewhere.
const PIECES: [&str; 24] = [
    "\"",
    "[",
    "]",
    "{",
    "}",
    "=",
    "\n",
    "0",
    "-1",
    "18446744073709551616",
    "1e400",
    "[[vl]]",
    "[[link]]",
    "between = [\"flight\", \"aft1\"]",
    "\"aft1\"",
    "\"2ms\"",
    "to = []",
    "<",
    "/>",
    "&amp;",
    "<path node=\"SW1\"/>",
    ";",
    ",",
    "é\u{202e}",
];

/// A text with some bytes removed, repeated or replaced by pieces.
fn changed(text: &'static str) -> impl Strategy<Value = String> {
    vec((any::<prop::sample::Index>(), 0usize..40, 0..PIECES.len() + 2), 0..6).prop_map(move |changes| {
        let mut text: Vec<char> = text.chars().collect();
        for (at, length, what) in changes {
            let at = at.index(text.len() + 1);
            let end = (at + length).min(text.len());
            let piece: Vec<char> = match PIECES.get(what) {
                Some(piece) => piece.chars().collect(),
                None if what == PIECES.len() => Vec::new(),
                None => [&text[at..end], &text[at..end]].concat(),
            };
            text.splice(at..end, piece);
        }
        text.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_file_is_refused_or_right(text in changed(SMALL)) {
        match Network::parse("changed.toml", &text) {
            Ok(network) => {
                let topology = Topology::new(&network).expect("what is checked has a topology");
                prop_assert!(bounds(&topology).is_ok());
                prop_assert_eq!(Network::parse("again.toml", &network.to_toml()).expect("its own text"), network);
            }
            Err(problems) => prop_assert!(!problems.problems.is_empty() && !problems.render(false).is_empty()),
        }
    }

    #[test]
    fn changed_files_of_other_tools_are_refused_or_read(
        which in 0..FILES.len(),
        texts in (changed(FILES[0].1), changed(FILES[1].1), changed(FILES[2].1), changed(FILES[3].1)),
    ) {
        let text = &[texts.0, texts.1, texts.2, texts.3][which];
        let mut sources = vec![Source { name: "changed", text }];
        if FILES[which].0 == Format::Net2plan {
            sources.push(Source { name: "switches", text: include_str!("import/plan.switches.csv") });
            sources.push(Source { name: "stations", text: include_str!("import/plan.stations.csv") });
        }
        match import(FILES[which].0, &sources) {
            Ok(read) => prop_assert!(Topology::new(&read.network).is_ok()),
            Err(problems) => prop_assert!(!problems.problems.is_empty() && !problems.render(false).is_empty()),
        }
    }

    #[test]
    fn any_text_is_refused(text in "\\PC{0,200}") {
        for (format, _) in Format::ALL {
            let _ = import(format, &[Source { name: "any", text: &text }]);
        }
        let _ = Network::parse("any.toml", &text);
    }
}

/// What would cost much is refused at once.
#[test]
fn sizes_are_bounded() {
    let deep = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
    let read = import(Format::Wopanets, &[Source { name: "deep.xml", text: &deep }]);
    assert!(read.unwrap_err().to_string().contains("MAX_LEVELS"));
    let long = " ".repeat(millrace_network::MAX_FILE + 1);
    for (format, _) in Format::ALL {
        let read = import(format, &[Source { name: "long", text: &long }]);
        assert!(read.unwrap_err().to_string().contains("MAX_FILE"));
    }
    assert!(Network::parse("long", &long).unwrap_err().to_string().contains("MAX_FILE"));
    let many: String =
        (0..millrace_network::MAX_SWITCHES + 1).map(|at| format!("[[switch]]\nname = \"S{at}\"\n")).collect();
    assert!(Network::parse("many", &many).unwrap_err().to_string().contains("MAX_SWITCHES"));
    let hub: String = (0..65)
        .map(|at| format!("[[end-system]]\nname = \"E{at}\"\n[[link]]\nbetween = [\"E{at}\", \"S\"]\n"))
        .collect();
    assert!(
        Network::parse("hub", &format!("[[switch]]\nname = \"S\"\n{hub}"))
            .unwrap_err()
            .to_string()
            .contains("MAX_PORTS")
    );
}
