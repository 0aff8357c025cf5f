//! From the bytes that a controller brings, an image or the text of a P4_16 program, to a program that can be run.

use crate::chains::check_chains;
use crate::error::{ProgramError, Why};
use crate::pipeline::Pipeline;
use crate::turns::still_wanted;
use millrace_compile::{Checked, LowerError, Options, Source, Standard, check};
use millrace_dataplane::Cancel;
use millrace_describe::image::Image;
use millrace_describe::p4info::describe;
use millrace_syntax::Diagnostic;
use prost::Message;

/// Most bytes of diagnostics in an answer.
const MAX_ANSWER: usize = 4096;

/// Compiles a program, or reads an image.
///
/// # Errors
/// It is neither, with what was found, or nobody waits for it any more.
pub fn compile(device_config: &[u8], cancel: &Cancel) -> Result<Pipeline, ProgramError> {
    let wrapped = wrapped(device_config);
    let source = wrapped.as_deref().unwrap_or(device_config);
    if source.is_empty() {
        return Err(ProgramError::invalid(
            "the device config is empty: it is an image or the text of a P4_16 program",
        ));
    }
    let image = match Image::looks_like(source) {
        true => Image::read(source).map_err(|error| {
            ProgramError::invalid(format!("the device config cannot be realized: {error}"))
        })?,
        false => compile_text(source, cancel)?,
    };
    still_wanted(cancel)?;
    Pipeline::new(image, device_config.to_vec())
        .map_err(|error| ProgramError::invalid(format!("the device config cannot be realized: {error}")))
}

/// What controllers for bmv2 wrap around the device config (`p4.tmp.P4DeviceConfig` of p4lang/PI).
#[derive(Clone, PartialEq, prost::Message)]
struct P4DeviceConfig {
    #[prost(bool, tag = "1")]
    reassign: bool,
    #[prost(bytes = "vec", tag = "3")]
    device_data: Vec<u8>,
}

/// What is wrapped, if it is: the message begins with a control character, which no program and no image does.
fn wrapped(device_config: &[u8]) -> Option<Vec<u8>> {
    const TAGS: [u8; 3] = [1 << 3, 2 << 3 | 2, 3 << 3 | 2];
    let is_wrapped = device_config.first().is_some_and(|tag| TAGS.contains(tag));
    let message = is_wrapped.then(|| P4DeviceConfig::decode(device_config).ok());
    message.flatten().map(|message| message.device_data)
}

fn compile_text(source: &[u8], cancel: &Cancel) -> Result<Image, ProgramError> {
    let text = std::str::from_utf8(source).map_err(|_| {
        ProgramError::invalid("the device config is no text: it is an image or the text of a P4_16 program")
    })?;
    let options = Options { on_disk: false, ..Options::default() };
    let mut checked = check(Source::Text("device_config.p4", text), Standard::P4_16, &options);
    check_chains(&mut checked, false);
    if checked.has_errors() {
        return Err(refused(&checked, &checked.findings));
    }
    still_wanted(cancel)?;
    let program = checked.lower().map_err(|error| match error {
        LowerError::Found(found) => refused(&checked, &found),
        broken @ LowerError::Broken(_) => ProgramError::new(Why::Broken, broken.to_string()),
    })?;
    Ok(Image::new(program, describe(&checked.typed)))
}

/// The errors as they would show on a terminal, without its colours.
fn refused(checked: &Checked, findings: &[Diagnostic]) -> ProgramError {
    let mut answer = String::from("the device config cannot be realized:\n");
    for finding in findings.iter().filter(|finding| finding.is_error()) {
        let shown = checked.render(finding);
        if answer.len() + shown.len() > MAX_ANSWER {
            answer.push_str("...");
            break;
        }
        answer.push_str(&shown);
    }
    ProgramError::invalid(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_come_back_with_their_lines() {
        let refusal = compile(b"control c() { apply { x = 1; } }", &Cancel::default()).unwrap_err();
        assert_eq!(refusal.why, Why::Invalid);
        assert!(refusal.message.contains("device_config.p4:1"), "{}", refusal.message);
        assert!(compile(b"", &Cancel::default()).is_err() && compile(&[0xff], &Cancel::default()).is_err());
    }

    /// As the controllers of the P4 tutorials send it: a message of three fields around the text.
    #[test]
    fn an_image_may_be_wrapped() {
        let compiled =
            compile(include_bytes!("../../p4runtime/tests/programs/all.p4"), &Cancel::default()).unwrap();
        let image = Image {
            program: compiled.program.clone(),
            p4info: Default::default(),
            controller_headers: compiled.controller_headers.clone(),
        };
        let text = image.to_string().into_bytes();
        let mut wrapped = vec![0x08, 1, 0x1a];
        prost::encoding::encode_varint(text.len() as u64, &mut wrapped);
        wrapped.extend_from_slice(&text);
        for config in [text, wrapped] {
            let pipeline = compile(&config, &Cancel::default()).unwrap();
            assert_eq!(pipeline.program, compiled.program);
            assert_eq!(pipeline.device_config, config);
        }
        assert!(compile(&[0x08, 1, 0x1a, 9, b'x'], &Cancel::default()).is_err());
        let refusal = compile(b"{\"pipelines\": [], \"header_types\": []}", &Cancel::default()).unwrap_err();
        assert!(refusal.message.contains("for bmv2"), "{}", refusal.message);
    }

    #[test]
    fn a_program_from_the_network_reads_no_files() {
        let refusal =
            compile(b"#include \"/proc/self/status\"\n#include \"Cargo.toml\"\n", &Cancel::default())
                .unwrap_err();
        assert!(refusal.message.contains("cannot find the include file `Cargo.toml`"), "{}", refusal.message);
        assert!(refusal.message.contains("cannot find the include file `/proc/self/status`"));
    }
}
