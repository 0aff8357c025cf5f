//! Annotations: names, numbers and notes for P4Info.

use millrace_messages::config::expression::Value;
use millrace_messages::config::structured_annotation::Body;
use millrace_messages::config::{
    Documentation, Expression, ExpressionList, KeyValuePair, KeyValuePairList, StructuredAnnotation,
};
use millrace_sema::Constant;
use millrace_sema::hir::Program;
use millrace_syntax::ast::{
    Annotation, AnnotationBody, AnnotationToken, AnnotationTokenKind, Expr, NamedExpr,
};
use num_traits::ToPrimitive;

/// What P4Info keeps of the annotations of a thing.
pub(super) struct Notes {
    /// Unstructured ones, as P4 text.
    pub(super) annotations: Vec<String>,
    /// `@brief` and `@description`.
    pub(super) doc: Option<Documentation>,
    /// Structured ones (P4_16 specification, section 20.1).
    pub(super) structured: Vec<StructuredAnnotation>,
}

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
    let (brief, description) = (string(annotations, "brief"), string(annotations, "description"));
    let doc = (brief.is_some() || description.is_some()).then(|| Documentation {
        brief: brief.unwrap_or_default(),
        description: description.unwrap_or_default(),
    });
    let mut notes = Notes { annotations: Vec::new(), doc, structured: Vec::new() };
    for annotation in annotations {
        let name = annotation.name.as_str();
        let structured =
            |body| StructuredAnnotation { name: name.to_owned(), body, ..StructuredAnnotation::default() };
        match &annotation.body {
            AnnotationBody::Expressions(list) if list.is_empty() => notes.structured.push(structured(None)),
            AnnotationBody::Expressions(list) => {
                let values = list.iter().filter_map(|expr| literal(program, expr));
                let expressions = values.map(|value| Expression { value: Some(value) }).collect();
                notes.structured.push(structured(Some(Body::ExpressionList(ExpressionList { expressions }))));
            }
            AnnotationBody::KeyValues(pairs) => {
                let pairs = pairs.iter().filter_map(|named| pair(program, named));
                let kv_pair =
                    |(key, value)| KeyValuePair { key, value: Some(Expression { value: Some(value) }) };
                let kv_pairs = pairs.map(kv_pair).collect();
                notes.structured.push(structured(Some(Body::KvPairList(KeyValuePairList { kv_pairs }))));
            }
            _ if matches!(name, "name" | "id" | "brief" | "description") || except.contains(&name) => {}
            AnnotationBody::None => notes.annotations.push(format!("@{name}")),
            // As p4c writes it: empty parentheses are none.
            AnnotationBody::Tokens(tokens) if tokens.is_empty() => {
                notes.annotations.push(format!("@{name}"));
            }
            AnnotationBody::Tokens(tokens) => notes.annotations.push(format!("@{name}({})", source(tokens))),
        }
    }
    notes
}

/// The pairs of a `@name[k=v, ...]` or `@name(k=v, ...)`.
pub(super) fn pairs(program: &Program, annotation: &Annotation) -> Vec<(String, Value)> {
    match &annotation.body {
        AnnotationBody::KeyValues(pairs) => pairs.iter().filter_map(|p| pair(program, p)).collect(),
        AnnotationBody::Tokens(tokens) => {
            tokens.split(|token| &*token.text == ",").filter_map(token_pair).collect()
        }
        _ => Vec::new(),
    }
}

fn token_pair(tokens: &[AnnotationToken]) -> Option<(String, Value)> {
    let [key, equals, values @ ..] = tokens else { return None };
    if &*equals.text != "=" {
        return None;
    }
    let value = match values {
        [value] => match &value.kind {
            AnnotationTokenKind::Int(literal) => Value::Int64Value(literal.value.to_i64()?),
            AnnotationTokenKind::String(text) => Value::StringValue(text.to_string()),
            AnnotationTokenKind::Word => Value::BoolValue(value.text.parse().ok()?),
            AnnotationTokenKind::Symbol => return None,
        },
        _ => return None,
    };
    Some((key.text.to_string(), value))
}

fn pair(program: &Program, named: &NamedExpr) -> Option<(String, Value)> {
    Some((named.name.to_string(), literal(program, &named.value)?))
}

/// The tokens as text, a space between any two, as p4c writes them: clients of its P4Info compare and parse these texts.
pub(super) fn source(tokens: &[AnnotationToken]) -> String {
    let words: Vec<&str> = tokens.iter().map(|token| &*token.text).collect();
    words.join(" ")
}

fn literal(program: &Program, expr: &Expr) -> Option<Value> {
    Some(match program.annotation_values.get(&expr.id)? {
        Constant::Int(value) => Value::Int64Value(value.to_i64()?),
        Constant::Bool(value) => Value::BoolValue(*value),
        Constant::String(value) => Value::StringValue(value.clone()),
        _ => return None,
    })
}
