//! Annotations: names, numbers and notes for P4Info.

use super::{Literal, Notes, StructuredAnnotation, StructuredBody};
use millrace_sema::Constant;
use millrace_sema::hir::Program;
use millrace_syntax::ast::{
    Annotation, AnnotationBody, AnnotationToken, AnnotationTokenKind, Expr, NamedExpr,
};
use num_traits::ToPrimitive;

/// The annotation of that name.
pub(super) fn find<'a>(annotations: &'a [Annotation], name: &str) -> Option<&'a Annotation> {
    annotations.iter().find(|a| a.name.as_str() == name)
}

/// The string of an annotation: `@name("x")`.
pub(super) fn string(annotations: &[Annotation], name: &str) -> Option<String> {
    find(annotations, name)?.string()
}

/// The number of an annotation: `@id(5)`.
pub(super) fn number(annotations: &[Annotation], name: &str) -> Option<u32> {
    find(annotations, name)?.integer()?.to_u32()
}

/// The control plane's name of something declared as `declared` within `prefix`: `@name` wins, and one with a leading
/// dot stands alone (P4_16 specification, section 20.3.2).
pub(super) fn qualified(prefix: &str, declared: &str, annotations: &[Annotation]) -> String {
    let local = string(annotations, "name").unwrap_or_else(|| declared.to_owned());
    match local.strip_prefix('.') {
        Some(absolute) => absolute.to_owned(),
        None if prefix.is_empty() => local,
        None => format!("{prefix}.{local}"),
    }
}

/// What P4Info keeps of annotations: all but those that have fields of their own, and those named in `except`.
pub(super) fn notes(program: &Program, annotations: &[Annotation], except: &[&str]) -> Notes {
    let mut notes = Notes {
        brief: string(annotations, "brief"),
        description: string(annotations, "description"),
        ..Notes::default()
    };
    for annotation in annotations {
        let name = annotation.name.as_str();
        let structured = |body| StructuredAnnotation { name: name.to_owned(), body };
        match &annotation.body {
            AnnotationBody::Expressions(list) if list.is_empty() => {
                notes.structured.push(structured(StructuredBody::Empty));
            }
            AnnotationBody::Expressions(list) => {
                notes.structured.push(structured(StructuredBody::List(
                    list.iter().filter_map(|e| literal(program, e)).collect(),
                )));
            }
            AnnotationBody::KeyValues(pairs) => {
                notes.structured.push(structured(StructuredBody::Pairs(
                    pairs.iter().filter_map(|p| pair(program, p)).collect(),
                )));
            }
            _ if matches!(name, "name" | "id" | "brief" | "description") || except.contains(&name) => {}
            AnnotationBody::None => notes.annotations.push(format!("@{name}")),
            AnnotationBody::Tokens(tokens) => notes.annotations.push(format!("@{name}({})", source(tokens))),
        }
    }
    notes
}

/// The pairs of a `@name[k=v, ...]` or `@name(k=v, ...)`.
pub(super) fn pairs(program: &Program, annotation: &Annotation) -> Vec<(String, Literal)> {
    match &annotation.body {
        AnnotationBody::KeyValues(pairs) => pairs.iter().filter_map(|p| pair(program, p)).collect(),
        AnnotationBody::Tokens(tokens) => {
            tokens.split(|token| &*token.text == ",").filter_map(token_pair).collect()
        }
        _ => Vec::new(),
    }
}

fn token_pair(tokens: &[AnnotationToken]) -> Option<(String, Literal)> {
    let [key, equals, values @ ..] = tokens else { return None };
    if &*equals.text != "=" {
        return None;
    }
    let value = match values {
        [value] => match &value.kind {
            AnnotationTokenKind::Int(literal) => Literal::Int(literal.value.to_i64()?),
            AnnotationTokenKind::String(text) => Literal::String(text.to_string()),
            AnnotationTokenKind::Word => Literal::Bool(value.text.parse().ok()?),
            AnnotationTokenKind::Symbol => return None,
        },
        _ => return None,
    };
    Some((key.text.to_string(), value))
}

fn pair(program: &Program, named: &NamedExpr) -> Option<(String, Literal)> {
    Some((named.name.to_string(), literal(program, &named.value)?))
}

/// The tokens as text: a comma is followed by a space, two words are separated by one.
pub(super) fn source(tokens: &[AnnotationToken]) -> String {
    let mut text = String::new();
    let mut word_before = false;
    for token in tokens {
        let word = !matches!(token.kind, AnnotationTokenKind::Symbol);
        if word && (word_before || text.ends_with(',')) {
            text.push(' ');
        }
        text.push_str(&token.text);
        word_before = word;
    }
    text
}

fn literal(program: &Program, expr: &Expr) -> Option<Literal> {
    Some(match program.annotation_values.get(&expr.id)? {
        Constant::Int(value) => Literal::Int(value.to_i64()?),
        Constant::Bool(value) => Literal::Bool(*value),
        Constant::String(value) => Literal::String(value.clone()),
        _ => return None,
    })
}
