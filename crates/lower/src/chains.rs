//! Chains of plugins that a program asks for, by annotations of its `main`: `@input("0:filter 'udp port 53'")`, `@output(...)`.
//!
//! What the text of a chain means is not known here: it goes into the IR as it is.

use crate::fail::{Lower, code, fail};
use millrace_pipeline::{ChainText, limits};
use millrace_sema::hir;
use millrace_syntax::ast::{Annotation, AnnotationBody, AnnotationToken, AnnotationTokenKind};
use millrace_syntax::{Diagnostic, Diagnostics, Span};
use std::ops::Range;

/// A chain, and where the program asks for it.
#[derive(Clone, Debug)]
pub struct AskedChain {
    /// The chain.
    pub chain: ChainText,
    /// The annotation.
    pub span: Span,
    /// Where its text begins in the source, if it stands there as it is.
    text_at: Option<Span>,
}

impl AskedChain {
    /// Where some bytes of the text stand in the source; the annotation where they do not stand there as they are.
    pub fn place(&self, bytes: Range<usize>) -> Span {
        let Some(text) = self.text_at else { return self.span };
        let at =
            |byte: usize| text.start.saturating_add(u32::try_from(byte).unwrap_or(u32::MAX)).min(text.end);
        Span { start: at(bytes.start), end: at(bytes.end), ..text }
    }
}

/// Whether an annotation asks for a chain, and in which direction.
fn direction(annotation: &Annotation) -> Option<bool> {
    match annotation.name.as_str() {
        "input" => Some(false),
        "output" => Some(true),
        _ => None,
    }
}

/// What the program asks for, in the order of the source.
///
/// # Errors
/// An annotation that has no text, or too much of it; too many of them.
pub fn chains(program: &hir::Program) -> Result<Vec<AskedChain>, Box<Diagnostic>> {
    let annotations = program.main.map_or(&[][..], |main| &program.instances[main].annotations);
    let mut chains = Vec::new();
    for annotation in annotations {
        let Some(is_output) = direction(annotation) else { continue };
        if chains.len() == limits::MAX_CHAINS {
            let message = format!("a program asks for at most {} chains", limits::MAX_CHAINS);
            return fail(code::LIMIT, annotation.span, message);
        }
        chains.push(chain(annotation, is_output)?);
    }
    Ok(chains)
}

fn chain(annotation: &Annotation, is_output: bool) -> Lower<AskedChain> {
    let span = annotation.span;
    let Some(text) = annotation.string().filter(|text| !text.is_empty()) else {
        let message = format!("`@{}` takes a text: ports and a chain of plugins", annotation.name);
        let diagnostic = Diagnostic::error(code::CHAIN, span, message)
            .with_help(format!("as in `@{}(\"0:filter 'udp port 53'\")`", annotation.name));
        return Err(Box::new(diagnostic));
    };
    if text.len() > limits::MAX_CHAIN_TEXT {
        let message = format!("a chain has at most {} bytes", limits::MAX_CHAIN_TEXT);
        return fail(code::LIMIT, span, message);
    }
    Ok(AskedChain { text_at: text_at(annotation, &text), chain: ChainText { is_output, text }, span })
}

/// The place of a text that is one literal without escapes.
fn text_at(annotation: &Annotation, text: &str) -> Option<Span> {
    let AnnotationBody::Tokens(tokens) = &annotation.body else { return None };
    let [AnnotationToken { kind: AnnotationTokenKind::String(_), text: written, span }] = tokens.as_slice()
    else {
        return None;
    };
    let is_plain = written.strip_prefix('"').and_then(|written| written.strip_suffix('"')) == Some(text);
    is_plain.then(|| Span { start: span.start + 1, end: span.end.saturating_sub(1), ..*span })
}

/// Warnings of annotations that ask for a chain where nobody looks.
pub(crate) fn advice(program: &hir::Program) -> Diagnostics {
    let mut found = Diagnostics::new();
    let controls = program.controls.values().map(|control| &control.annotations);
    let parsers = program.parsers.values().map(|parser| &parser.annotations);
    let instances = program.instances.iter().filter(|(id, _)| Some(*id) != program.main);
    let instances = instances.map(|(_, instance)| &instance.annotations);
    for annotation in controls.chain(parsers).chain(instances).flat_map(|annotations| annotations.iter()) {
        if direction(annotation).is_some() && annotation.string().is_some() {
            let message = format!("`@{}` asks for nothing here", annotation.name);
            let warning = Diagnostic::warning(code::CHAIN, annotation.span, message);
            found.push(warning.with_help("chains of plugins are asked for before the instance `main`"));
        }
    }
    found
}
