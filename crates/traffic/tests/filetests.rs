//! The plans in `filetests/`, with directives as `millrace_filetests` has them. `test print` gives the plans as text, which has to be
//! read as the same plans and printed as the same text; or the error of a text.

use millrace_filetests::{Folder, Harness, Kind, Outcome, Test};
use millrace_traffic::words::{PortPlan, parse};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let kinds = &[Kind { name: "print", words: &[], run: print }];
    Harness::default().folder(&Folder { path, extension: "tc", sign: "#", kinds }).run()
}

fn text_of(plans: &[PortPlan]) -> String {
    plans.iter().map(PortPlan::to_string).collect()
}

fn print(test: &Test<'_>) -> Result<Outcome, String> {
    let plans = match parse(test.source) {
        Ok(plans) => plans,
        Err(error) => return Ok(Outcome::Errors(vec![error.to_string()])),
    };
    let text = text_of(&plans);
    let again = parse(&text).map_err(|error| format!("what is printed is refused: {error}\n{text}"))?;
    match again == plans && text_of(&again) == text {
        true => Ok(Outcome::Text(text)),
        false => Err(format!("what is printed is read as another plan:\n{text}\n{}", text_of(&again))),
    }
}
