//! What code may name.

use crate::types::{Ty, Types};
use millrace_pipeline::arbitrary::Rng;

/// Something with a value.
#[derive(Clone, Debug)]
pub(crate) struct Var {
    pub(crate) path: String,
    pub(crate) ty: Ty,
    pub(crate) writable: bool,
}

/// A function, with the types and directions of its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) result: Ty,
    /// Whether the argument has to be something that can be written.
    pub(crate) params: Vec<(Ty, bool)>,
}

/// A stack of headers.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    pub(crate) path: String,
    pub(crate) header: usize,
    pub(crate) size: u32,
}

/// What code belongs to, and so what may be written in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeKind {
    Function,
    Parser,
    Action,
    Control,
}

/// Names that can be used.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(crate) kind: CodeKind,
    pub(crate) vars: Vec<Var>,
    pub(crate) functions: Vec<Function>,
    pub(crate) stacks: Vec<Stack>,
    /// Depth of loops around.
    pub(crate) loops: u32,
}

impl Scope {
    pub(crate) fn new(kind: CodeKind) -> Scope {
        Scope { kind, vars: Vec::new(), functions: Vec::new(), stacks: Vec::new(), loops: 0 }
    }

    /// Adds a variable, and its fields when it has some.
    pub(crate) fn add(&mut self, types: &Types, path: &str, ty: Ty, writable: bool) {
        let records = match ty {
            Ty::Header(at) => &types.headers[at].fields,
            Ty::Struct(at) => &types.structs[at].fields,
            _ => &Vec::new(),
        };
        for field in records {
            self.vars.push(Var { path: format!("{path}.{}", field.name), ty: field.ty, writable });
        }
        self.vars.push(Var { path: path.to_owned(), ty, writable });
    }

    /// A variable that is as wanted.
    pub(crate) fn pick(&self, rng: &mut Rng, wanted: impl Fn(&Var) -> bool) -> Option<&Var> {
        let fitting: Vec<&Var> = self.vars.iter().filter(|var| wanted(var)).collect();
        rng.pick(&fitting).copied()
    }
}

/// Indented text.
#[derive(Debug, Default)]
pub(crate) struct Text {
    text: String,
    indent: usize,
}

impl Text {
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        for _ in 0..self.indent {
            self.text.push_str("    ");
        }
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    /// A line that opens a block.
    pub(crate) fn open(&mut self, line: impl AsRef<str>) {
        self.line(line);
        self.indent += 1;
    }

    /// A line that ends a block.
    pub(crate) fn close(&mut self, line: &str) {
        self.indent -= 1;
        self.line(line);
    }

    pub(crate) fn append(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}
