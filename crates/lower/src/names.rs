//! Names that the control plane sees.
//!
//! A block of the architecture is named after its declaration, what is declared in it after the block: table `t` of
//! control `Ingress` is `Ingress.t`, also through nested instances: `Ingress.inner.t`. `@name("x")` replaces the last
//! part; with a leading dot, all of it.

use millrace_syntax::ast::Annotation;

/// The name of what is declared as `name` in a block called `prefix` (empty at the top level).
pub(crate) fn control_plane_name(prefix: &str, name: &str, annotations: &[Annotation]) -> String {
    let given = annotations.iter().find(|a| is_called(a, "name")).and_then(Annotation::string);
    let last = given.as_deref().unwrap_or(name);
    match last.strip_prefix('.') {
        Some(absolute) => absolute.to_owned(),
        None if prefix.is_empty() => last.to_owned(),
        None => format!("{prefix}.{last}"),
    }
}

/// Whether an annotation has that name.
pub(crate) fn is_called(annotation: &Annotation, name: &str) -> bool {
    *annotation.name.text == *name
}

/// Whether one of the annotations has that name.
pub(crate) fn has_annotation(annotations: &[Annotation], name: &str) -> bool {
    annotations.iter().any(|a| is_called(a, name))
}
