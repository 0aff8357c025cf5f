//! Which names are types and which are values, as far as parsing needs it.

use foldhash::{HashMap, HashMapExt};

use crate::intern::Symbol;

/// What a declared name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Type,
    Value,
}

/// The names declared so far, by scope, the innermost last.
#[derive(Debug)]
pub(super) struct Scopes {
    scopes: Vec<HashMap<Symbol, Meaning>>,
}

impl Scopes {
    pub(super) fn new() -> Self {
        Self { scopes: vec![HashMap::new()] }
    }

    pub(super) fn push(&mut self) {
        self.scopes.push(HashMap::new());
    }

    pub(super) fn pop(&mut self) {
        self.scopes.pop();
    }

    pub(super) fn declare(&mut self, name: Symbol, meaning: Meaning) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, meaning);
        }
    }

    /// What a name stands for; none when it is not declared.
    pub(super) fn meaning(&self, name: Symbol) -> Option<Meaning> {
        self.scopes.iter().rev().find_map(|scope| scope.get(&name)).copied()
    }

    /// What a name stands for in the outermost scope, for `.name`.
    pub(super) fn top_level_meaning(&self, name: Symbol) -> Option<Meaning> {
        self.scopes.first()?.get(&name).copied()
    }
}
