//! Texts to the reader of the format that they look like: no panic, little time and memory; what is read is printed and read back as
//! itself; what is wrong has its places in the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millrace_fuzz::budget::within;
use millrace_network::import::{Format, Source, import};
use millrace_network::{MAX_PROBLEMS, Network, Problems};

fn told(problems: &Problems, text: &str) {
    assert!((1..=MAX_PROBLEMS).contains(&problems.problems.len()));
    for problem in &problems.problems {
        assert!(text.get(problem.place.bytes.clone()).is_some(), "{problem:?}");
    }
    assert!(!problems.render(false).is_empty());
}

fn back(network: &Network) {
    let printed = network.to_toml();
    assert_eq!(Network::parse("b", &printed).as_ref(), Ok(network), "{printed}");
}

fuzz_target!(|text: &str| {
    within(|| match Format::of(text) {
        None => match Network::parse("a", text) {
            Ok(network) => back(&network),
            Err(problems) => told(&problems, text),
        },
        Some(format) => {
            // The three tables of Net2Plan-AFDX are in one text, between lines of `%`.
            let parts = text.split("%\n").take(if format == Format::Net2plan { 3 } else { 1 });
            let sources: Vec<Source<'_>> = parts.map(|text| Source { name: "part", text }).collect();
            match import(format, &sources) {
                Ok(imported) => back(&imported.network),
                Err(problems) => assert!(!problems.render(false).is_empty()),
            }
        }
    });
});
