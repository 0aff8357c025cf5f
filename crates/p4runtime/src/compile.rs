//! From the device config of a controller, which is the text of a P4_16 program, to a program that can be run.

use crate::proto::config;
use crate::refusal::Refusal;
use crate::{Pipeline, p4info};
use millrace_compile::{Checked, LowerError, Options, Source, Standard, check};
use millrace_control::p4info::describe;
use millrace_syntax::Diagnostic;

/// Most bytes of diagnostics in an answer.
const MAX_ANSWER: usize = 4096;

/// Compiles a program and checks that the controller's P4Info, if it gives one, is the program's.
pub(crate) fn compile(source: &[u8], given: Option<&config::P4Info>) -> Result<Pipeline, Refusal> {
    if source.is_empty() {
        return Err(Refusal::invalid("the device config is empty: it is the text of a P4_16 program"));
    }
    let text = std::str::from_utf8(source)
        .map_err(|_| Refusal::invalid("the device config is no text: it is the text of a P4_16 program"))?;
    let options = Options { on_disk: false, ..Options::default() };
    let checked = check(Source::Text("device_config.p4", text), Standard::P4_16, &options);
    if checked.has_errors() {
        return Err(refused(&checked, &checked.findings));
    }
    let program = checked.lower().map_err(|error| match error {
        LowerError::Found(found) => refused(&checked, &found),
        broken @ LowerError::Broken(_) => Refusal::new(tonic::Code::Internal, broken.to_string()),
    })?;
    let description = describe(&checked.typed);
    if let Some(given) = given {
        let own =
            p4info::message(&description).map_err(|error| Refusal::new(tonic::Code::Internal, error))?;
        p4info::check_compatible(given, &own)?;
    }
    Ok(Pipeline { program, p4info: description, device_config: source.to_vec() })
}

/// The errors as they would show on a terminal, without its colours.
fn refused(checked: &Checked, findings: &[Diagnostic]) -> Refusal {
    let mut answer = String::from("the device config cannot be realized:\n");
    for finding in findings.iter().filter(|finding| finding.is_error()) {
        let shown = checked.render(finding);
        if answer.len() + shown.len() > MAX_ANSWER {
            answer.push_str("...");
            break;
        }
        answer.push_str(&shown);
    }
    Refusal::invalid(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_come_back_with_their_lines() {
        let refusal = compile(b"control c() { apply { x = 1; } }", None).unwrap_err();
        assert_eq!(refusal.code, tonic::Code::InvalidArgument);
        assert!(refusal.message.contains("device_config.p4:1"), "{}", refusal.message);
        assert!(compile(b"", None).is_err() && compile(&[0xff], None).is_err());
    }

    #[test]
    fn a_program_from_the_network_reads_no_files() {
        let refusal =
            compile(b"#include \"/proc/self/status\"\n#include \"Cargo.toml\"\n", None).unwrap_err();
        assert!(refusal.message.contains("cannot find the include file `Cargo.toml`"), "{}", refusal.message);
        assert!(refusal.message.contains("cannot find the include file `/proc/self/status`"));
    }
}
