//! Parts of a program as its source has them.

use crate::MAX_LABEL;
use millrace_sema::hir::{Expr, KeySet, Program};
use millrace_syntax::{SourceMap, Span};

/// The text of a part, in one line, at most so many characters of it.
pub(crate) fn text(sources: &SourceMap, span: Span, most: usize) -> String {
    // What is cut off is not looked at: a part may be most of a file.
    let words = sources.text(span).split_whitespace().flat_map(|word| [" ", word]).skip(1);
    let (mut text, mut left) = (String::new(), most);
    for word in words {
        let length = word.chars().take(left + 1).count();
        if length > left {
            text.extend(word.chars().take(left));
            text.push_str("...");
            break;
        }
        text.push_str(word);
        left -= length;
    }
    text
}

/// An expression.
pub(crate) fn expression(sources: &SourceMap, expr: &Expr) -> String {
    text(sources, expr.span, MAX_LABEL)
}

/// What keys are matched against.
pub(crate) fn key_set(program: &Program, sources: &SourceMap, set: &KeySet) -> String {
    match set {
        KeySet::Any => "default".into(),
        KeySet::Value(value) => expression(sources, value),
        KeySet::Mask(value, mask) => two(sources, value, "&&&", mask),
        KeySet::Range(low, high) => two(sources, low, "..", high),
        KeySet::ValueSet(instance) => program.instances[*instance].name.clone().unwrap_or_default(),
    }
}

fn two(sources: &SourceMap, first: &Expr, between: &str, second: &Expr) -> String {
    format!("{} {between} {}", expression(sources, first), expression(sources, second))
}

/// Several things in one label: `(a, b)`, or the one there is.
pub(crate) fn list(parts: impl Iterator<Item = String>) -> String {
    let (mut text, mut count) = (String::new(), 0);
    for part in parts {
        if text.chars().count() > MAX_LABEL {
            text.push_str(", ...");
            break;
        }
        if count > 0 {
            text.push_str(", ");
        }
        text.push_str(&part);
        count += 1;
    }
    if count == 1 { text } else { format!("({text})") }
}
