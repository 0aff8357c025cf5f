//! Annotations whose bodies have a shape that the specification fixes.

use crate::check::Checker;
use crate::codes;
use crate::constant::evaluate;
use crate::fold::is_literal;
use crate::hir::TyKind;
use crate::repeated::Names;
use millrace_syntax::ast::{Annotation, AnnotationBody, AnnotationToken, AnnotationTokenKind, Expr};
use millrace_syntax::{Diagnostic, MAX_NAME_BYTES};

impl<'a> Checker<'a> {
    /// Reports annotations of one declaration that are malformed.
    pub(crate) fn check_annotations(&mut self, annotations: &'a [Annotation]) {
        let mut names = Names::default();
        for annotation in annotations {
            let name = annotation.name.as_str();
            let structured = |a: &Annotation| {
                matches!(a.body, AnnotationBody::Expressions(_) | AnnotationBody::KeyValues(_))
            };
            let earlier = names.take(name, annotation.span);
            if structured(annotation)
                && let Some(earlier) = earlier
            {
                self.report(
                    Diagnostic::error(
                        codes::BAD_ANNOTATION,
                        annotation.span,
                        format!("`@{name}` is given twice"),
                    )
                    .with_secondary(earlier, "first given here"),
                );
            }
            match &annotation.body {
                AnnotationBody::Expressions(list) => list.iter().for_each(|e| self.annotation_value(e)),
                AnnotationBody::KeyValues(list) => {
                    let mut keys = Names::default();
                    for pair in list {
                        if let Some(earlier) = keys.take(pair.name.as_str(), pair.name.span) {
                            let message = format!("the key `{}` is given twice", pair.name);
                            self.report(
                                Diagnostic::error(codes::BAD_ANNOTATION, pair.name.span, message)
                                    .with_secondary(earlier, "first given here"),
                            );
                        }
                        self.annotation_value(&pair.value);
                    }
                }
                AnnotationBody::None | AnnotationBody::Tokens(_) => {}
            }
            if name == "pkginfo" && matches!(annotation.body, AnnotationBody::None) {
                self.error(codes::BAD_ANNOTATION, annotation.span, "`@pkginfo` needs a body in brackets");
            }
            match name {
                "match" => self.match_annotation(annotation),
                "p4runtime_translation" => self.translation_annotation(annotation),
                _ => {}
            }
            if matches!(name, "name" | "deprecated" | "noWarn") && !is_text(annotation) {
                let message = format!("`@{name}` takes a string");
                self.error(codes::BAD_ANNOTATION, annotation.span, message);
            }
            if name == "name" && annotation.string().is_some_and(|name| name.len() > MAX_NAME_BYTES) {
                let message = format!("this name has more than {MAX_NAME_BYTES} bytes");
                self.error(codes::TOO_LARGE, annotation.span, message);
            }
        }
    }

    /// `@match(kind)` before a member of a value set's struct.
    fn match_annotation(&mut self, annotation: &'a Annotation) {
        let AnnotationBody::Tokens(tokens) = &annotation.body else { return };
        let known = match tokens.as_slice() {
            [token] => self.hir.match_kinds.iter().any(|k| **k == *token.text),
            _ => false,
        };
        if !known {
            let at = tokens.first().map_or(annotation.span, |t| t.span);
            self.error(codes::BAD_ANNOTATION, at, "`@match` takes the name of a match kind");
        }
    }

    /// `@p4runtime_translation("uri", type)`: the controller's type is `string`, `bit<W>` or, for the latter, W (P4Runtime
    /// specification, on user-defined types).
    fn translation_annotation(&mut self, annotation: &Annotation) {
        use AnnotationTokenKind::{Int, String};
        let fine = match &annotation.body {
            AnnotationBody::Tokens(tokens) => match tokens.as_slice() {
                [uri, comma, ty @ ..] if matches!(uri.kind, String(_)) && &*comma.text == "," => match ty {
                    [one] => matches!(one.kind, Int(_)) || &*one.text == "string",
                    [bit, less, width, greater] => {
                        &*bit.text == "bit"
                            && &*less.text == "<"
                            && matches!(width.kind, Int(_))
                            && &*greater.text == ">"
                    }
                    _ => false,
                },
                _ => false,
            },
            _ => false,
        };
        if !fine {
            let message = "`@p4runtime_translation` takes a string and the controller's type: `string`, \
                           `bit<W>` or a width";
            self.error(codes::BAD_ANNOTATION, annotation.span, message);
        }
    }

    fn annotation_value(&mut self, e: &'a Expr) {
        let value = self.check_expr(e, None);
        if self.is_unknown(value.ty) {
            return;
        }
        let plain = matches!(
            self.kind(value.ty),
            TyKind::Int | TyKind::Bits(_) | TyKind::SignedBits(_) | TyKind::String | TyKind::Bool
        );
        if !plain {
            let shown = self.show(value.ty);
            let message = format!("an annotation holds numbers, strings and truth values, not a `{shown}`");
            self.error(codes::BAD_ANNOTATION, e.span, message);
        } else if !is_literal(&value) {
            let message = "the value of an annotation must be known at compile time";
            self.error(codes::NOT_CONSTANT, e.span, message);
        } else if let Ok(constant) = evaluate(&self.hir, &value, &|_| None) {
            self.hir.annotation_values.insert(e.id, constant);
        }
    }
}

/// The name that an `@name` gives for the control plane.
pub(crate) fn name_of(annotations: &[Annotation]) -> Option<String> {
    annotations.iter().find(|a| a.name.as_str() == "name").and_then(Annotation::string)
}

/// Whether an annotation's body is a string, or several put together.
fn is_text(annotation: &Annotation) -> bool {
    match &annotation.body {
        AnnotationBody::Tokens(tokens) => {
            let string = |t: &AnnotationToken| matches!(t.kind, AnnotationTokenKind::String(_));
            tokens.iter().any(string) && tokens.iter().all(|t| string(t) || &*t.text == "++")
        }
        _ => annotation.string().is_some(),
    }
}
